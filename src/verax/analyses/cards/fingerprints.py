"""Fingerprints of the rows of saved cards, by which the same part is not merged twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from verax.analyses.cards.rows import CardSums
from verax.errors import InputError, Remedy, passing

# Larger tables of counts follow from their margins well enough.
_CELLS = 4096


class Fingerprint(NamedTuple):
    """What tells a part of the rows from others: a digest of its sums, and its number of rows.

    It does not depend on the order of rows, on ids, or on the file.
    """

    digest: str
    n_rows: int


def fingerprint_of(n_rows: int, sums: Iterable[Any]) -> Fingerprint:
    """The fingerprint of rows from their sums, which rows in another order change beyond the eighth digit.

    >>> fingerprint_of(2, [0.1 + 0.2, [1, 0]]) == fingerprint_of(2, [0.3, [1, 0]])
    True
    """
    digest = blake2b(str(n_rows).encode(), digest_size=16)
    for values in sums:
        for number in np.asarray(values, float).ravel().tolist():
            digest.update(f"{number + 0.0:.7e};".encode())
    return Fingerprint(digest.hexdigest(), n_rows)


def fingerprint_of_card(card: CardSums) -> Fingerprint:
    """The fingerprint of the rows of a card of forecasts."""
    moments, table = card.tally.moments, card.confusion
    weights = np.maximum(moments.weight.high, np.finfo(float).tiny)
    means = moments.total.high / weights
    # Squares about zero: those about a mean may be rounding errors alone.
    squares = moments.m2 / weights + means**2
    counts = [] if table is None or table.size > _CELLS else [table]
    sums = [card.weight, card.class_counts, means, squares, moments.n_infinite, card.n_zero_probability]
    return fingerprint_of(card.n_rows if card.weight else 0, [*sums, *counts])


def repeats_among(
    files: Sequence[tuple[str, Sequence[Fingerprint]]],
) -> list[tuple[str, str, Fingerprint]]:
    """The parts that two files have, with the names of both; files come with their parts."""
    first: dict[str, int] = {}
    repeats = []
    for i, (name, parts) in enumerate(files):
        for part in parts:
            before = first.setdefault(part.digest, i)
            if part.n_rows and before != i:
                repeats.append((files[before][0], name, part))
    return repeats


def refuse_repeats(repeats: Iterable[tuple[str, str, Fingerprint]], *, allowed: bool) -> list[str]:
    """Refuse files that hold the same part unless that is allowed; sentences about those that are merged."""
    repeats = list(repeats)
    if repeats and not allowed:
        one, other, part = repeats[0]
        raise InputError(
            "The files must hold different rows",
            argument="path",
            kind="label",
            found=f"{_shared(one, other, part)}, which would count twice",
            values=[one, other],
            count=len(repeats),
            remedies=[
                Remedy("Leave one of them out."),
                passing("if their rows differ, or are to count twice", allow_repeats=True),
            ],
        )
    return [f"{_shared(one, other, part)}. It counts twice." for one, other, part in repeats]


def _shared(one: str, other: str, part: Fingerprint) -> str:
    rows = "row" if part.n_rows == 1 else "rows"
    return f"{one} and {other} hold a part with the same sums ({part.n_rows:,} {rows})"
