"""What is claimed: that a share lies in a range. The claims of all subjects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Measure = Callable[[int, int], tuple[float, float]]


@dataclass(frozen=True)
class Claim:
    """What is claimed: that a share lies in a range.

    Attributes
    ----------
    name : str
        Subject and conditions, separated by colons.
    wanted : (float, float)
        The range that the share should lie in.
    measure : function of (replications, seed)
        Returns the share and its Monte Carlo error.
    replications : int
        How many replications the tables take.
    """

    name: str
    wanted: tuple[float, float]
    measure: Measure
    replications: int = 1000

    def holds(self, share: float, error: float) -> bool:
        """Whether the share lies in the range, give or take two Monte Carlo errors."""
        low, high = self.wanted
        return math.isnan(share) or low - 2 * error <= share <= high + 2 * error


CLAIMS: dict[str, Claim] = {}


def claim(name: str, low: float, high: float, measure: Measure, replications: int = 1000) -> None:
    """Register a claim."""
    CLAIMS[name] = Claim(name, (low, high), measure, replications)


def share_of(hits: list[bool]) -> tuple[float, float]:
    """The share of hits, and its Monte Carlo error; NaN where there was nothing to hit."""
    if not hits:
        return math.nan, math.nan
    share = sum(hits) / len(hits)
    return share, math.sqrt(max(share * (1 - share), 1 / len(hits)) / len(hits))


def covers(band: np.ndarray, truth: np.ndarray) -> bool:
    """Whether a band covers the truth at all thresholds that it is for."""
    return not ((truth < band[0]) | (truth > band[1])).any()


def crossed(n: int, sizes: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    """The groups of rows, of unequal sizes, for each kind."""
    shares = [rng.exponential(size=n_groups) + 0.2 for n_groups in sizes]
    return [rng.choice(len(share), n, p=share / share.sum()) for share in shares]
