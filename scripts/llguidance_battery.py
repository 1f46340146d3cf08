#!/usr/bin/env python3
"""Runs the accept and reject lists of llguidance's own tests (Rust) against Pawl.

    scripts/llguidance_battery.py DIR [--list] [--only NAME]

DIR is a checkout of llguidance; pawl must be importable. The Rust sources are read, not compiled: calls of
lark_str_test_many, lark_str_test, lark_ok, lark_err_test, json_test_many, json_err_test, json_schema_check and
check_lark_grammar whose arguments are literals, names of statics or values of #[case] and #[values]. Each text is fed
byte by byte to a matcher over a vocabulary of bytes; an accepted text must be taken whole and may end there, a refused one not.
"FINAL_REJECT:text" is a text that is taken but may not end. A trace is the text that a model wrote: it must be taken;
traces with tokens of the tests' own tokenizer are left out.
Prints passed and all for each kind, and with --list what differs.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import re
import sys
from pathlib import Path

CALLS = ("lark_str_test_many", "lark_str_test_many_quiet", "lark_str_test_many_ext", "lark_str_test", "lark_ok", "lark_err_test",
         "json_test_many", "json_err_test", "json_schema_check", "check_lark_grammar")
OPEN, CLOSE = "([{", ")]}"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


class NotRead(Exception):
    """An argument that is more than a literal."""


def string_at(text: str, at: int):
    """The string literal at a place and the place behind it, or None."""
    raw = re.compile(r'b?r(#*)"').match(text, at)
    if raw:
        end = text.index('"' + raw.group(1), raw.end())
        return text[raw.end():end], end + 1 + len(raw.group(1))
    if text[at] != '"':
        return None
    out, at = [], at + 1
    while text[at] != '"':
        if text[at] != "\\":
            out.append(text[at])
            at += 1
            continue
        c = text[at + 1]
        if c == "\n":
            at += 2
            while text[at].isspace():
                at += 1
        elif c == "u":
            end = text.index("}", at)
            out.append(chr(int(text[at + 3:end], 16)))
            at = end + 1
        elif c == "x":
            out.append(chr(int(text[at + 2:at + 4], 16)))
            at += 4
        else:
            out.append(ESCAPES[c])
            at += 2
    return "".join(out), at + 1


def skip_remark(text: str, at: int) -> int:
    if text.startswith("//", at):
        return (text.find("\n", at) + 1) or len(text)
    if text.startswith("/*", at):
        return text.index("*/", at) + 2
    return at


def split(text: str, comma: str = ",") -> list:
    """Parts between commas outside of brackets, strings and remarks."""
    parts, depth, begin, at = [], 0, [], 0
    while at < len(text):
        after = skip_remark(text, at)
        if after > at:
            at = after
            continue
        literal = string_at(text, at) if text[at] in '"rb' and not (at and (text[at - 1].isalnum() or text[at - 1] == "_")) else None
        if literal:
            begin.append(text[at:literal[1]])
            at = literal[1]
            continue
        if text[at] in OPEN:
            depth += 1
        elif text[at] in CLOSE:
            depth -= 1
        if text[at] == comma and depth == 0:
            parts.append("".join(begin).strip())
            begin = []
        else:
            begin.append(text[at])
        at += 1
    parts.append("".join(begin).strip())
    return [part for part in parts if part]


def bracket(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at a place."""
    depth = 0
    while at < len(text):
        after = skip_remark(text, at)
        if after > at:
            at = after
            continue
        literal = string_at(text, at) if text[at] in '"rb' and not (text[at - 1].isalnum() or text[at - 1] == "_") else None
        if literal:
            at = literal[1]
            continue
        character = re.compile(r"'(\\u\{\w+\}|\\.|[^\\'])'").match(text, at)
        if character:
            at = character.end()
            continue
        depth += (text[at] in OPEN) - (text[at] in CLOSE)
        at += 1
        if depth == 0:
            return at
    raise NotRead("a bracket")


def json_value(text: str, names: dict):
    text = text.strip()
    if text.startswith("{"):
        out = {}
        for member in split(text[1:bracket(text, 0) - 1]):
            key, value = split(member, ":")[0], None
            value = member[len(key):].strip().lstrip(":") if member.startswith(key) else None
            if value is None:
                raise NotRead(member)
            key = value_of(key.strip("() "), names)
            out[key] = json_value(value, names)
        return out
    if text.startswith("["):
        return [json_value(item, names) for item in split(text[1:bracket(text, 0) - 1])]
    return value_of(text, names)


def value_of(text: str, names: dict):
    text = text.strip()
    while text.startswith(("&", "*")):
        text = text[1:].strip()
    if not text:
        raise NotRead("nothing")
    literal = string_at(text, 0) if text[0] in '"rb' else None
    if literal:
        rest = text[literal[1]:].strip()
        if rest in ("", ".to_string()", ".into()"):
            return literal[0]
        raise NotRead(text)
    if text.startswith("json!"):
        body = text[5:].strip()
        if bracket(body, 0) != len(body):
            raise NotRead(text)
        return json_value(body[1:-1], names)
    if text.startswith("vec!"):
        text = text[4:]
    if text.startswith("["):
        return [value_of(item, names) for item in split(text[1:bracket(text, 0) - 1])]
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if re.fullmatch(r"-?\d[\d_]*(\.\d+)?([eE][-+]?\d+)?(_?[iuf]\d+)?", text):
        number = re.sub(r"_?[iuf]\d+$", "", text).replace("_", "")
        return float(number) if re.search(r"[.eE]", number) else int(number)
    if text in names:
        return names[text]
    raise NotRead(text[:60])


def cases_of(source: str):
    """(function, call, arguments) of every call whose arguments can be read; the others as None."""
    statics = {}
    for match in re.finditer(r"static (?:ref )?(\w+)\s*:[^=]*=\s*(?:LazyLock::new\(\|\|\s*)?(?=json!)", source):
        at = source.index("json!", match.start())
        try:
            statics[match.group(1)] = value_of(source[at:bracket(source, at + 5)], statics)
        except (NotRead, ValueError, KeyError, IndexError):
            pass
    for function in re.finditer(r"((?:#\[[^\n]*\n\s*)*?)fn (\w+)\s*\(", source):
        head = source[source.rfind("}\n", 0, function.start(2)) + 1:function.start(2)]
        head = re.sub(r"(?m)^\s*//.*$", "", head)
        parameters_end = bracket(source, function.end() - 1)
        parameters = source[function.end():parameters_end - 1]
        body_at = source.find("{", parameters_end)
        if body_at < 0 or ("#[test]" not in head and "#[rstest]" not in head):
            continue
        try:
            body = source[body_at:bracket(source, body_at)]
        except NotRead:
            print(f"the end of {function.group(2)} was not found", file=sys.stderr)
            continue
        fixed, varied, bad = [], [], False
        for parameter in split(parameters):
            name = re.search(r"(\w+)\s*:[^:]", parameter)
            values = re.search(r"#\[values", parameter)
            try:
                if values:
                    at = parameter.index("(", values.start())
                    varied.append((name.group(1), [value_of(v, statics) for v in split(parameter[at + 1:bracket(parameter, at) - 1])]))
                else:
                    fixed.append(name.group(1))
            except (NotRead, AttributeError):
                bad = True
        rows = []
        for case in re.finditer(r"#\[case(?:::\w+)?\(", head):
            rows.append(head[case.end():bracket(head, case.end() - 1) - 1])
        for row in rows or [""]:
            try:
                if bad:
                    raise NotRead("values")
                bound = dict(zip(fixed, [value_of(a, statics) for a in split(row)]))
                choices = [dict(zip([n for n, _ in varied], c)) for c in itertools.product(*[v for _, v in varied])]
            except (NotRead, KeyError, ValueError, IndexError):
                choices, bound = [None], {}
            for chosen in choices:
                names = {**statics, **bound, **(chosen or {})}
                for let in re.finditer(r"let (\w+)(?:\s*:[^=]+)?\s*=\s*", body):
                    try:
                        names[let.group(1)] = value_of(split(body[let.end():], ";")[0], names)
                    except (NotRead, KeyError, ValueError, IndexError):
                        pass
                for call in re.finditer(r"\b(" + "|".join(CALLS) + r")\(", body):
                    text = body[call.end():bracket(body, call.end() - 1) - 1]
                    try:
                        if chosen is None:
                            raise NotRead("a case")
                        yield function.group(2), call.group(1), [value_of(a, names) for a in split(text)]
                    except (NotRead, KeyError, ValueError, IndexError):
                        yield function.group(2), call.group(1), None


class Battery:
    def __init__(self) -> None:
        import pawl
        from pawl.compat.llguidance._matcher import _compile

        self.pawl = pawl
        self.compile = _compile
        # Ids as large as those of the tokenizer of llguidance's tests.
        tokens = [bytes([b]) for b in range(256)] + [b"<|end|>"] + [b""] * 36000
        self.vocabulary = pawl.Vocabulary(tokens, end_tokens=[256], special=list(range(256, len(tokens))))
        self.compiler = pawl.Compiler(self.vocabulary)
        self.counts = collections.defaultdict(collections.Counter)
        self.differ = []
        self.seen = {}

    def grammar(self, source: str):
        if source not in self.seen:
            try:
                self.seen[source] = self.compile(self.compiler, source)
            except self.pawl.PawlError as error:
                self.seen[source] = error
        return self.seen[source]

    def note(self, kind: str, right: bool, what: str) -> None:
        self.counts[kind]["passed" if right else "differ"] += 1
        if not right:
            self.differ.append(f"{kind} {what}")

    def text(self, kind: str, where: str, source: str, text: str, accepted: bool) -> None:
        grammar = self.grammar(source)
        if isinstance(grammar, Exception):
            # A grammar without any text refuses every one.
            self.note(kind, not accepted and grammar.code == "unsatisfiable", f"{where}: {grammar}")
            return
        final = text.startswith("FINAL_REJECT:")
        matcher = self.pawl.Matcher(grammar)
        data = text.removeprefix("FINAL_REJECT:").encode()
        taken = matcher.accept_bytes(data)
        whole = taken and matcher.accepting
        right = whole == accepted if not final else taken and not whole
        self.note(kind, right, f"{where}: {'accepts' if whole else 'refuses'} {text[:70]!r}")

    def run(self, where: str, call: str, args: list) -> None:
        wanted = {"lark_ok": 1, "lark_err_test": 2, "json_err_test": 2, "check_lark_grammar": 2}.get(call, 3)
        if len(args) < wanted:
            return
        if call.startswith("lark_str_test_many"):
            lark, passing, failing = args[-3:]
            for accepted, texts in ((True, passing), (False, failing)):
                for text in texts:
                    self.text("texts (Lark)", where, lark, text, accepted)
        elif call == "lark_str_test":
            self.text("texts (Lark)", where, args[0], args[2], args[1])
        elif call in ("lark_ok", "lark_err_test"):
            grammar = self.grammar(args[0])
            refused = isinstance(grammar, Exception)
            self.note("grammars (Lark)", refused == (call == "lark_err_test"),
                      f"{where}: {str(grammar)[:100] if refused else 'accepted'} {args[0][:60]!r}")
        elif call == "check_lark_grammar":
            text = "".join(args[1]).replace("‧", "").replace("≺EOS≻", "")
            if "<[" in args[0] or "<|" in args[0] + text or "✖" in text or "≺" in text or "↶" in text or "⟵" in text:
                return
            self.text("traces", where, args[0], text, True)
        elif call == "json_err_test":
            grammar = self.grammar(self.schema(args[0]))
            self.note("schemas", isinstance(grammar, Exception), f"{where}: {json.dumps(args[0])[:80]}")
        else:
            source = self.schema(args[0])
            pairs = [(args[1], args[2])] if call == "json_schema_check" else [(v, True) for v in args[1]] + [(v, False) for v in args[2]]
            for value, valid in pairs:
                text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
                self.text("texts (JSON)", where, source, text, valid)

    @staticmethod
    def schema(schema) -> str:
        return json.dumps({"grammars": [{"json_schema": schema}]})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    flags = parser.parse_args()
    battery = Battery()
    for path in sorted((flags.folder / "parser" / "tests").glob("*.rs")):
        if flags.only not in path.name:
            continue
        for function, call, args in cases_of(path.read_text()):
            if args is None:
                battery.counts["not read"][call] += 1
                continue
            battery.run(f"{path.stem}::{function}", call, args)
    total = collections.Counter()
    for kind, count in sorted(battery.counts.items()):
        if kind == "not read":
            print(f"{'not read':18s} {dict(count)}")
            continue
        total += count
        print(f"{kind:18s} {count['passed']} of {count['passed'] + count['differ']}")
    every = total["passed"] + total["differ"]
    print(f"{'all':18s} {total['passed']} of {every}  {100 * total['passed'] / max(1, every):.1f} %")
    if flags.list:
        for line in battery.differ:
            print("DIFFERS", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
