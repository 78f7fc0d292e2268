"""Means of a judge's grades, corrected by those of the answers that people graded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.inference.intervals import Interval, t_quantile, wilson
from verax.inputs.arrays import Bools, Floats, Ints
from verax.wings.repeats.unitmeans import PAD_BETWEEN, UnitMean, effective

# The part of a unit that is added where all grades of people are right or wrong.
PAD_CHECKED = 0.5
# Fewer units than this are treated as this number, and fewer effective groups.
_LEAST_UNITS, _LEAST_GROUPS = 3, 3.5
# A group with a larger share counts as this, so that what is left without it is not nothing.
_MOST = 0.99
_ROUNDING = 1e-12


@dataclass(frozen=True)
class JudgedAnswers:
    """Grades of a judge for all answers of a model, and of people for some of them.

    Attributes
    ----------
    human : array of shape (N,)
        The grades by people; NaN where nobody checked.
    judge : array of shape (N,)
        The grades by the judge.
    groups : array of shape (N,) or None
        The number of the group of each answer, from 0.
    weights : array of shape (N,) or None
        One over the probability that an answer is checked; None where all have the same.
    """

    human: Floats
    judge: Floats
    groups: Ints | None = None
    weights: Floats | None = None

    @property
    def checked(self) -> Bools:
        """Which answers people graded."""
        return ~np.isnan(self.human)

    @property
    def n_checked(self) -> int:
        """The number of answers that people graded."""
        return int(self.checked.sum())

    @property
    def effective(self) -> float:
        """The number of checks of equal weight that tell as much."""
        return float(self.n_checked) if self.weights is None else effective(self.weights[self.checked])

    def among_checked(self, values: Floats) -> UnitMean:
        """The mean of a value of the answers that people graded."""
        seen = self.checked
        groups = None if self.groups is None else self.groups[seen]
        weights = None if self.weights is None else self.weights[seen]
        return UnitMean.of(values[seen], groups, weights, "checked answers")


@dataclass(frozen=True)
class CorrectedMean:
    """A corrected mean.

    Attributes
    ----------
    mean : UnitMean
        The estimate and its variance.
    tuning : float
        The part of the judge's difference that was used: 0 takes people's grades alone, 1 all of it.
    influence : array of shape (N,)
        What each answer adds to the error of the estimate.
    """

    mean: UnitMean
    tuning: float
    influence: Floats


def corrected_mean(judged: JudgedAnswers) -> CorrectedMean:
    """The mean grade that people would have given to all answers.

    It is that of the checked answers, plus a part of the difference of the judge's means over all answers and
    over these (PPI++, Angelopoulos, Duchi and Zrnic 2023, doi:10.48550/arXiv.2311.01453). That part is the
    best one with the judge's variance over all answers: where the checked ones hold no error of the judge,
    theirs would make the interval collapse.

    Examples
    --------
    >>> human, judge = np.array([1, 0, 1, 1, np.nan, np.nan]), np.array([1.0, 1, 1, 0, 1, 0])
    >>> found = corrected_mean(JudgedAnswers(human, judge))
    >>> round(found.mean.value, 4), found.tuning
    (0.75, 0.0)
    """
    seen, judge = judged.checked, judged.judge
    n_all, groups = len(judge), judged.groups
    w = np.ones(judged.n_checked) if judged.weights is None else judged.weights[seen]
    w = w / w.sum()
    h, j = judged.human[seen], judge[seen]
    of_people, of_checked, of_all = float(w @ h), float(w @ j), float(judge.mean())
    # What each answer adds to the means of people, and of the judge over checked and over all answers.
    people, checked = np.zeros(n_all), np.zeros(n_all)
    people[seen], checked[seen] = w * (h - of_people), w * (j - of_checked)
    every = (judge - of_all) / n_all
    codes = np.arange(n_all) if groups is None else groups
    by_unit = [np.bincount(codes, values) for values in (people, checked, every)]
    kish = effective(w)
    room = float(by_unit[2] @ by_unit[2]) * (n_all / kish - 1)
    gain = -float(by_unit[0] @ (by_unit[2] - by_unit[1]))
    tuning = min(max(gain / room, 0.0), 1.0) if room > 0 else 0.0
    value = of_people + tuning * (of_all - of_checked)
    of_unit = np.bincount(codes[seen], w, minlength=len(by_unit[0])).astype(float)
    units = max(int((of_unit > 0).sum()), _LEAST_UNITS)
    influence = people + tuning * (every - checked)
    if groups is None:
        variance = units / (units - 2) * float(influence @ influence)
        mean = UnitMean(value, variance, units - 2, units, "checked answers")
        return CorrectedMean(mean, tuning, influence)
    part = np.minimum(of_unit, _MOST)
    whole = np.minimum(np.bincount(codes) / n_all, _MOST)
    around = (by_unit[0] - tuning * by_unit[1]) / (1 - part) + tuning * by_unit[2] / (1 - whole)
    freedom = max(effective(of_unit[of_unit > 0]), _LEAST_GROUPS) - 2
    mean = UnitMean(value, float(around @ around), freedom, units, "groups of checked answers")
    return CorrectedMean(mean, tuning, influence)


def pad_of(human: Floats, bounds: tuple[float, float], pad: float = PAD_CHECKED) -> float:
    """The part of a unit that is added: more where grades of people lie between the bounds."""
    known = human[~np.isnan(human)]
    between = (known > bounds[0] + _ROUNDING) & (known < bounds[1] - _ROUNDING)
    return PAD_BETWEEN if between.any() else pad


def stratified(
    judged: JudgedAnswers, bounds: tuple[float, float], confidence: float
) -> tuple[float, Interval, float]:
    """The mean grade by people where answers were checked by the judge's grade: value, interval, variance.

    Each grade of the judge has the mean of its checked answers, and counts by its share of all answers
    (Tenenbein 1970). Wilson's interval of each, and the variance of the shares, make that of the whole
    (MOVER, Zou and Donner 2008).

    Examples
    --------
    >>> judge = np.repeat([1.0, 0.0], [60, 40])
    >>> human = np.full(100, np.nan)
    >>> human[[*range(10), *range(60, 70)]] = [1] * 9 + [0] + [1] * 2 + [0] * 8
    >>> value, interval, _ = stratified(JudgedAnswers(human, judge), (0, 1), 0.95)
    >>> round(value, 3), f"{interval:.3f}"
    (0.62, '0.417 to 0.769')
    """
    seen = judged.checked
    shares, means = [], []
    for grade in np.unique(judged.judge):
        these = judged.judge == grade
        shares.append(float(these.mean()))
        means.append(UnitMean.of(judged.human[these & seen], what="checked answers"))
    share, mean = np.array(shares), np.array([of_grade.value for of_grade in means])
    value = float(share @ mean)
    if pad_of(judged.human, bounds) == PAD_BETWEEN:
        intervals = [of_grade.within(bounds, confidence, PAD_BETWEEN) for of_grade in means]
    else:
        intervals = [_of_share(of_grade, bounds, confidence) for of_grade in means]
    ends = np.array(intervals)
    of_shares = float(share @ (mean - value) ** 2) / len(judged.judge)
    error = t_quantile(math.inf, confidence) ** 2 * of_shares
    down = math.sqrt(float(((share * (mean - ends[:, 0])) ** 2).sum()) + error)
    up = math.sqrt(float(((share * (ends[:, 1] - mean)) ** 2).sum()) + error)
    variance = float(share**2 @ np.array([of_grade.variance for of_grade in means])) + of_shares
    interval = Interval(value - down, value + up, method="MOVER of Wilson", confidence=confidence)
    return value, interval.within(bounds), variance


def _of_share(mean: UnitMean, bounds: tuple[float, float], confidence: float) -> Interval:
    """Wilson's interval of a share of right answers."""
    low, high = bounds
    share = wilson(
        (mean.value - low) / (high - low), mean.units, t_quantile(math.inf, confidence), confidence
    )
    return share.scaled(high - low).shifted(low)


def difference(a: JudgedAnswers, b: JudgedAnswers, largest: float) -> UnitMean:
    """The corrected mean of `a` minus that of `b`, whose answers are to the same questions, row by row.

    Where mostly the same questions were checked for both, the differences of both grades are corrected as one
    mean is; otherwise the errors of both estimates are subtracted question by question.
    """
    both = a.checked & b.checked
    if both.sum() >= 0.8 * max(a.n_checked, b.n_checked):
        gaps = JudgedAnswers(
            np.where(both, a.human - b.human, np.nan), a.judge - b.judge, a.groups, a.weights
        )
        return corrected_mean(gaps).mean.with_unseen(gaps.human[both], largest)
    of_a, of_b = corrected_mean(a), corrected_mean(b)
    around = of_a.influence - of_b.influence
    if a.groups is not None:
        around = np.bincount(a.groups, around).astype(float)
    freedom = min(of_a.mean.freedom, of_b.mean.freedom)
    units = min(of_a.mean.units, of_b.mean.units)
    variance = units / (units - 2) * float(around @ around)
    value = of_a.mean.value - of_b.mean.value
    mean = UnitMean(value, variance, freedom, units, "checked answers")
    differ = np.r_[a.human[a.checked] - a.judge[a.checked], b.human[b.checked] - b.judge[b.checked]]
    return mean.with_unseen(differ, largest)


def chosen_by_judge(judged: JudgedAnswers) -> float:
    """The p-value of checks at random: whether the judge's grades of checked answers differ from the others'.

    Whole groups are compared where answers belong to groups.
    """
    seen, judge = judged.checked, judged.judge
    n, n_all = judged.n_checked, len(judge)
    if n == n_all or judge.min() == judge.max():
        return 1.0
    around = np.where(seen, 1 / n, 0.0) * (judge - judge.mean())
    every = (judge - judge.mean()) / n_all
    if judged.groups is None:
        variance = float(judge.var(ddof=1)) * (1 / n - 1 / n_all)
    else:
        codes = judged.groups
        apart = np.bincount(codes, around - every)
        variance = float(apart @ apart)
    z = float(around.sum()) / math.sqrt(variance) if variance > 0 else 0.0
    return math.erfc(abs(z) / math.sqrt(2))
