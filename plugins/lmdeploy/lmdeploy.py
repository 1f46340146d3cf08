"""Pawl in LMDeploy's PyTorch engine, through the module with XGrammar's names.

    import pawl.lmdeploy

    pawl.lmdeploy.register()            # before the engine is made
    pipeline = lmdeploy.pipeline(MODEL, backend_config=lmdeploy.PytorchEngineConfig())

LMDeploy has no choice of backends: it imports xgrammar by name. `register` puts pawl.compat.xgrammar in
its place in the module that masks, and in the check of a request's format, and nowhere else. The fork
of a matcher that speculation asks for costs a handle.
"""

from __future__ import annotations

import importlib
import inspect
import json
import types
from typing import Any, List

MASKS = "lmdeploy.pytorch.engine.guided_process"
CHECKS = "lmdeploy._guided_decoding"
USED = ("TokenizerInfo", "GrammarCompiler", "GrammarMatcher", "allocate_token_bitmask",
        "apply_token_bitmask_inplace")
_MARK = "_pawl_original"


def swap(module: Any) -> List[str]:
    """Replaces xgrammar in a module; the names that it had there."""
    from pawl.compat import xgrammar as ours

    names = [name for name, value in vars(module).items()
             if isinstance(value, types.ModuleType) and value.__name__ == "xgrammar"]
    for name in names:
        setattr(module, name, ours)
    return names


def _wrong(what: str) -> RuntimeError:
    return RuntimeError(f"pawl.lmdeploy was written for LMDeploy 0.18: {what} here")


def register() -> None:
    """May be called again. An LMDeploy of another structure is an error."""
    from pawl.compat import xgrammar as ours

    missing = [name for name in USED if not hasattr(ours, name)]
    if missing or not hasattr(ours.GrammarMatcher, "fork"):
        raise RuntimeError(f"pawl.compat.xgrammar lacks {missing or ['GrammarMatcher.fork']}")
    masks, checks = importlib.import_module(MASKS), importlib.import_module(CHECKS)
    if not any(value is ours for value in vars(masks).values()) and not swap(masks):
        raise _wrong(f"{MASKS} does not import xgrammar")
    check = getattr(checks, "_check_response_format", None)
    source = getattr(checks, "_grammar_source", None)
    if check is None or source is None:
        raise _wrong(f"{CHECKS} has no _check_response_format or no _grammar_source")
    if hasattr(check, _MARK):
        return
    original = inspect.unwrap(check)
    if list(inspect.signature(original).parameters) != ["serialized_format"]:
        raise _wrong(f"{CHECKS}._check_response_format takes other parameters")

    def _check_response_format(serialized_format: str) -> None:
        kind, text = source(json.loads(serialized_format))
        if kind == "json_schema":
            ours.Grammar.from_json_schema(text)
        elif kind == "regex_schema":
            ours.Grammar.from_regex(text)
        elif kind == "structural_tag":
            ours.Grammar.from_structural_tag(text)

    setattr(_check_response_format, _MARK, check)
    checks._check_response_format = _check_response_format
