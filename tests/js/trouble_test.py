#!/usr/bin/env python3
"""What examples/web/ says where something cannot be loaded: each case is a server that answers wrongly for one path.

    tests/js/trouble_test.py masks|model
"""

import functools
import http.server
import json
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/clients"))
from browser import Browser  # noqa: E402

HTML = b"<!doctype html><title>Not here</title>"
MASKS, ENGINE = "/js/pawl.wasm", "/js/pawl-engine.wasm"
FOLDER = "/models/tiny-extract/"


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript"}

    def do_GET(self):
        answer = self.server.answers.get(self.path.split("?")[0])
        if answer is None:
            super().do_GET()
        elif isinstance(answer, str):  # the file of another path
            self.path = answer
            super().do_GET()
        elif isinstance(answer, int):
            self.send_error(answer)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def end_headers(self):
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the page has ended a worker that was still reading

    def log_message(self, *_):
        pass


def text_of(page, name):
    return page.run(f"document.getElementById({name!r}).innerText")


def expect(page, name, *parts):
    page.wait(f"document.getElementById({name!r}).innerText !== ''", 30)
    said = text_of(page, name)
    for part in parts:
        assert part in said, f"{part!r} is not in {said!r}"
    print("ok:", said.split("\n")[0])


def choose_file(page, name, text):
    page.run(f"""(() => {{ const files = new DataTransfer(), input = document.getElementById("file");
      files.items.add(new File([{json.dumps(text)}], {json.dumps(name)}));
      input.files = files.files; input.dispatchEvent(new Event("change")); }})()""")


def masks(browser, server, address):
    hint = "scripts/build_wasm.sh"
    for path, answer, parts in [
        (MASKS, 404, (MASKS, "pawl.wasm", hint)),
        (MASKS, HTML, (MASKS, "pawl.wasm was expected", hint)),
        (MASKS, b"", (MASKS, "is empty", hint)),
        (MASKS, "/js/package.json", (MASKS, "pawl.wasm was expected", hint)),
        (FOLDER + "tokenizer.json", 404, ("tokenizer.json", "404", hint)),
        ("/examples/web/worker.js", 404, ("worker.js did not start", hint)),
    ]:
        server.answers = {path: answer}
        page = browser.open(address)
        expect(page, "unread", *parts)
        assert text_of(page, "loaded") == "Not loaded.", text_of(page, "loaded")
        assert text_of(page, "state") == "error", text_of(page, "state")
    # A file that is no tokenizer, after one that is; then one that is.
    server.answers = {}
    page = browser.open(address)
    page.wait("document.getElementById('state').textContent.startsWith('fits')")
    for name, text, part in [("a.json", "{}", "a.json: #/model"), ("b.json", "not json", "b.json: 1:2 (byte 1): not JSON")]:
        page.run("document.getElementById('unread').textContent = ''")
        choose_file(page, name, text)
        expect(page, "unread", part)
        assert "tiny-extract" in text_of(page, "loaded"), text_of(page, "loaded")
    choose_file(page, "c.json", (ROOT / "models/tiny-extract/tokenizer.json").read_text(encoding="utf-8"))
    page.wait("document.getElementById('loaded').textContent.includes('c.json')")
    assert text_of(page, "unread") == ""


def model(browser, server, address):
    hint = "scripts/build_wasm.sh --engine"
    cases = [
        (ENGINE, 404, (ENGINE, "pawl-engine.wasm", hint)),
        (ENGINE, HTML, (ENGINE, "pawl-engine.wasm was expected", hint)),
        (FOLDER + "config.json", 404, (FOLDER + "config.json", "no such file", hint)),
        (FOLDER + "model.safetensors", 404, (FOLDER + "model.safetensors", "no such file", hint)),
        (FOLDER + "config.json", HTML, ("tiny-extract/config.json", hint)),
        ("/examples/web/record_worker.js", 404, ("record_worker.js did not start", hint)),
    ]
    if (ROOT / MASKS[1:]).exists():
        cases.append((ENGINE, MASKS, (ENGINE, "is pawl.wasm; pawl-engine.wasm was expected", hint)))
    page = browser.open(address)
    for path, answer, parts in cases:
        server.answers = {path: answer}
        page.run("document.getElementById('load').click()")
        page.wait("document.getElementById('load').disabled === false", 30)
        expect(page, "trouble", *parts)
        assert page.run("document.getElementById('trouble').offsetParent !== null")
        assert text_of(page, "model") == "Not loaded.", text_of(page, "model")
    # What was wrong is no longer so.
    server.answers = {}
    page.run("document.getElementById('load').click()")
    assert text_of(page, "trouble") == ""
    page.wait("document.getElementById('model').textContent.includes('million weights')")
    assert text_of(page, "trouble") == ""
    assert page.run("document.getElementById('extraction').hidden === false")


def main():
    parts = {"masks": masks, "model": model}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        print("usage: trouble_test.py masks|model", file=sys.stderr)
        return 2
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=ROOT))
    server.answers = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Browser() as browser:
        parts[sys.argv[1]](browser, server, f"http://127.0.0.1:{server.server_port}/examples/web/")
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
