#!/usr/bin/env python3
"""Names that users may rely on: tests/public_names.txt lists them, and none may be lost.

    scripts/public_names.py [--check] [BUILD_DIR]   # exit code 1 when a name is lost, or one is not in the list yet
    scripts/public_names.py --write [BUILD_DIR]     # writes the list; refuses to lose names without --lose

A line is a kind and a name. Where each kind is read:
  command, option, value   the help of every command of the build: commands, options, words that an option takes
  exit                     exit codes of commands that end in each of them
  json                     keys of JSON that commands and routes of the server write, by running them: the cases of
                           scripts/same_outputs.py, and the reports of `bench`, `maskbench`, `info`
  metric                   names and labels on /metrics
  route                    the table of routes in src/server/
  header, cpp, c           include/pawl/: files, and what they declare, with its class
  python                   modules without a leading underscore: names, methods, parameters
  package                  targets of CMake, files of pkg-config, entry points of Python
  environment              variables that the command reads

A name that goes on as a deprecated alias is still there, so it stays in the list.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import same_outputs

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/public_names.txt"


# -- the command ------------------------------------------------------------------------------------------------------


def help_names(pawl):
    names, waiting = set(), [()]
    while waiting:
        command = waiting.pop()
        text = subprocess.run([pawl, *command, "--help"], capture_output=True, text=True, check=True).stdout
        shown = " ".join(("pawl", *command))
        names.add(f"command {shown}")
        part = option = ""
        for line in text.splitlines():
            if re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
                part = line
            elif part == "Subcommands:" and (found := re.match(r"  ([a-z][a-z0-9_-]*)\s", line)):
                waiting.append((*command, found[1]))
            elif part == "Options:" and (found := re.match(r"  ((?:-\w,)?--[a-z][a-z0-9-]*)(?: (\S.*))?$", line)):
                option = found[1].rsplit(",", 1)[-1]
                names.add(f"option {shown} {option}")
                words = re.search(r"\{([^}]*)\}", (found[2] or "").split("  ")[0])
                for word in words[1].split(",") if words else ():
                    names.add(f"value {shown} {option} {word}")
            elif part == "Options:" and "--draft " in "".join(names) and (found := re.match(r" {32}([a-z]+): ", line)):
                names.add(f"value {shown} {option} {found[1]}")
            elif part == "Positionals:" and (found := re.match(r"  ([a-z]+)\s", line)):
                names.add(f"option {shown} ({found[1]})")
    return names


def keys_of(value, path="", into=None):
    """a.b[].c of every member. Members whose names are data (schemas, places, notes) are not followed."""
    into = set() if into is None else into
    if isinstance(value, dict):
        for key, part in value.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
                continue
            into.add(f"{path}.{key}".lstrip("."))
            tokens = key == "top_logprobs" and path.endswith("logprobs")  # of completions; those of chats are lists
            if key not in ("schema", "parameters", "record", "properties") and not tokens:
                keys_of(part, f"{path}.{key}", into)
    elif isinstance(value, list):
        for part in value:
            keys_of(part, path + "[]", into)
    return into


def json_values(text):
    """JSON objects in what was written: whole, a line each, or events of a stream."""
    for piece in [text, *text.splitlines()]:
        piece = piece.removeprefix("data: ").strip()
        # A report may stand behind an output that has no line end.
        for candidate in (piece, piece[max(piece.rfind('{"prompt_tokens"'), 0):]):
            if candidate.startswith(("{", "[{")):
                try:
                    value = json.loads(candidate)
                except ValueError:
                    continue
                yield value
                break


def maskbench_file(folder):
    data = folder / "maskbench"
    data.mkdir()
    tests = [{"valid": True, "data": {"a": 1}, "description": ""}, {"valid": False, "data": {"a": "x"}, "description": ""}]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    (data / "one.json").write_text(json.dumps({"schema": schema, "tests": tests, "meta": {}}), encoding="utf-8")
    return data


def command_json(pawl, folder):
    """json lines of commands, and exit codes."""
    names = set()
    common, monitored = same_outputs.cli_cases()
    wanted = {"extract_stats": "extract --stats-json", "generate_greedy": "generate --stats-json", "sampler_fidelity": "generate --json-lines",
              "sampler_check": "generate --json-lines", "sampler_asap": "generate --json-lines", "score_json": "score --json",
              "mask_json": "mask --json", "tokenize": "tokenize --json", "complete_typescript": "complete --json",
              "generate_lark": "generate --captures", "extract_json_lines": "extract --json-lines",
              "bad_option": "", "validate_good": "", "extract_one": ""}
    for case, words, stdin in common + monitored:
        if case not in wanted:
            continue
        run = subprocess.run([pawl, *words], cwd=folder, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        names.add(f"exit {words[0]} {run.returncode}")
        for value in json_values(run.stdout) if wanted[case] else ():
            mark = {"extract_json_lines": "error", "extract_stats": "prompt_tokens"}.get(case)
            if mark and mark not in value:
                continue  # a record: its keys are the schema's
            names.update(f"json {wanted[case]}: {key}" for key in keys_of(value))
    data = maskbench_file(folder)
    tokenizer = ["--tokenizer", "models/tiny-extract"]
    reports = {
        "info --json": ["info", "--json"],
        "models --json": ["models", "--json"],
        "maskbench --json": ["maskbench", *tokenizer, "--data", str(data), "--json", "out.json"],
        "bench decode --json": ["bench", "decode", "--rounds", "1", "--batch", "2", "--context", "8", "--prompt", "8", "--schema", "logic.json", "good.json",
                                "--json", "out.json"],
        "bench draft --json": ["bench", "draft", "--replay", str(data), *tokenizer, "--sources", "literals", "--json", "out.json"],
        # Drafts are on here; same_outputs.py has them off where calls are counted.
        "extract --stats-json": ["extract", "--schema", "logic.json", "--text", "a", "--max-tokens", "40", "--stats-json", "out.json"],
        "generate --stats-json": ["generate", "--prompt", "a", "--max-tokens", "4", "--stats-json", "out.json"],
        "bench masks --json": ["bench", "masks", "--schema", "logic.json", *tokenizer, "good.json", "--json", "out.json"],
    }
    store = folder / ".lmstudio/models/org"  # of HOME
    store.mkdir(parents=True)
    os.symlink(ROOT / "models/tiny-extract", store / "name")
    for shown, words in reports.items():
        out = folder / "out.json"
        out.unlink(missing_ok=True)
        run = subprocess.run([pawl, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        text = out.read_text(encoding="utf-8") if out.exists() else run.stdout
        found = set()
        for value in json_values(text):
            found |= keys_of(value)
        if not found:
            sys.exit(f"public_names.py: pawl {' '.join(words)} wrote no JSON: {run.stderr}{run.stdout}")
        names.update(f"json {shown}: {key}" for key in found)
    return names


# Whether something is drafted depends on the time that calls take, so these keys are read where they are documented.
DRAFTED = (".accepted_tokens", ".drafted_tokens")


def server_names(build, folder):
    names = set()
    for cases, options in ((same_outputs.server_cases(), ["--model", "models/tiny-extract"]),
                           (same_outputs.code_server_cases(), ["--model", "models/tiny-code", "--repo", "repo"])):
        server = same_outputs.Server(build, folder, *options)
        try:
            for _, method, path, body in cases:
                text = server.ask(method, path, body).split("\n", 2)[2]
                if path == "/metrics":
                    names.update(f"metric {line}" for line in text.split())
                for value in json_values(text):
                    names.update(f"json {method} {path}: {key}" for key in keys_of(value) if not key.endswith(DRAFTED))
        finally:
            server.stop()
    drafts = (ROOT / "docs/server.md").read_text(encoding="utf-8").partition("\n## Drafts\n")[2].partition("\n## ")[0]
    names.update(f"json drafts: pawl.{key}" for key in re.findall(r"`(\w+_tokens)`", drafts))
    return names


def route_names():
    names = set()
    for source in sorted((ROOT / "src/server").rglob("*.cc")):
        text = source.read_text(encoding="utf-8")
        for kind, path in re.findall(r'\b(Get|Post|Outputs)\(\s*"(/[^"]*)"', text):
            names.add(f"route {'GET' if kind == 'Get' else 'POST'} {path}")
    return names


# -- headers ----------------------------------------------------------------------------------------------------------

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
NOT_NAMES = {"if", "for", "while", "switch", "return", "static_assert", "defined", "decltype", "noexcept", "alignas", "operator", "requires"}


def declared(text):
    """Names that C++ declares, with the classes around them; private and protected ones are left out."""
    text = COMMENT.sub(lambda m: '""' if m[0].startswith(('"', "R")) else " ", text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*", "", text, flags=re.M)
    text = re.sub(r'extern\s+""\s*\{', "namespace {", text)
    names, scopes, head, i = set(), [], "", 0  # scopes: [kind, name, public]

    def prefix():
        return "::".join(scope[1] for scope in scopes if scope[1])

    def is_open():
        return all(scope[2] for scope in scopes)

    def add(name):
        if is_open() and name and name not in NOT_NAMES:
            names.add(f"{prefix()}::{name}" if prefix() else name)

    def statement(words):
        words = re.sub(r"\[\[.*?\]\]|PAWL_[A-Z_]+\b(\([^()]*\))?|\b(public|private|protected)\s*:(?!:)", " ", words).strip()
        words = re.sub(r"^template\s*<.*?>\s*(?=(class|struct|using|[A-Za-z_]))", "", words, flags=re.S)
        if not words or words.startswith(("friend", "static_assert", "public", "namespace")):
            return
        if found := re.match(r"using\s+(\w+)\s*=", words):
            add(found[1])
        elif words.startswith("using"):
            add(re.split(r"::", words)[-1].strip())
        elif words.startswith("typedef"):
            named = re.search(r"\(\s*\*\s*(\w+)\s*\)", words) or re.search(r"(\w+)\s*$", words)
            add(named[1] if named else "")
        elif re.match(r"(?:class|struct|enum(?:\s+class)?|union)\s+(\w+)\s*(?::[^:].*)?$", words):
            return  # declared here, defined elsewhere
        elif "operator" in words:
            named = re.search(r"operator\s*([^\s(]+|\(\))\s*\(", words)
            add(f"operator{named[1]}" if named else "")
        elif found := re.match(r"std::function<.*>\s+(\w+)\s*(?:=.*)?$", words, re.S):
            add(found[1])
        elif found := re.search(r"(~?\w+)\s*\((?!\s*\*)", re.sub(r"<[^<>()]*>", "", re.sub(r"<[^<>()]*>", "", words.split("=")[0])) if "(" in words.split("=")[0] else ""):
            add(found[1])
        else:
            for part in re.sub(r"\([^()]*\)|<[^<>]*>", "", re.sub(r"<[^<>]*>", "", words)).split(","):
                named = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?::\s*\d+\s*)?$", part.split("=")[0].split("{")[0].strip())
                add(named[1] if named and not named[1].isdigit() else "")

    while i < len(text):
        c = text[i]
        i += 1
        if c == ";":
            statement(head)
            head = ""
        elif c == "{":
            words = re.sub(r"\[\[.*?\]\]|PAWL_[A-Z_]+\b|\b(public|private|protected)\s*:(?!:)", " ", head).strip()
            words = re.sub(r"^template\s*<.*?>\s*(?=(class|struct|union))", "", words, flags=re.S)
            if found := re.match(r"(?:inline\s+)?namespace\s*(\w*)", words):
                name = found[1]
                scopes.append(["namespace", name, name != "internal" and name != "detail"])
            elif found := re.match(r"(?:typedef\s+)?(class|struct|union)\s+(\w+)?(?:\s+final)?\s*(?::[^:].*)?$", words, re.S):
                add(found[2] or "")
                scopes.append([found[1], found[2] or "", found[1] != "class"])
            elif found := re.match(r"(?:typedef\s+)?enum(\s+class)?\s*(\w+)?", words):
                add(found[2] or "")
                end = text.index("}", i)
                inner = found[2] if found[1] and found[2] else ""
                for word in text[i:end].split(","):
                    if value := re.match(r"\s*(\w+)", word):
                        add(f"{inner}::{value[1]}" if inner else value[1])
                i = end + 1
                head = "enum x " if not words.startswith("typedef") else "typedef "
                if text[i:].lstrip().startswith(";"):
                    i = text.index(";", i) + 1
                    head = ""
                continue
            else:  # a body, or the first value of a member
                body = "(" in words or words.endswith("const")
                depth = 1
                while depth:
                    depth += {"{": 1, "}": -1}.get(text[i], 0)
                    i += 1
                if body and "=" not in words.split("(")[0]:
                    statement(words.split(" : ")[0])
                    head = ""
                continue
            head = ""
        elif c == "}":
            if scopes:
                scopes.pop()
            head = ""
        elif c == ":" and scopes and (found := re.search(r"\b(public|private|protected)\s*$", head)) and text[i:i + 1] != ":":
            scopes[-1][2] = found[1] == "public"
            head = ""
        else:
            head += c
    return names


def header_names():
    names = set()
    for header in sorted((ROOT / "include/pawl").glob("*.h")):
        names.add(f"header pawl/{header.name}")
        text = header.read_text(encoding="utf-8")
        kind = "c" if header.name == "pawl.h" else "cpp"
        names.update(f"{kind} {name}" for name in declared(text))
        names.update(f"{kind} {macro}" for macro in re.findall(r"^#define (PAWL_\w+)", text, re.M) if not macro.endswith("_H_"))
    return names


# -- Python -----------------------------------------------------------------------------------------------------------


def parameters(function):
    arguments = function.args
    for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
        if not argument.arg.startswith("_") and argument.arg not in ("self", "cls"):
            yield argument.arg


class PythonModules:
    def __init__(self):
        self.trees = {}
        for folder, package in ((ROOT / "python/pawl", "pawl"),):
            for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
                parts = [package, *path.relative_to(folder).with_suffix("").parts]
                if parts[-1] == "__init__":
                    parts.pop()
                self.trees.setdefault(".".join(parts), (ast.parse(path.read_text(encoding="utf-8")), path.name.startswith("__init__")))
        for path in sorted((ROOT / "plugins").glob("*/*.py")) + sorted((ROOT / "plugins").glob("*/*/__init__.py")):
            name = path.parent.name if path.name == "__init__.py" else path.stem
            if name == path.parent.name and path.parent.name != "testing":
                self.trees[f"pawl.{name}"] = (ast.parse(path.read_text(encoding="utf-8")), path.name == "__init__.py")

    def source(self, module, node):
        if not node.level:
            return node.module
        is_package = self.trees[module][1]
        base = module.split(".")[:len(module.split(".")) - (node.level - (1 if is_package else 0))]
        return ".".join([*base, *([node.module] if node.module else [])])

    def bodies(self, module):
        """Statements of a module, with those in its conditions."""
        waiting = list(self.trees[module][0].body)
        while waiting:
            node = waiting.pop(0)
            yield node
            for part in ("body", "orelse", "handlers", "finalbody"):
                if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
                    waiting.extend(getattr(node, part, []))

    def define(self, module, name, seen=()):
        """Where a name is defined: its node, or None for what comes from elsewhere."""
        if module not in self.trees or module in seen:
            return None
        for node in self.bodies(module):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return module, node
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.define(self.source(module, node), alias.name, (*seen, module))
        return None

    def members(self, shown, module, node, seen=()):
        for base in node.bases:
            found = self.define(module, base.id) if isinstance(base, ast.Name) and base.id not in seen else None
            if found and isinstance(found[1], ast.ClassDef):
                yield from self.members(shown, *found, (*seen, base.id))
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                hidden = part.name.startswith("_") and not part.name.startswith("__")
                if hidden:
                    continue
                yield f"python {shown}.{part.name}"
                for parameter in parameters(part):
                    yield f"python {shown}.{part.name}({parameter})"
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not part.target.id.startswith("_"):
                yield f"python {shown}.{part.target.id}"
            elif isinstance(part, ast.Assign):
                yield from (f"python {shown}.{t.id}" for t in part.targets if isinstance(t, ast.Name) and not t.id.startswith("_"))

    def names(self):
        for module in self.trees:
            if any(part.startswith("_") for part in module.split(".")):
                continue
            yield f"python {module}"
            public = None
            for node in self.bodies(module):
                if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
                    if isinstance(node.value, (ast.List, ast.Tuple)):
                        public = {ast.literal_eval(part) for part in node.value.elts}
            found = set()
            for node in self.bodies(module):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.add(node.name)
                elif isinstance(node, ast.ImportFrom) and (self.source(module, node) or "").startswith("pawl"):
                    found.update(alias.asname or alias.name for alias in node.names)
                elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found.update(t.id for t in targets if isinstance(t, ast.Name))
            for name in sorted(public if public is not None else {name for name in found if not name.startswith("_")}):
                yield f"python {module}.{name}"
                definition = self.define(module, name)
                if definition is None:
                    continue
                where, node = definition
                if isinstance(node, ast.ClassDef):
                    yield from self.members(f"{module}.{name}", where, node)
                else:
                    yield from (f"python {module}.{name}({parameter})" for parameter in parameters(node))


def package_names():
    names = set()
    for file in (ROOT / "cmake/pawl_libraries.cmake",):
        names.update(f"package cmake {target}" for target in re.findall(r"add_library\((pawl::\w+) ALIAS", file.read_text(encoding="utf-8")))
    names.update(f"package pkg-config {path.name.removesuffix('.pc.in')}" for path in (ROOT / "cmake").glob("*.pc.in"))
    part = ""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            part = line.strip("[]")
        elif part.startswith(("project.scripts", "project.entry-points", "project.optional-dependencies")) and (found := re.match(r'"?([\w.-]+)"? *=', line)):
            names.add(f"package {part} {found[1]}")
    for source in sorted([*(ROOT / "src/cli").rglob("*.cc")]):
        names.update(f"environment {name}" for name in re.findall(r'getenv\("(\w+)"\)', source.read_text(encoding="utf-8")))
    for source in sorted((ROOT / "src/engine").glob("*.cc")):
        names.update(f"environment {name}" for name in re.findall(r'(?:variable|first_of)\("(\w+)"', source.read_text(encoding="utf-8")))
    return names


def all_names(build):
    pawl = str(build / "pawl")
    names = help_names(pawl) | route_names() | header_names() | package_names() | set(PythonModules().names())
    with tempfile.TemporaryDirectory(prefix="public_names_") as name:
        folder = Path(name).resolve()
        for entry in ("schemas", "grammar", "examples", "models"):
            os.symlink(ROOT / entry, folder / entry)
        for file, text in same_outputs.FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        os.environ.update(HOME=name, XDG_CACHE_HOME=f"{name}/cache")
        names |= command_json(pawl, folder) | server_names(build, folder)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=os.environ.get("PAWL_BUILD_DIR", ROOT / "build"), help="a build folder with the command")
    parser.add_argument("--check", action="store_true", help="compare with the list (the default)")
    parser.add_argument("--write", action="store_true", help="write the list")
    parser.add_argument("--lose", action="store_true", help="with --write: also names that are no longer there")
    options = parser.parse_args()
    names = all_names(Path(options.build).resolve())
    known = {line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")} if LIST.exists() else set()
    lost, added = sorted(known - names), sorted(names - known)
    for word, group in (("lost", lost), ("new", added)):
        for name in group[:40] if options.write else group:
            print(f"{word}: {name}")
    if options.write:
        if lost and not options.lose:
            sys.exit("public_names.py: names are lost; --lose writes the list all the same")
        LIST.write_text("# Names that users rely on; scripts/public_names.py reads and writes this list.\n" +
                        "".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
    elif lost:
        sys.exit(f"public_names.py: {len(lost)} names are lost that users rely on")
    elif added:
        sys.exit(f"public_names.py: {len(added)} new names: scripts/public_names.py --write takes them into tests/{LIST.name}")
    print(f"{len(names)} names")


if __name__ == "__main__":
    main()
