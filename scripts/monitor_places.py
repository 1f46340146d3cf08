#!/usr/bin/env python3
"""How many of the places where a name of a member is written the monitors constrain.

  scripts/monitor_places.py --language python --corpus DIR [--corpus DIR ...] [--repo DIR]
      [--half rules|figures] [--places 20000] [--seed 1] [--leave-out REGEX] [--pawl build/pawl] [--report FILE.json]

Each file of the corpora is read as if it were typed (`pawl monitor --places`). A place is a `.name`. It is
constrained when the set of names that may follow is closed; then the set has the true name, or the name is refused
and counts as such. Behind a refusal the rest of a file is not read.

A corpus may also be a .jsonl file: each line's `program` is a file, unless its `label` says that a compiler refused it.

TypeScript: the sources of Debian's node-babel7, node-cheerio, node-css-what, node-dom-serializer, node-domutils,
node-got, node-htmlparser2, node-parse5, node-socket.io-parser and node-zx (`apt-get source`) side by side in a folder,
which is --repo too. Its node_modules holds /usr/share/nodejs of the packages that these import, and of nodejs
(`apt-get download`, `dpkg -x`), without @babel, which is there as source, and without chalk, which is of a version
that node-babel7 is not written for. Tests are left out, since the types of their runners are not in Debian, and so are
the texts that a compiler's tests read, many of which are wrong on purpose:
--leave-out '(^|/)(tests?|fixtures|benchmark|node_modules)/|\\.(spec|test)\\.ts$'

Python: the library is --repo too. The repository of packages also holds what they import, which --leave-out leaves out
of the corpus. Reasons of places are told by python_places.py. With --editing the text behind each name is given too.

Java: `src.zip` of Debian's openjdk-17-source, unpacked, as --corpus and --repo; JAVA_HOME is OpenJDK 17.

Files are split by a hash of their path: rules are made on the half `rules`, figures are of the half `figures`. Files
are drawn by the seed until there are so many places. Places that stay open are counted by what stands before the point.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import python_places

SUFFIXES = {"python": (".py",), "java": (".java",), "typescript": (".ts", ".tsx")}
BATCH = 20  # files that one process reads
SECONDS = 1200  # for a batch


# What a compiler said of a program of a .jsonl file that does not count.
REFUSED = ("type_error", "syntax_error", "reject", "partial", "strict_partial")


def half_of(name):
    return "figures" if hashlib.sha256(name.encode()).digest()[0] % 2 else "rules"


def unpacked(lines, folder, suffix):
    """The programs of a .jsonl file as files of the folder."""
    for number, line in enumerate(lines.read_text(encoding="utf-8").splitlines(), 1):
        entry = json.loads(line)
        if entry.get("label") not in REFUSED:
            (folder / f"{lines.stem}-{number:06d}{suffix}").write_text(entry["program"], encoding="utf-8")


def files_of(arguments, scratch):
    files = []
    for number, corpus in enumerate(map(pathlib.Path, arguments.corpus)):
        if corpus.suffix == ".jsonl" and corpus.is_file():
            folder = scratch / str(number)
            folder.mkdir()
            unpacked(corpus, folder, SUFFIXES[arguments.language][0])
            corpus = folder
        if not corpus.is_dir():
            sys.exit(f"monitor_places.py: --corpus: {corpus} is no folder")
        for path in sorted(corpus.rglob("*")):
            name = path.relative_to(corpus).as_posix()
            if path.suffix not in SUFFIXES[arguments.language] or not path.is_file():
                continue
            if name.endswith(".d.ts") or path.stat().st_size > 1 << 18:
                continue
            if arguments.leave_out and re.search(arguments.leave_out, name):
                continue
            if half_of(name) == arguments.half:
                files.append(path)
    random.Random(arguments.seed).shuffle(files)
    return files


def receiver_of(before):
    """What stands before the point, in a word."""
    text = before[:-1].rstrip()
    if not text:
        return "other"
    if text[-1] in ")]":
        depth, i = 0, len(text) - 1
        while i >= 0:
            depth += (text[i] in ")]") - (text[i] in "([")
            if depth == 0:
                break
            i -= 1
        root = text[:i].rstrip()
        if text[-1] == "]":
            return "element" if root and (root[-1].isalnum() or root[-1] in "_)]") else "list"
        return "call" if root and (root[-1].isalnum() or root[-1] in "_)]>") else "brackets"
    if text[-1] in "\"'`":
        return "text"
    chain = re.search(r"[\w$]+(\s*\??\.\s*[\w$]+)*$", text)
    if chain is None:
        return "other"
    names = re.split(r"\s*\??\.\s*", chain.group())
    behind = text[: chain.start()].rstrip()
    if behind.endswith("."):
        return "member of a call"
    if names[0] in ("self", "cls", "this", "super"):
        return names[0] if len(names) == 1 else f"{names[0]}.name"
    return "name" if len(names) == 1 else "name.name"


def read(batch, arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [arguments.pawl, "monitor", "--places", "--unfinished", "--language", arguments.language]
        command += ["--monitors", "dereference", "--json", report.name]
        if arguments.repo:
            command += ["--repo", arguments.repo]
        if arguments.editing:
            command += ["--editing"]
        try:
            done = subprocess.run(command + [str(path) for path in batch], capture_output=True,
                                  text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            print(f"left out, over {SECONDS} s: {', '.join(map(str, batch))}", file=sys.stderr)
            return []
        try:
            return json.load(open(report.name, encoding="utf-8"))["files"]
        except ValueError:
            sys.exit(f"monitor_places.py: {arguments.pawl}: {done.stderr.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=sorted(SUFFIXES), required=True)
    parser.add_argument("--corpus", action="append", required=True)
    parser.add_argument("--repo")
    parser.add_argument("--half", choices=("rules", "figures"), default="figures")
    parser.add_argument("--places", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--editing", action="store_true", help="the text behind the name is given too, as in an editor")
    parser.add_argument("--leave-out", help="a regular expression: paths in which it is found are not read")
    parser.add_argument("--report", help="every refusal, and figures, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        survey(arguments, files_of(arguments, pathlib.Path(scratch)))


def survey(arguments, files):
    places = constrained = given_up = read_files = 0
    still_open, closed, refusals = collections.Counter(), collections.Counter(), []
    reasons = collections.defaultdict(lambda: [0, 0])  # constrained, open
    for at in range(0, len(files), BATCH):
        if places >= arguments.places:
            break
        for entry in read(files[at : at + BATCH], arguments):
            text = pathlib.Path(entry["name"]).read_bytes()
            why = python_places.reasons(text) if arguments.language == "python" else None
            read_files += 1
            given_up += entry["given_up"]
            if not entry["accepted"]:
                line = text[: entry["byte"]].count(b"\n") + 1
                refusals.append({"file": entry["name"], "line": line, "name": entry["identifier"],
                                 "monitor": entry.get("monitor"), "message": entry.get("message")})
            for byte, monitor, known in entry["places"]:
                if monitor != "dereference":
                    continue
                places += 1
                constrained += known
                if why is not None:
                    reasons[why.get(byte, "other")][not known] += 1
                before = text[max(0, byte - 400) : byte].decode(errors="replace")
                (closed if known else still_open)[receiver_of(before)] += 1
        print(f"{read_files} files, {places} places, {constrained} constrained, {len(refusals)} refused",
              file=sys.stderr, flush=True)
    if places == 0:
        sys.exit("monitor_places.py: the corpora have no place")
    figures = {
        "language": arguments.language, "editing": arguments.editing, "half": arguments.half, "seed": arguments.seed,
        "files": read_files, "places": places, "constrained": constrained,
        "share": round(constrained / places, 4), "refused": len(refusals), "given_up": given_up,
        "open": dict(still_open.most_common()), "closed": dict(closed.most_common()),
        "open_by_reason": {kind: n[1] for kind, n in sorted(reasons.items(), key=lambda one: -one[1][1])[:60]},
        "refusals": [{**one, "file": pathlib.Path(one["file"]).name} for one in refusals],
    }
    if arguments.report:
        pathlib.Path(arguments.report).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"{places} places in {read_files} files: {100 * constrained / places:.1f} % constrained, "
          f"{len(refusals)} refused, {given_up} given up")
    print("| before the point | constrained | open |\n|---|---|---|")
    for kind in sorted(still_open.keys() | closed.keys(), key=lambda k: -(still_open[k] + closed[k])):
        print(f"| {kind} | {closed[kind]} | {still_open[kind]} |")
    if reasons:
        print("| begins with | constrained | open |\n|---|---|---|")
        for kind, (known, unknown) in sorted(reasons.items(), key=lambda one: -one[1][1])[:40]:
            print(f"| {kind} | {known} | {unknown} |")
    for one in refusals[:20]:
        print(f"refused: {one['file']}:{one['line']}: {one['name']}")


if __name__ == "__main__":
    main()
