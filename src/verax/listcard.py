"""The scorecard of top lists: the scores, and how much of the truth the lists hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.combinators import Padded, padded
from verax.errors import VeraxError
from verax.measures import Measure, TopKError
from verax.registry import RULES, parse
from verax.rowstats import Formula, Rows
from verax.rule import Rule
from verax.scorecard import HIGHER, LOWER, Scorecard
from verax.tally import Tally
from verax.toplists import TopLists

# The lengths for which the card has the top-k error; top_k_error has it for any.
TOP_K = (1, 2, 3, 5, 10, 20)
_MEASURES: list[Formula] = [
    *(Measure("listed"), Measure("length"), Measure("unaccounted"), Measure("invalid"), Measure("hit")),
    *(TopKError(k) for k in TOP_K),
]


def padded_rules(invalid_penalty: float = 1.0) -> list[Padded]:
    """Every registered rule that top lists can be scored by, with the fine for invalid lists."""
    return [
        padded(rule, invalid_penalty)
        for rule in RULES.values()
        if rule.properties.symmetric.at(3) and rule.properties.proper.at(3) and not rule.ordinal
    ]


def score_lists(rows: Rows, lists: TopLists, rules: Sequence[Rule] | None) -> ListCard:
    """The card of lists that have met their outcomes; by every rule that fits if none are given."""
    chosen: Sequence[Rule] = padded_rules() if rules is None else rules
    tally = Tally([*chosen, *_MEASURES], lists.n_classes, decisions=False).update(rows)
    longest = int(lists.lengths.max())
    return ListCard(tally, n_invalid=lists.n_invalid, longest=longest)


@dataclass(frozen=True)
class ListCard(Scorecard):
    """The scores of top lists, with what the lists cover. Cards of parts can be merged.

    Besides what a `Scorecard` has (there is no confusion table and no count of classes):

    Attributes
    ----------
    n_invalid : how many lists are invalid, and were scored as their largest valid sublist.
    longest : the length of the longest list.
    """

    n_invalid: int = 0
    longest: int = 0

    def merge(self, other: Scorecard) -> ListCard:
        """The card of these lists followed by the other card's."""
        if not isinstance(other, ListCard):
            raise VeraxError("The card of top lists merges with cards of top lists only.")
        tally = self.tally.merge(other.tally)
        n_invalid, longest = self.n_invalid + other.n_invalid, max(self.longest, other.longest)
        return ListCard(tally, n_invalid=n_invalid, longest=longest)

    def __getitem__(self, name: str) -> float:
        """The mean of a rule, or of that rule padded."""
        wanted = parse(name)
        for score in self.scores.values():
            if score.rule == wanted or (isinstance(score.rule, Padded) and score.rule.rule == wanted):
                return score.mean
        raise KeyError(f"{name!r} is not on this card; it has {', '.join(self.scores)}")

    def _mean(self, measure: Measure | TopKError) -> float:
        return float(self.tally.moments.mean[self.tally.rules.index(measure)])

    @property
    def coverage(self) -> float:
        """The weighted share of rows whose outcome is listed. Higher is better."""
        return self._mean(Measure("listed"))

    @property
    def mean_length(self) -> float:
        """The weighted mean number of listed classes."""
        return self._mean(Measure("length"))

    @property
    def mean_unaccounted(self) -> float:
        """The weighted mean probability that the lists leave for all unlisted classes together."""
        return self._mean(Measure("unaccounted"))

    @property
    def invalid_share(self) -> float:
        """The weighted share of invalid lists."""
        return self._mean(Measure("invalid"))

    @property
    def top_k_error(self) -> dict[int, float]:
        """For some k the weighted share of outcomes not among the k most confident classes."""
        return {k: self._mean(TopKError(k)) for k in TOP_K if k == 1 or k <= self.longest}

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose most likely class was the outcome; equals share it."""
        return self._mean(Measure("hit"))

    @property
    def confusion(self) -> None:
        """None: a list need not say which class is most likely."""
        return None

    @property
    def class_counts(self) -> np.ndarray[Any, Any]:
        """Empty: there may be more classes than can be counted."""
        return np.zeros(0)

    def to_dict(self) -> dict[str, Any]:
        """Everything on the card as plain Python values."""
        result = super().to_dict()
        for name in ("class_counts", "confusion", "ordered", "classes"):
            del result[name]
        result["accuracy"]["ties"] = "shared"
        result["lists"] = {
            "coverage": {"mean": self.coverage, "orientation": HIGHER},
            "length": {"mean": self.mean_length, "longest": self.longest},
            "unaccounted": {"mean": self.mean_unaccounted},
            "invalid": {"count": self.n_invalid, "share": self.invalid_share},
            "top_k_error": {
                "orientation": LOWER,
                "ties": "shared",
                "mean": {str(k): error for k, error in self.top_k_error.items()},
            },
        }
        return result

    def _heading(self) -> str:
        weighed = "" if self.weight == self.n_rows else f", total weight {self.weight:,.6g}"
        m = f"{self.n_classes:,}" if self.n_classes < 10**15 else f"{float(self.n_classes):.4g}"
        return f"verax scorecard of top lists: {self.n_rows:,} lists, {m} classes{weighed}"

    def _notes(self) -> list[str]:
        errors = ", ".join(f"{100 * e:.2f} % (k={k})" for k, e in self.top_k_error.items())
        notes = [
            f"Listed: {self.mean_length:.4g} classes a row, with {1 - self.mean_unaccounted:.5f} of the "
            f"probability; the outcome in {100 * self.coverage:.2f} % of the rows (coverage).",
            f"Top-k error: {errors}.",
        ]
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            notes.append(f"{some} invalid, scored as the largest valid sublist{self._fine()}.")
        return [*super()._notes(), *notes]

    def _fine(self) -> str:
        fines = {getattr(score.rule, "invalid_penalty", 0.0) for score in self.scores.values()}
        return f" plus {fines.pop():g}" if len(fines) == 1 and fines != {0.0} else ""
