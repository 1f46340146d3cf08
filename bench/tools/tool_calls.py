#!/usr/bin/env python3
"""Right tool calls of a small model: 16 requests over 8 tools (requests.json), one call each.

    build/pawl serve --model SmolLM2-135M-Instruct.Q4_1.gguf --port 8080 &
    python3 bench/tools/tool_calls.py --url http://127.0.0.1:8080

Each request is a chat with all tools, tool_choice "required", parallel_tool_calls false and
temperature 0. A call is right if it is the only one, its tool is the right one, and its arguments
are the right ones. Texts are compared without case and without quotes, dots and spaces around them.
The right calls were written by hand before the first run. --json writes every call. The exit code
is 1 if fewer calls than --least are right. With --choice the model has no tool to choose: "named" is a
tool_choice that names the right one, "alone" a request that has only the right one.
"""

import argparse
import json
import pathlib
import sys
import urllib.request


def ask(url, body):
    request = urllib.request.Request(
        url + "/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def plain(value):
    if isinstance(value, str):
        return value.strip(" \t\n\"'.").casefold()
    return float(value) if isinstance(value, (int, float)) else value


def call_of(reply):
    """The name and the arguments of the one call, or None."""
    calls = reply["choices"][0]["message"].get("tool_calls") or []
    if len(calls) != 1:
        return None
    function = calls[0]["function"]
    try:
        return function["name"], json.loads(function["arguments"])
    except ValueError:
        return function["name"], None


def right(call, wanted):
    if call is None or call[0] != wanted["name"] or not isinstance(call[1], dict):
        return False
    given = {key: plain(value) for key, value in call[1].items()}
    return given == {key: plain(value) for key, value in wanted["arguments"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--json", help="file for every call")
    parser.add_argument("--requests", default="requests.json", help="of this folder; dev_requests.json is for trying changes")
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--choice", default="required", choices=["required", "named", "alone"])
    options = parser.parse_args()
    here = pathlib.Path(__file__).parent
    data = json.loads((here / options.requests).read_text())
    tools = [{"type": "function", "function": tool} for tool in data["tools"]]
    rows, names = [], 0
    for wanted in data["requests"]:
        right_one = [tool for tool in tools if tool["function"]["name"] == wanted["name"]]
        named = {"type": "function", "function": {"name": wanted["name"]}}
        reply = ask(
            options.url,
            {
                "messages": [{"role": "user", "content": wanted["text"]}],
                "tools": right_one if options.choice == "alone" else tools,
                "tool_choice": named if options.choice == "named" else "required",
                "parallel_tool_calls": False,
                "temperature": options.temperature,
                "seed": 1,
                "max_tokens": 96,
            },
        )
        call = call_of(reply)
        good = right(call, wanted)
        names += call is not None and call[0] == wanted["name"]
        rows.append({"text": wanted["text"], "right": good, "call": call,
                     "prompt_tokens": reply["usage"]["prompt_tokens"]})
        print("right" if good else "wrong", "|", wanted["text"], "|", json.dumps(call))
    count = sum(row["right"] for row in rows)
    print(f"{count} of {len(rows)} calls right; the right tool in {names}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"right": count, "tools": names, "rows": rows}, indent=1))
    return 1 if count < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
