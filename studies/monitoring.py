"""Whether the alarms of `vx.Monitor` keep their word, and how long they take.

    python studies/monitoring.py               all tables
    python studies/monitoring.py ever delay    some of them

Forecasts are Dirichlet and outcomes are drawn from them, so that they are calibrated and the mean loss is
known. Every table has fixed seeds. `studies/monitoring.md` has the tables and what they mean.
"""

from __future__ import annotations

import argparse
import math
from functools import cache

import numpy as np

import verax as vx

ALPHA = 0.05


def forecasts(rng, n, k, spread=1.2):
    """Forecasts of k classes."""
    return rng.dirichlet(np.full(k, spread), n)


def outcomes(rng, p, u=None):
    """Outcomes with the probabilities of the forecasts; `u` are the uniform numbers behind them."""
    u = rng.random(len(p)) if u is None else u
    return np.minimum((p.cumsum(axis=1) <= u[:, None]).sum(axis=1), p.shape[1] - 1)


@cache
def known_loss(rule, k):
    """The mean loss of the forecasts, from many of them."""
    rng = np.random.default_rng(99)
    p = forecasts(rng, 200_000, k)
    return float(np.mean(vx.parse(rule).entropy(p)))


def batch(rng, n, k, design):
    """Rows of one time step, and what else `update` is told."""
    p = forecasts(rng, n, k)
    if design == "groups of 5, dependent":
        groups = np.repeat(np.arange(n // 5), 5)
        shared = rng.random(n // 5)[groups]
        return outcomes(rng, p, np.where(rng.random(n) < 0.6, shared, rng.random(n))), p, {"groups": groups}
    if design == "steps that depend":
        return outcomes(rng, p, np.full(n, rng.random())), p, {}
    return outcomes(rng, p), p, {}


def monitor_of(rng, rule, k, design, **more):
    """A monitor with a known reference, or one that was estimated."""
    if design == "reference from 500 rows":
        p = forecasts(rng, 500, k)
        reference = vx.evaluate(outcomes(rng, p), p, ordered=rule == "rps", rules=[rule])
    else:
        reference = known_loss(rule, k)
    unit = "time" if design == "steps that depend" else None
    return vx.Monitor(reference, rule=rule, ordered=rule == "rps", unit=unit, **more)


def percent(hits, n):
    """A share with its Monte Carlo error."""
    share = hits / n
    return f"{100 * share:.1f} ± {100 * math.sqrt(max(share * (1 - share), 1 / n) / n):.1f}"


def ever(runs):
    """How many runs ever raise a false alarm."""
    print(
        "\n| design | rule | K | alpha | steps x rows | false alarms ever, % |\n|---|---|---:|---:|---:|---:|"
    )
    designs = [
        ("independent rows", "brier", 2, 0.05, 50, 100),
        ("independent rows", "log", 3, 0.05, 50, 100),
        ("independent rows", "rps", 4, 0.05, 50, 100),
        ("independent rows", "brier", 2, 0.3, 50, 100),
        ("independent rows", "brier", 3, 0.05, 100, 10_000),
        ("reference from 500 rows", "brier", 3, 0.1, 50, 100),
        ("groups of 5, dependent", "brier", 3, 0.05, 50, 100),
        ("steps that depend", "brier", 3, 0.05, 50, 100),
    ]
    for design, rule, k, alpha, steps, rows in designs:
        own = max(10, runs // 10) if rows > 1000 else runs
        hits = 0
        for run in range(own):
            rng = np.random.default_rng([1, run])
            monitor = monitor_of(rng, rule, k, design, alpha=alpha)
            for step in range(steps):
                y, p, more = batch(rng, rows, k, design)
                if monitor.update(y, p, time=step, **more) is not None:
                    hits += 1
                    break
        print(
            f"| {design} | {rule} | {k} | {alpha} | {steps} x {rows:,} | {percent(hits, own)} |", flush=True
        )


def rate(runs):
    """How many time steps pass before a detector that restarts raises a false alarm."""
    print("\n| alpha | wanted, steps | mean of runs of at most 150 steps | without an alarm, % |")
    print("|---:|---:|---:|---:|")
    for alpha in (0.1, 0.02):
        lengths = []
        for run in range(max(10, runs // 4)):
            rng = np.random.default_rng([2, run])
            monitor = monitor_of(rng, "brier", 2, "", alpha=alpha, false_alarms="rate")
            for step in range(150):
                y, p, _ = batch(rng, 50, 2, "")
                if monitor.update(y, p, time=step) is not None:
                    break
            lengths.append(step + 1)
        without = np.mean(np.array(lengths) == 150)
        print(f"| {alpha} | {1 / alpha:.0f} | {np.mean(lengths):.0f} | {100 * without:.0f} |", flush=True)


def changed(rng, n, k, how):
    """Rows after a change."""
    p = forecasts(rng, n, k)
    y = outcomes(rng, p)
    if how.startswith("one class"):
        share = float(how.rpartition(" ")[2].rstrip("%")) / 100
        return np.where(rng.random(n) < share, k - 1, y), p
    sharp = p ** float(how.rpartition(" ")[2])
    return y, sharp / sharp.sum(axis=1, keepdims=True)


def delay(runs):
    """How many steps of 100 rows pass between a change and the alarm."""
    print(
        "\n| change after 20 steps of 100 rows, K = 3 | ever, steps | rate, steps | z test that knows when "
        "| began within the interval, % |\n|---|---:|---:|---:|---:|"
    )
    for how in ("one class 10%", "one class 20%", "sharper by 1.5", "sharper by 2.5"):
        found, tests, inside, dated = {"ever": [], "rate": []}, [], 0, 0
        for run in range(max(10, runs // 5)):
            for kind, delays in found.items():
                rng = np.random.default_rng([3, run])
                monitor = monitor_of(rng, "brier", 3, "", alpha=ALPHA, false_alarms=kind)
                for step in range(120):
                    y, p = batch(rng, 100, 3, "")[:2] if step < 20 else changed(rng, 100, 3, how)
                    if monitor.update(y, p, time=step) is not None:
                        break
                delays.append(step - 19)
                if monitor.began is not None and step >= 20:
                    _, low, high = monitor.began
                    dated += 1
                    inside += low <= 20 <= high
            tests.append(_oracle(run, how))
        mid = {kind: np.median(delays) for kind, delays in found.items()}
        steps = f"{mid['ever']:.0f} | {mid['rate']:.0f} | {np.median(tests):.0f}"
        print(f"| {how} | {steps} | {percent(inside, dated)} |", flush=True)


def _oracle(run, how):
    """Steps until a one-sided z test of all losses since the change rejects for the first time."""
    rng = np.random.default_rng([3, run])
    for _ in range(20):
        batch(rng, 100, 3, "")
    reference, losses = known_loss("brier", 3), []
    for step in range(100):
        losses.append(vx.brier.samples(*changed(rng, 100, 3, how)))
        every = np.concatenate(losses)
        if (every.mean() - reference) / (every.std() / math.sqrt(len(every))) > 1.645:
            return step + 1
    return 100


TABLES = {"ever": ever, "rate": rate, "delay": delay}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], default=[])
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    for name in asked.tables or TABLES:
        TABLES[name](asked.runs)
