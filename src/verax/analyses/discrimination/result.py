"""Scores of rankings with their intervals, and the paired differences of models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from verax.analyses.binary import EventRows, ScannedRows
from verax.analyses.comparison.findings import TESTED, Standings
from verax.analyses.comparison.records import Difference, pair_of
from verax.common.checks import looked_up
from verax.common.faces import Brief, Hidden, Maybe
from verax.common.texts import bound
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.inference.estimates import holm
from verax.inference.findings import Finding, WithVerdict
from verax.inference.intervals import Interval, unequal
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip


@dataclass(frozen=True)
class RankPart:
    """The value of one event, with its interval; NaN where it is undefined.

    Attributes
    ----------
    name : str
        The class, the threshold, or the pair of classes.
    value : float
        The value.
    interval : Interval
        Its confidence interval.
    """

    name: str
    value: float
    interval: Brief[Interval]


@dataclass(frozen=True, repr=False, eq=False)
class RankScore(Tabled, MaySkip):
    """The score of a forecast that ranks the rows.

    Attributes
    ----------
    metric : str
        The metric.
    value : float
        Its average over the events; `float(score)` is the same.
    interval : Interval
        Its confidence interval.
    parts : tuple of RankPart
        The value of each class, each threshold, or each pair of classes.
    average : str
        How the parts make the whole, in words.
    notes : tuple of str
        Notes on classes that were left out.
    rows : EventRows or ScannedRows
        The rows and the events.
    influence : array of shape (M,)
        Numbers, one for each of M models, whose products with those of another model sum to the covariance
        of their values: paired differences need them.
    within : float or None
        How far the value can be from that of the rows: 0 unless there are more than 2^20 distinct forecasts
        in rows that are not in memory. None in results that version 0.2 stored.

    Examples
    --------
    >>> import verax as vx
    >>> score = vx.roc_auc([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9])
    >>> score.metric, round(float(score), 4)
    ('ROC AUC', 0.8333)
    """

    metric: str
    value: float
    interval: Interval
    parts: tuple[RankPart, ...]
    average: str
    notes: tuple[str, ...]
    rows: Hidden[EventRows | ScannedRows]
    influence: Hidden[Floats]
    within: Maybe[float | None] = 0.0

    _facts = ("rows.n_rows", "rows.n_classes", "rows.n_groups")

    def __float__(self) -> float:
        return self.value

    @property
    def variance(self) -> float:
        """The variance of the value."""
        return float(self.rows.units.variances(self.influence[:, None])[0])

    def _frame(self) -> Table:
        """One line for the average and one per event."""
        columns = [Column("event", value="name"), Column("value"), Column("low high", value="interval")]
        return Table(columns, [RankPart("", self.value, self.interval), *self.parts])

    def _tables(self) -> list[Table]:
        prefix = "y " if self.rows.ordered else "class "
        parts = [RankPart(prefix + x.name, x.value, x.interval) for x in self.parts]
        lines = [RankPart(self.average, self.value, self.interval), *(parts if len(parts) > 1 else [])]
        columns = [Column("name", NO_HEADING, right=False), Column("value", self.metric, ".4f")]
        columns.append(Column("low high", interval_head(self.interval.confidence), ".4f", "interval"))
        return [Table(columns, lines)]

    def _heading(self) -> str:
        return self.rows.heading(self.metric)

    def _notes(self) -> list[str]:
        """Notes for readers of the table."""
        caution = [f"Caution: {self.interval.caution}."] if self.interval.caution else []
        if self.within:
            caution.append(f"From bins of forecasts: within {bound(self.within)} of the exact value.")
        return [*self.notes, *caution, *self.remarks]


class RankScores(WithVerdict, Tabled, MaySkip, Mapping[str, RankScore]):
    """The scores of several models on the same rows, by their names, and their paired differences.

    Parameters
    ----------
    scores : mapping of str to RankScore
        The score of each model.

    Examples
    --------
    >>> import verax as vx
    >>> y = [0, 0, 1, 1, 1]
    >>> scores = vx.roc_auc(y, {"a": [0.1, 0.4, 0.35, 0.8, 0.9], "b": [0.5, 0.4, 0.3, 0.8, 0.2]})
    >>> round(scores.difference("a", "b").difference, 4)
    0.5
    """

    _facts = ("_scores", "differences")

    _scores: dict[str, RankScore]

    def __init__(self, scores: Mapping[str, RankScore]) -> None:
        self._scores = dict(scores)

    def __getitem__(self, name: str) -> RankScore:
        return looked_up(self._scores, name, "model")

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def differences(self) -> list[Difference]:
        """The difference of every pair of models, a minus b: positive if a is better. p-values by Holm."""
        gaps = [(a, b, *self._gap(a, b)) for a, b in combinations(self, 2)]
        adjusted = holm(np.array([p for *_, p in gaps]))
        return [
            Difference(a, b, gap, interval, p, float(q), higher_is_better=True)
            for (a, b, gap, interval, p), q in zip(gaps, adjusted, strict=True)
        ]

    def difference(self, a: str, b: str) -> Difference:
        """The difference of two models, in the direction asked for; its p-value is adjusted for all pairs.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.

        Returns
        -------
        Difference
            The value of `a` minus that of `b`, with interval and p-value.
        """
        return pair_of(self.differences, a, b, f"; the models are {', '.join(self)}")

    def _findings(self) -> list[Finding]:
        values = {name: (score.value, score.interval) for name, score in self.items()}
        known = {name: entry for name, entry in values.items() if not math.isnan(entry[0])}
        if not known:
            return []
        return Standings.of_values(known, self.difference, self._first().metric).findings(lambda *_: None)

    def _tested_together(self) -> str:
        return TESTED

    def _gap(self, a: str, b: str) -> tuple[float, Interval, float]:
        first, second = self[a], self[b]
        units = first.rows.units
        gap = first.value - second.value
        variance = float(units.variances((first.influence - second.influence)[:, None])[0])
        caution = "" if units.grouped else unequal(units.freedom + 1, units.n)
        interval = units.interval(gap, variance, first.interval.confidence, caution=caution)
        return gap, interval, units.p_value(gap, variance)

    def _given(self) -> dict[str, Any]:
        return {"scores": self._scores}

    def _first(self) -> RankScore:
        return next(iter(self.values()))

    def _heading(self) -> str:
        return f"{self._first()._heading()}; {self._first().average}"

    def _tables(self) -> list[Table]:
        head = interval_head(self._first().interval.confidence)
        scores = Table(
            [
                Column("model", "model", right=False, value=lambda item: item[0]),
                Column("value", self._first().metric, ".4f", lambda item: item[1].value),
                Column("low high", head, ".4f", lambda item: item[1].interval),
            ],
            list(self.items()),
        )
        pairs = [
            Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
            Column("difference", "difference", "+.4f"),
            Column("low high", head, ".4f", "interval"),
            Column("p_value", "p", ".2g"),
            Column("p_adjusted", "p (Holm)", ".2g"),
        ]
        return [scores, Table(pairs, self.differences)] if len(self) > 1 else [scores]

    def _notes(self) -> list[str]:
        return [*self._first()._notes(), *self.remarks]
