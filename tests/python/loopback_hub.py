"""A hub on the loopback for tests: the routes of the Hugging Face hub, with storage on a port of its own.

    with Hub({"org/name": {"config.json": b"{}", "model.safetensors": b"..."}}) as hub:
        hub.spoil("model.safetensors", cut(1000), cut(2000))     # the next two answers for this file
        environment = hub.environment(cache)

Files of more than 1,000 bytes are in the storage: the hub redirects there.
"""

import contextlib
import hashlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import urllib.parse

LARGE = 1000


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def etag(content):
    return sha256(content) if len(content) > LARGE else git_sha1(content)


def cut(count):
    """Closes the connection after so many bytes of the body."""
    return {"cut": count}


def status(code, **headers):
    return {"status": code, "headers": headers}


def content(data):
    """Other bytes than those of the list."""
    return {"content": data}


def certificate(folder):
    """A certificate of the test's own for 127.0.0.1, and its key. None without openssl."""
    names = [os.path.join(str(folder), name) for name in ("hub.crt", "hub.key")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=IP:127.0.0.1", "-out", names[0], "-keyout", names[1]]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        subprocess.run(command, check=True, capture_output=True)
        return names
    return None


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        hub, path = self.server.hub, urllib.parse.unquote(self.path)
        with hub.lock:
            hub.requests.append((self.command, self.server.role, path, dict(self.headers)))
            end = next((end for end, actions in hub.spoilt.items() if path.endswith(end) and actions and body
                        and not (self.server.role == "hub" and end in hub.stored())), None)
            action = hub.spoilt[end].pop(0) if end else {}
        if "status" in action:
            self.reply(action["status"], b"", body, action["headers"])
        elif self.server.role == "storage":
            self.send_file(hub.blobs[path.strip("/").split("/")[0]], body, action)
        else:
            self.hub_answer(hub, path, body, action)

    def hub_answer(self, hub, path, body, action):
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self.reply(401, b"", body, {"X-Error-Message": "Invalid username or password."})
        for repo, files in hub.repos.items():
            if path.split("?")[0] in (f"/api/models/{repo}", f"/api/models/{repo}/revision/main",
                                      f"/api/models/{repo}/revision/{hub.commit}"):
                return self.reply(200, json.dumps(hub.listing(repo)).encode(), body, {"Content-Type": "application/json"})
            tree = f"/api/models/{repo}/tree/"
            if path.startswith(tree):
                entries = [{"type": "file", "path": name, "size": len(data), "oid": git_sha1(data),
                            **({"lfs": {"oid": sha256(data), "size": len(data), "pointerSize": 9}} if len(data) > LARGE else {})}
                           for name, data in files.items()]
                return self.reply(200, json.dumps(entries).encode(), body, {"Content-Type": "application/json"})
            for revision in ("main", hub.commit):
                begin = f"/{repo}/resolve/{revision}/"
                if path.startswith(begin) and path[len(begin):] in files:
                    return self.resolve(hub, files[path[len(begin):]], body, action)
        return self.reply(404, b"", body, {"X-Error-Code": "EntryNotFound"})

    def resolve(self, hub, data, body, action):
        facts = {"X-Repo-Commit": hub.commit, "ETag": f'"{etag(data)}"'}
        if len(data) <= LARGE:
            return self.send_file(data, body, action, facts)
        facts.update({"X-Linked-Etag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data)),
                      "Location": f"{hub.storage_url}/{sha256(data)}/{path_end(self.path)}"})
        return self.reply(302, b"", body, facts)

    def send_file(self, data, body, action, facts=None):
        data = action.get("content", data)
        start, code, headers = 0, 200, {"Accept-Ranges": "bytes", **(facts or {})}
        asked = self.headers.get("Range")
        if asked:
            start, code = int(asked[len("bytes="):].split("-")[0]), 206
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self.reply(code, data[start:], body, headers, action.get("cut"))

    def reply(self, code, data, body, headers, most=None):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            with contextlib.suppress(OSError):
                self.wfile.write(data if most is None else data[:most])
        if most is not None:
            self.close_connection = True


def path_end(path):
    return path.rsplit("/", 1)[1]


class Hub:
    def __init__(self, repos, *, tls=None, token=""):
        self.repos, self.token, self.commit = repos, token, "c0ffee" + "0" * 34
        self.blobs = {sha256(data): data for files in repos.values() for data in files.values()}
        self.requests, self.spoilt, self.lock = [], {}, threading.Lock()
        self.tls = tls
        scheme = "https" if tls else "http"
        self.servers = []
        for role in ("hub", "storage"):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
            server.daemon_threads, server.hub, server.role = True, self, role
            server.handle_error = lambda *arguments: None
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*tls)
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            self.servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url, self.storage_url = (f"{scheme}://127.0.0.1:{server.server_port}" for server in self.servers)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def listing(self, repo):
        return {"id": repo, "modelId": repo, "sha": self.commit, "private": False, "siblings": [
            {"rfilename": name, "size": len(data), "blobId": git_sha1(data),
             **({"lfs": {"sha256": sha256(data), "size": len(data), "pointerSize": 9}} if len(data) > LARGE else {})}
            for name, data in self.repos[repo].items()]}

    def stored(self):
        return [name for files in self.repos.values() for name, data in files.items() if len(data) > LARGE]

    def spoil(self, end, *actions):
        """What the next answers for a path with this end are; for a file in the storage those of the storage."""
        self.spoilt[end] = list(actions)

    def ranges(self, end):
        return [headers.get("Range", "") for _, role, path, headers in self.requests if path.endswith(end) and role == "storage"]

    def environment(self, cache, **more):
        """For a process that fetches from here into `cache`."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_", "OLLAMA"))}
        own = {name: value for name, value in own.items() if name.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
        own.update(HOME=str(cache), HF_HUB_CACHE=os.path.join(str(cache), "hub"), HF_ENDPOINT=self.url)
        if self.tls:
            own.update(CURL_CA_BUNDLE=self.tls[0], SSL_CERT_FILE=self.tls[0])
        own.update(more)
        return own
