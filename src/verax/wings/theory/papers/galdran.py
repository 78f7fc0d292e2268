"""Galdran (2023), "Performance Metrics for Probabilistic Ordinal Classifiers": its numbers, recomputed.

The images and networks were not released, so the tables can only be laid out again, for other
predictions. Grid, spacing and cost are not stated there. The convention used here (0 to 19 percent removed,
unit spacing, raw squared distance, most likely class) is a guess that `grid` supports for all rows together
and not for single tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from verax.scores.registry import abs_rps, brier, log_score, rps, sa_rps
from verax.scores.rules import SaRPS
from verax.wings.theory.papers.published import PublishedNumber

RULES = {"Brier": "brier", "Neg-Log": "log_score", "RPS": "rps", "sa-RPS": "sa_rps"}
REMOVED = tuple(Fraction(i, 100) for i in range(20))
REPLICATES = 50
# Table 1: the areas of four rules by two metrics.
AREAS: dict[str, Any] = {
    "rule": list(RULES.values()),
    "metric": ["qwk", "ec"],
    "removed": REMOVED,
    "area": "steps",
    "bootstrap": REPLICATES,
}

# Tables 2 to 8 (Table 1 is Table 2): the areas by kappa and by cost with their standard deviations, on TMED
# and then on Eyepacs, ordered by Brier, Neg-Log, RPS and sa-RPS.
TABLES = {
    "ConvNeXt": (
        (13.46, 0.35, 3.76, 0.21, 17.36, 0.04, 2.84, 0.07),
        (13.56, 0.35, 3.62, 0.20, 17.44, 0.04, 2.67, 0.07),
        (14.76, 0.28, 2.68, 0.14, 17.81, 0.03, 1.99, 0.04),
        (14.95, 0.25, 2.53, 0.12, 17.86, 0.03, 1.88, 0.04),
    ),
    "Swin-T": (
        (13.60, 0.39, 3.56, 0.25, 17.33, 0.04, 2.84, 0.07),
        (13.71, 0.39, 3.43, 0.25, 17.40, 0.04, 2.68, 0.06),
        (14.59, 0.30, 2.75, 0.18, 17.77, 0.03, 2.02, 0.05),
        (14.79, 0.26, 2.58, 0.15, 17.82, 0.03, 1.91, 0.04),
    ),
    "DenseNet": (
        (13.25, 0.35, 3.76, 0.20, 17.16, 0.05, 3.07, 0.08),
        (13.31, 0.34, 3.66, 0.20, 17.23, 0.05, 2.91, 0.07),
        (14.43, 0.28, 2.81, 0.15, 17.67, 0.03, 2.15, 0.05),
        (14.70, 0.23, 2.59, 0.11, 17.72, 0.03, 2.02, 0.04),
    ),
    "ResNet50": (
        (13.14, 0.44, 3.93, 0.27, 16.91, 0.05, 3.50, 0.08),
        (13.24, 0.43, 3.80, 0.26, 16.97, 0.05, 3.34, 0.07),
        (14.32, 0.34, 2.98, 0.19, 17.50, 0.03, 2.41, 0.04),
        (14.46, 0.30, 2.84, 0.16, 17.54, 0.03, 2.30, 0.04),
    ),
    "ResNet34": (
        (13.41, 0.41, 3.61, 0.23, 16.87, 0.05, 3.59, 0.08),
        (13.47, 0.41, 3.51, 0.22, 16.93, 0.05, 3.44, 0.08),
        (14.49, 0.33, 2.73, 0.16, 17.48, 0.04, 2.46, 0.05),
        (14.82, 0.29, 2.47, 0.13, 17.54, 0.03, 2.31, 0.05),
    ),
    "ResNet18": (
        (13.12, 0.33, 4.33, 0.23, 16.74, 0.06, 3.66, 0.08),
        (13.14, 0.34, 4.25, 0.24, 16.83, 0.05, 3.45, 0.08),
        (14.41, 0.27, 3.21, 0.17, 17.36, 0.04, 2.55, 0.05),
        (14.73, 0.23, 2.93, 0.14, 17.41, 0.04, 2.42, 0.05),
    ),
    "MobileNet": (
        (11.13, 0.43, 4.92, 0.23, 16.62, 0.05, 3.85, 0.07),
        (11.13, 0.43, 4.84, 0.23, 16.71, 0.05, 3.63, 0.07),
        (12.61, 0.36, 3.74, 0.17, 17.28, 0.04, 2.66, 0.05),
        (12.86, 0.33, 3.46, 0.15, 17.34, 0.03, 2.52, 0.04),
    ),
}
_DATA = {"TMED": slice(0, 4), "Eyepacs": slice(4, 8)}


def findings() -> list[PublishedNumber]:
    """The worked examples (Eqs. 3 to 7, Figs. 1 and 2), and what the text says of its tables."""
    return [*_examples(), *_tables()]


def _examples() -> list[PublishedNumber]:
    near, far = [[0.25, 0.75, 0]], [[0.25, 0, 0.75]]
    symmetric, asymmetric = [[0.3, 0.4, 0.3]], [[0.45, 0.5, 0.05]]
    third, belief, certain = [1 / 3] * 3, [3 / 5, 2 / 5], [1, 0]
    example, proper = "the-rps-of-the-first-example", "sa-rps-is-not-a-proper-scoring-rule"
    return [
        PublishedNumber("Eq. 3", "Brier of p1 minus that of p2", 0.0, brier([0], near) - brier([0], far)),
        PublishedNumber(
            "Eq. 3", "log score of p1 minus that of p2", 0.0, log_score([0], near) - log_score([0], far)
        ),
        PublishedNumber(
            "after Eq. 3",
            "the category that p2 favours, counted from 1",
            2.0,
            1.0 + int(np.argmax(far)),
            "p2 gives the second category nothing",
            example,
        ),
        PublishedNumber(
            "after Eq. 4, Fig. 1",
            "RPS of p1 = (1/4, 3/4, 0)",
            1 / 8,
            rps([0], near),
            "the printed value belongs to (1/2, 1/2, 0)",
            example,
        ),
        PublishedNumber(
            "after Eq. 4, Fig. 1",
            "RPS of p2 = (1/4, 0, 3/4)",
            1 / 4,
            rps([0], far),
            "the printed value belongs to (1/2, 0, 1/2)",
            example,
        ),
        PublishedNumber(
            "after Eq. 4",
            "RPS over Brier for two classes",
            1.0,
            rps([0], [[0.7, 0.3]]) / brier([0], [[0.7, 0.3]]),
            "half the Brier score of Eq. 1",
            "rps-and-brier-for-two-classes",
        ),
        PublishedNumber("Eq. 5", "RPS of (1, 0, 0), outcome 0", 0.0, rps([0], [[1, 0, 0]])),
        PublishedNumber("Eq. 5", "RPS of (0, 1, 0), outcome 0", 0.5, rps([0], [[0, 1, 0]])),
        PublishedNumber("Eq. 5", "RPS of (0, 0, 1), outcome 0", 1.0, rps([0], [[0, 0, 1]])),
        PublishedNumber("Eq. 6, Fig. 2", "RPS of (0.30, 0.40, 0.30), outcome 1", 0.09, rps([1], symmetric)),
        PublishedNumber(
            "Eq. 6, Fig. 2", "RPS of (0.45, 0.50, 0.05), outcome 1", 0.1025, rps([1], asymmetric)
        ),
        PublishedNumber(
            "2.3",
            "sum of p_asym = (1/10, 5/10, 9/10)",
            1.0,
            float(Fraction(1 + 5 + 9, 10)),
            "Eq. 6 has (9/20, 1/2, 1/20)",
            "the-asymmetric-forecast",
        ),
        PublishedNumber(
            "Fig. 2",
            "sa-RPS: (0.45, 0.50, 0.05) minus (0.30, 0.40, 0.30), outcome 1",
            "< 0",
            sa_rps([1], asymmetric) - sa_rps([1], symmetric),
        ),
        PublishedNumber(
            "Eq. 7",
            "largest value for three classes",
            1.0,
            SaRPS("eq7")([0], [[0, 0, 1]]),
            "Eq. 7 reaches K-1; divide inside the square",
            "the-range-of-sa-rps",
        ),
        PublishedNumber(
            "3.1",
            "sa-RPS, truth uniform: expected loss of the truth minus that of the middle class",
            "< 0",
            sa_rps.entropy(third) - sa_rps.expected([0, 1, 0], third),
            "sa-RPS is not proper: misreporting pays",
            proper,
        ),
        PublishedNumber(
            "2.1",
            "expected distance, truth (3/5, 2/5): loss of the truth minus that of (1, 0)",
            "<= 0",
            abs_rps.entropy(belief) - abs_rps.expected(certain, belief),
            "the argument holds for this score, which is not proper",
            "what-proves-propriety",
        ),
    ]


def _tables() -> list[PublishedNumber]:
    values = np.array(list(TABLES.values()))
    overlaps, measured = "ranges-that-do-overlap", "what-was-measured"
    far_rules = [_overlapping(rule, data) for rule in (0, 1) for data in _DATA]
    best = [
        (areas[:, :3, 0] >= areas[:, 3:, 0]).sum() + (areas[:, :3, 2] <= areas[:, 3:, 2]).sum()
        for areas in (values[..., columns] for columns in _DATA.values())
    ]
    kappa, cost = _overlapping(2, "Eyepacs")
    needs = "the images, networks and predictions were not released"
    return [
        PublishedNumber("Tables 2-8", "areas where sa-RPS is not best", 0.0, float(sum(best))),
        PublishedNumber(
            "3.3",
            "ranges of Brier or Neg-Log that overlap that of sa-RPS",
            0.0,
            float(sum(map(sum, far_rules))),
        ),
        PublishedNumber("3.3", "Eyepacs: ranges of RPS and sa-RPS that overlap, by cost", 0.0, float(cost)),
        PublishedNumber(
            "3.3",
            "Eyepacs: ranges of RPS and sa-RPS that overlap, by kappa",
            0.0,
            float(kappa),
            "at one standard deviation they overlap in every table",
            overlaps,
        ),
        PublishedNumber(
            "appendix",
            "networks in Tables 2 to 8",
            6.0,
            float(len(TABLES)),
            "Table 6, ResNet34, is not in the text",
            measured,
        ),
        PublishedNumber("abstract", "data sets reported", 3.0, float(len(_DATA)), "TMED, Eyepacs", measured),
        PublishedNumber(
            "abstract", "grading problems reported", 4.0, float(len(_DATA)), "one each", measured
        ),
        PublishedNumber("Tables 1-8", "the areas themselves", "table", None, needs),
        PublishedNumber("Fig. 3", "worst rows by three rules", "figure", None, needs),
        PublishedNumber("Fig. 4", "retained-samples curves", "figure", None, needs),
    ]


def _overlapping(rule: int, data: str) -> tuple[int, int]:
    """The number of tables in which mean ± sd of a rule overlaps that of sa-RPS, by kappa and by cost."""
    areas = np.array(list(TABLES.values()))[:, [rule, 3], _DATA[data]]
    other, best = areas[:, 0], areas[:, 1]
    kappa = other[:, 0] + other[:, 1] >= best[:, 0] - best[:, 1]
    cost = other[:, 2] - other[:, 3] <= best[:, 2] + best[:, 3]
    return int(kappa.sum()), int(cost.sum())


@dataclass(frozen=True)
class Grid:
    """The grid that the tables imply: the area by kappa at which a line gives cost 0.

    If costs are squared distances, the area by cost is proportional to W minus the area by kappa, where W is
    the largest area by kappa: 19 for 20 points at unit spacing.
    """

    data: str
    all_rows: float
    by_table: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain Python values."""
        return {"data": self.data, "all_rows": self.all_rows, "by_table": list(self.by_table)}

    def __str__(self) -> str:
        low, high = min(self.by_table), max(self.by_table)
        return f"{self.data}: {self.all_rows:.2f} from all rows, {low:.2f} to {high:.2f} from single tables"


def grid() -> list[Grid]:
    """The line through the areas by kappa and by cost, for all rows of a data set and for each table."""
    lines = []
    for data, columns in _DATA.items():
        areas = np.array(list(TABLES.values()))[..., columns]
        zeros = [_zero(rows) for rows in areas]
        lines.append(Grid(data, _zero(areas.reshape(-1, 4)), tuple(zeros)))
    return lines


def _zero(rows: np.ndarray[Any, Any]) -> float:
    slope, intercept = np.polyfit(rows[:, 0], rows[:, 2], 1)
    return float(-intercept / slope)
