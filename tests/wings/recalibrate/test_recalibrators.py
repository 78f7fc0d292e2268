"""Structured scaling, smooth curves and ordered scaling: against independent fits, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import verax as vx
from recalibrations import drawn, softmax
from verax.analyses.dealing import dealt
from verax.analyses.stored import _checksum
from verax.wings.recalibrate import scaling, searching
from verax.wings.recalibrate.curves import _Fitting, basis, thresholds_of
from verax.wings.recalibrate.fitting import fit
from verax.wings.recalibrate.forms import Isotonic
from verax.wings.recalibrate.rows import Configuration, FittingRows

STRUCTURED = ["svector", "smatrix"]
NEW = {2: ["quadratic", "spline"], 4: [*STRUCTURED, "ordered"]}


def fitted(method, y, p, rule=vx.log_score, strength=None, weights=None):
    how, rows = Configuration(method, strength), FittingRows.of(y, p, weights)
    return fit(how, rows, rule, ordered=method == "ordered")


def outcomes(q, rng):
    return (rng.random((len(q), 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)


def mixed(n, k, seed=0):
    """Forecasts whose classes leak into each other, so that a matrix is needed."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    slopes, offsets = 0.6 * np.eye(k) + 0.2 * rng.normal(size=(k, k)) / np.sqrt(k), 0.4 * rng.normal(size=k)
    q = softmax(z @ slopes.T + offsets)
    return outcomes(q, rng), softmax(z)


# ---- structured scaling ------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "theirs"), [("svector", "SVSCalibrator"), ("smatrix", "SMSCalibrator")])
def test_structured_scaling_is_that_of_the_package_of_its_authors(method, theirs):
    calibrators = pytest.importorskip("probmetrics.calibrators")
    y, p = mixed(2000, 4)
    form = fitted(method, y[:1000], p[:1000])
    other = getattr(calibrators, theirs)(opt="bfgs").fit(p[:1000], y[:1000])
    q = other.predict_proba(p[1000:])
    # Theirs computes with single precision, and its search ends sooner.
    np.testing.assert_allclose(form.apply(p[1000:]), q, atol=6e-3)
    assert np.abs(form.apply(p[1000:]) - q).mean() < 3e-4
    assert vx.log_score(y[1000:], form.apply(p[1000:])) == pytest.approx(
        vx.log_score(y[1000:], q / q.sum(axis=1, keepdims=True)), rel=1e-4
    )


@pytest.mark.parametrize("method", STRUCTURED)
def test_structured_scaling_is_the_optimum_of_its_objective(method):
    y, p = mixed(300, 3, seed=1)
    form = fitted(method, y, p)
    power = float(fitted("temperature", y, p).slopes)
    assert form.power == pytest.approx(power, rel=1e-6)
    z = np.log((1 - 1 / 301) * softmax(power * np.log(p)) + 1 / 301 / 3)
    shape = (3, 3) if method == "smatrix" else (3,)
    held = np.where(np.eye(3) > 0, 3.0, 6.0) if method == "smatrix" else np.full(3, 3.0)

    def objective(t):
        changes, offsets = t[:-3].reshape(shape), t[-3:]
        moved = z + (z @ changes.T if method == "smatrix" else z * changes) + offsets
        penalty = (held * changes**2).sum() + 3 * (offsets**2).sum()
        return -np.log(softmax(moved)[np.arange(300), y]).sum() + penalty

    by_force = minimize(objective, np.zeros(np.prod(shape) + 3), options={"gtol": 1e-5})
    unchanged = np.eye(3) if method == "smatrix" else 1
    np.testing.assert_allclose(form.slopes - unchanged, by_force.x[:-3].reshape(shape), atol=1e-4)
    np.testing.assert_allclose(form.offsets, by_force.x[-3:], atol=1e-4)


@pytest.mark.parametrize("products", [1, 50, 2**21])
def test_curvatures_by_class_are_those_of_the_whole_matrix(change, products):
    """The numbers of one class among those of all; products of logarithms are made in steps of any length."""
    change(products_at_once=products, product_rows=1)
    rng, k, n = np.random.default_rng(0), 4, 23
    z, q, weights = rng.normal(size=(k, n)), rng.dirichlet(np.ones(k), n).T, rng.random(n)
    found = scaling.curvatures_by_class(scaling._Point(z, q, weights).sums_by_class())
    whole = scaling.matrix_curvature(q, z, weights)
    for i in range(k):
        own = [*range(i * k, (i + 1) * k), k * k + i]
        np.testing.assert_allclose(found[i], whole[np.ix_(own, own)], rtol=1e-12)


def test_the_search_for_many_classes_ends_where_that_for_few_does(change):
    y, p = mixed(600, 4, seed=2)
    few = fitted("smatrix", y, p, vx.brier)
    change(curvature_up_to=0)
    many = fitted("smatrix", y, p, vx.brier)
    np.testing.assert_allclose(many.apply(p), few.apply(p), atol=1e-4)
    assert vx.brier(y, many.apply(p)) == pytest.approx(vx.brier(y, few.apply(p)), rel=1e-6)


def test_the_search_for_many_classes_adds_nothing_to_all_of_them_alike(change):
    """It would change no forecast, and the penalty is smallest without it."""
    change(curvature_up_to=0)
    form = fitted("smatrix", *mixed(600, 4, seed=2))
    changes = np.column_stack([form.slopes - np.eye(4), form.offsets])
    weights = np.where(np.eye(4, 5) > 0, 4.0, 12.0)
    weights[:, 4] = 4.0
    assert np.abs(changes).max() > 0.1
    np.testing.assert_allclose((weights * changes).sum(axis=0), 0.0, atol=1e-12)


def test_the_last_step_is_not_looked_at_where_the_curvature_says_what_it_leaves():
    seen, end = [], np.array([0.3, -0.5])

    def objective(x):
        seen.append(x)
        return float(np.cosh(x - end).sum()), np.sinh(x - end)

    far = np.full(2, np.inf)
    found = searching.smallest(objective, np.zeros(2), (-far, far), 0.9 * np.eye(2))
    last = np.abs(seen[-1] - end).max()
    assert 1e-6 < last < 1e-5
    assert np.abs(found - end).max() < 0.2 * last
    # A step ends at a bound.
    high = np.array([0.3 - 1e-6, np.inf])
    found = searching.smallest(objective, np.zeros(2), (-far, high), 0.9 * np.eye(2))
    np.testing.assert_allclose(found, [high[0], end[1]], atol=2e-7)


@pytest.mark.parametrize("most", [10**6, 1000])
@pytest.mark.parametrize("method", ["temperature", "prior", "bcts", *STRUCTURED])
def test_parts_of_many_rows_share_a_curvature_and_end_where_others_do(change, method, most):
    change(curvature_rows=10, curvature_classes_from=0)
    how, (y, p) = Configuration(method), mixed(1500, 4, seed=3)
    whole = FittingRows.of(y, p, None)
    near = fit(how, whole, vx.log_score, ordered=False)
    for v in range(3):
        kept = np.flatnonzero(np.arange(1500) % 3 != v)
        part = whole.taken(kept, None).some(most, 0)
        found = fit(how, part, vx.log_score, ordered=False, near=near)
        np.testing.assert_allclose(found.apply(p), fitted(method, part.y, part.p).apply(p), atol=1e-5)
    shared = [key[1] for key in whole.cache if key[0] == "curvature"]
    assert sorted(each.method for each in shared) == sorted(
        {"temperature", method} if method in STRUCTURED else {method}
    )
    few = whole.taken(np.arange(10), None)
    assert [few.shared("anything", lambda n=n: n) for n in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("method", ["prior", "bcts", "vector"])
def test_the_curvature_that_a_search_begins_with_is_that_of_its_end(method):
    y, p = mixed(300, 3, seed=6)
    given, numbers = FittingRows.of(y, p, None), scaling._numbers_of(method, 3)
    form = fitted(method, y, p)
    end = numbers.pack(form.slopes, form.offsets)

    def slope(t):
        _, by_slope, by_offset = given.logs.sums(vx.log_score, *numbers.unpack(t))
        return (numbers.pull(t, by_slope, by_offset) + 2 * searching.RIDGE * t) / len(y)

    steps = 1e-5 * np.eye(len(end))
    bends = np.array([(slope(end + step) - slope(end - step)) / 2e-5 for step in steps])
    inverse = scaling._inverse_curvature_near(numbers, end, given.logs.some(10**6), vx.log_score)
    np.testing.assert_allclose(np.linalg.inv(inverse), bends, atol=2e-4)
    # By another rule the curvature is as large, about, and the search ends at the same place from there.
    near = fit(Configuration(method), given, vx.brier, ordered=False, near=form)
    np.testing.assert_allclose(near.apply(p), fitted(method, y, p, rule=vx.brier).apply(p), atol=1e-5)


def test_the_penalty_of_other_rules_is_on_their_scale():
    # The gradient of 2 (p - y)^2 in the log odds is 4 p (1 - p) times that of the log score.
    z, y = np.log([[0.1] * 9, [0.9] * 9]), np.array([0, 1, 1, 1, 1, 0, 1, 0, 1])
    assert scaling.noise_of(vx.log_score, z, y, np.ones(9)) == pytest.approx((1, 1))
    assert scaling.noise_of(vx.brier, z, y, np.ones(9)) == pytest.approx((0.36, 0.36))


def test_a_strong_penalty_leaves_the_temperature_and_a_weak_one_a_matrix():
    y, p = mixed(1000, 4, seed=4)
    strong, weak = (fitted("smatrix", y, p, strength=s) for s in (1e6, 1e-6))
    temperature, dirichlet = fitted("temperature", y, p), fitted("dirichlet", y, p, strength=0.0)
    np.testing.assert_allclose(strong.apply(p), temperature.apply(p), atol=2e-3)
    np.testing.assert_allclose(weak.apply(p).mean(axis=0), dirichlet.apply(p).mean(axis=0), atol=1e-3)
    assert vx.log_score(y, weak.apply(p)) == pytest.approx(vx.log_score(y, dirichlet.apply(p)), rel=2e-3)


# ---- curves of two classes ---------------------------------------------------------------------


def bent(n, seed=5):
    """Outcomes, and forecasts whose log odds are bent."""
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=n)
    f = 0.4 + 0.8 * x + 0.1 * x * np.abs(x)
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(int)
    return y, 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-f))


def test_quadratic_scaling_is_logistic_regression_where_that_does_not_decrease():
    rng = np.random.default_rng(6)
    x = rng.uniform(-3, 4, 4000)
    y = (rng.random(4000) < 1 / (1 + np.exp(-(0.3 + 0.9 * x + 0.08 * x**2)))).astype(int)
    features = np.column_stack([x, x**2])
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(features, y).predict_proba(features)[:, 1]
    found = vx.recalibrate(y, 1 / (1 + np.exp(-x)), method="quadratic", rule="log_score").apply(
        1 / (1 + np.exp(-x))
    )
    np.testing.assert_allclose(found, theirs, atol=1e-3)


@pytest.mark.parametrize("method", NEW[2])
def test_curves_never_decrease(method):
    # Outcomes that fall with the forecast.
    y, p, _ = drawn(400, 2, seed=4, distort=lambda z: -z)
    curve = vx.recalibrate(y, p[:, 1], method=method, folds=3).apply(np.linspace(0, 1, 101))
    assert (np.diff(curve) >= -1e-12).all()


def test_a_spline_undoes_a_bend_that_no_line_does():
    y, p, q = bent(20_000)
    rows = np.column_stack([1 - p, p])
    before, after = (
        np.abs(fitted(method, y, rows, strength=s).apply(rows)[:, 1] - q).mean()
        for method, s in (("bcts", None), ("spline", 1.0))
    )
    assert after < 0.006 < 0.5 * before
    stiff = fitted("spline", y[:500], rows[:500], strength=1e7).apply(rows[:500])
    np.testing.assert_allclose(stiff, fitted("bcts", y[:500], rows[:500]).apply(rows[:500]), atol=5e-3)


@pytest.mark.parametrize("method", ["bcts", "quadratic", "beta", "spline", "isotonic"])
def test_swapped_classes_have_swapped_forecasts(method):
    rng = np.random.default_rng(21)
    # Ties, zeros, and a bend; weights that no order of summing leaves alone.
    p = rng.binomial(20, rng.beta(0.5, 1.5, 600)) / 20
    y, weights = (rng.random(600) < p**2).astype(int), rng.exponential(size=600)
    found = vx.recalibrate(y, p, method=method, rule="brier", weights=weights).apply(p)
    swapped = vx.recalibrate(1 - y, 1 - p, method=method, rule="brier", weights=weights).apply(1 - p)
    np.testing.assert_allclose(1 - swapped, found, atol=1e-6)


def test_a_search_within_bounds_ends_at_the_optimum_after_few_steps():
    # Logistic regression on a monotone basis with two flat stretches, as of forests with zeros.
    rng = np.random.default_rng(5)
    x = np.where(rng.random(3000) < 0.2, -9.0, rng.normal(size=3000))
    design = np.column_stack([np.ones(3000), basis(x, np.linspace(-9, 3, 8))])
    y = rng.random(3000) < 1 / (1 + np.exp(-np.where(x > 0, x, np.where(x > -1, -1, -0.5))))
    calls = []

    def objective(t):
        calls.append(t)
        f = design @ t
        q = 1 / (1 + np.exp(-f))
        return np.logaddexp(0, f).mean() - (y * f).mean(), design.T @ (q - y) / 3000

    start, low = np.r_[-9.0, np.ones(8)], np.r_[-np.inf, np.zeros(8)]
    q = 1 / (1 + np.exp(-(design @ start)))
    inverse = np.linalg.inv((design * (q * (1 - q))[:, None]).T @ design / 3000 + 1e-6 * np.eye(9))
    found = searching.smallest(objective, start, (low, np.full(9, np.inf)), inverse)
    assert (found >= low).all()
    assert len(calls) <= 40
    theirs = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(b, None) for b in low],
        options={"ftol": 1e-15},
    )
    assert objective(found)[0] <= theirs.fun + 1e-8


# ---- ordered classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["log_score", "rps"])
def test_the_gradient_of_a_curve(rule):
    y, p, _ = drawn(100, 4, seed=7)
    rows, knots = FittingRows.of(y, p, np.arange(1.0, 101.0)), np.array([-2.0, 0.5, 3.0])
    design = basis(thresholds_of(p, 1e-9, 0.8, 0.01), knots)
    fitting = _Fitting(design, rows, vx.parse(rule), True)
    at = np.array([-1.6, 0.7, 0.9, 0.6, 0.1, -0.2, 0.3, 0.0])
    steps = 1e-6 * np.eye(8)
    by_differences = [(fitting.sums(at + e)[0] - fitting.sums(at - e)[0]) / 2e-6 for e in steps]
    np.testing.assert_allclose(fitting.sums(at)[1], by_differences, rtol=1e-5, atol=1e-5)


def test_a_shift_of_all_thresholds_is_for_ordered_scaling():
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(5), 4000)
    x = thresholds_of(p, 1e-300, 1.0, 1e-9)
    below = 1 / (1 + np.exp(-(0.8 + x)))
    y = (rng.random((4000, 1)) > below).sum(axis=1)
    found = vx.recalibrate(y, p, method=["bcts", "ordered"], rule="rps", ordered=True, folds=3)
    assert found.method == "ordered"
    np.testing.assert_allclose(np.cumsum(found.apply(p), axis=1)[:, :-1], below, atol=0.04)
    assert (found.apply(np.eye(5)) > 0).all()


# ---- the average of all methods ----------------------------------------------------------------


def test_a_blend_is_weighted_by_losses_on_rows_that_no_fit_has_seen(tmp_path):
    y, p, _ = drawn(150, 3, seed=11, distort=lambda z: 1.4 * z)
    found = vx.recalibrate(y, p, method="blend", rule="log_score", folds=3, seed=1)
    names = ["none", "temperature", "prior", "bcts", "svector", "smatrix", "isotonic"]
    assert [trial.method for trial in found.trials] == [*names, "blend"]
    folds = dealt(len(y), None, 3, 1)

    def tried(train, test):
        return np.array([fitted(name, y[train], p[train]).apply(p[test]) for name in names])

    def weights(train):
        """By a cross-validation over the folds of some rows."""
        rows = [(train & (folds != v), train & (folds == v)) for v in np.unique(folds[train])]
        losses = [-np.log(tried(a, b)[:, np.arange(b.sum()), y[b]]) for a, b in rows]
        total = np.concatenate(losses, axis=1).sum(axis=1)
        found = np.exp((total.min() - total) / 2)
        found[found < 0.01 * found.sum()] = 0
        return found / found.sum()

    held_out = np.empty_like(p)
    for v in range(3):
        train = folds != v
        held_out[~train] = np.einsum("m,mnk->nk", weights(train), tried(train, ~train))
    np.testing.assert_allclose(found.held_out, held_out, atol=2e-4)
    assert found.gain.value == pytest.approx(vx.log_score(y, p) - vx.log_score(y, held_out), abs=1e-4)
    everything = np.ones(150, bool)
    expected = np.einsum("m,mnk->nk", weights(everything), tried(everything, everything))
    np.testing.assert_allclose(found.apply(p), expected, atol=2e-4)
    found.save(tmp_path / "c.json")
    np.testing.assert_array_equal(vx.results.Recalibration.load(tmp_path / "c.json").apply(p), found.apply(p))
    stored = json.loads((tmp_path / "c.json").read_text())
    stored["form"]["weights"][0] += 0.1
    # Whoever wrote it meant it: the checksum is that of the new content.
    stored |= {"checksum": _checksum(json.dumps(stored))}
    (tmp_path / "c.json").write_text(json.dumps(stored))
    with pytest.raises(vx.InputError, match="sum one"):
        vx.results.Recalibration.load(tmp_path / "c.json")


# ---- rows of all kinds, files, refusals --------------------------------------------------------


@pytest.mark.parametrize(("k", "method"), [(k, method) for k, methods in NEW.items() for method in methods])
def test_new_methods_on_rows_of_all_kinds(k, method, tmp_path):
    y, p, _ = drawn(120, k, seed=9, distort=lambda z: 2 * z)
    p[:7] = np.eye(k)[y[:7]]
    counts = np.eye(k, dtype=int)[y] + np.eye(k, dtype=int)[np.roll(y, 1)]
    how = {"method": method, "rule": "rps" if method == "ordered" else "brier", "folds": 3}
    how["ordered"] = method == "ordered"
    found = vx.recalibrate(counts, p, raters="counts", groups=np.arange(120) // 4, weights=1.0 + y, **how)
    better = found.apply(p)
    assert (better > 0).all()
    np.testing.assert_allclose(better.sum(axis=1), 1, atol=1e-12)
    found.save(tmp_path / "c.json")
    np.testing.assert_array_equal(vx.results.Recalibration.load(tmp_path / "c.json").apply(p), better)
    # The same forecasts everywhere, certain and right ones, and very few rows.
    for q in (np.full((12, k), 1 / k), np.eye(k)[np.arange(12) % k]):
        assert np.isfinite(vx.recalibrate(np.arange(12) % k, q, **how).apply(q)).all()


@pytest.mark.parametrize(
    ("method", "changed", "name"),
    [
        ("svector", {"power": 0}, "power"),
        ("svector", {"spread": 1}, "spread"),
        ("spline", {"slopes": [-1, 1]}, "knots"),
        ("quadratic", {"slopes": [-1, 1]}, "not negative"),
        ("quadratic", {"knots": [1, 1]}, "increasing"),
        ("quadratic", {"floor": 0}, "floor"),
    ],
)
def test_a_damaged_file_is_refused(method, changed, name, tmp_path):
    k = 3 if method == "svector" else 2
    y, p, _ = drawn(100, k)
    vx.recalibrate(y, p, method=method, folds=3).save(tmp_path / "c.json")
    stored = json.loads((tmp_path / "c.json").read_text())
    stored["form"] |= changed
    stored |= {"checksum": _checksum(json.dumps(stored))}
    (tmp_path / "c.json").write_text(json.dumps(stored))
    with pytest.raises(vx.InputError, match=name):
        vx.results.Recalibration.load(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("k", "method", "reason", "remedy"),
    [
        (3, "quadratic", "quadratic is for two classes; there are 3", "smatrix"),
        (3, "spline", "spline is for two classes; there are 3", "smatrix"),
        (3, "ordered", "classes that have an order", "ordered=True"),
        (2, "ordered", "three or more classes", "spline"),
    ],
)
def test_methods_that_are_not_for_these_classes_are_refused_with_what_is(k, method, reason, remedy):
    y, p, _ = drawn(60, k)
    with pytest.raises(vx.InputError, match=reason) as error:
        vx.recalibrate(y, p, method=method)
    assert remedy in str(error.value)


def test_a_class_without_rows_is_named_with_the_remedy():
    y, p, _ = drawn(90, 3, seed=10)
    found = vx.recalibrate(
        np.array(["a", "b"])[np.minimum(y, 1)], p, classes=["a", "b", "c"], method="smatrix", folds=3
    )
    assert any("never happened in these rows: c." in note and "merge them" in note for note in found.notes)
    assert (found.apply(p) > 0).all()


def test_isotonic_functions_have_values_between_the_least_numbers():
    """Naive Bayes gives probabilities as small as 5e-324; the slope between such knots overflowed."""
    least = np.array([0.0, 5e-324, 1e-323, 0.5, 1.0])
    form = Isotonic(False, (least, least), (np.array([0.0, 0.2, 0.5, 0.6, 1.0]),) * 2, 0.0)
    p = np.stack([least, 1 - least], axis=1)
    with np.errstate(all="raise", under="ignore"):
        found = form.apply(p)
    np.testing.assert_allclose(found[:, 0], [0.0, 0.2 / 1.2, 0.5 / 1.5, 0.5, 1.0], rtol=1e-15)
