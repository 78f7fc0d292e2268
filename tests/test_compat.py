"""Numbers as other packages print them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

import verax as vx
from cases import forecasts, scoringrules
from verax import compat

RANDOM = [
    [0.234375, 0.359375, 0.078125, 0.265625, 0.0625],
    [0.234375, 0.015625, 0.4375, 0.171875, 0.140625],
    [0.015625, 0.171875, 0.296875, 0.40625, 0.109375],
    [0.1875, 0.40625, 0.109375, 0.046875, 0.25],
    [0.171875, 0.25, 0.015625, 0.0625, 0.5],
    [0.15625, 0.0, 0.234375, 0.109375, 0.5],
]
# y, p, PBS, PLL as printed by superior-scoring-rules 1.0.6 on TensorFlow 2.21.0 with Keras 3.15.1:
#   pbs(tf.one_hot(y, K), tf.constant(p, tf.float32)), and pll likewise.
PRINTED = [
    (
        [0, 1, 3],
        [[0.9, 0.05, 0.05, 0], [0.1, 0.8, 0.05, 0.05], [0.1, 0.1, 0.1, 0.7]],
        0.015833333134651184,
        0.22839301824569702,
    ),
    ([1, 1], [[0.33, 0.34, 0.33], [0.51, 0.49, 0.0]], 0.5289333462715149, 1.4453859329223633),
    ([1], [[0.33, 0.34, 0.33]], 0.21780000627040863, 1.0788096189498901),
    ([1], [[0.51, 0.49, 0.0]], 0.84006667137146, 1.8119621276855469),
    ([1], [[0.5, 0.5]], 0.25, 0.6931471824645996),
    ([0], [[0.25, 0.25, 0.25, 0.25]], 0.1875, 1.3862943649291992),
    ([2], [[0.5, 0.5, 0.0]], 1.1666667461395264, 17.216707229614258),
    ([0], [[1.0, 0.0, 0.0]], 0.0, 1.1920928955078125e-07),
    ([0], [[0.0, 1.0, 0.0]], 1.3333333730697632, 17.216707229614258),
    ([3, 4, 4, 0, 2, 4], RANDOM, 0.8460774421691895, 3.345582962036133),
]


@pytest.mark.parametrize(("y", "p", "pbs", "pll"), PRINTED)
def test_superior_scoring_rules(y, p, pbs, pll):
    assert compat.pbs(y, p) == pytest.approx(pbs, rel=2e-7)
    assert compat.pll(y, p) == pytest.approx(pll, rel=2e-7)


def test_labels_and_checks_are_verax_own():
    y, p = forecasts(20, 3)
    assert compat.pbs(np.array(["a", "b", "c"])[y], p, classes=["a", "b", "c"]) == compat.pbs(y, p)
    with pytest.raises(vx.InputError, match="sum to 1"):
        compat.pll(y, p * 2)


@pytest.mark.parametrize("k", [2, 5])
def test_scikit_learn(k):
    y, p = forecasts(500, k, ties=False)
    # More than two classes since scikit-learn 1.7.
    several = "labels" in inspect.signature(brier_score_loss).parameters
    for rule in (vx.brier, vx.rules.Brier("half"), vx.rules.Brier("mean")) if k == 2 or several else ():
        theirs = brier_score_loss(y, p[:, 1]) if k == 2 else brier_score_loss(y, p, labels=range(k))
        assert compat.convert(rule(y, p), rule, to="scikit-learn", n_classes=k) == pytest.approx(theirs)
    for rule in (vx.log_score, vx.rules.Log(base=2)):
        theirs = log_loss(y, p, labels=range(k))
        assert compat.convert(rule(y, p), rule, to="scikit-learn", n_classes=k) == pytest.approx(theirs)


@pytest.mark.parametrize("k", [2, 5])
def test_scoringrules(k):
    y, p = forecasts(500, k, ties=False)
    for rule in (vx.rps, vx.rules.RPS(normalized=False)):
        ours = compat.convert(rule.samples(y, p), rule, to="scoringrules", n_classes=k)
        assert ours == pytest.approx(scoringrules().rps_score(y + 1, p), rel=1e-9)
    ours = compat.convert(vx.ranked_log.samples(y, p), vx.ranked_log, to="scoringrules", n_classes=k)
    assert ours == pytest.approx(scoringrules().rls_score(y + 1, p), rel=1e-9)
    if k == 2:
        ours = compat.convert(vx.brier.samples(y, p), vx.brier, to="scoringrules", n_classes=2)
        assert ours == pytest.approx(scoringrules().brier_score(y, p[:, 1]), rel=1e-9)
        ours = compat.convert(
            vx.rules.Log(base=2).samples(y, p), vx.rules.Log(base=2), to="scoringrules", n_classes=2
        )
        assert ours == pytest.approx(scoringrules().log_score(y, p[:, 1]), rel=1e-9)


def test_what_has_no_counterpart_is_refused():
    for rule, to, k in (
        (vx.pbs, "scikit-learn", 3),
        (vx.brier, "scoringrules", 3),
        (vx.rps, "scikit-learn", 3),
    ):
        with pytest.raises(vx.errors.RuleError, match="has no score for 3 classes"):
            compat.convert(1.0, rule, to=to, n_classes=k)
    good = {"value": 1.0, "rule": vx.brier, "to": "scikit-learn", "n_classes": 3}
    for argument, bad in (("value", "a"), ("rule", "brier"), ("to", "torchmetrics"), ("n_classes", 0)):
        with pytest.raises(vx.InputError) as caught:
            compat.convert(**{**good, argument: bad})
        assert caught.value.argument == argument
