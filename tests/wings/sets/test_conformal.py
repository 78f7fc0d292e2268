"""Conformal prediction: coverage by exact enumeration, thresholds by hand, and peers."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import verax as vx
from scanned import alike
from scattered import Scattered
from verax.results import Conformal
from verax.wings.sets.quantiles import ScoreCounts

RNG = np.random.default_rng(8)
P = RNG.dirichlet(np.ones(4), 400)
Y = (RNG.random(400)[:, None] > np.cumsum(P, axis=1)).sum(axis=1)
SCORES = ["lac", "aps", "rps", "brier", "log_score"]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_coverage_by_enumeration(score, level):
    """Each of n + 1 exchangeable rows is the new one in turn: the coverage is ceil((n + 1) level)/(n + 1)."""
    n = 9
    hits = []
    for new in range(n + 1):
        rest = [i for i in range(n + 1) if i != new]
        made = vx.conformal(Y[rest], P[rest], level=level, score=score)
        hits.append(bool(made.apply(P[new : new + 1]).mask()[0, Y[new]]))
    assert sum(hits) == math.ceil((n + 1) * level - 1e-9)


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_coverage_of_new_groups_by_enumeration(score):
    """Of each group that is left out in turn, the mean coverage; the mean of those is at least the level."""
    groups = np.repeat(np.arange(12), RNG.integers(1, 6, 12))
    y, p = Y[: len(groups)], P[: len(groups)]
    shares = []
    for new in range(12):
        rest = groups != new
        made = vx.conformal(y[rest], p[rest], level=0.75, score=score, groups=groups[rest])
        shares.append(made.apply(p[~rest]).mask()[np.arange((~rest).sum()), y[~rest]].mean())
    assert 0.75 <= np.mean(shares) <= 0.75 + 2 / 12


def test_thresholds_are_order_statistics():
    made = vx.conformal(Y[:99], P[:99], level=0.9)
    scores = np.sort(1 - P[np.arange(99), Y[:99]])
    assert made.threshold == scores[89]
    assert made.apply(P[99:]).mask().tolist() == (1 - P[99:] <= scores[89]).tolist()
    ordered = vx.conformal(Y, P, score=vx.rps)
    losses = vx.rps.by_outcome(P)
    assert ordered.threshold == np.sort(losses[np.arange(400), Y])[math.ceil(401 * 0.9) - 1]


def test_peers_make_the_same_sets():
    """MAPIE 1.6.0 and crepes 0.9.1 gave the same sets of these rows, class by class.

    SplitConformalClassifier(model, confidence_level=0.8, conformity_score="lac", prefit=True) with
    `conformalize` of the first 60 rows and `predict_set` of the others; ConformalClassifier().fit(hinge(...))
    and predict_set(hinge(...), confidence=0.8, smoothing=False).
    """
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 120).round(3)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    y = np.array([rng.choice(3, p=row / row.sum()) for row in np.clip(p, 0, 1)])
    mask = vx.conformal(y[:60], p[:60], level=0.8, normalize=True).apply(p[60:], normalize=True).mask()
    assert mask.sum(axis=0).tolist() == [38, 28, 37]
    assert mask[np.arange(60), y[60:]].sum() == 50


def test_the_rps_makes_sets_without_gaps():
    for level in (0.3, 0.6, 0.9):
        sets = vx.conformal(Y, P, level=level, score="rps").apply(P)
        found = vx.evaluate_sets(Y, sets, ordered=True)
        assert found.gapless.value == 1


def test_a_class_exactly_at_the_threshold_is_in_the_set():
    """Scores that are equal as fractions are equal, although their sums differ in the last digit."""
    rng = np.random.default_rng(1)
    for score, exact in (("rps", _rps), ("brier", _brier)):
        for _ in range(40):
            k, n = int(rng.integers(3, 6)), int(rng.integers(5, 25))
            counts = rng.multinomial(20, rng.dirichlet(np.ones(k)), n)
            y = rng.integers(0, k, n)
            losses = [exact([Fraction(int(c), 20) for c in row]) for row in counts]
            place = math.ceil((n + 1) * Fraction(4, 5))
            happened = sorted(own[i] for own, i in zip(losses, y, strict=True))
            limit = happened[place - 1] if place <= n else math.inf
            mask = vx.conformal(y, counts / 20, level=0.8, score=score).apply(counts / 20).mask()
            assert mask.tolist() == [[loss <= limit for loss in own] for own in losses]


def _rps(p):
    below = [sum(p[: i + 1]) for i in range(len(p) - 1)]
    return [sum((q - (y <= i)) ** 2 for i, q in enumerate(below)) for y in range(len(p))]


def _brier(p):
    return [sum((q - (y == i)) ** 2 for i, q in enumerate(p)) for y in range(len(p))]


def test_adaptive_sets_stop_at_the_threshold_or_one_class_before():
    made = vx.conformal(Y, P, score="aps")
    for row, mask in zip(P, made.apply(P).mask(), strict=True):
        places = np.argsort(-row)
        size = mask.sum()
        assert mask[places[:size]].all()
        reached = np.concatenate([[0], np.cumsum(row[places])])
        # The last class begins below the threshold; the next one would end above it.
        assert reached[max(size - 1, 0)] <= made.threshold
        assert size == 4 or reached[size + 1] > made.threshold
    shares = made.score.shares(P)
    assert 0.4 < shares.mean() < 0.6
    assert len(np.unique(shares)) == 400
    assert (vx.conformal(Y, P, score="aps", seed=1).score.shares(P) != shares).all()


def test_few_rows_give_everything_and_say_so():
    made = vx.conformal(Y[:8], P[:8], level=0.9)
    assert math.isinf(made.threshold)
    assert "level 0.9 needs at least 9" in made.notes[0]
    assert made.apply(P[:5]).mask().all()
    assert made.expected_coverage == (1.0, 1.0)
    assert not vx.conformal(Y[:9], P[:9], level=0.9).notes


def test_weights_that_are_equal_change_nothing():
    plain = vx.conformal(Y, P)
    assert vx.conformal(Y, P, weights=np.full(400, 3.0)).threshold == plain.threshold
    double = vx.conformal(Y, P, weights=np.arange(400) < 200)
    assert double.threshold == vx.conformal(Y[:200], P[:200]).threshold
    assert "mean weight" in vx.conformal(Y, P, weights=np.arange(1, 401)).notes[-1]


def test_cases_of_several_raters_count_once():
    """Every rater is a row of the case: the threshold is that of as many rows in groups."""
    shares = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]] * 20)
    case, y = np.nonzero(shares)
    exact = vx.conformal(y, P[:40][case], weights=shares[case, y], groups=case, level=0.8)
    made = vx.conformal(shares, P[:40], level=0.8)
    assert (made.threshold, made.n_groups) == (exact.threshold, 40)
    found = vx.evaluate_sets(shares, P[:40], level=0.8)
    mask = made.apply(P[:40]).mask()
    assert vx.evaluate_sets(y, mask[case], weights=shares[case, y]).coverage.value == pytest.approx(
        (shares * mask).sum() / 40
    )
    assert found.n_rows == 40


def test_rows_elsewhere_give_the_same_sets():
    made = vx.conformal(Scattered(Y, P), score="aps")
    assert made.threshold == vx.conformal(Y, P, score="aps").threshold
    judged = vx.evaluate_sets(made.apply(Scattered(Y, P)))
    # Sums of parts may differ in the last digit.
    alike(judged.to_dict(stored=False), vx.evaluate_sets(Y, made.apply(P)).to_dict(stored=False))
    assert judged.level == 0.9


def test_very_many_scores_are_counted_in_bins(change):
    change(exact_up_to=100)
    scores, ones = RNG.random(1000), np.ones(1000)
    found = ScoreCounts.of(scores, ones, bounded=True)
    threshold, within = found.quantile(0.9, 1.0)
    exact, none = ScoreCounts.of(scores, ones, bounded=False).quantile(0.9, 1.0)
    assert none == 0
    assert exact <= threshold <= exact + within < exact + 1e-2


def test_predictors_are_saved_without_pickle(tmp_path):
    made = vx.conformal([["a", "b", "c", "d"][k] for k in Y], P, score="aps", seed=3, classes=list("abcd"))
    made.save(tmp_path / "a.json")
    again = Conformal.load(tmp_path / "a.json")
    assert again == made
    assert again.apply(P).to_labels() == made.apply(P).to_labels()
    assert Conformal.from_dict(made.to_dict()) == made
    few = vx.conformal(Y[:3], P[:3])
    few.save(tmp_path / "b.json")
    assert math.isinf(Conformal.load(tmp_path / "b.json").threshold)
    stored = json.loads((tmp_path / "a.json").read_text())
    for wrong in ({"level": 2}, {"threshold": None}, {"classes": ["a"]}, {"score": {"name": "x", "seed": 0}}):
        (tmp_path / "c.json").write_text(json.dumps({**stored, **wrong}))
        with pytest.raises(vx.InputError, match="that verax saved"):
            Conformal.load(tmp_path / "c.json")


def test_what_cannot_be_is_refused():
    for ask, message in {
        "score": (lambda: vx.conformal(Y, P, score=3), "'lac', 'aps' or a rule"),
        "sets": (lambda: vx.conformal(Y, P, score="level_set"), "not of sets"),
        "level": (lambda: vx.conformal(Y, P, level=90), r"Pass level=0\.9"),
        "classes": (lambda: vx.conformal(Y, P).apply(P[:, :2] / P[:, :2].sum(axis=1)[:, None]), "4 classes"),
        "lists": (lambda: vx.conformal(Y, vx.TopLists.from_probabilities(P, 2)), "full distributions"),
        "group": (lambda: vx.conformal(Y, P, groups=np.zeros(400)), "two groups"),
        "order": (lambda: vx.conformal(["a", "b"] * 200, P[:, :2] * 0 + 0.5, score="rps"), "order"),
    }.values():
        with pytest.raises(vx.InputError, match=message):
            ask()
