"""Losses and traits of all models, computed and summed in pieces of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from verax.analyses.comparison.reasons import FORMULAS
from verax.analyses.parts import naming
from verax.engines.differences import PairedTally, tallies_of_pieces
from verax.engines.models import InvalidRowsError, ModelLayout, ModelLosses
from verax.engines.pieces import ColumnBlock, Fill
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part
from verax.kernels.ledger import compiles
from verax.scores.base import Rule

# Number of rows prepared for kernels at a time.
_READY = 2**16
# Gives the lines of a model, in one array.
Lines = Callable[[str], Floats]


class Pieces:
    """Losses and traits of models on the rows of a part, as lines: written by kernels, or known.

    A line is the losses of a model by a rule, or one of its traits. Each line has its place in a piece.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._written: list[tuple[ModelLosses, Ints]] = []
        self._known: list[tuple[int, Floats]] = []

    @classmethod
    def of(
        cls, part: Part, rules: Sequence[Rule], places: Mapping[str, Sequence[int]], lines: Lines
    ) -> Pieces | None:
        """The losses of each model by each rule, then its traits if there are places for them.

        `lines` gives those of models without a kernel. None if no model has a kernel.
        """
        alike: dict[tuple[ModelLayout | None, bool], list[str]] = {}
        for name, lines_of_model in places.items():
            alike.setdefault(
                (ModelLayout.of(part.models[name]), len(lines_of_model) > len(rules)), []
            ).append(name)
        pieces, others = cls(part), []
        for (layout, traits), names in alike.items():
            losses = None
            if layout is not None:
                formulas = (*rules, *(FORMULAS if traits else ()))
                rows = [part.models[name] for name in names]
                if compiles(part.n_rows * layout.n_classes * len(rows), (layout, formulas)):
                    losses = ModelLosses.of(rows, formulas, layout, distances=traits)
            if losses is None:
                others += names
            else:
                pieces._written.append((losses, np.array([places[name] for name in names]).T))
        if not pieces._written:
            return None
        for name in others:
            for place, line in zip(places[name], lines(name), strict=True):
                pieces.know(place, line)
        return pieces

    def know(self, place: int, line: Floats) -> None:
        """Add a known line of all rows."""
        self._known.append((place, line))

    def tallies(
        self, blocks: Sequence[ColumnBlock], fill: Callable[[], Fill] | None = None
    ) -> list[list[PairedTally]] | None:
        """A tally of each column of each block of consecutive lines; None if compiled loops do not pay.

        `fill` returns a function that writes pieces, in place of that for the lines.
        """
        try:
            return tallies_of_pieces(blocks, self._part.n_rows, self._weights(), fill or self.fill)
        except InvalidRowsError:
            self._check()
            raise VeraxError(
                "Rows changed while they were read: at first some were invalid, and then none."
            ) from None

    def fill(self) -> Fill:
        """A function that writes pieces, for one thread."""
        n_rows = self._part.n_rows
        ready = [losses.reading(0, 1) for losses, _ in self._written]

        def write(start: int, stop: int, flat: Floats) -> None:
            n = stop - start
            for i, (losses, places) in enumerate(self._written):
                if not ready[i].start <= start < stop <= ready[i].stop:
                    ready[i] = losses.reading(start, min(start + _READY, n_rows))
                losses.write(ready[i], start, n, places * n, flat)
            for place, line in self._known:
                flat[place * n : (place + 1) * n] = line[start:stop]

        return write

    def _weights(self) -> Floats | None:
        rows = self._part.rows
        if rows.weights is None:
            return None
        weights = np.asarray(to_host(rows.batch(0, rows.n_rows).weights), float)
        if not (weights.min() >= 0 and weights.max() < np.inf and weights.any()):
            self._check()
        return weights

    def _check(self) -> None:
        """Raise the error that names the first invalid rows."""
        for name, rows in self._part.models.items():
            if isinstance(rows, Forecasts):
                with naming(self._part, name):
                    rows.check()
