"""Outcomes of several raters: how they are read, what is refused, and what every function makes of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import verax as vx
from verax.engines.tally import RuleSums
from verax.rules import RULES

K = 4


@pytest.fixture(scope="module")
def rated():
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.full(K, 0.7), 200)
    counts = np.array([rng.multinomial(3, row) for row in q])
    p = q**0.7 / (q**0.7).sum(axis=1, keepdims=True)
    return counts, p


def brute(rule, shares, p):
    """The mean loss over the raters, from one ordinary outcome after the other."""
    losses = np.column_stack([rule.samples(np.full(len(p), k), p) for k in range(p.shape[1])])
    return np.where(shares > 0, shares * np.where(shares > 0, losses, 0), 0).sum(axis=1)


@pytest.mark.parametrize("name", RULES)
def test_the_loss_is_the_mean_over_the_raters(rated, name):
    counts, p = rated
    rule, shares = RULES[name], counts / 3
    expected = brute(rule, shares, p)
    np.testing.assert_allclose(rule.samples(shares, p), expected, rtol=1e-12)
    np.testing.assert_allclose(rule.samples(counts, p, raters="counts"), expected, rtol=1e-12)
    assert rule(counts, p, raters="counts") == pytest.approx(expected.mean(), rel=1e-12)


def test_the_loss_in_rationals():
    counts, p = [[2, 1, 0], [0, 1, 3]], [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]]
    exact = Fraction(0)
    for votes, row in zip(counts, p, strict=True):
        q = [Fraction(x) for x in row]
        for k, votes_for_k in enumerate(votes):
            error = sum((x - (j == k)) ** 2 for j, x in enumerate(q))
            exact += Fraction(votes_for_k, sum(votes)) * error / 2
    assert vx.brier(counts, p, raters="counts") == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("n_classes", [5, 12])
@pytest.mark.parametrize("form", ["shares", "counts"])
def test_engines_agree(change, n_classes, form):
    pytest.importorskip("numba")
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.5), 3000)
    counts = rng.multinomial(4, rng.dirichlet(np.ones(n_classes)), 3000)
    # Some classes are certain, some impossible and chosen by nobody.
    p[:9] = np.eye(n_classes)[np.arange(9) % n_classes]
    counts[:9] = 4 * p[:9].astype(int)
    w, groups = rng.random(3000), rng.integers(0, 40, 3000)
    rules = [RULES[name] for name in ("brier", "log_score", "rps", "ranked_log", "zero_one", "pbs")]
    y = counts if form == "counts" else counts / 4
    for more in ({}, {"weights": w}, {"weights": w, "groups": groups}):
        found = []
        for compiled in (True, False):
            change(compiled_from=0, kernels=compiled)
            found.append(RuleSums(rules, n_classes).update(vx.Forecasts(y, p, raters=form, **more)))
        one, other = found
        means = [np.average(brute(rule, counts / 4, p), weights=more.get("weights")) for rule in rules]
        for own in found:
            np.testing.assert_allclose(own.moments.mean, means, rtol=1e-12)
        np.testing.assert_allclose(one.moments.std, other.moments.std, rtol=1e-9)
        np.testing.assert_allclose(one.counts.confusion, other.counts.confusion, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(one.counts.squared.high, other.counts.squared.high, rtol=1e-10, atol=1e-10)
        assert one.counts.n_zero == other.counts.n_zero == 0


def test_one_rater_is_an_ordinary_outcome():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 500), rng.integers(0, 3, 500)
    card, same = vx.evaluate(y, p, ordered=True), vx.evaluate(np.eye(3, dtype=int)[y], p, ordered=True)
    rated = vx.evaluate(np.eye(3)[y], p, ordered=True, raters="shares")
    assert same.to_dict() == card.to_dict()
    for name, line in {**card.scores, **card.metrics}.items():
        own = {**rated.scores, **rated.metrics}[name]
        assert own.mean == pytest.approx(line.mean, rel=1e-12), name
        assert own.interval.low == pytest.approx(line.interval.low, rel=1e-9), name


def test_raters_in_columns(rated):
    frame = pd.DataFrame({"ann": ["a", "b", None], "bob": ["a", "c", "b"], "cy": ["c", "b", "b"]})
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.25, 0.5, 0.25]])
    counts = [[2, 0, 1], [0, 2, 1], [0, 2, 0]]
    expected = vx.brier.samples(counts, p, raters="counts")
    named = {"raters": "columns", "classes": ["a", "b", "c"]}
    np.testing.assert_allclose(vx.brier.samples(frame, p, **named), expected)
    codes = np.array([[0, 0, 2], [1, 2, 1], [np.nan, 1, 1]])
    np.testing.assert_allclose(vx.brier.samples(codes, p, raters="columns"), expected)
    rows = vx.Forecasts(frame, p, **named)
    assert rows.outcomes.raters == ("ann", "bob", "cy")
    assert rows.outcomes.codes_of(slice(None)).tolist() == [[0, 0, 2], [1, 2, 1], [-2, 1, 1]]


@pytest.mark.parametrize(
    ("y", "options", "kind", "row", "words"),
    [
        ([[1, -1, 2], [1, 0, 0]], {"raters": "counts"}, "sign", 0, "whole numbers of raters"),
        ([[1, 0, 2], [0.5, 0, 0]], {"raters": "counts"}, "sign", 1, "0.5"),
        ([[1, 0, 2], [0, 0, 0]], {"raters": "counts"}, "missing", 1, "at least one rater"),
        ([[0.5, 0.5, 0], [0.5, 0.25, 0]], {}, "sum", 1, "sums to 0.75"),
        ([[0.5, 0.5, 0], [1.5, -0.5, 0]], {}, "sign", 1, "-0.5"),
        ([["a", "b"], ["a", "z"]], {"raters": "columns", "classes": "abc"}, "label", 1, "'z'"),
        ([["a", None], [None, None]], {"raters": "columns", "classes": "abc"}, "missing", 1, "one rater"),
    ],
)
def test_invalid_rows_are_named(y, options, kind, row, words):
    options = {**options, "classes": list(options["classes"])} if "classes" in options else options
    if options.get("raters") == "columns":
        y = np.array(y, object)
    with pytest.raises(vx.InputError, match=words) as caught:
        vx.brier(y, [[0.2, 0.3, 0.5]] * 2, **options)
    assert (caught.value.kind, caught.value.rows[0], caught.value.argument) == (kind, row, "y")
    skipped = vx.evaluate(y, [[0.2, 0.3, 0.5]] * 2, invalid="skip", **options).skipped
    assert skipped.rows == (row,)


def test_swapped_arguments_and_lists_are_refused():
    with pytest.raises(vx.InputError, match="swapped"):
        vx.brier([[0.2, 0.8], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]])
    assert vx.brier([[0.2, 0.8]], [[1.0, 0.0]], raters="shares") == pytest.approx(1.6)
    with pytest.raises(vx.InputError, match="top lists"):
        vx.brier([[1, 2]], vx.TopLists.from_probabilities(np.array([[0.4, 0.6]]), 1), raters="counts")
    with pytest.raises(vx.InputError, match="one class per row"):
        vx.fit_combination([[0.2, 0.8]] * 9, {"a": [[0.5, 0.5]] * 9, "b": [[0.4, 0.6]] * 9})


# ---- every function -----------------------------------------------------------------------------


def as_pairs(counts, p):
    """Every rater's label as a row of its own, weighted so that cases count alike, with its case."""
    case, y = np.nonzero(counts)
    return y, p[case], counts[case, y] / counts.sum(axis=1)[case], case


def test_analyses_of_pairs_are_those_of_weighted_raters(rated):
    counts, p = rated
    y, q, w, case = as_pairs(counts, p)
    options = {"weights": w, "groups": case}
    one, other = vx.decompose(counts, p, raters="counts"), vx.decompose(y, q, **options)
    assert one.miscalibration == pytest.approx(other.miscalibration, rel=1e-12)
    one, other = vx.roc_auc(counts, p, raters="counts"), vx.roc_auc(y, q, **options)
    # A case is one row, whatever the number of its raters.
    assert one.to_dict(stored=False) == other.to_dict(stored=False) | {"n_rows": len(p)}
    fitted, same = (
        f.trial("temperature").detail
        for f in (
            vx.recalibrate(counts, p, raters="counts", method="temperature"),
            vx.recalibrate(y, q, method="temperature", **options),
        )
    )
    assert fitted == same


def test_cards_and_comparisons_have_one_loss_per_case(rated):
    counts, p = rated
    flat = np.full_like(p, 1 / K)
    shares = counts / 3
    found = vx.compare(counts, {"model": p, "flat": flat}, raters="counts", reference="frequencies")
    assert found.n_rows == len(p)
    losses = brute(vx.brier, shares, p) - brute(vx.brier, shares, flat)
    assert found.difference("model", "flat", "brier").difference == pytest.approx(losses.mean(), rel=1e-12)
    # The reference leaves out the case itself.
    others = (shares.sum(axis=0) - shares + 0.5) / (len(p) - 1 + 0.5 * K)
    expected = 1 - brute(vx.brier, shares, p).mean() / brute(vx.brier, shares, others).mean()
    model = next(model for model in found.models["brier"] if model.name == "model")
    assert model.skill == pytest.approx(expected, rel=1e-10)


def test_worst_cases_tell_disagreement_from_excess(rated):
    counts, p = rated
    worst = vx.worst(counts, p, raters="counts", n=5)
    losses = brute(vx.brier, counts / 3, p)
    assert [case.row for case in worst] == np.argsort(-losses, kind="stable")[:5].tolist()
    for case in worst:
        share = counts[case.row] / 3
        assert case.disagreement == pytest.approx(1 - (share**2).sum())
        assert case.excess == pytest.approx(((p[case.row] - share) ** 2).sum())
        assert case.source.startswith(
            "raters disagree" if case.disagreement >= case.excess else "model is off"
        )


def test_retention_removes_whole_cases(rated):
    counts, p = rated
    curve = vx.retention(counts, p, rule="brier", metric="accuracy", removed=[0, 0.5], raters="counts")
    right = counts[np.arange(len(p)), p.argmax(axis=1)] / 3
    kept = np.argsort(brute(vx.brier, counts / 3, p))[: len(p) // 2]
    np.testing.assert_allclose(curve.values, [right.mean(), right[kept].mean()], rtol=1e-10)


def test_subgroups_keep_their_cases(rated):
    counts, p = rated
    by = np.arange(len(p)) % 2
    found = vx.subgroups(counts, p, by=by, raters="counts")
    for line in found.lines:
        own = by == line.label
        assert line.card.n_rows == own.sum()
        assert line.card["brier"] == pytest.approx(brute(vx.brier, counts[own] / 3, p[own]).mean(), rel=1e-12)


def test_archives_hold_one_hot_rows_and_shares(tmp_path):
    rng = np.random.default_rng(3)
    p, y = rng.dirichlet(np.ones(3), 20), rng.integers(0, 3, 20)
    shares = rng.dirichlet(np.ones(3), 20)
    for labels in (np.eye(3)[y], shares):
        np.savez(tmp_path / "rows.npz", probs=p, labels=labels)
        assert vx.brier(vx.scan(tmp_path / "rows.npz")) == pytest.approx(vx.brier(labels, p))
    np.savez(tmp_path / "rows.npz", probs=p, labels=2 * shares)
    with pytest.raises(vx.InputError, match="`y` rows must sum to 1"):
        vx.brier(vx.scan(tmp_path / "rows.npz"))
