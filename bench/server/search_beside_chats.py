#!/usr/bin/env python3
"""A long `mcts` search in a server while four chats go on: do they go on evenly, and is their text unchanged?

    bench/server/search_beside_chats.py --rollouts 1000000 --out bench/results/search_beside_chats-DATE.json
    bench/server/search_beside_chats.py --model models/tiny-extract --rollouts 1000000 --seconds 120

Without --model the model is a tiny one with random weights. The search is under [01]{20}, so a million rollouts each have a
leaf of their own. Each chat streams one answer after the other until the search has ended; the same answers were read
before, without a search. With --seconds the search is cancelled after that time. Reported for each run: rollouts, rows, the
longest gap between two pieces of an answer, answers that differ, and the server's largest memory.

A gap may be the machine's: the report has the longest sleep of 5 ms in the same time, as well.
"""

import argparse
import http.client
import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import toy_language  # noqa: E402

CHATS, SEEDS = 4, 6
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }} {% endfor %}"


def tiny_model(folder):
    """The shape of bench/toy_language.py, with random weights."""
    toy_language.write(folder, 300)
    path = Path(folder) / "model.safetensors"
    data = bytearray(path.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    rng = np.random.default_rng(1)
    for name, tensor in json.loads(data[8:8 + size]).items():
        if len(tensor["shape"]) < 2:
            continue
        begin, end = tensor["data_offsets"]
        scale = 1.5 if name == "lm_head.weight" else 1
        drawn = rng.normal(0, scale / np.sqrt(tensor["shape"][-1]), size=tensor["shape"]).astype(np.float32)
        data[8 + size + begin:8 + size + end] = drawn.tobytes()
    path.write_bytes(bytes(data))
    for name, members in (("config.json", {"max_position_embeddings": 4096}), ("tokenizer_config.json", {"chat_template": TEMPLATE})):
        file = Path(folder) / name
        file.write_text(json.dumps({**json.loads(file.read_text()), **members}))


class Server:
    def __init__(self, options, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([options.pawl, "serve", "--model", str(model), "--port", str(self.port), "--threads", str(options.threads),
                                         "--search-rows", str(1 << 30), "--search-nodes", str(options.nodes), "--draft", "off"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1200):
            try:
                self.request("GET", "/health").read()
                break
            except OSError:
                time.sleep(0.1)
        models = json.loads(self.request("GET", "/v1/models").read())["data"]
        self.chats = self.request("POST", "/v1/chat/completions", self.chat_body(0, 0, 1, True)).status == 200
        self.name = models[0]["id"]

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    @staticmethod
    def chat_body(chat, seed, tokens, chats):
        text = f"Tell me about the number {chat}."
        prompt = {"messages": [{"role": "user", "content": text}]} if chats else {"prompt": text}
        return {**prompt, "stream": True, "temperature": 0.8, "seed": 10 * chat + seed, "max_tokens": tokens}

    def answer(self, chat, seed, tokens):
        """The text, and the gaps between its pieces."""
        path = "/v1/chat/completions" if self.chats else "/v1/completions"
        response = self.request("POST", path, self.chat_body(chat, seed, tokens, self.chats))
        text, gaps, last = "", [], None
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            now = time.monotonic()
            if last is not None:
                gaps.append((now - last, now))
            last = now
            for choice in json.loads(line[6:])["choices"]:
                text += (choice.get("delta", {}).get("content") or "") if self.chats else choice.get("text", "")
        return text, gaps

    def peak_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def searched(server, options, result):
    body = {"prompt": "0", "regex": options.regex, "max_tokens": 24,
            "search": {"strategy": "mcts", "max_nodes": options.nodes, "search_rows": 1 << 30,
                       "search_arg": {"rollouts": options.rollouts, "width": options.width}}}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=7200)
    connection.connect()
    result["socket"] = connection.sock
    begin = time.monotonic()
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        result["answer"] = answer["pawl"]["search"][0] if "pawl" in answer else answer
    except (OSError, http.client.HTTPException) as error:
        result["answer"] = {"cancelled": type(error).__name__}
    result["seconds"] = round(time.monotonic() - begin, 1)


def run(options, model):
    server = Server(options, model)
    alone, gaps_alone = {}, []

    def alone_answers(chat):
        for seed in range(SEEDS):
            text, gaps = server.answer(chat, seed, options.tokens)
            alone[chat, seed] = text
            gaps_alone.extend(gaps)

    def together(targets):
        threads = [threading.Thread(target=target, args=arguments) for target, arguments in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    together([(alone_answers, (chat,)) for chat in range(CHATS)])
    result, over, found_gaps, wrong, answers, sleeps = {}, threading.Event(), [], [], [0], []

    def chatting(chat):
        seed = 0
        while not over.is_set():
            text, found = server.answer(chat, seed % SEEDS, options.tokens)
            found_gaps.extend(found)
            answers[0] += 1
            if text != alone[chat, seed % SEEDS]:
                wrong.append((chat, seed % SEEDS))
            seed += 1

    def sleeping():
        while not over.is_set():
            begin = time.monotonic()
            time.sleep(0.005)
            sleeps.append(time.monotonic() - begin)

    chats = [threading.Thread(target=chatting, args=(chat,)) for chat in range(CHATS)] + [threading.Thread(target=sleeping)]
    search = threading.Thread(target=searched, args=(server, options, result))
    began = time.monotonic()
    search.start()
    time.sleep(1)
    for chat in chats:
        chat.start()
    search.join(options.seconds or None)
    if search.is_alive():  # hangs up: the search is cancelled, and its tree is freed
        result["socket"].shutdown(socket.SHUT_RDWR)
        search.join()
    time.sleep(3)
    over.set()
    for chat in chats:
        chat.join()
    peak = server.peak_mb()
    server.process.terminate()
    code = server.process.wait()
    answer = result["answer"]
    gaps = [gap for gap, _ in found_gaps]
    longest = [{"ms": round(1000 * gap), "at_s": round(when - began, 1)} for gap, when in sorted(found_gaps, reverse=True)[:8]]
    return {"seconds": result["seconds"], "search": {key: answer.get(key) for key in ("at_limit", "rows", "calls", "nodes", "cancelled")},
            "answers": answers[0], "different_answers": len(wrong), "pieces": len(gaps), "longest_gap_ms": round(1000 * max(gaps), 1),
            "gaps_over_250_ms": sum(gap > 0.25 for gap in gaps), "p99_gap_ms": round(1000 * float(np.quantile(gaps, 0.99)), 1),
            "longest_gaps": longest, "longest_gap_without_search_ms": round(1000 * max(gap for gap, _ in gaps_alone), 1), "longest_sleep_of_5_ms": round(1000 * max(sleeps), 1),
            "peak_mb": peak, "exit_code": code}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model")
    parser.add_argument("--rollouts", type=int, default=1000000)
    parser.add_argument("--width", type=int, default=2)
    parser.add_argument("--regex", default="[01]{20}")
    parser.add_argument("--nodes", type=int, default=1 << 24)
    parser.add_argument("--tokens", type=int, default=200, help="of an answer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="the search is cancelled after; 0: it ends")
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if not model:
            model = Path(folder) / "tiny"
            tiny_model(model)
        runs = []
        for _ in range(options.runs):
            runs.append(run(options, model))
            print(json.dumps(runs[-1]), flush=True)
    report = {"model": Path(options.model).name if options.model else "tiny random", "rollouts": options.rollouts, "chats": CHATS, "runs": runs,
              "longest_gap_of_the_better_run_ms": min(one["longest_gap_ms"] for one in runs)}
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
