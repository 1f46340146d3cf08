"""Chromium without a window, driven over its debugging pipe: pages are loaded, keys pressed, the pointer moved.

    with Browser() as browser:
        page = browser.open("file:///tmp/report.html")
        page.key("n")
        assert page.run("document.title") == "Pawl report"

Nothing but the standard library is needed. `page.errors` has what the page's scripts have thrown, and what its policy
has stopped.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def chromium():
    """The browser's path, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """Messages are JSON with a zero byte behind each: to file descriptor 3 of the browser, and from its 4."""

    def __init__(self, width=1280, height=800):
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.source, from_write = os.pipe()
        # The browser wants exactly 3 and 4.
        command = [
            "bash", "-c", f'exec 3<&{to_read} 4>&{from_write}; exec "$0" "$@"',
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
            f"--window-size={width},{height}", f"--user-data-dir={self.folder}", "about:blank",
        ]
        self.process = subprocess.Popen(command, pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.rest = b""
        self.number = 0
        self.pages = {}
        self.waiting = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.to)
        os.close(self.source)
        shutil.rmtree(self.folder, ignore_errors=True)

    def take(self, until):
        """Reads messages until `until()`, at most a minute."""
        end = time.monotonic() + 60
        while not until():
            ready, _, _ = select.select([self.source], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.source, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            *whole, self.rest = (self.rest + piece).split(b"\0")
            for one in whole:
                message = json.loads(one)
                if "id" in message:
                    self.waiting[message["id"]] = message
                elif message.get("sessionId") in self.pages:
                    self.pages[message["sessionId"]].hear(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        number = self.number
        self.take(lambda: number in self.waiting)
        answer = self.waiting.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, url, dark=False):
        return Page(self, url, dark)


class Page:
    def __init__(self, browser, url, dark):
        self.browser = browser
        self.errors = []
        self.loaded = False
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.loaded = False
        self.call("Page.navigate", url=url)
        browser.take(lambda: self.loaded)

    def hear(self, message):
        kind, what = message["method"], message["params"]
        if kind == "Page.loadEventFired":
            self.loaded = True
        elif kind == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"].get("exception", {}).get("description") or what["exceptionDetails"]["text"])
        elif kind == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(what["entry"]["text"])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script, seconds=60):
        """Until the expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"!!({script})"):
            if time.monotonic() > end:
                raise TimeoutError(f"still not so: {script}")
            time.sleep(0.05)

    def key(self, name):
        codes = {"ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, "Escape": 27, "Home": 36, "End": 35, "PageDown": 34}
        letter = {"text": name} if len(name) == 1 else {}
        code = codes.get(name, ord(name[0].upper()))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, **letter)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def hover(self, selector, number=0):
        """Moves the pointer onto the element with this number of those that the selector finds."""
        spot = self.run(
            f"(() => {{ const box = document.querySelectorAll({json.dumps(selector)})[{number}].getClientRects()[0];"
            " return [box.x + Math.min(5, box.width / 2), box.y + box.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=spot[0], y=spot[1])

    def choose(self, selector, value):
        """Gives an input or a select its value, as a user would."""
        self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
            " one.dispatchEvent(new Event('input', {bubbles: true})); one.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def picture(self, file, width=None, height=None):
        if width:
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(data))
