"""Top lists with their outcomes, as rows that the pass can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verax.errors import InputError, Offenders
from verax.inputs.arrays import Array, Floats, Ints, Namespace, kind_of, to_array, to_host
from verax.inputs.groups import Groups
from verax.inputs.lists.ragged import Ragged, Survey, frozen

NO_ORDER = (
    "A top list has no cumulative probabilities: it does not say where among the ordered classes its "
    "unlisted probability lies, and padding it evenly would reward lists that are not true "
    "(m=3, truth (0, 1/2, 1/2): the true top-1 list expects an RPS of 5/32, a list that overstates its "
    "class 11/72). Ordinal rules need the full distribution; for lists use a symmetric rule such as brier."
)


@dataclass(frozen=True)
class ListBatch:
    """Consecutive lists with the codes of their outcomes."""

    lists: Ragged
    survey: Survey
    y: Ints
    weights: Floats | None
    groups: Ints | None
    start: int
    n_classes: int
    xp: Namespace = np


class ListRows:
    """Checked lists with their survey, the codes of the outcomes and the weights.

    An outcome that no list names has a code that no listed class has. A `part` of all rows may have no row
    and no weight.
    """

    def __init__(
        self,
        lists: Ragged,
        survey: Survey,
        n_classes: int,
        y: Ints,
        weights: object | None = None,
        groups: object | None = None,
        *,
        part: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.xp: Namespace = np
        self._lists, self._survey, self._y = lists, survey, frozen(np.ascontiguousarray(y))
        if y.size != lists.n_rows:
            raise InputError(
                "must have one outcome per list",
                argument="y",
                kind="length",
                found=f"there are {y.size} outcomes and {lists.n_rows} lists",
            )
        if y.size == 0 and not part:
            raise InputError("must have at least one list", argument="p", kind="length")
        self.weights: Array | None = None if weights is None else check_weights(weights, y.size, part=part)
        self.groups = None if groups is None else Groups.of(groups, y.size)

    @property
    def n_rows(self) -> int:
        return self._lists.n_rows

    @property
    def width(self) -> int:
        """The mean number of entries per list, at least 1."""
        return max(1, round(self._lists.confidences.size / max(1, self.n_rows)))

    def batch(self, start: int, stop: int) -> ListBatch:
        """Rows `start` to `stop`."""
        weights = None if self.weights is None else self.weights[start:stop]
        return ListBatch(
            self._lists.rows(start, stop),
            self._survey.rows(start, stop),
            self._y[start:stop],
            weights,
            None if self.groups is None else self.groups.codes[start:stop],
            start,
            self.n_classes,
        )

    def batches(self, rows: int) -> Iterator[ListBatch]:
        """All rows, `rows` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.batch(start, min(start + rows, self.n_rows))

    def check(self) -> None:
        """Nothing is left to check."""


def check_weights(weights: object, n: int, *, part: bool = False) -> Floats:
    """Weights as a private copy: finite, not negative, not all zero unless they are a part of all."""
    raw, _ = to_array(weights, "weights")
    if kind_of(raw) not in ("real", "integer", "bool") or tuple(raw.shape) != (n,):
        raise InputError(
            f"must be {n} numbers, one per row",
            argument="weights",
            kind="length",
            found=f"its shape is {tuple(raw.shape)} and its type {raw.dtype}",
        )
    w = np.array(to_host(raw), np.float64)
    bad = Offenders("weights", "must be finite and not negative", "sign")
    bad.add(~(np.isfinite(w) & (w >= 0)), w, 0)
    if bad.count:
        raise bad.error()
    if not w.any() and not part:
        raise InputError("must not all be zero", argument="weights")
    return w
