"""Losses by the shapes that training has: columns, labels, maps, distributions, heads for ordered classes."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import verax as vx
from cases import SMOOTH
from verax.adapters.training import probabilities_of

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from verax.adapters.torch import Card, Loss, Score  # noqa: E402

pytestmark = pytest.mark.frameworks
close = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(params=["host", "operations"])
def way(request, change):
    """Losses on the host, and by PyTorch's operations."""
    if request.param == "operations":
        change(torch_host_up_to=-1)


def assert_same(ours, theirs, z):
    torch.testing.assert_close(ours, theirs, **close)
    torch.testing.assert_close(
        *(torch.autograd.grad(value.sum(), z, retain_graph=True)[0] for value in (ours, theirs)), **close
    )


def of_two_classes(rule, z, share):
    """The losses of problems of two classes, by autograd of the formula."""
    p = torch.softmax(torch.stack([torch.zeros_like(z), z], dim=-1).reshape(-1, 2), dim=1)
    share = share.reshape(-1).double()
    whole = torch.zeros(len(p), dtype=torch.int64)
    return ((1 - share) * rule.samples(whole, p) + share * rule.samples(whole + 1, p)).reshape(z.shape)


# ---- two classes in one column -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16,), (16, 1), (4, 1, 2, 2)])
@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
@pytest.mark.usefixtures("way")
def test_sigmoid_logits_are_those_of_two_columns(rule, shape):
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=shape) * 2, requires_grad=True)
    inner = z if z.ndim == 1 else z.squeeze(1)
    y = torch.tensor(rng.integers(0, 2, inner.shape))
    share = torch.tensor(rng.uniform(size=inner.shape))
    loss, each = Loss(rule, two_class=True), Loss(rule, two_class=True, reduction="none")
    for target in (y, y.double(), y.bool(), share):
        expected = of_two_classes(rule, inner, target)
        assert_same(loss(z, target), expected.mean(), z)
        assert_same(each(z, target), expected, z)
        if z.ndim > 1:
            assert_same(each(z, target.unsqueeze(1)), expected.unsqueeze(1), z)
    w = torch.tensor(rng.uniform(size=inner.shape))
    assert_same(loss(z, share, w), (w * of_two_classes(rule, inner, share)).sum() / w.sum(), z)


@pytest.mark.parametrize(
    "target", [torch.ones(16), torch.eye(16)[3], torch.ones(16, 1), torch.ones(16).long()]
)
@pytest.mark.parametrize("column", [False, True])
@pytest.mark.usefixtures("way")
def test_one_column_is_refused_with_both_remedies(target, column):
    z = torch.zeros(16, 1) if column else torch.zeros(16)
    if not column and not target.is_floating_point():
        # Integers of the same number can only be classes.
        assert Loss("brier")(z, target).item() == 0.5
        return
    if not column and target.ndim == 2:
        target = target[:, 0]
    for call in (Loss("brier"), Score("brier", logits=True), Card(2, logits=True)):
        if isinstance(call, Card) and column:
            continue
        with pytest.raises(vx.InputError) as caught:
            call(z, target)
        advice = [remedy.text for remedy in caught.value.remedies]
        assert "two_class=True" in advice[0]
        assert "two columns" in advice[1]


def test_what_columns_and_labels_refuse():
    z = torch.zeros(4, 3)
    with pytest.raises(vx.InputError, match=r"one number per target.*labels=True"):
        Loss("brier", two_class=True)(z, torch.ones(4).long())
    with pytest.raises(vx.InputError, match=r"`target` must have the shape of the predictions, \(4, 3\)"):
        Loss("brier", labels=True)(z, torch.ones(4, 2))
    with pytest.raises(vx.InputError, match=r"`weights` must have the shape \(4, 3\)"):
        Loss("brier", labels=True)(z, torch.ones(4, 3), torch.ones(3))
    with pytest.raises(vx.InputError, match="leave out two_class"):
        Loss("brier", labels=True, two_class=True)
    with pytest.raises(vx.InputError, match="row 5 holds 2"):
        Loss("brier", labels=True)(z, torch.tensor([[0, 1, 0], [1, 1, 2], [0, 0, 0], [0, 0, 2]]))
    with pytest.raises(vx.InputError, match=r"row 1 holds -0\.5"):
        Loss("brier", two_class=True)(z[:, 0], torch.tensor([0.0, 1.5, 0.0, 0.0]))


# ---- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
@pytest.mark.usefixtures("way")
def test_the_loss_of_labels_is_their_mean(rule):
    rng = np.random.default_rng(1)
    z = torch.tensor(rng.normal(size=(9, 5)) * 2, requires_grad=True)
    y, w = torch.tensor(rng.integers(0, 2, (9, 5))), torch.tensor(rng.uniform(size=9))
    loss, each = Loss(rule, labels=True), Loss(rule, labels=True, reduction="none")
    for target in (y, y.float(), torch.tensor(rng.uniform(size=(9, 5)))):
        expected = of_two_classes(rule, z, target)
        assert_same(loss(z, target), expected.mean(), z)
        assert_same(each(z, target), expected, z)
        assert_same(loss(z, target, w), (w @ expected.mean(dim=1)) / w.sum(), z)
        grid = w[:, None] * torch.ones(5)
        assert_same(loss(z, target, grid), (w @ expected.mean(dim=1)) / w.sum(), z)
        metric = Score(rule, logits=True, labels=True)
        metric.update(z.detach(), target)
        torch.testing.assert_close(metric.compute(), expected.mean().detach(), **close)
    # Whatever the logits of ignored labels hold.
    out = torch.tensor(rng.integers(0, 2, (9, 5))).bool()
    expected = of_two_classes(rule, z, y)[~out].mean()
    broken = torch.where(out, torch.nan, z)
    ignoring = Loss(rule, labels=True, ignore_index=-100)
    assert_same(ignoring(broken, torch.where(out, -100, y)), expected, z)
    assert_same(ignoring(broken, torch.where(out, -100.0, y.double())), expected, z)
    other = Loss(rule, labels=True, ignore_index=255)
    assert_same(other(broken, torch.where(out, 255.0, y.double())), expected, z)


def test_labels_by_the_log_score_are_binary_cross_entropy():
    z, y = torch.randn(6, 4, dtype=torch.float64), torch.rand(6, 4, dtype=torch.float64)
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    torch.testing.assert_close(Loss("log_score", labels=True)(z, y), theirs, **close)


# ---- maps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
@pytest.mark.usefixtures("way")
def test_maps_have_weights_ignored_pixels_and_distributions(rule):
    rng = np.random.default_rng(2)
    z = torch.tensor(rng.normal(size=(2, 4, 3, 5)), requires_grad=True)
    y, w = torch.tensor(rng.integers(0, 4, (2, 3, 5))), torch.tensor(rng.uniform(size=(2, 3, 5)))
    shares = torch.tensor(rng.dirichlet(np.ones(4), (2, 3, 5))).movedim(-1, 1)
    p = torch.softmax(z, dim=1).movedim(1, -1).reshape(-1, 4)
    losses = rule.samples(y.reshape(-1), p).reshape(y.shape)
    assert_same(Loss(rule, reduction="none")(z, y, w), losses * w, z)
    assert_same(Loss(rule)(z, y, w), (losses * w).sum() / w.sum(), z)
    of_classes = torch.stack([rule.samples(torch.full((30,), k), p) for k in range(4)], dim=1)
    soft = (of_classes * shares.movedim(1, -1).reshape(-1, 4)).sum(dim=1).reshape(y.shape)
    assert_same(Loss(rule)(z, shares, w), (soft * w).sum() / w.sum(), z)
    out = w < 0.4
    masked = torch.where(out, 255, y)
    broken = torch.where(out[:, None], torch.nan, z)
    expected = (losses * w)[~out].sum() / w[~out].sum()
    assert_same(Loss(rule, ignore_index=255)(broken, masked, w), expected, z)
    metric = Score(rule, logits=True, ignore_index=255)
    metric.update(broken.detach(), masked, w)
    torch.testing.assert_close(metric.compute(), expected.detach(), **close)
    wrong = y.clone()
    wrong[1, 0, 2] = 7
    with pytest.raises(vx.InputError, match="row 17 holds 7"):
        Loss(rule)(z, wrong)


@pytest.mark.usefixtures("way")
def test_the_mean_of_ignored_rows_alone_warns():
    z, y = torch.zeros(3, 4, requires_grad=True), torch.full((3,), -100)
    with pytest.warns(RuntimeWarning, match="There is no row to score") as caught:
        assert Loss("rps", ignore_index=-100)(z, y).isnan()
    assert len(caught) == 1
    with pytest.warns(RuntimeWarning, match="There is no row to score"):
        assert Loss("rps", labels=True, ignore_index=-100)(z, torch.full((3, 4), -100.0)).isnan()
    metric = Score("rps", logits=True, ignore_index=-100)
    with pytest.warns(RuntimeWarning, match="There is no row to score"):
        assert metric(z, y).isnan()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # An empty sum is zero, as in cross entropy.
        assert Loss("rps", ignore_index=-100, reduction="sum")(z, y).item() == 0
        assert Loss("rps", ignore_index=-100, reduction="none")(z, y).tolist() == [0.0] * 3


@pytest.mark.parametrize("options", [{"two_class": True}, {"labels": True, "ignore_index": -100}])
def test_columns_and_labels_compile_to_one_graph(options):
    torch.compiler.reset()
    loss = Loss("rps", **options)
    z = torch.randn(6, 1) if "two_class" in options else torch.randn(6, 3)
    y = torch.randint(0, 2, z.shape)
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    for target in (y, y.float()):
        torch.testing.assert_close(compiled(z, target), loss(z, target))


# ---- heads for ordered classes -----------------------------------------------------------------

HEADS = {"coral": "exceedance", "corn": "conditional", "cumulative": "cumulative"}


def outputs_of(head, n=12, k=5, spread=2.0):
    z = np.random.default_rng(3).normal(size=(n, k - 1)) * spread
    if head != "corn":
        z = np.sort(z, axis=1)[:, :: -1 if head == "coral" else 1]
    return torch.tensor(z.copy(), requires_grad=True)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
def test_heads_train_by_any_rule(head, rule):
    z, y = outputs_of(head), torch.arange(12) % 5
    own = probabilities_of(head)
    c = torch.sigmoid(z)
    p = vx.from_cumulative(c, outputs=HEADS[head])
    torch.testing.assert_close(own(z), p, **close)
    torch.testing.assert_close(own.logits(z).exp(), p, **close)
    torch.testing.assert_close(own.logits(z).exp().sum(dim=1), torch.ones(12, dtype=torch.float64))
    assert_same(Loss(rule)(own.logits(z), y), rule.samples(y, p).mean(), z)
    assert probabilities_of(HEADS[head]) == own


@pytest.mark.parametrize("head", HEADS)
def test_heads_keep_all_digits_of_small_probabilities(head):
    z = outputs_of(head, spread=200.0)
    logs = probabilities_of(head).logits(z)
    assert logs.isfinite().all()
    Loss("log_score")(logs, torch.arange(12) % 5).backward()
    assert z.grad.isfinite().all()


def test_heads_against_coral_pytorch():
    losses = pytest.importorskip("coral_pytorch.losses")
    dataset = pytest.importorskip("coral_pytorch.dataset")
    z, y = outputs_of("coral").detach(), torch.arange(12) % 5
    levels = dataset.levels_from_labelbatch(y, 5, dtype=torch.float64)
    # Their loss is that of each threshold as a label.
    ours = Loss("log_score", labels=True)(z, levels) * 4
    torch.testing.assert_close(ours, losses.coral_loss(z, levels), **close)
    z = outputs_of("corn").detach()
    # Theirs is the log score of the class, over all decisions that were asked instead of over the rows.
    asked = sum(int((y >= k).sum()) for k in range(4))
    corn = Loss("log_score", reduction="sum")(probabilities_of("corn").logits(z), y) / asked
    torch.testing.assert_close(corn, losses.corn_loss(z, y, 5), rtol=1e-6, atol=1e-6)


def test_crossed_thresholds_are_refused_and_have_no_loss():
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    head = probabilities_of("cumulative")
    with pytest.raises(vx.InputError, match="thresholds that cross"):
        head(z)
    assert Loss("rps", reduction="none")(head.logits(z), torch.tensor([0, 0])).isnan().tolist() == [
        True,
        False,
    ]
    with pytest.raises(vx.InputError, match="`head` must be"):
        probabilities_of("ordinal")
    with pytest.raises(vx.InputError, match="a column for each threshold"):
        head.logits(torch.zeros(3))


@pytest.mark.parametrize("head", HEADS)
def test_heads_of_numpy_and_jax(head):
    jnp = pytest.importorskip("jax.numpy")
    z = outputs_of(head).detach()
    own = probabilities_of(head)
    logs = own.logits(z).numpy()
    np.testing.assert_allclose(own.logits(z.numpy()), logs, rtol=1e-12)
    np.testing.assert_allclose(
        own.logits(jnp.asarray(z.numpy(), dtype="float32")), logs, rtol=2e-4, atol=1e-4
    )


# ---- JAX ---------------------------------------------------------------------------------------


@pytest.fixture
def jax64():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
def test_jax_has_the_losses_of_torch(jax64, rule):
    from verax.adapters.jax import Loss as JaxLoss

    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(2, 3, 5, 4)), rng.integers(0, 4, (2, 3, 5))
    w, shares = rng.uniform(size=(2, 3, 5)), rng.dirichlet(np.ones(4), (2, 3, 5))
    masked, labels = np.where(w < 0.4, -100, y), rng.integers(0, 2, z.shape)
    calls = [
        ({}, y, w),
        ({"label_smoothing": 0.1, "class_weights": [1.0, 2.0, 0.5, 1.0]}, y, None),
        ({"reduction": "none"}, shares, w),
        ({"ignore_index": -100, "reduction": "sum"}, masked, w),
        ({"labels": True}, labels.astype(float), w[..., :1].repeat(5, axis=-1)),
    ]
    for options, target, weights in calls:
        ours = JaxLoss(rule, **options)
        labelled = "labels" in options
        logits = torch.tensor(z if labelled else np.moveaxis(z, -1, 1), requires_grad=True)
        soft = target.ndim == z.ndim and not labelled
        given = torch.tensor(np.moveaxis(target, -1, 1) if soft else target)
        per = None if weights is None else torch.tensor(weights)
        if labelled:
            per = per[..., None].expand(z.shape)
        value = Loss(rule, **options)(logits, given, per)
        value.sum().backward()
        gradient = logits.grad if labelled else logits.grad.movedim(1, -1)

        def total(x, ours=ours, target=target, weights=weights):
            return ours(x, target, weights).sum()

        for run in (lambda f: f, jax64.jit):
            found = run(lambda x, ours=ours, t=target, v=weights: ours(x, t, v))(z)
            np.testing.assert_allclose(found, value.detach(), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(run(jax64.grad(total))(z), gradient, rtol=1e-10, atol=1e-10)


def test_what_losses_of_jax_refuse(jax64):
    from verax.adapters.jax import Loss as JaxLoss

    z = np.zeros((3, 2))
    with pytest.raises(vx.InputError, match=r"row 1 holds 5.*ignore_index=5"):
        JaxLoss("rps")(z, np.array([0, 5, 1]))
    with pytest.raises(vx.InputError, match=r"`weights` must be finite.*row 2 has -1"):
        JaxLoss("rps")(z, np.array([0, 1, 1]), np.array([1.0, 1.0, -1.0]))
    with pytest.raises(vx.InputError, match=r"labels=True.*two columns"):
        JaxLoss("rps")(np.zeros((3, 1)), np.array([0, 1, 1]))
    with pytest.raises(vx.InputError, match=r"`target` must have the shape \(3,\)"):
        JaxLoss("rps")(z, np.array([0, 1]))
    with pytest.raises(vx.errors.RuleError, match="only on which class"):
        JaxLoss("zero_one")
    with pytest.warns(RuntimeWarning, match="There is no row to score"):
        assert math.isnan(JaxLoss("rps", ignore_index=-1)(z, np.full(3, -1)))
    bad = jax64.jit(lambda y: JaxLoss("rps", reduction="none")(z, y))(np.array([0, 5, 1]))
    assert np.isnan(bad).tolist() == [False, True, False]
    broken = np.array([[0.0, np.nan], [0.0, 1.0], [-np.inf, 0.0]], "float16")
    losses = JaxLoss("log_score", reduction="none")(broken, np.array([0, 1, 1]))
    assert losses.dtype == "float16"
    assert np.isnan(losses).tolist() == [True, False, False]
    assert "rps" in repr(JaxLoss("rps"))
