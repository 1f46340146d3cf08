#!/usr/bin/env python3
"""How long `pawl lsp` takes for an inline completion.

    bench/inline_latency.py FILE... [--pawl build/pawl] [--repo DIR] [--requests 100] [--json OUT]

Opens each file as an editor would and asks, at random places behind a dot of its code, for a completion of the text as it
is up to there, with the rest of the file behind it; the first --warm requests are not counted. Prints the median, the 95th
percentile and the largest wall-clock time, and the median of the server's processor time, which other programs on the
machine don't change.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import time

LANGUAGES = {".java": "java", ".ts": "typescript", ".py": "python"}


class Client:
    def __init__(self, command):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0

    def send(self, method, params, request=True):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self.last += 1
            message["id"] = self.last
        body = json.dumps(message).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.server.stdin.flush()
        while request:
            length = 0
            while (line := self.server.stdout.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            answer = json.loads(self.server.stdout.read(length))
            if answer.get("id") == self.last and "method" not in answer:
                return answer

    def processor_seconds(self):
        with open(f"/proc/{self.server.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--repo", default="")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    client = Client([options.pawl, "lsp", "--draft", "off"] + (["--repo", options.repo] if options.repo else []))
    client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {
        "general": {"positionEncodings": ["utf-8"]}, "textDocument": {"inlineCompletion": {}}}})
    client.send("initialized", {}, request=False)
    texts = []
    for path in options.files:
        text = path.read_bytes().decode("utf-8", "replace")
        places = [m.end() for m in re.finditer(r"[A-Za-z_)\]]\.(?=[a-z])", text)]
        if places and path.suffix in LANGUAGES:
            texts.append((path, text, places))
    times, processor, offered, version = [], [], 0, 0
    for n in range(options.warm + options.requests):
        path, text, places = rng.choice(texts)
        at = rng.choice(places)
        end = re.compile(r"\w*").match(text, at).end()
        shown, before = text[:at] + text[end:], text[:at]
        uri = path.resolve().as_uri()
        version += 1
        client.send("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": LANGUAGES[path.suffix], "version": version, "text": shown}}, request=False)
        position = {"line": before.count("\n"), "character": len(before[before.rfind("\n") + 1:].encode())}
        start, used = time.perf_counter(), client.processor_seconds()
        answer = client.send("textDocument/inlineCompletion", {
            "textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}})
        if n >= options.warm:
            times.append(1e3 * (time.perf_counter() - start))
            processor.append(1e3 * (client.processor_seconds() - used))
            items = answer.get("result") or []
            offered += bool(items["items"] if isinstance(items, dict) else items)
        client.send("textDocument/didClose", {"textDocument": {"uri": uri}}, request=False)
    client.send("shutdown", None)
    client.send("exit", None, request=False)
    times.sort()
    figures = {"requests": len(times), "offered": offered, "p50_ms": statistics.median(times),
               "p95_ms": times[int(0.95 * len(times))], "most_ms": times[-1],
               "processor_p50_ms": statistics.median(processor), "processor_mean_ms": statistics.mean(processor)}
    print(", ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
