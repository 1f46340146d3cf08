#!/usr/bin/env python3
"""A constraint of one's own: SQL queries over the tables and columns that a database really has.

    python examples/sql_columns/sql_columns.py [DATABASE] [QUESTION] [SEED]

DATABASE: an SQLite file, or a script of SQL statements (default: shop.sql). The model writes

    SELECT "column", "column" FROM "table" [ORDER BY "column"];

where all columns are those of the table behind FROM. Columns come before their table, so they are chosen
such that some table has them all. The next words come out of the database.
"""
import pathlib
import sqlite3
import sys

import pawl

SHOP = pathlib.Path(__file__).with_name("shop.sql")
COLUMNS = """SELECT printf('"%w"', t.name), printf('"%w"', c.name)  -- in quotes
             FROM sqlite_master AS t, pragma_table_info(t.name) AS c
             WHERE t.type = 'table' ORDER BY t.name, c.cid"""
PHASES = ["start", "columns", "table", "order", "done"]


class Shop:
    """What the constraint asks of a database. Only read, so all outputs share it."""

    def __init__(self, database, vocabulary):
        self.vocabulary = vocabulary
        self.tables = {}
        for table, column in database.execute(COLUMNS):
            self.tables.setdefault(table, []).append(column)


class Query(pawl.Constraint):
    """The position of a query: what was chosen, and the bytes of the word that is begun."""

    def __init__(self, shop, phase="start", columns=(), table="", begun=b""):
        self.shop, self.phase, self.columns = shop, phase, columns
        self.table, self.begun = table, begun

    def words(self):
        """The words that may come next, and the place behind each. No word begins with another."""
        shop, chosen = self.shop, self.columns
        having = {t: names for t, names in shop.tables.items() if set(chosen) <= set(names)}
        if self.phase == "start":
            yield "SELECT ", Query(shop, "columns")
        elif self.phase == "columns":
            for name in dict.fromkeys(c for names in having.values() for c in names):
                if name in chosen:
                    continue
                after = (*chosen, name)
                if any(set(after) < set(names) for names in having.values()):
                    yield name + ", ", Query(shop, "columns", after)
                yield name + " FROM ", Query(shop, "table", after)
        elif self.phase == "table":
            for table in having:
                yield table + ";", Query(shop, "done")
                yield table + " ORDER BY ", Query(shop, "order", table=table)
        elif self.phase == "order":
            for name in shop.tables[self.table]:
                yield name + ";", Query(shop, "done")

    def rests(self):
        """What the words lack that go on from the bytes that are begun."""
        words = [(word.encode(), after) for word, after in self.words()]
        return [(w[len(self.begun):], after) for w, after in words if w.startswith(self.begun)]

    def look(self):
        rests = [rest for rest, _ in self.rests()]
        mask = pawl.mask_of_texts(self.shop.vocabulary, rests)
        forced = rests[0] if len(rests) == 1 else b""
        return pawl.Place(mask=mask, accepting=self.phase == "done", forced=forced)

    def advance(self, token):
        written = self.shop.vocabulary.bytes(token)
        for rest, after in self.rests():
            if rest == written:
                return after
            if rest.startswith(written):
                return Query(self.shop, self.phase, self.columns, self.table,
                             self.begun + written)
        return None

    def completion(self, most):
        tokens, at = [], self
        while at.phase != "done":
            # The word that leads on furthest; of several the shortest one.
            rest, at = min(at.rests(), key=lambda word: (-PHASES.index(word[1].phase), len(word[0])))
            tokens += self.shop.vocabulary.fewest_tokens(rest)
        return tokens if len(tokens) <= most else None


def open_database(path):
    if path.suffix != ".sql":
        return sqlite3.connect(path)
    database = sqlite3.connect(":memory:")
    database.executescript(path.read_text(encoding="utf-8"))
    return database


def main():
    database = open_database(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else SHOP)
    question = sys.argv[2] if len(sys.argv) > 2 else "Who lives in Oslo?"
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with pawl.Engine() as engine:
        start = Query(Shop(database, engine.vocabulary))
        output = engine.generate(f"{question}\nSQL: ", constraint=start, temperature=1, seed=seed,
                                 max_tokens=100)
    print(output.text)
    database.execute("EXPLAIN " + output.text)  # SQLite takes it
    for row in database.execute(output.text):
        print(*row)


if __name__ == "__main__":
    main()
