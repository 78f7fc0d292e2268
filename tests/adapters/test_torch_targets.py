"""Losses and metrics by classes, distributions, smoothing and weights, against cross entropy and verax."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import verax as vx
from cases import RULES

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from verax.adapters.torch import Card, Loss, Score  # noqa: E402

pytestmark = pytest.mark.frameworks
cross_entropy = torch.nn.functional.cross_entropy
SMOOTH = [rule for rule in RULES if not isinstance(rule, vx.rules.ZeroOne)]


@pytest.fixture(params=["host", "operations"])
def way(request, change):
    """Losses on the host, and by PyTorch's operations."""
    if request.param == "operations":
        change(torch_host_up_to=-1)


def rows(n=30, k=4, seed=0):
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.normal(size=(n, k)) * 2, requires_grad=True)
    return z, torch.tensor(rng.integers(0, k, n)), torch.tensor(rng.dirichlet(np.ones(k), n))


def assert_same(ours, theirs, z):
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(value.sum(), z)[0] for value in (ours, theirs)))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("way")
def test_the_log_loss_is_cross_entropy_with_all_its_arguments(reduction, smoothing, weighted):
    z, y, shares = rows()
    weight = torch.rand(4, dtype=torch.float64) if weighted else None
    options = {"reduction": reduction, "label_smoothing": smoothing}
    ours = Loss("log_score", weight=weight, ignore_index=-100, **options)
    y[::5] = -100
    assert_same(ours(z, y), cross_entropy(z, y, weight=weight, **options), z)
    assert_same(ours(z, shares), cross_entropy(z, shares, weight=weight, **options), z)
    # One row without a batch.
    assert_same(ours(z[1], y[1]), cross_entropy(z[1], y[1], weight=weight, **options), z)
    maps, places = z.reshape(3, 10, 4).movedim(-1, 1), y.reshape(3, 10)
    soft = shares.reshape(3, 10, 4).movedim(-1, 1)
    for target in (places, soft):
        assert_same(ours(maps, target), cross_entropy(maps, target, weight=weight, **options), z)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.usefixtures("way")
def test_losses_have_the_type_of_cross_entropy(dtype):
    z, y, shares = rows()
    for target in (y, shares.to(dtype), shares.float()):
        for reduction in ("mean", "none"):
            logits = z.detach().to(dtype).requires_grad_()
            values = [f(logits, target, reduction=reduction) for f in (_log_loss, cross_entropy)]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                values += [f(logits, target, reduction=reduction) for f in (_log_loss, cross_entropy)]
            assert values[0].dtype == values[1].dtype
            assert values[2].dtype == values[3].dtype
            values[0].sum().backward()
            assert logits.grad.dtype == dtype
            # Inside, it is computed in float32 at least, and rounded once.
            exact = cross_entropy(logits.detach().double(), target if target is y else target.double())
            assert values[2].double().mean().item() == pytest.approx(exact.item(), rel=1e-6)


def _log_loss(logits, target, reduction):
    return Loss("log_score", reduction=reduction)(logits, target)


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
@pytest.mark.usefixtures("way")
def test_a_distribution_is_the_mean_over_its_classes(rule):
    z, y, shares = rows(n=6)
    losses = [Loss(rule, reduction="none")(z, torch.full((6,), k)) for k in range(4)]
    by_class = torch.stack(losses, dim=1)
    assert_same(Loss(rule, reduction="none")(z, shares), (shares * by_class).sum(dim=1), z)
    assert Loss(rule)(z, shares).item() == pytest.approx(
        vx.parse(rule)(shares.numpy(), z.detach().numpy(), raters="shares", logits=True), rel=1e-12
    )
    smoothed = 0.8 * torch.nn.functional.one_hot(y, 4) + 0.05
    assert_same(Loss(rule, label_smoothing=0.2)(z, y), Loss(rule)(z, smoothed), z)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # PyTorch's own forward mode
@pytest.mark.parametrize("rule", ["rps", "ranked_log"])
def test_first_second_and_forward_derivatives(rule):
    z, y, shares = rows(n=4, k=3)
    for target in (y, shares):
        loss = Loss(rule, label_smoothing=0.1)
        assert torch.autograd.gradcheck(lambda z, t=target, f=loss: f(z, t), z)
        assert torch.autograd.gradgradcheck(lambda z, t=target, f=loss: f(z, t), z)
    (slope,) = torch.autograd.grad(Loss(rule)(z, y), z)
    tangent = torch.randn_like(slope)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(z.detach(), tangent)
        moved = torch.autograd.forward_ad.unpack_dual(Loss(rule)(dual, y)).tangent
    assert moved.item() == pytest.approx((slope * tangent).sum().item(), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["rps", "pll"])
def test_losses_of_a_long_loop_are_the_same(rule, change):
    z, y, shares = rows()
    cases = [(z, y), (z, shares), (z.detach().float().requires_grad_(), y)]
    before = [_with_slope(rule, *case) for case in cases]
    change(loss_compiled_after=0)
    for case, (value, slope) in zip(cases, before, strict=True):
        again, steep = _with_slope(rule, *case)
        torch.testing.assert_close((again, steep), (value, slope))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rule", ["rps", "pll"])
def test_losses_of_many_classes_by_a_loop_are_those_of_operations(rule, reduction, change):
    z, y, _ = rows(n=50, k=23)
    y[::7] = -100
    loss = Loss(rule, reduction=reduction, class_weights=torch.linspace(1, 2, 23), ignore_index=-100)
    weights = torch.linspace(0.1, 1, 50, dtype=torch.float64)

    def passes():
        value = loss(z, y, weights)
        above = torch.linspace(1, 3, value.numel(), dtype=torch.float64).reshape(value.shape)
        # The second has nothing left of the first.
        slopes = [torch.autograd.grad(value, z, factor * above, retain_graph=True)[0] for factor in (1, 2, 2)]
        slope = torch.autograd.grad(value, z, above, create_graph=True)[0]
        return value, *slopes, slope, torch.autograd.grad(slope.square().sum(), z)[0]

    change(torch_host_up_to=-1)
    by_operations = passes()
    change(loss_compiled_after=0)
    by_loop = passes()
    torch.testing.assert_close(by_loop, by_operations, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(by_loop[2], by_loop[3], rtol=0, atol=0)
    jacobian = torch.func.jacrev(lambda z: loss(z, y, weights))(z.detach())
    torch.testing.assert_close(
        jacobian.reshape(-1, *z.shape).sum(0), torch.autograd.grad(loss(z, y, weights).sum(), z)[0]
    )


def _with_slope(rule, z, target):
    value = Loss(rule)(z, target)
    return value.detach(), torch.autograd.grad(value, z)[0]


@pytest.mark.parametrize("rule", ["rps", "log_score", "pbs"])
def test_gradients_of_each_sample(rule):
    z, y, _ = rows(n=5)
    loss = Loss(rule)
    one = torch.func.grad(lambda row, target: loss(row[None], target[None]))
    each = torch.func.vmap(one)(z.detach(), y)
    (all_at_once,) = torch.autograd.grad(Loss(rule, reduction="sum")(z, y), z)
    torch.testing.assert_close(each, all_at_once)
    single = torch.func.vmap(torch.func.grad(loss))(z.detach(), y)
    torch.testing.assert_close(single, all_at_once)
    values = torch.func.vmap(loss)(z.detach(), y)
    torch.testing.assert_close(values, Loss(rule, reduction="none")(z, y).detach())


def test_compiling_warns_of_nothing():
    z, y, shares = rows(n=8)
    for loss, target in ((Loss("ranked_log"), y), (Loss("pbs", label_smoothing=0.1), shares)):
        torch.compiler.reset()
        compiled = torch.compile(loss, fullgraph=True, backend="eager")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.testing.assert_close(compiled(z, target), loss(z, target))


@pytest.mark.usefixtures("way")
def test_what_losses_refuse():
    z, y, shares = rows(n=3)
    bad = shares.clone()
    bad[1] *= 0.5
    with pytest.raises(vx.InputError, match=r"`target` rows must be distributions.*row 1 sums to 0.5"):
        Loss("rps")(z, bad)
    with pytest.raises(vx.InputError, match=r"`weights` must be finite and not negative.*row 2 has -1"):
        Loss("rps")(z, y, torch.tensor([1.0, 1.0, -1.0]))
    with pytest.raises(vx.InputError, match="`class_weights` must be finite and not negative"):
        Loss("rps", class_weights=[1.0, -1.0])
    with pytest.raises(vx.InputError, match="`ignore_index` cannot name a class"):
        Loss("rps", ignore_index=1)(z, shares)
    with pytest.raises(vx.InputError, match="`label_smoothing` must lie between 0 and 1"):
        Loss("rps", label_smoothing=1.5)
    with pytest.raises(vx.InputError, match="pass one of both"):
        Loss("rps", weight=[1.0, 1.0], class_weights=[1.0, 1.0])


# ---- metrics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("logits", [False, True])
def test_metrics_of_distributions_are_those_of_shares(logits):
    z, _, shares = rows(n=90)
    p = torch.softmax(z.detach(), dim=1)
    w = torch.linspace(0, 2, 90, dtype=torch.float64)
    card = Card(4, ordered=True, logits=logits)
    score = Score("ranked_log", logits=logits)
    for part in torch.arange(90).split(40):
        for metric in (card, score):
            metric.update((z.detach() if logits else p)[part], shares[part], w[part])
    expected = vx.evaluate(shares.numpy(), p.numpy(), raters="shares", weights=w.numpy(), ordered=True)
    for name, value in card.compute().items():
        assert value.item() == pytest.approx(expected[name], rel=1e-9), name
    np.testing.assert_allclose(card.scorecard().confusion, expected.confusion, rtol=1e-12)
    assert score.compute().item() == pytest.approx(expected["ranked_log"], rel=1e-9)
    many = Card(1500, rules=["brier"])
    q = torch.softmax(torch.randn(5, 1500, dtype=torch.float64), dim=1)
    many.update(q, q)
    right = (q.max(dim=1).values).mean().item()
    assert many.compute()["accuracy"].item() == pytest.approx(right, rel=1e-12)


def test_distributions_that_are_none_are_counted():
    z, _, shares = rows(n=5)
    shares[3] *= 2
    score = Score("rps", logits=True, class_weights=[1.0, 2.0, 3.0, 4.0])
    score.update(z.detach(), shares)
    with pytest.raises(vx.InputError, match=r"`target` must hold class positions.*1 of 5 rows"):
        score.compute()


def test_class_weights_of_a_score():
    z, y, shares = rows(n=60)
    weights = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    score = Score("brier", logits=True, class_weights=weights)
    score.update(z.detach(), y)
    loss = Loss("brier", class_weights=weights)
    assert score.compute().item() == pytest.approx(loss(z, y).item(), rel=1e-12)
    assert repr(score) == "Score(brier, class_weights=[0.5, 1, 2, 4])"
    assert "class_weights=[0.5, 1, 2, 4]" in repr(loss)
    # Of distributions each class counts by its share and weight.
    score.reset()
    score.update(z.detach(), shares)
    p, outcomes = z.detach().repeat_interleave(4, dim=0), torch.arange(4).repeat(60)
    expected = vx.brier(outcomes, p, weights=(shares * weights).reshape(-1), logits=True)
    assert score.compute().item() == pytest.approx(expected, rel=1e-12)


def test_collections_name_scores_like_their_rules():
    z, y, _ = rows()
    scores = [Score("rps", logits=True), Score("pbs", logits=True)]
    together = torchmetrics.MetricCollection(scores, prefix="val_")
    together.update(z.detach(), y)
    again = pickle.loads(pickle.dumps(together))
    for collection in (together, again, together.clone()):
        values = collection.compute()
        assert set(values) == {"val_rps", "val_pbs"}
        assert values["val_pbs"].item() == pytest.approx(vx.pbs(y, z.detach(), logits=True), rel=1e-12)
    assert isinstance(again["rps"], Score)
    assert repr(Score("pbs")) == "Score(pbs)"


def test_a_score_draws_itself():
    pytest.importorskip("matplotlib").use("agg")
    z, y, _ = rows()
    score = Score("rps", logits=True)
    values = [score(z.detach()[part], y[part]) for part in torch.arange(30).split(10)]
    _, axes = score.plot(values)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [value.item() for value in values])


# ---- precision ---------------------------------------------------------------------------------

CASTS = {
    "to": lambda module: module.to(torch.float16),
    "half": lambda module: module.half(),
    "bfloat16": lambda module: module.bfloat16(),
    "type": lambda module: module.type(torch.bfloat16),
}


@pytest.mark.parametrize("cast", CASTS)
def test_sums_keep_their_precision_whatever_the_module_is_cast_to(cast):
    torch.manual_seed(0)
    module = torch.nn.Module()
    module.score = Score("rps", logits=True, class_weights=[1.0, 1.1, 1.2, 1.3, 1.4])
    module.card, module.loss = Card(5, ordered=True, logits=True), Loss("rps", class_weights=[1 / 3] * 5)
    module = CASTS[cast](module)
    z, y = torch.randn(1, 5, 256, 256).half(), torch.randint(0, 5, (1, 256, 256))
    module.score.update(z, y)
    module.card.update(z, y)
    flat, outcomes = z.movedim(1, -1).reshape(-1, 5).double(), y.reshape(-1)
    weights = torch.tensor([1.0, 1.1, 1.2, 1.3, 1.4], dtype=torch.float64)[outcomes]
    expected = vx.evaluate(outcomes, flat, ordered=True, logits=True)
    assert module.score.compute().item() == pytest.approx(
        vx.rps(outcomes, flat, weights=weights, logits=True), rel=1e-7
    )
    for name, value in module.card.compute().items():
        assert value.item() == pytest.approx(expected[name], rel=1e-9)
        assert value.dtype == torch.float64
    assert module.loss.class_weights.dtype == torch.float32
    module.card.reset()
    assert module.card.cells.dtype == torch.float64


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
def test_checkpoints_in_half_precision_are_loaded_into_wide_sums():
    z, y, _ = rows(n=64)
    score = Score("rps", logits=True)
    score.persistent(True)
    score.update(z.detach(), y)
    value = score.compute().item()
    narrow = {torch.float64: torch.bfloat16}
    state = {name: x.to(narrow.get(x.dtype, x.dtype)) for name, x in score.state_dict().items()}
    again = Score("rps", logits=True)
    again.persistent(True)
    again.load_state_dict(state)
    assert again.metric_state[again._name].dtype == torch.float64
    assert again.compute().item() == pytest.approx(value, rel=1e-2)
    again.load_state_dict(score.state_dict())
    assert again.compute().item() == value


def test_scores_under_autocast_and_compiled():
    z, y, _ = rows(n=64)
    model = torch.nn.Linear(4, 4)
    x = z.detach().float()
    score = Score("rps", logits=True)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        score.update(logits, y)
    assert logits.dtype == torch.bfloat16
    assert score.compute().item() == pytest.approx(vx.rps(y, logits.double(), logits=True), rel=1e-12)
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager")
        score.reset()
        score.update(compiled(x), y)
        assert score.compute().item() == pytest.approx(vx.rps(y, model(x).double(), logits=True), rel=1e-6)
