from __future__ import annotations

import json
from typing import Any, Dict, List, Union


class StructTag:
    """A tag in free text: `trigger` begins it, `begin` (which starts with the trigger) is its head,
    `grammar` (a JSON Schema or Lark) its inside, `end` what closes it."""

    def __init__(
        self, *, trigger: str, begin: str, grammar: Union[str, Dict[str, Any]], end: str
    ) -> None:
        if not trigger:
            raise AssertionError("the trigger must not be empty")
        if not begin.startswith(trigger):
            raise AssertionError("begin must start with the trigger")
        self.trigger = trigger
        self.begin = begin
        self.grammar = grammar
        self.end = end

    @staticmethod
    def to_grammar(
        tags: List["StructTag"], *, assume_special: bool = True, text_regex: str = r"(.|\n)*"
    ) -> str:
        """Lark: text with tags. With `assume_special`, a trigger <|...|> is a special token."""
        if not tags:
            raise AssertionError("there must be a tag")
        if "/" in text_regex:
            raise AssertionError("text_regex must not have a /")
        rules = []
        choices = []
        for number, tag in enumerate(tags):
            special = (assume_special and tag.trigger.startswith("<|")
                       and tag.trigger.endswith("|>"))
            rest = tag.begin[len(tag.trigger):]
            head = (f"TEXT {tag.trigger}" if special else f"tag_{number}_trigger")
            if not special:
                rules.append(f"tag_{number}_trigger[lazy]: TEXT {json.dumps(tag.trigger)}")
            grammar = tag.grammar
            if isinstance(grammar, dict) or grammar.lstrip().startswith("{"):
                text = json.dumps(grammar) if isinstance(grammar, dict) else grammar
                inside = f"%json {text}"
            else:
                inside = "%lark {\n" + grammar + "\n}"
            parts = [head, json.dumps(rest) if rest else "", f"tag_{number}_inside",
                     json.dumps(tag.end) if tag.end else ""]
            rules.append(f"tag_{number}_inside: {inside}")
            rules.append(f"tag_{number}: " + " ".join(part for part in parts if part))
            choices.append(f"tag_{number}")
        return "\n".join(["%llguidance {}", f"start: ({' | '.join(choices)})* TEXT",
                          f"TEXT: /{text_regex}/", *rules])
