"""Prediction sets: every number against brute force, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

import verax as vx
from verax.rules import LevelSet, Winkler

RNG = np.random.default_rng(5)
N, K = 400, 5
MASK = RNG.random((N, K)) < 0.5
Y = RNG.integers(0, K, N)
NAMES = ["none", "mild", "moderate", "severe", "worst"]
GROUPS = RNG.integers(0, 30, N)


@pytest.fixture(scope="module")
def found():
    return vx.evaluate_sets(Y, MASK, level=0.6, threshold=0.3, ordered=True, by={"site": Y % 2})


def brute():
    """What each row is worth, one after the other."""
    rows = []
    for mask, y in zip(MASK, Y, strict=True):
        members = np.flatnonzero(mask).tolist()
        covered = y in members
        score = 0.3 * len(members) + (not covered)
        low, high = (members[0], members[-1]) if members else (np.nan, np.nan)
        wink = high - low + 5 * max(low - y, 0) + 5 * max(y - high, 0) if members else np.inf
        near = min((abs(y - m) for m in members), default=np.nan)
        rows.append((covered, len(members), score, wink, not members or high - low + 1 == len(members), near))
    return [np.array(column, float) for column in zip(*rows, strict=True)]


def test_numbers_are_those_of_brute_force(found):
    covered, size, score, _, gapless, near = brute()
    assert found.coverage.value == pytest.approx(covered.mean())
    assert found.excess.value == pytest.approx(covered.mean() - 0.6)
    assert found.size.value == pytest.approx(size.mean())
    assert found.median_size == np.median(size)
    assert found.empty.value == pytest.approx((size == 0).mean())
    assert found.single.value == pytest.approx((size == 1).mean())
    assert found.level_set.value == pytest.approx(score.mean())
    assert found.gapless.value == pytest.approx(gapless.mean())
    missed = (covered == 0) & (size > 0)
    assert found.miss_distance.value == pytest.approx(near[missed].mean())
    assert found.sizes == pytest.approx({k: (size == k).mean() for k in range(K + 1)})
    for line in found.by_class:
        assert line.coverage == pytest.approx(covered[int(line.label) == Y].mean())
    for line in found.by_size:
        assert line.coverage == pytest.approx(covered[size == int(line.label)].mean())
    assert [line.n_rows for line in found.by["site"]] == [(i == Y % 2).sum() for i in (0, 1)]


def test_scores_of_rows_are_those_of_brute_force():
    _, _, score, wink, _, _ = brute()
    sets = vx.Sets.from_mask(MASK)
    np.testing.assert_allclose(LevelSet(t=0.3).samples(Y, sets), score)
    np.testing.assert_allclose(Winkler(level=0.6).samples(Y, sets), wink)
    assert vx.parse("winkler(level=0.6)")(Y, sets) == np.inf


def test_the_interval_of_coverage_is_mid_p(found):
    hits = int(brute()[0].sum())
    low, high = found.coverage.interval
    assert (found.coverage.interval.method, low < hits / N < high) == ("mid-P", True)
    assert binom.sf(hits, N, low) + binom.pmf(hits, N, low) / 2 == pytest.approx(0.025)
    assert binom.cdf(hits - 1, N, high) + binom.pmf(hits, N, high) / 2 == pytest.approx(0.025)


def test_the_interval_over_groups_is_the_jackknife():
    covered = brute()[0]
    own = vx.evaluate_sets(Y, MASK, groups=GROUPS)
    assert own.n_groups == len(np.unique(GROUPS))
    total, n = covered.mean(), len(np.unique(GROUPS))
    without = np.array([covered[g != GROUPS].mean() for g in np.unique(GROUPS)])
    error = np.sqrt((n - 1) / n * ((without - total) ** 2).sum())
    width = own.coverage.interval.high - own.coverage.interval.low
    assert width == pytest.approx(2 * 2.05 * error, rel=0.1)


def test_spans_count_every_row_once(found):
    assert sum(span.share for span in found.spans) == pytest.approx(1)
    ends = [(np.flatnonzero(m)[0], np.flatnonzero(m)[-1]) for m in MASK if m.any()]
    first = found.spans[0]
    assert first.share == pytest.approx(ends.count((first.low, first.high)) / len(ends))


def test_weights_are_importance_weights():
    w = RNG.integers(0, 4, N)
    repeated = np.repeat(np.arange(N), w)
    one, other = vx.evaluate_sets(Y, MASK, weights=w), vx.evaluate_sets(Y[repeated], MASK[repeated])
    assert one.coverage.value == pytest.approx(other.coverage.value)
    assert one.level_set.value == pytest.approx(other.level_set.value)
    assert vx.evaluate_sets(Y, MASK, weights=7 * w).coverage.interval == pytest.approx(
        tuple(one.coverage.interval)
    )


def test_shares_of_classes_and_the_constant_set_follow_the_weights():
    """Each class is weighted as in all rows, not by its own largest weight: brute force over all sets."""
    y, w = np.repeat([0, 1, 2], [10, 20, 10]), np.repeat([1.0, 0.3, 0.2], [10, 20, 10])
    sites = np.tile(["a", "b"], 20)
    own = vx.evaluate_sets(y, np.ones((40, 3), bool), level=0.9, threshold=0.2, weights=w, by={"site": sites})
    share = np.array([10, 6, 2]) / 18
    assert [line.share for line in own.by_class] == pytest.approx(share.tolist())
    assert sum(line.share for line in own.by_size) == pytest.approx(1)
    assert [line.share for line in own.by["site"]] == pytest.approx([0.5, 0.5])
    best = min(
        0.2 * len(some) + 1 - share[list(some)].sum()
        for n in range(4)
        for some in itertools.combinations(range(3), n)
    )
    assert own.constant_score == pytest.approx(best)
    assert own.constant_size == 3
    assert "alone would reach" not in own.verdict


def test_sets_of_more_than_1000_classes_have_a_line_of_their_own():
    sets = [list(range(1500))] * 3 + [list(range(600))] * 2
    own = vx.evaluate_sets([0] * 5, sets, classes=range(2000))
    assert [(line.label, line.n_rows) for line in own.by_size] == [("501 to 1,000", 2), ("1,001 to 2,000", 3)]


FORMS = {
    "lists of labels": lambda: [[NAMES[i] for i in np.flatnonzero(m)] for m in MASK],
    "sets of labels": lambda: [{NAMES[i] for i in np.flatnonzero(m)} for m in MASK],
    "a mask of numbers": lambda: MASK.astype(int),
    "a frame": lambda: pd.DataFrame(MASK, columns=NAMES),
    "a column of pandas": lambda: pd.Series([[NAMES[i] for i in np.flatnonzero(m)] for m in MASK]),
    "a column of polars": lambda: pl.Series([[NAMES[i] for i in np.flatnonzero(m)] for m in MASK]),
    "a column of arrow": lambda: pa.array([[NAMES[i] for i in np.flatnonzero(m)] for m in MASK]),
    "sets": lambda: vx.Sets.from_mask(MASK, classes=NAMES),
    "positions": lambda: [np.flatnonzero(m) for m in MASK],
    "rows of a mask": lambda: [list(map(bool, m)) for m in MASK],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_sets_means_the_same(form):
    y = [NAMES[k] for k in Y]
    own = vx.evaluate_sets(y, FORMS[form](), classes=NAMES, ordered=True)
    exact = vx.evaluate_sets(y, MASK, classes=NAMES, ordered=True)
    assert own == exact
    assert [line.label for line in own.by_class] == NAMES


def test_probabilities_are_taken_at_their_word():
    p = RNG.dirichlet(np.ones(4), 300)
    y = RNG.integers(0, 4, 300)
    order = np.argsort(-p, axis=1)
    sets = []
    for row, places in zip(p, order, strict=True):
        needed = int(np.searchsorted(np.cumsum(row[places]), 0.8)) + 1
        sets.append(places[:needed].tolist())
    assert vx.evaluate_sets(y, p, level=0.8) == vx.evaluate_sets(y, sets, classes=range(4), level=0.8)
    by_threshold = vx.evaluate_sets(y, p, threshold=0.2)
    mask = p > 0.2
    assert by_threshold.claimed == pytest.approx((p * mask).sum(axis=1).mean())
    assert by_threshold.level_set.value == pytest.approx(
        vx.evaluate_sets(y, mask, threshold=0.2).level_set.value
    )


def test_lists_claim_their_mass():
    lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.2}, {2: 0.9}], n_classes=4)
    own = vx.evaluate_sets([1, 3], lists)
    assert (own.claimed, own.coverage.value) == (pytest.approx(0.8), 0.5)
    with pytest.raises(vx.InputError, match="top lists"):
        vx.evaluate_sets([1, 3], lists, ordered=True)


def test_a_constant_reaches_the_level_and_the_score_tells():
    y = RNG.choice(4, 1000, p=[0.5, 0.3, 0.15, 0.05])
    always = vx.evaluate_sets(y, np.tile([True, True, True, False], (1000, 1)), level=0.9, threshold=0.2)
    assert always.constant_size == 3
    counts = np.bincount(y, minlength=4) / 1000
    best = min(
        0.2 * len(c) + 1 - counts[list(c)].sum()
        for n in range(5)
        for c in itertools.combinations(range(4), n)
    )
    assert always.constant_score == pytest.approx(best)


def test_subgroups_that_are_not_covered_are_flagged():
    site = np.repeat(["north", "south"], 300)
    y = np.zeros(600, int)
    mask = np.ones((600, 2), bool)
    mask[:, 0] = RNG.random(600) < np.where(site == "north", 0.9, 0.75)
    own = vx.evaluate_sets(y, mask, level=0.9, by=pd.Series(site, name="site"))
    assert [line.label for line in own.flagged["site"]] == ["south"]
    # A small subgroup that is covered throughout is no evidence.
    few = vx.evaluate_sets([0] * 12, [[0]] * 12, level=0.9, by=["a"] * 6 + ["b"] * 6)
    assert not few.flagged


def test_sets_are_compared_by_their_scores():
    p = RNG.dirichlet(np.ones(K), N)
    a, b = vx.Sets.from_mask(MASK), vx.Sets.from_probabilities(p, level=0.7)
    rules = [LevelSet(t=0.2), Winkler(level=0.7)]
    table = vx.compare(Y, {"a": a, "b": b}, rule=rules[0], groups=GROUPS)
    difference = rules[0].samples(Y, a) - rules[0].samples(Y, b)
    assert table.difference("a", "b").difference == pytest.approx(difference.mean())
    filled = MASK.any(axis=1)
    some = {"a": vx.Sets.from_mask(MASK[filled]), "b": vx.Sets.from_probabilities(p[filled], level=0.7)}
    assert set(vx.compare(Y[filled], some, rule=rules, ordered=True).models) == {
        "level_set(t=0.2)",
        "winkler(level=0.7)",
    }
    # A set at level L is a top list with total probability L.
    lists = {"sets": b.to_lists(), "lists": vx.TopLists.from_probabilities(p, 2)}
    assert vx.compare(Y, lists, rule="brier").models["brier"][0].mean > 0


def test_expected_scores_are_least_for_what_they_elicit():
    q = RNG.dirichlet(np.ones(4), 50)
    masks = np.array(list(itertools.product([False, True], repeat=4)))
    for rule in (LevelSet(t=0.15), LevelSet(t=0.4), Winkler(level=0.8)):
        losses = rule.by_set(masks[1:])
        own = (rule.by_set(rule.elicited(q)) * q).sum(axis=1)
        smallest = np.minimum((losses @ q.T).min(axis=0), 1.0 if isinstance(rule, LevelSet) else np.inf)
        np.testing.assert_allclose(own, smallest, atol=1e-12)


def test_set_scores_are_certified():
    level = vx.certify("level_set(t=0.3)", 2)
    assert level.proper
    assert not level.strictly_proper
    assert "none beats" in level.notes[-1]


def test_results_come_back_and_are_drawn(found):
    pytest.importorskip("matplotlib")
    assert vx.results.SetEvaluation.from_dict(found.to_dict()) == found
    assert len(found.plot().axes) == 4
    assert found.plot_spans().axes
    with pytest.raises(vx.InputError, match="ordered"):
        vx.evaluate_sets([0, 1], [[0], [1]]).plot_spans()
    assert "sets without gaps" in repr(found)
    assert len(found.to_frame()) == 9


# ---- refusals ------------------------------------------------------------------------------------

BAD = {
    "an unknown class": (
        lambda: vx.evaluate_sets(["a"], [["a", "z"]], classes=["a", "b"]),
        r"row 0 names 'z'",
    ),
    "an unknown position": (lambda: vx.evaluate_sets([0, 1], [[0], [7]], classes=range(3)), r"row 1 names 7"),
    "a class twice": (lambda: vx.evaluate_sets([0], [[1, 1]]), "every class once"),
    "a wrong length": (lambda: vx.evaluate_sets([0, 1], [[0]]), "2 outcomes and 1 sets"),
    "a label alone": (lambda: vx.evaluate_sets(["a"], ["a"]), "collection of classes"),
    "a level in percent": (lambda: vx.evaluate_sets([0], [[0]], level=90), r"Pass level=0\.9"),
    "a threshold of 1": (lambda: vx.evaluate_sets([0], [[0]], threshold=1), "between 0 and 1"),
    "probabilities alone": (
        lambda: vx.evaluate_sets([0, 1], np.array([[0.5, 0.5], [0.2, 0.8]])),
        "level=0.9",
    ),
    "no sets": (lambda: vx.evaluate_sets([0, 1]), "must be given"),
    "a mask of halves": (lambda: vx.Sets.from_mask(np.array([[0.5, 1]])), "0 and 1 only"),
    "an outcome that is unknown": (lambda: vx.evaluate_sets([0, 9], MASK[:2]), "row 1 holds 9"),
    "sets as forecasts": (lambda: vx.evaluate(Y, vx.Sets.from_mask(MASK)), "prediction sets"),
    "two kinds of groups": (lambda: vx.evaluate_sets(Y, MASK, groups=[GROUPS, GROUPS]), "of one kind"),
    "an unknown column": (
        lambda: vx.evaluate_sets(
            vx.scan(pa.table({"y": [0], "p_0": [0.5], "p_1": [0.5]}), target="y"), level=0.9, by="x"
        ),
        "a column that `scan` was told of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    ask, message = BAD[case]
    with pytest.raises(vx.InputError, match=message):
        ask()


def test_what_is_odd_is_said():
    empty = vx.evaluate_sets(Y, np.zeros((N, K), bool), level=0.9)
    assert "all sets are empty" in empty.cautions[0]
    wrong = vx.evaluate_sets(["a", "b"] * 20, [["x"]] * 40)
    assert any("same class names" in caution for caution in wrong.cautions)
    with pytest.raises(vx.errors.RuleError, match="a set states none"):
        vx.brier(Y, vx.Sets.from_mask(MASK))
    with pytest.raises(vx.errors.RuleError, match="score sets"):
        LevelSet()(Y, np.full((N, K), 1 / K))
    with pytest.raises(vx.errors.RuleError, match="scores sets"):
        vx.padded(LevelSet())
