"""Whether plans keep their word: simulated power, the range of sizes, and how long sequences take.

python studies/planning.py
"""

from __future__ import annotations

import numpy as np
from scipy.stats import kurtosis
from scipy.stats import t as student

import verax as vx
from verax.inference.sizes import Goal, MeanSpread, Sharing
from verax.wings.plan.analysis import concluded
from verax.wings.plan.pilots import Pilot, Tails

N = 400_000
SAMPLES = 20_000
PILOTS = 1_000


def population(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes and two forecasts that differ a little."""
    classes, sharp, noise, rare = {
        "two classes": (2, 1.5, 0.35, 0.0),
        "rare event": (2, 1.5, 0.35, 3.5),
        "five classes": (5, 1.2, 0.3, 0.0),
        "sure of itself": (3, 4.0, 0.8, 0.0),
    }[kind]
    truth = rng.normal(0, sharp, (N, classes))
    truth[:, 1:] -= rare
    p = np.exp(truth)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(N)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, classes - 1)
    found = []
    for spread in (0.5 * noise, noise):
        q = np.exp(truth + rng.normal(0, spread, truth.shape))
        found.append(q / q.sum(axis=1, keepdims=True))
    return y, found[0], found[1]


def rejections(gaps: np.ndarray, n: int, rng: np.random.Generator, margin: float | None = None) -> float:
    """How often a t test of n rows shows the difference, or that it is below a margin."""
    shown, done, batch = 0, 0, max(1, 4_000_000 // n)
    while done < SAMPLES:
        drawn = gaps[rng.integers(0, len(gaps), (min(batch, SAMPLES - done), n))]
        mean, error = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / np.sqrt(n)
        if margin is None:
            shown += int((np.abs(mean / error) > student.ppf(0.975, n - 1)).sum())
        else:
            shown += int(((mean - margin) / error < student.ppf(0.05, n - 1)).sum())
        done += len(drawn)
    return shown / SAMPLES


def main() -> None:
    rng = np.random.default_rng(0)
    print("design, rule | rows | power promised | simulated | range of 200-row pilots holds the rows")
    for kind in ("two classes", "rare event", "five classes", "sure of itself"):
        y, a, b = population(kind, rng)
        for rule in ("brier", "log_score"):
            gaps = vx.parse(rule).samples(y, b) - vx.parse(rule).samples(y, a)
            known = vx.compare(y, {"b": b, "a": a}, rule=rule)
            for power in (0.8, 0.9):
                plan = vx.plan(known, power=power)
                simulated = rejections(gaps, int(plan.rows), rng)
                held = ""
                if power == 0.9:
                    held = f"{100 * np.mean([in_range(gaps, plan, rng) for _ in range(PILOTS)]):.0f} %"
                print(f"{kind}, {rule} | {plan.rows:,.0f} | {power} | {simulated:.3f} | {held}", flush=True)
            margin = 2 * float(gaps.mean())
            plan = vx.plan(known, margin=margin, difference=float(gaps.mean()), power=0.8)
            simulated = rejections(gaps, int(plan.rows), rng, margin)
            print(f"{kind}, {rule}, margin | {plan.rows:,.0f} | 0.8 | {simulated:.3f} |", flush=True)
    grouped(rng)
    sequences(rng)


def in_range(gaps: np.ndarray, plan: vx.results.SamplePlan, rng: np.random.Generator) -> bool:
    """Whether the range that a pilot of 200 rows gives holds the rows that are right."""
    drawn = gaps[rng.integers(0, len(gaps), 200)]
    tails = Tails(float(kurtosis(drawn, fisher=False)), 200)
    ends = MeanSpread(drawn.std(ddof=1) / np.sqrt(200), 199.0, 200, tails.freedom).range(0.95)
    low, high = (plan.goal.units(end) for end in ends)
    return bool(low <= plan.rows <= high)


def grouped(rng: np.random.Generator) -> None:
    """Groups of five rows with a common effect; plans for groups of five, two and twenty rows."""
    print("\ngroups of | groups | power promised | simulated")
    effect, noise, difference = 0.6, 1.0, 0.15

    def draw(groups: int, size: int, samples: int) -> np.ndarray:
        shared = rng.normal(difference, effect, (samples, groups))
        return shared + rng.normal(0, noise / np.sqrt(size), (samples, groups))

    groups, size = 4_000, 5
    pilot = draw(groups, size, 1)[0]
    spread = MeanSpread(float(pilot.std(ddof=1) / np.sqrt(groups)), groups - 1.0, groups)
    sharing = Sharing.of(spread, float(np.hypot(effect, noise)), groups * size)
    known = Pilot("simulated", spread, difference, groups * size, groups, sharing, ("a", "b"))
    for rows in (5, 2, 20):
        goal = Goal(difference, 0.05, 0.8)
        plan = concluded(known.with_groups_of(rows), goal, "difference", difference=difference, margin=None)
        n = int(plan.groups or 0)
        drawn = draw(n, rows, SAMPLES)
        t = drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / np.sqrt(n))
        print(f"{rows} | {n} | 0.8 | {(np.abs(t) > student.ppf(0.975, n - 1)).mean():.3f}", flush=True)


def sequences(rng: np.random.Generator) -> None:
    """How long confidence sequences take on average, against what plans say."""
    print("\ndesign | rows said | rows taken, mean of 40 | test of fixed size, power 0.9")
    for kind in ("two classes", "five classes"):
        y, a, b = population(kind, rng)
        gaps = vx.brier.samples(y, b) - vx.brier.samples(y, a)
        plan = vx.plan(vx.compare(y, {"b": b, "a": a}, rule="brier"))
        taken = []
        for _ in range(40):
            sequence = vx.ConfidenceSequence("brier", n_classes=a.shape[1])
            while not sequence.decided:
                sequence.update_differences(gaps[rng.integers(0, N, 200)])
            taken.append(sequence.n_rows)
        print(
            f"{kind} | {plan.rows_until_decided:,.0f} | {np.mean(taken):,.0f} | {plan.rows:,.0f}", flush=True
        )


if __name__ == "__main__":
    main()
