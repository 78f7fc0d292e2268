"""The random draws behind intervals, bands and tests of calibration: the one place that asks where rows are.

Rows in memory are drawn themselves: one number per row, or list, draws the outcomes of all its events
together, weights count row by row, and all rows of a group keep one sign. Where rows come in parts, there are
only the bins of each event. So each event is drawn on its own, from rows that are as informative as those of
a bin, and all events are assumed to rise and fall together: no p-value is too small. The signs of groups
take another pass over the rows (`accuracy`), and without it groups have neither bands nor tests.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.accuracy import Accuracy, EventSigns, check_units
from verax.analyses.calibration.event_fits import effective_rows
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import EventBins, EventSums, SummedEvent
from verax.analyses.calibration.optimism import Measured, Sampling, Uncertainty, finite, sides
from verax.analyses.calibration.refits import at_once, block_losses, first_of_each, isotonic_fits
from verax.analyses.units import sums_at
from verax.inference.bootstrap import percentile_interval
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints

# The largest number of values that a band is computed for. Beyond, neighbouring forecasts are drawn
# together in cells of a two-thousandth of the weight, which is far finer than the blocks of the fit.
BAND_CELLS = 2048
# Tests of calibration have the most draws by default, and fewer, but not below the fewest, where they would
# look at more probabilities than the budget. A fit costs as much as a number of rows.
MOST_DRAWS, FEWEST_DRAWS, _BUDGET, _OVERHEAD = 1000, 100, 2.5e7, 300
# How many draws of all cells are made together.
_TOGETHER = 64
# Chances are rounded, so that draws do not depend on the order in which rows were added up.
_DECIMALS = 12


def default_draws(n_rows: float, n_classes: int, n_models: int = 1, parts: int = 1) -> int:
    """The number of draws behind calibration tests of all rows, or of several parts of them.

    >>> default_draws(300, 40), default_draws(50_000, 2), default_draws(1_000_000, 2)
    (1000, 248, 100)
    """
    cost = n_classes * n_models * (n_rows + parts * _OVERHEAD)
    return int(min(MOST_DRAWS, max(FEWEST_DRAWS, _BUDGET / cost)))


# ---- components --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """How uncertain components are, and the miscalibrations of calibrated forecasts; `measured` in memory."""

    accuracy: Uncertainty | None
    calibrated: Floats
    measured: Measured | None = None


class Draws(ABC):
    """The draws of all events of a score. Those of one event may be made by a thread of its own."""

    @abstractmethod
    def of(self, i: int, event: SummedEvent, observed: Floats) -> Drawn:
        """The draws of one event, whose components were observed."""

    @abstractmethod
    def add(self, drawn: Drawn, factor: float) -> None:
        """Take in the draws of the next event, which counts so much in the whole."""

    @abstractmethod
    def whole(self) -> Drawn:
        """The draws of what all events add up to."""


def draws_of(
    sums: EventSums,
    how: Split,
    plan: Resampling,
    known: Accuracy | None,
    threads: int,
    *,
    tests_only: bool = False,
) -> Draws:
    """The draws of the events of sums; `known` comes from another pass where rows come in parts.

    With `tests_only` there are those of calibrated forecasts alone.
    """
    rows = sums.rows
    if rows is None or not plan.replicates:
        return _Separate(how, plan, known)
    check_units(sums, copies=False)
    return _Joint(Sampling.of(rows, plan.replicates, plan.seed, threads), how, tests_only)


@dataclass
class _Joint(Draws):
    """Outcomes of rows in memory, of all events together."""

    sampling: Sampling
    how: Split
    tests_only: bool
    total: Measured | None = None
    calibrated: Floats | float = 0.0

    def of(self, i: int, event: SummedEvent, observed: Floats) -> Drawn:
        assert event.rows is not None
        if self.tests_only:
            return Drawn(None, self.sampling.calibrated(event.rows, self.how))
        return self._drawn(self.sampling.measure(event.rows, self.how))

    def _drawn(self, found: Measured) -> Drawn:
        return Drawn(found.uncertainty(self.sampling.units), found.calibrated, found)

    def add(self, drawn: Drawn, factor: float) -> None:
        if drawn.measured is None:
            self.calibrated = self.calibrated + factor * drawn.calibrated
        elif self.total is None:
            self.total = drawn.measured.scaled(factor)
        else:
            self.total += drawn.measured.scaled(factor)

    def whole(self) -> Drawn:
        if self.tests_only:
            return Drawn(None, np.asarray(self.calibrated))
        assert self.total is not None
        return self._drawn(self.total)


@dataclass
class _Separate(Draws):
    """Outcomes of bins, event by event; of groups all events together, from what is known of these."""

    how: Split
    plan: Resampling
    known: Accuracy | None
    grouped: bool = False
    parts: list[Floats] = field(default_factory=list)

    def of(self, i: int, event: SummedEvent, observed: Floats) -> Drawn:
        calibrated, known = np.zeros(0), self.known
        if self.plan.replicates and event.sums.groups is None:
            cells, rng = CellDraws(event.bins, self.how), np.random.default_rng([self.plan.seed, i])
            calibrated = cells.miscalibrations(
                self.plan.replicates, rng, observed[1], copies=self.plan.copies
            )
        elif known is not None and known.calibrated is not None:
            self.grouped = True
            calibrated = observed[1] + known.calibrated[i]
        return Drawn(None if known is None else known.parts[i], calibrated)

    def add(self, drawn: Drawn, factor: float) -> None:
        own = drawn.calibrated
        self.parts.append(factor * (own if self.grouped else np.sort(own)))

    def whole(self) -> Drawn:
        return Drawn(None if self.known is None else self.known.whole, np.sum(self.parts, axis=0))


# ---- curves ------------------------------------------------------------------------------------


class CellDraws:
    """Outcomes of calibrated forecasts in cells: bins, or neighbouring bins where there are very many.

    Attributes
    ----------
    cell : (P,) int array
        The cell of each bin.
    """

    def __init__(self, bins: EventBins, how: Split, cell: Ints | None = None) -> None:
        self.cell: Ints = _cell_of(bins.weight) if cell is None else cell
        self._how = how
        self.n: int = int(self.cell[-1]) + 1
        self.claimed: Floats
        self._size, self.claimed, self._happened, self._squares = (
            sums_at(self.cell, column, self.n)
            for column in (bins.weight, bins.claimed, bins.happened, bins.squares)
        )
        chance: Floats = np.clip(self.claimed / self._size, 0.0, 1.0)
        self._chance = np.round(chance, _DECIMALS)
        # An infinite loss belongs to an outcome that is never drawn.
        self._never, self._ever = (finite(each) for each in sides(how, self._chance, 1 - self._chance))
        self._weight = float(self._size.sum())

    def binomial(self, rng: np.random.Generator, *, copies: bool) -> Callable[[], Floats]:
        """What draws the weight of the event in each cell from independent rows."""
        rows = effective_rows(self._size, self._squares, copies=copies)
        return lambda: rng.binomial(rows, self._chance) / rows * self._size

    def miscalibrations(self, n: int, rng: np.random.Generator, exact: float, *, copies: bool) -> Floats:
        """The miscalibrations of calibrated forecasts of independent rows, without the curves.

        All outcomes of a cell are drawn one after the other, which takes half the time.
        """
        rows = effective_rows(self._size, self._squares, copies=copies)
        found = np.empty(n)
        for i in range(0, n, _TOGETHER):
            part = slice(i, min(i + _TOGETHER, n))
            drawn = rng.binomial(rows[:, None], self._chance[:, None], (self.n, part.stop - i))
            found[part] = self._fitted(drawn.T / rows * self._size)[2]
        return found + self._shift(exact)

    def _shift(self, exact: float) -> float:
        """How much `exact`, the miscalibration of the bins, exceeds that of the cells, which are wider."""
        observed = float(self._fitted(self._happened[None, :])[2][0])
        return exact - observed if math.isfinite(exact) and math.isfinite(observed) else 0.0

    def calibrated(self, n: int, draw: Callable[[], Floats], exact: float) -> tuple[Floats, Floats]:
        """The curves and the miscalibrations of calibrated forecasts.

        The miscalibrations are moved by what `exact`, that of the bins, exceeds that of the cells by.
        """
        curves, found = np.empty((n, self.n)), np.empty(n)
        step = at_once(self.n)
        for i in range(0, n, step):
            part = slice(i, min(i + step, n))
            drawn = np.array([draw() for _ in range(part.start, part.stop)])
            fit, pools, found[part] = self._fitted(drawn)
            curves[part] = np.repeat(fit, np.diff(pools, append=drawn.size)).reshape(drawn.shape)
        return curves, found + self._shift(exact)

    def _fitted(self, happened: Floats) -> tuple[Floats, Ints, Floats]:
        """The isotonic fits to weights of the event in cells, (b, n): the frequency and the first cell of
        each block, and what the fits gain on the forecasts.

        Wild outcomes may be less than nothing or more than all of a cell: frequencies are kept in [0, 1].
        """
        without = self._size - happened
        cells = np.stack([without, happened]).reshape(2, -1)
        blocks, begins, pools = isotonic_fits(cells, first_of_each(happened.shape))
        fit = np.clip(blocks[:, 1] / blocks.sum(axis=1), 0.0, 1.0)
        # No matrix product: its sums depend on the number of threads.
        loss = np.einsum("bi,i->b", without, self._never) + np.einsum("bi,i->b", happened, self._ever)
        least = np.add.reduceat(block_losses(self._how, blocks), begins)
        return fit, pools, (loss - least) / self._weight


def _cell_of(weight: Floats) -> Ints:
    """The cell of each value; neighbours share one where there are very many values."""
    if len(weight) <= BAND_CELLS:
        return np.arange(len(weight))
    middle = np.cumsum(weight)
    middle -= weight / 2
    middle *= BAND_CELLS / weight.sum()
    cell = middle.astype(np.int16)
    # They do not decrease, so those without any value are left out by counting.
    return np.cumsum(np.diff(cell, prepend=cell[:1]) > 0)


def band_of(
    event: SummedEvent,
    how: Split,
    plan: Resampling,
    rng: np.random.Generator,
    observed: float,
    signs: EventSigns | None,
) -> tuple[Floats | None, Floats]:
    """The band and the miscalibrations of calibrated forecasts with the values of an event.

    Where rows come in parts and belong to groups, there are none without the `signs` of the groups.
    """
    grouped = event.sums.n_groups is not None
    if not plan.replicates or (grouped and event.sums.rows is None and signs is None):
        return None, np.zeros(0)
    cells = CellDraws(event.bins, how, None if signs is None else signs.cell)
    draw: Callable[[], Floats]
    if signs is not None:
        draw = partial(signs.drawn, cells.claimed, rng)
    elif event.rows is not None and grouped:
        draw = _group_by_group(event, cells, rng)
    elif event.rows is not None and (_entries(event.rows) or _weighted(event, plan)):
        draw = _row_by_row(event, cells, rng)
    else:
        draw = cells.binomial(rng, copies=plan.copies)
    curves, calibrated = cells.calibrated(plan.replicates, draw, observed)
    return percentile_interval(curves, plan.confidence)[:, cells.cell], calibrated


def _entries(rows: BinaryEvent) -> bool:
    """Whether a row has several elements, of which one happens at most."""
    return rows.owner is not None and rows.starts is not None


def _weighted(event: SummedEvent, plan: Resampling) -> bool:
    return event.weights is not None and not plan.copies


def _row_by_row(event: SummedEvent, cells: CellDraws, rng: np.random.Generator) -> Callable[[], Floats]:
    """What draws the weight of the event in each cell: one outcome per row, which counts by its weight."""
    rows, held = event.rows, event.sums.rows
    assert rows is not None
    assert held is not None
    n, weights, of_row = held.n_rows, event.weights, cells.cell[rows.pools]
    entries = _entries(rows)
    start = rows.start if entries else np.zeros(1)
    end = start + rows.given

    def draw() -> Floats:
        uniform = rows.of_rows(rng.random(n)) if entries else rng.random(len(end))
        hit = np.flatnonzero((uniform >= start) & (uniform < end))
        drawn = np.bincount(of_row[hit], None if weights is None else weights[hit], cells.n)
        return drawn.astype(np.float64, copy=False)

    return draw


def _group_by_group(event: SummedEvent, cells: CellDraws, rng: np.random.Generator) -> Callable[[], Floats]:
    """The same where the deviations of all rows of a group keep or change their signs (wild bootstrap)."""
    rows, groups = event.rows, None if event.sums.rows is None else event.sums.rows.groups
    assert rows is not None
    assert groups is not None
    w = np.ones(len(rows.given)) if event.weights is None else event.weights
    of_row, codes, n_groups = cells.cell[rows.pools], rows.of_rows(groups.as_seen), len(groups.labels)
    given = np.clip(rows.given, 0.0, 1.0)
    deviation = rows.happened - given

    def draw() -> Floats:
        signs = rng.choice([-1.0, 1.0], n_groups)
        return sums_at(of_row, w * (given + signs[codes] * deviation), cells.n)

    return draw
