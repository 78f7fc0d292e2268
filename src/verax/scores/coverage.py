"""Metrics of top lists besides scores: coverage, length and top-k errors."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from verax.common.checks import as_float, check_count
from verax.engines.stats import RowStats
from verax.engines.tally import RuleSums
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Array
from verax.inputs.handles import Handle, check_alone, refuse_graded
from verax.inputs.lists.toplists import TopLists
from verax.scores.base import mean_of_handle
from verax.scores.metrics import METRICS

# The lengths for which cards have the top-k error; the function has it for any.
TOP_K = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class ListMetric:
    """The average of one statistic of the lists."""

    name: str
    statistic: str
    summary: str
    orientation: Literal["lower is better", "higher is better", "neither is better"]

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.statistic})

    def formula(self, stats: RowStats) -> Array:
        return 1 * getattr(stats, self.statistic)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        """The smallest and the largest value."""
        return 0.0, as_float(n_classes) if self.statistic == "length" else 1.0


@dataclass(frozen=True)
class TopKError:
    """Whether the outcome is not among the k most confident classes; ties for the last places share them."""

    k: int

    needs: ClassVar[frozenset[str]] = frozenset({"listed", "above", "tied"})
    orientation: ClassVar[str] = "lower is better"

    @property
    def name(self) -> str:
        return f"top_{self.k}_error"

    @property
    def summary(self) -> str:
        return "outcome not listed first" if self.k == 1 else f"outcome not among the first {self.k}"

    def formula(self, stats: RowStats) -> Array:
        xp = stats.xp
        places = xp.minimum(xp.maximum(self.k - stats.above, 0.0), stats.tied)
        # `tied` is 0 for an unlisted outcome; the maximum avoids dividing by it.
        return 1 - stats.listed * places / xp.maximum(stats.tied, 1.0)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        """The smallest and the largest value."""
        return 0.0, 1.0


@dataclass(frozen=True)
class OneMinus:
    """One minus a metric: errors of accuracies, and the other way round."""

    name: str
    of: ListMetric | TopKError
    summary: str
    orientation: Literal["lower is better", "higher is better"]

    @property
    def needs(self) -> frozenset[str]:
        return self.of.needs

    def formula(self, stats: RowStats) -> Array:
        return 1 - self.of.formula(stats)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        """The smallest and the largest value."""
        least, most = self.of.bounds(n_classes)
        return 1 - most, 1 - least


RowMetric = ListMetric | TopKError | OneMinus

LIST_METRICS: tuple[ListMetric | TopKError, ...] = (
    ListMetric("accuracy", "right", "share of right answers", "higher is better"),
    ListMetric("coverage", "listed", "share of outcomes that are listed", "higher is better"),
    ListMetric("length", "length", "classes listed", "neither is better"),
    ListMetric("unaccounted", "unaccounted", "probability left to unlisted classes", "neither is better"),
    ListMetric("invalid", "invalid", "share of lists that cannot be true", "lower is better"),
    *(TopKError(k) for k in TOP_K),
)


# Those of which more is better or worse, so that a curve can rise or fall for the better.
_NAMED = {
    metric.name: metric
    for metric in LIST_METRICS
    if isinstance(metric, ListMetric) and metric.orientation != "neither is better"
}
_TOP = re.compile(r"top_([1-9][0-9]{0,17})_(accuracy|error)")


def find_list_metric(name: object) -> RowMetric:
    """The metric of top lists of this name: a mean over rows that needs no full distribution.

    >>> find_list_metric("top_5_accuracy").summary
    'outcome among the first 5'
    """
    text = name if isinstance(name, str) else ""
    if text in _NAMED:
        return _NAMED[text]
    if text == "error":
        return OneMinus("error", _NAMED["accuracy"], "share of wrong answers", "lower is better")
    if match := _TOP.fullmatch(text):
        error = TopKError(int(match[1]))
        if match[2] == "error":
            return error
        return OneMinus(text, error, f"outcome among the first {error.k}", "higher is better")
    found = f"it is {show(name)}"
    if text in METRICS or callable(name):
        what = "a decision or the order of the classes" if text else "all probabilities"
        found = f"{show(name)} needs {what}, which a top list need not give"
    raise InputError(
        f"must be a rule or one of {', '.join(_NAMED)}, error, top_5_accuracy and top_5_error (any number) "
        "for top lists",
        argument="metric",
        found=found,
        values=[name],
    )


def refuse_costs(argument: str, costs: object | None) -> None:
    """Refuse costs of decisions for top lists."""
    if costs is not None:
        raise InputError(
            "cannot be used with top lists",
            argument=argument,
            found="costs need a decision for every row, which a top list need not give",
            values=[costs],
        )


def top_k_error(y: object, lists: object = None, k: int = 1, *, weights: object | None = None) -> float:
    """Compute the share of outcomes not among the `k` most confident classes of their list.

    Lower is better; from 0 to 1. It is consistent for lists of k classes, but depends only on which
    classes are listed, not on their probabilities. Equally confident classes share the last places.
    Lists shorter than `k` are used as they are.

    Parameters
    ----------
    y : array_like of shape (N,), or Handle
        Outcomes: class positions, or labels of the lists. Or top lists that `scan` has opened, in place of
        `y`, `lists` and `weights`.
    lists : TopLists, optional
        A list of classes with their confidences for each row.
    k : int, default 1
        Number of classes of each list that count.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.

    Returns
    -------
    float
        The weighted share.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.3}, {1: 0.4, 2: 0.4}], n_classes=4)
    >>> vx.top_k_error([1, 2], lists, 1), vx.top_k_error([1, 2], lists, 2)
    (0.75, 0.0)
    """
    check_count("k", k, least=0)
    # No list is longer than the largest int64.
    metric = TopKError(min(int(k), 2**62))
    if isinstance(y, Handle):
        given = [name for name, v in (("lists", lists), ("weights", weights)) if v is not None]
        check_alone("top_k_error", inspect.signature(top_k_error), y, given)
        refuse_graded(y)
        if not y.lists:
            found = f"{y.name} has distributions"
            raise InputError("must be top lists", argument="y", kind="type", found=found)
        return mean_of_handle(metric, y)
    if not isinstance(lists, TopLists):
        advice = Remedy("TopLists.from_probabilities(p, k) makes them of probabilities.", python_only=True)
        raise InputError(
            f"must be TopLists, not {show(lists)}", argument="lists", kind="type", remedies=[advice]
        )
    rows = lists.with_outcomes(y, weights=weights)
    tally = RuleSums([metric], rows.n_classes, counts=False).update(rows)
    return float(tally.moments.mean[0])
