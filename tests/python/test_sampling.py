"""pawl.sampling: Python functions as checks. Needs the pawl command: PAWL_COMMAND, or pawl in PATH."""
import os
import shutil

import pytest

from pawl import sampling

COMMAND = os.environ.get("PAWL_COMMAND") or shutil.which("pawl")
pytestmark = pytest.mark.skipif(COMMAND is None, reason="no pawl command: set PAWL_COMMAND")


def test_functions_as_checks():
    seen = []

    def check(text, tokens, ended):
        seen.append((text, len(tokens), ended))
        if "ba" in text:
            return "dead"
        return "accept" if text.endswith("b") else "live"

    outputs = sampling.generate("Once ", command=COMMAND, sampler="awrs", n=12, check=check, regex="[ab]{1,6}",
                                max_tokens=8)
    assert len(outputs) == 12
    for output in outputs:
        if output.report["valid"]:
            assert "ba" not in output.text and output.text.endswith("b")
            assert sampling.score("Once ", tokens=output.tokens, command=COMMAND) == pytest.approx(
                output.log_probability)
    assert any(ended for _, _, ended in seen)


def test_errors():
    def check(text, tokens, ended):
        raise KeyError("gone")

    with pytest.raises(KeyError):
        sampling.generate("a", command=COMMAND, check=check, regex="[ab]{1,6}", max_tokens=8)
    with pytest.raises(ValueError):
        sampling.generate("a", command=COMMAND, check=lambda *_: "yes", regex="[ab]{1,6}", max_tokens=8)
    with pytest.raises(RuntimeError, match="--n"):
        sampling.generate("a", command=COMMAND, n=0)
