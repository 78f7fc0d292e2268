"""Rows divided by their sums, on request or because their probabilities were rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from verax.errors import SHOWN_ROWS, InputError, join, passing
from verax.files.predictions import Predictions, short
from verax.inputs.arrays import Columns
from verax.inputs.validity import Rescaled, Unity

Array = np.ndarray[Any, Any]

# Decimals of probabilities that count as rounded: sums of more are within the tolerance, and a tenth too much
# is as likely a mistake.
_LEAST, _MOST = 2, 6
# Rows that tell whether a part is rounded at all.
_FEW = 64


@dataclass(frozen=True)
class Rounding:
    """The decimals of some rows, and their sums.

    Attributes
    ----------
    decimals : int
        The largest number of decimals, at least _LEAST; _MOST + 1 for more than _MOST.
    needed : float
        The rounding of values that explains the sums.
    rescaled : Rescaled
        The rows that were divided by their sums.
    rows : tuple[tuple[int, float], ...]
        The first of these, with their sums.
    """

    decimals: int = _LEAST
    needed: float = 0.0
    rescaled: Rescaled = field(default_factory=Rescaled)
    rows: tuple[tuple[int, float], ...] = ()

    def __add__(self, other: Rounding) -> Rounding:
        return Rounding(
            max(self.decimals, other.decimals),
            max(self.needed, other.needed),
            self.rescaled + other.rescaled,
            tuple(sorted((*self.rows, *other.rows))[:SHOWN_ROWS]),
        )

    @property
    def explained(self) -> bool:
        """Whether rounding explains the sums."""
        return self.needed <= _half_unit(self.decimals)

    def sentence(self) -> str:
        """Sentences on the division."""
        return (
            f"Probabilities are rounded to {self.decimals} decimals: {self.rescaled.sentence()} "
            "A zero may be a small probability, and has an infinite log score where its class occurs."
        )

    def refusal(self, rows: Predictions) -> InputError:
        """The error about sums that the rounding of all rows does not explain."""
        numbers, sums = zip(*self.rows, strict=True)
        some = f"row{'' if len(numbers) == 1 else 's'} {join(map(str, numbers))}"
        more = "more than 6" if self.decimals > _MOST else f"up to {self.decimals}"
        return InputError(
            f"The probabilities of a row must sum to 1 within {Unity.of(rows.p).tolerance:g}",
            argument="p",
            kind="sum",
            found=f"{some} {'sums' if len(numbers) == 1 else 'sum'} to {join(f'{s:.6g}' for s in sums)} "
            f"({self.rescaled.count:,} in all), which rounding does not explain: probabilities have "
            f"{more} decimals; the columns used are {short(rows.roles.probs)}",
            rows=numbers,
            values=sums,
            count=self.rescaled.count,
            source=rows.path,
            remedies=[passing("to rescale", normalize=True)],
        )


class Rescaling:
    """The rows divided by their sums in every part read, by model and first row.

    Parameters
    ----------
    normalize : bool
        All rows will be divided by their sums; here they are only counted.
    rounded : bool
        Rows are divided here if rounding explains their sums.
    """

    def __init__(self, *, normalize: bool, rounded: bool) -> None:
        self._normalize, self._rounded = normalize, rounded and not normalize
        self._roundings: dict[tuple[str, int], Rescaled | Rounding] = {}
        self._seen: dict[str, Predictions] = {}

    def divided(self, models: dict[str, Predictions]) -> dict[str, Predictions]:
        """The rows of a part, with rounded ones divided by their sums."""
        if not self._rounded:
            return models
        changed = dict(models)
        for name, rows in models.items():
            if rows.p.ndim > 1 and len(rows):
                changed[name], self._roundings[name, rows.start] = unrounded(rows)
                self._seen[name] = rows
        return changed

    def note(self, models: Mapping[str, Predictions]) -> None:
        """Count the rows of a part that will be divided by their sums; a part read again counts once."""
        for name, rows in models.items() if self._normalize else ():
            self._roundings[name, rows.start] = rows.rescaled()

    def check(self) -> None:
        """Refuse divided rows if rounding does not explain the sums of all rows together."""
        for name, rows in self._seen.items():
            rounding = self._all(name)
            if rounding.rescaled.count and not rounding.explained:
                raise rounding.refusal(rows)

    def _all(self, model: str) -> Any:
        return reduce(add, [rounding for (name, _), rounding in self._roundings.items() if name == model])

    def sentences(self, models: Sequence[str]) -> dict[str, tuple[str]]:
        """A sentence on the divided rows of each model, if there are any."""
        known = {
            name: self._all(name) for name in models if any(name == model for model, _ in self._roundings)
        }
        return {
            name: (done.sentence(),)
            for name, done in known.items()
            if isinstance(done, Rescaled) or done.rescaled.count
        }


def unrounded(rows: Predictions) -> tuple[Predictions, Rounding]:
    """Rows divided by their sums if rounding explains the difference from 1, and their rounding."""
    given: Any = rows.p
    columns = list(given.columns if isinstance(given, Columns) else given.T)
    decimals = _decimals([column[:_FEW] for column in columns])
    if decimals > _MOST:
        return rows, Rounding(decimals)
    decimals = _decimals(columns, decimals)
    half, unity = _half_unit(decimals), Unity.of(rows.p)
    totals = np.asarray(np.sum(columns, axis=0, dtype=np.float64))
    off = totals - 1
    some = np.flatnonzero(np.abs(off) > unity.limit)
    positive = np.sum([column[some] > 0 for column in columns], axis=0)
    # A zero cannot have been rounded up.
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(off[some] > 0, off[some] / positive, -off[some] / len(columns))
        explained = needed <= half
    some, needed = some[explained], needed[explained]
    if not len(some):
        return rows, Rounding(decimals, 0.0, Rescaled(len(rows)))
    divided = []
    for column in columns:
        new = column.copy()
        new[some] = column[some] / totals[some]
        divided.append(new)
    p: Any = Columns(divided) if isinstance(given, Columns) else np.stack(divided, axis=1)
    numbers = rows.numbers[some[:SHOWN_ROWS]]
    first = tuple(zip(numbers.tolist(), totals[some[:SHOWN_ROWS]].tolist(), strict=True))
    rescaled = replace(Rescaled.of(totals[some], unity), n_rows=len(rows))
    return replace(rows, p=p), Rounding(decimals, float(needed.max()), rescaled, first)


def _half_unit(decimals: int) -> float:
    """The largest change by rounding, with some slack for floating-point sums."""
    return 0.5 * 10.0**-decimals * (1 + 1e-6)


def _decimals(columns: Sequence[Array], least: int = _LEAST) -> int:
    """The largest number of decimals, at least `least`; _MOST + 1 if some value has more."""
    decimals = least
    for column in columns:
        while decimals <= _MOST and not _has(column, decimals):
            decimals += 1
    return decimals


def _has(column: Array, decimals: int) -> bool:
    """Whether no value has more decimals; divided percentages may differ in the last digits."""
    with np.errstate(invalid="ignore"):
        off = np.abs(column - np.round(column.astype(np.float64), decimals))
        return not bool((off > 4 * np.finfo(column.dtype).eps * np.abs(column)).any())
