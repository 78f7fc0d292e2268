"""Arrays on a CUDA device are scored there; skipped where there is no such device."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from cases import RULES, forecasts


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
