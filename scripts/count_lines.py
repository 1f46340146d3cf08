#!/usr/bin/env python3
"""Lines of code of schemas/ and grammar/ by room: comments and blank lines do not count.

    scripts/count_lines.py              # the working tree
    scripts/count_lines.py 721c01c HEAD # two commits, and what lies between them
"""
import argparse
import os
import re
import subprocess

FLOORS = ("schemas", "grammar")
# A comment, or what may hold the marks of one: raw strings, strings, characters (not 1'000).
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def lines_of(text):
    def keep(match):
        return "\n" * match[0].count("\n") if match[0].startswith(("//", "/*")) else match[0]
    return sum(1 for line in TOKEN.sub(keep, text).split("\n") if line.strip())


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def rooms_of(commit):
    listing = git("ls-tree", "-r", "--name-only", commit, "--", *FLOORS) if commit else git("ls-files", "--", *FLOORS)
    rooms = {}
    for name in listing.splitlines():
        if not name.endswith((".cc", ".h")) or not (commit or os.path.exists(name)):
            continue
        if commit:
            text = git("show", f"{commit}:{name}")
        else:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        room = os.path.dirname(name)
        rooms[room] = rooms.get(room, 0) + lines_of(text)
    return rooms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", help="commits; none: the working tree")
    commits = parser.parse_args().commits or [""]
    os.chdir(git("rev-parse", "--show-toplevel").strip())
    try:
        counts = [rooms_of(commit) for commit in commits]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    for room in sorted(set().union(*counts)):
        print(f"{room:20}", *(f"{count.get(room, 0):8}" for count in counts))
    print(f"{'together':20}", *(f"{sum(count.values()):8}" for count in counts))


if __name__ == "__main__":
    main()
