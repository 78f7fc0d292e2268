"""Which of two classes is the event: `positive=`, in Python, files and the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx

RNG = np.random.default_rng(4)
P = RNG.random(60)
Y = np.where(RNG.random(60) < P, "case", "control")
BOTH = np.column_stack([P, 1 - P])
CLASSES = ["control", "case"]
EXPECTED = vx.operating_points((Y == "case").astype(int), P)["sensitivity"]
TABLE = pd.DataFrame({"label": Y, "p_case": P, "p_control": 1 - P})

# Ways to say the same.
GIVEN = {
    "one column": (Y, P, {}),
    "one column with classes": (Y, P, {"classes": CLASSES}),
    "one column with classes the other way round": (Y, P, {"classes": CLASSES[::-1]}),
    "two columns in the order of the classes": (Y, BOTH, {"classes": CLASSES[::-1]}),
    "two columns, the event last": (Y, BOTH[:, ::-1], {"classes": CLASSES}),
    "named columns": (Y, pd.DataFrame(BOTH, columns=["case", "control"]), {}),
    "a model by name": (Y, {"a": P}, {}),
    "one-hot outcomes": (np.eye(2)[(Y == "control").astype(int)], BOTH, {"classes": CLASSES[::-1]}),
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_form_of_the_same_rows(name):
    y, p, own = GIVEN[name]
    found = vx.operating_points(y, p, positive="case", **own)
    assert found.points[0].event == "case"
    assert found["sensitivity"] == pytest.approx(EXPECTED)


def test_positions_and_other_functions():
    y = (Y == "control").astype(int)
    assert vx.evaluate(y, BOTH, positive=0)["sensitivity"] == pytest.approx(EXPECTED)
    assert vx.evaluate(y, BOTH, positive=1)["specificity"] == pytest.approx(EXPECTED)
    assert vx.roc_auc(Y, P, positive="case").value == vx.roc_auc(1 - y, P).value
    torch = pytest.importorskip("torch")
    assert vx.evaluate(y, torch.tensor(BOTH), positive=0)["sensitivity"] == pytest.approx(EXPECTED)


def test_columns_of_raters_are_not_swapped():
    labels = np.column_stack([Y, RNG.permutation(Y)])
    found = vx.evaluate(labels, P, raters="columns", positive="case")
    expected = vx.evaluate((labels == "case").astype(int), P, raters="columns")
    assert found["brier"] == pytest.approx(expected["brier"])
    shares = np.column_stack([P, 1 - P])
    assert vx.brier(shares, BOTH) == pytest.approx(vx.evaluate(shares, BOTH, positive=0)["brier"])


@pytest.mark.parametrize(
    ("y", "p", "own", "words"),
    [
        (Y, P, {"positive": "sick"}, "must be one of two classes; it is 'sick', and the classes are"),
        (Y, BOTH, {"positive": "case"}, "needs the names of both classes"),
        (Y[:1], P[:1], {"positive": "case"}, "needs the names of both classes"),
        (Y, P, {"positive": "case", "classes": 2}, "must be a list of names in the order of the columns"),
        (Y, P, {"positive": np.array(["case", "control"])}, "must be one of two classes"),
        (0.5, P, {"positive": "case"}, "must be one of two classes"),
        (RNG.integers(0, 3, 60), np.full((60, 3), 1 / 3), {"positive": 2}, "must be one of two classes"),
    ],
)
def test_refusals(y, p, own, words):
    with pytest.raises(vx.InputError, match=words):
        vx.evaluate(y, p, **own)


def test_files_of_two_columns():
    for options, name in (({}, "specificity"), ({"positive": "case"}, "sensitivity")):
        card = vx.evaluate(vx.scan(TABLE, target="label", **options))
        assert card[name] == pytest.approx(EXPECTED)
    with pytest.raises(vx.InputError, match="must be one of the classes"):
        vx.scan(TABLE, target="label", positive="sick")
    with pytest.raises(vx.InputError, match="is for two classes"):
        vx.scan(TABLE.assign(p_other=0.0), target="label", positive="case")
