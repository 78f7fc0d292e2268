"""Means of a judge's grades, corrected by people: against ppi-python, by closed forms, and refusals."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import verax as vx
from verax.wings.judges.agreement import alpha
from verax.wings.judges.corrected import (
    JudgedAnswers,
    chosen_by_judge,
    corrected_mean,
    difference,
    stratified,
)
from verax.wings.repeats.unitmeans import UnitMean

HERE = Path(__file__).parent


def judged_by(seed: int, n: int = 400, checked: int = 60, share: float = 0.75, right: float = 0.85):
    """Grades of people for all answers, those of them that are known, and the judge's."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(float)
    judge = np.where(rng.random(n) < right, truth, 1 - truth)
    known = np.full(n, np.nan)
    rows = rng.choice(n, checked, replace=False)
    known[rows] = truth[rows]
    return truth, known, judge


@pytest.mark.parametrize("case", json.loads((HERE / "ppi_python.json").read_text())["rows"])
def test_the_estimate_is_that_of_ppi_python(case):
    """Its tuning divides by the variance over n - 1, and its mean is over the answers not checked."""
    human, judge = np.array(case["human"]), np.array(case["judge"])
    n, n_all = len(human), len(judge)
    found = corrected_mean(JudgedAnswers(np.r_[human, np.full(n_all - n, np.nan)], judge))
    tuning = found.tuning * (n_all - 1) / n_all
    assert 0 < tuning < 1
    value = human.mean() + tuning * (judge.mean() - judge[:n].mean())
    assert value == pytest.approx(case["point"], abs=1e-12)
    untuned = human.mean() + judge[n:].mean() - judge[:n].mean()
    assert untuned == pytest.approx(case["untuned"], abs=1e-12)
    # Its interval is normal, without a pad.
    interval = found.mean.within((0, 1), 0.95, 0.5)
    assert case["interval"][1] - case["interval"][0] < interval.high - interval.low
    assert interval.low < case["point"] < interval.high


def test_alpha_is_that_of_krippendorff():
    known = json.loads((HERE / "krippendorff.json").read_text())
    grades = np.array(known["grades"], float)
    assert alpha(grades)[0] == pytest.approx(known["interval"], abs=1e-12)
    right = np.where(np.isnan(grades), np.nan, grades > 2)
    assert alpha(right)[0] == pytest.approx(known["nominal"], abs=1e-12)


def test_alpha_is_one_minus_a_ratio_of_pairs():
    """By its definition: pairs of grades of an answer, against pairs of any two grades."""
    rng = np.random.default_rng(1)
    grades = rng.integers(0, 3, (12, 4)).astype(float)
    grades[rng.random((12, 4)) < 0.3] = np.nan
    rows = [row[~np.isnan(row)] for row in grades]
    rows = [row for row in rows if len(row) > 1]
    every = np.concatenate(rows)
    within = sum(
        sum((a - b) ** 2 for a, b in combinations(row, 2)) * 2 / (len(row) - 1) for row in rows
    ) / len(every)
    among = sum((a - b) ** 2 for a, b in combinations(every, 2)) * 2 / (len(every) * (len(every) - 1))
    value, interval = alpha(grades)
    assert value == pytest.approx(1 - within / among)
    assert interval.low < value < interval.high


def test_alpha_without_disagreement_or_pairs_has_no_interval():
    value, interval = alpha(np.array([[1.0, 1], [0, 0], [1, 1], [0, 0]]))
    assert value == 1
    assert not interval.defined
    assert math.isnan(alpha(np.array([[1.0, np.nan], [np.nan, 0]]))[0])
    assert math.isnan(alpha(np.array([[1.0, 1], [1, 1]]))[0])


def test_a_perfect_judge_gives_its_mean_and_a_useless_one_that_of_people():
    truth, known, _ = judged_by(0)
    perfect = corrected_mean(JudgedAnswers(known, truth))
    # The variance of its grades is that of all answers, not of the checked ones.
    assert perfect.tuning == pytest.approx(np.nanvar(known) / truth.var())
    assert perfect.mean.value == pytest.approx(truth.mean(), abs=0.005)
    constant = corrected_mean(JudgedAnswers(known, np.ones(400)))
    assert constant.tuning == 0
    assert constant.mean.value == pytest.approx(np.nanmean(known))
    everything = corrected_mean(JudgedAnswers(truth, judged_by(0)[2]))
    assert everything.mean.value == pytest.approx(truth.mean())


def test_answers_that_are_groups_of_one_have_nearly_the_same_interval():
    _, known, judge = judged_by(2)
    alone = corrected_mean(JudgedAnswers(known, judge)).mean
    groups = corrected_mean(JudgedAnswers(known, judge, np.arange(400))).mean
    assert groups.value == alone.value
    assert groups.freedom == pytest.approx(alone.freedom)
    assert groups.variance == pytest.approx(alone.variance, rel=0.05)


def test_groups_checked_whole_widen_the_interval():
    rng = np.random.default_rng(3)
    chance = rng.beta(1.5, 1, 100)
    groups = np.repeat(np.arange(100), 4)
    truth = (rng.random(400) < chance[groups]).astype(float)
    judge = np.where(rng.random(400) < 0.8, truth, 1 - truth)
    known = np.where(np.isin(groups, rng.choice(100, 20, replace=False)), truth, np.nan)
    of_groups = vx.evaluate_grades(known, judge=judge, groups=groups)
    alone = vx.evaluate_grades(known, judge=judge)
    assert of_groups.n_groups == 20
    assert of_groups.high - of_groups.low > alone.high - alone.low
    again = vx.evaluate_grades(known, judge=judge, ids=groups, epochs=np.tile(np.arange(4), 100))
    assert again.corrected == of_groups.corrected


def test_checks_by_grade_weigh_each_grade_by_its_share():
    rng = np.random.default_rng(4)
    truth, _, judge = judged_by(4)
    known = np.full(400, np.nan)
    for grade, n in ((0.0, 40), (1.0, 20)):
        rows = rng.choice(np.flatnonzero(judge == grade), n, replace=False)
        known[rows] = truth[rows]
    found = vx.evaluate_grades(known, judge=judge, checks="by-grade")
    by_hand = sum((judge == g).mean() * np.nanmean(known[judge == g]) for g in (0.0, 1.0))
    assert found.mean == pytest.approx(by_hand)
    assert found.people.value == pytest.approx(by_hand)
    assert found.low < by_hand < found.high
    # The same by probabilities, which are then those of the sample.
    chance = np.where(judge == 0, 40 / (judge == 0).sum(), 20 / (judge == 1).sum())
    weighted = vx.evaluate_grades(known, judge=judge, checks=chance)
    assert weighted.mean == pytest.approx(by_hand)
    assert stratified(JudgedAnswers(known, judge), (0, 1), 0.95)[0] == pytest.approx(by_hand)


def test_checks_that_were_not_random_are_refused_unless_that_is_stated():
    truth, _, judge = judged_by(5)
    known = np.where((judge == 0) | (np.arange(400) < 30), truth, np.nan)
    assert chosen_by_judge(JudgedAnswers(known, judge)) < 1e-6
    with pytest.raises(vx.InputError, match="which was not at random") as refused:
        vx.evaluate_grades(known, judge=judge)
    assert refused.value.argument == "checks"
    said = vx.evaluate_grades(known, judge=judge, checks="random")
    assert any("differ from those of others" in caution for caution in said.cautions)
    with pytest.raises(vx.InputError, match="chosen by hand"):
        vx.evaluate_grades(known, judge=judge, checks="by-hand")


def test_random_checks_are_hardly_ever_refused():
    refused = sum(chosen_by_judge(JudgedAnswers(*judged_by(seed)[1:])) < 0.001 for seed in range(1500))
    assert refused <= 6


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"judge": [[1, 0], [1, 0], [0, 1], [1, 1]]}, "one judge"),
        ({"judge": [1, 0, 1]}, "must be 3 grades by people"),
        ({"judge": ["good", "bad", "good", "bad"]}, "one number per row"),
        ({"judge": [1, 0, 2, 1]}, "between 0 and 1"),
        ({"judge": [1, 0, None, 1]}, "3 answers or more"),
        ({"judge": [1, 0, 1, 1], "checks": [0.5, 0, 0.5, 0.5]}, "above 0 and at most 1"),
        ({"judge": [1, 0, 1, 1], "checks": [0.5, 0.5]}, "4 values"),
        ({"judge": [1, 0, 1, 1], "checks": "by-grade"}, "two answers or more of every grade"),
        ({"judge": [1, 0, 1, 1], "p": [0.5] * 4}, "cannot be used with `judge`"),
        ({"checks": "random"}, "by a judge that people checked"),
    ],
)
def test_bad_input_is_refused_by_name(given, text):
    with pytest.raises(vx.InputError, match=text):
        vx.evaluate_grades([1, 0, 1, None], **given)


def test_few_checks_put_people_first_and_ungraded_answers_are_said():
    truth, _, judge = judged_by(6)
    judge[-7:] = np.nan
    known = np.where(np.arange(400) < 20, truth, np.nan)
    found = vx.evaluate_grades(known, judge=judge)
    assert (found.headline, found.n_answers, found.n_checked) == ("people", 393, 20)
    assert found.mean == found.people.value
    assert "7 answers ungraded" in str(found)
    assert vx.results.JudgedGrades.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_several_people_are_averaged_and_their_agreement_is_said():
    _, known, judge = judged_by(7)
    rng = np.random.default_rng(7)
    other = np.where(rng.random(400) < 0.9, known, 1 - known)
    found = vx.evaluate_grades(np.column_stack([known, other]), judge=judge)
    assert found.n_people == 2
    assert found.people.value == pytest.approx(np.nanmean((known + other) / 2))
    assert found.alpha is not None
    assert 0.4 < found.alpha.value < 1
    assert "agreement of people" in str(found)


def test_the_interval_covers_where_the_judge_alone_does_not():
    """60 checks of 400 answers; the judge is right in 85 % and too kind."""
    hits = alone = 0
    for seed in range(500):
        rng = np.random.default_rng([8, seed])
        truth = rng.random(400) < 0.8
        judge = np.where(truth, rng.random(400) < 0.95, rng.random(400) < 0.4).astype(float)
        known = np.where(rng.permutation(400) < 60, truth, np.nan)
        interval = corrected_mean(JudgedAnswers(known, judge)).mean.within((0, 1), 0.95, 0.5)
        hits += interval.low <= 0.8 <= interval.high
        of_judge = UnitMean.of(judge).interval(0.95)
        alone += of_judge.low <= 0.8 <= of_judge.high
    assert 455 <= hits <= 495
    assert alone < 250


# ---- two models


def two(seed: int, n: int = 600, checked: int = 80):
    """Two models of equal quality, and a judge that is kinder to b."""
    rng = np.random.default_rng(seed)
    truth = {name: (rng.random(n) < 0.7).astype(float) for name in "ab"}
    errors = {"a": (0.9, 0.2), "b": (0.97, 0.5)}
    judge = {
        name: np.where(right == 1, rng.random(n) < errors[name][0], rng.random(n) < errors[name][1]).astype(
            float
        )
        for name, right in truth.items()
    }
    seen = rng.permutation(n) < checked
    return {name: np.where(seen, right, np.nan) for name, right in truth.items()}, judge


def test_a_judge_that_favours_a_model_is_named_and_corrected():
    human, judge = two(0, checked=300)
    found = vx.compare_grades(human, judge=judge)
    gap = found.difference("b", "a")
    assert abs(gap.difference) < 0.08 < judge["b"].mean() - judge["a"].mean()
    assert gap.interval.low < gap.difference < gap.interval.high
    assert any("The judge favours b over a by 0.1" in note for note in found.notes)
    other = found.difference("a", "b")
    assert other.interval == -gap.interval


def test_differences_cover_though_the_judge_favours_a_model():
    hits = alone = 0
    for seed in range(400):
        human, judge = two(seed, checked=50)
        mean = difference(JudgedAnswers(human["a"], judge["a"]), JudgedAnswers(human["b"], judge["b"]), 1.0)
        interval = mean.interval(0.95)
        hits += interval.low <= 0 <= interval.high
        of_judge = UnitMean.of(judge["a"] - judge["b"]).interval(0.95)
        alone += of_judge.low <= 0 <= of_judge.high
    assert hits >= 370
    assert alone < 40


def test_different_questions_may_be_checked_for_each_model():
    human, judge = two(1, checked=600)
    rng = np.random.default_rng(1)
    apart = {name: np.where(rng.permutation(600) < 100, grades, np.nan) for name, grades in human.items()}
    found = vx.compare_grades(apart, judge=judge)
    gap = found.difference("a", "b")
    assert gap.interval.defined
    means = {model.name: model.mean for model in found.models["grade"]}
    assert gap.difference == pytest.approx(means["a"] - means["b"])
    assert "people checked the answers of all models to" in " ".join(found.notes)


def test_rows_are_matched_by_id():
    human, judge = two(2)
    plain = vx.compare_grades(human, judge=judge)
    order = np.random.default_rng(2).permutation(600)
    ids = {"a": np.arange(600), "b": order}
    shuffled = vx.compare_grades(
        {"a": human["a"], "b": human["b"][order]}, judge={"a": judge["a"], "b": judge["b"][order]}, ids=ids
    )
    assert shuffled.difference("a", "b").difference == pytest.approx(plain.difference("a", "b").difference)
    assert shuffled.difference("a", "b").p_value == pytest.approx(plain.difference("a", "b").p_value)


def test_a_difference_without_checks_of_both_models_is_refused():
    human, judge = two(3)
    with pytest.raises(vx.InputError, match="whose sign is safe while the judge favours neither"):
        vx.compare_grades({"a": human["a"]}, judge=judge)
    with pytest.raises(vx.InputError, match="people graded no answer of b"):
        vx.compare_grades({**human, "b": np.full(600, np.nan)}, judge=judge)
    with pytest.raises(vx.InputError, match="kinder to one model than to another"):
        vx.compare_grades(human["a"], judge=judge)
    with pytest.raises(vx.InputError, match="two models or more"):
        vx.compare_grades(human, judge={"a": judge["a"]})
    with pytest.raises(vx.InputError, match="by-grade"):
        vx.compare_grades(human, judge=judge, checks="by-grade")
    with pytest.raises(vx.InputError, match="cannot be used with `judge`"):
        vx.compare_grades(human, judge=judge, margin=0.1)


# ---- plans


def test_a_plan_gives_the_width_that_was_asked_for():
    """The number of checks from a pilot, then the width of an interval with as many."""
    truth, known, judge = judged_by(9, n=4000, checked=60)
    plan = vx.plan(vx.evaluate_grades(known, judge=judge), human_labels=0.04)
    assert plan.checks < plan.people_alone
    rows = np.random.default_rng(9).choice(4000, int(plan.checks), replace=False)
    more = np.full(4000, np.nan)
    more[rows] = truth[rows]
    found = vx.evaluate_grades(more, judge=judge)
    assert (found.high - found.low) / 2 == pytest.approx(0.04, rel=0.25)
    assert [line.grade for line in plan.by_grade] == [0.0, 1.0]
    assert plan.checks_by_grade <= plan.checks * 1.1
    assert sum(line.answers for line in plan.by_grade) == 4000


def test_a_plan_that_no_number_of_checks_reaches_says_so():
    _, known, judge = judged_by(10, n=200)
    plan = vx.plan(vx.evaluate_grades(known, judge=judge), human_labels=0.02)
    assert math.isinf(plan.checks)
    assert "no number of checks is enough" in plan.verdict
    with pytest.raises(vx.InputError, match="evaluate_grades"):
        vx.plan([1, 0], human_labels=0.02)
