"""Results with a verdict: findings of an analysis are shown the same way everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from verax.errors import join
from verax.inference.findings import Finding, Verdict
from verax.inference.intervals import Interval


class WithVerdict:
    """A result with a verdict; a base of results.

    Every text about a verdict is made here: `repr`, notebooks, JSON, the terminal and pages show it.
    """

    def _findings(self) -> Iterable[Finding]:
        """The claims of the result, in their order."""
        raise NotImplementedError

    def _tested_together(self) -> str:
        """How the claims were tested together, in a sentence."""
        return ""

    @property
    def verdict(self) -> Verdict:
        """The claims of the result as a text, with their findings and the next step."""
        return Verdict(self._findings(), self._tested_together())

    def _told(self) -> list[str]:
        return lines_of(self.verdict)

    def _concluded(self) -> dict[str, Any]:
        """The verdict in JSON."""
        return in_json(self.verdict)


class VerdictOnceCalled(Verdict):
    """A verdict that was a method in earlier versions, whose callers still get it."""

    def __call__(self, *_: object) -> Verdict:
        warnings.warn(
            "`verdict` is a property now: leave the brackets out.", DeprecationWarning, stacklevel=2
        )
        return self


def in_brackets(interval: Interval, digits: int = 3, *, percent: bool = False) -> str:
    """A confidence interval behind its number; empty without one, or if its ends are equal.

    It has more digits where its ends would look alike.

    >>> in_brackets(Interval(0.123, 0.25)), in_brackets(Interval(0.94961, 0.95042), percent=True)
    (' (95% CI 0.123 to 0.25)', ' (95% CI 94.96% to 95.04%)')
    >>> in_brackets(Interval(1, 1))
    ''
    """
    if not interval.defined or interval.low == interval.high:
        return ""
    for more in range(6):
        spec = f"z.{digits - 2 + more}%" if percent else f"z.{digits + more}g"
        low, high = (format(end, spec) for end in interval)
        if low != high:
            break
    return f" ({100 * interval.confidence:g}% CI {low} to {high})"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; if there are many, the first ones and the number of others.

    >>> listed(["a", "b"]), listed(list("abcdefgh"), most=3)
    ('a and b', 'a, b, c and 5 more')
    """
    rest = len(names) - most
    return join(names if rest <= 1 else [*names[:most], f"{rest:,} more"])


def in_json(verdict: Verdict) -> dict[str, Any]:
    """The text of a verdict, its findings and the next step, as JSON holds them."""
    stored = verdict.to_dict()
    return {"verdict": stored["text"], "findings": stored["findings"], "next_step": stored["next_step"]}


def lines_of(verdict: Verdict) -> list[str]:
    """The verdict as lines: its text, and the call that takes the next step."""
    step = verdict.next_step
    call = [] if step is None or not step.call else [f"  {step.call}"]
    return [str(verdict), *call] if verdict else []
