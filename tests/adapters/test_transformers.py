"""Losses and metrics for the Trainer of Hugging Face transformers."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import verax as vx

pytestmark = pytest.mark.frameworks
torch = pytest.importorskip("torch")

from verax.adapters.torch import Loss  # noqa: E402
from verax.adapters.transformers import loss, metrics  # noqa: E402


def rows(shape=(6, 4)):
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=shape), requires_grad=True)
    return z, torch.tensor(rng.integers(0, shape[-1], shape[:-1]))


@pytest.mark.parametrize("rule", ["log_score", "rps", "pbs"])
def test_the_loss_is_that_of_the_rule(rule):
    z, y = rows()
    expected = Loss(rule)(z, y)
    for outputs in (OrderedDict(logits=z), (z, None)):
        torch.testing.assert_close(loss(rule)(outputs, y), expected)
    # Steps that are accumulated add up to the mean over all.
    steps = [
        loss(rule)((z[part],), y[part], num_items_in_batch=torch.tensor(6))
        for part in (slice(4), slice(4, 6))
    ]
    torch.testing.assert_close(sum(steps), expected)


def test_tokens_without_a_target_are_left_out():
    z, y = rows((3, 5, 4))
    y[1, 2:], y[0, 0] = -100, -100
    kept = y != -100
    expected = Loss("rps")(z[kept], y[kept])
    torch.testing.assert_close(loss("rps")((z,), y), expected)
    values = metrics(["rps", "brier"])((z.detach().numpy(), y.numpy()))
    assert values["rps"] == pytest.approx(expected.item(), rel=1e-12)
    assert set(values) == {"rps", "brier"}
    # Other outputs follow the logits in a tuple.
    again = metrics(["rps"])(((z.detach().numpy(), np.zeros(3)), y.numpy()))
    assert again["rps"] == values["rps"]


def test_labels_of_several_kinds():
    z = rows()[0]
    y = torch.tensor(np.random.default_rng(1).integers(0, 2, (6, 4))).float()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(z, y.double())
    torch.testing.assert_close(loss("log_score", labels=True)((z,), y), expected)


def test_metrics_are_those_of_verax_and_refuse_by_row():
    z, y = (x.detach().numpy() for x in rows())
    values = metrics(ordered=True)((z, y))
    for name, value in values.items():
        assert value == pytest.approx(getattr(vx, name)(y, z, logits=True), rel=1e-12)
    assert "rps" in values
    assert "rps" not in metrics()((z, y))
    assert np.isnan(metrics(["rps"])((z, np.full(6, -100)))["rps"])
    z[3, 1] = np.nan
    with pytest.raises(vx.InputError) as caught:
        metrics(["rps"])((z, y))
    assert caught.value.rows == (3,)
    with pytest.raises(vx.InputError, match="one class for each row"):
        metrics(["rps"])((z, y[:3]))


def test_a_trainer_trains_and_keeps_the_best_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x, labels=None):
            return {"logits": self.layer(x)}

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)).astype("float32")
    y = np.clip(np.rint(x[:, 0]), -1, 1).astype(int) + 1
    data = [{"x": torch.tensor(a), "labels": int(b)} for a, b in zip(x, y, strict=True)]
    options = transformers.TrainingArguments(
        str(tmp_path),
        num_train_epochs=3,
        eval_strategy="epoch",
        save_strategy="epoch",
        learning_rate=0.1,
        metric_for_best_model="eval_rps",
        greater_is_better=False,
        load_best_model_at_end=True,
        report_to=[],
        use_cpu=True,
        label_names=["labels"],
    )
    trainer = transformers.Trainer(
        Network(),
        options,
        train_dataset=data,
        eval_dataset=data,
        compute_loss_func=loss("rps"),
        compute_metrics=metrics(["rps", "pbs"]),
    )
    trainer.train()
    values = trainer.evaluate()
    assert values["eval_rps"] == pytest.approx(values["eval_loss"], rel=1e-4)
    assert values["eval_rps"] < 0.1
