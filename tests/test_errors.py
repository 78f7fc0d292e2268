"""Bad input gets one clear sentence that names the argument and the rows, and never a number."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from cases import NAMESPACES

GOOD = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1]])
Y = np.array([0, 1, 2, 0])


def with_row(row, values):
    p = GOOD.copy()
    p[row] = values
    return p


CASES = {
    "nan": (Y, with_row(1, [np.nan, 0.5, 0.5]), {}, "p", (1,), "finite", set()),
    "inf": (Y, with_row(2, [0, np.inf, 0]), {}, "p", (2,), "finite", set()),
    "negative": (
        Y,
        with_row(3, [1.1, -0.2, 0.1]),
        {},
        "p",
        (3,),
        "sign",
        {"logits"},
    ),
    "sum": (
        Y,
        with_row(1, [0.1, 0.73, 0.1]),
        {},
        "p",
        (1,),
        "sum",
        {"normalize"},
    ),
    "many sums": (
        Y,
        GOOD * 2,
        {},
        "p",
        (0, 1, 2),
        "sum",
        {"logits", "normalize"},
    ),
    "one-dimensional": (
        Y,
        GOOD[:, 0],
        {},
        "y",
        (2,),
        "label",
        set(),
    ),
    "one class": (
        Y,
        GOOD[:, :1],
        {},
        "p",
        (),
        "type",
        set(),
    ),
    "no rows": (Y[:0], GOOD[:0], {}, "p", (), "length", set()),
    "three dimensions": (Y, GOOD[None], {}, "p", (), "type", set()),
    "labels from 1": (
        Y + 1,
        GOOD,
        {},
        "y",
        (2,),
        "label",
        {"classes"},
    ),
    "label K": (
        [0, 1, 3, 0],
        GOOD,
        {},
        "y",
        (2,),
        "label",
        {"classes"},
    ),
    "label -1": (
        [0, 1, -1, 0],
        GOOD,
        {},
        "y",
        (2,),
        "label",
        {"classes"},
    ),
    "half a label": (
        [0, 1, 0.5, 0],
        GOOD,
        {},
        "y",
        (2,),
        "label",
        {"classes"},
    ),
    "missing label": (
        [0, 1, np.nan, 0],
        GOOD,
        {},
        "y",
        (2,),
        "label",
        {"classes"},
    ),
    "text": (
        ["a", "b", "c", "a"],
        GOOD,
        {},
        "y",
        (),
        "order",
        {"classes"},
    ),
    "unknown label": (
        ["a", "b", "x", "a"],
        GOOD,
        {"classes": ["a", "b", "c"]},
        "y",
        (2,),
        "label",
        set(),
    ),
    "classes too few": (
        Y,
        GOOD,
        {"classes": ["a", "b"]},
        "classes",
        (),
        "length",
        set(),
    ),
    "classes twice": (
        Y,
        GOOD,
        {"classes": ["a", "b", "a"]},
        "classes",
        (),
        "label",
        set(),
    ),
    "two ones": (
        [[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]],
        GOOD,
        {},
        "y",
        (1,),
        "label",
        set(),
    ),
    "one-hot too wide": (
        np.eye(4),
        GOOD,
        {},
        "y",
        (),
        "type",
        set(),
    ),
    "negative weights": (
        Y,
        GOOD,
        {"weights": [1, -1, 1, 1]},
        "weights",
        (1,),
        "sign",
        set(),
    ),
    "missing weights": (
        Y,
        GOOD,
        {"weights": [1, np.nan, 1, 1]},
        "weights",
        (1,),
        "sign",
        set(),
    ),
    "zero weights": (Y, GOOD, {"weights": [0, 0, 0, 0]}, "weights", (), "value", set()),
    "too few weights": (
        Y,
        GOOD,
        {"weights": [1, 2]},
        "weights",
        (),
        "length",
        set(),
    ),
    "objects": (
        Y,
        GOOD.astype(object),
        {},
        "p",
        (),
        "type",
        set(),
    ),
    "complex": (Y, GOOD + 0j, {}, "p", (), "type", set()),
    "complex outcomes": (
        Y + 0j,
        GOOD,
        {},
        "y",
        (),
        "type",
        set(),
    ),
    "transposed": (
        Y,
        GOOD.T,
        {},
        "p",
        (),
        "length",
        set(),
    ),
    "transposed square": (
        [0, 1, 2],
        GOOD[:3].T,
        {},
        "p",
        (0, 1, 2),
        "sum",
        set(),
    ),
    "too few outcomes": (
        Y[:3],
        GOOD,
        {},
        "p",
        (),
        "length",
        set(),
    ),
    "one column of outcomes": (
        Y[:, None],
        GOOD,
        {},
        "y",
        (),
        "type",
        set(),
    ),
    "swapped": (GOOD, Y, {}, "y", (), "type", set()),
    "nothing": (None, GOOD, {}, "y", (), "type", set()),
    "generator": (
        Y,
        (row for row in GOOD),
        {},
        "p",
        (),
        "type",
        set(),
    ),
    "a set of classes": (
        Y,
        GOOD,
        {"classes": {"a", "b", "c"}},
        "classes",
        (),
        "type",
        set(),
    ),
    "a number of classes": (
        Y,
        GOOD,
        {"classes": 3},
        "classes",
        (),
        "type",
        set(),
    ),
    "digits": (
        Y,
        GOOD,
        {"classes": ["0", "1", "2"]},
        "classes",
        (),
        "order",
        {"classes"},
    ),
    "none among integers": (
        [0, 1, None, 0],
        GOOD,
        {},
        "y",
        (2,),
        "missing",
        set(),
    ),
    "masked": (
        np.ma.array(Y, mask=[0, 0, 1, 0]),
        GOOD,
        {},
        "y",
        (2,),
        "missing",
        set(),
    ),
    "ragged": (
        [0, 1],
        [[0.5, 0.5], [1.0]],
        {},
        "p",
        (),
        "type",
        set(),
    ),
    "one outcome": (
        0,
        [0.5, 0.3, 0.2],
        {},
        "y",
        (),
        "type",
        set(),
    ),
    "one forecast": (
        [0],
        [0.5, 0.3, 0.2],
        {},
        "p",
        (),
        "length",
        set(),
    ),
    "binary above one": (
        [0, 1],
        [0.2, 1.4],
        {},
        "p",
        (1,),
        "sign",
        {"logits"},
    ),
    "nothing to normalize": (
        [0],
        [[0.0, 0.0]],
        {"normalize": True},
        "p",
        (0,),
        "sum",
        set(),
    ),
    "nan logits": (
        [0],
        [[np.nan, 0.0]],
        {"logits": True},
        "p",
        (0,),
        "finite",
        set(),
    ),
    "empty logits": (
        [0],
        [[-np.inf, -np.inf]],
        {"logits": True},
        "p",
        (0,),
        "finite",
        set(),
    ),
    "both": (
        [0],
        [[0.5, 0.5]],
        {"logits": True, "normalize": True},
        "normalize",
        (),
        "value",
        set(),
    ),
    "lists as labels": (
        np.array([["a"], None], dtype=object),
        [[0.5, 0.5], [0.5, 0.5]],
        {"classes": ["a", "b"]},
        "y",
        (),
        "type",
        set(),
    ),
}


@pytest.mark.parametrize("call", [vx.brier, vx.evaluate], ids=["rule", "evaluate"])
@pytest.mark.parametrize("case", CASES, ids=lambda name: name.replace(" ", "-"))
def test_the_message(case, call):
    y, p, options, *facts = CASES[case]
    with pytest.raises(vx.InputError) as caught:
        call(y, p, **options)
    error = caught.value
    remedies = {name for remedy in error.remedies for name in remedy.options}
    assert [error.argument, error.rows, error.kind, remedies] == facts
    assert error.kind == "missing" or len(error.values) >= len(error.rows)


def test_ordered_text_is_never_put_in_alphabetical_order():
    y = ["mild", "none", "severe", "mild"]
    for call in (vx.rps, vx.penalized(vx.rps), lambda *a, **k: vx.evaluate(*a, ordered=True, **k)):
        with pytest.raises(vx.InputError, match="needs their order, which is never guessed"):
            call(y, GOOD)
    assert vx.rps(y, GOOD, classes=["none", "mild", "severe"]) > 0


def test_column_names_are_no_order():
    import pandas as pd

    frame = pd.DataFrame(GOOD, columns=["mild", "none", "severe"])
    y = ["mild", "none", "severe", "mild"]
    assert vx.brier(y, frame) == vx.brier(Y, GOOD)
    with pytest.raises(vx.InputError, match="lowest first"):
        vx.rps(y, frame)


@pytest.mark.parametrize("make", NAMESPACES, ids=lambda make: make.__name__)
def test_every_array_library_is_checked(make):
    with pytest.raises(vx.InputError, match=r"row 1 sums to 0\.9"):
        vx.brier(make(Y), make(with_row(1, [0.1, 0.7, 0.1])))
    with pytest.raises(vx.InputError, match="row 2 holds 3"):
        vx.brier(make(np.array([0, 1, 3, 0])), make(GOOD))
    with pytest.raises(vx.InputError, match="row 0 holds nan"):
        vx.brier(make(Y), make(with_row(0, np.nan)))


@pytest.mark.parametrize("fault", ["p", "y", "weights"])
def test_the_compiled_path_is_checked(fault):
    n = 200_000
    y, p, w = np.zeros(n, int), np.full((n, 4), 0.25), np.ones(n)
    row = 123_456
    match fault:
        case "p":
            p[row, 2] = 0.5
        case "y":
            y[row] = 4
        case "weights":
            w[row] = -3
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(y, p, weights=w)
    assert caught.value.argument == fault
    assert caught.value.rows == (row,)
    with pytest.raises(vx.InputError, match="must not all be zero"):
        vx.brier(np.zeros(n, int), np.full((n, 4), 0.25), weights=np.zeros(n))


def test_the_tolerance_goes_by_precision():
    p = np.array([[0.5, 0.50005]])
    assert vx.brier([0], p.astype(np.float32)) > 0
    assert vx.brier([0], np.array([[0.5, 0.505]]).astype(np.float16)) > 0
    with pytest.raises(vx.InputError, match="within 1e-06"):
        vx.brier([0], p)
    with pytest.raises(vx.InputError, match=r"within 0\.0001"):
        vx.brier([0], np.array([[0.5, 0.51]]).astype(np.float32))


def test_parameters_of_rules_are_checked():
    for make in (
        lambda: vx.rules.Brier("double"),
        lambda: vx.rules.Log(base=1),
        lambda: vx.rules.Log(clip=0.7),
        lambda: vx.rules.SaRPS("eq8"),
        lambda: vx.rules.ZeroOne("strict"),
        lambda: vx.penalized(vx.brier, "max"),
        lambda: vx.penalized(vx.brier, -1),
        lambda: vx.penalized(vx.brier, float("nan")),
        lambda: vx.penalized(vx.ranked_log),
        lambda: vx.penalized("brier"),
    ):
        with pytest.raises(vx.VeraxError):
            make()


def test_penalized_refuses_what_no_theorem_covers():
    for improper in (vx.sa_rps, vx.abs_rps, vx.rules.Log(clip=1e-7)):
        with pytest.raises(vx.errors.RuleError, match="needs a proper rule"):
            vx.penalized(improper)
    for nested in (vx.pbs, vx.zero_one):
        with pytest.raises(vx.errors.RuleError, match="adds nothing"):
            vx.penalized(nested)


def test_errors_survive_pickling():
    import pickle

    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, GOOD * 2)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.argument, again.rows) == (str(caught.value), "p", (0, 1, 2))


def test_errors_are_value_errors():
    assert issubclass(vx.VeraxError, ValueError)


def test_frames_that_would_be_read_wrongly():
    import pandas as pd

    names = ["none", "mild", "severe"]
    labels = pd.Series(["none", "mild", "severe", "none"])
    frame = pd.DataFrame(GOOD, columns=names)
    right = vx.brier(Y, GOOD)
    # get_dummies puts its columns in alphabetical order; their names say which is which.
    assert vx.brier(pd.get_dummies(labels), frame) == right
    assert vx.rps(pd.get_dummies(labels), GOOD, classes=names) == vx.rps(Y, GOOD)
    with pytest.raises(vx.InputError, match="the columns of probabilities have no names"):
        vx.brier(pd.get_dummies(labels), GOOD)
    with pytest.raises(vx.InputError, match="must have a column for each class"):
        vx.brier(pd.get_dummies(labels), GOOD, classes=["a", "b", "c"])
    # Whole numbers as column names are labels.
    assert vx.rps(Y + 1, pd.DataFrame(GOOD, columns=[1, 2, 3])) == vx.rps(Y, GOOD)
    assert vx.brier(Y, pd.DataFrame(GOOD[:, [2, 0, 1]], columns=[2, 0, 1])) == pytest.approx(right)
    with pytest.raises(vx.InputError, match="which states no order"):
        vx.rps(Y, pd.DataFrame(GOOD, columns=[2, 0, 1]))
    # The same rows in another order.
    shuffled = pd.Series(Y).iloc[[1, 0, 3, 2]]
    for options in ({"y": shuffled}, {"weights": shuffled + 1}, {"groups": shuffled}):
        with pytest.raises(vx.InputError, match="the same index, in different orders"):
            vx.evaluate(**{"y": Y, "p": pd.DataFrame(GOOD), **options})
    assert vx.brier(pd.Series(Y, index=[9, 8, 7, 6]), frame) == right
    with pytest.raises(vx.InputError, match="two columns with the same name"):
        vx.brier(Y, pd.DataFrame(GOOD, columns=["a", "a", "b"]))


def test_an_ordered_categorical_brings_its_order():
    import pandas as pd

    names = ["none", "mild", "severe"]
    y = pd.Series(pd.Categorical([names[i] for i in Y], categories=names, ordered=True))
    shuffled = ["severe", "none", "mild"]
    frame = pd.DataFrame(GOOD, columns=names)[shuffled]
    assert vx.rps(y, frame) == vx.rps(Y, GOOD)
    with pytest.raises(vx.InputError) as caught:
        vx.rps(y.astype(str), frame)
    assert caught.value.kind == "order"


def test_matrices_and_integers_in_object_arrays():
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(GOOD)
    assert vx.brier(Y, matrix) == vx.brier(Y, GOOD)
    assert vx.brier(Y.astype(object), GOOD) == vx.brier(Y, GOOD)
