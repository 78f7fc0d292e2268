"""What each row adds to the deviations of a score and its components, for one event and for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.walks import Walk, others_of
from verax.analyses.units import SamplingUnits
from verax.common.caching import cached_property
from verax.inputs.arrays import Floats

# The influence of so many rows is added up at a time: a cache holds it.
_ROWS = 2**14
# Events wait until they hold so many bytes. Then they are added to a table of all rows, which is larger.
_HELD = 2**23


@dataclass(frozen=True)
class CellInfluence:
    """What each row of an event adds to the deviations of the score and its components, by squared errors.

    Attributes
    ----------
    event : BinaryEvent
        The event.
    walk : Walk
        The pass over its rows.
    limit : array of shape (C,)
        The recalibrated forecast of each cell.
    rate : float
        How often the event happened.
    means : array of shape (4,)
        The mean loss, the same minus that of the fit, that of a constant minus that of the fit, and that of
        the constant.
    """

    event: BinaryEvent
    walk: Walk
    limit: Floats
    rate: float
    means: Floats

    def moments(self, chance: Floats) -> tuple[Floats, float]:
        """The variances of the four means, and the mean loss where events have these chances in the cells."""
        from verax.kernels.walking import deviations

        n, walk = len(self), self.walk
        own, gain, expected = deviations(*self._rows, self._fitted.ravel(), chance, self.means)
        # The fit and the constant are the same for all rows of a cell with the same outcome.
        counts = np.stack([walk.size - walk.happened, walk.happened], axis=1)
        known = [
            float((counts * (self._even - fitted - mean) ** 2).sum())
            for fitted, mean in ((self._fitted, self.means[2]), (0.0, self.means[3]))
        ]
        return np.array([own, gain, *known]) / (float(n) * (n - 1)), expected / n

    def scaled(self, factor: float) -> ScaledLosses:
        """The losses behind a multiple of the influence of each row."""
        factor /= len(self)
        losses = *self._rows, factor * self._fitted.ravel(), factor * self._even, factor
        return ScaledLosses(losses, factor * self.means)

    def __len__(self) -> int:
        return len(self.event.given)

    @cached_property
    def _fitted(self) -> Floats:
        """(C, 2) the loss of the fit in each cell without and with the event."""
        return np.stack([self.limit**2, (1 - self.limit) ** 2], axis=1)

    @property
    def _even(self) -> Floats:
        """(2,) the loss of the constant without and with the event."""
        return np.array([self.rate**2, (1 - self.rate) ** 2])

    @cached_property
    def _cells(self) -> Any:
        return self.walk.cells_of(self.event.ranked)

    @property
    def _rows(self) -> tuple[Any, ...]:
        return self.event.given, others_of(self.event), self.event.happened.view(np.uint8), self._cells


@dataclass(frozen=True)
class ScaledLosses:
    """Multiples of the losses of an event, of its fit and of a constant, as `add_losses` takes them, and of
    the means of what follows from them, (4,).
    """

    losses: tuple[Any, ...]
    means: Floats

    def __len__(self) -> int:
        return len(self.losses[0])

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return sum(each.nbytes for each in self.losses[:4])


class InfluenceSum:
    """The influence of each row on a score of several events, of which only the variances are asked.

    Events in cells wait for each other, and all of them are added up for some rows at a time. So there is no
    table of all rows that is read and written for each of them, unless the rows are very many.
    """

    def __init__(self) -> None:
        self._table: Floats | None = None
        self._waiting: list[ScaledLosses] = []
        # The losses of events that do not wait any more, (3, n), and the means of all events in cells.
        self._losses: Floats | None = None
        self._means = np.zeros(4)

    def add(self, influence: Floats | CellInfluence, factor: float) -> None:
        """Add a multiple of the influence on one event, (n, 4) or in cells."""
        if isinstance(influence, CellInfluence):
            self._waiting.append(influence.scaled(factor))
            self._means = self._means + self._waiting[-1].means
            if sum(each.nbytes for each in self._waiting) > _HELD:
                self._add_waiting()
            return
        if self._table is None:
            self._table = factor * influence.T
        else:
            self._table += factor * influence.T

    def variances(self, units: SamplingUnits) -> Floats:
        """The variances of the score and its components, (4,)."""
        if self._losses is None and not self._waiting:
            assert self._table is not None
            return units.variances(self._table.T)
        # Rows in cells count alike.
        return self._squares() / (1 - 1 / self._n_rows)

    @property
    def _n_rows(self) -> int:
        return len(self._waiting[0]) if self._losses is None else self._losses.shape[1]

    def _add_waiting(self) -> None:
        """Add up the events that wait, and let go of them."""
        from verax.kernels.walking import add_losses

        n = self._n_rows
        if self._losses is None:
            self._losses = np.zeros((3, n))
        for begin in range(0, n, _ROWS):
            end = min(begin + _ROWS, n)
            losses = self._losses[:, begin:end].copy()
            for each in self._waiting:
                add_losses(*each.losses, begin, end, losses)
            self._losses[:, begin:end] = losses
        self._waiting = []

    def _squares(self) -> Floats:
        """The sums of squares of all events together, (4,)."""
        from verax.kernels.walking import add_deviations, add_losses

        squares, n = np.zeros(4), self._n_rows
        losses, nothing = np.zeros((3, min(n, _ROWS))), np.zeros((4, 0))
        for begin in range(0, n, _ROWS):
            end = min(begin + _ROWS, n)
            if self._losses is not None:
                losses[:, : end - begin] = self._losses[:, begin:end]
            for each in self._waiting:
                add_losses(*each.losses, begin, end, losses)
            own = nothing if self._table is None else self._table[:, begin:end].copy()
            add_deviations(losses, end - begin, self._means, own, squares)
        return squares
