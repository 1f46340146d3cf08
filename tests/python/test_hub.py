"""`pawl pull` and `pawl.pull` against a hub on the loopback, with TLS, whole and spoilt."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

import pawl
from loopback_hub import Hub, certificate, content, cut, etag, status

COMMAND = os.environ.get("PAWL_COMMAND", "")
WEIGHTS = random.Random(7).randbytes(3_000_000)
GGUF = {"org/name": {"README.md": b"#", "name-Q8_0.gguf": WEIGHTS, "name-Q4_K_M.gguf": WEIGHTS[:5000]}}
FILE = "name-Q8_0.gguf"
PYTHON = "import sys, pawl\ntry:\n    print(pawl.pull(sys.argv[1]))\nexcept pawl.PawlError as error:\n    sys.exit(f'pawl: {error}')"


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    files = certificate(tmp_path_factory.mktemp("tls"))
    if files is None:
        pytest.skip("no openssl to make a certificate with")
    return files


@pytest.fixture(params=["command", "python"])
def door(request):
    """What fetches: the command with curl, or Python."""
    if request.param == "command" and not (COMMAND and shutil.which("curl")):
        pytest.skip("no command, or no curl")
    return request.param


def command_line(door, name):
    return [COMMAND, "pull", name] if door == "command" else [sys.executable, "-c", PYTHON, name]


def pull(door, name, environment, **more):
    return subprocess.run(command_line(door, name), env=environment, capture_output=True, text=True, timeout=100, check=False, **more)


def fetched(door, name, environment):
    done = pull(door, name, environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refused(door, name, environment, *parts, **more):
    done = pull(door, name, environment, **more)
    assert done.returncode in (1, 2), (done.returncode, done.stderr)
    for part in parts:
        assert part in done.stderr
    assert found(name, environment) is None
    return done.stderr


def found(name, environment):
    """Where a name leads; None: nowhere."""
    try:
        return pawl._pawl.resolve_model(name, pawl._pawl.ModelPaths(environment))
    except pawl.PawlError:
        return None


def folder(environment):
    return os.path.join(environment["HF_HUB_CACHE"], "models--org--name")


def part_of(environment, data=WEIGHTS):
    return os.path.join(folder(environment), "blobs", etag(data) + ".incomplete")


def shipped_files():
    files = {}
    for name in os.listdir(pawl.shipped_model()):
        path = os.path.join(pawl.shipped_model(), name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                files[name] = file.read()
    return files


def test_a_folder_is_fetched_and_runs(door, tls, tmp_path):
    with Hub({"org/tiny": shipped_files()}, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        path = fetched(door, "org/tiny", environment)
        before = len(hub.requests)
        assert fetched(door, "org/tiny", environment) == path
        assert len(hub.requests) == before + 1  # the list alone
    assert path.endswith("/hub/models--org--tiny/snapshots/" + hub.commit)
    code = "import pawl; e = pawl.Engine('org/tiny'); print(e.generate('A', choice=['yes', 'no']).text, e.path)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    text, ran = done.stdout.split()
    assert text in ("yes", "no") and ran == path
    if COMMAND:
        done = subprocess.run([COMMAND, "models", "--json"], env=environment, capture_output=True, text=True, check=True)
        (model,) = json.loads(done.stdout)
        assert model["name"] == "org/tiny" and model["path"] == path and model["runs"] and model["problem"] is None
        assert model["bytes"] == len(shipped_files()["model.safetensors"]) and model["type"] and model["family"]
        done = subprocess.run([COMMAND, "info", "--model", "org/tiny", "--json"], env=environment, capture_output=True,
                              text=True, check=True)
        assert json.loads(done.stdout)["model"] == path
        done = subprocess.run([COMMAND, "info", "--model", "org/other"], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "`pawl pull org/other` fetches it" in done.stderr


def test_one_of_several_files(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        assert fetched(door, "org/name", environment).endswith("name-Q4_K_M.gguf")
        assert fetched(door, f"org/name@main:{FILE}", environment) == found("org/name:Q8_0", environment)
        assert not any("README" in path for _, _, path, _ in hub.requests)
        refused(door, "org/name:Q2_K", environment, "has no file of type Q2_K; it has name-Q4_K_M.gguf, name-Q8_0.gguf")
        refused(door, "org/none", environment, "no such repository, revision or file (status 404)")


def test_cut_five_times(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        hub.spoil(FILE, *[cut(500_000)] * 5)
        path = fetched(door, "org/name:Q8_0", environment)
        starts = [int(asked[len("bytes="):-1]) for asked in hub.ranges(FILE)[1:]]
    assert len(starts) == 5 and starts == sorted(starts) and starts[-1] > 0
    with open(path, "rb") as file:
        assert file.read() == WEIGHTS


def test_killed_and_resumed(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        hub.spoil(FILE, cut(1_000_000), *[status(503)] * 100)
        process = subprocess.Popen(command_line(door, "org/name:Q8_0"), env=environment, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while len(hub.ranges(FILE)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        size = os.path.getsize(part_of(environment))
        assert 0 < size <= 1_000_000 and found("org/name:Q8_0", environment) is None
        hub.spoil(FILE)
        path = fetched(door, "org/name:Q8_0", environment)
        assert hub.ranges(FILE)[-1] == f"bytes={size}-"
    with open(path, "rb") as file:
        assert file.read() == WEIGHTS


def test_an_end_that_never_comes(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        hub.spoil(FILE, *[cut(0)] * 100)
        refused(door, "org/name:Q8_0", environment, f"{FILE}: the connection was cut at 0 of 3000000 bytes")
        assert len(hub.ranges(FILE)) == 5


def test_wrong_checksum_and_length(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        hub.spoil(FILE, content(WEIGHTS[::-1]))
        refused(door, "org/name:Q8_0", environment, "what was fetched has the checksum ", etag(WEIGHTS), "it is removed")
        assert not os.path.exists(part_of(environment))
        for wrong in (WEIGHTS + b"x", WEIGHTS[:-1]):
            hub.spoil(FILE, content(wrong))
            refused(door, "org/name:Q8_0", environment, f"the hub sends {len(wrong)} bytes where its list leaves 3000000")
        fetched(door, "org/name:Q8_0", environment)


def test_the_token_stays_with_the_hub(door, tls, tmp_path):
    with Hub(GGUF, tls=tls, token="hf_secret") as hub:
        environment = hub.environment(tmp_path)
        refused(door, "org/name", environment, "asks for a token", "status 401: Invalid username or password.")
        refused(door, "org/name", dict(environment, HF_TOKEN="hf_other"), "does not accept the token")
        said = refused(door, "org/name", dict(environment, HF_TOKEN="a b"), "HF_TOKEN: is no token")
        assert "a b" not in said
        fetched(door, "org/name", dict(environment, HF_TOKEN="hf_secret"))
        sent = {role for _, role, _, headers in hub.requests if headers.get("Authorization") == "Bearer hf_secret"}
        asked = {role for _, role, _, _ in hub.requests}
    assert sent == {"hub"} and asked == {"hub", "storage"}


def test_a_certificate_that_is_not_trusted(door, tls, tmp_path):
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        for name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            environment.pop(name)
        refused(door, "org/name", environment, "certificate")
        assert hub.requests == []


def test_a_file_that_may_not_grow(door, tls, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        refused(door, "org/name:Q8_0", environment, "cannot write: File too large", preexec_fn=limit)
        fetched(door, "org/name:Q8_0", environment)
        assert hub.ranges(FILE)[-1] == "bytes=1000000-"


def test_a_disk_that_is_full(door, tls, tmp_path):
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=2m none "$HOME" && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], env=dict(os.environ, HOME=str(tmp_path)), capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system of a test's own may be mounted")
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path)
        done = subprocess.run([*mount, *command_line(door, "org/name:Q8_0")], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "the disk has " in done.stderr and "the model needs 2.9 MiB" in done.stderr
        assert hub.ranges(FILE) == []


def test_without_curl(tls, tmp_path):
    if not COMMAND:
        pytest.skip("no command")
    with Hub(GGUF, tls=tls) as hub:
        environment = hub.environment(tmp_path, PATH=str(tmp_path))
        refused("command", "org/name", environment, "curl cannot be run", "pawl.pull(NAME)")


# Bug guard: curl is told nothing by its arguments or by a file of the user.
def test_curl_gets_no_secret_by_its_arguments(tls, tmp_path):
    if not COMMAND:
        pytest.skip("no command")
    real = shutil.which("curl")
    if real is None:
        pytest.skip("no curl")
    wrapper = tmp_path / "bin" / "curl"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nexec {real} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    (tmp_path / ".curlrc").write_text(f'output = "{tmp_path}/stolen"\n', encoding="utf-8")
    with Hub(GGUF, tls=tls, token="hf_secret") as hub:
        environment = hub.environment(tmp_path, HF_TOKEN="hf_secret", PATH=f"{wrapper.parent}:{os.environ['PATH']}")
        fetched("command", "org/name", environment)
    assert set((tmp_path / "arguments").read_text(encoding="utf-8").splitlines()) == {"-q -K -"}
    assert not (tmp_path / "stolen").exists()


def test_progress_and_exceptions(tls, tmp_path, monkeypatch):
    with Hub(GGUF, tls=tls) as hub:
        for name, value in hub.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        seen = []
        with pytest.raises(ZeroDivisionError):
            pawl.pull("org/name:Q8_0", progress=lambda *said: 1 // 0)
        path = pawl.pull("org/name:Q8_0", progress=lambda *said: seen.append(said))
    assert os.path.getsize(path) == len(WEIGHTS)
    assert seen[-1] == (FILE, len(WEIGHTS), len(WEIGHTS))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_the_server_and_names_of_paths(tmp_path):
    with pytest.raises(pawl.PawlError) as raised:
        pawl._pawl.resolve_model("org/name", pawl._pawl.ModelPaths({"HF_HUB_CACHE": str(tmp_path)}))
    assert raised.value.code == "io" and "`pawl pull org/name` fetches it" in raised.value.message
    with pytest.raises(pawl.PawlError) as raised:
        pawl.Engine("ollama:../x")
    assert raised.value.code == "invalid" and raised.value.place == "ollama:../x"
