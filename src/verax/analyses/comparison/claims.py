"""What the rows support about the forecasts of models: tests of the reasons for disagreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from verax.engines.pieces import all_pairs
from verax.inference.estimates import holm
from verax.inputs.arrays import Floats

# The traits, by their places among `traits.FORMULAS`, which the size of errors follows.
TRAITS = ACCURACY, OVERCONFIDENCE, SHARPNESS, RULED_OUT, ERROR_DISTANCE = range(5)


@dataclass(frozen=True)
class Claims:
    """Which traits of models differ, or differ from zero, beyond chance.

    Attributes
    ----------
    supported : frozenset
        A trait with the one or two models that the claim is about, for each claim whose p-value is within
        the level after Holm's correction over all claims.
    """

    supported: frozenset[tuple[int, frozenset[str]]]

    def hold(self, trait: int, *models: str) -> bool:
        """Whether the trait of one model differs from zero, or those of two from each other."""
        return (trait, frozenset(models)) in self.supported

    @classmethod
    def of(
        cls, names: Sequence[str], p_values: Callable[[int], Floats], *, ordered: bool, level: float
    ) -> Claims:
        """The claims about these models that hold.

        Parameters
        ----------
        p_values : callable
            For a trait, the p-values of its means and of their differences.
        """
        pairs = [frozenset((names[a], names[b])) for a, b in all_pairs(len(names))]
        claims, found = [], []
        for trait in TRAITS if ordered else TRAITS[:ERROR_DISTANCE]:
            p = p_values(trait)
            if trait == OVERCONFIDENCE:
                claims += [(trait, frozenset((name,))) for name in names]
                found += p[: len(names)].tolist()
            claims += [(trait, pair) for pair in pairs]
            found += p[len(names) :].tolist()
        adjusted = holm(np.array(found))
        return cls(frozenset(c for c, p in zip(claims, adjusted.tolist(), strict=True) if p <= level))


def error_column(columns: Sequence[Floats], accuracy: float, distance: float) -> Floats:
    """A column with the mean and the standard error of the distance of errors, which is a ratio of means.

    `columns` are those of all traits; `accuracy` and `distance` are the means over all rows: of right
    decisions, and of the size of the errors.
    """
    if accuracy == 1:
        return np.full(len(columns[0]), np.nan)
    ratio = distance / (1 - accuracy)
    wrong = 1 - columns[ACCURACY]
    return np.asarray(ratio + (columns[ERROR_DISTANCE] - ratio * wrong) / (1 - accuracy))
