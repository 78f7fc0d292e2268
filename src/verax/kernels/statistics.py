"""The statistics of a row of forecasts: the one table that all code about them is derived from.

The passes fill them, the rules' formulas read them, the kernels keep them in a buffer with one row per
statistic. `PLACE` says which row; nobody counts rows by hand. A new statistic is a line here, its
computation in `engines.stats.reduce_rows` and in the kernels, and, where it can be trained on, its
derivative in `scores.gradients.statistics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["outcome", "mode", "cumulative", "list", "set", "grade"]
# What the numbers of a row are: probabilities, logits, or numbers to be divided by their sum.
Form = Literal["probabilities", "logits", "rescaled"]


@dataclass(frozen=True)
class Statistic:
    """A number that a row is reduced to.

    Attributes
    ----------
    name : str
        The attribute of `RowStats` that holds it.
    family : str
        What it is computed with: the probability of the outcome, the most likely class, the cumulative
        probabilities of ordered classes, a top list, or a prediction set.
    meaning : str
        What it is.
    buffered : bool
        Whether the kernels keep it in their buffer of floats.
    """

    name: str
    family: Family
    meaning: str
    buffered: bool = True


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic("p_true", "outcome", "probability of the outcome"),
        Statistic(
            "log_true",
            "outcome",
            "its logarithm, from the logits where there are any, so that it does not underflow",
            buffered=False,
        ),
        Statistic("rest_sq", "outcome", "sum of the squared probabilities of all other classes"),
        Statistic("cdf_l2", "cumulative", "sum over the K-1 thresholds of the squared cumulative error"),
        Statistic("cdf_l1", "cumulative", "sum over the thresholds of the absolute cumulative error"),
        Statistic(
            "cdf_log",
            "cumulative",
            "sum over the thresholds of minus the log probability of the side the outcome is on",
        ),
        Statistic("top", "mode", "largest probability"),
        Statistic("hit", "mode", "1/t if the outcome is among the t most likely classes, else 0"),
        Statistic(
            "answered",
            "mode",
            "the same of the classes that a top list puts first, valid or not; for other rows it is `hit`",
        ),
        Statistic("hit_lowest", "mode", "1 if the outcome is the first of the most likely classes, else 0"),
        Statistic("decision", "mode", "the first of the most likely classes", buffered=False),
        Statistic("invalid", "list", "1 if the row is a top list that no distribution has, else 0"),
        Statistic("right", "list", "1 if the outcome is the class that the list decides for, else 0"),
        Statistic("listed", "list", "1 if the outcome is listed, else 0"),
        Statistic("length", "list", "how many classes are listed"),
        Statistic("unaccounted", "list", "the probability that is left for all classes not listed"),
        Statistic("above", "list", "how many listed classes have more confidence than the listed outcome"),
        Statistic("tied", "list", "how many listed classes, the outcome included, have its confidence"),
        Statistic("size", "set", "how many classes the set has", buffered=False),
        Statistic("missed", "set", "1 if the outcome is not in the set, else 0", buffered=False),
        Statistic(
            "span",
            "set",
            "the steps from the lowest class of the set to the highest; infinite for an empty set",
            buffered=False,
        ),
        Statistic(
            "beyond",
            "set",
            "the steps from the outcome to the nearest end of the set, 0 between them; infinite for an "
            "empty set",
            buffered=False,
        ),
        Statistic("grade", "grade", "the grade of an answer", buffered=False),
    )
}

# The row of each statistic in the kernels' buffer.
PLACE = {name: row for row, name in enumerate(s.name for s in STATISTICS.values() if s.buffered)}


def places(*names: str) -> list[int]:
    """The rows of some statistics in the buffer."""
    return [PLACE[name] for name in names]


def family(name: Family) -> frozenset[str]:
    """The names of the statistics that are computed together."""
    return frozenset(s.name for s in STATISTICS.values() if s.family == name)


MODE, CUMULATIVE = family("mode"), family("cumulative")
OF_SETS, OF_GRADES = family("set"), family("grade")
# What needs logarithms of probabilities, and so the logits where there are any.
LOGARITHMS = frozenset({"log_true", "cdf_log"})
