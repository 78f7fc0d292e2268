"""The rows of a small file, kept while it is scored for what needs all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.inputs.arrays import to_host
from verax.inputs.forecasts import Forecasts

# How many probabilities are kept unless all are asked for: 16 MiB of doubles. Every class is fitted on its
# own, so there must not be too many of them, either.
MOST, MOST_CLASSES = 2**21, 1024


class KeptRows:
    """Rows in standard form, as long as there are not too many, nor too many classes.

    Parameters
    ----------
    most : int or None, default 2097152
        The most probabilities that are kept; None for any number.

    Examples
    --------
    >>> import verax as vx
    >>> from verax import files
    >>> kept = files.KeptRows()
    >>> kept.add(vx.Forecasts([0, 1], [[0.8, 0.2], [0.4, 0.6]]))
    >>> kept.n_rows, kept.complete
    (2, True)
    """

    n_rows: int

    def __init__(self, most: int | None = MOST) -> None:
        self.most = most
        self.n_rows = 0
        self.n_classes: int = 0
        self._parts: list[Forecasts] = []

    @property
    def complete(self) -> bool:
        """Whether all rows seen are kept."""
        few = self.n_classes <= MOST_CLASSES
        return self.most is None or (few and self.n_rows * self.n_classes <= self.most)

    def add(self, forecasts: Forecasts) -> None:
        """Keep further rows; none is kept any more once there are too many.

        Parameters
        ----------
        forecasts : Forecasts
            The rows.
        """
        self.n_rows += forecasts.n_rows
        self.n_classes = forecasts.n_classes
        self._parts = [*self._parts, forecasts] if self.complete else []

    def arguments(self) -> dict[str, Any]:
        """The rows as arguments of functions that read forecasts; outcomes are positions."""
        batches = [part.batch(0, part.n_rows) for part in self._parts]
        weights = [to_host(batch.weights) for batch in batches if batch.weights is not None]
        groups = [part.groups.labels[part.groups.codes] for part in self._parts if part.groups is not None]
        return {
            "y": np.concatenate([to_host(batch.y) for batch in batches]),
            "p": np.concatenate([to_host(batch.p) for batch in batches]),
            "weights": np.concatenate(weights) if weights else None,
            "groups": np.concatenate(groups) if groups else None,
        }
