"""Top lists that are not in memory: every analysis says what it says of the same lists in memory."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scanned import alike
from scattered import Scattered

N, M = 1500, 40
RULES = ["brier", "log_score", "spherical", "pbs", "padded(brier, 0)"]


def lists_of(seed, longest=6):
    """Outcomes and lists of different lengths, some empty, some invalid, some with ties."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet(np.full(M, 0.15), N), 3)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    y = (rng.random(N)[:, None] > np.cumsum(0.8 * p + 0.2 / M, axis=1)).sum(axis=1).clip(0, M - 1)
    order = np.argsort(-p, axis=1, kind="stable")
    rows = []
    for i, k in enumerate(rng.integers(0, longest + 1, N)):
        own = order[i, :k].tolist()
        # An unlikely class among the listed makes some lists invalid.
        own = [*own[:-1], int(order[i, -1])] if k and rng.random() < 0.1 else own
        rows.append({f"c{j}": float(p[i, j]) for j in own})
    names = [f"c{j}" for j in range(M)]
    return np.array(names)[y], vx.TopLists.from_dicts(rows, n_classes=M), rng


Y, LISTS, RNG = lists_of(0)
WEIGHTED = {"weights": RNG.integers(0, 4, N) * 0.5, "groups": RNG.integers(0, 40, N)}
SITE = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]


@pytest.mark.long
@pytest.mark.parametrize("own", [{}, WEIGHTED], ids=["rows", "weights and groups"])
def test_rules_and_calibration_errors_are_exact(own):
    handle = Scattered(Y, LISTS, n_parts=7, **own)
    shared = {"weights": own.get("weights")}
    for rule in map(vx.parse, RULES):
        assert rule(handle) == pytest.approx(rule(Y, LISTS, **shared), rel=1e-12)
    for kind in ("confidence", "listed", "mass"):
        for norm in ("l1", "l2", "max"):
            exact = vx.ece(Y, LISTS, kind=kind, norm=norm, **shared)
            assert vx.ece(handle, kind=kind, norm=norm) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("own", [{}, WEIGHTED], ids=["rows", "weights and groups"])
@pytest.mark.parametrize("seed", [0, 1])
def test_curves_are_those_of_the_rows_or_within_their_bounds(own, seed, change):
    # With other seeds, rows are counted in bins.
    change(exact_up_to=0 if seed else 2**20)
    handle = Scattered(Y, LISTS, n_parts=6, seed=seed, **own)
    asked = {"metric": ["accuracy", "coverage", "top_3_error", vx.brier], "removed": [0, 0.05, 0.2, 0.5]}
    asked["bootstrap"] = 20
    rules, doubts = ["brier", "log_score"], ["max_probability", "entropy", "brier"]
    exact = dict(vx.retention(Y, LISTS, rule=rules, **asked, **own).items())
    exact |= dict(vx.selective(Y, LISTS, by=doubts, **asked, **own).items())
    found = dict(vx.retention(handle, rule=rules, **asked).items())
    found |= dict(vx.selective(handle, by=doubts, **asked).items())
    assert found.keys() == exact.keys()
    for name, curve in exact.items():
        if not seed:
            assert found[name].to_dict() == curve.to_dict()
            continue
        assert (np.abs(found[name].values - curve.values) <= found[name].within + 1e-12).all(), name
        assert found[name].within.max() < 0.05
        assert found[name].higher_is_better == curve.higher_is_better
        assert found[name].interval[0] == pytest.approx(curve.interval[0], abs=0.05)


@pytest.mark.parametrize("own", [{}, WEIGHTED], ids=["rows", "weights and groups"])
@pytest.mark.parametrize("seed", [0, 1])
def test_calibration_is_within_its_bounds(own, seed):
    handle = Scattered(Y, LISTS, n_parts=6, seed=seed, by=SITE, **own)
    for rule in ("brier", vx.rules.Brier(scale="mean")):
        within_bounds(vx.decompose(handle, rule=rule), vx.decompose(Y, LISTS, rule=rule, **own))
    found = vx.reliability(handle, resamples=0, places=4)
    exact = vx.reliability(Y, LISTS, resamples=0, places=4, weights=own.get("weights"))
    assert [curve.name for curve in found.curves] == [curve.name for curve in exact.curves]
    for curve, other in zip(found.curves, exact.curves, strict=True):
        miss, exact_miss = curve.components.miscalibration, other.components.miscalibration
        assert 0 <= exact_miss - miss + 1e-12 <= curve.components.within + 2e-12
        assert curve.components.score == pytest.approx(other.components.score, rel=1e-10)
    for claim, other in zip(found.claims, exact.claims, strict=True):
        one, two = claim.to_dict(), other.to_dict()
        # The reliability of lists in memory takes them to be independent.
        p_values = [(one.pop(name), two.pop(name)) for name in ("p_value", "p_adjusted")]
        alike(one, two)
        assert own or p_values == [pytest.approx(pair[::-1], rel=0.01, abs=1e-6) for pair in p_values]
    by = vx.subgroups(handle, by="by")
    memory = vx.subgroups(Y, LISTS, by=SITE, **own)
    for line, other in zip(by.lines, memory.lines, strict=True):
        assert line.label == other.label
        alike(line.card.to_dict(), other.card.to_dict())
        within_bounds(line.decomposition, other.decomposition)


def within_bounds(found, exact):
    """Whether a decomposition from histograms is that of the lists, as far as it says."""
    assert found.left_out == pytest.approx(exact.left_out, rel=1e-10)
    for part, other in zip((found.whole, *found.parts), (exact.whole, *exact.parts), strict=True):
        assert part.score == pytest.approx(other.score, rel=1e-10)
        assert part.uncertainty == pytest.approx(other.uncertainty, rel=1e-10)
        gap = other.miscalibration - part.miscalibration
        assert -1e-12 <= gap <= part.within + 1e-12
    assert (found.n_rows, found.n_invalid) == (exact.n_rows, exact.n_invalid)
    assert found.mean_length == pytest.approx(exact.mean_length, rel=1e-12)
