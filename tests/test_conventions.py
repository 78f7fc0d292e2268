"""Every row of docs/guide/conventions.md, against the package that it speaks of or that package's numbers."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics as skl
from model_diagnostics.scoring import ElementaryScore
from sklearn.linear_model import LogisticRegression

import verax as vx
from cases import forecasts, scoringrules

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "conventions.md"
ROWS = re.findall(r"^\| (?!number|-)([^|]+?) \|", PAGE.read_text(), re.MULTILINE)


def torchmetrics(name, p, y, **options):
    """A number of torchmetrics; rows that compare with it are skipped where it is missing."""
    torch, theirs = (pytest.importorskip(m) for m in ("torch", "torchmetrics.functional.classification"))
    return float(getattr(theirs, name)(torch.tensor(p), torch.tensor(y), **options))


def without_a_class():
    """Outcomes among the first three of four classes."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, 40), rng.dirichlet(np.ones(4), 40)


def brier_score():
    if "labels" not in inspect.signature(skl.brier_score_loss).parameters:
        pytest.skip("this scikit-learn has the Brier score of two classes only")
    for k, factor in ((2, 0.5), (3, 1)):
        y, p = forecasts(50, k)
        theirs = skl.brier_score_loss(y, p, labels=range(k))
        assert vx.brier(y, p) * factor == pytest.approx(theirs)


def log_score():
    y, p = [0, 1], [[1.0, 0.0], [1.0, 0.0]]
    assert vx.log_score(y, p) == math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 15 < skl.log_loss(y, p, labels=[0, 1]) < math.inf


def rps():
    y, p = np.array([2, 0]), np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]])
    # ranked_probability_score of dlordinal 2.7.0.
    assert (
        vx.rps(y, p) * 2 == pytest.approx(0.195) == pytest.approx(np.mean(scoringrules().rps_score(y + 1, p)))
    )


def skill_yardstick():
    y, p = forecasts(200, 3, ties=False)
    comparison = vx.compare(y, {"a": p}, rule="log_score", reference="frequencies")
    rates = np.bincount(y) / 200
    same_rows = 1 - vx.log_score(y, p) / vx.log_score(y, np.tile(rates, (200, 1)))
    assert skl.d2_log_loss_score(y, p, labels=range(3)) == pytest.approx(same_rows)
    # Frequencies of other rows are a little worse, so the skill against them is a little better.
    skill = comparison.models["log_score"][0].skill
    assert same_rows < skill < same_rows + 0.05


def ece_bin_edges():
    p, y = np.array([[0.5, 0.5], [0.55, 0.45], [0.25, 0.75]]), np.array([0, 1, 0])
    theirs = torchmetrics("multiclass_calibration_error", p, y, num_classes=2, n_bins=2)
    assert vx.ece(y, p, bins=2) == pytest.approx((0.5 + 0.55 + 0.75) / 3)
    assert theirs == pytest.approx((0.55 + 0.75 - 0.5) / 3)
    p, y = np.array([[0.0, 1.0], [0.1, 0.9]]), np.array([0, 1])
    theirs = torchmetrics("multiclass_calibration_error", p, y, num_classes=2, n_bins=2)
    assert vx.ece(y, p, bins=2) == pytest.approx((1 + 0.9 - 1) / 2)
    assert theirs == pytest.approx((1 + 0.1) / 2)


def ece_of_two_classes():
    p, y = np.array([0.2, 0.75]), np.array([0, 0])
    theirs = torchmetrics("binary_calibration_error", p, y, n_bins=10)
    assert vx.ece(y, p, bins=10, kind="classwise") == pytest.approx(theirs)
    assert theirs == pytest.approx((0.2 + 0.75) / 2)
    # The most likely classes have 0.8 and 0.75, which share a bin; the first is right.
    assert vx.ece(y, p, bins=10) == pytest.approx((0.8 + 0.75 - 1) / 2)


def debiased_ece():
    # unbiased_square_ce(...)**0.5 of uncertainty-calibration 0.1.4 on 15 bins of equal width.
    y, p = forecasts(400, 3, 3, ties=False)
    assert vx.ece(y, p, norm="l2", debias=True) == pytest.approx(0.3035719754574249)


def roc_auc():
    y, p = without_a_class()
    ours = vx.roc_auc(y, p).value
    known = [skl.roc_auc_score(y == k, p[:, k]) for k in range(3)]
    assert ours == pytest.approx(np.mean(known))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torchmetrics("multiclass_auroc", p, y, num_classes=4) == pytest.approx(sum(known) / 4)
        assert math.isnan(skl.roc_auc_score(y == 3, p[:, 3]))


def average_precision():
    y, p = without_a_class()
    ours = vx.average_precision(y, p).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torchmetrics("multiclass_average_precision", p, y, num_classes=4)
        assert ours == pytest.approx(theirs, rel=1e-6)
        assert skl.average_precision_score(np.eye(4, dtype=int)[y], p) == pytest.approx(ours * 3 / 4)


def kappa():
    y, d = np.array([0, 1, 3, 3, 1, 0]), np.array([0, 3, 3, 1, 1, 0])
    ours = vx.kappa(y, d, n_classes=4)
    assert skl.cohen_kappa_score(y, d, weights="quadratic") > ours + 0.1
    assert skl.cohen_kappa_score(y, d, weights="quadratic", labels=range(4)) == pytest.approx(ours)
    theirs = torchmetrics("multiclass_cohen_kappa", d, y, num_classes=4, weights="quadratic")
    assert float(theirs) == pytest.approx(ours)


def balanced_accuracy():
    y, p = without_a_class()
    card = vx.evaluate(y, p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert card["balanced_accuracy"] == pytest.approx(skl.balanced_accuracy_score(y, p.argmax(axis=1)))
    theirs = torchmetrics("multiclass_accuracy", p, y, num_classes=4, average="macro")
    assert theirs == pytest.approx(card["balanced_accuracy"] * 3 / 4)


def macro_f1():
    y, p = without_a_class()
    ours = vx.evaluate(y, p)["macro_f1"]
    assert ours == pytest.approx(skl.f1_score(y, p.argmax(axis=1), average="macro"))
    theirs = torchmetrics("multiclass_f1_score", p, y, num_classes=4, average="macro")
    assert theirs == pytest.approx(ours, rel=1e-6)


def decided(y, d, name, k=5):
    """A metric of given decisions."""
    return vx.evaluate(y, np.eye(k)[d], ordered=True, rules=["brier"])[name]


def macro_mae():
    # amae of dlordinal 2.7.0 is 0.5: classes 0 and 4 become 0 and 1.
    assert decided([0, 0, 4, 4], [0, 4, 4, 0], "macro_mae") == 2.0 == 4 * 0.5


def off_by_one():
    # accuracy_off1 of dlordinal 2.7.0 is 1.0: 0 and 3 are neighbours, and the row decided for 2 is left out.
    assert decided([0, 0, 3, 3], [3, 0, 3, 2], "off_by_one") == 0.75


def aurc_augrc():
    # AURC and AUGRC of torch-uncertainty 0.13.0, whose coverages are in single precision.
    curve = vx.risk_coverage(*forecasts(150, 3, 7, ties=False))
    assert curve.aurc == pytest.approx(0.6487256644946109, rel=1e-7)
    assert curve.augrc == pytest.approx(0.33621923977852414, rel=1e-7)
    tied = vx.risk_coverage([0, 1, 0, 1], [[0.7, 0.3]] * 4)
    assert tied.risk.tolist() == [0.5] * 4


def risk_at_coverage():
    # RiskAtxCov(0.8) and RiskAtxCov(0.333) of torch-uncertainty 0.13.0.
    curve = vx.risk_coverage(*forecasts(150, 3, 7, ties=False))
    assert (curve.risk_at(0.8), curve.risk_at(0.333)) == pytest.approx((0.7, 0.6))


def net_benefit():
    # dca of dcurves 1.1.7; a quarter of the forecasts is 0.5 or another round number.
    (curve,) = vx.net_benefit(*forecasts(120, 2, 5), thresholds=[0.2, 0.5])
    assert curve.values.tolist() == pytest.approx([0.375, 0.058333], abs=1e-6)


def elementary_score():
    y, p = np.array([0, 1, 1]), np.array([0.3, 0.3, 0.9])
    for t in (0.2, 0.4):
        (curve,) = vx.diagrams.murphy(y, p, thresholds=[t])
        assert curve.values[0] == pytest.approx(ElementaryScore(eta=t, functional="mean")(y, p))
    (curve,) = vx.diagrams.murphy(y, p, thresholds=[0.3])
    assert curve.values[0] == pytest.approx(0.7 / 3)
    assert ElementaryScore(eta=0.3, functional="mean")(y, p) == pytest.approx(0.3 / 3)


def calibration_slope():
    y, p = forecasts(300, 2, 5, ties=False)
    x = np.log(p[:, 1:] / p[:, :1])
    line = vx.calibration_slope(y, p)["1"]
    free = LogisticRegression(C=math.inf, tol=1e-12).fit(x, y).coef_[0, 0]
    assert line.slope == pytest.approx(free, abs=1e-4)
    assert abs(LogisticRegression(C=0.01).fit(x, y).coef_[0, 0]) < abs(free)


def name_of(row):
    return re.sub(r"\W+", "_", row.lower())


@pytest.mark.parametrize("row", ROWS)
def test_every_row_of_the_table(row):
    globals()[name_of(row)]()


def test_the_table_is_read():
    assert len(ROWS) == 19
