#!/usr/bin/env python3
"""Runs the commands that the README shows and compares what they print.

    scripts/readme_outputs.py            # exit code 1 and the difference when something is not as shown
    scripts/readme_outputs.py --update   # writes what they print into README.md

In a block marked "console" a line that begins with "$ " is a command; the lines up to the next one are its output,
standard error after standard output. Small files that the commands name are made below.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "record.json": '{"name": "Ann Lee", "email": "ann@example.org",\n "phone": null, "company": null, "job_title": null, "city": 7}',
}


def shown(command, folder):
    run = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    return (run.stdout + run.stderr).replace(f"{ROOT}/", "").rstrip("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if not (ROOT / "build/pawl").exists():
        sys.exit("build/pawl is missing: run scripts/build.sh first")
    readme = ROOT / "README.md"
    old = readme.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for entry in ("build", "schemas", "grammar", "examples", "models"):
            os.symlink(ROOT / entry, Path(folder) / entry)
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text + "\n")

        def refresh(block):
            parts = []
            for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.group(1), re.M):
                # What lies in somebody's home folder is not there everywhere.
                output = printed.rstrip("\n") if "~/" in command else shown(command, folder)
                parts.append(f"$ {command}\n" + (output + "\n" if output else ""))
            return "```console\n" + "".join(parts) + "```"

        new = re.sub(r"```console\n(.*?)```", refresh, old, flags=re.S)
    if options.update:
        readme.write_text(new)
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "README.md", "as printed"))
        sys.exit(1)


if __name__ == "__main__":
    main()
