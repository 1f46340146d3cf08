#!/usr/bin/env python3
"""Runs the programs of dynamic_python.txt: none may end with an error.

  dynamic_python.py PROGRAMS [--unpack DIR] [NAME ...]

Each program runs in a process and a folder of its own. --unpack only writes the files.
"""

import os
import pathlib
import re
import sys
import tempfile
import traceback
import types


def programs(path):
    """Name, version and files of each program. The file "main.py" is the program."""
    found = []
    for block in re.split(r"^#### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        name, *version = head.split()
        files = {}
        for part in re.split(r"^==== ", "==== main.py\n" + body, flags=re.MULTILINE)[1:]:
            file, _, text = part.partition("\n")
            files[file.strip()] = text
        found.append((name, tuple(map(int, version[0].split("."))) if version else (3, 0), files))
    return found


def unpack(files, folder):
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(files):
    """The exit code of the program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(files, pathlib.Path(folder))
        child = os.fork()
        if child == 0:
            code = 0
            try:
                os.chdir(folder)
                sys.path[0] = folder
                sys.argv = ["main.py"]
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                module = sys.modules["__main__"] = types.ModuleType("__main__")
                module.__file__ = os.path.join(folder, "main.py")
                exec(compile(files["main.py"], module.__file__, "exec"), module.__dict__)
            except BaseException:
                traceback.print_exc()
                code = 1
            os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    arguments = sys.argv[1:]
    path = pathlib.Path(arguments.pop(0))
    if arguments[:1] == ["--unpack"]:
        for name, _, files in programs(path):
            unpack(files, pathlib.Path(arguments[1]) / name)
        return
    failed = ran = 0
    for name, version, files in programs(path):
        if (arguments and name not in arguments) or sys.version_info < version:
            continue
        ran += 1
        if run(files) != 0:
            failed += 1
            print(f"{name} does not run", file=sys.stderr)
    print(f"{ran} programs ran, {failed} with an error")
    sys.exit(failed != 0 or ran == 0)


if __name__ == "__main__":
    main()
