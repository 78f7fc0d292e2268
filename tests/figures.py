"""The figures of all results, and what they show."""

from __future__ import annotations

from functools import cache

import numpy as np

import verax as vx
from verax.display.comparisons import score_map_figure
from verax.display.figures import Sheet
from verax.display.reliability import reliability_sheet
from verax.wings.plan.figures import plan_sheet
from verax.wings.select.figures import selection_sheet
from verax.wings.sets.figures import sets_sheet, spans_sheet
from verax.wings.theory.figures import landscape_sheet

GRADES = ["none", "mild", "moderate", "severe"]


@cache
def rows(n=400, k=4, seed=0):
    """Outcomes of grades, and forecasts of them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.6), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@cache
def risks(n=400):
    """Two outcomes, and two forecasts of the second."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(1 - 1.2 * x))).astype(int)
    return y, {"sharp": 1 / (1 + np.exp(1 - 2.2 * x)), "flat": 1 / (1 + np.exp(1 - 0.6 * x))}


def _monitor():
    monitor = vx.Monitor(0.6, rule="brier")
    y, p = rows(600)
    for day in range(20):
        part = slice(30 * day, 30 * day + 30)
        seen = y[part] if day < 10 else (y[part] + 1) % 4
        monitor.update(seen, p[part], time=np.datetime64("2026-01-01") + day)
    history = monitor.joined_history()
    return Sheet(history._figures(monitor.began), 1, shared="x", key="above")


def _history():
    epochs = np.arange(20)
    columns = {
        "val_brier": 0.4 + 0.1 * np.exp(-epochs / 4) + 0.002 * epochs,
        "val_log_score": 0.8 + 0.4 * np.exp(-epochs / 5) + 0.006 * epochs,
        "val_accuracy": 0.7 - 0.2 * np.exp(-epochs / 6),
    }
    return vx.selection.History.from_columns(columns)


def _lengths():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(30, 0.1), 200)
    y = np.array([rng.choice(30, p=row) for row in p])
    found = vx.compare_lengths(y, p, k=[3, 5], rule=["brier", "log_score"])
    return found._sheet(list(found.means))


def _raters():
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 150)
    counts = np.array([rng.multinomial(4, row) for row in q])
    return vx.raters(counts, 0.7 * q + 0.1, rule="brier", raters="counts")._sheet()


def _ranks():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(15, 4)) * 0.05 + np.arange(4) * 0.03
    return vx.compare_datasets(scores, models=["a", "b", "c", "d"], better="lower")._sheet()


def _sets(ordered=False):
    y, p = rows()
    sites = {"site": np.repeat(["north", "south"], 200)}
    return vx.evaluate_sets(y, p, level=0.9, classes=GRADES, ordered=ordered, by=None if ordered else sites)


def _over_time():
    y, p = rows()
    days = np.datetime64("2026-01-01") + np.arange(400) // 4
    return vx.over_time(y, p, time=days, every="month")._sheet()


def _models(rules=("brier", "log_score")):
    y, p = rows()
    hard = np.eye(4)[p.argmax(axis=1)]
    found = vx.compare(y, {"new": p, "flat": np.full_like(p, 0.25), "hard": hard}, rule=list(rules))
    return found._sheet(list(rules))


def _plan(**goal):
    y, p = rows()
    return plan_sheet(vx.plan(vx.compare(y, {"new": p, "old": 0.5 * p + 0.125}, rule="brier"), **goal))


def _land(rule, truth=None, n_classes=3):
    return landscape_sheet(vx.diagrams.landscape(rule, truth, n_classes=n_classes))


def _two():
    y, p = rows()
    return y, {"new": p, "old": 0.5 * p + 0.125}


def _reliability():
    y, p = rows()
    diagram = vx.reliability(y, p, classes=GRADES, resamples=20)
    return reliability_sheet(diagram, diagram.curves)


SHEETS = {
    "models": _models,
    "ranks": _ranks,
    "score map": lambda: Sheet([score_map_figure(vx.diagrams.score_map(*_two(), rule="brier"))]),
    "lengths": _lengths,
    "reliability": _reliability,
    "roc": lambda: vx.roc_curve(*risks())._sheet(),
    "precision": lambda: vx.precision_recall_curve(*risks())._sheet(),
    "confidence": lambda: vx.confidence_curve(*rows())._sheet(),
    "benefit": lambda: vx.net_benefit(*risks())._sheet(),
    "murphy": lambda: vx.diagrams.murphy(*risks())._sheet(),
    "recalibration": lambda: vx.recalibrate(risks()[0], risks()[1]["sharp"], rule="brier")._sheet(),
    "retention": lambda: vx.retention(*rows(), metric=["accuracy", "macro_f1"], bootstrap=20)._sheet(),
    "risk": lambda: vx.risk_coverage(*rows(), bootstrap=20)._sheet(),
    "monitor": _monitor,
    "over time": _over_time,
    "raters": _raters,
    "power": lambda: _plan(difference=0.01),
    "width": lambda: _plan(width=0.01),
    "selection": lambda: selection_sheet(_history().select()),
    "sets": lambda: sets_sheet(_sets()),
    "spans": lambda: spans_sheet(_sets(ordered=True).spans, GRADES),
    "two outcomes": lambda: _land("log_score", n_classes=2),
    "two, expected": lambda: _land("zero_one", [0.3, 0.7], 2),
    "three outcomes": lambda: _land("log_score"),
    "three, expected": lambda: _land("sa_rps", [0.5, 0.2, 0.3]),
}


@cache
def sheet(name):
    """One of the sheets, made once for all tests."""
    return SHEETS[name]()
