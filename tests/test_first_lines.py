"""What people type first works, or is answered with the line to type."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import verax as vx
from cases import forecasts

Y, P = forecasts(60, 3, seed=1, ties=False)
Q = np.roll(P, 1, axis=0)
TABLE = pd.DataFrame(P, columns=["p_0", "p_1", "p_2"]).assign(label=Y)

# What is typed, and the line in the error.
ANSWERED = {
    "a table alone": (lambda: vx.evaluate(TABLE), "vx.evaluate(vx.scan(table, target=...))"),
    "a path alone": (lambda: vx.worst("rows.csv"), "vx.scan("),
    "models to evaluate": (lambda: vx.evaluate(Y, {"a": P, "b": Q}), "vx.compare(y, {name: p, ...})"),
    "models side by side": (lambda: vx.compare(Y, P, Q), 'compare(y, {"a": p, "b": q})'),
    "models in a list": (lambda: vx.compare(Y, [P, Q]), 'Name the models: {"a": p, "b": q}'),
    "several outputs": (lambda: vx.evaluate(Y, [P, Q]), "vx.evaluate(y[:, 0], p[0])"),
    "outputs of several widths": (lambda: vx.evaluate(Y, [P, Q[:, :2]]), "vx.evaluate(y[:, 0], p[0])"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_the_error_has_the_line_to_type(name):
    typed, line = ANSWERED[name]
    with pytest.raises((vx.InputError, TypeError), match=re.escape(line)):
        typed()


def test_a_rule_is_a_scorer_as_it_is():
    model_selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.dummy import DummyClassifier

    own = model_selection.cross_val_score(DummyClassifier(), P, Y, scoring=vx.rps, error_score="raise")
    found = model_selection.cross_val_score(
        DummyClassifier(), P, Y, scoring=vx.adapters.sklearn.scorer(vx.rps), error_score="raise"
    )
    assert (found < 0).all()
    assert own.tolist() == found.tolist()


def test_rules_need_not_be_named():
    assert list(vx.compare(Y, {"a": P, "b": Q}).models) == ["brier", "log_score"]
    assert list(vx.compare(Y, {"a": P, "b": Q}, ordered=True).models) == ["rps", "log_score"]
    assert vx.decompose(Y, P) == vx.decompose(Y, P, rule="brier")
    assert vx.decompose(Y, P, ordered=True) == vx.decompose(Y, P, rule="rps")
    assert vx.worst(Y, P) == vx.worst(Y, P, rule="brier")
    assert vx.worst(Y, P, ordered=True) == vx.worst(Y, P, rule="rps")
    assert vx.retention(Y, P) == vx.retention(Y, P, rule="brier", metric="accuracy")
    assert vx.retention(Y, P, ordered=True) == vx.retention(Y, P, rule="rps", metric="qwk")
    assert vx.retention(Y, P, rule="log_score").metric == "qwk"
