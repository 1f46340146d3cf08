"""Closing an output before its budget of tokens is spent."""

from __future__ import annotations

from typing import Optional

from . import _pawl
from ._errors import PawlError


def check_budget(matcher: _pawl.Matcher, budget: int) -> None:
    """Raises PawlError with the code "limit" where even the shortest output that is known takes more
    than `budget` tokens, its end included: one that could only be cut."""
    rest = matcher.completion_tokens()
    if rest is not None and len(rest) + 1 > budget:
        raise PawlError("limit", f"the shortest output that was found takes {len(rest) + 1} tokens, "
                                 f"but the budget is {budget}", "max_tokens")


#: How many tokens before the last possible moment an output begins to be closed: a token that is let
#: through before can need as many more.
CLOSING_SLACK = 24


def closing_token(matcher: _pawl.Matcher, left: int) -> Optional[int]:
    """The token to take next so that the output is complete within `left` tokens, its end included.

    None while there is time for anything, and where no completion is known. Ask before each token,
    and allow this one alone when there is one:

        token = pawl.closing_token(matcher, budget - written)
        if token is not None:
            mask[row] = 0
            mask.view("uint32")[row, token // 32] = 1 << (token % 32)

    A single token can make the shortest completion longer than the slack; then the budget may still
    be too small, and the output is cut.
    """
    if left > 4096 or matcher.terminated:
        return None
    rest = matcher.completion_tokens()
    if rest is None or len(rest) + 1 + CLOSING_SLACK < left:
        return None
    if rest:
        return rest[0]
    ends = [token for token in matcher.grammar.end_tokens if matcher.validate_tokens([token])]
    return ends[0] if ends else None
