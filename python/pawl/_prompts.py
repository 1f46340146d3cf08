"""What callers give as prompts, as messages and as texts, checked and in the form of the native module."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._errors import PawlError
from ._options import json_text

if TYPE_CHECKING:
    from ._engine import Conversation


class Chat:
    """Lays conversations out for the chat template."""

    def __init__(self, tools: Optional[Sequence[Any]], documents: Optional[Sequence[Any]],
                 chat_args: Optional[Mapping[str, Any]]) -> None:
        self._beside: Dict[str, Any] = {}
        if tools:
            self._beside["tools"] = list(tools)
        if documents:
            self._beside["documents"] = list(documents)
        if chat_args:
            self._beside["chat_template_kwargs"] = dict(chat_args)

    def __call__(self, messages: "Conversation") -> Tuple[Any, ...]:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        given = {"messages": [dict(message) for message in messages], **self._beside}
        return "chat", json_text(given, "messages")


def checked_text(text: Any) -> str:
    if isinstance(text, str):
        return text
    if not isinstance(text, bytes):
        raise TypeError(f"a text must be a str, not {type(text).__name__}")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise PawlError("invalid", f"not UTF-8 at byte {error.start}", "text") from None


def refuse_path(schema: str) -> None:
    """JSON text never is the name of a file."""
    if schema.lstrip()[:1] not in ("{", "t", "f") and len(schema) < 4096 and os.path.exists(schema):
        raise PawlError("invalid", "is a str, which is read as JSON; give pathlib.Path(...) for a file",
                        schema)


def is_tokens(prompt: Any) -> bool:
    return isinstance(prompt, (list, tuple)) and bool(prompt) and all(type(t) is int for t in prompt)


def is_one(prompt: Any) -> bool:
    return isinstance(prompt, (str, bytes)) or is_tokens(prompt)


def is_conversation(messages: Any) -> bool:
    if isinstance(messages, str):
        return True
    if not isinstance(messages, (list, tuple)):
        raise TypeError(f"messages must be a str or a list, not {type(messages).__name__}")
    if not messages:
        raise PawlError("invalid", "there are none", "messages")
    return isinstance(messages[0], Mapping)


def prompt_of(prompt: Any, special: bool) -> Tuple[Any, ...]:
    if is_tokens(prompt):
        return "tokens", list(prompt)
    if not isinstance(prompt, (str, bytes)):
        raise TypeError(f"a prompt must be a str or a list of tokens, not {type(prompt).__name__}")
    return "prompt", prompt, special


def any_prompt(prompt: Any, special: bool, chat: Chat) -> Tuple[Any, ...]:
    if is_one(prompt):
        return prompt_of(prompt, special)
    return chat(prompt) if is_conversation(prompt) else prompt_of(prompt, special)


def several(texts: Any, what: str = "texts") -> List[Any]:
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{what} must be a str or several, not {type(texts).__name__}")
    return list(texts)


def ahead_of(given: Optional[int], default: int) -> int:
    if given is not None and given < 1:
        raise PawlError("invalid", f"must be at least 1, not {given}", "ahead")
    return default if given is None else given
