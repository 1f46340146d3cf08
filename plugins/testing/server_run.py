"""server_run.py HOST MODEL: the host's own OpenAI server with the backend pawl, and requests over HTTP.

HOST: vllm or sglang. MODEL: a folder (plugins/testing/tiny_model.py makes one). Records by response_format, a regex, a stream that is the
answer in pieces, several requests at a time, a schema that is refused with its keyword, and one after that.
"""

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}}}
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
REGEX = r"[a-c]{3,5}-[0-9]{2}"


def command(host, model, port, template):
    if host == "vllm":
        return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--port", str(port),
                "--served-model-name", "tiny", "--structured-outputs-config", '{"backend": "pawl"}',
                "--max-model-len", "512", "--enforce-eager", "--dtype", "float32", "--max-num-seqs", "8",
                "--chat-template", template]
    return [sys.executable, "-m", "sglang.launch_server", "--model-path", model, "--port", str(port),
            "--served-model-name", "tiny", "--grammar-backend", "pawl", "--device", "cpu",
            "--attention-backend", "torch_native", "--disable-radix-cache", "--max-running-requests", "8",
            "--mem-fraction-static", "0.2", "--max-total-tokens", "4096", "--dtype", "float32",
            "--skip-server-warmup", "--disable-cuda-graph", "--chat-template", template, "--log-level", "error"]


class Client:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def chat(self, **more):
        body = {"model": "tiny", "messages": [{"role": "user", "content": "A record:"}], "max_tokens": 200,
                "temperature": 0, **more}
        return self.post("/v1/chat/completions", body)

    def record(self, schema=SCHEMA, **more):
        return self.chat(response_format={"type": "json_schema",
                                          "json_schema": {"name": "r", "schema": schema}}, **more)


def content(answer):
    status, text = answer
    assert status == 200, answer
    return json.loads(text)["choices"][0]["message"]["content"]


def is_record(text):
    value = json.loads(text)
    return set(value) == {"name", "age"} and 0 <= value["age"] <= 99 and len(value["name"]) <= 12


def wait(process, port, seconds):
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(1)
    raise RuntimeError(f"the server is not ready after {seconds} s")


def check(host, client):
    greedy = content(client.record())
    assert is_record(greedy), greedy
    # Sampled, several at a time.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for text in pool.map(lambda seed: content(client.record(temperature=1.5, seed=seed)), range(6)):
            assert is_record(text), text
    regex = {"structured_outputs": {"regex": REGEX}} if host == "vllm" else {"regex": REGEX}
    text = content(client.chat(**regex))
    assert re.fullmatch(REGEX, text), text
    # A stream is the answer in pieces.
    status, data = client.record(stream=True)
    assert status == 200, data
    events = [json.loads(line[6:]) for line in data.splitlines()
              if line.startswith("data: ") and line != "data: [DONE]"]
    streamed = "".join(e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"])
    assert streamed == greedy, (streamed, greedy)
    status, data = client.record({"type": "string", "minLength": "x"})
    assert status == 400 and "#/minLength" in data, (status, data)
    assert is_record(content(client.record()))
    return 10


def main():
    host, model = sys.argv[1:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        template = os.path.join(folder, "template.jinja")
        with open(template, "w") as file:
            file.write(TEMPLATE)
        log = open(os.path.join(folder, "log"), "w+")
        process = subprocess.Popen(command(host, model, port, template), stdout=log, stderr=log,
                                   start_new_session=True)
        try:
            wait(process, port, 300)
            count = check(host, Client(port))
        except BaseException:
            log.seek(0)
            print(log.read()[-4000:])
            raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
    print(f"{count} requests over HTTP: records, a regex, a stream; a bad schema is a 400 that names its keyword")


if __name__ == "__main__":
    main()
