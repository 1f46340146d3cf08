"""Completes every dereference of the sample repository with a model and looks whether the completed members exist.

    python evaluate.py --pawl build/pawl [--model models/tiny-code] [--json RESULTS]

`pawl lsp` is asked behind every "." of the files in sample/, with the monitors and without. What stands behind the cursor on its line is taken
away. The judge is TypeScript's own compiler (`tsc`, Debian: node-typescript), which the monitors have nothing to do with: the first name of the
completion takes the place of the true one, and a member exists when the compiler does not say otherwise.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent / "sample"
DEREFERENCE = re.compile(r"(?<=[\w)\]])\.([A-Za-z_$][\w$]*)")
NO_SUCH_MEMBER = {"TS2339", "TS2551", "TS2550", "TS2576", "TS18013"}


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next = 0
        self.ask("initialize", {"capabilities": {}})
        self.tell("initialized", {})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.next += 1
        self.send({"id": self.next, "method": method, "params": params})
        size = 0
        while (line := self.process.stdout.readline().strip()):
            size = int(line.split(b":")[1])
        answer = json.loads(self.process.stdout.read(size))
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def processor_ms(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.wait()


def places(text):
    """(start of the name, the true name) of each dereference in code."""
    for match in DEREFERENCE.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if line.count('"') % 2 == 0:
            yield match.start(1), match.group(1)


def completions(server, files):
    """(file, start, true name, completed name or None, milliseconds)."""
    for path in files:
        text = path.read_text()
        uri = path.as_uri()
        for version, (start, truth) in enumerate(places(text)):
            end = text.find("\n", start)
            shown = text[:start] + text[end:]
            method = "textDocument/didChange" if version else "textDocument/didOpen"
            document = {"uri": uri, "version": version + 1}
            if version:
                server.tell(method, {"textDocument": document, "contentChanges": [{"text": shown}]})
            else:
                server.tell(method, {"textDocument": {**document, "languageId": "typescript", "text": shown}})
            line = text.count("\n", 0, start)
            began = time.perf_counter()
            answer = server.ask("textDocument/inlineCompletion", {
                "textDocument": {"uri": uri}, "position": {"line": line, "character": start - text.rfind("\n", 0, start) - 1},
                "context": {"triggerKind": 2}})
            took = 1000 * (time.perf_counter() - began)
            items = answer["items"]
            name = re.match(r"[A-Za-z_$][\w$]*", items[0]["insertText"]) if items else None
            yield path, start, truth, name.group() if name else None, took


def judged(found):
    """Which of the completed names exist. Each is put into a copy of its file; the compiler reads all copies at once."""
    verdicts = [None] * len(found)
    with tempfile.TemporaryDirectory() as folder:
        for i, (path, start, truth, name, _) in enumerate(found):
            if name is None:
                continue
            text = path.read_text()
            # As a value of its own, so that what follows the true name does not matter; a module of its own.
            end = text.find("\n", start)
            (Path(folder) / f"c{i}.ts").write_text(text[:start] + name + text[start + len(truth):end] + text[end:] + "\nexport {};\n")
        answer = subprocess.run(["tsc", "--noEmit", "--strict", "--target", "es2020", "--pretty", "false"] +
                                [f"c{i}.ts" for i, f in enumerate(found) if f[3] is not None], cwd=folder, capture_output=True, text=True)
        wrong = {(int(m[1]), int(m[2]), int(m[3])) for m in re.finditer(r"c(\d+)\.ts\((\d+),(\d+)\): error (TS\d+)", answer.stdout)
                 if m[4] in NO_SUCH_MEMBER}
    for i, (path, start, _, name, _) in enumerate(found):
        if name is None:
            continue
        text = path.read_text()
        at = (i, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
        verdicts[i] = at not in wrong
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model")
    parser.add_argument("--threads", default="0")
    parser.add_argument("--json")
    options = parser.parse_args()
    if shutil.which("tsc") is None:
        raise SystemExit("evaluate.py: there is no tsc to judge with (Debian: node-typescript)")
    files = sorted(SAMPLE.glob("*.ts"))
    report = {}
    for name, flags in (("with monitors", []), ("without", ["--no-monitors"])):
        server = Server([options.pawl, "lsp", "--threads", options.threads] + (["--model", options.model] if options.model else []) + flags)
        used = server.processor_ms()
        found = list(completions(server, files))
        used = server.processor_ms() - used
        server.close()
        verdicts = judged(found)
        named = [v for v in verdicts if v is not None]
        times = sorted(f[4] for f in found)
        report[name] = {
            "dereferences": len(found), "completed": len(named), "exist": sum(named),
            "exist_percent": round(100 * sum(named) / max(1, len(named)), 1),
            "true_member_percent": round(100 * sum(f[2] == f[3] for f in found) / max(1, len(found)), 1),
            "p50_ms": round(statistics.median(times), 1), "p95_ms": round(times[int(0.95 * len(times))], 1),
            "processor_mean_ms": round(used / len(found), 1)}
        for (path, start, truth, got, _), verdict in zip(found, verdicts):
            if verdict is False and not flags:
                print(f"{path.name}: byte {start}: {got} does not exist ({truth})")
        print(name + ": " + json.dumps(report[name]))
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
