#!/usr/bin/env python3
"""Compares what chat templates of real models render with jinja2 as `transformers` sets it up.

    pip download --no-binary llama-cpp-python --no-deps --no-build-isolation llama-cpp-python
    tar xzf llama_cpp_python-*.tar.gz --wildcards '*/vendor/llama.cpp/models/*'
    python3 scripts/check_chat_templates.py FOLDER [--tool build/bin/chat_tool] [--verbose]

FOLDER holds NAME.jinja files: vendor/llama.cpp/models/templates of that distribution has 70. Each template renders eight
conversations: plain, with a system message, with tools, with calls and their results, with thoughts, with thinking
turned off and on, and with content in parts. Both sides have to give the same text, or both have to refuse. jinja2
gets the filters that some of these templates expect of their engine: `from_json` (json.loads).

Needs transformers and jinja2, and chat_tool built. Exits with 1 where a rendering differs.
"""
import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from transformers.utils import chat_template_utils

NOW = "2026-03-04T05:06:07"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city", "parameters": {
            "type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "description": "Name of the \"city\""},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "days": {"type": "integer", "default": 1}}}}},
    {"type": "function", "function": {
        "name": "add", "description": "Adds two numbers", "parameters": {
            "type": "object", "required": ["a"], "properties": {"a": {"type": "number"}, "b": {"type": ["number", "null"]}}}}},
]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "unit": "C"}}}]}
RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"t\": 3}"}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


CONVERSATIONS = {
    "plain": {"messages": [said("user", "Hi <b>there</b>")]},
    "system": {"messages": [said("system", "Be brief."), said("user", "Hi"), said("assistant", "Hello."), said("user", "Bye")]},
    "tools": {"messages": [said("system", "Be brief."), said("user", "Weather?")], "tools": TOOLS},
    "calls": {"messages": [said("user", "Weather?"), CALL, RESULT, said("assistant", "3 degrees"), said("user", "And now?")], "tools": TOOLS},
    "thoughts": {"messages": [said("user", "1+1?"), said("assistant", "2", reasoning_content="easy"), said("user", "2+2?")]},
    "off": {"messages": [said("user", "1+1?")], "chat_template_kwargs": {"enable_thinking": False}},
    "on": {"messages": [said("user", "1+1?")], "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"}},
    "parts": {"messages": [said("user", [{"type": "text", "text": "Hi"}, {"type": "text", "text": " you"}])]},
}


def reference(template, conversation):
    """The text, and None; or None, and why it was refused."""
    try:
        compiled = chat_template_utils._compile_jinja_template(template)  # pylint: disable=protected-access
        compiled.environment.globals["strftime_now"] = datetime.datetime.fromisoformat(NOW).strftime
        compiled.environment.filters["from_json"] = json.loads
        return compiled.render(messages=conversation["messages"], tools=conversation.get("tools"), documents=None, add_generation_prompt=True,
                               **SPECIAL, **conversation.get("chat_template_kwargs", {})), None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"[:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tool", default="build/bin/chat_tool")
    parser.add_argument("--verbose", action="store_true", help="also name what both refuse")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.jinja"))
    if not files:
        sys.exit(f"check_chat_templates.py: no NAME.jinja in {options.folder}")
    cases = [(file, name, conversation) for file in files for name, conversation in CONVERSATIONS.items()]
    lines = [json.dumps({"template": file.read_text(encoding="utf-8"), "special": SPECIAL, "now": NOW,
                         "input": {**conversation, "add_generation_prompt": True}}) for file, _, conversation in cases]
    run = subprocess.run([options.tool], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    equal = refused = 0
    for (file, name, conversation), line in zip(cases, run.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        want, why = reference(file.read_text(encoding="utf-8"), conversation)
        if ours.get("output") == want:
            equal += 1
            refused += want is None
            if want is None and options.verbose:
                print(f"{file.name} {name}: both refuse: {why}")
        elif want is None:
            print(f"{file.name} {name}: rendered, although jinja2 refuses: {why}")
        elif "error" in ours:
            print(f"{file.name} {name}: refused, although jinja2 renders: {ours['error']}")
        else:
            at = next((i for i, (a, b) in enumerate(zip(ours["output"], want)) if a != b), min(len(ours["output"]), len(want)))
            print(f"{file.name} {name}: differs at {at}: {ours['output'][at - 20:at + 40]!r}, jinja2: {want[at - 20:at + 40]!r}")
    print(f"{equal} of {len(cases)} renderings of {len(files)} templates equal, {refused} of them refused by both")
    sys.exit(equal < len(cases))


if __name__ == "__main__":
    main()
