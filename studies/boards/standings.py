"""Win rates and changes of losses, with intervals that resample data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from boards.measuring import Outcome
from boards.methods import ALL_OF_VERAX, NOTHING

RESAMPLES = 2000
# Losses that differ by less, relatively, are a tie.
TIE = 1e-6
# The largest calibration set that is called small.
SMALL_SET = 500


@dataclass(frozen=True)
class Group:
    """Some of the experiments."""

    name: str
    holds: Callable[[Outcome], bool]


GROUPS = (
    Group("all", lambda _: True),
    Group("two classes", lambda o: o.n_classes == 2),
    Group("more classes", lambda o: o.n_classes > 2 and not o.ordered),
    Group("ordered classes", lambda o: o.ordered),
    Group("at most 500 rows", lambda o: o.rows <= SMALL_SET),
    Group("more than 500 rows", lambda o: o.rows > SMALL_SET),
)


@dataclass(frozen=True)
class Estimate:
    """A mean over experiments, with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """How a method did in a group of experiments.

    Attributes
    ----------
    wins : Estimate
        The share of other methods that it beats, on average over experiments; a tie is half a win.
    change : Estimate
        The geometric mean of its loss over that of doing nothing, minus one, in percent.
    worst : float
        The largest such change in any experiment, in percent.
    worst_data : float
        The largest mean of such changes over the experiments of a data set, in percent.
    """

    method: str
    experiments: int
    wins: Estimate
    change: Estimate
    worst: float
    worst_data: float
    seconds: float
    failures: int


def standings(
    outcomes: Iterable[Outcome], rule: str, group: Group, field: set[str], shown: Iterable[str]
) -> list[Standing]:
    """How each of the methods shown did against those of the field, best first."""
    tried: dict[str, dict[str, Outcome]] = {}
    for o in outcomes:
        if group.holds(o):
            tried.setdefault(o.experiment, {})[o.method] = o
    found = []
    for method in shown:
        mine = {name: by[method] for name, by in tried.items() if method in by and NOTHING in by}
        if mine and len(mine) == len(tried):
            found.append(_standing(method, mine, tried, rule, field))
    return sorted(found, key=lambda s: -s.wins.mean)


def _standing(
    method: str,
    mine: dict[str, Outcome],
    tried: dict[str, dict[str, Outcome]],
    rule: str,
    field: set[str],
) -> Standing:
    data, wins, ratios = [], [], []
    for name, own in mine.items():
        loss = own.losses[rule]
        others = [o.losses[rule] for key, o in tried[name].items() if key in field - {method}]
        gaps = np.asarray(others) - loss
        near = np.abs(gaps) <= TIE * max(loss, 1e-12)
        wins.append(float(np.where(near, 0.5, gaps > 0).mean()))
        ratios.append(float(np.log(max(loss, 1e-9) / max(tried[name][NOTHING].losses[rule], 1e-9))))
        data.append(own.data)
    change = _mean(ratios, data)
    codes = np.unique(data, return_inverse=True)[1]
    by_data = np.bincount(codes, ratios) / np.bincount(codes)
    return Standing(
        method,
        len(mine),
        _mean(wins, data),
        Estimate(*(_percent(x) for x in (change.mean, change.low, change.high))),
        _percent(max(ratios)),
        _percent(float(by_data.max())),
        float(np.mean([o.seconds for o in mine.values()])),
        sum(bool(o.failure) for o in mine.values()),
    )


def _percent(log_ratio: float) -> float:
    return 100 * float(np.expm1(log_ratio))


def _mean(values: list[float], data: list[str]) -> Estimate:
    """The mean, and its interval by resampling data sets, whose experiments depend on each other."""
    codes = np.unique(data, return_inverse=True)[1]
    sums, counts = np.bincount(codes, values), np.bincount(codes)
    drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(np.mean(values)), float(low), float(high))


# ---- text --------------------------------------------------------------------------------------

# The columns of an overview: a rule, and the number of a group.
COLUMNS = (("log_score", 0), ("brier", 0), ("brier", 1), ("brier", 2), ("rps", 3), ("brier", 4), ("brier", 5))


def overview(outcomes: list[Outcome], field: set[str], shown: Iterable[str]) -> str:
    """Two Markdown tables, win rates and changes, with half the width of their intervals."""
    names = list(shown)
    found = {
        column: {s.method: s for s in standings(outcomes, column[0], GROUPS[column[1]], field, names)}
        for column in COLUMNS
    }
    heads = [f"{rule}, {GROUPS[number].name}" for rule, number in COLUMNS]
    counts = [next((str(s.experiments) for s in each.values()), "0") for each in found.values()]
    order = sorted(
        names, key=lambda name: -max((e[name].wins.mean for e in found.values() if name in e), default=0.0)
    )
    first = found["brier", 0]
    order = sorted(order, key=lambda name: -first[name].wins.mean if name in first else 1.0)
    texts = []
    for title, of in (("win rate", lambda s: s.wins), ("loss against doing nothing, %", lambda s: s.change)):
        digits = 2 if title == "win rate" else 1
        lines = [
            f"\n| {title} | {' | '.join(heads)} |",
            "| --- |" + " ---: |" * len(heads),
            f"| experiments | {' | '.join(counts)} |",
        ]
        for name in order:
            cells = []
            for each in found.values():
                e = of(each[name]) if name in each else None
                wide = 0.0 if e is None else (e.high - e.low) / 2
                cells.append("" if e is None else f"{e.mean:.{digits}f} ± {wide:.{digits}f}")
            lines.append(f"| {_bold(name)} | {' | '.join(cells)} |")
        texts.append("\n".join(lines))
    return "\n".join(texts)


def _bold(name: str) -> str:
    return f"**{name}**" if name in ALL_OF_VERAX else name


def table(found: list[Standing], rule: str, group: Group) -> str:
    """A Markdown table of standings."""
    n = found[0].experiments if found else 0
    lines = [
        f"\n**{group.name}, {rule}** ({n} experiments)\n",
        "| method | win rate | loss against doing nothing, % | worst data set | worst | seconds | failed |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for s in found:
        wins = f"{s.wins.mean:.2f} ({s.wins.low:.2f} to {s.wins.high:.2f})"
        change = f"{s.change.mean:+.1f} ({s.change.low:+.1f} to {s.change.high:+.1f})"
        name = _bold(s.method)
        cells = [name, wins, change, f"{s.worst_data:+.1f}", f"{s.worst:+.1f}", f"{s.seconds:.2f}"]
        lines.append(f"| {' | '.join(cells)} | {s.failures or ''} |")
    return "\n".join(lines)
