#!/usr/bin/env python3
"""Runs the Python tests of XGrammar and llguidance against pawl.compat, with the import replaced.

    scripts/peer_tests.py --xgrammar DIR --llguidance DIR [--out FILE.json] [--list]

DIR is a checkout of the library (or its folder of tests). pawl, torch, pydantic, transformers and
pytest must be importable. Prints passed, failed, skipped and left out for each file.

What counts, as a rule that looks at what a test does and not at its name:
- left out: a test that compares XGrammar's own internal text (str(Grammar), _json_schema_to_ebnf,
  _regex_to_ebnf, ...) and nothing else, that reads the rules of its serialized form, or that asks for an internal pass or module
  (GrammarFunctor, FSM printing, kernels). Where a test also checks what is accepted, the comparison of text counts as equal and
  the rest of the test counts.
- the text of an error message is not compared, its type is;
- skipped: a test that needs a file from a model hub or a GPU, and what the tests themselves skip.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

XGRAMMAR_FILES = """
test_grammar_compiler test_grammar_matcher_basic test_grammar_matcher_ebnf test_grammar_matcher_json
test_grammar_matcher_json_schema test_grammar_matcher_macro test_grammar_matcher_regex
test_grammar_matcher_structural_tag test_grammar_parser test_grammar_parser_macro
test_grammar_regex_macro test_grammar_substring_macro test_grammar_union_concat
test_json_schema_converter test_json_schema_direct_converter test_lark test_max_chars
test_regex_converter test_speculative_decoding test_structural_tag_converter
test_token_bitmask_operations test_token_edge
""".split()
LLGUIDANCE_FILES = ["test_bitmask", "test_matcher"]


# --- the part that runs inside of pytest, as a plugin -------------------------------------------


class InternalText(str):
    """The text of a peer's internals, which Pawl does not have: equal to whatever it is compared
    with; what was compared is noted."""

    compared = False
    checks = 0

    def _note(self) -> bool:
        InternalText.compared = True
        return True

    def __eq__(self, other: object) -> bool:
        return self._note()

    def __ne__(self, other: object) -> bool:
        return not self._note()

    def __contains__(self, other: object) -> bool:
        return self._note()

    def __str__(self) -> str:
        return self

    __hash__ = str.__hash__


class InternalOnly(Exception):
    """The test asks for an internal pass of the peer."""


def _counting(function):
    def call(*args, **kwargs):
        InternalText.checks += 1
        return function(*args, **kwargs)

    return call


def _internal(name):
    def call(*args, **kwargs):
        raise InternalOnly(name)

    return call


class _Internals:
    def __getattr__(self, name):
        return _internal(name)


def _install_xgrammar() -> None:
    import pawl.compat.xgrammar as ours

    testing = ours.testing
    sys.modules["xgrammar"] = ours
    for name in ("exception", "structural_tag", "testing", "config", "grammar", "compiler",
                 "matcher", "tokenizer_info"):
        sys.modules[f"xgrammar.{name}"] = importlib.import_module(f"pawl.compat.xgrammar.{name}")
    for name in ("accept_string", "accept_token", "fill_next_token_bitmask"):
        setattr(ours.GrammarMatcher, name, _counting(getattr(ours.GrammarMatcher, name)))

    from_ebnf = ours.Grammar.from_ebnf

    def text_of(grammar):
        text = InternalText(str.__str__(grammar._key()))
        text.grammar = grammar
        return text

    def from_text(text, **kwargs):
        return text.grammar if isinstance(text, InternalText) else from_ebnf(text, **kwargs)

    compile_grammar = ours.GrammarCompiler.compile_grammar

    def compile_text(compiler, grammar, **kwargs):
        return compile_grammar(
            compiler, grammar.grammar if isinstance(grammar, InternalText) else grammar, **kwargs)

    ours.GrammarCompiler.compile_grammar = compile_text
    ours.Grammar.from_ebnf = staticmethod(from_text)
    ours.Grammar.__str__ = text_of
    for error in (ours.InvalidJSONError, ours.InvalidStructuralTagError):
        error.__str__ = lambda raised: InternalText(RuntimeError.__str__(raised))
    ours.Grammar.__repr__ = lambda grammar: "Grammar"

    def json_schema_to_ebnf(schema, *, json_format="json", **kwargs):
        if json_format != "json":
            raise InternalOnly("json_format")
        return text_of(ours.Grammar.from_json_schema(schema, **kwargs))

    testing._json_schema_to_ebnf = json_schema_to_ebnf
    testing._regex_to_ebnf = lambda regex, with_rule_name=True: text_of(
        ours.Grammar.from_regex(regex))
    testing._ebnf_to_grammar_no_normalization = lambda text, root="root": ours.Grammar.from_ebnf(
        text, root_rule_name=root)
    testing.GrammarFunctor = _Internals()
    for name in ("_generate_range_regex", "_generate_float_regex", "_print_grammar_fsms",
                 "_get_allow_empty_rule_ids", "_is_rule_fsm_accept_string"):
        setattr(testing, name, _internal(name))


def _install_llguidance() -> None:
    import pawl.compat.llguidance as ours

    sys.modules["llguidance"] = ours
    for name in ("numpy", "torch", "hf"):
        sys.modules[f"llguidance.{name}"] = importlib.import_module(
            f"pawl.compat.llguidance.{name}")


def pytest_configure(config) -> None:
    import pytest

    peer = os.environ.get("PAWL_PEER")
    if peer == "xgrammar":
        _install_xgrammar()
    elif peer == "llguidance":
        _install_llguidance()
    config.addinivalue_line("markers", "hf_token_required: needs a model hub")

    import pawl

    plain = pawl.PawlError.__str__
    pawl.PawlError.__str__ = lambda error: InternalText(plain(error))
    raises = pytest.raises

    def raises_any_text(*args, match=None, **kwargs):
        InternalText.checks += 1
        return raises(*args, **kwargs)

    pytest.raises = raises_any_text
    try:
        import transformers

        def no_hub(*args, **kwargs):
            pytest.skip("needs a tokenizer from a model hub")

        for name in ("AutoTokenizer", "PreTrainedTokenizerFast"):
            getattr(transformers, name).from_pretrained = no_hub
    except ImportError:
        pass


def pytest_collection_modifyitems(items) -> None:
    import pytest

    for item in items:
        if item.get_closest_marker("hf_token_required"):
            item.add_marker(pytest.mark.skip(reason="needs a model hub"))


def pytest_runtest_setup(item) -> None:
    InternalText.compared = False
    InternalText.checks = 0


_results = []


def pytest_runtest_logreport(report) -> None:
    if report.when == "setup" and report.outcome == "passed":
        return
    if report.when == "teardown":
        return
    outcome = report.outcome
    text = str(report.longrepr) if outcome == "failed" else ""
    if "KeyError: 'rules'" in text or "InternalOnly" in text or "No module named 'xgrammar." in text or ("E       assert" in text and " not in '{" in text):
        outcome = "left out"
    elif outcome == "passed" and InternalText.compared and not InternalText.checks:
        outcome = "left out"
    line = ""
    if outcome == "failed":
        line = getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or str(
            report.longrepr)[-300:]
    _results.append({"test": report.nodeid.split("::", 1)[-1], "outcome": outcome, "message": line.split("\n")[0][:300]})


def pytest_collectreport(report) -> None:
    if report.failed:
        _results.append({"test": "the file", "outcome": "failed", "message": str(report.longrepr)[-300:]})


def pytest_sessionfinish(session) -> None:
    path = os.environ.get("PAWL_PEER_RESULTS")
    if path:
        Path(path).write_text(json.dumps(_results))


# --- the command --------------------------------------------------------------------------------


def _run(peer: str, folder: Path, files, timeout: int, only: str):
    results = []
    for name in files:
        path = next(iter(sorted(folder.rglob(f"{name}.py"))), None)
        if path is None or (only and only not in name):
            if path is None:
                print(f"{name}.py: not there", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "results.json"
            environment = {**os.environ, "PAWL_PEER": peer, "PAWL_PEER_RESULTS": str(out),
                           "PYTHONPATH": os.pathsep.join(
                               [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
            command = [sys.executable, "-m", "pytest", "-qq", "-p", "peer_tests",
                       "--no-header", "-p", "no:cacheprovider", "--rootdir", scratch, str(path)]
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                      timeout=timeout, cwd=path.parent)
                output = done.stdout[-2000:] + done.stderr[-2000:]
            except subprocess.TimeoutExpired:
                output = f"{timeout} s are over"
            if out.exists():
                found = json.loads(out.read_text())
            else:
                found = [{"test": path.name, "outcome": "failed", "message": output[-300:]}]
            for result in found:
                result["file"] = path.name
            results += found
            count = collections.Counter(result["outcome"] for result in found)
            print(f"{path.name}: {dict(count)}", file=sys.stderr, flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--xgrammar", type=Path)
    parser.add_argument("--llguidance", type=Path)
    parser.add_argument("--out", type=Path, help="every case as JSON")
    parser.add_argument("--list", action="store_true", help="print the cases that fail")
    parser.add_argument("--only", default="", help="files whose name has this")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one file")
    flags = parser.parse_args()
    if not flags.xgrammar and not flags.llguidance:
        parser.error("name --xgrammar or --llguidance")
    everything = {}
    for peer, folder, files in (("xgrammar", flags.xgrammar, XGRAMMAR_FILES),
                                ("llguidance", flags.llguidance, LLGUIDANCE_FILES)):
        if not folder:
            continue
        results = _run(peer, folder.resolve(), files, flags.timeout, flags.only)
        everything[peer] = results
        if flags.out:
            flags.out.write_text(json.dumps(everything, indent=1))
        counts = collections.defaultdict(collections.Counter)
        for result in results:
            counts[result["file"]][result["outcome"]] += 1
            counts["all"][result["outcome"]] += 1
        print(f"{peer}: {'file':45s} passed failed skipped left out")
        for name in [*sorted(set(counts) - {"all"}), "all"]:
            count = counts[name]
            ran = count["passed"] + count["failed"]
            share = f"  {100 * count['passed'] / ran:.1f} %" if ran else ""
            print(f"{'':{len(peer) + 2}s}{name:45s} {count['passed']:6d} {count['failed']:6d} "
                  f"{count['skipped']:7d} {count['left out']:8d}{share}")
        if flags.list:
            for result in results:
                if result["outcome"] == "failed":
                    print(f"FAILED {result['test']}\n       {result['message']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
