"""Constraints for llama-cpp-python.

    import llama_cpp, pawl, pawl.llama_cpp
    from llama_cpp import LogitsProcessorList, StoppingCriteriaList

    llama = llama_cpp.Llama("model.gguf")
    compiler = pawl.Compiler(pawl.llama_cpp.vocabulary_of(llama))
    grammar = compiler.json_schema({"type": "object"})
    processor = pawl.llama_cpp.LogitsProcessor(grammar)
    llama.create_completion("A record: ", logits_processor=LogitsProcessorList([processor]),
                            stopping_criteria=StoppingCriteriaList([processor.stop]))

One processor serves any number of completions, one after the other. In C and C++ the same is a
llama_sampler (pawl_llama.h next to this file's source), which `Sampler` reaches from Python once it is
built as a shared library; it needs no Python between two tokens and can be cloned.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, List, Optional, Sequence, Union

import numpy as np

import pawl


def vocabulary_of(llama: Any) -> Any:
    """The tokens of a llama_cpp.Llama: their bytes as llama.cpp writes them, control tokens as special
    ones, every end-of-generation token as one that ends the output."""
    import llama_cpp

    vocab = llama_cpp.llama_model_get_vocab(_model_of(llama))
    hidden = (llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
              | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN)
    tokens: List[bytes] = []
    special: List[int] = []
    ends: List[int] = []
    buffer = ctypes.create_string_buffer(256)
    for token in range(llama_cpp.llama_vocab_n_tokens(vocab)):
        size = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        if size < 0:
            buffer = ctypes.create_string_buffer(-size)
            size = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        tokens.append(buffer.raw[:size])
        if llama_cpp.llama_vocab_is_eog(vocab, token):
            ends.append(token)
        elif not llama_cpp.llama_vocab_get_attr(vocab, token) & hidden and size:
            continue
        special.append(token)
    return pawl.Vocabulary(tokens, special, ends)


def _model_of(llama: Any) -> Any:
    return llama._model.model if hasattr(llama, "_model") else llama


class LogitsProcessor:
    """One output at a time. llama-cpp-python hands over all tokens so far, the prompt first: a call
    whose tokens do not go on from those of the call before is the prompt of a new completion.

    `max_tokens`: the budget that the completion was given. When it is nearly spent the output is
    closed with a short end that is valid, rather than cut; one that is too small for any output is an
    error.

    llama.cpp calls it through C, where an exception is lost and the logits stay as they were: the
    output would go on without its constraint. So what goes wrong allows nothing but an end token from
    there on, and stands in `error`; `stop`, as one of the completion's stopping criteria, raises it."""

    def __init__(self, grammar: Any, *, max_tokens: Optional[int] = None) -> None:
        self.matcher = pawl.Matcher(grammar)
        self._row = pawl.allocate_mask(1, grammar.vocabulary_size)
        self._seen: List[int] = []
        self._begin = 0
        self._max_tokens = max_tokens
        self.closed = False
        self._plan: Sequence[int] = ()  # the tokens that close the output, once it has to be
        self.error: Optional[BaseException] = None
        if max_tokens is not None:
            pawl.check_budget(self.matcher, max_tokens)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        try:
            self._constrain(input_ids, scores)
        except BaseException as error:  # Ctrl-C as well
            self.error = error
        if self.error is not None:
            ends = [end for end in self.matcher.grammar.end_tokens if end < scores.shape[-1]]
            kept = scores[..., ends].copy()
            scores[...] = -np.inf
            scores[..., ends] = kept
        return scores

    def stop(self, input_ids: Any, logits: Any) -> bool:
        """A stopping criterion that stops nothing, and raises what went wrong."""
        if self.error is not None:
            raise self.error
        return False

    def _constrain(self, input_ids: Any, scores: Any) -> None:
        tokens = [int(token) for token in input_ids]
        before = len(self._seen)
        if before and len(tokens) > before and tokens[:before] == self._seen:
            for token in tokens[before:]:
                if not self.matcher.terminated and not self.matcher.accept(token):
                    raise ValueError(f"token {token} does not fit the constraint; another logits "
                                     "processor or sampler forced it")
        else:
            self.matcher.reset()
            self._begin, self.closed, self.error, self._plan = len(tokens), False, None, ()
        self._seen = tokens
        if self.matcher.terminated or self.error is not None:
            return
        if not self.matcher.fill_mask(self._row):
            raise RuntimeError("no token fits the constraint here")
        if self._max_tokens is not None:
            self._close(self._max_tokens - (len(tokens) - self._begin))
        row = np.full((1, pawl.mask_words(scores.shape[-1])), 0, dtype=np.int32)
        words = min(row.shape[1], self._row.shape[1])
        row[0, :words] = self._row[0, :words]
        pawl.apply_mask(scores, row[0] if scores.ndim == 1 else row)

    def _close(self, left: int) -> None:
        self._plan = pawl.closing_tokens(self.matcher, left, self._plan)
        if self._plan:
            token = self._plan[0]
            self.closed = True
            self._row[:] = 0
            self._row.view(np.uint32)[0, token // 32] = np.uint32(1 << (token % 32))


class Sampler:
    """The sampler in C, from a shared library that plugins/llama_cpp/build_shared.sh makes.

        library = pawl.llama_cpp.Sampler.load("libpawl_llama.so")
        sampler = pawl.llama_cpp.Sampler(library, llama, "json_schema", '{"type": "integer"}')
        llama_cpp.llama_sampler_chain_add(chain, sampler.pointer)   # the chain frees it

    `kind`: as pawl_compile in pawl.h names them."""

    def __init__(self, library: Any, llama: Any, kind: str, text: Union[str, bytes]) -> None:
        import llama_cpp

        data = text.encode() if isinstance(text, str) else text
        error = ctypes.c_void_p()
        vocab = llama_cpp.llama_model_get_vocab(_model_of(llama))
        self._library = library
        self.pointer = library.pawl_llama_sampler_from_text(
            ctypes.cast(vocab, ctypes.c_void_p), kind.encode(), data, len(data),
            ctypes.byref(error))
        if not self.pointer:
            if not error.value:
                raise MemoryError("no memory for a sampler")
            message, place = library.pawl_error_message(error), library.pawl_error_place(error)
            library.pawl_error_free(error)
            raise pawl.PawlError("invalid", message.decode(), place.decode())

    @staticmethod
    def load(path: Union[str, "os.PathLike[str]"]) -> Any:
        library = ctypes.CDLL(os.fspath(path))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        signatures = {
            "pawl_llama_sampler_from_text":
                (pointer, [pointer, ctypes.c_char_p, ctypes.c_char_p, size, pointer]),
            "pawl_llama_sampler_ended": (ctypes.c_int, [pointer]),
            "pawl_llama_sampler_refused": (ctypes.c_int32, [pointer]),
            "pawl_llama_sampler_rescues": (ctypes.c_int64, [pointer]),
            "pawl_llama_sampler_rollback": (ctypes.c_int, [pointer, size]),
            "pawl_llama_sampler_validate": (size, [pointer, pointer, size]),
            "pawl_error_message": (ctypes.c_char_p, [pointer]),
            "pawl_error_place": (ctypes.c_char_p, [pointer]),
            "pawl_error_free": (None, [pointer]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library

    @property
    def ended(self) -> bool:
        return bool(self._library.pawl_llama_sampler_ended(self.pointer))

    @property
    def refused(self) -> Optional[int]:
        token = self._library.pawl_llama_sampler_refused(self.pointer)
        return None if token < 0 else token

    @property
    def rescues(self) -> int:
        return self._library.pawl_llama_sampler_rescues(self.pointer)

    def rollback(self, tokens: int) -> bool:
        return bool(self._library.pawl_llama_sampler_rollback(self.pointer, tokens))

    def validate(self, tokens: Sequence[int]) -> int:
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        return self._library.pawl_llama_sampler_validate(self.pointer, array, len(tokens))
