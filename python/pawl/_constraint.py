"""Constraint: a rule for an output that Python code decides, token by token."""

from __future__ import annotations

import dataclasses
from typing import Optional, Sequence, Union

from . import _pawl


@dataclasses.dataclass(frozen=True)
class Place:
    """What `Constraint.look` answers.

    `mask`: the tokens that may come next, as a Mask (mask_of_texts, mask_of_tokens, mask_where) or as
    token ids. End tokens need not be in it: they are allowed where the output may end. None: all tokens
    that are text.
    `accepting`: the output may end here.
    `forced`: text with which every continuation begins. It needs no call of the model. Empty if there
    is a choice or this is not known.
    `temperature`: the sampling temperature of the next token. None: that of the call.
    `limit`: not empty if a limit of the constraint is reached, and only the shortest completion may
    follow. The text becomes a note of the output.
    """

    mask: Union[_pawl.Mask, Sequence[int], None] = None
    accepting: bool = False
    forced: Union[str, bytes] = b""
    temperature: Optional[float] = None
    limit: str = ""


class Constraint:
    """The position of one output under a rule of your own. Subclass it, and pass the start:

        class Digits(pawl.Constraint):
            def __init__(self, vocabulary, written=0):
                self.vocabulary, self.written = vocabulary, written

            def look(self):
                mask = pawl.mask_of_texts(self.vocabulary, "0123456789")
                return pawl.Place(mask=mask, accepting=self.written > 0)

            def advance(self, token):
                return Digits(self.vocabulary, self.written + 1)

            def completion(self, most):
                return [] if self.written else self.vocabulary.fewest_tokens("0")

        engine.generate("Pi is 3.", constraint=Digits(engine.vocabulary))

    Objects must not change: the engine keeps old ones, and several outputs may share one. Methods are
    called on threads of the engine, for one output on one thread at a time. An exception ends its
    output with a PawlError that has the exception's type and text, with "constraint" as its place.
    docs/constraints.md has more.
    """

    #: False: the mask may allow tokens that `advance` refuses. They are then drawn again.
    exact: bool = True

    def look(self) -> Place:
        """Which tokens may come next. Asked once for each token of an output."""
        raise NotImplementedError(f"{type(self).__name__} has no look()")

    def advance(self, token: int) -> "Optional[Constraint]":
        """The constraint after the token. None: the token is refused."""
        raise NotImplementedError(f"{type(self).__name__} has no advance()")

    def completion(self, most: int) -> Optional[Sequence[int]]:
        """At most `most` tokens after which the output may end, the fewer the better; empty if it may end
        here. None: none were found. An output stays complete within its max_tokens by this answer."""
        raise NotImplementedError(f"{type(self).__name__} has no completion()")
