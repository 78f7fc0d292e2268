"""Several forecasters' lists averaged into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from verax.errors import InputError, show
from verax.inputs.arrays import Floats, Ints, kind_of, to_array, to_host
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import Vocabulary


def combine(lists: Sequence[TopLists], *, weights: Sequence[float] | None = None) -> TopLists:
    """The average of several forecasters' lists, row by row.

    A row lists every class that any forecaster lists there. A forecaster who does not list a class
    counts with the proxy probability of their list. So the padded distribution of the result is the
    average of the padded distributions, and lists of different lengths may be combined. Use
    `truncate(k)` to shorten the result.

    Parameters
    ----------
    lists : sequence of TopLists
        The lists of each forecaster, over the same rows and classes.
    weights : sequence of float, optional
        How much each forecaster counts; equally if not given. They are divided by their sum.

    Examples
    --------
    >>> import verax as vx
    >>> ann = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}], n_classes=4)
    >>> bob = vx.TopLists.from_dicts([{0: 0.7}], n_classes=4)
    >>> {c: round(t, 6) for c, t in vx.combine([ann, bob]).to_dicts()[0].items()}
    {0: 0.65, 1: 0.15}
    """
    given = _check_same_problem(lists)
    share = _shares(weights, len(given))
    vocabulary, codes = _common_codes(given)
    n, m = given[0].shape
    span = 1 + max((int(c.max()) for c in codes if c.size), default=0)
    row_of = [np.repeat(np.arange(n), each.lengths) for each in given]
    # Every (row, class) that someone lists, once, in the order of the rows.
    if n * span < 2**62:
        keys = [row * span + code for row, code in zip(row_of, codes, strict=True)]
        pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
        rows, classes = np.divmod(pairs, span)
    else:
        both = np.stack([np.concatenate(row_of), np.concatenate(codes)])
        (rows, classes), place = np.unique(both, axis=1, return_inverse=True)
    pooled = np.zeros(rows.size)
    start = 0
    for each, code, weight in zip(given, codes, share, strict=True):
        # This forecaster's probability of every pair: the proxy, unless it is listed.
        says = each.proxy[rows]
        says[place.reshape(-1)[start : start + code.size]] = each.confidences
        start += code.size
        pooled += weight * says
    lengths = np.bincount(rows, minlength=n)
    return TopLists(
        classes,
        pooled,
        offsets_of(lengths),
        m,
        vocabulary=vocabulary,
        tolerance=max(each.tolerance for each in given),
        slack=max(each.slack for each in given),
    )


def _check_same_problem(given: object) -> list[TopLists]:
    """The lists of all forecasters, if they are over the same rows and classes."""
    several = isinstance(given, Iterable) and not isinstance(given, (TopLists, type, np.ndarray))
    lists = list(given) if several and isinstance(given, Iterable) else []
    if not lists or not all(isinstance(each, TopLists) for each in lists):
        raise InputError(
            f"must hold the TopLists of at least one forecaster, not {show(given)}",
            argument="lists",
            kind="type",
        )
    shapes = {each.shape for each in lists}
    if len(shapes) > 1:
        shown = ", ".join(f"{n} lists over {m} classes" for n, m in sorted(shapes))
        raise InputError(
            "must be over the same rows and classes",
            argument="lists",
            kind="length",
            found=f"there are {shown}",
        )
    kinds = {(type(each.vocabulary), getattr(each.vocabulary, "labels", None)) for each in lists}
    names = {
        each.vocabulary.names for each in lists if each.vocabulary is not None and each.vocabulary.complete
    }
    complete = {each.vocabulary is not None and each.vocabulary.complete for each in lists}
    if len(kinds) > 1 or len(names) > 1 or len(complete) > 1:
        raise InputError("must name their classes in the same way", argument="lists", kind="label")
    return lists


def _shares(weights: Sequence[float] | None, n: int) -> Floats:
    raw = np.ones(n) if weights is None else to_host(to_array(weights, "weights")[0])
    numbers = kind_of(raw) in ("real", "integer", "bool") and raw.shape == (n,)
    share = raw.astype(np.float64) if numbers else np.full(n, np.nan)
    if not np.isfinite(share).all() or (share < 0).any() or share.max() == 0:
        raise InputError(
            f"must be {n} finite numbers that are not negative and not all zero, one per forecaster",
            argument="weights",
            kind="value" if numbers else "type",
            found=f"it is {show(weights)}",
        )
    # Divided by the largest first, so that the sum does not overflow.
    share = share / share.max()
    shares: Floats = share / share.sum()
    return shares


def _common_codes(lists: list[TopLists]) -> tuple[Vocabulary | None, list[Ints]]:
    """The codes of all lists in one vocabulary."""
    vocabulary = lists[0].vocabulary
    codes = [lists[0].classes]
    for each in lists[1:]:
        if vocabulary is None or each.vocabulary is None or vocabulary.complete:
            codes.append(each.classes)
        else:
            vocabulary, translated = vocabulary.translation(each.vocabulary)
            codes.append(translated[each.classes])
    return vocabulary, codes
