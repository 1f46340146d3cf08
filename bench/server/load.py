#!/usr/bin/env python3
"""Loads `pawl serve` on loopback and records what happens. Needs nothing but Python.

  bench/server/load.py streams [--clients 200]      many streaming clients at once: headers, first event
  bench/server/load.py soak [--requests 20000]      mixed schemas, 1 % hostile, 5 % that hang up, slow readers: memory, failures
  bench/server/load.py fuzz [--requests 10000]      broken HTTP and broken JSON: the server must live
  bench/server/load.py extract [--requests 500]     /v1/extract equals `pawl extract`, alone and under load
  bench/server/load.py cold [--tools 128]           a schema of many tools, cold and known: what the first token waits
  bench/server/load.py overhead [--texts 104]       tokens per second through the server and through `pawl extract`
  bench/server/load.py hostile                      each schema of tests/hostile: refused or compiled, and how soon
  bench/server/load.py kill [--clients 16]          kill -9 under load, and a start at the same port: only what ran is lost
  bench/server/load.py term [--clients 64]          SIGTERM under load: what runs is answered, exit code 0

Each starts a server of its own (--pawl build/pawl, --model), ends it with SIGTERM and checks its exit code. --json FILE writes the
figures into a file, next to those of other modes that are there already.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def note(args, key, **figures):
    """Adds figures to the file of --json."""
    if not args.json:
        return
    known = {}
    if os.path.exists(args.json):
        with open(args.json) as file:
            known = json.load(file)
    command = ["bench/server/load.py"]
    words = iter(sys.argv[1:])
    for word in words:
        if word in ("--json", "--name", "--pawl"):
            next(words)
        else:
            command.append(os.path.basename(word))
    machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    known[key] = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "command": " ".join(command), "processor": machine,
                  "cores": os.cpu_count(), "load": [round(x, 1) for x in os.getloadavg()],
                  **{k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}}
    with open(args.json, "w") as file:
        json.dump(known, file, indent=1)
        file.write("\n")


class Server:
    def __init__(self, args, *options, port=0):
        self.own = not args.attach
        if args.attach:
            self.port, pid = (int(word) for word in args.attach.split(":"))
            self.process = argparse.Namespace(pid=pid)
            return
        command = [args.pawl, "serve", "--port", str(port), "--log", "none", *options]
        if args.model:
            command += ["--model", args.model]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if "listening" not in line:
            self.errors.seek(0)
            sys.exit("the server did not start: " + self.errors.read().decode())
        self.port = int(line.rsplit(":", 1)[1])

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def metrics(self):
        """What /metrics says of memory, in MiB."""
        from urllib.request import urlopen
        with urlopen(f"http://127.0.0.1:{self.port}/metrics") as page:
            values = dict(line.decode().rsplit(" ", 1) for line in page if not line.startswith(b"#"))
        names = {"used": "pawl_heap_used_bytes", "free": "pawl_heap_free_bytes", "grammars": "pawl_grammar_bytes"}
        return {key: round(float(values[name]) / 2 ** 20, 1) for key, name in names.items()} | {
            "kept": int(float(values["pawl_grammars"]))}

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def thread_cpu(self):
        """Seconds of processor time of the threads that live, to the nanosecond."""
        sum = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/schedstat") as stat:
                sum += int(stat.read().split()[0])
        return sum / 1e9

    def stop(self):
        if not self.own:
            return True
        begin = time.time()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        print(f"SIGTERM: exit code {code} after {time.time() - begin:.2f} s")
        if code != 0:
            self.errors.seek(0)
            print(self.errors.read().decode()[-4000:])
        return code == 0


class Reply:
    def __init__(self):
        self.status, self.body, self.headers_at, self.first_at, self.end_at = 0, b"", 0.0, 0.0, 0.0

    def json(self):
        return json.loads(self.body)


async def call(port, path, body, slow=0.0, hang_up=None):
    """One request on a connection of its own; hang_up: after so many seconds."""
    reply = Reply()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        begin = time.perf_counter()
        writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        if hang_up is not None:
            await asyncio.sleep(hang_up)
            return reply
        head = await reader.readuntil(b"\r\n\r\n")
        reply.headers_at = time.perf_counter() - begin
        reply.status = int(head[9:12])
        if b"chunked" in head:
            while True:
                size = int(await reader.readline(), 16)
                chunk = await reader.readexactly(size + 2)
                if not reply.first_at:
                    reply.first_at = time.perf_counter() - begin
                reply.body += chunk[:-2]
                if size == 0:
                    break
                if slow:
                    await asyncio.sleep(slow)
        else:
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            reply.body = await reader.readexactly(length)
        reply.end_at = time.perf_counter() - begin
    finally:
        writer.close()
    return reply


def schemas():
    folder = os.path.join(ROOT, "schemas/examples")
    return {name: json.load(open(os.path.join(folder, name))) for name in sorted(os.listdir(folder))}


def texts():
    with open(os.path.join(ROOT, "models/tiny-extract/eval/handwritten.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    return [row.get("text") or row.get("input") for row in rows]


def chat(text, schema, **more):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return {"messages": [{"role": "user", "content": text}], "response_format": form, "temperature": 0, **more}


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p / 100 * len(values)))]


def content_of(body):
    content, finish = "", None
    for line in body.decode().split("\n"):
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line[6:])
        if "error" in event:
            return None, event["error"]["message"]
        for choice in event["choices"]:
            content += choice["delta"].get("content") or ""
            finish = choice["finish_reason"] or finish
    return content, finish


def streams(args):
    server = Server(args)
    forms, all_texts = list(schemas().values()), texts()

    async def main():
        bodies = [chat(all_texts[i % len(all_texts)], forms[i % len(forms)], stream=True) for i in range(args.clients)]
        return await asyncio.gather(*(call(server.port, "/v1/chat/completions", b) for b in bodies), return_exceptions=True)

    worst, rounds = 0, []
    for round_number in range(args.rounds):
        replies = asyncio.run(main())
        failures = [r for r in replies if isinstance(r, Exception) or r.status != 200]
        bad = 0
        for reply in replies:
            content, _ = content_of(reply.body) if not isinstance(reply, Exception) else (None, None)
            try:
                json.loads(content)
            except (TypeError, ValueError):
                bad += 1
        headers = [r.headers_at for r in replies if not isinstance(r, Exception)]
        first = [r.first_at for r in replies if not isinstance(r, Exception)]
        end = [r.end_at for r in replies if not isinstance(r, Exception)]
        worst = max(worst, len(failures) + bad)
        print(f"round {round_number + 1}: {args.clients} streams at once: headers p50 {percentile(headers, 50):.3f} s, "
              f"p99 {percentile(headers, 99):.3f} s; first event p50 {percentile(first, 50):.3f} s, p99 {percentile(first, 99):.3f} s; "
              f"end p99 {percentile(end, 99):.3f} s; {len(failures)} failures, {bad} that are not JSON")
        rounds.append({"headers_p50": round(percentile(headers, 50), 4), "headers_p99": round(percentile(headers, 99), 4),
                       "first_event_p50": round(percentile(first, 50), 4), "first_event_p99": round(percentile(first, 99), 4),
                       "end_p99": round(percentile(end, 99), 4), "failures": len(failures), "not_json": bad})
    stopped = server.stop()
    note(args, args.name or "streams", clients=args.clients, rounds=rounds, exit_code_0=stopped)
    return stopped and worst == 0


HOSTILE = [
    {"type": "object", "properties": {"a": {"pattern": "(" * 3000}}},
    {"$ref": "#"},
    {"type": "string", "pattern": "(a{1,1000}){1,1000}"},
    {"oneOf": [{"type": "string", "pattern": f"^(a|b)*{'c' * i}"} for i in range(60)]},
    {"enum": []},
    {"type": "array", "uniqueItems": True, "minItems": 30, "items": {"pattern": "^[0-9]{1,9}$"}},
    {"type": "integer", "multipleOf": 7, "not": {"multipleOf": 3}, "minimum": 10 ** 30},
]


def soak(args):
    server = Server(args, "--grammar-mb", str(args.grammar_mb))
    forms, all_texts = list(schemas().values()), texts()
    counts, wrong = {}, []
    rss, heap = [], []

    async def one(i, rng):
        draw = rng.random()
        text = rng.choice(all_texts)
        if draw < 0.01:
            reply = await call(server.port, "/v1/chat/completions", chat(text, rng.choice(HOSTILE), max_tokens=40))
            return "hostile " + str(reply.status)
        if draw < 0.06:
            body = chat(text, rng.choice(forms), stream=True)
            await call(server.port, "/v1/chat/completions", body, hang_up=rng.random() * 0.1)
            return "hung up"
        schema = dict(rng.choice(forms))
        schema["$comment"] = str(rng.randrange(args.different))  # different texts are different grammars
        slow = 0.05 if draw < 0.08 else 0.0
        streaming = draw < 0.5
        body = chat(text, schema, stream=streaming)
        reply = await call(server.port, "/v1/chat/completions", body, slow=slow)
        if reply.status != 200:
            wrong.append(reply.body[:300])
            return "status " + str(reply.status)
        content = content_of(reply.body)[0] if streaming else reply.json()["choices"][0]["message"]["content"]
        try:
            json.loads(content)
        except (TypeError, ValueError):
            wrong.append(content)
            return "not JSON"
        return "slow reader" if slow else "stream" if streaming else "whole"

    async def main():
        queue = iter(range(args.requests))

        async def client(number):
            rng = random.Random(1000 * args.seed + number)
            for i in queue:
                try:
                    kind = await one(i, rng)
                except Exception as error:  # noqa: BLE001
                    kind = "failed: " + type(error).__name__
                    wrong.append(repr(error))
                counts[kind] = counts.get(kind, 0) + 1
                done = sum(counts.values())
                if done % max(1, args.requests // 20) == 0:
                    rss.append(server.rss())
                    heap.append(await asyncio.to_thread(server.metrics))
                    print(f"{done} requests, {rss[-1]:.1f} MiB; heap {heap[-1]}", flush=True)

        await asyncio.gather(*(client(n) for n in range(args.clients)))

    begin = time.time()
    asyncio.run(main())
    print(f"{args.requests} requests in {time.time() - begin:.0f} s: " + ", ".join(f"{k}: {v}" for k, v in sorted(counts.items())))
    half = rss[len(rss) // 2:]
    print(f"memory: {rss[0]:.1f} MiB after a twentieth, {half[0]:.1f} at half time, {rss[-1]:.1f} at the end")
    for line in wrong[:5]:
        print("wrong:", line)
    seconds = time.time() - begin
    stopped = server.stop()
    note(args, args.name or "soak", requests=args.requests, clients=args.clients, seconds=seconds, kinds=dict(sorted(counts.items())),
         different_schemas=args.different * len(forms), wrong=len(wrong), mebibytes_at_every_twentieth=[round(m, 1) for m in rss],
         grammar_mb=args.grammar_mb, heap_at_every_twentieth=heap, exit_code_0=stopped)
    return stopped and not wrong


def fuzz(args):
    server = Server(args)
    rng = random.Random(args.seed)
    schema = schemas()["contact.json"]
    seeds = [
        ("/v1/chat/completions", chat("Ann, a@b.org", schema, max_tokens=20)),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 8, "stream": True, "logprobs": True,
                                  "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
                                  "tool_choice": "auto", "stop": ["a"], "logit_bias": {"3": 5}}),
        ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "max_output_tokens": 8,
                           "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}),
        ("/v1/completions", {"prompt": [[1, 2, 3], [4]], "max_tokens": 3, "echo": True, "logprobs": 2, "n": 2}),
        ("/v1/extract", {"schema": schema, "texts": ["a", "b"], "max_tokens": 90}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", "n_predict": 3, "input_extra": [{"filename": "f", "text": "t"}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x"}], "format": "json", "options": {"num_predict": 5}}),
        ("/tokenize", {"prompt": "abc"}), ("/detokenize", {"tokens": [1, 2, 3]}),
        ("/v1/constraints/compile", {"structured_outputs": {"regex": "a{2,9}"}}),
    ]
    values = [None, True, -1, 0, 1.5, 10 ** 400, "", "\u0000", "x" * 5000, [], {}, [[]], {"type": "object"}, "{", "(", "\ud800"]

    def mutate(value, depth=0):
        if rng.random() < 0.08 + 0.04 * (depth == 0):
            return rng.choice(values)
        if isinstance(value, dict):
            out = {k: mutate(v, depth + 1) for k, v in value.items() if rng.random() > 0.04}
            if rng.random() < 0.06:
                out[rng.choice(["n", "seed", "stop", "grammar", "regex", "type", "schema", "$ref", "x"])] = rng.choice(values)
            return out
        if isinstance(value, list):
            return [mutate(v, depth + 1) for v in value for _ in range(rng.choice([1, 1, 1, 2]))]
        return value

    def request():
        path, body = rng.choice(seeds)
        data = json.dumps(mutate(body)).encode()
        if rng.random() < 0.3:  # bytes
            data = bytearray(data)
            for _ in range(rng.randrange(1, 6)):
                if data:
                    at = rng.randrange(len(data))
                    data[at:at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
            data = bytes(data)
        length = len(data) if rng.random() > 0.03 else rng.choice([0, 1, len(data) + 5, -3, 10 ** 12])
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n".encode()
        if rng.random() < 0.1:
            head = bytearray(head)
            head[rng.randrange(len(head))] = rng.randrange(256)
            head = bytes(head)
        return head + data

    counts = {}

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write(request())
            if rng.random() < 0.1:
                writer.write_eof()
            head = await asyncio.wait_for(reader.read(64), 60 if rng.random() > 0.05 else 0.01)
            counts[head[9:12].decode("latin1")] = counts.get(head[9:12].decode("latin1"), 0) + 1
        except (asyncio.TimeoutError, ConnectionError):
            counts["left"] = counts.get("left", 0) + 1
        finally:
            writer.close()

    async def main():
        queue = iter(range(args.requests))

        async def client():
            for _ in queue:
                if server.process.poll() is not None:
                    return
                await one()

        await asyncio.gather(*(client() for _ in range(args.clients)))

    asyncio.run(main())
    alive = server.process.poll() is None
    print(f"{args.requests} fuzzed requests: " + ", ".join(f"{k or 'closed'}: {v}" for k, v in sorted(counts.items())) +
          ("" if alive else "; THE SERVER DIED"))
    good = alive and "500" not in counts
    stopped = server.stop() if alive else False
    note(args, args.name or "fuzz", requests=args.requests, seed=args.seed, answers={k or "closed": v for k, v in sorted(counts.items())},
         alive=alive, exit_code_0=stopped)
    return stopped and good


def extract(args):
    server = Server(args)
    forms, all_texts = schemas(), texts()
    names = list(forms)
    cases = [(names[i % len(names)], all_texts[(i * 7) % len(all_texts)]) for i in range(args.requests)]

    async def alone():
        return [await call(server.port, "/v1/extract", {"schema": forms[n], "text": t}) for n, t in cases]

    async def loaded():  # 64 clients at once
        replies, queue = [None] * len(cases), iter(enumerate(cases))

        async def client():
            for i, (n, t) in queue:
                replies[i] = await call(server.port, "/v1/extract", {"schema": forms[n], "text": t})

        await asyncio.gather(*(client() for _ in range(64)))
        return replies

    single, many = asyncio.run(alone()), asyncio.run(loaded())
    lines = {}
    for name in names:  # the command, a schema at a time
        mine = [t for n, t in cases if n == name]
        out = subprocess.run(
            [args.pawl, "extract", "--schema", os.path.join(ROOT, "schemas/examples", name), "--json-lines"],
            input="\n".join(json.dumps(t) for t in mine), capture_output=True, text=True, check=True).stdout.splitlines()
        lines[name] = iter(out)
    expected = [next(lines[n]) for n, _ in cases]

    def record(reply):
        body = reply.body.decode()
        begin = body.index('"record":') + 9
        return body[begin:begin + json.JSONDecoder().raw_decode(body[begin:])[1]]

    try:
        import jsonschema

        checks = {name: jsonschema.Draft202012Validator(form).is_valid for name, form in forms.items()}
        valid = sum(checks[n](json.loads(record(r))) for (n, _), r in zip(cases, single))
        valid_loaded = sum(checks[n](json.loads(record(r))) for (n, _), r in zip(cases, many))
    except ImportError:
        valid = valid_loaded = None  # Python's jsonschema is not there
    same = sum(record(r) == e for r, e in zip(single, expected))
    same_loaded = sum(record(r) == e for r, e in zip(many, expected))
    print(f"{same} of {len(cases)} alone and {same_loaded} of {len(many)} at once are byte for byte those of `pawl extract`; "
          f"valid by Python's jsonschema: {valid} and {valid_loaded}")
    stopped = server.stop()
    note(args, "extract", alone=len(cases), alone_same=same, alone_valid=valid, at_once=len(many), at_once_same=same_loaded,
         at_once_valid=valid_loaded, exit_code_0=stopped)
    return stopped and same == len(cases) and same_loaded == len(many) and {valid, valid_loaded} <= {None, len(cases)}


def cold(args):
    """What a hundred kilobytes of tools add to the first token, against the same request with one small tool that is known: the first
    token of both is dictated, so neither waits for the model longer than the other."""
    server = Server(args, "--threads", "1")
    rng = random.Random(1)

    def tool(i, salt, kinds):
        properties = {}
        for k in range(8):
            properties[f"field_{k}_{salt}"] = rng.choice(kinds)
        return {"type": "function", "function": {"name": f"tool_{i}_{salt}", "parameters": {
            "type": "object", "properties": properties, "required": list(properties)[:4], "additionalProperties": False}}}

    kinds = [{"type": "string", "description": "d" * 40, "maxLength": 65536}, {"type": "integer", "minimum": 0},
             {"enum": [f"value_{v}" for v in range(6)]}, {"type": "array", "items": {"type": "string"}},
             {"type": ["string", "null"]}]
    messages = [{"role": "user", "content": "x"}]

    def measure(body):
        data = json.dumps(body).encode()
        begin, cpu = time.perf_counter(), server.thread_cpu()
        reply = asyncio.run(call(server.port, "/v1/chat/completions", data))
        wall = time.perf_counter() - begin
        time.sleep(0.01)  # what it does behind the answer counts as well
        return 1e3 * (server.thread_cpu() - cpu), 1e3 * wall, reply.status

    good, rows = True, {}
    for name, extra in (("plain fields", []), ("every sixth field a date-time", [{"type": ["string", "null"], "format": "date-time"}])):
        fresh, known, plain = [], [], []
        small = {"type": "function", "function": {"name": "tool", "parameters": {"type": "object", "properties": {}}}}
        for salt in range(args.rounds * 5):
            one = {"messages": messages, "tools": [tool(i, f"{salt}{name[:1]}", kinds + extra) for i in range(args.tools)],
                   "tool_choice": "required", "max_tokens": 1, "temperature": 0, "close_at_budget": False}
            size = len(json.dumps(one))
            fresh.append(measure(one))
            for _ in range(5):
                known.append(measure(one))
                plain.append(measure(one | {"tools": [small]}))
        good = good and all(status == 200 for _, _, status in fresh + known + plain)

        def added(kind, column):
            return percentile([m[column] for m in kind], 50) - percentile([m[column] for m in plain], 50)

        def least(kind):
            return min(m[1] for m in kind) - min(m[1] for m in plain)

        print(f"{args.tools} tools, {size / 1000:.0f} KB, {name}: processor time added: {added(fresh, 0):.1f} ms cold, "
              f"{added(known, 0):.2f} ms known; until the answer: {added(fresh, 1):.1f} ms cold, {added(known, 1):.2f} ms known "
              f"(least of all: {least(fresh):.1f} and {least(known):.2f} ms)")
        rows[name] = {"bytes": size, "processor_ms_cold": round(added(fresh, 0), 2), "processor_ms_known": round(added(known, 0), 3),
                      "ms_cold": round(added(fresh, 1), 2), "ms_known": round(added(known, 1), 3),
                      "least_ms_cold": round(least(fresh), 2), "least_ms_known": round(least(known), 3)}
    stopped = server.stop()
    note(args, "cold", tools=args.tools, kinds=rows, exit_code_0=stopped)
    return stopped and good


def hostile(args):
    """Each schema of tests/hostile, compiled and then as a request of 16 tokens: what it takes, and that the server lives."""
    server = Server(args)
    folder = os.path.join(ROOT, "tests/hostile")
    rows, statuses = [], {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".json"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
            schema = file.read().encode("utf-8", "surrogateescape")
        form = b'"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":' + schema + b"}}}"
        seconds, reply = [], None
        for path, head in (("/v1/constraints/compile", b"{"),
                           ("/v1/chat/completions", b'{"messages":[{"role":"user","content":"x"}],"max_tokens":16,')):
            begin = server.thread_cpu()
            reply = asyncio.run(call(server.port, path, head + form))
            time.sleep(0.01)
            seconds.append(server.thread_cpu() - begin)
            statuses[reply.status] = statuses.get(reply.status, 0) + 1
        rows.append((seconds[0], seconds[1], name))
    slowest, output = max(rows), max((row[1], row[2]) for row in rows)
    print(f"{len(rows)} schemas: compiling takes at most {slowest[0]:.2f} s of processor time ({slowest[2]}), "
          f"a request after it {output[0]:.2f} s ({output[1]}); {server.rss():.0f} MiB; status: {statuses}")
    stopped = server.stop()
    note(args, "hostile", schemas=len(rows), compile_seconds_most=slowest[0], slowest=slowest[2], request_seconds_most=output[0],
         statuses={str(k): v for k, v in sorted(statuses.items())}, exit_code_0=stopped)
    return stopped and set(statuses) <= {200, 400}


def kill(args):
    """kill -9 in the middle of streams. Clients must hear of it, and a new server at the same port must serve at once."""
    server = Server(args)
    forms, all_texts = list(schemas().values()), texts()

    async def load():
        bodies = [chat(all_texts[i % len(all_texts)], forms[i % len(forms)], stream=True, n=4) for i in range(args.clients)]
        tasks = [asyncio.create_task(call(server.port, "/v1/chat/completions", b)) for b in bodies]
        await asyncio.sleep(0.2)
        server.process.kill()
        begin = time.time()
        replies = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        return replies, time.time() - begin

    replies, seconds = asyncio.run(load())
    server.process.wait()
    lost = sum(isinstance(r, Exception) for r in replies)
    again = Server(args, port=server.port)

    async def after():
        bodies = [chat(all_texts[i], forms[i % len(forms)]) for i in range(args.clients)]
        return await asyncio.gather(*(call(again.port, "/v1/chat/completions", b) for b in bodies))

    served = sum(r.status == 200 for r in asyncio.run(after()))
    print(f"kill -9 with {args.clients} streams: {lost} of them cut off, told within {seconds:.2f} s; "
          f"{served} of {args.clients} requests served by the server that was started at the same port")
    stopped = again.stop()
    note(args, "kill", streams=args.clients, cut_off=lost, told_within_seconds=seconds, served_after=served, exit_code_0=stopped)
    return stopped and lost > 0 and served == args.clients


def term(args):
    """SIGTERM in the middle of streams: they are answered to their end, or told in an event that they are not; exit code 0."""
    server = Server(args)
    forms, all_texts = list(schemas().values()), texts()

    async def load():
        bodies = [chat(all_texts[i % len(all_texts)], forms[i % len(forms)], stream=True, n=4) for i in range(args.clients)]
        tasks = [asyncio.create_task(call(server.port, "/v1/chat/completions", b)) for b in bodies]
        await asyncio.sleep(0.2)
        running = sum(not task.done() for task in tasks)
        server.process.send_signal(signal.SIGTERM)
        return running, await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)

    begin = time.time()
    running, replies = asyncio.run(load())
    code = server.process.wait(30)
    seconds = time.time() - begin - 0.2
    whole = sum(not isinstance(r, Exception) and b"data: [DONE]" in r.body for r in replies)
    told = sum(not isinstance(r, Exception) and b"data: [DONE]" not in r.body for r in replies)
    print(f"SIGTERM with {running} of {args.clients} streams running: {whole} answered to the end, {told} told that they are not, "
          f"{len(replies) - whole - told} cut off; exit code {code} after {seconds:.2f} s")
    note(args, "term", streams=args.clients, running=running, answered=whole, told=told, cut_off=len(replies) - whole - told,
         exit_code=code, seconds=seconds)
    return code == 0 and seconds < 20 and whole + told == len(replies)


def overhead(args):
    """Processor seconds of the server and of the command for the same outputs, alternating. From both the seconds for the first
    text alone are taken off, and with them those of loading and compiling."""
    all_texts = [t for t in texts() for _ in range(args.repeat)][:args.texts]
    name = "contact.json"
    path = os.path.join(ROOT, "schemas/examples", name)
    schema = json.load(open(path))
    rows = {}
    for batch in (1, 8):
        ratios = []
        for _ in range(args.rounds):
            lines = "\n".join(json.dumps(t) for t in all_texts)

            def command(text):
                begin = os.times()
                subprocess.run([args.pawl, "extract", "--schema", path, "--json-lines", "--batch", str(batch), "--threads", "1",
                                "--draft", "off", "--max-tokens", str(args.max_tokens)] +
                               (["--model", args.model] if args.model else []),
                               input=text, capture_output=True, text=True, check=True)
                end = os.times()
                return end.children_user + end.children_system - begin.children_user - begin.children_system

            async def send(server, some):
                queue = iter(some)

                async def client():
                    for t in queue:
                        await call(server.port, "/v1/extract", {"schema": schema, "text": t, "spans": False,
                                                                 "max_tokens": args.max_tokens})

                await asyncio.gather(*(client() for _ in range(2 * batch)))  # no place waits for a slow client

            def served(some):
                server = Server(args, "--threads", "1", "--batch", str(batch), "--draft", "off")
                begin = server.cpu()
                asyncio.run(send(server, some))
                seconds = server.cpu() - begin
                server.process.terminate()
                server.process.wait()
                return seconds

            engine = command(lines) - command(json.dumps(all_texts[0]))
            ratios.append((served(all_texts) - served(all_texts[:1])) / engine)
        print(f"batch {batch}: processor time of the server over that of the command, {len(all_texts)} texts: "
              + ", ".join(f"{r:.3f}" for r in ratios) + f"; median {percentile(ratios, 50):.3f}", flush=True)
        rows[f"batch_{batch}"] = [round(r, 4) for r in ratios]
        rows[f"batch_{batch}_median"] = round(percentile(ratios, 50), 4)
    note(args, args.name or "overhead", texts=len(all_texts), processor_time_over_the_command=rows)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["streams", "soak", "fuzz", "extract", "cold", "overhead", "hostile", "kill", "term"])
    parser.add_argument("--pawl", default=os.path.join(ROOT, "build/pawl"))
    parser.add_argument("--model")
    parser.add_argument("--clients", type=int)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--texts", type=int, default=10 ** 6, help="overhead: at most so many texts")
    parser.add_argument("--max-tokens", type=int, default=512, help="overhead: of an output")
    parser.add_argument("--tools", type=int, default=128)
    parser.add_argument("--different", type=int, default=300, help="soak: how many different schemas of each kind")
    parser.add_argument("--grammar-mb", type=int, default=256, help="soak: the server's option")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attach", metavar="PORT:PID", help="soak: load a server that runs, to go on where another run ended")
    parser.add_argument("--json", metavar="FILE", help="adds the figures to this file")
    parser.add_argument("--name", help="under which they stand there, when it is not the mode")
    args = parser.parse_args()
    defaults = {"streams": (200, 0), "soak": (32, 20000), "fuzz": (16, 10000), "extract": (0, 500), "kill": (16, 0), "term": (64, 0)}
    clients, requests = defaults.get(args.mode, (1, 1))
    args.clients = args.clients or clients
    args.requests = args.requests or requests
    sys.exit(0 if globals()[args.mode](args) else 1)


if __name__ == "__main__":
    main()
