"""Shorter lists of the same forecasts: the hard prediction, and lists of some lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.common.checks import check_count
from verax.errors import InputError, show
from verax.inputs.arrays import to_array, to_host
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.reading import TOLERANCE
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows

# The lengths that are compared unless others are asked for.
LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100)


def shorter_lists(rows: ListRows, lengths: Sequence[int]) -> list[Rows]:
    """The first class of each list as if it were certain, and the lists cut to each length."""
    first = rows.heads(1)
    one = first.lists
    hard = first.with_lists(Ragged(one.classes, np.ones(one.classes.size), one.offsets), TOLERANCE)
    return [hard, *(rows.heads(length) for length in lengths)]


def names_of(lengths: Sequence[int], *, lists: bool) -> tuple[str, ...]:
    """What the predictions are called, from the hard one to the one that was given."""
    return ("hard", *(f"top-{length}" for length in lengths), "as given" if lists else "full")


def check_lengths(k: Sequence[int] | None, longest: int) -> list[int]:
    """The lengths to compare, given the length of the longest list."""
    if k is None:
        return [length for length in LENGTHS if length < max(longest, 2)]
    given: list[Any] = to_host(to_array(k, "k")[0]).reshape(-1).tolist()
    for length in given:
        check_count("k", length, least=0)
    if not given or max(given) > longest:
        raise InputError(
            f"must hold lengths from 0 to {longest}", argument="k", found=f"it is {show(k)}", values=given
        )
    return sorted(set(given))
