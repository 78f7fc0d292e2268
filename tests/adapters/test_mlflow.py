"""Cards and comparisons in a real store of MLflow."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

import verax as vx
from lazily import lazily
from verax.common.strictjson import plain

mlflow, adapter = lazily("mlflow"), lazily("verax.adapters.mlflow")
pytestmark = pytest.mark.frameworks


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty local store; mlflow-skinny brings no other kind."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    experiment = mlflow.MlflowClient().create_experiment("test")
    yield experiment
    mlflow.set_tracking_uri(before)


def forecasts(seed=0, n=200, k=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return y, 0.6 * np.eye(k)[y] + 0.4 * rng.dirichlet(np.ones(k), n)


def read(run):
    data = mlflow.get_run(run.info.run_id).data
    files = {
        f.path: mlflow.artifacts.load_text(f"{run.info.artifact_uri}/{f.path}")
        for f in mlflow.MlflowClient().list_artifacts(run.info.run_id, "verax")
    }
    return data.metrics, data.tags, files


def test_a_card_becomes_metrics_tags_and_artifacts(store, tmp_path):
    y, p = forecasts()
    card = vx.evaluate(y, p, ordered=True)
    report = tmp_path / "report.html"
    report.write_text("<p>good</p>")
    with mlflow.start_run(experiment_id=store) as run:
        logged = adapter.log_card(card, report=report)
    metrics, tags, files = read(run)
    assert metrics == logged == card.flat()
    for name, score in {**card.scores, **card.metrics}.items():
        assert metrics[name] == score.mean
        assert (metrics[f"{name}_low"], metrics[f"{name}_high"]) == score.interval
    assert tags["verax.version"] == vx.__version__
    assert tags["verax.rows"] == "200"
    assert tags["verax.classes"] == "3, ordered"
    assert tags["verax.interval"] == "95%"
    assert tags["verax.brier"].endswith("lower is better, from 0 to 2; rule brier")
    assert "higher is better" in tags["verax.qwk"]
    assert "verax.not_finite" not in tags
    assert json.loads(files["verax/scorecard.json"]) == plain(card.to_dict(stored=False))
    assert files["verax/scorecard.txt"] == str(card)
    assert files["verax/report.html"] == "<p>good</p>"


def test_infinite_scores_are_told_apart_from_metrics(store):
    y, p = forecasts()
    p[3] = np.eye(3)[(y[3] + 1) % 3]
    card = vx.evaluate(y, p, rules=["log_score", "brier"])
    assert card["log_score"] == math.inf
    with mlflow.start_run(experiment_id=store) as run:
        adapter.log_card(card)
    metrics, tags, files = read(run)
    assert all(math.isfinite(value) for value in metrics.values())
    assert "log_score" not in metrics
    assert metrics["log_score_finite_mean"] == card.scores["log_score"].finite_mean
    assert metrics["log_score_infinite_weight"] == 1
    assert tags["verax.not_finite"] == "log_score"
    assert metrics == {name: value for name, value in card.flat().items() if math.isfinite(value)}
    assert json.loads(files["verax/scorecard.json"])["scores"]["log_score"]["mean"] == "inf"


@dataclass(frozen=True, repr=False)
class Quartic(vx.rules.Rule):
    """A rule that no adapter has heard of."""

    power: int = 4
    name = "quartic"
    summary = "fourth power of what the outcome lacked"
    needs = frozenset()
    properties = vx.brier.properties

    def formula(self, stats):
        return (1 - stats.p_true) ** self.power

    def bounds(self, n_classes):
        return 0.0, 1.0


class Twin(Quartic):
    """A rule whose name is another's in the letters that MLflow accepts."""

    name = "brier_scale_half"


def test_steps_prefixes_other_runs_and_any_rule(store):
    client = mlflow.MlflowClient()
    run = client.create_run(store)
    rules = [Quartic(), "brier(scale='half')"]
    cards = [vx.evaluate(*forecasts(seed), rules=rules) for seed in range(3)]
    for step, card in enumerate(cards):
        adapter.log_card(card, prefix="val_", step=step, run_id=run.info.run_id)
    for name, rule in (("val_quartic", rules[0]), ("val_brier_scale_half", rules[1])):
        history = client.get_metric_history(run.info.run_id, name)
        assert [(m.step, m.value) for m in history] == [(i, card[rule]) for i, card in enumerate(cards)]
    _, tags, files = read(run)
    assert tags["verax.val_rows"] == "200"
    assert tags["verax.val_quartic"].startswith("fourth power of what the outcome lacked; lower is better")
    assert set(files) == {"verax/val_scorecard.json", "verax/val_scorecard.txt"}


def test_a_comparison(store):
    y, p = forecasts()
    comparison = vx.compare(y, {"new": p, "old": 0.5 * p + 0.5 / 3}, rule=["brier", "log_score"])
    with mlflow.start_run(experiment_id=store) as run:
        adapter.log_comparison(comparison)
    metrics, tags, files = read(run)
    assert metrics["brier/new"] == pytest.approx(vx.brier(y, p))
    difference = comparison.difference("new", "old", "log_score")
    pair = next(name for name in metrics if name in ("log_score/new - old", "log_score/old - new"))
    assert abs(metrics[pair]) == pytest.approx(abs(difference.difference))
    assert metrics[f"{pair}_p"] == difference.p_adjusted
    assert metrics[f"{pair}_low"] < metrics[pair] < metrics[f"{pair}_high"]
    assert tags["verax.brier_best"] == "new"
    assert metrics == comparison.flat()
    assert json.loads(files["verax/comparison.json"])["n_rows"] == 200


def test_artifacts_are_strict_json(store):
    """Infinite scores, undefined numbers and classes that are dates."""

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    y, p = [days[0], days[1]], [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    with mlflow.start_run(experiment_id=store) as run:
        adapter.log_card(vx.evaluate(y, p, classes=days))
    card = json.loads(read(run)[2]["verax/scorecard.json"], parse_constant=refuse)
    assert card["scores"]["log_score"]["mean"] == "inf"
    assert card["classes"] == [str(day) for day in days]


def test_refusals(store, tmp_path):
    y, p = forecasts()
    card = vx.evaluate(y, p, rules=["brier"])
    with pytest.raises(vx.VeraxError, match="no active run"):
        adapter.log_card(card)
    twins = vx.evaluate(y, p, rules=["brier(scale='half')", Twin()])
    with mlflow.start_run(experiment_id=store) as run:
        for call, argument in (
            (lambda: adapter.log_card({}), "card"),
            (lambda: adapter.log_comparison(card), "comparison"),
            (lambda: adapter.log_card(twins), "card"),
            (lambda: adapter.log_card(card, report=tmp_path / "none.html"), "report"),
            (lambda: adapter.log_card(card, report=3), "report"),
            (lambda: adapter.log_card(card, prefix=3), "prefix"),
            (lambda: adapter.log_card(card, step="a"), "step"),
        ):
            with pytest.raises(vx.InputError) as caught:
                call()
            assert caught.value.argument == argument
    # Nothing is logged of what is refused.
    assert read(run)[0] == {}
