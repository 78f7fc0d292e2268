"""What Ahmadian et al. (2025) tabulate: correlations with macro F1, early stopping, and folds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, f1_score

import verax as vx
from commandline import verax
from verax.selection import History, select_over_folds


def epochs(n=90, k=4, seed=0):
    """Forecasts that learn, and become too sure."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    found = {}
    for epoch in range(1, 6):
        z = rng.normal(size=(n, k))
        z[np.arange(n), y] += 0.4 * epoch
        p = np.exp(z * epoch)
        found[epoch] = y, p / p.sum(axis=1, keepdims=True)
    return found


def test_metrics_of_a_card_are_measured_as_scikit_learn_does():
    given = epochs()
    history = History.from_predictions(given, ["brier", "qwk", "balanced_accuracy"])
    decided = [(y, p.argmax(axis=1)) for y, p in given.values()]
    expected = {
        "macro_f1": [f1_score(y, d, average="macro") for y, d in decided],
        "qwk": [cohen_kappa_score(y, d, weights="quadratic") for y, d in decided],
        "balanced_accuracy": [balanced_accuracy_score(y, d) for y, d in decided],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(history.values[name], values)
    # Table 2: the Pearson correlation of the losses with macro F1, oriented.
    found = history.select("brier", "macro_f1").correlation("brier", "macro_f1").pearson
    assert found == pytest.approx(-np.corrcoef(history.values["brier"], expected["macro_f1"])[0, 1])
    binary = {e: (y % 2, p[:, ::2].sum(axis=1)) for e, (y, p) in given.items()}
    assert {"f1", "accuracy"} < History.from_predictions(binary, ["brier"]).values.keys()


def replayed(values, patience, better):
    """The place kept and the place stopped at, by a loop of its own."""
    best, waited = 0, 0
    for i in range(1, len(values)):
        if better(values[i], values[best]):
            best, waited = i, 0
        else:
            waited += 1
            if waited >= max(patience, 1):
                return best, i
    return best, None


@pytest.mark.parametrize("patience", [0, 1, 2, 3, 5])
def test_early_stopping_is_replayed_from_a_log(patience):
    rng = np.random.default_rng(patience)
    loss, f1 = (rng.normal(size=30).cumsum() for _ in range(2))
    epoch = 3 * np.arange(30)
    history = History.from_columns({"epoch": epoch, "val_pbs": loss, "val_f1": f1})
    stops = history.select("pbs", "f1", patience=patience).stops
    for name, values, better in (("val_pbs", loss, np.less), ("val_f1", f1, np.greater)):
        kept, after = replayed(values, patience, better)
        assert stops[name].epoch == epoch[kept]
        assert stops[name].stopped_after == (None if after is None else epoch[after])
        assert stops[name].at("val_f1") == f1[kept]
    assert not history.select("pbs").stops


def test_epochs_without_a_value_do_not_use_up_patience():
    history = History.from_records([
        {"epoch": 0, "pbs": 0.9},
        {"epoch": 1, "loss": 1.0},
        {"epoch": 2, "loss": 1.0},
        {"epoch": 3, "pbs": 0.8},
    ])  # fmt: skip
    stop = history.select("pbs", patience=1).stops["pbs"]
    assert (stop.epoch, stop.stopped_after) == (3, None)


def test_folds_are_compared_with_the_corrected_t_test():
    """Table 3: the metric at the epoch that each rule keeps; Nadeau and Bengio's variance by hand."""
    rng = np.random.default_rng(1)
    columns = [
        {name: rng.random(12) for name in ("brier", "pbs", "test_macro_f1", "val_macro_f1")} for _ in range(5)
    ]
    histories = [History.from_columns(each) for each in columns]
    found = select_over_folds(histories, "test_macro_f1", ["brier", "pbs"])
    kept = {r: np.array([c["test_macro_f1"][np.argmin(c[r])] for c in columns]) for r in ("brier", "pbs")}
    models = {model.name: model.mean for model in next(iter(found.models.values()))}
    assert models == pytest.approx({name: values.mean() for name, values in kept.items()})
    gap = kept["brier"] - kept["pbs"]
    error = np.sqrt((1 / 5 + 1 / 4) * gap.var(ddof=1))
    half = stats.t.ppf(0.975, 4) * error
    low, high = found.difference("brier", "pbs").interval
    assert (low, high) == pytest.approx((gap.mean() - half, gap.mean() + half))
    rho = select_over_folds(histories, "val_macro_f1", ["brier", "pbs"], of="pearson")
    means = {model.name: model.mean for model in next(iter(rho.models.values()))}
    expected = [-np.corrcoef(c["pbs"], c["val_macro_f1"])[0, 1] for c in columns]
    assert means["pbs"] == pytest.approx(np.mean(expected))
    stopped = select_over_folds(histories, "test_macro_f1", ["brier", "pbs"], patience=1)
    means = {model.name: model.mean for model in next(iter(stopped.models.values()))}
    places = [replayed(c["pbs"], 1, np.less)[0] for c in columns]
    assert means["pbs"] == pytest.approx(
        np.mean([c["test_macro_f1"][i] for c, i in zip(columns, places, strict=True)])
    )
    with pytest.raises(vx.InputError, match="at least two folds"):
        select_over_folds(histories[:1], "test_macro_f1")
    with pytest.raises(vx.InputError, match="a list of histories"):
        select_over_folds(columns, "test_macro_f1")


def test_select_on_files_by_a_metric_of_a_card_with_patience(tmp_path):
    for epoch, (y, p) in epochs(60, 3).items():
        np.savez(tmp_path / f"epoch-{epoch}.npz", probs=p, labels=y)
    files = sorted(tmp_path.glob("*.npz"))
    result = verax(
        "select", *files, "--rule", "pbs", "--against", "balanced_accuracy", "--patience", 1, "--json"
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["against"] == ["balanced_accuracy"]
    assert found["stops"]["pbs"]["patience"] == 1
    history = History.from_predictions(epochs(60, 3), ["pbs", "balanced_accuracy"])
    assert found["correlations"][0]["pearson"] == pytest.approx(
        history.select("pbs", "balanced_accuracy").correlations[0].pearson
    )
    table = verax("select", *files, "--rule", "pbs", "--patience", 1).stdout
    assert "patience 1" in table


@pytest.mark.parametrize("k", [2, 3, 5])
def test_lenient_ties_are_those_of_algorithm_1_and_not_proper(k):
    """superior-scoring-rules, as `compat.pbs` repeats its NumPy code."""
    rng = np.random.default_rng(k)
    p, y = rng.multinomial(4, np.full(k, 1 / k), 3000) / 4, rng.integers(0, k, 3000)
    mean = vx.penalized(vx.parse("brier(scale='mean')"), penalty=(k - 1) / k, ties="lenient")
    assert mean(y, p) == pytest.approx(vx.compat.pbs(y, p), abs=1e-6)
    rule = vx.penalized(vx.brier, ties="lenient")
    assert vx.parse(repr(rule)) == rule
    wrong = p[np.arange(3000), y] < p.max(axis=1)
    expected = ((p - np.eye(k)[y]) ** 2).sum(axis=1) + (k - 1) / k * wrong
    np.testing.assert_allclose(rule.samples(y, p), expected, atol=1e-12)
    # The example of the errata: believing (3/5, 2/5), say one half.
    q = np.array([[3 / 5, 2 / 5]])
    assert rule.expected([[0.5, 0.5]], q)[0] == pytest.approx(1 / 2)
    assert rule.expected(q, q)[0] == pytest.approx(17 / 25)
    assert rule.properties.proper == vx.rules.Holds.NEVER
    with pytest.raises(vx.errors.RuleError, match="needs a proper rule"):
        vx.padded(rule)
