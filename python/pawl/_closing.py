"""Closing an output before its budget of tokens is spent."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from . import _pawl
from ._errors import PawlError


def check_budget(matcher: _pawl.Matcher, budget: int) -> None:
    """Raises PawlError with the code "limit" where even the shortest output that is known takes more
    than `budget` tokens, its end included: one that could only be cut."""
    rest = matcher.completion_tokens()
    if rest is not None and len(rest) + 1 > budget:
        raise PawlError("limit", f"the shortest output that was found takes {len(rest) + 1} tokens, "
                                 f"but the budget is {budget}", "max_tokens")


#: How many tokens before the last possible moment an output begins to be closed, at least: a token
#: that is let through before can need as many more.
CLOSING_SLACK = 24


class _Open(tuple):
    """An empty plan. Knows how long the completion was here, and by how much a token has made it longer
    so far: what happened once happens again, where each item of a list is a large object, say."""

    def __new__(cls, rest: int, growth: int) -> "_Open":
        self = super().__new__(cls)
        self.rest, self.growth = rest, growth
        return self

    def __getnewargs__(self) -> Tuple[int, int]:
        return self.rest, self.growth


def closing_tokens(matcher: _pawl.Matcher, left: int, before: Sequence[int] = ()) -> Tuple[int, ...]:
    """The tokens to take from here on so that the output is complete within `left` tokens, its end
    the last of them. Empty while there is time for anything, and where no completion is known. Ask
    before each token, and allow the first one alone when there is one:

        plan = pawl.closing_tokens(matcher, budget - written, plan)
        if plan:
            mask[row] = 0
            mask.view("uint32")[row, plan[0] // 32] = 1 << (plan[0] % 32)

    `before`: what was answered for the token before, also when it was empty. What is left of it is gone
    on with: completions are found anew from each place, and the next one may be longer, so that an
    output which followed the first token of each would not end for sure.

    A token can make the shortest completion longer: the brace of an object that requires much, or the
    key in front of one. The output begins to be closed so early that the longest such step still fits
    of those that texts with all the grammar's names have (`Grammar.longest_step`, asked once for an
    output), or that were seen in this one; but half of the tokens that are left at the first call are
    its own. Only a step that is longer than all of that can leave too little; then the output is cut.
    """
    if left > 4096 or matcher.terminated:
        return ()
    # One token of it was taken, or none yet, or several where tokens are drafted.
    for taken in (1, 0, *range(2, min(len(before), 10))):
        rest = tuple(before[taken:])
        if rest and matcher.validate_tokens(list(rest)) == len(rest):
            return rest
    found = matcher.completion_tokens()
    if found is None:
        return ()
    if isinstance(before, _Open):
        growth = max(before.growth, len(found) - before.rest)
    else:
        most = max(left // 2 - len(found), CLOSING_SLACK)
        growth = max(len(found) // 2, min(matcher.grammar.longest_step(), most))
    if len(found) + 1 + max(CLOSING_SLACK, growth + 2) < left:
        return _Open(len(found), growth)
    for end in matcher.grammar.end_tokens:
        if matcher.validate_tokens([*found, end]) == len(found) + 1:
            return (*found, end)
    return tuple(found)


def closing_token(matcher: _pawl.Matcher, left: int) -> Optional[int]:
    """The first of `closing_tokens`, or None: for a look at one place."""
    plan = closing_tokens(matcher, left)
    return plan[0] if plan else None
