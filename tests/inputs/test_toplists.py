"""Top lists: against exact values, against the padded distribution written out, and in what they promise."""

from __future__ import annotations

import json
import math
import pickle
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import facts, facts_of, forecasts, number
from verax.scores.combinators import Padded

VECTORS = defaultdict(list)
for _entry in json.loads((Path(__file__).parents[1] / "vectors.json").read_text()):
    VECTORS[_entry["rule"]].append(_entry)

SYMMETRIC = [
    *(vx.brier, vx.log_score, vx.spherical, vx.zero_one, vx.pbs, vx.pll),
    *(vx.Brier("mean"), vx.Log(base=2), vx.penalized(vx.spherical, "minimal"), vx.penalized(vx.brier, 0.3)),
]


def one(classes, confidences, m):
    return vx.TopLists.from_arrays([classes], [confidences], n_classes=m)


def vector_list(entry):
    return one(entry["p"]["classes"], [number(t) for t in entry["p"]["conf"]], entry["params"]["m"])


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


SCORES = {"brier": vx.brier, "log": vx.log_score, "spherical": vx.spherical, "pbs": vx.pbs}


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
        expected = rule.samples(y, dense)
        np.testing.assert_allclose(rule.samples(y, lists), expected + ~lists.valid, rtol=1e-12, atol=1e-15)
        padded = vx.padded(rule, fine)
        np.testing.assert_allclose(padded.samples(y, lists), expected + fines, rtol=1e-12, atol=1e-15)


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
    invalid, true = one([0, 1], [0.4, 0.1], 4), vx.TopLists.from_probabilities(q, 2)
    for fine, excess in ((0.0, 0.0), (0.5, 0.5)):
        rule = vx.padded(vx.brier, fine)
        assert rule.expected(invalid, q)[0] - rule.expected(true, q)[0] == pytest.approx(excess, abs=1e-15)
    assert vx.padded(vx.brier, 0.0).strictly_consistent.at(5) is False
    assert vx.padded(vx.brier).strictly_consistent.at(5) is True
    assert vx.padded(vx.zero_one).strictly_consistent.at(5) is False
    assert vx.padded(vx.zero_one).consistent.at(5) is True


# ---- rounding, and sizes beyond machine integers -----------------------------------------------


def test_true_lists_are_valid_whatever_the_rounding():
    for m in range(2, 200):
        p = np.full((1, m), 1 / m)
        for k in {0, 1, m // 2, m - 1, m}:
            lists = vx.TopLists.from_probabilities(p, k)
            assert lists.valid.all(), (m, k)
            assert vx.zero_one([0], lists) == pytest.approx(1 - 1 / m, rel=1e-12)
            assert vx.zero_one([m - 1], lists) == pytest.approx(1 - 1 / m, rel=1e-12)


def test_lists_that_sum_to_one_leave_nothing():
    # In doubles these sum to a little less than one.
    lists = one([4, 1, 2], [0.7, 0.2, 0.1], 9)
    assert lists.unaccounted.tolist() == [0.0]
    assert vx.log_score([0], lists) == math.inf
    assert vx.spherical([0], lists) == 1.0
    assert vx.brier([0], lists) == pytest.approx(1 + 0.54, rel=1e-15)
    with_zero = one([4, 1, 2, 3], [0.7, 0.2, 0.1, 0.0], 9)
    assert with_zero.valid.all()


def test_what_is_left_is_exact_to_the_last_digit():
    rng = np.random.default_rng(3)
    for _ in range(200):
        t = rng.dirichlet(np.ones(12))[:11] * (1 - 10.0 ** -rng.integers(1, 14))
        exact = float(1 - sum(Fraction(x) for x in t))
        lists = one(range(11), t, 1000)
        assert lists.unaccounted[0] == pytest.approx(exact, rel=1e-9, abs=2.0**-52)


def test_nearly_certain_lists_keep_their_digits():
    t = 1 - 2.0**-40
    lists = one([3], [t], 10**6)
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
    with pytest.raises(vx.InputError, match=r"row 1 sums to 1\.5\. Lists of some classes are not rescaled"):
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
    lists = one([0], [0.5], 3)
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


# ---- combining ---------------------------------------------------------------------------------


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
    lists = one([0, 1, 2, 3], [0.4, 0.2, 0.2, 0.2], 6)
    assert [round(vx.top_k_error([2], lists, k), 6) for k in range(6)] == [1, 1, 0.666667, 0.333333, 0, 0]
    assert vx.top_k_error([5], lists, 4) == 1.0


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        vx.rps,
        vx.ranked_log,
        vx.sa_rps,
        vx.abs_rps,
        vx.penalized(vx.rps),
        vx.ZeroOne("lowest"),
        vx.penalized(vx.brier, ties="lowest"),
    ],
    ids=repr,
)
def test_rules_that_are_not_symmetric_are_refused(rule):
    lists = one([0], [0.5], 3)
    with pytest.raises(vx.RuleError, match=r"5/32|ties='fractional'"):
        rule([0], lists)
    with pytest.raises(vx.RuleError, match=r"5/32|ties='fractional'"):
        vx.evaluate([0], lists, rules=[rule])
    with pytest.raises(vx.RuleError, match=r"symmetric rule|proper rule"):
        vx.padded(rule)


def test_why_padded_refuses():
    with pytest.raises(vx.RuleError, match=r"rps is not: a list does not say where .* 5/32.* 11/72"):
        vx.padded(vx.rps)
    with pytest.raises(vx.RuleError, match="lowest index judge a list by the numbering"):
        vx.padded(vx.penalized(vx.brier, ties="lowest"))
    with pytest.raises(vx.RuleError, match="needs a proper rule"):
        vx.padded(vx.Log(clip=1e-7))
    with pytest.raises(vx.RuleError, match="adds nothing"):
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
    for rule in (vx.padded(vx.pbs), vx.padded(vx.Log(base=2), 0.25), vx.padded(vx.brier, invalid_penalty=0)):
        assert vx.parse(repr(rule)) == rule
    assert repr(vx.padded(vx.brier)) == "padded(brier)"
    assert isinstance(vx.parse("padded(brier, invalid_penalty=0.5)"), Padded)
    assert vx.padded(vx.brier).bounds(4) == (0.0, 3.0)
    assert vx.padded(vx.brier).properties == vx.brier.properties


ERRORS = {
    "duplicate": (
        lambda: one([1, 2, 1], [0.2, 0.2, 0.1], 4),
        facts("classes", "list", rows=[0], values=[1]),
    ),
    "unknown class": (
        lambda: vx.TopLists.from_arrays([[0, 1], [1, 7]], [[0.5, 0.1], [0.5, 0.1]], n_classes=4),
        facts("classes", "label", rows=[1], values=[7]),
    ),
    "negative class": (
        lambda: one([-1], [0.2], 4),
        facts("classes", "label", rows=[0], values=[-1]),
    ),
    "unknown key": (
        lambda: vx.TopLists.from_dicts([{9: 0.2}], n_classes=4),
        facts("rows", "label", values=[9]),
    ),
    "negative": (lambda: one([1], [-0.2], 4), facts("confidences", "value", rows=[0], values=[-0.2])),
    "above one": (lambda: one([1], [1.2], 4), facts("confidences", "value", rows=[0], values=[1.2])),
    "nan": (
        lambda: one([1, 2], [0.1, math.nan], 4),
        facts("confidences", "value", rows=[0]),
    ),
    "sum": (
        lambda: one([1, 2], [0.7, 0.5], 4),
        facts("confidences", "sum", rows=[0], values=[1.2]),
    ),
    "full but short": (
        lambda: one([0, 1], [0.5, 0.4], 2),
        facts("confidences", "sum", rows=[0], values=[0.9]),
    ),
    "one class": (lambda: one([0], [0.5], 1), facts("n_classes", "value", values=[1])),
    "too many classes": (lambda: one([0], [0.5], 2**901), facts("n_classes", "value")),
    "float classes": (
        lambda: one([0.5], [0.5], 4),
        facts("classes", "type"),
    ),
    "text confidences": (
        lambda: one([0], ["a"], 4),
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
        lambda: one([0], [0.5], 2**40).padded(),
        facts("n_classes", "value"),
    ),
    "outcome": (
        lambda: vx.brier([4], one([0], [0.5], 4)),
        facts("y", "label", rows=[0], values=[4]),
    ),
    "labels": (
        lambda: vx.brier(["a"], one([0], [0.5], 4)),
        facts("y", "label", rows=[0], values=["a"]),
    ),
    "rows": (
        lambda: vx.brier([0, 1], one([0], [0.5], 4)),
        facts("y", "length"),
    ),
    "no rows": (
        lambda: vx.brier(np.zeros(0, int), one([0], [0.5], 4)[:0]),
        facts("p", "length"),
    ),
    "weights": (
        lambda: vx.brier([0], one([0], [0.5], 4), weights=[-1.0]),
        facts("weights", "sign", rows=[0], values=[-1.0]),
    ),
    "no weight": (lambda: vx.brier([0], one([0], [0.5], 4), weights=[0]), facts("weights", "value")),
    "weights of rows": (
        lambda: vx.brier([0], one([0], [0.5], 4), weights=[1, 2]),
        facts("weights", "length"),
    ),
    "classes": (
        lambda: vx.brier([0], one([0], [0.5], 4), classes=list("abc")),
        facts("classes", "length"),
    ),
    "logits": (
        lambda: vx.brier([0], one([0], [0.5], 4), logits=True),
        facts("logits", "value"),
    ),
    "costs": (
        lambda: vx.evaluate([0], one([0], [0.5], 4), costs="linear"),
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
        one([0], [0.5], 4)[rows]
    assert caught.value.argument == "rows"


def test_rounding_above_one_is_no_error_and_leaves_nothing():
    lists = one([0, 1], [0.6, 0.4 + 5e-10], 4)
    assert lists.unaccounted.tolist() == [0.0]
    rows = [{"a": math.log(0.6), "b": math.log(0.4000001)}]
    assert vx.TopLists.from_logprobs(rows, n_classes=4).unaccounted.tolist() == [0.0]
    with pytest.raises(vx.InputError, match=r"row 0 sums to 1\.2"):
        vx.TopLists.from_logprobs([{"a": math.log(0.7), "b": math.log(0.5)}], n_classes=4)
