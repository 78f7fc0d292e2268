"""pass@k and its kin: in rational numbers, by all subsets, and as Inspect prints them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest

import verax as vx
from verax.wings.repeats.reducers import Reducer, parsed

HERE = Path(__file__).parent
ALL = ["pass@{}", "pass^{}", "1 of {}", "2 of {}", "majority of {}", "best of {}"]


def by_subsets(name: str, k: int, grades: list[int]) -> Fraction:
    """The mean of what each subset of k answers gives."""
    values = []
    for subset in combinations(grades, k):
        right = sum(subset)
        values.append(
            {
                "pass@": Fraction(right > 0),
                "best": Fraction(max(subset)),
                "pass^": Fraction(right == k),
                "1 of": Fraction(right >= 1),
                "2 of": Fraction(right >= 2),
                "majority": Fraction(1, 2) if 2 * right == k else Fraction(2 * right > k),
            }[next(p for p in ("pass@", "pass^", "majority", "1 of", "2 of", "best") if name.startswith(p))]
        )
    return sum(values, Fraction(0)) / len(values)


@pytest.mark.parametrize("name", ALL)
def test_values_are_means_over_all_subsets(name):
    for n in range(2, 7):
        for right in range(n + 1):
            for k in range(2, n + 1):
                (reducer,) = parsed(name.format(k))
                grades = [1] * right + [0] * (n - right)
                expected = float(by_subsets(name, k, grades))
                assert reducer.of(np.array(grades, float)) == pytest.approx(expected, abs=1e-15)


def test_values_are_unbiased_for_fresh_answers():
    """Over all numbers of right answers of n, in rational numbers."""
    p, n, k = Fraction(2, 7), 6, 3

    def fresh(least: int) -> Fraction:
        return sum((comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(least, k + 1)), Fraction(0))

    for text, expected in ((f"pass@{k}", fresh(1)), (f"pass^{k}", fresh(3)), (f"2 of {k}", fresh(2))):
        (reducer,) = parsed(text)
        mean = sum(
            Fraction(reducer.of_counts(n, c)).limit_denominator(10**6)
            * comb(n, c)
            * p**c
            * (1 - p) ** (n - c)
            for c in range(n + 1)
        )
        assert mean == expected


def test_values_are_those_of_inspect():
    known = json.loads((HERE / "inspect_reducers.json").read_text())
    for question in known["questions"]:
        grades = np.array(question.pop("grades"), float)
        for name, value in question.items():
            reducer = Reducer("pass@", 1) if name == "mean" else parsed(name)[0]
            assert reducer.of(grades) == pytest.approx(value, abs=1e-12), name


def test_the_best_of_k_is_the_mean_of_the_largest():
    grades = np.array([0.2, 0.9, 0.4, 0.7, 0.4])
    expected = np.mean([max(subset) for subset in combinations(grades, 3)])
    assert Reducer("best", 3).of(grades) == pytest.approx(expected)
    found = vx.pass_at_k([2 * grades, 2 * grades[::-1]], "best of 3", grade_range=(0, 2))
    assert found.scores[0].value == pytest.approx(2 * expected)


@pytest.mark.parametrize("text", ["0", "pass@0", "4 of 3", "0 of 3", "often", "", "pass@", 1.5, True, []])
def test_unknown_reducers_are_refused(text):
    with pytest.raises(vx.InputError) as refused:
        vx.pass_at_k([[1, 0], [0, 1]], text)
    assert refused.value.argument == "k"


def grades_of(seed: int, questions: int = 60, times: int = 8):
    rng = np.random.default_rng(seed)
    return (rng.random((questions, times)) < rng.random((questions, 1))).astype(float)


def test_rows_per_question_and_rows_per_answer_are_the_same():
    grades = grades_of(0)
    wide = vx.pass_at_k(grades, "1,5,pass^3")
    order = np.random.default_rng(0).permutation(grades.size)
    ids = np.repeat(np.arange(60), 8)[order]
    long = vx.pass_at_k(grades.ravel()[order], "1,5,pass^3", ids=ids)
    assert [score.value for score in wide.scores] == pytest.approx([score.value for score in long.scores])
    assert wide.scores[0].value == pytest.approx(grades.mean())
    assert vx.results.RepeatScores.from_dict(json.loads(json.dumps(wide.to_dict()))) == wide


def test_a_k_that_some_question_does_not_allow_is_refused_with_the_largest():
    grades = grades_of(1)
    grades[:5, 4:] = np.nan
    with pytest.raises(vx.InputError, match="at most 4") as refused:
        vx.pass_at_k(grades, 6)
    assert "55 of 60 questions have 6" in str(refused.value)
    found = vx.pass_at_k(grades, "6,pass^6", fewer="exclude")
    passed, power = found.scores
    assert passed.questions == 55
    assert passed.least < passed.value < passed.most
    assert power.least <= power.most < passed.most
    assert "over all questions" in str(found)


def test_grades_between_have_a_best_of_k_only():
    grades = grades_of(2) * 0.5
    with pytest.raises(vx.InputError, match="right or wrong for pass@2"):
        vx.pass_at_k(grades, 2)
    assert vx.pass_at_k(grades, "best of 2").scores[0].value < 0.5


def test_answers_without_a_grade_are_left_out_or_wrong():
    ids = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    grades = [1, 0, None, 1, 1, 0, 0, 1, 1]
    left = vx.pass_at_k(grades, 2, ids=ids)
    assert left.scores[0].value == pytest.approx((1 + 1 + 1) / 3)
    assert left.notes == ("1 answers have no grade and are left out.",)
    wrong = vx.pass_at_k(grades, 2, ids=ids, ungraded="wrong")
    assert wrong.scores[0].value == pytest.approx((2 / 3 + 1 + 1) / 3)


def test_groups_widen_intervals():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(12), 5)
    grades = (rng.random((60, 6)) < rng.random(12)[group][:, None]).astype(float)
    alone, grouped = vx.pass_at_k(grades, 3), vx.pass_at_k(grades, 3, groups=group)
    assert grouped.n_groups == 12
    assert np.ptp(grouped.scores[0].interval) > 1.3 * np.ptp(alone.scores[0].interval)


def test_models_are_compared_question_by_question():
    ease = np.random.default_rng(4).random((80, 1))
    draws = np.random.default_rng(5)
    models = {
        "new": (draws.random((80, 6)) < ease**0.5).astype(float),
        "old": (draws.random((80, 9)) < ease).astype(float),
    }
    found = vx.pass_at_k(models, "1,5")
    gap = found.differences[0]
    values = {(score.model, score.score): score.value for score in found.scores}
    assert gap.difference == pytest.approx(values["new", "pass@1"] - values["old", "pass@1"])
    own = found.score("pass@1", "new").interval
    assert np.ptp(gap.interval) < 2 * np.ptp(own) / 1.4
    assert "new is significantly better than old in pass@1" in found.verdict
    with pytest.raises(KeyError):
        found.score("pass@9", "new")


def test_equal_models_have_an_interval_with_width():
    grades = np.ones((40, 5))
    found = vx.pass_at_k({"a": grades, "b": grades}, 5)
    assert found.differences[0].interval.low < 0 < found.differences[0].interval.high


def test_pass_power_near_zero_is_not_claimed_to_be_known():
    """Questions where all are right are rare: intervals of pass^8 cover .0023 though few hold any."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng([6, seed])
        chance = rng.beta(1, 4, 60)
        grades = (rng.random((60, 10)) < chance[:, None]).astype(float)
        low, high = vx.pass_at_k(grades, "pass^8").scores[0].interval
        truth = np.prod([(1 + i) / (5 + i) for i in range(8)])
        hits += low <= truth <= high
    assert hits >= 180


# ---- more repeats, or more questions


def test_the_split_of_variances_is_found():
    rng = np.random.default_rng(7)
    ease = rng.uniform(0.2, 0.8, 4000)
    found = vx.plan_repeats((rng.random((4000, 4)) < ease[:, None]).astype(float))
    assert found.between == pytest.approx(0.03, abs=0.003)
    assert found.within == pytest.approx(0.5 - 0.25 - 0.03, abs=0.003)
    line = found.lines[0]
    assert line.standard_error == pytest.approx(((found.between + found.within / 4) / 4000) ** 0.5)


def test_the_best_number_of_repeats_minimises_the_error_of_a_budget():
    found = vx.plan_repeats(grades_of(8, 200), cost_question=10)

    def error(repeats: float) -> float:
        return (found.between + found.within / repeats) * (10 + repeats)

    best = found.best_repeats
    assert all(error(best) <= error(best * factor) for factor in (0.5, 0.9, 1.1, 2) if best * factor >= 1)
    assert vx.plan_repeats(grades_of(8, 200)).best_repeats == 1
    assert found.floor < found.lines[0].smallest


def test_the_smallest_difference_is_found_with_its_power():
    """Of two models that differ by it: 80 % of t tests find it."""
    rng = np.random.default_rng(9)
    ease = rng.uniform(0.3, 0.6, 150)[:, None]

    def pair(gap: float) -> dict[str, np.ndarray]:
        return {
            "a": (rng.random((150, 2)) < ease + gap).astype(float),
            "b": (rng.random((150, 2)) < ease).astype(float),
        }

    smallest = np.mean([vx.plan_repeats(pair(0.0)).lines[0].smallest for _ in range(30)])
    found = 0
    for _ in range(400):
        models = pair(float(smallest))
        gaps = models["a"].mean(axis=1) - models["b"].mean(axis=1)
        found += abs(gaps.mean()) / (gaps.std(ddof=1) / 150**0.5) > 1.976
    assert 0.72 < found / 400 < 0.88


@pytest.mark.parametrize(
    ("grades", "text"),
    [
        ([[1], [0], [1]], "asked twice or more"),
        ([[1, 0]], "3 questions or more"),
        ({"a": [[1, 0]] * 3}, "of two by name"),
        ([1, 0, 1], "a row per question"),
    ],
)
def test_pilots_that_tell_nothing_are_refused(grades, text):
    with pytest.raises(vx.InputError, match=text):
        vx.plan_repeats(grades)
