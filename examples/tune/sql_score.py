#!/usr/bin/env python3
"""How good an SQL query is, as a critic for `pawl tune` and `pawl generate`: it runs on a real SQLite database.

    sqlite3 shop.db < examples/tune/shop.sql
    pawl tune --prompts examples/tune/sql.jsonl --critic "tests:python3 examples/tune/sql_score.py shop.db" ...

The query comes from standard input. The last line of the answer is its score: 1 where it has rows, 0.5 where it runs and
has none, 0 where SQLite refuses it. The database is opened for reading alone, and a query has a second.
"""
import sqlite3
import sys
import time


def score(path, query):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.execute("SELECT 1 FROM sqlite_master")  # a file that is no database is no fault of the query
        end = time.monotonic() + 1
        database.set_progress_handler(lambda: time.monotonic() > end, 1000)
        try:
            return 1 if database.execute(query).fetchone() else 0.5
        except (sqlite3.Error, sqlite3.Warning):
            return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(score(sys.argv[1], sys.stdin.read()))
