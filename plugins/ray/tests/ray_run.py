"""ray_run.py [--rows N] [--actors N] [--kill] [--json OUT]: records out of N texts on a local cluster.

With --kill one actor's process is ended in the middle: every row must come out, none twice. Without, the same rows also go through one
actor, and the rates are compared. The engine is pawl.Engine with the model that ships, on one thread. Processor time is told apart: that of
the actors, and that of all other processes of the cluster, this one among them.
"""

import argparse
import json
import os
import signal
import subprocess
import time

SCHEMA = {"type": "object", "required": ["name", "phone"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 30}, "phone": {"type": ["string", "null"], "maxLength": 20}}}

BATCH = 200


class CommandEngine:
    """pawl.Engine through the command, where the package has no engine."""

    def __init__(self, model=None, threads=1):
        self.arguments = ["--threads", str(threads)] + (["--model", model] if model else [])

    def extract(self, texts, schema):
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(schema, file)
            file.flush()
            out = subprocess.run(
                [os.environ["PAWL_COMMAND"], "extract", "--schema", file.name, "--json-lines",
                 *self.arguments], input="".join(json.dumps(t) + "\n" for t in texts).encode(),
                capture_output=True)
        records = [json.loads(line) for line in out.stdout.splitlines()]
        for record in records:
            if "error" in record:
                raise ValueError(record["error"]["message"])
        return records


class Engine:
    """Marks the process that works, so that the test can end one."""

    def __init__(self, model=None, folder=None):
        import pawl

        open(os.path.join(folder, str(os.getpid())), "w").close()
        self.inner = (pawl.Engine(threads=1) if hasattr(pawl, "Engine") else CommandEngine(model))

    def extract(self, texts, schema):
        return self.inner.extract(texts, schema)


def make_engine(model, **options):
    return Engine(model, **options)


def memory_of(folder):
    total = 0
    for pid in os.listdir(folder):
        try:
            with open(f"/proc/{pid}/statm") as file:
                total = max(total, int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        except OSError:
            pass
    return total


def processor_seconds():
    """Processor time so far of each process of the cluster: this one's children and theirs."""
    parents, seconds = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(pid)] = int(fields[1])
        seconds[int(pid)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    known = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in known} - known
        if not more:
            return {pid: seconds[pid] for pid in known if pid in seconds}
        known |= more


def run(rows, actors, kill):
    import tempfile

    import pawl.ray
    import ray

    folder = tempfile.mkdtemp()
    texts = [{"id": i, "text": f"Ann Lee number {i} works at Harrow Ltd. Phone: 020 7946 {i % 10000:04}."
              if i % 97 else ""} for i in range(rows)]
    data = ray.data.from_items(texts, override_num_blocks=max(8, rows // (2 * BATCH)))
    out = pawl.ray.extract(data, SCHEMA, actors=actors, batch_size=BATCH, make_engine=make_engine,
                           engine_options={"folder": folder})
    seen, killed, marks, begin, before, used = {}, False, [], None, {}, {}
    for batch in out.iter_batches(batch_size=BATCH):
        if begin is None:  # with the first rows: what it takes to start is not a rate
            begin, before = time.monotonic(), processor_seconds()
        if len(marks) % 10 == 0:
            used.update(processor_seconds())
        for i, record, error in zip(batch["id"], batch["record"], batch["error"]):
            assert int(i) not in seen, f"row {i} came twice"
            seen[int(i)] = (record, error)
        marks.append(memory_of(folder))
        if kill and not killed and len(seen) > rows // 4:
            os.kill(int(sorted(os.listdir(folder))[0]), signal.SIGKILL)
            killed = True
    seconds = time.monotonic() - begin
    used.update(processor_seconds())
    spent = {"actors": 0.0, "others": 0.0}
    for pid, total in used.items():
        kind = "actors" if os.path.exists(os.path.join(folder, str(pid))) else "others"
        spent[kind] += total - before.get(pid, 0.0)
    assert len(seen) == rows, f"{rows - len(seen)} rows were lost"
    for i, (record, error) in seen.items():
        assert (record is None) == (i % 97 == 0) and (error is None) == (i % 97 != 0), (i, error)
        if record is not None:
            assert set(json.loads(record)) == set(SCHEMA["properties"])
    assert killed == kill
    return rows / seconds, marks, {kind: round(total, 1) for kind, total in spent.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    import logging

    # Ray gives its workers the niceness 15: on a machine that does anything else they hardly run at all.
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray

    ray.init(num_cpus=options.actors + 2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
             runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(
                 [os.environ.get("PYTHONPATH", ""), os.path.dirname(os.path.abspath(__file__))])}})
    ray.data.DataContext.get_current().enable_progress_bars = False
    if options.kill:
        run(options.rows, options.actors, True)
        print(f"{options.rows} rows, one of {options.actors} actors killed: none lost, none twice")
        return
    both, marks, spent = run(options.rows, options.actors, False)
    one, _, spent_by_one = run(options.rows, 1, False)
    growth = marks[-1] / max(1, marks[len(marks) // 4])
    result = {"rows": options.rows, "actors": options.actors, "rows_per_second": round(both, 1),
              "rows_per_second_of_one": round(one, 1), "ratio": round(both / one, 2),
              "processor_seconds": spent, "processor_seconds_of_one": spent_by_one,
              "memory_mb": [round(m / 1e6) for m in marks[::max(1, len(marks) // 8)]],
              "memory_growth_from_first_quarter": round(growth, 3)}
    if options.json:
        json.dump(result, open(options.json, "w"), indent=1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
