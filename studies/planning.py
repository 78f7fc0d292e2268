"""Whether plans keep their word: simulated power, the range of sizes, and how long sequences take.

python studies/planning.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import kurtosis, norm
from scipy.stats import t as student

import verax as vx
from verax.engines.clusters import variances_over
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
    pilots(rng)


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


# Differences of a pilot with a standard deviation of 1, by their names.
PILOT_DIFFERENCES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 6 degrees of freedom": lambda rng, n: rng.standard_t(6, n) / np.sqrt(1.5),
    "gamma(.6) of either sign": lambda rng, n: _signed(rng, rng.gamma(0.6, size=n)) / np.sqrt(0.96),
    "nine in ten zero": lambda rng, n: rng.normal(size=n) * (rng.random(n) < 0.1) * np.sqrt(10),
}


def _signed(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x * rng.choice((-1, 1), len(x))


def pilots(rng: np.random.Generator) -> None:
    """What plans for a power of .9 attain over pilots: taken at their word, on average, for 80 % of them."""
    print("\npilot | taken at its word | on average | for 80 % of pilots")
    for name, draw in PILOT_DIFFERENCES.items():
        for n in (25, 60, 250):
            spreads = []
            for _ in range(2 * PILOTS):
                x = draw(rng, n)
                tails = Tails(float(kurtosis(x, fisher=False)), n)
                spreads.append(MeanSpread(float(x.std(ddof=1) / np.sqrt(n)), n - 1.0, n, tails.freedom))
            print(f"{name}, {n} rows | {_attained(spreads, 1.0)}", flush=True)
    uneven = np.where(np.arange(40) < 10, 6.0, 1.0)
    for name, sizes in (("15 equal groups", np.ones(15)), ("40 groups, a quarter 6 times as large", uneven)):
        w = sizes / sizes.sum()
        spreads = []
        for _ in range(2 * PILOTS):
            means = rng.normal(0, np.sqrt(0.3 + 0.7 / sizes))
            sums = np.column_stack([w, w * means])
            variance, freedom = variances_over(np.arange(len(w)), sums)
            around = w * (means - w @ means)
            tails = len(w) * float((around**4).sum()) / float((around**2).sum()) ** 2
            even = float((w**2).sum() ** 2 / (w**4).sum())
            known = min(Tails(tails, len(w), "groups", even).freedom, float(np.max(freedom)))
            error = float(np.sqrt(np.max(variance)))
            spreads.append(MeanSpread(error, float(np.max(freedom)), len(w), known))
        true = float(np.sqrt((w**2 * (0.3 + 0.7 / sizes)).sum() * len(w)))
        print(f"{name} | {_attained(spreads, true)}", flush=True)


def _attained(spreads: list[MeanSpread], deviation: float) -> str:
    """The mean power, and the share of pilots below .8, of three ways to plan; a unit has this deviation."""
    goal, cells = Goal(0.04, 0.05, 0.9), []
    for planned in (
        lambda spread: replace(spread, certainty=np.inf),
        lambda spread: spread,
        lambda spread: spread.exceeded_in(0.2),
    ):
        units = np.array([goal.units(planned(spread)) for spread in spreads])
        power = norm.cdf(0.04 * np.sqrt(units) / deviation - norm.ppf(0.975))
        error = power.std() / np.sqrt(len(power))
        cells.append(f"{power.mean():.3f} ± {error:.3f}; {100 * (power < 0.8).mean():.1f} %")
    return " | ".join(cells)


if __name__ == "__main__":
    main()
