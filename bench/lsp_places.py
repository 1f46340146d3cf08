#!/usr/bin/env python3
"""Lists of names of `pawl lsp` in editors, at places of files that are being edited.

    bench/lsp_places.py --client pytest-lsp [--pawl build/pawl] [--places 200] [--json OUT]
    bench/lsp_places.py --client nvim ...

Takes files of three languages: Python's library, tests/monitors/programs and the archive `src.zip` of a Java development
kit. At random places of their code behind a point the name is deleted, as by a user who types it anew; the client asks for
a list, types the first letter of the name, asks again, and puts the name back. So a file is edited twice for each of two
lists, and its text before and behind is that of a real program.

The client is pytest-lsp (`pip install pytest-lsp`; run this script with the Python that has it) or Neovim (`nvim`).
Reported are the lists that came with names, those that have the true name, and the server's processor time from the edit
to the answer: all threads, from /proc, which other programs on the machine do not change.
"""
import argparse
import asyncio
import glob
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LANGUAGES = {"python": ".py", "typescript": ".ts", "java": ".java"}
MOST_BYTES = 120_000


def java_files(rng, folder, count):
    """Files of java.base out of the development kit's sources."""
    archives = sorted(glob.glob("/usr/lib/jvm/*/lib/src.zip")) + sorted(glob.glob("/usr/lib/jvm/*/src.zip"))
    found = []
    for archive in archives[:1]:
        with zipfile.ZipFile(archive) as sources:
            names = [n for n in sources.namelist() if re.search(r"(^|/)java/(util|io|net|text)/\w+\.java$", n)]
            for name in rng.sample(sorted(names), min(count, len(names))):
                path = pathlib.Path(folder, pathlib.Path(name).name)
                path.write_bytes(sources.read(name))
                found.append(path)
    return found


def sources(rng, folder, count):
    python = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    return {
        "python": rng.sample(python, min(count, len(python))),
        "typescript": sorted((ROOT / "tests/monitors/programs").glob("*.ts")),
        "java": sorted((ROOT / "tests/monitors/programs").glob("*.java")) + java_files(rng, folder, count),
    }


NO_CODE = {
    "python": r"#[^\n]*|[rbfuRBFU]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')",
    "typescript": r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`",
    "java": r"//[^\n]*|/\*.*?\*/|\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
}


def places_of(text, language):
    """Offsets behind a point in front of a name, not in comments and strings."""
    code = re.sub(NO_CODE[language], lambda m: " " * len(m.group()), text, flags=re.S)
    for match in re.finditer(r"(?<=[\w)\]])\.(?=[A-Za-z])", code):
        line = code[code.rfind("\n", 0, match.start()) + 1:match.start()]
        if not re.match(r"\s*(import|package|from)\b", line) and not re.search(r"(?<![\w.])\d+$", line):
            yield match.end()


def choose(places, seed, folder):
    rng = random.Random(seed)
    files = sources(rng, folder, 25)
    chosen = []
    for number, (language, paths) in enumerate(files.items()):
        wanted = places // len(files) + (number < places % len(files))
        found = []
        for path in paths:
            text = path.read_bytes().decode("utf-8", "replace")
            if len(text) <= MOST_BYTES and "\r" not in text and text.isascii():
                found += [(path, at) for at in places_of(text, language)]
        if len(found) < wanted:
            sys.exit(f"{language}: only {len(found)} places in {len(paths)} files")
        # A user stays in a file for a while.
        by_file = {}
        for path, at in rng.sample(found, wanted):
            by_file.setdefault(path, []).append(at)
        for path, offsets in by_file.items():
            text = path.read_text(encoding="utf-8", errors="replace")
            for at in sorted(offsets):
                name = re.compile(r"\w+").match(text, at).group()
                chosen.append({"file": str(path), "language": language, "line": text.count("\n", 0, at),
                               "character": at - text.rfind("\n", 0, at) - 1, "name": name})
    return chosen


def processor_ms(pid):
    total = 0
    for task in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(pathlib.Path(task).read_text(encoding="ascii").split()[0])
        except OSError:
            pass  # the thread has ended
    return total / 1e6


def pytest_lsp_run(command, places):
    from lsprotocol import types
    from pytest_lsp import LanguageClient, client_capabilities

    async def run():
        client = LanguageClient(configuration={})
        await client.start_io(*command)
        server = client._server.pid
        await client.initialize_session(types.InitializeParams(
            capabilities=client_capabilities("visual-studio-code"), workspace_folders=[], process_id=os.getpid()))
        results, opened, version = [], None, 0

        def edit(uri, line, start, end, text):
            nonlocal version
            version += 1
            where = types.Range(start=types.Position(line, start), end=types.Position(line, end))
            client.text_document_did_change(types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(uri=uri, version=version),
                content_changes=[types.TextDocumentContentChangePartial(range=where, text=text)]))

        for place in places:
            uri = pathlib.Path(place["file"]).resolve().as_uri()
            line, column, name = place["line"], place["character"], place["name"]
            if opened != uri:
                if opened:
                    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(opened)))
                text = pathlib.Path(place["file"]).read_text(encoding="utf-8", errors="replace")
                client.text_document_did_open(types.DidOpenTextDocumentParams(
                    types.TextDocumentItem(uri=uri, language_id=place["language"], version=0, text=text)))
                opened = uri
                # What the editor asks for when a file is opened is not an edit.
                await client.text_document_completion_async(types.CompletionParams(
                    types.TextDocumentIdentifier(uri), types.Position(line, column)))
            edit(uri, line, column, column + len(name), "")
            for typed in ("", name[0]):
                before = processor_ms(server)
                if typed:
                    edit(uri, line, column, column, typed)
                answer = await client.text_document_completion_async(types.CompletionParams(
                    types.TextDocumentIdentifier(uri), types.Position(line, column + len(typed)),
                    context=types.CompletionContext(types.CompletionTriggerKind.Invoked)))
                results.append({"typed": typed, "ms": processor_ms(server) - before, "open": answer.is_incomplete,
                                "labels": [item.label for item in answer.items]})
            edit(uri, line, column, column + 1, name)
        await client.shutdown_session()
        await client.stop()
        return results

    return asyncio.run(run())


def nvim_run(command, places):
    with tempfile.TemporaryDirectory() as folder:
        job, out = pathlib.Path(folder, "places.json"), pathlib.Path(folder, "results.json")
        job.write_text(json.dumps({"command": command, "places": places}), encoding="utf-8")
        environment = dict(os.environ, PAWL_JOB=str(job), PAWL_OUT=str(out))
        subprocess.run(["nvim", "--headless", "-u", "NONE", "-n", "-c", f"luafile {ROOT}/bench/lsp_places.lua", "-c", "cquit!"],
                       env=environment, check=True, timeout=600, stdin=subprocess.DEVNULL)
        results = json.loads(out.read_text(encoding="utf-8"))
        # Lua has one kind of empty table.
        return [dict(result, labels=result["labels"] or []) for result in results]


def summary(places, results):
    times = sorted(r["ms"] for r in results)
    rows = [(places[i // 2], r) for i, r in enumerate(results)]
    figures = {"places": len(places), "lists": len(results), "with_names": sum(bool(r["labels"]) for r in results),
               "closed": sum(not r["open"] for r in results),
               "true_name_listed": sum(p["name"] in r["labels"] for p, r in rows),
               "true_name_missing_in_closed": sum(p["name"] not in r["labels"] for p, r in rows if not r["open"]),
               "true_name_first": sum(r["labels"][:1] == [p["name"]] for p, r in rows),
               "true_name_in_first_five": sum(p["name"] in r["labels"][:5] for p, r in rows),
               "p50_ms": statistics.median(times), "p95_ms": times[int(0.95 * len(times))], "most_ms": times[-1]}
    for language in LANGUAGES:
        own = sorted(r["ms"] for p, r in rows if p["language"] == language)
        figures[language] = {"lists": len(own), "p50_ms": statistics.median(own), "p95_ms": own[int(0.95 * len(own))],
                             "closed": sum(not r["open"] for p, r in rows if p["language"] == language)}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=("pytest-lsp", "nvim"), required=True)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--option", action="append", default=[], help="a further word of the command line of `pawl lsp`")
    parser.add_argument("--places", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="the result is a member of this file's object, by client")
    parser.add_argument("--slow", type=int, default=0, help="print so many of the slowest lists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = choose(options.places, options.seed, folder)
        command = [str(pathlib.Path(options.pawl).resolve()), "lsp"] + options.option
        results = (pytest_lsp_run if options.client == "pytest-lsp" else nvim_run)(command, places)
    figures = summary(places, results)
    print(json.dumps({k: round(v, 1) if isinstance(v, float) else v for k, v in figures.items()}))
    worst = sorted(range(len(results)), key=lambda i: -results[i]["ms"])[:options.slow]
    for i in worst:
        place = places[i // 2]
        print(f"{results[i]['ms']:.0f} ms  {place['file']}:{place['line'] + 1} {place['name']} {len(results[i]['labels'])} names")
    for place, result in ((places[i // 2], r) for i, r in enumerate(results)):
        if options.slow and not result["open"] and place["name"] not in result["labels"]:
            print(f"missing in a closed list: {place['file']}:{place['line'] + 1} {place['name']} {result['labels'][:9]}")
    if options.json:
        known = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else {}
        known[options.client] = figures
        options.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
