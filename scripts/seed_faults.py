#!/usr/bin/env python3
"""How many small faults do the tests find? Plants them one at a time, and runs the tests of the module only.

    scripts/seed_faults.py --seed 1 --n 120 [--commit HEAD] [--modules text decode] [--data DIR]
    scripts/seed_faults.py --planted bench/faults/planted.json [--commit HEAD] [--data DIR]

A fault changes one operator, constant, condition or statement in a random line of a source (.cc) that a test runs. The
module of the source is built and the programs of its folder in tests/ run (MODULES below), until one fails: the fault is
found. Works in a copy of the commit under build-faults/, never in the tree itself.

Which lines a test runs. A coverage build of everything takes an hour on two cores. Here the one source that has the fault
is compiled with --coverage, by a wrapper around the compiler; after the tests gcov tells whether the line was run. A fault
in a line that no test ran is drawn again and does not count, like one that does not compile. A fault that is found was
run. Headers are left out: a fault in one means building most of the tree.

What a fault costs. The copy is built with -O1 where the tree has -O2: what tests ask for does not depend on that. The programs of
a folder run from the shortest on, as their first run without a fault tells. Each may take five times as long as it took then and
a minute more: a fault that makes a loop without end is found so.

With --planted the faults are those of a file: a list of {what, sources, before, after}. A source that has the line `before`
once gets `after` in its place. Two names of a source stand for two commits, between which the line has moved.

Results go to bench/results/seeded_faults-SEED-COMMIT.json (planted_faults-COMMIT.json) after each fault, with the commit; a run that ended early goes
on where it was. Draw I of seed S is the same line of the same commit on every machine.
"""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build-faults"
# Sources by the beginning of their path (the longest counts), and the folder of tests that belongs to them.
MODULES = {
    "src/base": "base", "grammar": "grammar", "grammar/tags": "schemas", "schemas": "schemas", "src/text": "text", "kernels/cpu": "kernels", "src/model": "model",
    "src/decode": "decode", "src/decode/sampling": "sampling", "src/engine": "engine", "src/server": "server", "src/capi": "capi",
    "src/cli": "cli", "plugins/monitors": "monitors", "src/completion": "monitors",
}
LEFT_OUT = re.compile(r"_cuda|unicode_tables|normalization_tables|/grammars/")
TOKEN = re.compile(
    r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Za-z])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)
OPERATORS = [(" == ", " != "), (" != ", " == "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" && ", " || "),
             (" || ", " && "), (" + ", " - "), (" - ", " + "), (" * ", " + "), (" / ", " * "), (" % ", " / "), (" += ", " -= "), (" -= ", " += "),
             ("++", "--"), (" & ", " | "), (" | ", " & "), (" << ", " >> ")]


def code_of(text):
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def changes_of(code, line):
    """(kind, line with the change) of all changes that a line allows; `code` is the line without comments and strings."""
    out = []
    if re.match(r"\s*(namespace|using|template|static_assert|class|struct|enum|friend|typedef|extern|public|private|case .*:$)", code):
        return out

    def put(kind, begin, end, words):
        out.append((kind, line[:begin] + words + line[end:]))

    for old, new in OPERATORS:
        for found in re.finditer(re.escape(old), code):
            put("operator", found.start(), found.end(), new)
    for found in re.finditer(r"(?<![\w.])\d+(?![\w.'])", code):
        put("constant", found.start(), found.end(), str(int(found[0]) + 1))
    for found in re.finditer(r"\b(true|false)\b", code):
        put("constant", found.start(), found.end(), "false" if found[0] == "true" else "true")
    if found := re.search(r"\b(if|while) \((.*)\)( \{| [a-z]+.*;|)\s*$", code):
        inner = found[2]
        if inner.count("(") == inner.count(")") and ";" not in inner and not re.match(r"(const\s+)?[\w:]+[&*]?\s+[&*]?\w+ = ", inner):
            put("condition", found.start(2), found.end(2), f"!({line[found.start(2):found.end(2)]})")
    statement = re.match(r"(\s+)((?:[\w:]+(?:\.|->|\[[^\]]*\]))*[\w:]+(?:\[[^\]]*\])?(?:\(.*\)| [-+*|&^]?= .*|\+\+|--)|\+\+\S+|--\S+|break|continue);\s*$", code)
    if statement and code.count("(") == code.count(")") and not statement[2].startswith("return"):
        put("statement", statement.end(1), len(line), "(void)0;")
    return [(kind, changed) for kind, changed in out if changed != line]


class Tree:
    """A copy of the commit, its build, and the programs of each folder of tests."""

    def __init__(self, commit, jobs):
        self.commit, self.jobs = commit, jobs
        self.path, self.build = FOLDER / f"tree-{commit[:10]}", FOLDER / f"build-{commit[:10]}"
        self.marked = self.build / "fault_source"
        if not (self.path / "CMakeLists.txt").exists():
            self.path.mkdir(parents=True, exist_ok=True)
            archive = FOLDER / f"{self.path.name}.tar"
            subprocess.run(["git", "archive", "-o", archive, commit], cwd=ROOT, check=True)
            with tarfile.open(archive) as files:
                files.extractall(self.path)
            archive.unlink()
        if not (self.build / "build.ninja").exists():
            self.build.mkdir(parents=True, exist_ok=True)
            launcher = f"{sys.executable};{Path(__file__).resolve()};--compile;{self.marked}"
            subprocess.run(["cmake", "-G", "Ninja", "-S", self.path, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release", "-DPAWL_CUDA=OFF", "-DPAWL_BUILD_BENCH=OFF",
                            "-DPAWL_WERROR=OFF", f"-DPAWL_GRAMMARS={ROOT}/build/grammars", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
                            f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", "-DCMAKE_EXE_LINKER_FLAGS=--coverage", "-DCMAKE_SHARED_LINKER_FLAGS=--coverage"],
                           check=True, stdout=subprocess.DEVNULL)

    def sources(self, modules):
        out = {}
        for path in sorted(self.path.rglob("*.cc")):
            name = path.relative_to(self.path).as_posix()
            homes = [home for home in MODULES if name.startswith(home + "/")]
            if homes and not LEFT_OUT.search(name):
                folder = MODULES[max(homes, key=len)]
                if (not modules or folder in modules) and self.programs(folder):
                    out[name] = folder
        return out

    def programs(self, folder):
        lists = self.path / "tests" / folder / "CMakeLists.txt"
        text = lists.read_text(encoding="utf-8") if lists.exists() else ""
        return re.findall(r"^\s*pawl_test\((\w+)", text, re.M) + re.findall(r"^(?:gtest_discover_tests|pawl_shards)\((\w+)", text, re.M) + re.findall(r"add_executable\((capi_test)\b", text)

    def compile(self, folder):
        """Whether the programs of a folder build."""
        words = ["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *self.programs(folder)]
        return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def run_one(self, program, environment, limit, *options):
        """How a program fails; None when all its cases pass."""
        words = [self.build / "bin" / program, "--gtest_brief=1", *options]
        if program == "capi_test":
            words = [words[0], self.path / "models/tiny-extract", self.path]
        try:
            code = subprocess.run(words, cwd=self.path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            return f"more than {limit} s"
        return None if code == 0 else f"signal {-code}" if code < 0 else "a test"

    def without_fault(self, folder, environment, limit):
        """By program: seconds, and the cases that fail without any fault, which find nothing ("*": the program ended early)."""
        out = {}
        for program in self.programs(folder):
            report, begin, broken = self.build / "without_fault.json", time.time(), []
            report.unlink(missing_ok=True)
            if self.run_one(program, environment, limit, f"--gtest_output=json:{report}"):
                suites = json.loads(report.read_text(encoding="utf-8"))["testsuites"] if report.exists() else []
                broken = [f"{case['classname']}.{case['name']}" for suite in suites for case in suite["testsuite"] if "failures" in case] or ["*"]
            out[program] = {"seconds": round(time.time() - begin, 1), "fail without a fault": broken}
        return out

    def run(self, baseline, environment):
        """The program that fails, twice, and how; None when all pass."""
        for program, before in sorted(baseline.items(), key=lambda entry: entry[1]["seconds"]):
            broken, limit = before["fail without a fault"], round(60 + 5 * before["seconds"])
            if broken == ["*"]:
                continue
            words = ["--gtest_fail_fast", *(["--gtest_filter=-" + ":".join(broken)] if broken else [])]
            how = self.run_one(program, environment, limit, *words)
            # A case that fails now and then, on a busy machine, has not found a fault.
            if how and (how.startswith("more") or self.run_one(program, environment, limit, *words)):
                return program, how
        return None

    def was_run(self, source, line):
        """Whether gcov counts the line, or the one before it that has code."""
        known = {}
        for data in self.build.rglob(f"{Path(source).name}.gcda"):
            run = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=self.build, capture_output=True, text=True, check=False)
            for report in run.stdout.splitlines():
                for file in json.loads(report)["files"]:
                    if (self.build / file["file"]).resolve() == (self.path / source).resolve():
                        for entry in file["lines"]:
                            known[entry["line_number"]] = known.get(entry["line_number"], 0) + entry["count"]
        before = [number for number in known if number <= line]
        return bool(before) and known[max(before)] > 0

    def forget_counts(self):
        for data in self.build.rglob("*.gcda"):
            data.unlink()


def compiler(words):
    """Runs as the compiler's launcher: --coverage for the source that has the fault, the compiler cache for all others."""
    marked, command = words[0], ["-O1" if word == "-O2" else word for word in words[1:]]
    source = Path(marked).read_text(encoding="utf-8").strip() if os.path.exists(marked) else ""
    if source and any(os.path.realpath(word) == source for word in command if word.endswith(".cc")):
        os.execvp(command[0], [*command, "--coverage"])
    cache = ["ccache"] if subprocess.run(["which", "ccache"], capture_output=True, check=False).returncode == 0 else []
    command = [*cache, *command]
    os.execvp(command[0], command)


def draw(tree, sources, seed, index):
    """The fault of a draw: source, line, kind, text before and after; None where the line allows no change."""
    rng = random.Random(f"{seed}:{index}")
    names, weights = zip(*[(name, (tree.path / name).read_bytes().count(b"\n")) for name in sources])
    source = rng.choices(names, weights)[0]
    text = (tree.path / source).read_text(encoding="utf-8")
    lines, codes = text.split("\n"), code_of(text).split("\n")
    number = rng.randrange(len(lines))
    changes = changes_of(codes[number], lines[number])
    if not changes:
        return None
    # A kind first, so that rare ones come too.
    kind = rng.choice(sorted({kind for kind, _ in changes}))
    after = rng.choice([changed for k, changed in changes if k == kind])
    return {"source": source, "line": number + 1, "kind": kind, "before": lines[number].strip(), "after": after.strip(), "whole": after}


def drawn(options, tree, sources, index):
    """(index, fault) of each draw from `index` on, without end."""
    while True:
        fault = draw(tree, sources, options.seed, index)
        if fault is not None:
            yield index, fault
        index += 1


def planted(options, tree, sources, index):
    """(index, fault) of each fault of the file from `index` on."""
    for number, fault in enumerate(json.loads(options.planted.read_text(encoding="utf-8"))):
        places = []
        for source in fault["sources"]:
            lines = (tree.path / source).read_text(encoding="utf-8").split("\n") if source in sources else []
            places += [(source, i + 1, line) for i, line in enumerate(lines) if line.strip() == fault["before"]]
        if len(places) != 1:
            sys.exit(f"seed_faults.py: {options.planted}: {number}: the line stands in {len(places)} places: {fault['before']}")
        if number >= index:
            source, line, text = places[0]
            yield number, {"source": source, "line": line, "kind": "planted", "what": fault["what"], "before": fault["before"], "after": fault["after"],
                           "whole": text.replace(fault["before"], fault["after"])}


def plant(tree, fault):
    path = tree.path / fault["source"]
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[fault["line"] - 1] = fault["whole"]
    path.write_text("\n".join(lines), encoding="utf-8")


def one_fault(tree, folder, fault, baseline, environment):
    """What came of a fault; the tree is as before afterwards."""
    path = tree.path / fault["source"]
    before = path.read_bytes()
    try:
        tree.forget_counts()
        tree.marked.write_text(str(path.resolve()), encoding="utf-8")
        plant(tree, fault)
        if not tree.compile(folder):
            return {"outcome": "does not compile"}
        failed = tree.run(baseline, environment)
        if failed:
            return {"outcome": "found", "by": failed[0], "how": failed[1]}
        return {"outcome": "missed" if tree.was_run(fault["source"], fault["line"]) else "not run"}
    finally:
        tree.marked.unlink(missing_ok=True)
        path.write_bytes(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=120, help="faults that count: found or missed")
    parser.add_argument("--planted", type=Path, metavar="FILE", help="plant the faults of this file, draw none")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--modules", nargs="+", default=[], choices=sorted(set(MODULES.values())))
    parser.add_argument("--data", help="PAWL_DATA_DIR for the tests (default: none, and tests that need it are skipped)")
    parser.add_argument("--limit", type=int, default=600, help="seconds for a program without a fault")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="results (default: in bench/results/)")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", options.commit], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    kind = "planted_faults" if options.planted else f"seeded_faults-{options.seed}"
    out = options.out or ROOT / f"bench/results/{kind}-{commit[:10]}.json"
    which = {"planted": options.planted.name} if options.planted else {"seed": options.seed}
    head = {"commit": commit, **which, "modules": sorted(options.modules), "data": bool(options.data)}
    results = {**head, "baseline": {}, "faults": []}
    if out.exists():
        results = json.loads(out.read_text(encoding="utf-8"))
        if {key: results.get(key) for key in head} != head:
            sys.exit(f"seed_faults.py: {out} is of another commit or other options")
    environment = {key: value for key, value in os.environ.items() if key != "PAWL_DATA_DIR"}
    if options.data:
        environment["PAWL_DATA_DIR"] = options.data
    tree = Tree(commit, options.jobs)
    sources = tree.sources(options.modules)

    def save():
        counts = {}
        for fault in results["faults"]:
            counts[fault["outcome"]] = counts.get(fault["outcome"], 0) + 1
        results["counts"] = counts
        out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        return counts.get("found", 0) + counts.get("missed", 0)

    counted = save()
    begin_at = results["faults"][-1]["draw"] + 1 if results["faults"] else 0
    for index, fault in (planted if options.planted else drawn)(options, tree, sources, begin_at):
        if counted >= options.n:
            break
        folder = sources[fault["source"]]
        begin = time.time()
        if folder not in results["baseline"]:
            if not tree.compile(folder):
                sys.exit(f"seed_faults.py: the tests of {folder} do not build: cmake --build {tree.build}")
            results["baseline"][folder] = tree.without_fault(folder, environment, options.limit)
            save()
        outcome = one_fault(tree, folder, fault, results["baseline"][folder], environment)
        del fault["whole"]
        results["faults"].append({"draw": index, "module": folder, **fault, **outcome, "seconds": round(time.time() - begin)})
        counted = save()
        print(f"{counted}/{options.n} {outcome['outcome']}: {fault['source']}:{fault['line']}: {fault['kind']}: {fault['before']}  ->  {fault['after']}", flush=True)
    print(json.dumps(results["counts"]), hashlib.sha256(out.read_bytes()).hexdigest()[:12])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compile"]:
        compiler(sys.argv[2:])
    else:
        main()
