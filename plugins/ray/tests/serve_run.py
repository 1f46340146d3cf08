"""serve_run.py: the application for Ray Serve on this machine, with two replicas of `pawl serve` and the model that ships.

PAWL_COMMAND names the command where the package has none. Requests of one schema must come to one replica, those of several schemas
to both; streams and errors must pass through as the server gives them; a server that was ended must come back.
"""

import concurrent.futures
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request

# A machine with other work is slow to start processes.
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "120")
os.environ.setdefault("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "60")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]


def post(path, body, raw=False):
    """Status, headers, and the answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            data = answer.read()
            return answer.status, answer.headers, data if raw else json.loads(data)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def chat(name, text="Ann Lee, phone 020 7946 0018.", **more):
    schema = {"type": "object", "required": [name], "additionalProperties": False,
              "properties": {name: {"type": "string", "maxLength": 20}}}
    return {"model": "tiny-extract", "messages": [{"role": "user", "content": text}], "max_tokens": 60,
            "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}, **more}


def content(answer):
    return json.loads(answer["choices"][0]["message"]["content"])


def servers():
    """Processes of `pawl serve` that are children of Ray's workers."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
        except OSError:
            continue
        if len(words) > 1 and os.path.basename(words[0]) == "pawl" and words[1] == "serve":
            found.append(int(pid))
    return found


def main():
    import logging

    import ray
    from ray import serve

    import pawl.ray

    before = set(servers())
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    command = [os.environ["PAWL_COMMAND"]] if "PAWL_COMMAND" in os.environ else None
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(pawl.ray.serve_app(replicas=2, command=command, arguments=["--threads", "1"]))
    try:
        # Twelve requests of one schema at a time: one replica.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda i: post("/v1/chat/completions", chat("name", f"Ann Lee {i}")),
                                    range(12)))
        assert all(status == 200 for status, _, _ in answers), [a for s, _, a in answers if s != 200]
        assert all(set(content(answer)) == {"name"} for _, _, answer in answers)
        homes = {headers["x-pawl-replica"] for _, headers, _ in answers}
        assert len(homes) == 1, homes
        # Eight schemas: both.
        homes = {post("/v1/chat/completions", chat(f"field{i}"))[1]["x-pawl-replica"] for i in range(8)}
        assert homes == {"0", "1"}, homes
        # A stream as it comes, and what it says is what the whole answer says.
        status, headers, data = post("/v1/chat/completions", chat("name", stream=True), raw=True)
        assert status == 200 and headers["content-type"].startswith("text/event-stream"), dict(headers)
        events = [json.loads(line[6:]) for line in data.decode().splitlines()
                  if line.startswith("data: ") and line != "data: [DONE]"]
        streamed = "".join(e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"])
        whole = post("/v1/chat/completions", chat("name"))[2]
        assert len(events) > 2 and json.loads(streamed) == content(whole), (streamed, whole)
        # Errors are the server's own.
        bad = chat("name")
        bad["response_format"]["json_schema"]["schema"]["properties"]["name"]["maxLength"] = -1
        status, _, answer = post("/v1/chat/completions", bad)
        assert status == 400 and "maxLength" in json.dumps(answer), (status, answer)
        assert post("/v1/nothing", {})[0] == 404
        # A server that has ended: Serve sees it by the health check and starts another.
        mine = [pid for pid in servers() if pid not in before]
        assert len(mine) == 2, mine
        os.kill(mine[0], signal.SIGKILL)
        begin = time.monotonic()
        rounds = 0
        while True:  # meanwhile the other replica answers for both
            answers = [post("/v1/chat/completions", chat(f"field{i}")) for i in range(8)]
            assert [status for status, _, _ in answers] == [200] * 8, answers
            rounds += 1
            if {headers["x-pawl-replica"] for _, headers, _ in answers} == {"0", "1"} and rounds > 1:
                break
            assert time.monotonic() - begin < 120, "the server that was ended did not come back"
            time.sleep(1)
        back = time.monotonic() - begin
        print(f"two replicas of pawl serve: {12 + 8} requests kept together by schema, a stream, errors passed "
              f"through; while a server that was ended was replaced, {back:.0f} s, the other one answered {8 * rounds} "
              f"requests of both")
    finally:
        serve.shutdown()
        ray.shutdown()
        for _ in range(50):
            left = [pid for pid in servers() if pid not in before]
            if not left:
                break
            time.sleep(0.2)
        assert not left, f"left running: {left}"


if __name__ == "__main__":
    main()
