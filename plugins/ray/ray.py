"""Pawl on a Ray cluster.

    import ray, pawl.ray

    texts = ray.data.read_parquet("mails/")                        # a column "text"
    records = pawl.ray.extract(texts, schema, actors=2)            # + "record" and "error"
    records.write_parquet("records/")

`Extractor` is the class for Ray Data's map_batches: each actor holds an engine, Ray's scheduler keeps
as many batches in flight as there is memory for, and starts an actor again that was lost. Each input
row is exactly one output row: where a text gives no record, `record` is null and `error` says why.

`serve_app` is a Ray Serve application: replicas of `pawl serve` behind a router that sends requests of
one schema to the same replica, which has its grammar and its masks.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import pawl


def _default_engine(model: Optional[str], **options: Any) -> Any:
    options.setdefault("threads", 1)  # there is an actor for each processor
    return pawl.Engine(model, **options) if model else pawl.Engine(**options)


class Extractor:
    """For ds.map_batches(Extractor, fn_constructor_kwargs={"schema": ...}, compute=..., batch_size=...).

    `schema`: a JSON Schema as a dict or its text. `model`: as pawl.Engine takes it; by default the
    model that ships. `text_column`, `record_column`, `error_column`: names of columns; records are
    JSON texts. A batch that fails as a whole is tried again text by text, so that one text does not
    take the others along; a text is tried `retries` times more unless the error says that trying
    again is in vain. `make_engine(model, **engine_options)` makes the engine."""

    def __init__(self, schema: Any, *, model: Optional[str] = None, text_column: str = "text",
                 record_column: str = "record", error_column: str = "error", retries: int = 1,
                 make_engine: Callable[..., Any] = _default_engine,
                 engine_options: Optional[Dict[str, Any]] = None) -> None:
        self.schema = json.loads(schema) if isinstance(schema, (str, bytes)) else schema
        self.columns = text_column, record_column, error_column
        self.retries = retries
        self.engine = make_engine(model, **(engine_options or {}))

    def _extract(self, texts: List[str]) -> List[Any]:
        """Records in order, and an exception in the place of each that failed."""
        try:
            records = list(self.engine.extract(texts, self.schema))
            if len(records) != len(texts):
                raise RuntimeError(f"the engine gave {len(records)} records for {len(texts)} texts")
            return records
        except Exception as error:
            if len(texts) == 1 and (isinstance(error, ValueError) or not self.retries):
                return [error]
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Any:
        problem: Exception = RuntimeError("not tried")
        for attempt in range(self.retries + 1):
            try:
                return list(self.engine.extract([text], self.schema))[0]
            except ValueError as error:  # of the input: PawlError is one
                return error
            except Exception as error:
                problem = error
        return problem

    def __call__(self, batch: Any) -> Any:
        """A batch as pyarrow has it, or as a dict of numpy arrays, and the same back."""
        text_column, record_column, error_column = self.columns
        table = hasattr(batch, "append_column")
        names = batch.column_names if table else list(batch)
        if text_column not in names:
            raise ValueError(f"there is no column {text_column!r}, only {sorted(names)}")
        values = batch[text_column].to_pylist() if table else list(batch[text_column])
        records, errors = self._rows(values)
        if table:
            import pyarrow as pa

            # Typed, since a batch without an error has nothing to tell the type by.
            batch = batch.append_column(record_column, pa.array(records, pa.string()))
            return batch.append_column(error_column, pa.array(errors, pa.string()))
        import numpy as np

        return {**batch, record_column: np.array(records, dtype=object),
                error_column: np.array(errors, dtype=object)}

    def _rows(self, values: List[Any]) -> Tuple[List[Optional[str]], List[Optional[str]]]:
        text_column = self.columns[0]
        records: List[Optional[str]] = [None] * len(values)
        errors: List[Optional[str]] = [None] * len(values)
        good: List[int] = []
        for at, value in enumerate(values):
            if isinstance(value, str) and value.strip():
                good.append(at)
            else:
                kind = "an empty text" if isinstance(value, str) else type(value).__name__
                errors[at] = f"the column {text_column!r} has {kind} here, not a text"
        for at, made in zip(good, self._extract([values[at] for at in good]) if good else []):
            if isinstance(made, Exception):
                errors[at] = f"{type(made).__name__}: {made}"
            elif isinstance(made, str):
                records[at] = made
            else:
                records[at] = json.dumps(made, ensure_ascii=False)
        return records, errors


def processors_of_an_actor(actors: int, cluster: float) -> float:
    """One, or less on a cluster that has none left next to the actors: what reads and writes needs one
    too, and waits for it for ever."""
    if cluster <= 0 or cluster >= actors + 1:  # a cluster without any is about to grow
        return 1
    return max(0, int(100 * (cluster - 1) / actors)) / 100


def extract(dataset: Any, schema: Any, *, actors: int = 2, cpus: Optional[float] = None,
            batch_size: int = 64, **options: Any) -> Any:
    """The dataset with a record, or an error, for each row. `actors` hold an engine each. `cpus` is
    what Ray counts for an actor, and what it has of threads: one, unless told otherwise, and by
    default less where the cluster has not that many and one more. `options` are those of Extractor."""
    import ray

    if actors < 1:
        raise ValueError(f"actors must be at least 1, not {actors}")
    if cpus is None:
        cluster = ray.cluster_resources().get("CPU", 0) if ray.is_initialized() else 0
        cpus = processors_of_an_actor(actors, cluster)
    elif cpus > 1 and "make_engine" not in options:
        options["engine_options"] = {"threads": int(cpus), **(options.get("engine_options") or {})}
    return dataset.map_batches(
        Extractor, fn_constructor_kwargs={"schema": schema, **options}, batch_size=batch_size,
        batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=actors), num_cpus=cpus)


# ---- Ray Serve ----------------------------------------------------------------------------------


def schema_key(path: str, body: bytes) -> str:
    """What a request is constrained by, as a short text: equal for equal constraints."""
    try:
        request = json.loads(body)
    except ValueError:
        return path
    if not isinstance(request, dict):
        return path
    names = ("schema", "response_format", "format", "tools", "grammar", "json_schema",
             "structured_outputs", "structural_tag", "regex", "choice")
    asked = {name: request[name] for name in names if name in request}
    if not asked:
        return ""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def ranked(key: str, replicas: int) -> List[int]:
    """Replicas in the order in which they are tried for a key. With one replica more or less only
    the keys that it has move."""
    def weight(replica: int) -> bytes:
        return hashlib.sha256(f"{key}/{replica}".encode()).digest()
    return sorted(range(replicas), key=weight, reverse=True)


def choose(key: str, load: Sequence[int], most: int) -> int:
    """The replica for a key: its own, unless that has `most` requests more than the idlest. Requests
    without a constraint go to the idlest."""
    idlest = min(range(len(load)), key=lambda replica: load[replica])
    if not key:
        return idlest
    for replica in ranked(key, len(load)):
        if load[replica] - load[idlest] <= most:
            return replica
    return idlest


def tried(key: str, load: Sequence[int], most: int) -> List[int]:
    """All replicas in the order in which a request goes to them: the chosen one, and the others for
    when it does not answer."""
    first = choose(key, load, most)
    return [first, *(replica for replica in ranked(key, len(load)) if replica != first)]


def unanswered(error: Exception) -> bytes:
    """The body of an answer when no replica gives one, as the server writes its errors."""
    # Ray puts the traceback of a task in front; its last line says what happened.
    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return json.dumps({"error": {"message": f"no replica answers: {reason}", "type": "server_error",
                                 "param": None, "code": None}}).encode()


class Server:
    """`pawl serve` as a process that ends with the actor. `command`: None is the one of the package."""

    def __init__(self, command: Optional[Sequence[str]] = None,
                 arguments: Sequence[str] = ()) -> None:
        command = command or [pawl.command_path()]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [*command, "serve", "--port", str(self.port), *arguments], stdin=subprocess.DEVNULL,
            env={**os.environ})
        self._wait(60)

    def _wait(self, seconds: float) -> None:
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if self.process.poll() is not None:
                raise RuntimeError(f"pawl serve ended with {self.process.returncode}")
            try:
                if self._health() == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"pawl serve is not ready after {seconds:g} s")

    def _health(self) -> int:
        """200 when the model is loaded, 503 before."""
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        finally:
            connection.close()

    def check_health(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError("pawl serve has ended")

    def stream(self, method: str, path: str, headers: List[Tuple[str, str]], body: bytes) -> Any:
        """The status and headers first, then the body as it comes."""
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            yield answer.status, answer.getheaders()
            while True:
                part = answer.read1(1 << 16)
                if not part:
                    return
                yield part
        finally:
            connection.close()

    def __del__(self) -> None:
        if getattr(self, "process", None) is not None:
            self.process.terminate()


_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


def serve_app(replicas: int = 2, *, command: Optional[Sequence[str]] = None,
              arguments: Sequence[str] = (), cpus: float = 1, most: int = 8) -> Any:
    """The application for ray.serve.run: `replicas` servers, each on `cpus` processors, and the
    router. `most`: how many requests more than the idlest replica has a replica may have before
    another one takes over requests of its schemas."""
    from ray import serve

    @serve.deployment(ray_actor_options={"num_cpus": 0}, max_ongoing_requests=1000)
    class Router:
        def __init__(self, *servers: Any) -> None:
            self.servers = [server.options(stream=True) for server in servers]
            self.load = [0] * len(servers)

        async def __call__(self, request: Any) -> Any:
            from starlette.responses import Response, StreamingResponse

            body = await request.body()
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _HOP]
            order = tried(schema_key(request.url.path, body), self.load, most)
            for at in order:
                self.load[at] += 1
                parts = self.servers[at].stream.remote(request.method, path, headers, body)
                try:
                    status, answer_headers = await parts.__anext__()
                    break
                except Exception as error:  # its server has ended, or Ray's actor: nothing was said
                    self.load[at] -= 1
                    if at == order[-1]:
                        return Response(unanswered(error), 503, {"retry-after": "5"}, "application/json")
                except BaseException:  # who asked has gone
                    self.load[at] -= 1
                    raise

            async def rest() -> Any:
                try:
                    async for part in parts:
                        yield part
                finally:
                    self.load[at] -= 1

            kept = {k: v for k, v in answer_headers if k.lower() not in _HOP}
            kept["x-pawl-replica"] = str(at)
            return StreamingResponse(rest(), status_code=status, headers=kept)

    nodes = [serve.deployment(Server, name=f"pawl-{at}", max_ongoing_requests=100,
                              ray_actor_options={"num_cpus": cpus}).bind(command, list(arguments))
             for at in range(replicas)]
    return Router.bind(*nodes)
