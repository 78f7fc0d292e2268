"""Ahmadian, Ghatee and Wahlström (2025), superior scoring rules: worked numbers, recomputed.

Their tables need the networks; studies/selection.md asks the same question of seven of their data sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from verax import compat
from verax.scores.combinators import Penalized, penalized
from verax.scores.registry import brier, log_score, pbs, pll
from verax.scores.rules import Brier
from verax.wings.theory.papers.published import PublishedNumber
from verax.wings.theory.papers.simulation import UNIFORM_ON_THREE

# The two forecasts that the paper begins with, when the second of three classes happens.
_RIGHT, _WRONG = [[0.33, 0.34, 0.33]], [[0.51, 0.49, 0.0]]
_TRUTH, _UNIFORM = (3 / 5, 2 / 5), (1 / 2, 1 / 2)

# Table 3: the F1 of models kept by Brier, by PBS, and the printed gain; then by the log score, by PLL, and
# the gain. For each data set with early stopping, then with checkpoints.
TABLE_3 = (
    (45.00, 51.65, 6.65, 64.76, 65.85, 1.10),
    (55.47, 60.03, 4.56, 70.00, 71.82, 1.83),
    (53.01, 57.60, 4.59, 53.90, 55.48, 1.59),
    (55.37, 58.03, 2.66, 55.74, 57.63, 1.89),
    (28.24, 32.48, 4.24, 30.08, 30.62, 0.53),
    (32.30, 34.28, 1.99, 31.65, 31.80, 0.15),
    (58.27, 59.14, 0.87, 56.79, 59.55, 2.76),
    (66.51, 67.49, 0.97, 68.21, 69.78, 1.57),
    (43.66, 50.81, 7.14, 51.12, 59.69, 8.57),
    (48.00, 54.83, 6.83, 64.12, 66.82, 2.71),
    (80.93, 83.20, 2.27, 77.87, 80.13, 2.26),
    (82.08, 83.88, 1.80, 80.22, 83.42, 3.20),
    (50.13, 53.51, 3.38, 55.59, 56.33, 0.74),
    (52.04, 53.63, 1.59, 51.73, 52.39, 0.66),
    (27.09, 27.77, 0.69, 23.10, 23.75, 0.65),
    (26.51, 29.37, 2.86, 26.77, 27.39, 0.62),
    (66.50, 66.53, 0.03, 65.39, 65.81, 0.43),
    (67.85, 68.36, 0.51, 66.64, 67.07, 0.43),
)


def findings() -> list[PublishedNumber]:
    """The introduction's example, Eqs. 4 and 5, the theorems, the simulations and what the tables say."""
    return [*_introduction(), *_penalties(), *_ties(), *_theorems(), *_simulations(), *_experiments()]


def _introduction() -> list[PublishedNumber]:
    right, wrong = "the right forecast (.33, .34, .33)", "the wrong forecast (.51, .49, 0)"
    natural = "the printed value is in base 10", "the-log-loss-of-the-example"
    return [
        PublishedNumber("README", f"Brier of {right}", 0.6534, brier([1], _RIGHT), tolerance=5e-5),
        PublishedNumber("README", f"Brier of {wrong}", 0.5202, brier([1], _WRONG), tolerance=5e-5),
        PublishedNumber("README", f"log score of {right}", 0.4685, log_score([1], _RIGHT), *natural),
        PublishedNumber("README", f"log score of {wrong}", 0.3098, log_score([1], _WRONG), *natural),
        PublishedNumber("Eq. 4", "PBS of the right minus the wrong one", "< 0", _difference(pbs)),
        PublishedNumber("Eq. 5", "PLL of the right minus the wrong one", "< 0", _difference(pll)),
    ]


def _difference(rule: Penalized) -> float:
    return rule([1], _RIGHT) - rule([1], _WRONG)


def _penalties() -> list[PublishedNumber]:
    mean = Brier("mean")
    return [
        PublishedNumber(
            "Thm. 3",
            "largest Brier score of a right forecast, three classes",
            2 / 3,
            Penalized(brier, "sup").constant(3),
        ),
        PublishedNumber(
            "Thm. 4",
            "largest log score of a right forecast, three classes",
            math.log(3),
            Penalized(log_score, "sup").constant(3),
        ),
        PublishedNumber(
            "Alg. 2",
            "penalty for three classes",
            2 / 9,
            penalized(mean)([1], _WRONG) - mean([1], _WRONG),
        ),
        PublishedNumber(
            "code",
            "penalty for three classes",
            2 / 9,
            compat.pbs([1], _WRONG) - mean([1], _WRONG),
            "three times that of Algorithm 2",
            "one-name-two-penalties",
        ),
    ]


def _ties() -> list[PublishedNumber]:
    section = "theorem-5-pbs-and-pll-are-strictly-proper"
    return [
        PublishedNumber(
            "Eq. 38",
            "expected PBS of the truth (3/5, 2/5)",
            12 / 25,
            pbs.entropy(_TRUTH),
            "Eqs. 38-39 forget the penalty, which the truth also pays",
            section,
        ),
        PublishedNumber(
            "Thm. 5",
            "PBS with shared ties: the truth minus the uniform forecast",
            "< 0",
            pbs.entropy(_TRUTH) - pbs.expected(_UNIFORM, _TRUTH),
        ),
        PublishedNumber(
            "Thm. 5, Alg. 1",
            "PBS with ties counted as right: the truth minus the uniform forecast",
            "< 0",
            _expected(_TRUTH, _TRUTH, tie=0) - _expected(_UNIFORM, _TRUTH, tie=0),
            "the uniform forecast has the lower expected loss: improper",
            section,
        ),
        PublishedNumber(
            "Thm. 5, Def. 5",
            "PBS with ties counted as wrong, truth (1/2, 1/2): the truth minus (3/5, 2/5)",
            "< 0",
            _expected(_UNIFORM, _UNIFORM, tie=1) - _expected(_TRUTH, _UNIFORM, tie=1),
            "a forecast without the tie has the lower expected loss: improper",
            section,
        ),
    ]


def _expected(p: Sequence[float], truth: Sequence[float], tie: float) -> float:
    """The expected PBS of Eq. 4 for two classes, where a tie costs this part of the penalty."""
    tied = p[0] == p[1]
    penalty = [0.5 * (tie if tied else p_y < max(p)) for p_y in p]
    losses = [float(loss) + extra for loss, extra in zip(brier.by_outcome(p), penalty, strict=True)]
    return sum(q * loss for q, loss in zip(truth, losses, strict=True))


def _theorems() -> list[PublishedNumber]:
    right, wrong = [[0.30, 0.29, 0.29, 0.12]], [[0.30, 0.31, 0.195, 0.195]]
    outcomes = [0, 0, 1]
    accurate = [[0.34, 0.33, 0.33], [0.34, 0.33, 0.33], [1, 0, 0]]
    bold = [[1, 0, 0], [0.49, 0.51, 0], [0.51, 0.49, 0]]
    share = 0.3
    starts = range(1, 11)
    tested = [sum(i + 2 + j <= 10 for j in range(3)) for i in starts]
    blocks = "h = 10: late folds run past the last block", "algorithm-4-blocks-past-the-end"
    return [
        PublishedNumber(
            "Eq. 23",
            "variance of (.29, .29, .12) minus that of (.31, .195, .195)",
            "< 0",
            float(np.var(right[0][1:]) - np.var(wrong[0][1:])),
            "false for four classes or more",
            "theorem-2-why-the-brier-score-is-not-superior",
        ),
        PublishedNumber(
            "4.1",
            "mean PBS of a model right in 2 of 3 rows minus one right in 1 of 3",
            "< 0",
            pbs(outcomes, accurate) - pbs(outcomes, bold),
            "superiority holds row by row, not for means",
            "more-errors-worse-score",
        ),
        PublishedNumber(
            "section 3",
            "F1 of the honest decision minus that of always positive, at a share of 0.3",
            ">= 0",
            0 - 2 * share / (1 + share),
            "F-measures are not proper",
            "f-measures-are-not-proper",
        ),
        PublishedNumber(
            "Alg. 4",
            "folds with fewer than three test blocks",
            0.0,
            float(sum(n < 3 for n in tested)),
            *blocks,
        ),
        PublishedNumber("Alg. 4", "folds without a test block", 0.0, float(tested.count(0)), *blocks),
    ]


def _simulations() -> list[PublishedNumber]:
    depends = "the printed share depends on the sampler", "sections-8-2-and-8-3-the-two-simulations"
    exact = dict(UNIFORM_ON_THREE)
    return [
        PublishedNumber(
            "8.2, Fig. 4", "share for three classes, any sampler", 0.99996, exact["8.2"], *depends, 5e-6
        ),
        PublishedNumber(
            "8.3, Fig. 5", "share for three classes, uniform forecasts", 0.63, exact["8.3"], *depends, 5e-3
        ),
    ]


def _experiments() -> list[PublishedNumber]:
    table = np.array(TABLE_3)
    gains = table[:, [1, 4]] - table[:, [0, 3]]
    needs = "the networks and predictions were not released; studies/selection.md repeats it with others"
    return [
        PublishedNumber(
            "Table 3",
            "largest error of a printed gain, in points of F1",
            0.0,
            float(abs(gains - table[:, [2, 5]]).max()),
            tolerance=0.0101,
        ),
        PublishedNumber(
            "Table 3",
            "rows where a penalized rule does not select the better model",
            0.0,
            float((gains <= 0).sum()),
        ),
        PublishedNumber(
            "5.5",
            "rows of Table 3 where PLL selects a better model than PBS",
            0.0,
            float((table[:, 4] > table[:, 1]).sum()),
            "of 18 rows",
            "pbs-and-pll-in-table-3",
        ),
        PublishedNumber("Table 2", "correlations with F1", "table", None, needs),
        PublishedNumber("Table 3", "F1 of the models kept", "table", None, needs),
        PublishedNumber(
            "Fig. 3",
            "correlations along nine training runs",
            "figure",
            None,
            "the curves are in the authors' repository; studies/selection.py --histories recomputes them",
        ),
    ]
