"""Outcomes that are drawn from forecasts, again and again, and the isotonic fits to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split
from verax.common.caching import cached_property
from verax.common.hashing import mixed
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# So many random numbers are drawn at a time: a cache holds them.
_BLOCK = 2**14

# A call of compiled loops takes this number of outcomes, in whole draws: the fits to all of them are held.
_CALLED = 2**18
# Drawing and fitting by array calls takes so many times as long as scoring.
_WORK = 16

# Some draws of outcomes, made when they are needed: (b, N), which rows the event happens in, or how much
# where outcomes are wild.
Draw: TypeAlias = "IndependentDraw | WildDraw"
Draws: TypeAlias = "IndependentDraws | WildDraws"


def at_once(n_rows: int) -> int:
    """Number of draws made and fitted together, given the number of rows."""
    return max(1, _BLOCK // max(n_rows, 1))


@lru_cache(maxsize=64)
def draw_keys(n: int, *seed: int) -> Any:
    """One key for each of n draws; subgroups have the same, so they are kept."""
    keys = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    keys.flags.writeable = False
    return keys


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """Outcomes of independent rows, by one uniform number per row for all events and entries together.

    The number comes from the place of the row and the key of the draw alone, so that it is the same for
    whoever draws, in whatever order.

    Attributes
    ----------
    keys : (D,) array
        One for each draw.
    start, chance : (N,) arrays
        The event happens where the number is in the part of the unit interval that begins at `start` and is
        as long as `chance`. Parts that would end beyond it go on at its beginning.
    owner : (N,) int array or None
        The row that each element belongs to; None where the elements are the rows.
    """

    keys: Any
    start: Floats
    chance: Floats
    owner: Ints | None

    @classmethod
    def of(cls, event: BinaryEvent, chance: Floats, n: int, seed: list[int]) -> IndependentDraws:
        """So many draws of an event with these chances."""
        return cls(draw_keys(n, *seed), event.start, chance, event.owner)

    def __iter__(self) -> Iterator[IndependentDraw]:
        return iter(self.by(at_once(len(self.chance))))

    def by(self, step: int) -> list[IndependentDraw]:
        """So many at a time."""
        return [IndependentDraw(self, self.keys[i : i + step]) for i in range(0, len(self.keys), step)]


@dataclass(frozen=True, eq=False)
class IndependentDraw:
    """Some of these draws."""

    draws: IndependentDraws
    keys: Any

    def __call__(self) -> Any:
        """Which rows the event happens in, (b, N)."""
        n = len(self.draws.chance)
        happened = np.empty((len(self.keys), n), np.bool_)
        for first in range(0, n, _BLOCK):
            part = slice(first, min(first + _BLOCK, n))
            rows: Any = np.arange(part.start, part.stop, dtype=np.uint64)
            if self.draws.owner is not None:
                rows = self.draws.owner[part].astype(np.uint64)
            uniform = (mixed(rows ^ self.keys[:, None]) >> np.uint64(11)) * 2.0**-53
            hit, start = happened[:, part], self.draws.start[part]
            end = start + self.draws.chance[part]
            np.greater_equal(uniform, start, out=hit)
            hit &= uniform < end
            hit |= uniform < end - 1
        return happened


@dataclass(frozen=True, eq=False)
class WildDraws:
    """Outcomes whose deviations keep or change their sign group by group: the wild bootstrap.

    Attributes
    ----------
    n : int
        The number of draws.
    chance, deviation : (N,) arrays
        What is expected of each element, and what happened minus that.
    codes : (N,) int array
        The group of each element.
    n_groups : int
        The number of groups.
    rng : Generator
        What draws the signs.
    """

    n: int
    chance: Floats
    deviation: Floats
    codes: Ints
    n_groups: int
    rng: np.random.Generator

    def __iter__(self) -> Iterator[WildDraw]:
        step = at_once(len(self.codes))
        for i in range(0, self.n, step):
            signs = [self.rng.choice([-1.0, 1.0], self.n_groups) for _ in range(min(step, self.n - i))]
            yield WildDraw(self, np.array(signs))


@dataclass(frozen=True, eq=False)
class WildDraw:
    """Some of these draws."""

    draws: WildDraws
    signs: Floats

    def __call__(self) -> Any:
        """How much of the event happens in each row, (b, N)."""
        return self.draws.chance + self.signs[:, self.draws.codes] * self.draws.deviation


@dataclass(frozen=True)
class Refit:
    """The isotonic fits to some draws.

    Attributes
    ----------
    weight : (b,) array
        The weight of the rows where the event happened.
    extra : (b,) array
        The sum over these rows of what was asked for.
    blocks : (M, 2) array
        The weights of the blocks of the fits without and with the event, one fit after the other.
    begins : (b,) int array
        Where the blocks of each fit begin.
    """

    weight: Floats
    extra: Floats
    blocks: Floats
    begins: Ints

    def least(self, how: Split) -> Floats:
        """The total loss of each fit, (b,)."""
        return np.asarray(np.add.reduceat(block_losses(how, self.blocks), self.begins))


def block_losses(how: Split, blocks: Floats) -> Floats:
    """The loss of forecasting each block's frequency. Wild ones may be less than 0 or more than 1."""
    n = blocks.sum(axis=1)
    fit = np.clip(blocks[:, 1] / n, 0.0, 1.0)
    return np.asarray(n * how.expected(fit, 1 - fit, blocks[:, 1] / n))


def isotonic_fits(cells: Floats, first: Any) -> tuple[Floats, Ints, Ints]:
    """The blocks of several isotonic fits, (M, 2), where those of each begin, and the first pool of each.

    `cells` has the weights of the pools of all fits without and with the event, (2, P), and `first` says
    which pools begin a fit. Frequencies that do not increase from pool to pool end up in one block, so they
    are added up at once, again and again until all increase.

    >>> cells = np.array([[1.0, 0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 0.0]])
    >>> isotonic_fits(cells, np.array([True, False, False, True, False]))
    (array([[1., 0.],
           [2., 2.],
           [1., 1.]]), array([0, 2]), array([0, 1, 3]))
    """
    if compiles(_WORK * len(first), "isotonic fits"):
        from verax.kernels.refits import fit_cells

        return fit_cells(np.ascontiguousarray(cells, float), first)
    pools = np.arange(len(first))
    while True:
        with np.errstate(invalid="ignore"):
            frequency = cells[1] / (cells[0] + cells[1])
        rises = first.copy()
        rises[1:] |= frequency[1:] > frequency[:-1]
        if rises.all():
            return np.ascontiguousarray(cells.T), np.flatnonzero(first), pools
        begins = np.flatnonzero(rises)
        cells, first, pools = np.add.reduceat(cells, begins, axis=1), first[begins], pools[begins]


class Refits:
    """Isotonic fits to outcomes that are drawn, for the same rows again and again.

    Parameters
    ----------
    event : BinaryEvent
        The event whose rows these are.
    share : (N,) array
        The weights of the rows.
    more : (N,) array
        What to sum over the rows where the event happens.
    """

    def __init__(self, event: BinaryEvent, share: Floats, more: Floats) -> None:
        self._event = event
        self._even = bool((share == share[0]).all())
        self._share = share[:1] if self._even else share.take(event.order)
        # In the order of the forecasts, as all that is fitted.
        self._more = more.take(event.order)

    def each(self, draws: Draws) -> tuple[Callable[[Any], Refit], Iterable[Draw]]:
        """What fits these draws, some at a time, and the draws: compiled loops where they pay."""
        if isinstance(draws, IndependentDraws):
            if compiles(_WORK * draws.keys.size * draws.chance.size, "refits"):
                # A compiled loop takes one draw after the other, so a call has more of them.
                return self._compiled(draws), draws.by(max(1, _CALLED // draws.chance.size))
        elif compiles(_WORK * draws.n * draws.chance.size, "refits"):
            return self._wild(draws), draws
        return lambda draw: self.of(draw().take(self._event.order, axis=1)), draws

    def _compiled(self, draws: IndependentDraws) -> Callable[[Any], Refit]:
        from verax.kernels.refits import draw, fit_cells, fit_pools, fit_rows, run_cells

        order = self._event.order
        rows = order if draws.owner is None else draws.owner.take(order)
        start = draws.start.take(order)
        ends = draws.chance.take(order)
        ends += start

        def refit(drawn: IndependentDraw) -> Refit:
            happened = np.empty((len(drawn.keys), len(order)), np.bool_)
            extra = np.empty(len(drawn.keys))
            n_rises = draw(rows, drawn.keys, start, ends, self._more, happened, extra)
            if not self._event.all_differ:
                blocks, begins = np.empty((len(extra) * len(self._n), 2)), np.empty(len(extra), np.int64)
                blocks = blocks[: fit_pools(happened, *self._in_pools, blocks, begins)]
            elif self._even:
                blocks, begins = fit_rows(happened, n_rises)
                blocks *= self._share[0]
            else:
                cells, begins = np.empty((2, len(extra) + n_rises)), np.empty(len(extra), np.int64)
                run_cells(happened, self._share, cells, begins)
                first = np.zeros(cells.shape[1], np.bool_)
                first[begins] = True
                blocks, begins, _ = fit_cells(cells, first)
            return Refit(np.add.reduceat(blocks[:, 1], begins), extra, blocks, begins)

        return refit

    def _wild(self, draws: WildDraws) -> Callable[[Any], Refit]:
        from verax.kernels.refits import fit_wild

        event = self._event
        chance, deviation = draws.chance.take(event.order), draws.deviation.take(event.order)
        codes = draws.codes.take(event.order)

        def refit(drawn: WildDraw) -> Refit:
            b = len(drawn.signs)
            blocks, begins, extra = np.empty((b * len(self._n), 2)), np.empty(b, np.int64), np.empty(b)
            outcomes = drawn.signs.astype(np.int8), codes, chance, deviation
            blocks = blocks[: fit_wild(*outcomes, self._more, *self._in_pools, blocks, begins, extra)]
            return Refit(np.add.reduceat(blocks[:, 1], begins), extra, blocks, begins)

        return refit

    def of(self, happened: Any) -> Refit:
        """The fits to outcomes of all rows, (b, N), in the order of the forecasts."""
        if happened.dtype == np.bool_ and self._event.all_differ:
            blocks, begins = self._of_rows(happened)
        else:
            blocks, begins = self._of_pools(happened)
        weight = np.add.reduceat(blocks[:, 1], begins)
        # No matrix product: its sums depend on the number of threads.
        return Refit(weight, np.einsum("bi,i->b", happened, self._more), blocks, begins)

    def _of_pools(self, happened: Any) -> tuple[Floats, Ints]:
        """The fits where some forecasts are equal, or outcomes are wild."""
        s = self._pooled(self._share * happened)
        cells = np.stack([self._n - s, s]).reshape(2, -1)
        return isotonic_fits(cells, first_of_each(s.shape))[:2]

    @cached_property
    def _n(self) -> Floats:
        share = np.broadcast_to(self._share, self._event.order.shape)
        return self._event.pooled(share)

    @cached_property
    def _in_pools(self) -> tuple[Floats, Ints, Floats]:
        """The share of each row, where each pool begins and ends, and its share."""
        event, n = self._event, len(self._event.order)
        pools = np.arange(n + 1) if event.all_differ else np.append(event.begins, n)
        return np.ascontiguousarray(np.broadcast_to(self._share, n)), pools, np.ascontiguousarray(self._n)

    def _pooled(self, values: Floats) -> Floats:
        """The sums over the pools of values of the rows, (b, P)."""
        event = self._event
        return values if event.all_differ else np.add.reduceat(values, event.begins, axis=1)

    def _of_rows(self, drawn: Any) -> tuple[Floats, Ints]:
        """The fits where no forecasts are equal.

        Rows where the event happened and those where it did not that follow are in one block, so that the fit
        need not see the rows.
        """
        first = first_of_each(drawn.shape)
        flat = drawn.ravel()
        begins = first.copy()
        begins[1:] |= flat[1:] & ~flat[:-1]
        at = np.flatnonzero(begins)
        if self._even:
            happened = np.add.reduceat(flat, at, dtype=float)
            cells = np.stack([np.diff(at, append=len(flat)) - happened, happened])
            blocks, places, _ = isotonic_fits(cells, first[at])
            return self._share[0] * blocks, places
        mass = np.tile(self._share, len(drawn))
        cells = np.stack([np.add.reduceat(mass * each, at) for each in (~flat, flat)])
        return isotonic_fits(cells, first[at])[:2]


def first_of_each(shape: tuple[int, ...]) -> Any:
    """Which elements of b rows, one after the other, begin a row."""
    first = np.zeros(shape, np.bool_)
    first[:, 0] = True
    return first.ravel()


def sides(how: Split, given: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The losses if the event does not happen, and if it does."""
    return how.losses(given, rest, False), how.losses(given, rest, True)


def finite(losses: Floats) -> Floats:
    """The losses, zero instead of infinite."""
    infinite = np.isinf(losses)
    return np.where(infinite, 0.0, losses) if infinite.any() else losses
