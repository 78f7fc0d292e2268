"""The random draws behind intervals, bands and tests of calibration: the one place that asks where rows are.

Few rows in memory, and those with weights, groups or several entries, are drawn one by one: one number per
row, or list, draws the outcomes of all its events together, weights count row by row, and all rows of a group
keep one sign. Many rows are drawn in cells of neighbouring forecasts, each event on its own, and a sample of
them tells how the events depend on each other. Where rows come in parts, there are only the bins of each
event. They are drawn in the same cells, from rows that are as informative as those of a cell, and all events
are assumed to rise and fall together: no p-value is too small. The signs of groups take another pass over the
rows (`accuracy`), and without it groups have neither bands nor tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.accuracy import Accuracy, EventSigns, check_units
from verax.analyses.calibration.cells import CellDraws
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import EventSums, SummedEvent
from verax.analyses.calibration.optimism import Measured, Uncertainty
from verax.analyses.calibration.sampling import FORECAST, Sampling
from verax.analyses.units import sums_at
from verax.inference.bootstrap import percentile_interval
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# Tests of calibration have the most draws by default, and fewer, but not below the fewest, where they would
# look at more probabilities than the budget. A fit costs as much as a number of rows.
MOST_DRAWS, FEWEST_DRAWS, _BUDGET, _OVERHEAD = 1000, 100, 2.5e7, 300
# So many random numbers are drawn at a time: a cache holds them.
_BLOCK = 2**15


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
    # Two classes are one event and its opposite.
    alike = sums.n_events == 1 or (sums.n_events == 2 and not how.thresholds)
    return _Joint(Sampling.of(rows, plan.replicates, plan.seed, threads, alike=alike), how, tests_only)


@dataclass
class _Joint(Draws):
    """Outcomes of rows in memory, of all events together."""

    sampling: Sampling
    how: Split
    tests_only: bool
    total: Measured | None = None
    calibrated: Floats | float = 0.0

    def of(self, i: int, event: SummedEvent, observed: Floats) -> Drawn:
        if self.tests_only:
            return Drawn(None, self.sampling.calibrated(i, event, self.how, observed))
        return self._drawn(self.sampling.measure(i, event, self.how, observed))

    def _drawn(self, found: Measured) -> Drawn:
        return Drawn(found.uncertainty(self.sampling.units), found.calibrated, found)

    def add(self, drawn: Drawn, factor: float) -> None:
        if drawn.measured is None:
            self.calibrated = self.calibrated + factor * drawn.calibrated
        else:
            self.total = drawn.measured.plus(self.total, factor)

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
            cells = CellDraws.for_test(event.bins, self.how, event.sums.n_rows)
            seed = [self.plan.seed, FORECAST, i]
            calibrated = cells.miscalibrations(
                self.plan.replicates, seed, observed[1], copies=self.plan.copies
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


@dataclass(frozen=True)
class CellBand:
    """A band that is the same for neighbouring values.

    Attributes
    ----------
    ends : array of shape (2, C)
        The lower and the upper end in each cell of neighbours.
    begins : (C,) int array
        The first value of each cell.
    n : int
        The number of values.
    """

    ends: Floats
    begins: Ints
    n: int

    @property
    def of_values(self) -> Floats:
        """The band of each value, (2, n)."""
        return np.repeat(self.ends, np.diff(self.begins, append=self.n), axis=1)

    def means(self, weight: Floats, starts: Ints) -> Floats:
        """The weighted means of the band over the values from each start to the next."""
        pieces = np.union1d(starts, self.begins)
        mass, first = np.add.reduceat(weight, pieces), np.searchsorted(pieces, starts)
        ends = self.ends[:, np.searchsorted(self.begins, pieces, side="right") - 1]
        total: Floats = np.add.reduceat(mass * ends, first, axis=1)
        return total / np.add.reduceat(mass, first)


def band_of(
    event: SummedEvent,
    how: Split,
    plan: Resampling,
    rng: np.random.Generator,
    observed: float,
    signs: EventSigns | None,
) -> tuple[CellBand | None, Floats]:
    """The band and the miscalibrations of calibrated forecasts with the values of an event.

    Where rows come in parts and belong to groups, there are none without the `signs` of the groups.
    """
    grouped = event.sums.n_groups is not None
    if not plan.replicates or (grouped and event.sums.rows is None and signs is None):
        return None, np.zeros(0)
    cells = CellDraws.for_band(event.bins, how) if signs is None else CellDraws(event.bins, how, signs.cell)
    draw: Callable[[int], Floats]
    if signs is not None:
        draw = one_by_one(partial(signs.drawn, cells.claimed, rng))
    elif event.rows is not None and grouped:
        draw = _group_by_group(event, cells, rng, plan.replicates)
    elif event.rows is not None and (_entries(event.rows) or _weighted(event, plan)):
        draw = _row_by_row(event, cells, rng, plan.replicates)
    else:
        draw = one_by_one(cells.binomial(rng, copies=plan.copies))
    curves, calibrated = cells.calibrated(plan.replicates, draw, observed)
    ends = percentile_interval(curves, plan.confidence)
    return CellBand(ends, cells.begins, len(cells.cell)), calibrated


def one_by_one(draw: Callable[[], Floats]) -> Callable[[int], Floats]:
    """So many draws, from what makes one."""
    return lambda n: np.array([draw() for _ in range(n)])


def _entries(rows: BinaryEvent) -> bool:
    """Whether a row has several elements, of which one happens at most."""
    return rows.owner is not None and rows.starts is not None


def _weighted(event: SummedEvent, plan: Resampling) -> bool:
    return event.weights is not None and not plan.copies


def _row_by_row(
    event: SummedEvent, cells: CellDraws, rng: np.random.Generator, n_draws: int
) -> Callable[[int], Floats]:
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

    if entries or weights is None or not compiles(len(end) * n_draws, "draws of rows"):
        return one_by_one(draw)
    from verax.kernels.refits import add_hits

    uniform = np.empty(min(len(end), _BLOCK))

    def compiled(b: int) -> Floats:
        found = np.zeros((b, cells.n))
        for drawn in found:
            for first in range(0, len(end), _BLOCK):
                part = slice(first, first + _BLOCK)
                ends = end[part]
                numbers = rng.random(out=uniform[: len(ends)])
                add_hits(numbers, ends, of_row[part], weights[part], drawn)
        return found

    return compiled


def _group_by_group(
    event: SummedEvent, cells: CellDraws, rng: np.random.Generator, n_draws: int
) -> Callable[[int], Floats]:
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

    if not compiles(len(codes) * n_draws, "draws of rows"):
        return one_by_one(draw)
    from verax.kernels.refits import add_wild

    def compiled(b: int) -> Floats:
        signs = np.empty((n_groups, b), np.int8)
        for k in range(b):
            signs[:, k] = rng.choice([-1.0, 1.0], n_groups)
        found = np.zeros((cells.n, b))
        add_wild(signs, codes, given, deviation, w, of_row, found)
        return np.ascontiguousarray(found.T)

    return compiled
