"""Rules inside XGBoost, LightGBM and CatBoost: real training, small."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

import verax as vx
from verax.adapters.sklearn import scorer
from verax.errors import passing
from verax.scores.rules import OrdinalRule
from verax.selection import RefinementLoss

catboost, lightgbm, xgboost = map(pytest.importorskip, ("catboost", "lightgbm", "xgboost"))

from verax.adapters.boosting import (  # noqa: E402
    LightGBMClassifier,
    catboost_metric,
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    probabilities,
    start_scores,
    xgboost_metric,
    xgboost_objective,
)

pytestmark = pytest.mark.frameworks

XGB = {"nthread": 1, "max_depth": 3, "eta": 0.3, "base_score": 0.5}
LGB = {"num_threads": 1, "num_leaves": 7, "verbose": -1, "metric": "None", "boost_from_average": False}
CAT = {
    "iterations": 12,
    "depth": 3,
    "learning_rate": 0.3,
    "thread_count": 1,
    "verbose": 0,
    "allow_writing_files": False,
    "leaf_estimation_iterations": 1,
    "leaf_estimation_method": "Newton",
    "bootstrap_type": "No",
    "random_strength": 0,
    "boost_from_average": False,
}


@pytest.fixture(autouse=True)
def rows_soon_compiled(change):
    """CatBoost asks row by row: after some rows by array calls, compiled loops answer."""
    change(catboost_compiled_from=200)


@dataclass(frozen=True, repr=False)
class Precise(OrdinalRule):
    """A rule of this test alone. XGBoost takes "pre..." for precision, which it would maximise."""

    name = "precise rule"
    needs = frozenset({"cdf_l2", "log_true"})
    properties = vx.rps.properties

    def formula(self, stats):
        return stats.cdf_l2 - 0.2 * stats.log_true

    def bounds(self, n_classes):
        return 0.0, float("inf")


def sample(n, k, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.digitize(x[:, 0] + 0.5 * x[:, 1] + 0.7 * rng.normal(size=n), np.linspace(-1, 1, k - 1))
    return x, y, rng.integers(1, 4, n).astype(float)


@pytest.fixture(scope="module", params=[2, 4], ids=["binary", "multiclass"])
def task(request):
    k = request.param
    return k, sample(240, k, 0), sample(160, k, 1)


METRICS = [vx.rps, vx.log_score, vx.pbs, Precise()]


# ---- XGBoost -----------------------------------------------------------------------------------


def xgb_params(k):
    return XGB | (
        {"objective": "binary:logistic"} if k == 2 else {"objective": "multi:softprob", "num_class": k}
    )


def train_xgb(task, *, obj=None, metric=None, rounds=8, weighted=True, **more):
    k, *parts = task
    train, valid = (xgboost.DMatrix(x, label=y, weight=w if weighted else None) for x, y, w in parts)
    history = {}
    booster = xgboost.train(
        xgb_params(k) | {"disable_default_eval_metric": 1},
        train,
        rounds,
        obj=obj,
        custom_metric=metric,
        evals=[(valid, "valid")],
        evals_result=history,
        verbose_eval=False,
        **more,
    )
    return booster, booster.predict(valid), history.get("valid", {})


@pytest.mark.parametrize("rule", METRICS, ids=repr)
@pytest.mark.parametrize("own", [False, True], ids=["builtin", "own"])
def test_xgboost_metrics_are_ours(task, rule, own):
    obj = xgboost_objective("rps") if own else None
    metric = obj.metric(rule) if own else xgboost_metric(rule)
    _, p, history = train_xgb(task, obj=obj, metric=metric)
    _, y, w = task[2]
    (values,) = history.values()
    # XGBoost keeps six decimals of a metric, and predicts in single precision.
    assert values[-1] == pytest.approx(rule(y, p, weights=w), abs=2e-6)


def test_xgboost_reproduces_its_own_objective(task):
    ours, p, _ = train_xgb(task, obj=xgboost_objective("log_score"))
    theirs, q, _ = train_xgb(task)
    np.testing.assert_allclose(p, q, atol=1e-5)
    assert len(ours.get_dump()) == len(theirs.get_dump())


@pytest.mark.parametrize("rule", [vx.rps, vx.brier, vx.ranked_log, Precise()], ids=repr)
def test_xgboost_stops_at_the_smallest_loss(task, rule):
    obj = xgboost_objective(rule)
    booster, _, history = train_xgb(task, obj=obj, metric=obj.metric(), rounds=60, early_stopping_rounds=5)
    (values,) = history.values()
    assert booster.best_iteration == int(np.argmin(values))
    assert len(values) < 60
    assert min(values) < 0.9 * rule(task[2][1], np.full((160, task[0]), 1 / task[0]))


@pytest.mark.parametrize("rule", [vx.rps, Precise()], ids=repr)
def test_xgboost_classifiers(task, rule):
    k, (x, y, w), (a, b, v) = task
    obj = xgboost_objective(rule)
    options = {"n_jobs": 1, "n_estimators": 8, "max_depth": 3, "base_score": 0.5}
    model = clone(xgboost.XGBClassifier(objective=obj, eval_metric=obj.metric(), **options))
    model.fit(x, y, sample_weight=w, eval_set=[(a, b)], sample_weight_eval_set=[v], verbose=False)
    values = model.evals_result()["validation_0"][obj.metric().__name__]
    p = model.predict_proba(a)
    assert p.shape == (160, k)
    assert values[-1] == pytest.approx(rule(b, p, weights=v), abs=2e-6)
    plain = xgboost.XGBClassifier(eval_metric=xgboost_metric(rule), **options)
    plain.fit(x, y, eval_set=[(a, b)], verbose=False)
    values = plain.evals_result()["validation_0"][xgboost_metric(rule).__name__]
    assert values[-1] == pytest.approx(rule(b, plain.predict_proba(a)), abs=2e-6)


def test_xgboost_weights_are_repeats(task):
    k, (x, y, w), valid = task
    obj = xgboost_objective("rps")
    _, p, _ = train_xgb(task, obj=obj)
    n = w.astype(int)
    repeated = (k, (np.repeat(x, n, axis=0), np.repeat(y, n), np.ones(n.sum())), valid)
    _, q, _ = train_xgb(repeated, obj=obj)
    np.testing.assert_allclose(p, q, atol=0.05)
    _, unweighted, _ = train_xgb(task, obj=obj, weighted=False)
    assert np.abs(p - q).max() < np.abs(p - unweighted).max()


# ---- LightGBM ----------------------------------------------------------------------------------


def train_lgb(task, *, objective=None, feval=None, rounds=8, callbacks=(), start=None):
    k, (x, y, w), (a, b, v) = task
    own = {"objective": "binary"} if k == 2 else {"objective": "multiclass"}
    params = (
        LGB | (own if objective is None else {"objective": objective}) | ({} if k == 2 else {"num_class": k})
    )
    tile = lambda n: None if start is None else np.tile(start, (n, 1)).squeeze()  # noqa: E731
    train = lightgbm.Dataset(x, y, weight=w, init_score=tile(len(x)))
    valid = lightgbm.Dataset(a, b, weight=v, init_score=tile(len(a)), reference=train)
    history = {}
    booster = lightgbm.train(
        params,
        train,
        rounds,
        valid_sets=[valid],
        feval=feval,
        callbacks=[lightgbm.record_evaluation(history), *callbacks],
    )
    return booster, booster.predict(a), history.get("valid_0", {})


@pytest.mark.parametrize("rule", METRICS, ids=repr)
@pytest.mark.parametrize("own", [False, True], ids=["builtin", "own"])
def test_lightgbm_metrics_are_ours(task, rule, own):
    objective = lightgbm_objective("rps") if own else None
    feval = objective.metric(rule) if own else lightgbm_metric(rule)
    _, raw, history = train_lgb(task, objective=objective, feval=feval)
    _, y, w = task[2]
    (values,) = history.values()
    assert values[-1] == pytest.approx(rule(y, probabilities(raw) if own else raw, weights=w), rel=1e-6)


def test_lightgbm_reproduces_its_own_objective(task):
    _, raw, _ = train_lgb(task, objective=lightgbm_objective("log_score"))
    _, q, _ = train_lgb(task)
    p = probabilities(raw)
    np.testing.assert_allclose(p[:, 1] if task[0] == 2 else p, q, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("rule", [vx.rps, vx.brier, vx.ranked_log, Precise()], ids=repr)
def test_lightgbm_stops_at_the_smallest_loss(task, rule):
    objective = lightgbm_objective(rule)
    stop = lightgbm.early_stopping(5, verbose=False)
    booster, raw, history = train_lgb(
        task, objective=objective, feval=objective.metric(), rounds=100, callbacks=[stop]
    )
    (values,) = history.values()
    assert booster.best_iteration == int(np.argmin(values)) + 1
    assert len(values) < 100
    _, y, w = task[2]
    assert rule(y, probabilities(raw), weights=w) == pytest.approx(min(values), rel=1e-6)


def test_lightgbm_from_the_class_frequencies(task):
    """Where LightGBM's own objectives begin; the start is not part of the model and is added again."""
    k, (_, y, w), (_, b, v) = task
    start = start_scores(y, k, w)
    np.testing.assert_allclose(
        probabilities(start[None])[0], np.bincount(y, w, minlength=k) / w.sum(), atol=0.01
    )
    objective = lightgbm_objective("rps")
    _, raw, history = train_lgb(task, objective=objective, feval=objective.metric(), start=start)
    assert vx.rps(b, probabilities(raw, start), weights=v) == pytest.approx(history["rps"][-1], rel=1e-6)


@pytest.mark.parametrize("rule", [vx.rps, Precise()], ids=repr)
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_lightgbm_classifiers(task, rule):
    k, (x, y, w), (a, b, v) = task
    objective = lightgbm_objective(rule, order=range(k))
    options = {"n_jobs": 1, "n_estimators": 8, "num_leaves": 7, "verbose": -1}
    model = clone(lightgbm.LGBMClassifier(objective=objective, **options))
    model.fit(
        x, y, sample_weight=w, eval_set=[(a, b)], eval_sample_weight=[v], eval_metric=objective.metric()
    )
    values = model.evals_result_["valid_0"][objective.metric().__name__]
    p = probabilities(model.predict_proba(a, raw_score=True))
    assert p.shape == (160, k)
    assert values[-1] == pytest.approx(rule(b, p, weights=v), rel=1e-6)
    plain = lightgbm.LGBMClassifier(**options)
    plain.fit(x, y, eval_set=[(a, b)], eval_metric=lightgbm_metric(rule, order=range(k)))
    values = plain.evals_result_["valid_0"][lightgbm_metric(rule).__name__]
    assert values[-1] == pytest.approx(rule(b, plain.predict_proba(a)), rel=1e-6)


def test_one_class_after_the_other_as_lightgbm_once_had_it():
    y, z = np.array([0, 2, 1, 1]), np.random.default_rng(0).normal(size=(4, 3))
    objective = lightgbm_objective("rps", order=range(3))
    for flat, rows in zip(objective(y, z.ravel(order="F")), objective(y, z), strict=True):
        np.testing.assert_array_equal(flat, rows.ravel(order="F"))
    assert objective.metric()(y, z.ravel(order="F")) == objective.metric()(y, z)


# ---- CatBoost ----------------------------------------------------------------------------------


def train_cat(task, loss, metric, **more):
    k, (x, y, w), (a, b, v) = task
    options = CAT | more | ({} if isinstance(loss, str) else {"class_names": list(range(k))})
    options = {name: value for name, value in options.items() if k == 2 or name != "boost_from_average"}
    model = catboost.CatBoostClassifier(loss_function=loss, eval_metric=metric, **options)
    model.fit(catboost.Pool(x, y, weight=w), eval_set=catboost.Pool(a, b, weight=v))
    return model, model.predict_proba(a)


# An objective of ours runs a loop that is compiled for it: with two metrics it is seen to leave them alone.
@pytest.mark.long
@pytest.mark.parametrize(
    ("own", "rule"),
    [*((False, rule) for rule in METRICS), (True, METRICS[0]), (True, METRICS[-1])],
    ids=repr,
)
def test_catboost_metrics_are_ours(task, rule, own):
    builtin = "Logloss" if task[0] == 2 else "MultiClass"
    order = range(task[0])
    loss = catboost_objective("rps", order=order) if own else builtin
    model, p = train_cat(task, loss, catboost_metric(rule, order=order), use_best_model=False)
    _, y, w = task[2]
    values = model.evals_result_["validation"][type(catboost_metric(rule)).__name__]
    assert values[-1] == pytest.approx(rule(y, p, weights=w), rel=1e-9)


def test_catboost_reproduces_its_own_objective(task):
    builtin = "Logloss" if task[0] == 2 else "MultiClass"
    _, ours = train_cat(
        task, catboost_objective("log_score"), catboost_metric("log_score"), use_best_model=False
    )
    _, theirs = train_cat(task, builtin, catboost_metric("log_score"), use_best_model=False)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("rule", [vx.rps, Precise()], ids=repr)
def test_catboost_stops_at_the_smallest_loss(task, rule):
    order = range(task[0])
    metric = catboost_metric(rule, order=order)
    model, p = train_cat(
        task,
        catboost_objective(rule, order=order),
        metric,
        iterations=60,
        learning_rate=0.7,
        early_stopping_rounds=4,
    )
    values = model.evals_result_["validation"][type(metric).__name__]
    assert model.best_iteration_ == int(np.argmin(values))
    assert len(values) < 60
    _, y, w = task[2]
    assert rule(y, p, weights=w) == pytest.approx(min(values), rel=1e-9)
    assert set(np.ravel(model.predict(task[2][0])).tolist()) <= set(range(task[0]))


def test_catboost_needs_to_know_the_classes():
    x, y, _ = sample(60, 3, 0)
    model = catboost.CatBoostClassifier(**CAT, loss_function=catboost_objective("rps"), eval_metric="AUC")
    with pytest.raises(catboost.CatBoostError, match=r"class_names=\[0, ..., K-1\]"):
        model.fit(x, y)


def test_rows_of_catboost_are_those_of_the_others():
    """Its matrix is the expected Hessian, and its diagonal what the others get."""
    y, z = np.array([2]), np.array([[0.3, -0.4, 1.0, 0.1]])
    ders, matrix = catboost_objective("rps", floor=0, order=range(4)).calc_ders_multi(z[0], 2.0, 2.0)
    scale = (
        vx.rules.expected_hessian(vx.log_score, z * 0).sum() / vx.rules.expected_hessian(vx.rps, z * 0).sum()
    )
    np.testing.assert_allclose(ders, -2 * scale * vx.gradient(vx.rps, y, z)[0], rtol=1e-12)
    np.testing.assert_allclose(
        np.diag(matrix), -2 * scale * vx.rules.expected_hessian(vx.rps, z)[0], rtol=1e-12
    )
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-15)
    assert np.linalg.eigvalsh(-matrix).min() > -1e-15


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]], ids=["sorted", "other"])
def test_rows_of_catboost_are_the_same_compiled(order, change):
    pytest.importorskip("numba")
    z, names = np.random.default_rng(0).normal(scale=3, size=(12, 4)), [0, 1, 2, 3]
    # Two scales, so that the second objective starts anew.
    slow, fast = (
        catboost_objective("rps", scale=scale, order=order, class_names=names) for scale in (1.0, 1.0 + 1e-15)
    )
    slow = [slow.calc_ders_multi(row, i % 4, 1.5) for i, row in enumerate(z)]
    change(catboost_compiled_from=1)
    fast = [fast.calc_ders_multi(row, i % 4, 1.5) for i, row in enumerate(z)]
    for (g, h), (a, b) in zip(fast, slow, strict=True):
        np.testing.assert_allclose(g, a, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(h, b, rtol=1e-10, atol=1e-13)


def test_catboost_says_that_many_classes_are_slow(change):
    change(catboost_compiled_from=2)
    objective = catboost_objective("brier")
    objective.calc_ders_multi(np.zeros(12), 0, 1.0)
    with pytest.warns(RuntimeWarning, match="row by row"):
        objective.calc_ders_multi(np.zeros(12), 0, 1.0)


def test_a_row_without_weight_may_lose_all():
    assert catboost_metric("log_score").evaluate([[-1e9, 0.0]], [1, 0], [0.0, 1.0]) == (np.log(2), 1.0)


# ---- labels that are texts -------------------------------------------------------------------

NAMES = ["none", "mild", "severe", "critical"]


def text_task():
    (x, y, _), (a, b, _) = sample(240, 4, 0), sample(160, 4, 1)
    return x, np.array(NAMES)[y], a, np.array(NAMES)[b], b


def in_order(model, x):
    """Its probabilities, lowest class first."""
    return model.predict_proba(x)[:, [list(model.classes_).index(name) for name in NAMES]]


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_lightgbm_with_text_labels_scores_and_trains_in_the_order_of_the_caller():
    x, y, a, b, positions = text_task()
    options = {"n_jobs": 1, "n_estimators": 8, "num_leaves": 7, "verbose": -1}
    for objective in (None, lightgbm_objective("rps", order=NAMES)):
        metric = lightgbm_metric("rps", order=NAMES) if objective is None else objective.metric()
        model = LightGBMClassifier(objective=objective, **options)
        model.fit(x, y, eval_set=[(a, b)], eval_metric=metric)
        p = in_order(model, a)
        assert model.evals_result_["valid_0"]["rps"][-1] == pytest.approx(vx.rps(positions, p), rel=1e-6)
        assert (model.predict(a) == np.array(NAMES)[p.argmax(axis=1)]).all()
    encoded = LightGBMClassifier(objective=lightgbm_objective("rps", order=range(4)), **options)
    encoded.fit(x, np.array([NAMES.index(name) for name in y]))
    np.testing.assert_allclose(p, encoded.predict_proba(a), atol=1e-9)
    for part in ({"eval_set": [(a, b)], "eval_metric": lightgbm_metric("rps")}, {}):
        own = {} if part else {"objective": lightgbm_objective("rps")}
        alphabetical = lightgbm.LGBMClassifier(**options, **own)
        with pytest.raises(vx.InputError, match="lowest first: rps is ordinal") as caught:
            alphabetical.fit(x, y, **part)
        assert caught.value.argument == "order"
    with pytest.raises(vx.InputError, match="it lists 3, and the model has 4"):
        lightgbm.LGBMClassifier(**options, objective=lightgbm_objective("rps", order=NAMES[:3])).fit(x, y)


@pytest.mark.parametrize("class_names", [NAMES, None], ids=["named", "sorted"])
def test_catboost_with_text_labels_scores_and_trains_in_the_order_of_the_caller(class_names):
    x, y, a, b, positions = text_task()
    coded = {"order": NAMES, "class_names": sorted(NAMES) if class_names is None else class_names}
    own = catboost_objective("rps", **coded)
    for loss in ("MultiClass", own):
        if loss is own and class_names is None:
            continue
        given = {name: value for name, value in CAT.items() if name != "boost_from_average"}
        model = catboost.CatBoostClassifier(
            **given, loss_function=loss, eval_metric=catboost_metric("rps", **coded), class_names=class_names
        )
        model.fit(x, y, eval_set=(a, b), use_best_model=False)
        found = model.evals_result_["validation"]["rps"][-1]
        assert found == pytest.approx(vx.rps(positions, in_order(model, a)), rel=1e-9)


def test_catboost_never_guesses_an_order():
    x, y, _, _, _ = text_task()
    given = {name: value for name, value in CAT.items() if name != "boost_from_average"}
    model = catboost.CatBoostClassifier(
        **given, loss_function="MultiClass", eval_metric=catboost_metric("rps")
    )
    with pytest.raises(catboost.CatBoostError, match="lowest first: rps is ordinal"):
        model.fit(x, y)
    for wrong, argument in (
        ({"order": NAMES}, "class_names"),
        ({"class_names": NAMES}, "order"),
        ({"order": NAMES, "class_names": NAMES[:3]}, "class_names"),
        ({"order": [*NAMES, "mild"]}, "order"),
        ({"order": ["a", 1, 2]}, "order"),
        ({"order": "abc"}, "order"),
        ({"order": 3}, "order"),
    ):
        for make in (catboost_metric, catboost_objective):
            with pytest.raises(vx.InputError) as caught:
                make("rps", **wrong)
            assert caught.value.argument == argument


def test_a_lightgbm_objective_inside_cross_val_score():
    x, y, _, _, _ = text_task()
    options = {"n_jobs": 1, "n_estimators": 8, "num_leaves": 7, "verbose": -1}
    model = LightGBMClassifier(objective=lightgbm_objective("rps", order=NAMES), **options)
    folds = KFold(3)
    found = cross_val_score(model, x, y, cv=folds, scoring=scorer("rps", classes=NAMES), error_score="raise")
    for value, (fit, test) in zip(found, folds.split(x), strict=True):
        p = in_order(clone(model).fit(x[fit], y[fit]), x[test])
        assert value == pytest.approx(-vx.rps(y[test], p, classes=NAMES), rel=1e-12)
    copy = pickle.loads(pickle.dumps(model.fit(x, y)))
    np.testing.assert_array_equal(copy.predict_proba(x), model.predict_proba(x))
    assert model.predict_proba(x, raw_score=True).min() < 0
    assert cross_val_score(model, x, y, cv=folds, scoring="accuracy").min() > 0.4
    # Without an objective of yours it is LightGBM's own class.
    plain, own = (kind(**options).fit(x, y) for kind in (LightGBMClassifier, lightgbm.LGBMClassifier))
    np.testing.assert_array_equal(plain.predict_proba(x), own.predict_proba(x))
    assert plain.predict(x).tolist() == own.predict(x).tolist()


# ---- all ---------------------------------------------------------------------------------------

OBJECTIVES = [xgboost_objective, lightgbm_objective, catboost_objective]


def told(make, rule, k, **more):
    """A metric or objective that knows the order where arrays do not tell it."""
    return make(
        rule, **more, **({"order": range(k)} if make in (lightgbm_metric, lightgbm_objective) else {})
    )


@pytest.mark.parametrize("make", OBJECTIVES)
def test_rules_that_train_nothing_are_refused_at_once(make):
    with pytest.raises(vx.errors.RuleError, match="abs_rps is not proper"):
        make("abs_rps")
    with pytest.raises(vx.errors.RuleError, match="zero_one has no gradient"):
        make("zero_one")
    for wrong in ({"scale": 0.0}, {"scale": -1.0}, {"floor": -0.1}, {"floor": np.nan}):
        with pytest.raises(vx.VeraxError, match="must be a"):
            make("rps", **wrong)


def test_rules_that_train_two_classes_only_are_refused_when_there_are_more():
    y, z = np.array([0, 1]), np.zeros((2, 3))
    with pytest.raises(vx.errors.RuleError, match="sa_rps is not proper for 3 classes"):
        xgboost_objective("sa_rps")(y, z)
    g, _ = xgboost_objective("sa_rps")(y, z[:, 0])
    assert g.tolist() == [0.5, -0.5]


@pytest.mark.parametrize("make", [xgboost_objective, lightgbm_objective])
def test_curvature_is_that_of_the_log_score_to_begin_with(make):
    y, z = np.array([0, 1, 2, 3]), np.zeros((4, 4))
    _, of_log = make("log_score")(y, z)
    for rule in ("rps", "brier", "spherical", "ranked_log"):
        _, h = told(make, rule, 4)(y, z)
        assert h.sum() == pytest.approx(of_log.sum())
        assert told(make, rule, 4, scale=2.0)(y, z)[0] == pytest.approx(2 * vx.gradient(vx.parse(rule), y, z))


def test_steps_stay_small_where_forecasts_are_sure_and_wrong():
    y, z = np.array([0]), np.array([[-12.0, 0.0, -12.0]])
    for rule in ("rps", "brier"):
        free, held = (xgboost_objective(rule, floor=f)(y, z) for f in (0, 0.1))
        assert np.abs(free[0] / free[1]).max() > 1e4
        assert np.abs(held[0] / held[1]).max() < 50
        np.testing.assert_array_equal(free[0], held[0])


@pytest.mark.parametrize("make", [xgboost_metric, lightgbm_metric])
def test_metrics_know_probabilities_from_raw_scores(make):
    y, p = np.array([0, 1]), np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    with pytest.raises(vx.InputError, match="logits=True"):
        told(make, "rps", 3)(y, np.log(p))
    with pytest.raises(vx.InputError) as caught:
        told(make, "rps", 3, logits=True)(y, p)
    assert caught.value.argument == "logits"
    assert caught.value.remedies == (passing(logits=False),)


@pytest.mark.parametrize("make", [xgboost_objective, lightgbm_objective])
@pytest.mark.parametrize(("rule", "k"), [(vx.rps, 2), (Precise(), 4)], ids=repr)
def test_large_data_go_through_a_compiled_loop(make, rule, k, change, monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    n, objective = 500, told(make, rule, k)
    margins = (3 * rng.normal(size=n if k == 2 else (n, k))).astype(np.float32)
    y, w = rng.integers(0, k, n).astype(np.float32), rng.random(n).astype(np.float32)
    # One class after the other, as LightGBM had it before 4.0, and weights are another two forms.
    forms = [(margins, None), (margins, w), (margins.ravel(order="F"), w)]
    by_arrays = [objective(y, z, weights) for z, weights in forms]
    change(compiled_from=0)
    monkeypatch.setattr("verax.scores.gradients.logits._run", lambda *_: pytest.fail("not compiled"))
    for (z, weights), expected in zip(forms, by_arrays, strict=True):
        for ours, theirs in zip(objective(y, z, weights), expected, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("wrong", [[1.0], [1.0, -1.0], [1.0, np.nan]])
def test_wrong_weights_are_named(wrong):
    with pytest.raises(vx.InputError) as caught:
        xgboost_objective("rps")(np.array([0, 1]), np.zeros((2, 3)), wrong)
    assert caught.value.argument == "weights"


def test_labels_that_are_no_positions_are_named():
    with pytest.raises(vx.InputError, match="count from 1"):
        xgboost_objective("rps")(np.array([1, 2, 3]), np.zeros((3, 3)))
    for arguments, wrong in (
        (([1, 2, 3], 3), "y"),
        ((["a"], 3), "y"),
        (([0, 1], 1), "n_classes"),
        (([0, 1], 10**30), "n_classes"),
        (([0, 1], 2, [1.0]), "weights"),
    ):
        with pytest.raises(vx.InputError) as caught:
            start_scores(*arguments)
        assert caught.value.argument == wrong
    for arguments, wrong in ((("a",), "scores"), ((0.5,), "scores"), (([[0.0, 1.0]], [1, 2, 3]), "start")):
        with pytest.raises(vx.InputError) as caught:
            probabilities(*arguments)
        assert caught.value.argument == wrong


def test_names_that_xgboost_would_maximise_or_split():
    assert xgboost_metric(Precise()).__name__ == "loss_preciserule"
    assert xgboost_metric("penalized(rps, penalty='minimal')").__name__ == "penalized(rps,penalty='minimal')"
    assert lightgbm_metric("pbs").__name__ == "pbs"


@pytest.mark.parametrize(
    "thing",
    [
        xgboost_objective("rps"),
        lightgbm_metric("pbs", logits=True),
        catboost_metric("rps"),
        catboost_objective("rps"),
    ],
    ids=lambda t: type(t).__name__,
)
def test_they_survive_pickling(thing):
    copy = pickle.loads(pickle.dumps(thing))
    assert copy.rule == thing.rule
    assert type(copy).__name__ == type(thing).__name__


def test_metrics_after_temperature_scaling():
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, 3, 150), rng.normal(size=(150, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = RefinementLoss("brier")(y, p)
    metric = xgboost_metric("brier", logits=True, refinement=True)
    assert metric(y, z) == pytest.approx(expected, rel=1e-9)
    assert metric.__name__ == "brier_refinement"
    assert lightgbm_metric("brier", refinement=True)(y, p) == (
        "brier_refinement",
        pytest.approx(expected, rel=1e-9),
        False,
    )
    own = catboost_metric("brier", refinement=True)
    assert own.get_final_error(*own.evaluate(list(z.T), y, None)) == pytest.approx(expected, rel=1e-9)
    assert pickle.loads(pickle.dumps(own)).refinement
    assert type(own).__name__ == "brier_refinement"
    weights = rng.random(150)
    weighted = RefinementLoss("brier")(y, p, weights=weights)
    assert own.get_final_error(*own.evaluate(list(z.T), y, weights)) == pytest.approx(weighted, rel=1e-9)


def test_catboost_stops_by_what_recalibration_cannot_remove():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 4))
    y = (x[:, 0] + rng.normal(size=300) > 0).astype(int)
    metric = catboost_metric("log_score", refinement=True)
    model = catboost.CatBoostClassifier(
        iterations=30, eval_metric=metric, early_stopping_rounds=5, verbose=False, allow_writing_files=False
    )
    model.fit(x[:200], y[:200], eval_set=(x[200:], y[200:]))
    history = model.get_evals_result()["validation"]["log_score_refinement"]
    assert model.get_best_iteration() == int(np.argmin(history))
