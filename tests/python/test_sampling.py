"""pawl.sampling: models, weighted outputs, Python functions as checks. The command, where it is there, is the oracle:
PAWL_COMMAND, or pawl in PATH."""
import json
import math
import os
import shutil
import subprocess
import sys
import threading

import pytest

sampling = pytest.importorskip("pawl.sampling", reason="this build has no models")
import pawl  # noqa: E402

COMMAND = os.environ.get("PAWL_COMMAND") or shutil.which("pawl")
MODEL = os.path.join(os.path.dirname(__file__), "..", "..", "models", "tiny-extract")
PROMPT = "The answer is "
REGEX = "(yes|no), [a-z ]{1,8}"


@pytest.fixture(scope="module")
def model():
    return sampling.Model(MODEL)


def command(*arguments):
    if COMMAND is None:
        pytest.skip("no pawl command: set PAWL_COMMAND")
    out = subprocess.run([COMMAND, *arguments], capture_output=True, check=False)
    assert out.returncode in (0, 1), out.stderr
    return out.stdout.decode()


def figures(outputs):
    return [(o.text, o.tokens, o.log_weight, o.log_probability) for o in outputs]


@pytest.mark.parametrize("sampler", ["gcd", "fvo", "awrs", "smc", "asap", "rs", "ars", "cars"])
def test_same_lines_as_the_command(sampler):
    # A model that has learnt nothing yet.
    outputs = sampling.Model(MODEL).generate(PROMPT, sampler=sampler, n=4, regex=REGEX, max_tokens=12, seed=3, attempts=20)
    lines = command("generate", "--model", MODEL, "--prompt", PROMPT, "--sampler", sampler, "--n", "4", "--regex", REGEX,
                    "--max-tokens", "12", "--seed", "3", "--attempts", "20", "--json-lines")
    expected = [sampling.WeightedOutput(**json.loads(line)) for line in lines.splitlines()]
    assert figures(outputs) == figures(expected)
    assert [o.report.keys() for o in outputs] == [o.report.keys() for o in expected]


def test_scores(model):
    printed = command("score", "--model", MODEL, "--prompt", PROMPT, "--text", "yes, it is", "--temperature", "0.7")
    assert model.score(PROMPT, text="yes, it is", temperature=0.7) == pytest.approx(float(printed), abs=1e-9)
    each = model.score_each(PROMPT, text="yes", end=True)
    assert len(each) == len(model.encode("yes")) + 1 and all(p < 0 for p in each)
    assert sum(each[:-1]) == pytest.approx(model.score(PROMPT, text="yes"), abs=1e-9)
    assert sampling.score(PROMPT, model=model, tokens=model.encode("yes")) == model.score(PROMPT, text="yes")


def test_search_is_that_of_the_command(model):
    found = model.search(PROMPT, strategy="beam", num_beams=6, n=3, regex=REGEX, max_tokens=12)
    line = json.loads(command("generate", "--model", MODEL, "--prompt", PROMPT, "--search", "beam", "--num-beams", "6",
                              "--n", "3", "--regex", REGEX, "--max-tokens", "12", "--json"))
    assert [o.text for o in found.outputs] == [o["text"] for o in line["outputs"]]
    assert [o.score for o in found.outputs] == [o["score"] for o in line["outputs"]]
    assert found.at_limit is None and found.rows == line["rows"]
    forced = model.search(PROMPT, force_phrases=["blue"], regex="[a-z ]{3,20}", max_tokens=24)
    assert "blue" in forced.outputs[0].text and forced.outputs[0].missing_phrases == []
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, beams=3)
    assert caught.value.place == "beams"
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, num_beams=0)
    assert caught.value.place == "num_beams"
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, strategy="mcts", search_arg={"rollouts": 1.5})
    assert caught.value.place == "search_arg"
    for call in (model.search, model.generate):
        with pytest.raises(pawl.PawlError) as caught:
            call(PROMPT, max_tokens=0)
        assert caught.value.place == "max_tokens"


def test_lattices_and_contrast(model):
    lattice = model.search(PROMPT, strategy="lattice", n=3, regex="[a-c]{4}", max_tokens=8, search_arg={"ngram": 1})
    assert len(lattice.outputs) == 3 and lattice.paths >= 3
    plain = model.search(PROMPT, num_beams=1, max_tokens=8)
    same = model.search(PROMPT, num_beams=1, max_tokens=8, contrast_prompt=PROMPT, contrast=2)
    assert same.outputs == plain.outputs
    other = model.search(PROMPT, num_beams=1, max_tokens=8, contrast_prompt="Another text: ", contrast="auto")
    assert other.outputs[0].log_probability != plain.outputs[0].log_probability
    scored = model.search(PROMPT, regex="[ab]{3}", num_beams=8, max_tokens=4, critic="tests:grep -c bb")
    assert "bb" in scored.outputs[0].text


def test_notes_of_searches(model):
    cut = model.search(PROMPT, num_beams=1, max_tokens=4)
    assert cut.notes == [] or cut.notes == ["the output was cut at the budget"]
    assert bool(cut.notes) == (not cut.outputs[0].ended)
    few = model.search(PROMPT, regex="a|b", num_beams=4, n=3)
    assert few.notes == ["of 3 outputs 2 were found"]
    closed = model.search(PROMPT, regex="[a-c]{4}", max_nodes=1)
    assert closed.outputs[0].closed and closed.outputs[0].log_probability is None
    assert closed.notes[0].startswith("the limit of nodes was reached")
    lacks = model.search(PROMPT, regex="[a-c]{4}", force_phrases=["x"])
    assert lacks.notes == ['an output lacks the phrase "x"']


def test_contrast_in_conversations():
    with pawl.Engine(MODEL, chat_template="{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<out>") as chats:
        def said(text, **options):
            messages = [{"role": "user", "content": "Hi"}, {"role": "user", "content": text}]
            return chats.search(messages=messages, num_beams=1, max_tokens=8, **options).outputs[0]

        alone = said("Ann Lee")
        assert said("Ann Lee", contrast_prompt="Ann Lee", contrast=3) == alone
        assert said("Ann Lee", contrast_prompt="Bob", contrast=0) == alone
        assert said("Ann Lee", contrast_prompt="Bob").log_probability != alone.log_probability
        with pytest.raises(pawl.PawlError) as caught:
            chats.search(messages=[{"role": "assistant", "content": "a"}], contrast_prompt="Bob")
        assert caught.value.place == "contrast_prompt"


def test_fewer_outputs_than_asked_for(model):
    assert [o.text for o in model.search(PROMPT, choice=["a"], n=3, num_beams=4, max_tokens=4).outputs] == ["a"]
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, force_ordered=True)
    assert caught.value.place == "force_ordered"


def test_json_is_written_as_generate_writes_it(model):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
              "required": ["a", "b"], "additionalProperties": False}
    compact = {output.text for output in model.search(PROMPT, schema=schema, num_beams=4, n=4, max_tokens=30).outputs}
    compact |= {output.text for output in model.generate(PROMPT, schema=schema, n=8, max_tokens=30)}
    assert not any(set(" \n") & set(text) for text in compact)
    spaced = model.search(PROMPT, schema=schema, max_tokens=40, key_separator=":  ").outputs[0]
    assert ":  " in spaced.text
    free = model.generate(PROMPT, schema=schema, n=20, max_tokens=40, whitespace="any", sampler="gcd", seed=3)
    assert any(set(" \n") & set(output.text) for output in free)
    for call in (model.search, model.generate):
        with pytest.raises((TypeError, pawl.PawlError)):
            call(PROMPT, schema=schema, white_space="any")


def test_wrong_values_are_named(model):
    with pytest.raises(pawl.PawlError) as caught:
        model.classify(PROMPT, choices="blue")
    assert caught.value.place == "choices"
    assert model.search(PROMPT, choice="blue", max_tokens=8).outputs[0].text == "blue"
    none = model.classify(PROMPT, choices=["blueblueblueblue", "greengreengreengreen"], exact_rows=1)
    assert none.choices[0].probability is None and none.choices[0].log_probability is None
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, contrast_prompt="")
    assert caught.value.place == "contrast_prompt"
    with pytest.raises(pawl.PawlError) as caught:
        model.search(PROMPT, seed={1})
    assert caught.value.place == "seed"
    listed = model.engine.generate(PROMPT, samplers=["top_k", "temperature"], temperature=1, top_k=3, seed=4, max_tokens=6)
    text = model.engine.generate(PROMPT, samplers="top_k,temperature", temperature=1, top_k=3, seed=4, max_tokens=6)
    assert listed.text == text.text
    with pytest.raises(pawl.PawlError) as caught:
        model.engine.generate(PROMPT, samplers=3)
    assert caught.value.place == "samplers"


def test_limits_and_phrases_in_values(model):
    lattice = model.search(PROMPT, strategy="lattice", regex="[a-c]{9}", max_tokens=12, search_arg={"nodes": 2})
    assert lattice.at_limit == "nodes" and len(lattice.outputs[0].text) == 9
    few = model.search(PROMPT, num_beams=16, max_branches=1, search_rows=50, regex="[a-z]{12}", max_tokens=14)
    assert few.at_limit == "rows" and few.rows <= 50 + len(model.encode(PROMPT)) + 1
    phrase = 'a "b"\n\u00e9'
    found = model.search(PROMPT, schema={"type": "string"}, ascii=True, force_in="value", force_phrases=[phrase],
                         max_tokens=40)
    assert phrase in json.loads(found.outputs[0].text) and not found.outputs[0].missing_phrases
    assert found.outputs[0].text.isascii()


def test_search_asks_functions(model):
    checked = model.search(PROMPT, regex="[ab]{4}", num_beams=16, max_tokens=4,
                           check=lambda text, tokens, ended: "ab" not in text)
    assert checked.outputs and all("ab" not in o.text for o in checked.outputs)
    with pytest.raises(ZeroDivisionError):
        model.search(PROMPT, regex="[ab]{4}", critic=lambda text, tokens, ended: 1 / 0)


def test_checks_by_name(model, monkeypatch):
    def best(checks, **options):
        found = model.search(PROMPT, num_beams=27, max_tokens=20, checks=checks, **options)
        return found.outputs[0].text

    assert best(["style:a|b"], regex="[a-c]{3}") == "ccc"
    assert best(["style:a", "tests:grep -q bcb", lambda text, tokens, ended: True], regex="[a-c]{3}") == "bcb"
    for checks, place, message in [(["style:a("], "checks/0", "byte 2"), (["regex:a", "syntax:cobol"], "checks/1", "typescript"),
                                   (["word:a"], "checks/0", "another kind"), (["tests: "], "checks/0", "no program")]:
        with pytest.raises(pawl.PawlError, match=message) as raised:
            best(checks, regex="[a-c]{3}")
        assert raised.value.place == place
    if COMMAND is None:
        pytest.skip("no pawl command: set PAWL_COMMAND")
    monkeypatch.setenv("PATH", os.path.dirname(COMMAND), prepend=os.pathsep)
    assert best(["syntax:python"], regex=r"x = (\(1|\)\(|2|\[)") == "x = 2"
    assert best("monitor:typescript", regex=r"const xs = \[1\];\nxs\.(lenght|length);").endswith("xs.length;")
    engine_found = model.engine.search(PROMPT, checks=["syntax:python"], regex=r"(\(|2)", max_tokens=4)
    assert engine_found.outputs[0].text == "2"
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(pawl.PawlError, match="needs the command pawl") as raised:
        best(["syntax:python"], regex="a")
    assert raised.value.code == "unsupported" and raised.value.place == "checks/0"


def test_contrastive_superposed_and_self_infill(model):
    text = "The red sea and the red sea and "
    greedy = model.search(text, num_beams=1, max_tokens=16).outputs[0]

    def contrastive(alpha):
        return model.search(text, strategy="contrastive", search_arg={"penalty_alpha": alpha}, max_tokens=16).outputs[0]

    assert contrastive(0).tokens == greedy.tokens and contrastive(0.9).tokens != greedy.tokens
    with pytest.raises(pawl.PawlError) as caught:
        contrastive(2)
    assert caught.value.place == "search_arg"
    one = model.search(text, strategy="superposed", max_tokens=16)
    assert one.outputs[0].tokens == greedy.tokens
    three = model.search(text, strategy="superposed", n=3, max_tokens=16, regex="[a-z ]{6,12}")
    assert len(three.outputs) == 3 and len({o.text for o in three.outputs}) == 3
    code = sampling.Model(os.path.join(os.path.dirname(MODEL), "tiny-code"))
    program = "function area(w: number, h: number) {"

    def infilled(**arguments):
        return code.search(program, strategy="self-infill", max_tokens=24, search_arg=arguments).outputs[0]

    assert infilled(loops=0).tokens == code.search(program, num_beams=1, max_tokens=24).outputs[0].tokens
    assert infilled(loops=1).text
    with pytest.raises(pawl.PawlError) as caught:
        model.search(program, strategy="self-infill")
    assert caught.value.code == "unsupported"


def test_choices(model):
    found = model.classify(PROMPT, choices=["yes", "no", "maybe"])
    assert sum(c.probability for c in found.choices) == pytest.approx(1)
    assert sum(math.exp(c.log_probability) for c in found.choices) == pytest.approx(found.valid)
    assert found.missing <= 1e-6 * found.valid or found.at_limit == "rows"
    own = model.score(PROMPT, text="yes", end=True)
    assert found.choices[0].log_probability >= own - 1e-6


@pytest.mark.parametrize("sampler", ["awrs", "smc", "asap"])
def test_functions_as_checks(model, sampler):
    seen = []

    def check(text, tokens, ended):
        seen.append((threading.get_ident(), text, len(tokens), ended))
        return "dead" if "e" in text else "accept"

    options = dict(sampler=sampler, n=8, regex=REGEX, max_tokens=12, seed=5)
    outputs = model.generate(PROMPT, check=check, **options)
    assert len(outputs) == 8 and any(o.report["valid"] for o in outputs)
    for output in outputs:
        if output.report["valid"]:
            assert "e" not in output.text
            assert model.score(PROMPT, tokens=output.tokens) == pytest.approx(output.log_probability, abs=1e-4)
    assert any(ended for _, _, _, ended in seen)
    # The same check in other words draws the same: a bool, a regex, a grammar, a program in between.
    same = [lambda text, tokens, ended: "e" not in text, "regex@token:[^e]*",
            sampling.Check.from_grammar(pawl.Compiler(model.vocabulary).regex("[^e]*"), "token")]
    for other in same:
        assert figures(model.generate(PROMPT, check=[other], **options)) == figures(outputs)


def test_granularities(model):
    for granularity in ("byte", "token", "line", "complete"):
        ends, others = [], []

        def check(text, tokens, ended):
            (ends if ended else others).append(text)
            return "accept"

        model.generate(PROMPT, sampler="awrs", n=2, regex="a\nb", max_tokens=6, check=check, granularity=granularity)
        assert ends == ["a\nb"] * 2
        if granularity == "complete":
            assert not others
        if granularity == "line":
            assert set(others) == {"a\n"}
    made = sampling.Check.from_function(lambda *_: True, "line")
    assert made.granularity == "line"


def test_critic_and_proposal(model):
    def critic(text, tokens, ended):
        return -math.inf if text.endswith("z") else -0.1 * len(text)

    coarse = sampling.Model(MODEL, dtype="int8", threads=1)
    outputs = model.generate(PROMPT, sampler="smc", n=5, regex=REGEX, max_tokens=12, critic=critic, proposal=coarse)
    assert len(outputs) == 5
    assert all(not o.text.endswith("z") for o in outputs if o.report["valid"])


def test_errors_in_functions_are_raised(model):
    options = dict(regex="[ab]{1,6}", max_tokens=8, n=6)

    def check(text, tokens, ended):
        raise KeyError("gone")

    for sampler in ("awrs", "smc", "asap", "cars", "gcd", "fvo"):
        with pytest.raises(KeyError, match="gone"):
            model.generate("a", sampler=sampler, check=check, **options)
    with pytest.raises(ValueError, match="dead, live, accept, unknown"):
        model.generate("a", check=lambda *_: "yes", **options)
    with pytest.raises(TypeError):
        model.generate("a", check=lambda: "dead", **options)
    with pytest.raises(ZeroDivisionError):
        model.generate("a", critic=lambda *_: 1 / 0, **options)
    with pytest.raises(ValueError, match="not nan"):
        model.generate("a", critic=lambda *_: math.nan, **options)
    with pytest.raises(RuntimeError, match="enough"):
        model.generate("a", on_output=lambda output: (_ for _ in ()).throw(RuntimeError("enough")), **options)
    # A check that failed once is asked again in the next run.
    answers = iter(["boom"])

    def once(text, tokens, ended):
        for answer in answers:
            raise ValueError(answer)
        return "accept"

    made = sampling.Check.from_function(once, "byte")
    with pytest.raises(ValueError, match="boom"):
        model.generate("a", check=made, **options)
    assert len(model.generate("a", check=made, **options)) == 6


def test_bad_arguments(model):
    def place(**options):
        with pytest.raises(pawl.PawlError) as raised:
            model.generate("a", **options)
        return raised.value.place

    assert place(n=0) == "n"
    assert place(particles=10**6) == "particles"
    assert place(temperature=0) == "temperature"
    assert place(sampler="best") == "sampler"
    assert place(fidelity="perfect") == "fidelity"
    assert place(sampler="smc", fidelity="fast") == "fidelity"
    assert place(granularity="word", check=lambda *_: True) == "granularity"
    assert place(check="word:a") == "word:a"
    assert place(check="program:x", check_timeout=0) == "check_timeout"
    assert place(grammar="/no/such.ebnf") == "/no/such.ebnf"
    assert place(grammar="grammar.txt") == "grammar.txt"
    assert place(regex="a", choice=["b"]) == ""
    other = pawl.Compiler(pawl.Vocabulary(["a", "b"])).regex("a")
    assert place(grammar=other) == "grammar"
    with pytest.raises(pawl.PawlError, match="one of prompt and messages"):
        model.generate()
    with pytest.raises(TypeError):
        model.generate("a", n="many")
    with pytest.raises(TypeError):
        model.generate("a", seed=-1)
    with pytest.raises(TypeError):
        model.generate("a", colour="red")
    with pytest.raises(pawl.PawlError, match="one of text and tokens"):
        model.score("a")
    with pytest.raises(pawl.PawlError):
        model.score("a", tokens=[1 << 30])
    with pytest.raises(pawl.PawlError) as raised:
        sampling.Model("/no/such/model")
    assert raised.value.code == "io"
    with pytest.raises(pawl.PawlError):
        sampling.Model(MODEL, dtype="int2")


def test_outputs_come_one_by_one_and_may_end_the_run(model):
    told = []

    def tell(output):
        told.append(output)
        return len(told) < 3

    outputs = model.generate(PROMPT, sampler="awrs", n=50, regex=REGEX, max_tokens=12, on_output=tell)
    assert len(outputs) == 3 and figures(outputs) == figures(told)


def test_what_was_learnt_is_kept(model):
    options = dict(sampler="asap", n=40, check=sampling.Check.from_function(lambda *_: True, "complete"),
                   regex="[ab]{2}", max_tokens=6)
    first = model.generate(PROMPT, **options)
    again = model.generate(PROMPT, **options)
    assert sum(o.report["model_rows"] for o in again) <= sum(o.report["model_rows"] for o in first) / 2
    assert again[-1].report["theta"] <= first[-1].report["theta"]


# One engine generates, samples and scores.

def _maps():
    """Mappings of weights in this process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sum("model.safetensors" in line for line in maps)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no /proc here")
def test_an_engine_samples_without_loading_the_weights_again():
    with pawl.Engine(MODEL) as engine:
        assert engine.generate(PROMPT, max_tokens=3).text
        loaded = _maps()
        assert loaded > 0
        model = sampling.Model(engine)
        assert model.engine is engine
        outputs = engine.sample(PROMPT, sampler="smc", n=3, particles=3, regex=REGEX, max_tokens=12, seed=3)
        assert [o.text for o in outputs] == [
            o.text for o in sampling.generate(PROMPT, model=engine, sampler="smc", n=3, particles=3, regex=REGEX,
                                              max_tokens=12, seed=3)]
        assert engine.score(PROMPT, tokens=outputs[0].tokens) == outputs[0].log_probability
        assert sum(engine.score_each(PROMPT, tokens=outputs[0].tokens)) == outputs[0].log_probability
        assert engine.generate(PROMPT, max_tokens=3).text
        assert _maps() == loaded


def test_samples_while_streams_run():
    # A regex that the end of the budget cuts, so that the stream outlives the samplers.
    options = dict(regex="[a-z ]*", max_tokens=150, temperature=1, seed=1)
    sampled = dict(sampler="smc", n=4, particles=4, regex=REGEX, max_tokens=12, seed=3)
    with pawl.Engine(MODEL) as engine:
        alone = "".join(engine.stream(PROMPT, **options))
        wanted = [(o.text, o.log_weight) for o in engine.sample(PROMPT, **sampled)]
        pieces = []
        stream = engine.stream(PROMPT, **options)
        pieces.append(next(stream))
        got = []
        threads = [threading.Thread(target=lambda: got.append(
            [(o.text, o.log_weight) for o in engine.sample(PROMPT, **sampled)])) for _ in range(3)]
        for thread in threads:
            thread.start()
        pieces += list(stream)
        for thread in threads:
            thread.join()
        assert "".join(pieces) == alone
        assert got == [wanted] * 3


def test_ctrl_c_ends_a_run_of_a_sampler():
    code = f"""
import os, signal, threading, pawl
engine = pawl.Engine({MODEL!r})
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    engine.sample({PROMPT!r}, sampler="rs", n=1, attempts=100_000_000, regex="[0-9]{{60}}", max_tokens=60)
except KeyboardInterrupt:
    print("interrupted", len(engine.generate({PROMPT!r}, max_tokens=2).tokens))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "interrupted 2\n", done.stderr


def test_a_closed_engine_samples_no_more():
    engine = pawl.Engine(MODEL)
    model = sampling.Model(engine)
    engine.close()
    with pytest.raises(pawl.PawlError, match="the engine is closed"):
        model.generate(PROMPT)
    with pytest.raises(pawl.PawlError, match="the engine is closed"):
        model.score(PROMPT, text="a")


def test_a_model_that_fills_masks_refuses_them_by_name():
    with pawl.Engine(MODEL + "-diffusion", threads=1) as filler:
        for place, call in (("strategy", lambda: filler.search("a", choice=["x", "y"], num_beams=2)),
                            ("sampler", lambda: filler.sample("a", choice=["x", "y"], sampler="awrs")),
                            ("classify", lambda: filler.classify("a", choices=["x", "y"])),
                            ("score", lambda: filler.score("a", text="x"))):
            with pytest.raises(pawl.PawlError) as error:
                call()
            assert error.value.place == place
