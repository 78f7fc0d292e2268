"""Resin (2023), From classification accuracy to proper scoring rules: its examples, table and bound."""

from __future__ import annotations

import math

import numpy as np

from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import instance_f1
from verax.scores.combinators import padded
from verax.scores.registry import brier, parse, zero_one
from verax.wings.theory.papers.published import PublishedNumber

# Table 1: the printed expected scores of the mode, the top-1 list, the top-2 list and the truth.
_DISTRIBUTIONS = {
    "p(h)": (0.99, 0.01, 0.0, 0.0, 0.0),
    "p(m)": (0.5, 0.44, 0.03, 0.02, 0.01),
    "p(l)": (0.25, 0.22, 0.2, 0.18, 0.15),
}
_PREDICTIONS = ("Mode", "T1", "T2", "p")
_TABLE = {
    ("p(h)", "brier"): (0.02, 0.0199, 0.0198, 0.0198),
    ("p(m)", "brier"): (1.0, 0.6875, 0.5552, 0.5550),
    ("p(l)", "brier"): (1.5, 0.7969, 0.7955, 0.7942),
    ("p(h)", "log_score"): (math.inf, 0.0699, 0.0560, 0.0560),
    ("p(m)", "log_score"): (math.inf, 1.3863, 0.9425, 0.9373),
    ("p(l)", "log_score"): (math.inf, 1.6021, 1.5984, 1.5948),
}
# The relative differences in percent that stand in brackets; none where the score is infinite.
_PERCENT = {
    ("p(h)", "brier"): (1.01, 0.38, 0.0),
    ("p(m)", "brier"): (80.18, 23.87, 0.04),
    ("p(l)", "brier"): (88.87, 0.34, 0.16),
    ("p(h)", "log_score"): (None, 24.75, 0.0),
    ("p(m)", "log_score"): (None, 47.9, 0.56),
    ("p(l)", "log_score"): (None, 0.45, 0.23),
}


def findings() -> list[PublishedNumber]:
    """Every number of the examples and the table, the bound of section 6, and two steps of the proofs."""
    return [*_example_1(), *_examples_2_and_3(), *_example_4(), *_table_1(), *_bound()]


def _finding(
    where: str,
    what: str,
    printed: float | str,
    computed: object,
    erratum: str = "",
    section: str = "",
    tolerance: float = 5e-4,
) -> PublishedNumber:
    return PublishedNumber(where, what, printed, float(np.asarray(computed)), erratum, section, tolerance)


def _lists(*rows: dict[int, float]) -> TopLists:
    """Lists over the classes 1 to 4 of the paper, numbered from 0."""
    return TopLists.from_dicts(rows, n_classes=4, names=range(4))


def _example_1() -> list[PublishedNumber]:
    sets, q = [{0, 1}, {0, 2}, {0, 3}, {0, 4}], np.array([0.28, 0.24, 0.24, 0.24])

    def expected(guess: set[int]) -> float:
        return float(q @ instance_f1(sets, [guess] * 4, labels=range(5)))

    return [
        _finding(
            "Example 1", "expected instance F1 of {0, 1}, the mode", 0.64, expected({0, 1}), tolerance=1e-12
        ),
        _finding("Example 1", "expected instance F1 of {0}", 2 / 3, expected({0}), tolerance=1e-12),
    ]


def _examples_2_and_3() -> list[PublishedNumber]:
    p = np.array([0.5, 0.2, 0.2, 0.1])
    true = TopLists.from_probabilities(p[None], 2)
    lists = _lists({0: 0.5, 1: 0.2}, {0: 0.5, 2: 0.2}, {0: 0.5, 3: 0.1}, {0: 0.5, 3: 0.2})
    valid = lists.valid.astype(float).tolist()
    s_padded, t_padded = lists.padded()[2], lists.padded()[0]
    best = brier.expected(true, p[None])[0]
    sublist = brier.expected(lists[2:3].largest_valid(), p[None])[0]
    # Uncalibrated, and padded to the same distribution as the largest valid sublist of s.
    same = brier.expected(_lists({0: 1 / 2, 3: 1 / 6}), p[None])[0]
    majorized = np.sort(t_padded)[1:].sum() - np.sort(s_padded)[1:].sum()
    return [
        _finding(
            "Example 2", "first confidence of the true top-2 lists", 0.5, true.confidences[0], tolerance=1e-15
        ),
        _finding("Example 2", "second confidence", 0.2, true.confidences[1], tolerance=1e-15),
        _finding("Example 2", "true list ({0, 1}, (.5, .2)) is valid (1: yes)", 1.0, valid[0]),
        _finding("Example 2", "true list ({0, 2}, (.5, .2)) is valid", 1.0, valid[1]),
        _finding("Example 2", "s = ({0, 3}, (.5, .1)) is valid", 0.0, valid[2]),
        _finding("Example 2", "r = ({0, 3}, (.5, .2)) is valid", 1.0, valid[3]),
        _finding(
            "Example 3", "largest distance of padded s from p", 0.0, abs(s_padded - p).max(), tolerance=1e-15
        ),
        _finding(
            "Example 3",
            "Brier: s padded as it is, minus the true list",
            "< 0",
            brier.expected(s_padded, p) - best,
        ),
        _finding("5.2", "Brier: largest valid sublist of s, minus the true list", ">= 0", sublist - best),
        _finding(
            "Lemma 6",
            "three largest of padded t, minus those of padded s",
            ">= 0",
            majorized,
            "holds for valid lists only; Example 2 is the counterexample",
            "lemma-6",
        ),
        _finding(
            "Theorem 9",
            "Brier: ({0, 3}, (1/2, 1/6)) minus the largest valid sublist of s",
            "> 0",
            same - sublist,
            "can be an equality; the theorem stands",
            "theorem-9-strictness",
        ),
    ]


def _example_4() -> list[PublishedNumber]:
    p = np.array([[0.4, 0.2, 0.2, 0.2]])
    t = _lists({0: 0.4, 1: 0.1})
    true = TopLists.from_probabilities(p, 2)
    sublist = t.largest_valid()

    def excess(fine: float) -> float:
        rule = padded(brier, invalid_penalty=fine)
        return float(rule.expected(t, p)[0] - rule.expected(true, p)[0])

    return [
        _finding("Example 4", "length of the largest valid sublist", 1.0, float(sublist.lengths[0])),
        _finding("Example 4", "its confidence", 0.4, sublist.confidences[0], tolerance=1e-15),
        _finding(
            "Example 4",
            "largest distance of it, padded, from p",
            0.0,
            abs(sublist.padded() - p).max(),
            tolerance=1e-15,
        ),
        _finding("Example 4", "excess over the true list without a fine", 0.0, excess(0.0), tolerance=1e-15),
        _finding("Example 4", "excess over the true list with a fine of 1", "> 0", excess(1.0)),
    ]


def _table_1() -> list[PublishedNumber]:
    numbers = []
    for (name, score), printed in _TABLE.items():
        q = np.array([_DISTRIBUTIONS[name]])
        rule = padded(parse(score))
        predictions = (
            TopLists.from_decisions([0], n_classes=5),
            TopLists.from_probabilities(q, 1),
            TopLists.from_probabilities(q, 2),
            TopLists.from_probabilities(q, 5),
        )
        expected = [float(rule.expected(lists, q)[0]) for lists in predictions]
        for prediction, value, computed in zip(_PREDICTIONS, printed, expected, strict=True):
            what = f"expected {score} of {prediction} under {name}"
            numbers.append(_finding("Table 1", what, value, computed, tolerance=5.1e-5))
        brackets = zip(_PREDICTIONS, _PERCENT[name, score], expected, strict=False)
        for prediction, percent, computed in brackets:
            if percent is not None:
                excess = 100 * (computed / expected[-1] - 1)
                what = f"its excess over the truth in percent, {prediction}, {score}, {name}"
                numbers.append(_finding("Table 1", what, percent, excess, tolerance=5.1e-3))
    return numbers


def _bound() -> list[PublishedNumber]:
    """Section 6: the relative excess of a true list that hides alpha, less than its least confidence.

    It is at most (alpha^2 - alpha pi) / (2 (alpha - alpha^2)), which is less than alpha. Random lists have
    the rest on one class, which is the worst case, or spread over the unlisted classes.
    """
    rng, n = np.random.default_rng(0), 25
    over_bound, over_alpha = [], []
    for m, k in ((3, 1), (4, 2), (5, 1), (6, 3), (8, 2), (8, 6), (11, 4), (11, 9)):
        listed = rng.dirichlet(np.ones(k), n)
        least = listed.min(axis=1)
        alpha = rng.uniform(0, 1, n) * least / (1 + least)
        rest = rng.dirichlet(np.ones(m - k), n)
        rest[::2] = np.eye(m - k)[0]
        q = np.column_stack([(1 - alpha)[:, None] * listed, alpha[:, None] * rest])
        excess = brier.expected(TopLists.from_probabilities(q, k), q) / brier.entropy(q) - 1
        bound = (alpha**2 - alpha * alpha / (m - k)) / (2 * (alpha - alpha**2))
        over_bound.append(np.max(excess - bound))
        over_alpha.append(np.max(excess / alpha))
    q = np.array([_DISTRIBUTIONS["p(h)"]])
    log_excess = parse("log_score").expected(TopLists.from_probabilities(q, 1), q)[0]
    log_excess = log_excess / parse("log_score").entropy(q)[0] - 1
    lists = "200 random lists"
    return [
        _finding("section 6", f"largest excess of {lists}, minus its bound", "<= 0", max(over_bound)),
        _finding("section 6", f"largest excess of {lists}, over alpha", "< 1", max(over_alpha)),
        _finding(
            "section 6", "log score: excess of T1 under p(h), over alpha = 0.01", "> 1", log_excess / 0.01
        ),
        _finding(
            "section 4.2",
            "entropy of the zero-one loss: (.5, .5, 0) minus (.5, .3, .2), which it majorizes",
            "<= 0",
            zero_one.entropy([0.5, 0.5, 0.0]) - zero_one.entropy([0.5, 0.3, 0.2]),
        ),
    ]
