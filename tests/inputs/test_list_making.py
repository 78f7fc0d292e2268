"""Top lists: how they are made, and what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import facts, facts_of, forecasts, top_list
from verax.rules import Padded

# ---- making lists ------------------------------------------------------------------------------


def test_every_way_in_gives_the_same_lists():
    p = np.array([[0.5, 0.1, 0.3, 0.1], [0.05, 0.05, 0.2, 0.7]])
    expected = [{0: 0.5, 2: 0.3}, {3: 0.7, 2: 0.2}]
    classes, confidences = np.array([[2, 0], [3, 2]]), np.array([[0.3, 0.5], [0.7, 0.2]])
    ways = [
        vx.TopLists.from_probabilities(p, 2),
        vx.TopLists.from_probabilities(p, mass=0.8),
        vx.TopLists.from_probabilities(np.log(p), 2, logits=True),
        vx.TopLists.from_probabilities(7 * p, 2, normalize=True),
        vx.TopLists.from_arrays(classes, confidences, n_classes=4),
        vx.TopLists.from_arrays(classes.astype(np.uint8), confidences, n_classes=4),
        vx.TopLists.from_arrays(classes.ravel(), confidences.ravel(), n_classes=4, offsets=[0, 2, 4]),
        vx.TopLists.from_arrays([[2, 0], [3, 2]], [[0.3, 0.5], [0.7, 0.2]], n_classes=4),
        vx.TopLists.from_dicts([{2: 0.3, 0: 0.5}, {3: 0.7, 2: 0.2}], n_classes=4),
        vx.TopLists.from_logprobs(
            [{2: math.log(0.3), 0: math.log(0.5)}, {3: math.log(0.7), 2: math.log(0.2)}], n_classes=4
        ),
    ]
    for lists in ways:
        assert [
            {c: pytest.approx(t, rel=1e-12) for c, t in row.items()} for row in lists.to_dicts()
        ] == expected
        assert [list(row) for row in lists] == [[0, 2], [3, 2]]
        assert vx.brier([0, 1], lists) == pytest.approx(vx.brier([0, 1], ways[0]), rel=1e-12)


def _columns():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    return {
        "objects": lambda x: np.array([*x, None], dtype=object)[:-1],
        "pandas": pd.Series,
        "pandas arrow": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.array(x).type)),
        "polars": pl.Series,
        "pyarrow": pa.array,
        "pyarrow slice": lambda x: pa.array([x[-1], *x])[1:],
        "pyarrow chunks": lambda x: pa.chunked_array([x[:1], x[1:]]),
        "pyarrow large": lambda x: pa.array(x, pa.large_list(pa.array(x).type.value_type)),
    }


@pytest.mark.parametrize("kind", _columns())
@pytest.mark.parametrize("classes", [[["a", "b"], [], ["c"]], [[3, 1], [], [2]]], ids=["names", "positions"])
def test_columns_of_lists(kind, classes):
    column, confidences = _columns()[kind], [[0.5, 0.25], [], [0.75]]
    lists = vx.TopLists.from_arrays(column(classes), column(confidences), n_classes=5)
    expected = [dict(zip(c, t, strict=True)) for c, t in zip(classes, confidences, strict=True)]
    assert lists.to_dicts() == expected
    with pytest.raises(vx.InputError, match="row 1 "):
        vx.TopLists.from_arrays(column([["a"], None]), column([[0.5], [0.5]]), n_classes=5)


def test_sums_are_held_to_the_tolerance_of_dense_rows():
    # Six float32 scores as they are printed: their sum is 1.00000001.
    printed = {0: 0.99999994, 1: 3e-08, 2: 2e-08, 3: 1e-08, 4: 5e-09, 5: 5e-09}
    assert vx.TopLists.from_dicts([printed], n_classes=6).unaccounted.tolist() == [0.0]
    # Less than 1 by rounding alone: the fifth class has less than its share of what is left.
    short = {0: 0.99999985, 1: 3e-08, 2: 2e-08, 3: 1e-08, 4: 1e-12}
    assert vx.TopLists.from_dicts([short], n_classes=6).valid.all()
    for total, fits in ((1 + 1e-6, True), (1 + 1.1e-6, False)):
        rows = [{0: total / 2, 1: total / 2}]
        for refused, call in (
            (not fits, lambda r=rows: vx.TopLists.from_dicts(r, n_classes=3)),
            (not fits, lambda r=rows: vx.brier([0], [list(r[0].values())])),
            (False, lambda r=rows: vx.TopLists.from_dicts(r, n_classes=2, normalize=True)),
        ):
            if refused:
                with pytest.raises(vx.InputError, match="sum"):
                    call()
            else:
                call()


def test_lists_of_all_classes_are_rescaled_and_others_are_not():
    rows = [{"a": 3, "b": 1}, {"a": 0.5}]
    lists = vx.TopLists.from_dicts(rows, n_classes=2, normalize=True)
    assert lists.to_dicts() == [{"a": 0.75, "b": 0.25}, {"a": 0.5}]
    arrays = vx.TopLists.from_arrays([["a", "b"], ["a"]], [[3, 1], [0.5]], n_classes=2, normalize=True)
    assert arrays.to_dicts() == lists.to_dicts()
    with pytest.raises(vx.InputError, match=r"row 0 sums to 1\.5\. Pass normalize=True to rescale"):
        vx.TopLists.from_dicts([{"a": 0.9, "b": 0.6}], n_classes=2)
    with pytest.raises(vx.InputError, match=r"row 1 sums to 1\.5\. Partial lists are not rescaled"):
        vx.TopLists.from_dicts([{}, {"a": 0.9, "b": 0.6}], n_classes=3, normalize=True)
    with pytest.raises(vx.InputError, match="row 1 lists 'X', which is not among the names 'a', 'b' and 'c'"):
        vx.TopLists.from_dicts([{}, {"a": 0.5, "X": 0.1}], n_classes=3, names=["a", "b", "c"])
    with pytest.raises(vx.InputError, match="row 1 gives 'b' the confidence 'x'"):
        vx.TopLists.from_dicts([{"a": 0.5}, {"b": "x"}], n_classes=3)


def test_ragged_lists_and_lists_of_nothing():
    lists = vx.TopLists.from_arrays([[1], [], [0, 2, 1]], [[0.9], [], [0.2, 0.3, 0.5]], n_classes=3)
    assert lists.lengths.tolist() == [1, 0, 3]
    assert lists.to_dicts() == [{1: 0.9}, {}, {1: 0.5, 2: 0.3, 0: 0.2}]
    assert repr(lists) == "TopLists: 3 lists of 0 to 3 out of 3 classes"
    assert lists[1:].lengths.tolist() == [0, 3]
    assert lists[np.array([True, False, True])].lengths.tolist() == [1, 3]
    assert lists[[2, 0]].to_dicts() == [lists.to_dicts()[2], lists.to_dicts()[0]]
    assert lists.truncate(1).to_dicts() == [{1: 0.9}, {}, {1: 0.5}]
    assert pickle.loads(pickle.dumps(lists)).to_dicts() == lists.to_dicts()
    nothing = vx.TopLists.from_arrays([[], []], [[], []], n_classes=5)
    np.testing.assert_allclose(nothing.padded(), np.full((2, 5), 0.2))


def test_of_equals_the_lowest_positions_are_listed():
    p = np.full((3, 7), 1 / 7)
    for k in range(8):
        assert vx.TopLists.from_probabilities(p, k).classes.reshape(3, k).tolist() == [list(range(k))] * 3
    rng = np.random.default_rng(4)
    p = rng.integers(1, 4, (500, 9)).astype(float)
    p /= p.sum(axis=1, keepdims=True)
    for k in (1, 4, 8):
        expected = np.argsort(-p, axis=1, kind="stable")[:, :k]
        assert (vx.TopLists.from_probabilities(p, k).classes.reshape(-1, k) == expected).all()


@given(st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_lists_with_a_mass_are_as_short_as_they_can_be(mass, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(6), 20)
    lists = vx.TopLists.from_probabilities(p, mass=mass)
    assert (1 - lists.unaccounted >= mass - 2e-9).all()
    shorter = lists.truncate(0) if mass == 0 else lists
    for row, length in zip(np.sort(p, axis=1)[:, ::-1], shorter.lengths, strict=True):
        assert length == 0 or row[: length - 1].sum() < mass


def test_names():
    names = ["cat", "dog", "emu"]
    by_position = vx.TopLists.from_arrays([[2, 0]], [[0.6, 0.3]], n_classes=3, names=names)
    by_name = vx.TopLists.from_dicts([{"emu": 0.6, "cat": 0.3}], n_classes=3, names=names)
    from_p = vx.TopLists.from_probabilities([[0.3, 0.1, 0.6]], 2, classes=names)
    hard = vx.TopLists.from_decisions(["emu"], n_classes=3, names=names)
    for lists in (by_position, by_name, from_p):
        assert [list(row) for row in lists] == [["emu", "cat"]]
        assert vx.log_score(["dog"], lists) == pytest.approx(-math.log(0.1))
        assert vx.log_score([1], lists) == pytest.approx(-math.log(0.1))
        with pytest.raises(vx.InputError, match="labels found in the classes"):
            vx.log_score(["fox"], lists)
    assert vx.brier(["cat"], hard) == 2.0
    some = vx.TopLists.from_dicts([{"emu": 0.6, "cat": 0.3}], n_classes=3)
    assert vx.log_score(["fox"], some) == pytest.approx(-math.log(0.1))
    with pytest.raises(vx.InputError, match="as the lists do, by str; row 0 holds 1"):
        vx.log_score([1], some)
    with pytest.raises(vx.InputError, match="some of the classes only"):
        some.padded()


def test_frames():
    import pandas as pd

    p = np.random.default_rng(9).dirichlet(np.ones(3), 5)
    y = [0, 1, 2, 2, 1]
    expected = vx.brier(y, vx.TopLists.from_probabilities(p, 2))
    frame = pd.DataFrame(p, columns=["cat", "dog", "emu"])
    from_frame = vx.TopLists.from_probabilities(frame, 2)
    assert vx.brier(pd.Series(y), from_frame) == expected
    assert vx.brier(frame.columns[y], from_frame) == expected
    turned = vx.TopLists.from_probabilities(frame[["emu", "cat", "dog"]], 2, classes=["cat", "dog", "emu"])
    assert vx.brier(y, turned) == expected
    one_hot = np.eye(3)[y]
    assert vx.brier(one_hot, from_frame) == expected
    labels = vx.TopLists.from_label_probabilities(frame, 1)
    assert set(labels.to_dicts()[0].popitem()[0]) <= {"cat", "dog", "emu"}


def test_tensors(torch):
    y, p = forecasts(5, 3, ties=False)
    expected = vx.brier(y, vx.TopLists.from_probabilities(p, 2))
    assert vx.brier(torch.tensor(y), vx.TopLists.from_probabilities(torch.tensor(p), 2)) == expected
    lists = vx.TopLists.from_arrays(torch.tensor([[2, 0]]), torch.tensor([[0.5, 0.25]]), n_classes=9)
    assert lists.to_dicts() == [{2: 0.5, 0: 0.25}]


def test_functions_of_full_distributions_refuse_lists():
    lists = top_list([0], [0.5], 3)
    for refused in (vx.net_benefit, vx.roc_auc):
        with pytest.raises(vx.InputError, match="must be full distributions here"):
            refused([0], lists)


def test_float32_probabilities():
    p = np.random.default_rng(5).dirichlet(np.ones(50), 200).astype(np.float32)
    lists = vx.TopLists.from_probabilities(p, 10)
    y = np.random.default_rng(6).integers(0, 50, 200)
    wide = vx.TopLists.from_probabilities(p.astype(float) / p.astype(float).sum(1, keepdims=True), 10)
    assert vx.brier(y, lists) == pytest.approx(vx.brier(y, wide), rel=1e-6)
    for k in range(51):
        assert vx.TopLists.from_probabilities(p, k).valid.all()
    uniform = np.full((3, 7), 1 / 7, np.float32)
    assert vx.zero_one([0, 3, 6], vx.TopLists.from_probabilities(uniform, 3)) == pytest.approx(6 / 7)


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        vx.rps,
        vx.ranked_log,
        vx.sa_rps,
        vx.abs_rps,
        vx.penalized(vx.rps),
        vx.rules.ZeroOne("lowest"),
        vx.penalized(vx.brier, ties="lowest"),
    ],
    ids=repr,
)
def test_rules_that_are_not_symmetric_are_refused(rule):
    lists = top_list([0], [0.5], 3)
    with pytest.raises(vx.errors.RuleError, match=r"5/32|ties='fractional'"):
        rule([0], lists)
    with pytest.raises(vx.errors.RuleError, match=r"5/32|ties='fractional'"):
        vx.evaluate([0], lists, rules=[rule])
    with pytest.raises(vx.errors.RuleError, match=r"symmetric rule|proper rule"):
        vx.padded(rule)


def test_why_padded_refuses():
    with pytest.raises(vx.errors.RuleError, match=r"rps is not: a list does not say where .* 5/32.* 11/72"):
        vx.padded(vx.rps)
    with pytest.raises(vx.errors.RuleError, match="lowest index judge a list by the numbering"):
        vx.padded(vx.penalized(vx.brier, ties="lowest"))
    with pytest.raises(vx.errors.RuleError, match="adds nothing"):
        vx.padded(vx.padded(vx.brier))
    for arguments, wrong in (
        (("brier",), "rule"),
        ((vx.brier, -1), "invalid_penalty"),
        ((vx.brier, "x"), "invalid_penalty"),
    ):
        with pytest.raises(vx.InputError) as caught:
            vx.padded(*arguments)
        assert caught.value.argument == wrong


def test_padded_rules_have_a_text_form():
    for rule in (
        vx.padded(vx.pbs),
        vx.padded(vx.rules.Log(base=2), 0.25),
        vx.padded(vx.brier, invalid_penalty=0),
    ):
        assert vx.parse(repr(rule)) == rule
    assert repr(vx.padded(vx.brier)) == "padded(brier)"
    assert isinstance(vx.parse("padded(brier, invalid_penalty=0.5)"), Padded)
    assert vx.padded(vx.brier).bounds(4) == (0.0, 3.0)
    assert vx.padded(vx.brier).properties == vx.brier.properties


ERRORS = {
    "duplicate": (
        lambda: top_list([1, 2, 1], [0.2, 0.2, 0.1], 4),
        facts("classes", "list", rows=[0], values=[1]),
    ),
    "unknown class": (
        lambda: vx.TopLists.from_arrays([[0, 1], [1, 7]], [[0.5, 0.1], [0.5, 0.1]], n_classes=4),
        facts("classes", "label", rows=[1], values=[7]),
    ),
    "negative class": (
        lambda: top_list([-1], [0.2], 4),
        facts("classes", "label", rows=[0], values=[-1]),
    ),
    "unknown key": (
        lambda: vx.TopLists.from_dicts([{9: 0.2}], n_classes=4),
        facts("rows", "label", values=[9]),
    ),
    "negative": (lambda: top_list([1], [-0.2], 4), facts("confidences", "value", rows=[0], values=[-0.2])),
    "above one": (lambda: top_list([1], [1.2], 4), facts("confidences", "value", rows=[0], values=[1.2])),
    "nan": (
        lambda: top_list([1, 2], [0.1, math.nan], 4),
        facts("confidences", "value", rows=[0]),
    ),
    "sum": (
        lambda: top_list([1, 2], [0.7, 0.5], 4),
        facts("confidences", "sum", rows=[0], values=[1.2]),
    ),
    "full but short": (
        lambda: top_list([0, 1], [0.5, 0.4], 2),
        facts("confidences", "sum", rows=[0], values=[0.9]),
    ),
    "one class": (lambda: top_list([0], [0.5], 1), facts("n_classes", "value", values=[1])),
    "too many classes": (lambda: top_list([0], [0.5], 2**901), facts("n_classes", "value")),
    "float classes": (
        lambda: top_list([0.5], [0.5], 4),
        facts("classes", "type"),
    ),
    "text confidences": (
        lambda: top_list([0], ["a"], 4),
        facts("confidences", "type"),
    ),
    "different rows": (
        lambda: vx.TopLists.from_arrays([[0], [1]], [[0.5]], n_classes=4),
        facts("confidences", "length"),
    ),
    "different lengths": (
        lambda: vx.TopLists.from_arrays([[0], [1, 2]], [[0.5], [0.5]], n_classes=4),
        facts("confidences", "length", rows=[1], values=[1]),
    ),
    "one-dimensional": (
        lambda: vx.TopLists.from_arrays([0, 1], [0.5, 0.1], n_classes=4),
        facts("classes", "type"),
    ),
    "offsets": (
        lambda: vx.TopLists.from_arrays([0, 1], [0.5, 0.1], n_classes=4, offsets=[0, 3]),
        facts("offsets", "value"),
    ),
    "no mapping": (
        lambda: vx.TopLists.from_dicts([[0.5]], n_classes=4),
        facts("rows", "type", rows=[0], values=[[0.5]]),
    ),
    "more names than classes": (
        lambda: vx.TopLists.from_dicts([{"a": 0.1, "b": 0.1, "c": 0.1}], n_classes=2),
        facts("n_classes", "length", values=[2]),
    ),
    "k": (
        lambda: vx.TopLists.from_probabilities([[0.5, 0.5]], 3),
        facts("k", "value", values=[3]),
    ),
    "k and mass": (
        lambda: vx.TopLists.from_probabilities([[0.5, 0.5]]),
        facts("k", "value"),
    ),
    "mass": (
        lambda: vx.TopLists.from_probabilities([[0.5, 0.5]], mass=2),
        facts("mass", "value", values=[2]),
    ),
    "bad rows": (
        lambda: vx.TopLists.from_probabilities([[0.5, 0.6]], 1),
        facts("p", "sum", rows=[0], values=[1.1]),
    ),
    "too large to pad": (
        lambda: top_list([0], [0.5], 2**40).padded(),
        facts("n_classes", "value"),
    ),
    "outcome": (
        lambda: vx.brier([4], top_list([0], [0.5], 4)),
        facts("y", "label", rows=[0], values=[4]),
    ),
    "labels": (
        lambda: vx.brier(["a"], top_list([0], [0.5], 4)),
        facts("y", "label", rows=[0], values=["a"]),
    ),
    "rows": (
        lambda: vx.brier([0, 1], top_list([0], [0.5], 4)),
        facts("y", "length"),
    ),
    "no rows": (
        lambda: vx.brier(np.zeros(0, int), top_list([0], [0.5], 4)[:0]),
        facts("p", "length"),
    ),
    "weights": (
        lambda: vx.brier([0], top_list([0], [0.5], 4), weights=[-1.0]),
        facts("weights", "sign", rows=[0], values=[-1.0]),
    ),
    "no weight": (lambda: vx.brier([0], top_list([0], [0.5], 4), weights=[0]), facts("weights", "value")),
    "weights of rows": (
        lambda: vx.brier([0], top_list([0], [0.5], 4), weights=[1, 2]),
        facts("weights", "length"),
    ),
    "classes": (
        lambda: vx.brier([0], top_list([0], [0.5], 4), classes=list("abc")),
        facts("classes", "length"),
    ),
    "logits": (
        lambda: vx.brier([0], top_list([0], [0.5], 4), logits=True),
        facts("logits", "value"),
    ),
    "costs": (
        lambda: vx.evaluate([0], top_list([0], [0.5], 4), costs="linear"),
        facts("costs", "value"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_lists_are_refused_with_their_facts(name):
    call, expected = ERRORS[name]
    with pytest.raises(vx.InputError) as caught:
        call()
    assert facts_of(caught.value, expected) == expected


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d"]])
def test_classes_must_be_positions_whether_or_not_they_have_names(names):
    for bad in (-1, 4, 2**40):
        with pytest.raises(vx.InputError) as caught:
            vx.TopLists.from_arrays([[0, 1], [1, bad]], [[0.5, 0.1]] * 2, n_classes=4, names=names)
        expected = facts("classes", "label", rows=[1], values=[bad])
        assert facts_of(caught.value, expected) == expected


def test_names_of_every_kind_are_looked_up_as_they_are():
    names = [1, "tie", ("a", 2), 2]
    lists = vx.TopLists.from_dicts([{("a", 2): 0.5, 1: 0.2, "tie": 0.1}], n_classes=4, names=names)
    assert lists.to_dicts() == [{("a", 2): 0.5, 1: 0.2, "tie": 0.1}]
    with pytest.raises(vx.InputError) as caught:
        vx.TopLists.from_dicts([{"x": 0.5}], n_classes=4, names=names)
    assert (caught.value.argument, caught.value.kind) == ("rows", "label")


def test_changing_the_arguments_afterwards_changes_nothing():
    classes, t, offsets = np.array([0, 2, 1]), np.array([0.5, 0.2, 0.9]), np.array([0, 2, 3])
    lists = vx.TopLists.from_arrays(classes, t, n_classes=4, offsets=offsets)
    before = lists.to_dicts(), vx.brier([0, 1], lists)
    for array in (classes, t, offsets):
        array[...] = 1
    assert (lists.to_dicts(), vx.brier([0, 1], lists)) == before
    weights = np.array([1.0, 2.0])
    rows = lists.with_outcomes([0, 1], weights=weights)
    weights[...] = -1
    assert rows.weights.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("rows", [0, 5, [7], 0.5, "ab", None, [[0, 1]], np.array([True] * 3)])
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(vx.InputError) as caught:
        top_list([0], [0.5], 4)[rows]
    assert caught.value.argument == "rows"


def test_rounding_above_one_is_no_error_and_leaves_nothing():
    lists = top_list([0, 1], [0.6, 0.4 + 5e-10], 4)
    assert lists.unaccounted.tolist() == [0.0]
    rows = [{"a": math.log(0.6), "b": math.log(0.4000001)}]
    assert vx.TopLists.from_logprobs(rows, n_classes=4).unaccounted.tolist() == [0.0]
    with pytest.raises(vx.InputError, match=r"row 0 sums to 1\.2"):
        vx.TopLists.from_logprobs([{"a": math.log(0.7), "b": math.log(0.5)}], n_classes=4)
