"""`Tally`: the public summary of a part of the rows, which merges; of all of them it gives the card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, Unpack

from verax.analyses.cards.evaluation import score
from verax.analyses.cards.listcard import card_from_bytes
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.common.checks import check_flag
from verax.common.faces import Hidden
from verax.errors import VeraxError
from verax.inference.intervals import FewGroups, Resampling, WeightsAre
from verax.inputs.arrays import Ints
from verax.inputs.options import RowOptions, reads_parts
from verax.inputs.skipping import MaySkip, Skipped
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike


@dataclass(frozen=True, repr=False, eq=False)
class Tally(MaySkip):
    """The sums of a part of the rows. Tallies of parts are added, in any order, and give the card of all.

    A part may be empty, have no weight, a single group, or lack a class; `card` refuses what makes no sense
    for all rows. Bytes (`to_bytes`, `from_bytes`) carry a tally from one process to another; they are not
    pickled, so reading them runs no code. A tally never changes. Threads that add to a shared sum need a lock
    around the addition, or return their tallies to one thread that adds them.

    Examples
    --------
    >>> import verax as vx
    >>> parts = [([0, 1], [[0.8, 0.2], [0.6, 0.4]]), ([1], [[0.3, 0.7]])]
    >>> stored = [vx.Tally.of(y, p).to_bytes() for y, p in parts]          # on other machines
    >>> card = sum(map(vx.Tally.from_bytes, stored)).card()
    >>> card.n_rows, round(card["brier"], 4)
    (3, 0.3267)
    """

    _card: Hidden[Scorecard]

    _facts = ("n_rows", "n_classes", "weight")

    @staticmethod
    @reads_parts
    def of(
        y: object,
        p: object = None,
        *,
        ordered: bool = False,
        costs: CostsLike | None = None,
        rules: Sequence[Rule | str] | None = None,
        confidence: float = 0.95,
        bootstrap: int = 1000,
        seed: int = 0,
        weights_are: WeightsAre = "importance",
        few_groups: FewGroups = None,
        **read: Unpack[RowOptions],
    ) -> Tally:
        """The tally of some rows. The parameters are those of `evaluate`.

        Parameters
        ----------
        y
            There may be no rows.
        p
        ordered
        costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
            The cost of each decision (column) for each outcome (row).
        rules : sequence of Rule or str, optional
            Rules to use instead of all applicable ones.
        confidence
        bootstrap : int, default 1000
            Number of bootstrap replicates, for intervals that need them.
        seed
        weights_are
        few_groups : float or "unseen", optional
            What is assumed of groups for intervals of shares such as accuracy: the largest correlation of the
            errors of a group, from 0 to 1, or "unseen" where a quarter of a group may be unlike all that were
            seen. By default errors are correlated by up to 0.2, in groups of fewer than 50 rows by more.
        **read

        Returns
        -------
        Tally
            The sums.

        Examples
        --------
        >>> import numpy as np, verax as vx
        >>> empty = vx.Tally.of([], np.zeros((0, 2)))
        >>> (empty + vx.Tally.of([0], [[0.8, 0.2]])).n_rows
        1
        """
        plan = Resampling.checked(confidence, bootstrap, seed, weights_are=weights_are, few_groups=few_groups)
        return Tally(score(y, p, plan, ordered=ordered, costs=costs, rules=rules, part=True, **read))

    def card(self, *, part: bool = False) -> Scorecard:
        """The card of all rows that were added.

        Parameters
        ----------
        part : bool, default False
            Whether these may be a part of all rows, without rows, weight or a second group.

        Returns
        -------
        Scorecard
            The card.
        """
        if not check_flag("part", part):
            check_whole(self._card)
        return self._card

    def merge(self, other: Tally) -> Tally:
        """The tally of the rows of both, in whatever order they are merged; neither is changed.

        Parameters
        ----------
        other : Tally
            The tally of other rows.

        Returns
        -------
        Tally
            A new tally.
        """
        if not isinstance(other, Tally):
            raise VeraxError(f"A tally merges with another tally, not with a {type(other).__name__}.")
        return Tally(self._card.merge(other._card))

    def __add__(self, other: Tally) -> Tally:
        return self.merge(other) if isinstance(other, Tally) else NotImplemented

    def __radd__(self, other: object) -> Self:
        # `sum` begins with 0.
        return self if other == 0 else NotImplemented

    def to_bytes(self) -> bytes:
        """Bytes that `from_bytes` reads. Rules must have names that `parse` knows."""
        return self._card.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """The tally that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        Tally
            The tally.
        """
        return cls(card_from_bytes(data))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._card.n_rows

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self._card.n_classes

    @property
    def weight(self) -> float:
        """The sum of the weights; the number of rows if there were none."""
        return self._card.weight

    @property
    def skipped(self) -> Skipped | None:  # type: ignore[override]
        """The invalid rows that were left out; None unless that was asked for."""
        return self._card.skipped

    def with_skipped(self, skipped: Skipped | None, rows: Ints | None = None) -> Tally:
        """The same tally, which knows what rows were left out.

        Parameters
        ----------
        skipped : Skipped or None
            The rows that were left out.
        rows : array of int, optional
            The numbers of the other rows.

        Returns
        -------
        Tally
            A new tally.
        """
        return Tally(self._card.with_skipped(skipped, rows))

    def __repr__(self) -> str:
        left_out = f", {self.n_skipped:,} left out" if self.n_skipped else ""
        return f"Tally({self.n_rows:,} rows of {self.n_classes:,} classes{left_out})"
