"""Models compared over folds: the corrected t test, rows, and every form in which folds come."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import verax as vx
from law import equal

A = [0.20, 0.22, 0.19, 0.24, 0.21, 0.25]
B = [0.23, 0.24, 0.23, 0.26, 0.25, 0.24]
N = 60
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, N)
MODELS = {"a": 0.3 + 0.4 * Y + 0.2 * RNG.random(N), "b": RNG.random(N)}
FOLDS = np.arange(N) % 5


def test_the_corrected_t_test_is_that_of_nadeau_and_bengio():
    gap = vx.compare_folds(scores={"a": A, "b": B}, better="lower").difference("a", "b")
    d = np.subtract(A, B)
    error = np.sqrt((1 / 6 + 1 / 5) * d.var(ddof=1))
    assert gap.difference == pytest.approx(d.mean())
    assert gap.standard_error == pytest.approx(error)
    assert tuple(gap.interval) == pytest.approx(stats.t.interval(0.95, 5, d.mean(), error))
    assert gap.p_value == pytest.approx(2 * stats.t.sf(abs(d.mean()) / error, 5))
    assert gap.interval.caution == "only 6 folds"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # baycomp 1.0.3: CorrelatedTTest(A, B, rope=0.01, runs=1).probs(); its larger scores are better.
        ({"rope": 0.01}, (0.015822180879747762, 0.12924029841991802, 0.8549375207003342)),
        # CorrelatedTTest(A, B, rope=0.01, runs=2).probs()
        ({"rope": 0.01, "repeats": 2}, (0.039915063162821174, 0.17038045029445004, 0.7897044865427288)),
        # CorrelatedTTest(A, B, rope=0, runs=1).probs()
        ({}, (0.04664392880925039, 0.0, 0.9533560711907496)),
    ],
)
def test_probabilities_of_practical_equivalence_are_those_of_baycomp(options, expected):
    (lower,) = vx.compare_folds(scores={"a": A, "b": B}, better="lower", **options).practical["score"]
    assert (lower.worse, lower.alike, lower.better) == pytest.approx(expected, abs=1e-12)
    found = vx.compare_folds(scores={"a": A, "b": B}, better="higher", **options)
    (higher,) = found.practical["score"]
    assert (higher.better, higher.alike, higher.worse) == pytest.approx(expected, abs=1e-12)
    assert higher.turned.better == higher.worse
    assert found.best() == "b"
    assert found.models["score"][0].mean == pytest.approx(np.mean(B))


def test_scores_that_are_higher_for_better_models_are_losses_with_the_other_sign():
    scores = {"a": np.array([0.8, 0.9, 0.7, 0.85]), "b": np.array([0.7, 0.75, 0.6, 0.7])}
    found = vx.compare_folds(scores=scores, better="higher")
    losses = vx.compare_folds(scores={name: -own for name, own in scores.items()}, better="lower")
    gap, other = found.difference("a", "b"), losses.difference("a", "b")
    assert gap.difference == gap.finite_difference == -other.difference == pytest.approx(0.125)
    assert tuple(gap.interval) == tuple(-other.interval)
    assert (gap.p_value, gap.standard_error) == (other.p_value, other.standard_error)
    for model, same in zip(found.models["score"], losses.models["score"], strict=True):
        assert model.mean == model.finite_mean == -same.mean


def test_differences_without_spread():
    found = vx.compare_folds(
        scores={"a": [0.1, 0.1], "b": [0.1, 0.1], "c": [0.2, 0.2]}, better="lower", rope=0.05
    )
    probabilities = {(p.a, p.b): (p.better, p.alike, p.worse) for p in found.practical["score"]}
    assert probabilities == {("a", "b"): (0, 1, 0), ("a", "c"): (1, 0, 0), ("b", "c"): (1, 0, 0)}
    assert (
        vx.compare_folds(scores={"a": [1, 1], "b": [1, 1]}, better="lower").practical["score"][0].better
        == 0.5
    )
    assert found.difference("a", "b").p_value == 1


def test_rows_give_both_answers():
    found = vx.compare_folds(Y, MODELS, folds=FOLDS, rule="brier")
    losses = np.column_stack([vx.brier.samples(Y, p) for p in MODELS.values()])
    means = np.array([losses[k == FOLDS].mean(axis=0) for k in range(5)])
    assert found.values["brier"] == pytest.approx(means)
    assert found.test_train == 0.25
    method = vx.compare_folds(scores=dict(zip("ab", means.T, strict=True)), better="lower").difference(
        "a", "b"
    )
    assert found.difference("a", "b").interval == pytest.approx(method.interval)
    whole = vx.compare(Y, MODELS, rule="brier")
    assert not equal(found.rows.to_dict(stored=False), whole.to_dict(stored=False))
    assert found.verdict.startswith("a is significantly better than b: mean brier")
    shown = repr(found)
    assert "The method, trained on other data: corrected t test" in shown
    assert "These fitted models, on other rows: paired t test" in shown


def test_folds_of_unequal_sizes_count_alike_and_weights_count_within_them():
    folds, weights = np.repeat([0, 1, 2], [10, 20, 30]), np.arange(N) + 1.0
    found = vx.compare_folds(Y, MODELS, folds=folds, rule="brier", weights=weights)
    losses = vx.brier.samples(Y, MODELS["a"])
    means = [np.average(losses[folds == k], weights=weights[folds == k]) for k in range(3)]
    (mean,) = (m.mean for m in found.models["brier"] if m.name == "a")
    assert mean == pytest.approx(np.mean(means))
    assert found.test_train == 60 / 120


def test_repeats_are_known_by_ids_and_cluster_rows():
    y, folds = np.tile(Y, 2), np.r_[FOLDS, 5 + np.random.default_rng(0).permutation(FOLDS)]
    models = {name: np.r_[p, 0.9 * p + 0.05] for name, p in MODELS.items()}
    ids = np.tile(np.arange(N), 2)
    found = vx.compare_folds(y, models, folds=folds, ids=ids, rule="brier")
    assert (found.repeats, found.test_train, found.rows.n_groups) == (2, 0.25, N)
    whole = vx.compare(y, models, rule="brier", groups=ids)
    assert not equal(found.rows.to_dict(stored=False), whole.to_dict(stored=False))
    unknown = vx.compare_folds(y, models, folds=folds, repeats=2, rule="brier")
    assert unknown.rows is None
    assert "ids=" in unknown.notes[0]
    assert unknown.difference("a", "b").p_value == found.difference("a", "b").p_value


def test_infinite_losses_have_no_interval():
    p = np.where(np.arange(N) == 3, 1.0 - Y, 0.5)
    found = vx.compare_folds(Y, {"a": p, "b": MODELS["a"]}, folds=FOLDS, rule="log_score")
    assert found.best() == "b"
    assert np.isinf(found.models["log_score"][1].mean)
    assert not found.difference("a", "b").interval.defined
    assert np.isnan(found.practical["log_score"][0].better)
    assert "log_score is infinite for a (1 of 60 rows)" in repr(found)


def test_searches_and_cross_validations_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, cross_validate

    x = np.c_[MODELS["a"], RNG.random(N)]
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    scoring = ["neg_log_loss", "accuracy"]
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1]}, cv=cv, scoring=scoring, refit=False)
    search.fit(x, Y)
    found = vx.compare_folds(scores=search.cv_results_, repeats=2)
    assert found.names == ["C=0.01", "C=1"]
    assert found.higher_is_better
    for name in scoring:
        means = dict(zip(["C=0.01", "C=1"], search.cv_results_[f"mean_test_{name}"], strict=True))
        assert {m.name: m.mean for m in found.models[name]} == pytest.approx(means)
        assert [m.infinite_rows for m in found.models[name]] == [0, 0]
    results = {
        f"C={c:g}": cross_validate(LogisticRegression(C=c), x, Y, cv=cv, scoring=scoring, return_indices=True)
        for c in (0.01, 1)
    }
    same = vx.compare_folds(scores=results)
    assert same.to_dict()["differences"] == found.to_dict()["differences"]
    assert (same.repeats, same.test_train) == (2, 0.5)
    other = dict(results["C=1"], indices={k: v[::-1] for k, v in results["C=1"]["indices"].items()})
    with pytest.raises(vx.InputError, match="the splits of 'other' differ from those of 'C=1'"):
        vx.compare_folds(scores={"C=1": results["C=1"], "other": other})


def report(p, order):
    """The attributes of a skore `CrossValidationReport` that are read."""
    rows = np.arange(N)
    folds = [rows[order == k] for k in range(5)]
    reports = [
        SimpleNamespace(
            y_test=Y[test],
            estimator_=SimpleNamespace(classes_=np.array([0, 1])),
            get_predictions=lambda data_source, response_method, test=test: np.c_[1 - p[test], p[test]],
        )
        for test in folds
    ]
    splits = [(np.setdiff1d(rows, test), test) for test in folds]
    return SimpleNamespace(reports_=reports, split_indices=splits)


def test_cross_validation_reports_are_read_as_rows():
    reports = {name: report(p, FOLDS) for name, p in MODELS.items()}
    found = vx.compare_folds(reports, rule="brier")
    expected = vx.compare_folds(Y, MODELS, folds=FOLDS, rule="brier")
    assert found.difference("a", "b").interval == pytest.approx(expected.difference("a", "b").interval)
    compared = vx.compare_folds(SimpleNamespace(reports_=reports), rule="brier")
    assert compared.to_dict() == found.to_dict()
    with pytest.raises(vx.InputError, match="the splits of 'b' differ"):
        vx.compare_folds({"a": report(MODELS["a"], FOLDS), "b": report(MODELS["b"], FOLDS[::-1])})


def test_a_file_for_each_fold_and_a_column_of_folds(tmp_path):
    frame = pd.DataFrame({"y": Y, "fold": FOLDS, **MODELS})
    probs = {"a": "a", "b": "b"}
    for k in range(5):
        frame[frame.fold == k].to_csv(tmp_path / f"{k}.csv", index=False)
    files = {k: vx.scan(tmp_path / f"{k}.csv", target="y", probs=probs) for k in range(5)}
    expected = vx.compare_folds(Y, MODELS, folds=FOLDS, rule="brier").to_dict()
    assert vx.compare_folds(files, rule="brier").to_dict()["differences"] == expected["differences"]
    assert vx.compare_folds(list(files.values()), rule="brier").folds == (0, 1, 2, 3, 4)
    scanned = vx.scan(frame, target="y", probs=probs, by="fold")
    assert vx.compare_folds(scanned, folds="fold", rule="brier").to_dict()["rows"] == expected["rows"]
    with pytest.raises(vx.InputError, match=r"`folds` must be a column that `scan` was told of"):
        vx.compare_folds(scanned, folds="no", rule="brier")
    swapped = vx.scan(tmp_path / "1.csv", target="y", probs={"a": "a", "c": "b"})
    with pytest.raises(vx.InputError, match="fold 1 has a and c, not a and b"):
        vx.compare_folds({0: files[0], 1: swapped})


def test_a_frame_of_scores_and_several_models():
    scores = pd.DataFrame({"fold": list("uvwxyz"), "a": A, "b": B, "c": np.add(B, 0.1)})
    found = vx.compare_folds(scores=scores, better="lower")
    assert [m.letters for m in found.models["score"]] == ["a", "a", "b"]
    p = np.sort([d.p_value for d in found.differences["score"]])
    adjusted = np.sort([d.p_adjusted for d in found.differences["score"]])
    assert adjusted == pytest.approx(np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1))
    assert found.to_frame().shape[0] == 3
    assert found.flat()["score/a"] == pytest.approx(np.mean(A))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"scores": {"a": [1.0], "b": [2.0]}},
            r"`folds` must be at least two; there is 1\. Compare the fitted",
        ),
        ({"scores": {"a": [1.0, 2.0], "b": [2.0]}}, "must be of the same folds.*'a' has 2 and 'b' has 1"),
        ({"scores": {"a": [1.0, np.nan], "b": [2.0, 1.0]}}, "that of 'a' in fold 1 is not"),
        ({"scores": {"a": [1.0, 2.0]}}, "must name at least two models"),
        ({"scores": {"a": A, "b": B}, "better": "lower", "repeats": 4}, "must divide the number of folds, 6"),
        ({"scores": {"a": A, "b": B}, "folds": FOLDS}, "`folds` cannot be used with scores"),
        ({"scores": {"a": {"fit_time": [1]}, "b": {"test_score": [1]}}}, "'a' has none"),
        ({"scores": 3}, "it is a int"),
        (
            {"scores": {"a": A, "b": B}},
            r"`better` must say which scores are better; the name 'score' does not\. Pass better='lower'",
        ),
        ({"y": Y, "forecasts": MODELS}, "`folds` must say the test fold of each row"),
        ({"y": Y, "forecasts": MODELS, "folds": np.zeros(N)}, "must be at least two; there is 1"),
        (
            {"y": Y, "forecasts": MODELS, "folds": FOLDS[1:]},
            "`folds` must be one label per row; there are 59",
        ),
        ({"y": Y, "forecasts": MODELS, "folds": [None, *FOLDS[1:]]}, "`folds`"),
        ({"y": Y, "forecasts": MODELS, "folds": FOLDS, "rope": 0.1}, "`rope` is in units of one score"),
        (
            {"y": Y, "forecasts": MODELS, "folds": FOLDS, "better": "higher"},
            "`better` cannot be used with rows",
        ),
        (
            {"y": Y, "forecasts": MODELS, "folds": FOLDS, "ids": [1, 1, *range(2, N)]},
            r"must not share rows.*1 is in folds 0 and 1 \(1 such cases\)\. Pass repeats=2",
        ),
        (
            {"y": Y, "forecasts": MODELS, "folds": FOLDS, "ids": [5, *range(1, N)]},
            "must be different within a fold; 5 is there several times",
        ),
    ],
)
def test_refusals(given, message):
    with pytest.raises(vx.InputError, match=message):
        vx.compare_folds(**given)
