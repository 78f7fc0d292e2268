"""Several forecasters' lists pooled into one: linear and logarithmic pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.common.checks import as_float, check_choice
from verax.errors import InputError, Offenders, Remedy, show
from verax.inputs.arrays import Floats, Ints, kind_of, to_array, to_host
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary

PoolKind = Literal["linear", "log"]


def combine(
    lists: Sequence[Any], *, weights: Sequence[float] | None = None, pool: PoolKind = "linear"
) -> Any:
    """The average of several forecasters' lists, or full distributions, row by row.

    A row lists every class that any forecaster lists there. A forecaster who does not list a class
    counts with the proxy probability of their list. So the padded distribution of the result is the
    average of the padded distributions, and lists of different lengths may be combined. Use
    `truncate(k)` to shorten the result; `fit_combination` fits the weights.

    Parameters
    ----------
    lists : sequence of TopLists or arrays
        The lists of each forecaster, over the same rows and classes; or (N, K) probabilities. Where all are
        probabilities, so is the result.
    weights : sequence of float, optional
        How much each forecaster counts; equally if not given. They are divided by their sum.
    pool : {"linear", "log"}, default "linear"
        The weighted mean of the probabilities, or their weighted geometric mean divided by its sum over all
        classes. A class that one forecaster with weight rules out is ruled out by the logarithmic pool.

    Returns
    -------
    TopLists or array of shape (N, K)
        The pooled forecasts.

    See Also
    --------
    fit_combination : Fit the weights.

    Examples
    --------
    >>> import verax as vx
    >>> ann = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}], n_classes=4)
    >>> bob = vx.TopLists.from_dicts([{0: 0.7}], n_classes=4)
    >>> {c: round(t, 6) for c, t in vx.combine([ann, bob]).to_dicts()[0].items()}
    {0: 0.65, 1: 0.15}
    >>> {c: round(t, 4) for c, t in vx.combine([ann, bob], pool="log").to_dicts()[0].items()}
    {0: 0.655, 1: 0.1429}
    """
    given = _several(lists)
    pooled = Pool.of(as_lists(given)).pooled(shares(weights, len(given)), pool)
    return pooled if any(isinstance(forecasts, TopLists) for forecasts in given) else pooled.padded()


@dataclass(frozen=True)
class Pool:
    """The probabilities of all forecasters for each class that any of them lists, row by row.

    Attributes
    ----------
    rows, classes : (E,) int arrays
        The pairs of a row and a class that someone lists, in the order of the rows.
    says : array of shape (E, M)
        The probability that each forecaster gives: the proxy of their list for classes that it lacks.
    rest : array of shape (N, M)
        The proxies: the probability that each forecaster gives every other class.
    lengths : (N,) int array
        The number of classes listed in each row.
    """

    rows: Ints
    classes: Ints
    says: Floats
    rest: Floats
    lengths: Ints
    n_classes: int
    vocabulary: ClassVocabulary | None
    tolerance: float
    slack: float

    @classmethod
    def of(cls, given: Sequence[TopLists]) -> Pool:
        """The lists of several forecasters over the same rows and classes."""
        vocabulary, codes = _common_codes(given)
        n, m = given[0].shape
        span = 1 + max((int(c.max()) for c in codes if c.size), default=0)
        row_of = [np.repeat(np.arange(n), lists.lengths) for lists in given]
        # Every (row, class) that someone lists, once, in the order of the rows.
        if n * span < 2**62:
            keys = [row * span + code for row, code in zip(row_of, codes, strict=True)]
            pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
            rows, classes = np.divmod(pairs, span)
        else:
            both = np.stack([np.concatenate(row_of), np.concatenate(codes)])
            (rows, classes), place = np.unique(both, axis=1, return_inverse=True)
        rest = np.column_stack([lists.proxy for lists in given])
        says = rest[rows]
        start = 0
        for i, (lists, code) in enumerate(zip(given, codes, strict=True)):
            says[place.reshape(-1)[start : start + code.size], i] = lists.confidences
            start += code.size
        return cls(
            rows,
            classes,
            says,
            rest,
            np.bincount(rows, minlength=n),
            m,
            vocabulary,
            max(lists.tolerance for lists in given),
            max(lists.slack for lists in given),
        )

    def values(self, weights: Floats, pool: PoolKind) -> tuple[Floats, Floats]:
        """The pooled probabilities of the pairs, and of every other class in each row."""
        check_choice("pool", pool, ("linear", "log"))
        if pool == "linear":
            return self.says @ weights, self.rest @ weights
        heard = weights > 0
        with np.errstate(divide="ignore"):
            listed = np.log(self.says[:, heard]) @ weights[heard]
            others = np.log(self.rest[:, heard]) @ weights[heard]
        unlisted = as_float(self.n_classes) - self.lengths
        top = np.where(unlisted > 0, others, -np.inf)
        np.maximum.at(top, self.rows, listed)
        impossible = Offenders(
            "lists",
            "must leave at least one class that no forecaster rules out",
            "list",
            ("rules out", "rule out"),
            (Remedy("Use pool='linear'.", python_only=True),),
        )
        impossible.add(top == -np.inf, ["every class"] * len(top), 0)
        if impossible.count:
            raise impossible.error()
        # Relative to the most likely class of each row, so that nothing overflows.
        listed, others = np.exp(listed - top[self.rows]), np.exp(others - top)
        total = np.bincount(self.rows, listed, len(top)) + np.where(unlisted > 0, unlisted * others, 0.0)
        return listed / total[self.rows], others / total

    def pooled(self, weights: Floats, pool: PoolKind) -> TopLists:
        """The pool as lists of all classes that someone lists."""
        return TopLists(
            self.classes,
            self.values(weights, pool)[0],
            offsets_of(self.lengths),
            self.n_classes,
            vocabulary=self.vocabulary,
            tolerance=self.tolerance,
            slack=self.slack,
        )


def _several(given: object) -> list[Any]:
    """The forecasts of each forecaster: lists, or arrays with a row per case and a column per class."""
    one = hasattr(given, "__array_namespace__") or isinstance(
        given, (TopLists, type, np.ndarray, str, Mapping)
    )
    apart = isinstance(given, Iterable) and not one
    several = list(given) if apart and isinstance(given, Iterable) else []
    if not several or not all(
        isinstance(forecasts, TopLists) or hasattr(forecasts, "shape") for forecasts in several
    ):
        raise InputError(
            f"must hold the TopLists or the arrays of at least one forecaster, not {show(given)}",
            argument="lists",
            kind="type",
        )
    return several


def as_lists(given: Iterable[Any], **form: Any) -> list[TopLists]:
    """The forecasts of all forecasters as lists over the same rows and classes.

    Full distributions become lists of all classes; `form` has the options for reading them.
    """
    lists = []
    for forecasts in given:
        if isinstance(forecasts, TopLists):
            lists.append(forecasts)
            continue
        raw = to_array(forecasts, "p")[0]
        lists.append(
            TopLists.from_probabilities(forecasts, int(raw.shape[1]) if raw.ndim == 2 else 2, **form)
        )
    _check_same_problem(lists)
    return lists


def _check_same_problem(lists: Sequence[TopLists]) -> None:
    """Refuse lists that are not over the same rows and classes."""
    shapes = {top_lists.shape for top_lists in lists}
    if len(shapes) > 1:
        shown = ", ".join(f"{n} lists over {m} classes" for n, m in sorted(shapes))
        raise InputError(
            "must be over the same rows and classes",
            argument="lists",
            kind="length",
            found=f"there are {shown}",
        )
    kinds = {
        (type(top_lists.vocabulary), getattr(top_lists.vocabulary, "labels", None)) for top_lists in lists
    }
    names = {
        top_lists.vocabulary.names
        for top_lists in lists
        if top_lists.vocabulary is not None and top_lists.vocabulary.complete
    }
    complete = {top_lists.vocabulary is not None and top_lists.vocabulary.complete for top_lists in lists}
    if len(kinds) > 1 or len(names) > 1 or len(complete) > 1:
        raise InputError("must name their classes in the same way", argument="lists", kind="label")


def shares(weights: Any, n: int) -> Floats:
    """The weights of n forecasters, divided by their sum; equal by default."""
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
    divided: Floats = share / share.sum()
    return divided


def _common_codes(lists: Sequence[TopLists]) -> tuple[ClassVocabulary | None, list[Ints]]:
    """The codes of all lists in one vocabulary."""
    vocabulary = lists[0].vocabulary
    codes = [lists[0].classes]
    for top_lists in lists[1:]:
        if vocabulary is None or top_lists.vocabulary is None or vocabulary.complete:
            codes.append(top_lists.classes)
        else:
            vocabulary, translated = vocabulary.translation(top_lists.vocabulary)
            codes.append(translated[top_lists.classes])
    return vocabulary, codes
