"""The leaderboard of recalibration methods: splits, losses, win rates, and what was kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.experiments import Experiment, Rows, dealt, sizes
from boards.measuring import Ledger, Outcome
from boards.methods import METHODS, NOTHING, Method
from boards.standings import GROUPS, overview, standings, table
from boards.tables_of_rows import tidy


def test_splits_are_disjoint_and_keep_class_frequencies():
    y = np.repeat([0, 1, 2], [60, 30, 10])
    parts = dealt(y, sizes(100, 30), seed=3)
    assert [len(rows) for rows in parts] == [45, 27, 28]
    assert len(np.unique(np.concatenate(parts))) == 100
    for rows in parts:
        np.testing.assert_allclose(np.bincount(y[rows]) / len(rows), [0.6, 0.3, 0.1], atol=0.04)


def test_rare_ordered_classes_join_a_neighbour():
    y = np.repeat([1, 3, 4, 9], [20, 30, 5, 40])
    x, merged = tidy(y[:, None].astype(float), y, ordered=True)
    assert sorted(set(zip(x[:, 0].tolist(), merged.tolist(), strict=True))) == [
        (1, 0),
        (3, 1),
        (4, 1),
        (9, 2),
    ]
    assert np.bincount(tidy(x, y, ordered=False)[1]).tolist() == [20, 30, 40]


@pytest.fixture
def experiment():
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(700, 3))
    chance = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random((700, 1)) > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    p = chance**2 / (chance**2).sum(axis=1, keepdims=True)
    return Experiment("drawn", "overconfident", False, (Rows(y[:200], p[:200], y[200:], p[200:]),))


def test_losses_are_measured_kept_and_measured_again(experiment, tmp_path):
    def fails(*_):
        raise ValueError("refused")

    known = {method.name: method for method in METHODS}
    methods = [known[NOTHING], known["verax: temperature"], Method("other: fails", fails)]
    ledger = Ledger(tmp_path / "losses.jsonl")
    ledger.complete([experiment], methods)
    before, after, failed = ledger.outcomes.values()
    for rule in ("log_score", "brier", "rps"):
        assert after.losses[rule] < before.losses[rule]
        assert failed.losses[rule] == pytest.approx(before.losses[rule], rel=1e-12)
    assert ledger.failures == {"other: fails": [f"{experiment.name}: ValueError: refused"]}
    again = Ledger(ledger.path)
    assert again.outcomes == ledger.outcomes
    again.forget("verax")
    assert [o.method for o in Ledger(ledger.path).outcomes.values()] == [NOTHING, "other: fails"]
    assert not known["verax: beta"].fits(3, ordered=False)


def test_win_rates_and_changes():
    def outcome(data, method, loss, rows=100):
        return Outcome(data, f"{data}{rows}", 2, False, rows, method, {"brier": loss}, 0.0)

    outcomes = [
        *(outcome("a", m, loss) for m, loss in ((NOTHING, 1.0), ("x: m", 0.5), ("y: m", 0.5))),
        *(outcome("b", m, loss) for m, loss in ((NOTHING, 1.0), ("x: m", 2.0), ("y: m", 0.25))),
    ]
    field = {NOTHING, "x: m", "y: m"}
    y, x, nothing = standings(outcomes, "brier", GROUPS[0], field, sorted(field))
    assert [s.method for s in (y, x, nothing)] == ["y: m", "x: m", NOTHING]
    assert (y.wins.mean, x.wins.mean, nothing.wins.mean) == (0.875, 0.375, 0.25)
    assert x.change.mean == pytest.approx(0, abs=1e-9)
    assert (x.worst, x.worst_data) == (pytest.approx(100), pytest.approx(100))
    assert y.change.mean == pytest.approx(100 * (0.125**0.5 - 1))
    # Both data sets may be drawn twice, and then the win rate is that of one of them.
    assert (x.wins.low, x.wins.high) == (0.0, 0.75)
    assert "| y: m | 0.88 (0.75 to 1.00) | -64.6 (" in table([y, x], "brier", GROUPS[0])
    outcomes = [
        replace(o, losses=dict.fromkeys(("log_score", "brier", "rps"), o.losses["brier"])) for o in outcomes
    ]
    shown = overview(outcomes, field, sorted(field))
    assert "| y: m | 0.88 ± 0.12 | 0.88 ± 0.12 |" in shown
    assert "| x: m | 0.0 ± " in shown
    assert standings(outcomes, "brier", GROUPS[3], field, sorted(field)) == []
