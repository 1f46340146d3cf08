#!/usr/bin/env python3
"""Opens examples/web/ in headless Chromium and checks what the page shows.

The page takes its first inputs from its address, so each case is one address. A page of the test's own opens the addresses one
after the other in a frame, waits for their states, and sends them back to the server that served it."""

import functools
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = [
    # kind, constraint, text; the state that the page says, what it shows besides
    ("json_schema", '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}', '{"name":"Ann', "fits, not complete", None),
    ("json_schema", '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}', '{"name":"Ann"}', "complete", None),
    ("json_schema", '{"properties":{"a":{"minimum":"x"}}}', "", "error", "#/properties/a/minimum: must be a number"),
    ("regex", "ab+c", "abd", "refused", None),
    ("gbnf", 'root ::= "yes" | "no"', "y", "fits, not complete", "es"),
]


OUTER = """<!doctype html><iframe id="frame" width="900" height="900"></iframe><script type="module">
const frame = document.getElementById("frame"), answers = [];
for (const address of ADDRESSES) {
  frame.src = address;
  await new Promise((done) => { frame.onload = done; });
  const state = () => frame.contentDocument.getElementById("state").textContent;
  for (let i = 0; i < 600 && state() === "loading"; ++i) await new Promise((done) => setTimeout(done, 50));
  answers.push([state(), frame.contentDocument.body.innerText]);
}
await fetch("/answers", { method: "POST", body: JSON.stringify(answers) });
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript"}

    def do_GET(self):
        if self.path != "/outer":
            super().do_GET()
            return
        addresses = ["/examples/web/?" + urllib.parse.urlencode({"kind": k, "constraint": c, "text": t}) for k, c, t, _, _ in CASES]
        body = OUTER.replace("ADDRESSES", json.dumps(addresses)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=ROOT))
    server.answers = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={home}",
                   "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/outer"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            try:
                answers = server.answers.get(timeout=150)
            except queue.Empty:
                print("FAILED: no answer of the browser")
                return 1
            finally:
                os.killpg(browser.pid, signal.SIGTERM)
    server.shutdown()
    failed = 0
    for (kind, _, text, state, shown), (said, page) in zip(CASES, answers, strict=True):
        good = said == state and (shown is None or shown in page)
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: {kind} {text!r}: {said}" + ("" if good else "\n" + page))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
