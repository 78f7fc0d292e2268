"""Rules as PyTorch losses and torchmetrics metrics, against vectors, torch's own and verax itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import references
import verax as vx
from cases import RULES, forecasts, number
from installing import installing
from verax.errors import passing
from verax.rules import Holds, Properties
from verax.selection import RefinementLoss

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from verax.adapters.torch import Card, Loss, RefinementScore, Score, metrics  # noqa: E402

pytestmark = pytest.mark.frameworks

VECTORS = references.entries()
GRADIENTS = [case for case in VECTORS if case["rule"] == "grad_logits"]
STEPS = [rule for rule in RULES if isinstance(rule, vx.rules.ZeroOne)]
SMOOTH = [rule for rule in RULES if rule not in STEPS]


@dataclass(frozen=True, repr=False)
class Sharp(vx.rules.Rule):
    """A rule that verax does not have: no adapter can know it."""

    name = "sharp"
    needs = frozenset({"rest_sq"})
    properties = Properties(**dict.fromkeys(Properties.__dataclass_fields__, Holds.UNKNOWN))

    def formula(self, stats):
        return stats.xp.exp(1 - stats.p_true) - 1 + stats.rest_sq

    def bounds(self, n_classes):
        return 0.0, np.e


def tensors(n=600, k=4, seed=0, *, dtype=torch.float64):
    y, p = forecasts(n, k, seed, ties=False)
    w = np.random.default_rng(seed).exponential(size=n)
    return torch.tensor(y), torch.tensor(p, dtype=dtype), torch.tensor(w)


def feed(metric, p, y, w=None, parts=3):
    """Update with all rows, in several batches."""
    for part in torch.arange(len(y)).chunk(parts):
        metric.update(p[part], y[part], None if w is None else w[part])
    return metric


# ---- one rule --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES, Sharp()], ids=repr)
def test_a_score_is_what_verax_says_of_all_rows(rule):
    y, p, w = tensors()
    assert feed(Score(rule), p, y).compute().item() == pytest.approx(rule(y, p), rel=1e-12)
    assert feed(Score(rule), p, y, w).compute().item() == pytest.approx(rule(y, p, weights=w), rel=1e-12)
    z = 3 * torch.randn(600, 4, dtype=torch.float64)
    assert feed(Score(rule, logits=True), z, y, w).compute().item() == pytest.approx(
        rule(y, z, weights=w, logits=True), rel=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_predictions_lose_nothing_further(dtype):
    y, p, _ = tensors(dtype=dtype)
    for rule in (vx.brier, vx.log_score, vx.rps):
        value = feed(Score(rule), p, y).compute()
        assert value.dtype == torch.float64
        assert value.item() == pytest.approx(rule(y, p), rel=1e-12)


def test_tied_and_impossible_outcomes():
    y, p = forecasts(300, 5)
    metric = feed(Score("pbs"), torch.tensor(p), torch.tensor(y))
    assert metric.compute().item() == pytest.approx(vx.pbs(y, p), rel=1e-13)
    metric = feed(Score("log_score"), torch.tensor(p), torch.tensor(y))
    assert metric.compute().item() == vx.log_score(y, p) == np.inf
    weights = torch.tensor(p[np.arange(300), y] > 0).double()
    metric = feed(Score("log_score"), torch.tensor(p), torch.tensor(y), weights)
    assert metric.compute().item() == pytest.approx(vx.log_score(y, p, weights=weights.numpy()), rel=1e-13)


def test_extreme_logits_are_scored_exactly():
    z = torch.tensor([[1e4, -1e4, 0.0], [0.0, -800.0, 3.0]])
    y = torch.tensor([1, 1])
    assert Score("log_score", logits=True)(z, y).item() == pytest.approx((20000 + 803.0485873) / 2, rel=1e-9)


def test_binary_columns_and_maps():
    y, p, w = tensors(k=2)
    assert Score("brier")(p[:, 1], y, w).item() == pytest.approx(vx.brier(y, p, weights=w), rel=1e-13)
    z = torch.randn(600, dtype=torch.float64)
    assert Score("log_score", logits=True)(z, y).item() == pytest.approx(
        torch.nn.functional.binary_cross_entropy_with_logits(z, y.double()).item(), rel=1e-13
    )
    maps, labels = torch.randn(4, 3, 5, 6, dtype=torch.float64), torch.randint(0, 3, (4, 5, 6))
    flat = maps.permute(0, 2, 3, 1).reshape(-1, 3)
    assert Score("rps", logits=True)(maps, labels).item() == pytest.approx(
        vx.rps(labels.reshape(-1), flat, logits=True), rel=1e-13
    )


def test_metrics_reset_pickle_clone_and_give_batch_values():
    y, p, w = tensors()
    metric = Score(vx.rps)
    assert metric(p[:100], y[:100], w[:100]).item() == pytest.approx(
        vx.rps(y[:100], p[:100], weights=w[:100]), rel=1e-12
    )
    metric(p[100:], y[100:], weights=w[100:])
    expected = vx.rps(y, p, weights=w)
    for same in (metric, pickle.loads(pickle.dumps(metric)), metric.clone()):
        assert same.compute().item() == pytest.approx(expected, rel=1e-12)
    metric.reset()
    assert metric(p[:10], y[:10]).item() == pytest.approx(vx.rps(y[:10], p[:10]), rel=1e-12)


def test_metrics_say_what_they_are():
    assert Score("pbs").higher_is_better is False
    assert Score("pbs").full_state_update is False
    assert Score("pbs").is_differentiable
    assert not Score("zero_one").is_differentiable
    assert repr(Score(vx.penalized(vx.rps))) == "Score(penalized(rps))"
    y, p, _ = tensors()
    p.requires_grad_()
    Score("brier")(p, y).backward()
    own = p.grad.clone()
    p.grad = None
    vx.brier.samples(y, p).mean().backward()
    torch.testing.assert_close(own, p.grad)


def test_rules_that_agree_on_the_first_batch_stay_apart_in_a_collection():
    # The first batch is all right, so PBS is the Brier score there, and torchmetrics joins equal states.
    collection = torchmetrics.MetricCollection({"brier": Score("brier"), "pbs": Score("pbs")})
    y, p, _ = tensors()
    right = p.argmax(dim=1)
    collection.update(p, right)
    collection.update(p, y)
    both, rows = torch.cat([right, y]), torch.cat([p, p])
    values = collection.compute()
    assert values["brier"].item() == pytest.approx(vx.brier(both, rows), rel=1e-12)
    assert values["pbs"].item() == pytest.approx(vx.pbs(both, rows), rel=1e-12)


def test_sums_stay_exact_where_a_device_has_no_float64(monkeypatch):
    monkeypatch.setattr(metrics, "widen", lambda x: x.float())
    metric = Score("brier").to("cpu")
    assert all(state.dtype != torch.float64 for state in metric.metric_state.values())
    p, y = torch.tensor([[0.75, 0.25]]), torch.tensor([0])
    metric.update(p, y, torch.tensor([2.0**26]))
    for _ in range(200):
        metric.update(1 - p, y, torch.tensor([1.0]))
    total = metric.metric_state[metric._name].double().sum(dim=0)
    assert total[0].item() == total[1].item() == 2.0**26 + 200
    assert total[2].item() == 2.0**26 * 0.125 + 200 * 1.125
    metric.reset()
    assert metric.metric_state[metric._name].dtype == torch.float32
    card = Card(2).to("cpu")
    card.update(p, y)
    assert card.compute()["brier"].dtype == torch.float32
    assert card.scorecard()["brier"] == 0.125


# ---- the card ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_a_card_is_what_evaluate_says_of_all_rows(ordered):
    y, p = forecasts(700, 5)
    w = np.random.default_rng(1).integers(0, 4, 700).astype(float)
    expected = vx.evaluate(y, p, weights=w, ordered=ordered)
    metric = feed(Card(5, ordered=ordered, prefix="val_"), *map(torch.tensor, (p, y, w)))
    values = metric.compute()
    assert list(values) == [f"val_{name}" for name in (*expected.scores, *expected.metrics)]
    for name, value in values.items():
        assert value.item() == pytest.approx(expected[name.removeprefix("val_")], rel=1e-12)
    card = metric.scorecard()
    assert (card.n_rows, card.weight, card.n_zero_probability) == (700, w.sum(), expected.n_zero_probability)
    np.testing.assert_array_equal(card.confusion, expected.confusion)
    for name, score in expected.scores.items():
        ours = card.scores[name]
        assert (ours.std, ours.finite_mean) == pytest.approx((score.std, score.finite_mean), nan_ok=True)
        assert (ours.interval, ours.infinite_weight) == (
            pytest.approx(score.interval, nan_ok=True),
            score.infinite_weight,
        )
    for name, score in expected.metrics.items():
        assert card.metrics[name].interval == score.interval
    assert "outcomes." in str(card)
    assert card.merge(expected).n_rows == 1400


def test_a_card_against_torchmetrics():
    z, y = torch.randn(500, 4), torch.randint(0, 4, (500,))
    values = feed(Card(4, ordered=True, logits=True), z, y).compute()
    classification = torchmetrics.functional.classification
    accuracy = classification.multiclass_accuracy(z, y, 4, average="micro")
    kappa = classification.multiclass_cohen_kappa(z, y, 4, weights="quadratic")
    assert values["accuracy"].item() == pytest.approx(accuracy.item(), rel=1e-6)
    assert values["qwk"].item() == pytest.approx(kappa.item(), rel=1e-4, abs=1e-6)


def test_a_card_of_chosen_rules_costs_and_names():
    y, p, _ = tensors(k=3)
    metric = Card(3, rules=["rps", Sharp()], costs="linear", classes=["low", "middle", "high"])
    card = feed(metric, p, y).scorecard()
    assert list(metric.compute()) == ["rps", "sharp", "accuracy", "ec"]
    assert card.classes == ("low", "middle", "high")
    assert card["ec"] == vx.expected_cost(y, p.argmax(dim=1), n_classes=3, costs="linear")


def test_a_card_of_many_classes_keeps_no_table():
    k = 1500
    p = torch.softmax(torch.randn(40, k, dtype=torch.float64), dim=1)
    y = torch.randint(0, k, (40,))
    y[:10] = p[:10].argmax(dim=1)
    metric = feed(Card(k, rules=["brier"]), p, y)
    expected = vx.evaluate(y, p, rules=["brier"])
    assert metric.scorecard().confusion is None
    assert metric.compute()["accuracy"].item() == expected.accuracy > 0.2
    np.testing.assert_array_equal(metric.scorecard().class_counts, expected.class_counts)


# ---- what must not be there --------------------------------------------------------------------

GOOD = [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    ("preds", "target", "weight", "argument", "kind"),
    [
        ([0.9, 0.3, -0.2], 0, 1.0, "preds", "sign"),
        ([float("nan"), 0.5, 0.5], 0, 1.0, "preds", "sign"),
        ([float("inf"), 0.5, 0.5], 0, 1.0, "preds", "sign"),
        ([0.5, 0.2, 0.2], 0, 1.0, "preds", "sum"),
        (GOOD, 3, 1.0, "target", "label"),
        (GOOD, -1, 1.0, "target", "label"),
        (GOOD, 0, -1.0, "weights", "sign"),
        (GOOD, 0, float("inf"), "weights", "sign"),
    ],
)
@pytest.mark.parametrize("make", [lambda: Score("pbs"), lambda: Card(3, ordered=True)], ids=["score", "card"])
def test_invalid_rows_are_counted_and_reported_at_the_end(make, preds, target, weight, argument, kind):
    metric = make()
    metric.update(torch.tensor([GOOD, preds]), torch.tensor([0, target]), torch.tensor([1.0, weight]))
    metric.update(torch.tensor([GOOD]), torch.tensor([2]))
    with pytest.raises(vx.InputError) as caught:
        metric.compute()
    error = caught.value
    assert (error.argument, error.kind, error.count) == (argument, kind, 1)
    assert (passing("if these are logits", logits=True) in error.remedies) == (argument == "preds")
    metric.reset()
    metric.update(torch.tensor([GOOD]), torch.tensor([2]))
    metric.compute()


def test_invalid_logits():
    for row in ([0.0, float("nan")], [0.0, float("inf")], [-float("inf")] * 2):
        metric = Score("brier", logits=True)
        metric.update(torch.tensor([row]), torch.tensor([0]))
        with pytest.raises(vx.InputError) as caught:
            metric.compute()
        assert (caught.value.kind, caught.value.remedies) == ("finite", ())
    masked = torch.tensor([[0.0, -float("inf"), 1.0]])
    assert Score("log_score", logits=True)(masked, torch.tensor([0])).item() == pytest.approx(1.3132617)


def test_no_weight_at_all():
    metric = Card(3)
    metric.update(torch.tensor([GOOD]), torch.tensor([0]), torch.tensor([0.0]))
    assert metric.compute()["brier"].isnan()
    assert metric.compute()["accuracy"].isnan()
    with pytest.raises(vx.InputError, match="not all of weight zero"):
        metric.scorecard()
    assert Score("brier")(torch.tensor([GOOD]), torch.tensor([0]), torch.tensor([0.0])).isnan()


@pytest.mark.parametrize(
    ("preds", "target", "weights", "argument", "kind"),
    [
        (torch.tensor([0, 1]), torch.rand(2, 3), None, "preds", "type"),
        (torch.rand(2, 1), torch.tensor([0, 1]), None, "preds", "type"),
        (torch.rand(2, 3), torch.rand(2, 2), None, "target", "type"),
        (torch.rand(2), torch.tensor([True, False]), None, "target", "type"),
        (torch.rand(2, 3), torch.tensor([0]), None, "target", "length"),
        (torch.rand(2, 3), torch.tensor([0, 1]), torch.ones(3), "weights", "length"),
        ([[0.5, 0.5]], torch.tensor([0]), None, "preds", "type"),
        (torch.rand(2, 3), [0, 1], None, "target", "type"),
        (torch.rand(2, 3), torch.tensor([0, 1]), [1.0, 1.0], "weights", "type"),
    ],
)
def test_forms_are_refused_at_once(preds, target, weights, argument, kind):
    for call in (Score("brier").update, Loss("brier")):
        with pytest.raises(vx.InputError) as caught:
            call(preds, target, weights)
        assert (caught.value.argument, caught.value.kind) == (argument, kind)


def test_cards_refuse_other_numbers_of_classes():
    with pytest.raises(vx.InputError) as caught:
        Card(4).update(torch.tensor([GOOD]), torch.tensor([0]))
    assert (caught.value.argument, caught.value.kind) == ("preds", "length")
    for bad in (1, 2.5, "3", 10**30):
        with pytest.raises(vx.InputError) as caught:
            Card(bad)
        assert caught.value.argument == "n_classes"
    for n_classes in (1, True, 2.5):
        with pytest.raises(vx.InputError) as caught:
            Card(n_classes)
        assert (caught.value.argument, caught.value.values) == ("n_classes", (n_classes,))


def test_a_card_of_sums_has_the_finite_mean_beside_heavy_infinite_rows():
    metric = Card(2, rules=["log_score"])
    p, y = torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([0, 0])
    metric.update(p, y, torch.tensor([1e30, 1.0], dtype=torch.float64))
    score = metric.scorecard().scores["log_score"]
    assert (score.mean, score.infinite_weight) == (float("inf"), 1e30)
    assert score.finite_mean == pytest.approx(np.log(2), rel=1e-15)


# ---- losses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GRADIENTS, ids=lambda case: case["id"])
def test_losses_and_gradients_of_the_vectors(case):
    logits = [[number(z) for z in case["params"]["logits"]]]
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = Loss(case["params"]["base"])(z, torch.tensor([case["y"]]))
    loss.backward()
    expected = case["expected"]
    assert loss.item() == pytest.approx(number(expected["score"]), rel=1e-12)
    np.testing.assert_allclose(z.grad[0], [number(g) for g in expected["grad"]], rtol=1e-10, atol=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("rule", [*SMOOTH, Sharp()], ids=repr)
def test_a_loss_is_what_verax_says_and_its_gradient_what_differences_say(rule):
    y, _, w = tensors(n=12)
    z = torch.randn(12, 4, dtype=torch.float64, requires_grad=True)
    expected = rule(y, z.detach(), weights=w, logits=True)
    assert Loss(rule)(z, y, w).item() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda z: Loss(rule, reduction="none")(z, y, w), z)


@pytest.mark.parametrize("rule", [*SMOOTH, Sharp()], ids=repr)
def test_extreme_logits_have_finite_losses_and_gradients(rule):
    rows = [[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [-1e4, -1e4, 1e4], [1e4, 0.0, -1e4]]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        z = torch.tensor(rows * 3, dtype=dtype, requires_grad=True)
        loss = Loss(rule)(z, torch.arange(3).repeat_interleave(4))
        loss.backward()
        assert loss.isfinite()
        assert z.grad.isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_log_loss_is_cross_entropy(reduction):
    z, y = torch.randn(50, 6), torch.randint(0, 6, (50,))
    per_class = torch.rand(6)
    for weight in (None, per_class):
        theirs = torch.nn.CrossEntropyLoss(weight=weight, reduction=reduction)
        ours = Loss("log_score", reduction=reduction, class_weights=weight)
        torch.testing.assert_close(ours(z, y), theirs(z, y))
    maps, labels = torch.randn(2, 6, 5, 4), torch.randint(0, 6, (2, 5, 4))
    torch.testing.assert_close(ours(maps, labels), theirs(maps, labels))


def test_class_weights_and_sample_weights_multiply():
    z, y, w = torch.randn(50, 3), torch.randint(0, 3, (50,)), torch.rand(50)
    per_class = torch.tensor([1.0, 2.0, 0.5])
    expected = vx.brier(y, z, weights=w * per_class[y], logits=True)
    for given in (per_class, per_class.tolist()):
        assert Loss("brier", class_weights=given)(z, y, w).item() == pytest.approx(expected, rel=1e-6)
    for bad in (torch.ones(4), "abc", 0.5, [[1.0]]):
        with pytest.raises(vx.InputError) as caught:
            Loss("brier", class_weights=bad)(z, y)
        assert caught.value.argument == "class_weights"


def test_penalized_losses_have_the_gradient_of_the_rule_inside():
    z = torch.randn(30, 4, requires_grad=True)
    y = torch.randint(0, 4, (30,))
    for inner in (vx.brier, vx.log_score):
        plain, penalized = Loss(inner)(z, y), Loss(vx.penalized(inner))(z, y)
        assert penalized > plain
        gradients = [torch.autograd.grad(loss, z)[0] for loss in (plain, penalized)]
        torch.testing.assert_close(*gradients)


def test_half_precision_logits_are_widened():
    z, y = torch.randn(64, 5, dtype=torch.bfloat16, requires_grad=True), torch.randint(0, 5, (64,))
    loss = Loss("rps")(z, y)
    loss.backward()
    # It has the type of cross entropy, and is rounded once.
    assert (loss.dtype, z.grad.dtype) == (torch.bfloat16, torch.bfloat16)
    exact = torch.tensor(vx.rps(y, z.detach().float(), logits=True))
    assert loss.item() == exact.to(torch.bfloat16).item()
    model = torch.nn.Linear(3, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(torch.randn(64, 3))
        assert logits.dtype == torch.bfloat16
        Loss("log_score")(logits, y).backward()
    assert model.weight.grad.isfinite().all()


@pytest.mark.parametrize("rule", STEPS, ids=repr)
def test_rules_without_a_gradient_are_refused(rule):
    with pytest.raises(vx.errors.RuleError, match="must change with the probabilities"):
        Loss(rule)


def test_bad_arguments_of_losses():
    with pytest.raises(vx.InputError) as caught:
        Loss("brier", reduction="max")
    assert (caught.value.argument, caught.value.values) == ("reduction", ("max",))
    with pytest.raises(vx.errors.ParseError, match="Did you mean 'brier'"):
        Loss("briar")
    for bad in (-1, 3):
        with pytest.raises(vx.InputError) as caught:
            Loss("brier")(torch.randn(2, 3), torch.tensor([0, bad]))
        assert (caught.value.rows, caught.value.values) == ((1,), (bad,))


def test_losses_compile_to_one_graph():
    # This rule asks for modes, cumulative sums and logarithms all at once.
    loss = Loss(vx.penalized(vx.ranked_log, 1.0))
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    z, y = torch.randn(20, 4), torch.randint(0, 4, (20,))
    torch.testing.assert_close(compiled(z, y), loss(z, y))
    assert compiled(z, torch.full((20,), 4)).isnan()


def test_training_by_rps_lowers_it():
    torch.manual_seed(0)
    x = torch.randn(300, 3)
    y = (x[:, 0] + 0.5 * torch.randn(300)).mul(1.5).round().clamp(-2, 2).long() + 2
    model, loss = torch.nn.Linear(3, 5), Loss("rps")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = vx.rps(y, model(x).detach(), logits=True)
    for _ in range(60):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    assert vx.rps(y, model(x).detach(), logits=True) < before / 2


@pytest.mark.parametrize(
    ("missing", "use", "message"),
    [
        ("torch", "from verax.adapters.torch import Loss", "verax.adapters.torch needs PyTorch"),
        # Losses do without it.
        (
            "torchmetrics",
            "from verax.adapters import torch; print(torch.Loss('rps')); torch.Score",
            "Loss(rps, reduction='mean')\nScore needs torchmetrics",
        ),
    ],
    ids=["torch", "torchmetrics"],
)
def test_missing_packages_are_named(missing, use, message):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport verax as vx\ntry:\n    {use}\n"
    code += "except vx.errors.MissingPackageError as error:\n    print(error)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == f"{message}: {installing('torch')}.\n"


# ---- rows to leave out -------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore_index", [-100, 255, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_targets_are_those_of_cross_entropy(reduction, ignore_index, weighted):
    torch.manual_seed(1)
    options = {"reduction": reduction, "ignore_index": ignore_index}
    per_class = torch.rand(6) if weighted else None
    ours = Loss("log_score", class_weights=per_class, **options)
    theirs = torch.nn.CrossEntropyLoss(weight=per_class, **options)
    for shape in ((50,), (2, 5, 4)):
        z = torch.randn(shape[0], 6, *shape[1:], requires_grad=True)
        y = torch.randint(0, 6, shape)
        y[torch.rand(shape) < 0.3] = ignore_index
        values = [loss(z, y) for loss in (ours, theirs)]
        torch.testing.assert_close(*values)
        gradients = [torch.autograd.grad(value.sum(), z)[0] for value in values]
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("rule", [*SMOOTH, Sharp()], ids=repr)
def test_ignored_rows_count_for_nothing_whatever_they_hold(rule):
    torch.manual_seed(2)
    y, z, w = torch.randint(0, 4, (40,)), torch.randn(40, 4, dtype=torch.float64), torch.rand(40)
    ignored = torch.rand(40) < 0.4
    target, weights = y.where(~ignored, torch.tensor(-100)), w.where(~ignored, torch.nan)
    broken = z.where(~ignored[:, None], torch.nan).requires_grad_()
    loss = Loss(rule, ignore_index=-100)
    expected = rule(y[~ignored], z[~ignored], weights=w[~ignored], logits=True)
    value = loss(broken, target, weights)
    assert value.item() == pytest.approx(expected, rel=1e-6)
    value.backward()
    assert (broken.grad[ignored] == 0).all()
    assert broken.grad[~ignored].isfinite().all()


def test_a_loss_that_ignores_rows_compiles_to_one_graph():
    loss = Loss("rps", ignore_index=-100)
    z, y = torch.randn(20, 4), torch.randint(0, 4, (20,))
    y[::3] = -100
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(z, y), loss(z, y))


def test_a_loss_of_ignored_rows_alone_is_that_of_cross_entropy():
    z, y = torch.randn(3, 4), torch.full((3,), -100)
    with pytest.warns(RuntimeWarning, match="no row to score"):
        assert Loss("rps", ignore_index=-100)(z, y).isnan()
    assert torch.nn.CrossEntropyLoss()(z, y).isnan()
    assert Loss("rps", ignore_index=-100, reduction="sum")(z, y).item() == 0


@pytest.mark.parametrize("logits", [False, True])
def test_metrics_leave_ignored_rows_out(logits):
    y, p, w = tensors()
    preds = p.log() if logits else p
    ignored = torch.arange(600) % 3 == 0
    target = y.where(~ignored, torch.tensor(-100))
    broken = preds.where(~ignored[:, None], torch.nan)
    kept = [x[~ignored].numpy() for x in (y, p, w)]
    score = feed(Score("rps", logits=logits, ignore_index=-100), broken, target, w)
    assert score.compute().item() == pytest.approx(vx.rps(*kept[:2], weights=kept[2]), rel=1e-12)
    card = feed(Card(4, ordered=True, logits=logits, ignore_index=-100), broken, target, w)
    expected = vx.evaluate(kept[0], kept[1], weights=kept[2], ordered=True)
    result = card.scorecard()
    assert result.n_rows == expected.n_rows == 400
    assert result.accuracy == pytest.approx(expected.accuracy, rel=1e-12)
    assert result["log_score"] == pytest.approx(expected["log_score"], rel=1e-12)
    maps, labels = torch.randn(4, 3, 5, 6, dtype=torch.float64), torch.randint(0, 3, (4, 5, 6))
    labels[0] = 255
    own = Score("rps", logits=True, ignore_index=255)(maps, labels)
    assert own.item() == pytest.approx(Score("rps", logits=True)(maps[1:], labels[1:]).item(), rel=1e-12)


def test_which_index_is_ignored_is_said_and_checked():
    assert "ignore_index=-100" in repr(Loss("rps", ignore_index=-100))
    for bad in (1.0, True, "-100"):
        for make in (
            lambda bad=bad: Loss("rps", ignore_index=bad),
            lambda bad=bad: Card(3, ignore_index=bad),
        ):
            with pytest.raises(vx.InputError) as caught:
                make()
            assert (caught.value.argument, caught.value.kind) == ("ignore_index", "type")
    with pytest.raises(vx.InputError, match=r"ignore_index=-100"):
        Loss("rps")(torch.randn(2, 3), torch.tensor([0, -100]))
    # Another target outside the classes is still an error.
    with pytest.raises(vx.InputError):
        Loss("rps", ignore_index=-100)(torch.randn(2, 3), torch.tensor([-100, -1]))


def test_refinement_is_that_of_all_rows_that_count():
    torch.manual_seed(0)
    z, y = 3 * torch.randn(200, 4), torch.randint(4, (200,))
    w = torch.rand(200)
    metric = RefinementScore("log_score", logits=True, ignore_index=-100)
    marked = torch.where(torch.arange(200) % 5 == 0, -100, y)
    for part in torch.arange(200).split(64):
        metric.update(z[part].to(torch.bfloat16), marked[part], w[part])
    kept = marked >= 0
    expected = RefinementLoss()(y[kept], z.to(torch.bfloat16).float()[kept], weights=w[kept], logits=True)
    assert metric.compute().item() == pytest.approx(expected, rel=1e-9)
    chances = RefinementScore()
    chances.update(torch.full((9, 3), 0.2), torch.zeros(9).long())
    with pytest.raises(vx.InputError, match="`preds` rows must sum to 1"):
        chances.compute()
