"""Top lists: against exact values, against the padded distribution written out, and in what they promise."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import references
import verax as vx
from cases import number, top_list

VECTORS = defaultdict(list)
for _entry in references.entries():
    VECTORS[_entry["rule"]].append(_entry)

SYMMETRIC = [
    *(vx.brier, vx.log_score, vx.spherical, vx.zero_one, vx.pbs, vx.pll),
    *(
        vx.rules.Brier("mean"),
        vx.rules.Log(base=2),
        vx.penalized(vx.spherical, "minimal"),
        vx.penalized(vx.brier, 0.3),
    ),
]


def vector_list(entry):
    return top_list(entry["p"]["classes"], [number(t) for t in entry["p"]["conf"]], entry["params"]["m"])


def close(value, text):
    return pytest.approx(number(text), rel=1e-12, abs=1e-15) == value


# ---- exact values ----------------------------------------------------------------------------


@pytest.mark.parametrize("entry", VECTORS["toplist"], ids=lambda e: e["id"])
def test_validity_proxy_and_largest_valid_sublist(entry):
    lists, expected = vector_list(entry), entry["expected"]
    assert lists.valid.tolist() == [expected["valid"]]
    assert lists.n_invalid == (not expected["valid"])
    assert close(lists.proxy[0], expected["proxy"])
    kept = lists.largest_valid()
    assert sorted(kept.classes.tolist()) == sorted(int(c) for c in expected["kept"])
    assert close(kept.proxy[0], expected["proxy_kept"])
    assert kept.valid.all()
    assert all(close(p, text) for p, text in zip(kept.padded()[0], expected["padded"], strict=True))
    assert vx.TopLists.from_arrays([[]], [[]], n_classes=3).valid.all()


PADDED = {
    "padded_brier": vx.brier,
    "padded_log": vx.log_score,
    "padded_spherical": vx.spherical,
    "padded_pbs": vx.pbs,
}


@pytest.mark.parametrize("entry", [e for name in PADDED for e in VECTORS[name]], ids=lambda e: e["id"])
def test_padded_losses(entry):
    rule = vx.padded(PADDED[entry["rule"]], number(entry["params"]["c_invalid"]))
    lists = vector_list(entry)
    assert close(rule([entry["y"]], lists), entry["expected"])
    assert close(rule.samples([entry["y"]], lists)[0], entry["expected"])


SCORES = {"brier": vx.brier, "log_score": vx.log_score, "spherical": vx.spherical, "pbs": vx.pbs}


@pytest.mark.parametrize("entry", VECTORS["toplist_expected"], ids=lambda e: e["id"])
def test_expected_losses_of_true_lists(entry):
    q = np.array([[number(x) for x in entry["p"]]])
    kind = entry["params"]["prediction"]
    k = {"mode": 1, "full": q.shape[1]}.get(kind) or int(kind.removeprefix("T"))
    lists = vx.TopLists.from_probabilities(q, k)
    if kind == "mode":
        lists = vx.TopLists.from_decisions(lists.classes, n_classes=q.shape[1])
    rule = vx.padded(SCORES[entry["params"]["score"]])
    expected = rule.expected(lists, q)[0]
    assert close(expected, entry["expected"]["score"])
    relative = 100 * (expected / rule.entropy(q)[0] - 1)
    assert relative == pytest.approx(number(entry["expected"]["relative_percent"]), abs=1e-9)


def test_all_vectors_of_top_lists_are_used():
    assert {name: len(VECTORS[name]) for name in ("toplist", "toplist_expected", *PADDED)} == {
        "toplist": 24,
        "toplist_expected": 84,
        **dict.fromkeys(PADDED, 60),
    }
    assert {e["params"]["score"] for e in VECTORS["toplist_expected"]} <= set(SCORES)


# ---- the padded distribution, written out, as the oracle -----------------------------------------


ROWS, CLASSES = st.integers(1, 6), st.integers(2, 9)


@st.composite
def top_lists(draw, *, rows=ROWS, classes=CLASSES):
    """Lists of eighths and the like, so that ties, zeros, full sums and invalid lists are common."""
    n, m = draw(rows), draw(classes)
    dicts = []
    for _ in range(n):
        chosen = draw(st.permutations(range(m)))[: draw(st.integers(0, m))]
        parts = [Fraction(draw(st.integers(0, 8))) for _ in chosen]
        total = sum(parts)
        spare = 0 if len(chosen) == m and total else draw(st.integers(0, 12))
        if len(chosen) == m and not total:
            chosen, parts = chosen[:-1], parts[:-1]
            total, spare = sum(parts), 8
        scale = max(total + spare, 1)
        dicts.append({c: float(part / scale) for c, part in zip(chosen, parts, strict=True)})
    return vx.TopLists.from_dicts(dicts, n_classes=m), dicts, m


def repaired(row, m):
    """The padded law of the largest valid sublist, by removing the least confident class, exactly."""
    exact = {c: Fraction(t).limit_denominator(10**6) for c, t in row.items()}
    invalid = False
    while True:
        left = 1 - sum(exact.values())
        proxy = left / (m - len(exact)) if len(exact) < m else Fraction(0)
        if not exact or min(exact.values()) >= proxy:
            return [exact.get(c, proxy) for c in range(m)], invalid, len(exact)
        invalid = True
        least = min(exact.values())
        exact = {c: t for c, t in exact.items() if t > least}


def first(rows, y):
    """The share of the outcome among the classes that each list is most confident of."""
    tops = [[c for c, t in row.items() if t == max(row.values())] for row in rows]
    return np.array([(o in top) / max(len(top), 1) for top, o in zip(tops, y.tolist(), strict=True)])


@pytest.mark.long
@given(top_lists(), st.data())
def test_lists_are_scored_as_their_padded_distribution(drawn, data):
    lists, dicts, m = drawn
    laws = [repaired(row, m) for row in dicts]
    assert lists.valid.tolist() == [not invalid for _, invalid, _ in laws]
    assert lists.largest_valid().lengths.tolist() == [kept for *_, kept in laws]
    dense = np.array([[float(p) for p in law] for law, *_ in laws])
    np.testing.assert_allclose(lists.largest_valid().padded(), dense, rtol=1e-13, atol=1e-16)
    y = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=len(dicts), max_size=len(dicts))))
    fine = data.draw(st.sampled_from([0.0, 0.25, 1.0]))
    fines = fine * ~lists.valid
    # The oracle sees exact ties; floats of the same fraction are equal.
    for rule in SYMMETRIC:
        if rule == vx.zero_one:
            expected = np.where(lists.valid, rule.samples(y, dense), 1 - first(dicts, y))
            for scored in (rule, vx.padded(rule, fine)):
                np.testing.assert_allclose(scored.samples(y, lists), expected, rtol=1e-12, atol=1e-15)
            continue
        expected = rule.samples(y, dense)
        np.testing.assert_allclose(rule.samples(y, lists), expected + ~lists.valid, rtol=1e-12, atol=1e-15)
        padded = vx.padded(rule, fine)
        np.testing.assert_allclose(padded.samples(y, lists), expected + fines, rtol=1e-12, atol=1e-15)


@pytest.mark.long
@given(top_lists())
def test_the_scores_of_lists_are_those_of_every_outcome(drawn):
    lists, _, m = drawn
    for outcome in range(m):
        y = np.full(len(lists), outcome)
        for rule in (vx.padded(vx.brier), vx.padded(vx.pbs)):
            np.testing.assert_array_equal(rule.by_outcome(lists)[:, outcome], rule.samples(y, lists))


def test_a_full_distribution_is_a_list_of_all_classes():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(6), 50), rng.integers(0, 6, 50)
    lists = vx.TopLists.from_probabilities(p, 6)
    np.testing.assert_allclose(lists.padded(), p, rtol=0, atol=0)
    for rule in SYMMETRIC:
        np.testing.assert_allclose(rule.samples(y, lists), rule.samples(y, p), rtol=1e-12)
        np.testing.assert_allclose(vx.padded(rule).samples(y, p), rule.samples(y, p), rtol=0)
    nearly = vx.TopLists.from_probabilities(p, 5)
    np.testing.assert_allclose(vx.brier.samples(y, nearly), vx.brier.samples(y, p), rtol=1e-12)


# ---- consistency ---------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("rule", [vx.brier, vx.log_score, vx.spherical, vx.pbs, vx.pll], ids=repr)
def test_no_list_beats_the_true_list_in_expectation(rule):
    rng = np.random.default_rng(1)
    for m in (3, 4, 6):
        for k in range(m):
            truths = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 3.0])), 30)
            true = vx.TopLists.from_probabilities(truths, k)
            scored = vx.padded(rule, 0.01)
            best = scored.expected(true, truths)
            # Lemma 7: a true list expects the entropy of its padded law.
            np.testing.assert_allclose(best, rule.entropy(true.padded()), rtol=1e-11)
            for _ in range(12):
                other = _random_lists(rng, truths, k)
                worse = scored.expected(other, truths)
                assert (worse >= best - 1e-12).all()
                different = abs(other.padded() - true.padded()).max(axis=1) > 1e-6
                assert (worse[different & ~other.valid] > best[different & ~other.valid]).all()


def _random_lists(rng, truths, k):
    """Lists near the truth and far from it: other classes, other confidences, too little on some."""
    n, m = truths.shape
    classes = np.argsort(rng.random((n, m)), axis=1)[:, :k]
    calibrated = np.take_along_axis(truths, classes, axis=1)
    noise = rng.dirichlet(np.ones(k + 1), n)[:, :k]
    mix = rng.choice([0.0, 0.02, 0.3, 1.0], (n, 1))
    return vx.TopLists.from_arrays(classes, (1 - mix) * calibrated + mix * noise, n_classes=m)


def test_longer_true_lists_never_expect_more():
    rng = np.random.default_rng(2)
    truths = rng.dirichlet(np.ones(7), 40)
    for rule in (vx.brier, vx.log_score, vx.spherical, vx.pbs):
        expected = [
            vx.padded(rule).expected(vx.TopLists.from_probabilities(truths, k), truths) for k in range(8)
        ]
        assert (np.diff(expected, axis=0) <= 1e-12).all()


def test_without_a_fine_an_invalid_list_can_do_as_well_as_a_true_one():
    q = np.array([[0.4, 0.2, 0.2, 0.2]])
    invalid, true = top_list([0, 1], [0.4, 0.1], 4), vx.TopLists.from_probabilities(q, 2)
    for fine, excess in ((0.0, 0.0), (0.5, 0.5)):
        rule = vx.padded(vx.brier, fine)
        assert rule.expected(invalid, q)[0] - rule.expected(true, q)[0] == pytest.approx(excess, abs=1e-15)
    assert vx.padded(vx.brier, 0.0).strictly_consistent.at(5) is False
    assert vx.padded(vx.brier).strictly_consistent.at(5) is True
    assert vx.padded(vx.zero_one).strictly_consistent.at(5) is False
    assert vx.padded(vx.zero_one).consistent.at(5) is True


# ---- rounding, and sizes beyond machine integers -----------------------------------------------


@pytest.mark.long
def test_true_lists_are_valid_whatever_the_rounding():
    for m in (*range(2, 60), *range(61, 200, 6)):
        p = np.full((2, m), 1 / m)
        for k in {0, 1, m // 2, m - 1, m}:
            lists = vx.TopLists.from_probabilities(p, k)
            assert lists.valid.all(), (m, k)
            assert vx.zero_one.samples([0, m - 1], lists) == pytest.approx(1 - 1 / m, rel=1e-12)


def test_lists_that_sum_to_one_leave_nothing():
    # In doubles these sum to a little less than one.
    lists = top_list([4, 1, 2], [0.7, 0.2, 0.1], 9)
    assert lists.unaccounted.tolist() == [0.0]
    assert vx.log_score([0], lists) == math.inf
    assert vx.spherical([0], lists) == 1.0
    assert vx.brier([0], lists) == pytest.approx(1 + 0.54, rel=1e-15)
    with_zero = top_list([4, 1, 2, 3], [0.7, 0.2, 0.1, 0.0], 9)
    assert with_zero.valid.all()


def test_what_is_left_is_exact_to_the_last_digit():
    rng = np.random.default_rng(3)
    for _ in range(200):
        t = rng.dirichlet(np.ones(12))[:11] * (1 - 10.0 ** -rng.integers(1, 14))
        exact = float(1 - sum(Fraction(x) for x in t))
        lists = top_list(range(11), t, 1000)
        assert lists.unaccounted[0] == pytest.approx(exact, rel=1e-9, abs=2.0**-52)


def test_nearly_certain_lists_keep_their_digits():
    t = 1 - 2.0**-40
    lists = top_list([3], [t], 10**6)
    exact = (1 - Fraction(t)) ** 2 + (1 - Fraction(t)) ** 2 / (10**6 - 1)
    assert vx.brier([3], lists) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("m", [2**53 + 1, 2**64, 2**71, 2**200, 2**900])
def test_more_classes_than_machine_integers(m):
    far = m - 1
    lists = vx.TopLists.from_dicts([{far: 0.5, 0: 0.25}, {far: 0.5, 0: 0.25}, {}], n_classes=m)
    outcomes = [far, 1, 1]
    exact_proxy = Fraction(1, 4) / (m - 2)
    expected_log = [math.log(2), math.log(m - 2) + math.log(4), math.log(m)]
    np.testing.assert_allclose(vx.log_score.samples(outcomes, lists), expected_log, rtol=1e-13)
    rest = Fraction(1, 4) + Fraction(1, 16) + (m - 3) * exact_proxy**2
    brier = float((1 - exact_proxy) ** 2 + rest)
    assert vx.brier.samples(outcomes, lists)[1] == pytest.approx(brier, rel=1e-14)
    card = vx.evaluate(outcomes, lists)
    assert card.n_classes == m
    assert card.coverage == pytest.approx(1 / 3)
    assert json.loads(json.dumps(card.to_dict()))["n_classes"] == m
    assert vx.zero_one.samples(outcomes, lists).tolist() == [0.0, 1.0, float(1 - Fraction(1, m))]


def test_a_listed_zero_is_invalid_however_many_classes_there_are():
    lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.0}, {0: 1.0, 1: 0.0}], n_classes=2**71)
    assert lists.valid.tolist() == [False, True]


# ---- combining ---------------------------------------------------------------------------------


@pytest.mark.long
@given(top_lists(rows=st.just(3)), st.data())
def test_combined_lists_have_the_average_of_the_padded_distributions(drawn, data):
    first, _, m = drawn
    others = [data.draw(top_lists(rows=st.just(3), classes=st.just(m)))[0] for _ in range(2)]
    weights = [1.0, 2.0, 0.5]
    both = vx.combine([first, *others], weights=weights)
    average = sum(w * each.padded() for w, each in zip(weights, (first, *others), strict=True)) / 3.5
    np.testing.assert_allclose(both.padded(), average, rtol=1e-12, atol=1e-15)
    union = [set().union(*(each.to_dicts()[i] for each in (first, *others))) for i in range(3)]
    assert [set(row) for row in both] == union


def test_combining_names_and_label_sets():
    ann = vx.TopLists.from_dicts([{"a": 0.6, "b": 0.2}], n_classes=4)
    bob = vx.TopLists.from_dicts([{"c": 0.5, "a": 0.3}], n_classes=4)
    both = vx.combine([ann, bob]).to_dicts()[0]
    assert both == {"a": pytest.approx(0.45), "c": pytest.approx(0.3), "b": pytest.approx(0.15)}
    q = np.random.default_rng(7).random((4, 5))
    sets = [vx.TopLists.from_label_probabilities(q, 7), vx.TopLists.from_label_probabilities(1 - q, 9)]
    average = (sets[0].padded() + sets[1].padded()) / 2
    np.testing.assert_allclose(vx.combine(sets).padded(), average, rtol=1e-12)
    with pytest.raises(vx.InputError, match="in the same way"):
        vx.combine([ann, vx.TopLists.from_dicts([{0: 0.5}], n_classes=4)])
    with pytest.raises(
        vx.InputError, match="same rows and classes; there are 1 lists over 4 classes, 4 lists"
    ):
        vx.combine([ann, sets[0]])
    with pytest.raises(vx.InputError, match="at least one forecaster"):
        vx.combine([])
    with pytest.raises(vx.InputError, match="`weights` must be 2 finite numbers"):
        vx.combine([ann, bob], weights=[1, -1])


# ---- top-k error ---------------------------------------------------------------------------------


def test_top_k_error_against_sorting():
    rng = np.random.default_rng(8)
    p, y = rng.dirichlet(np.ones(8), 300), rng.integers(0, 8, 300)
    lists = vx.TopLists.from_probabilities(p, 5)
    rank = np.argsort(np.argsort(-p, axis=1), axis=1)[np.arange(300), y]
    weights = rng.exponential(size=300)
    for k in range(7):
        missed = rank >= min(k, 5)
        assert vx.top_k_error(y, lists, k) == pytest.approx(missed.mean(), abs=1e-15)
        weighted = vx.top_k_error(y, lists, k, weights=weights)
        assert weighted == pytest.approx(np.average(missed, weights=weights), rel=1e-12)
    with pytest.raises(vx.InputError) as caught:
        vx.top_k_error(y, p, 1)
    assert (caught.value.argument, caught.value.kind) == ("lists", "type")


def test_ties_share_the_last_places():
    lists = top_list([0, 1, 2, 3], [0.4, 0.2, 0.2, 0.2], 6)
    assert [round(vx.top_k_error([2], lists, k), 6) for k in range(6)] == [1, 1, 0.666667, 0.333333, 0, 0]
    assert vx.top_k_error([5], lists, 4) == 1.0
