#!/usr/bin/env python3
"""A check for `pawl generate`: does this Python function pass its tests?

    pawl generate --prompt "..." --sampler smc --particles 8 --check-timeout 10 \\
        --check "program@line:python3 examples/checks/python_check.py examples/checks/add_test.py"

After every line the text so far is dead when no text that begins so can be Python. At the end the function
and the tests run together in a process of their own: an empty folder, no environment, no site packages, limits
on processor time, memory, file size and processes, and where the system has `unshare` a network and a process
table of its own. That keeps accidents in; it is no wall against an attacker.

It reads a question in JSON from each line of standard input and answers with a line.
"""
import codeop
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings

SECONDS = 2
MEMORY = 512 << 20


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def isolation():
    """What to put before the command, where this system lets us."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    prefix = [unshare, "--user", "--net", "--pid", "--fork", "--kill-child"]
    works = subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode == 0
    return prefix if works else []


def begins_python(text):
    """False when no continuation of these whole lines can be Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # None: more is wanted.
            codeop.compile_command(text, symbol="exec")
        except (SyntaxError, ValueError, OverflowError):
            return False
    return True


def passes(text, tests, prefix):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(text + "\n\n" + tests + "\n")
        try:
            done = subprocess.run(
                prefix + [sys.executable, "-I", "-S", program], cwd=folder, env={}, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=limits, timeout=2 * SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        tests = file.read()
    prefix = isolation()
    for line in sys.stdin:
        question = json.loads(line)
        text = question["text"]
        if question["ended"]:
            verdict = "accept" if passes(text, tests, prefix) else "dead"
        else:
            verdict = "live" if begins_python(text) else "dead"
        print(json.dumps({"id": question["id"], "verdict": verdict}), flush=True)


if __name__ == "__main__":
    main()
