from __future__ import annotations

import os
from typing import Any, Iterable, List, Optional, Tuple, Union

from ... import _pawl
from ..._errors import PawlError
from ..._vocabulary import _from_huggingface, _with_end_tokens

_MARK = 0xFF  # "\xFF[id]" in bytes: the token of that id; "\xFF<name>": the one of that name


class TokenizerWrapper:
    """A tokenizer of another library: tokens, eos_token_id, and a call that encodes text."""

    def __init__(self, gtokenizer: Any) -> None:
        self.eos_token_id = gtokenizer.eos_token_id
        self.bos_token_id = gtokenizer.bos_token_id
        self.tokens = gtokenizer.tokens
        self.special_token_ids = getattr(gtokenizer, "special_token_ids", [])
        self.is_tokenizer_wrapper = True
        self._tokenizer = gtokenizer
        try:
            gtokenizer(b"test")
            self._takes_bytes = True
        except Exception:
            self._takes_bytes = False

    def __call__(self, text: str) -> List[int]:
        return self._tokenizer(text.encode() if self._takes_bytes else text)


class LLTokenizer:
    """`tokenizer`: "byte" (each byte a token), a path or text of a tokenizer.json, a
    TokenizerWrapper, or a fast tokenizer of transformers."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        n_vocab: Optional[int] = None,
        eos_token: Optional[Union[int, Iterable[int]]] = None,
        slices: Optional[List[str]] = None,
    ) -> None:
        end = None if eos_token is None else [eos_token] if isinstance(eos_token, int) else list(
            eos_token)
        self._encode_text: Any = None
        if isinstance(tokenizer, str) and tokenizer == "byte":
            # Tokens 0 to 255 are the bytes, then the special ones.
            special = [b"<|endoftext|>", b"<|tool|>", b"<|system|>", b"<|user|>", b"<|assistant|>",
                       b"<|end|>"]
            tokens = [bytes([byte]) for byte in range(256)] + special
            ends = end or [256]
            self._vocabulary = _pawl.Vocabulary(
                tokens, sorted({*range(256, len(tokens)), *ends}), ends)
        elif isinstance(tokenizer, str):
            native = (_pawl.Tokenizer.from_file(tokenizer) if os.path.exists(tokenizer)
                      else _pawl.Tokenizer.from_json(tokenizer))
            vocabulary = native.vocabulary(n_vocab or 0)
            self._vocabulary = vocabulary if end is None else _with_end_tokens(vocabulary, end)
            self._encode_text = native.encode
        elif hasattr(tokenizer, "is_tokenizer_wrapper"):
            tokens = list(tokenizer.tokens)
            ends = end or [tokenizer.eos_token_id]
            special_ids = {*tokenizer.special_token_ids, *ends}
            special_ids |= {i for i, token in enumerate(tokens) if not token}
            self._vocabulary = _pawl.Vocabulary(tokens, sorted(special_ids), ends)
            self._encode_text = lambda text: list(tokenizer(text.decode("utf-8", "replace")))
        elif hasattr(tokenizer, "get_vocab"):
            self._vocabulary = _from_huggingface(tokenizer, padded_size=n_vocab or 0,
                                                 end_tokens=end)
            self._encode_text = lambda text: tokenizer.encode(
                text.decode("utf-8", "replace"), add_special_tokens=False)
        else:
            raise ValueError(f"{type(tokenizer)} is not a tokenizer that is known here")
        self._slices = slices
        # The end tokens in the order in which they were given.
        self._ends = end if end else list(self._vocabulary.end_tokens)

    def with_slices(self, slices: List[str]) -> "LLTokenizer":
        other = object.__new__(LLTokenizer)
        other.__dict__.update(self.__dict__)
        other._slices = slices
        return other

    @staticmethod
    def general_slices() -> List[str]:
        """Pawl needs no slices; these are what its masks of strings know by themselves."""
        return [r"[^\"\\\x00-\x1F\x7F]{1,30}", r"[^\"\\\x00-\x1F\x7F]+"]

    @staticmethod
    def json_slices() -> List[str]:
        return LLTokenizer.general_slices()

    @property
    def vocab_size(self) -> int:
        return len(self._vocabulary)

    @property
    def eos_token(self) -> int:
        return self._ends[0] if self._ends else -1

    @property
    def eos_tokens(self) -> List[int]:
        return list(self._ends)

    @property
    def is_canonical(self) -> bool:
        return self._encode_text is not None

    def is_special_token(self, token: int) -> bool:
        return self._vocabulary.is_special(token)

    def _greedy(self, text: bytes) -> List[int]:
        tokens = self._vocabulary.fewest_tokens(text)
        if text and not tokens:
            raise ValueError("no tokens spell this text")
        return tokens

    def tokenize_bytes(self, text: bytes, *, parse_special: bool = False) -> List[int]:
        if not text:
            return []
        if parse_special:
            return self._with_marks(text)
        return list(self._encode_text(text)) if self._encode_text else self._greedy(text)

    def tokenize_str(self, text: str, *, parse_special: bool = False) -> List[int]:
        return self.tokenize_bytes(text.encode(), parse_special=parse_special)

    def _with_marks(self, text: bytes) -> List[int]:
        tokens: List[int] = []
        while text:
            head, mark, text = text.partition(bytes([_MARK]))
            tokens += self.tokenize_bytes(head)
            if not mark:
                break
            if text.startswith(b"[") and b"]" in text:
                number, _, text = text[1:].partition(b"]")
                tokens.append(int(number))
                continue
            for index in self._vocabulary.special:
                name = self._vocabulary.bytes(index)
                if name and text.startswith(name):
                    tokens.append(index)
                    text = text[len(name):]
                    break
        return tokens

    def tokenize_partial(
        self, new_bytes: bytes, *, recent_tokens: Optional[List[int]] = None
    ) -> Tuple[List[int], bytes]:
        """The tokens, and bytes at the end that a longer token could still swallow."""
        if bytes([_MARK]) in new_bytes:
            return self._with_marks(new_bytes), b""
        return self.tokenize_bytes(new_bytes), b""

    def decode_bytes(self, tokens: List[int]) -> bytes:
        return b"".join(self._vocabulary.bytes(token) for token in tokens)

    def decode_str(self, tokens: List[int]) -> str:
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def dbg_tokens(self, tokens: List[int]) -> str:
        parts = []
        for token in tokens:
            try:
                parts.append(repr(self._vocabulary.bytes(token).decode("utf-8", "replace"))[1:-1])
            except (IndexError, PawlError):
                parts.append(f"[{token}]")
        return "‧".join(parts)

    def test_trace_tokens(self, tokens: List[int]) -> str:
        return self.dbg_tokens(tokens)
