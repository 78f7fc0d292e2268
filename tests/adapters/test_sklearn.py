"""Rules as scikit-learn scorers, beside scikit-learn's own; classifiers with recalibrated probabilities."""

from __future__ import annotations

import inspect
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, cohen_kappa_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import verax as vx
from verax.adapters.sklearn import MissingClassWarning, Recalibrated, scorer, scores
from verax.analyses.measures import MEASURES
from verax.scores.metrics import METRICS
from verax.selection import HBlockSplit

NAMES = np.array(["low", "medium", "high"])  # not in alphabetical order


@pytest.fixture(scope="module")
def data():
    x, y = load_iris(return_X_y=True)
    return x[:, :2], y


def model():
    return GaussianNB()


@dataclass(frozen=True, repr=False)
class Quartic(vx.rules.Rule):
    """A rule that no adapter has heard of."""

    name = "quartic"
    needs = frozenset()
    properties = vx.brier.properties

    def formula(self, stats):
        return (1 - stats.p_true) ** 4

    def bounds(self, n_classes):
        return 0.0, 1.0


@pytest.mark.parametrize(("rule", "own"), [("log_score", "neg_log_loss"), (vx.brier, "neg_brier_score")])
def test_as_scikit_learn_scores_it(data, rule, own):
    x, y = data
    if own == "neg_brier_score" and "labels" not in inspect.signature(brier_score_loss).parameters:
        pytest.skip("this scikit-learn has the Brier score of two classes only")
    ours = cross_val_score(model(), x, NAMES[y], scoring=scorer(rule))
    np.testing.assert_allclose(ours, cross_val_score(model(), x, NAMES[y], scoring=own), rtol=1e-9)


def test_binary_problems_too():
    x, y = make_classification(200, 4, random_state=0)  # not so many that scikit-learn clips
    for rule, own in ((vx.rules.Brier(scale="half"), "neg_brier_score"), ("log_score", "neg_log_loss")):
        ours, theirs = (cross_val_score(model(), x, y == 1, scoring=s) for s in (scorer(rule), own))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("rule", [*vx.rules.RULES.values(), vx.penalized(vx.rps), Quartic()], ids=repr)
def test_any_rule_with_columns_matched_by_name(data, rule):
    x, y = data
    fitted = model().fit(x, NAMES[y])
    assert list(fitted.classes_) == ["high", "low", "medium"]
    by_hand = rule(y, fitted.predict_proba(x)[:, [1, 2, 0]])
    assert scorer(rule, classes=NAMES)(fitted, x, NAMES[y]) == pytest.approx(-by_hand, rel=1e-12)


def test_an_order_is_never_guessed(data):
    x, y = data
    with pytest.raises(vx.InputError, match=r"`classes` must list the classes in order.*rps is ordinal"):
        scorer("rps")(model().fit(x, NAMES[y]), x, NAMES[y])
    right, wrong = (
        cross_val_score(model(), x, NAMES[y], scoring=scorer("rps", classes=classes))
        for classes in (["low", "medium", "high"], ["medium", "low", "high"])
    )
    assert not np.allclose(right, wrong)


@pytest.mark.long
@pytest.mark.parametrize("labels", [[0, 1, 2], [-5, 1, 30], [0.0, 1.0, 2.0], [True, False, True]], ids=str)
@pytest.mark.parametrize("rule", ["rps", "sa_rps", "penalized(rps)"])
def test_numbers_are_an_order(data, rule, labels):
    x, y = data
    named = np.array(labels)[y]
    order = sorted(set(labels))
    own, told = (
        cross_val_score(model(), x, named, scoring=scorer(rule, **k)) for k in ({}, {"classes": order})
    )
    np.testing.assert_array_equal(own, told)
    fitted = model().fit(x, named)
    by_hand = vx.parse(rule)(np.searchsorted(order, named), fitted.predict_proba(x))
    assert scorer(rule)(fitted, x, named) == pytest.approx(-by_hand, rel=1e-12)


def test_integers_that_only_the_rows_scored_have_stand_in_order(data):
    x, y = data
    fitted = model().fit(x[y != 1], y[y != 1])
    p = np.insert(fitted.predict_proba(x), 1, 0.0, axis=1)
    with pytest.warns(MissingClassWarning, match="not trained on class 1"):
        assert scorer("rps")(fitted, x, y) == pytest.approx(-vx.rps(y, p), rel=1e-12)


def test_a_search_keeps_what_the_rule_prefers(data):
    x, y = data
    pipeline = make_pipeline(StandardScaler(), model())
    grid = {"gaussiannb__var_smoothing": [1e-9, 0.1, 10.0]}
    found = [
        GridSearchCV(pipeline, grid, scoring=scoring, cv=4).fit(x, y)
        for scoring in (scorer("log_score"), "neg_log_loss")
    ]
    assert found[0].best_params_ == found[1].best_params_
    np.testing.assert_allclose(*(search.cv_results_["mean_test_score"] for search in found), rtol=1e-9)
    # The scorer reads the fitted search itself, too, and blocks of classes are folds like any others.
    assert scorer("log_score")(found[0], x, y) == pytest.approx(get_scorer("neg_log_loss")(found[0], x, y))
    blocks = HBlockSplit(5, per_class=True)
    assert GridSearchCV(pipeline, grid, scoring=scorer("pbs"), cv=blocks).fit(x, y).best_score_ < 0


def test_several_at_once_and_in_two_processes(data):
    x, y = data
    scoring = {
        "rps": scorer("rps", classes=range(3)),
        "quartic": scorer(Quartic()),
        "log_score": scorer("log_score"),
    }
    one, two = (
        cross_validate(model(), x, y, scoring=scoring, cv=StratifiedKFold(3), n_jobs=n) for n in (1, 2)
    )
    for name in scoring:
        np.testing.assert_array_equal(one[f"test_{name}"], two[f"test_{name}"])
    search = GridSearchCV(model(), {"var_smoothing": [0.1, 1]}, scoring=scoring, refit="rps", n_jobs=2).fit(
        x, y
    )
    assert set(search.cv_results_) >= {"mean_test_rps", "mean_test_quartic"}


class Counting(LogisticRegression):
    """Counts how often its probabilities are asked for."""

    asked = 0

    def predict_proba(self, x):
        type(self).asked += 1
        return super().predict_proba(x)


def test_all_scores_come_from_one_prediction(data):
    x, y = data
    rules = ["brier", "rps", "log_score"]
    Counting.asked = 0
    found = cross_validate(Counting(max_iter=500), x, y, cv=3, scoring=scores(rules))
    assert Counting.asked == 3
    for name in rules:
        alone = cross_val_score(LogisticRegression(max_iter=500), x, y, cv=3, scoring=scorer(name))
        assert found[f"test_{name}"] == pytest.approx(alone, rel=1e-12)
    search = GridSearchCV(
        LogisticRegression(max_iter=500), {"C": [0.01, 1]}, scoring=scores(rules), refit="rps"
    )
    assert search.fit(x, y).best_score_ == search.cv_results_["mean_test_rps"].max()
    assert repr(scores(["rps"], classes=[0, 1, 2])) == "scores(['rps'], classes=[0, 1, 2])"


def test_a_rule_is_a_metric_of_scikit_learn(data):
    x, y = data
    made = make_scorer(vx.brier, response_method="predict_proba", greater_is_better=False)
    assert "brier" in repr(made)
    model = LogisticRegression(max_iter=500).fit(x, y)
    assert made(model, x, y) == pytest.approx(scorer("brier")(model, x, y), rel=1e-12)


@pytest.mark.parametrize("rule", [vx.brier, vx.rps, vx.penalized(vx.brier), Quartic()], ids=repr)
def test_a_rule_is_a_scorer_as_it_is(data, rule):
    """Scikit-learn passes a fitted estimator, features and outcomes, which no other call of a rule has."""
    x, y = data
    direct, made = (cross_val_score(model(), x, y.astype(float), scoring=s) for s in (rule, scorer(rule)))
    np.testing.assert_array_equal(direct, made)
    assert (direct < 0).all()
    fitted, w = model().fit(x, y), np.arange(len(y))
    assert rule(fitted, x, y, sample_weight=w) == scorer(rule)(fitted, x, y, sample_weight=w)
    search = GridSearchCV(model(), {"var_smoothing": [1e-9, 10.0]}, scoring={"it": rule}, refit="it").fit(
        x, y
    )
    assert search.best_params_ == {"var_smoothing": 1e-9}
    with pytest.raises(TypeError, match="takes at most"):
        rule(y, fitted.predict_proba(x), y)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("zero_one", "accuracy"), ("balanced_accuracy", "balanced_accuracy"), ("f1", "f1"), ("kappa", None)],
)
def test_thresholds_are_tuned_by_metrics_of_decisions(ours, theirs):
    x, y = make_classification(300, 4, flip_y=0.2, weights=[0.8], random_state=1)
    own = make_scorer(cohen_kappa_score) if theirs is None else theirs
    found, expected = (
        TunedThresholdClassifierCV(model(), scoring=s, cv=3).fit(x, y) for s in (scorer(ours), own)
    )
    assert found.best_threshold_ == expected.best_threshold_
    w = np.random.default_rng(0).uniform(size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        requested = [s.set_score_request(sample_weight=True) for s in (scorer(ours), get_scorer(own))]
        routed = [
            TunedThresholdClassifierCV(model().set_fit_request(sample_weight=False), scoring=s, cv=3)
            .fit(x, y, sample_weight=w)
            .best_score_
            for s in requested
        ]
    # The zero-one loss is one minus the accuracy.
    assert routed[0] == pytest.approx(routed[1] - (ours == "zero_one"), rel=1e-9)


@pytest.mark.parametrize("name", ["brier", "auc", "ece"])
def test_thresholds_are_not_tuned_by_probabilities(name):
    x, y = make_classification(100, 4, random_state=1)
    with pytest.raises(vx.errors.RuleError, match="scores probabilities, which no threshold changes"):
        TunedThresholdClassifierCV(model(), scoring=scorer(name)).fit(x, y)


def test_copies_are_the_same(data):
    x, y = data
    fitted = model().fit(x, y)
    made = scorer("rps", classes=range(3)).set_score_request(sample_weight=True)
    for other in (pickle.loads(pickle.dumps(made)), clone(made, safe=False)):
        assert other(fitted, x, y) == made(fitted, x, y)
        assert repr(other) == repr(made) == "scorer('rps', classes=[0, 1, 2])"
        assert other.get_metadata_routing().score.requests == {"sample_weight": True}


# ---- weights -------------------------------------------------------------------------------------


def test_weights_count_as_rows(data):
    x, y = data
    fitted = model().fit(x, y)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = scorer("pbs")(fitted, np.repeat(x, times, axis=0), np.repeat(y, times))
    assert scorer("pbs")(fitted, x, y, sample_weight=times) == pytest.approx(repeated, rel=1e-12)


def test_weights_are_routed(data):
    x, y = data
    weights = np.random.default_rng(1).uniform(size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = model().set_fit_request(sample_weight=True)
        ours = scorer("log_score").set_score_request(sample_weight=True)
        theirs = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
        scores = cross_validate(
            estimator, x, y, scoring={"a": ours, "b": theirs}, params={"sample_weight": weights}
        )
        np.testing.assert_allclose(scores["test_a"], scores["test_b"], rtol=1e-9)
        alone = cross_validate(estimator, x, y, scoring=ours, params={"sample_weight": weights})
        np.testing.assert_array_equal(alone["test_score"], scores["test_a"])
        searches = [
            GridSearchCV(estimator, {"var_smoothing": [0.1, 1]}, scoring=s).fit(x, y, sample_weight=weights)
            for s in (ours, theirs)
        ]
        np.testing.assert_allclose(*(search.cv_results_["mean_test_score"] for search in searches), rtol=1e-9)
        # Weights under another name, weights refused, and weights that nobody has decided on.
        renamed = scorer("log_score").set_score_request(sample_weight="cost")
        named = cross_validate(
            estimator, x, y, scoring=renamed, params={"sample_weight": weights, "cost": weights}
        )
        np.testing.assert_array_equal(named["test_score"], alone["test_score"])
        ignored = scorer("log_score").set_score_request(sample_weight=False)
        unweighted = cross_validate(estimator, x, y, scoring=ignored, params={"sample_weight": weights})
        assert not np.allclose(unweighted["test_score"], alone["test_score"])
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError) as refused:
            cross_validate(estimator, x, y, scoring=scorer("log_score"), params={"sample_weight": weights})
        # Old versions blame the estimator, after an error that names the scorer.
        assert "scorer('log_score')" in f"{refused.value} {refused.value.__context__}"


# ---- classes that a fold lacks -------------------------------------------------------------------


def test_a_fold_that_lacks_a_class_is_scored_and_reported(data):
    x, y = data
    with pytest.warns(MissingClassWarning) as caught:
        scores = cross_val_score(
            model(), x, NAMES[y], cv=KFold(3), scoring=scorer("rps", classes=NAMES), error_score="raise"
        )
    said = (
        "The estimator was not trained on class {!r}, which has probability 0 and happened in 50 of the 50 "
    )
    assert [str(w.message) for w in caught] == [said.format(str(n)) + "rows scored." for n in NAMES]
    for (train, test), score in zip(KFold(3).split(x), scores, strict=True):
        fitted = model().fit(x[train], y[train])
        p = np.zeros((50, 3))
        p[:, fitted.classes_] = fitted.predict_proba(x[test])
        assert score == pytest.approx(-vx.rps(y[test], p), rel=1e-9)


def test_the_log_score_is_then_infinite_and_says_why(data):
    x, y = data
    fitted = model().fit(x[50:], y[50:])
    with pytest.warns(MissingClassWarning, match=r"class 0,.*150 rows scored.*so the score is -inf"):
        assert scorer("log_score")(fitted, x, y) == -np.inf
    # Where the class does not happen nothing is lost, but it is said.
    with pytest.warns(MissingClassWarning, match="happened in 0 of the 100 rows scored.$"):
        score = scorer("log_score", classes=range(3))(fitted, x[50:], y[50:])
    assert score == pytest.approx(get_scorer("neg_log_loss")(fitted, x[50:], y[50:]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer("log_score")(fitted, x[50:], y[50:]) == score
    with pytest.warns(MissingClassWarning, match="classes 3 and 4, which have probability 0"):
        assert scorer("pbs")(fitted, x[50:], np.where(y[50:] == 2, 2, [3, 4] * 50)) < -1


def test_an_estimator_of_one_class(data):
    x, y = data
    fitted = DecisionTreeClassifier().fit(x[:50], y[:50])
    with pytest.warns(MissingClassWarning, match="classes 1 and 2"):
        assert scorer("zero_one")(fitted, x, y) == pytest.approx(-2 / 3)


def test_single_precision_stays_that(data):
    x, y = data

    class Single(GaussianNB):
        def predict_proba(self, X):
            return (super().predict_proba(X) * (1 + 3e-6)).astype(np.float32)

    fitted = Single().fit(x[50:], y[50:])
    with pytest.warns(MissingClassWarning):
        assert np.isfinite(scorer("brier", classes=range(3))(fitted, x, y))


@pytest.mark.parametrize(
    ("estimator", "classes", "argument", "values"),
    [
        (LinearSVC(), None, "estimator", []),
        (model(), [0, 1], "classes", [2]),
        (model(), ["a", "b", "c"], "classes", [0, 1, 2]),
        (model(), [0, 0, 1, 2], "classes", None),
        (model(), "abc", "classes", None),
        (model(), 3, "classes", None),
    ],
)
def test_refusals(data, estimator, classes, argument, values):
    x, y = data
    with pytest.raises(vx.InputError) as caught:
        scorer("pbs", classes=classes)(estimator.fit(x, y), x, y)
    assert caught.value.argument == argument
    assert values is None or list(caught.value.values) == values


def test_more_refusals(data):
    x, y = data
    several = MultiOutputClassifier(model()).fit(x, np.stack([y, y], axis=1))

    class Nameless:
        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    for estimator in (several, Nameless()):
        with pytest.raises(vx.InputError) as caught:
            scorer("pbs")(estimator, x, y)
        assert (caught.value.argument, caught.value.kind) == ("estimator", "type")
    with pytest.raises(vx.InputError) as caught:
        scorer("pbs", classes=range(3))(model().fit(x, y), x, y + 1)
    assert (caught.value.argument, caught.value.kind) == ("y", "label")


def test_adapters_are_reached_when_asked_for():
    assert vx.adapters.sklearn.scorer is scorer
    with pytest.raises(AttributeError, match="no attribute 'scikit'"):
        vx.adapters.scikit  # noqa: B018


# ---- a classifier with recalibrated probabilities ----------------------------------------------


def too_sure():
    """Naive Bayes on features that say the same thing several times."""
    return make_pipeline(StandardScaler(), GaussianNB())


@pytest.fixture(scope="module")
def correlated():
    x, y = make_classification(800, 20, n_informative=4, n_redundant=12, n_classes=3, random_state=0)
    return x, y


@pytest.mark.long
def test_a_recalibrated_classifier_is_better_on_new_rows(correlated):
    x, y = correlated
    plain = too_sure().fit(x[:500], y[:500])
    better = Recalibrated(too_sure(), rule="brier").fit(x[:500], y[:500])
    before, after = (vx.brier(y[500:], m.predict_proba(x[500:])) for m in (plain, better))
    assert after < 0.95 * before
    # What cross-validation promised is about what it is.
    assert better.recalibration_.gain.share == pytest.approx(1 - after / before, abs=0.08)
    assert better.recalibration_.method != "none"
    np.testing.assert_array_equal(better.estimator_.predict_proba(x), plain.predict_proba(x))


def test_it_learns_from_predictions_of_rows_that_were_held_out(correlated):
    x, y = correlated
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    model = Recalibrated(too_sure(), method="temperature", cv=folds).fit(x, y)
    held_out = cross_val_predict(too_sure(), x, y, cv=folds, method="predict_proba")
    expected = vx.recalibrate(y, held_out, method="temperature")
    assert float(model.recalibration_.form.slopes) == pytest.approx(float(expected.form.slopes))
    np.testing.assert_allclose(
        model.predict_proba(x), expected.apply(too_sure().fit(x, y).predict_proba(x)), atol=1e-12
    )
    assert model.predict(x).tolist() == model.predict_proba(x).argmax(axis=1).tolist()


def test_it_is_at_home_in_scikit_learn(correlated):
    x, y = correlated
    model = Recalibrated(GaussianNB(), method="temperature", cv=3)
    again = clone(model)
    assert again.get_params() == {**model.get_params(), "estimator": again.estimator}
    assert again.set_params(estimator__var_smoothing=0.1).estimator.var_smoothing == 0.1
    pipeline = make_pipeline(StandardScaler(), model)
    scores = cross_val_score(pipeline, x, y, cv=3, scoring=scorer("brier"))
    assert (scores > cross_val_score(too_sure(), x, y, cv=3, scoring=scorer("brier"))).all()
    grid = {"recalibrated__method": ["none", "temperature"], "recalibrated__estimator__var_smoothing": [1e-9]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring=scorer("brier")).fit(x, y)
    assert search.best_params_["recalibrated__method"] == "temperature"
    copied = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copied.predict_proba(x), search.best_estimator_.predict_proba(x))


def test_a_model_that_is_fitted_already(correlated):
    x, y = correlated
    fitted = too_sure().fit(x[:400], y[:400])
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn has it from 1.6")
    model = Recalibrated(frozen.FrozenEstimator(fitted), method="bcts").fit(x[400:], y[400:])
    expected = vx.recalibrate(y[400:], fitted.predict_proba(x[400:]), method="bcts")
    np.testing.assert_allclose(model.predict_proba(x), expected.apply(fitted.predict_proba(x)), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_values_are_logits(correlated, n_classes):
    x, y = (values[correlated[1] < n_classes] for values in correlated)
    svm = LinearSVC(dual=False)
    held_out = cross_val_predict(svm, x, y, method="decision_function")
    z = np.column_stack([np.zeros(len(y)), held_out]) if n_classes == 2 else held_out
    # An independent fit of the temperature, by the log score of all held-out rows.
    loss = minimize_scalar(lambda t: -log_softmax(np.exp(t) * z, axis=1)[np.arange(len(y)), y].mean())
    found = Recalibrated(svm, method="temperature", rule="log_score").fit(x, y)
    assert float(found.recalibration_.form.slopes) == pytest.approx(np.exp(loss.x), rel=1e-3)
    for method in ("bcts", "isotonic", "best"):
        fitted = Recalibrated(svm, method=method).fit(x, y)
        p = fitted.predict_proba(x)
        assert p.shape == (len(y), n_classes)
        assert vx.brier(y, p) < 0.9 * vx.brier(y, np.full(p.shape, 1 / n_classes))


def test_decision_values_that_cannot_be_recalibrated_are_refused(correlated):
    x, y = (values[:90] for values in correlated)
    pairs = SVC(decision_function_shape="ovo")
    more = np.where(x[:, 0] > 0, y, y + 3) % 4
    for estimator, options, said in (
        (LinearSVC(dual=False), {"method": "none"}, "decision values are no probabilities"),
        (LabelsAlone(), {}, "must have predict_proba or decision_function"),
        (pairs, {"method": "temperature"}, 'decision_function_shape="ovr"'),
    ):
        with pytest.raises(vx.InputError, match=said) as caught:
            Recalibrated(estimator, **options).fit(x, more)
        assert caught.value.argument == "estimator"


class LabelsAlone(ClassifierMixin, BaseEstimator):
    """A classifier that predicts labels alone."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_ordered_classes_that_are_texts_need_their_order(correlated):
    x, y = correlated
    model = Recalibrated(too_sure(), method="isotonic", ordered=True, classes=NAMES).fit(x, NAMES[y])
    assert model.classes_.tolist() == ["high", "low", "medium"]
    assert model.recalibration_.classes == ("low", "medium", "high")
    plain = Recalibrated(too_sure(), method="isotonic", ordered=True).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), plain.predict_proba(x)[:, [2, 0, 1]], atol=1e-12)
    with pytest.raises(vx.InputError, match="order is never guessed"):
        Recalibrated(too_sure(), ordered=True).fit(x, NAMES[y])
    with pytest.raises(vx.InputError, match="must hold the classes of the outcomes"):
        Recalibrated(too_sure(), classes=["low", "high"]).fit(x, NAMES[y])


def test_groups_and_weights_are_handed_on(correlated):
    x, y = correlated
    groups = np.arange(len(y)) // 8
    model = Recalibrated(GaussianNB(), method="temperature", cv=GroupKFold(4)).fit(x, y, groups=groups)
    assert model.recalibration_.n_groups == 100
    w = np.where(np.arange(len(y)) < 400, 1.0, 0.0)
    weighted = Recalibrated(GaussianNB(), method="temperature").fit(x, y, sample_weight=w)
    assert weighted.estimator_.class_count_.sum() == 400
    assert weighted.recalibration_.frequencies == pytest.approx(np.bincount(y[:400]) / 400)


def test_groups_and_weights_are_routed_to_recalibrated():
    rng = np.random.default_rng(0)
    x, groups, w = rng.normal(size=(240, 3)), np.arange(240) // 8, rng.uniform(0.5, 2, 240)
    y = (x[:, 0] + rng.normal(size=240) > 0).astype(int)

    def made(**fitting):
        base = LogisticRegression()
        base = base.set_fit_request(**fitting) if fitting else base
        return Recalibrated(base, method="temperature", cv=GroupKFold(4))

    plain = made().fit(x, y, sample_weight=w, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = made(sample_weight=True).set_fit_request(sample_weight=True)
        routed = weighted.fit(x, y, sample_weight=w, groups=groups)
        np.testing.assert_array_equal(routed.predict_proba(x), plain.predict_proba(x))
        # Groups are taken without a request, and reach the inner splitter, which needs them.
        assert made().fit(x, y, groups=groups).recalibration_.method == "temperature"
        params = {"groups": groups, "sample_weight": w}
        scoring = scorer("brier").set_score_request(sample_weight=True)
        found = cross_validate(weighted, x, y, cv=GroupKFold(3), params=params, scoring=scoring)["test_score"]
        both = scores(["brier", "rps"]).set_score_request(sample_weight=True)
        several = cross_validate(weighted, x, y, cv=GroupKFold(3), params=params, scoring=both)
        np.testing.assert_array_equal(several["test_brier"], found)
        search = GridSearchCV(weighted, {"estimator__C": [0.1, 1.0]}, cv=GroupKFold(3), scoring=scoring)
        search.fit(x, y, **params)
        at = search.cv_results_["params"].index({"estimator__C": 1.0})
        assert search.cv_results_["mean_test_score"][at] == pytest.approx(found.mean(), rel=1e-12)
        with pytest.raises(UnsetMetadataPassedError, match=r"LogisticRegression\.set_fit_request"):
            made().fit(x, y, sample_weight=w, groups=groups)
    by_hand = []
    for train, test in GroupKFold(3).split(x, y, groups):
        model = made().fit(x[train], y[train], sample_weight=w[train], groups=groups[train])
        by_hand.append(-vx.brier(y[test], model.predict_proba(x[test]), weights=w[test]))
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)


@pytest.mark.long
def test_scikit_learns_own_checks():
    from sklearn.utils.estimator_checks import check_estimator

    # Twice the weights give the same classifier, and twice the rows do not; see the class's notes.
    reason = "weights are relative, and rows are counted"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    model = Recalibrated(LogisticRegression(C=10), method=["temperature", "isotonic"], cv=3, folds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "expected_failed_checks" in inspect.signature(check_estimator).parameters:
            check_estimator(model, expected_failed_checks=expected, on_skip=None)
            return
        # Before version 1.6 the check has another name.
        for estimator, check in check_estimator(model, generate_only=True):
            if check.func.__name__ != "check_sample_weights_invariance":
                check(estimator)


@pytest.fixture(scope="module")
def irises():
    """Flowers, a model, and its cards with and without an order of the classes."""
    x, y = (values[::2] for values in load_iris(return_X_y=True))
    model = LogisticRegression(max_iter=200).fit(x, y)
    return (
        x,
        y,
        model,
        {order: vx.evaluate(y, model.predict_proba(x), ordered=order) for order in (True, False)},
    )


@pytest.mark.parametrize("name", [*METRICS, *MEASURES])
def test_everything_that_a_card_knows_is_a_scorer(name):
    x, y = make_classification(120, 4, flip_y=0.2, random_state=2)
    fitted = LogisticRegression().fit(x, y)
    ordinal = {"qwk", "ec", "linear_kappa", "mae", "macro_mae", "off_by_one", "c_index"}
    value = vx.evaluate(y, fitted.predict_proba(x), ordered=name in ordinal)[name]
    best = {"slope": 1.0, "intercept": 0.0, "in_the_large": 0.0}
    lower = {"ec", "mae", "macro_mae", "lr_negative", "miscalibration", "ece", "smooth_ece"}
    expected = -abs(value - best[name]) if name in best else -value if name in lower else value
    assert scorer(name)(fitted, x, y) == pytest.approx(expected, rel=1e-12)


def test_names_of_scikit_learn_are_known():
    x, y = make_classification(120, 4, flip_y=0.2, random_state=2)
    fitted = LogisticRegression().fit(x, y)
    for name in ("roc_auc", "average_precision", "precision", "recall", "f1_macro", "recall_macro"):
        assert scorer(name)(fitted, x, y) == pytest.approx(get_scorer(name)(fitted, x, y), rel=1e-9)


@pytest.mark.parametrize("name", ["qwk", "balanced_accuracy", "auc", "skill", "ece", "mae"])
def test_scorers_of_what_cards_know_have_the_sign_that_makes_greater_better(name, irises):
    x, y, model, cards = irises
    sign = -1 if name in ("ece", "mae") else 1
    assert scorer(name)(model, x, y) == pytest.approx(sign * cards[name in ("qwk", "mae")][name])
    assert repr(scorer(name)) == f"scorer({name!r})"


def test_rates_of_two_classes_are_scorers():
    x, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(x, y == 2)
    found = scorer("f1")(model, x, y == 2)
    assert found == pytest.approx(f1_score(y == 2, model.predict(x)))
