"""Structured output for language models.

    import pawl

    engine = pawl.Engine()                    # the model that ships; or a folder, or a GGUF file
    engine.extract(texts, Invoice)            # list[Invoice]: Pydantic models, dataclasses, schemas
    engine.generate("A colour: ", choice=["red", "green"]).text

Under it, for engines of your own: what may come next, as token masks.

    vocabulary = pawl.Vocabulary.from_tokenizer_json("tokenizer.json")
    compiler = pawl.Compiler(vocabulary)
    grammar = compiler.json_schema({"type": "integer", "minimum": 3})
    matcher = pawl.Matcher(grammar)
    mask = pawl.allocate_mask(1, len(vocabulary))      # numpy; torch tensors do as well
    while not matcher.terminated:
        matcher.fill_mask(mask)                        # bit i of word i // 32: token i may come
        matcher.accept(sample(logits, mask[0]))

Errors are pawl.PawlError, a ValueError with `code`, `message` and `place`. The interpreter lock is
released while a grammar is compiled and while masks are computed; do not change a Matcher in one
thread while another one uses it. docs/python.md has more.
"""

from ._closing import check_budget, closing_token, closing_tokens
from ._compiler import Compiler
from ._constraint import Constraint, Place
from ._engine import Engine, ModelInfo
from ._errors import PawlError
from ._masks import allocate_mask, apply_mask, mask_shape, mask_words
from ._output import AsyncStream, Output, Stream
from ._paths import command_path, shipped_model
from ._pawl import (BatchFiller, Grammar, Mask, Matcher, Tokenizer, draft_tree_parents, mask_of_texts,
                    mask_of_tokens, mask_where)
from ._schema import Verbatim, schema_of
from ._stores import pull
from ._vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "AsyncStream",
    "BatchFiller",
    "Compiler",
    "Constraint",
    "Engine",
    "Grammar",
    "Mask",
    "Matcher",
    "ModelInfo",
    "Output",
    "PawlError",
    "Place",
    "Stream",
    "Tokenizer",
    "Verbatim",
    "Vocabulary",
    "allocate_mask",
    "apply_mask",
    "check_budget",
    "closing_token",
    "closing_tokens",
    "command_path",
    "draft_tree_parents",
    "mask_of_texts",
    "mask_of_tokens",
    "mask_shape",
    "mask_where",
    "mask_words",
    "pull",
    "schema_of",
    "shipped_model",
]
