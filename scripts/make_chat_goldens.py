#!/usr/bin/env python3
"""Makes tests/data/chat/goldens.json: what the reference implementation renders of chat templates.

The reference is jinja2 as `transformers` sets it up. The cases are the templates of tests/data/chat/templates,
written in the style of the model families, with many conversations each, a list of expressions that are easy to
get wrong, and random templates.

Usage: make_chat_goldens.py                          writes the file
       make_chat_goldens.py --compare TOOL [-n N] [--seed S]
                                                     N random templates through TOOL (build/bin/chat_tool)
Needs transformers and jinja2.
"""

import argparse
import copy
import datetime
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import jinja2
import transformers
from transformers.utils import chat_template_utils

FOLDER = Path(__file__).resolve().parent.parent / "tests/data/chat"
NOW = "2025-03-04T09:06:53"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
RANDOM_GOLDENS = 260
# Jinja makes slices of constants that have none undefined, where those of variables are errors.
FOLDED = re.compile(r"(?:[\d.]+(?:e\d+)?|none|true|false|\{[^{}]*\})\)*\[[^\]]*:")


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(NOW)


chat_template_utils.datetime = FixedTime


def compiled(template):
    """The template with the one filter that llama.cpp has and transformers has not."""
    environment = chat_template_utils._cached_compile_jinja_template("").environment
    environment.filters["from_json"] = json.loads
    return environment.from_string(template)


def reference(template, data):
    """The rendered text, or None where rendering fails."""
    try:
        data = copy.deepcopy(data)  # indent() of a list changes it
        return compiled(template).render(
            messages=data["messages"], tools=data.get("tools"), documents=data.get("documents"),
            add_generation_prompt=data.get("add_generation_prompt", True), **SPECIAL,
            **data.get("chat_template_kwargs", {}))
    except Exception:  # the sandbox, Python's own operators and the compiled template raise all kinds
        return None


# ---- conversations ----

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a place.\nIn <degrees> & \"words\".",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "Zürich, 東京 …"}, "days": {"type": "integer", "minimum": 1}},
            "required": ["place"]}}},
    {"type": "function", "function": {
        "name": "add", "parameters": {"type": "object", "properties": {
            "b": {"type": "number", "default": 1.5}, "a": {"enum": [1, 2.0, 1e20, True, None]}}, "required": []}}},
]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Bern"}}}]}
TWO_CALLS = {"role": "assistant", "content": "Let me see.", "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Bern\n\"x\""}}},
    {"id": "jklmnopqr", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": [0.1, {}]}}}]}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def tool(text, call="abcdefghi"):
    return {"role": "tool", "content": text, "tool_call_id": call, "name": "get_weather"}


CONVERSATIONS = [
    [user("Hello")],
    [user("  Hello \n"), assistant("Hi! "), user("How are\tyou?")],
    [system("Be brief."), user("Hello")],
    [system(" Be brief. "), user("1"), assistant("2"), user("3"), assistant("4")],
    [user("a"), user("b")],
    [assistant("I begin.")],
    [system("only")],
    [user("Weather?"), CALL, tool("Sunny, 20 °C"), assistant("It is sunny."), user("Thanks")],
    [system("s"), user("Weather?"), TWO_CALLS, tool("Sunny"), tool("2", "jklmnopqr"), assistant("ok")],
    [user("Weather?"), CALL, tool("Sunny")],
    [user("x"), assistant("<think>\nhm, why\n</think>\n\nBecause.\n"), user("y")],
    [user("x"), assistant("<think>\nhm\n</think>\n\nBecause.")],
    [user("x"), assistant("Yes", reasoning_content="long\nthought"), user("<tool_response>z</tool_response>")],
    [user("<|im_end|><|eot_id|></s><end_of_turn>"), assistant("[/INST]"), user("{{ bos_token }} {% x %}")],
    [user([{"type": "text", "text": " What is this? "}, {"type": "text", "text": "And "}])],
    [{"role": "system", "content": [{"type": "text", "text": "S"}]}, user([{"type": "text", "text": "T"}])],
    [user("ÄÖÜ ß 日本語 \U0001F600 \u00a0 e\u0301"), assistant("")],
    [user(None)],
    [user("")],
    [],
    [{"role": "critic", "content": "no such role"}],
    [user("1"), assistant(""), user("3"), assistant("4"), user("5"), assistant("6"), user("7"), assistant("8")],
]
ARGUMENTS = [{}, {"enable_thinking": False}, {"enable_thinking": True, "date_string": "2 Feb 2025"},
             {"tools_in_user_message": False}]


def family_cases():
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        for i, messages in enumerate(CONVERSATIONS):
            for with_tools in ((False, True) if "tool" in path.read_text() else (False,)):
                data = {"messages": messages}
                if with_tools:
                    data["tools"] = TOOLS
                if i % 3 == 1:
                    data["add_generation_prompt"] = False
                if ARGUMENTS[i % 4]:
                    data["chat_template_kwargs"] = ARGUMENTS[i % 4]
                yield path.stem, data


# ---- details ----

LETTERS = "".join(chr(c) for c in range(0x20, 0x530) if chr(c).isalpha() and c not in (
    0x130, 0x149, 0x1F0, 0x390, 0x3A3, 0x3B0) and not (0x1C4 <= c <= 0x1CC or 0x1F1 <= c <= 0x1F3))
FEW = [user("Hello"), assistant("World")]
DETAILS = [
    # White space around tags.
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a  {%- if true -%}  b  {%- endif -%}  c", "{% if true %}\n\nx{% endif %}\n\n",
    "  {%+ if true %}x{% endif +%}\ny", "a {# c #}\n b\n   {# c #}\nd {#- c -#} e", "  {{ 1 }}  \n  {{- 2 -}}  \n 3", "x\r\ny\rz\n",
    "{% raw %}\n {{ a }} {% endraw %}\n b", "a {%- raw -%} {% b %} {%- endraw -%} c", "x {% if true %}{% endif %} \n y",
    "\n{% if true %}a{% endif %}", "{{ '}}' }}{{ {'a': {'b': 1}} }}{{ '%}' }}", "{% set x = 1 %}\n\n{{ x }}", "{{ 1 }}\n{{ 2 }}\n",
    "a{{ 'x' -}}\n\t b {%- set y = 1 +%}\nc", "\u00a0{%- if true %} z{% endif %}", "{", "{ {", "a { b }} %} #}", "{#{##}",
    # Operators.
    "{{ 1 + 2 * 3 ** 2 // 4 % 5 }}", "{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 // -2 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
    "{{ 1 / 2 }} {{ 4 / 2 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }}", "{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}", "{{ 1 ~ 2 ~ none ~ true ~ [1, 'a'] }}",
    "{{ 'a' + 'b' ~ 1 + 2 }}", "{{ 1 + 2 ~ 3 }}", "{{ 'ab' * 3 }}{{ 2 * [1] }}", "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 < 3 > 2 == 2 }}",
    "{{ not 1 == 2 }} {{ not true and false }} {{ not (true and false) }}", "{{ 1 if false }}|{{ 1 if true else 2 }}",
    "{{ 1 if false else 2 if false else 3 }}", "{{ (1 if false else 2) if true else 3 }}", "{{ 'x' if 0 or 1 and 0 else 'y' }}",
    "{{ [1 if true else 2, 3] }} {{ {'a': 1 if false else 2}['a'] }}", "{{ 'a' in 'abc' }} {{ 'd' not in 'abc' }} {{ 1 in [1, 2] }} {{ 'k' in {'k': 1} }}",
    "{{ 0 or 'x' }} {{ 1 and '' }} {{ none or false }}", "{{ true + true }} {{ true == 1 }} {{ 1 == 1.0 }} {{ '1' == 1 }}",
    "{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1.5e-5 }} {{ 0.0001 }} {{ 100000.0 * 10 }} {{ 1e300 * 1e10 }} {{ 0.1 + 0.2 }} {{ -0.0 }}",
    "{{ 1_000 }} {{ 1_0.5_0 }}", "{{ [1, 2.5, 'a\\'b', \"q\\\"\", none, true, [], {}, ()] }}", "{{ (1,) }} {{ (1, 2) }} {{ () }}",
    "{{ {'a': [1], 2: 'b', none: (1,)} }}", "{{ 'a\\n\\t\\x41\\u00e9\\\\' }} {{ ['\\x01\\x7f\\u00a0\\u200b\\U0001F600é'] }}",
    "{{ 'abc' 'def' }}", "{{ 2 + '2' }}", "{{ 'x' < 1 }}", "{{ 1 / 0 }}", "{{ [1] + (2,) }}", "{{ -'a' }}", "{{ 1, 2 }}", "{{ [1, 2,] }}",
    "{{ -1|abs }} {{ -1.5|abs }} {{ (-3)|string|length }}", "{{ not x is defined }} {{ x is not defined }} {{ x is defined and y }}",
    "{{ 5 is divisibleby 5 }} {{ 3 is odd }} {{ 3 is even }} {{ 'a' is eq 'a' }} {{ 2 is gt(1) }} {{ 1 is in [1] }}",
    # Undefined.
    "[{{ x }}]", "{{ x.y }}", "{{ x['y'] }}", "{{ messages[0].nothing }}", "{{ messages[0].nothing.deeper }}", "{{ messages[9] }}",
    "{{ x + 1 }}", "{{ x ~ 'a' }}", "{% for i in x %}a{% else %}none{% endfor %}", "{{ x == y }} {{ x == none }} {{ x is none }}",
    "{{ x | length }} {{ x | list }} {{ x | trim }} {{ x | default('d') }} {{ '' | default('d') }} {{ '' | d('d', true) }}",
    "{{ x is string }} {{ x is iterable }} {{ x is sequence }} {{ x is mapping }} {{ x is number }}", "{{ 'a' in x }}", "{{ x | tojson }}",
    "{{ x | upper }}{{ x | join }}", "{{ [x] }}", "{{ x() }}", "{{ none.a }}|{{ none['a'] }}|{{ 1.5.a }}", "{{ x < 1 }}", "{{ x[0:1] }}",
    # Strings.
    "{{ 'aébc'[1] }}{{ 'aébc'[-1] }}{{ 'aébc'[1:3] }}{{ 'aébc'[::-1] }}{{ 'aébc'[::2] }}{{ 'abc'[9] }}{{ 'abc'[5:] }}{{ 'abc'[-2:] }}{{ 'abc'[:-1] }}",
    "{{ [1,2,3,4][1:-1] }}{{ [1,2,3,4][::-2] }}{{ (1,2,3)[1:] }}{{ [1,2,3][-9:9] }}{{ [1,2][2:1] }}", "{{ 'abc'[1:2:0] }}", "{{ 'a' 'b'[0] }}",
    "[{{ ' \\t\\n a b \\u2003'.strip() }}] [{{ 'xxaxx'.strip('x') }}] [{{ 'xyax'.lstrip('yx') }}] [{{ 'ab\\n\\n'.rstrip('\\n') }}]",
    "{{ ' a  b c '.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.split(none, 1) }} {{ ' a b  c '.rsplit(none, 1) }}",
    "{{ ''.split() }} {{ ''.split(',') }} {{ 'a'.split('') }}", "{{ 'a\\nb\\r\\nc\\x0bd\\u2028e\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'a'.startswith(1) }}",
    "{{ 'hello wOrld'.title() }} {{ \"they're x-ray (a) 2b\".title() }} {{ \"they're x-ray (a) 2b <c\" | title }} {{ 'hELLO wORLD'.capitalize() }} {{ 'éa'|capitalize }}",
    "{{ 'aXbXc'.replace('X', '--') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '.') }} {{ 'aaa' | replace('a', 'b', 1) }} {{ 12 | replace(1, 3) }}",
    "{{ 'banana'.find('na') }} {{ 'banana'.rfind('na') }} {{ 'é-x'.find('x') }} {{ 'banana'.count('an') }} {{ 'abc'.count('') }} {{ 'a'.find('b') }}",
    "{{ '-'.join(['a', 'b']) }} {{ 'ab'.join('xyz') }} {{ 'pre-x'.removeprefix('pre-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'x'.removesuffix('') }}",
    "{{ '12'.isdigit() }} {{ ''.isdigit() }} {{ '1a'.isdigit() }} {{ ' \\n'.isspace() }}", "{{ 'abc'.nothing() }}", "{{ 'abc'.upper is defined }}",
    "{{ 1 | upper }}", "{{ text | upper }}|{{ text | lower }}", "{{ 'STRASSE ß ſ ıÿ' | upper }}",
    "{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent('> ', blank=true) }}|{{ 'a\\n' | indent }}",
    # Filters.
    "{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [1, 2] | sort(reverse=true) }} {{ [1, 'a'] | sort }}",
    "{{ messages | sort(attribute='content') | map(attribute='role') | list }}", "{{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }}",
    "{{ [1, 1, 'a', 'A'] | unique | list }} {{ 'abca' | unique | join }}", "{{ [1, 2, 3] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }}",
    "{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [] | first }} {{ 'abc' | first }} {{ {'k': 1} | first }} {{ 'abc' | last }} {{ [] | last is defined }}",
    "{{ [1, 2] | reverse | list }} {{ 'abc' | reverse }} {{ [1, 0, 2] | select | list }} {{ [1, 2, 3] | select('odd') | list }} {{ [1, 2, 3] | reject('gt', 1) | list }}",
    "{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | join('|') }} {{ messages | rejectattr('nothing') | list | length }}",
    "{{ ['a', 'b'] | map('upper') | join(',') }} {{ [[1], [2, 3]] | map('length') | list }} {{ [{}] | map(attribute='a', default=7) | list }}",
    "{{ [{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | list }} {{ [[5, 6]] | map(attribute=1) | list }} {{ [[5, 6]] | map(attribute='1') | list }}",
    "{{ '12' | int }} {{ ' 1_2 ' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ '3.9' | int }} {{ none | int }} {{ true | int }} {{ '1e3' | int }} {{ -0.5 | int }}",
    "{{ '1.5' | float }} {{ 'x' | float }} {{ 2 | float }} {{ 'x' | float(1) }}", "{{ {'a': 1} | items | list }} {{ {'a': 1, 'b': 2} | length }} {{ 'é' | length }} {{ 3 | length }}",
    "{{ {'a': 1}.items() | list }} {{ {'a': 1}.keys() | list }} {{ {'a': 1}.values() | list }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }}",
    "{{ {'items': 1}.items is mapping }} {{ {'items': 1}['items'] }} {{ {'a': 1}['items'] is defined }}", "{{ [1, 2].index(2) }} {{ [1, 1].count(1) }}", "{{ [1].append(2) }}",
    "{{ ([1] | map('string')) and 'true' }} {{ ([] | select) and 'true' }}", "{% set g = [1, 2] | map('string') %}{% for a in g %}{{ a }}{% endfor %}{% for a in g %}{{ a }}{% endfor %}.",
    "{{ [1, 2] | join }} {{ [1, none, 'a'] | join(', ') }} {{ 'abc' | join('-') }} {{ messages | join('+', attribute='role') }}", "{{ [1] | map('nothing') | list }}", "{{ 1 | nothing }}",
    "{{ [2, 1] | list | string }} {{ 'x' | safe }} {{ 5 | default(1) }} {{ 'a' | list }} {{ {'a': 1} | list }}",
    # min, max, from_json, format, safe.
    "{{ [3, 1, 2] | min }} {{ [3, 1, 2] | max }} {{ ['b', 'A'] | min }} {{ ['b', 'A'] | max(case_sensitive=true) }} {{ ['a', 'A'] | max }} {{ [] | min is defined }} {{ messages | max(attribute='content') | tojson }}",
    "{{ [1, 'a'] | min }}", "{{ [1, 2.5] | max }} {{ [2.5] | min }} {{ 'hello' | min }} {{ 5 | min }}", "{{ x | max }}|{{ [true, 0] | min }}",
    "{{ '{\"a\": [1, 2.5, null, true, \"é<|x|>\"]}' | from_json }} {{ '[1]' | from_json | first }} {{ ('{\"a\": 1}' | from_json).a + 1 }}", "{{ 'x' | from_json }}", "{{ 5 | from_json }}", "{{ x | from_json }}",
    "{{ '{} {}'.format('a', 1) }} {{ '{1}{0}'.format('a', 'b') }} {{ '{a}'.format(a=[1, 'x']) }} {{ '{{}}'.format() }} {{ 'a}}b{{'.format(1) }}", "{{ '{'.format(1) }}", "{{ '}'.format(1) }}", "{{ '{}{0}'.format(1) }}", "{{ '{}'.format() }}", "{{ '{b}'.format(a=1) }}",
    "{{ '{0.role} {0[content]} {1[0]} {1[1][k]}'.format(messages[0], [1, {'k': 'v'}]) }} {{ '{!r} {!s}'.format('a', none) }} {{ '[{:>5}] [{:<5}] [{:^5}] [{:*^7}] [{:.2}] [{:5}]'.format('a', 'b', 'c', 'd', 'efg', 'é') }}",
    "{{ '[{:5}] [{:<5}] [{:05d}] [{:+d}] [{: d}] [{:,}] [{:_}] [{:x}] [{:#x}] [{:b}] [{:#o}] [{:X}] [{:=+6}]'.format(1, 2, -3, 4, 5, 1234567, 1234567, 255, 255, 5, 8, 254, 7) }}",
    "{{ '{:.2f} {:f} {:e} {:g} {:%} {:.0f} {:,.2f} {:8.3f} {:08.2f} {:+.1f} {:10}'.format(1.005, 2, 12345.678, 0.00001, 0.25, 2.5, 1234567.891, 3.14159, -2.5, 1.25, 1.5) }}", "{{ '{:>{}}|{:{w}}'.format('a', 4, 'b', w=3) }}",
    "{{ '{:5}|{}|{:d}'.format(true, true, true) }}", "{{ '{:d}'.format('a') }}", "{{ '{:d}'.format(1.5) }}", "{{ '{:s}'.format(1) }}", "{{ '{:5}'.format(none) }}", "{{ '{:5}'.format([1]) }}", "{{ '{:05}|{:>05}'.format('a', 'b') }}", "{{ '{}'.format(x) }}", "{{ '{0.a}'.format({'a': 1}) }} {{ '{0[a]}'.format({}) }}",
    "{{ '{:q}'.format(1) }}", "{{ '{!x}'.format(1) }}", "{{ '{:.3}'.format(5) }}", "{{ '{:,}'.format('a') }}",
    "{{ '<b>' | safe + '<i> & \"q\" ' + \"it's\" }} {{ '<i>' + '<b>' | safe }} {{ '<b>' | safe ~ '<i>' }} {{ ('<b>' | safe) * 2 + '<' }} {{ ('<b>' | safe)[0] + '<' }} {{ ('a<b>' | safe)[1:] + '<' }}",
    "{% set m = ' <A> ' | safe %}{{ m.strip() + '<' }} {{ m | trim + '<' }} {{ m | upper + '<' }} {{ m.lower() + '<' }} {{ m.replace('A', '<') }} {{ m | replace('A', '<') + '<' }} {{ (m | title) + '<' }} {{ m | string + '<' }} {{ m | indent + '<' }} {{ [m] }} {{ m | tojson + '<' }}",
    "{% set m = ', ' | safe %}{{ m.join(['<', '>' | safe]) }} {{ ['<', m] | join + '<' }} {{ m.split(',')[1] + '<' }} {{ 'a<'.join(['b', m]) + '<' }} {{ m == ', ' }} {{ m is string }} {{ m in 'a, b' }} {{ m.removeprefix(',') + '<' }} {{ m.splitlines()[0] + '<' }}",
    "{{ ('<{}>' | safe).format('<') }} {{ ('{}' | safe).format('<' | safe) }} {{ ('{!s}' | safe).format('<' | safe) }} {{ '{}'.format('<' | safe) + '<' }} {{ ('{:>4}' | safe).format('<') }}", "{{ ('{:>4}' | safe).format('<' | safe) }}", "{{ 5 | safe + '<' }} {{ x | safe + '<' }}", "{{ '<' | safe + 5 }}",
    # JSON.
    "{{ messages | tojson }}", "{{ messages | tojson(indent=2) }}", "{{ {'b': [1, 2.0, 'é<>&\\'\"', none, true], 'a': {}} | tojson }} {{ {'b': 1, 'a': [ ] } | tojson(sort_keys=true, indent=1) }}",
    "{{ [1, {'a': 2}] | tojson(separators=(',', ':')) }} {{ 'é\\u2028\\x7f\\x01\\b\\f\U0001F600' | tojson }} {{ 'é\U0001F600\\x7f' | tojson(ensure_ascii=true) }}",
    "{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }} {{ 1e400 | tojson }} {{ (1, 2) | tojson }} {{ data | tojson }} {{ data }}", "{{ {} | tojson(indent=2) }}{{ [[]] | tojson(indent=2) }}",
    "{{ namespace(a=1) | tojson }}", "{{ {'a': [1, 2]} | tojson(indent='--') }}",
    # Statements.
    "{% for i in range(3) %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}", "{% for i in [1,2,3] if i != 2 %}{{ loop.index }}{{ loop.length }}{{ i }} {% endfor %}",
    "{% for i in [] %}a{% else %}b{% endfor %}{% for i in [1] if i > 1 %}a{% else %}c{% endfor %}", "{% for i in [1] %}{% continue %}{% else %}b{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}c{% endfor %}{% for i in [1] %}{% break %}{% else %}d{% endfor %}", "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}",
    "{% for i in [1,2,3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.cycle('a', 'b') }} {% endfor %}",
    "{% for i in [1,2] %}{% for j in [1,2] %}{{ loop.depth0 }}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}", "{% set x = 1 %}{% for i in [1] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}", "{% set a, b = [1] %}", "{% set x.y = 1 %}", "{% set x %}a{{ 1 }}{% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y }}]",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}.", "{% for i in [1,2,3] %}{% for j in [1,2,3] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}{% endfor %}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 5) }}|{{ m(1, c=7) }}|{{ m() }}|{{ m(b=1, a=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x=2) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}", "{% macro m() %} a {% endmacro %}{{ m() | trim }}{{ m() ~ 'b' }}{{ m() | length }}", "{% generation %}a{% set q = 1 %}{% endgeneration %}{{ q }}",
    "{{ raise_exception('no') }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %y %I %p %% %F %T') }}", "{{ dict(a=1, b=2) }} {{ dict({'a': 1}, b=3) }} {{ range(5, 1, -2) | list }} {{ range(3)[1] }} {{ range(0) | list }}",
    "{% if x %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}", "{% if [] %}a{% elif {} %}b{% elif '' %}c{% elif 0.0 %}d{% elif none %}e{% else %}f{% endif %}",
    # Errors of syntax.
    "{{ 1 +", "{{ 1 + }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% for x %}{% endfor %}", "{% nothing %}", "{{ (1 }}", "{{ 1) }}", "{{ a b }}", "{% else %}", "{{ 'a }}", "{# a", "{% raw %} x", "{{ [1 2] }}",
    "{{ {'a' 1} }}", "{{ f(a=1, 2) }}", "{{ x | }}", "{{ x is }}", "{{ x. }}", "{{ 1 if }}", "{% set %}", "{% set 1 = 2 %}", "{% for 1 in x %}{% endfor %}", "{% break %}", "{% macro %}{% endmacro %}", "{% if 1 %}{% endfor %}", "{{ }}",
    "{{ a ? b }}", "{{ not }}", "{{ 1 and }}", "{{ == 1 }}", "{% if a = 1 %}{% endif %}", "{{ $ }}", "{{ 01 }}", "{{ 'a' is defined is string }}",
    # What is undefined can be called, and is no number.
    "{{ x is callable }}{{ x is not callable }}{{ 1 is callable }}", "{{ x|int }}", "{{ x|int(5) }}", "{{ x|float(2) }}", "{{ none|int }}{{ 'z'|int(5) }}{{ []|float }}",
]


def detail_cases():
    data = {"messages": FEW, "chat_template_kwargs": {
        "text": LETTERS, "data": {"big": 18446744073709551616, "n": -5, "f": 1.0, "e": 1e-7, "s": "x\ny", "l": [[], {}, None]}}}
    for template in DETAILS:
        yield template, data


# ---- random templates ----

class Writer:
    """Writes expressions of a wanted type, most of them sensible."""

    def __init__(self, draw):
        self.draw = draw
        self.names = {"str": ["s", "message.content", "message.role", "messages[0].content"], "int": ["n", "loop.index", "messages|length"],
                      "list": ["items", "messages"], "dict": ["d", "message"], "bool": ["add_generation_prompt", "loop.last"]}

    def pick(self, *options):
        return self.draw.choice(options)

    def value(self, kind, depth):
        if self.draw.random() < 0.03:
            kind = self.pick("str", "int", "list", "dict", "bool", "float", "none")
        if depth <= 0 or self.draw.random() < 0.15:
            return self.leaf(kind)
        v = lambda k: self.value(k, depth - 1)
        text = {
            "str": lambda: self.pick(
                lambda: f"{v('str')} + {v('str')}", lambda: f"{v('str')} ~ {v('int')}", lambda: f"({v('str')})|{self.pick('trim', 'upper', 'lower', 'title', 'capitalize', 'string', 'reverse')}",
                lambda: f"({v('str')})[{self.bound()}:{self.bound()}]", lambda: f"({v('str')})[{self.draw.randint(-3, 3)}]", lambda: f"({v('list')})|join({self.leaf('str')})",
                lambda: f"({v('str')}).{self.pick('strip', 'lstrip', 'rstrip')}({self.pick('', self.leaf('str'))})", lambda: f"({v('str')}).replace({self.leaf('str')}, {self.leaf('str')})",
                lambda: f"({v('str')} if {v('bool')} else {v('str')})", lambda: f"({v(self.pick('str', 'int', 'list', 'dict', 'bool', 'float'))})|string", lambda: f"({v(self.pick('str', 'int', 'list', 'dict'))})|tojson",
                lambda: f"({v('str')} or {v('str')})", lambda: f"({v('str')})|indent({self.draw.randint(0, 3)})", lambda: f"({v('list')})|tojson(indent=2)", lambda: f"x|default({v('str')})",
                lambda: f"({v('str')}) * {self.draw.randint(-1, 3)}", lambda: f"({v('str')}).split({self.leaf('str')})[{self.pick(0, -1)}]", lambda: f"({v('list')})|first|string")(),
            "int": lambda: self.pick(
                lambda: f"{v('int')} {self.pick('+', '-', '*')} {v('int')}", lambda: f"({v('int')}) // {self.draw.randint(-3, 3)}", lambda: f"({v('int')}) % {self.draw.randint(-4, 4)}", lambda: f"-({v('int')})",
                lambda: f"({v(self.pick('str', 'list', 'dict'))})|length", lambda: f"({v('str')})|int", lambda: f"({v('int')} if {v('bool')} else {v('int')})", lambda: f"({v('str')}).find({self.leaf('str')})",
                lambda: f"({v('str')}).count({self.leaf('str')})", lambda: f"({v('int')})|abs", lambda: f"({v('float')})|int")(),
            "float": lambda: self.pick(lambda: f"{v('int')} / {v('int')}", lambda: f"{v('float')} {self.pick('+', '-', '*')} {v('int')}", lambda: f"({v('int')})|float", lambda: f"({v('float')}) // 2")(),
            "list": lambda: self.pick(
                lambda: f"[{v('str')}, {v('int')}]", lambda: f"{v('list')} + {v('list')}", lambda: f"({v('list')})[{self.bound()}:{self.bound()}]", lambda: f"({v('str')}).split({self.pick('', self.leaf('str'))})",
                lambda: f"({v('list')})|map('string')|list", lambda: f"({v('list')})|map('{self.pick('upper', 'trim', 'length', 'tojson')}')|list", lambda: f"({v('list')})|{self.pick('select', 'reject')}('{self.pick('string', 'mapping', 'number', 'defined')}')|list",
                lambda: f"({v('list')})|reverse|list", lambda: f"({v('dict')}).{self.pick('items', 'keys', 'values')}()|list", lambda: f"({v('dict')})|dictsort", lambda: f"messages|map(attribute='{self.pick('role', 'content', 'x')}')|list",
                lambda: f"messages|{self.pick('selectattr', 'rejectattr')}('role', '{self.pick('eq', 'equalto', 'ne', 'in')}', {self.pick(repr('user'), repr('assistant'), '[' + repr('user') + ']')})|list", lambda: f"({v('str')})|list",
                lambda: f"range({self.draw.randint(-1, 4)})|list", lambda: f"({v('list')})|map('string')|sort", lambda: f"({v('list')})|map('string')|unique|list", lambda: f"({v('list')})|batch(2)|list", lambda: f"({v('str')}).splitlines()")(),
            "dict": lambda: self.pick(lambda: f"{{'a': {v('str')}, 'b': {v('int')}}}", lambda: f"dict(a={v('int')}, z={v('list')})", lambda: f"({v('dict')} if {v('bool')} else {v('dict')})", lambda: f"{{{self.leaf('str')}: {v('dict')}}}")(),
            "bool": lambda: self.pick(
                lambda: f"{v('int')} {self.pick('<', '<=', '>', '>=', '==', '!=')} {v('int')}", lambda: f"{v('str')} {self.pick('==', '!=', 'in', 'not in')} {v('str')}", lambda: f"({v('bool')} {self.pick('and', 'or')} {v('bool')})", lambda: f"(not {v('bool')})",
                lambda: f"({v(self.pick('str', 'int', 'list', 'dict', 'none'))}) is {self.pick('', 'not ')}{self.pick('string', 'mapping', 'iterable', 'sequence', 'number', 'integer', 'float', 'boolean', 'none', 'defined', 'undefined', 'true', 'false', 'callable')}",
                lambda: f"({v('int')}) is {self.pick('odd', 'even', 'divisibleby 3')}", lambda: f"{v('str')} in {v('list')}", lambda: f"({v('str')}).{self.pick('startswith', 'endswith')}({self.leaf('str')})", lambda: f"{v('int')} < {v('int')} <= {v('int')}",
                lambda: f"{self.pick('x', 's', 'message.tool_calls', 'd.a')} is {self.pick('defined', 'undefined')}", lambda: f"{v('list')} == {v('list')}", lambda: f"({v('str')}).{self.pick('isdigit', 'isspace')}()")(),
            "none": lambda: "none",
        }[kind]()
        return f"({text})" if self.draw.random() < 0.35 else text

    def bound(self):
        return self.pick("", "", str(self.draw.randint(-4, 4)))

    def leaf(self, kind):
        if kind in self.names and self.draw.random() < 0.5:
            return self.draw.choice(self.names[kind])
        return {"str": lambda: self.pick("''", "'a'", "' b '", "'aXbX'", "'é日'", "'\\n'", "'user'", "\"it's\"", "','"), "int": lambda: str(self.draw.randint(0, 12)), "float": lambda: self.pick("0.5", "2.0", "1e3", "1.25"),
                "list": lambda: self.pick("[]", "[1, 'a']", "['b', 'A', 'b']", "(1, 2)"), "dict": lambda: self.pick("{}", "{'k': 'v'}"), "bool": lambda: self.pick("true", "false"), "none": lambda: self.pick("none", "x")}[kind]()

    def open(self):
        return self.pick("{%", "{%", "{%-", "{%+"), self.pick("%}", "%}", "-%}", "+%}")

    def tag(self, text):
        begin, end = self.open()
        return f"{begin} {text} {end}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.draw.randint(1, 3)))

    def statement(self, depth):
        kind = self.draw.randint(0, 11 if depth > 0 else 5)
        if kind <= 1:
            return self.pick("text", " \n", "\n  ", "a\nb ", "<|x|>", "{ ", "\t", "\n\n")
        if kind <= 4:
            value = self.value(self.pick("str", "str", "int", "list", "dict", "bool", "float"), depth + 1)
            return self.pick("{{ ", "{{- ") + value + self.pick(" }}", " -}}")
        if kind == 5:
            return self.pick("{# c #}", "{#- c -#}", self.tag(f"set {self.pick('s', 'x', 'y')} = {self.value('str', depth + 1)}"), self.tag(f"set n = {self.value('int', depth + 1)}"), self.tag(f"set ns.v = {self.value('str', depth)}"), "{{ ns.v }}")
        if kind <= 7:
            text = self.tag(f"if {self.value('bool', depth)}") + self.body(depth - 1)
            if self.draw.random() < 0.4:
                text += self.tag(f"elif {self.value('bool', depth)}") + self.body(depth - 1)
            if self.draw.random() < 0.5:
                text += self.tag("else") + self.body(depth - 1)
            return text + self.tag("endif")
        if kind <= 9:
            target = self.pick("message in messages", f"message in messages[{self.bound()}:]", f"i in {self.leaf('list')}", f"k, v in ({self.leaf('dict')}).items()", "message in messages if message.role != 'system'", f"i in range({self.draw.randint(0, 4)})")
            text = self.tag("for " + target) + self.body(depth - 1)
            if self.draw.random() < 0.3:
                text += self.tag(f"if {self.value('bool', 1)}") + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.body(0)
            if self.draw.random() < 0.25:
                text += self.tag("else") + self.body(depth - 1)
            return text + self.tag("endfor")
        if kind == 10:
            return self.tag("set s" + self.pick("", " | trim", " | upper")) + self.body(depth - 1) + self.tag("endset")
        return self.tag("macro m(a, b=" + self.value("str", 1) + ")") + self.body(depth - 1) + "{{ a ~ b }}" + self.tag("endmacro") + "{{ m(" + self.value("str", 1) + self.pick("", ", " + self.leaf("str"), ", b=" + self.leaf("str")) + ") }}"


def random_case(draw):
    template = "{%- set s = 'start' %}{% set n = 3 %}{% set items = ['p', 2, none] %}{% set d = {'a': 'x', 'b': 1} %}{% set ns = namespace(v='0') %}{% set message = messages[0] %}"
    template += Writer(draw).body(3)
    messages = draw.choice([c for c in CONVERSATIONS if c])
    data = {"messages": messages}
    if draw.random() < 0.5:
        data["add_generation_prompt"] = False
    return template, data


def case(name, template, data, named):
    out = {"name": name}
    if not named:
        out["template"] = template
    out.update({"special": SPECIAL, "now": NOW, "input": data})
    text = reference(template, data)
    if text is None:
        out["fails"] = True
    else:
        out["output"] = text
    return out


def write():
    cases = []
    for name, data in family_cases():
        cases.append(case(name, (FOLDER / "templates" / f"{name}.jinja").read_text(), data, True))
    for template, data in detail_cases():
        cases.append(case("detail", template, data, False))
    draw = random.Random(7)
    while sum(c["name"] == "random" for c in cases) < RANDOM_GOLDENS:
        template, data = random_case(draw)
        if FOLDED.search(template):
            continue
        made = case("random", template, data, False)
        # Failures are common among random templates, and say less.
        if len(template) < 1500 and ("output" in made or draw.random() < 0.05):
            cases.append(made)
    versions = {"transformers": transformers.__version__, "jinja2": jinja2.__version__}
    text = json.dumps(versions)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n"
    (FOLDER / "goldens.json").write_text(text)
    print(len(cases), "cases,", sum("output" in c for c in cases), "of them with a text")


def compare(program, count, seed):
    draw = random.Random(seed)
    cases = [case("random", *random_case(draw), False) for _ in range(count)]
    cases = [c for c in cases if not FOLDED.search(c["template"])]
    lines = "".join(json.dumps(c, ensure_ascii=False) + "\n" for c in cases)
    answers = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")
    worse = stricter = 0
    for c, line in zip(cases, answers, strict=False):
        answer = json.loads(line)
        if "error" in answer:
            # Refusing is safe, but counted: what the subset leaves out.
            if "output" in c:
                stricter += 1
                if stricter <= 5:
                    print("refused:", answer["error"], "\n  ", c["template"])
            continue
        if answer["output"] != c.get("output"):
            worse += 1
            if worse <= 5:
                print("differs:", json.dumps(c["template"]), "\n  ", json.dumps(c.get("output")), "\n  ", line)
    texts = sum("output" in c for c in cases)
    print(f"{count} templates, {texts} with a text: {worse} differ, {stricter} refused")
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", metavar="TOOL")
    parser.add_argument("-n", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare, arguments.n, arguments.seed)
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
