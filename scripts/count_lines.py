#!/usr/bin/env python3
"""Lines of the library, by folder: src, grammar, schemas, kernels, plugins, python, include.

    scripts/count_lines.py                       # the working tree
    scripts/count_lines.py 721c01c HEAD          # two commits, and what lies between them
    scripts/count_lines.py HEAD --files          # every file with its lines of code

Columns: files, lines of code, lines of comments, the share of comments, the median file and the longest file in lines of all
kinds. A line of code has something on it but comments; a line of comments has nothing else. Tests in plugins/, tables
that scripts/gen_*.py write and headers that only forward to another one (a guard and one include) are left out of all figures.
"""

import argparse
import os
import re
import statistics
import subprocess

FOLDERS = ("src", "grammar", "schemas", "kernels", "plugins", "python", "include")
LANGUAGES = (".c", ".cc", ".h", ".cu", ".cuh", ".py", ".pyi")
LEFT_OUT = re.compile(r"_tables\.cc$|/tests/|/example/")
# Comments, and what may hold the marks of one: raw strings, strings, characters (not 1'000).
C_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
# In Python a text that stands alone is a comment too.
PYTHON_TOKEN = re.compile(
    r'#[^\n]*|(?P<alone>^[ \t]*[rR]?(?P<quotes>"""|\'\'\').*?(?P=quotes)[ \t]*$)|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL | re.MULTILINE)


def lines_of(name, text):
    """(code, comments, all)"""
    python = name.endswith((".py", ".pyi"))

    def keep(match):
        comment = match[0].startswith("#") or match["alone"] if python else match[0].startswith(("//", "/*"))
        return "\n" * match[0].count("\n") if comment else match[0]

    left = (PYTHON_TOKEN if python else C_TOKEN).sub(keep, text).split("\n")
    code = sum(1 for line in left if line.strip())
    return code, sum(1 for line in text.split("\n") if line.strip()) - code, text.count("\n")


def is_forward(name, text):
    left = [line for line in C_TOKEN.sub("", text).split("\n") if line.strip()] if name.endswith(".h") else []
    rest = [line for line in left if not re.match(r'#(ifndef|define|endif|pragma once)\b', line)]
    return len(rest) == 1 and rest[0].startswith("#include")


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def texts_of(commit):
    """Name and text of every file that counts."""
    listing = git("ls-tree", "-r", "--name-only", commit, "--", *FOLDERS) if commit else git("ls-files", "--", *FOLDERS)
    names = [name for name in listing.splitlines() if name.endswith(LANGUAGES) and not LEFT_OUT.search(name)]
    if not commit:
        for name in filter(os.path.exists, names):
            with open(name, encoding="utf-8") as file:
                yield name, file.read()
        return
    # One process for all files: --batch answers "object type size", the bytes, and a line end.
    batch = subprocess.run(["git", "cat-file", "--batch"], input="".join(f"{commit}:{name}\n" for name in names).encode(),
                           check=True, capture_output=True).stdout
    for name in names:
        head, _, batch = batch.partition(b"\n")
        size = int(head.split()[-1])
        text, batch = batch[:size], batch[size + 1:]
        yield name, text.decode()


def folder_of(name):
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("src", "grammar", "schemas", "kernels", "plugins", "python") and len(parts) > 2 else parts[0]


def files_of(commit):
    return {name: lines_of(name, text) for name, text in texts_of(commit) if not is_forward(name, text)}


def row(shown, group):
    """`group`: name to lines."""
    code, comments = (sum(lines[i] for lines in group.values()) for i in (0, 1))
    longest = max(group, key=lambda name: group[name][2])
    share = 100 * comments / max(code + comments, 1)
    median = statistics.median(lines[2] for lines in group.values())
    return f"{shown:20} {len(group):6} {code:8} {comments:9} {share:6.1f} % {median:7.0f}  {group[longest][2]:5} {longest}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", help="commits; none: the working tree")
    parser.add_argument("--files", action="store_true", help="lines of code of every file")
    options = parser.parse_args()
    os.chdir(git("rev-parse", "--show-toplevel").strip())
    commits = options.commits or [""]
    try:
        counts = [files_of(commit) for commit in commits]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    if options.files:
        for name in sorted(set().union(*counts)):
            print(f"{name:60}", *(f"{count.get(name, (0,))[0]:6}" for count in counts))
        return
    for commit, count in zip(commits, counts):
        print(f"{commit or 'the working tree':20} {'files':>6} {'code':>8} {'comments':>9} {'':8} {'median':>7}  longest")
        folders = sorted({folder_of(name) for name in count})
        for folder in folders:
            print(row(folder, {name: lines for name, lines in count.items() if folder_of(name) == folder}))
        print(row("together", count), "\n")
    if len(counts) > 1:
        first, last = ((len(count), sum(lines[0] for lines in count.values())) for count in (counts[0], counts[-1]))
        print(f"{commits[0]} to {commits[-1]}: files {first[0]} to {last[0]} ({100 * (last[0] / first[0] - 1):+.1f} %), "
              f"lines of code {first[1]} to {last[1]} ({100 * (last[1] / first[1] - 1):+.1f} %)")


if __name__ == "__main__":
    main()
