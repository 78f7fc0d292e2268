"""Recalibration: methods against independent fits, honest gains, choices, files, prior shift."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.stats import norm, ttest_1samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import realdata
import verax as vx
from verax.analyses.recalibration.choosing import Sample, dealt
from verax.analyses.recalibration.fitting import STRENGTHS, Configuration, Rows, fit
from verax.analyses.recalibration.forms import nearest_monotone
from verax.inputs.groups import Groups

METHODS = ["temperature", "prior", "bcts", "vector", "dirichlet", "isotonic"]


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(n, k, *, seed=0, spread=1.5, distort=lambda z: z):
    """Outcomes drawn from q, and a forecast that is q with distorted logits."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * spread
    q = softmax(z)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    return y, softmax(distort(z)), q


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


# ---- methods against other implementations -----------------------------------------------------


def test_temperature_is_scikit_learns():
    # Older versions have no temperature scaling.
    pytest.importorskip("sklearn", minversion="1.8")
    from sklearn.frozen import FrozenEstimator

    y, p, _ = drawn(3000, 4, distort=lambda z: 1.7 * z)
    theirs = CalibratedClassifierCV(FrozenEstimator(Given().fit(p, y)), method="temperature").fit(p, y)
    found = vx.recalibrate(y, p, method="temperature", rule="log")
    np.testing.assert_allclose(found.apply(p), theirs.predict_proba(p), atol=2e-4)


@pytest.mark.parametrize("rule", ["log", "brier", "rps", "spherical", "ranked_log"])
def test_temperature_is_the_optimum_of_any_rule(rule):
    y, p, _ = drawn(2000, 4, seed=1, distort=lambda z: 0.6 * z)

    def loss(t):
        tempered = p ** np.exp(t)
        return vx.parse(rule)(y, tempered / tempered.sum(axis=1, keepdims=True))

    by_force = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9})
    found = vx.recalibrate(y, p, method="temperature", rule=rule)
    assert np.log(float(found.form.slopes)) == pytest.approx(by_force.x, abs=2e-4)
    assert vx.parse(rule)(y, found.apply(p)) == pytest.approx(by_force.fun, abs=1e-8)


def test_a_matrix_without_penalty_is_multinomial_logistic_regression_of_the_logarithms():
    y, p, _ = drawn(
        3000, 3, seed=2, distort=lambda z: z @ np.array([[1.2, 0.2, 0], [0, 0.7, 0.3], [0, 0, 1]])
    )
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(np.log(p), y)
    ours = fit(Configuration("dirichlet", 0.0), Rows.of(y, p, None), vx.log_score, ordered=False)
    np.testing.assert_allclose(ours.apply(p), theirs.predict_proba(np.log(p)), atol=5e-4)


def test_bcts_of_two_classes_is_platt_scaling_of_the_log_odds():
    y, p, _ = drawn(3000, 2, seed=3, distort=lambda z: 1.8 * z + [0.0, 0.7])
    odds = np.log(p[:, 1:] / p[:, :1])
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(odds, y)
    found = vx.recalibrate(y, p[:, 1], method="bcts")
    np.testing.assert_allclose(found.apply(p[:, 1]), theirs.predict_proba(odds)[:, 1], atol=2e-4)


def test_beta_calibration_is_that_of_the_package_of_its_authors():
    rng = np.random.default_rng(5)
    q = rng.beta(2, 2, 4000)
    y = (rng.random(4000) < q).astype(int)
    p = q**1.5 / (q**1.5 + (1 - q) ** 0.7 * 0.8)
    found = vx.recalibrate(y, p, method="beta")
    # betacal 1.1.0: BetaCalibration(parameters="abm").fit(p[:, None], y), its coefficients and predictions.
    np.testing.assert_allclose(found.form.slopes, [1.42455, 0.50876], atol=3e-3)
    theirs = [0.19696, 0.38026, 0.56237, 0.75945, 0.94493]
    np.testing.assert_allclose(found.apply([0.1, 0.3, 0.5, 0.7, 0.9]), theirs, atol=3e-4)


def test_beta_calibration_never_decreases():
    # Outcomes that fall with the forecast: an unconstrained fit would turn the probabilities round.
    y, p, _ = drawn(1000, 2, seed=4, distort=lambda z: -z)
    curve = vx.recalibrate(y, p[:, 1], method="beta").apply(np.linspace(0, 1, 101))
    assert (np.diff(curve) >= 0).all()


def isotonic_by_hand(x, happened, at, weights=None):
    return IsotonicRegression(out_of_bounds="clip").fit(x, happened, weights).predict(at)


def test_isotonic_per_class_is_scikit_learns_normalised():
    y, p, _ = drawn(800, 3, seed=6, distort=lambda z: 2 * z)
    new = drawn(300, 3, seed=7)[1]
    columns = np.column_stack([isotonic_by_hand(p[:, k], y == k, new[:, k]) for k in range(3)])
    expected = columns / columns.sum(axis=1, keepdims=True)
    # One more row is spread evenly over the classes.
    expected = (800 * expected + 1 / 3) / 801
    np.testing.assert_allclose(vx.recalibrate(y, p, method="isotonic").apply(new), expected, atol=1e-12)


def test_isotonic_per_threshold_is_scikit_learns_kept_monotone():
    y, p, _ = drawn(800, 4, seed=8, distort=lambda z: 2 * z)
    new = drawn(300, 4, seed=9)[1]
    below, at = np.cumsum(p, axis=1), np.cumsum(new, axis=1)
    raw = np.column_stack([isotonic_by_hand(below[:, i], y <= i, at[:, i]) for i in range(3)])
    assert (np.diff(raw, axis=1) < 0).any()
    monotone = np.array([isotonic_regression(row).x for row in raw])
    expected = (800 * np.diff(monotone, axis=1, prepend=0, append=1) + 1 / 4) / 801
    found = vx.recalibrate(y, p, method="isotonic", ordered=True)
    np.testing.assert_allclose(found.apply(new), expected, atol=1e-12)


@given(hnp.arrays(float, st.tuples(st.integers(1, 5), st.integers(2, 7)), elements=st.floats(0, 1, width=16)))
def test_the_nearest_monotone_rows(rows):
    fitted = nearest_monotone(rows)
    np.testing.assert_allclose(fitted, [isotonic_regression(row).x for row in rows], atol=1e-12)
    k = rows.shape[1] + 1
    for outcome in range(k):
        happened = outcome <= np.arange(k - 1)
        before, after = ((x - happened) ** 2 for x in (rows, fitted))
        assert (after.sum(axis=1) <= before.sum(axis=1) + 1e-12).all()


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("rule", ["log", "brier", "rps"])
def test_no_other_numbers_near_the_fit_lose_less(method, rule):
    y, p, _ = drawn(400, 3, seed=10, distort=lambda z: 1.4 * z + [0.5, 0, 0])
    rows, chosen = Rows.of(y, p, None), vx.parse(rule)
    # Without its penalty; the small ridge towards "unchanged" is weaker than one row.
    form = fit(Configuration(method, 0.0 if method == "dirichlet" else None), rows, chosen, ordered=False)
    best = chosen(y, form.apply(p))
    rng = np.random.default_rng(0)
    for _ in range(40):
        slopes, offsets = form.slopes.copy(), form.offsets.copy()
        if method != "prior":
            slopes = slopes * np.exp(rng.normal(scale=0.05, size=slopes.shape))
        if method != "temperature":
            offsets = offsets + rng.normal(scale=0.05, size=3)
        moved = type(form)(slopes, offsets, form.floor)
        assert chosen(y, moved.apply(p)) > best - 1e-6


# ---- distortions that must be undone -----------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "slopes", "offsets"),
    [
        ("prior", np.eye(3), [0.8, 0, -0.8]),
        ("temperature", 0.55 * np.eye(3), [0, 0, 0]),
        ("bcts", 0.55 * np.eye(3), [0.8, 0, -0.8]),
        ("vector", np.diag([0.4, 1.0, 1.5]), [0.5, 0, 0]),
        ("dirichlet", np.array([[1.3, 0.7, 0], [0, 0.5, 0.5], [0.7, 0, 0.8]]), [0.3, 0, 0]),
    ],
)
def test_a_known_distortion_is_undone(method, slopes, offsets):
    """The truth is the method's own function of the forecast, and the fit finds it."""
    rng = np.random.default_rng(11)
    p = softmax(1.5 * rng.normal(size=(20_000, 3)))
    q = softmax(np.log(p) @ slopes.T + offsets)
    y = (rng.random((len(q), 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    found = vx.recalibrate(y, p, method=method, rule="log")
    before, after = (np.abs(x - q).mean() for x in (p, found.apply(p)))
    assert after < 0.012 < before / 4
    assert found.gain.certain
    # What is left of the loss is what the truth itself loses.
    assert found.trials[-1].loss == pytest.approx(vx.log_score(y, q), abs=1e-3)


def test_bent_thresholds_are_for_isotonic_regression_where_temperature_gains_nothing():
    rng = np.random.default_rng(12)
    q = rng.dirichlet([0.7, 0.7, 0.7, 0.7], 10_000)
    y = (rng.random((len(q), 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    below = np.cumsum(q, axis=1)[:, :-1]
    bent = 0.5 + 0.35 * np.sign(below - 0.5) * np.abs(2 * below - 1) ** 0.4
    p = np.diff(bent, axis=1, prepend=0, append=1)
    found = vx.recalibrate(y, p, rule="rps", ordered=True)
    assert found.method == "isotonic"
    assert found.trial("isotonic").loss == pytest.approx(vx.rps(y, q), abs=1e-3)
    assert found.trial("temperature").gain.share < 0.01
    assert found.gain.share > 0.035
    assert np.abs(found.apply(p) - q).mean() < 0.02


# ---- honest gains ------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_gains_are_those_of_a_plain_cross_validation(grouped):
    y, p, _ = drawn(300, 3, seed=13, distort=lambda z: 1.5 * z)
    labels = np.arange(300) % 40 if grouped else None
    found = vx.recalibrate(y, p, method="temperature", rule="brier", groups=labels, seed=4)
    folds = dealt(y, None if labels is None else Groups.of(labels, 300), 5, 4)
    held_out = np.empty_like(p)
    for v in range(5):
        rows = Rows.of(y[folds != v], p[folds != v], None)
        form = fit(Configuration("temperature"), rows, vx.brier, ordered=False)
        held_out[folds == v] = form.apply(p[folds == v])
    np.testing.assert_allclose(found.held_out, held_out, atol=1e-5)
    compared = vx.compare(y, {"none": p, "after": held_out}, rule="brier", groups=labels, reference="none")
    gap = compared.difference("none", "after")
    assert found.gain.value == pytest.approx(gap.difference, abs=1e-6)
    assert tuple(found.gain.interval) == pytest.approx(tuple(gap.interval), abs=1e-6)
    assert found.gain.p_value == pytest.approx(gap.p_value, rel=1e-3)
    after = next(m for m in compared.models["brier"] if m.name == "after")
    assert found.gain.share == pytest.approx(after.skill, abs=1e-5)
    assert tuple(found.gain.share_interval) == pytest.approx(tuple(after.skill_interval), abs=1e-5)


def test_the_choice_is_cross_validated_with_all_that_leads_to_it():
    """The nested cross-validation, written out: the choice is made from the other folds alone."""
    y, p, _ = drawn(240, 3, seed=14, distort=lambda z: 1.3 * z)
    tried = ["none", "temperature", "vector", "dirichlet", "isotonic"]
    found = vx.recalibrate(y, p, method=tried[1:], rule="brier", seed=2)
    folds = dealt(y, None, 5, 2)
    hows = [Configuration(m, s) for m in tried for s in (STRENGTHS if m == "dirichlet" else (None,))]

    def losses(how, train, test):
        form = fit(how, Rows.of(y[train], p[train], None), vx.brier, ordered=False)
        return vx.brier.samples(y[test], form.apply(p[test]))

    expected, picks = np.empty(240), []
    for v in range(5):
        by_how = {}
        for how in hows:
            parts = [losses(how, (folds != v) & (folds != w), folds == w) for w in range(5) if w != v]
            by_how[how] = np.concatenate(parts)
        best = min(hows, key=lambda how: by_how[how].mean())

        def gains(how, on, level, by_how=by_how):
            return ttest_1samp(by_how[on] - by_how[how], 0, alternative="greater").pvalue < level

        pick = hows[0]
        if best != pick and gains(best, pick, 0.05):
            good = [how for how in hows[1:] if how == best or gains(how, hows[0], 0.05)]
            pick = next(how for how in good if how == best or not gains(best, how, norm.sf(1)))
        picks.append(pick.method)
        expected[folds == v] = losses(pick, folds != v, folds == v)
    assert found.picks == tuple(picks)
    assert found.trial("best").loss == pytest.approx(expected.mean(), abs=1e-5)


def test_groups_stay_together_so_that_copies_of_rows_gain_nothing():
    y, p, _ = drawn(60, 3, seed=15)
    groups = np.repeat(np.arange(60), 20)
    many = vx.recalibrate(np.repeat(y, 20), np.repeat(p, 20, axis=0), method="isotonic", groups=groups)
    blind = vx.recalibrate(np.repeat(y, 20), np.repeat(p, 20, axis=0), method="isotonic")
    assert blind.gain.share > 0.1
    assert many.gain.share < 0.02
    for v in range(5):
        folds = dealt(np.repeat(y, 20), Groups.of(groups, 1200), 5, 0)
        assert not set(groups[folds == v]) & set(groups[folds != v])
    assert np.bincount(folds).tolist() == [240] * 5


def test_groups_of_two_kinds(tmp_path):
    y, p, _ = drawn(400, 3, seed=31, distort=lambda z: 2 * z)
    groups = [np.arange(400) % 20, np.arange(400) // 20]
    found = vx.recalibrate(y, p, method=["temperature", "prior"], groups=groups)
    assert found.n_groups == (20, 20)
    assert "20 and 20 groups" in repr(found)
    compared = vx.compare(y, {"none": p, "after": found.held_out}, rule="log", groups=groups)
    assert tuple(found.gain.interval) == pytest.approx(tuple(compared.difference("none", "after").interval))
    # Groups of the first kind stay together.
    folds = dealt(y, Groups.of(groups, 400), 5, 0)
    assert all(len(set(folds[groups[0] == g])) == 1 for g in range(20))
    found.save(tmp_path / "c.json")
    assert vx.Recalibration.load(tmp_path / "c.json").n_groups == (20, 20)


def test_folds_have_equal_parts_of_every_class():
    y = np.repeat([0, 1, 2], [50, 20, 5])
    folds = dealt(y, None, 5, 0)
    for k, n in enumerate([10, 4, 1]):
        assert np.bincount(folds[y == k], minlength=5).tolist() == [n] * 5


@pytest.mark.parametrize(
    ("n", "k", "rule", "ordered"), [(300, 3, "log", False), (400, 4, "rps", True), (400, 2, "brier", False)]
)
def test_calibrated_forecasts_are_left_alone(n, k, rule, ordered):
    chosen, harm = [], []
    for seed in range(8):
        y, p, _ = drawn(n + 5000, k, seed=100 + seed, spread=1.0)
        found = vx.recalibrate(y[:n], p[:n], rule=rule, ordered=ordered, seed=seed)
        chosen.append(found.method)
        scored = vx.parse(rule)
        harm.append(scored(y[n:], found.apply(p[n:])) / scored(y[n:], p[n:]) - 1)
    assert chosen.count("none") >= 7, chosen
    assert np.mean(harm) < 0.003


def test_doing_nothing_is_said():
    y, p, _ = drawn(500, 3, seed=16)
    found = vx.recalibrate(y, p)
    assert found.method == "none"
    assert found.gain.value == 0
    assert found.verdict.startswith("Do nothing: no method is known to gain anything.")
    np.testing.assert_array_equal(found.apply(p), p)
    assert repr(found).splitlines()[2].startswith("->  none")


def test_a_method_by_itself_is_taken_and_said_to_be_worse():
    y, p, _ = drawn(150, 3, seed=17)
    found = vx.recalibrate(y, p, method="isotonic", rule="brier")
    assert found.method == "isotonic"
    assert found.gain.value < 0
    assert found.verdict.startswith("Isotonic regression gains nothing")


# ---- rows of all kinds -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["best", *METHODS])
def test_zeros_are_no_trouble(method):
    rng = np.random.default_rng(18)
    members = rng.multinomial(12, rng.dirichlet([1, 1, 1], 300)) / 12
    y = np.array([rng.choice(3, p=0.5 * row + 0.5 / 3) for row in members])
    found = vx.recalibrate(y, members, method=method)
    # The log score is infinite here, so it is not the rule.
    assert found.rule == "brier"
    better = found.apply(members)
    assert np.isfinite(vx.log_score(y, better))
    np.testing.assert_allclose(better.sum(axis=1), 1, atol=1e-12)
    assert vx.recalibrate(y, members, method=method, ordered=True).rule == "rps"


def test_an_infinite_loss_that_becomes_finite_is_a_gain():
    y, p = [0, 1] * 40, [[0.9, 0.1], [0.2, 0.8]] * 39 + [[1.0, 0.0], [1.0, 0.0]]
    found = vx.recalibrate(y, p, rule="log")
    assert found.method != "none"
    assert np.isfinite(found.trials[-1].loss)
    assert found.trials[0].loss == np.inf
    assert "the loss falls from inf to" in found.verdict


@pytest.mark.parametrize("method", ["temperature", "bcts", "isotonic", "beta"])
def test_two_classes_as_one_column(method):
    y, p, _ = drawn(400, 2, seed=19, distort=lambda z: 2 * z)
    one, two = (vx.recalibrate(y, x, method=method) for x in (p[:, 1], p))
    np.testing.assert_allclose(one.apply(p[:, 1]), two.apply(p)[:, 1], atol=1e-6)
    assert one.apply(p[:, 1]).shape == (400,)


def test_float32_rows_frames_labels_and_logits():
    import pandas as pd

    y, p, _ = drawn(500, 3, seed=20, distort=lambda z: 2 * z)
    names = np.array(["low", "middle", "high"])
    plain = vx.recalibrate(y, p, method="vector")
    single = vx.recalibrate(y, p.astype(np.float32), method="vector")
    np.testing.assert_allclose(single.apply(p.astype(np.float32)), plain.apply(p), atol=1e-4)
    frame = pd.DataFrame(p, columns=names)[["high", "low", "middle"]]
    named = vx.recalibrate(names[y], frame, method="vector", classes=names)
    assert named.classes == ("low", "middle", "high")
    # The columns of a frame are found by name, here and later.
    np.testing.assert_allclose(named.apply(frame), plain.apply(p), atol=1e-5)
    logits = vx.recalibrate(y, np.log(p), method="vector", logits=True)
    np.testing.assert_allclose(logits.apply(np.log(p), logits=True), plain.apply(p), atol=1e-5)


@pytest.mark.parametrize("classes", [[1, 2, 3], [-1.5, 0.5, 2.0], [True, False], ["b", "a"]])
def test_classes_of_any_type(classes):
    y, p, _ = drawn(200, len(classes), seed=30, distort=lambda z: 2 * z)
    found = vx.recalibrate([classes[i] for i in y], p, method="temperature", classes=classes)
    plain = vx.recalibrate(y, p, method="temperature")
    np.testing.assert_allclose(found.apply(p), plain.apply(p), atol=1e-12)
    assert found.frequencies.tolist() == plain.frequencies.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repeats_in_the_fit(method):
    y, p, _ = drawn(150, 3, seed=21, distort=lambda z: 2 * z)
    w = np.random.default_rng(0).integers(1, 4, 150)
    how = Configuration(method, 0.1 if method == "dirichlet" else None)
    weighted = fit(how, Rows.of(y, p, 7.0 * w), vx.log_score, ordered=False)
    repeated = fit(how, Rows.of(np.repeat(y, w), np.repeat(p, w, axis=0), None), vx.log_score, ordered=False)
    np.testing.assert_allclose(weighted.apply(p), repeated.apply(p), atol=3e-3)


@pytest.mark.parametrize("method", ["best", "isotonic"])
def test_rows_without_weight_do_not_count(method):
    y, p, _ = drawn(300, 3, seed=22, distort=lambda z: 2 * z)
    w = np.ones(400)
    w[300:] = 0
    both = [np.concatenate([y, np.zeros(100, int)]), np.concatenate([p, np.full((100, 3), 1 / 3)])]
    found = vx.recalibrate(*both, method=method, weights=w)
    other = vx.recalibrate(both[0], np.roll(both[1], 0, axis=0), method=method, weights=5 * w)
    np.testing.assert_allclose(found.apply(p), other.apply(p), atol=1e-9)
    form = fit(Configuration("isotonic"), Rows.of(*both, w), vx.brier, ordered=False)
    np.testing.assert_allclose(
        form.apply(p), fit(Configuration("isotonic"), Rows.of(y, p, None), vx.brier, ordered=False).apply(p)
    )


@pytest.mark.parametrize("method", ["best", *METHODS])
def test_a_class_that_never_happens(method):
    y, p, _ = drawn(200, 3, seed=23)
    y = np.minimum(y, 1)
    found = vx.recalibrate(y, p, method=method)
    better = found.apply(p)
    assert np.isfinite(better).all()
    assert (better > 0).all()
    assert any("never happened" in note for note in found.notes)
    if method in ("best", "prior", "isotonic"):
        # Its probability falls, and not to zero.
        assert 0 < better[:, 2].mean() < 0.1 * p[:, 2].mean()


@pytest.mark.parametrize("n", [3, 4, 7, 12])
def test_few_rows(n):
    y, p, _ = drawn(n, 3, seed=24)
    found = vx.recalibrate(y, p)
    assert np.isfinite(found.apply(p)).all()
    assert found.folds == min(5, n)


def test_certain_and_right_forecasts():
    y = np.arange(60) % 3
    found = vx.recalibrate(y, np.eye(3)[y])
    assert found.method == "none"
    for method in METHODS:
        assert np.isfinite(vx.recalibrate(y, np.eye(3)[y], method=method).apply(np.eye(3))).all()


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"method": "platt"}, "method"),
        ({"method": []}, "method"),
        ({"method": ["best", "temperature"]}, "method"),
        ({"method": "beta"}, "method"),
        ({"folds": 1}, "folds"),
        ({"folds": 2}, "folds"),
        ({"folds": 2.5}, "folds"),
        ({"seed": -1}, "seed"),
        ({"confidence": 95}, "confidence"),
        ({"ordered": "yes"}, "ordered"),
        ({"groups": ["a"] * 50 + ["b"] * 50}, "groups"),
        ({"groups": ["a"] * 100, "method": "temperature"}, "groups"),
    ],
)
def test_wrong_options_are_refused_by_name(options, argument):
    y, p, _ = drawn(100, 3)
    with pytest.raises(vx.InputError) as error:
        vx.recalibrate(y, p, **options)
    assert error.value.argument == argument


@pytest.mark.parametrize("rule", ["zero_one", "abs_rps"])
def test_rules_that_are_not_proper_are_refused(rule):
    y, p, _ = drawn(100, 3)
    with pytest.raises(vx.RuleError):
        vx.recalibrate(y, p, rule=rule)


def test_fewer_groups_than_folds_are_as_many_folds():
    y, p, _ = drawn(90, 3)
    found = vx.recalibrate(y, p, groups=np.arange(90) % 4, method=["temperature", "bcts"])
    assert found.folds == 4
    assert found.gain.interval.caution or found.method == "none"
    assert vx.recalibrate(y, p, groups=np.arange(90) % 2, method="temperature").folds == 2


def test_new_rows_are_checked():
    y, p, _ = drawn(100, 3)
    found = vx.recalibrate(y, p, method="temperature")
    for bad in ([[0.5, 0.5]], [[0.5, 0.6, 0.2]], [[np.nan, 0.5, 0.5]], [0.5], "p"):
        with pytest.raises(vx.InputError) as error:
            found.apply(bad)
        assert error.value.argument == "p"


def test_invalid_rows_are_skipped_on_request():
    y, p, _ = drawn(100, 3)
    bad = p.copy()
    bad[3] = np.nan
    found = vx.recalibrate(y, bad, method="temperature", invalid="skip")
    assert found.n_skipped == 1
    assert found.to_dict()["skipped"]["rows"] == [3]
    assert "1 of 100 rows was left out" in repr(found)
    assert np.isnan(found.apply(bad, invalid="skip")[3]).all()
    np.testing.assert_array_equal(found.apply(bad, invalid="skip")[4:], found.apply(p)[4:])


# ---- prior shift -------------------------------------------------------------------------------


def shifted_sample(n, seed, prior):
    """Rows of three classes with these frequencies, and forecasts that hold for equal ones."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=prior)
    x = rng.normal(size=(n, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[y]
    means = np.array([[0, 0], [1.5, 0], [0, 1.5]])
    return y, softmax(-0.5 * ((x[:, None] - means) ** 2).sum(axis=2))


def test_known_new_frequencies_are_bayes_rule():
    y, p = shifted_sample(6000, 0, [1 / 3] * 3)
    new = np.array([0.7, 0.2, 0.1])
    y2, p2 = shifted_sample(6000, 1, new)
    found = vx.recalibrate(y, p, method="none")
    moved = found.apply(p2, frequencies=new)
    expected = p2 * new / found.frequencies
    np.testing.assert_allclose(moved, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    assert vx.log_score(y2, moved) < vx.log_score(y2, p2) - 0.1
    np.testing.assert_allclose(found.apply(p2, frequencies=found.frequencies), p2, atol=1e-12)
    named = vx.recalibrate(np.array(list("abc"))[y], p, method="none", classes=list("abc"))
    by_name = named.apply(p2, frequencies={"c": 0.1, "a": 0.7, "b": 0.2})
    np.testing.assert_allclose(by_name, moved)


def test_new_frequencies_are_estimated_from_forecasts_alone():
    y, p = shifted_sample(6000, 2, [1 / 3] * 3)
    new = np.array([0.7, 0.2, 0.1])
    y2, p2 = shifted_sample(6000, 3, new)
    found = vx.recalibrate(y, p, method="none")
    estimate = found.estimate_frequencies(p2)
    np.testing.assert_allclose(estimate, new, atol=0.03)
    # The maximum of the likelihood of the forecasts, found by a general optimiser.
    from scipy.optimize import minimize

    def minus_log_likelihood(t):
        q = softmax(np.append(0, t)[None])[0]
        return -np.log((p2 * q / found.frequencies).sum(axis=1)).mean()

    by_force = softmax(np.append(0, minimize(minus_log_likelihood, [0, 0], tol=1e-10).x)[None])[0]
    np.testing.assert_allclose(estimate, by_force, atol=1e-4)
    assert vx.log_score(y2, found.apply(p2, frequencies="estimate")) < vx.log_score(y2, p2) - 0.1


@pytest.mark.parametrize(
    "frequencies",
    [
        [0.5, 0.5],
        [0.5, 0.6, 0.2],
        [1.2, -0.1, -0.1],
        "guess",
        {"a": 1.0},
        [np.nan, 0.5, 0.5],
        ["a", "b", "c"],
    ],
)
def test_frequencies_that_are_none_are_refused(frequencies):
    y, p, _ = drawn(100, 3)
    with pytest.raises(vx.InputError) as error:
        vx.recalibrate(y, p, method="temperature").apply(p, frequencies=frequencies)
    assert error.value.argument == "frequencies"


def test_a_class_that_was_never_seen_has_no_new_frequency():
    y, p, _ = drawn(100, 3)
    found = vx.recalibrate(np.minimum(y, 1), p, method="temperature")
    with pytest.raises(vx.InputError, match="never happened"):
        found.apply(p, frequencies=[0.4, 0.4, 0.2])
    assert (found.apply(p, frequencies=[0.5, 0.5, 0])[:, 2] == 0).all()
    assert found.estimate_frequencies(p)[2] == 0


# ---- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["best", "none", "isotonic", "dirichlet", "temperature"])
def test_what_is_saved_is_what_is_loaded(method, tmp_path):
    y, p, _ = drawn(300, 3, seed=25, distort=lambda z: 2 * z)
    names = ["a", "b", "ü\n"]
    found = vx.recalibrate(np.array(names)[y], p, method=method, classes=names, groups=np.arange(300) % 50)
    found.save(tmp_path / "calibration.json")
    loaded = vx.Recalibration.load(tmp_path / "calibration.json")
    np.testing.assert_array_equal(loaded.apply(p), found.apply(p))
    assert loaded.to_dict(stored=False) == found.to_dict(stored=False)
    assert repr(loaded) == repr(found)
    assert loaded.gain.interval.method == found.gain.interval.method
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibration.json").read_bytes()


def test_infinite_losses_survive_a_file(tmp_path):
    found = vx.recalibrate([0, 1] * 40, [[0.9, 0.1], [0.2, 0.8]] * 39 + [[1.0, 0.0]] * 2, rule="log")
    found.save(tmp_path / "c.json")
    assert repr(vx.Recalibration.load(tmp_path / "c.json")) == repr(found)


def test_classes_that_json_cannot_hold_are_refused(tmp_path):
    import datetime

    y, p, _ = drawn(100, 3)
    days = [datetime.date(2020, 1, d) for d in (1, 2, 3)]
    found = vx.recalibrate(np.array(days, dtype=object)[y], p, method="temperature", classes=days)
    with pytest.raises(vx.InputError, match="stored as JSON"):
        found.save(tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def spoiled(text, path, value):
    stored = json.loads(text)
    inner = stored
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return json.dumps(stored)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], "other"),
        (["version"], 2),
        (["method"], "magic"),
        (["classes"], ["a", "b"]),
        (["classes"], ["a", "a", "b"]),
        (["frequencies"], [0.5, 0.5, 0.5]),
        (["frequencies"], ["a", "b", "c"]),
        (["frequencies"], None),
        (["ordered"], 1),
        (["n_rows"], 1.5),
        (["trials"], []),
        (["trials"], [{}]),
        (["trials", 0, "loss"], "much"),
        (["form"], {"kind": "python", "code": "1"}),
        (["form"], []),
        (["form", "slopes"], [1.0, 2.0]),
        (["form", "slopes"], [[1.0, 2.0], [1.0]]),
        (["form", "offsets"], [0, 0, "inf"]),
        (["form", "floor"], 0),
        (
            ["form"],
            {"kind": "isotonic", "thresholds": False, "forecasts": [], "frequencies": [], "spread": 0},
        ),
        (
            ["form"],
            {
                "kind": "isotonic",
                "thresholds": False,
                "forecasts": [[0, 1]] * 3,
                "frequencies": [[1, 0]] * 3,
                "spread": 0.1,
            },
        ),
    ],
)
def test_files_that_are_not_ours_are_refused(path, value, tmp_path):
    y, p, _ = drawn(100, 3)
    file = tmp_path / "c.json"
    vx.recalibrate(y, p, method="temperature").save(file)
    file.write_text(spoiled(file.read_text(), path, value))
    with pytest.raises(vx.InputError) as error:
        vx.Recalibration.load(file)
    assert error.value.kind == "file"


@pytest.mark.parametrize("text", ["", "{", "[]", "NaN", "\x80", '{"format": "verax recalibration"}'])
def test_files_that_are_no_json_are_refused(text, tmp_path):
    (tmp_path / "c.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(vx.InputError):
        vx.Recalibration.load(tmp_path / "c.json")
    with pytest.raises(vx.InputError):
        vx.Recalibration.load(tmp_path / "missing.json")


# ---- how it is shown ---------------------------------------------------------------------------


def test_the_table_the_frame_and_the_figure_say_the_same():
    import matplotlib.pyplot as plt

    y, p, _ = drawn(600, 3, seed=26, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p)
    assert found.method == "temperature"
    assert [trial.method for trial in found.trials] == ["none", *METHODS, "best"]
    frame = found.to_frame()
    assert frame["method"].tolist() == [trial.method for trial in found.trials]
    assert frame["gain"].iloc[-1] == found.gain.value == float(found.gain)
    assert found.to_frame("polars").shape == frame.shape
    lines = repr(found).splitlines()
    marked = [line for line in lines if line.startswith("->")]
    assert len(marked) == 1
    assert "temperature" in marked[0]
    assert found.verdict in lines
    assert "<table>" in found._repr_html_()
    with pytest.raises(KeyError, match="was not tried"):
        found.trial("beta")
    axes = found.plot()
    drawn_at = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert drawn_at == pytest.approx([100 * trial.gain.share for trial in found.trials[1:]])
    plt.close("all")


def test_the_same_seed_gives_the_same_result():
    y, p, _ = drawn(200, 3, seed=27, distort=lambda z: 2 * z)
    first, second = (vx.recalibrate(y, p, seed=3).to_dict() for _ in range(2))
    assert first == second
    assert vx.recalibrate(y, p, seed=4).to_dict()["trials"] != first["trials"]


def test_many_rows_are_fitted_to_some_of_them():
    y, p, _ = drawn(130_000, 2, seed=28, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p[:, 1], method="temperature", folds=2)
    assert 1 / float(found.form.slopes) == pytest.approx(2, abs=0.05)
    assert any("100,000 rows" in note for note in found.notes)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_small_sample_gives_a_forecast(data):
    n, k = data.draw(st.integers(3, 12)), data.draw(st.integers(2, 4))
    counts = data.draw(hnp.arrays(int, (n, k), elements=st.integers(0, 5)))
    counts[:, 0] += counts.sum(axis=1) == 0
    p = counts / counts.sum(axis=1, keepdims=True)
    y = data.draw(hnp.arrays(int, n, elements=st.integers(0, k - 1)))
    ordered = data.draw(st.booleans())
    found = vx.recalibrate(y, p, ordered=ordered, folds=3)
    better = found.apply(p)
    assert (better >= 0).all()
    np.testing.assert_allclose(better.sum(axis=1), 1, atol=1e-9)


# ---- real forecasts ----------------------------------------------------------------------------


def test_retinopathy_grades():
    """Temperature and isotonic regression gain about a percent of RPS here; class offsets gain four."""
    stored = realdata.load("dr-aptos", "dr_aptos5.npz")
    found = vx.recalibrate(stored["labels"], stored["probs"], rule="rps", ordered=True)
    assert found.trials[0].loss == pytest.approx(0.0406, abs=5e-5)
    assert 0.005 < found.trial("temperature").gain.share < 0.025
    assert -0.03 < found.trial("isotonic").gain.share < 0.03
    # In sample, isotonic regression would promise ten percent.
    in_sample = fit(
        Configuration("isotonic"), Rows.of(stored["labels"], stored["probs"], None), vx.rps, ordered=True
    )
    promised = 1 - vx.rps(stored["labels"], in_sample.apply(stored["probs"])) / found.trials[0].loss
    assert promised > 0.08
    assert found.method == "bcts"
    assert 0.02 < found.gain.share < 0.06
    assert found.gain.certain


def test_the_folds_of_a_sample_see_no_row_of_their_own():
    y, p, _ = drawn(100, 3, seed=29)
    sample = Sample(y, p, None, None, vx.brier, False, dealt(y, None, 5, 0), 0)
    before = sample.fitted(Configuration("isotonic"), [2]).apply(p)
    spoiled_rows = p.copy()
    spoiled_rows[sample.folds == 2] = [0.98, 0.01, 0.01]
    other = Sample(y, spoiled_rows, None, None, vx.brier, False, sample.folds, 0)
    np.testing.assert_array_equal(other.fitted(Configuration("isotonic"), [2]).apply(p), before)
