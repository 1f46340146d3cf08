#!/usr/bin/env python3
"""The model in a tab: opens examples/web/ in headless Chromium, which writes the README's record.

    tests/js/record_test.py                        # once, and an output that is stopped, and a schema with a mistake
    tests/js/record_test.py --runs 5 --most 2      # five times; exit code 1 where the median is above two seconds
    tests/js/record_test.py --runs 5 --json FILE   # with the figures in a file
"""

import argparse
import functools
import gzip
import http.server
import json
import platform
import statistics
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/clients"))
from browser import Browser  # noqa: E402

RECORD = '{"name":"Ann Lee","phone":"020 7946 0018","city":"Porto"}'
MODULE = ROOT / "js/pawl-engine.wasm"


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript"}

    def log_message(self, *_):
        pass


def text_of(page, name):
    return page.run(f"document.getElementById({name!r}).textContent")


def record_times(page, runs):
    page.wait("document.getElementById('times').textContent !== '' || document.getElementById('trouble').textContent !== ''", 60)
    done = "document.getElementById('times').dataset.seconds" if runs > 1 else "document.getElementById('write').disabled === false"
    page.wait(done, 120)
    assert text_of(page, "trouble") == "", text_of(page, "trouble")
    assert text_of(page, "record") == RECORD, text_of(page, "record")
    return page.run("JSON.parse(document.getElementById('times').dataset.seconds ?? '[]')")


def check_stop(page):
    """A long output, which ends where the user says so; then a schema with a mistake."""
    page.choose("#schema", '{"type": "array", "items": {"type": "string", "minLength": 20}, "minItems": 12}')
    page.run("document.getElementById('write').click()")
    page.wait("document.getElementById('record').textContent.length > 20")
    page.run("document.getElementById('stop').click()")
    page.wait("document.getElementById('times').textContent.startsWith('stopped')", 20)
    page.choose("#schema", '{"properties": {"a": {"minimum": "x"}}}')
    page.run("document.getElementById('write').click()")
    page.wait("document.getElementById('trouble').textContent !== ''", 20)
    said = text_of(page, "trouble")
    assert said == "schema: #/properties/a/minimum: must be a number", said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--most", type=float)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=ROOT))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Browser() as browser:
        page = browser.open(f"http://127.0.0.1:{server.server_port}/examples/web/?record={given.runs}")
        seconds = record_times(page, given.runs)
        loaded = text_of(page, "model")
        print(loaded)
        print(text_of(page, "times"))
        if given.runs == 1:
            check_stop(page)
        version = browser.call("Browser.getVersion")["product"]
    server.shutdown()
    if not seconds:
        return 0
    median = statistics.median(seconds)
    code = MODULE.read_bytes()
    figures = {"median_seconds": median, "seconds": seconds, "loaded": loaded, "module_bytes": len(code),
               "module_gzip_bytes": len(gzip.compress(code, 9)), "browser": version, "processor": processor()}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))
    return 1 if given.most is not None and median > given.most else 0


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
