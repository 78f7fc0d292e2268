"""Kappa, expected cost, decisions: against exact vectors, scikit-learn and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score, f1_score

import references
import verax as vx
from cases import forecasts, number
from verax.scores.decisions import count_decisions
from verax.scores.metrics import accuracy_of, cost_matrix, expected_cost_of, kappa_of, macro_f1_of

VECTORS = references.entries()


def of(rule):
    return [pytest.param(entry, id=entry["id"]) for entry in VECTORS if entry["rule"] == rule]


@pytest.mark.parametrize("entry", of("kappa"))
def test_kappa_vectors(entry):
    params = entry["params"]
    got = vx.kappa(
        entry["y"],
        params["y_pred"],
        n_classes=params["K"],
        kind=params["weights"],
        weights=params.get("sample_weight"),
    )
    assert got == pytest.approx(number(entry["expected"]), rel=1e-12, abs=1e-14, nan_ok=True)


@pytest.mark.parametrize("entry", of("expected_cost"))
def test_expected_cost_vectors(entry):
    params = entry["params"]
    cost = params["cost"]
    got = vx.expected_cost(
        entry["y"],
        params["y_pred"],
        n_classes=params["K"],
        costs=cost if isinstance(cost, str) else [[number(c) for c in row] for row in cost],
        normalize=None if params["normalize"] == "none" else params["normalize"],
        priors=None if params["priors"] is None else [number(x) for x in params["priors"]],
        weights=params.get("sample_weight"),
    )
    assert got == pytest.approx(number(entry["expected"]), rel=1e-12, abs=1e-14, nan_ok=True)


@pytest.mark.parametrize("kind", ["quadratic", "linear"])
def test_against_scikit_learn(kind):
    y, p = forecasts(500, 5)
    decisions = vx.decide(p)
    w = np.random.default_rng(0).exponential(size=500)
    theirs = cohen_kappa_score(y, decisions, labels=range(5), weights=kind, sample_weight=w)
    assert vx.kappa(y, decisions, n_classes=5, kind=kind, weights=w) == pytest.approx(theirs, rel=1e-12)
    counts = count_decisions(y, decisions, n_classes=5, weights=w)
    assert float(accuracy_of(counts)) == pytest.approx(accuracy_score(y, decisions, sample_weight=w))
    assert float(macro_f1_of(counts)) == pytest.approx(
        f1_score(y, decisions, average="macro", sample_weight=w)
    )
    balanced = (1 - np.eye(5)) / (5 * counts.sum(axis=1, keepdims=True) / counts.sum())
    expected = 1 - balanced_accuracy_score(y, decisions, sample_weight=w)
    assert float(expected_cost_of(counts, balanced)) == pytest.approx(expected)


def test_many_tables_at_once():
    tables = np.random.default_rng(0).integers(0, 9, (7, 4, 4)).astype(float)
    tables[3] = 0
    tables[3, 1, 1] = 5
    for function in (kappa_of, expected_cost_of, accuracy_of, macro_f1_of):
        one_by_one = [float(function(table)) for table in tables]
        assert function(tables) == pytest.approx(one_by_one, nan_ok=True)
    assert math.isnan(kappa_of(tables)[3])


def test_a_constant_side_gives_exactly_zero():
    rng = np.random.default_rng(0)
    w = rng.exponential(size=30)
    constant, other = np.full(30, 2), rng.integers(0, 4, 30)
    assert vx.kappa(constant, other, n_classes=4, weights=w) == 0.0
    assert vx.kappa(other, constant, n_classes=4, weights=w) == 0.0


@pytest.mark.parametrize("costs", ["quadratic", "linear", "zero_one", [[0, 1, 9], [2, 0, 1], [5, 3, 0]]])
def test_decisions_are_the_cheapest(costs):
    _, p = forecasts(200, 3)
    matrix = cost_matrix(costs, 3)
    by_hand = [int(np.argmin([round(row @ matrix[:, j], 12) for j in range(3)])) for row in p]
    assert vx.decide(p, costs=costs).tolist() == by_hand


def test_most_likely_lowest_index():
    p = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3, 1 / 3, 1 / 3]]
    assert vx.decide(p).tolist() == [0, 1, 0]
    assert vx.decide(p, costs="zero_one").tolist() == [0, 1, 0]
    assert vx.decide([0.2, 0.9]).tolist() == [0, 1]


def test_decisions_stay_with_torch(torch):
    _, p = forecasts(20, 4)
    assert vx.decide(torch.tensor(p), costs="linear").tolist() == vx.decide(p, costs="linear").tolist()


TWO = {"n_classes": 2}


@pytest.mark.parametrize(
    ("argument", "kind", "call"),
    [
        ("y", "label", lambda: vx.kappa([0, 3], [0, 1], n_classes=3)),
        ("decisions", "label", lambda: vx.kappa([0, 1], [0, 5], n_classes=3)),
        ("decisions", "length", lambda: vx.kappa([0, 1], [0], n_classes=3)),
        ("decisions", "length", lambda: vx.kappa([], [], n_classes=3)),
        ("n_classes", "value", lambda: vx.kappa([0], [0], n_classes=1)),
        ("n_classes", "value", lambda: vx.kappa([0], [0], n_classes=True)),
        ("n_classes", "value", lambda: vx.kappa([0], [0], n_classes="2")),
        ("n_classes", "value", lambda: vx.kappa([0], [0], n_classes=10**6)),
        ("kind", "value", lambda: vx.kappa([0], [0], kind="cubic", **TWO)),
        ("kind", "value", lambda: vx.kappa([0], [0], kind=["quadratic"], **TWO)),
        ("weights", "sign", lambda: vx.kappa([0], [0], weights=[-1], **TWO)),
        ("weights", "sign", lambda: vx.kappa([0], [0], weights=[math.nan], **TWO)),
        ("weights", "value", lambda: vx.kappa([0], [0], weights=[0], **TWO)),
        ("weights", "value", lambda: vx.kappa([0, 1], [0, 1], weights=[1e308, 1e308], **TWO)),
        ("weights", "length", lambda: vx.kappa([0], [0], weights=[1, 2], **TWO)),
        ("costs", "value", lambda: vx.expected_cost([0], [0], costs="cubic", **TWO)),
        ("costs", "type", lambda: vx.expected_cost([0], [0], costs=[[0, 1]], **TWO)),
        ("costs", "value", lambda: vx.expected_cost([0], [0], costs=[[0, 0], [0, 0]], **TWO)),
        ("costs", "finite", lambda: vx.expected_cost([0], [0], costs=[[0, math.inf], [0, 0]], **TWO)),
        ("costs", "type", lambda: vx.expected_cost([0], [0], costs=3, **TWO)),
        ("priors", "sum", lambda: vx.expected_cost([0], [0], priors=[0.5, 0.6], **TWO)),
        ("priors", "length", lambda: vx.expected_cost([0], [0], priors=[1.0], **TWO)),
        ("priors", "length", lambda: vx.expected_cost([0], [0], priors=["a", "b"], **TWO)),
        ("normalize", "value", lambda: vx.expected_cost([0], [0], normalize="min", **TWO)),
        ("p", "sum", lambda: vx.decide([[0.5, 0.6]])),
    ],
)
def test_refusals(argument, kind, call):
    with pytest.raises(vx.InputError) as refused:
        call()
    assert (refused.value.argument, refused.value.kind) == (argument, kind)


def test_offending_rows_are_named():
    with pytest.raises(vx.InputError) as refused:
        vx.kappa([0, 1, 2], [0, 5, 1], n_classes=3)
    assert (refused.value.rows, refused.value.values) == ((1,), (5,))


def test_labels():
    names = ["low", "mid", "high"]
    y, d = ["low", "high", "mid"], ["low", "mid", "mid"]
    assert vx.kappa(y, d, n_classes=3, classes=names) == vx.kappa([0, 2, 1], [0, 1, 1], n_classes=3)
