#!/usr/bin/env python3
"""Opens reports of `pawl extract` and `pawl eval` in Chromium without a window: pointer, filters, keys, dark mode, 5,000
values in a document, pages, and texts that would run as a script if they could. Apart from CI; needs chromium.

    tests/clients/report_test.py [--model MODEL ...] [--picture FILE]

Each model writes a report of its own; without one it is the model that ships. --picture keeps a picture of the report.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser, chromium

ROOT = Path(__file__).resolve().parent.parent.parent
PAWL = ROOT / "build/pawl"
EVIL = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 2'><!-- & \u202e \u2028 \U0001f600 "
failed = 0


def expect(what, good, seen=""):
    global failed
    failed += not good
    print(f"report: {what}: {'ok' if good else 'FAILED'} {'' if good else seen}")


def pawl(*arguments):
    done = subprocess.run([PAWL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        sys.exit(f"report: pawl {arguments[0]}: {done.stderr}")
    return done


def schema_of(folder):
    file = folder / "schema.json"
    text = {"type": "string"}
    file.write_text(json.dumps({"type": "object", "properties": {"name": text, "phone": {"type": ["string", "null"]}, "kind": {"enum": ["a", "b"]}}, "required": ["name", "phone", "kind"]}))
    return file


def extracts(browser, folder, model, picture):
    """Texts, one of them hostile, one that is refused."""
    texts = ["Ann Lee, phone 020 7946 0018.", EVIL + "Bo Ray", "Cy, 555", 7]
    lines = folder / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text, "id": EVIL} if isinstance(text, str) else text) + "\n" for text in texts))
    report = folder / "report.html"
    arguments = ["extract", "--schema", schema_of(folder), "--json-lines", "--file", lines, "--max-tokens", 200]
    if model:
        arguments += ["--model", model]
    plain = pawl(*arguments).stdout
    expect("records are those without a report", pawl(*arguments, "--report", report).stdout == plain)
    page = browser.open(report.as_uri())
    expect("no script of a text runs, and nothing fails", page.run("window.evil === undefined") and not page.errors, page.errors)
    expect("nothing else is loaded", page.run("performance.getEntriesByType('resource').length") == 0)
    expect("each text is there", page.run("document.querySelectorAll('#list .doc').length") == 4)
    page.key("j")
    expect("a hostile text is text", page.run("document.getElementById('text').textContent") == texts[1], page.run("document.getElementById('text').textContent"))
    expect("and so is what stands next to it", page.run("document.getElementById('facts').textContent") == "id: " + EVIL)
    page.key("k")
    names = page.run("[...document.querySelectorAll('#values li span')].map((one) => one.textContent)")
    expect("the record's values", names == ["/name", "/phone", "/kind"], names)
    spans = json.loads(pawl(*arguments, "--details").stdout.split("\n")[0])["spans"]
    if spans:
        pointer, place = next(iter(spans.items()))
        page.hover("#values li", names.index(pointer))
        lit = page.run("[...document.querySelectorAll('mark.on')].map((one) => one.textContent).join('')")
        expect("from a value to its place", lit == texts[0][place[0] : place[1]], lit)
        page.hover("#values li", 2)
        page.hover("#text mark")
        first = page.run("document.querySelector('#text mark').values[0]")
        lit = page.run("[...document.querySelectorAll('#values li')].findIndex((one) => one.classList.contains('on'))")
        expect("from a place to its value", lit == first, lit)
    page.hover("#values li", 2)
    expect("a value that is nowhere lights up no place", page.run("document.querySelectorAll('mark.on').length") == 0)
    detail = page.run("document.getElementById('detail').textContent")
    expect("probability, surprise, alternatives", "Probability" in detail and "Surprise" in detail and page.run("document.querySelectorAll('#detail meter').length") == 2, detail)
    page.choose("#show", "failed")
    expect("a text without a record", page.run("document.querySelectorAll('#list .doc.failed').length") == 1)
    page.key("Escape")
    dark = browser.open(report.as_uri(), dark=True)
    back = "getComputedStyle(document.body).backgroundColor"
    expect("dark mode", dark.run(back) == "rgb(22, 24, 27)" and page.run(back) != dark.run(back), dark.run(back))
    dark.key("d")
    expect("and its key", dark.run(back) == page.run(back))


def evaluation(browser, folder, model, picture):
    report = folder / "eval.html"
    data = ROOT / "models/tiny-extract/eval/handwritten.jsonl"
    arguments = ["eval", "--data", data, "--limit", 24, "--json", "--report", report]
    if model:
        arguments += ["--model", model]
    result = json.loads(pawl(*arguments).stdout)["settings"][0]
    page = browser.open(report.as_uri())
    expect("nothing fails", not page.errors, page.errors)
    fields = result["all"]
    wrong = fields["values"] + fields["nulls"] - fields["right"] - fields["right_nulls"]
    page.key("e")
    count = page.run("document.getElementById('count').textContent")
    expect("wrong values, as many as were counted", int(count.split()[0]) >= wrong - 24 * result["failed"] and wrong > 0, f"{count}; {wrong}")
    expect("only they are listed", page.run("[...document.querySelectorAll('#values li i')].every((one) => one.className === 'wrong')"))
    detail = page.run("document.getElementById('detail').textContent")
    expect("what is right instead", "no; right is" in detail, detail)
    documents = page.run("document.querySelectorAll('#list .doc').length")
    seen = []
    for _ in range(int(count.split()[0]) + 2):
        seen.append(page.run("document.getElementById('text-title').textContent + document.querySelector('#values li.on span').textContent"))
        page.key("n")
    expect("the key n walks through all of them", len(set(seen)) == int(count.split()[0]), f"{len(set(seen))} of {count}; {documents} documents")
    page.key("p")
    expect("and p back", page.run("document.getElementById('text-title').textContent + document.querySelector('#values li.on span').textContent") == seen[-4])
    page.key("Escape")
    field = page.run("document.querySelectorAll('#field option')[1].value")
    page.choose("#field", field)
    expect("one field alone", page.run("new Set([...document.querySelectorAll('#values li span')].map((one) => one.textContent.replace(/\\d+/g, '[]'))).size") == 1)
    page.choose("#most", "0.5")
    page.choose("#field", "*")
    expect("unsure values alone", page.run("[...document.querySelectorAll('#values li i')].every((one) => parseFloat(one.textContent.replace('✗', '')) <= 50)"))
    page.key("/")
    expect("the key / goes to the search", page.run("document.activeElement.id") == "search")
    page.key("Escape")
    page.key("Escape")
    if picture:
        page.key("j")
        page.picture(picture, 1200, 640)


def many(browser, folder):
    """One document with 5,000 values, all in the text; then documents that need several pages."""
    words = [f"w{i}\U0001f600" for i in range(5000)]
    data, written = folder / "many.jsonl", folder / "written.jsonl"
    data.write_text(json.dumps({"text": " ".join(words), "record": {"words": [{"w": word} for word in words]}}) + "\n")
    written.write_text(json.dumps({"record": {"words": [{"w": word} for word in words[:-1]] + [{"w": "else"}]}}) + "\n")
    report = folder / "many.html"
    pawl("eval", "--data", data, "--written", written, "--report", report)
    page = browser.open(report.as_uri())
    expect("5,000 values", page.run("document.querySelectorAll('#values li').length") == 5000 and not page.errors, page.errors)
    seconds = page.run(
        "(() => { const begin = performance.now(); document.getElementById('show').value = 'right';"
        " document.getElementById('show').dispatchEvent(new Event('input')); document.body.offsetHeight; return (performance.now() - begin) / 1000; })()"
    )
    expect(f"a filter on them: {seconds:.2f} s", seconds < 3 and page.run("document.querySelectorAll('#values li').length") == 4999)
    page.run("document.querySelectorAll('#values li')[4990].scrollIntoView()")
    page.hover("#values li", 4990)
    lit = page.run("document.querySelector('mark.on').textContent")
    expect("the place of one of them", lit == words[4990], lit)
    long_text = "<" * 1_000_000
    data.write_text("".join(json.dumps({"text": f"{i} {long_text}", "record": {"n": str(i)}}) + "\n" for i in range(8)))
    written.write_text("".join(json.dumps({"record": {"n": str(i)}}) + "\n" for i in range(8)))
    pawl("eval", "--data", data, "--written", written, "--report", report)
    pages = [report, *sorted(folder.glob("many-*.html"))]
    sizes = [one.stat().st_size for one in pages]
    expect("pages of at most 20 MB", len(pages) == 3 and max(sizes) <= 20_000_000, sizes)
    page = browser.open(pages[1].as_uri())
    expect("pages know each other", page.run("document.getElementById('page').textContent") == "page 2 of 3" and page.run("document.getElementById('next').href") == pages[2].as_uri(), page.run("document.getElementById('page').textContent"))
    data.write_text("".join(json.dumps({"text": f"{i} Ann", "record": {"name": "Ann"}}) + "\n" for i in range(100_000)))
    written.write_text('{"record": {"name": "Ann"}}\n' * 100_000)
    small = folder / "small.html"
    pawl("eval", "--data", data, "--written", written, "--report", small)
    page = browser.open(small.as_uri())
    rows = page.run("document.querySelectorAll('#list .doc').length")
    documents = int(page.run("document.getElementById('count').textContent").split(" ")[-2])
    expect(f"{documents} documents in a page, {rows} of them drawn", documents > 80_000 and rows < 60, documents)
    page.key("End")
    expect("the last one", page.run("document.getElementById('text').textContent") == f"{documents - 1} Ann", page.run("document.getElementById('text').textContent"))
    cut = folder / "killed.html"
    cut.write_bytes(pages[1].read_bytes()[:14_000_000])
    page = browser.open(cut.as_uri())
    expect("a page that a killed run leaves", page.run("document.querySelectorAll('#list .doc').length") >= 1 and not page.errors, page.errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append")
    parser.add_argument("--picture")
    arguments = parser.parse_args()
    if chromium() is None:
        print("report_test.py: SKIPPED, no chromium")
        return 0
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        for index, model in enumerate(arguments.model or [None]):
            print(f"report: {model or 'the model that ships'}")
            extracts(browser, Path(folder), model, None)
            evaluation(browser, Path(folder), model, arguments.picture if index == 0 else None)
        many(browser, Path(folder))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
