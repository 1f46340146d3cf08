#!/usr/bin/env python3
"""The pages: how long the README is, where links lead, and the rules of scripts/check_prose.py.

    tests/prose_test.py             # the tests; ctest runs them as Prose
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import check_prose  # noqa: E402

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "plugins/README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def without_code(text):
    return re.sub(r"^```.*?^```", lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M)


def anchors(text):
    """The anchors of a page's headings, as the usual viewers make them."""
    out = {}
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.M):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", name).strip().replace(" ", "-")
        out[name if name not in out else f"{name}-{len(out)}"] = True
    return out


def broken(path, text, read=lambda path: path.read_text(encoding="utf-8")):
    """Links of a page that lead nowhere in this tree."""
    shown = re.sub(r"`[^`\n]*`(?!\])", "", without_code(text))
    for target in re.findall(r"\]\(<?([^)\s>]+)>?\)", shown):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        found = (ROOT / path).parent / name if name else ROOT / path
        if name and not found.exists():
            yield f"{path}: {target}"
        elif anchor and Path(found).suffix == ".md" and anchor not in anchors(text if not name else read(found)):
            yield f"{path}: {target} (no such heading)"


class ProseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = check_prose.tree()
        cls.found = check_prose.findings(cls.files)
        cls.known = check_prose.exceptions()

    def planted(self, path, text):
        """What a file with this text has of each rule, more than it has now."""
        before = {rule: len(remarks) for (rule, name), remarks in self.found.items() if name == path}
        after = {}
        for (rule, _), remarks in check_prose.findings({path: (self.files[path] + "\n" if path in self.files else "") + text}).items():
            after[rule] = len(remarks) - before.get(rule, 0)
        return {rule: more for rule, more in after.items() if more > 0}

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), 150)

    def test_links_lead_somewhere(self):
        texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in PAGES}
        self.assertEqual([link for path, text in texts.items() for link in broken(path, text)], [])
        self.assertGreater(sum(len(re.findall(r"\]\(", text)) for text in texts.values()), 200)

    def test_broken_links_are_found(self):
        text = "# T\n[a](nowhere.md) [b](#t) [c](#u) [d](cli.md#exit-codes) [e](cli.md#nothing) [f](https://example.org/#x)\n```\n[g](no.md)\n```\n"
        self.assertEqual(list(broken("docs/planted.md", text)),
                         ["docs/planted.md: nowhere.md", "docs/planted.md: #u (no such heading)", "docs/planted.md: cli.md#nothing (no such heading)"])

    def test_pages_that_sources_name_are_there(self):
        """docs/X.md in comments and messages."""
        for path, text in self.files.items():
            for name, anchor in re.findall(r"(?<!ggml, )\bdocs/(\w+\.md)(?:#([\w-]+))?", text):
                page = ROOT / "docs" / name
                self.assertTrue(page.exists(), f"{path} names docs/{name}")
                if anchor:
                    self.assertIn(anchor, anchors(page.read_text(encoding="utf-8")), f"{path} names docs/{name}#{anchor}")

    def test_the_rules_hold(self):
        self.assertEqual(list(check_prose.faults(self.found, self.known)), [])

    def test_what_is_read(self):
        self.assertGreater(len(self.files), 1000)
        self.assertEqual(sum(check_prose.is_page(path) for path in self.files), len(PAGES) - 1)

    def test_planted_faults_are_found(self):
        long = "# T\n\nUse " + "word " * 30 + "here.\n\n"
        for path, text, rule in (
                ("README.md", "# T\n\nUse the floor.\n\n", "word"), ("docs/cli.md", "| a | nobody |\n", "word"), ("docs/cli.md", long, "long"),
                ("docs/planted.md", "# T\n\nThis page is about things.\n", "begin"), ("docs/planted.md", "# T\n\n```\nrun\n```\n", "begin"),
                ("include/pawl/planted.h", f"// {'word ' * 31}\nint a;\n", "long"), ("src/base/planted.cc", 'int a; // what stands beside\nchar b[] = "x";\n', "word"),
                ("src/base/planted.py", 'def f():\n    """Whoever calls."""\n', "word"), ("scripts/planted.sh", "# begins anew\n", "word")):
            with self.subTest(text):
                self.assertEqual(self.planted(path, text), {rule: 1})

    def test_what_is_no_fault(self):
        for path, text in (
                ("docs/planted.md", "# T\n\nUse the list.\n\n```\nbeside the floor\n```\n\nIt works `beside` in the same way.\n"),
                ("docs/planted.md", "# T\n\nWith it you can do this. " + "Word. " * 40 + "\n"),
                ("docs/planted.md", "# T\n\nUse these: " + ", ".join(["`a`"] * 40) + ".\n"),
                ("src/base/planted.cc", 'const char* a = "nobody";  // the same way\n'), ("src/base/planted.py", 'a = "dear"  # this way\n')):
            with self.subTest(text):
                self.assertEqual(self.planted(path, text), {})

    def test_counts_that_are_too_high_are_found(self):
        (rule, path), remarks = next(iter(self.found.items()), (("word", "README.md"), []))
        known = {**self.known, (rule, path): len(remarks) + 1}
        self.assertIn("is too high", "\n".join(check_prose.faults(self.found, known)))
        self.assertIn("is too high", "\n".join(check_prose.faults(self.found, {**self.known, ("word", "docs/none.md"): 1})))

    def test_lines_of_findings(self):
        text = "# T\n\nUse\nthe\nfloor.\n"
        self.assertEqual([line for rule, line, _ in check_prose.page_findings("docs/planted.md", text)], [5])
        text = "int a;\n\n// One\n// beside.\n/* three\n   dear */\n"
        self.assertEqual([line for rule, line, _ in check_prose.source_findings("src/base/planted.cc", text)], [4, 6])


if __name__ == "__main__":
    unittest.main()
