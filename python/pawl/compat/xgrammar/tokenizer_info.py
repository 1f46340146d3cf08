"""TokenizerInfo: a vocabulary, as XGrammar describes one."""

from __future__ import annotations

import base64
import json
from enum import Enum
from typing import Any, Dict, List, Optional, Union

from ... import _pawl
from ..._vocabulary import _BYTE_OF, BYTE_FALLBACK, BYTE_LEVEL, RAW, bytes_of_token
from .exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
    as_runtime_error,
)

SERIALIZATION_VERSION = "pawl-1"

_BYTE_LEVEL_CHARSET = frozenset(_BYTE_OF)
# Names that mean the end of output where no file says which token does.
_END_NAMES = {b"</s>", b"<|end_of_text|>", b"<|eot_id|>", b"<|endoftext|>", b"<eos>", b"<|eos|>",
              b"<end_of_turn>", "<｜end▁of▁sentence｜>".encode()}


class VocabType(Enum):
    """How the names of the tokens stand for bytes."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


_ENCODING = {VocabType.RAW: RAW, VocabType.BYTE_FALLBACK: BYTE_FALLBACK,
             VocabType.BYTE_LEVEL: BYTE_LEVEL}


class TokenizerInfo:
    def __init__(
        self,
        encoded_vocab: Union[List[bytes], List[str]],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: Optional[int] = None,
        stop_token_ids: Optional[Union[List[int], int]] = None,
        add_prefix_space: bool = False,
    ) -> None:
        encoding = _ENCODING[VocabType(vocab_type)]
        size = len(encoded_vocab) if vocab_size is None else vocab_size
        tokens = [bytes_of_token(name, encoding) for name in encoded_vocab]
        self._tokens = tokens[:size] + [b""] * (size - len(tokens))
        if stop_token_ids is None:
            stop = [i for i, token in enumerate(self._tokens) if token in _END_NAMES]
        elif isinstance(stop_token_ids, int):
            stop = [stop_token_ids]
        else:
            stop = list(stop_token_ids)
        self._stop = [i for i in stop if 0 <= i < size]
        self._special = [i for i, token in enumerate(self._tokens)
                         if not token and i not in self._stop]
        self._vocab_type = VocabType(vocab_type)
        self._add_prefix_space = add_prefix_space
        with as_runtime_error():
            # Pawl's vocabularies have a token at least; one that is nothing changes nothing.
            self._vocabulary = _pawl.Vocabulary(
                self._tokens or [b""],
                sorted({*self._special, *self._stop}) if self._tokens else [0],
                self._stop,
            )

    @staticmethod
    def from_huggingface(
        tokenizer: Any,
        *,
        vocab_size: Optional[int] = None,
        stop_token_ids: Optional[Union[List[int], int]] = None,
    ) -> "TokenizerInfo":
        if isinstance(stop_token_ids, int):
            stop_token_ids = [stop_token_ids]
        if stop_token_ids is not None and not stop_token_ids:
            raise ValueError("stop_token_ids cannot be empty")
        if not hasattr(tokenizer, "get_vocab"):
            raise ValueError(f"{type(tokenizer)} has no method get_vocab")
        names: Dict[str, int] = tokenizer.get_vocab()
        size = vocab_size or max(len(names), max(names.values()) + 1)
        vocab = [""] * size
        for name, index in names.items():
            if index < size:
                vocab[index] = name
        if stop_token_ids is None and getattr(tokenizer, "eos_token_id", None) is not None:
            stop_token_ids = [tokenizer.eos_token_id]
        kind = TokenizerInfo._detect_vocab_type_from_vocab(names) or VocabType.RAW
        prefix = False
        if kind is not VocabType.RAW:
            try:
                first = tokenizer.convert_ids_to_tokens(
                    tokenizer.encode("a", add_special_tokens=False))[0]
                prefix = first.startswith("▁" if kind is VocabType.BYTE_FALLBACK else "Ġ")
            except (AttributeError, TypeError, ValueError, IndexError):
                pass
        return TokenizerInfo(vocab, kind, vocab_size=size, stop_token_ids=stop_token_ids,
                             add_prefix_space=prefix)

    @staticmethod
    def _detect_vocab_type_from_vocab(vocab: Dict[str, int]) -> Optional[VocabType]:
        if sum(f"<0x{byte:02X}>" in vocab for byte in range(256)) >= 128:
            return VocabType.BYTE_FALLBACK
        if sum(character in vocab for character in _BYTE_LEVEL_CHARSET) < 128:
            return None
        spelled = sum(_BYTE_LEVEL_CHARSET.issuperset(name) for name in vocab)
        return VocabType.BYTE_LEVEL if spelled >= 0.99 * len(vocab) else None

    @staticmethod
    def _detect_metadata_from_hf(backend: str) -> Dict[str, Any]:
        """From the text of a tokenizer.json: its decoder tells how tokens stand for bytes."""
        read = json.loads(backend)

        def parts(value: Any) -> List[Dict[str, Any]]:
            if not isinstance(value, dict):
                return []
            inner = value.get("decoders", value.get("normalizers", value.get("pretokenizers", [])))
            return [value] + [part for item in inner for part in parts(item)]

        decoders = parts(read.get("decoder"))
        kind = VocabType.RAW
        if any(part.get("type") == "ByteFallback" for part in decoders):
            kind = VocabType.BYTE_FALLBACK
        elif any(part.get("type") == "ByteLevel" for part in decoders):
            kind = VocabType.BYTE_LEVEL
        prefix = False
        for part in parts(read.get("normalizer")):
            prefix = prefix or (part.get("type") == "Prepend" and part.get("prepend") == "▁")
        for part in parts(read.get("pre_tokenizer")):
            if part.get("type") == "Metaspace":
                prefix = prefix or part.get("prepend_scheme", "always") != "never"
            if part.get("type") == "ByteLevel":
                prefix = prefix or bool(part.get("add_prefix_space"))
        return {"vocab_type": kind, "add_prefix_space": prefix}

    @property
    def vocab_type(self) -> VocabType:
        return self._vocab_type

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    @property
    def add_prefix_space(self) -> bool:
        return self._add_prefix_space

    @property
    def prepend_space_in_tokenization(self) -> bool:
        return self._add_prefix_space

    @property
    def decoded_vocab(self) -> List[bytes]:
        return list(self._tokens)

    @property
    def stop_token_ids(self) -> List[int]:
        return list(self._stop)

    @property
    def special_token_ids(self) -> List[int]:
        return list(self._special)

    def dump_metadata(self) -> str:
        return json.dumps(
            {"vocab_type": self._vocab_type.value, "vocab_size": self.vocab_size,
             "add_prefix_space": self._add_prefix_space, "stop_token_ids": self._stop},
            separators=(",", ":"))

    @staticmethod
    def from_vocab_and_metadata(
        encoded_vocab: List[Union[bytes, str]], metadata: str
    ) -> "TokenizerInfo":
        read = json.loads(metadata)
        return TokenizerInfo(
            encoded_vocab, VocabType(read["vocab_type"]), vocab_size=read["vocab_size"],
            stop_token_ids=read["stop_token_ids"], add_prefix_space=read["add_prefix_space"])

    def serialize_json(self) -> str:
        return json.dumps({
            "__VERSION__": SERIALIZATION_VERSION, "metadata": json.loads(self.dump_metadata()),
            "vocab": [base64.b64encode(token).decode() for token in self._tokens]})

    @staticmethod
    def deserialize_json(json_string: str) -> "TokenizerInfo":
        read = read_serialized(json_string, ("metadata", "vocab"))
        metadata = {**read["metadata"], "vocab_type": 0}
        info = TokenizerInfo.from_vocab_and_metadata(
            [base64.b64decode(token) for token in read["vocab"]], json.dumps(metadata))
        info._vocab_type = VocabType(read["metadata"]["vocab_type"])
        return info


def read_serialized(text: str, keys: Any) -> Dict[str, Any]:
    """What serialize_json wrote, checked."""
    try:
        read = json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(str(error)) from error
    if not isinstance(read, dict) or "__VERSION__" not in read:
        raise DeserializeFormatError("the text lacks __VERSION__")
    if read["__VERSION__"] != SERIALIZATION_VERSION:
        raise DeserializeVersionError(f"the version {read['__VERSION__']!r} is another one's")
    for key in keys:
        if key not in read:
            raise DeserializeFormatError(f"the text lacks {key!r}")
    return read
