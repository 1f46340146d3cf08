"""Pawl as a backend of Outlines 1.3.

    import outlines, pawl.outlines

    pawl.outlines.register()
    model = outlines.from_transformers(hf_model, hf_tokenizer)
    generator = outlines.Generator(model, Invoice, backend="pawl")

Outlines has no registry of backends; `register` adds a name to the function that knows them. Without
it: `outlines.Generator(model, processor=pawl.outlines.backend_for(model).get_regex_logits_processor(...))`.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional, Tuple

import pawl

NAME = "pawl"
_MARK = "_pawl_original"
_classes: Dict[str, Any] = {}


def _make_classes() -> Dict[str, Any]:
    from outlines.backends.base import BaseBackend
    from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

    class PawlLogitsProcessor(OutlinesLogitsProcessor):
        """Rows are known by their tokens, so that they may be reordered (beams) or repeated."""

        def __init__(self, grammar: Any, tensor_library_name: str) -> None:
            super().__init__(tensor_library_name)
            if tensor_library_name not in ("torch", "numpy"):
                raise NotImplementedError(f"pawl.outlines masks torch and numpy arrays, not those of "
                                          f"{tensor_library_name}")
            self.grammar, self.filler = grammar, pawl.BatchFiller(1)
            self.known: Dict[Tuple[int, ...], Any] = {}
            self.prompt: Optional[int] = None

        def reset(self) -> None:
            self.known, self.prompt = {}, None

        def _matcher(self, output: Tuple[int, ...]) -> Any:
            length = len(output)
            while length and output[:length] not in self.known:
                length -= 1
            matcher = self.known[output[:length]] if length else pawl.Matcher(self.grammar)
            for token in output[length:]:
                if matcher is None or matcher.terminated:
                    return matcher
                matcher = matcher.copy()
                if not matcher.accept(token):
                    return None  # padding of a row that has ended
            return matcher

        def process_logits(self, input_ids: Any, logits: Any) -> Any:
            rows, width = self.tensor_adapter.shape(logits)
            tokens = [tuple(int(t) for t in row) for row in input_ids]
            if self.prompt is None or len(tokens[0]) <= self.prompt:
                self.reset()
                self.prompt = len(tokens[0])
            outputs = [row[self.prompt:] for row in tokens]
            matchers = {output: self._matcher(output) for output in outputs}
            self.known = matchers
            mask = pawl.allocate_mask(rows, max(width, self.grammar.vocabulary_size))
            live = [(row, matchers[output]) for row, output in enumerate(outputs)
                    if matchers[output] is not None and not matchers[output].terminated]
            self.filler.fill([m for _, m in live], mask, [row for row, _ in live])
            pawl.apply_mask(logits, mask)
            return logits

    class PawlBackend(BaseBackend):
        """Objects are closed where the schema does not say (`additional_properties=True` opens them),
        as those of Outlines' own backends are; white space is compact. `options`: those of JSON
        Schemas."""

        def __init__(self, model: Any, **options: Any) -> None:
            self.compiler = pawl.Compiler(vocabulary_of(model), cached_grammars=64)
            self.library = model.tensor_library_name
            self.options = {"whitespace": "compact", "additional_properties": False, **options}

        def _processor(self, grammar: Any) -> Any:
            return PawlLogitsProcessor(grammar, self.library)

        def get_json_schema_logits_processor(self, json_schema: str,
                                             whitespace_pattern: Optional[str] = None) -> Any:
            options = dict(self.options)
            if whitespace_pattern is not None:
                known = {"": "compact", r"[ ]?": "bounded", r"[\n\t ]*": "any", r"\s*": "any"}
                if whitespace_pattern not in known:
                    raise NotImplementedError(
                        f"pawl.outlines knows the white space patterns {sorted(known)}, not "
                        f"{whitespace_pattern!r}")
                options["whitespace"] = known[whitespace_pattern]
            return self._processor(self.compiler.json_schema(json_schema, **options))

        def get_regex_logits_processor(self, regex: str) -> Any:
            return self._processor(self.compiler.regex(regex))

        def get_cfg_logits_processor(self, grammar: str) -> Any:
            return self._processor(self.compiler.grammar(grammar, "lark", **self.options))

    return {"backend": PawlBackend, "processor": PawlLogitsProcessor}


def vocabulary_of(model: Any) -> Any:
    from outlines.models import LlamaCpp, Transformers

    if isinstance(model, Transformers):
        width = getattr(model.model.config.get_text_config(), "vocab_size", 0)
        return pawl.Vocabulary.from_huggingface(model.hf_tokenizer, padded_size=width)
    if isinstance(model, LlamaCpp):
        from pawl import llama_cpp
        return llama_cpp.vocabulary_of(model.model)
    raise NotImplementedError(f"pawl.outlines knows models of transformers and llama.cpp, not "
                              f"{type(model).__name__}")


def backend_for(model: Any, **options: Any) -> Any:
    """The backend of a model; making it reads the tokenizer, so keep it."""
    if not _classes:
        _classes.update(_make_classes())
    return _classes["backend"](model, **options)


def register(**options: Any) -> None:
    """Makes `backend="pawl"` known to outlines.Generator. A model's backend is made once."""
    import outlines.backends as backends

    current = backends._get_backend
    original = getattr(current, _MARK, current)
    parameters = list(inspect.signature(original).parameters)
    if parameters != ["backend_name", "model"]:
        raise RuntimeError("pawl.outlines was written for Outlines 1.3: outlines.backends._get_backend "
                           f"takes ({', '.join(parameters)}) here")
    made: List[Tuple[Any, Any]] = []

    def _get_backend(backend_name: str, model: Any) -> Any:
        if backend_name != NAME:
            return original(backend_name, model)
        for known, backend in made:
            if known is model:
                return backend
        backend = backend_for(model, **options)
        made.append((model, backend))
        del made[:-4]
        return backend

    setattr(_get_backend, _MARK, original)
    backends._get_backend = _get_backend
