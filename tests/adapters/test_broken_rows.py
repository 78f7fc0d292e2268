"""Rows whose numbers are none give NaN, in every rule and on every path; infinite ones give the limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import RULES, SMOOTH
from emulator import emulated, gpu, only_on_gpu  # noqa: F401 - fixtures
from verax._settings import changed
from verax.rules import Holds, Properties

pytestmark = [
    pytest.mark.frameworks,
    # It is computed by array calls, as the test means it to be.
    pytest.mark.filterwarnings("ignore:The formula of blunt"),
]
torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
adapters = pytest.importorskip("verax.adapters.torch")


@dataclass(frozen=True, repr=False)
class Blunt(vx.rules.Rule):
    """A rule whose comparison loses what is no number."""

    name = "blunt"
    needs = frozenset({"rest_sq"})
    properties = Properties(**dict.fromkeys(Properties.__dataclass_fields__, Holds.UNKNOWN))

    def formula(self, stats):
        miss = 1 - stats.p_true
        return stats.xp.where(stats.p_true < 0.9, miss + stats.xp.minimum(stats.rest_sq, 1.0), 0.0)

    def bounds(self, n_classes):
        return 0.0, 2.0


TRAINED = [*SMOOTH, vx.rules.Log(clip=0.01), Blunt()]
# By NumPy; by compiled loops, where there are such; by PyTorch's operations.
PATHS = {
    "numpy": {"loss_compiled_after": 10**9, "search_compiled_from": 10**9},
    "compiled": {"loss_compiled_after": 0, "search_compiled_from": 0},
    "operations": {"torch_host_up_to": -1},
}
NARROW = (torch.float16, torch.bfloat16)


def broken_row(k, kind, at):
    row = np.linspace(-1.0, 1.0, k)
    if kind == "all":
        row[:] = math.nan
    elif kind == "nan":
        row[at % k] = math.nan
    elif kind == "inf":
        row[at % k] = math.inf
    else:
        row[:] = -math.inf
    return row


batches = st.builds(
    lambda n, k, seed, broken: (n, k, seed, {at % n: (kind, where) for at, kind, where in broken}),
    st.sampled_from([1, 2, 7, 64, 200]),
    st.integers(2, 13),
    st.integers(0, 1000),
    st.lists(
        st.tuples(st.integers(0, 199), st.sampled_from(["all", "nan", "inf", "-inf"]), st.integers(0, 12)),
        min_size=1,
        max_size=3,
    ),
)


@pytest.mark.parametrize("path", PATHS)
@given(
    batch=batches,
    rule=st.sampled_from(TRAINED),
    dtype=st.sampled_from([torch.float64, torch.float32, *NARROW]),
    soft=st.booleans(),
    reduction=st.sampled_from(["none", "mean", "sum"]),
)
def test_a_row_that_is_no_number_has_no_loss_and_no_gradient(path, batch, rule, dtype, soft, reduction):
    n, k, seed, broken = batch
    rng = np.random.default_rng(seed)
    logits, y = rng.normal(size=(n, k)), rng.integers(0, k, n)
    for row, (kind, where) in broken.items():
        logits[row] = broken_row(k, kind, where)
    z = torch.tensor(logits).to(dtype).requires_grad_()
    target = torch.tensor(rng.dirichlet(np.ones(k), n)) if soft else torch.tensor(y)
    with changed(**PATHS[path]):
        loss = adapters.Loss(rule, reduction=reduction)(z, target)
        loss.sum().backward()
    bad = np.isin(np.arange(n), list(broken))
    if reduction == "none":
        np.testing.assert_array_equal(loss.isnan().numpy(), bad)
    else:
        assert loss.isnan()
    assert z.grad[bad].isnan().all()
    assert z.grad[~bad].isfinite().all()
    if reduction != "none" or bad.all():
        return
    # The other rows are what they are alone.
    alone = adapters.Loss(rule, reduction="none")(z.detach()[~bad], target[~bad])
    torch.testing.assert_close(loss[~bad], alone, rtol=1e-4 if dtype != torch.float64 else 1e-10, atol=1e-5)


@pytest.mark.parametrize("path", PATHS)
@given(
    k=st.integers(3, 12),
    seed=st.integers(0, 1000),
    rule=st.sampled_from(TRAINED),
    masked=st.sets(st.integers(0, 11), min_size=1, max_size=3),
)
def test_impossible_classes_give_the_limit(path, k, seed, rule, masked):
    rng = np.random.default_rng(seed)
    out = [at % k for at in masked][: k - 1]
    far, y = rng.normal(size=(6, k)), np.arange(6) % k
    y[np.isin(y, out)] = min(set(range(k)) - set(out))
    # A threshold on whose other side nothing is possible costs an infinite loss only if the outcome is there.
    infinite, far[:, out] = far.copy(), -80.0
    infinite[:, out] = -math.inf
    results = []
    for logits in (far, infinite):
        z = torch.tensor(logits, requires_grad=True)
        with changed(**PATHS[path]):
            loss = adapters.Loss(rule, reduction="none")(z, torch.tensor(y))
            loss.sum().backward()
        results.append((loss.detach(), z.grad))
    for near, limit in zip(*results, strict=True):
        torch.testing.assert_close(near, limit, rtol=1e-9, atol=1e-12)


def test_an_impossible_outcome_has_the_limit_of_its_rule():
    z = torch.tensor([[-math.inf, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    loss = adapters.Loss("log_score")(z, torch.tensor([0]))
    loss.backward()
    p = 1 / (1 + math.e)
    assert loss.item() == math.inf
    np.testing.assert_allclose(z.grad.numpy(), [[-1.0, p, 1 - p]])
    assert adapters.Loss("spherical")(z, torch.tensor([0])).item() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("rule", TRAINED, ids=repr)
def test_compiled_graphs_keep_the_law(rule):
    torch.compiler.reset()
    loss = torch.compile(adapters.Loss(rule, reduction="none"), fullgraph=True, backend="aot_eager")
    z = torch.zeros(5, 4)
    z[1, 2], z[3] = math.nan, -math.inf
    z.requires_grad_()
    values = loss(z, torch.arange(5) % 4)
    values.sum().backward()
    assert values.isnan().tolist() == [False, True, False, True, False]
    assert z.grad.isnan().all(dim=1).tolist() == [False, True, False, True, False]
    assert z.grad[[0, 2, 4]].isfinite().all()


@pytest.mark.parametrize("rule", TRAINED, ids=repr)
def test_transformed_losses_keep_the_law(rule):
    z = torch.zeros(4, 3, dtype=torch.float64)
    z[2, 0] = math.nan
    loss = adapters.Loss(rule)
    each = torch.func.vmap(torch.func.grad_and_value(lambda row, y: loss(row[None], y[None])))
    gradients, values = each(z, torch.tensor([0, 1, 2, 0]))
    assert values.isnan().tolist() == gradients.isnan().all(dim=1).tolist() == [False, False, True, False]


@pytest.mark.parametrize("k", [5, 40, 100])
@pytest.mark.parametrize("rule", [*SMOOTH, vx.rules.Log(clip=0.01)], ids=repr)
def test_kernels_of_gpus_keep_the_law(gpu, change, rule, k):
    only_on_gpu(gpu, (rule in (vx.rps, vx.spherical) and k == 5) or (rule == vx.ranked_log and k == 40))
    change(torch_kernels=True)
    logits = np.random.default_rng(k).normal(size=(70, k))
    for row, kind in ((3, "all"), (20, "nan"), (21, "inf"), (69, "-inf")):
        logits[row] = broken_row(k, kind, row)
    bad = torch.tensor(np.isin(np.arange(70), (3, 20, 21, 69)))
    for reduction in ("none", "mean"):
        z = gpu.put(torch.tensor(logits)).detach().requires_grad_()
        y = gpu.put(torch.arange(70) % k)
        loss = adapters.Loss(rule, reduction=reduction)(z, y)
        loss.sum().backward()
        assert torch.equal(loss.isnan().cpu(), bad if reduction == "none" else torch.tensor(True))
        assert torch.equal(z.grad.isnan().all(dim=1).cpu(), bad)
        assert z.grad.cpu()[~bad].isfinite().all()


# ---- metrics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["numpy", "operations"])
@pytest.mark.parametrize("rule", [*RULES, Blunt()], ids=repr)
def test_metrics_count_such_rows_and_name_the_first(rule, path):
    metric = adapters.Score(rule, logits=True)
    z, y = torch.zeros(6, 4), torch.arange(6) % 4
    worse = z.clone()
    worse[2, 1], worse[5] = math.nan, -math.inf
    with changed(**PATHS[path]):
        for logits in (z, worse, worse):
            metric.update(logits, y)
        with pytest.raises(vx.InputError, match="4 of 18 rows do not, the first of them row 2 of") as caught:
            metric.compute()
        error = caught.value
        assert (error.argument, error.rows, error.count) == ("preds", (2,), 4)
        metric.reset()
        metric.update(z, y)
        assert metric.compute().isfinite()


def test_places_of_ignored_rows_and_of_other_faults():
    metric = adapters.Score("brier", ignore_index=-100)
    p = torch.full((5, 2), 0.5)
    p[1], p[3, 0] = math.nan, 0.7
    metric.update(p, torch.tensor([0, -100, 1, 0, 1]))
    with pytest.raises(vx.InputError, match="1 of 4 rows do not, the first of them row 3 of update 1"):
        metric.compute()
    card = adapters.Card(2)
    card.update(p[[0, 2]], torch.tensor([0, 1]))
    card.update(p[[0, 2, 4]], torch.tensor([0, 2, 7]))
    with pytest.raises(vx.InputError, match="2 of 5 rows do not, the first of them row 1 of update 2"):
        card.compute()


@pytest.mark.parametrize("k", [5, 40, 1000])
def test_kernels_of_gpus_name_the_first_row(gpu, k):
    only_on_gpu(gpu, k == 5)
    metric = adapters.Score("brier", logits=True).to(gpu.put(torch.zeros(1)).device)
    z, y = torch.zeros(700, k), torch.arange(700) % k
    worse = z.clone()
    worse[600, 1], worse[333] = math.nan, -math.inf
    for logits in (z, worse, worse):
        metric.update(gpu.put(logits), gpu.put(y))
    assert "tally" in gpu.launches or gpu.launches == []
    with pytest.raises(vx.InputError, match=r"4 of 2,100 rows do not, the first of them row 333 of update 2"):
        metric.compute()


# ---- elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES, Blunt()], ids=repr)
def test_compiled_functions_of_jax_keep_the_law(rule):
    jax = pytest.importorskip("jax")
    z = jax.numpy.asarray([[0.0, 1.0, 2.0], [0.0, math.nan, 1.0], [0.0, -math.inf, 1.0]])
    y = jax.numpy.asarray([0, 0, 0])
    losses = jax.jit(lambda z: rule.samples(y, z, logits=True))(z)
    assert np.isnan(losses).tolist() == [False, True, False]
    p = jax.numpy.asarray([[0.5, 0.25, 0.25], [0.5, math.nan, 0.5], [0.5, 0.5, 0.0]])
    assert np.isnan(jax.jit(lambda p: rule.samples(y, p))(p)).tolist() == [False, True, False]
    if rule in SMOOTH:
        gradient = jax.jit(jax.grad(lambda z: rule.samples(y, z, logits=True).sum()))(z)
        assert np.isnan(gradient).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_arrays_that_can_be_looked_at_are_refused_by_row(rule):
    p = np.full((4, 3), 1 / 3)
    p[2, 1] = math.nan
    for read in ({}, {"logits": True}):
        with pytest.raises(vx.InputError) as caught:
            rule.samples([0, 1, 2, 0], p, **read)
        assert caught.value.rows == (2,)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_objectives_of_boosting_refuse_by_row(library):
    boosting = pytest.importorskip("verax.adapters.boosting")
    objective = getattr(boosting, f"{library}_objective")("brier")
    scores = np.zeros((4, 3))
    scores[2, 1] = math.nan
    with pytest.raises(vx.InputError) as caught:
        objective(np.array([0, 1, 2, 0]), scores)
    assert (caught.value.argument, caught.value.rows) == ("logits", (2,))
