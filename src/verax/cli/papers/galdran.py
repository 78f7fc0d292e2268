"""Galdran (2023), "Performance Metrics for Probabilistic Ordinal Classifiers": its numbers, recomputed.

The images and networks were not released, so the tables can only be laid out again, for other
predictions. Grid, spacing and cost are not stated there; the convention used here (0 to 19 percent
removed, unit spacing, raw squared distance, most likely class) is the one that fits all seven tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from verax.analyses.retention.curves import retention
from verax.analyses.retention.result import RetentionCurves
from verax.cli.papers.number import PublishedNumber
from verax.scores.registry import brier, log_score, rps, sa_rps
from verax.scores.rules import SaRPS

if TYPE_CHECKING:
    from verax.files import Predictions

RULES = {"Brier": "brier", "Neg-Log": "log_score", "RPS": "rps", "sa-RPS": "sa_rps"}
REMOVED = tuple(Fraction(i, 100) for i in range(20))
REPLICATES = 50


def findings() -> list[PublishedNumber]:
    """The worked examples (Eqs. 3 to 7, Figs. 1 and 2)."""
    near, far = [[0.25, 0.75, 0]], [[0.25, 0, 0.75]]
    symmetric, asymmetric = [[0.3, 0.4, 0.3]], [[0.45, 0.5, 0.05]]
    third = [1 / 3] * 3
    wrong_rps = "the printed value belongs to (1/2, 1/2, 0)"
    far_rps = "the printed value belongs to (1/2, 0, 1/2)"
    return [
        PublishedNumber(
            "Eq. 3", "Brier of p1 = (1/4, 3/4, 0)", None, brier([0], near), "the same for p1 and p2"
        ),
        PublishedNumber(
            "Eq. 3", "Brier of p2 = (1/4, 0, 3/4)", None, brier([0], far), "p2 favours the third class"
        ),
        PublishedNumber("Eq. 3", "log score of p1 and p2", None, log_score([0], near)),
        PublishedNumber("after Eq. 4, Fig. 1", "RPS of p1", 1 / 8, rps([0], near), wrong_rps),
        PublishedNumber("after Eq. 4, Fig. 1", "RPS of p2", 1 / 4, rps([0], far), far_rps),
        PublishedNumber(
            "after Eq. 4",
            "RPS over Brier for two classes",
            1.0,
            rps([0], [[0.7, 0.3]]) / brier([0], [[0.7, 0.3]]),
            "half the Brier score of Eq. 1",
        ),
        PublishedNumber("Eq. 5", "RPS of (1, 0, 0), outcome 0", 0.0, rps([0], [[1, 0, 0]])),
        PublishedNumber("Eq. 5", "RPS of (0, 1, 0), outcome 0", 0.5, rps([0], [[0, 1, 0]])),
        PublishedNumber("Eq. 5", "RPS of (0, 0, 1), outcome 0", 1.0, rps([0], [[0, 0, 1]])),
        PublishedNumber("Eq. 6, Fig. 2", "RPS of (0.30, 0.40, 0.30), outcome 1", 0.09, rps([1], symmetric)),
        PublishedNumber(
            "Eq. 6, Fig. 2",
            "RPS of (0.45, 0.50, 0.05), outcome 1",
            0.1025,
            rps([1], asymmetric),
            "the text prints (1/10, 5/10, 9/10), which sums to 3/2",
        ),
        PublishedNumber(
            "Fig. 2", "sa-RPS of (0.30, 0.40, 0.30), outcome 1", None, sa_rps([1], symmetric), "scale `unit`"
        ),
        PublishedNumber("Fig. 2", "sa-RPS of (0.45, 0.50, 0.05), outcome 1", None, sa_rps([1], asymmetric)),
        PublishedNumber(
            "Eq. 7",
            "largest value for three classes",
            1.0,
            SaRPS("eq7")([0], [[0, 0, 1]]),
            "Eq. 7 reaches K-1; divide inside the square",
        ),
        PublishedNumber(
            "2.3",
            "sa-RPS, truth uniform: expected loss of the truth",
            None,
            sa_rps.entropy(third),
            "sa-RPS is not proper:",
        ),
        PublishedNumber(
            "2.3",
            "sa-RPS, truth uniform: of all mass in the middle",
            None,
            sa_rps.expected([0, 1, 0], third),
            "dishonesty pays",
        ),
    ]


def read_predictions(path: Path) -> Predictions:
    """The rows of a file of predictions, such as an .npz file with `probs` and `labels`."""
    from verax import files

    rows = files.read(path, ordered=True)
    files.forecasts_of(rows, ordered=True).check()
    return rows


def retained_areas(
    y: object,
    p: object,
    *,
    classes: Sequence[Hashable] | None = None,
    groups: object | None = None,
    seed: int = 0,
) -> RetentionCurves:
    """The areas of Galdran's tables for these predictions: four rules by two metrics, 50 replicates."""
    curves = retention(
        y,
        p,
        rule=list(RULES.values()),
        metric=["qwk", "ec"],
        removed=REMOVED,
        area="steps",
        bootstrap=REPLICATES,
        classes=classes,
        groups=groups,
        seed=seed,
    )
    assert isinstance(curves, RetentionCurves)
    return curves
