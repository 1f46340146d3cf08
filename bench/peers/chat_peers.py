#!/usr/bin/env python3
"""Chat templates of real models, next to transformers: eight conversations through each template.

    bench/peers/chat_peers.py --templates llama.cpp/models/templates --tool build/bin/chat_tool

The templates are files *.jinja of a folder: the source distribution of llama-cpp-python has 70 in
vendor/llama.cpp/models/templates. The reference is jinja2 as transformers sets it up, with the
filter from_json, which three of llama.cpp's templates have. Texts must be equal, and what the
reference refuses must be refused. Exit code 1: something differs. Needs transformers and jinja2.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import make_chat_goldens as goldens

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather now, in \"C\" or <F>", "parameters": {
            "type": "object", "properties": {
                "city": {"type": "string", "description": "A city's name"},
                "unit": {"type": "string", "enum": ["C", "F"]}, "days": {"type": "integer", "default": 1}},
            "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "add", "description": "Adds", "parameters": {
            "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": ["number", "null"]}},
            "required": ["a"]}}},
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


CALL = assistant("", tool_calls=[{"id": "call00001", "type": "function", "function": {
    "name": "get_weather", "arguments": {"city": "Bern", "unit": "C"}}}])
RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"t\": 3}"}
SYSTEM = {"role": "system", "content": "Be brief."}
CONVERSATIONS = {
    "plain": {"messages": [user("Hi <b>there</b>")]},
    "system": {"messages": [SYSTEM, user("Hi"), assistant("Hello."), user("Bye")]},
    "tools": {"messages": [SYSTEM, user("Weather?")], "tools": TOOLS},
    "calls": {"messages": [user("Weather?"), CALL, RESULT, assistant("3 degrees"), user("And now?")], "tools": TOOLS},
    "thoughts": {"messages": [user("1+1?"), assistant("2", reasoning_content="easy"), user("2+2?")]},
    "off": {"messages": [user("1+1?")], "chat_template_kwargs": {"enable_thinking": False}},
    "on": {"messages": [user("1+1?")], "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"}},
    "parts": {"messages": [user([{"type": "text", "text": "Hi"}, {"type": "text", "text": " you"}])]},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", required=True, type=pathlib.Path)
    parser.add_argument("--tool", default="build/bin/chat_tool")
    options = parser.parse_args()
    names, cases = [], []
    for path in sorted(options.templates.glob("*.jinja")):
        for name, data in CONVERSATIONS.items():
            names.append(f"{path.name} {name}")
            cases.append(goldens.case(name, path.read_text(), data, False))
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    answers = subprocess.run([options.tool], input=lines, capture_output=True, text=True, check=True).stdout
    equal = refused = 0
    for name, case, line in zip(names, cases, answers.splitlines(), strict=True):
        answer = json.loads(line)
        if answer.get("output") == case.get("output"):
            equal += 1
            refused += "output" not in case
        else:
            print(name, "\n  reference", str(case.get("output"))[-200:], "\n  pawl     ", str(answer)[-200:])
    print(f"{equal} of {len(cases)} equal, {refused} of them refused by both")
    return 0 if equal == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
