"""The rows of a card: what their sums say, and the rows themselves for what sums do not tell."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from verax.analyses.cards.lines import CardLine, CardMeasures, KnownMeasures
from verax.common.faces import Hidden
from verax.common.specs import Spec
from verax.engines.counts import Counts
from verax.engines.tally import RuleSums
from verax.errors import InputError, Remedy
from verax.inference.findings import NOTHING, Verdict
from verax.inference.intervals import Resampling
from verax.inputs.groups import GroupCount, check_several
from verax.scores.metrics import DecisionMetric

# Of more probabilities, measures that need all rows are computed where they are asked for.
KNOWN_UP_TO = 2**18


def check_whole(card: CardSums, source: str = "") -> None:
    """Refuse what a part of all rows may be, but not all of them: no rows, no weight, a single group."""
    if not card.n_rows:
        raise InputError("must have at least one row", argument="p", kind="length", source=source)
    if card.weight == 0:
        raise InputError("must not all be zero", argument="weights", source=source)
    if card.n_groups is not None:
        check_several(card.n_groups, source)


@dataclass(frozen=True, repr=False, eq=False)
class CardSums:
    """The fields of a card, and what the sums among them say of the rows: their number, weight and decisions.

    Attributes
    ----------
    tally : RuleSums
        The sums of the rows.
    classes : tuple or None
        Names of the classes, in order; None for positions.
    ordered : bool
        Whether the classes have an order.
    count_metrics : tuple of DecisionMetric
        The metrics of decisions on the card.
    resampling : Resampling
        How intervals are computed.
    """

    # What a class of cards stores beside these fields.
    _stored: ClassVar[Mapping[str, Spec]] = {}

    tally: Hidden[RuleSums]
    classes: tuple[Hashable, ...] | None = None
    ordered: bool = False
    count_metrics: Hidden[tuple[DecisionMetric, ...]] = ()
    resampling: Hidden[Resampling] = field(default_factory=Resampling)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.tally.n_rows

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.tally.n_classes

    @property
    def weight(self) -> float:
        """The sum of the weights; the number of rows if there were none."""
        return self.tally.weight

    @property
    def n_groups(self) -> GroupCount | None:
        """The number of clusters, of both kinds where there are two; None if rows stand for themselves."""
        return self.tally.n_groups

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish); without weights, all rows."""
        return self.tally.effective_rows(copies=self.resampling.copies)

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose most likely class was the outcome. Higher is better."""
        weight = float(self.tally.weights.high[0])
        return self._counts.n_correct / weight if weight else math.nan

    @property
    def confusion(self) -> np.ndarray[Any, Any] | None:
        """Weights by outcome (row) and decision (column); None beyond 1,024 classes."""
        table = self._counts.confusion
        return None if table is None else self.tally.unscaled(table)

    @property
    def class_counts(self) -> np.ndarray[Any, Any]:
        """The weight of each class among the outcomes."""
        return self.tally.unscaled(self._counts.per_class)

    @property
    def n_zero_probability(self) -> int:
        """How many outcomes had been given probability zero."""
        return self._counts.n_zero

    @property
    def zero_probability_rows(self) -> tuple[int, ...]:
        """The first 100 rows whose outcome had been given probability zero; none if numbers are unknown."""
        return tuple(self._counts.zero_rows)

    @property
    def _counts(self) -> Counts:
        assert self.tally.counts is not None
        return self.tally.counts


class MeasuredCard(CardSums):
    """A card that refers to its rows, or keeps what was computed of them: measures and the verdict."""

    @property
    def _of_rows(self) -> CardMeasures | None:
        """The source of measures that need the rows; None where these are not known."""
        kept = vars(self).get("known")
        if kept is None:
            return vars(self).get("_measures")
        return KnownMeasures({m.name: m for m in kept}, vars(self).get("judged", NOTHING))

    @property
    def verdict(self) -> Verdict:
        """The claims: whether the model beats class frequencies, whether it is calibrated, and
        what to do next.

        Each claim is licensed by a test (`verdict.findings`). The text is the same in the terminal, on the
        page and in JSON. It is computed when it is first asked for. Merged cards, and those of very many
        rows, hold sums only: they claim nothing.

        Examples
        --------
        >>> import verax as vx
        >>> verdict = vx.evaluate([0, 1, 1, 0] * 30, [0.2, 0.9, 0.6, 0.3] * 30).verdict
        >>> verdict.claims[0], verdict.partition(":")[0]
        ('better_than_reference', 'The model beats predicting class frequencies')
        """
        known = vars(self).get("_judge") or self._of_rows
        if known is None or not self.weight or isinstance(self.n_groups, tuple):
            return NOTHING
        verdict: Verdict = known.verdict
        return verdict

    def with_rows(self, measures: CardMeasures | None, judge: CardMeasures | None = None) -> Self:
        """The same card, which refers to its rows for measures that need them.

        Parameters
        ----------
        measures : CardMeasures or None
            The source of the measures.
        judge : CardMeasures, optional
            The source of the verdict; by default the same.

        Returns
        -------
        Scorecard
            The card itself.
        """
        # Not fields, so bypass the frozen check: they are no part of what the card says.
        object.__setattr__(self, "_measures", measures)
        object.__setattr__(self, "_judge", judge)
        return self

    def of_followed(self) -> Self:
        """The same card, of rows judged at a horizon: it is not saved, because it cannot be merged."""
        object.__setattr__(self, "_followed", True)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without the rows."""
        return {name: value for name, value in vars(self).items() if name not in ("_measures", "_judge")}

    def __copy__(self) -> Self:
        """A copy refers to the same rows."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    @property
    def measures(self) -> dict[str, CardLine]:
        """Skill, miscalibration, discrimination and ECE; of two classes also AUC and calibration slope.

        They are computed when they are first asked for, from the rows that the card refers to.
        """
        return dict(self._known_rows("measures").lines)

    @property
    def known_measures(self) -> dict[str, CardLine]:
        """The measures that go with the card into dicts, JSON and MLflow: of cards of not too many rows."""
        few = self._of_rows is not None and self.n_rows * self.n_classes <= KNOWN_UP_TO
        if not few or not self.weight or isinstance(self.n_groups, tuple):
            return {}
        try:
            return self.measures
        except InputError:
            # Saved summaries may lack what measures need.
            return {}

    def _known_rows(self, name: str) -> CardMeasures:
        if self._of_rows is None:
            how = "vx.roc_auc(y, p), vx.ece(y, p), vx.calibration_slope(y, p) or vx.decompose(y, p)"
            raise InputError(
                f"must be a card that knows its rows for {name}",
                argument="card",
                found="merged cards, and those of very many rows, hold sums only",
                remedies=[Remedy(f"Type {how}.", python_only=True)],
            )
        return self._of_rows
