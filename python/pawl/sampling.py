"""Outputs that keep the model's distribution, with Python functions as checks.

    from pawl import sampling

    def check(text, tokens, ended):
        if "!" in text:
            return "dead"                       # no way to go on makes it valid
        return "accept"                         # or "live", "unknown"

    outputs = sampling.generate("Once ", sampler="smc", n=20, particles=5, check=check,
                                regex="[a-z !]{3,40}", max_tokens=50)
    for output in outputs:
        use(output.text, output.log_weight)

    sampling.score("Once ", tokens=outputs[0].tokens) == outputs[0].log_probability

The model runs in the `pawl` command, which has to be installed; `command` says where it is. The options are those of
`pawl generate`, with underscores for hyphens; docs/sampling.md tells what they mean and what comes back. A check runs in
this process, one question at a time. An exception in it ends the run and is raised here.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Optional, Sequence, Union

__all__ = ["WeightedOutput", "generate", "score"]

#: (text, tokens, ended) -> "dead", "live", "accept" or "unknown"
CheckFunction = Callable[[str, "list[int]", bool], str]

_VERDICTS = ("dead", "live", "accept", "unknown")

# What the command runs as the check: lines go through to the socket and back.
_RELAY = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rwb")
for line in sys.stdin.buffer:
    f.write(line)
    f.flush()
    answer = f.readline()
    if not answer:
        break
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
"""


@dataclasses.dataclass(frozen=True)
class WeightedOutput:
    """A line of `pawl generate --json-lines`."""

    text: str
    tokens: "list[int]"
    log_weight: float
    log_probability: float
    report: "dict[str, Any]"


class _Server:
    """Answers questions to a function that come through a socket."""

    def __init__(self, function: CheckFunction, folder: str, name: str) -> None:
        self.path = os.path.join(folder, name)
        self.error: Optional[BaseException] = None
        self._function = function
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def command(self) -> str:
        return " ".join(shlex.quote(word) for word in (sys.executable, "-c", _RELAY, self.path))

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as file:
            for line in file:
                question = json.loads(line)
                try:
                    with self._lock:
                        if self.error is not None:
                            return
                        verdict = self._function(question["text"], question["tokens"], question["ended"])
                        if verdict not in _VERDICTS:
                            raise ValueError(f"a check answers one of {_VERDICTS}, not {verdict!r}")
                except BaseException as error:  # pylint: disable=broad-except
                    self.error = error
                    return
                file.write(json.dumps({"id": question["id"], "verdict": verdict}).encode() + b"\n")
                file.flush()


def _arguments(options: "dict[str, Any]") -> "list[str]":
    arguments = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            arguments += [option] if one is True else [option, str(one)]
    return arguments


def _run(command: "Sequence[str]") -> str:
    done = subprocess.run(command, capture_output=True, check=False)
    # 1: no output became valid; the lines tell.
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode()


def generate(prompt: str, *, command: str = "pawl", sampler: Optional[str] = None,
             fidelity: Optional[str] = None,
             check: Union[None, str, CheckFunction, "Sequence[Union[str, CheckFunction]]"] = None,
             granularity: str = "token", **options: Any) -> "list[WeightedOutput]":
    """The outputs of `pawl generate`. A check is a function, or a SPEC as the command takes it."""
    if sampler is None and fidelity is None:
        sampler = "smc"
    checks = [] if check is None else list(check) if isinstance(check, (list, tuple)) else [check]
    with tempfile.TemporaryDirectory() as folder:
        servers = []
        specs = []
        for i, one in enumerate(checks):
            if callable(one):
                server = _Server(one, folder, f"check{i}")
                servers.append(server)
                specs.append(f"program@{granularity}:{server.command()}")
            else:
                specs.append(one)
        try:
            lines = _run([command, "generate", "--prompt", prompt, "--json-lines"] +
                         _arguments({"sampler": sampler, "fidelity": fidelity, "check": specs, **options}))
        except RuntimeError:
            for server in servers:
                if server.error is not None:
                    raise server.error from None
            raise
        finally:
            for server in servers:
                server.close()
        for server in servers:
            if server.error is not None:
                raise server.error
    return [WeightedOutput(**json.loads(line)) for line in lines.splitlines()]


def score(prompt: str, *, text: Optional[str] = None, tokens: "Optional[Sequence[int]]" = None,
          command: str = "pawl", **options: Any) -> float:
    """The log-probability of tokens, or of a text as the tokenizer spells it."""
    ids = None if tokens is None else json.dumps(list(tokens))
    return float(_run([command, "score", "--prompt", prompt] +
                      _arguments({"text": text, "tokens": ids, **options})))
