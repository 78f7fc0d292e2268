"""Measures of probabilities that need all rows: what they are called, and which way is better."""

from __future__ import annotations

from verax.engines.stats import Formula
from verax.scores.combinators import Padded
from verax.scores.coverage import ListMetric, TopKError
from verax.scores.metrics import HIGHER, LOWER, METRICS
from verax.scores.rules import ZeroOne

# Where the best value is in between.
NEAR_ONE, NEAR_ZERO = "nearest to 1 is best", "nearest to 0 is best"
# The better direction and the meaning of each measure, in the order in which they are shown.
MEASURES = {
    "skill": (HIGHER, "loss reduction versus predicting class frequencies; 1 is perfect"),
    "miscalibration": (LOWER, "in-sample isotonic gain (biased upward)"),
    "discrimination": (HIGHER, "gain over class frequencies after recalibration"),
    "ece": (LOWER, "mean gap of confidence and accuracy, 15 bins; not a proper score"),
    "smooth_ece": (LOWER, "mean gap of confidence and accuracy, no bins; not a proper score"),
    "auc": (HIGHER, "area under the ROC curve; 0.5 is chance"),
    "average_precision": (HIGHER, "area under the precision-recall curve"),
    "c_index": (HIGHER, "share of pairs that are ranked right; 0.5 is chance"),
    "slope": (NEAR_ONE, "calibration slope: below 1 overconfident, above 1 underconfident"),
    "intercept": (NEAR_ZERO, "intercept of the calibration line"),
    "in_the_large": (NEAR_ZERO, "calibration in the large: above 0 forecasts are too low"),
}
# The better direction of everything that a card knows beside rules.
ORIENTATIONS: dict[str, str] = {
    **{name: metric.orientation for name, metric in METRICS.items()},
    **{name: way for name, (way, _) in MEASURES.items()},
}
# Their meaning for top lists, where the first listed class is the answer.
MEASURES_OF_LISTS = MEASURES | {
    "skill": (HIGHER, "loss reduction versus a uniform guess; 1 is perfect"),
    "discrimination": (HIGHER, "gain over constant lists after recalibration"),
    "ece": (LOWER, "mean gap of confidence in the first class and accuracy, 15 bins; not a proper score"),
    "smooth_ece": (
        LOWER,
        "mean gap of confidence in the first class and accuracy, no bins; not a proper score",
    ),
}
# Measures of any number of classes.
OF_ALL = ("skill", "miscalibration", "discrimination", "ece")
# Measures of top lists: the smooth error where it is asked for.
OF_LISTS = (*OF_ALL, "smooth_ece")
# Measures of two classes; of more classes, ranking scores where they are asked for.
FOR_TWO = ("auc", "average_precision", "slope", "intercept", "in_the_large")
# Measures that an interval is known for.
WITH_INTERVAL = ("skill", "miscalibration", "discrimination", *FOR_TWO, "c_index")


def as_loss(name: str, value: float) -> float:
    """A metric or measure as a number of which lower is better: its distance from the best value."""
    way = ORIENTATIONS[name]
    if way in (LOWER, HIGHER):
        return value if way == LOWER else -value
    return abs(value - 1) if way == NEAR_ONE else abs(value)


def is_ordinal(name: str) -> bool:
    """Whether a metric or measure depends on the order of the classes."""
    return name == "c_index" or (name in METRICS and METRICS[name].ordinal)


def is_share(measure: Formula) -> bool:
    """Whether the mean of a measure is a share of rows: it is 0 or 1 in each row, but for ties."""
    inner = measure.rule if isinstance(measure, Padded) else measure
    return isinstance(inner, (ZeroOne, TopKError)) or (
        isinstance(inner, ListMetric) and inner.statistic in ("right", "listed", "invalid")
    )
