"""The folds of every cross-validation: rows are dealt at random, groups as a whole.

Folds are drawn without a look at the outcomes. If each fold had its share of every class, the class
frequencies of the rows to fit and of the rows to measure would agree to a fraction of a row. A fitted prior
would then match the noise of the rows that it is measured on, and gain where there is nothing to gain. So a
fit may lack a class that happens in its fold, and loses there what it would lose on new rows.
"""

from __future__ import annotations

import numpy as np

from verax.errors import InputError, passing
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, in_order_seen


def n_units(groups: Groups | None, n_rows: int, weights: Floats | None) -> int:
    """How many rows or, where there are any, groups of the first kind have weight."""
    weighty = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    return len(weighty) if groups is None else len(np.unique(groups.first_kind[weighty]))


def dealt(
    n_rows: int,
    groups: Groups | None,
    folds: int,
    seed: int,
    weights: Floats | None = None,
    *,
    nested: bool = False,
) -> Ints:
    """The fold of each row, of nearly equal size; there are no more folds than rows or groups.

    Of two kinds of groups those of the first kind stay whole. Rows of weight zero are all in the first fold,
    so that they do not change the folds of others: they are as if absent. With `nested`, a choice is
    made without each fold, which takes three folds.
    """
    units, least = n_units(groups, n_rows, weights), 3 if nested else 2
    if units < least or folds < least:
        raise _too_few(folds, units, groups, nested=nested)
    fold = np.zeros(n_rows, np.int64)
    weighty = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    codes = np.arange(len(weighty)) if groups is None else in_order_seen(groups.first_kind[weighty])
    fold[weighty] = _by_size(np.bincount(codes), min(folds, units), seed)[codes]
    return fold


def _by_size(sizes: Ints, n_folds: int, seed: int) -> Ints:
    """The fold of each group: in random order, the largest first, to the fold that has fewest rows."""
    order = np.random.default_rng(seed).permutation(len(sizes))
    fold = np.empty(len(sizes), np.int64)
    if sizes.max() == 1:
        fold[order] = np.arange(len(sizes)) % n_folds
        return fold
    filled = np.zeros(n_folds)
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold[group] = np.argmin(filled)
        filled[fold[group]] += sizes[group]
    return fold


def _too_few(folds: int, units: int, groups: Groups | None, *, nested: bool) -> InputError:
    least, what = 3 if nested else 2, "rows" if groups is None else "groups"
    few = units < least
    why = "to choose a strength and to measure it on others" if nested else "to fit and to measure on others"
    return InputError(
        f"must be at least {least} {what if few else 'folds'}, {why}",
        argument=("p" if groups is None else "groups") if few else "folds",
        kind="length" if few else "value",
        found=f"there {'is' if units == 1 else 'are'} {units}" if few else "",
        values=[units if few else folds],
        remedies=[passing("to need only two", method="temperature")] if nested else [],
    )
