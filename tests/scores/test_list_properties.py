"""Top lists: what certificates say of padded rules, ties, invalid lists and lists of a given mass."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import verax as vx


def exact_brier(listed, truth):
    """The expected padded Brier score of a valid list {class: confidence}, in fractions."""
    m = len(truth)
    rest = (1 - sum(listed.values())) / Fraction(m - len(listed))
    padded = [listed.get(c, rest) for c in range(m)]
    return 1 + sum(x * x for x in padded) - 2 * sum(x * q for x, q in zip(padded, truth, strict=True))


def test_a_padded_rule_is_certified_for_lists_of_every_length():
    found = vx.certify("padded(brier)", 3)
    assert (found.consistent, found.strictly_consistent, found.comparable_lengths) == (True, True, True)
    assert [name for name in found.findings if "top" in name] == [
        "consistent_top_1",
        "consistent_top_2",
        "strictly_consistent_top_1",
        "strictly_consistent_top_2",
    ]
    # 24 parts: 61 partitions into at most 3, times 3 sets and 25 confidences of one class.
    assert found.findings["consistent_top_1"].checked == 61 * 3 * 25
    assert "multiples of 1/24" in " ".join(found.notes)
    with pytest.raises(vx.errors.RuleError, match="certify padded"):
        _ = vx.certify("brier", 2).consistent


@pytest.mark.parametrize("rule", [vx.padded(vx.brier, 0), vx.padded(vx.zero_one)], ids=str)
def test_counterexamples_to_strictness_hold_in_exact_numbers(rule):
    """Without a fine an invalid list is its largest valid sublist; the zero-one loss sees one class."""
    found = vx.certify(rule, 4)
    assert found.consistent
    assert not found.strictly_consistent
    example = found.findings["strictly_consistent_top_2"].counterexample
    lists = [{c: x for c, x in enumerate(each) if x is not None} for each in example.forecasts]
    assert lists[0] != lists[1]
    q = np.array([example.truth], float)
    made = [vx.TopLists.from_dicts([each], n_classes=4, names=range(4)) for each in lists]
    other, honest = (float(rule.expected(each, q)[0]) for each in made)
    assert other == pytest.approx(honest, abs=1e-12)
    if rule.rule == vx.brier:
        assert honest == pytest.approx(float(exact_brier(lists[1], example.truth)))


@dataclass(frozen=True)
class Rewarding(vx.rules.Padded):
    """A rule that pays for invalid lists, which must not pass."""

    def formula(self, stats):
        return stats.loss(self.rule) - 0.5 * stats.invalid


def test_a_rule_that_rewards_invalid_lists_is_not_consistent():
    found = vx.certify(Rewarding(vx.brier), 3)
    assert not found.consistent
    example = found.findings["consistent_top_1"].counterexample
    assert example.losses[0] < example.losses[1]
    assert "the true list (" in str(example)


def test_lists_under_ties_say_that_others_are_as_true():
    """Counted by hand: all sets of k classes with the largest sum of probabilities."""
    p = np.array([[4, 4, 2, 1, 1], [8, 1, 1, 1, 1], [6, 3, 1, 1, 1]]) / 12
    for k in range(6):
        lists = vx.TopLists.from_probabilities(p, k)
        several = []
        for row in p:
            sums = [round(sum(row[list(c)]), 12) for c in combinations(range(5), k)]
            several.append(sums.count(max(sums)) > 1)
        assert lists.several.tolist() == several
        assert ("as true" in repr(lists)) == any(several)
        assert lists[[0, 2]].several.tolist() == [several[0], several[2]]
    assert vx.TopLists.from_probabilities(p, mass=0.8).several.tolist() == [False, True, True]
    assert vx.TopLists.from_dicts([{0: 0.5}], n_classes=3).several is None


def test_there_is_one_largest_valid_sublist():
    """Every sublist is tried: none that is valid is as long, ties or not."""
    for t in product(range(5), repeat=3):
        if sum(t) > 8:
            continue
        listed = {c: n / 8 for c, n in enumerate(t)}
        kept = vx.TopLists.from_dicts([listed], n_classes=5).largest_valid().to_dicts()[0]
        for k in range(len(kept), 4):
            for c in combinations(range(3), k):
                valid = min((t[i] for i in c), default=8) * (5 - k) >= 8 - sum(t[i] for i in c)
                assert not valid or set(c) == set(kept)


def test_an_infinite_penalty_rules_invalid_lists_out():
    rule = vx.padded(vx.brier, invalid_penalty=np.inf)
    assert vx.parse(repr(rule)) == vx.parse("padded(brier, inf)") == rule
    lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.2}, {0: 0.5, 3: 0.1}] * 3000, n_classes=4)
    losses = rule.samples(np.zeros(6000, int), lists)
    assert losses[0] == vx.brier.samples([0], lists[:1])[0]
    assert losses[1] == np.inf
    assert rule(np.zeros(3000, int), lists[::2]) == pytest.approx(losses[0])
    for bad in (-1, np.nan, -np.inf, "1"):
        with pytest.raises(vx.InputError, match="or inf"):
            vx.padded(vx.brier, bad)
    found = vx.compare([0, 0], {"a": lists[:2], "b": lists[[0, 0]]}, rule=rule)
    assert any("the list is invalid" in note for note in found.notes)


def test_comparisons_of_lists_of_a_given_mass_carry_a_caution():
    p = np.random.default_rng(0).dirichlet(np.ones(6), 50)
    y = p.argmax(axis=1)
    by_mass, by_length = vx.TopLists.from_probabilities(p, mass=0.8), vx.TopLists.from_probabilities(p, 3)
    found = vx.compare(y, {"a": by_mass, "b": by_length})
    assert "a: Lists were cut at a given mass: no consistent score is known" in str(found)
    assert found.faults["a"].n_by_mass == 50
    assert "given mass" not in str(vx.compare(y, {"a": by_length, "b": by_length.truncate(2)}))


def test_several_labels_at_once_are_told_of_label_sets():
    y, q = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[0.9, 0.2, 0.6], [0.3, 0.5, 0.4]])
    with pytest.raises(vx.InputError, match="from_label_probabilities"):
        vx.evaluate(y, q)
