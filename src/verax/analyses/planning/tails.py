"""How well a pilot knows its own spread: that of heavy-tailed losses is less certain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax.analyses.comparison.paired import OF_RULE, PairedRecipe
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums, means_of
from verax.inputs.arrays import to_host
from verax.inputs.handles import Handle, Part
from verax.scores.base import Rule
from verax.scores.registry import name_of

# Where the kurtosis exceeds that of a normal distribution by this share of the number of units, a few of them
# make most of the spread.
_HEAVY = 1 / 15
# The kurtosis of two values of equal weight is 1, and the spread then nearly certain.
_LEAST = 0.5


@dataclass(frozen=True)
class Tails:
    """The tails of losses, or of their differences, over rows or groups.

    Attributes
    ----------
    kurtosis : float
        The fourth central moment over the squared variance: 3 for a normal distribution.
    units : float
        The number of rows of equal weight, or of groups, that tell as much.
    what : str
        What the units are: "rows" or "groups".
    """

    kurtosis: float
    units: float
    what: str = "rows"

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance: it varies by (kurtosis - 1) / units of its square."""
        return 2 * self.units / max(self.kurtosis - 1 + 2 / self.units, _LEAST)

    @property
    def caution(self) -> str:
        """Why the spread is not known well; otherwise empty."""
        if self.kurtosis - 3 <= _HEAVY * self.units:
            return ""
        return f"heavy tails: a few of {self.units:.4g} {self.what} make most of the spread"


def tails_of(handle: Handle, models: tuple[str, ...], rule: Rule) -> Tails:
    """The tails of the loss of a model, or of the difference of two."""
    sums = means_of(handle, TailRecipe(models, rule)).sums
    return _of_rows(sums) if sums.groups is None else _of_groups(sums)


def _of_rows(sums: UnitSums) -> Tails:
    first, second, third, fourth = sums.mean[0].tolist()
    variance = second - first**2
    central = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
    units = sums.total**2 / float(sums.weight.high[1])
    return Tails(max(central / variance**2, 1.0) if variance > 0 else 1.0, units)


def _of_groups(sums: UnitSums) -> Tails:
    assert sums.groups is not None
    weight, own = sums.groups[:, 0], sums.groups[:, 1]
    around = (own - sums.mean[0, 0] * weight)[weight > 0]
    square = float((around**2).sum())
    n = len(around)
    return Tails(max(n * float((around**4).sum()) / square**2, 1.0) if square > 0 else 1.0, n, "groups")


@dataclass(frozen=True)
class TailRecipe(UnitRecipe, cases=True):
    """The first four powers of losses, or of their differences.

    Attributes
    ----------
    models : tuple of str
        A model, or two whose losses are subtracted.
    rule : Rule
        The rule.
    """

    models: tuple[str, ...]
    rule: Rule

    def columns(self, part: Part) -> UnitColumns:
        """Of all rows of a part."""
        losses = PairedRecipe(self.models, (self.rule,)).columns(part)[OF_RULE.format(name_of(self.rule))]
        values = losses[:, 0] if len(self.models) == 1 else losses[:, 0] - losses[:, 1]
        given = part.rows.batch(0, part.rows.n_rows).weights
        weight = np.ones(len(values)) if given is None else np.asarray(to_host(given), float)
        powers = np.stack([values, values**2, values**3, values**4])
        return UnitColumns(weight, (weight * powers)[None], part.rows.groups)
