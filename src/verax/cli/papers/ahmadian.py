"""Ahmadian, Ghatee and Wahlström (2025), superior scoring rules: worked numbers, recomputed.

Their tables need the networks; studies/selection.md asks the same question of seven of their data sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from verax import compat
from verax.cli.papers.number import PublishedNumber
from verax.scores.combinators import Penalized, penalized
from verax.scores.registry import brier, log_score, pbs, pll
from verax.scores.rules import Brier

# The two forecasts that the paper begins with, when the second of three classes happens.
_RIGHT, _WRONG = [[0.33, 0.34, 0.33]], [[0.51, 0.49, 0.0]]
_TRUTH, _UNIFORM = (3 / 5, 2 / 5), (1 / 2, 1 / 2)


def findings() -> list[PublishedNumber]:
    """The introduction's example, Eq. 4 and its variants, and the theorems where a number decides."""
    return [*_introduction(), *_penalties(), *_ties(), *_theorems()]


def _introduction() -> list[PublishedNumber]:
    right, wrong = "the right forecast (.33, .34, .33)", "the wrong forecast (.51, .49, 0)"
    base = "the printed value is in base 10"
    return [
        PublishedNumber("README", f"Brier of {right}", 0.6534, brier([1], _RIGHT), tolerance=5e-5),
        PublishedNumber("README", f"Brier of {wrong}", 0.5202, brier([1], _WRONG), tolerance=5e-5),
        PublishedNumber("README", f"log score of {right}", 0.4685, log_score([1], _RIGHT), base),
        PublishedNumber("README", f"log score of {wrong}", 0.3098, log_score([1], _WRONG), base),
        PublishedNumber("Eq. 4", f"PBS of {right}", None, pbs([1], _RIGHT), "now the lower one"),
        PublishedNumber("Eq. 4", f"PBS of {wrong}", None, pbs([1], _WRONG)),
        PublishedNumber("Eq. 5", f"PLL of {right}", None, pll([1], _RIGHT), "now the lower one"),
        PublishedNumber("Eq. 5", f"PLL of {wrong}", None, pll([1], _WRONG)),
    ]


def _penalties() -> list[PublishedNumber]:
    scaled = penalized(Brier("mean"))
    return [
        PublishedNumber(
            "Alg. 2",
            "Eq. 4 over Algorithm 2 for three classes",
            None,
            pbs([1], _WRONG) / scaled([1], _WRONG),
            "the two differ by the factor 1/K alone",
        ),
        PublishedNumber(
            "code",
            "PBS of the wrong forecast by the published function",
            None,
            compat.pbs([1], _WRONG),
            "its penalty is K times that of Algorithm 2",
        ),
        PublishedNumber(
            "Eq. 4",
            "penalty of Brier for three classes",
            2 / 3,
            Penalized(brier, "minimal").constant(3),
            "the smallest that makes it superior; the printed one is 1/2 more",
        ),
        PublishedNumber(
            "Eq. 5",
            "penalty of the log score for three classes",
            math.log(3),
            Penalized(log_score, "minimal").constant(3),
            "the smallest that makes it superior; the printed one is ln 2 more",
        ),
    ]


def _ties() -> list[PublishedNumber]:
    dishonest = "the uniform forecast is expected to do better than the truth: improper"
    return [
        PublishedNumber(
            "Thm. 5",
            "PBS of the truth (3/5, 2/5) in expectation",
            12 / 25,
            pbs.entropy(_TRUTH),
            "Eqs. 38-39 forget the penalty, which the truth also pays",
        ),
        PublishedNumber("Alg. 1", "the same, ties counted as right: the truth", None, _lenient(_TRUTH)),
        PublishedNumber(
            "Alg. 1",
            "the same, ties counted as right: the uniform forecast",
            None,
            _lenient(_UNIFORM),
            dishonest,
        ),
        PublishedNumber(
            "Alg. 1",
            "with shared ties: the uniform forecast",
            None,
            pbs.expected(_UNIFORM, _TRUTH),
            "worse than the truth, as it must be",
        ),
    ]


def _lenient(p: Sequence[float]) -> float:
    """The expected PBS of Eq. 4 under `_TRUTH` where a tie with the true class counts as right."""
    penalty = [0.5 * (max(p) > p_y) for p_y in p]
    losses = [float(loss) + extra for loss, extra in zip(brier.by_outcome(p), penalty, strict=True)]
    return sum(q * loss for q, loss in zip(_TRUTH, losses, strict=True))


def _theorems() -> list[PublishedNumber]:
    correct, wrong = [[0.30, 0.29, 0.29, 0.12]], [[0.30, 0.31, 0.195, 0.195]]
    outcomes = [0, 0, 1]
    accurate = [[0.34, 0.33, 0.33], [0.34, 0.33, 0.33], [1, 0, 0]]
    bold = [[1, 0, 0], [0.49, 0.51, 0], [0.51, 0.49, 0]]
    pointwise = "superiority holds row by row, not for means"
    return [
        PublishedNumber(
            "Thm. 2",
            "Brier of the right forecast (.30, .29, .29, .12)",
            None,
            brier([0], correct),
            "Eq. 23 is false for four classes: this is the larger",
        ),
        PublishedNumber(
            "Thm. 2", "Brier of the wrong forecast (.30, .31, .195, .195)", None, brier([0], wrong)
        ),
        PublishedNumber(
            "Def. 5",
            "mean PBS of a model that is right in 2 of 3 rows",
            None,
            pbs(outcomes, accurate),
            pointwise,
        ),
        PublishedNumber("Def. 5", "mean PBS of one that is right in 1 of 3", None, pbs(outcomes, bold)),
    ]
