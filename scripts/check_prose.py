#!/usr/bin/env python3
"""A linter for prose: what a machine can hold of the rules for pages and comments.

    scripts/check_prose.py                  # exit code 1 and each finding that is not allowed
    scripts/check_prose.py --show [FILE]    # every finding, those that are allowed too
    scripts/check_prose.py --shrink         # lowers the counts of tests/prose_exceptions.txt to what is left
    scripts/check_prose.py --list           # what that file would be, written today
    scripts/check_prose.py --draw 60 --seed 1  # sentences of pages and public headers, for a reader who has seen nothing else

The rules:
  word    a word of WORDS, in a page or a comment
  long    a sentence of more than 30 words, in a page or in a public header. A run of code words with commas between
          them counts as one word.
  begin   a page that does not begin with what the reader can do: the first block behind the title is a paragraph, and
          its first sentence begins with a verb of VERBS, or speaks to the reader (you, your)

Pages are README.md, CONTRIBUTING.md, docs/*.md and the newest section of CHANGELOG.md, without code. Comments are those
of C, C++, CUDA, Python, shell and CMake, in all of the tree.

What is not so yet is counted in tests/prose_exceptions.txt, a line for each rule and file: RULE FILE <= N. The counts
only shrink: a count that is higher than what is left fails, and so does a line that is not needed.
"""

import argparse
import io
import random
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tests/prose_exceptions.txt"
MOST_WORDS = 30
# What is not said, and the words in whose company it is said after all.
WORDS = [
    (r"houses?", None, "code"),
    (r"floors?", r"floor (?:of|\()", "layer"),
    (r"rooms?", r"(?:mak\w*|made|no|enough|more|much|leav\w*|find\w*|is|as) room|room (?:for|is|of)", "module"),
    (r"ways?", r"(?:this|that|same|by the|either|other|any|which|what|all the|no|half|under|one|on the|on its|in the|in a|some|own) ways?"
               r"|(?:halfway|ways?) (?:in|out|to|back|of \w+ing)", "strategy"),
    (r"beside", None, "next to"),
    (r"nobody", None, "no one"),
    (r"whoever", None, "callers"),
    (r"dear", None, "expensive"),
    (r"(?:give|gives|gave|given|giving) back", None, "free"),
    (r"(?:begin|begins|began|begun|beginning) anew", None, "is rebuilt"),
]
FORBIDDEN = [(re.compile(rf"\b(?:{word})\b", re.I), allowed and re.compile(rf"\b(?:{allowed})\b", re.I), better) for word, allowed, better in WORDS]
VERBS = set("""Add Build Call Change Check Choose Compile Complete Constrain Contribute Convert Describe Draw Embed Enforce Extract Fill Find Generate
    Install Keep Link Look Make Measure Pass Read Run See Serve Set Speed Start Take Test Try Turn Use With Write""".split())
SOURCES = (".c", ".cc", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake", "CMakeLists.txt")


# -- what is prose ----------------------------------------------------------------------------------------------------


def plain(text):
    """Markdown without its marks; code is one word."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`+[^`]+`+", "CODE", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]*>|\*\*|(?<!\w)[*_]|[*_](?!\w)", " ", text)
    return re.sub(r"CODE(?:(?:,? and|,? or|,|;)? *CODE)+", "CODE", text)


def blocks(text, plain=plain):
    """(kind, first line, text) of the blocks of a page: heading, paragraph, item, cell, code."""
    out, open_block, fence = [], None, None
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if fence or stripped.startswith("```"):
            if not fence:
                out.append(("code", number, ""))
                fence = True
            elif stripped.startswith("```"):
                fence = None
            open_block = None
        elif not stripped:
            open_block = None
        elif stripped.startswith("#"):
            out.append(("heading", number, plain(stripped.lstrip("#"))))
            open_block = None
        elif stripped.startswith("|"):
            if not re.fullmatch(r"[|\s:-]+", stripped):
                out.extend(("cell", number, plain(cell)) for cell in re.split(r"(?<!\\)\|", stripped.strip("|")) if cell.strip())
            open_block = None
        else:
            item = re.match(r"(?:[-*+]|\d+\.)\s+", stripped)
            if item or open_block is None:
                open_block = ["item" if item else "paragraph", number, stripped[item.end():] if item else stripped]
                out.append(open_block)
            else:
                open_block[2] += "\n" + stripped
    return [(kind, number, plain(text) if kind in ("paragraph", "item") else text) for kind, number, text in out]


def sentences(text):
    """(line within the text, sentence)"""
    at = 0
    for found in re.finditer(r"(?<=[.?!])[)\"']?\s+(?=[\"'(]?[A-Z0-9])|\Z", text):
        sentence = text[at:found.start()]
        if sentence.strip():
            yield text.count("\n", 0, at), sentence.strip()
        at = found.end()


def words_of(sentence):
    return [word for word in sentence.split() if re.search(r"[A-Za-z0-9]", word)]


def c_comments(text):
    """(line, comment); lines of // that follow one another are one comment."""
    out = []
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'', re.S)
    for found in token.finditer(text):
        if not found[0].startswith(("//", "/*")):
            continue
        line = text.count("\n", 0, found.start()) + 1
        body = re.sub(r"^[ \t]*(?:///?<?|/\*+|\*/|\*)|\*/$", "", found[0], flags=re.M)
        alone = not text[text.rfind("\n", 0, found.start()) + 1:found.start()].strip()
        if out and alone and out[-1][2] and out[-1][0] + out[-1][1].count("\n") + 1 == line:
            out[-1][1] += "\n" + body
        else:
            out.append([line, body, alone])
    return [(line, body) for line, body, _ in out]


def python_comments(text):
    try:
        previous = None
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            begins = previous in (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
            if token.type == tokenize.COMMENT or token.type == tokenize.STRING and begins:
                yield token.start[0], token.string.lstrip("#")
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                previous = token.type
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return


def hash_comments(text):
    return [(number, found[1]) for number, line in enumerate(text.splitlines(), 1) if (found := re.match(r"\s*#(?!!)(.*)", line))]


def comments(path, text):
    if path.endswith((".c", ".cc", ".h", ".cu", ".cuh")):
        return c_comments(text)
    return python_comments(text) if path.endswith(".py") else hash_comments(text)


def is_page(path):
    return path in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md") or re.fullmatch(r"docs/[^/]*\.md", path) is not None


# -- findings ---------------------------------------------------------------------------------------------------------


def forbidden(text):
    """(line within the text, word, what to say)"""
    for pattern, allowed, better in FORBIDDEN:
        spans = [found.span() for found in allowed.finditer(re.sub(r"\s", " ", text))] if allowed else []
        for found in pattern.finditer(re.sub(r"\s", " ", text)):
            if not any(begin <= found.start() < end for begin, end in spans):
                yield text.count("\n", 0, found.start()), found[0], better


def page_findings(path, text):
    if path == "CHANGELOG.md":
        text = "\n## ".join(text.split("\n## ")[:2])
    found = blocks(text)
    for kind, number, body in found:
        if kind == "code":
            continue
        for line, word, better in forbidden(body):
            yield "word", number + line, f'"{word}": say {better}'
        for line, sentence in sentences(body) if kind != "heading" else ():
            count = len(words_of(sentence))
            if count > MOST_WORDS:
                yield "long", number + line, f"{count} words: {' '.join(sentence.split()[:8])} ..."
    behind = [block for block in found if block[0] != "heading"][:1]
    if path != "CHANGELOG.md":
        first = next(sentences(behind[0][2]), (0, ""))[1] if behind and behind[0][0] == "paragraph" else ""
        if not (first.split() and first.split()[0] in VERBS or re.search(r"\b(?:you|your)\b", first, re.I)):
            yield "begin", behind[0][1] if behind else 1, "the page does not begin with what the reader can do"


def source_findings(path, text):
    for number, body in comments(path, text):
        for line, word, better in forbidden(body):
            yield "word", number + line, f'"{word}": say {better}'
        if not path.startswith("include/pawl/"):
            continue
        # Examples stand behind four blanks; a blank line ends a sentence.
        prose = "\n".join("" if re.match(r"\s{4}", line) else line for line in body.splitlines())
        for paragraph in re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", prose):
            for line, sentence in sentences(plain(paragraph[0])):
                count = len(words_of(sentence))
                if count > MOST_WORDS:
                    yield "long", number + prose.count("\n", 0, paragraph.start()) + line, f"{count} words: {' '.join(sentence.split()[:8])} ..."


def findings(files):
    """(rule, file) to [(line, remark)]"""
    out = {}
    for path, text in files.items():
        for rule, line, remark in page_findings(path, text) if is_page(path) else source_findings(path, text):
            out.setdefault((rule, path), []).append((line, remark))
    return out


def tree():
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listing.stdout.splitlines()
    if listing.returncode != 0:  # a copy of the tree without its history
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith((".", "build", "dist"))]
    # The linter and its test name the words that they look for.
    own = ("scripts/check_prose.py", "tests/prose_test.py")
    names = [name for name in names if (is_page(name) or name.endswith(SOURCES)) and not name.startswith("tests/data/") and name not in own]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in sorted(set(names)) if (ROOT / name).is_file()}


# -- exceptions -------------------------------------------------------------------------------------------------------


def exceptions():
    """(rule, file) to the most findings."""
    out = {}
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            rule, path, _, count = line.split()
            out[rule, path] = int(count)
    return out


def faults(found, known):
    for (rule, path), remarks in sorted(found.items()):
        most = known.get((rule, path), 0)
        if len(remarks) > most:
            yield f"{path}: {len(remarks)} findings of the rule {rule!r}, and {most} are allowed:"
            yield from (f"  {path}:{line}: {remark}" for line, remark in remarks)
    for (rule, path), most in sorted(known.items()):
        left = len(found.get((rule, path), ()))
        if left < most:
            yield f"{rule} {path} <= {most} is too high: {left} are left (scripts/check_prose.py --shrink)"


def written(counts):
    head = "".join(line + "\n" for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines() if line.startswith("#")) if EXCEPTIONS.exists() else ""
    return head + "\n" + "".join(f"{rule} {path} <= {count}\n" for (rule, path), count in sorted(counts.items(), key=lambda pair: pair[0][::-1]) if count)


def draw(files, count, seed):
    """Sentences of pages and public headers, as they stand, with their places; equal trees and seeds give equal sentences."""
    pool = []
    for path, text in files.items():
        if is_page(path) and path != "CHANGELOG.md":
            found = [(number, body) for kind, number, body in blocks(text, lambda body: body) if kind in ("paragraph", "item")]
        elif path.startswith("include/pawl/"):
            found = [(number, "\n".join("" if re.match(r"\s{4}", line) else line for line in body.splitlines())) for number, body in comments(path, text)]
        else:
            continue
        for number, body in found:
            pool += [(f"{path}:{number + line}", " ".join(sentence.split())) for line, sentence in sentences(body) if len(words_of(sentence)) > 4]
    return random.Random(seed).sample(pool, min(count, len(pool)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--show", nargs="*", metavar="FILE")
    action.add_argument("--shrink", action="store_true")
    action.add_argument("--list", action="store_true")
    action.add_argument("--draw", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.draw:
        for place, sentence in draw(tree(), options.draw, options.seed):
            print(f"{place}\t{sentence}")
        return
    found = findings(tree())
    if options.show is not None:
        for (rule, path), remarks in sorted(found.items()):
            if not options.show or path in options.show:
                print("".join(f"{path}:{line}: {rule}: {remark}\n" for line, remark in remarks), end="")
        return
    if options.list:
        sys.stdout.write(written({key: len(remarks) for key, remarks in found.items()}))
        return
    known = exceptions()
    if options.shrink:
        known = {key: min(most, len(found.get(key, ()))) for key, most in known.items()}
        EXCEPTIONS.write_text(written(known), encoding="utf-8")
    remarks = list(faults(found, known))
    print("\n".join(remarks) if remarks else f"{len(found)} rules of files with findings, all of them allowed")
    sys.exit(1 if remarks else 0)


if __name__ == "__main__":
    main()
