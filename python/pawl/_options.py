"""What the methods of Engine take by name, and how it is sorted.

The names are those of the command's options with underscores for hyphens, and those of the fields
of the C++ API where the command has no such option. They are of three kinds: how tokens are drawn
and when the output ends, what the output must be, and how JSON is written.
"""

from __future__ import annotations

import difflib
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union

from . import _pawl
from ._constraint import Constraint
from ._errors import PawlError

if TYPE_CHECKING:
    from typing import Literal

    Text = Union[str, bytes]


class SamplingOptions(TypedDict, total=False):
    """How tokens are drawn, and when the output ends."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    epsilon_cutoff: float
    eta_cutoff: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: "Sequence[str]"
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    dynatemp_range: float
    dynatemp_exponent: float
    temperature_last: float
    temperature_tokens: int
    momentum_alpha: float
    momentum_k: int
    samplers: "Union[str, Sequence[str]]"
    seed: int
    max_tokens: int
    stop: "Union[str, Sequence[str], None]"
    grammar_temperature: bool
    skip_forced: bool
    drafts: bool
    draft_lanes: int
    draft_owner: int
    at_budget: "Literal['close', 'close_or_cut', 'cut']"
    logprobs: int
    mask_surprise: bool
    details: bool
    close_repetition: bool
    free_first: int
    logit_bias: "Mapping[int, float]"
    diffusion: "Mapping[str, Any]"
    thinking: "Union[int, Literal['off', 'auto']]"
    lora: Optional[str]


class SchemaOptions(TypedDict, total=False):
    """How JSON is written, and how schemas are read: JsonSchemaOptions."""

    order: "Literal['schema', 'any']"
    whitespace: "Literal['compact', 'bounded', 'any']"
    max_whitespace: int
    item_separator: str
    key_separator: str
    default_dialect: str
    force_dialect: str
    assert_formats: bool
    canonical_spelling: bool
    max_digits: int
    max_decimals: int
    max_string: int
    excluded_texts: str
    ascii: bool
    additional_properties: bool
    keys: "Literal['required', 'all']"
    nulls: "Literal['keep', 'drop']"
    open_if_unsatisfiable: bool
    source: str
    verbatim: "Literal['none', 'strings', 'all']"
    bind_source: bool
    allow_exponents: bool
    profile: "Literal['full', 'strict']"
    list_annotations: bool
    resolve_document: "Callable[[str], Text]"
    max_documents: int
    max_schema_bytes: int
    max_depth: int
    step_fuel: int


class ExtractOptions(SamplingOptions, SchemaOptions, total=False):
    """What `extract` and its like take. `examples`: pairs of a text and its record."""

    check: "Union[Callable[[Any], Any], str, _pawl.Check, Sequence[Union[Callable[[Any], Any], str, _pawl.Check]]]"
    max_retries: int
    sampler: Optional[str]
    fidelity: Optional[str]
    particles: int
    check_timeout: float
    critic: Any
    estimator: str
    max_rejects: int
    accepts: int
    resampling: str
    ess_threshold: float
    attempts: int
    lookahead: int
    batch: int
    seconds: float
    proposal: Any
    instruction: str
    examples: "Sequence[Any]"
    schema_view: "Literal['auto', 'template', 'keys', 'schema', 'none']"
    prefer_text: float
    contrast: "Union[float, Literal['auto']]"
    document: bool
    chunk_tokens: int
    passes: int


class GenerateOptions(SamplingOptions, SchemaOptions, total=False):
    """What `generate` and its like take: at most one of `schema` to `substring`, and a `constraint`."""

    schema: Any
    regex: str
    choice: "Sequence[str]"
    grammar: "Union[str, os.PathLike[str], _pawl.Grammar]"
    structural_tag: "Union[str, Mapping[str, Any]]"
    substring: str
    constraint: Constraint
    language: str
    root: str
    special: bool


_SAMPLING = frozenset(SamplingOptions.__annotations__)
_SCHEMA = frozenset(_pawl.schema_option_names())
_CONSTRAINTS = ("schema", "regex", "choice", "grammar", "structural_tag", "substring")
_BESIDE = ("language", "root")
_ASKING = ("instruction", "examples", "schema_view", "prefer_text")
_DOCUMENT = ("document", "chunk_tokens", "passes")
_LANGUAGES = {".ebnf": "ebnf", ".gbnf": "gbnf", ".lark": "lark"}


class Sorted:
    """Options by kind. `stops` and `logit_bias` are apart because they are no plain values."""

    def __init__(self, options: Mapping[str, Any], with_constraint: bool) -> None:
        self.sampling: Dict[str, Any] = {}
        self.schema: Dict[str, Any] = {}
        self.constraint: Dict[str, Any] = {}
        self.asking: Dict[str, Any] = {}
        self.special = False
        self.own: Optional[Constraint] = None
        for name, value in options.items():
            if name in _SAMPLING:
                self.sampling[name] = value
            elif name in _SCHEMA:
                self.schema[name] = value
            elif not with_constraint and name in _DOCUMENT:
                if value is not None:
                    self.sampling[name] = value
            elif not with_constraint and name in _ASKING:
                if value is not None:
                    self.asking[name] = value
            elif with_constraint and (name in _CONSTRAINTS or name in _BESIDE):
                if value is not None:
                    self.constraint[name] = value
            elif with_constraint and name == "constraint":
                if value is not None and not isinstance(value, Constraint):
                    raise TypeError(f"constraint must be a pawl.Constraint, not {type(value).__name__}")
                self.own = value
            elif with_constraint and name == "special":
                self.special = bool(value)
            else:
                raise TypeError(_unknown(name, with_constraint))
        most = self.sampling.get("max_tokens")
        if isinstance(most, int) and most < 1:
            raise PawlError("invalid", f"must be at least 1, not {most}", "max_tokens")
        for name in _DOCUMENT[1:]:
            if name in self.sampling and not self.sampling.get("document"):
                raise PawlError("invalid", "needs document=True", name)
        thinking = self.sampling.get("thinking")
        if isinstance(thinking, int):  # a number of tokens; False is off, True as the model wants
            text = ("off", "auto")[thinking] if isinstance(thinking, bool) else str(thinking)
            self.sampling["thinking"] = text
        samplers = self.sampling.get("samplers")
        if isinstance(samplers, (list, tuple)) and all(isinstance(one, str) for one in samplers):
            self.sampling["samplers"] = ",".join(samplers)
        elif samplers is not None and not isinstance(samplers, str):
            raise PawlError("invalid", "must be names, as a str with commas or as a list", "samplers")
        if self.sampling.get("diffusion") is not None:
            self.sampling["diffusion"] = json_text(self.sampling["diffusion"], "diffusion")
        self.stops = _stops(self.sampling.pop("stop", None))
        #: The name of an adapter of the engine; None: the model itself.
        self.lora: Optional[str] = self.sampling.pop("lora", None)
        if self.lora is not None and not isinstance(self.lora, str):
            raise TypeError(f"lora must be a name, not {type(self.lora).__name__}")
        bias = self.sampling.pop("logit_bias", None) or {}
        self.logit_bias: List[Tuple[int, float]] = [(int(t), float(b)) for t, b in bias.items()]
        given = [name for name in _CONSTRAINTS if name in self.constraint]
        if len(given) > 1:
            raise PawlError("invalid", "is a second constraint next to " + given[0], given[1])
        self.kind = given[0] if given else None


def _unknown(name: str, with_constraint: bool) -> str:
    known = [*_SAMPLING, *_SCHEMA]
    if not with_constraint:
        known += [*_ASKING, *_DOCUMENT, *ExtractOptions.__annotations__]
    if with_constraint:
        known += [*_CONSTRAINTS, *_BESIDE, "constraint", "special"]
    near = difflib.get_close_matches(name, known, 1)
    return f"there is no option {name}" + (f"; is {near[0]} meant?" if near else "")


def _stops(stop: Any) -> List[str]:
    if stop is None:
        return []
    if not isinstance(stop, Iterable):
        raise TypeError(f"stop must be a str, or several, not {type(stop).__name__}")
    texts = [stop] if isinstance(stop, str) else list(stop)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"stop must be a str, or several, not {type(text).__name__}")
        if not text:
            raise PawlError("invalid", "must not be empty", "stop")
    return texts


def read_text(path: "os.PathLike[str]") -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise PawlError("io", error.strerror or str(error), os.fspath(path)) from None
    except UnicodeDecodeError as error:
        raise PawlError("invalid", f"not UTF-8 at byte {error.start}", os.fspath(path)) from None


def json_text(value: Any, place: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PawlError("invalid", f"is not JSON: {error}", place) from None


def language_of(grammar: Any, language: Any) -> str:
    """The language of a grammar that is given as text, or as a file."""
    if language is not None:
        return str(language)
    if isinstance(grammar, os.PathLike):
        known = _LANGUAGES.get(os.path.splitext(os.fspath(grammar))[1])
        if known is not None:
            return known
    raise PawlError("invalid", 'must say what the grammar is written in: "ebnf", "gbnf" or "lark"',
                    "language")
