"""Reducers: what k fresh answers to a question would give, from the n answers that there are.

Each is the mean over all ways to draw k of the n answers, so it is unbiased for k fresh ones.
`1 - (1 - c/n)^k` is not, nor is "any of all n is right".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Literal

import numpy as np

from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Floats

Kind = Literal["pass@", "pass^", "at least", "majority", "best"]
_FORMS: tuple[tuple[Kind, str], ...] = (
    ("pass@", r"(?:pass@)?(?P<k>\d+)"),
    ("pass^", r"pass\^(?P<k>\d+)"),
    ("at least", r"(?:at least )?(?P<j>\d+) ?(?:of|/) ?(?P<k>\d+)"),
    ("majority", r"maj(?:ority)?(?:@| of )(?P<k>\d+)"),
    ("best", r"best(?:@| of )(?P<k>\d+)"),
)
_WRITTEN = "a number such as 5, pass@5, pass^5, '3 of 5', 'majority of 5' or 'best of 5'"


@dataclass(frozen=True)
class Reducer:
    """One way to reduce the answers to a question to a number.

    Attributes
    ----------
    kind : str
        "pass@", "pass^", "at least", "majority" or "best".
    k : int
        The number of answers that would be drawn.
    least : int
        Of "at least": the number of these that must be right.
    """

    kind: Kind
    k: int
    least: int = 0

    @property
    def name(self) -> str:
        """Its name, which `parsed` reads.

        >>> [reducer.name for reducer in parsed([5, "pass^5", "3/5", "maj@5", "best of 5"])]
        ['pass@5', 'pass^5', '3 of 5', 'majority of 5', 'best of 5']
        """
        if self.kind in ("pass@", "pass^"):
            return f"{self.kind}{self.k}"
        return f"{self.least if self.kind == 'at least' else self.kind} of {self.k}"

    @property
    def counts(self) -> bool:
        """Whether only the number of right answers matters."""
        return self.kind != "best"

    def of(self, answers: Floats) -> float:
        """The value of a question whose answers have these grades, all from 0 to 1.

        >>> Reducer("pass@", 2).of(np.array([1.0, 0.0, 0.0]))
        0.6666666666666666
        >>> Reducer("best", 2).of(np.array([0.25, 0.75, 0.5]))
        0.6666666666666666
        """
        n = len(answers)
        if self.kind == "best":
            return _best(np.sort(answers), self.k)
        return self.of_counts(n, int(answers.sum()))

    def of_counts(self, n: int, right: int) -> float:
        """The value of a question with `right` right answers of n."""
        return _of_counts(self.kind, self.k, self.least, n, right)

    def bounds_of(self, n: int, right: int) -> tuple[float, float]:
        """Where the value of a question with fewer answers lies: pass@k grows with k, pass^k falls."""
        if self.kind == "pass@":
            return (Reducer("pass@", n).of_counts(n, right) if n else 0.0), 1.0
        if self.kind == "pass^":
            return 0.0, (Reducer("pass^", n).of_counts(n, right) if n else 1.0)
        return 0.0, 1.0


@cache
def _of_counts(kind: Kind, k: int, least: int, n: int, right: int) -> float:
    wrong, ways = n - right, comb(n, k)
    if kind == "pass@":
        return (ways - comb(wrong, k)) / ways
    if kind == "pass^":
        return comb(right, k) / ways
    if kind == "at least":
        return sum(comb(right, i) * comb(wrong, k - i) for i in range(least, k + 1)) / ways
    more = sum(comb(right, i) * comb(wrong, k - i) for i in range(k // 2 + 1, k + 1))
    # An even number may be split, which counts half.
    tied = 0 if k % 2 else comb(right, k // 2) * comb(wrong, k // 2)
    return (2 * more + tied) / (2 * ways)


def _best(ascending: Floats, k: int) -> float:
    n = len(ascending)
    return float(sum(ascending[i - 1] * (comb(i - 1, k - 1) / comb(n, k)) for i in range(k, n + 1)))


def parsed(k: object) -> list[Reducer]:
    """The reducers that a number, a text or several of these name.

    >>> parsed("1,5,pass^5") == parsed([1, 5, "pass^5"])
    True
    """
    reducers = [_parsed(text) for text in _texts(k)]
    if not reducers:
        raise InputError(f"must be {_WRITTEN}, or several", argument="k", kind="length")
    return list(dict.fromkeys(reducers))


def _parsed(text: str) -> Reducer:
    for kind, form in _FORMS:
        found = re.fullmatch(form, text.strip().lower())
        if found is not None:
            parts = {name: int(value) for name, value in found.groupdict().items()}
            reducer = Reducer(kind, parts["k"], parts.get("j", 0))
            if reducer.k >= 1 and (kind != "at least" or 1 <= reducer.least <= reducer.k):
                return reducer
    raise _unknown(text)


def _texts(k: object) -> Iterator[str]:
    for part in k if isinstance(k, (list, tuple, np.ndarray)) else [k]:
        if isinstance(part, str):
            yield from part.split(",")
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            yield str(int(part))
        else:
            raise _unknown(part)


def _unknown(value: object) -> InputError:
    return InputError(
        f"must be {_WRITTEN}, or several of these",
        argument="k",
        found=f"it is {show(value)}",
        values=[value],
        remedies=[Remedy("k is at least 1, and j of k at most k.")],
    )
