"""Summaries with two kinds of groups, and metrics of decisions with rare classes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import softmax

import verax as vx
from covers.claims import Measure, claim, crossed, share_of
from verax.analyses.cards.intervals import CardIntervals
from verax.engines.tally import RuleSums
from verax.inference.intervals import Resampling
from verax.inputs.forecasts import Forecasts
from verax.scores.metrics import find_metric


def league_and_date(kinds: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and forecasts of three classes, whose logits should be larger or smaller in every group."""
    factor = np.exp(sum(rng.normal(0, 0.8, int(kind.max()) + 1)[kind] for kind in kinds))
    z = rng.normal(size=(len(factor), 3))
    q = softmax(z * factor[:, None], axis=1)
    y = np.minimum((rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1), 2)
    return y, softmax(z, axis=1)


def line_of(card: vx.results.Scorecard, name: str) -> Any:
    return {**card.scores, **card.metrics}[name]


@cache
def league_and_date_truth(name: str) -> float:
    """The value for 400,000 rows of 3,000 leagues and dates."""
    rng = np.random.default_rng(12345)
    y, p = league_and_date([rng.integers(0, 3000, 400_000) for _ in range(2)], rng)
    return line_of(vx.evaluate(y, p, ordered=True, bootstrap=2), name).mean


def coverage_of_cards(name: str, n: int, sizes: tuple[int, int], used: str) -> Measure:
    """How often the interval of a card covers, by one kind of groups or by both."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            kinds = crossed(n, sizes, rng)
            y, p = league_and_date(kinds, rng)
            groups = {"the first kind only": kinds[0], "the second kind only": kinds[1], "both": kinds}[used]
            low, high = line_of(vx.evaluate(y, p, ordered=True, groups=groups), name).interval
            hits.append(low <= league_and_date_truth(name) <= high)
        return share_of(hits)

    return measure


for n, sizes in ((400, (10, 30)), (600, (20, 20))):
    for name in ("brier", "qwk"):
        for used in ("the first kind only", "the second kind only", "both"):
            low, high = (0.93, 0.97) if used == "both" else (0.0, 0.93)
            label = f"two kinds of groups: {name}, {sizes[0]} and {sizes[1]} groups, {used}"
            claim(label, low, high, coverage_of_cards(name, n, sizes, used), 400)


DECISIONS = ("kappa", "qwk", "macro_f1", "balanced_accuracy", "macro_mae")


def confusion(shares: tuple[float, ...], right: tuple[float, ...]) -> np.ndarray:
    """Probabilities of outcomes and decisions; wrong decisions are as frequent as the other classes."""
    others = np.tile(shares, (len(shares), 1)) * (1 - np.eye(len(shares)))
    wrong = (1 - np.array(right))[:, None] * others / others.sum(axis=1, keepdims=True)
    return np.array(shares)[:, None] * (wrong + np.diag(right))


@cache
def rare_hits(
    shares: tuple[float, ...], right: tuple[float, ...], n: int, replications: int, seed: int
) -> dict[str, list[bool]]:
    """In which samples the interval of each metric covers, and which have no width."""
    chance, metrics = confusion(shares, right), tuple(find_metric(name) for name in DECISIONS)
    found: dict[str, list[bool]] = {}
    for i in range(replications):
        table = np.random.default_rng([seed, i]).multinomial(n, chance.ravel()).reshape(chance.shape)
        y, decided = np.repeat(np.indices(chance.shape).reshape(2, -1), table.ravel(), axis=1)
        tally = RuleSums([], len(shares)).update(Forecasts(y, np.eye(len(shares))[decided]))
        intervals = CardIntervals(tally, metrics, Resampling(replicates=400, seed=i))
        for j, metric in enumerate(metrics):
            low, high = intervals.of_metric(j, float(metric.of(table[None])[0]))
            truth = float(metric.of(1e6 * chance[None])[0])
            found.setdefault(metric.name, []).append(low <= truth <= high)
            found.setdefault(f"{metric.name} without width", []).append(high - low < 1e-9)
    return found


def claims_of_decisions() -> None:
    """Coverage of metrics of decisions, where a class is rare and where classes are many."""
    rare = (0.58, 0.4, 0.02)
    designs = {
        "a class of 2 %, 500 rows": (rare, (0.8, 0.75, 0.6), 500),
        "a class of 2 % that is found, 500 rows": (rare, (0.95, 0.95, 0.9), 500),
        "a class of 2 % that is missed, 500 rows": (rare, (0.8, 0.75, 0.15), 500),
        "a class of 2 % that is missed, 1500 rows": (rare, (0.8, 0.75, 0.15), 1500),
        "an event of 2 %, 500 rows": ((0.98, 0.02), (0.99, 0.4), 500),
        "an event of 3 %, 200 rows": ((0.97, 0.03), (0.97, 0.5), 200),
        "3 classes, 100 rows": ((0.34, 0.33, 0.33), (0.8, 0.7, 0.6), 100),
        "10 classes, 200 rows": ((0.1,) * 10, (0.6,) * 10, 200),
        "10 classes that are found, 200 rows": ((0.1,) * 10, (0.95,) * 10, 200),
        "30 classes, 300 rows": ((1 / 30,) * 30, (0.6,) * 30, 300),
    }
    for label, design in designs.items():
        for name in DECISIONS:
            for what, low, high in ((name, 0.91, 0.99), (f"{name} without width", 0.0, 0.0)):

                def measure(
                    replications: int, seed: int, design: Any = design, what: str = what
                ) -> tuple[float, float]:
                    return share_of(rare_hits(*design, replications, seed)[what])

                claim(f"rare classes: {what}, {label}", low, high, measure, 500)


claims_of_decisions()
