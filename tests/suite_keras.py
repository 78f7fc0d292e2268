"""Rules as Keras metrics and losses, on one backend; `adapters/test_keras.py` runs this on each."""

from __future__ import annotations

import math
import os
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

import references
import verax as vx
from cases import RULES, forecasts, number
from lazily import lazily
from verax.rules import Holds, Properties
from verax.selection import RefinementLoss

keras, ops, adapter = map(lazily, ("keras", "keras.ops", "verax.adapters.keras"))
VECTORS = references.entries()
GRADIENTS = [case for case in VECTORS if case["rule"] == "grad_logits"]
SMOOTH = [rule for rule in RULES if not isinstance(rule, vx.rules.ZeroOne)]
BACKEND = os.environ["KERAS_BACKEND"]

pytestmark = [
    pytest.mark.frameworks,
    # Keras's own variables, when NumPy reads them.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword"),
]


@dataclass(frozen=True, repr=False)
class Sharp(vx.rules.Rule):
    """A rule that verax does not have: no adapter can know it."""

    name = "sharp"
    needs = frozenset({"rest_sq"})
    properties = Properties(**dict.fromkeys(Properties.__dataclass_fields__, Holds.UNKNOWN))

    def formula(self, stats):
        return stats.xp.pow(1 - stats.p_true, 3) + stats.rest_sq

    def bounds(self, n_classes):
        return 0.0, 2.0


def rows(n=200, k=4, seed=0):
    y, p = forecasts(n, k, seed, ties=False)
    w = np.random.default_rng(seed).exponential(size=n).astype(np.float32)
    return y, p.astype(np.float32), w


def score(rule, *batches, **options):
    metric = adapter.Score(rule, **options)
    for batch in batches:
        metric.update_state(*batch)
    return float(metric.result())


# ---- metrics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES, Sharp()], ids=repr)
def test_a_score_is_what_verax_says_of_all_rows(rule):
    first, second = rows(), rows(seed=1)
    y, p, w = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    assert score(rule, first, second) == pytest.approx(rule(y, p, weights=w), rel=2e-6)
    y, p, w = first
    expected = pytest.approx(rule(y, p, weights=w), rel=2e-6)
    assert score(rule, (np.eye(4, dtype=np.float32)[y], p, w)) == expected
    assert score(rule, (y[:, None], p, w[:, None])) == expected
    z = np.random.default_rng(1).normal(size=p.shape).astype(np.float32) * 3
    assert score(rule, (y, z), from_logits=True) == pytest.approx(rule(y, z, logits=True), rel=2e-6)


def test_tied_forecasts():
    y, p = forecasts(200, 4)
    assert score("pbs", (y, p.astype(np.float32))) == pytest.approx(vx.pbs(y, p.astype(np.float32)), rel=1e-6)


def test_the_columns_of_binary_models():
    y, p, w = rows(k=2)
    for column in (p[:, 1], p[:, 1:]):
        assert score("brier", (y, column, w)) == pytest.approx(vx.brier(y, p[:, 1], weights=w), rel=1e-6)
    z = np.random.default_rng(1).normal(size=(200, 1)).astype(np.float32)
    expected = vx.log_score(y, z[:, 0], logits=True)
    assert score("log_score", (y[:, None], z), from_logits=True) == pytest.approx(expected, rel=1e-6)
    assert float(adapter.Loss("log_score", from_logits=True)(y, z)) == pytest.approx(expected, rel=1e-6)


def test_sequences_weights_and_masks():
    y, p, w = rows(n=60, k=3)
    steps, flat = p.reshape(12, 5, 3), vx.rps(y, p, weights=w)
    assert score("rps", (y.reshape(12, 5), steps, w.reshape(12, 5))) == pytest.approx(flat, rel=1e-6)
    each = np.repeat(w[:12], 5)
    assert score("rps", (y.reshape(12, 5), steps, w[:12])) == pytest.approx(
        vx.rps(y, p, weights=each), rel=1e-6
    )
    mask = np.arange(60).reshape(12, 5) % 5 < 3
    labels = np.where(mask, y.reshape(12, 5), -1)
    tensor = ops.convert_to_tensor(steps)
    keras.src.backend.set_keras_mask(tensor, ops.convert_to_tensor(mask))
    kept = mask.reshape(-1)
    assert score("rps", (labels, tensor)) == pytest.approx(vx.rps(y[kept], p[kept]), rel=1e-6)
    losses = adapter.Loss("rps", reduction=None)(y.reshape(12, 5), steps)
    np.testing.assert_allclose(ops.convert_to_numpy(losses).reshape(-1), vx.rps.samples(y, p), rtol=1e-5)


def test_infinite_losses_and_rows_that_are_none():
    good = (np.array([0]), np.array([[0.5, 0.3, 0.2]], np.float32))
    certain = np.array([[0.0, 1.0, 0.0]], np.float32)
    assert score("log_score", good, (np.array([0]), certain)) == math.inf
    assert score("log_score", good, (np.array([0]), certain, np.array([0.0]))) == pytest.approx(math.log(2))
    bad = [
        (np.array([3]), good[1]),
        (np.array([-1]), good[1]),
        (np.array([0.5]), good[1]),
        (np.array([[0.5, 0.2, 0.0]]), good[1]),
        (np.array([[1.2, -0.2, 0.0]]), good[1]),
        (np.array([0]), np.array([[0.5, 0.3, 0.1]], np.float32)),
        (np.array([0]), np.array([[1.2, -0.1, -0.1]], np.float32)),
        (np.array([0]), np.array([[np.nan, 0.5, 0.5]], np.float32)),
        (np.array([0]), good[1], np.array([-1.0])),
    ]
    for batch in bad:
        assert math.isnan(score("brier", good, batch, good))
    for logits in ([0.0, math.nan], [math.inf, 0.0], [-math.inf] * 2):
        assert math.isnan(score("brier", (np.array([0]), np.array([logits], np.float32)), from_logits=True))
    masked = np.array([[0.0, -math.inf, 1.0]], np.float32)
    assert score("brier", (np.array([0]), masked), from_logits=True) == pytest.approx(2 * 0.7310586**2)
    assert math.isnan(float(adapter.Score("brier").result()))
    assert math.isnan(score("brier", (*good, np.array([0.0]))))
    with pytest.raises(vx.InputError, match=r"`y_true` must be class positions, or rows of 3 classes"):
        score("brier", (np.zeros((1, 2)), good[1]))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_rows_that_are_no_numbers_are_counted_and_the_first_is_named(rule):
    metric = adapter.Score(rule, from_logits=True)
    y, logits = np.arange(5) % 3, np.zeros((5, 3), np.float32)
    metric.update_state(y, logits)
    assert (metric.n_invalid, metric.first_invalid) == (0, None)
    logits[2, 1], logits[4] = np.nan, -np.inf
    for _ in range(2):
        metric.update_state(y, logits)
    assert math.isnan(float(metric.result()))
    assert (metric.n_invalid, metric.first_invalid) == (4, (2, 2))
    metric.reset_state()
    assert (metric.n_invalid, metric.first_invalid) == (0, None)


@pytest.mark.parametrize("rule", [*SMOOTH, vx.rules.Log(clip=0.01)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_losses_of_rows_that_are_no_numbers(rule, dtype):
    y, logits = np.arange(5) % 3, np.zeros((5, 3), dtype)
    logits[2, 1], logits[4] = np.nan, -np.inf
    loss = adapter.Loss(rule, from_logits=True, reduction=None)
    losses = ops.convert_to_numpy(loss(y, ops.convert_to_tensor(logits)))
    assert np.isnan(losses).tolist() == [False, False, True, False, True]
    masked = np.array([[0.0, -np.inf, 0.0]] * 2, "float32")
    far = np.where(np.isinf(masked), np.float32(-80), masked)
    limits = [ops.convert_to_numpy(loss(np.array([0, 2]), ops.convert_to_tensor(z))) for z in (masked, far)]
    np.testing.assert_allclose(*limits, rtol=1e-6)


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
def test_the_loss_of_labels_is_their_mean(rule):
    rng = np.random.default_rng(5)
    z, y = rng.normal(size=(6, 3)).astype("float32"), rng.integers(0, 2, (6, 3)).astype("float32")
    p = 1 / (1 + np.exp(-z.astype(float)))
    losses = rule.samples(y.astype(int).reshape(-1), p.reshape(-1)).reshape(y.shape)
    for given, logits in ((z, True), (p.astype("float32"), False)):
        loss = adapter.Loss(rule, from_logits=logits, labels=True, reduction=None)
        np.testing.assert_allclose(ops.convert_to_numpy(loss(y, given)), losses.mean(axis=1), rtol=1e-4)
    masked = y.copy()
    masked[0, 1], masked[3] = -1, -1
    kept = masked != -1
    expected = [row[at].mean() for row, at in zip(losses, kept, strict=True) if at.any()]
    loss = adapter.Loss(rule, from_logits=True, labels=True, ignore_class=-1)
    again = adapter.Loss.from_config(loss.get_config())
    assert float(again(masked, np.where(kept, z, np.nan))) == pytest.approx(np.mean(expected), rel=1e-4)


def test_the_mean_of_ignored_rows_alone_is_not_zero():
    z, y = np.zeros((3, 4), "float32"), np.full(3, -1)
    warns = pytest.warns(RuntimeWarning, match="no row to score") if BACKEND == "torch" else nullcontext()
    with warns:
        assert math.isnan(float(adapter.Loss("rps", from_logits=True, ignore_class=-1)(y, z)))
    assert float(adapter.Loss("rps", from_logits=True, ignore_class=-1, reduction="sum")(y, z)) == 0


def test_half_precision_predictions():
    y, p, _ = rows()
    half = ops.cast(p, "bfloat16")
    wide = np.asarray(ops.convert_to_numpy(ops.cast(half, "float32")), np.float64)
    expected = vx.brier.by_outcome(wide / wide.sum(axis=1, keepdims=True))[np.arange(200), y].mean()
    assert score("brier", (y, half)) == pytest.approx(expected, rel=1e-2)


def compiled(metric):
    """`metric.update_state` as the backend compiles it, where it does."""
    if BACKEND == "jax":
        import jax

        step = jax.jit(metric.stateless_update_state)

        def update(*batch):
            values = step([v.value for v in metric.variables], *batch)
            for variable, value in zip(metric.variables, values, strict=True):
                variable.assign(value)

        return update
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(metric.update_state, jit_compile=True)
    return metric.update_state


def test_compilers_leave_the_sums_exact():
    metric = adapter.Score("brier")
    update = compiled(metric)
    y, p = np.array([0]), np.array([[0.75, 0.25]], np.float32)
    update(y, p, np.array([2.0**26], np.float32))
    for _ in range(64):
        update(y, 1 - p, np.array([1.0], np.float32))
    sums = ops.convert_to_numpy(metric.variables[0]).astype(np.float64).sum(axis=0)
    assert sums.tolist() == [2.0**26 + 64, 2.0**26 * 0.125 + 64 * 1.125, 0.0]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_metrics_and_losses_go_by_their_text(rule):
    copy = adapter.Score.from_config(adapter.Score(rule, from_logits=True, name="mine").get_config())
    assert (copy.rule, copy.from_logits, copy.name) == (rule, True, "mine")
    assert adapter.Score(rule).name == adapter.Score(vx.parse(repr(rule))).name
    if rule in SMOOTH:
        again = keras.losses.deserialize(keras.losses.serialize(adapter.Loss(rule, reduction="sum")))
        assert (again.rule, again.from_logits, again.reduction) == (rule, False, "sum")


# ---- losses ------------------------------------------------------------------------------------


def gradient(function, z, *, compiled=False):
    """A function of an array and its gradient there, by the backend's own means."""
    if BACKEND == "torch":
        import torch

        z = torch.tensor(z, requires_grad=True)
        value = function(z)
        value.backward()
        return value.item(), z.grad.numpy()
    if BACKEND == "jax":
        import jax

        both = jax.value_and_grad(function)
        value, slope = (jax.jit(both) if compiled else both)(jax.numpy.asarray(z))
        return float(value), np.asarray(slope)
    import tensorflow as tf

    z = tf.Variable(z)
    with tf.GradientTape() as tape:
        value = function(z)
    return float(value), tape.gradient(value, z).numpy()


def test_losses_and_gradients_of_the_vectors():
    # Those of one rule and number of classes at once, and few of them on JAX: each compiles anew.
    groups = {}
    for case in GRADIENTS:
        if BACKEND == "jax" and len(case["params"]["logits"]) > 3:
            continue
        groups.setdefault((case["params"]["base"], len(case["params"]["logits"])), []).append(case)
    for (base, _), cases in groups.items():
        z = np.array([[number(v) for v in case["params"]["logits"]] for case in cases], np.float32)
        y = np.array([case["y"] for case in cases])
        loss = adapter.Loss(base, from_logits=True, reduction="sum")
        value, slope = gradient(lambda z, loss=loss, y=y: loss(y, z), z, compiled=True)
        expected = [case["expected"] for case in cases]
        assert value == pytest.approx(sum(number(e["score"]) for e in expected), rel=1e-5, abs=1e-7)
        gradients = [[number(g) for g in e["grad"]] for e in expected]
        np.testing.assert_allclose(slope, gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rule", [*SMOOTH, Sharp()], ids=repr)
def test_losses_are_what_verax_says_and_extreme_logits_harmless(rule):
    y, p, _ = rows()
    assert float(adapter.Loss(rule)(y, p)) == pytest.approx(rule(y, p), rel=2e-6)
    extreme = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [1e4, 0.0, -1e4]] * 3, np.float32)
    outcomes = np.repeat(np.arange(3), 3)
    value, slope = gradient(lambda z: adapter.Loss(rule, from_logits=True)(outcomes, z), extreme)
    assert value == pytest.approx(rule(outcomes, extreme, logits=True), rel=1e-5)
    assert np.isfinite(slope).all()


def test_the_log_loss_is_cross_entropy():
    y, _, w = rows()
    z = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
        theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
        ours = adapter.Loss("log_score", from_logits=True, reduction=reduction)
        assert float(ours(y, z, w)) == pytest.approx(float(theirs(y, z, w)), rel=1e-5)


def test_soft_targets_smoothing_and_ignored_classes_are_those_of_cross_entropy():
    y, _, w = rows(n=40)
    rng = np.random.default_rng(2)
    z, soft = rng.normal(size=(40, 4)).astype(np.float32), rng.dirichlet(np.ones(4), 40).astype(np.float32)
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    ours = adapter.Loss("log_score", from_logits=True, label_smoothing=0.1)
    assert float(ours(soft, z, w)) == pytest.approx(float(theirs(soft, z, w)), rel=1e-5)
    again = adapter.Loss.from_config(ours.get_config())
    assert float(again(soft, z, w)) == float(ours(soft, z, w))
    for rule in (vx.rps, vx.ranked_log):
        expected = rule(soft.astype(float), z.astype(float), raters="shares", logits=True)
        assert float(adapter.Loss(rule, from_logits=True)(soft, z)) == pytest.approx(expected, rel=1e-5)
        assert score(rule, (soft, z), from_logits=True) == pytest.approx(expected, rel=1e-5)
    marked = np.where(np.arange(40) % 4 == 0, 255, y)
    kept = marked != 255
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255)
    ours = adapter.Loss("log_score", from_logits=True, ignore_class=255)
    assert float(ours(marked, z)) == pytest.approx(float(sparse(marked, z)), rel=1e-5)
    assert float(ours(marked, z)) == pytest.approx(vx.log_score(y[kept], z[kept], logits=True), rel=1e-5)
    assert score("rps", (marked, z), from_logits=True, ignore_class=255) == pytest.approx(
        vx.rps(y[kept], z[kept], logits=True), rel=1e-5
    )
    with pytest.raises(vx.InputError, match="`ignore_class` cannot name a class"):
        adapter.Loss("rps", from_logits=True, ignore_class=2)(soft, z)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16", None])
def test_sums_keep_their_precision_in_half_precision_models(dtype):
    y, p, _ = rows(n=3000, k=3)
    half = ops.cast(p, dtype.rpartition("_")[2] if dtype else "float16")
    metric = adapter.Score("brier", dtype=dtype)
    for _ in range(30):
        metric.update_state(y, half)
    wide = ops.convert_to_numpy(ops.cast(half, "float32")).astype(float)
    expected = ((wide - np.eye(3)[y]) ** 2).sum(axis=1).mean()
    assert float(metric.result()) == pytest.approx(expected, rel=2e-6)
    loss = float(adapter.Loss("brier", dtype=dtype)(y, half))
    assert loss == pytest.approx(expected, rel=1e-5)


def test_bad_losses():
    with pytest.raises(vx.errors.RuleError, match="must change with the probabilities"):
        adapter.Loss("zero_one")
    good = np.full((2, 3), 1 / 3, np.float32)
    refused = [
        ("`y_true` must hold class positions from 0 to 2; row 1 holds 3", np.array([0, 3]), good, None),
        ("`y_true` rows must be distributions", np.array([[1.0, 0, 0], [0.5, 0.2, 0]]), good, None),
        ("`sample_weight` must be finite and not negative", np.array([0, 1]), good, np.array([1.0, -1.0])),
        # Raw outputs of a layer without an activation, as if they were probabilities.
        ("`y_pred` rows must be probabilities.*from_logits=True", np.array([0, 1]), 3 * good, None),
    ]
    for message, y, p, w in refused:
        if BACKEND == "torch":
            with pytest.raises(vx.InputError, match=message):
                adapter.Loss("brier")(y, p, w)
        else:
            assert math.isnan(float(adapter.Loss("brier")(y, p, w)))


def test_the_numbers_of_the_package_of_the_paper():
    y, p, _ = rows(k=4)
    as_released = vx.penalized(vx.rules.Brier("mean"), 3 / 4)
    assert score(as_released, (y, p)) == pytest.approx(vx.compat.pbs(y, p), rel=1e-5)
    assert score("pll", (y, p)) == pytest.approx(vx.compat.pll(y, p), rel=1e-5)


# ---- training ----------------------------------------------------------------------------------


def predictions(x):
    """A callback that keeps what the model forecasts after each epoch."""

    class Predictions(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.kept.append(self.model.predict(x, batch_size=BATCH, verbose=0))

    callback = Predictions()
    callback.kept = []
    return callback


BATCH = 20


def data():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 4)).astype(np.float32)
    y = np.clip(np.rint(x[:, 0] + rng.normal(size=200)), -1, 1).astype(int) + 1
    return x[:60], y[:60], x[60:], y[60:]


def network(activation=None):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3, activation=activation)]
    return keras.Sequential([keras.layers.Input((4,)), *layers])


def test_callbacks_watch_a_score_and_keep_the_best_epoch(tmp_path):
    x, y, held_x, held_y = data()
    model = network()
    model.compile(
        keras.optimizers.Adam(0.05),
        loss=adapter.Loss("rps", from_logits=True),
        metrics=[adapter.Score("pbs", from_logits=True)],
        weighted_metrics=[adapter.Score("brier", from_logits=True)],
    )
    watched = predictions(held_x)
    refined = adapter.RefinementScore(held_x, held_y, rule="brier", from_logits=True, batch_size=BATCH)
    stop = keras.callbacks.EarlyStopping("val_pbs", mode="min", patience=3, restore_best_weights=True)
    keep = keras.callbacks.ModelCheckpoint(
        tmp_path / "best.keras", monitor="val_pbs", mode="min", save_best_only=True
    )
    w = np.linspace(0.5, 1.5, len(held_y)).astype(np.float32)
    history = model.fit(
        x, y, batch_size=BATCH, epochs=30, verbose=0,
        validation_data=(held_x, held_y, w), callbacks=[watched, refined, stop, keep],
    ).history  # fmt: skip
    values = [vx.pbs(held_y, z, logits=True) for z in watched.kept]
    assert history["val_pbs"] == pytest.approx(values, rel=1e-5)
    weighted = [vx.brier(held_y, z, logits=True, weights=w) for z in watched.kept]
    assert history["val_brier"] == pytest.approx(weighted, rel=1e-5)
    loss = RefinementLoss("brier")
    scaled = [loss(held_y, z, logits=True) for z in watched.kept]
    assert history["val_refinement"] == pytest.approx(scaled, rel=1e-5)
    best = int(np.argmin(values))
    assert len(values) == best + 1 + 3 < 30
    np.testing.assert_allclose(
        model.predict(held_x, batch_size=BATCH, verbose=0), watched.kept[best], rtol=1e-5, atol=1e-6
    )
    loaded = keras.models.load_model(tmp_path / "best.keras")
    assert loaded.loss.rule == vx.rps
    results = loaded.evaluate(held_x, held_y, batch_size=BATCH, verbose=0, return_dict=True)
    assert results["pbs"] == pytest.approx(values[best], rel=1e-5)
    assert results["loss"] == pytest.approx(vx.rps(held_y, watched.kept[best], logits=True), rel=1e-5)


def test_a_mixed_precision_model_is_scored_in_full():
    x, y, held_x, held_y = data()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = network("softmax")
        model.compile("sgd", loss=adapter.Loss("rps"), metrics=[adapter.Score("log_score")])
        options = {"batch_size": BATCH, "verbose": 0, "return_dict": True}
        model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
        found = model.evaluate(held_x, held_y, **options)
        p = np.asarray(model.predict(held_x, batch_size=BATCH, verbose=0))
    finally:
        keras.config.set_dtype_policy("float32")
    assert p.dtype == np.float16
    exact = -np.log(p.astype(float)[np.arange(len(held_y)), held_y]).mean()
    assert found["log_score"] == pytest.approx(exact, rel=1e-6)


def test_probabilities_one_hot_rows_and_a_rule_of_ones_own(tmp_path, monkeypatch):
    x, y, held_x, held_y = data()
    hot = np.eye(3, dtype=np.float32)
    model = network("softmax")
    model.compile(
        "adam",
        loss=adapter.Loss(Sharp()),
        metrics=[adapter.Score("pbs"), adapter.Score("pll"), adapter.Score(Sharp())],
    )
    # Without a mode these callbacks ask the metric which way is better.
    callbacks = [keras.callbacks.EarlyStopping("val_pbs"), keras.callbacks.ReduceLROnPlateau("val_pll")]
    history = model.fit(
        x, hot[y], batch_size=BATCH, epochs=2, verbose=0,
        validation_data=(held_x, hot[held_y]), callbacks=callbacks,
    ).history  # fmt: skip
    p = model.predict(held_x, batch_size=BATCH, verbose=0)
    for name, rule in (("pbs", vx.pbs), ("pll", vx.pll), ("sharp", Sharp()), ("loss", Sharp())):
        assert history[f"val_{name}"][-1] == pytest.approx(rule(held_y, p), rel=1e-5)
    # A model goes with the text of its rules, and loads once there is a rule of that name.
    model.save(tmp_path / "model.keras")
    with pytest.raises((vx.errors.ParseError, TypeError), match="no rule called 'sharp'"):
        keras.models.load_model(tmp_path / "model.keras")
    monkeypatch.setitem(vx.rules.RULES, "sharp", Sharp())
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.loss.rule == Sharp()


def test_callbacks_have_no_validation_data():
    # The callback in the README of superior-scoring-rules asks for it (docs/errata.md).
    assert not hasattr(keras.callbacks.Callback(), "validation_data")
