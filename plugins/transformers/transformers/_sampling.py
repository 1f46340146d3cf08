"""Samplers that keep the model's distribution, over a model of transformers and its cache.

docs/sampling.md has the laws. P(y) is what the model writes by itself at a temperature, the end token
included; valid are the outputs that the grammar and a check accept. `gcd` takes masks alone, `awrs` and
`smc` reject by the check behind the mask, `smc` resamples populations; they run as rows of one batch.
`asap` and `cars` learn in a trie which prefixes cannot be valid; their attempts follow each other over
one sequence whose cache is cut back, and text that the grammar forces is fed in one call.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch

import pawl

SAMPLERS = ("gcd", "awrs", "smc", "asap", "cars")
FIDELITIES = ("fast", "aligned", "exact")
# The tokens so far, without the end, and whether the output ends here.
Check = Callable[[List[int], bool], Union[bool, str]]
DEAD = float("-inf")


@dataclasses.dataclass
class WeightedOutput:
    """`tokens`: with the end token. `log_weight`: as in docs/sampling.md; -inf: not valid."""

    tokens: List[int]
    log_weight: float
    log_probability: float

    @property
    def valid(self) -> bool:
        return self.log_weight > DEAD


@dataclasses.dataclass
class SamplerStats:
    """What a run cost: `calls` of the model and their `rows`, `evaluations` of the check, `attempts` of
    asap and cars. `outputs`: one for each row that was returned. `reached`: of a fidelity."""

    calls: int = 0
    rows: int = 0
    evaluations: int = 0
    attempts: int = 0
    reached: Optional[str] = None
    outputs: List[WeightedOutput] = dataclasses.field(default_factory=list)


class _Task:
    """What all samplers share: the law, the constraint, the budget, the dice."""

    def __init__(self, model: Any, prompt: List[int], grammar: pawl.Grammar, limit: int,
                 temperature: float, check: Optional[Check], rng: np.random.Generator,
                 stats: SamplerStats, cache_bytes: int) -> None:
        self.model, self.prompt, self.grammar, self.limit = model, prompt, grammar, limit
        self.temperature, self.check, self.rng, self.stats = temperature, check, rng, stats
        self.cache_bytes = cache_bytes
        self.ends = set(grammar.end_tokens)
        self._mask = pawl.allocate_mask(1, grammar.vocabulary_size)

    def new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    def feed(self, rows: List[List[int]], cache: Any, kept: int) -> Any:
        """Log-probabilities behind the last `kept` tokens of each row: [row, place, token]."""
        device = next(self.model.parameters()).device
        tokens = torch.tensor(rows, device=device)
        length = cache.get_seq_length() + tokens.shape[1]
        with torch.no_grad():
            output = self.model(
                input_ids=tokens, past_key_values=cache, use_cache=True,
                attention_mask=torch.ones(len(rows), length, dtype=torch.long, device=device))
        self.stats.calls += 1
        self.stats.rows += len(rows) * tokens.shape[1]
        logits = output.logits[:, -kept:].double() / self.temperature
        return torch.log_softmax(logits, -1).cpu().numpy()

    def allowed(self, matcher: pawl.Matcher, written: int, width: int) -> np.ndarray:
        """The ids of tokens that the grammar lets come; at the end of the budget the end alone."""
        self._mask[:] = 0
        matcher.fill_mask(self._mask)
        bits = np.unpackbits(self._mask[0].view(np.uint8), bitorder="little")
        ids = np.flatnonzero(bits[:min(width, self.grammar.vocabulary_size)])
        if written + 1 >= self.limit:
            ids = ids[[int(i) in self.ends for i in ids]]
        return ids

    def accepts(self, tokens: List[int], token: int) -> bool:
        """Whether the check lets `token` come behind `tokens`."""
        if self.check is None:
            return True
        self.stats.evaluations += 1
        ended = token in self.ends
        verdict = self.check(list(tokens) if ended else [*tokens, token], ended)
        if isinstance(verdict, (bool, np.bool_)):
            return bool(verdict)
        if verdict not in ("accept", "live", "unknown", "dead"):
            raise ValueError("a check answers True, False, 'accept', 'live', 'unknown' or 'dead', "
                             f"not {verdict!r}")
        return verdict == "accept" or (not ended and verdict != "dead")

    def draw(self, tokens: List[int], ids: np.ndarray, weights: np.ndarray,
             rejected: Optional[List[int]] = None) -> Tuple[Optional[int], float]:
        """The place in `ids` of a token that the check accepts, drawn by `weights` (which sum to 1),
        and an unbiased estimate of the weight of all that it accepts. Tokens come in the order of a
        race, each once; the first that is accepted has the law given that it is. What lost before
        it is known to be refused, it is known not to be, and one more token tells of the rest."""
        if self.check is None:
            return int(self.rng.choice(len(ids), p=weights)), 1.0
        with np.errstate(divide="ignore"):
            keys = np.log(weights) + self.rng.gumbel(size=len(weights))
        order = np.argsort(-keys)[:int((weights > 0).sum())]
        left = 1.0
        for at, place in enumerate(order):
            if not self.accepts(tokens, int(ids[place])):
                left -= weights[place]
                if rejected is not None:
                    rejected.append(int(place))
                continue
            mass = weights[place]
            if at + 1 < len(order):
                other = order[at + 1]
                if self.accepts(tokens, int(ids[other])):
                    mass += max(0.0, left - weights[place])
                elif rejected is not None:
                    rejected.append(int(other))
            return int(place), min(1.0, float(mass))
        return None, 0.0


# ---- Rows of one batch: gcd, awrs, smc ------------------------------------------------------------


class _Particle:
    def __init__(self, task: _Task) -> None:
        self.matcher = pawl.Matcher(task.grammar)
        self.tokens: List[int] = []
        self.weight = self.probability = 0.0

    def copy(self) -> "_Particle":
        made = object.__new__(_Particle)
        made.matcher, made.tokens = self.matcher.copy(), list(self.tokens)
        made.weight, made.probability = self.weight, self.probability
        return made

    @property
    def done(self) -> bool:
        return self.matcher.terminated or self.weight == DEAD

    def output(self) -> WeightedOutput:
        return WeightedOutput(self.tokens, self.weight, self.probability)

    def step(self, task: _Task, row: np.ndarray) -> None:
        ids = task.allowed(self.matcher, len(self.tokens), len(row))
        mass = float(np.exp(row[ids]).sum()) if len(ids) else 0.0
        place, accepted = None, 0.0
        if mass > 0:
            place, accepted = task.draw(self.tokens, ids, np.exp(row[ids]) / mass)
        if place is None or accepted <= 0:
            self.weight = DEAD
            return
        token = int(ids[place])
        self.weight += math.log(mass) + math.log(accepted)
        self.probability += float(row[token])
        self.matcher.accept(token)
        self.tokens.append(token)


def _mean_weight(weights: Sequence[float]) -> float:
    most = max(weights)
    if most == DEAD:
        return DEAD
    return most + math.log(sum(math.exp(w - most) for w in weights) / len(weights))


def _choose(weights: Sequence[float], count: int, rng: np.random.Generator) -> List[int]:
    """`count` places by weight, with as few copies as that allows (systematic resampling)."""
    most = max(weights)
    mass = np.exp(np.array(weights) - most)
    edges = np.cumsum(mass) / mass.sum()
    edges[-1] = 1.0
    return [int(i) for i in np.searchsorted(edges, (np.arange(count) + rng.random()) / count)]


def _population(task: _Task, size: int, ess_threshold: Optional[float]) -> List[_Particle]:
    """`size` particles as rows of a batch. `ess_threshold`: resample when the effective number falls
    below that share; None: never."""
    particles = [_Particle(task) for _ in range(size)]
    cache = task.new_cache()
    rows = np.repeat(task.feed([task.prompt], cache, 1), size, 0)
    cache.batch_repeat_interleave(size)
    while True:
        for particle, row in zip(particles, rows):
            if not particle.done:
                particle.step(task, row[-1])
        weights = [particle.weight for particle in particles]
        if all(particle.done for particle in particles):
            return particles
        if ess_threshold is not None and max(weights) > DEAD:
            mass = np.exp(np.array(weights) - max(weights))
            if mass.sum() ** 2 / (mass ** 2).sum() < ess_threshold * size:
                parents, mean = _choose(weights, size, task.rng), _mean_weight(weights)
                particles = [particles[parent].copy() for parent in parents]
                for particle in particles:
                    particle.weight = mean
                cache.reorder_cache(torch.tensor(parents, device=task.model.device))
        if all(particle.done for particle in particles):
            return particles
        # What has ended is fed its last token again: its row is not looked at.
        filler = task.prompt[-1]
        rows = task.feed([[p.tokens[-1] if p.tokens else filler] for p in particles], cache, 1)


def _by_population(task: _Task, sampler: str, n: int, particles: int,
                   ess_threshold: float) -> List[WeightedOutput]:
    if sampler != "smc":
        return [p.output() for p in _population(task, n, None)]
    outputs: List[WeightedOutput] = []
    while len(outputs) < n:
        made = _population(task, particles, ess_threshold)
        left = n - len(outputs)
        if left < particles:  # drawn, each for the whole population
            mean = _mean_weight([p.weight for p in made])
            chosen = [0] * left if mean == DEAD else _choose([p.weight for p in made], left, task.rng)
            made = [made[i].copy() for i in chosen]
            for particle in made:
                particle.weight = mean
        outputs += [p.output() for p in made]
    return outputs


# ---- One sequence after the other, with a trie: asap, cars ------------------------------------------


class _Rows:
    """Log-probabilities behind any output, with one sequence in the cache. `task.cache_bytes` of rows are
    kept for when they are asked for again."""

    def __init__(self, task: _Task) -> None:
        self.task, self.cache, self.fed = task, task.new_cache(), []
        self.known: "OrderedDict[Tuple[int, ...], np.ndarray]" = OrderedDict()
        self.bytes = 0

    def row(self, output: List[int], ahead: Sequence[int]) -> np.ndarray:
        """`ahead`: what is known to follow; its rows are found in the same call."""
        key = tuple(output)
        if key in self.known:
            self.known.move_to_end(key)
            return self.known[key]
        tokens = self.task.prompt + output + list(ahead)
        begin = len(self.task.prompt) + len(output) - 1  # the row behind this token is wanted
        same = 0
        while same < min(len(self.fed), begin) and self.fed[same] == tokens[same]:
            same += 1
        if len(self.fed) > same:
            self.cache.crop(same - len(self.fed))
        rows = self.task.feed([tokens[same:]], self.cache, len(ahead) + 1)[0]
        self.fed = tokens
        for at in range(len(ahead), -1, -1):
            self._keep((*key, *ahead[:at]), rows[at])
        return rows[0]

    def _keep(self, key: Tuple[int, ...], row: np.ndarray) -> None:
        if key not in self.known:
            self.known[key] = row
            self.bytes += row.nbytes
        while self.bytes > self.task.cache_bytes and len(self.known) > 1:
            self.bytes -= self.known.popitem(last=False)[1].nbytes


class _Node:
    """A prefix. `share[i]` is an upper bound of how much of what follows token ids[i] is valid. `hung`:
    it is in the trie, and found again."""

    __slots__ = ("ids", "mass", "share", "total", "children", "hung")

    def __init__(self, ids: np.ndarray, mass: np.ndarray) -> None:
        self.ids, self.mass, self.share = ids, mass, np.ones(len(ids))
        self.children: Dict[int, _Node] = {}
        self.hung = False
        self.total = float(mass.sum())

    def learn(self, place: int, share: float) -> None:
        self.share[place] = share
        # What is left of a sum of which all parts are 0 is 0.
        self.total = float(self.mass @ self.share) if self.share.any() else 0.0


class _Trie:
    """Nodes of at most `most_bytes`; a prefix that is beyond them is taken for new each time, which
    costs attempts and bends nothing."""

    def __init__(self, task: _Task, most_bytes: int) -> None:
        self.task, self.rows, self.left = task, _Rows(task), most_bytes
        self.root: Optional[_Node] = None

    def _expand(self, matcher: pawl.Matcher, tokens: List[int]) -> Tuple[_Node, np.ndarray]:
        room = self.task.limit - len(tokens) - 1
        ahead = list(matcher.forced_tokens())[:max(0, min(room, 16))]
        row = self.rows.row(tokens, [t for t in ahead if t not in self.task.ends])
        ids = self.task.allowed(matcher, len(tokens), len(row))
        return _Node(ids, np.exp(row[ids])), row

    def _learn(self, path: List[Tuple[_Node, int]], bottom: Optional[_Node]) -> None:
        """Carries what is known of the last node up to the root. A node that is not kept will be taken
        for new: what is above must not count on what was learned in it."""
        if bottom is not None and not bottom.hung:
            return
        share = 0.0 if bottom is None else bottom.total
        for node, place in reversed(path):
            if not node.hung:
                return
            node.learn(place, min(1.0, share))
            share = node.total

    def _hang(self, node: _Node, parent: Optional[Tuple[_Node, int]]) -> None:
        size = 200 + node.ids.nbytes + node.mass.nbytes + node.share.nbytes
        if self.left < size or (parent is not None and not parent[0].hung):
            return
        self.left -= size
        node.hung = True
        if parent is None:
            self.root = node
        else:
            parent[0].children[parent[1]] = node

    def attempt(self, exact: bool) -> Optional[WeightedOutput]:
        """One output. `exact` (cars): drawn from the model given what is known not to be valid, None:
        it was not valid. Else (asap): what cannot come is left out at each step, and weighed."""
        task = self.task
        task.stats.attempts += 1
        matcher, tokens, path = pawl.Matcher(task.grammar), [], []
        weight = probability = 0.0
        node, parent = self.root, None  # parent: the node and token under which a new one is hung
        while True:
            fresh = node is None
            if node is None:
                node, row = self._expand(matcher, tokens)
                self._hang(node, parent)
                if exact:  # the model's own choice, whatever the mask says
                    token = int(task.rng.choice(len(row), p=np.exp(row) / np.exp(row).sum()))
                    place = int(np.searchsorted(node.ids, token))
                    if place == len(node.ids) or node.ids[place] != token:
                        self._learn(path, node)
                        return None
            if node.total <= 0:
                self._learn(path, node)
                return None if exact else WeightedOutput(tokens, DEAD, probability)
            weights = node.mass * node.share / node.total
            rejected: List[int] = []
            accepted = 1.0
            if exact:
                if not fresh:
                    place = int(task.rng.choice(len(weights), p=weights / weights.sum()))
                if not task.accepts(tokens, int(node.ids[place])):
                    node.learn(place, 0.0)
                    self._learn(path, node)
                    return None
            else:
                chosen, accepted = task.draw(tokens, node.ids, weights / weights.sum(), rejected)
                before = math.log(node.total)
                for at in rejected:
                    node.learn(at, 0.0)
                if chosen is None or accepted <= 0:
                    self._learn(path, node)
                    return WeightedOutput(tokens, DEAD, probability)
                place = chosen
                weight += before - math.log(node.share[place]) + math.log(accepted)
            token = int(node.ids[place])
            probability += math.log(node.mass[place])
            matcher.accept(token)
            tokens = [*tokens, token]
            path.append((node, place))
            if matcher.terminated:
                self._learn(path[:-1], path[-1][0])
                return WeightedOutput(tokens, 0.0 if exact else weight, probability)
            node, parent = node.children.get(token), (node, token)


def _cars(trie: _Trie, n: int, attempts: int) -> List[WeightedOutput]:
    outputs: List[WeightedOutput] = []
    for _ in range(n):
        made = None
        for _ in range(attempts):
            made = trie.attempt(exact=True)
            if made is not None or (trie.root is not None and trie.root.total <= 0):
                break
        outputs.append(made or WeightedOutput([], DEAD, DEAD))
    return outputs


def _aligned(trie: _Trie, attempts: int) -> WeightedOutput:
    """One of so many outputs of asap, by weight."""
    made = [trie.attempt(exact=False) for _ in range(attempts)]
    weights = [output.log_weight for output in made if output is not None]
    if max(weights) == DEAD:
        return WeightedOutput([], DEAD, DEAD)
    chosen = made[_choose(weights, 1, trie.task.rng)[0]]
    return WeightedOutput(chosen.tokens, _mean_weight(weights), chosen.log_probability)


def run(model: Any, prompt: List[int], grammar: pawl.Grammar, limit: int, *, sampler: Optional[str],
        fidelity: Optional[str], n: int, particles: int, temperature: float,
        check: Optional[Check], seed: Optional[int], ess_threshold: float, attempts: Optional[int],
        oracle_bytes: int, stats: SamplerStats) -> List[WeightedOutput]:
    if sampler is not None and fidelity is not None:
        raise ValueError("fidelity picks the sampler, so it cannot be given with a sampler")
    if sampler is not None and sampler not in SAMPLERS:
        raise ValueError(f"there is no sampler {sampler!r}, only {', '.join(SAMPLERS)}")
    if fidelity is not None and fidelity not in FIDELITIES:
        raise ValueError(f"there is no fidelity {fidelity!r}, only {', '.join(FIDELITIES)}")
    if n < 1 or particles < 1 or (attempts is not None and attempts < 1):
        raise ValueError("n, particles and attempts are at least 1")
    if not temperature > 0:
        raise ValueError("a sampler needs a temperature above 0")
    if not prompt:
        raise ValueError("the prompt must have a token")
    task = _Task(model, prompt, grammar, limit, temperature, check, np.random.default_rng(seed),
                 stats, oracle_bytes // 2)
    if fidelity == "fast":
        sampler, stats.reached = "gcd", "fast"
    if sampler in ("gcd", "awrs", "smc"):
        stats.outputs = _by_population(task, sampler, n, particles, ess_threshold)
        return stats.outputs
    trie = _Trie(task, oracle_bytes // 2)
    if sampler == "asap":
        stats.outputs = [trie.attempt(exact=False) for _ in range(n)]
    elif sampler == "cars":
        stats.outputs = _cars(trie, n, attempts or 10000)
    else:
        reached = fidelity
        for _ in range(n):
            made = _cars(trie, 1, attempts or 200)[0] if fidelity == "exact" else None
            if made is None or not made.valid:
                made, reached = _aligned(trie, 16 if fidelity == "exact" else attempts or 16), "aligned"
            stats.outputs.append(made)
        stats.reached = reached
    return stats.outputs
