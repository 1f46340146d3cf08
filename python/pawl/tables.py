"""Texts out of Parquet and Arrow files, and records into them, through pyarrow.

    import pawl
    from pawl import tables

    rows = list(tables.read("mails.parquet"))                 # (text, the other columns)
    records = engine.extract([text for text, _ in rows], schema)
    tables.write("records.parquet", [{**more, **record} for (_, more), record in zip(rows, records)])

The kind of a file is that of its name: .parquet, or .arrow and .feather (Arrow's IPC format).
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple, Union

from . import _errors

_Path = Union[str, "os.PathLike[str]"]
_ROWS = 1000  # that are in memory at a time


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise _errors.PawlError("unsupported", "tables need pyarrow (pip install pyarrow)") from None
    return pyarrow


def _is_parquet(path: _Path) -> bool:
    name = os.fspath(path).lower()
    if name.endswith(".parquet"):
        return True
    if name.endswith((".arrow", ".feather")):
        return False
    raise _errors.PawlError("invalid", "must end with .parquet, .arrow or .feather", os.fspath(path))


def _batches(path: _Path) -> Iterator[Any]:
    arrow = _arrow()
    if _is_parquet(path):
        from pyarrow import parquet

        with parquet.ParquetFile(os.fspath(path)) as file:
            yield from file.iter_batches(batch_size=_ROWS)
        return
    with arrow.memory_map(os.fspath(path)) as source, arrow.ipc.open_file(source) as file:
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            for begin in range(0, batch.num_rows, _ROWS):
                yield batch.slice(begin, _ROWS)


def read(path: _Path, column: str = "text") -> Iterator[Tuple[str, Dict[str, Any]]]:
    """The texts of a column, each with the other values of its row. A row without a text is an error
    that names it."""
    number = 0
    for batch in _batches(path):
        if column not in batch.schema.names:
            raise _errors.PawlError("invalid", f"has no column {column}", os.fspath(path))
        for row in batch.to_pylist():
            text = row.pop(column)
            if not isinstance(text, str):
                raise _errors.PawlError("invalid", f"the text must be a string, not {type(text).__name__}",
                                f"{os.fspath(path)}: row {number}")
            number += 1
            yield text, row


def write(path: _Path, records: Iterable[Mapping[str, Any]]) -> None:
    """A row for each record. A key that a record lacks is null in its row."""
    arrow = _arrow()
    parquet_file = _is_parquet(path)
    rows: List[Dict[str, Any]] = [dict(record) for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    table = arrow.table({name: [row.get(name) for row in rows] for name in names})
    if parquet_file:
        from pyarrow import parquet

        parquet.write_table(table, os.fspath(path))
        return
    with arrow.OSFile(os.fspath(path), "wb") as sink, arrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
