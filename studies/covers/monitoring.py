"""Alarms of a monitor: how often they are false, and whether what they say is true."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

import verax as vx
from covers.claims import claim, share_of

Batch = Callable[[np.random.Generator], tuple[Any, Any]]
_STEPS = 40


def drawn(p: Any, u: Any) -> Any:
    """Outcomes with the probabilities of the forecasts, from uniform numbers."""
    return np.minimum((p.cumsum(axis=1) <= u[:, None]).sum(axis=1), p.shape[1] - 1)


def dependent(rng: np.random.Generator, n: int, k: int, rho: float) -> tuple[Any, Any]:
    """Calibrated forecasts whose outcomes share a part of the normal numbers behind them within the step."""
    p = rng.dirichlet(np.full(k, 1.2), n)
    shared, own = rng.normal(), rng.normal(size=n)
    return drawn(p, norm.cdf(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)), p


def unequal(rng: np.random.Generator) -> tuple[Any, Any]:
    """The same with 20 to 300 rows."""
    return dependent(rng, int(rng.integers(20, 300)), 3, 0.1)


def seldom(rng: np.random.Generator) -> tuple[Any, Any]:
    """The same of an event that has 1 to 10%."""
    p = rng.uniform(0.01, 0.1, 200)
    shared, own = rng.normal(), rng.normal(size=200)
    return (norm.cdf(np.sqrt(0.1) * shared + np.sqrt(0.9) * own) < p).astype(int), p


def rare(rng: np.random.Generator, n: int, share: float) -> tuple[Any, Any]:
    """A rare event, forecast with its probability."""
    return (rng.random(n) < share).astype(int), np.full(n, share)


def alarmed(monitor: vx.Monitor, batch: Batch, rng: np.random.Generator, steps: int = _STEPS) -> bool:
    """Whether a stream raises an alarm."""
    return any(monitor.update(*batch(rng), time=step) is not None for step in range(steps))


def false_alarms(
    replications: int, seed: int, batch: Batch, make: Callable[[np.random.Generator], vx.Monitor]
) -> tuple[float, float]:
    """The share of streams without a change that ever raise an alarm."""
    rngs = [np.random.default_rng([seed, run]) for run in range(replications)]
    return share_of([alarmed(make(rng), batch, rng) for rng in rngs])


def known_brier(k: int) -> float:
    """The mean Brier loss of the forecasts that `dependent` makes."""
    return 1 - 2.2 / (1.2 * k + 1)


for k, n, rho in ((3, 100, 0.0), (2, 100, 0.1), (3, 100, 0.1), (3, 100, 0.3), (3, 500, 0.02), (2, 20, 0.3)):
    claim(
        f"monitor: false alarms ever: {k} classes, steps of {n} rows, correlation {rho:g}",
        0.0,
        0.05,
        partial(
            false_alarms,
            batch=partial(dependent, n=n, k=k, rho=rho),
            make=lambda _, k=k: vx.Monitor(known_brier(k)),
        ),
        100,
    )
for name, batch in (("steps of 20 to 300 rows", unequal), ("an event of 1 to 10%", seldom)):
    claim(
        f"monitor: false alarms ever: {name}, correlation 0.1",
        0.0,
        0.05,
        partial(false_alarms, batch=batch, make=lambda _: vx.Monitor()),
        100,
    )
for n, share in ((60, 0.02), (200, 0.01)):
    claim(
        f"monitor: false alarms ever: reference of {n} rows of an event of {100 * share:g}%",
        0.0,
        0.05,
        partial(
            false_alarms,
            batch=partial(rare, n=100, share=share),
            make=lambda rng, n=n, share=share: vx.Monitor(vx.evaluate(*rare(rng, n, share), rules=["brier"])),
        ),
        100,
    )


def harder_subgroup(replications: int, seed: int) -> tuple[float, float]:
    """Streams with a subgroup whose loss has always been above that of all rows."""
    hits = []
    for run in range(replications):
        rng = np.random.default_rng([seed, run])
        monitor = vx.Monitor(0.3, rule="brier", by="site")
        for step in range(_STEPS):
            site = np.arange(100) % 2
            p = np.where(site == 1, rng.uniform(0.3, 0.7, 100), rng.uniform(0.02, 0.1, 100))
            y = (rng.random(100) < p).astype(int)
            if monitor.update(y, p, time=step, by={"site": site}) is not None:
                break
        hits.append(monitor.alarm is not None)
    return share_of(hits)


claim("monitor: false alarms ever: a subgroup that has always been harder", 0.0, 0.05, harder_subgroup, 100)


def missed(
    replications: int, seed: int, losses: Callable[[np.random.Generator], Any], truth: float
) -> tuple[float, float]:
    """How often the mean loss lies above the bound of an estimated reference."""
    hits = []
    for run in range(replications):
        y, p, more = losses(np.random.default_rng([seed, run]))
        card = vx.evaluate(y, p, rules=["brier"], **more)
        hits.append(vx.Monitor(card, rule="brier").settings.reference < truth)
    return share_of(hits)


def few_events(rng: np.random.Generator, n: int, share: float) -> tuple[Any, Any, dict[str, Any]]:
    """A rare event."""
    return (*rare(rng, n, share), {})


def in_groups(rng: np.random.Generator, n_groups: int) -> tuple[Any, Any, dict[str, Any]]:
    """Groups of unequal sizes; in one of twenty all rows have the event."""
    sizes = 1 + rng.geometric(0.2, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    return (rng.random(n_groups) < 0.05)[groups].astype(int), np.full(len(groups), 0.05), {"groups": groups}


for n, share in ((60, 0.02), (300, 0.01), (1000, 0.005)):
    truth = 2 * share * (1 - share)
    claim(
        f"monitor: reference below the truth: {n} rows of an event of {100 * share:g}%",
        0.0,
        0.025,
        partial(missed, losses=partial(few_events, n=n, share=share), truth=truth),
        1000,
    )
claim(
    "monitor: reference below the truth: 60 groups of unequal sizes, 5% of them with the event",
    0.0,
    0.025,
    partial(missed, losses=partial(in_groups, n_groups=60), truth=2 * 0.05 * 0.95),
    1000,
)


def shifted(rng: np.random.Generator) -> tuple[Any, Any]:
    """The first class has become rarer and the last more frequent; forecasts do not know it."""
    p = rng.dirichlet(np.full(3, 1.2), 100)
    q = p * [0.6, 1.0, 1.6]
    return drawn(q / q.sum(axis=1, keepdims=True), rng.random(100)), p


def said_of_shift(replications: int, seed: int) -> tuple[float, float]:
    """How often the alarm after a shift of class frequencies says something that is not so."""
    hits = []
    for run in range(replications):
        rng, monitor = np.random.default_rng([seed, run]), vx.Monitor()
        calm: Batch = partial(dependent, n=100, k=3, rho=0.0)
        for step in range(80):
            if monitor.update(*(calm if step < 15 else shifted)(rng), time=step) is not None:
                break
        if monitor.alarm is not None:
            said = " ".join([monitor.alarm.kind, *monitor.alarm.reasons])
            false = ("“0” are too low", "“2” are too high", "one class has changed", "only")
            hits.append(any(words in said for words in false))
    return share_of(hits)


claim("monitor: what an alarm says of shifted class frequencies is not so", 0.0, 0.05, said_of_shift, 60)


def called_dependent(replications: int, seed: int) -> tuple[float, float]:
    """How often independent rows are said to depend on each other, at any step."""
    hits = []
    for run in range(replications):
        rng, monitor = np.random.default_rng([seed, run]), vx.Monitor(known_brier(3))
        said = False
        for step in range(_STEPS):
            monitor.update(*dependent(rng, 100, 3, 0.0), time=step)
            said = said or any("depend on each other" in caution for caution in monitor.cautions)
        hits.append(said)
    return share_of(hits)


claim("monitor: independent rows are said to depend on each other, ever", 0.0, 0.05, called_dependent, 100)
