#!/usr/bin/env python3
"""Runs the grammars that come with llama.cpp against texts of our own, accepted and refused.

    scripts/check_llama_gbnf.py DIR

DIR holds llama.cpp's *.gbnf (its folder grammars/, or sample_parser/data/from-llama.cpp of llguidance, which has a
vLLM example next to them); pawl must be importable. A grammar that is not known here is read only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pawl

# By grammar: accepted, refused.
TEXTS = {
    'arithmetic': (
        ['a=b\n', '1 +2*x_1 = (3)\n', 'a=b\nc/d=e\n'],
        ['', 'a=b', '=a\n', '1+=2\n']),
    'c': (
        ['', 'int f(){return 1;}', 'int f(int a){a = 1;if(a<2){b (a, 2);}else{}}', 'char g(){// x\n}'],
        ['int f(', 'int f(){return;}', 'f(){}', 'int f(){a=1}']),
    'chess': (
        ['1. e4 e5\n2. Nf3 Nc6\n', '1. e4 e5\n2. O-O O-O-O+\n10. exd8=Q# Rad1\n'],
        ['1. e4 e5\n', '1. e9 e5\n2. a1 a1\n', '1. e4\n2. e5 e4\n']),
    'english': (
        ['Hello, world!', 'a\tb\nc'],
        ['', 'a  b', 'é']),
    'japanese': (
        ['ひらがな', 'カタカナ 漢字、'],
        ['', 'abc', 'あ  い']),
    'json': (
        ['{}', '{"a": [1, -2.5e+3, true, null, "x\\n\\u00e9"]}\n'],
        ['[1]', '{"a":}', '{"a": 01}', '{"a": "\n"}']),
    'json_arr': (
        ['[\n1,\n2]', '[\n]', '[\n{"a": [ ]}]'],
        ['[1]', '{}', '[\n1,2]']),
    'list': (
        ['- a\n', '- a b\n- c\n'],
        ['', '- \n', '- a', '* a\n']),
    'vllm-sql': (
        ['SELECTcol_1fromtable_2wherecol_2=1'],
        ['SELECT col_1', 'SELECTcol_3fromtable_1wherecol_1=1', '']),
}


def main() -> int:
    vocabulary = pawl.Vocabulary([bytes([b]) for b in range(256)] + [b"<|end|>"], end_tokens=[256], special=[256])
    compiler = pawl.Compiler(vocabulary)
    texts = wrong = grammars = 0
    for path in sorted(Path(sys.argv[1]).glob("*.gbnf")):
        grammar = compiler.grammar(path.read_text(), "gbnf")
        grammars += 1
        for expected, group in zip((True, False), TEXTS.get(path.stem, ((), ()))):
            for text in group:
                matcher = pawl.Matcher(grammar)
                accepted = matcher.accept_bytes(text.encode()) and matcher.accepting
                texts += 1
                if accepted != expected:
                    wrong += 1
                    print(f"{path.name} {'accepts' if accepted else 'refuses'} {text!r}")
    print(f"{grammars} grammars load, {texts} texts, {wrong} judged otherwise")
    return 1 if wrong or not grammars else 0


if __name__ == "__main__":
    sys.exit(main())
