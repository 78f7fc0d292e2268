"""Forecasts that know nothing of the single case, which skill is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.errors import InputError, show
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists

FREQUENCIES, UNIFORM = "frequencies", "uniform"


def uniform(n_rows: int, n_classes: int) -> Floats:
    """The same probability for every class."""
    return np.full((n_rows, n_classes), 1 / n_classes)


def uniform_lists(n_rows: int, n_classes: int) -> ListRows:
    """Lists of nothing, which leave every class the same probability, however many classes there are."""
    nothing = TopLists(np.zeros(0, np.int64), np.zeros(0), np.zeros(n_rows + 1, np.int64), n_classes)
    return nothing.with_outcomes(np.zeros(n_rows, np.int64))


def check_for_lists(reference: str, names: Sequence[str]) -> None:
    """Refuse a reference that is no list: frequencies of all classes are not known beforehand."""
    if reference != UNIFORM:
        raise InputError(
            f"must be {UNIFORM} or one of the models where there are top lists, not {show(reference)}",
            argument="reference",
            found=f"the models are {', '.join(names)}",
            values=[reference],
        )


def frequencies(y: Any, n_classes: int, weights: Floats | None, groups: Groups | None, seed: int) -> Floats:
    """For each row the frequencies of the classes in the other nine tenths of the rows, or groups."""
    units = np.arange(len(y)) if groups is None else groups.first_kind
    n_folds = min(10, int(units.max()) + 1)
    fold = np.random.default_rng(seed).permutation(int(units.max()) + 1)[units] % n_folds
    counts = np.bincount(fold * n_classes + y, weights, n_folds * n_classes).reshape(n_folds, n_classes)
    # Half a case more of every class, so that no class has probability zero.
    others = counts.sum(axis=0) - counts + 0.5
    return np.asarray((others / others.sum(axis=1, keepdims=True))[fold])


def leave_one_out(y: Any, weights: Floats, counts: Floats) -> Floats:
    """For each row the frequencies of the classes in all other rows; `counts` are the weights of all."""
    others = np.repeat(counts[None, :] + 0.5, len(y), axis=0)
    others[np.arange(len(y)), y] -= weights
    # Rounding must not take more than there is.
    others = np.maximum(others, 0.5)
    return np.asarray(others / others.sum(axis=1, keepdims=True))
