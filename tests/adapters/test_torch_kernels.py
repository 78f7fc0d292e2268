"""Losses and metrics by kernels against PyTorch's own operations, on a GPU and in the emulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import verax as vx
from cases import RULES, forecasts
from emulator import emulated, gpu, only_on_gpu  # noqa: F401 - fixtures
from verax.rules import Holds, Properties

pytestmark = pytest.mark.frameworks
torch = pytest.importorskip("torch")
losses = pytest.importorskip("verax.adapters.torch.losses")
Loss = losses.Loss


@dataclass(frozen=True, repr=False)
class Steep(vx.rules.Rule):
    """A rule that verax does not have, which moves with every statistic that logits move."""

    name = "steep"
    needs = frozenset({"log_true", "rest_sq", "cdf_l1", "cdf_l2", "cdf_log", "top"})
    properties = Properties(**dict.fromkeys(Properties.__dataclass_fields__, Holds.UNKNOWN))

    def formula(self, stats):
        xp = stats.xp
        ends = xp.maximum(stats.top, 0.4) - xp.minimum(stats.p_true, 0.9)
        sums = xp.sqrt(stats.rest_sq + stats.cdf_l2) * xp.exp(-stats.cdf_l1) + xp.abs(stats.cdf_log - 1)
        return ends * ends + sums - stats.log_true / (1 + stats.top)

    def bounds(self, n_classes):
        return 0.0, np.inf


SMOOTH = [rule for rule in RULES if not isinstance(rule, vx.rules.ZeroOne)]
SOME = [vx.rps, vx.ranked_log, vx.pbs, Steep()]


@pytest.fixture
def both(gpu, change):
    """A function of a loss and rows: its value and gradient by kernels, then by operations."""

    def run(loss, z, y, w=None):
        results = []
        for kernels in (True, False):
            change(torch_kernels=kernels)
            gpu.launches.clear()
            logits = gpu.put(z).detach().requires_grad_()
            value = loss.to(logits.device)(logits, gpu.put(y), None if w is None else gpu.put(w))
            upstream = torch.linspace(1, 2, value.numel(), dtype=value.dtype, device=value.device)
            (value * upstream.reshape(value.shape)).sum().backward()
            assert ("backward" in gpu.launches) == kernels
            results.append((value.detach(), logits.grad))
        return results

    return run


def assert_close(results, dtype=torch.float64):
    tolerance = {torch.float64: (1e-9, 1e-12), torch.float32: (2e-4, 3e-6)}.get(dtype, (2e-2, 1e-3))
    for ours, law in zip(*results, strict=True):
        torch.testing.assert_close(ours, law, rtol=tolerance[0], atol=tolerance[1])


def logits_of(n, k, spread=2.0, dtype=torch.float64):
    rng = np.random.default_rng(k)
    return torch.tensor(rng.normal(size=(n, k)) * spread, dtype=dtype), torch.tensor(rng.integers(0, k, n))


@pytest.mark.parametrize("k", [2, 3, 5, 8, 17, 40, 100, 1000])
@pytest.mark.parametrize("rule", [*SMOOTH, vx.rules.Log(clip=0.01), Steep()], ids=repr)
def test_losses_are_those_of_operations(gpu, both, rule, k):
    only_on_gpu(gpu, rule == Steep() and k in (5, 40))
    assert_close(both(Loss(rule), *logits_of(70, k)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_narrow_logits(gpu, both, rule, k, dtype):
    only_on_gpu(gpu, (rule, k, dtype) == (Steep(), 5, torch.bfloat16))
    assert_close(both(Loss(rule), *logits_of(70, k, dtype=dtype)), dtype)


@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_weights_reductions_and_ignored_rows(gpu, both, rule, k, reduction):
    only_on_gpu(gpu, (rule, k, reduction) == (vx.rps, 5, "mean"))
    z, y = logits_of(70, k)
    y[::3] = -100
    z[0] = torch.nan
    w = torch.linspace(0.5, 2, 70, dtype=torch.float64)
    loss = Loss(rule, reduction=reduction, class_weights=torch.arange(1.0, k + 1), ignore_index=-100)
    results = both(loss, z, y, w)
    assert_close(results)
    assert not results[0][1][::3].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("k", [5, 40])
def test_logits_far_apart(gpu, both, k, dtype):
    only_on_gpu(gpu, (k, dtype) == (40, torch.float64))
    for rule in (vx.ranked_log, vx.log_score):
        results = both(Loss(rule), *logits_of(70, k, 600.0, dtype))
        assert_close(results, dtype)
        assert results[0][1].isfinite().all()


def test_maps_and_binary_columns(gpu, both):
    z, y = logits_of(60, 5)
    maps = z.reshape(3, 20, 5).movedim(-1, 1)
    assert_close(both(Loss("rps", reduction="none"), maps, y.reshape(3, 20)))
    assert_close(both(Loss("brier"), z[:, 0], y % 2))


def test_targets_that_are_no_classes_make_the_loss_nan(gpu, change):
    change(torch_kernels=True)
    z, y = logits_of(70, 5)
    y[3] = 5
    each = Loss("rps", reduction="none")(gpu.put(z), gpu.put(y))
    assert each.isnan().nonzero().tolist() == [[3]]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_gradients_that_came_with_the_loss(gpu, change, reduction, dtype):
    only_on_gpu(gpu, reduction == "mean" or dtype == torch.float64)
    change(torch_kernels=True)
    z, y = logits_of(70, 5, dtype=dtype)
    z, y = gpu.put(z).requires_grad_(), gpu.put(y)
    loss = Loss("ranked_log", reduction=reduction)
    value = loss(z, y)
    assert ("rescale" in gpu.launches) is False
    # Twice through one graph, with different factors from above.
    slopes = [torch.autograd.grad(value * factor, z, retain_graph=True)[0] for factor in (1.0, 3.0, 3.0)]
    assert ("rescale" in gpu.launches) == (dtype != torch.float16)
    change(torch_kernels=False)
    law = loss(z, y)
    (slope,) = torch.autograd.grad(law, z)
    assert_close([(value, *slopes), (law, slope, 3 * slope, 3 * slope)], dtype)


def test_losses_without_gradients_compute_none(gpu, change):
    change(torch_kernels=True)
    z, y = logits_of(70, 5)
    z, y = gpu.put(z).requires_grad_(), gpu.put(y)
    with torch.no_grad():
        value = Loss("rps")(z, y)
    assert gpu.launches == ["forward", "settle"]
    assert not value.requires_grad
    with_gradient = Loss("rps")(z, y)
    assert with_gradient.item() == value.item()


def test_second_derivatives_are_refused(gpu, change):
    change(torch_kernels=True)
    z, y = logits_of(10, 5)
    z = gpu.put(z).requires_grad_()
    (slope,) = torch.autograd.grad(Loss("rps")(z, gpu.put(y)), z, create_graph=True)
    with pytest.raises(vx.VeraxError, match="first derivatives only"):
        slope.sum().backward()


def test_kernels_in_a_compiled_graph(gpu, monkeypatch):
    only_on_gpu(gpu, False)
    z, y = logits_of(70, 5, dtype=torch.float32)
    z, y = gpu.put(z), gpu.put(y)
    loss, model = Loss("rps").cuda(), torch.nn.Linear(5, 5).cuda()
    compiled = torch.compile(lambda x, t: loss(model(x), t), fullgraph=True)
    gradients = []
    for call in (compiled, lambda x, t: loss(model(x), t)):
        model.zero_grad()
        call(z, y).backward()
        gradients.append(model.weight.grad.clone())
    torch.testing.assert_close(*gradients)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        value = loss(model(z), y)
    value.backward()
    assert value.dtype == torch.float32
    assert model.weight.grad.isfinite().all()


# ---- metrics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("k", [5, 17, 1100])
def test_metrics_are_those_of_operations(gpu, k, logits, weighted, change):
    pytest.importorskip("torchmetrics")
    from verax.adapters.torch import Card

    only_on_gpu(gpu, (k, logits) == (5, weighted) or (k, logits, weighted) == (1100, False, True))
    y, p = forecasts(300, k)
    with np.errstate(divide="ignore"):
        preds, target = gpu.put(np.log(p) if logits else p), gpu.put(y)
    w = gpu.put(np.random.default_rng(0).integers(0, 3, 300) / 7) if weighted else None
    cards = []
    for kernels in (True, False):
        if not kernels:
            change(torch_kernels=False)
        gpu.launches.clear()
        card = Card(k, ordered=True, logits=logits, ignore_index=2).to(preds.device)
        for part in (slice(0, 100), slice(100, 300)):
            card.update(preds[part], target[part], None if w is None else w[part])
        assert ("add_to_states" in gpu.launches) == kernels
        cards.append(card)
    for name in ("counts", "squares", "cells", "squared_cells", cards[0]._name):
        ours, law = (getattr(card, name).cpu() for card in cards)
        assert ours.dtype == law.dtype
        law, ours = (x if x.ndim == 1 else x.sum(dim=0) for x in (law, ours))
        torch.testing.assert_close(ours, law, rtol=1e-12, atol=1e-15)


def test_invalid_rows_are_counted_by_kernels(gpu):
    pytest.importorskip("torchmetrics")
    from verax.adapters.torch import Score

    y, p = forecasts(300, 5, ties=False)
    p[3] *= 0.5
    p[4, 0] = np.nan
    y[5] = 9
    score = Score("brier").to(gpu.put(p).device)
    score.update(gpu.put(p), gpu.put(y), gpu.put(np.where(np.arange(300) == 6, -1.0, 1.0)))
    assert score.counts.tolist() == [300, 0, 1, 1, 1, 1]
    with pytest.raises(vx.InputError, match="must hold finite probabilities"):
        score.compute()


def test_batches_in_forward_and_in_collections(gpu):
    torchmetrics = pytest.importorskip("torchmetrics")
    from verax.adapters.torch import Card, Score

    y, p = forecasts(300, 5)
    p, y = gpu.put(p), gpu.put(y)
    together = torchmetrics.MetricCollection({"rps": Score("rps"), "same": Score("rps"), "pbs": Score("pbs")})
    together, card = together.to(p.device), Card(5, ordered=True).to(p.device)
    kept = card.cells
    for part in (slice(0, 100), slice(100, 180), slice(180, 300)):
        of_batch = together(p[part], y[part])
        assert of_batch["rps"].item() == pytest.approx(vx.rps(y[part].cpu(), p[part].cpu()), rel=1e-12)
        card(p[part], y[part])
    assert not kept.any()
    whole = vx.evaluate(y.cpu(), p.cpu(), ordered=True)
    values = card.compute()
    assert "add_to_states" in gpu.launches
    for name in ("rps", "pbs", "accuracy", "qwk"):
        assert values[name].item() == pytest.approx(whole[name], rel=1e-12)
    for name, rule in (("rps", "rps"), ("same", "rps"), ("pbs", "pbs")):
        assert together.compute()[name].item() == pytest.approx(whole[rule], rel=1e-12)
