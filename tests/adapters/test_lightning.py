"""Scores in real Lightning training: callbacks watch them by name, and processes add theirs up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import verax as vx
from lazily import lazily

torch = pytest.importorskip("torch")
lightning, callbacks = lazily("lightning"), lazily("lightning.pytorch.callbacks")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from torch_processes import uneven_parts  # noqa: E402
from verax.adapters.torch import Card, Loss, RefinementScore, Score  # noqa: E402
from verax.selection import RefinementLoss  # noqa: E402

pytestmark = [
    pytest.mark.frameworks,
    # What Lightning says about small loaders without workers, and of what it uses that others deprecate.
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*"),
]

EPOCHS = 8


def classifier():
    """A small network that overfits, scored after each epoch, with what it forecast kept for the test."""

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = torch.nn.Sequential(
                torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
            )
            self.loss = Loss("log_score")
            self.val_pbs = Score("pbs", logits=True)
            self.val_log_score = Score("log_score", logits=True)
            self.val_refinement = RefinementScore("brier", logits=True)
            self.card = Card(3, ordered=True, rules=["rps"], logits=True, prefix="val_")
            self.forecasts = {}
            self.eps = 1e-8

        def training_step(self, batch):
            x, y = batch
            return self.loss(self.network(x), y)

        def validation_step(self, batch):
            x, y = batch
            logits = self.network(x)
            for metric in (self.val_pbs, self.val_log_score, self.val_refinement, self.card):
                metric.update(logits, y)
            self.log("val_pbs", self.val_pbs)
            self.log("val_log_score", self.val_log_score)
            self.log("val_refinement", self.val_refinement)
            if not self.trainer.sanity_checking:
                self.forecasts.setdefault(self.current_epoch, []).append(logits)

        def on_validation_epoch_end(self):
            self.log_dict(self.card.compute())
            self.card.reset()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.03, eps=self.eps)

    return Classifier()


def loaders():
    torch.manual_seed(9)
    x = torch.randn(240, 4)
    y = (x[:, 0] + 0.8 * torch.randn(240)).round().clamp(-1, 1).long() + 1
    train, held_out = TensorDataset(x[:60], y[:60]), TensorDataset(x[60:], y[60:])
    return DataLoader(train, batch_size=10), DataLoader(held_out, batch_size=64), y[60:]


def fit(folder, *watchers, epochs=EPOCHS, eps=1e-8, **options):
    train, held_out, y = loaders()
    model = classifier()
    model.eps = eps
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=list(watchers),
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(model, train, held_out)
    return trainer, model, y


def by_epoch(rule, model, y):
    return [rule(y, torch.cat(parts), logits=True) for _, parts in sorted(model.forecasts.items())]


@pytest.mark.long
def test_checkpoints_keep_the_best_epoch_by_each_score(tmp_path):
    keep = {
        name: callbacks.ModelCheckpoint(
            tmp_path, monitor=f"val_{name}", mode="min", filename=name + "-{epoch}"
        )
        for name in ("pbs", "log_score", "rps", "refinement")
    }
    trainer, model, y = fit(tmp_path, *keep.values())
    rules = {"pbs": vx.pbs, "log_score": vx.log_score, "rps": vx.rps, "refinement": RefinementLoss("brier")}
    best = {}
    for name, rule in rules.items():
        values = by_epoch(rule, model, y)
        assert len(values) == EPOCHS
        best[name] = min(range(EPOCHS), key=values.__getitem__)
        assert keep[name].best_model_score.item() == pytest.approx(values[best[name]], rel=1e-6)
        assert Path(keep[name].best_model_path).name == f"{name}-epoch={best[name]}.ckpt"
        assert trainer.callback_metrics[f"val_{name}"].item() == pytest.approx(values[-1], rel=1e-6)
    assert best["pbs"] != best["log_score"]
    # The kept weights are those of that epoch.
    kept = torch.load(keep["pbs"].best_model_path, weights_only=True)["state_dict"]
    model.load_state_dict(kept)
    _, held_out, _ = loaders()
    with torch.no_grad():
        logits = torch.cat([model.network(x) for x, _ in held_out])
    assert vx.pbs(y, logits, logits=True) == pytest.approx(min(by_epoch(vx.pbs, model, y)), rel=1e-6)


def test_early_stopping_watches_a_score(tmp_path):
    stop = callbacks.EarlyStopping("val_log_score", mode="min", patience=2)
    trainer, model, y = fit(tmp_path, stop, epochs=30)
    values = by_epoch(vx.log_score, model, y)
    best = min(range(len(values)), key=values.__getitem__)
    assert len(values) < 30
    assert stop.best_score.item() == pytest.approx(values[best], rel=1e-6)
    assert trainer.current_epoch - 1 == stop.stopped_epoch == best + 2


@pytest.mark.parametrize("precision", ["bf16-true", "16-true", "bf16-mixed"])
def test_half_precision_keeps_the_best_epoch(tmp_path, precision):
    keep = {
        name: callbacks.ModelCheckpoint(
            tmp_path, monitor=f"val_{name}", mode="min", filename=name + "-{epoch}"
        )
        for name in ("log_score", "rps")
    }
    # Adam divides by zero in float16 unless its epsilon is a number there.
    trainer, model, y = fit(tmp_path, *keep.values(), epochs=6, eps=1e-4, precision=precision)
    assert trainer.callback_metrics["val_log_score"].dtype == torch.float64
    for name, rule in (("log_score", vx.log_score), ("rps", vx.rps)):
        forecasts = [torch.cat(parts).double() for _, parts in sorted(model.forecasts.items())]
        values = [rule(y, z, logits=True) for z in forecasts]
        best = min(range(6), key=values.__getitem__)
        assert keep[name].best_model_score.item() == pytest.approx(values[best], rel=1e-6)
        assert Path(keep[name].best_model_path).name == f"{name}-epoch={best}.ckpt"


# ---- two processes -----------------------------------------------------------------------------


def reported(what, folder):
    """What two processes report together, in plain torch or in Lightning."""
    script = Path(__file__).parents[1] / "torch_processes.py"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", script, what, folder],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    return json.loads((folder / f"{what}.json").read_text())


@pytest.mark.long
def test_processes_together_score_what_verax_scores_of_all_rows(tmp_path):
    reports = reported("torch", tmp_path)
    p, y, w = (torch.cat(parts) for parts in zip(*uneven_parts(), strict=True))
    card = vx.evaluate(y, p, weights=w, ordered=True)
    assert len(reports) == 2
    for report in reports:
        assert report["pbs"] == pytest.approx(vx.pbs(y, p, weights=w), rel=1e-12)
        assert report["card"] == pytest.approx(
            {name: card[name] for name in (*card.scores, *card.metrics)}, rel=1e-12
        )
        assert report["rows"] == len(y)
        assert report["stds"] == pytest.approx([score.std for score in card.scores.values()], rel=1e-9)
        assert report["confusion"] == [pytest.approx(row) for row in card.confusion.tolist()]
        assert "1 of 2 rows" in report["error"]


@pytest.mark.long
def test_a_trainer_of_two_processes(tmp_path):
    report = reported("lightning", tmp_path)
    p, y, w = (torch.cat(parts) for parts in zip(*uneven_parts(), strict=True))
    expected = vx.evaluate(y, p, weights=w, ordered=True)
    assert report["val_pbs"] == pytest.approx(expected["pbs"], rel=1e-6)
    for name in ("rps", "accuracy", "qwk", "ec"):
        assert report[f"card_{name}"] == pytest.approx(expected[name], rel=1e-6)
