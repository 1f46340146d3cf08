"""A language server for tests, as bad as its argument says.

    fake_lsp_server.py MODE      ok, guess, partial, empty, slow, silent, broken, deep, crash, crash-once FILE
"""

import json
import os
import sys
import time

mode = sys.argv[1]


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def receive():
    size = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            return json.loads(sys.stdin.buffer.read(size))
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])


def items(*names, kind=5):
    return [{"label": " " + name + "(int x)", "kind": kind, "insertText": name} for name in names]


while True:
    message = receive()
    method = message.get("method")
    if method == "initialize":
        send({"id": "configuration", "method": "workspace/configuration", "params": {"items": [{}, {}]}})
        send({"id": message["id"], "result": {"capabilities": {}, "serverInfo": {"name": "fake"}}})
    elif method == "textDocument/didOpen" and mode != "silent":
        uri = message["params"]["textDocument"]["uri"]
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": []}})
    elif method == "textDocument/hover":
        send({"id": message["id"], "result": {"contents": {"kind": "plaintext", "value": "(variable) a: Thing"}}})
    elif method == "textDocument/completion":
        if mode == "crash" or (mode == "crash-once" and not os.path.exists(sys.argv[2])):
            if mode == "crash-once":
                open(sys.argv[2], "w").close()
            sys.exit(1)
        if mode == "broken":
            sys.stdout.buffer.write(b"Content-Length: 5\r\n\r\nnot a message at all")
            sys.stdout.buffer.flush()
            continue
        if mode == "deep":
            body = b'{"jsonrpc":"2.0","id":%d,"result":%s%s}' % (message["id"], b"[" * 200000, b"]" * 200000)
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sys.stdout.buffer.flush()
            continue
        if mode == "slow":
            time.sleep(1.5)
        # An answer to nothing comes first.
        send({"id": 987654, "result": {"isIncomplete": False, "items": items("wrong")}})
        listed = items("width", "height", "depth") + items("return", kind=14)
        if mode == "guess":
            listed += items("word", kind=1)
        if mode == "empty":
            listed = []
        send({"id": message["id"], "result": {"isIncomplete": mode == "partial", "items": listed}})
    elif method == "exit":
        sys.exit(0)
