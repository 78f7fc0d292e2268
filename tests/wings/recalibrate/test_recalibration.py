"""Recalibration: methods against independent fits, honest gains, choices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import isotonic_regression, minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import verax as vx
from recalibrations import METHODS, drawn, softmax
from verax.analyses.dealing import dealt
from verax.inputs.groups import Groups
from verax.selection import RefinementLoss
from verax.wings.recalibrate.fitting import fit
from verax.wings.recalibrate.forms import nearest_monotone
from verax.wings.recalibrate.rows import Configuration, FittingRows


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
    found = vx.recalibrate(y, p, method="temperature", rule="log_score")
    np.testing.assert_allclose(found.apply(p), theirs.predict_proba(p), atol=2e-4)


@pytest.mark.parametrize("rule", ["log_score", "brier", "rps", "spherical", "ranked_log"])
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
    ours = fit(Configuration("dirichlet", 0.0), FittingRows.of(y, p, None), vx.log_score, ordered=False)
    np.testing.assert_allclose(ours.apply(p), theirs.predict_proba(np.log(p)), atol=5e-4)


def test_bcts_of_two_classes_is_platt_scaling_of_the_log_odds():
    y, p, _ = drawn(3000, 2, seed=3, distort=lambda z: 1.8 * z + [0.0, 0.7])
    odds = np.log(p[:, 1:] / p[:, :1])
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(odds, y)
    found = vx.recalibrate(y, p[:, 1], method="bcts", rule="log_score")
    np.testing.assert_allclose(found.apply(p[:, 1]), theirs.predict_proba(odds)[:, 1], atol=2e-4)


def test_beta_calibration_is_that_of_the_package_of_its_authors():
    rng = np.random.default_rng(5)
    q = rng.beta(2, 2, 4000)
    y = (rng.random(4000) < q).astype(int)
    p = q**1.5 / (q**1.5 + (1 - q) ** 0.7 * 0.8)
    found = vx.recalibrate(y, p, method="beta", rule="log_score")
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


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("rule", ["log_score", "brier", "rps"])
def test_no_other_numbers_near_the_fit_lose_less(method, rule):
    y, p, _ = drawn(400, 3, seed=10, distort=lambda z: 1.4 * z + [0.5, 0, 0])
    rows, chosen = FittingRows.of(y, p, None), vx.parse(rule)
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


@pytest.mark.long
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
    found = vx.recalibrate(y, p, method=method, rule="log_score")
    before, after = (np.abs(x - q).mean() for x in (p, found.apply(p)))
    assert after < 0.012 < before / 4
    assert found.gain.interval.low > 0
    # What is left of the loss is what the truth itself loses.
    assert found.trials[-1].loss == pytest.approx(vx.log_score(y, q), abs=1e-3)


def test_bent_thresholds_are_for_isotonic_regression_where_temperature_gains_nothing():
    rng = np.random.default_rng(12)
    q = rng.dirichlet([0.7, 0.7, 0.7, 0.7], 10_000)
    y = (rng.random((len(q), 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    below = np.cumsum(q, axis=1)[:, :-1]
    bent = 0.5 + 0.35 * np.sign(below - 0.5) * np.abs(2 * below - 1) ** 0.4
    p = np.diff(bent, axis=1, prepend=0, append=1)
    found = vx.recalibrate(
        y, p, rule="rps", ordered=True, method=["temperature", "bcts", "isotonic"], folds=3
    )
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
    folds = dealt(len(y), None if labels is None else Groups.of(labels, 300), 5, 4)
    held_out, fits = np.empty_like(p), []
    for v in range(5):
        rows = FittingRows.of(y[folds != v], p[folds != v], None)
        form = fit(Configuration("temperature"), rows, vx.brier, ordered=False)
        held_out[folds == v] = form.apply(p[folds == v])
        fits.append(vx.brier.samples(y, form.apply(p)))
    np.testing.assert_allclose(found.held_out, held_out, atol=1e-5)
    compared = vx.compare(y, {"none": p, "after": held_out}, rule="brier", groups=labels, reference="none")
    gap = compared.difference("none", "after")
    assert found.gain.value == pytest.approx(gap.difference, abs=1e-6)
    after = next(m for m in compared.models["brier"] if m.name == "after")
    assert found.gain.share == pytest.approx(after.skill, abs=1e-5)
    # The fit to all rows differs from those of the folds: five of them add 4.425 times their spread.
    units = np.arange(300) if labels is None else labels
    gaps = vx.brier.samples(y, p) - vx.brier.samples(y, held_out)
    of_rows = (np.bincount(units, gaps - gaps.mean()) ** 2).sum()
    spread = np.var([np.bincount(units, each) for each in fits], axis=0, ddof=1).sum()
    factor = max(1.25, np.sqrt(1 + 4.425 * spread / of_rows))
    for ours, of_losses, at in (
        (found.gain.interval, gap.interval, gap.difference),
        (found.gain.share_interval, after.skill_interval, after.skill),
    ):
        assert np.subtract(ours, at) == pytest.approx(factor * np.subtract(of_losses, at), abs=1e-4)


def test_groups_stay_together_so_that_copies_of_rows_gain_nothing():
    y, p, _ = drawn(60, 3, seed=15)
    groups = np.repeat(np.arange(60), 20)
    many = vx.recalibrate(np.repeat(y, 20), np.repeat(p, 20, axis=0), method="isotonic", groups=groups)
    blind = vx.recalibrate(np.repeat(y, 20), np.repeat(p, 20, axis=0), method="isotonic")
    assert blind.gain.share > 0.1
    assert many.gain.share < 0.02
    for v in range(5):
        folds = dealt(20 * len(y), Groups.of(groups, 1200), 5, 0)
        assert not set(groups[folds == v]) & set(groups[folds != v])
    assert np.bincount(folds).tolist() == [240] * 5


def test_groups_of_two_kinds(tmp_path):
    y, p, _ = drawn(400, 3, seed=31, distort=lambda z: 2 * z)
    groups = [np.arange(400) % 20, np.arange(400) // 20]
    found = vx.recalibrate(y, p, method=["temperature", "prior"], rule="log_score", groups=groups)
    assert found.n_groups == (20, 20)
    assert "20 and 20 groups" in repr(found)
    compared = vx.compare(y, {"none": p, "after": found.held_out}, rule="log_score", groups=groups)
    gap = compared.difference("none", "after")
    expected = gap.difference + 1.25 * (np.array(gap.interval) - gap.difference)
    np.testing.assert_allclose(found.gain.interval, expected, atol=1e-5)
    # Groups of the first kind stay together.
    folds = dealt(len(y), Groups.of(groups, 400), 5, 0)
    assert all(len(set(folds[groups[0] == g])) == 1 for g in range(20))
    found.save(tmp_path / "c.json")
    assert vx.results.Recalibration.load(tmp_path / "c.json").n_groups == (20, 20)


def test_folds_do_not_look_at_outcomes():
    # If every fold had its share of each class, a fitted prior would match the noise of the rows that it is
    # measured on: of 40 classes it would gain in nearly every sample.
    gains = []
    for seed in range(4):
        y, p, _ = drawn(400, 40, seed=seed, spread=1.0)
        found = vx.recalibrate(y, p, method="prior", rule="log_score")
        gains.append(found.gain.share)
        assert found.gain.interval.low < 0
    assert max(gains) < 0
    folds = dealt(75, None, 5, 0)
    assert np.bincount(folds).tolist() == [15] * 5
    assert np.bincount(folds[:20], minlength=5).tolist() != [4] * 5


def test_a_class_that_the_other_folds_lack_costs_what_it_would_on_new_rows():
    y, p, _ = drawn(200, 3, seed=5)
    # One row of a fourth class: the fit without its fold has never seen it.
    y, p = np.append(y, 3), np.column_stack([0.98 * np.vstack([p, p[:1]]), np.full(201, 0.02)])
    for method in ("prior", "bcts", "isotonic", "svector", "smatrix"):
        found = vx.recalibrate(y, p, method=method, rule="log_score")
        assert np.isfinite(found.gain.value)
        assert 0 < found.held_out[-1, 3] < 0.02


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "k", "rule", "ordered"),
    [(300, 3, "log_score", False), (300, 4, "rps", True), (400, 2, "brier", False)],
)
def test_calibrated_forecasts_are_left_alone(n, k, rule, ordered):
    # `studies/recalibration.py` counts how often in many samples, and what it costs.
    for seed in range(3):
        y, p, _ = drawn(n, k, seed=100 + seed, spread=1.0)
        assert vx.recalibrate(y, p, rule=rule, ordered=ordered, folds=3, seed=seed).method == "none"


@pytest.mark.long
def test_doing_nothing_is_said(tmp_path):
    y, p, _ = drawn(500, 3, seed=16)
    found = vx.recalibrate(y, p)
    assert found.method == "none"
    assert found.gain.value == 0
    p_value = f"{found.calibration_p:.2f}"
    told = f"No gain is shown: calibration is not rejected (score test p = {p_value}, 500 rows)."
    assert found.verdict.startswith(told)
    drawn_from = found.with_sample(500, 4000)
    assert f"(score test p = {p_value}, 500 of 4,000 rows)" in drawn_from.verdict
    drawn_from.save(tmp_path / "a.json")
    assert vx.results.Recalibration.load(tmp_path / "a.json").verdict == drawn_from.verdict
    assert repr(drawn_from).count("From a random sample of 500 of 4,000 rows.") == 1
    np.testing.assert_array_equal(found.apply(p), p)
    assert repr(found).splitlines()[2].startswith("->  none")


@pytest.mark.parametrize("rule", ["log_score", "brier"])
def test_a_gain_allows_for_errors_that_no_row_has_shown(rule):
    # All 30 rows are right, so that a temperature makes them nearly certain. Up to a share u of new rows may
    # be wrong, with (1 - u)^30 = 0.025.
    y = np.arange(30) % 2
    p = np.where(y == 1, 0.7, 0.3)
    found = vx.recalibrate(y, p, method="temperature", rule=rule)
    u = 1 - 0.025 ** (1 / 30)
    rows = np.column_stack([1 - p, p])
    wrong = vx.parse(rule)(1 - y, found.held_out) - vx.parse(rule)(1 - y, rows)
    assert found.gain.interval.low == pytest.approx((1 - u) * found.gain.value - u * wrong)
    assert (found.gain.interval.low > 0) == (rule == "brier")
    # A choice asks for as much at one standard error.
    chosen = vx.recalibrate(y, p, method=["temperature", "prior"], rule=rule)
    assert chosen.calibration_p < 0.05
    assert chosen.method == ("temperature" if rule == "brier" else "none")
    assert "show no cost of an error" in found.gain.interval.caution
    # Other rows show errors, and their losses tell.
    y[:3] = 1 - y[:3]
    assert "error" not in vx.recalibrate(y, p, method="temperature", rule=rule).gain.interval.caution


def test_a_method_by_itself_is_taken_and_said_to_be_worse():
    y, p, _ = drawn(150, 3, seed=17)
    found = vx.recalibrate(y, p, method="isotonic", rule="brier")
    assert found.method == "isotonic"
    assert found.gain.value < 0
    assert found.verdict.startswith("Isotonic regression adds about ")
    assert np.isnan(found.calibration_p)


# ---- rows of all kinds -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", ["best", *METHODS])
def test_zeros_are_no_trouble(method):
    rng = np.random.default_rng(18)
    members = rng.multinomial(12, rng.dirichlet([1, 1, 1], 300)) / 12
    y = np.array([rng.choice(3, p=0.5 * row + 0.5 / 3) for row in members])
    found = vx.recalibrate(y, members, method=method, folds=3)
    # The log score is infinite here, so it is not the rule.
    assert found.rule == "brier"
    better = found.apply(members)
    assert np.isfinite(vx.log_score(y, better))
    np.testing.assert_allclose(better.sum(axis=1), 1, atol=1e-12)
    if method == "isotonic":
        assert vx.recalibrate(y, members, method=method, ordered=True).rule == "rps"


def test_an_infinite_loss_that_becomes_finite_is_a_gain():
    y, p = [0, 1] * 40, [[0.9, 0.1], [0.2, 0.8]] * 39 + [[1.0, 0.0], [1.0, 0.0]]
    found = vx.recalibrate(y, p, rule="log_score")
    assert found.method != "none"
    assert np.isfinite(found.trials[-1].loss)
    assert found.trials[0].loss == np.inf
    assert "the log score of held-out rows falls from inf to" in found.verdict
    assert found.calibration_p == 0


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
    # The penalty of structured scaling is against the sum of all losses, and weights have mean one.
    strengths = {"dirichlet": (0.1, 0.1), "svector": (1, w.mean()), "smatrix": (1, w.mean())}
    one, other = (Configuration(method, s) for s in strengths.get(method, (None, None)))
    weighted = fit(one, FittingRows.of(y, p, 7.0 * w), vx.log_score, ordered=False)
    repeated = fit(
        other, FittingRows.of(np.repeat(y, w), np.repeat(p, w, axis=0), None), vx.log_score, ordered=False
    )
    # The row that is spread over all classes is one of 150, or of all repeats.
    np.testing.assert_allclose(
        weighted.apply(p), repeated.apply(p), atol=6e-3 if method == "smatrix" else 3e-3
    )


@pytest.mark.parametrize("method", ["best", "isotonic"])
def test_rows_without_weight_do_not_count(method):
    y, p, _ = drawn(300, 3, seed=22, distort=lambda z: 2 * z)
    w = np.ones(400)
    w[300:] = 0
    both = [np.concatenate([y, np.zeros(100, int)]), np.concatenate([p, np.full((100, 3), 1 / 3)])]
    found = vx.recalibrate(*both, method=method, weights=w, folds=3)
    other = vx.recalibrate(*both, method=method, weights=5 * w, folds=3)
    np.testing.assert_allclose(found.apply(p), other.apply(p), atol=1e-9)
    form = fit(Configuration("isotonic"), FittingRows.of(*both, w), vx.brier, ordered=False)
    np.testing.assert_allclose(
        form.apply(p),
        fit(Configuration("isotonic"), FittingRows.of(y, p, None), vx.brier, ordered=False).apply(p),
    )


@pytest.mark.long
@pytest.mark.parametrize("method", ["best", *METHODS])
def test_a_class_that_never_happens(method):
    y, p, _ = drawn(200, 3, seed=23)
    y = np.minimum(y, 1)
    found = vx.recalibrate(y, p, method=method, rule="log_score")
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


@pytest.mark.long
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
        ({"folds": 2, "method": "dirichlet"}, "folds"),
        ({"folds": 2.5}, "folds"),
        ({"seed": -1}, "seed"),
        ({"confidence": 95}, "confidence"),
        ({"ordered": "yes"}, "ordered"),
        ({"groups": ["a"] * 50 + ["b"] * 50, "method": "dirichlet"}, "groups"),
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
    with pytest.raises(vx.errors.RuleError):
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


# ---- saturated probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["log_score", "brier"])
def test_saturated_noise_does_not_set_the_temperature(rule):
    """Naive Bayes multiplies features that depend on each other: its small probabilities mean little."""
    x, y = load_digits(return_X_y=True)
    p = cross_val_predict(GaussianNB(), x, y, method="predict_proba")
    clipped = np.maximum(p, 1e-16)
    clipped /= clipped.sum(axis=1, keepdims=True)
    found, simple = (vx.recalibrate(y, q, method="temperature", rule=rule) for q in (p, clipped))
    # About as good as clipping by hand, on rows that no fit has seen.
    assert found.trials[-1].loss < 1.01 * simple.trials[-1].loss
    assert vx.brier(y, found.held_out) < 0.85 * vx.brier(y, p)
    assert "Probabilities reach 1e-300" in repr(found)
    assert RefinementLoss(rule)(y, p) == pytest.approx(found.trials[-1].loss, rel=0.02)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_logits_that_are_merely_too_large_keep_their_differences(kind):
    y, _, q = drawn(1500, 3, seed=3)
    p = softmax((30 * np.log(q)).astype(kind)).astype(kind)
    found = vx.recalibrate(y, p, method="temperature", rule="brier")
    assert found.trials[-1].loss == pytest.approx(vx.brier(y, q), rel=0.01)
    assert 1 / float(found.form.slopes) == pytest.approx(30, rel=0.1)


def test_a_method_by_name_reports_a_worse_headline_score():
    """Rows that are far out make the log score flatten all forecasts, which costs Brier."""
    rng = np.random.default_rng(0)
    q = rng.uniform(0.02, 0.98, size=1000)
    y = (rng.random(1000) < q).astype(int)
    p = np.where(rng.random(1000) < 0.02, np.where(y == 1, 1e-9, 1 - 1e-9), q)
    found = vx.recalibrate(y, p, method="temperature", rule="log_score")
    before, after = vx.brier(y, p), vx.brier(y, found.held_out)
    assert after > before
    said = f"On held-out rows brier rises from {before:.4g} to {after:.4g}"
    assert any(note.startswith(said) and 'rule="brier"' in note for note in found.notes)
    assert not any("rises" in note for note in vx.recalibrate(y, p, method="temperature", rule="brier").notes)
