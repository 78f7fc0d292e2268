"""Outcomes that are drawn from forecasts, again and again, and the isotonic fits to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, isotonic_blocks, recalibrate
from verax.analyses.units import dot
from verax.common.caching import cached_property
from verax.common.hashing import mixed
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# So many random numbers are drawn at a time: a cache holds them.
_BLOCK = 2**14

# Outcomes that are drawn when they are needed: which rows the event happens in, or, of wild ones, how much.
Draw = Callable[[], Any]


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
        keys = np.random.SeedSequence(seed).generate_state(n, np.uint64)
        return cls(keys, event.start, chance, event.owner)

    def __iter__(self) -> Iterator[Draw]:
        return (IndependentDraw(self, key) for key in self.keys)


@dataclass(frozen=True, eq=False)
class IndependentDraw:
    """One of these draws."""

    draws: IndependentDraws
    key: np.uint64

    def __call__(self) -> Any:
        """Which rows the event happens in."""
        n = len(self.draws.chance)
        happened = np.empty(n, np.bool_)
        for first in range(0, n, _BLOCK):
            part = slice(first, min(first + _BLOCK, n))
            rows: Any = np.arange(part.start, part.stop, dtype=np.uint64)
            if self.draws.owner is not None:
                rows = self.draws.owner[part].astype(np.uint64)
            uniform = (mixed(rows ^ self.key) >> np.uint64(11)) * 2.0**-53
            hit, start = happened[part], self.draws.start[part]
            end = start + self.draws.chance[part]
            np.greater_equal(uniform, start, out=hit)
            hit &= uniform < end
            hit |= uniform < end - 1
        return happened


@dataclass(frozen=True)
class Refit:
    """The isotonic fit to one draw.

    Attributes
    ----------
    weight : float
        The weight of the rows where the event happened.
    extra : float
        The sum over these rows of what was asked for.
    blocks : (B, 2) array
        The weights of the blocks of the fit without and with the event.
    """

    weight: float
    extra: float
    blocks: Floats

    def least(self, how: Split) -> float:
        """The total loss of the fit."""
        return least_loss(how, self.blocks)


def least_loss(how: Split, blocks: Floats) -> float:
    """The total loss of forecasting each block's frequency. Wild ones may be less than 0 or more than 1."""
    n = blocks.sum(axis=1)
    fit = np.clip(blocks[:, 1] / n, 0.0, 1.0)
    return dot(n, how.expected(fit, 1 - fit, blocks[:, 1] / n))


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

    def each(self, draws: Iterator[Draw] | IndependentDraws) -> Callable[[Draw], Refit]:
        """What fits each of these draws: compiled loops where they pay."""
        if isinstance(draws, IndependentDraws) and compiles(draws.keys.size * draws.chance.size, "refits"):
            return self._compiled(draws)
        return lambda draw: self.of(draw().take(self._event.order))

    def _compiled(self, draws: IndependentDraws) -> Callable[[Any], Refit]:
        from verax.kernels.refits import draw, fit_rows

        order = self._event.order
        rows = order if draws.owner is None else draws.owner.take(order)
        start = draws.start.take(order)
        ends = draws.chance.take(order)
        ends += start

        def refit(drawn: IndependentDraw) -> Refit:
            happened = np.empty(len(order), np.bool_)
            draw(rows, drawn.key, start, ends, happened)
            if not (self._even and self._event.all_differ):
                return self.of(happened)
            return self._refit(happened, self._share[0] * fit_rows(happened))

        return refit

    def of(self, happened: Any) -> Refit:
        """The fit to outcomes of all rows, in the order of the forecasts."""
        if happened.dtype == np.bool_ and self._event.all_differ:
            blocks = isotonic_blocks(self._runs(happened))[1]
        else:
            s = self._event.pooled(self._share * happened)
            blocks = recalibrate(np.stack([self._n - s, s], axis=1)).blocks
        return self._refit(happened, blocks)

    def _refit(self, happened: Any, blocks: Floats) -> Refit:
        return Refit(float(blocks[:, 1].sum()), dot(self._more, happened), blocks)

    @cached_property
    def _n(self) -> Floats:
        share = np.broadcast_to(self._share, self._event.order.shape)
        return self._event.pooled(share)

    def _runs(self, drawn: Any) -> Floats:
        """The weights of rows where the event did not happen after rows where it did, run by run.

        The isotonic fit is the same everywhere in such a run, so that it need not see the rows.
        """
        changes = np.flatnonzero(drawn[1:] != drawn[:-1]) + 1
        begins = np.concatenate([[0], changes])
        if self._even:
            mass = self._share[0] * np.diff(begins, append=len(drawn))
        else:
            mass = np.add.reduceat(self._share, begins)
        # Pairs of rows with the event and without: the first may lack the former, the last the latter.
        mass = np.concatenate([[0.0][: int(not drawn[0])], mass, [0.0][: int(drawn[-1])]])
        return mass.reshape(-1, 2)[:, ::-1]
