#!/usr/bin/env python3
"""Pawl next to xgrammar and llguidance on MaskBench: the same files, the same token ids, the same run, one core each in turn.

  bench/peers/maskbench_peers.py --data ~/maskbench/data --tokenizer ~/llama3_1 --limit 500 --chart masks.svg

Prints a table with ratios and writes bench/results/maskbench_peers-DATE.json. --chart OUT.svg draws what a run or, with
--from RESULT.json, an earlier one measured.

Instances are json.dumps(data, ensure_ascii=False), their tokens the Hugging Face tokenizer's without special tokens. For each
token the mask is computed, has to allow the token, and the state advances (TBM is the time of both); after a valid text the
end has to be allowed. A schema passes when this comes out as its tests say, for all of them. TTFM is from the text of the
schema to its first mask. --cold (default): nothing is known but the tokenizer when a schema comes. --warm: the same schema and
texts were run once before.

Engines are called from Python, which costs about a microsecond per call: "pawl" is the command, which does not pay that,
"pawl-python" is Pawl called as the others are. A schema that takes
longer than --timeout seconds, or crashes its engine, costs that engine the schema; a new process goes on with the next.
Each engine's times are over the schemas that it takes, so one that refuses the hard ones looks faster.

Needs: xgrammar, llguidance, tokenizers (pip install); pip install . for pawl-python. What is missing is left out.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import random
import selectors
import subprocess
import sys
import tempfile

import chart
from engines import ENGINES

HERE = pathlib.Path(__file__).resolve().parent
PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9)
COUNTS = ("passing", "refused", "valid_rejected", "invalid_accepted", "end_refused", "engine_errors", "timeouts", "crashes")


def summary_us(nanoseconds):
    """{avg, p25, ..., max} in microseconds; percentiles by nearest rank."""
    if not nanoseconds:
        return {}
    times = sorted(nanoseconds)
    out = {"avg": sum(times) / len(times) / 1e3}
    for p in PERCENTILES:
        rank = max(1, -(-len(times) * p // 100))
        out[f"p{p:g}"] = times[int(rank) - 1] / 1e3
    out["max"] = times[-1] / 1e3
    return out


class Worker:
    """engines.py for one engine, on one core; started when needed, killed when it takes too long."""

    def __init__(self, args, name):
        self.args, self.name, self.process, self.version = args, name, None, ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def start(self):
        environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
        command = [sys.executable, str(HERE / "engines.py"), self.name, str(self.args.tokenizer),
                   "warm" if self.args.warm else "cold"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                                        stderr=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {self.args.core}))
        self.version = json.loads(self.answer(600))["version"]

    def answer(self, seconds):
        """A line, or TimeoutError, or EOFError when the process has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise TimeoutError
        line = self.process.stdout.readline()
        if not line:
            raise EOFError
        return line

    def run(self, request):
        """The outcome of a schema; {"timeout": ...} or {"crash": ...} when there is none."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
            return json.loads(self.answer(self.args.timeout))
        except TimeoutError:
            self.stop()
            return {"timeout": f"no answer after {self.args.timeout:g} s"}
        except (EOFError, BrokenPipeError):
            code = self.process.wait()
            self.stop()
            return {"crash": f"the process ended with code {code}"}


def read_requests(args, files):
    """name -> the line that a worker gets."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(args.tokenizer / "tokenizer.json"))
    requests = {}
    for path in files:
        content = json.loads(path.read_text(encoding="utf-8"))
        tests = []
        for test in content["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            tests.append({"ids": tokenizer.encode(text, add_special_tokens=False).ids, "valid": test["valid"]})
        request = {"schema": json.dumps(content["schema"], ensure_ascii=False), "tests": tests, "warm": args.warm}
        requests[path.name] = (json.dumps(request) + "\n").encode()
    return requests


def run_peer(args, name, requests):
    counts, failures = collections.Counter(), []
    ttfm, tbm, rss = [], [], 0
    with Worker(args, name) as worker:
        try:
            worker.start()
        except EOFError:
            print(f"{name}: cannot be run here (is it installed?); left out", file=sys.stderr)
            return None
        for number, (file, request) in enumerate(requests.items()):
            outcome = worker.run(request)
            rss = max(rss, outcome.get("rss_kb", 0))
            found = outcome.get("failures", [])
            for kind, count in (("refused", "refused"), ("timeout", "timeouts"), ("crash", "crashes")):
                if kind in outcome:
                    counts[count] += 1
                    found = [{"kind": kind, "detail": outcome[kind]}]
            for failure in found:
                failures.append({"file": file, **failure})
            for kind in {failure["kind"] for failure in outcome.get("failures", [])}:
                counts["engine_errors" if kind == "engine_error" else kind] += 1
            counts["passing"] += not found
            if "ttfm_ns" in outcome:
                ttfm.append(outcome["ttfm_ns"])
                tbm += outcome["tbm_ns"]
            if number % 100 == 99:
                print(f"{name}: {number + 1} of {len(requests)} schemas", file=sys.stderr)
        version = worker.version
    return {"name": name, "version": version, "schemas": len(requests), **{c: counts[c] for c in COUNTS}, "tokens": len(tbm),
            "tbm_us": summary_us(tbm), "ttfm_us": summary_us(ttfm), "rss_mb": round(rss / 1024), "failures": failures}


def run_pawl(args, files):
    """`pawl maskbench` over the same files; None when it cannot be run."""
    if not os.access(args.pawl, os.X_OK):
        print(f"pawl: left out: {args.pawl} is not an executable file; build it first", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        data.mkdir()
        for path in files:
            (data / path.name).symlink_to(path.resolve())
        out = pathlib.Path(folder) / "out.json"
        command = [args.pawl, "maskbench", "--tokenizer", str(args.tokenizer), "--data", str(data), "--jobs", "1",
                   "--warm" if args.warm else "--cold", "--json", str(out), *args.pawl_args.split()]
        done = subprocess.run(command, capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {args.core}))
        if not out.exists():
            print(f"pawl: left out: exit code {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        result = json.loads(out.read_text(encoding="utf-8"))
    version = subprocess.run([args.pawl, "--version"], capture_output=True, text=True).stdout.split()[-1]
    # The record stays, the folders of this machine do not.
    told = {str(args.tokenizer): pathlib.Path(args.tokenizer).name, str(data): "FILES", str(out): "OUT"}
    return {"name": "pawl", "version": version, "command": " ".join(told.get(word, word) for word in command[1:]), **result}


def machine():
    model = ""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cpu": model, "cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()}


def table(engines):
    """Rows of text: the counts and times of every engine, and how many times the first one's they are."""
    columns = ["engine", "pass", "refused", "valid rej.", "inv. acc.", "no end", "error", "TBM avg", "p50", "p99", "p99.9", "max",
               "TTFM avg", "p50", "p99", "max", "MB"]
    rows = [columns]
    first = engines[0]

    def cells(times):
        return [f"{times[key]:.4g}" if key in times else "-" for key in ("avg", "p50", "p99", "p99.9", "max")]

    for e in engines:
        tbm, ttfm = cells(e["tbm_us"]), cells(e["ttfm_us"])
        errors = sum(e.get(key, 0) for key in ("engine_errors", "timeouts", "crashes"))
        rows.append([e["name"], f"{e['passing']}/{e['schemas']}", *(str(e.get(c, 0)) for c in COUNTS[1:5]), str(errors), *tbm,
                     ttfm[0], ttfm[1], ttfm[2], ttfm[4], str(e["rss_mb"])])

    def ratio(e, key, of):
        if key not in e[of] or not first[of].get(key):
            return "-"
        return f"{e[of][key] / first[of][key]:.3g}x"

    for e in engines[1:]:
        rows.append([f"{e['name']} / {first['name']}", "", "", "", "", "", "",
                     *(ratio(e, key, "tbm_us") for key in ("avg", "p50", "p99", "p99.9", "max")),
                     *(ratio(e, key, "ttfm_us") for key in ("avg", "p50", "p99", "max")), ""])
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    return ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))) for row in rows]


def measure(args):
    files = sorted(args.data.glob("*.json"))
    if not files:
        sys.exit(f"maskbench_peers.py: no *.json files in {args.data}")
    if args.limit and args.limit < len(files):
        files = sorted(random.Random(args.seed).sample(files, args.limit))
    requests = read_requests(args, files)
    here = machine()
    if here["load"] > here["cores"] / 2:
        print(f"note: load average {here['load']:.1f} on {here['cores']} cores: the times include waiting for others",
              file=sys.stderr)
    engines = []
    if (pawl := run_pawl(args, files)) is not None:
        engines.append(pawl)
    for name in args.engines.split(","):
        if (peer := run_peer(args, name, requests)) is not None:
            engines.append(peer)
    if not engines:
        sys.exit("maskbench_peers.py: no engine could be run")
    return {"benchmark": "maskbench", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "mode": "warm" if args.warm else "cold", "tokenizer": args.tokenizer.name, "schemas": len(files), "seed": args.seed,
            "limit": args.limit, "machine": here, "engines": engines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="folder of MaskBench *.json files")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="folder with tokenizer.json and tokenizer_config.json")
    parser.add_argument("--pawl", default=str(HERE.parent.parent / "build/pawl"), help="the command (default: %(default)s)")
    parser.add_argument("--pawl-args", default="--order any --whitespace any", help="for pawl maskbench (default: %(default)s)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="peers, by commas (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=0, help="draw so many files (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of that draw")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one schema with its texts (default: %(default)s)")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)), help="the core they run on")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--cold", action="store_true", help="empty caches for each schema (default)")
    mode.add_argument("--warm", action="store_true", help="each schema and its texts have been run once before")
    parser.add_argument("--json", type=pathlib.Path, help="where the result goes (default: bench/results/maskbench_peers-DATE.json)")
    parser.add_argument("--chart", type=pathlib.Path, help="draw the result as SVG")
    parser.add_argument("--from", dest="source", type=pathlib.Path, help="draw this result of an earlier run, measure nothing")
    args = parser.parse_args()
    if args.source is not None:
        result = json.loads(args.source.read_text(encoding="utf-8"))
    else:
        if args.data is None or args.tokenizer is None:
            parser.error("--data and --tokenizer are needed")
        if unknown := [name for name in args.engines.split(",") if name not in ENGINES]:
            parser.error(f"--engines: {unknown[0]} is none of {', '.join(ENGINES)}")
        result = measure(args)
        stamp = result["date"][:19].replace(":", "").replace("-", "")
        place = args.json or HERE.parent / "results" / f"maskbench_peers-{stamp}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{result['schemas']} schemas, {result['tokenizer']}, {result['mode']}; microseconds; written to {place}")
    print("\n".join(table(result["engines"])))
    if args.chart:
        args.chart.write_text(chart.draw(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
