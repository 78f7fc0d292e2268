"""Small random cases of every analysis against brute force: loops over rows, pairs and thresholds.

Probabilities and weights are fractions with small denominators, so that ties are ties and sums are exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import verax as vx

CLOSE = 1e-9


class Rows(NamedTuple):
    """Outcomes, exact forecasts and exact weights; without weights, each row counts once."""

    y: list[int]
    p: list[list[Fraction]]
    w: list[Fraction]
    weighted: bool

    @property
    def n_classes(self) -> int:
        return len(self.p[0])

    @property
    def options(self) -> dict[str, Any]:
        return {"weights": [float(w) for w in self.w]} if self.weighted else {}

    def arrays(self) -> tuple[Any, Any]:
        return np.array(self.y), np.array([[float(t) for t in row] for row in self.p])

    def tails(self, k: int) -> list[Fraction]:
        """P(Y > k) of every row."""
        return [sum(row[k + 1 :], Fraction(0)) for row in self.p]


def random_rows(rng: np.random.Generator) -> Rows:
    k, n, parts = int(rng.integers(2, 5)), int(rng.integers(2, 13)), int(rng.choice([4, 8, 64]))
    p = rng.multinomial(parts, rng.dirichlet(np.ones(k), n))
    weighted = bool(rng.random() < 0.5)
    w = rng.integers(0, 4, n) if weighted else np.ones(n, int)
    w[rng.integers(n)] = 1
    y = rng.integers(0, int(rng.integers(1, k + 1)), n)
    rows = [[Fraction(int(t), parts) for t in row] for row in p]
    return Rows(y.tolist(), rows, [Fraction(int(each), 2) for each in w], weighted)


# ---- what each analysis says, and what loops over the rows say ------------------------------------------


def auc_of(score: Sequence[Fraction], hit: Sequence[bool], w: Sequence[Fraction]) -> Fraction | None:
    """How often a row that happened has the larger score, of all pairs by weight; ties count half."""
    won = all_pairs = Fraction(0)
    for (s, a, v), (t, b, u) in itertools.product(zip(score, hit, w, strict=True), repeat=2):
        if a and not b:
            all_pairs += v * u
            won += v * u * (Fraction(s > t) + Fraction(s == t) / 2)
    return won / all_pairs if all_pairs else None


def average_precision_of(
    score: Sequence[Fraction], hit: Sequence[bool], w: Sequence[Fraction]
) -> Fraction | None:
    """Precision at each threshold times the growth of recall there."""
    hits = sum((v for v, h in zip(w, hit, strict=True) if h), Fraction(0))
    if not hits or hits == sum(w):
        return None
    total, before = Fraction(0), Fraction(0)
    for t in sorted(set(score), reverse=True):
        kept = [(h, v) for s, h, v in zip(score, hit, w, strict=True) if s >= t]
        weight, own = sum((v for _, v in kept), Fraction(0)), sum((v for h, v in kept if h), Fraction(0))
        if weight:
            total += own / weight * (own - before) / hits
        before = own
    return total


def events(rows: Rows, ordered: bool) -> list[tuple[list[Fraction], list[bool]]]:
    """Scores and whether it happened, of each class against the rest, or of being above each class."""
    k = rows.n_classes
    if ordered:
        return [(rows.tails(i), [y > i for y in rows.y]) for i in range(k - 1)]
    return [([row[i] for row in rows.p], [y == i for y in rows.y]) for i in ([1] if k == 2 else range(k))]


def check_ranks(rows: Rows, rng: np.random.Generator) -> None:
    ordered = bool(rng.random() < 0.5)
    for call, brute in ((vx.roc_auc, auc_of), (vx.average_precision, average_precision_of)):
        wanted = [brute(score, hit, rows.w) for score, hit in events(rows, ordered)]
        found = _or_refused(lambda call=call: call(*rows.arrays(), ordered=ordered, **rows.options))
        if all(each is None for each in wanted):
            continue
        assert found is not None, f"{call.__name__} was refused"
        lines = found.lines if hasattr(found, "lines") else found.parts
        for line, each in zip(lines, wanted, strict=True):
            assert each is None or _near(line.value, each), f"{call.__name__}: {line.value}, exactly {each}"


def check_c_index(rows: Rows, rng: np.random.Generator) -> None:
    """Of all pairs of different outcomes: does the higher one have the larger expected class?"""
    means = [sum((i * t for i, t in enumerate(row)), Fraction(0)) for row in rows.p]
    won = pairs = Fraction(0)
    for i, j in itertools.combinations(range(len(rows.y)), 2):
        if rows.y[i] != rows.y[j]:
            up = (rows.y[i] > rows.y[j]) == (means[i] > means[j])
            weight = rows.w[i] * rows.w[j]
            pairs += weight
            won += weight * (Fraction(1, 2) if means[i] == means[j] else Fraction(up))
    found = _or_refused(lambda: vx.c_index(*rows.arrays(), **rows.options))
    if pairs:
        assert found is not None
        assert _near(found.value, won / pairs), f"c_index {found.value}, exactly {won / pairs}"


def check_ece(rows: Rows, rng: np.random.Generator) -> None:
    bins = int(rng.integers(1, 6))
    total = sum(rows.w)
    wanted = Fraction(0)
    gaps: dict[int, Fraction] = {}
    for y, row, w in zip(rows.y, rows.p, rows.w, strict=True):
        top = max(row)
        # Bins end at their upper ends; the first has both.
        place = max(0, math.ceil(top * bins) - 1)
        gaps[place] = gaps.get(place, Fraction(0)) + w * (top - (row.index(top) == y))
    wanted = sum((abs(gap) for gap in gaps.values()), Fraction(0)) / total
    found = vx.ece(*rows.arrays(), bins=bins, **rows.options)
    assert _near(found, wanted), f"ece {found}, exactly {wanted}"


def check_benefit(rows: Rows, rng: np.random.Generator) -> None:
    """True positives less false ones at the odds of the threshold; and the elementary scores of Murphy."""
    t = Fraction(int(rng.integers(1, 8)), 8)
    total = sum(rows.w)
    found = vx.net_benefit(*rows.arrays(), thresholds=[float(t)], **rows.options)
    elementary = vx.diagrams.murphy(*rows.arrays(), thresholds=[float(t)], **rows.options)
    for curve, loss, (score, hit) in zip(found.curves, elementary.curves, events(rows, False), strict=True):
        acted = [(h, w) for s, h, w in zip(score, hit, rows.w, strict=True) if s >= t]
        benefit = sum((w if h else -w * t / (1 - t) for h, w in acted), Fraction(0)) / total
        assert _near(curve.values[0], benefit), f"benefit {curve.values[0]} at {t}, exactly {benefit}"
        lost = Fraction(0)
        for s, h, w in zip(score, hit, rows.w, strict=True):
            # A miss costs 1 - t, a false alarm t; one acts above the threshold.
            lost += w * ((1 - t) if h and s <= t else t if not h and s > t else 0)
        assert _near(loss.values[0], lost / total), f"murphy {loss.values[0]} at {t}, exactly {lost / total}"


def check_deferral(rows: Rows, rng: np.random.Generator) -> None:
    limit = Fraction(int(rng.integers(0, 9)), 8)
    total = sum(rows.w)
    cost = usual = Fraction(0)
    for y, row, w in zip(rows.y, rows.p, rows.w, strict=True):
        wrong = w * (row.index(max(row)) != y)
        usual += wrong
        cost += w * limit if 1 - max(row) > limit else wrong
    (line,) = vx.deferral(*rows.arrays(), defer=float(limit), **rows.options).lines
    assert _near(line.cost, cost / total), f"deferral at {limit}: {line.cost}, exactly {cost / total}"
    assert _near(line.cost_of_deciding, usual / total)


def recalibrated(score: Sequence[Fraction], hit: Sequence[bool], w: Sequence[Fraction]) -> list[Fraction]:
    """The isotonic frequencies by their min-max formula, of the rows as they are."""
    values = sorted({s for s, v in zip(score, w, strict=True) if v})
    own = {s: [Fraction(0), Fraction(0)] for s in values}
    for s, h, v in zip(score, hit, w, strict=True):
        if v:
            own[s][0] += v
            own[s][1] += v * h

    def mean(i: int, j: int) -> Fraction:
        weight = sum((own[s][0] for s in values[i : j + 1]), Fraction(0))
        return sum((own[s][1] for s in values[i : j + 1]), Fraction(0)) / weight

    n = len(values)
    fitted = {values[i]: max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)}
    return [fitted.get(s, Fraction(0)) for s in score]


def check_decomposition(rows: Rows, rng: np.random.Generator) -> None:
    """Brier and RPS: score = uncertainty - discrimination + miscalibration, by isotonic regression."""
    ordered = bool(rng.random() < 0.5)
    total = sum(rows.w)
    pieces = [Fraction(0)] * 3
    k = rows.n_classes
    both = [([row[i] for row in rows.p], [y == i for y in rows.y]) for i in range(k)]
    for score, hit in events(rows, True) if ordered else both:
        rate = sum((w for w, h in zip(rows.w, hit, strict=True) if h), Fraction(0)) / total
        fitted = recalibrated(score, hit, rows.w)
        losses = [
            sum((w * (q - h) ** 2 for q, h, w in zip(qs, hit, rows.w, strict=True)), Fraction(0)) / total
            for qs in (score, fitted, [rate] * len(hit))
        ]
        for i, piece in enumerate((losses[0] - losses[1], losses[2] - losses[1], losses[2])):
            pieces[i] += piece
    rule = vx.rules.RPS(normalized=False) if ordered else vx.brier
    found = vx.decompose(*rows.arrays(), rule=rule, **rows.options).whole
    for name, wanted in zip(("miscalibration", "discrimination", "uncertainty"), pieces, strict=True):
        assert _near(getattr(found, name), wanted), f"{rule} {name} {getattr(found, name)}, exactly {wanted}"


def check_lengths(rows: Rows, rng: np.random.Generator) -> None:
    """The Brier score of lists cut to their most likely classes, whose rest is shared evenly."""
    k = int(rng.integers(1, rows.n_classes))
    total = sum(rows.w)
    lost = Fraction(0)
    for y, row, w in zip(rows.y, rows.p, rows.w, strict=True):
        top = sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))[:k]
        rest = (1 - sum((row[i] for i in top), Fraction(0))) / (len(row) - k)
        q = [row[i] if i in top else rest for i in range(len(row))]
        lost += w * sum((t - (i == y)) ** 2 for i, t in enumerate(q))
    found = vx.compare_lengths(*rows.arrays(), k=[k], rule="brier", **rows.options)
    mean = next(iter(found.means.values()))[1]
    assert _near(mean, lost / total), f"lists of {k}: {mean}, exactly {lost / total}"


def check_risk(rows: Rows, rng: np.random.Generator) -> None:
    """The risk of the surest rows, of which ties count alike."""
    total = sum(rows.w)
    found = vx.risk_coverage(*rows.arrays(), **rows.options)
    for limit in {max(row) for row in rows.p}:
        kept = [
            (w, row.index(max(row)) != y)
            for y, row, w in zip(rows.y, rows.p, rows.w, strict=True)
            if max(row) >= limit and w
        ]
        weight = sum((w for w, _ in kept), Fraction(0))
        if weight:
            risk = sum((w for w, wrong in kept if wrong), Fraction(0)) / weight
            own = found.risk_at(float(weight / total))
            assert _near(own, risk), f"risk {own} at {weight / total}, exactly {risk}"
    assert max(found.coverage) <= 1


def check_thresholds(rows: Rows, rng: np.random.Generator) -> None:
    """No thresholds between the probabilities that occur give a better value of a metric."""
    k, metric = rows.n_classes, str(rng.choice(list(VALUES)))
    if sum(w > 0 for w in rows.w) < 2 or k > 3:
        return
    tails = [rows.tails(i) for i in range(k - 1)]
    tried = [[Fraction(0), *(t + Fraction(1, 10**6) for t in sorted(set(tail)) if t < 1)] for tail in tails]
    values = []
    for thresholds in itertools.product(*tried):
        decided = [
            max((i + 1 for i, t in enumerate(thresholds) if tails[i][n] >= t), default=0)
            for n in range(len(rows.y))
        ]
        values.append(VALUES[metric](rows, decided))
    known = [value for value in values if value is not None]
    if not known:
        return
    best = min(known) if metric == "ec" else max(known)
    found = vx.choose_thresholds(*rows.arrays(), metric=metric, folds=2, bootstrap=2, **rows.options)
    own = VALUES[metric](rows, found.decide(rows.arrays()[1]).tolist())
    assert own is not None
    assert _near(found.in_sample, own), f"{metric} {found.in_sample}, by its thresholds {own}"
    assert _near(found.in_sample, best), f"{metric} {found.in_sample}, the best is {best}"


def _accuracy(rows: Rows, decided: Sequence[int]) -> Fraction:
    right = (w for y, d, w in zip(rows.y, decided, rows.w, strict=True) if y == d)
    return sum(right, Fraction(0)) / sum(rows.w)


def _mean_cost(rows: Rows, decided: Sequence[int]) -> Fraction:
    costs = (w * (y - d) ** 2 for y, d, w in zip(rows.y, decided, rows.w, strict=True))
    return sum(costs, Fraction(0)) / sum(rows.w)


def _kappa(rows: Rows, decided: Sequence[int]) -> Fraction | None:
    """Quadratic weighted kappa: the mean square against that of outcomes and decisions at random."""
    pairs = itertools.product(zip(rows.y, rows.w, strict=True), zip(decided, rows.w, strict=True))
    chance = sum((v * w * (y - d) ** 2 for (y, v), (d, w) in pairs), Fraction(0)) / sum(rows.w) ** 2
    return 1 - _mean_cost(rows, decided) / chance if chance else None


VALUES: dict[str, Callable[[Rows, Sequence[int]], Fraction | None]] = {
    "accuracy": _accuracy,
    "ec": _mean_cost,
    "qwk": _kappa,
}


CHECKS: dict[str, Callable[[Rows, np.random.Generator], None]] = {
    "ranks": check_ranks,
    "c_index": check_c_index,
    "ece": check_ece,
    "benefit": check_benefit,
    "deferral": check_deferral,
    "decomposition": check_decomposition,
    "lengths": check_lengths,
    "risk": check_risk,
    "thresholds": check_thresholds,
}


def attempt(rng: np.random.Generator) -> None:
    """Every check of one random case."""
    rows = random_rows(rng)
    for name, check in CHECKS.items():
        try:
            check(rows, rng)
        except AssertionError as error:
            raise AssertionError(f"{name}, {rows}: {error}") from None


def _near(found: float, wanted: Fraction) -> bool:
    return math.isclose(float(found), float(wanted), rel_tol=CLOSE, abs_tol=CLOSE)


def _or_refused(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except vx.VeraxError:
        return None
