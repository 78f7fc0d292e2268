"""How wide, how sure: coverage and width of the intervals that default calls print, on data of known truth.

    python studies/widths.py --processes 16 --save    # all designs; keeps studies/results/widths.csv
    python studies/widths.py TEXT ...                 # designs whose names contain one of these texts
    python studies/widths.py --family "net benefit" --save    # one kind of quantity again
    python studies/widths.py --page                   # tables and figures of the page, from what is kept

A width is divided by that of the interval that knows the truth: twice 1.96 times the standard deviation of
the estimate over the samples of a design. No sample can tell it; it is the measure of all the others.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import verax as vx
from covers.shares import ORACLE, in_groups
from recording import HERE, write
from widths_measured import COLUMNS, COVERS, RESULTS, WIDE, families, kept, picture, summary, tables

# The population is the mean of so many samples, of so many rows and groups each.
POPULATIONS, POPULATION, GROUPS = 8, 150_000, 30_000
THRESHOLDS = (0.1, 0.3)


@dataclass(frozen=True)
class Seen:
    """One interval of one sample.

    Attributes
    ----------
    family, what : str
        The kind of quantity, and which one it is.
    value : float
        The estimate.
    low, high : float
        The ends of the interval.
    cautioned : bool
        Whether the interval carries a caution.
    """

    family: str
    what: str
    value: float
    low: float
    high: float
    cautioned: bool


def seen(family: str, what: str, value: float, interval: Any) -> Seen:
    """An interval of verax, or its ends."""
    low, high = interval
    return Seen(family, what, float(value), float(low), float(high), bool(getattr(interval, "caution", "")))


@dataclass(frozen=True)
class Rows:
    """Rows of a sample.

    Attributes
    ----------
    y : array
        Outcomes.
    models : dict
        The forecasts of two models.
    own : dict
        Groups and weights, if there are any.
    """

    y: np.ndarray
    models: dict[str, np.ndarray]
    own: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Events:
    """Forecasts of an event by two models.

    Attributes
    ----------
    offset : float
        The logit of the chance of a middling row.
    n : int
        The number of rows.
    spread : float
        The standard deviation of the logits of chances.
    sure : float
        How many times too sure the first model is.
    groups : int
        The number of groups; 0 for independent rows.
    sizes : str
        How the sizes of groups vary.
    effect : float
        The standard deviation of the shifts of groups on the logit.
    law : str
        The distribution of shifts: "normal", or "skewed".
    weights : bool
        Whether rows have weights, which say nothing of outcomes.
    """

    offset: float
    n: int
    spread: float = 1.2
    sure: float = 1.0
    groups: int = 0
    sizes: str = "equal"
    effect: float = 0.0
    law: str = "normal"
    weights: bool = False

    def __str__(self) -> str:
        where = (
            f" in {self.groups} groups ({self.sizes}, {self.law} shifts of {self.effect:g})"
            if self.groups
            else ""
        )
        sure = f", {self.sure:g} times too sure" if self.sure != 1 else ""
        return (
            f"events, {self.n:,} rows{where}, middling chance {expit(self.offset):.2g}, "
            f"spread {self.spread:g}{sure}{', weights' if self.weights else ''}"
        )

    def rows(self, rng: np.random.Generator) -> Rows:
        """A sample."""
        n, own = self.n, {}
        shift = np.zeros(n)
        if self.groups:
            group = grouped(self, rng)
            shift = self.effect * shifts(self.law, self.groups, rng)[group]
            own["groups"] = group
        z = self.offset + self.spread * rng.normal(size=n)
        y = (rng.random(n) < expit(z + shift)).astype(int)
        if self.weights:
            own["weights"] = rng.exponential(size=n)
        models = {"a": expit(self.sure * z), "b": expit(z + 0.6 * rng.normal(size=n))}
        return Rows(y, models, own)

    def intervals(self, rows: Rows, family: str = "") -> Iterator[Seen]:
        """What default calls print."""
        y, a, own = rows.y, rows.models["a"], rows.own
        if not family or family in FAMILIES:
            yield from of_card(vx.evaluate(y, a, **own))
        if family in ("", "differences of losses"):
            compared = vx.compare(y, rows.models, **own)
            for rule in ("brier", "log_score"):
                gap = compared.difference("a", "b", rule)
                yield seen("differences of losses", f"{rule}, a - b", gap.difference, gap.interval)
        if family in ("", "net benefit"):
            yield from self.benefits(y, a, own)
        if family in ("", "differences of rates"):
            points = vx.operating_points(y, rows.models, threshold=float(expit(self.offset)), **own)
            for gap in points.differences:
                if gap.rate in ("sensitivity", "specificity", "ppv", "accuracy"):
                    yield seen("differences of rates", f"{gap.rate}, a - b", gap.difference, gap.interval)

    def benefits(self, y: np.ndarray, a: np.ndarray, own: dict[str, np.ndarray]) -> Iterator[Seen]:
        """Net benefits at the thresholds."""
        benefit = vx.net_benefit(y, a, thresholds=THRESHOLDS, **own).curves[0]
        ends = np.transpose(np.asarray(benefit.interval))
        for threshold, value, interval in zip(THRESHOLDS, benefit.values, ends, strict=True):
            yield seen("net benefit", f"at {threshold:g}", value, interval)


@dataclass(frozen=True)
class Grades:
    """Forecasts of ordered classes.

    Attributes
    ----------
    classes : int
        The number of classes.
    n : int
        The number of rows.
    tilt : float
        How rare high classes are.
    groups, sizes, effect, law, weights
        As of events: groups shift the outcomes upward or downward.
    """

    classes: int
    n: int
    tilt: float = 0.4
    groups: int = 0
    sizes: str = "equal"
    effect: float = 0.0
    law: str = "normal"
    weights: bool = False

    def __str__(self) -> str:
        where = (
            f" in {self.groups} groups ({self.sizes}, {self.law} shifts of {self.effect:g})"
            if self.groups
            else ""
        )
        weights = ", weights" if self.weights else ""
        return f"{self.classes} grades, {self.n:,} rows{where}, tilt {self.tilt:g}{weights}"

    def rows(self, rng: np.random.Generator) -> Rows:
        """A sample."""
        n, own, steps = self.n, {}, np.arange(self.classes)
        shift = np.zeros(n)
        if self.groups:
            group = grouped(self, rng)
            shift = self.effect * shifts(self.law, self.groups, rng)[group]
            own["groups"] = group
        centre = (self.classes - 1) * rng.beta(1.2, 1.8, n)
        z = -0.7 * (steps - centre[:, None]) ** 2 - self.tilt * steps
        chance = softmax(z + shift[:, None] * steps, axis=1)
        y = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1).clip(0, self.classes - 1)
        if self.weights:
            own["weights"] = rng.exponential(size=n)
        other = z + 0.5 * rng.normal(size=z.shape)
        return Rows(y, {"a": softmax(z, axis=1), "b": softmax(other, axis=1)}, own)

    def intervals(self, rows: Rows, family: str = "") -> Iterator[Seen]:
        """What default calls print."""
        if not family or family in FAMILIES:
            yield from of_card(vx.evaluate(rows.y, rows.models["a"], ordered=True, **rows.own))
        if family in ("", "differences of losses"):
            gap = vx.compare(rows.y, rows.models, ordered=True, **rows.own).difference("a", "b", "rps")
            yield seen("differences of losses", "rps, a - b", gap.difference, gap.interval)


@dataclass(frozen=True)
class Sets:
    """Prediction sets of four classes at level 0.9: the coverage that they will have on other rows.

    Attributes
    ----------
    n, groups, sizes, effect, law, weights
        As of events: groups make forecasts too sure, or not sure enough.
    places : int or None
        To how many digits forecasts are rounded, so that scores tie.
    """

    n: int
    groups: int = 0
    sizes: str = "equal"
    effect: float = 0.0
    law: str = "normal"
    weights: bool = False
    places: int | None = None

    level = 0.9

    def __str__(self) -> str:
        where = (
            f" in {self.groups} groups ({self.sizes}, {self.law} shifts of {self.effect:g})"
            if self.groups
            else ""
        )
        tied = f", rounded to {self.places} digits" if self.places else ""
        return f"sets, {self.n:,} rows{where}{tied}{', weights' if self.weights else ''}"

    def rows(self, rng: np.random.Generator) -> Rows:
        """A sample."""
        n, own, shift = self.n, {}, np.zeros(self.n)
        if self.groups:
            group = grouped(self, rng)
            shift = self.effect * shifts(self.law, self.groups, rng)[group]
            own["groups"] = group
        z = 1.3 * rng.normal(size=(n, 4))
        chance = softmax(z * np.exp(shift)[:, None], axis=1)
        y = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1).clip(0, 3)
        if self.weights:
            own["weights"] = rng.exponential(size=n)
        p = softmax(1.3 * z, axis=1)
        if self.places:
            p = np.round(p, self.places) + 1e-9
            p /= p.sum(axis=1, keepdims=True)
        return Rows(y, {"a": p}, own)

    def intervals(self, rows: Rows, family: str = "") -> Iterator[Seen]:
        """The range, about the coverage of other rows: it is this that varies from sample to sample."""
        if family not in ("", "coverage of sets"):
            return
        fitted = vx.conformal(rows.y, rows.models["a"], level=self.level, **rows.own)
        other = elsewhere(self)
        named = fitted.apply(other.models["a"]).mask()
        met = float(named[np.arange(len(other.y)), other.y].mean())
        low, high = fitted.expected_coverage
        yield seen(
            "coverage of sets",
            f"level {self.level:g}",
            met,
            (self.level + low - met, self.level + high - met),
        )


Design = Events | Grades | Sets


@cache
def elsewhere(design: Sets) -> Rows:
    """Other rows of the population of a design."""
    many = replace(design, n=POPULATION, groups=GROUPS if design.groups else 0, weights=False)
    return many.rows(np.random.default_rng(20))


def grouped(design: Design, rng: np.random.Generator) -> np.ndarray:
    """The groups of rows."""
    if design.n == POPULATION:
        return rng.integers(0, design.groups, design.n)
    size = in_groups(design.groups, design.n / design.groups, design.sizes)
    return rng.choice(design.groups, design.n, p=size / size.sum())


def shifts(law: str, groups: int, rng: np.random.Generator) -> np.ndarray:
    """The shifts of groups, with mean 0 and standard deviation 1."""
    return rng.normal(size=groups) if law == "normal" else rng.gamma(2.0, size=groups) / 2**0.5 - 2**0.5


FAMILIES = {
    "shares": ("accuracy", "sensitivity", "specificity", "ppv", "npv"),
    "means of losses": ("brier", "log_score", "spherical", "pbs", "rps", "sa_rps"),
    "ranking": ("auc", "average_precision"),
    "calibration": ("slope", "intercept", "in_the_large"),
    "agreement": ("f1", "qwk", "ec"),
}


def of_card(card: Any) -> Iterator[Seen]:
    """The intervals of a card."""
    lines: Mapping[str, Any] = {**card.scores, **card.metrics, **card.measures}
    for family, names in FAMILIES.items():
        for name in names:
            if name in lines and not np.isnan(lines[name].interval[0]):
                yield seen(family, name, lines[name].mean, lines[name].interval)


EVENTS = [
    Events(0.0, 120),
    Events(-1.0, 300, sure=1.4),
    Events(-2.5, 400),
    Events(-2.5, 900, spread=0.7),
    Events(-4.0, 3_000, spread=1.6),
    Events(1.5, 250, spread=2.2, sure=0.7),
    Events(-1.0, 600, weights=True),
    Events(-3.0, 2_000, weights=True),
    Events(-1.0, 400, groups=6, effect=0.3),
    Events(-1.0, 400, groups=6, sizes="ranked", effect=0.3),
    Events(0.3, 900, groups=9, effect=0.0),
    Events(0.3, 900, groups=9, sizes="skewed", effect=0.6),
    Events(-2.5, 1_000, groups=12, effect=0.5, law="skewed"),
    Events(-3.5, 3_000, groups=12, sizes="skewed", effect=0.4),
    Events(-1.0, 800, groups=16, sizes="ranked", effect=0.0, sure=1.4),
    Events(-1.0, 1_000, groups=25, effect=0.8),
    Events(-2.0, 1_000, groups=25, sizes="skewed", effect=0.4, weights=True),
    Events(0.0, 1_000, groups=45, effect=0.5, law="skewed"),
    Events(-3.0, 4_000, groups=45, sizes="skewed", effect=0.3),
    Events(-1.0, 900, groups=180, effect=1.5),
]
GRADES = [
    Grades(4, 150),
    Grades(5, 500, tilt=1.0),
    Grades(5, 700, weights=True),
    Grades(5, 600, groups=8, effect=0.3),
    Grades(4, 900, groups=14, sizes="skewed", effect=0.2, law="skewed"),
    Grades(5, 1_000, groups=30, effect=0.4),
    Grades(6, 1_200, groups=30, sizes="ranked", effect=0.0),
]
SETS = [
    Sets(150),
    Sets(700),
    Sets(700, weights=True),
    Sets(700, places=2),
    Sets(1_500, groups=35, sizes="skewed", effect=0.3),
    Sets(1_500, groups=80, effect=0.5),
]
DESIGNS: dict[str, Design] = {str(design): design for design in (*EVENTS, *GRADES, *SETS)}


@cache
def truth(design: Design, family: str) -> dict[tuple[str, str], float]:
    """What is estimated, from many rows."""
    if isinstance(design, Sets):
        return {("coverage of sets", f"level {design.level:g}"): design.level}
    many = replace(design, n=POPULATION, groups=GROUPS if design.groups else 0, weights=False)
    found: dict[tuple[str, str], list[float]] = {}
    for i in range(POPULATIONS):
        rows = many.rows(np.random.default_rng([20, i]))
        for each in many.intervals(replace(rows, own={}), family):
            found.setdefault((each.family, each.what), []).append(each.value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def samples(name: str, first: int, last: int, family: str) -> tuple[str, list[list[Seen]]]:
    """The intervals of some samples of a design."""
    design = DESIGNS[name]
    drawn = (design.rows(np.random.default_rng([7, i])) for i in range(first, last))
    return name, [list(design.intervals(rows, family)) for rows in drawn]


def true_values(name: str, family: str) -> tuple[str, dict[tuple[str, str], float]]:
    """The true values of a design, by its name."""
    return name, truth(DESIGNS[name], family)


def summed(design: str, found: Sequence[Seen], true: float) -> dict[str, str]:
    """A line of the table: one quantity of one design."""
    value, low, high = (np.array([getattr(x, name) for x in found]) for name in ("value", "low", "high"))
    kept = np.isfinite(value) & np.isfinite(low) & np.isfinite(high)
    value, low, high = value[kept], low[kept], high[kept]
    n, below, above = len(value), float((true < low).mean()), float((true > high).mean())
    covered = 1 - below - above
    width = (high - low) / (ORACLE * value.std(ddof=1))
    error = float(np.hypot(width.std() / n**0.5, width.mean() / (2 * n) ** 0.5))
    numbers = (
        100 * covered,
        100 * max(covered * (1 - covered), 1 / n) ** 0.5 / n**0.5,
        100 * below,
        100 * above,
    )
    cells = [f"{x:.1f}" for x in numbers]
    cautioned = f"{100 * np.mean([x.cautioned for x in found]):.0f}"
    wide = [f"{width.mean():.3f}", f"{error:.3f}"]
    return dict(
        zip(COLUMNS, (design, found[0].family, found[0].what, str(n), *cells, *wide, cautioned), strict=True)
    )


def measure(
    names: Sequence[str], replications: int, processes: int, family: str = ""
) -> Iterator[dict[str, str]]:
    """Every quantity of every design, or those of a family."""
    step = 50
    tasks = [(name, i, min(i + step, replications)) for name in names for i in range(0, replications, step)]
    found: dict[str, list[list[Seen]]] = {name: [] for name in names}
    # Processes begin anew: forks of one with threads may hang.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        true = dict(pool.map(true_values, names, [family] * len(names)))
        for name, drawn in pool.map(samples, *zip(*tasks, strict=True), [family] * len(tasks)):
            found[name] += drawn
            if len(found[name]) < replications:
                continue
            by_kind: dict[tuple[str, str], list[Seen]] = {}
            for each in (x for sample in found[name] for x in sample):
                by_kind.setdefault((each.family, each.what), []).append(each)
            yield from (summed(name, each, true[name][key]) for key, each in by_kind.items())


def keep(found: Sequence[dict[str, str]]) -> None:
    """Write what was measured in place of earlier runs of the same quantities and designs."""
    before = kept() if RESULTS.exists() else []
    rows = {(r["design"], r["family"], r["what"]): r for r in (*before, *found)}
    order = list(DESIGNS)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=lambda r: order.index(r["design"])))


def draw(rows: Sequence[dict[str, str]]) -> None:
    """A figure for each kind of quantity: coverage against width."""
    from verax.display.axes import Axis
    from verax.display.figures import Figure, Sheet
    from verax.display.marks import Guide, Points, Shade
    from verax.display.plots import draw as drawn

    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        marks: list[Any] = [
            Shade("wanted", "y", *COVERS, colour="soft"),
            Guide(f"{WIDE:g} times", "x", WIDE, dash=2),
        ]
        for colour, (_, where, lines) in enumerate(x for x in families(own)):
            width, coverage = ([float(r[name]) for r in lines] for name in ("width", "coverage"))
            name, shape = ("independent rows", "dot") if where == "rows" else ("over groups", "diamond")
            marks.append(Points(name, width, coverage, colour=colour, shape=shape))
        across = Axis("width, times that of the interval that knows the truth")
        figure = Figure(family[0].upper() + family[1:], marks, across, Axis("coverage, %"))
        drawn(Sheet([figure])).savefig(HERE / "figures" / picture(family), dpi=110)


def main() -> None:
    """Measure the designs asked for, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of designs contain")
    parser.add_argument("--family", default="", help="only this kind of quantity")
    parser.add_argument("--replications", type=int, default=1_500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--save", action="store_true", help=f"write to {RESULTS.name} and to the page")
    parser.add_argument("--page", action="store_true", help="only write what is kept into the page")
    options = parser.parse_args()
    if not options.page:
        names = [n for n in DESIGNS if not options.names or any(text in n for text in options.names)]
        found = []
        for row in measure(names, options.replications, options.processes, options.family):
            print(" | ".join(row.values()), flush=True)
            found.append(row)
        print(summary(found))
        if options.save:
            keep(found)
    if options.page or options.save:
        draw(kept())
        write("widths", tables())


if __name__ == "__main__":
    main()
