"""Random draws of the outcomes of rows in memory, and what isotonic fits to them gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.cells import CellDraws
from verax.analyses.calibration.events import Split, recalibrate
from verax.analyses.calibration.eventsums import SummedEvent, bins_of_rows
from verax.analyses.calibration.influence import CellInfluence
from verax.analyses.calibration.optimism import ROUNDING, Measured, smooth_frequencies
from verax.analyses.calibration.refits import (
    Draw,
    Draws,
    IndependentDraws,
    Refits,
    WildDraws,
    block_losses,
    finite,
    sides,
)
from verax.analyses.calibration.sources import PartEvents
from verax.analyses.calibration.walks import FEW_ROWS, Walk
from verax.analyses.units import SamplingUnits, dot
from verax.common.caching import cached_property
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.kernels.threads import in_order

# How many refits measure the bias: as many as there are replicates, within these bounds.
_FEWEST, _MOST = 20, 60
# Random streams: outcomes drawn from the forecast, from its smooth recalibration, and rows that are drawn.
FORECAST, SMOOTH, _SAMPLE = 1, 2, 3
# So many rows that are drawn in cells are drawn one by one, too.
_DRAWN = 256


@dataclass(frozen=True)
class Sampling:
    """The units of a sample and the random draws, which are the same for all events of a forecast.

    Attributes
    ----------
    units : SamplingUnits
        What is independent among the rows, or lists.
    replicates : int
        The number of draws of outcomes from the forecast.
    seed : int
        The random seed.
    threads : int
        How many threads share the refits of one event.
    in_cells : bool
        Whether outcomes are drawn in cells of neighbouring forecasts, for each event by itself.
    alike : bool
        Whether the events are one, or one and its opposite.
    """

    units: SamplingUnits
    replicates: int
    seed: int
    threads: int
    in_cells: bool = False
    alike: bool = False

    @classmethod
    def of(
        cls, rows: PartEvents, replicates: int, seed: int, threads: int = 1, *, alike: bool = False
    ) -> Sampling:
        """Of rows that have weight; `alike` if the events are one, or one and its opposite."""
        n = rows.n_rows
        in_cells = rows.weights is None and rows.groups is None and not rows.entries and n > FEW_ROWS
        if in_cells:
            # Rows may be many, and have one share.
            units = SamplingUnits(np.broadcast_to(1 / n, n), None)
        else:
            units = SamplingUnits.of(n, rows.weights, rows.groups)[0]
        return cls(units, replicates, seed, threads, in_cells, alike)

    @property
    def wild(self) -> bool:
        """Whether the deviations of units are drawn with one sign each, not the outcomes of rows."""
        return self.units.groups is not None

    @cached_property
    def sample(self) -> Ints:
        """The rows whose outcomes are drawn for all events together, to see how these depend on each other.

        Of fewer rows the events depend on each other more, if anything.
        """
        rng = np.random.default_rng([self.seed, _SAMPLE])
        return np.sort(rng.choice(len(self.units.share), _DRAWN, replace=False, shuffle=False))

    def measure(self, i: int, event: SummedEvent, how: Split, observed: Floats) -> Measured:
        """What the uncertainty of the components of event number `i` is made of."""
        return self._elements(i, event, how, observed).measured()

    def calibrated(self, i: int, event: SummedEvent, how: Split, observed: Floats) -> Floats:
        """Miscalibrations of outcomes drawn from the forecast of event number `i`, alone."""
        return self._elements(i, event, how, observed).calibrated()

    def _elements(self, i: int, event: SummedEvent, how: Split, observed: Floats) -> _Elements:
        assert event.rows is not None
        if self.in_cells:
            return _InCells(self, event.rows, how, self.units.share, 1.0, i, observed, event.walk)
        return _Elements.of(self, event.rows, how)


@dataclass(frozen=True)
class _Elements:
    """The elements of one event: rows, or the entries of lists, of which those of a list belong together.

    Attributes
    ----------
    share : array of shape (N,)
        Their weights, which sum to one.
    times : float
        How many elements a row has on average.
    """

    sampling: Sampling
    event: BinaryEvent
    how: Split
    share: Floats
    times: float

    @classmethod
    def of(cls, sampling: Sampling, event: BinaryEvent, how: Split) -> _Elements:
        """The elements of an event."""
        share, times = sampling.units.share, 1.0
        if event.owner is not None:
            share = share[event.owner]
            times = float(share.sum())
            share = share / times
        return cls(sampling, event, how, share, times)

    def measured(self) -> Measured:
        """What the uncertainty of the components is made of."""
        event, how, share = self.event, self.how, self.share
        chance, limit = self._smoothed()
        optimism, calibrated = self._optimism(chance, limit), self.calibrated()
        # Rows may be many, so that no array lives longer than it must.
        expected = dot(share, how.expected(limit, 1 - limit, chance))
        given = dot(share, how.expected(event.given, event.rest, chance))
        mean = dot(share, chance)
        del chance
        losses = how.losses(event.given, event.rest, event.happened)
        fitted = how.losses(limit, 1 - limit, event.happened)
        del limit
        # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
        certain = math.isinf(given)
        plug_in = [
            dot(share, losses - fitted) if certain else given - expected,
            how.entropy(np.array([[1 - mean, mean]])) - expected,
        ]
        rate = np.array(dot(share, event.happened.astype(float)))
        constant = how.losses(rate, 1 - rate, event.happened)

        def deviating() -> Iterator[Floats]:
            # One after the other, because each may be large.
            yield losses
            yield losses - fitted
            yield constant - fitted
            yield constant

        units = self.sampling.units
        n = len(units.share)
        columns = deviating()
        if event.owner is not None:
            columns = (event.by_row(column, n) / self.times for column in columns)
        return Measured(units.influence(columns, 4), np.array(plug_in), optimism, calibrated, certain)

    def _smoothed(self) -> tuple[Floats, Floats]:
        """The smooth recalibration of each element, monotone or not, and the isotonic fit to it."""
        event, share, groups = self.event, self.share, self.sampling.units.groups
        if groups is not None:
            groups = Groups(event.of_rows(groups.codes), groups.labels)
        elif event.owner is not None:
            groups = Groups(event.owner, np.arange(len(self.sampling.units.share)))
        # Shares that are all alike are the same in every order.
        even = bool((share == share[0]).all())
        ordered = share if even else share.take(event.order)
        n, s = event.pooled(ordered), event.pooled(ordered * event.happened.take(event.order))
        if groups is None:
            squares = event.pooled(ordered**2)
        else:
            squares = SamplingUnits(share, groups).squares(event.pools, len(n))
        smooth = smooth_frequencies(n, s, squares)
        limit = self._monotone(n, smooth)
        chance = event.spread(smooth)
        return chance, chance if limit is smooth else event.spread(limit)

    def _monotone(self, n: Floats, smooth: Floats) -> Floats:
        """The isotonic fit to a smooth recalibration of pools of these weights."""
        # What does not decrease is its own isotonic fit.
        rises = bool((smooth[1:] >= smooth[:-1]).all())
        limit = smooth if rises else recalibrate(np.stack([n - n * smooth, n * smooth], axis=1)).values
        if self.how.binary == "log":
            # Never certain, so that no loss is infinite.
            limit = np.clip(limit, 0.25 / len(self.share), 1 - 0.25 / len(self.share))
        return limit

    def _optimism(self, chance: Floats, limit: Floats) -> Floats:
        """What the isotonic fit and the frequency gain by following noise, in each refit: (R, 2)."""
        share = self.share
        rate = dot(share, chance)

        def gains(how: Split, draws: Draws) -> Floats:
            base, more = _odds(share, *sides(how, limit, 1 - limit))
            refit, each = Refits(self.event, share, more).each(draws)
            del more

            def gain(draw: Draw) -> Floats:
                found = refit(draw)
                s = np.stack([1 - found.weight, found.weight], axis=1)
                frequency = np.full(len(s), rate)
                constant = how.expected(frequency, 1 - frequency, s[:, 1]) - block_losses(how, s)
                return np.stack([base + found.extra - found.least(how), constant], axis=1)

            return np.concatenate(list(self._each(gain, each)))

        n_refits = refits_for(self.sampling.replicates)

        def independent() -> Draws:
            return self._independent(chance, SMOOTH, n_refits)

        if not self.sampling.wild:
            return gains(self.how, independent())
        squared = replace(self.how, binary="squared", unit=1.0)
        found = gains(squared, self._wild(chance, SMOOTH, n_refits))
        if self.how.binary == "squared":
            return found
        # Wild outcomes are no zeros and ones, so log scores take theirs from the squared error.
        plain = gains(squared, independent()).mean(axis=0)
        own = gains(self.how, independent()).mean(axis=0)
        ratio: Floats = np.divide(own, plain, out=np.ones(2), where=plain > ROUNDING)
        return found * ratio

    def calibrated(self) -> Floats:
        """Miscalibrations of outcomes drawn from the forecast; none for log scores of groups."""
        event, how, share = self.event, self.how, self.share
        draws: Draws
        if not self.sampling.wild:
            draws = self._independent(event.given, FORECAST, self.sampling.replicates)
        elif how.binary == "squared":
            draws = self._wild(event.given, FORECAST, self.sampling.replicates)
        else:
            return np.zeros(0)
        # An infinite loss belongs to an outcome that is never drawn.
        base, more = _odds(share, *(finite(loss) for loss in sides(how, event.given, event.rest)))
        refit, each = Refits(event, share, more).each(draws)
        del more

        def gain(draw: Draw) -> Floats:
            found = refit(draw)
            return np.asarray(base + found.extra - found.least(how))

        return np.concatenate([np.zeros(0), *self._each(gain, each)])

    def _each(self, gain: Callable[[Draw], Floats], draws: Iterable[Draw]) -> Iterator[Floats]:
        """What is gained in some draws at a time, by several threads where there are many rows."""
        threads = self.sampling.threads
        return map(gain, draws) if threads == 1 else in_order(gain, draws, threads)

    def _independent(self, chance: Floats, stream: int, n: int) -> Draws:
        """Outcomes of independent rows."""
        return IndependentDraws.of(self.event, chance, n, [self.sampling.seed, stream])

    def _wild(self, chance: Floats, stream: int, n: int) -> WildDraws:
        """Outcomes whose deviations keep or change their sign group by group: the wild bootstrap."""
        groups = self.sampling.units.groups
        assert groups is not None
        codes, n_groups = self.event.of_rows(groups.as_seen), len(groups.labels)
        rng = np.random.default_rng([self.sampling.seed, stream])
        return WildDraws(n, chance, self.event.happened - chance, codes, n_groups, rng)


@dataclass(frozen=True)
class _InCells(_Elements):
    """The same of many independent rows, whose outcomes are drawn in cells.

    Each event is drawn by itself. Then its draws are put in the order that those of a sample of rows have,
    whose outcomes are drawn for all events together (the Schaake shuffle).

    Attributes
    ----------
    i : int
        The number of the event.
    observed : array of shape (4,)
        The score and its components.
    walk : Walk or None
        The compiled pass over the rows, where there was one.
    """

    i: int
    observed: Floats
    walk: Walk | None

    @cached_property
    def _cells(self) -> CellDraws:
        if self.walk is not None:
            return CellDraws.walked(self.walk, self.how)
        return CellDraws.for_test(bins_of_rows(self.event, None), self.how, len(self.share))

    @cached_property
    def _smooth(self) -> tuple[Floats, Floats]:
        """The smooth recalibration of each cell, and the isotonic fit to it."""
        cells, n = self._cells, len(self.share)
        share = cells.size / n
        chance = smooth_frequencies(share, cells.happened / n, share / n)
        return chance, self._monotone(share, chance)

    def _smoothed(self) -> tuple[Floats, Floats]:
        if self.walk is None:
            at = self._cells.cell[self.event.pools]
        else:
            at = self.walk.cells_of(self.event.ranked)
        return self._smooth[0][at], self._smooth[1][at]

    def measured(self) -> Measured:
        how, walk = self.how, self.walk
        if walk is None or how.binary != "squared":
            return super().measured()
        (chance, limit), share = self._smooth, walk.size / len(self.share)
        happened = walk.happened / walk.size
        rate, mean = dot(share, happened), dot(share, chance)
        score, constant = float(self.observed[0]), float(self.observed[3])
        fitted = dot(share, how.expected(limit, 1 - limit, happened))
        means = np.array([score, score - fitted, constant - fitted, constant])
        influence = CellInfluence(self.event, walk, limit, rate, means)
        variance, given = influence.moments(chance)
        expected = dot(share, how.expected(limit, 1 - limit, chance))
        plug_in = np.array([given, how.entropy(np.array([[1 - mean, mean]]))]) - expected
        optimism = self._optimism(chance, limit)
        return Measured(influence, plug_in, optimism, self.calibrated(), False, variance)

    def _optimism(self, chance: Floats, limit: Floats) -> Floats:
        found = self._cells.gains(
            refits_for(self.sampling.replicates),
            [self.sampling.seed, SMOOTH, self.i],
            *self._smooth,
            exact=float(self.observed[3] - self.observed[2]),
            copies=False,
        )
        return self._arranged(found)

    def calibrated(self) -> Floats:
        seed = [self.sampling.seed, FORECAST, self.i]
        found = self._cells.miscalibrations(
            self.sampling.replicates, seed, float(self.observed[1]), copies=False
        )
        return self._arranged(found[:, None])[:, 0]

    def _arranged(self, found: Floats) -> Floats:
        """Draws, (n, C), in the order of those of the sample by their first column; draws of events that are
        alike rise and fall together.
        """
        found = found[np.argsort(found[:, 0], kind="stable")]
        if self.sampling.alike:
            return found
        return found[np.argsort(np.argsort(self._sampled[: len(found)], kind="stable"))]

    @cached_property
    def _sampled(self) -> Floats:
        """Miscalibrations of outcomes of the sample."""
        at, event, sampling = self.sampling.sample, self.event, self.sampling
        own = replace(
            event,
            given=event.given[at],
            others=None if event.others is None else event.others[at],
            ranked=event.ranked[at],
            happened=event.happened[at],
            starts=None if event.starts is None else partial(event.starts, at),
        )
        units = SamplingUnits(np.full(len(at), 1 / len(at)), None)
        n = max(sampling.replicates, refits_for(sampling.replicates))
        return _Elements.of(Sampling(units, n, sampling.seed, 1), own, self.how).calibrated()


def refits_for(replicates: int) -> int:
    """Number of refits that measure the bias, given the number of replicates."""
    return min(max(replicates, _FEWEST), _MOST)


def _odds(share: Floats, never: Floats, ever: Floats) -> tuple[float, Floats]:
    """The mean loss where the event never happens, and what each row adds to it where it does."""
    return dot(share, never), share * (ever - never)
