"""The cache's layout against huggingface_hub: each finds what the other one fetched."""

import os
import subprocess
import sys

import pytest

import pawl
from loopback_hub import Hub

pytest.importorskip("huggingface_hub", reason="no huggingface_hub to compare with")

FILES = {"config.json": b'{"architectures": ["LlamaForCausalLM"]}', "tokenizer.json": b"{}", "chat_template.jinja": b"x",
         "model.safetensors": bytes(range(256)) * 40, "additional_chat_templates/tools.jinja": b"y"}
LOCAL = """
import sys
from huggingface_hub import snapshot_download, scan_cache_dir, try_to_load_from_cache
print(snapshot_download(sys.argv[1], local_files_only=True))
print(try_to_load_from_cache(sys.argv[1], "model.safetensors"))
report = scan_cache_dir()
print(len(report.repos), len(report.warnings), sum(repo.nb_files for repo in report.repos))
"""
FETCH = "import sys; from huggingface_hub import snapshot_download; print(snapshot_download(sys.argv[1]))"
PULL = "import sys, pawl; print(pawl.pull(sys.argv[1]))"


def run(code, environment):
    done = subprocess.run([sys.executable, "-c", code, "org/name"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tree(folder):
    out = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            if os.path.islink(file):
                out[os.path.relpath(file, folder)] = os.readlink(file)
            elif "trees" not in path:  # a list that only newer versions keep
                with open(file, "rb") as opened:
                    out[os.path.relpath(file, folder)] = opened.read()
    return out


def environment_of(hub, cache):
    return hub.environment(cache, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_PROGRESS_BARS="1")


def test_it_finds_what_pull_has_fetched(tmp_path):
    with Hub({"org/name": FILES}) as hub:
        environment = environment_of(hub, tmp_path)
        (path,) = run(PULL, environment)
        before = len(hub.requests)
        found, file, counts = run(LOCAL, environment)
        assert len(hub.requests) == before
        assert found == path and file == os.path.join(path, "model.safetensors")
        assert counts == f"1 0 {len(FILES)}"
        # It fetches no file again.
        assert run(FETCH, environment) == [path]
        assert not [request for request in hub.requests[before:] if request[0] == "GET" and "/api/" not in request[2]]


def test_pawl_finds_what_it_has_fetched(tmp_path):
    with Hub({"org/name": FILES}) as hub:
        environment = environment_of(hub, tmp_path)
        (path,) = run(FETCH, environment)
        assert pawl._pawl.resolve_model("org/name", pawl._pawl.ModelPaths(environment)) == path
        before = len(hub.requests)
        assert run(PULL, environment) == [path]
        assert len(hub.requests) == before + 1  # the list alone


def test_both_lay_the_same_files(tmp_path):
    with Hub({"org/name": FILES}) as hub:
        trees = []
        for code, name in ((PULL, "pawl"), (FETCH, "hub")):
            folder = tmp_path / name
            folder.mkdir()
            run(code, environment_of(hub, folder))
            trees.append(tree(folder / "hub" / "models--org--name"))
    assert trees[0] == trees[1]
