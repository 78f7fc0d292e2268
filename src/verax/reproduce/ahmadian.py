"""Ahmadian, Ghatee and Wahlström (2025), superior scoring rules: worked numbers, recomputed.

Their tables need the networks; studies/selection.md asks the same question of seven of their data sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import verax as vx
from verax.combinators import Penalized
from verax.reproduce import Finding

# The two forecasts that the paper begins with, when the second of three classes happens.
_RIGHT, _WRONG = [[0.33, 0.34, 0.33]], [[0.51, 0.49, 0.0]]
_TRUTH, _UNIFORM = (3 / 5, 2 / 5), (1 / 2, 1 / 2)


def findings() -> list[Finding]:
    """The introduction's example, Eq. 4 and its variants, and the theorems where a number decides."""
    return [*_introduction(), *_penalties(), *_ties(), *_theorems()]


def _introduction() -> list[Finding]:
    right, wrong = "the right forecast (.33, .34, .33)", "the wrong forecast (.51, .49, 0)"
    base = "the printed value is in base 10"
    return [
        Finding("README", f"Brier of {right}", 0.6534, vx.brier([1], _RIGHT), tolerance=5e-5),
        Finding("README", f"Brier of {wrong}", 0.5202, vx.brier([1], _WRONG), tolerance=5e-5),
        Finding("README", f"log score of {right}", 0.4685, vx.log_score([1], _RIGHT), base),
        Finding("README", f"log score of {wrong}", 0.3098, vx.log_score([1], _WRONG), base),
        Finding("Eq. 4", f"PBS of {right}", None, vx.pbs([1], _RIGHT), "now the lower one"),
        Finding("Eq. 4", f"PBS of {wrong}", None, vx.pbs([1], _WRONG)),
        Finding("Eq. 5", f"PLL of {right}", None, vx.pll([1], _RIGHT), "now the lower one"),
        Finding("Eq. 5", f"PLL of {wrong}", None, vx.pll([1], _WRONG)),
    ]


def _penalties() -> list[Finding]:
    scaled = vx.penalized(vx.Brier("mean"))
    return [
        Finding(
            "Alg. 2",
            "Eq. 4 over Algorithm 2 for three classes",
            None,
            vx.pbs([1], _WRONG) / scaled([1], _WRONG),
            "the two differ by the factor 1/K alone",
        ),
        Finding(
            "code",
            "PBS of the wrong forecast by the published function",
            None,
            vx.compat.pbs([1], _WRONG),
            "its penalty is K times that of Algorithm 2",
        ),
        Finding(
            "Eq. 4",
            "penalty of Brier for three classes",
            2 / 3,
            Penalized(vx.brier, "minimal").constant(3),
            "the smallest that makes it superior; the printed one is 1/2 more",
        ),
        Finding(
            "Eq. 5",
            "penalty of the log score for three classes",
            math.log(3),
            Penalized(vx.log_score, "minimal").constant(3),
            "the smallest that makes it superior; the printed one is ln 2 more",
        ),
    ]


def _ties() -> list[Finding]:
    dishonest = "the uniform forecast is expected to do better than the truth: improper"
    return [
        Finding(
            "Thm. 5",
            "PBS of the truth (3/5, 2/5) in expectation",
            12 / 25,
            vx.pbs.entropy(_TRUTH),
            "Eqs. 38-39 forget the penalty, which the truth pays, too",
        ),
        Finding("Alg. 1", "the same, ties counted as right: the truth", None, _lenient(_TRUTH)),
        Finding(
            "Alg. 1",
            "the same, ties counted as right: the uniform forecast",
            None,
            _lenient(_UNIFORM),
            dishonest,
        ),
        Finding(
            "Alg. 1",
            "with shared ties: the uniform forecast",
            None,
            vx.pbs.expected(_UNIFORM, _TRUTH),
            "worse than the truth, as it must be",
        ),
    ]


def _lenient(p: Sequence[float]) -> float:
    """The expected PBS of Eq. 4 under `_TRUTH` where a tie with the true class counts as right."""
    penalty = [0.5 * (max(p) > p_y) for p_y in p]
    losses = [float(loss) + extra for loss, extra in zip(vx.brier.by_outcome(p), penalty, strict=True)]
    return sum(q * loss for q, loss in zip(_TRUTH, losses, strict=True))


def _theorems() -> list[Finding]:
    correct, wrong = [[0.30, 0.29, 0.29, 0.12]], [[0.30, 0.31, 0.195, 0.195]]
    outcomes = [0, 0, 1]
    accurate = [[0.34, 0.33, 0.33], [0.34, 0.33, 0.33], [1, 0, 0]]
    bold = [[1, 0, 0], [0.49, 0.51, 0], [0.51, 0.49, 0]]
    pointwise = "superiority holds row by row, not for means"
    return [
        Finding(
            "Thm. 2",
            "Brier of the right forecast (.30, .29, .29, .12)",
            None,
            vx.brier([0], correct),
            "Eq. 23 is false for four classes: this is the larger",
        ),
        Finding("Thm. 2", "Brier of the wrong forecast (.30, .31, .195, .195)", None, vx.brier([0], wrong)),
        Finding(
            "Def. 5",
            "mean PBS of a model that is right in 2 of 3 rows",
            None,
            vx.pbs(outcomes, accurate),
            pointwise,
        ),
        Finding("Def. 5", "mean PBS of one that is right in 1 of 3", None, vx.pbs(outcomes, bold)),
    ]
