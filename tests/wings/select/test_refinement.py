"""The loss after recalibration: against fits by another optimiser, known truths, and the quick form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import verax as vx
from recalibrations import drawn, softmax
from verax.analyses.dealing import dealt
from verax.selection import RefinementLoss

Y, P, Q = drawn(400, 4, seed=3, distort=lambda z: 1.8 * z)
SOME = ["temperature", "bcts"]
TEMPERATURE = {"method": "temperature"}


def by_hand(rule, y, p, weights, folds):
    """Temperature scaling without each fold by scipy, and the mean loss on the rows left out."""
    losses, z = np.empty(len(y)), np.log(p)
    w = np.ones(len(y)) if weights is None else weights
    for v in np.unique(folds):
        out = folds == v

        def lost(t, rows=~out):
            return rule(y[rows], softmax(np.exp(t) * z[rows]), weights=w[rows])

        t = minimize_scalar(lost, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x
        losses[out] = rule.samples(y[out], softmax(np.exp(t) * z[out]))
    return np.average(losses, weights=w)


@pytest.mark.parametrize("rule", [vx.log_score, vx.rps, vx.rules.Log(base=2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_is_cross_validated_as_by_hand(rule, weighted):
    w = np.random.default_rng(0).uniform(0.2, 3, len(Y)) if weighted else None
    exact = by_hand(rule, Y, P, w, dealt(len(Y), None, 5, 0, w))
    found = vx.refinement(Y, P, rule=rule, weights=w, **TEMPERATURE)
    # The ridge of the fits is worth a hundredth of a row.
    assert found.refinement.value == pytest.approx(exact, rel=2e-5)
    assert RefinementLoss(rule)(Y, P, weights=w) == pytest.approx(found.refinement.value, rel=5e-7)


def test_the_quick_form_takes_one_step_for_folds_of_many_rows():
    y, p, _ = drawn(5000, 4, seed=5, distort=lambda z: 0.5 * z)
    loss = RefinementLoss("brier")
    exact = vx.refinement(y, p, rule="brier", **TEMPERATURE).refinement.value
    assert loss(y, p) == pytest.approx(exact, rel=1e-6)
    assert loss(y, p, groups=np.arange(5000) // 10) == pytest.approx(
        vx.refinement(y, p, rule="brier", groups=np.arange(5000) // 10, **TEMPERATURE).refinement.value,
        rel=1e-6,
    )
    # From where the last search ended, and from far away.
    assert loss(y, softmax(6 * np.log(p))) == pytest.approx(loss(y, p), rel=1e-6)


def test_parts_are_those_of_the_recalibration():
    assert "only 400 rows or groups" in str(vx.refinement(Y, P, **TEMPERATURE))
    assert "skewed" not in str(vx.refinement(np.tile(Y, 3), np.tile(P, (3, 1)), **TEMPERATURE))
    assert "only 40 rows or groups" in str(vx.refinement(Y, P, groups=np.arange(len(Y)) // 10, **TEMPERATURE))
    found, fitted = (ask(Y, P, rule="brier", method=SOME) for ask in (vx.refinement, vx.recalibrate))
    assert found.method == fitted.method
    assert found.refinement.value == fitted.trial(fitted.method).loss
    assert (found.calibration.value, found.calibration.interval) == (fitted.gain.value, fitted.gain.interval)
    assert found.loss.value == pytest.approx(vx.brier(Y, P), rel=1e-12)
    assert found.loss.value - found.refinement.value == pytest.approx(found.calibration.value, rel=1e-9)
    assert float(found) == found.refinement.value
    card = vx.evaluate(Y, P, rules=["brier"])
    assert found.loss.interval == pytest.approx(card.scores["brier"].interval, rel=1e-9)
    assert "Recalibration removes" in found.verdict


def test_refinement_finds_the_loss_of_the_undistorted_forecasts():
    y, p, q = drawn(20_000, 3, seed=1, distort=lambda z: 2.5 * z)
    found = vx.refinement(y, p, rule="log_score", **TEMPERATURE)
    assert found.refinement.value == pytest.approx(vx.log_score(y, q), rel=1e-3)
    assert found.calibration.interval.low > 0


def test_calibrated_forecasts_have_an_interval_of_the_calibration_part():
    found = vx.refinement(Y, Q, rule="log_score", method=SOME)
    low, high = found.calibration.interval
    assert found.method == "none"
    assert low < 0 < high
    assert "no gain is shown" in found.calibration.interval.caution
    assert "No gain of recalibration is shown" in str(found)


def test_lists_of_all_classes_are_distributions():
    lists = vx.TopLists.from_probabilities(P, 4)
    found = vx.refinement(Y, lists, rule="brier", seed=1, **TEMPERATURE)
    dense = vx.refinement(Y, P, rule="brier", seed=1, **TEMPERATURE)
    # Folds do not depend on the outcomes, so that they are the same.
    assert found.refinement.value == pytest.approx(dense.refinement.value, rel=1e-7)
    assert RefinementLoss("brier", seed=1)(Y, lists) == found.refinement.value


def test_rows_without_weight_and_raters_who_agree_change_nothing():
    loss, w = RefinementLoss(), np.append(np.ones(len(Y)), np.zeros(50))
    whole = loss(Y, P)
    again = loss(np.append(Y, Y[:50]), np.vstack([P, P[::-1][:50]]), weights=w)
    assert again == pytest.approx(whole, rel=1e-7)
    rated = loss(np.eye(4)[Y], P, raters="shares")
    assert rated == pytest.approx(
        vx.refinement(Y, P, rule="log_score", groups=np.arange(len(Y)), **TEMPERATURE).refinement.value,
        rel=1e-7,
    )
    bad = np.vstack([P, [[0.5, 0.1, 0.1, 0.1]]])
    assert loss(np.append(Y, 0), bad, invalid="skip") == pytest.approx(whole, rel=1e-7)


def test_impossible_outcomes_are_finite_after_scaling():
    p = np.where(P < 0.02, 0.0, P)
    p /= p.sum(axis=1, keepdims=True)
    assert np.isinf(vx.log_score(Y, p))
    found = vx.refinement(Y, p, rule="log_score", **TEMPERATURE)
    assert np.isinf(found.loss.value)
    assert np.isfinite(found.refinement.value)
    # Zeros count as half of the smallest probability, here of all rows, there of those fitted to.
    assert RefinementLoss()(Y, p) == pytest.approx(found.refinement.value, rel=1e-4)
    assert "The loss before it is inf" in found.verdict


@pytest.mark.parametrize("ask", [vx.refinement, lambda y, p, **how: RefinementLoss(**how)(y, p)])
def test_what_cannot_be_recalibrated_is_refused(ask):
    with pytest.raises(vx.InputError, match=r"must recalibrate.*method='temperature'"):
        ask(Y, P, method="none")
    with pytest.raises(vx.InputError, match=r"at least 3 rows.*there are 2"):
        ask(Y[:2], P[:2], method="dirichlet")
    with pytest.raises(vx.InputError, match=r"at least 2 rows.*there is 1"):
        ask(Y[:1], P[:1], method="temperature")
    with pytest.raises(vx.InputError, match=r"rows must sum to 1.*rows 0"):
        ask(Y[:9], 0.9 * P[:9], method="temperature")
    with pytest.raises(vx.errors.RuleError, match="no gradient"):
        ask(Y, P, rule="zero_one")
