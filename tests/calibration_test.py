#!/usr/bin/env python3
"""scripts/calibration.py: figures of made reports, and the area under the curve against all pairs."""

import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import calibration


def report(path, documents, pages=1):
    blocks = [f'<script type="application/json" id="about">{json.dumps({"page": 1, "pages": pages})}</script>']
    blocks += [f'<script type="application/json" class="document">{json.dumps(one)}</script>' for one in documents]
    path.write_text("\n".join(blocks))


class CalibrationTest(unittest.TestCase):
    def test_the_area_is_that_of_all_pairs(self):
        rng = random.Random(5)
        for _ in range(200):
            count = rng.randint(2, 30)
            doubts = [rng.randint(0, 6) for _ in range(count)]
            right = [rng.random() < 0.6 for _ in range(count)]
            pairs = [(doubts[i], doubts[j]) for i in range(count) for j in range(count) if not right[i] and right[j]]
            area = calibration.auroc(doubts, right)
            if not pairs:
                self.assertIsNone(area)
                continue
            self.assertAlmostEqual(area, sum(1 if a > b else 0.5 if a == b else 0 for a, b in pairs) / len(pairs))

    def test_values_that_are_right_as_often_as_they_say(self):
        rng = random.Random(2)
        values = [((i,), p, 0, rng.random() < p, "1", "f") for i, p in enumerate(rng.random() for _ in range(20000))]
        found = calibration.figures(values)
        self.assertLess(found["ece"], 0.02)
        self.assertAlmostEqual(found["brier"], 1 / 6, delta=0.01)  # the mean of p (1 - p)
        sure = calibration.figures([(one[0], 1, *one[2:]) for one in values])
        self.assertAlmostEqual(sure["ece"], 1 - sure["right"])
        self.assertEqual(sure["auroc"]["probability"], 0.5)

    def test_what_of_a_report_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.html"
            values = [{"p": "/a/0", "f": "a[]", "v": "1", "q": 0.5, "u": 2, "ok": True}, {"p": "/b", "ok": False}, {"p": "/c", "v": "2", "q": 1}]
            report(path, [{"setting": 0, "values": values}, {"setting": 1, "values": values}], pages=2)
            report(Path(folder) / "r-2.html", [{"setting": 0, "values": [{"v": "null", "q": 0.25, "ok": False}]}], pages=2)
            found = calibration.values_of(path)
            self.assertEqual([one[1:] for one in found], [(0.5, 2, True, "1", "a[]"), (0.25, 0, False, "null", "")])
            self.assertIn("<svg", calibration.drawing([(calibration.measure("m<", found), found)]))


if __name__ == "__main__":
    unittest.main()
