"""Arrays on a CUDA device are scored there; skipped where there is no such device."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import verax as vx
from cases import RULES, forecasts

pytestmark = pytest.mark.frameworks


def on_torch(x):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return torch.asarray(x).cuda()


def on_cupy(x):
    cupy = pytest.importorskip("cupy")
    return cupy.asarray(x)


def on_jax(x):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    return jax.numpy.asarray(x.astype(np.float32) if x.dtype == np.float64 else x)


@pytest.mark.parametrize("make", [on_torch, on_cupy, on_jax], ids=lambda make: make.__name__)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_losses_are_computed_where_the_forecasts_are(rule, make):
    y, p = forecasts(5000, 6, ties=False)
    array = make(p)
    losses = rule.samples(make(y), array)
    assert type(losses) is type(array)
    assert losses.device == array.device
    host = (
        losses.get()
        if hasattr(losses, "get")
        else np.asarray(losses.cpu() if hasattr(losses, "cpu") else losses)
    )
    tolerance = 2e-5 if make is on_jax else 1e-12
    np.testing.assert_allclose(host, rule.samples(y, p), rtol=tolerance, atol=tolerance)
    assert rule(make(y), array) == pytest.approx(rule(y, p), rel=tolerance)


@pytest.mark.parametrize("make", [on_torch, on_cupy, on_jax], ids=lambda make: make.__name__)
def test_cards_and_refusals(make):
    y, p = forecasts(5000, 6, ties=False)
    w = np.random.default_rng(0).exponential(size=5000)
    tolerance = 1e-5 if make is on_jax else 1e-12
    card = vx.evaluate(make(y), make(p), weights=make(w), ordered=True)
    expected = vx.evaluate(y, p, weights=w, ordered=True)
    for name in expected.scores:
        assert card[name] == pytest.approx(expected[name], rel=tolerance)
    np.testing.assert_allclose(card.confusion, expected.confusion, rtol=tolerance)
    p[17] *= 0.5
    with pytest.raises(vx.InputError, match=r"row 17 sums to 0\.(5|4999)"):
        vx.brier(make(y), make(p))


def test_torch_gradients_on_the_device():
    torch = pytest.importorskip("torch")
    y, p = forecasts(100, 4, ties=False)
    here = torch.tensor(np.log(p), requires_grad=True)
    there = on_torch(np.log(p)).requires_grad_()
    for z, outcome in ((here, y), (there, on_torch(y))):
        vx.rps.samples(outcome, z, logits=True).sum().backward()
    assert there.grad.is_cuda
    np.testing.assert_allclose(there.grad.cpu(), here.grad, atol=1e-14)


@pytest.fixture
def no_waiting():
    """While in force, whatever would make the host wait for the device is an error."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")

    @contextmanager
    def guard():
        with warnings.catch_warnings():
            # torch says once that the mode is a prototype.
            warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")

    with pytest.raises(RuntimeError, match="synchronizing"), guard():
        torch.ones(1, device="cuda").item()
    return guard


@pytest.mark.parametrize("logits", [False, True])
def test_updates_of_metrics_do_not_wait_for_the_device(no_waiting, logits):
    pytest.importorskip("torchmetrics")
    from verax.adapters.torch import Card, Score

    y, p = forecasts(5000, 6, ties=False)
    w = np.random.default_rng(0).exponential(size=5000)
    preds, target, weights = on_torch(np.log(p) if logits else p), on_torch(y), on_torch(w)
    scores = [Score(rule, logits=logits).cuda() for rule in RULES]
    card = Card(6, ordered=True, logits=logits).cuda()
    many = Card(2000, rules=["brier"], logits=True).cuda()
    wide, labels = on_torch(np.zeros((20, 2000))), on_torch(np.arange(20))
    with no_waiting():
        for metric in (*scores, card):
            metric.update(preds, target, weights)
            metric.update(preds.float(), target)
        many.update(wide, labels)
    total = np.concatenate([w, np.ones(5000)])
    outcomes, rows = np.concatenate([y, y]), np.concatenate([p, p.astype(np.float32)])
    for metric, rule in zip(scores, RULES, strict=True):
        expected = rule(outcomes, rows, weights=total)
        assert metric.compute().item() == pytest.approx(expected, rel=1e-6)
    expected = vx.evaluate(outcomes, rows, weights=total, ordered=True)
    np.testing.assert_allclose(card.scorecard().confusion, expected.confusion, rtol=1e-12)
    assert card.compute()["qwk"].item() == pytest.approx(expected["qwk"], rel=1e-9)
    assert many.compute()["accuracy"].item() == 1 / 20


def test_losses_do_not_wait_for_the_device(no_waiting):
    torch = pytest.importorskip("torch")
    from verax.adapters.torch import Loss

    y, p = forecasts(500, 6, ties=False)
    target, weights = on_torch(y), on_torch(np.ones(500))
    per_class = torch.ones(6)
    for rule in RULES:
        if isinstance(rule, vx.rules.ZeroOne):
            continue
        for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2**-8)):
            z = on_torch(np.log(p)).to(dtype).requires_grad_()
            loss = Loss(rule, class_weights=per_class).cuda()
            with no_waiting():
                value = loss(z, target, weights)
                value.backward()
            # As cross entropy: half-precision logits are widened inside, and the loss is of their type.
            assert value.dtype == dtype
            assert z.grad.is_cuda
            assert z.grad.isfinite().all()
            expected = rule(y, z.detach().double().cpu(), logits=True)
            assert value.item() == pytest.approx(expected, rel=tolerance)
    target[0] = 6
    assert loss(z, target).isnan()


def test_invalid_rows_on_the_device_are_reported():
    pytest.importorskip("torchmetrics")
    from verax.adapters.torch import Card

    y, p = forecasts(100, 4, ties=False)
    y[3] = 4
    preds, target = on_torch(p), on_torch(y)
    card = Card(4).cuda()
    card.update(preds, target)
    with pytest.raises(vx.InputError, match=r"`target` must hold class positions.*1 of 100 rows"):
        card.compute()
