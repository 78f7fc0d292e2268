"""How far a judge and people agree, and people among themselves."""

from __future__ import annotations

import math

import numpy as np

from verax.inference.intervals import Interval, few, t_quantile
from verax.inputs.arrays import Floats
from verax.wings.judges.corrected import JudgedAnswers
from verax.wings.repeats.unitmeans import UnitMean

_SAME = 1e-9


def agreement(judged: JudgedAnswers) -> UnitMean:
    """The share of checked answers to which the judge gave the grade that people gave."""
    same = np.abs(judged.judge - judged.human) <= _SAME
    return judged.among_checked(np.where(judged.checked, same, np.nan))


def bias(judged: JudgedAnswers, largest: float) -> UnitMean:
    """The mean grade of the judge minus that of people, over checked answers."""
    gaps = judged.judge - judged.human
    return judged.among_checked(gaps).with_unseen(gaps[judged.checked], largest)


def correlation(judged: JudgedAnswers) -> float:
    """The correlation of both grades over checked answers; 0 where either does not vary."""
    seen = judged.checked
    h, j = judged.human[seen], judged.judge[seen]
    w = np.ones(len(h)) if judged.weights is None else judged.weights[seen]
    w = w / w.sum()
    h, j = h - w @ h, j - w @ j
    spread = math.sqrt(float((w @ (h * h)) * (w @ (j * j))))
    return float(w @ (h * j)) / spread if spread > 0 else 0.0


def alpha(grades: Floats, confidence: float = 0.95) -> tuple[float, Interval]:
    """Krippendorff's alpha of several people, with the interval that leaves out one answer at a time.

    It is one minus the disagreement about the same answer over that of any two grades, squared differences
    in both: 1 where people agree, 0 where they might as well have graded by chance. Answers that one person
    graded do not enter. The interval is one of log(1 - alpha).

    Parameters
    ----------
    grades : array of shape (N, R)
        The grade of each person; NaN where one did not grade.
    confidence : float, default 0.95
        Confidence level.

    Examples
    --------
    >>> grades = np.array([[1, 1], [0, 0], [1, 0], [1, 1], [0, 0], [1, np.nan]])
    >>> round(alpha(grades)[0], 4)
    0.64
    """
    known = ~np.isnan(grades)
    sizes = known.sum(axis=1)
    graded = grades[sizes >= 2]
    known, m = known[sizes >= 2], sizes[sizes >= 2].astype(float)
    if not len(graded):
        return math.nan, Interval.undefined(
            "no answer was graded by two people", method="jackknife", confidence=confidence
        )
    sums = np.where(known, graded, 0.0).sum(axis=1)
    squares = np.where(known, graded**2, 0.0).sum(axis=1)
    within = m * (squares - sums**2 / m) / (m - 1)
    n, total, square = m.sum(), sums.sum(), squares.sum()

    def ratio(n: Floats, within: Floats, total: Floats, square: Floats) -> Floats:
        around = (square - total**2 / n) / (n - 1)
        return np.asarray(
            np.divide(within / n, around, where=around > _SAME, out=np.full(np.shape(n), np.nan))
        )

    disagreement = float(ratio(n, within.sum(), total, square))
    value = 1 - disagreement
    left = ratio(n - m, within.sum() - within, total - sums, square - squares)
    count = len(m)
    if math.isnan(value) or count < 3 or not (np.isfinite(left).all() and (left > _SAME).all()):
        why = "people gave one grade alone" if math.isnan(value) else "too few disagreements"
        return value, Interval.undefined(why, method="jackknife", confidence=confidence)
    logs = np.log(left)
    error = math.sqrt((count - 1) / count * float(((logs - logs.mean()) ** 2).sum()))
    half = t_quantile(count - 1, confidence) * error
    ends = 1 - disagreement * math.exp(half), 1 - disagreement * math.exp(-half)
    caution = few(count, "answer", "answers")
    return value, Interval(*ends, method="jackknife", confidence=confidence, caution=caution)
