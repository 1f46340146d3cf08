#!/usr/bin/env python3
"""A check for `pawl generate`: is this SQL query one that the database takes?

    pawl generate --prompt "..." --sampler smc --particles 8 --grammar grammar/examples/sql.ebnf \\
        --check "program@token:python3 examples/checks/sql_check.py examples/checks/shop.sql"

The schema (a file of CREATE statements) is loaded into an empty SQLite database in memory. A complete
query is given to SQLite's own parser and planner by EXPLAIN, which reads no rows. A query in the making
is dead as soon as a whole word behind FROM or JOIN names no table, or a whole qualified name no column.
Whatever else is wrong with it is noticed at the end.

It reads a question in JSON from each line of standard input and answers with a line.
"""
import json
import re
import sqlite3
import sys


def load(path):
    database = sqlite3.connect(":memory:")
    with open(path, encoding="utf-8") as file:
        database.executescript(file.read())
    tables = {}
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
        rows = database.execute('SELECT name FROM pragma_table_info(?)', (table,))
        tables[table.lower()] = {name.lower() for (name,) in rows}
    return database, tables


# A name counts when something that ends it follows.
TABLE = re.compile(r"\b(?:FROM|JOIN)\s+([A-Za-z_]\w*)(?=[^\w])", re.IGNORECASE)
COLUMN = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?=[^\w])")
STRINGS = re.compile(r"'[^']*'?")


def dead(text, tables):
    text = STRINGS.sub("''", text)
    if any(name.lower() not in tables for name in TABLE.findall(text)):
        return True
    for table, column in COLUMN.findall(text):
        known = tables.get(table.lower())
        if known is not None and column.lower() not in known:
            return True
    return False


def judge(question, database, tables):
    text = question["text"]
    if not question["ended"]:
        return "dead" if dead(text, tables) else "live"
    try:
        database.execute("EXPLAIN " + text)
    except (sqlite3.Error, sqlite3.Warning):
        return "dead"
    return "accept"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    database, tables = load(sys.argv[1])
    for line in sys.stdin:
        question = json.loads(line)
        answer = {"id": question["id"], "verdict": judge(question, database, tables)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
