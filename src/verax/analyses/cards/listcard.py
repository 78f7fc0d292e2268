"""The scorecard of top lists: the scores, and how much of the truth the lists hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.common.caching import cached_property
from verax.common.checks import in_digits
from verax.common.packing import kind_in
from verax.common.specs import Text, Whole
from verax.common.summaries import register
from verax.engines.stats import Formula
from verax.engines.tally import RuleSums
from verax.inference.intervals import Interval, Resampling
from verax.inputs.groups import in_words
from verax.inputs.lists.rows import NOT_FINED, ListFaults, ListRows
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded
from verax.scores.coverage import LIST_METRICS, TOP_K, ListMetric, TopKError, refuse_costs
from verax.scores.registry import padded_rules, parse


def score_lists(
    rows: ListRows, rules: Sequence[Rule] | None, costs: object | None, plan: Resampling
) -> ListCard:
    """The card of lists and their outcomes, by the given rules or all applicable ones."""
    refuse_costs("costs", costs)
    given = padded_rules() if rules is None else rules
    chosen: list[Formula] = [rule if {"invalid", "answered"} & rule.needs else padded(rule) for rule in given]
    tally = RuleSums([*chosen, *LIST_METRICS], rows.n_classes, decisions=False).update(rows)
    longest, faults = int(rows.lists.lengths.max(initial=0)), rows.faults
    return ListCard(
        tally, resampling=plan, n_invalid=faults.n_invalid, longest=longest, unmatched=faults.unmatched
    )


def card_from_bytes(data: bytes) -> Scorecard:
    """A card of probabilities or of top lists from its bytes."""
    return (ListCard if kind_in(data) == ListCard.kind else Scorecard).from_bytes(data)


@register("card of top lists")
@dataclass(frozen=True, repr=False, eq=False)
class ListCard(Scorecard):
    """The scores of top lists, with what the lists cover. Cards of parts can be merged.

    `metrics` has coverage, mean length, mean unaccounted mass, share of invalid lists, accuracy and
    top-k errors, with intervals. There is no confusion table and no count of classes.

    Attributes
    ----------
    n_invalid : int
        How many lists are invalid, and were scored as their largest valid sublist.
    longest : int
        The length of the longest list.
    unmatched : str
        Where no outcome is the name of a listed class: an example of both.

    See Also
    --------
    Scorecard : What it shares with other cards.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}, {1: 0.7, 2: 0.2}], n_classes=4)
    >>> card = vx.evaluate([0, 3], lists)
    >>> card.longest, card.n_invalid, card["coverage"]
    (2, 0, 0.5)
    """

    _stored = MappingProxyType(
        {"n_invalid": Whole(most="n_rows"), "longest": Whole(), "unmatched": Text("first")}
    )

    n_invalid: int = 0
    longest: int = 0
    unmatched: str = ""

    _absent = ("class_counts", "confusion", "ordered", "classes")

    def merge(self, other: Scorecard) -> Self:
        """The card of the lists of both, in whatever order cards are merged.

        Parameters
        ----------
        other : ListCard
            The card of other lists.

        Returns
        -------
        ListCard
            A new card.
        """
        merged = super().merge(other)
        assert isinstance(other, ListCard)
        of_lists = self.of_lists.merge(other.of_lists)
        return replace(
            merged,
            n_invalid=of_lists.n_invalid,
            longest=max(self.longest, other.longest),
            unmatched=of_lists.unmatched,
        )

    @property
    def of_lists(self) -> ListFaults:
        """Facts on the lists beside their scores."""
        return ListFaults(self.n_rows, self.n_invalid, self.unmatched)

    def __getitem__(self, name: str | Rule) -> float:
        """The mean of a metric, of a rule, or of that rule padded."""
        if isinstance(name, str) and name in self.metrics:
            return self.metrics[name].mean
        wanted = parse(name)
        for score in self.scores.values():
            if score.rule == wanted or (isinstance(score.rule, Padded) and score.rule.rule == wanted):
                return score.mean
        known = ", ".join([*self.scores, *self.metrics])
        raise KeyError(f"{name!r} is not on this card; it has {known}")

    @cached_property
    def metrics(self) -> dict[str, CardLine]:
        """Coverage and accuracy of the lists, under the name of each measure."""
        results = {}
        for i, measure in enumerate(self.tally.rules):
            if isinstance(measure, (ListMetric, TopKError)) and self._is_of_use(measure):
                bounds = measure.bounds(self.n_classes)
                results[measure.name] = CardLine(
                    name=measure.name,
                    mean=float(self.tally.moments.mean[i]),
                    interval=self._interval(i, measure, bounds),
                    bounds=bounds,
                    orientation=measure.orientation,
                    summary=measure.summary,
                    std=float(self.tally.moments.std[i]),
                    guaranteed=self._intervals.guaranteed_mean(i),
                )
        return results

    def _interval(self, i: int, measure: ListMetric | TopKError, bounds: tuple[float, float]) -> Interval:
        """The interval of a measure; none for "all" or "no lists are invalid" where there are groups.

        Groups do not tell how a share varies that is the same in all, and how many there are says little of
        how lists were written.
        """
        if measure.name == "invalid" and self.n_groups is not None and not 0 < self.n_invalid < self.n_rows:
            confidence = self.resampling.confidence
            return Interval.undefined("the share is the same in all groups", confidence=confidence)
        return self._intervals.of_mean(i, bounds)

    def _is_of_use(self, measure: ListMetric | TopKError) -> bool:
        return isinstance(measure, ListMetric) or measure.k == TOP_K[0] or measure.k <= self.longest

    @property
    def coverage(self) -> float:
        """The weighted share of rows whose outcome is listed. Higher is better."""
        return self.metrics["coverage"].mean

    @property
    def mean_length(self) -> float:
        """The weighted mean number of listed classes."""
        return self.metrics["length"].mean

    @property
    def mean_unaccounted(self) -> float:
        """The weighted mean probability that the lists leave for all unlisted classes together."""
        return self.metrics["unaccounted"].mean

    @property
    def invalid_share(self) -> float:
        """The weighted share of invalid lists."""
        return self.metrics["invalid"].mean

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose list puts the outcome first, whatever its confidence.

        Of classes with the same confidence the one with the lowest index is first: classes in the order they
        were given in, other names sorted. An empty list has no answer and counts as wrong.
        """
        return self.metrics["accuracy"].mean

    @property
    def top_k_error(self) -> dict[int, float]:
        """The weighted share of outcomes not among the k most confident classes, for some k."""
        errors = (m for m in self.tally.rules if isinstance(m, TopKError))
        return {m.k: self.metrics[m.name].mean for m in errors if m.name in self.metrics}

    @property
    def confusion(self) -> None:
        """None: a list does not always say which class is most likely."""
        return None

    @property
    def class_counts(self) -> np.ndarray[Any, Any]:
        """Empty: there may be more classes than can be counted."""
        return np.zeros(0)

    def _heading(self) -> str:
        weighed = "" if self.weight == self.n_rows else f", total weight {self.weight:,.6g}"
        grouped = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        m = in_digits(self.n_classes)
        return f"verax scorecard of top lists: {self.n_rows:,} rows{grouped}, {m} classes{weighed}"

    def _notes(self) -> list[str]:
        notes = super()._notes()
        notes[0] += " Length and unaccounted mass are neither good nor bad."
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            fine = self._fine()
            notes.append(f"{some} invalid, scored as the largest valid sublist{fine}.")
            notes[-1] += f" {NOT_FINED}" if fine else ""
        return [*notes, *([self.unmatched] if self.unmatched else [])]

    def _fine(self) -> str:
        rules = [score.rule for score in self.scores.values() if isinstance(score.rule, Padded)]
        fines = {rule.fine for rule in rules if not rule.rule.answer_alone}
        return f" plus {fines.pop():g}" if len(fines) == 1 and fines != {0.0} else ""
