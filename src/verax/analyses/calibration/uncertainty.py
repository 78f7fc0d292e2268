"""The uncertainty of the components of a score, from a second look at the rows.

The isotonic fit minimises the score, so estimating it has no first-order effect on the components: their
variance is that of mean differences of losses. The second-order effect is a bias, because the fit
follows the noise of the outcomes. It is measured by refits to outcomes drawn from a smooth
recalibration of the forecast, which need not be monotone (`cells`).

The first look gave the cells of all events and their fits. Now the losses of each row are known against
those of the fits, and so are the variances of the components. Where rows belong to groups, their deviations
are summed by group, or by a hash of it, and by a few cells of the forecast: giving each sum a random sign
draws outcomes in which rows of a group keep together (the wild bootstrap). Rows in memory are looked at
directly, others take another pass; the sums are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.cells import ROUNDING, EventCells
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.sources import EventSource, PartEvents
from verax.analyses.calibration.sums import Events, cells_of
from verax.analyses.units import CountedUnits, IndependentUnits, sums_at
from verax.common.ids import name_hash
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.sums import Sum, Sums
from verax.errors import InputError
from verax.inference.intervals import Interval, t_quantile
from verax.inference.products import product
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Handle, Part, Recipe
from verax.kernels.ledger import compiles

# Number of refits that measure the bias: the number of replicates, within these bounds.
_FEWEST, _MOST = 20, 60


# ---- intervals ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Uncertainty:
    """The uncertainty of the score and its components. All arrays are (4,), in their order.

    Attributes
    ----------
    bias : array
        The mean excess of the estimates over the values for many more rows.
    variance : array
        The variances of the mean differences of losses that the components are; all NaN where the rows were
        not looked at again.
    plug_in : array
        Miscalibration and discrimination under the smooth recalibration, zero for the others. Small
        values of the two have variances that are proportional to them.
    noise : array
        The variances of what is gained by following noise.
    n_units : int
        The number of rows, or of groups.
    freedom : float
        Degrees of freedom of the variances.
    grouped : bool
        Whether the units are groups.
    caution : str
        Why the intervals cannot be trusted; empty where they can.
    """

    bias: Floats
    variance: Floats
    plug_in: Floats
    noise: Floats
    n_units: int
    freedom: float
    grouped: bool
    caution: str

    @property
    def known(self) -> bool:
        """Whether the rows were looked at again, so that there are intervals."""
        return self.n_units < 2 or not bool(np.isnan(self.variance).all())

    def interval(self, i: int, observed: float, confidence: float) -> Interval:
        """The interval of number `i` for many more rows: the values that the estimate does not refute.

        The variance grows linearly with the value, so the ends solve a quadratic equation.
        """
        method = "t" if i == 0 else "t, corrected for overfitting of the isotonic fit"
        if self.n_units < 2:
            only = f"there is only one {'group' if self.grouped else 'row'}"
            return Interval.undefined(only, method=method, confidence=confidence)
        if not np.isfinite([observed, self.variance[i]]).all():
            return Interval.undefined("the score is infinite", method=method, confidence=confidence)
        estimate = observed - self.bias[i]
        slope = self.variance[i] / self.plug_in[i] if self.plug_in[i] > ROUNDING else 0.0
        t = t_quantile(self.freedom, confidence)
        shift = t * t * slope / 4
        half = np.sqrt(shift**2 + t * t * self._variance_at(i, estimate, slope))
        low, high = max(estimate + shift - half, 0.0), max(estimate + shift + half, 0.0)
        return Interval(low, high, method=method, confidence=confidence, caution=self.caution)

    def _variance_at(self, i: int, estimate: float, slope: float) -> float:
        if not self.plug_in[i] > ROUNDING:
            return float(self.variance[i] + self.noise[i])
        proportional = slope * max(estimate, 0.0)
        if self.grouped:
            # Even the smooth recalibration follows noise that rows of a group share, and the variance has it.
            return float(max(self.variance[i], self.noise[i] + proportional / 2))
        return float(self.noise[i] + proportional)


def units_of(sums: Events, copies: float | None) -> CountedUnits:
    """The independent units: groups, or rows; `copies` is their number where weights count them."""
    if sums.groups is not None:
        weight = sums.groups[:, 0]
        n, total, squares = int(np.count_nonzero(weight)), float(weight.sum()), float((weight**2).sum())
        return CountedUnits.of(n, total, squares, in_groups=True)
    if copies is not None:
        return CountedUnits.of(round(copies), copies, copies, in_groups=False)
    weight, squares, n_rows = sums.weight.high.tolist()
    return CountedUnits.of(int(n_rows), weight, squares, in_groups=False)


def check_units(sums: Events, *, copies: bool) -> None:
    """Refuse a single group and fractional copies where outcomes are drawn."""
    if sums.n_groups == 1:
        raise InputError("must name at least two groups for intervals", argument="groups")
    if copies and not sums.whole:
        raise InputError("must be whole numbers where they count copies", argument="weights")


def refits_for(replicates: int) -> int:
    """Number of refits that measure the bias, given the number of replicates."""
    return min(max(replicates, _FEWEST), _MOST)


def uncertainties(
    optimism: Floats,
    plug_ins: Floats,
    variances: Floats,
    units: IndependentUnits,
    certain: Sequence[bool],
) -> list[Uncertainty]:
    """The uncertainty of the components of some scores, from the gains of refits, (S, R, 2), their values
    under the smooth recalibration, (S, 2), and the variances of mean losses, (S, 4); of log scores `certain`
    if a forecast that fails would cost an infinite loss.
    """
    fit, rate = np.ascontiguousarray(np.moveaxis(optimism, 2, 0))
    gains = np.array([np.zeros_like(fit), fit, fit - rate, -rate])
    biases, noises = gains.mean(axis=2).T, gains.var(axis=2, ddof=1).T
    failing = "some forecasts are certain, and one that fails makes the score infinite"
    return [
        Uncertainty(
            bias=bias,
            variance=variance,
            plug_in=np.array([0.0, *plug_in, 0.0]),
            noise=noise,
            n_units=units.n,
            freedom=units.freedom,
            grouped=units.grouped,
            caution="; ".join(filter(None, [units.caution, failing if fails else ""])),
        )
        for bias, variance, plug_in, noise, fails in zip(
            biases.copy(), variances, plug_ins, noises.copy(), certain, strict=True
        )
    ]


# The sums by group, event and cell: the largest number of all of them, and of cells.
_SLOTS, _CELLS = 2**20, 128
# So many rows of a part are looked at together that their columns have this many numbers.
_NUMBERS = 2**20
# The time for one row and event, in probabilities scored.
_WORK = 16
# Sums of groups that differ by less, as a share of the largest, are equal but for rounding.
_TIED = 1e-9


def n_wide(n_events: int) -> int:
    """The number of cells of the forecast in which the deviations of groups are summed."""
    return max(8, min(_CELLS, _SLOTS // (8 * n_events)))


@dataclass(frozen=True)
class EventFit:
    """The fit to an event, as the second look needs it.

    Attributes
    ----------
    starts, chance, limit : arrays of shape (C,)
        The starts of its cells, the smooth recalibration and the isotonic fit to it.
    wide : (C,) int array
        The wider cell that each belongs to; empty without groups.
    rate : float
        The share of rows in which it happened.
    means : array of shape (4,)
        The mean loss, the same minus that of the fit, that of a constant minus that of the fit, and that of
        the constant.
    """

    starts: Floats
    chance: Floats
    limit: Floats
    wide: Ints
    rate: float
    means: Floats

    @classmethod
    def of(cls, cells: EventCells, observed: Floats, n_cells: int) -> EventFit:
        """From the cells of an event and the components of its score; without wider cells if there are to be
        none.
        """
        share, how = cells.size / cells.weight, cells.how
        fitted = float(
            (share * how.expected(cells.limit, 1 - cells.limit, cells.happened / cells.size)).sum()
        )
        score, constant = float(observed[0]), float(observed[3])
        means = np.array([score, score - fitted, constant - fitted, constant])
        wide = np.zeros(0, np.int64)
        if n_cells:
            begins = cells.wider(n_cells)[1]
            wide = np.searchsorted(begins, np.arange(len(cells.starts)), side="right") - 1
        return cls(cells.starts, cells.smooth, cells.limit, wide, cells.rate, means)


class SecondLook(Summary, kind="second look at events"):
    """The sums of the rows beside fits that are known.

    Attributes
    ----------
    squares : Sum
        (E + 1, 4) sums over independent rows of the squared deviations of the four means of each event and of
        what the events add up to, over one minus the share of the row; zero where there are groups.
    expected : Sum
        (E,) sums of the weighted losses expected under the smooth recalibration, and
    infinite : Sum
        (E,) of the weights where these are infinite.
    signed : Sum
        (S, E, C, 2) sums of the weights of what happened minus the chances of the recalibration, or of the
        forecast. S are groups or hashes of them, C wide cells; empty without groups.
    labels, groups : arrays or None
        The groups, and of each its weight and its sums of the losses.
    """

    squares: Sum = merges(Sums("wholes", 4))
    expected: Sum = merges(Sums("events"))
    infinite: Sum = merges(Sums("events", least=0))
    signed: Sum = merges(Sums("slots", "events", "cells", 2))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("columns"), default=None)

    @property
    def n_wide(self) -> int:
        """The largest number of wide cells."""
        return n_wide(self.expected.high.size)

    def random_signs(self, n: int, seed: list[int]) -> Floats:
        """One sign for each slot of groups in each of n draws, the same for all events.

        Slots have their signs by their deviations from the forecast, not by the names of groups. The last
        event is looked at first, so the curve of one of two classes has the signs of the score of both.
        """
        rng, gaps = np.random.default_rng(seed), self.signed.high[..., 1]
        level = np.zeros(len(gaps), np.int64)
        for some in (gaps[:, -1], gaps.reshape(len(gaps), math.prod(gaps.shape[1:]))):
            # A sum in which no two cells count alike.
            place = np.einsum("sc,c->s", some, np.cos(np.arange(some.shape[1])))
            order = np.lexsort((place, level))
            # Rounding must not decide between sums that are equal.
            rises = np.diff(place[order]) > _TIED * np.abs(place).max(initial=0.0)
            level[order[1:]] = np.cumsum(rises | (np.diff(level[order]) > 0))
        # What is equal even then is in the order of names, as slots are.
        order = np.argsort(level, kind="stable")
        signs = np.empty((n, len(gaps)))
        signs[:, order] = rng.choice([-1.0, 1.0], (n, len(gaps)))
        return signs

    def wild(self, signs: Floats, i: int, kind: int, n_cells: int) -> Floats:
        """Deviations of an event from its recalibration or its forecast, by weight in wide cells: (n, C)."""
        return product(signs, self.signed.high[:, i, :n_cells, kind])

    def variances(self, means: Floats, weight: float) -> Floats:
        """The variances of the means, (E + 1, 4)."""
        if self.groups is None:
            return self.squares.high
        u = self.groups[:, 0] / weight
        sums = self.groups[:, 1:].reshape(len(u), *means.shape) / weight
        deviation = sums - means * u[:, None, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((deviation**2 / (1 - u)[:, None, None]).sum(axis=0))


@dataclass(frozen=True)
class SecondRecipe(Recipe[SecondLook]):
    """A second look at the events of a model.

    Attributes
    ----------
    source : EventSource
        The events.
    how : Split
        The way they are scored.
    fits : tuple of EventFit
        The fit of each.
    times, factors : tuple of float
        The mean number of elements of each event in a row, and the factor of its score in the sum.
    weight : float
        The weight of all rows.
    copies : bool
        Whether weights are numbers of copies.
    slots : int
        In how many parts groups are told apart; 0 without groups.
    names : array or None
        The hashes of the groups' names, in order, where each has a slot of its own; None where the hash
        decides. So slots do not depend on whether names are numbers or texts.
    """

    source: EventSource
    how: Split
    fits: tuple[EventFit, ...]
    times: tuple[float, ...]
    factors: tuple[float, ...]
    weight: float
    copies: bool
    slots: int = 0
    names: Any = None

    @classmethod
    def of(
        cls,
        source: EventSource,
        cells: Sequence[EventCells],
        observed: Sequence[Floats],
        times: Sequence[float],
        sums: Events,
        *,
        copies: bool,
    ) -> SecondRecipe:
        """For events of these cells, with the components of their scores; `sums` are of one event that
        all rows have an element of.
        """
        how, slots, names, labels = cells[0].how, 0, None, sums.labels
        most_wide = 0 if labels is None else n_wide(len(cells))
        fits = tuple(map(partial(EventFit.of, n_cells=most_wide), cells, observed))
        if labels is not None:
            n_cells = max(int(fit.wide[-1]) + 1 for fit in fits)
            slots = max(8, min(settings.group_slots, _SLOTS // (len(fits) * n_cells)))
            names = np.sort(_hashed(labels)) if len(labels) <= slots else None
            slots = min(slots, len(labels))
        factors, weight = tuple(how.factor * time for time in times), float(sums.weight.high[0])
        return cls(source, how, fits, tuple(times), factors, weight, copies, slots, names)

    @property
    def means(self) -> Floats:
        """The means of each event and of what they add up to, (E + 1, 4)."""
        of_events = np.array([fit.means for fit in self.fits])
        return np.concatenate([of_events, np.einsum("e,em->m", self.factors, of_events)[None]])

    def take(self, part: Part) -> SecondLook:
        """Look at the rows of one part."""
        return self.at(self.source.read(part))

    def at(self, rows: PartEvents) -> SecondLook:
        """Look at rows."""
        look: SecondLook | None = None
        for some in rows.pieces(max(1, _NUMBERS // (4 * len(self.fits)))):
            piece = self._piece(some)
            look = piece if look is None else look.merge(piece)
        assert look is not None
        return look

    def _piece(self, rows: PartEvents) -> SecondLook:
        n, mass = rows.n_rows, rows.mass
        whole, expected, infinite = np.zeros((4, n)), [], []
        columns, squares = [mass], []
        cells = max(int(fit.wide.max(initial=-1)) + 1 for fit in self.fits)
        signed = np.zeros((self.slots, len(self.fits), cells, 2))
        slot = self._slots(rows.groups.labels)[rows.groups.codes] if rows.groups is not None else None
        alike = rows.weights is None and slot is None and not rows.entries and self.how.binary == "squared"
        one_pass = alike and compiles(_WORK * n * len(self.fits), "draws in cells")
        with np.errstate(invalid="ignore"):
            for i, (event, fit) in enumerate(zip(rows.events(), self.fits, strict=True)):
                at = cells_of(fit.starts, event.ranked)
                if one_pass:
                    sums = self._compiled(event, fit, at, self.factors[i], whole)
                    squares.append(sums[:4] * self._alike)
                    expected.append(float(sums[4]))
                    infinite.append(0.0)
                    continue
                parts, chance = np.empty((4, len(at))), fit.chance[at]
                even = self.how.losses(np.array(fit.rate), np.array(1 - fit.rate), event.happened)
                fitted = self.how.losses(fit.limit[at], 1 - fit.limit[at], event.happened)
                parts[0] = self.how.losses(event.given, event.rest, event.happened)
                np.subtract(parts[0], fitted, out=parts[1])
                np.subtract(even, fitted, out=parts[2])
                parts[3] = even
                lost = self.how.expected(event.given, event.rest, chance)
                w = event.of_rows(mass)
                total = float((w * lost).sum())
                if math.isinf(total):
                    away = np.isinf(lost)
                    infinite.append(float(w[away].sum()))
                    total = float((w * np.where(away, 0.0, lost)).sum())
                else:
                    infinite.append(0.0)
                expected.append(total)
                if event.owner is not None:
                    parts = np.stack([event.by_row(column, n) / self.times[i] for column in parts])
                whole += self.factors[i] * parts
                if slot is None:
                    squares.append(self._squares(parts, mass, fit.means))
                else:
                    columns += list(mass * parts)
                    place = event.of_rows(slot) * cells + fit.wide[at]
                    for j, expects in enumerate((chance, np.clip(event.given, 0.0, 1.0))):
                        gaps = sums_at(place, w * (event.happened - expects), self.slots * cells)
                        signed[:, i, :, j] = gaps.reshape(self.slots, cells)
            numbers = Sum.of(np.array(expected)), Sum.of(np.array(infinite)), Sum.of(signed)
            if rows.groups is None:
                squares.append(self._squares(whole, mass, self.means[-1]))
                return SecondLook(Sum.of(np.array(squares)), *numbers)
            columns += list(mass * whole)
        labels, codes = rows.groups.labels, rows.groups.codes
        sums = np.stack([sums_at(codes, column, len(labels)) for column in columns], axis=1)
        nothing = Sum.zeros((len(self.fits) + 1, 4))
        return SecondLook(nothing, *numbers, labels, sums)

    def _compiled(self, event: BinaryEvent, fit: EventFit, at: Ints, factor: float, whole: Floats) -> Floats:
        """A look at rows that count alike: adds losses to `whole`; sums of squares and what is expected."""
        from verax.kernels.walking import look_again

        given, sums = np.ascontiguousarray(event.given), np.zeros(5)
        rest = np.zeros(0) if event.others is None else np.ascontiguousarray(event.others)
        at = np.ascontiguousarray(at, dtype=np.uint16)
        known = np.ascontiguousarray(fit.chance), np.ascontiguousarray(fit.limit), fit.rate, factor, fit.means
        look_again(given, rest, event.happened.view(np.uint8), at, *known, whole, sums)
        return sums

    @property
    def _alike(self) -> float:
        """The factor of the squared deviations of rows that count alike."""
        share = np.float64(1 / self.weight)
        with np.errstate(divide="ignore"):
            return float(share**2 / (1 - share))

    def _squares(self, columns: Floats, mass: Floats, means: Floats) -> Floats:
        """The sums of the squared deviations of columns, (4, N), each over one minus the row's share."""
        deviation = columns - means[:, None]
        # A single row says nothing about its own variance. No matrix product: its sums depend on the threads.
        with np.errstate(divide="ignore"):
            if self.copies:
                squares = np.einsum("ci,ci,i->c", deviation, deviation, mass)
                return np.asarray(squares / np.float64(self.weight**2 - self.weight))
            share = mass / self.weight
            if bool((share == share[0]).all()):
                squares = np.einsum("ci,ci->c", deviation, deviation)
                return np.asarray(squares * (share[0] ** 2 / (1 - share[0])))
            deviation *= share
            return np.asarray(np.einsum("ci,ci,i->c", deviation, deviation, 1 / (1 - share)))

    def _slots(self, labels: Any) -> Ints:
        hashed = _hashed(labels)
        if self.names is not None:
            return np.asarray(np.searchsorted(self.names, hashed))
        return np.asarray(hashed % np.uint64(self.slots), dtype=np.int64)


def _hashed(labels: Any) -> Any:
    """The hashes of names of groups."""
    return np.array([name_hash(label) for label in labels.tolist()], np.uint64)


def looked_again(recipe: SecondRecipe, rows: PartEvents | None, handle: Handle) -> SecondLook | None:
    """The second look at rows in memory, or by another pass; None where there are only summaries."""
    if rows is not None:
        return recipe.at(rows)
    if not handle.has_rows:
        return None
    look: SecondLook = handle.summarise({"again": recipe})["again"]
    return look
