#!/usr/bin/env python3
"""Many requests over several models in one server with memory for some of them: each answer against that of a server with
this model alone, and the resident memory at every look. Needs nothing but Python.

  bench/server/several_models.py                          four copies of the models that ship, memory for two
  bench/server/several_models.py --large FILE.gguf        the model that is larger than the memory (default: a copy with a
                                                          key-value memory that is)
  bench/server/several_models.py --requests 1000 --clients 4 --json FILE

Exit code 1: an answer differs, a broken or large model is answered with something else than 503 and the reason, or the memory
was over 1.1 of the budget at a look.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": ["string", "null"]},
                                           "count": {"type": ["integer", "null"]}},
          "required": ["name", "email", "count"], "additionalProperties": False}
NAMES = ["Ann Lee", "Bo Diaz", "Ida Holm", "Max Roth", "Eva Bell"]


class Server:
    def __init__(self, pawl, *options):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([pawl, "serve", "--port", "0", "--log", "none", "--threads", "1", "--draft", "off", *options],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if "listening" not in line:
            self.errors.seek(0)
            sys.exit("the server did not start: " + self.errors.read().decode())
        self.port = int(line.rsplit(":", 1)[1])

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2 ** 20

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60) != 0:
            sys.exit("the server ended with code %d" % self.process.returncode)


def request(i, model):
    """The route and the body of the i-th request."""
    draw = random.Random(i)
    text = f"{draw.choice(NAMES)}, {draw.choice('abcdef')}{draw.randrange(100)}@example.org, {draw.randrange(1000)} pieces."
    if i % 4 == 1:
        return "/v1/completions", {"model": model, "prompt": text, "max_tokens": 12, "temperature": 0.8, "seed": i}
    if i % 4 == 2:
        return "/api/generate", {"model": model, "prompt": text, "format": SCHEMA, "stream": False,
                                 "options": {"num_predict": 40, "temperature": 0, "seed": i}}
    if i % 4 == 3:
        return "/v1/responses", {"model": model, "input": text, "max_output_tokens": 16, "temperature": 0, "seed": i}
    return "/v1/extract", {"model": model, "text": text, "schema": SCHEMA, "max_tokens": 48}


def said(route, status, body):
    """The answer without what differs from one request to the next: ids, times, counters of caches."""
    if status != 200:
        return json.dumps({"status": status, "body": json.loads(body)}, sort_keys=True)
    answer = json.loads(body)
    if route == "/v1/extract":
        return json.dumps([answer["model"], answer["records"]])
    if route == "/v1/completions":
        return json.dumps([answer["model"], answer["choices"]])
    if route == "/v1/responses":
        return json.dumps([answer["model"], [item["content"] for item in answer["output"]], answer["status"]])
    return json.dumps([answer["model"], answer["response"], answer["done_reason"], answer["eval_count"]])


def ask(connection, route, body):
    connection.request("POST", route, json.dumps(body), {"content-type": "application/json"})
    reply = connection.getresponse()
    return reply.status, reply.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=os.path.join(ROOT, "build", "pawl"))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--budget-mb", type=int, default=72)
    parser.add_argument("--large", help="a GGUF file that is larger than the budget")
    parser.add_argument("--json", help="write the figures into this file")
    args = parser.parse_args()
    folder = tempfile.mkdtemp()
    shipped = {"a": "tiny-extract", "b": "tiny-code", "c": "tiny-extract", "d": "tiny-extract"}
    listed = []
    for name, of in shipped.items():
        shutil.copytree(os.path.join(ROOT, "models", of), os.path.join(folder, name))
        listed.append({"name": name, "path": name})
    shutil.copytree(os.path.join(ROOT, "models", "tiny-extract"), os.path.join(folder, "broken"))
    weights = os.path.join(folder, "broken", "model.safetensors")
    os.truncate(weights, os.path.getsize(weights) // 2)
    listed.append({"name": "broken", "path": "broken"})
    listed.append({"name": "large", "path": os.path.abspath(args.large)} if args.large
                  else {"name": "large", "path": "a", "kv_mb": 2 * args.budget_mb})
    models = os.path.join(folder, "models.json")
    with open(models, "w") as file:
        json.dump({"models": listed}, file)

    plan = []
    for i in range(args.requests):
        name = random.Random(7 * i).choices([*shipped, "broken", "large"], [23, 23, 23, 23, 4, 4])[0]
        plan.append((name, *request(i, name)))
    wanted = {}
    for name in shipped:
        alone = Server(args.pawl, "--model", os.path.join(folder, name))
        connection = http.client.HTTPConnection("127.0.0.1", alone.port, timeout=60)
        for i, (of, route, body) in enumerate(plan):
            if of == name:
                wanted[i] = said(route, *ask(connection, route, body))
        alone.end()

    server = Server(args.pawl, "--models", models, "--models-mb", str(args.budget_mb))
    found, looks, done = {}, [], threading.Event()

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        for i in range(number, len(plan), args.clients):
            _, route, body = plan[i]
            begin = time.monotonic()
            status, text = ask(connection, route, body)
            found[i] = (status, text, time.monotonic() - begin)

    def look():
        while not done.wait(0.01):
            looks.append(server.rss())

    begin = time.monotonic()
    clients = [threading.Thread(target=client, args=(number,)) for number in range(args.clients)]
    watcher = threading.Thread(target=look)
    for thread in [watcher, *clients]:
        thread.start()
    for thread in clients:
        thread.join()
    seconds = time.monotonic() - begin
    done.set()
    watcher.join()
    page = http.client.HTTPConnection("127.0.0.1", server.port)
    page.request("GET", "/metrics")
    loads = sum(int(float(line.rsplit(" ", 1)[1])) for line in page.getresponse().read().decode().splitlines()
                if line.startswith("pawl_model_loads_total{"))
    server.end()
    shutil.rmtree(folder)

    wrong = refused = 0
    reasons = {"broken": "cannot be loaded", "large": "of memory, and --models-mb leaves"}
    for i, (name, route, _) in enumerate(plan):
        status, text, _ = found.get(i, (0, b"", 0))
        if name in shipped:
            good = status == 200 and said(route, status, text) == wanted[i]
        else:
            good = status == 503 and reasons[name] in text.decode()
            refused += good
        if not good:
            wrong += 1
            if wrong <= 5:
                print(f"request {i} ({name}, {route}): status {status}, {text.decode()[:300]}", file=sys.stderr)
                print(f"  alone: {wanted.get(i)}"[:300], file=sys.stderr)
    times = sorted(entry[2] for entry in found.values())
    figures = {"requests": args.requests, "clients": args.clients, "budget_mib": args.budget_mb, "wrong": wrong,
               "refused_with_503": refused, "loads": loads, "looks": len(looks), "most_rss_mib": round(max(looks), 1),
               "most_of_budget": round(max(looks) / args.budget_mb, 3), "seconds": round(seconds, 1),
               "p50_s": round(times[len(times) // 2], 4), "p99_s": round(times[len(times) * 99 // 100], 4)}
    print(json.dumps(figures))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"date": time.strftime("%Y-%m-%d", time.gmtime()), "cores": os.cpu_count(),
                       "load": [round(x, 1) for x in os.getloadavg()], **figures}, file, indent=1)
            file.write("\n")
    sys.exit(1 if wrong or max(looks) > 1.1 * args.budget_mb else 0)


if __name__ == "__main__":
    main()
