"""SGLang's own tests of structured output (sglang.test.kits, which its wheel has), against its server with a grammar backend on a CPU.

    MODEL=models/tiny-extract BACKEND=pawl python -m pytest plugins/sglang/tests/own_tests.py

BACKEND=xgrammar or llguidance runs the same tests with SGLang's own. The environment is that of engine_run.py.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest

from sglang.test.kits.ebnf_constrained_kit import EBNFConstrainedMixin
from sglang.test.kits.json_constrained_kit import JSONConstrainedMixin
from sglang.test.kits.regex_constrained_kit import RegexConstrainedMixin

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "testing"))
import server_run  # noqa: E402


class TestOwn(unittest.TestCase, JSONConstrainedMixin, EBNFConstrainedMixin, RegexConstrainedMixin):
    @classmethod
    def setUpClass(cls):
        cls.model = "tiny"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cls.base_url = f"http://127.0.0.1:{port}"
        template = f"/tmp/template-{port}.jinja"
        pathlib.Path(template).write_text(server_run.TEMPLATE)
        words = server_run.command("sglang", os.environ["MODEL"], port, template)
        words[words.index("pawl")] = os.environ.get("BACKEND", "pawl")
        cls.process = subprocess.Popen(words, start_new_session=True)
        try:
            server_run.wait(cls.process, port, 300)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        if cls.process.poll() is None:
            os.killpg(cls.process.pid, signal.SIGTERM)
            try:
                cls.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(cls.process.pid, signal.SIGKILL)
