"""Right or wrong answers: shares near 0 and 1, exact paired tests, and margins where few rows differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

import verax as vx
from verax.inference.answers import Discordant


def graded(only_a, only_b, n):
    """Grades of two models of which some questions only one answers wrongly."""
    a, b = np.ones(n), np.ones(n)
    a[:only_a], b[only_a : only_a + only_b] = 0, 0
    return {"a": a, "b": b}


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (5, 0), (6, 0), (9, 2), (12, 11)])
def test_few_answers_that_differ_have_the_exact_test(only_a, only_b):
    found = vx.compare_grades(graded(only_a, only_b, 200))
    gap = found.difference("a", "b")
    n = only_a + only_b
    assert gap.p_value == pytest.approx(stats.binomtest(only_a, n).pvalue if n else 1.0)
    own = stats.binom(n, 0.5)
    least = min(only_a, only_b)
    mid_p = min(1.0, 2 * (own.cdf(least) - own.pmf(least) / 2))
    assert Discordant(only_a, only_b, 200, 1.0).mid_p == pytest.approx(mid_p)
    assert (gap.interval.low <= 0 <= gap.interval.high) == (gap.p_value > 1 - 0.95)
    assert any(f"{n} of 200 answers differ; McNemar's exact test" in note for note in found.notes)


def test_thirty_answers_that_differ_have_the_t_test():
    gap = vx.compare_grades(graded(20, 10, 200)).difference("a", "b")
    losses = [1 - own for own in graded(20, 10, 200).values()]
    assert gap.p_value == pytest.approx(stats.ttest_rel(*losses).pvalue)
    assert gap.interval.method == "t"


def scored(only_a, only_b, n, gap):
    """Tango's score by brute force: the most likely chances with this difference, by a search."""

    def unlikely(other):
        chances = gap + other, other, 1 - gap - 2 * other
        counts = only_a, only_b, n - only_a - only_b
        return -sum(k * math.log(max(p, 1e-300)) for k, p in zip(counts, chances, strict=True) if k)

    most = (1 - gap) / 2
    other = optimize.minimize_scalar(unlikely, bounds=(max(0.0, -gap), most), options={"xatol": 1e-12}).x
    return (only_a - only_b - n * gap) / math.sqrt(n * (2 * other + gap - gap**2))


@pytest.mark.parametrize("counts", [(5, 0, 100), (9, 2, 60), (3, 8, 300)])
def test_tango_interval_by_brute_force(counts):
    only_a, only_b, n = counts
    found = Discordant(only_a, only_b, n, 1.0)
    for gap in (-0.03, 0.02, 0.1):
        assert found.tail(gap) == pytest.approx(stats.norm.cdf(scored(*counts, gap)), rel=1e-5)
    low, high = found.interval(0.95)
    if found.p_value < 0.05:
        assert scored(*counts, low) == pytest.approx(stats.norm.isf(0.025), rel=1e-5)
    assert scored(*counts, high) == pytest.approx(-stats.norm.isf(0.025), rel=1e-5)


@pytest.mark.parametrize("wrong", [0, 3, 60])
@pytest.mark.parametrize("repeats", [1, 5])
def test_a_comparison_and_a_card_have_the_same_interval_of_a_grade(wrong, repeats):
    grade = np.ones(500)
    grade[:wrong] = 0
    ids, epochs = np.repeat(np.arange(500 // repeats), repeats), np.tile(np.arange(repeats), 500 // repeats)
    known = {"ids": ids, "epochs": epochs} if repeats > 1 else {}
    groups = {"groups": ids} if repeats > 1 else {}
    card = vx.evaluate_grades(grade, **groups)
    found = vx.compare_grades({"a": grade, "b": np.roll(grade, 7)}, **known)
    low, high = found.grades["a"]
    assert (low, high) == pytest.approx(tuple(card.interval), abs=1e-12)
    assert high - low > 0.005


def test_wrong_answers_of_another_size_are_counted_alike():
    wide = vx.compare_grades(
        {k: 10 * v for k, v in graded(7, 1, 80).items()}, grade_range=(0, 10), margin=0.5
    )
    plain = vx.compare_grades(graded(7, 1, 80), margin=0.05)
    one, other = wide.difference("a", "b"), plain.difference("a", "b")
    assert one.p_value == other.p_value
    assert tuple(one.interval) == pytest.approx([10 * end for end in other.interval])
    for one, other in zip(wide.margin_tests, plain.margin_tests, strict=True):
        assert (one.p_value, one.bound) == pytest.approx((other.p_value, 10 * other.bound))


# ---- margins -----------------------------------------------------------------------------------


def shown(rng, n, groups=None):
    """Whether a model that is worse by the margin is said not to be; few rows differ, or few groups."""
    units = n if groups is None else groups
    # 5 % of the units differ, by 0.1 on average and either way.
    loss = 0.4 + (rng.random(units) < 0.05) * np.clip(rng.normal(0.1, 0.2, units), -0.4, 0.6)
    loss = np.repeat(loss, n // units)
    forecasts = {"a": 1 - np.sqrt(loss / 2), "b": np.full(n, 1 - math.sqrt(0.2))}
    labels = None if groups is None else np.repeat(np.arange(units), n // units)
    found = vx.compare(np.ones(n, int), forecasts, rule="brier", margin=0.005, groups=labels)
    test = next(test for test in found.margin_tests if test.model == "a")
    assert (test.bound < 0.005) == (test.p_value < 0.05)
    return test.p_value <= 0.05


@pytest.mark.parametrize("groups", [None, 100])
def test_a_margin_is_seldom_met_by_chance_where_few_differ(groups):
    """At 5 %: the t test alone, and Hall's, show it in 14 % of the samples."""
    rng = np.random.default_rng(0)
    # 5 % of 80 has a standard error of 2.4 %.
    assert np.mean([shown(rng, 100 if groups is None else 200, groups) for _ in range(80)]) <= 0.1


def test_a_margin_is_seldom_met_by_chance_where_few_answers_differ():
    """The true difference is the margin: 5 % of the answers of a are wrong. A t test shows it in 12 %."""
    chance = stats.binom(200, 0.05)
    size = sum(chance.pmf(k) for k in range(30) if Discordant(k, 0, 200, 1.0).tail(0.05) <= 0.05)
    assert size <= 0.05
    found = vx.compare_grades(graded(6, 0, 200), margin=0.05).margin_tests[0]
    assert (found.model, found.p_value) == ("a", pytest.approx(Discordant(6, 0, 200, 1.0).tail(0.05)))
    t_test = (0.03 - 0.05) / math.sqrt(0.03 * 0.97 / 199)
    assert stats.t.cdf(t_test, 199) < 0.05 < found.p_value


def test_models_that_never_differ_may_still_differ_in_other_rows():
    """Of 40 rows none differs: with a chance of 0.05 of a difference by 1 that has a chance of 13 %."""
    y, p = np.ones(40, int), np.full(40, 0.8)
    tests = vx.compare(y, {"a": p, "b": p}, rule="zero_one", margin=0.05).margin_tests
    assert all(test.p_value > 0.05 for test in tests)
    for rule, most in (("brier", 2.0), ("log_score", 1.0)):
        tests = vx.compare(y, {"a": p, "b": p}, rule=rule, margin=0.05).margin_tests
        assert tests[0].p_value == pytest.approx((1 - 0.05 / most) ** 40)


def test_margins_are_the_same_from_parts(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    n = 300
    p = rng.uniform(0.2, 0.9, n)
    q = np.where(rng.random(n) < 0.06, 0.9 * p, p)
    y = (rng.random(n) < p).astype(int)
    whole = vx.compare(y, {"a": p, "b": q}, rule="brier", margin=0.01)
    frame = pd.DataFrame({"y": y, "a": p, "b": q})
    for i in range(3):
        frame[i::3].to_parquet(tmp_path / f"{i}.parquet")
    handle = vx.scan(sorted(tmp_path.glob("*.parquet")), target="y", probs={"a": "a", "b": "b"})
    found = vx.compare(handle, rule="brier", margin=0.01)
    for one, other in zip(found.margin_tests, whole.margin_tests, strict=True):
        assert (one.p_value, one.bound) == pytest.approx((other.p_value, other.bound), rel=1e-9)


def test_questions_of_which_none_differs_may_still_differ_elsewhere():
    """Forty questions, five times each: a margin of 0.05 needs a share of 0.05 that differ by 1."""
    grades = np.ones(200)
    ids, epochs = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    found = vx.compare_grades({"a": grades, "b": grades}, ids=ids, epochs=epochs, margin=0.05)
    assert [test.p_value for test in found.margin_tests] == pytest.approx([0.95**40] * 2)
    assert found.difference("a", "b").interval.caution == "none of 40 groups differs"
