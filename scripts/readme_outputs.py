#!/usr/bin/env python3
"""Runs the examples of README.md and docs/*.md and compares what they print.

    scripts/readme_outputs.py            # exit code 1 and the difference when something is not as shown
    scripts/readme_outputs.py --update   # writes what they print into the pages

In a block marked "console" a line that begins with "$ " is a command; the lines up to the next one are its output,
standard error after standard output. Commands are run that use `build/pawl`, and those that make a small file for
them; others (a clone, an installation, data in a home folder) are left as they are. Small files that the commands name
are made below. A block marked "python" is run when a plain block follows it, which is its output, and when the Python
package is built.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import same_outputs

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("PAWL_BUILD", ROOT / "build"))
FILES = {
    "record.json": '{"name": "Ann Lee", "email": "ann@example.org",\n "phone": null, "company": null, "job_title": null, "city": 7}',
    "sum.ts": "const list = [1, 2];\nlist.lenght;",
}
RUN = re.compile(r"^(echo|printf|cat) |build/pawl ")
LEAVE = re.compile(r"~/|\bgit |\bpip |\bcurl |^build/pawl serve|scripts/|--lsp-server| schema\.json ")


def printed(words, folder, **environment):
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **environment)
    return (run.stdout + run.stderr).replace(f"{ROOT}/", "").rstrip("\n")


class Page:
    """A page, and the folder in which its commands run."""

    def __init__(self, path, folder, counts):
        self.old, self.folder, self.counts = path.read_text(encoding="utf-8"), folder, counts

    def console(self, block):
        parts = []
        for command, output in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block[1], re.M):
            if RUN.search(command) and not LEAVE.search(command):
                self.counts["commands"] += 1
                output = printed(["bash", "-c", command], self.folder)
                output += "\n" if output else ""
            parts.append(f"$ {command}\n{output}")
        return "```console\n" + "".join(parts) + "```"

    def python(self, block):
        found, _ = same_outputs.python_of(BUILD)
        if found is None:
            self.counts["programs left out: the Python package is not built"] += 1
            return block[0]
        python, environment = found
        self.counts["programs"] += 1
        return f"```python\n{block[1]}```\n\n```\n{printed([python, '-c', block[1]], self.folder, env=environment)}\n```"

    def new(self):
        text = re.sub(r"```console\n(.*?)```", self.console, self.old, flags=re.S)
        return re.sub(r"```python\n((?:(?!```).)*)```\n\n```\n(?:(?!```).)*```", self.python, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if not (BUILD / "pawl").exists():
        sys.exit("build/pawl is missing: run scripts/build.sh first")
    counts = dict.fromkeys(("commands", "programs", "programs left out: the Python package is not built"), 0)
    differs = False
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            for entry in ("schemas", "grammar", "examples", "models"):
                os.symlink(ROOT / entry, Path(folder) / entry)
            os.symlink(BUILD, Path(folder) / "build")
            for name, text in FILES.items():
                (Path(folder) / name).write_text(text + "\n")
            page = Page(path, folder, counts)
            new = page.new()
        if options.update:
            path.write_text(new, encoding="utf-8")
        elif new != page.old:
            name = path.relative_to(ROOT).as_posix()
            sys.stdout.writelines(difflib.unified_diff(page.old.splitlines(True), new.splitlines(True), name, "as printed"))
            differs = True
    print(", ".join(f"{count} {what}" for what, count in counts.items() if count))
    sys.exit(1 if differs else 0)


if __name__ == "__main__":
    main()
