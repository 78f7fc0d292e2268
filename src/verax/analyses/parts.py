"""What analyses look at in a part of rows that are not all in memory: outcomes, decisions and losses,
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from verax.engines.histograms import compiled
from verax.engines.plans import Plan
from verax.engines.scan import scan_rows
from verax.engines.stats import RowStats
from verax.engines.summing import RowLosses
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part
from verax.inputs.rows import RowBatch, numbers_of
from verax.scores.base import Rule


class Seen:
    """Valid rows as one pass found them. Threads fill different rows.

    Attributes
    ----------
    y, decision : Ints
        (N,) outcomes and most likely classes.
    top : Floats
        (N,) the largest probabilities.
    losses : dict[Rule, Floats]
        (N,) losses by each rule.
    table : Floats
        (R, N) the same, in the order of the rules.
    weights : Floats | None
        (N,) weights.
    plain : bool
        Whether a kernel has read all rows, none of which has a weight or gave its outcome probability zero.
    """

    y: Ints
    decision: Ints
    top: Floats

    def __init__(self, forecasts: Forecasts, rules: Sequence[Rule]) -> None:
        """From one pass over the rows, which checks them."""
        n = forecasts.n_rows
        self.y, self.decision, self.top = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        self.table: Floats = np.empty((len(rules), n))
        self.losses: dict[Rule, Floats] = dict(zip(rules, self.table, strict=True))
        self.weights: Floats | None = None if forecasts.weights is None else np.empty(n)
        needs = {"top", "decision"} | {name for rule in rules for name in rule.needs}
        plan = Plan.of(forecasts, ("losses", *rules))
        self._kernel = RowLosses.of(tuple(rules), forecasts) if plan.compiled else None
        self.plain: bool = self._kernel is not None and self.weights is None
        scan_rows(forecasts, needs, lambda: self, plan=plan)
        self._kernel = None

    @property
    def absorb(self) -> Callable[[int, int, int], tuple[Ints, bool]] | None:
        """Take in the rows from one number to another by a kernel; None where there is none."""
        return None if self._kernel is None else self._absorb

    def _absorb(self, start: int, stop: int, _chunk: int) -> tuple[Ints, bool]:
        assert self._kernel is not None
        left, w = self._kernel(start, stop, self.y, self.table, self.top, self.decision)
        if w is None or self.weights is None:
            return left, True
        self.weights[start:stop] = w
        if not (w.min() >= 0 and w.max() < np.inf):
            return np.arange(start, stop), False
        return left, bool(w.max() > 0)

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        """Take in a block of rows."""
        self.plain = False
        rows = numbers_of(batch, np.arange(int(batch.y.shape[0])))
        self.y[rows], self.decision[rows] = to_host(batch.y), to_host(stats.decision)
        self.top[rows] = to_host(stats.top)
        with np.errstate(divide="ignore", invalid="ignore"):
            for rule, losses in self.losses.items():
                losses[rows] = to_host(stats.loss(rule))
        if self.weights is not None and batch.weights is not None:
            self.weights[rows] = to_host(batch.weights)


def seen(part: Part, model: str, rules: Sequence[Rule]) -> Seen:
    """The rows of a part with the forecasts of a model, with the losses of these rules, or of more.

    They are read once for all that ask for no other rules.
    """
    found = _held(part, model, rules)
    if found is None:
        found = Seen(dense(part, model), list(dict.fromkeys(rules)))
        _all_held(part, model)[frozenset(rules)] = found
    return found


def _held(part: Part, model: str, rules: Sequence[Rule]) -> Seen | None:
    """The same if they were read before."""
    return next((rows for known, rows in _all_held(part, model).items() if known.issuperset(rules)), None)


def _all_held(part: Part, model: str) -> dict[frozenset[Rule], Seen]:
    return part.once(("seen", model), dict)


@dataclass(frozen=True)
class PlainSums:
    """Sums over rows of equal weight, where all losses are finite.

    Attributes
    ----------
    cells : Floats
        (K, K) numbers of rows, outcome by decision.
    losses : Floats
        (K, R, 2) sums of the losses of each rule and of their squares over the rows of each class.
    """

    cells: Floats
    losses: Floats


def plain_sums(part: Part, model: str, rules: tuple[Rule, ...]) -> PlainSums | None:
    """The sums of the rows of a part, once; None unless these were read before, are plain, and many."""

    def summed() -> PlainSums | None:
        rows, forecasts = _held(part, model, rules), part.models[model]
        if rows is None or not rows.plain or forecasts.groups is not None or not compiled(part.n_rows):
            return None
        from verax.kernels.filling import sums_by_class

        k = forecasts.n_classes
        found = PlainSums(np.zeros((k, k)), np.zeros((k, len(rules), 2)))
        losses = rows.table if tuple(rows.losses) == rules else np.stack([rows.losses[r] for r in rules])
        sums_by_class(rows.y, rows.decision, losses, found.cells, found.losses)
        return found if np.isfinite(found.losses).all() else None

    return part.once(("plain sums", model, rules), summed)


def dense(part: Part, model: str) -> Forecasts:
    """The forecasts of a model, which must be dense."""
    forecasts = part.models[model]
    assert isinstance(forecasts, Forecasts)
    return forecasts


def probabilities(part: Part, model: str) -> Floats:
    """(N, K) probabilities of valid rows, in double precision."""

    def read() -> Floats:
        forecasts = dense(part, model)
        return np.asarray(to_host(widen(forecasts.batch(0, forecasts.n_rows).p)))

    return part.once(("probabilities", model), read)
