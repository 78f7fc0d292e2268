"""Sets of labels as classes: the most likely ones, found without looking at all; outcomes in every form."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import references
import verax as vx
from cases import facts, facts_of, number

F1 = [e for e in references.entries() if e["rule"] == "instance_f1_expected"]


def brute_force(q):
    """Every set with its probability, by number."""
    n_labels = len(q)
    return {
        sum(1 << i for i in members): math.prod(q[i] if i in members else 1 - q[i] for i in range(n_labels))
        for size in range(n_labels + 1)
        for members in itertools.combinations(range(n_labels), size)
    }


PROBABILITIES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(1e-30, 1))


@given(st.lists(PROBABILITIES, min_size=1, max_size=7), st.integers(0, 140))
def test_the_most_likely_sets_against_enumeration(q, k):
    lists = vx.TopLists.from_label_probabilities([q], k)
    every = brute_force(q)
    positive = sorted((p for p in every.values() if p > 0), reverse=True)[:k]
    np.testing.assert_allclose(lists.confidences, positive, rtol=1e-12, atol=1e-300)
    numbers = [sum(1 << label for label in found) for found in lists.to_dicts()[0]]
    assert len(set(numbers)) == len(numbers)
    np.testing.assert_allclose([every[n] for n in numbers], lists.confidences, rtol=1e-12, atol=1e-300)
    assert lists.valid.all()
    assert lists.n_classes == 2 ** len(q)


def test_the_search_looks_at_few_sets(monkeypatch):
    pushed = []
    push, replace = heapq.heappush, heapq.heapreplace
    monkeypatch.setattr(heapq, "heappush", lambda *a: pushed.append(1) or push(*a))
    monkeypatch.setattr(heapq, "heapreplace", lambda *a: pushed.append(1) or replace(*a))
    q = np.random.default_rng(0).random((1, 300))
    lists = vx.TopLists.from_label_probabilities(q, 50)
    assert lists.lengths.tolist() == [50]
    assert len(pushed) <= 100


def test_outcomes_in_every_form():
    labels = ["a", "b", "c"]
    q = np.array([[0.9, 0.2, 0.6], [0.1, 0.1, 0.2]])
    lists = vx.TopLists.from_label_probabilities(q, 2, labels=labels)
    assert [list(row) for row in lists] == [[("a", "c"), ("a",)], [(), ("c",)]]
    expected = [-math.log(0.9 * 0.8 * 0.4), -math.log(0.9 * 0.9 * 0.8)]
    sets = [{"a"}, set()]
    forms = [
        sets,
        [("a",), ()],
        [["a"], []],
        np.array([[1, 0, 0], [0, 0, 0]]),
        np.array([[True, False, False], [False, False, False]]),
        [1, 0],
        np.array([1, 0]),
    ]
    for y in forms:
        np.testing.assert_allclose(vx.log_score.samples(y, lists), expected, rtol=1e-13)
    direct = vx.TopLists.from_label_sets(
        [list(row) for row in lists], [list(row.values()) for row in lists], labels=labels
    )
    np.testing.assert_allclose(vx.log_score.samples(sets, direct), expected, rtol=1e-13)
    dense = lists.padded()
    assert dense.shape == (2, 8)
    np.testing.assert_allclose(vx.brier.samples([1, 0], dense), vx.brier.samples(sets, lists), rtol=1e-13)
    np.testing.assert_allclose(vx.brier.by_outcome(lists), vx.brier.by_outcome(dense), rtol=1e-12)
    hard = vx.TopLists.from_label_sets([[{"a"}], [{"b"}]], labels=labels)
    assert vx.brier.samples(sets, hard).tolist() == [0.0, 2.0]


def test_all_sets_listed_are_the_product_distribution():
    q = np.random.default_rng(1).random((5, 4))
    lists = vx.TopLists.from_label_probabilities(q, 16)
    y = np.random.default_rng(2).integers(0, 2, (5, 4))
    likelihood = np.where(y, q, 1 - q).prod(axis=1)
    np.testing.assert_allclose(vx.log_score.samples(y, lists), -np.log(likelihood), rtol=1e-12)


@pytest.mark.parametrize("entry", F1, ids=lambda e: e["id"])
def test_instance_f1(entry):
    sets = [set(s) for s, _ in entry["params"]["truth"]]
    q = np.array([number(p) for _, p in entry["params"]["truth"]])
    f1 = vx.instance_f1(sets, [set(entry["p"])] * len(sets), labels=[1, 2, 3, 4, 5])
    assert q @ f1 == pytest.approx(number(entry["expected"]), rel=1e-12, abs=1e-15)


def test_instance_f1_of_arrays():
    y, guess = np.array([[1, 0, 1], [0, 0, 0]]), np.array([[1, 1, 0], [0, 0, 0]])
    assert vx.instance_f1(y, guess, labels=3).tolist() == [0.5, 1.0]
    assert len(F1) == 7


LISTS = vx.TopLists.from_label_probabilities([[0.9, 0.2]], 2)
ERRORS = {
    "label": (
        lambda: vx.brier([{5}], LISTS),
        facts("y", "label", rows=[0], values=[5]),
    ),
    "twice": (
        lambda: vx.brier([[1, 1]], LISTS),
        facts("y", "label", rows=[0], values=[1]),
    ),
    "columns": (
        lambda: vx.brier(np.zeros((1, 3)), LISTS),
        facts("y", "type"),
    ),
    "indicator": (
        lambda: vx.brier(np.array([[0, 2]]), LISTS),
        facts("y", "value", rows=[0], values=[[0, 2]]),
    ),
    "number": (lambda: vx.brier([4], LISTS), facts("y", "label", rows=[0], values=[4])),
    "text": (lambda: vx.brier(["ab"], LISTS), facts("y", "label", rows=[0], values=["ab"])),
    "probability": (
        lambda: vx.TopLists.from_label_probabilities([[0.5, 1.5]], 2),
        facts("q", "value", rows=[0], values=[1.5]),
    ),
    "shape": (
        lambda: vx.TopLists.from_label_probabilities([0.5], 2),
        facts("q", "type"),
    ),
    "k": (lambda: vx.TopLists.from_label_probabilities([[0.5]], -1), facts("k", "value", values=[-1])),
    "names": (
        lambda: vx.TopLists.from_label_probabilities([[0.5, 0.5]], 1, labels=["a"]),
        facts("labels"),
    ),
    "same name": (
        lambda: vx.TopLists.from_label_probabilities([[0.5, 0.5]], 1, labels=["a", "a"]),
        facts("labels"),
    ),
    "same set": (
        lambda: vx.TopLists.from_label_sets([[{0, 1}, {1, 0}]], [[0.5, 0.1]], labels=2),
        facts("classes", "list", rows=[0], values=[(0, 1)]),
    ),
    "many labels": (
        lambda: vx.TopLists.from_label_probabilities(np.full((1, 10_001), 0.1), 1),
        facts("labels", "value"),
    ),
    "f1": (
        lambda: vx.instance_f1([{0}], [{0}, {1}], labels=2),
        facts("sets", "length"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_no_set_of_labels_is_named(name):
    call, expected = ERRORS[name]
    with pytest.raises(vx.InputError) as caught:
        call()
    assert facts_of(caught.value, expected) == expected


def test_thousands_of_labels_have_finite_scores(tmp_path):
    rng = np.random.default_rng(0)
    n_labels = 2000
    q = rng.random((3, n_labels)) * 1e-3
    q[:, :3] = [0.9, 0.4, 0.2]
    lists = vx.TopLists.from_label_probabilities(q, 4)
    assert lists.n_classes == 2**n_labels
    y = np.zeros((3, n_labels), int)
    y[0, 0] = 1
    y[1, 5:500] = 1
    y[2, [0, 1]] = 1
    listed = np.array([np.log1p(-q[i, y[i] == 0]).sum() + np.log(q[i, y[i] == 1]).sum() for i in range(3)])
    left = 1 - np.array([sum(row.values()) for row in lists])
    expected = [-listed[0], n_labels * math.log(2) - math.log(left[1]), -listed[2]]
    np.testing.assert_allclose(vx.log_score.samples(y, lists), expected, rtol=1e-12)
    squares = np.array([sum(t * t for t in row.values()) for row in lists])
    hit = np.exp(listed) * [1, 0, 1]
    np.testing.assert_allclose(vx.brier.samples(y, lists), 1 + squares - 2 * hit, rtol=1e-12)
    # A wrong mode costs the largest loss of a right one: the logarithm of the number of sets.
    wrong = vx.zero_one.samples(y, lists)
    penalized = np.array(expected) + wrong * n_labels * math.log(2)
    np.testing.assert_allclose(vx.pll.samples(y, lists), penalized, rtol=1e-12)
    card = vx.evaluate(y, lists)
    assert card["log_score"] == pytest.approx(np.mean(expected), rel=1e-12)
    assert "1.148e+602 classes" in str(card)
    card.save(tmp_path / "card.verax")
    assert vx.load(tmp_path / "card.verax")["log_score"] == card["log_score"]
    assert "1.15e+602 classes" in repr(lists)
    assert vx.worst(y, lists, rule="log_score", n=1)[0].row == 1
    assert vx.spherical(y, lists) < 1
    with pytest.raises(vx.InputError, match="must be at most 10,000"):
        vx.TopLists.from_label_sets([[{0}]], labels=10_001)


def test_several_labels_of_a_row_are_told_where_they_are_scored():
    y, p = [[1, 1, 0], [0, 1, 0]], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]]
    for forecasts in (p, vx.TopLists.from_probabilities(p, 2)):
        with pytest.raises(vx.InputError, match=r"row 0 holds \[1, 1, 0\].*from_label_probabilities"):
            vx.evaluate(y, forecasts)
