"""Texts out of Parquet and Arrow files; skipped where pyarrow is not there."""

import pytest

import pawl
from pawl import tables

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
def test_rows_come_back(tmp_path, ending):
    path = tmp_path / ("mails" + ending)
    rows = [{"id": i, "text": f"Ann pays {i} EUR", "tags": ["a"] * (i % 3)} for i in range(2500)]
    rows[7].pop("tags")
    tables.write(path, rows)
    back = list(tables.read(path))
    assert len(back) == len(rows)
    for row, (text, more) in zip(rows, back):
        assert text == row["text"]
        assert more == {"id": row["id"], "tags": row.get("tags")}
    assert next(tables.read(path, column="text"))[0] == rows[0]["text"]


def test_mistakes_are_named(tmp_path):
    path = tmp_path / "bad.parquet"
    tables.write(path, [{"text": "x", "n": 1}, {"text": None, "n": 2}])
    with pytest.raises(pawl.PawlError, match="row 1"):
        list(tables.read(path))
    with pytest.raises(pawl.PawlError, match="no column body"):
        next(tables.read(path, column="body"))
    with pytest.raises(pawl.PawlError, match=r"\.parquet"):
        tables.write(tmp_path / "x.xls", [])
