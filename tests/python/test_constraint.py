"""pawl.Constraint: rules for outputs in Python, and the example with the columns of a database."""

import asyncio
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

import pawl

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sql_columns"


@pytest.fixture(scope="module")
def engine():
    with pawl.Engine() as engine:
        yield engine


class Digits(pawl.Constraint):
    """At least one digit."""

    def __init__(self, vocabulary, written=0):
        self.vocabulary, self.written = vocabulary, written

    def look(self):
        return pawl.Place(mask=pawl.mask_of_texts(self.vocabulary, "0123456789"),
                          accepting=self.written > 0)

    def advance(self, token):
        return type(self)(self.vocabulary, self.written + 1)

    def completion(self, most):
        return [] if self.written else self.vocabulary.fewest_tokens("0")


def test_sync_stream_and_async_forms_obey_it(engine):
    start = Digits(engine.vocabulary)
    options = dict(constraint=start, temperature=1, seed=4, max_tokens=6)
    output = engine.generate("Pi is 3.", **options)
    assert re.fullmatch("[0-9]{1,6}", output.text)
    assert "".join(engine.stream("Pi is 3.", **options)) == output.text
    assert engine.generate(["Pi is 3."] * 3, **options)[2].text == output.text

    async def both():
        async with engine.astream("Pi is 3.", **options) as stream:
            pieces = [piece async for piece in stream]
        return "".join(pieces), (await engine.agenerate("Pi is 3.", **options)).text

    assert asyncio.run(both()) == (output.text, output.text)
    chat = engine.chat([{"role": "user", "content": "Pi?"}], **options) if engine.info.has_chat_template else output
    assert re.fullmatch("[0-9]{1,6}", chat.text)


def test_it_writes_what_its_regex_writes(engine):
    for seed in range(8):
        options = dict(temperature=1.2, seed=seed, max_tokens=1 + seed)
        # A class sees tokens: those of one digit.
        single = all(len(engine.vocabulary.bytes(t)) == 1 for t in
                     pawl.mask_where(engine.vocabulary, lambda t, b: b.isdigit()).tokens)
        expected = engine.generate("7 and ", regex="[0-9]+", **options)
        got = engine.generate("7 and ", constraint=Digits(engine.vocabulary), **options)
        if single:
            assert got.tokens == expected.tokens


def test_a_grammar_holds_too(engine):
    for seed in range(6):
        output = engine.generate("7 and ", constraint=Digits(engine.vocabulary), regex="[a-z13]{2,4}",
                                 temperature=1, seed=seed, max_tokens=5)
        assert re.fullmatch("[13]{2,4}", output.text)


def test_a_completion_within_the_budget_ends_the_output(engine):
    class Brackets(pawl.Constraint):
        def __init__(self, open_=0, begun=False):
            self.open, self.begun = open_, begun

        def look(self):
            return pawl.Place(mask=[OPEN, CLOSE] if self.open else [OPEN],
                              accepting=self.begun and self.open == 0)

        def advance(self, token):
            return Brackets(self.open + (1 if token == OPEN else -1), True)

        def completion(self, most):
            tokens = [CLOSE] * self.open if self.begun else [OPEN, CLOSE]
            return tokens if len(tokens) <= most else None

    (OPEN,), (CLOSE,) = engine.vocabulary.fewest_tokens("("), engine.vocabulary.fewest_tokens(")")
    for most in range(2, 12):
        output = engine.generate("(", constraint=Brackets(), temperature=3, seed=most, max_tokens=most)
        assert len(output.tokens) <= most
        depth = 0
        for byte in output.text:
            depth += 1 if byte == "(" else -1
            assert depth >= 0
        assert depth == 0
    with pytest.raises(pawl.PawlError, match="takes 2 tokens, but the budget is 1") as error:
        engine.generate("(", constraint=Brackets(), max_tokens=1)
    assert error.value.place == "max_tokens"


def test_what_a_place_says_counts(engine):
    class Says(Digits):
        def look(self):
            place = super().look()
            return pawl.Place(mask=place.mask.tokens, accepting=place.accepting, temperature=0,
                              limit="two are enough" if self.written == 2 else "")

    texts = set()
    for seed in range(4):
        output = engine.generate("7 and ", constraint=Says(engine.vocabulary), temperature=5, seed=seed)
        texts.add(output.text)
        assert len(output.tokens) <= 2
        assert list(output.notes) == (["two are enough"] if output.closed else [])
    assert len(texts) == 1


@pytest.mark.parametrize("method", ["look", "advance", "completion"])
def test_an_exception_ends_its_own_output(engine, method):
    def fail(self, *arguments):
        raise LookupError("no such column: été")

    Broken = type("Broken", (Digits,), {method: fail})
    with pytest.raises(pawl.PawlError) as error:
        engine.generate("7 and ", constraint=Broken(engine.vocabulary))
    assert error.value.message == "LookupError: no such column: été"
    assert error.value.place == "constraint"
    with pytest.raises(pawl.PawlError):
        list(engine.stream("7 and ", constraint=Broken(engine.vocabulary)))
    # Others in the batch go on.
    jobs = {}

    def run(name, constraint):
        try:
            jobs[name] = engine.generate("7 and ", constraint=constraint, max_tokens=8).text
        except pawl.PawlError as error:
            jobs[name] = error

    threads = [threading.Thread(target=run, args=(i, (Broken if i % 2 else Digits)(engine.vocabulary)))
               for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(6):
        assert isinstance(jobs[i], pawl.PawlError) == (i % 2 == 1)


@pytest.mark.parametrize("answers, message", [
    (dict(look=lambda self: 7), "look must return a Place, not int"),
    (dict(look=lambda self: pawl.Place(mask="abc")), "mask must be a Mask, tokens or None, not str"),
    (dict(look=lambda self: pawl.Place(mask=[10**6])), "its mask has token 1000000, but the vocabulary has"),
    (dict(look=lambda self: pawl.Place(mask=[])), "the mask allows no token"),
    (dict(look=lambda self: pawl.Place(forced=3)), "forced must be a str or bytes"),
    (dict(look=lambda self: pawl.Place(temperature="hot")), "temperature must be a number, not str"),
    (dict(advance=lambda self, token: True), "advance must return a Constraint or None, not bool"),
    (dict(advance=lambda self, token: None), "but Advance refuses it"),
    (dict(completion=lambda self, most: "x"), "completion must return tokens or None, not str"),
    (dict(completion=lambda self, most: [1] * (most + 1)), "tokens, but at most"),
    (dict(look=lambda self: pawl.Place(mask=pawl.mask_of_tokens(pawl.Vocabulary(["a"] * 40), [1]))),
     "its mask has 2 words, but the vocabulary has 64"),
])
def test_wrong_answers_are_errors_that_name_the_constraint(engine, answers, message):
    Broken = type("Broken", (Digits,), answers)
    with pytest.raises(pawl.PawlError) as error:
        engine.generate("7 and ", constraint=Broken(engine.vocabulary), max_tokens=20)
    assert message in error.value.message
    assert error.value.place == "constraint"


def test_what_is_no_constraint_is_refused_at_once(engine):
    with pytest.raises(TypeError, match="constraint must be a pawl.Constraint, not str"):
        engine.generate("7", constraint="[0-9]+")
    with pytest.raises(pawl.PawlError, match="NotImplementedError: Constraint has no look"):
        engine.generate("7", constraint=pawl.Constraint(), at_budget="cut")


def test_a_refused_token_is_drawn_again(engine):
    class Even(Digits):
        exact = False

        def advance(self, token):
            return super().advance(token) if self.vocabulary.bytes(token) in b"02468" else None

    for seed in range(5):
        output = engine.generate("7 and ", constraint=Even(engine.vocabulary), temperature=1, seed=seed,
                                 max_tokens=5)
        assert re.fullmatch("[02468]+", output.text)


def test_where_every_token_is_refused_the_output_ends(engine):
    class Three(Digits):
        exact = False

        def look(self):  # not yet complete
            return pawl.Place(mask=super().look().mask)

        def advance(self, token):
            return super().advance(token) if self.written < 3 else None

        def completion(self, most):
            return None

    output = engine.generate("7 and ", constraint=Three(engine.vocabulary), at_budget="cut", max_tokens=20)
    assert re.fullmatch("[0-9]{3}", output.text)
    assert (output.finish_reason, output.closed, output.report["sampled_tokens"]) == ("refused", False, 3)


def test_the_interpreter_lock_is_free_between_questions(engine):
    """A slow constraint holds up its own output: another one, and Python threads, go on."""
    gate, entered = threading.Event(), threading.Event()

    class Slow(Digits):
        def look(self):
            if self.written == 2:
                entered.set()
                assert gate.wait(60)
            return super().look()

    done = []
    thread = threading.Thread(target=lambda: done.append(
        engine.generate("7 and ", constraint=Slow(engine.vocabulary), max_tokens=5, temperature=1, seed=1)))
    thread.start()
    try:
        assert entered.wait(60) or done
        for seed in range(3):
            assert engine.generate("A colour: ", choice=["red", "green"], seed=seed).text
        assert not done or not entered.is_set()
    finally:
        gate.set()
        thread.join()
    assert len(done) == 1


def test_masks(engine):
    vocabulary = engine.vocabulary
    mask = pawl.mask_of_texts(vocabulary, ["name", b"na\xff"])
    expected = [t for t in range(len(vocabulary)) if not vocabulary.is_special(t) and vocabulary.bytes(t)
                and any(text.startswith(vocabulary.bytes(t)) for text in (b"name", b"na\xff"))]
    assert mask.tokens == expected and len(mask) == len(expected)
    assert all((t in mask) == (t in expected) for t in range(-1, len(vocabulary) + 40))
    assert pawl.mask_where(vocabulary, lambda token, text: token in expected).tokens == expected
    assert pawl.mask_of_tokens(vocabulary, expected).tokens == expected
    with pytest.raises(ZeroDivisionError):
        pawl.mask_where(vocabulary, lambda token, text: 1 // 0)


def test_ctrl_c_ends_a_generation_under_a_constraint():
    script = """
import os, signal, threading, pawl
class Slow(pawl.Constraint):
    def __init__(self, n=0): self.n = n
    def look(self):
        if self.n == 3: os.kill(os.getpid(), signal.SIGINT)
        return pawl.Place()
    def advance(self, token): return Slow(self.n + 1)
    def completion(self, most): return None
engine = pawl.Engine()
try:
    engine.generate("Once ", constraint=Slow(), max_tokens=400, at_budget="cut")
    print("went on")
except KeyboardInterrupt:
    print("interrupted", engine.generate("A: ", choice=["red"]).text)
engine.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted red", done.stderr


def test_the_interpreter_may_end_while_a_constraint_is_held():
    script = """
import pawl
class Any(pawl.Constraint):
    def look(self): return pawl.Place(accepting=True)
    def advance(self, token): return self
    def completion(self, most): return []
engine = pawl.Engine()
stream = engine.stream("Once ", constraint=Any(), max_tokens=500)
print(len(next(stream)) > 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


# The example.

def run_example(*arguments):
    done = subprocess.run([sys.executable, str(EXAMPLE / "sql_columns.py"), *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def database(path):
    connection = sqlite3.connect(path)
    connection.executescript((EXAMPLE / "shop.sql").read_text())
    connection.commit()
    return connection


def test_the_example_writes_queries_that_sqlite_takes(tmp_path):
    shop = database(tmp_path / "shop.db")
    queries = {run_example(), *(run_example(tmp_path / "shop.db", "Orders by price?", seed) for seed in range(3))}
    assert len(queries) > 1
    for query in queries:
        shop.execute("EXPLAIN " + query)
        assert re.fullmatch(r'SELECT "[^"]+"(, "[^"]+")* FROM "(users|orders)"( ORDER BY "[^"]+")?;', query)
        table = re.search('FROM ("[a-z]+")', query).group(1)
        columns = {f'"{name}"' for (name,) in shop.execute("SELECT name FROM pragma_table_info(?)", (table.strip('"'),))}
        assert set(re.findall('"[^"]+"', query)) - {table} <= columns


@pytest.mark.skipif("PAWL_SQL_COLUMNS" not in os.environ, reason="PAWL_SQL_COLUMNS is not set")
def test_the_example_in_cpp_writes_the_same(tmp_path):
    database(tmp_path / "shop.db").close()
    done = subprocess.run([os.environ["PAWL_SQL_COLUMNS"], str(ROOT / "models/tiny-extract"), str(tmp_path / "shop.db")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == run_example(tmp_path / "shop.db")
