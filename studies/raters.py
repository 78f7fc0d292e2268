"""What raters tell: coverage of the worth in raters, and people beside a network on CIFAR-10.

`python studies/raters.py FOLDER` prints the tables of raters.md; FOLDER holds the data sets.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from recording import Data, run

REPEATS = 600


def truth(design: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Class distributions of n cases, which raters draw their labels from."""
    if design == "easy":
        # Most cases are clear, some are not.
        alpha = np.where(rng.random((n, 1)) < 0.8, 0.08, 2.0)
        q = rng.gamma(np.repeat(alpha, 4, axis=1)) + 1e-12
    elif design == "grades":
        place = rng.normal(2, 1.3, n)
        q = np.exp(-((np.arange(5) - place[:, None]) ** 2) / rng.uniform(0.3, 1.5, (n, 1)))
    else:
        q = rng.dirichlet(np.ones(3), n)
    return q / q.sum(axis=1, keepdims=True)


def worth(design: str, n: int, m: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Counts of raters, forecasts that are a noisy power of the truth, and groups of `size` cases."""
    groups = np.arange(n) // size
    q = truth(design, n, rng)
    # Cases of a group share how far the forecasts are off.
    noise = rng.normal(0, 0.5, (n // size + 1, q.shape[1]))[groups] + rng.normal(0, 0.4, q.shape)
    p = (q + 0.02) ** 0.8 * np.exp(noise)
    raters = rng.integers(2, 2 * m - 1, n) if m > 2 else np.full(n, 2)
    counts = rng.multinomial(raters, q / q.sum(axis=1, keepdims=True))
    return counts, p / p.sum(axis=1, keepdims=True), groups, q


def coverage() -> None:
    """How often the 95 percent interval of the worth holds the worth of all cases there are."""
    print("| design | rule | raters per case | cases | groups | coverage | below | above |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for design, rule in (("simplex", vx.brier), ("easy", vx.brier), ("grades", vx.rps)):
        rng = np.random.default_rng(7)
        _, p, _, q = worth(design, 400_000, 2, 10, rng)
        h = float(np.mean(rule.entropy(q)))
        known = h / (float(np.mean(rule.expected(p, q))) - h)
        for m in (2, 3, 5, 50):
            for size in (1, 10):
                low = high = 0
                n = 400 if size == 1 else 600
                for _ in range(REPEATS):
                    counts, p, groups, _ = (
                        worth(design, n, m, size, rng) if size > 1 else alone(design, n, m, rng)
                    )
                    own = {"groups": groups} if size > 1 else {}
                    found = vx.raters(counts, p, rule=rule, raters="counts", n=1, **own).worth.interval
                    low, high = low + (known < found.low), high + (known > found.high)
                shares = [1 - (low + high) / REPEATS, low / REPEATS, high / REPEATS]
                of = "" if size == 1 else f"{n // size}"
                texts = " | ".join(f"{100 * share:.1f} %" for share in shares)
                print(f"| {design} | {rule} | {m} | {n} | {of} | {texts} |", flush=True)


def alone(design: str, n: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The same without groups: one case of each of n groups."""
    counts, p, groups, q = worth(design, n * 2, m, 2, rng)
    return counts[::2], p[::2], groups[::2], q[::2]


def tempered(p: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities after temperature scaling."""
    logs = np.log(np.clip(p, 1e-12, None)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def people(data: Data) -> None:
    """A network on CIFAR-10 against the labels of about 51 people for each image."""
    human = np.load(data.file("cifar10h-human/cifar10h.npz"))
    network = np.load(data.file("cifar10-vgg16/cifar10_vgg16.npz"))
    counts, p = human["counts"].astype(np.int64), network["probs"].astype(float)
    p = p / p.sum(axis=1, keepdims=True)
    majority = counts.argmax(axis=1)
    scores = "log score, raters | log score, majority"
    print(f"| forecasts | Brier | disagreement | excess | worth in raters | {scores} |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    fitted = {}
    for name, own in (("majority", {"y": majority}), ("raters", {"y": counts, "raters": "counts"})):
        found = vx.recalibrate(
            p=np.clip(p, 1e-12, 1), method="temperature", rule="log_score", normalize=True, **own
        )
        fitted[name] = float(found.trial("temperature").detail.split()[-1])
    each = {"network": 1.0, "temperature 2.2": 2.2}
    each |= {f"temperature fitted to the {name} ({t:.2f})": t for name, t in fitted.items()}
    for name, temperature in each.items():
        q = tempered(p, temperature)
        found = vx.raters(counts, q, raters="counts", n=1)
        low, high = found.worth.interval
        logs = f"{vx.log_score(counts, q, raters='counts'):.4f} | {vx.log_score(majority, q):.4f}"
        print(
            f"| {name} | {found.loss.value:.5f} | {found.disagreement.value:.5f} | {found.excess.value:.5f} "
            f"| {found.worth.value:.2f} ({low:.2f} to {high:.2f}) | {logs} |"
        )
    votes = np.eye(10)[majority]
    found = vx.raters(counts, votes, raters="counts", n=1)
    print(f"\nThe majority vote itself as a forecast: worth {found.worth.value:.2f} raters.")
    right, sure = np.mean(p.argmax(axis=1) == majority), p.max(axis=1).mean()
    agreed = np.mean(counts[np.arange(len(p)), p.argmax(axis=1)] / counts.sum(axis=1))
    print(f"Right by majority {right:.4f}, by raters {agreed:.4f}, claimed {sure:.4f}.")


if __name__ == "__main__":
    run(__file__, {"people": people, "coverage": lambda _: coverage()}, seed=7)
