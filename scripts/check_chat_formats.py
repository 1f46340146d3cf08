#!/usr/bin/env python3
"""Compares tests/data/chat/template_formats.txt with the chat templates of a source distribution.

    python3 scripts/check_chat_formats.py SDIST [--tool build/bin/format_tool]

SDIST is the unpacked source distribution of llama-cpp-python, or a folder of .jinja files. Each template must have a
line in the table, each line a template, and the format that Pawl recognises must be the one in the table. With --read
(needs the package jinja2) each template renders a conversation with two calls, or with one where it refuses two, and
Pawl's parser must find the same calls in it by the format of the table. Exits with 1 if anything differs. The tool is
the target `format_tool`.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/data/chat/template_formats.txt"
SCHEMAS = {
    "get": {"type": "object", "additionalProperties": False, "required": ["s"], "properties": {
        "n": {"type": "integer", "description": "a number"}, "o": {"type": "object", "description": "a map", "additionalProperties": {"type": "string"}},
        "s": {"type": "string", "description": "a text"}}},
    "add": {"type": "object", "additionalProperties": False, "required": [], "properties": {
        "a": {"type": "array", "items": {"type": "string"}, "description": "texts"}}},
}
TOOLS = [{"type": "function", "function": {"name": name, "description": "Does it", "parameters": schema}} for name, schema in SCHEMAS.items()]
CALLS = [("get", {"n": 3, "s": "a \"b\" \u00e9 <c>"}), ("add", {"a": ["x", "y"]})]


def read_table():
    rows = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split("\t")
            rows[name] = value
    return rows


def recognised(tool, files):
    run = subprocess.run([tool, *map(str, files)], capture_output=True, text=True, check=True)
    found = {}
    for line in run.stdout.splitlines():
        path, name, opens, closes = (line.split("\t") + ["", ""])[:4]
        found[pathlib.Path(path).name] = (name, opens, closes)
    return found


def conversation(calls, content, as_text):
    made = []
    for i, (name, arguments) in enumerate(calls):
        arguments = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
        made.append({"id": f"call0000{i}", "type": "function", "function": {"name": name, "arguments": arguments}})
    results = [{"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": "RESULT"} for call in made]
    return [{"role": "user", "content": "USER"}, {"role": "assistant", "content": content, "tool_calls": made}, *results]


def rendered(path):
    """What the template renders of calls behind its own prompt: the calls and the text; or the reason why it does not."""
    import jinja2
    import jinja2.ext
    import jinja2.sandbox

    def refuse(message):
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.globals.update(strftime_now=lambda form: "2026-01-01", raise_exception=refuse)
    environment.filters.update(from_json=json.loads, tojson=lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent))
    template = environment.from_string(re.sub(r"\{%-?\s*(?:end)?generation\s*-?%\}", "", path.read_text(encoding="utf-8")))

    def render(messages, prompt):
        return template.render(messages=messages, tools=TOOLS, bos_token="", eos_token="</s>", add_generation_prompt=prompt)

    reason = ""
    for calls in (CALLS, CALLS[:1]):
        for as_text in (False, True):
            try:
                messages = conversation(calls, "TEXT" if calls is CALLS else "", as_text)
                whole, prompt = render(messages, False), render(messages[:1], True)
            except Exception as error:  # a template may refuse what it is given, in its own words
                reason = reason or str(error)
                continue
            at = len(os.path.commonprefix([whole, prompt]))
            mark = whole.rfind("<", 0, at)
            if mark >= 0 and ">" not in whole[mark:at]:
                at = mark
            text = whole[at:].split("RESULT")[0]
            if '"s"' in text or "s=" in text or ">s<" in text or "=s>" in text or '[<s>' in text or "s:" in text:
                return calls, text
            reason = "the template does not render calls: the model's own text is all that it shows"
    return None, reason


def read_back(tool, name, text):
    tools = json.dumps([{"name": name, "parameters": schema} for name, schema in SCHEMAS.items()])
    run = subprocess.run([tool, "--read", name, tools], input=text, capture_output=True, text=True, check=True)
    return [(call["name"], call["arguments"]) for call in json.loads(run.stdout)["calls"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sdist", type=pathlib.Path)
    parser.add_argument("--tool", default=str(ROOT / "build/bin/format_tool"))
    parser.add_argument("--read", action="store_true", help="read what each template renders of calls")
    args = parser.parse_args()
    files = sorted(args.sdist.rglob("models/templates/*.jinja")) or sorted(args.sdist.glob("*.jinja"))
    if not files:
        sys.exit(f"{args.sdist}: no templates")
    table, found = read_table(), recognised(args.tool, files)
    wrong = [f"{name}: not in the table" for name in sorted(found.keys() - table.keys())]
    wrong += [f"{name}: in the table, but no such template" for name in sorted(table.keys() - found.keys())]
    unread, back = [], 0
    for path in files:
        name, opens, _ = found[path.name]
        if name == "!":
            unread.append(f"{path.name}: {opens}")
        elif path.name in table:
            wanted = "-" if table[path.name].startswith("no calls") else table[path.name]
            if name != wanted:
                wrong.append(f"{path.name}: {name}, and the table has {wanted}")
        if not args.read or table.get(path.name, "no calls").startswith("no calls"):
            continue
        calls, text = rendered(path)
        if calls is None:
            print(f"{path.name}: not rendered: {text}")
            continue
        got = read_back(args.tool, table[path.name], text)
        if calls[-1][0] not in text:  # the template renders the first call only
            calls = calls[:1]
        back += got == calls
        if got != calls:
            wrong.append(f"{path.name}: {text!r} is read as {got}")
    for line in unread:
        print("not read:", line)
    for line in wrong:
        print("wrong:", line)
    print(f"{len(files)} templates, {len(unread)} not read, {len(wrong)} wrong" + (f", calls of {back} read back" if args.read else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
