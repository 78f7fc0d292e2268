"""Grades of answers, and models that answered different questions."""

from __future__ import annotations

import inspect
import json
import operator
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import verax as vx
from verax.analyses.comparison.answers import AnswerRecipe
from verax.analyses.comparison.joint import Effects, JointRecipe, PseudoRecipe
from verax.analyses.comparison.opening import QuestionOptions, open_grades
from verax.report.questions import question_page
from verax.results import Comparison
from verax.rules import Grade
from verax.wings.evals.page import grade_page

# Parameters that most functions have.
SHARED = (
    *("ordered", "confidence", "seed", "weights_are", "classes", "positive", "weights", "groups"),
    *("normalize", "logits", "raters", "invalid"),
)


def answers(n=60, seed=0, models=("a", "b", "c")):
    """0/1 grades of models on the same questions, which are not equally hard."""
    rng = np.random.default_rng(seed)
    ease = rng.random(n)
    return {name: (rng.random(n) < ease).astype(float) for name in models}


def unequal(n=60, seed=0, models=("a", "b", "c")):
    """The same where every model answered its own two thirds of the questions."""
    rng = np.random.default_rng(seed + 1)
    full = answers(n, seed, models)
    ids = {name: np.sort(rng.choice(n, 2 * n // 3, replace=False)) for name in full}
    return {name: full[name][ids[name]] for name in full}, ids


def test_grades_compare_as_losses_of_two_classes_do():
    """The zero-one loss of decisions is the grade loss of the same answers, by the same paired sums."""
    grades = answers()
    y = np.ones(60, int)
    sure = {name: np.where(right == 1, 0.9, 0.1) for name, right in grades.items()}
    groups = np.repeat(np.arange(12), 5)
    by_grades = vx.compare_grades(grades, groups=groups)
    by_losses = vx.compare(y, sure, rule="zero_one", groups=groups)
    assert by_grades.n_groups == 12
    for a, b in (("a", "b"), ("a", "c")):
        ours, theirs = by_grades.difference(a, b), by_losses.difference(a, b)
        assert ours.difference == pytest.approx(-theirs.difference, abs=1e-12)
        assert list(ours.interval) == pytest.approx(list(-theirs.interval), abs=1e-12)
        assert ours.p_adjusted == pytest.approx(theirs.p_adjusted, abs=1e-12)
    best = by_grades.models["grade"][0]
    assert by_grades.grades[best.name] == best.interval


def test_compare_still_takes_grades_and_says_what_to_write():
    grades, ids = answers(), np.arange(60)
    wanted = vx.compare_grades(grades, ids=ids, ungraded="wrong")
    with pytest.warns(DeprecationWarning, match=r"vx.compare_grades\(grades, \.\.\.\)"):
        found = vx.compare(grades=grades, ids=ids, ungraded="wrong")
    assert found.to_dict() == wanted.to_dict()
    handle = vx.scan(pa.table(grades), grades={name: name for name in grades})
    with pytest.warns(DeprecationWarning, match="vx.compare_grades"):
        assert vx.compare(handle).to_dict() == vx.compare_grades(handle).to_dict()
    with (
        pytest.warns(DeprecationWarning, match="compare_grades"),
        pytest.raises(vx.InputError, match="must be left out with grades"),
    ):
        vx.compare([0, 1], grades={"a": [1, 1], "b": [0, 1]})
    own = [p for p in inspect.signature(vx.compare).parameters if p not in SHARED]
    assert len(own) <= 16


def test_scores_in_a_range_and_their_refusals():
    found = vx.compare_grades({"a": [5, 4, 1], "b": [3, 4, 2]}, grade_range=(1, 5))
    assert found.difference("a", "b", "grade(low=1.0, high=5.0)").difference == pytest.approx(1 / 3)
    with pytest.raises(vx.InputError, match="must lie between 0 and 1") as caught:
        vx.compare_grades({"a": [1, 2, 0], "b": [0, 1, 1]})
    assert caught.value.rows == (1,)
    assert "grade_range=[0.0, 2.0]" in str(caught.value)
    for wrong in ((1, 0), 3, (0, np.inf)):
        with pytest.raises(vx.InputError, match="worst and the best"):
            vx.compare_grades({"a": [1], "b": [0]}, grade_range=wrong)
    with pytest.raises(vx.InputError, match="one number per row"):
        vx.compare_grades({"a": ["C", "I"], "b": ["C", "C"]})
    with pytest.raises(vx.InputError, match="`rule` must be left out"):
        vx.compare_grades({"a": [1, 1], "b": [0, 1]}, rule="brier")
    with pytest.raises(vx.InputError, match="`ids` cannot be used without outcomes of each model"):
        vx.compare([0, 1], {"a": [0.2, 0.3], "b": [0.1, 0.4]}, ids=[1, 2])


def test_ungraded_answers_are_counted_and_bounded():
    """By hand: a is graded on all of 8, b on 6; the two others are counted at both ends of the range."""
    grades = {"a": [1, 1, 0, 1, 1, 0, 1, 1], "b": [1, 0, 0, None, 1, 0, np.nan, 0]}
    found = vx.compare_grades(grades)
    assert found.n_rows == 6
    assert found.difference("a", "b").difference == pytest.approx(4 / 6 - 2 / 6)
    a, b = found.answers["grade"]
    assert (a.asked, a.graded, a.ungraded, b.graded, b.ungraded) == (8, 8, 0, 6, 2)
    assert (b.low, b.high) == (pytest.approx(2 / 8), pytest.approx(4 / 8))
    (gap,) = found.gap_bounds["grade"]
    assert (gap.low, gap.high) == (pytest.approx(6 / 8 - 4 / 8), pytest.approx(6 / 8 - 2 / 8))
    assert any(
        "2 of 8 answers of b (25.0%)" in note and "grade between 0.2500 and 0.5000" in note
        for note in found.notes
    )
    wrong = vx.compare_grades(grades, ungraded="wrong")
    assert wrong.difference("a", "b").difference == pytest.approx(gap.high)
    assert wrong.gap_bounds == {}
    b = wrong.answers["grade"][1]
    assert (b.graded, b.ungraded, b.counted) == (6, 2, 2)
    excluded = vx.compare_grades(grades, ungraded="exclude")
    assert excluded.gap_bounds == {}
    assert excluded.answers["grade"][1].ungraded == 2


def test_unbounded_rules_have_no_upper_bound():
    rng = np.random.default_rng(0)
    y = {name: rng.integers(0, 2, 50) for name in "ab"}
    p = {name: rng.uniform(0.1, 0.9, 50) for name in "ab"}
    p["b"][3] = np.nan
    ids = dict.fromkeys("ab", np.arange(50))
    y["b"] = y["a"]
    found = vx.compare(y, p, ids=ids, rule=["brier", "log_score"], invalid="skip")
    assert found.answers["log_score"][1].high == np.inf
    assert np.isfinite(found.answers["brier"][1].high)
    assert found.gap_bounds["log_score"][0].low == -np.inf
    assert json.dumps(found.to_dict(stored=False), allow_nan=False)


def same_difference(found, known):
    """The difference of question means is that of their answers over questions as groups."""
    ours, theirs = (one.difference("a", "b") for one in (found, known))
    for name in ("difference", "standard_error", "freedom", "p_value", "interval", "skewness"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-12), name


def test_repeats_of_a_question_are_clustered_by_question():
    rng = np.random.default_rng(3)
    ids, epochs = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    grades = {name: rng.integers(0, 2, 60) for name in "ab"}
    found = vx.compare_grades(grades, ids=ids, epochs=epochs)
    known = vx.compare_grades(grades, groups=ids)
    assert (found.n_rows, found.n_groups) == (20, 20)
    same_difference(found, known)
    with pytest.raises(vx.InputError, match="must not repeat within a model") as caught:
        vx.compare_grades(grades, ids=ids)
    assert caught.value.rows == (0, 1)
    with pytest.raises(vx.InputError, match="with epoch 1 is in rows"):
        vx.compare_grades(grades, ids=ids, epochs=np.ones(60, int))


def test_models_with_different_numbers_of_repeats_are_compared_by_question():
    """By hand: the loss of a question is its mean over graded repeats; the bounds are over all of them."""
    rng = np.random.default_rng(4)
    once, often = rng.integers(0, 2, 40).astype(float), rng.integers(0, 2, (40, 3)).astype(float)
    often[0, 0] = np.nan
    ids = {"once": np.arange(40), "often": np.repeat(np.arange(40), 3)}
    epochs = {"once": np.full(40, 7), "often": np.tile([1, 2, 3], 40)}
    given = {"grades": {"once": once, "often": often.ravel()}, "ids": ids, "epochs": epochs}
    mean = np.nanmean(often, axis=1)
    for how in ({}, {"missing": "joint"}, {"missing": "pairwise"}):
        found = vx.compare_grades(**given, **how)
        gap = found.difference("once", "often")
        assert gap.difference == pytest.approx((once - mean).mean(), abs=1e-12)
        assert gap.standard_error == pytest.approx((mean - once).std(ddof=1) / np.sqrt(40))
        means = {model.name: model.mean for model in found.models["grade"]}
        assert means == pytest.approx({"once": once.mean(), "often": mean.mean()})
        assert found.n_rows == found.n_groups == 40
        counted = found.answers["grade"][1]
        assert (counted.asked, counted.ungraded, counted.questions, counted.absent) == (120, 1, 40, 0)
        wanted = [np.nan_to_num(often, nan=end).mean() for end in (0, 1)]
        assert [counted.low, counted.high] == pytest.approx(wanted)
    assert "120" in str(found)
    with pytest.raises(vx.InputError, match="must be the same for all rows of a question"):
        vx.compare_grades(**given, groups=epochs)


def test_repeats_match_by_their_order_whatever_their_numbers():
    rng = np.random.default_rng(3)
    ids = dict.fromkeys("ab", np.repeat(np.arange(20), 3))
    grades = {name: rng.integers(0, 2, 60) for name in "ab"}
    epochs = {"a": np.tile([1, 2, 3], 20), "b": np.tile([4, 5, 6], 20)}
    same_difference(
        vx.compare_grades(grades, ids=ids, epochs=epochs), vx.compare_grades(grades, groups=ids["a"])
    )


def test_the_mean_grade_is_that_of_questions():
    """A question with three repeats counts as much as one with one; its confidences are all scored."""
    grades = [1, 1, 1, 0, 0, 1]
    ids, epochs = ["p", "p", "p", "q", "r", "r"], [1, 2, 3, 1, 1, 2]
    card = vx.evaluate_grades(grades, [0.7] * 6, ids=ids, epochs=epochs, by={"kind": list("xxxyyy")})
    assert card.mean == pytest.approx((1 + 0 + 0.5) / 3)
    assert (card.answers.asked, card.n_groups, card.card.n_rows, card.card.n_groups) == (6, 3, 6, 3)
    assert card.subgroups["kind"]["y"].mean == pytest.approx(0.25)


def test_tasks_are_compared_with_one_correction():
    grades = answers(90, models=("a", "b"))
    task = np.repeat(["law", "math", "zoo"], 30)
    found = vx.compare_grades(grades, task=task)
    alone = [vx.compare_grades({k: v[task == name] for k, v in grades.items()}) for name in found.tasks]
    p = np.array([own.difference("a", "b").p_value for own in alone])
    order = np.argsort(p)
    holm = np.empty(3)
    holm[order] = np.minimum(np.maximum.accumulate(p[order] * [3, 2, 1]), 1)
    ours = [own.difference("a", "b").p_adjusted for own in found.tasks.values()]
    assert ours == pytest.approx(holm.tolist())
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_confidences_never_change_grades():
    """Invalid confidences are not scored; accuracy is that of all graded answers."""
    grades = answers(40, models=("a", "b"))
    sure = {name: np.full(40, 0.6) for name in grades}
    sure["b"][:5] = np.nan
    found = vx.compare_grades(grades, sure, rule="brier")
    alone = vx.compare_grades(grades)
    assert found.difference("a", "b") == alone.difference("a", "b")
    assert found.answers["brier"][1].ungraded == 5
    sure["a"][7] = 1.2
    with pytest.raises(vx.InputError, match="between 0 and 1"):
        vx.compare_grades(grades, sure, rule="brier")
    skipped = vx.compare_grades(grades, sure, rule="brier", invalid="skip")
    assert skipped.answers["brier"][0].ungraded == 1
    assert skipped.difference("a", "b") == alone.difference("a", "b")
    percent = {name: np.full(40, 60.0) for name in grades}
    with pytest.raises(vx.InputError, match="Divide percentages by 100"):
        vx.compare_grades(grades, percent, rule="brier", invalid="skip")


def test_grades_of_one_model():
    """Accuracy with Wilson's interval, as on cards; groups and tasks; confidences as two classes."""
    right = answers(80)["a"]
    card = vx.evaluate_grades(right)
    known = vx.evaluate(np.ones(80, int), np.where(right == 1, 0.9, 0.1), rules=["zero_one"])
    assert card.mean == pytest.approx(known.accuracy, abs=1e-15)
    assert list(card.interval) == pytest.approx(list(known.metric("accuracy").interval), abs=1e-12)
    grades = right.copy()
    grades[:4] = np.nan
    task = np.repeat(["law", "math"], 40)
    sure = np.clip(right, 0.3, 0.6)
    sure[7] = np.nan
    card = vx.evaluate_grades(grades, sure, task=task, groups=np.arange(80) // 4)
    assert (card.answers.asked, card.answers.ungraded, card.n_groups) == (80, 4, 19)
    assert card.bounds == pytest.approx((right[4:].sum() / 80, (right[4:].sum() + 4) / 80))
    assert card.tasks["law"].mean == pytest.approx(right[4:40].mean())
    assert card.card.n_rows == 75
    both = np.r_[4:7, 8:80]
    assert card.card["brier"] == pytest.approx(vx.brier(right[both].astype(int), sure[both]))
    assert (card.left_out.mean, card.unsettled) == (card.mean, False)
    assert type(card).from_dict(json.loads(json.dumps(card.to_dict()))) == card
    rubric = vx.evaluate_grades([1, 5, 3, 4, 2, 2], grade_range=(1, 5))
    assert 1 < rubric.interval.low < rubric.mean < rubric.interval.high < 5
    with pytest.raises(vx.InputError, match="must be right or wrong"):
        vx.evaluate_grades([0.5, 1], [0.5, 0.5])


# ---- unequal question sets ---------------------------------------------------------------------


def dense_solution(losses, known, weights):
    """Least squares with a dummy per model and question, by NumPy."""
    q, m = np.nonzero(known)
    design = np.zeros((len(q), known.shape[0] + known.shape[1]))
    design[np.arange(len(q)), m] = 1
    design[np.arange(len(q)), known.shape[1] + q] = 1
    root = np.sqrt(weights[q])
    solution = np.linalg.lstsq(design * root[:, None], losses[q, m] * root, rcond=None)[0]
    effects, questions = np.split(solution, [known.shape[1]])
    return effects + (weights @ questions) / weights.sum()


def additive(grades, ids, **how):
    """Joint estimates of the same answers as forecasts, whose zero-one loss is 1 minus the grade."""
    y = {name: np.ones(len(own), int) for name, own in grades.items()}
    sure = {name: np.where(own == 1, 0.9, 0.1) for name, own in grades.items()}
    return vx.compare(y, sure, ids=ids, rule="zero_one", missing="joint", **how)


def table_of(grades, ids, n):
    """(N, M) losses, NaN where there is no answer, of the questions that some model answered."""
    losses = np.full((n, len(grades)), np.nan)
    for j, name in enumerate(grades):
        losses[ids[name], j] = 1 - grades[name]
    return losses[~np.isnan(losses).all(axis=1)]


@pytest.mark.parametrize("weighted", [False, True])
def test_joint_losses_of_forecasts_equal_dense_least_squares(weighted):
    grades, ids = unequal(50, 2, ("a", "b", "c", "d"))
    w = np.random.default_rng(0).uniform(0.5, 3, 50) if weighted else np.ones(50)
    weights = {name: w[own] for name, own in ids.items()} if weighted else None
    found = additive(grades, ids, weights=weights)
    losses = table_of(grades, ids, 50)
    expected = dense_solution(losses, ~np.isnan(losses), w[np.unique(np.concatenate([*ids.values()]))])
    ours = {model.name: model.mean for model in found.models["zero_one"]}
    assert [ours[name] for name in grades] == pytest.approx(expected.tolist(), abs=1e-10)


def test_joint_errors_are_near_those_of_statsmodels():
    # statsmodels 0.15.0: OLS of the losses on dummies of models and questions, cov_type="cluster" without
    # correction, by question and by groups of four questions. Ours correct for leverage.
    grades, ids = unequal(80, 5)
    effects = {"b": -0.09619588981198092, "c": -0.02944177233639362}
    by_question = {"b": 0.09998782459253977, "c": 0.09334528509678575}
    by_group = {"b": 0.09056418239465351, "c": 0.08846701727859933}
    found = additive(grades, ids)
    grouped = additive(grades, ids, groups={name: own // 4 for name, own in ids.items()})
    assert grouped.n_groups == 20
    for name, effect in effects.items():
        gap = found.difference(name, "a")
        assert gap.difference == pytest.approx(effect, abs=1e-10)
        assert by_question[name] < gap.standard_error < 1.04 * by_question[name]
        assert by_group[name] < grouped.difference(name, "a").standard_error < 1.08 * by_group[name]


def jackknifed(losses, estimate):
    """Standard errors of all differences of an estimate of means, with each question left out."""
    n = len(losses)
    left_out = []
    for q in range(n):
        means = estimate(np.delete(losses, q, axis=0))
        left_out.append([means[i] - means[j] for i, j in ((0, 1), (0, 2), (1, 2))])
    return np.sqrt((n - 1) ** 2 / n * np.var(left_out, axis=0, ddof=1)).tolist()


def test_joint_errors_are_a_jackknife_over_questions():
    """By brute force: the estimate with each question left out, by dense least squares."""
    grades, ids = unequal(20, 4)
    errors = jackknifed(
        table_of(grades, ids, 20), lambda own: dense_solution(own, ~np.isnan(own), np.ones(len(own)))
    )
    found = additive(grades, ids)
    ours = [gap.standard_error for gap in found.differences["zero_one"]]
    assert ours == pytest.approx(errors, rel=1e-9)


def logistic_solution(losses):
    """Mean losses, those that are missing fitted by a logistic regression on model and who answered."""
    known = ~np.isnan(losses)
    share = known / known.sum(axis=1, keepdims=True)

    def deviance(effects):
        predictor = effects[:3] + (share @ effects[3:])[:, None]
        terms = np.logaddexp(0, predictor) - np.where(known, losses, 0) * predictor
        excess = np.where(known, expit(predictor) - losses, 0)
        return terms[known].sum(), np.r_[excess.sum(axis=0), share.T @ excess.sum(axis=1)]

    effects = minimize(deviance, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    fitted = expit(effects[:3] + (share @ effects[3:])[:, None])
    return np.where(known, losses, fitted).mean(axis=0)


def test_joint_grades_are_a_logistic_fit_with_jackknifed_errors():
    """By SciPy's optimiser, and by leaving out each question."""
    grades, ids = unequal(30, 4)
    losses = table_of(grades, ids, 30)
    found = vx.compare_grades(grades, ids=ids, missing="joint")
    means = {model.name: model.mean for model in found.models["grade"]}
    assert list(map(means.get, grades)) == pytest.approx((1 - logistic_solution(losses)).tolist(), abs=1e-6)
    errors = [gap.standard_error for gap in found.differences["grade"]]
    assert errors == pytest.approx(jackknifed(losses, logistic_solution), rel=0.05)


def test_joint_grades_stay_in_their_range_and_say_how_much_is_fitted():
    """A good model that was asked hard questions only: loss = model + question gives a grade of 1.48."""
    old = np.r_[np.ones(45), np.zeros(15)]
    old[[3, 50]] = 0, 1
    ids = {"old": np.arange(60), "new": np.arange(45, 60)}
    grades = {"old": old, "new": np.r_[np.ones(12), np.zeros(3)]}
    assert additive(grades, ids).best() == "new"
    for found in (vx.compare_grades(grades, ids=ids, missing="joint"), additive(grades, ids)):
        (models,) = found.models.values()
        new = next(model for model in models if model.name == "new")
        assert 0 <= new.interval.low <= new.mean <= new.interval.high <= 1
        right = new.mean if "grade" in found.models else 1 - new.mean
        assert right > 12 / 15
        assert "fitted" in new.interval.caution
        assert any("new has answers to 25% of the questions" in note for note in found.notes)
        assert "fitted" not in next(model for model in models if model.name == "old").interval.caution


def test_where_all_answered_everything_all_ways_agree():
    grades = answers()
    ids = np.arange(60)
    plain = vx.compare_grades(grades, ids=ids)
    for missing in ("joint", "pairwise"):
        found = vx.compare_grades(grades, ids=ids, missing=missing)
        for gap in plain.differences["grade"]:
            other = found.difference(gap.a, gap.b)
            assert other.difference == pytest.approx(gap.difference, abs=1e-12)
            assert other.standard_error == pytest.approx(gap.standard_error, rel=1e-9)
            assert other.p_adjusted == pytest.approx(gap.p_adjusted, rel=1e-6)


def test_answering_only_easy_questions_does_not_help():
    """Model b is worse on every question by the same amount, and answered the easy half."""
    ease = np.linspace(0.2, 0.8, 40)
    grades = {"a": ease, "b": ease[20:] - 0.05, "c": ease - 0.1}
    ids = {"a": np.arange(40), "b": np.arange(20, 40), "c": np.arange(40)}
    joint = vx.compare_grades(grades, ids=ids, missing="joint")
    assert [model.name for model in joint.models["grade"]] == ["a", "b", "c"]
    # Steps are equal in grades, and nearly so on the logit scale.
    assert joint.difference("b", "a").difference == pytest.approx(-0.05, abs=0.002)
    pairwise = vx.compare_grades(grades, ids=ids, missing="pairwise")
    means = {model.name: model.mean for model in pairwise.models["grade"]}
    assert means["b"] > means["a"]
    assert pairwise.best() == "a"
    assert pairwise.difference("b", "c").difference == pytest.approx(0.05)
    peers = {model.name: model.mean for model in joint.peers["grade"]}
    assert peers["a"] == pytest.approx((20 * 0.1 + 20 * 0.075) / 40)


def test_what_pairs_and_joint_estimates_cannot_use_is_refused():
    grades, ids = unequal(30)
    for given in ({"method": "bootstrap", "missing": "joint"}, {"reference": "a", "missing": "pairwise"}):
        with pytest.raises(vx.InputError, match="cannot be used"):
            vx.compare_grades(grades, ids=ids, **given)
    resampled = vx.compare_grades(answers(30), method="permutation", bootstrap=200)
    assert "permutation" in resampled.method


def test_models_that_share_no_question():
    grades = {"a": [1, 0, 1], "b": [1, 1, 0], "c": [0, 1, 1], "d": [1, 1, 1]}
    ids = {"a": [1, 2, 3], "b": [2, 3, 4], "c": [7, 8, 9], "d": [7, 8, 9]}
    with pytest.raises(vx.InputError, match="2 sets without a shared question: a and b; c and d"):
        vx.compare_grades(grades, ids=ids, missing="joint")
    found = vx.compare_grades(grades, ids=ids, missing="pairwise")
    assert np.isnan(found.difference("a", "c").difference)
    assert found.difference("a", "b").difference == pytest.approx(-0.5)
    with pytest.raises(vx.InputError, match="'a' lacks 4 of 7"):
        vx.compare_grades(grades, ids=ids)
    with pytest.raises(vx.InputError, match="two models share"):
        vx.compare_grades({"a": [1, 0], "b": [1, 1]}, ids={"a": [1, 2], "b": ["x", "y"]}, missing="joint")


def test_forecasts_of_models_with_their_own_questions():
    """Losses of distributions are matched by id like grades; each model has its own outcomes."""
    rng = np.random.default_rng(1)
    y, p = rng.integers(0, 3, 40), {name: rng.dirichlet(np.ones(3), 40) for name in "ab"}
    ids = {"a": np.arange(40), "b": rng.permutation(40)}
    own = {name: y[ids[name]] for name in "ab"}
    shuffled = {name: p[name][ids[name]] for name in "ab"}
    found = vx.compare(own, shuffled, ids=ids, rule="brier")
    known = vx.compare(y, p, rule="brier")
    assert found.difference("a", "b").standard_error == pytest.approx(
        known.difference("a", "b").standard_error
    )
    ids["b"], own["b"], shuffled["b"] = (each[:30] for each in (ids["b"], own["b"], shuffled["b"]))
    joint = vx.compare(own, shuffled, ids=ids, rule="brier", missing="joint")
    gaps = vx.brier.samples(own["b"], shuffled["b"]) - vx.brier.samples(y, p["a"])[ids["b"]]
    assert joint.difference("b", "a").difference == pytest.approx(gaps.mean())
    p["a"][0] = [1, 0, 0]
    own["a"][0], shuffled["a"][0] = 1, [1, 0, 0]
    with pytest.raises(vx.InputError, match="losses are infinite"):
        vx.compare(own, shuffled, ids=ids, rule="log_score", missing="joint")


def test_parts_merge_to_the_sums_of_the_whole():
    """Recipes see parts of the questions, and their summaries survive as bytes."""
    grades, ids = unequal(40, 7)
    grades["a"][3] = np.nan
    rule = Grade()
    handle = open_grades(grades, rule, QuestionOptions(ids, missing="joint"))
    part = handle.kept
    pieces = [part.subset(np.arange(start, part.n_rows, 3)) for start in range(3)]
    whole = handle.summarise({"joint": JointRecipe(handle.models, rule)})["joint"]
    effects = Effects.of(whole, handle.models, rule, 2)
    for recipe in (
        JointRecipe(handle.models, rule),
        AnswerRecipe(handle.models, rule),
        PseudoRecipe(effects, rule),
    ):
        taken = [recipe.load(recipe.take(each).to_bytes(), {}) for each in pieces]
        merged, expected = taken[2].merge(taken[0]).merge(taken[1]), recipe.take(part)
        if isinstance(recipe, PseudoRecipe):
            assert merged.first.means == pytest.approx(expected.first.means, abs=1e-12)
            continue
        for name, value in vars(expected).items():
            assert np.asarray(getattr(merged, name)) == pytest.approx(np.asarray(value), abs=1e-9), name


def test_rows_left_out_are_bounded():
    """Invalid rows of distributions: the same bounds on cards and comparisons, by hand."""
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 40), rng.uniform(0.1, 0.9, 40)
    p[:4] = np.nan
    card = vx.evaluate(y, p, rules=["brier", "log_score"], invalid="skip")
    kept = vx.brier.samples(y[4:], p[4:]).sum()
    assert card.skipped_bounds["brier"] == pytest.approx((kept / 40, (kept + 4 * 2) / 40))
    assert card.skipped_bounds["log_score"][1] == np.inf
    assert card.skipped_bounds["accuracy"][1] - card.skipped_bounds["accuracy"][0] == pytest.approx(0.1)
    assert f"brier from {kept / 40:.4g} to {(kept + 8) / 40:.4g}" in repr(card)
    found = vx.compare(y, {"a": p, "b": np.full(40, 0.5)}, rule="brier", invalid="skip")
    assert found.skipped_bounds["brier of a"] == card.skipped_bounds["brier"]
    assert found.to_dict()["skipped_bounds"]["brier of b"] == pytest.approx([0.45, 0.65])
    assert vx.evaluate(y[4:], p[4:], invalid="skip").skipped_bounds == {}


def test_forecasts_that_change_over_time():
    """A tournament: losses weighted by how long forecasts stood, by hand; skill against a stated forecast."""
    y = {"ann": [1, 1, 0], "bob": [1, 0], "even": [1, 0]}
    p = {"ann": [0.5, 0.9, 0.2], "bob": [0.6, 0.4], "even": [0.5, 0.5]}
    ids = {"ann": ["q", "q", "r"], "bob": ["q", "r"], "even": ["q", "r"]}
    times = {"ann": [0.0, 6.0, 1.0], "bob": [5.0, 0.0], "even": [0.0, 0.0]}
    closes = {"ann": [10.0, 10.0, 4.0], "bob": [10.0, 4.0], "even": [10.0, 4.0]}
    found = vx.compare(y, p, ids=ids, times=times, closes=closes, rule="brier", reference="even")
    ann = ((6 * 0.5 + 4 * 2 * 0.1**2) / 10 + 2 * 0.2**2) / 2
    means = {model.name: model for model in found.models["brier"]}
    assert means["ann"].mean == pytest.approx(ann)
    assert means["ann"].skill == pytest.approx(1 - ann / 0.5)
    dated = {
        name: np.datetime64("2026-01-01") + np.array(own, "timedelta64[D]")
        for name, own in ((key, np.array(value, int)) for key, value in times.items())
    }
    ends = {
        name: np.datetime64("2026-01-01") + np.array(own, int).astype("timedelta64[D]")
        for name, own in closes.items()
    }
    again = vx.compare(
        y, p, ids=ids, times=dated, closes=ends, rule="brier", reference="even", missing="joint"
    )
    assert {m.name: m.mean for m in again.models["brier"]}["ann"] == pytest.approx(ann)
    assert {m.name: m.mean for m in again.peers["brier"]}["even"] == pytest.approx(
        0.5 - (ann + (0.32 + 0.32) / 2) / 2
    )
    with pytest.raises(vx.InputError, match="after the close"):
        vx.compare(y, p, ids=ids, times={**times, "bob": [11.0, 0.0]}, closes=closes)
    with pytest.raises(vx.InputError, match="need ids and closes"):
        vx.compare(y, p, ids=ids, times=times)


def test_merged_cards_keep_the_groups_of_tasks(tmp_path):
    """Parts that hold one group of a task: their cards add up to that of all answers, saved or not."""
    rng = np.random.default_rng(0)
    groups, task = np.repeat(np.arange(8), 10), np.repeat(["law", "maths"], 40)
    grades = (rng.random(80) < np.repeat(rng.random(8), 10)).astype(float)

    def card(rows):
        return vx.evaluate_grades(grades[rows], task=task[rows], groups=groups[rows], by={"of": task[rows]})

    for group in range(8):
        card(groups == group).save(tmp_path / f"{group}.verax")
    merged = reduce(operator.add, (vx.load(tmp_path / f"{group}.verax") for group in range(8)))
    whole = card(slice(None))
    for parts, wanted in ((merged.tasks, whole.tasks), (merged.subgroups["of"], whole.subgroups["of"])):
        for label, own in wanted.items():
            assert parts[label].n_groups == own.n_groups == 4
            assert parts[label].interval == pytest.approx(own.interval)
    # Tasks that are groups have independent answers.
    alone = vx.evaluate_grades(grades, task=groups, groups=groups)
    assert alone.tasks["3"].interval == vx.evaluate_grades(grades[30:40]).interval


def test_grades_have_one_orientation_everywhere(tmp_path):
    """Python, JSON, tables, page and figure show mean grades and their differences; higher is better."""
    pytest.importorskip("matplotlib")
    grades = {"a": [1] * 40 + [0] * 20, "b": [1] * 25 + [0] * 35}
    found = vx.compare_grades(grades, task=["x", "y"] * 30)
    gap = found.grade_differences[0]
    assert (gap.a, gap.b) == ("a", "b")
    assert gap.difference == pytest.approx(15 / 60)
    assert gap == found.difference("a", "b") == found.differences["grade"][0]
    assert found.difference("b", "a").difference == pytest.approx(-15 / 60)
    assert found.models["grade"][0].mean == pytest.approx(40 / 60)
    assert found.flat()["grade/a - b"] == gap.difference
    assert f"{gap.difference:.3g} ahead of b" in found.verdict
    table = found._tables()[0]
    assert table.cells()[1][2] == f"{40 / 60:.5f}"
    low, high = found.grades["a"]
    assert low < 40 / 60 < high
    text, page = repr(found), question_page(found)
    for shown in (
        f"{low:.5f} to {high:.5f}",
        f"{gap.difference:+.6f}",
        f"{gap.interval:.6f}",
        "higher is better",
    ):
        assert shown in text
        assert shown in page
    assert "loss" not in page
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["grades"]["a"] == pytest.approx([low, high])
    assert stored["grade_differences"][0]["difference"] == gap.difference
    by_task = next(line for line in text.splitlines() if line.startswith("x "))
    assert f"{found.tasks['x'].grade_differences[0].difference:+.6f}" in by_task
    figure = found.plot()
    assert "mean grade, higher is better" in figure.get_supxlabel()
    assert any(line.get_xdata()[0] == pytest.approx(40 / 60) for line in figure.axes[0].lines)
    # What is worse, and by how much, is the same for losses and grades.
    worse = vx.compare_grades(grades, margin=0.3).margin_tests[0]
    assert (worse.model, worse.difference) == ("a", pytest.approx(-15 / 60))


def test_the_page_of_grades_has_the_notes_of_the_terminal():
    card = vx.evaluate_grades([1, 0, 1, 1] * 10, [0.9, 0.4, 0.8, 0.6] * 10)
    page = grade_page(card)
    assert "Lower is better, except for accuracy" in page
    assert "that of the answers is above" in page


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "Float64", "bool[pyarrow]", "object"])
def test_missing_values_of_pandas_are_ungraded(dtype):
    column = pd.Series([1, 0, None, 1, 0], dtype="boolean" if "bool" in dtype else "Int64").astype(dtype)
    plain = [1, 0, None, 1, 0]
    card = vx.evaluate_grades(column)
    assert (card.mean, card.answers.ungraded) == (0.5, 1)
    found = vx.compare_grades({"a": column, "b": [1, 1, 1, 1, 0]})
    wanted = vx.compare_grades({"a": plain, "b": [1, 1, 1, 1, 0]})
    assert found.difference("a", "b") == wanted.difference("a", "b")
