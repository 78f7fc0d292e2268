"""What the README says of other packages, asked of those that are installed."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import cases

Y, P = np.array([0, 1, 2, 2]), np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.0, 0.2, 0.8]])


def test_scikit_learn_has_means_and_weights_and_no_ranked_probability_score():
    metrics = pytest.importorskip("sklearn.metrics")
    if "scale_by_half" not in inspect.signature(metrics.brier_score_loss).parameters:
        pytest.skip("this scikit-learn is older than the one that the README speaks of")
    assert not [name for name in dir(metrics) if "rps" in name.lower() or "ranked" in name.lower()]
    for function in (metrics.brier_score_loss, metrics.log_loss):
        # With `normalize=False` the log loss is a sum, and still one number.
        assert np.ndim(function(Y, P)) == 0
        assert "sample_weight" in inspect.signature(function).parameters
    assert np.ndim(metrics.log_loss(Y, P, normalize=False)) == 0
    assert {"weights"} <= set(inspect.signature(metrics.cohen_kappa_score).parameters)
    assert metrics.top_k_accuracy_score(Y, P, k=2) == 1.0


def test_torchmetrics_has_calibration_kappa_and_bootstrap_and_no_proper_score():
    torchmetrics = pytest.importorskip("torchmetrics")
    import torchmetrics.classification as classification

    names = [*dir(torchmetrics), *dir(classification), *dir(torchmetrics.functional)]
    assert not [name for name in names if "brier" in name.lower() or "ranked_prob" in name.lower()]
    for metric in (classification.MulticlassCalibrationError, classification.MulticlassCohenKappa):
        assert "weight" not in " ".join(inspect.signature(metric.update).parameters)
    assert hasattr(torchmetrics.wrappers, "BootStrapper")


def test_scoringrules_has_losses_of_rows_and_no_weights():
    scoringrules = cases.scoringrules()
    assert np.shape(scoringrules.rps_score(Y + 1, P)) == (4,)
    for name in ("rps_score", "brier_score", "log_score"):
        assert not [p for p in inspect.signature(getattr(scoringrules, name)).parameters if "weight" in p]
    assert not [name for name in dir(scoringrules) if "kappa" in name or "calib" in name]
    # The Brier score is that of two classes: one probability for each outcome.
    with pytest.raises(ValueError, match="must be 0, 1"):
        scoringrules.brier_score(Y, P)
    assert hasattr(scoringrules, "crps_ensemble")
