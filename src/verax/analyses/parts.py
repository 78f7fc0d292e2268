"""Outcomes, decisions and losses of a part of rows, and faults of its lists, made once for all analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from verax.engines.scan import Plan, scan_rows
from verax.engines.stats import Formula, RowStats
from verax.engines.summing import PlainSums, RowLosses
from verax.errors import InputError
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts, ShareBatch
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListFaults, ListRows
from verax.inputs.outcomes import UNKNOWN
from verax.inputs.rows import RowBatch, at_fault, numbers_of
from verax.scores.base import Rule, losses_of

# The number of rows that are transposed at a time: a cache holds them.
_BLOCK = 2**14


class RowPass:
    """Valid rows as one pass found them. Threads fill different rows.

    Attributes
    ----------
    y, decision : Ints
        (N,) outcomes and most likely classes; UNKNOWN where outcomes are shares of several classes.
    top : Floats
        (N,) the largest probabilities.
    losses : dict[Formula, Floats]
        (N,) losses by each rule that is kept.
    table : Floats
        (R, N) the same, in the order of the rules.
    weights : Floats | None
        (N,) weights.
    sums : PlainSums | None
        Sums by all rules, if they were asked for and a kernel has read all rows: none has a weight, gave its
        outcome probability zero, or has an infinite loss.
    """

    y: Ints
    decision: Ints
    top: Floats

    def __init__(
        self,
        forecasts: Forecasts,
        rules: Sequence[Formula],
        kept: Sequence[Formula] | None = None,
        *,
        summed: bool = False,
        into: Floats | None = None,
    ) -> None:
        """Pass over the rows, and check them; all losses are kept where there is no kernel.

        `into` is a table for the losses, one line for each of all rules.
        """
        plan = Plan.of(forecasts, ("losses", *rules))
        kept = rules if kept is None else kept
        self._kernel = RowLosses.of(tuple(rules), forecasts, kept) if plan.compiled else None
        n, kept = forecasts.n_rows, rules if self._kernel is None else kept
        self.y, self.decision, self.top = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        self.table: Floats = np.empty((len(kept), n)) if into is None else into
        self.losses: dict[Formula, Floats] = dict(zip(kept, self.table, strict=True))
        self.weights: Floats | None = None if forecasts.weights is None else np.empty(n)
        needs = {"top", "decision"} | {name for rule in rules for name in rule.needs}
        plain = summed and self._kernel is not None and self.weights is None
        of_chunk = partial(PlainSums.zeros, forecasts.n_classes, len(rules))
        self._chunks = [of_chunk() for _ in range(plan.n_chunks)] if plain else []
        scan_rows(forecasts, needs, lambda: self, plan=plan)
        self.sums: PlainSums | None = reduce(add, self._chunks) if self._chunks else None
        if self.sums is not None and not np.isfinite(self.sums.losses).all():
            self.sums = None
        self._kernel, self._chunks = None, []

    @property
    def absorb(self) -> Callable[[int, int, int], tuple[Ints, bool]] | None:
        """Take in the rows from one number to another by a kernel; None where there is none."""
        return None if self._kernel is None else self._absorb

    def _absorb(self, start: int, stop: int, chunk: int) -> tuple[Ints, bool]:
        assert self._kernel is not None
        chunks = self._chunks
        sums = chunks[chunk] if chunks else None
        left, w = self._kernel(start, stop, self.y, self.table, self.top, self.decision, sums)
        if w is None or self.weights is None:
            return left, True
        self.weights[start:stop] = w
        if not (w.min() >= 0 and w.max() < np.inf):
            return np.arange(start, stop), False
        return left, bool(w.max() > 0)

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        """Take in a block of rows."""
        self._chunks = []
        rows = numbers_of(batch, np.arange(batch.n_rows))
        self.y[rows] = UNKNOWN if isinstance(batch, ShareBatch) else to_host(batch.y)
        self.decision[rows] = to_host(stats.decision)
        self.top[rows] = to_host(stats.top)
        with np.errstate(divide="ignore", invalid="ignore"):
            for rule, losses in self.losses.items():
                losses[rows] = to_host(stats.loss(rule))
        if self.weights is not None and batch.weights is not None:
            self.weights[rows] = to_host(batch.weights)


@dataclass(frozen=True)
class Accepted:
    """The key in a part of whether a pass has accepted its rows with the forecasts of a model."""

    model: str


@dataclass(frozen=True)
class SumsOf:
    """The key in a part of the sums (`KnownSums`) of its rows with the forecasts of a model."""

    model: str


class KnownSums(dict[tuple[Rule, ...], PlainSums | None]):
    """Sums of the rows of a part by the rules that recipes have asked for; None as in `RowPass.sums`."""

    def of_rules(self, rules: tuple[Rule, ...]) -> PlainSums | None:
        """The sums by these rules, which may be some of those that were asked for; None if they are not."""
        for known, sums in self.items():
            if sums is not None and set(known).issuperset(rules):
                return sums.of_rules([known.index(rule) for rule in rules])
        return None


def seen(part: Part, model: str, rules: Sequence[Rule]) -> RowPass:
    """The rows of a part with the forecasts of a model, with the losses of these rules, or of more.

    They are read once for all that ask for no other rules.
    """
    passes = _passes_of(part, model)
    for known, rows in passes.items():
        if known.issuperset(rules):
            return rows
    with naming(part, model):
        row_pass = passes[frozenset(rules)] = RowPass(dense(part, model), list(dict.fromkeys(rules)))
    return row_pass


def checked(part: Part, model: str) -> None:
    """Refuse invalid rows, unless a pass has read the rows of this part already."""

    def check() -> bool:
        with naming(part, model):
            losses_of((), dense(part, model))
        return True

    part.once(Accepted(model), check)


def losses_of_cases(part: Part, model: str, rule: Rule, losses: Floats) -> Floats:
    """The loss of the case of each row, given the losses of the rows: the same unless they are pairs."""
    if part.cases is None or part.places is None:
        return losses
    return seen(part.cases, model, [rule]).losses[rule][part.places]


@contextmanager
def naming(part: Part, model: str) -> Iterator[None]:
    """Let errors about the forecasts of one of several models in memory say whose they are."""
    try:
        yield
    except InputError as error:
        if part.whole and len(part.models) > 1:
            raise at_fault(model, error) from None
        raise


def _passes_of(part: Part, model: str) -> dict[frozenset[Formula], RowPass]:
    """The rows as they were read so far, by the rules whose losses are kept."""
    return part.once(("seen", model), dict)


def plain_sums(
    part: Part, model: str, rules: tuple[Rule, ...], kept: Sequence[Rule] | None = None
) -> PlainSums | None:
    """Sums of rows by these rules, from a pass that keeps losses for `seen`; None as in `RowPass.sums`."""

    def summed() -> PlainSums | None:
        forecasts = dense(part, model)
        if forecasts.weights is not None or forecasts.groups is not None:
            return None
        written = [r for r in rules if kept is None or r in kept]
        with naming(part, model):
            rows = RowPass(forecasts, rules, written, summed=True)
        _passes_of(part, model)[frozenset(rows.losses)] = rows
        return rows.sums

    known = part.once(SumsOf(model), KnownSums)
    if rules not in known:
        known[rules] = summed()
    return known[rules]


def dense(part: Part, model: str) -> Forecasts:
    """The forecasts of a model, which must be dense."""
    forecasts = part.models[model]
    assert isinstance(forecasts, Forecasts)
    return forecasts


def probabilities(part: Part, model: str) -> Floats:
    """(N, K) probabilities of valid rows, in double precision."""

    def read() -> Floats:
        forecasts = dense(part, model)
        return np.asarray(to_host(widen(forecasts.probabilities_of(slice(0, forecasts.n_rows)))))

    return part.once(("probabilities", model), read)


def in_columns(p: Floats) -> Iterator[tuple[slice, Floats]]:
    """Rows of probabilities with a contiguous line for each class; some at a time where that takes a copy."""
    if p.T.flags.c_contiguous:
        yield slice(0, len(p)), p.T
        return
    for start in range(0, len(p), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(p)))
        yield rows, np.ascontiguousarray(p[rows].T)


def scaled(part: Part, weights: Floats) -> Floats:
    """Weights of rows in memory over a power of two near the largest, so that no sum of squares overflows.

    Only ratios of weights matter, and these stay the same. The largest weight is not known where rows come in
    parts.
    """
    if not part.whole:
        return weights
    return np.asarray(np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1])))


# The name of the faults of a model among summaries.
_FAULTS = "faults of {}"


@dataclass(frozen=True)
class FaultRecipe(Recipe[ListFaults], cases=True):
    """The recipe of the faults of one model's lists."""

    model: str

    def take(self, part: Part) -> ListFaults:
        """Count the faults of one part."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return rows.faults


def with_fault_recipes(handle: Handle, recipes: Mapping[str, Recipe[Any]]) -> dict[str, Recipe[Any]]:
    """These recipes, and where the forecasts are top lists what finds their faults."""
    return {**recipes, **{_FAULTS.format(model): FaultRecipe(model) for model in handle.listed}}


def faults_in(handle: Handle, summaries: Summaries) -> dict[str, ListFaults]:
    """The faults by the name of each model, or without a name where there is one model only."""
    faults: dict[str, ListFaults] = {model: summaries[_FAULTS.format(model)] for model in handle.listed}
    return faults if handle.several or not faults else {"": next(iter(faults.values()))}
