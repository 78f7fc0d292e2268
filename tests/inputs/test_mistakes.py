"""Likely mistakes: accepted where the meaning is clear, otherwise refused by name, with the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import verax as vx

RNG = np.random.default_rng(2)
N = 160
P = RNG.dirichlet(np.ones(3), N)
Y = (RNG.random(N)[:, None] > np.cumsum(P, axis=1)).sum(axis=1)
NAMES = ["low", "mid", "high"]
SITE, SEX = np.array(["north", "south"])[RNG.integers(0, 2, N)], np.array(["f", "m"])[RNG.integers(0, 2, N)]
TABLE = pd.DataFrame({"y": Y, "site": SITE, "sex": SEX, **{f"p_{k}": P[:, k] for k in range(3)}})
GRADES = (Y == 0).astype(float)


def scanned(**options):
    return vx.scan(TABLE, target="y", probs="p_*", **options)


def test_a_list_with_one_column_is_that_column():
    one = vx.subgroups(scanned(by="site"), by="site")
    assert vx.subgroups(scanned(by="site"), by=["site"]) == one
    here = vx.subgroups(Y, P, by={"site": SITE})
    assert here.by == "site"
    assert [line.label for line in here.lines] == ["north", "south"]
    for given in (TABLE[["site"]], [TABLE["site"]]):
        assert vx.subgroups(Y, P, by=given) == here


def test_two_columns_of_subgroups_are_crossed():
    pairs = [f"{a} {b}" for a, b in zip(SITE, SEX, strict=True)]
    joined = vx.subgroups(Y, P, by=pairs)
    for given in ([SITE, SEX], {"site": SITE, "sex": SEX}, TABLE[["site", "sex"]]):
        found = vx.subgroups(Y, P, by=given)
        assert [" ".join(line.label) for line in found.lines] == [line.label for line in joined.lines]
        assert [line.card["brier"] for line in found.lines] == [line.card["brier"] for line in joined.lines]
    assert found.by == "site and sex"
    holes = P.copy()
    holes[3] = np.nan
    skipped = vx.subgroups(Y, holes, by=[SITE, SEX], invalid="skip")
    rows = np.delete(np.arange(N), 3)
    alone = vx.subgroups(Y[rows], P[rows], by=[SITE[rows], SEX[rows]])
    assert [line.card["brier"] for line in skipped.lines] == [line.card["brier"] for line in alone.lines]


@pytest.mark.parametrize(
    "given",
    [
        lambda: {"site": SITE, "sex": SEX},
        lambda: TABLE[["site", "sex"]],
        lambda: pl.from_pandas(TABLE[["site", "sex"]]),
        lambda: [TABLE["site"], TABLE["sex"]],
    ],
)
def test_each_column_of_sets_and_grades_is_a_breakdown(given):
    sets = vx.evaluate_sets(Y, P, level=0.9, by=given())
    assert {name: [line.label for line in own] for name, own in sets.by.items()} == {
        "site": ["north", "south"],
        "sex": ["f", "m"],
    }
    assert list(vx.evaluate_grades(GRADES, by=given()).subgroups) == ["site", "sex"]


def test_a_frame_of_an_array_has_data_sets_in_its_rows():
    scores = RNG.random((8, 3))
    array = vx.compare_datasets(scores, better="lower")
    for table in (pd.DataFrame(scores), pl.DataFrame(scores, schema=["0", "1", "2"])):
        assert vx.compare_datasets(table, better="lower") == array
    named = pd.DataFrame(scores, index=list("abcdefgh"), columns=["u", "v", "w"])
    found = vx.compare_datasets(named, better="lower")
    assert found.datasets == tuple("abcdefgh")
    assert found.to_dict()["models"][0]["name"] in ("u", "v", "w")
    folds = vx.compare_folds(scores=pd.DataFrame(scores), test_train=0.25, better="lower")
    assert folds == vx.compare_folds(
        scores={str(i): scores[:, i] for i in range(3)}, test_train=0.25, better="lower"
    )


def fitted():
    return [
        vx.recalibrate(Y, P, method="temperature", classes=NAMES),
        vx.conformal(np.array(NAMES)[Y], P, classes=NAMES),
    ]


@pytest.mark.parametrize("what", [0, 1])
def test_the_classes_of_new_rows_are_those_fitted(what):
    made = fitted()[what]
    own, again = made.apply(P), made.apply(P, classes=np.array(NAMES))
    assert np.array_equal(
        np.asarray(own.mask() if what else own), np.asarray(again.mask() if what else again)
    )
    for wrong, message in (
        (NAMES[::-1], "in the same order"),
        (["a", "b", "c"], "those of the rows that this was fitted to"),
        (3, "must be a list of names"),
        ("abc", "must be a list of names"),
        ({"low": 0}, "`classes` must be"),
        ([], "`classes` must be"),
    ):
        with pytest.raises(vx.InputError, match=message) as caught:
            made.apply(P, classes=wrong)
        assert caught.value.argument == "classes"
    with pytest.raises(vx.InputError, match="must be the name of a file"):
        type(made).load(7)
    with pytest.raises(vx.InputError, match="must be the name of a file"):
        made.save(None)


def test_ordered_sets_of_a_handle_have_the_classes_fitted():
    made = vx.conformal(np.array(NAMES)[Y], P, classes=NAMES, score="rps")
    table = pd.DataFrame({"y": np.array(NAMES)[Y], **{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)}})
    found = vx.evaluate_sets(made.apply(vx.scan(table, target="y", probs="p_*", classes=NAMES)), ordered=True)
    assert found.gapless.value == 1
    with pytest.raises(vx.InputError, match="in the same order"):
        made.apply(vx.scan(table, target="y", probs="p_*", classes=NAMES[::-1]))


MISTAKES = {
    "columns of a handle are not labels": (
        lambda: vx.evaluate_sets(scanned(by="site"), level=0.9, by=SITE),
        "by",
    ),
    "nor a mapping": (lambda: vx.evaluate_sets(scanned(by="site"), level=0.9, by={"site": SITE}), "by"),
    "two columns of a handle": (
        lambda: vx.subgroups(scanned(by=["site", "sex"]), by=["site", "sex"]),
        "by",
    ),
    "three columns": (lambda: vx.subgroups(Y, P, by=[SITE, SEX, SITE]), "by"),
    "a name beside arrays": (lambda: vx.evaluate_sets(Y, P, level=0.9, by="site"), "by"),
    "a name of subgroups": (lambda: vx.subgroups(Y, P, by="site"), "by"),
    "no labels": (lambda: vx.subgroups(Y, P, by=None), "by"),
    "a name beside grades": (lambda: vx.evaluate_grades(GRADES, by="site"), "by"),
    "grades of several models": (lambda: vx.evaluate_grades({"a": GRADES, "b": GRADES}), "grades"),
    "an event without forecasts": (
        lambda: vx.compare_folds(scores={"a": [1, 2], "b": [2, 3]}, positive=1, better="lower"),
        "positive",
    ),
    "an event alone": (lambda: vx.evaluate(Y, positive=1), "positive"),
    "a number of sets": (lambda: vx.Sets.from_labels(3), "sets"),
    "lists that are none": (lambda: vx.Sets.from_lists([[0]]), "lists"),
    "one forecaster of two": (
        lambda: vx.fit_combination(Y, {"a": P, "b": P[::-1]}, folds=2).apply(3),
        "forecasts",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_other_mistakes_are_refused_by_name(case):
    ask, argument = MISTAKES[case]
    with pytest.raises(vx.InputError) as caught:
        ask()
    assert caught.value.argument == argument


@pytest.mark.parametrize("rule", [["brier"], ["brier", "rps"]])
def test_several_rules_where_one_is_asked_for(rule):
    with pytest.raises(vx.VeraxError, match="such as 'brier', not as a list"):
        vx.plan(Y, {"a": P, "b": P[::-1]}, rule=rule, difference=0.01)
