#!/usr/bin/env python3
"""The layers of the whole tree, and what else a reader may rely on.

    tests/layers_test.py            # the tests; ctest runs them as Layers
    tests/layers_test.py --list     # what stands in tests/layers_exceptions.txt, as it would be written today

A file uses files of its own layer and of those below. LAYERS is the order. What is read: includes of C, C++ and CUDA,
imports of Python, link lines of CMake. Besides: no file has more than 800 lines and no function more than 100, a guard
is the header's path, nothing compares the text of an error, an abstract class has two implementations or more, a source
opens with an essay, and what systems differ in stands in src/base/os/.

What is not so yet stands in tests/layers_exceptions.txt, with its reason. Those lists only shrink: a line that is no
longer needed fails, and so does a function or file that has grown beyond what its line says.
"""

import ast
import fnmatch
import functools
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tests/layers_exceptions.txt"
MOST_OF_FILE, MOST_OF_FUNCTION = 800, 100

BASE = ("headers", "base")
CORE = BASE + ("grammar.", "schemas.")
# Lowest first: a name; the files (the longest pattern counts); of the layers below only those that it knows, by the
# beginnings of their names (None: all).
LAYERS = [
    ("headers", ["include/pawl/*"], None),
    ("base", ["src/base/*", "cmake/precompiled/*"], None),
    # grammar/: headers that every module of it uses, then its modules, then what puts them together
    ("grammar.machine", ["grammar/byte_class.h", "grammar/explicit_automaton.h", "grammar/hash_index.h",
                         "grammar/hash_index.h", "grammar/machine.h"], BASE),
    ("grammar.regex", ["grammar/regex/*"], CORE),
    ("grammar.masks", ["grammar/masks/*", "grammar/vocabulary_tables.h"], CORE),
    ("grammar.cfg", ["grammar/cfg/*"], CORE),
    ("grammar.languages", ["grammar/languages/*"], CORE),
    ("grammar.tags", ["grammar/tags/*"], CORE),
    ("grammar.top", ["grammar/*"], CORE),
    ("schemas.limits", ["schemas/limits.h"], CORE),
    ("schemas.number", ["schemas/number/*"], CORE),
    ("schemas.formula", ["schemas/formula/*"], CORE),
    ("schemas.scalar", ["schemas/scalar/*"], CORE),
    ("schemas.read", ["schemas/read/*"], CORE),
    ("schemas.frames", ["schemas/frames/*"], CORE),
    ("schemas.solve", ["schemas/solve/*"], CORE),
    ("schemas.machine", ["schemas/machine/*"], CORE),
    ("schemas.masks", ["schemas/masks/*"], CORE),
    ("schemas.top", ["schemas/*"], CORE),
    ("text", ["src/text/*"], BASE + ("grammar.",)),
    ("text.chat", ["src/text/chat/*"], BASE + ("grammar.", "text")),
    ("kernels.plain", ["kernels/*.h"], BASE),
    ("kernels.cpu", ["kernels/cpu/*"], BASE + ("kernels.",)),
    ("kernels.cuda", ["kernels/cuda/*", "kernels/CMakeLists.txt"], BASE + ("kernels.",)),
    ("kernels.reference", ["kernels/cuda/reference/*"], BASE + ("kernels.",)),
    ("model", ["src/model/*"], BASE + ("grammar.", "text", "kernels.")),
    ("decode", ["src/decode/*"], None),
    ("decode.sampling", ["src/decode/sampling/*"], None),
    ("decode.search", ["src/decode/search/*"], None),
    ("engine", ["src/engine/*"], None),
    ("eval", ["src/eval/*"], ("headers", "base")),
    ("input", ["src/input/*"], ("headers", "base")),
    ("monitors", ["plugins/monitors/*"], BASE),
    # Monitors become a constraint by public headers alone, as a user's rule does.
    ("completion.monitors", ["src/completion/monitor_constraint.*"], BASE + ("monitors",)),
    ("completion", ["src/completion/*"], None),
    ("server", ["src/server/*"], None),
    ("capi", ["src/capi/*"], CORE + ("text", "kernels.", "model", "decode", "engine", "capi")),
    ("js.native", ["js/native/*", "js/CMakeLists.txt"], CORE + ("text", "kernels.", "model", "decode", "engine", "capi", "js.native")),
    ("cli", ["src/cli/*"], None),
    ("python.native", ["python/native/*", "python/CMakeLists.txt"], CORE + ("text", "kernels.", "model", "decode", "engine", "python.native")),
    ("python.package", ["python/pawl/*"], ("python.",)),
    ("python.compat", ["python/pawl/compat/*"], ("python.",)),
    ("plugins", ["plugins/*"], ("headers", "capi", "python.", "plugins")),
    ("examples", ["examples/*"], ("headers", "python.", "plugins", "examples")),
    ("packaging", ["packaging/*"], ("headers", "packaging")),
    ("scripts", ["scripts/*"], None),
    ("bench", ["bench/*"], None),
    ("tests", ["tests/*"], None),
]
# CMake targets that are not of the layer of their CMakeLists.txt.
TARGETS = {"llama_cpp_test": "tests"}
C_FAMILY = (".c", ".cc", ".h", ".cu", ".cuh")
# Written by a script out of public tables.
GENERATED = ("src/text/unicode_tables.cc", "src/text/normalization_tables.cc")


def tree():
    """Path to text of all sources, with those that git does not know yet."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listing.stdout.splitlines()
    if listing.returncode != 0:  # a copy of the tree without its history
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith((".", "build", "dist"))]
    wanted = C_FAMILY + (".py", ".pyi", "CMakeLists.txt", ".cmake")
    names = sorted(name for name in names if name.endswith(wanted) and (ROOT / name).is_file())
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


class Layers:
    def __init__(self):
        patterns = [(pattern, i) for i, (_, globs, _) in enumerate(LAYERS) for pattern in globs]
        self.patterns = sorted(patterns, key=lambda pair: -len(pair[0].rstrip("*")))
        self.index = {name: i for i, (name, _, _) in enumerate(LAYERS)}
        self.found = {}

    def of(self, path):
        if path not in self.found:
            self.found[path] = self.look(path)
        return self.found[path]

    def look(self, path):
        return next((i for pattern, i in self.patterns if fnmatch.fnmatchcase(path, pattern)), None)

    def allows(self, user, used):
        if user == used:
            return True
        knows = LAYERS[user][2]
        return used < user and (knows is None or LAYERS[used][0].startswith(knows))


LAYER = Layers()


# A planted fault changes one file: what is found in the others is kept.
kept = functools.lru_cache(maxsize=None)


@kept
def included_names(text):
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">\n]+)[">]', text, re.M)


@kept
def python_nodes(text):
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef))]


def includes(files):
    """(file, file) of every include that leads into the tree."""
    for path, text in files.items():
        if not path.endswith(C_FAMILY):
            continue
        for name in included_names(text):
            beside = (Path(path).parent / name).as_posix()
            for candidate in (name, f"include/{name}", beside):
                if candidate in files:
                    yield path, candidate
                    break


def python_path(module, files):
    """The file of a module of ours, or None."""
    parts = module.split(".")
    if parts[0] != "pawl":
        return None
    rest = "/".join(parts[1:])
    if module == "pawl._pawl":
        return "python/native/module.cc"
    for candidate in (f"python/pawl/{rest}.py", f"python/pawl/{rest}/__init__.py" if rest else "python/pawl/__init__.py",
                      f"plugins/{parts[1]}/{parts[1]}.py" if rest else "", f"plugins/{rest}/{parts[-1]}/__init__.py"):
        if candidate in files:
            return candidate
    return None


def imports(files):
    for path, text in files.items():
        if not path.endswith(".py"):
            continue
        base = None
        if path.startswith("python/"):
            base = list(Path(path).relative_to("python").parent.parts)
        for node in python_nodes(text):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                if node.level:
                    if base is None:
                        continue
                    module = ".".join(base[:len(base) - node.level + 1] + ([module] if module else []))
                # `from . import x` names modules, `from .x import y` names one
                modules = [f"{module}.{alias.name}" for alias in node.names] + [module]
            found = [target for target in (python_path(module, files) for module in modules) if target]
            yield from ((path, target) for target in dict.fromkeys(found[:1] if isinstance(node, ast.ImportFrom) else found))


def links(files):
    """(layer of a target, layer of a library, how it is written)."""
    owner = {}
    cmake = {path: re.sub(r"#[^\n]*", "", text) for path, text in files.items() if path.endswith("CMakeLists.txt") and path != "CMakeLists.txt"}
    for path, text in cmake.items():
        for target in re.findall(r"\b(?:add_library|add_executable|pawl_test|pawl_fuzzer|nanobind_add_module)\(\s*(\w+)", text):
            owner.setdefault(target, LAYER.index[TARGETS[target]] if target in TARGETS else LAYER.of(path))
    for path, text in cmake.items():
        for target, words in re.findall(r"\btarget_link_libraries\(\s*(\S+)([^()]*)\)", text):
            user = owner.get(target, LAYER.of(path))
            for word in words.split():
                if word in owner:
                    yield user, owner[word], f"{path}: {target} -> {word}"
        for target, words in re.findall(r"\bpawl_test\(\s*(\w+)([^()]*)\)", text):
            for word in words.partition("SOURCES")[0].split():
                if word in owner:
                    yield owner[target], owner[word], f"{path}: {target} -> {word}"


def upward(files):
    """Edges of files and libraries that run upward, sorted."""
    out = set()
    for kind, edges in (("include", includes(files)), ("import", imports(files))):
        for user, used in edges:
            levels = LAYER.of(user), LAYER.of(used)
            if None in levels or not LAYER.allows(*levels):
                out.add(f"{kind} {user} -> {used}")
    for user, used, shown in links(files):
        if user is None or used is None or not LAYER.allows(user, used):
            out.add(f"link {shown}")
    return sorted(out)


# -- what is in a file ------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Za-z])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)


@kept
def code_of(text):
    """The code with blanks in place of comments, strings and preprocessor lines; lines stay."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


@kept
def blocks(code):
    """(head, first line, lines) of all blocks but those of namespaces, classes and initializers."""
    out, opened, head, first, line, parentheses = [], [], "", 0, 1, 0
    for piece in re.findall(r"[{};()\n]|[^{};()\n]+", code):
        parentheses += {"(": 1, ")": -1}.get(piece, 0)
        line += piece == "\n"
        if piece == "{":
            opened.append((head, first or line))
            head, first = "", 0
        elif piece == "}" and opened:
            before, begin = opened.pop()
            last = before.rstrip(" \n")[-1:] or " "
            kind = before.startswith(("namespace", "class ", "struct ", "enum ", "union ", "extern"))
            template_type = before.startswith("template") and ")" not in before
            if not kind and not template_type and last not in "=,( ":
                out.append((" ".join(before.split()), begin, line - begin + 1))
            head, first = "", 0
        elif piece == ";" and parentheses == 0:
            head, first = "", 0
        elif head or piece.strip(" \n"):
            if not head:
                first, piece = line, piece.lstrip(" ")
            head += piece
    return out


def function_name(head):
    found = re.search(r"([\w:~]+)\s*\(", re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", head))
    return found[1] if found else head[:40]


def long_functions(files):
    """(path, name, lines) of every function with more than 100."""
    for path, text in files.items():
        if path.endswith(C_FAMILY):
            for head, _, lines in blocks(code_of(text)):
                if lines > MOST_OF_FUNCTION and not re.match(r"(if|for|while|switch|do|else)\b", head):
                    yield path, function_name(head), lines
        elif path.endswith(".py"):
            for node in python_nodes(text):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno - node.lineno + 1 > MOST_OF_FUNCTION:
                    yield path, node.name, node.end_lineno - node.lineno + 1


def library(path):
    return path.startswith(("src/", "grammar/", "schemas/", "kernels/", "plugins/", "python/", "include/")) and "/tests/" not in path


def counted(files):
    """kind and name to lines, of what is too long."""
    out = {}
    for path, name, lines in long_functions(files):
        if not path.startswith(("tests/", "bench/", "examples/")) and "/tests/" not in path:
            out[f"function {path} {name}"] = lines
    for path, text in files.items():
        if path.endswith(C_FAMILY + (".py",)) and text.count("\n") > MOST_OF_FILE and path not in GENERATED:
            out[f"file {path}"] = text.count("\n")
    return out


@kept
def guard_of(text):
    found = re.search(r"^#ifndef (\w+)\n#define (\w+)$", text, re.M)
    return found[1] if found and found[1] == found[2] else None


@kept
def comparisons(text):
    if "message" not in text:
        return []
    return [" ".join(line.split()) for line in code_of(text).splitlines() if re.search(r"(\.|->)message(\(\))?\s*[!=]=", line)]


def guards(files):
    """Headers whose guard is not their path. Those under contract/ stand in for headers of others; *_inl.h and
    precompiled headers are included once, on purpose without a guard."""
    for path, text in files.items():
        if path.endswith((".h", ".cuh")) and not re.search(r"/contract/|_inl\.h$|^cmake/precompiled/", path):
            shown = path.removeprefix("include/").removeprefix("src/")
            wanted = {"PAWL_" + re.sub(r"[^A-Z0-9]", "_", name.removeprefix("pawl/").upper()) + "_" for name in (path, shown)}
            if guard_of(text) not in wanted:
                yield f"guard {path}"


def compared_messages(files):
    for path, text in files.items():
        if library(path) and path.endswith(C_FAMILY):
            yield from (f"message {path}: {line}" for line in comparisons(text))


@kept
def classes_of(text):
    """(name, names of bases, whether it has pure virtual functions) of the classes in a source."""
    out, code = [], code_of(text)
    for found in re.finditer(r"\b(?:class|struct)\s+(?:PAWL_EXPORT\s+)?(\w+)(?:\s+final)?\s*(:[^:{;][^{;]*)?\{", code):
        bases = re.findall(r"\b(?:public|private|protected|virtual)?\s*([\w:]+)\s*(?:<[^{]*>)?\s*(?:,|$)", (found[2] or "")[1:].strip())
        body, depth = "", 1  # of the class itself, not of a class inside
        for piece in re.finditer(r"[{}]|[^{}]+", code[found.end():]):
            depth += {"{": 1, "}": -1}.get(piece[0], 0)
            if depth == 0:
                break
            body += piece[0] if depth == 1 else ""
        out.append((found[1], [base.split("::")[-1] for base in bases], bool(re.search(r"\bvirtual\b[^;{}]*=\s*0\s*;", body))))
    return out


def abstract_classes(files):
    """Classes with pure virtual functions and fewer than two implementations, those of tests counted."""
    abstract, users = {}, {}
    for path, text in files.items():
        if path.endswith(C_FAMILY):
            for name, bases, pure in classes_of(text):
                if pure and library(path):
                    abstract[name] = path
                for base in bases:
                    users.setdefault(base, set()).add(f"{path} {name}")
    for name, path in sorted(abstract.items()):
        if len(users.get(name, ())) < 2:
            yield f"abstract {path} {name}"


def old_headers(files):
    """Public headers that only include the header that took their place."""
    return {path.removeprefix("include/") for path, text in files.items()
            if path.startswith("include/pawl/") and re.findall(r"^(?!//|$|#ifndef|#define|#endif).*", text, re.M) == re.findall(r"^#include .*", text, re.M)}


def uses_of_old_headers(files):
    old = old_headers(files)
    for path, text in files.items():
        if path.endswith(C_FAMILY):
            yield from (f"old {path} -> {name}" for name in re.findall(r'^\s*#include ["<](pawl/\w+\.h)[">]', text, re.M) if name in old)


# What systems differ in stands in src/base/os/: these headers, and names that tell systems apart, stand nowhere else in what
# ships.
SYSTEM_HEADERS = re.compile(r"(unistd|fcntl|termios|poll|signal|sched|pthread|spawn|dlfcn|dirent|pwd|glob|windows|io|process)\.h$"
                            r"|csignal$|(sys|netinet|arpa)/\w+\.h$")
SYSTEM_NAMES = re.compile(r"\b(_WIN32|__linux__|__APPLE__)\b")


def system_calls(files):
    for path, text in files.items():
        if library(path) and path.endswith(C_FAMILY) and not path.startswith("src/base/os/"):
            names = [name for name in included_names(text) if SYSTEM_HEADERS.match(name)]
            names += sorted(set(SYSTEM_NAMES.findall(text)))
            yield from (f"system {path}: {name}" for name in names)


def found_today(files):
    """Everything that needs a line: its text, and the lines of what is counted."""
    out = {text: None for check in (upward, guards, compared_messages, abstract_classes, uses_of_old_headers, system_calls) for text in check(files)}
    return {**out, **counted(files)}


def exceptions():
    """Text to (most lines or None, reason)."""
    out = {}
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            text, _, reason = line.partition(" | ")
            number = re.search(r" <= (\d+)$", text)
            out[text[:number.start()] if number else text] = (int(number[1]) if number else None, reason.strip())
    return out


def faults(files, known):
    """What is not allowed, and what is allowed and not there."""
    today = found_today(files)
    for text, lines in sorted(today.items()):
        if text not in known:
            yield f"{text}{f' has {lines} lines' if lines else ''}"
        elif lines is not None and lines > known[text][0]:
            yield f"{text} has grown from {known[text][0]} to {lines} lines"
    for text, (_, reason) in sorted(known.items()):
        if text not in today:
            yield f"{text} is no longer needed in tests/{EXCEPTIONS.name}: remove the line"
        elif not reason:
            yield f"{text} has no reason in tests/{EXCEPTIONS.name}"


class LayersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = tree()
        cls.known = exceptions()
        cls.today = set(faults(cls.files, cls.known))

    def planted(self, path, text, replace=False):
        """Faults that come with a file."""
        files = {**self.files, path: text if replace else text + self.files.get(path, "")}
        return sorted(set(faults(files, self.known)) - self.today)

    def test_the_tree_is_as_the_table_says(self):
        self.assertEqual(sorted(self.today), [])

    def test_public_headers(self):
        headers = {path for path in self.files if path.startswith("include/pawl/")}
        self.assertLessEqual(len(headers) - len(old_headers(self.files)), 12)
        self.assertEqual(self.planted("src/base/planted.cc", '#include "pawl/export.h"\n'), ["old src/base/planted.cc -> pawl/export.h"])

    def test_what_is_read(self):
        self.assertGreater(len(list(includes(self.files))), 2500)
        self.assertGreater(len(list(imports(self.files))), 100)
        self.assertGreater(len(list(links(self.files))), 60)
        self.assertEqual([path for path in self.files if LAYER.of(path) is None and path != "CMakeLists.txt" and not path.startswith("cmake/")], [])

    def test_planted_edges_are_found(self):
        for path, text, edge in (
                ("grammar/machine.h", '#include "grammar/masks/token_trie.h"\n', "include grammar/machine.h -> grammar/masks/token_trie.h"),
                ("src/base/planted.h", '#include "src/text/tokenizer.h"\n', "include src/base/planted.h -> src/text/tokenizer.h"),
                ("schemas/scalar/planted.cc", '#include "schemas/solve/solver.h"\n', "include schemas/scalar/planted.cc -> schemas/solve/solver.h"),
                ("kernels/cpu/planted.h", '#include "src/text/tokenizer.h"\n', "include kernels/cpu/planted.h -> src/text/tokenizer.h"),
                ("kernels/cuda/planted.cu", '#include "src/model/model.h"\n', "include kernels/cuda/planted.cu -> src/model/model.h"),
                ("plugins/monitors/planted.cc", '#include "src/engine/model_files.h"\n', "include plugins/monitors/planted.cc -> src/engine/model_files.h"),
                ("python/pawl/planted.py", "from .compat import xgrammar\n", "import python/pawl/planted.py -> python/pawl/compat/xgrammar/__init__.py"),
                ("python/pawl/planted.py", "import pawl.vllm\n", "import python/pawl/planted.py -> plugins/vllm/vllm.py"),
                ("src/text/CMakeLists.txt", "target_link_libraries(pawl_text PUBLIC pawl_decode)\n",
                 "link src/text/CMakeLists.txt: pawl_text -> pawl_decode")):
            if " -> " in edge and edge.startswith(("include", "import")):
                self.assertIn(edge.split(" -> ")[1], self.files, "the planted edge leads nowhere")
            with self.subTest(edge):
                self.assertIn(edge, "\n".join(self.planted(path, text)))

    def test_what_points_down_is_no_fault(self):
        self.assertEqual(self.planted("src/cli/planted.cc", '// A file.\n#include "src/base/json.h"\n'), [])

    def test_other_planted_faults_are_found(self):
        long = "int F() {\n" + "  g();\n" * 120 + "}\n"
        guard = "#ifndef PAWL_OTHER_H_\n#define PAWL_OTHER_H_\n#endif\n"
        abstract = "// A class.\nclass Planted {\n  virtual int F() = 0;\n};\nclass One : public Planted {};\n"
        for path, text, fault in (
                ("src/base/planted.cc", long, "function src/base/planted.cc F has 122 lines"),
                ("python/pawl/planted.py", "def f():\n" + "    g()\n" * 120, "function python/pawl/planted.py f has 121 lines"),
                ("src/base/planted.cc", "int a;\n" * 801, "file src/base/planted.cc has 801 lines"),
                ("src/base/planted.h", guard, "guard src/base/planted.h"),
                ("src/cli/planted.cc", 'bool f(E e) { return e.message == "x"; }\n', "message src/cli/planted.cc: bool f(E e) { return e.message =="),
                ("src/base/planted.cc", "// A file.\n#include <unistd.h>\n", "system src/base/planted.cc: unistd.h"),
                ("plugins/planted.cc", "// A file.\n#if defined(_WIN32)\n#endif\n", "system plugins/planted.cc: _WIN32"),
                ("src/server/planted.cc", "// A file.\n#include <sys/socket.h>\n", "system src/server/planted.cc: sys/socket.h"),
                ("src/base/planted.cc", abstract, "abstract src/base/planted.cc Planted")):
            with self.subTest(fault):
                self.assertIn(fault, "\n".join(self.planted(path, text, replace=True)))

    def test_lines_that_are_not_needed_are_found(self):
        known = {**self.known, "include src/base/a.h -> src/cli/b.h": (None, "planted")}
        self.assertIn("include src/base/a.h -> src/cli/b.h is no longer needed", "\n".join(faults(self.files, known)))

    def test_code_without_comments(self):
        self.assertEqual(code_of("a = \"{\\\"\"; // {\nb = '{';"), "a =      ;     \nb =    ;")
        code = code_of("namespace n {\nstruct S {\n  int a = {1};\n};\nint F(int a,\n      int b) {\n" + "  if (a) {\n    b();\n  }\n" * 40 + "}\n}\n")
        self.assertEqual(max(lines for _, _, lines in blocks(code)), 123)

    def test_every_source_opens_with_an_essay(self):
        sources = [path for path in self.files if path.endswith((".cc", ".cu")) and not path.startswith("examples/")]
        self.assertGreater(len(sources), 500)
        self.assertEqual([path for path in sources if not self.files[path].startswith("//")], [])

    def test_a_file_of_a_model_family_is_short(self):
        """Others of the folder, such as settings.cc, families.cc and latent.cc, hold what families share."""
        families = {path: text for path, text in self.files.items()
                    if path.startswith("src/model/families/") and re.search(r"^extern const Family k", text, re.M)
                    and not path.endswith("/families.cc")}
        self.assertGreater(len(families), 25)
        self.assertEqual([path for path, text in families.items() if text.count("\n") > 100], [])

    def test_every_module_of_schemas_says_what_it_knows(self):
        for name, (pattern, *_), _ in LAYERS:
            if name.startswith("schemas.") and pattern.count("/") == 2:
                lines = (ROOT / pattern).parent.joinpath("README.md").read_text(encoding="utf-8").splitlines()
                self.assertTrue(lines[0].startswith(f"# {Path(pattern).parent.name}: "), pattern)
                self.assertLessEqual(len(lines), 16, f"{pattern}: a door plate, not a manual")
                # A formatter of C++ that got hold of it would change these.
                self.assertEqual([line for line in lines if len(line) > 120 or line.startswith("   ")], [], pattern)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        known = exceptions() if EXCEPTIONS.exists() else {}
        for text, lines in found_today(tree()).items():
            print(f"{text}{f' <= {lines}' if lines else ''} | {known.get(text, ('', ''))[1]}")
    else:
        unittest.main()
