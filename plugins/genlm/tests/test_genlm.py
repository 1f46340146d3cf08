"""The potential has the properties that genlm asks of every potential, and sampling under it the law
that enumeration gives."""

import asyncio
import math

import pytest

pytest.importorskip("genlm.control")

import pawl  # noqa: E402
import pawl.genlm as plugin  # noqa: E402

VOCABULARY = [b"a", b"b", b"1", b"ab", b"ba"]


def run(future):
    return asyncio.run(future)


def potential(pattern, **options):
    return plugin.Potential(plugin.compiler_of(VOCABULARY).regex(pattern), VOCABULARY, **options)


def contexts(depth):
    level = [[]]
    for _ in range(depth + 1):
        yield from level
        level = [[*c, t] for c in level for t in VOCABULARY]


@pytest.mark.parametrize("pattern", ["ab?1", "(ab|ba){1,2}", "a*1?"])
def test_weights_are_consistent(pattern):
    import re

    p = potential(pattern)
    for context in contexts(3):
        text = b"".join(context).decode()
        complete = run(p.complete(context))
        assert (complete == 0.0) == bool(re.fullmatch(pattern, text))
        if run(p.prefix(context)) == -math.inf:
            with pytest.raises(ValueError):
                run(p.logw_next(context))
            continue
        weights = run(p.logw_next(context))
        for token in VOCABULARY:
            assert weights[token] == run(p.prefix([*context, token]))
        assert weights[p.eos] == complete
        places, value, eos = run(p.sparse_logw_next(context))
        assert value == 0.0 and eos == complete
        assert [VOCABULARY[i] for i in places] == [
            t for t in VOCABULARY if run(p.prefix([*context, t])) == 0.0]


def test_genlms_own_checks_pass():
    p = potential("(ab|ba){1,2}")
    for context in ([], [b"ab"], [b"a", b"b"]):
        run(p.assert_logw_next_consistency(context))
        run(p.assert_autoreg_fact(context))
    run(p.assert_batch_consistency([[], [b"ab"], [b"b", b"a"]]))


def test_few_contexts_are_kept():
    p = potential("[ab1]*", kept=8)
    for context in contexts(2):
        run(p.prefix(context))
    assert len(p._known) <= 8


def test_another_vocabulary_is_an_error():
    grammar = pawl.Compiler(pawl.Vocabulary([b"a", b""], [1], [1])).regex("a")
    with pytest.raises(ValueError, match="compiler_of"):
        plugin.Potential(grammar, VOCABULARY)


def test_awrs_has_the_law_of_enumeration():
    """A model that is a table: how often each text comes under AWRS, against its exact share."""
    from genlm.control import AWRS, Potential
    import numpy as np

    class Model(Potential):
        async def prefix(self, context):
            return -1.3 * len(context)

        async def complete(self, context):
            return -1.3 * len(context) - 0.4

        async def logw_next(self, context):
            logw = np.log(np.array([0.3, 0.25, 0.1, 0.1, 0.05, 0.2]))
            return self.make_lazy_weights(logw)

    model, p = Model(VOCABULARY), potential("ab?1?")
    texts = {}
    for context in contexts(3):
        if run(p.complete(context)) == 0.0 and context:
            logw = sum(float(run(model.logw_next(context[:i]))[t]) for i, t in enumerate(context))
            texts[tuple(context)] = math.exp(logw + math.log(0.2))
    total = sum(texts.values())

    async def evidence():
        sampler, values = AWRS(model, p), []
        for _ in range(300):
            result = await sampler.smc(n_particles=4, ess_threshold=0.5, max_tokens=6)
            values.append(math.exp(float(result.log_ml)))
        return values

    values = run(evidence())
    mean, error = float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))
    assert abs(mean - total) < 4 * error + 1e-3
