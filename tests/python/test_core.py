"""The module against slow twins: masks are compared with trying every token."""

import ast
import copy
import gc
import inspect
import pathlib
import random
import threading
import time

import numpy as np
import pytest

import pawl

TOKENS = [b"{", b"}", b'"a"', b":", b"1", b"12", b",", b" ", b'"', b"a", b"\xc3", b"\xa9", b"{\"a\"",
          b"<end>", b"<tool>"]
END, TOOL = 13, 14


@pytest.fixture(scope="module")
def vocabulary():
    return pawl.Vocabulary(TOKENS, [END, TOOL], [END])


@pytest.fixture(scope="module")
def compiler(vocabulary):
    return pawl.Compiler(vocabulary, cached_grammars=8)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 1212}},
          "required": ["a"], "additionalProperties": False}


def grammars(compiler):
    return [
        compiler.json_schema(SCHEMA, whitespace="compact"),
        compiler.json_schema(SCHEMA),
        compiler.regex('(a|é|12)*"'),
        compiler.choice(["a", "aa", '{"a"', "1:1"]),
        compiler.grammar('root ::= "a" root "1" | ""', "ebnf"),
        compiler.grammar('start: /[a1]+/ <tool> "a"'.replace("<tool>", '":"'), "lark"),
        compiler.grammar('root ::= ("a" | "12"){2,3}', "gbnf"),
    ]


def bits(row, size):
    return [index for index in range(size) if int(row[index // 32]) >> (index % 32) & 1]


def test_masks_agree_with_trying_every_token(compiler, vocabulary):
    random.seed(1)
    checked = 0
    for grammar in grammars(compiler):
        for _ in range(20):
            matcher = pawl.Matcher(grammar)
            mask = pawl.allocate_mask(1, len(vocabulary))
            for _ in range(12):
                some = matcher.fill_mask(mask)
                allowed = bits(mask[0], len(vocabulary))
                tried = [token for token in range(len(vocabulary)) if matcher.copy().accept(token)]
                assert allowed == tried == matcher.allowed_tokens()
                assert some == bool(allowed)
                checked += 1
                if not allowed:
                    break
                assert matcher.accept(random.choice(allowed))
    assert checked > 300


def test_end_rollback_and_reset(compiler):
    matcher = pawl.Matcher(compiler.choice(["a"]))
    assert not matcher.accepting and not matcher.accept(END)
    assert matcher.accept_bytes("a") and matcher.accepting and not matcher.terminated
    assert matcher.accept(END) and matcher.terminated and not matcher.accept(END)
    for steps in (3, 1000, -1, 2**40):
        with pytest.raises(IndexError, match="there are 2"):
            matcher.rollback(steps)
        assert matcher.steps == 2 and matcher.terminated
    matcher.rollback(0)
    assert matcher.steps == 2
    matcher.rollback(2)
    assert matcher.steps == 0 and not matcher.accepting
    assert matcher.accept_bytes(b"a")
    matcher.reset()
    assert matcher.steps == 0 and matcher.forced_bytes() == b"a"
    assert matcher.shortest_completion() == b"a"


def test_tokens_outside_of_the_vocabulary_fit_nowhere(compiler):
    matcher = pawl.Matcher(compiler.choice(["a"]))
    for token in (-1, len(TOKENS), 2**40):
        assert not matcher.accept(token)
        assert matcher.validate_tokens([9, token, 9]) == 1


def test_copies_are_independent(compiler):
    one = pawl.Matcher(compiler.regex("a1*"))
    for other in (one.copy(), copy.copy(one), copy.deepcopy(one)):
        assert other.accept_bytes("a") and one.steps == 0


def test_forced_tokens_with_a_tokenizer(compiler):
    matcher = pawl.Matcher(compiler.choice(['{"a":12']))
    assert matcher.forced_bytes() == b'{"a":12'
    seen = []

    def encode(text):
        seen.append(text)
        return [0, 2, 3, 5]

    tokens = matcher.forced_tokens(encode=encode)
    assert seen and tokens == [0, 2, 3, 5][: len(tokens)] and matcher.validate_tokens(tokens) == len(
        tokens)

    def broken(text):
        raise KeyError("no tokenizer")

    with pytest.raises(KeyError):
        matcher.forced_tokens(encode=broken)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_rows_of_numpy_arrays(compiler, vocabulary, dtype):
    matcher = pawl.Matcher(compiler.choice(["a"]))
    mask = np.full((3, 4), 7, dtype=dtype)
    assert matcher.fill_mask(mask, 1)
    assert bits(mask[1], 128) == [9]  # ids that no token has are cleared
    assert (mask[0] == 7).all() and (mask[2] == 7).all()
    assert matcher.fill_mask(mask, -1) and bits(mask[2], 128) == [9]
    every_second = np.zeros((4, 4), dtype=dtype)[::2]
    assert matcher.fill_mask(every_second, 1) and bits(every_second[1], 128) == [9]
    assert matcher.fill_mask(mask[0]) and bits(mask[0], 128) == [9]


def test_arrays_that_cannot_be_masks(compiler):
    matcher = pawl.Matcher(compiler.choice(["a"]))
    read_only = np.zeros((1, 1), dtype=np.int32)
    read_only.setflags(write=False)
    for array, kind in [
        (np.zeros((1, 1), dtype=np.int64), TypeError),
        (np.zeros((1, 1), dtype=np.float32), TypeError),
        (read_only, TypeError),
        ([0], TypeError),
        (np.zeros((1, 1, 1), dtype=np.int32), pawl.PawlError),
        (np.zeros((2, 4), dtype=np.int32)[:, ::2], pawl.PawlError),
        (np.zeros((1, 0), dtype=np.int32), pawl.PawlError),
        (np.zeros((0, 1), dtype=np.int32), IndexError),
    ]:
        with pytest.raises(kind):
            matcher.fill_mask(array)
    with pytest.raises(IndexError):
        matcher.fill_mask(np.zeros((2, 1), dtype=np.int32), 2)


def test_torch_tensors_share_their_memory(compiler):
    torch = pytest.importorskip("torch")
    matcher = pawl.Matcher(compiler.choice(["a"]))
    mask = torch.zeros(2, 1, dtype=torch.int32)
    assert matcher.fill_mask(mask, 1) and mask.tolist() == [[0], [1 << 9]]
    logits = torch.zeros(2, 20)
    pawl.apply_mask(logits, mask)
    assert (logits[0] == float("-inf")).all() and (logits[1] == 0).nonzero().tolist() == [[9]]


def test_captures_and_temperatures(compiler):
    grammar = compiler.grammar(
        'start: "a" n ("a" n)*\nn[capture="item", temperature=0.5]: /[12]+/', "lark")
    matcher = pawl.Matcher(grammar)
    assert matcher.captures() == [] and matcher.temperature is None
    assert matcher.accept_bytes("a12a")
    assert matcher.captures() == [("item", 1, 3, b"12")] and matcher.temperature == 0.5
    stop = 'start[capture]: w "a"\nw[stop="1"]: /[a-z]*/'
    matcher = pawl.Matcher(compiler.grammar(stop, "lark_xgrammar"))
    assert matcher.accept_bytes("b1a") and matcher.captures() == [("start", 0, 3, b"ba")]


def test_apply_mask_to_numpy():
    mask = np.array([[0b101, 0]], dtype=np.int32)
    logits = np.zeros((1, 70), dtype=np.float32)
    pawl.apply_mask(logits, mask)
    assert np.flatnonzero(logits[0] == 0).tolist() == [0, 2]
    # One row may stand without its dimension, on either side.
    for flat_mask, shape in ((mask[0], (70,)), (mask, (70,)), (mask[0], (1, 70))):
        logits = np.zeros(shape, dtype=np.float32)
        pawl.apply_mask(logits, flat_mask)
        assert np.flatnonzero(logits == 0).tolist() == [0, 2]


@pytest.mark.parametrize("masks, logits", [
    ((1, 4), (2, 128)), ((4,), (2, 128)), ((3, 4), (2, 128)), ((3, 4), (1, 228)), ((2, 4), (128,)),
    ((2, 4), (1, 128)), ((2, 4), (4, 64)), ((2, 4), (2, 1, 128)), ((2, 1, 4), (2, 128)),
    ((), (128,)), ((0, 4), (1, 128))])
def test_apply_mask_wants_a_row_for_each_row(masks, logits):
    def check(values, mask):
        with pytest.raises(pawl.PawlError) as error:
            pawl.apply_mask(values, mask)
        assert error.value.code == "invalid"
        assert str(masks) in str(error.value) and str(logits) in str(error.value)
        assert (values == 0).all()

    mask = np.full(masks, 5, dtype=np.int32)
    check(np.zeros(logits, dtype=np.float32), mask)
    torch = pytest.importorskip("torch")
    check(torch.zeros(*logits), mask)
    check(torch.zeros(*logits), torch.from_numpy(np.array(mask)))


def test_apply_mask_to_no_rows():
    logits = np.zeros((0, 70), dtype=np.float32)
    pawl.apply_mask(logits, np.zeros((0, 3), dtype=np.int32))
    assert logits.shape == (0, 70)


def test_batches_and_trees(compiler, vocabulary):
    grammar = compiler.regex("(a|12)*")
    matchers = [pawl.Matcher(grammar) for _ in range(9)]
    for index, matcher in enumerate(matchers):
        assert matcher.accept_bytes("a" * index)
    matchers[4] = None
    mask = np.full((9, 1), 5, dtype=np.int32)
    order = list(reversed(range(9)))
    assert pawl.BatchFiller(3).fill(matchers, mask, order) == 0
    for matcher, row in zip(matchers, order):
        expected = [5] if matcher is None else np.array([[0]], dtype=np.int32)
        if matcher is not None:
            matcher.fill_mask(expected)
        assert mask[row].tolist() == list(np.asarray(expected).reshape(-1))
    with pytest.raises(pawl.PawlError):
        pawl.BatchFiller(1).fill(matchers[:2], mask, [0, -9])  # the same row twice
    with pytest.raises(pawl.PawlError):
        pawl.BatchFiller(1).fill(matchers[:2], mask, [0])

    tree = np.zeros((4, 1), dtype=np.int32)
    accepted = matchers[0].fill_tree_masks([-1, 9, 6, 5], [-1, 0, 0, 1], tree)
    assert accepted == [True, True, False, True]
    step = matchers[0].copy()
    for row, token in [(0, None), (1, 9), (3, 5)]:
        assert token is None or step.accept(token)
        assert bits(tree[row], 32) == step.allowed_tokens()
    assert tree[2, 0] == 0
    with pytest.raises(pawl.PawlError):
        matchers[0].fill_tree_masks([9, 9], [1, 0], tree)
    assert pawl.draft_tree_parents([1, -1, -1], [-1, 2, -1]) == [-1, 0, 0]


def test_grammars_of_grammars(compiler):
    def fits(grammar, text):
        matcher = pawl.Matcher(grammar)
        return matcher.accept_bytes(text) and matcher.accepting

    nested = compiler.grammar('root ::= "{" root* "}" | [a1]+\n', "gbnf")
    gap = nested.infill("{{a", "1", "}}")
    assert fits(gap, "") and fits(gap, "}{a") and not fits(gap, "}}")
    both = gap.require_words("a1", "{")
    assert fits(both, "1}{a1") and not fits(both, "a1")
    no_brace = ~compiler.regex("[^]*[{}][^]*")
    assert fits(nested & no_brace, "a11") and not fits(nested & no_brace, "{a}")
    assert fits(compiler.substring("a,1 a"), ",1 ") and not fits(compiler.substring("a,1"), "a1")
    words = compiler.substring("aa 11", whole_words=True)
    assert fits(words, "aa 11") and fits(words, "11") and not fits(words, " 11")
    with pytest.raises(pawl.PawlError) as error:
        nested.infill("{", ":")
    assert error.value.code == "unsatisfiable" and error.value.place == "suffix"
    with pytest.raises(pawl.PawlError):
        nested & nested
    call = compiler.grammar('start: "a" <tool> "1"', "lark")
    assert pawl.Matcher(call).completion_tokens() == [TOKENS.index(b"a"), TOOL, TOKENS.index(b"1")]
    assert pawl.Matcher(call).shortest_completion() is None


def test_masks_are_the_same_with_any_number_of_steps_beforehand():
    vocabulary = pawl.Vocabulary([bytes([first, second]) for first in range(64, 128)
                                  for second in range(64, 128)] + [b"<end>"], [4096], [4096])
    compiler = pawl.Compiler(vocabulary)
    text = "start: (A | B | C)+\nA: /[a-m]+[n-z]{3,9}/\nB: /[a-z]{2,40}[A-Z]+/\nC: /[^a]{5,70}b/"
    masks, sizes = [], []
    for steps in ({"prepare_steps": 3_000_000}, {}, {"prepare_steps": 500}):
        alone = pawl.Compiler(vocabulary)
        matcher = pawl.Matcher(alone.grammar(text, "lark", **steps))
        sizes.append(alone.memory_bytes)  # before the first mask
        masks.append([])
        for token in (40 * 64 + 40, 55 * 64 + 57, 2 * 64 + 3):
            masks[-1].append(matcher.allowed_tokens())
            matcher.accept(token)
    assert masks[0] == masks[1] == masks[2] and masks[0][0] != masks[0][1]
    assert sizes[0] > 2 * sizes[1] and sizes[1] < sizes[2] < sizes[0]
    for bad in (-1, "3", 1.5):
        with pytest.raises(TypeError):
            compiler.grammar(text, "lark", prepare_steps=bad)


def test_errors_have_code_and_place(compiler):
    for make, code, place in [
        (lambda: compiler.json_schema({"properties": {"a": {"minimum": "1"}}}), "invalid",
         "#/properties/a/minimum"),
        (lambda: compiler.json_schema({"minimum": 2, "maximum": 1, "type": "integer"}),
         "unsatisfiable", "#"),
        (lambda: compiler.json_schema("{"), "invalid", None),
        (lambda: compiler.regex("a("), "invalid", None),
        (lambda: compiler.grammar('root ::= "a" | nothing', "ebnf"), "invalid", "1:16"),
        (lambda: compiler.grammar("", "no such language"), "invalid", ""),
        (lambda: compiler.json_schema({}, whitespace="some"), "invalid", ""),
        (lambda: pawl.Vocabulary([b"a"], [1]), "invalid", None),
        (lambda: pawl.Vocabulary.from_tokenizer_json("/no/such/file"), "io", None),
    ]:
        with pytest.raises(pawl.PawlError) as caught:
            make()
        assert caught.value.code == code and isinstance(caught.value, ValueError)
        assert place is None or caught.value.place == place
        assert caught.value.message in str(caught.value)
    with pytest.raises(TypeError):
        compiler.json_schema({}, no_such_option=1)
    with pytest.raises(TypeError):
        compiler.json_schema({}, ascii="yes")


def test_documents_come_from_python(compiler):
    asked = []

    def resolve(uri):
        asked.append(uri)
        return '{"const": 12}'

    grammar = compiler.json_schema({"$ref": "https://example.com/twelve"}, resolve_document=resolve,
                                   whitespace="compact")
    assert asked == ["https://example.com/twelve"]
    assert pawl.Matcher(grammar).accept_bytes("12") and not pawl.Matcher(grammar).accept_bytes("2")

    def broken(uri):
        raise OSError("offline")

    with pytest.raises(pawl.PawlError, match="offline"):
        compiler.json_schema({"$ref": "https://example.com/x"}, resolve_document=broken)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_raised_through_resolve_document(compiler, raised):
    asked = []

    def interrupted(uri):
        asked.append(uri)
        raise raised("stop")

    schema = {"anyOf": [{"$ref": "https://example.com/x"}, {"$ref": "https://example.com/y"}]}
    with pytest.raises(raised, match="stop"):
        compiler.json_schema(schema, resolve_document=interrupted)
    assert len(asked) == 1
    # Also where the schema stands in a grammar.
    with pytest.raises(raised, match="stop"):
        compiler.grammar('start: %json {"$ref": "https://example.com/x"}', "lark",
                         resolve_document=interrupted)


@pytest.mark.parametrize("threads", [-1, -1000, 1025, 100_000, 2**40])
def test_threads_of_a_batch_filler_are_bounded(threads):
    with pytest.raises(ValueError, match="from 0 .* to 1024"):
        pawl.BatchFiller(threads)
    assert pawl.BatchFiller(0).threads >= 1
    assert pawl.BatchFiller(2).threads == 2


def test_grammars_outlive_what_made_them():
    matcher = pawl.Matcher(pawl.Compiler(pawl.Vocabulary([b"a", b"b"])).regex("ab"))
    gc.collect()
    assert matcher.accept(0) and matcher.allowed_tokens() == [1]


def test_threads(compiler, vocabulary):
    expected = {}
    failures = []

    def work(seed):
        try:
            source = random.Random(seed)
            for grammar in grammars(compiler):
                matcher = pawl.Matcher(grammar)
                mask = pawl.allocate_mask(1, len(vocabulary))
                while matcher.steps < 6 and matcher.fill_mask(mask):
                    allowed = bits(mask[0], len(vocabulary))
                    assert allowed == matcher.allowed_tokens()
                    matcher.accept(source.choice(allowed))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and not expected


def test_tokenizer_of_the_repository():
    from pathlib import Path

    folder = Path(__file__).parents[2] / "models" / "tiny-extract"
    tokenizer = pawl.Tokenizer.from_file(str(folder))
    vocabulary = pawl.Vocabulary.from_tokenizer_json(folder, padded_size=len(tokenizer) + 40)
    assert len(vocabulary) == len(tokenizer) + 40 and vocabulary.end_tokens
    text = '{"total": 12.5}'
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text.encode()
    matcher = pawl.Matcher(pawl.Compiler(vocabulary).json_schema(
        {"type": "object", "properties": {"total": {"type": "number"}}}))
    assert matcher.validate_tokens(tokens) == len(tokens)


def parameters(function):
    """Names of the parameters of a native function, from the first line that nanobind documents it with, or of a Python one."""
    if not hasattr(function, "__nb_signature__"):
        return list(inspect.signature(function).parameters)
    tree = ast.parse("def " + function.__doc__.splitlines()[0] + ": ...").body[0].args
    names = [a.arg for a in tree.posonlyargs + tree.args]
    return names + ([tree.vararg.arg] if tree.vararg else []) + [a.arg for a in tree.kwonlyargs]


def test_the_stub_says_what_the_module_has():
    stub = ast.parse(pathlib.Path(pawl.__file__).with_name("_pawl.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    # Second names of classes.
    names = [node for node in stub.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    functions |= {node.targets[0].id for node in names if node.value.id in classes}
    module = pawl._pawl
    public = {name for name in dir(module) if not name.startswith("_")}
    assert public == set(classes) | functions
    for name, node in classes.items():
        native = vars(getattr(module, name))
        written = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
        assert {n for n in native if not n.startswith("_")} <= set(written), name
        for method, declared in written.items():
            found = getattr(getattr(module, name), method)
            if any(getattr(d, "id", "") == "property" for d in declared.decorator_list):
                assert isinstance(found, property) or not callable(found), (name, method)
            elif not method.startswith("__"):
                args = declared.args
                names = [a.arg for a in args.args] + ([args.vararg.arg] if args.vararg else [])
                names += [a.arg for a in args.kwonlyargs]
                assert names == parameters(found), (name, method)


def test_fill_drafts_equals_accepting_one_by_one():
    """Rows of a verify step: one for each draft token and one for what follows the last."""
    import random

    tokens = [b"<pad>", b"a", b"b", b"1", b"ab", b"<end>"]
    vocabulary = pawl.Vocabulary(tokens, [0, 5], [5])
    compiler = pawl.Compiler(vocabulary)
    grammars = [compiler.regex("(ab?1){1,3}"), compiler.choice(["aab", "ab1", "b"])]
    rng = random.Random(3)
    filler = pawl.BatchFiller(1)
    for _ in range(200):
        matchers, drafts = [], []
        for _ in range(rng.randint(1, 4)):
            matcher = pawl.Matcher(rng.choice(grammars))
            for _ in range(rng.randint(0, 6)):
                if matcher.terminated:
                    break
                matcher.accept(rng.choice(matcher.allowed_tokens()))
            matchers.append(matcher)
            walk, draft = matcher.copy(), []
            for _ in range(rng.randint(0, 4)):
                allowed = [] if walk.terminated else walk.allowed_tokens()
                token = rng.choice(allowed) if allowed and rng.random() < 0.8 else rng.randrange(9)
                draft.append(token)
                walk.accept(token)
            drafts.append(draft)
        total = sum(len(draft) + 1 for draft in drafts)
        mask = pawl.allocate_mask(total + 1, len(vocabulary))
        mask[:] = 0x5555
        steps = [matcher.steps for matcher in matchers]
        accepted = filler.fill_drafts(matchers, drafts, mask)
        assert [matcher.steps for matcher in matchers] == steps
        at = 0
        for matcher, draft, count in zip(matchers, drafts, accepted):
            walk, alive, row = matcher.copy(), True, pawl.allocate_mask(1, len(vocabulary))
            for j in range(len(draft) + 1):
                if j and alive:
                    alive = walk.accept(draft[j - 1])
                    assert alive == (j <= count)
                if alive:  # behind a refused token the last row that held stays
                    row[:] = -1
                    if not walk.terminated:
                        walk.fill_mask(row)
                assert mask[at, 0] == row[0, 0]
                at += 1
        assert mask[total, 0] == 0x5555
    # A vocabulary that cannot spell what the grammar wants: a dead end, told from the end.
    stuck = pawl.Matcher(pawl.Compiler(pawl.Vocabulary([b"a", b"<end>"], [1], [1])).regex("ab?|aac"))
    small = pawl.allocate_mask(3, 2)
    results = [filler.fill_drafts([stuck], [draft], small) for draft in ([], [0], [0, 0], [0, 1])]
    for draft, (result,) in zip(([], [0], [0, 0], [0, 1]), results):
        walk = stuck.copy()
        dead = False
        for token in [*draft, None]:
            dead = dead or (not walk.terminated and not walk.allowed_tokens())
            if token is None or not walk.accept(token):
                break
        assert (result < 0) == dead
    with pytest.raises(pawl.PawlError):
        filler.fill_drafts(matchers, drafts[1:], mask)
    with pytest.raises(pawl.PawlError, match="named twice"):
        filler.fill_drafts([matchers[0]] * 2, [[1], [1]], mask, [0, 1])


def test_closing_token_keeps_the_budget():
    import random

    tokens = [b"a", b"b", b"1", b"ab", b"<end>"]
    compiler = pawl.Compiler(pawl.Vocabulary(tokens, [4], [4]))
    rng = random.Random(2)
    for pattern in ("1(ab|1)*bb", "(a|b)*", "a{3}b*"):
        for budget in (6, 30, 80):
            matcher = pawl.Matcher(compiler.regex(pattern))
            for step in range(budget):
                token = pawl.closing_token(matcher, budget - step)
                allowed = matcher.allowed_tokens()
                assert token is None or token in allowed
                others = [t for t in allowed if t != 4] or allowed
                assert matcher.accept(rng.choice(others) if token is None else token)
                if matcher.terminated:
                    break
            assert matcher.terminated and step < budget


def test_what_closes_an_output_is_gone_on_with():
    """Here the completion that is found at each place is as long as the one at the place before."""
    import random

    multiples = {"type": "number", "multipleOf": 11, "minimum": 100}
    some, all_ = {"type": "array", "contains": multiples}, {"type": "array", "items": multiples}
    schema = {"type": "array", "oneOf": [
        {"anyOf": [{"items": some}, {"contains": all_}]},
        {"anyOf": [{"items": all_}, {"contains": some}]}]}
    vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.shipped_model())
    grammar = pawl.Compiler(vocabulary).json_schema(schema, whitespace="compact", max_string=8, max_digits=6)
    for seed in range(6):
        matcher, rng, plan, budget = pawl.Matcher(grammar), random.Random(seed), (), 80
        for step in range(budget):
            plan = pawl.closing_tokens(matcher, budget - step, plan)
            # A plan that was not followed, or is another output's, is found out.
            assert not plan or pawl.closing_tokens(matcher, budget - step, (7, 7, 7))
            assert len(plan) <= budget - step
            assert matcher.accept(plan[0] if plan else rng.choice(list(matcher.allowed_tokens())))
            if matcher.terminated:
                break
        assert matcher.terminated


def test_what_a_token_has_cost_once_it_may_cost_again():
    """Each item is an object of which a brace is followed by forty tokens or more."""
    import random

    names = [f"a long name {i}" for i in range(8)]
    item = {"type": "object", "required": names, "properties": {name: {"const": name} for name in names},
            "additionalProperties": False}
    vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.shipped_model())
    schema = {"type": "array", "items": {"anyOf": [item, {"enum": [1, 2]}]}}
    grammar = pawl.Compiler(vocabulary).json_schema(schema, whitespace="compact")
    closed = 0
    for seed in range(40):
        matcher, rng, plan, budget = pawl.Matcher(grammar), random.Random(seed), (), 400
        for step in range(budget):
            plan = pawl.closing_tokens(matcher, budget - step, plan)
            closed += bool(plan)
            assert matcher.accept(plan[0] if plan else rng.choice(list(matcher.allowed_tokens())))
            if matcher.terminated:
                break
        assert matcher.terminated
    assert closed > 100


def test_a_large_object_may_open_for_the_first_time_near_the_end():
    """Its braces are avoided until there is too little left for what they ask for."""
    names = [f"a long name {i}" for i in range(8)]
    item = {"type": "object", "required": names, "properties": {name: {"const": name} for name in names},
            "additionalProperties": False}
    vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.shipped_model())
    schema = {"type": "array", "items": {"anyOf": [item, {"enum": [1, 2]}]}}
    grammar = pawl.Compiler(vocabulary).json_schema(schema, whitespace="compact")
    braces = {token for token in range(len(vocabulary)) if b"{" in vocabulary.bytes(token)}
    step_of_brace = grammar.longest_step()
    assert step_of_brace > 100
    for opens_at in (300, 190, 170, 100, 60, 30):
        matcher, plan, budget = pawl.Matcher(grammar), (), 400
        for step in range(budget):
            left = budget - step
            plan = pawl.closing_tokens(matcher, left, plan)
            allowed = set(matcher.allowed_tokens())
            free = allowed & braces if left <= opens_at and allowed & braces else allowed - braces
            going_on = {t for t in free if b"]" not in vocabulary.bytes(t)} or free or allowed
            assert matcher.accept(plan[0] if plan else min(going_on))
            if matcher.terminated:
                break
        assert matcher.terminated, opens_at


def test_masks_found_beforehand_are_the_same():
    vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.shipped_model())
    schema = {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"}, "n": {"type": "number"}, "list": {"type": "array", "items": {"type": "boolean"}}}}
    cold, warm = (pawl.Compiler(vocabulary).json_schema(schema) for _ in range(2))
    assert warm.specimens() == [b'{"a": "a", "n": 12.5, "list": [true, true]}']
    assert warm.specimens(8) == [b'{"a": "a'] and warm.specimens(0) == []
    tokens = []
    for text in warm.specimens():
        at = pawl.Matcher(warm)
        while text:
            token = max((t for t in at.allowed_tokens() if text.startswith(vocabulary.bytes(t))
                         and vocabulary.bytes(t)), key=lambda t: len(vocabulary.bytes(t)))
            tokens.append(token)
            text = text[len(vocabulary.bytes(token)):]
            assert at.accept(token)
    assert pawl.Compiler(vocabulary).json_schema(schema).prepare_masks(tokens) == len(tokens) + 1
    assert warm.prepare_masks([*tokens[:4], -5]) == 5
    a, b = pawl.Matcher(cold), pawl.Matcher(warm)
    for token in tokens:
        assert a.allowed_tokens() == b.allowed_tokens()
        assert a.accept(token) and b.accept(token)


def test_a_warm_compiler_gives_the_same_masks():
    vocabulary = pawl.Vocabulary([bytes([b]) for b in range(256)] + [b'{"', b'": ', b"<end>"], [258], [258])
    warm, cold = pawl.Compiler(vocabulary), pawl.Compiler(vocabulary)
    warm.warm_up()
    matchers = [pawl.Matcher(compiler.json_schema({"type": "object", "properties": {"a": {"type": "string"}},
                                                   "required": ["a"]})) for compiler in (warm, cold)]
    for byte in b'{"a": "x\\n"}':
        assert matchers[0].allowed_tokens() == matchers[1].allowed_tokens()
        assert all(matcher.accept(byte) for matcher in matchers)


def test_every_plugin_has_an_extra_that_installs_its_host():
    tomllib = pytest.importorskip("tomllib")
    root = pathlib.Path(__file__).parents[2]
    with open(root / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    plugins = [folder.name for folder in (root / "plugins").iterdir()
               if (folder / f"{folder.name}.py").exists() or (folder / folder.name / "__init__.py").exists()]
    assert len(plugins) >= 8
    for name in plugins:
        assert extras.get(name), name


def test_a_budget_that_is_too_small_is_named(compiler):
    matcher = pawl.Matcher(compiler.choice(["1212"]))
    needed = len(matcher.completion_tokens()) + 1
    pawl.check_budget(matcher, needed)
    with pytest.raises(pawl.PawlError, match=f"takes {needed} tokens, but the budget is {needed - 1}") as caught:
        pawl.check_budget(matcher, needed - 1)
    assert (caught.value.code, caught.value.place) == ("limit", "max_tokens")
