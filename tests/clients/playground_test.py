#!/usr/bin/env python3
"""The playground of a server in Chromium without a window: extraction with places, probabilities and alternatives, then
the other constraints. tests/clients/playground.sh starts the server.

    tests/clients/playground_test.py URL MODEL [--screenshots FOLDER]
"""

import argparse
import sys
from pathlib import Path

from browser import Browser

failed = 0


def expect(what, good, seen=""):
    global failed
    failed += not good
    print(f"playground: {what}: {'ok' if good else 'FAILED'} {'' if good else seen}")


def text_of(page, name):
    return page.run(f"document.getElementById('{name}').textContent")


def run(page):
    page.run("document.getElementById('run').click()")
    page.wait("!document.getElementById('run').disabled && (document.querySelector('#figures dt') || document.querySelector('#error.bad'))")


def extraction(page, causal):
    run(page)
    # A model that fills masks refuses logprobs once.
    expect("no errors", len(page.errors) == (0 if causal else 1), page.errors)
    names = page.run("[...document.querySelectorAll('#values td:first-child')].map((one) => one.textContent)")
    expect("each value of the record", names == ["/name", "/email", "/phone", "/company", "/city"], names)
    marks = page.run("document.querySelectorAll('#marked mark').length")
    expect("places in the text", marks > 0 and text_of(page, "marked") == page.run("document.getElementById('text').value"), marks)
    row = page.run("document.querySelector('#marked mark').values[0]")
    page.hover("#values tr", row)
    lit = page.run("[...document.querySelectorAll('#marked mark.on')].map((one) => one.textContent).join('')")
    value = page.run(f"JSON.parse(document.querySelectorAll('#values code')[{row}].textContent)")
    expect("from a value to its place", lit == str(value), (lit, value))
    page.hover("#marked mark")
    expect("from a place to its value", page.run(f"document.querySelectorAll('#values tr')[{row}].classList.contains('on')"))
    shown = text_of(page, "value-detail")
    expect("its probability", ("%" in shown) == causal and "characters" in shown, shown)
    tokens = page.run("document.querySelectorAll('#pieces span').length")
    figures = page.run("document.querySelectorAll('#figures dt').length")
    expect("figures", figures >= 5, figures)
    if not causal:
        return
    expect("tokens", tokens > 10, tokens)
    kinds = page.run("[...new Set([...document.querySelectorAll('#pieces span')].map((one) => one.className))].sort()")
    expect("chosen ones and dictated ones", {"sampled", "forced"} <= set(kinds), kinds)
    page.run("document.getElementById('tab-tokens').click()")
    index = page.run("[...document.querySelectorAll('#pieces span')].findIndex((one) => one.className === 'sampled' && /one of \\d\\d/.test(one.title))")
    page.hover("#pieces span", index)
    expect("alternatives of a token", page.run("document.querySelectorAll('#detail meter').length") == 5, text_of(page, "detail"))
    page.run("document.querySelector('#pieces span').focus()")
    page.key("ArrowRight")
    expect("arrows walk through tokens", page.run("[...document.querySelectorAll('#pieces span')].indexOf(document.activeElement)") == 1)
    page.run("document.getElementById('tab-output').click()")


def prompt_tokens(page):
    shown = page.run("[...document.querySelectorAll('#figures div')].find((one) => one.textContent.startsWith('Prompt')).querySelector('dd').textContent")
    return int(shown.split(" ")[0])


def choices_and_prompt(page, asks):
    """`asks`: the model's prompt has an instruction and examples."""
    page.choose("#constraint", '{"type":"object","properties":{"kind":{"enum":["mail","call"]}},"required":["kind"]}')
    page.choose("#instruction", "What is it?")
    if not asks:
        run(page)
        expect("the model takes no instruction, and says so", "#/instruction: " in text_of(page, "error"), text_of(page, "error"))
        page.choose("#instruction", "")
    if asks:
        page.choose("#examples", '{"text": "Rang at noon.", "record": {"kind": "call"}}')
    run(page)
    page.hover("#values tr")
    expect("alternatives of a value", page.run("document.querySelectorAll('#value-detail meter').length") == 2, text_of(page, "value-detail") + text_of(page, "error"))
    if asks:
        long = prompt_tokens(page)
        page.choose("#examples", "")
        page.choose("#instruction", "")
        run(page)
        expect("the prompt had the instruction and the example", long > prompt_tokens(page), (long, prompt_tokens(page)))
    page.choose("#examples", "{")
    run(page)
    expect("an example that is no JSON", text_of(page, "error").startswith("Example 1 is not JSON"), text_of(page, "error"))
    page.choose("#examples", "")
    page.choose("#constraint", '{"type":"object","properties":{"kind":{"enum":["mail","call"]}},"required":["kind"], "minimum": "x"}')
    page.wait("!/Example/.test(document.getElementById('error').textContent)")
    expect("a wrong schema, with its place", "#/minimum" in text_of(page, "error"), text_of(page, "error"))
    page.choose("#text", "<img src=x onerror='window.evil=1'>Ann")
    page.choose("#constraint", '{"type":"object","properties":{"v":{"type":"string","x-pawl-source":"chars"}},"required":["v"]}')
    run(page)
    expect("a hostile text is text", page.run("window.evil === undefined") and "<img" in text_of(page, "marked"), text_of(page, "marked"))


def others(page, causal):
    import re

    for kind, pattern in (("schema", r"\{\"name\":.*\}"), ("regex", r"[A-Z][a-z]+ is (red|green|blue)\."), ("grammar", r"[xy(),]+"), ("choice", "red|green|blue")):
        page.choose("#kind", kind)
        page.choose("#most", "60")
        page.wait("document.querySelector('#error.good')")
        run(page)
        output = text_of(page, "output")
        closed = "length" in text_of(page, "figures")
        expect(f"{kind}: {output[:40]!r}", re.fullmatch(pattern, output) is not None or (closed and output), output + text_of(page, "error"))
        if causal:
            page.run("document.getElementById('tab-tokens').click(); document.querySelector('#pieces span.sampled').focus()")
            expect(f"{kind}: alternatives of tokens", page.run("document.querySelectorAll('#detail meter').length") > 0, text_of(page, "detail"))
            page.run("document.getElementById('tab-output').click()")
        expect(f"{kind}: the same for curl and Python", "/v1/chat/completions" in text_of(page, "curl") and "openai.OpenAI(" in text_of(page, "python"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    with Browser(1280, 650) as browser:
        page = browser.open(arguments.url)
        page.wait("document.querySelector('#error.good')")
        expect("the model's name", text_of(page, "model") == arguments.model, text_of(page, "model"))
        causal = "diffusion" not in arguments.model
        for width, height in ((1280, 650), (412, 650)):
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
            box = page.run("(() => { const box = document.getElementById('run').getBoundingClientRect(); return [box.top, box.bottom, box.left, box.right]; })()")
            expect(f"Run can be seen at {width} x {height}", box[0] >= 0 and box[1] <= height and box[2] >= 0 and box[3] <= width, box)
        page.call("Emulation.clearDeviceMetricsOverride")
        expect("the same request for curl", "/v1/extract" in text_of(page, "curl"))
        expect("the same request for Python", "engine.extract(" in text_of(page, "python"))
        extraction(page, causal)
        if causal:
            choices_and_prompt(page, not arguments.model.startswith("tiny-extract"))
        others(page, causal)
        elsewhere = page.run("performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin)).length")
        expect("nothing is loaded from elsewhere", elsewhere == 0)
        if arguments.screenshots:
            for name, dark, place, width, height in (
                ("playground.png", False, "#run", 1280, 740), ("playground_dark.png", True, "#tokens", 1280, 740), ("playground_phone.png", False, "#run", 412, 1240),
            ):
                page = browser.open(arguments.url + "/" + place, dark)
                page.wait("document.querySelector('#figures dt')")
                if place == "#run":
                    page.hover("#values tr", 1)
                else:
                    page.hover("#pieces span.sampled", 3)
                page.picture(arguments.screenshots / name, width, height)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
