"""The evaluation of prediction sets: coverage, sizes and scores, with the subgroups that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from verax.common.faces import Record
from verax.common.texts import in_format, percent
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.errors import InputError, passing
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict, in_brackets, listed
from verax.inference.intervals import Interval
from verax.inputs.skipping import MaySkip

if TYPE_CHECKING:
    from verax.display.marks import Ranged

# Of more lines, those that are flagged and the first are shown.
_MOST_LINES = 20
# Figures and pages have up to this number of lines in a breakdown, and of spans.
MOST_DRAWN = 25


class SizeShare(TypedDict):
    """The share of the sets that have a size."""

    size: int
    share: float


@dataclass(frozen=True, eq=False)
class SetMeasure(Record):
    """A number with its confidence interval.

    Attributes
    ----------
    value : float
        The number.
    interval : Interval
        Its confidence interval.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.evaluate_sets([0, 1, 2, 0], [[0], [1, 2], [1], [0]])
    >>> float(found.coverage)
    0.75
    """

    value: float
    interval: Interval

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        known = f" ({self.interval:{spec}})" if self.interval.defined else ""
        return f"{self.value:{spec}}{known}"


@dataclass(frozen=True, eq=False)
class CoverageLine:
    """The coverage of some of the sets.

    Attributes
    ----------
    label : object
        The class that happened, the size of the sets, or the subgroup.
    n_rows : int
        The number of rows.
    share : float
        Their share of the weight.
    coverage : float
        The share of sets that hold the outcome.
    interval : Interval
        Confidence interval of the coverage.
    size : float
        The mean size of the sets.
    target : float
        What the coverage is tested against: what the sets claim; where they claim nothing, the coverage of
        all sets.
    p_value, p_adjusted : float
        The p-value of that test, and after Holm's correction for all lines.
    flagged : bool
        Whether the coverage differs significantly.
    """

    label: Any
    n_rows: int
    share: float
    coverage: float
    interval: Interval
    size: float
    target: float
    p_value: float
    p_adjusted: float
    flagged: bool


@dataclass(frozen=True, eq=False)
class Span:
    """The sets of ordered classes that reach from one class to another.

    Attributes
    ----------
    low, high : int
        The positions of the lowest and the highest class.
    share : float
        The share of sets with this span.
    outcomes : tuple of float
        The share of each class among their outcomes.
    """

    low: int
    high: int
    share: float
    outcomes: tuple[float, ...]


@dataclass(frozen=True, repr=False, eq=False)
class SetEvaluation(WithVerdict, Tabled, MaySkip):
    """How good prediction sets are.

    Attributes
    ----------
    n_rows, n_classes : int
        The number of sets and of classes.
    n_groups : int or None
        The number of groups; None where rows are independent.
    ordered : bool
        Whether the classes have an order.
    level : float or None
        The coverage that all sets claim.
    claimed : float or None
        The mean of what the sets claim; None where they claim nothing.
    coverage : SetMeasure
        The share of sets that hold the outcome.
    excess : SetMeasure or None
        The coverage minus what is claimed; negative where sets are too small.
    size : SetMeasure
        The mean number of classes in a set.
    median_size : int
        The median of the sizes.
    sizes : dict of int to float
        The share of sets of each size.
    empty, single : SetMeasure
        The share of empty sets, and of sets with one class.
    threshold : float
        The cost t of a class in the level-set score.
    level_set : SetMeasure
        The mean level-set score, t times the size plus 1 for a miss. Lower is better.
    winkler : SetMeasure or None
        The mean interval score of ordered classes. Lower is better.
    gapless : SetMeasure or None
        The share of sets of ordered classes without gaps; an empty set has none.
    miss_distance : SetMeasure or None
        How many steps a miss is from its set on average, for ordered classes.
    constant_size : int or None
        How many of the most frequent classes reach the claimed coverage as a set that never changes.
    constant_score : float or None
        The level-set score of the best set that never changes, chosen on the same rows.
    by_class, by_size : tuple of CoverageLine
        The sets of each class that happened, and of each size.
    by : dict of str to tuple of CoverageLine
        The sets of each subgroup, by column.
    spans : tuple of Span
        The spans of ordered sets, most frequent first, with what happened; for up to 50 classes.
    classes : tuple of str
        The names of the classes, where there are spans.
    confidence : float
        Confidence level of the intervals and of the tests.
    cautions : tuple of str
        Cautions for readers of the numbers.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> sets = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], bool)
    >>> found = vx.evaluate_sets([0, 1, 2, 1], sets, level=0.9)
    >>> float(found.coverage), float(found.size), found.sizes
    (0.75, 1.5, {1: 0.5, 2: 0.5})
    """

    n_rows: int
    n_classes: int
    n_groups: int | None
    ordered: bool
    level: float | None
    claimed: float | None
    coverage: SetMeasure
    excess: SetMeasure | None
    size: SetMeasure
    median_size: int
    sizes: Mapping[int, float]
    empty: SetMeasure
    single: SetMeasure
    threshold: float
    level_set: SetMeasure
    winkler: SetMeasure | None
    gapless: SetMeasure | None
    miss_distance: SetMeasure | None
    constant_size: int | None
    constant_score: float | None
    by_class: tuple[CoverageLine, ...]
    by_size: tuple[CoverageLine, ...]
    by: Mapping[str, tuple[CoverageLine, ...]]
    spans: tuple[Span, ...]
    classes: tuple[str, ...]
    confidence: float
    cautions: tuple[str, ...] = ()

    _facts = ("_sizes",)

    @property
    def _sizes(self) -> list[SizeShare]:
        return [{"size": size, "share": share} for size, share in self.sizes.items()]

    @property
    def flagged(self) -> dict[str, list[CoverageLine]]:
        """The classes, sizes and subgroups whose coverage differs significantly, by breakdown."""
        parts = {"class": self.by_class, "size": self.by_size, **self.by}
        flagged = {name: [line for line in lines if line.flagged] for name, lines in parts.items()}
        return {name: lines for name, lines in flagged.items() if lines}

    def _findings(self) -> list[Finding]:
        return [self._coverage(), self._mean_size(), *self._breakdowns()]

    def _coverage(self) -> Finding:
        share = f"{percent(self.coverage.value, 1)}{in_brackets(self.coverage.interval, percent=True)}"
        covers, excess = f"The sets cover {share} of the outcomes", self.excess
        numbers = {"coverage": (self.coverage.value, self.coverage.interval)}
        facts: dict[str, Any] = {"numbers": numbers, "caution": self.coverage.interval.caution}
        if excess is None or self.claimed is None:
            return Finding(Claim.SCORE, f"{covers}.", **facts)
        numbers["excess"] = (excess.value, excess.interval)
        facts["level"] = round(1 - self.confidence, 12)
        claimed, low, high = f"the claimed {percent(self.claimed, 1)}", *excess.interval
        if high < 0:
            level = self.claimed if self.level is None else self.level
            step = NextStep(
                "calibrate the sets on rows of their own",
                f"vx.conformal(y, p, level={level:.4g}).apply(p_new)",
            )
            text = f"{covers}, significantly less than {claimed}: they are too small."
            return Finding(Claim.TOO_NARROW, text, step=step, **facts)
        if low > 0:
            return Finding(Claim.COVERS, f"{covers}, significantly more than {claimed}.", **facts)
        return Finding(Claim.COVERAGE_OPEN, f"{covers}, not significantly different from {claimed}.", **facts)

    def _mean_size(self) -> Finding:
        constant = ""
        if self.constant_size is not None and self.constant_size < self.n_classes:
            constant = f"; the {self.constant_size} most frequent classes alone would reach the level"
        size = f"{self.size.value:.2f}{in_brackets(self.size.interval)}"
        text = f"They have {size} of {self.n_classes:,} classes on average{constant}."
        return Finding(Claim.SCORE, text, numbers={"size": (self.size.value, self.size.interval)})

    def _breakdowns(self) -> list[Finding]:
        findings = []
        for name, lines in self.flagged.items():
            some = listed([f"{line.label} ({percent(line.coverage, 1)})" for line in lines], 5)
            findings.append(
                Finding(
                    Claim.SUBGROUP,
                    f"Coverage differs significantly by {name}: {some}.",
                    tuple(str(line.label) for line in lines),
                    {str(line.label): (line.coverage, line.interval) for line in lines},
                    p_value=max(line.p_adjusted for line in lines),
                    level=round(1 - self.confidence, 12),
                )
            )
        return findings

    def _tested_together(self) -> str:
        return "The lines of each breakdown are tested together (Holm's correction)."

    def plot(self) -> Any:
        """Draw the sizes of the sets, and the coverage by size, class and subgroup.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from verax.display.plots import draw
        from verax.wings.sets.figures import sets_sheet

        return draw(sets_sheet(self))

    @property
    def _aim(self) -> float:
        """The coverage that others are compared with: the claimed one, or that of all sets."""
        return self.coverage.value if self.claimed is None else self.claimed

    def _coverages(self) -> dict[str, list[Ranged]]:
        """The coverage by size, class and subgroup, as it is drawn; of many lines those with the lowest."""
        from verax.display.marks import Ranged

        drawn = {}
        for name, lines in {"size": self.by_size, "class": self.by_class, **self.by}.items():
            lowest = sorted(lines, key=lambda line: line.coverage)[:MOST_DRAWN]
            drawn[name] = [
                Ranged(str(line.label), line.coverage, *line.interval, flagged=line.flagged)
                for line in lines
                if line in lowest
            ]
        return {name: rows for name, rows in drawn.items() if rows}

    def plot_spans(self) -> Any:
        """Draw the sets of ordered classes as bars, with the outcomes in and beside them.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from verax.display.plots import draw
        from verax.wings.sets.figures import spans_sheet

        if not self.spans:
            raise InputError(
                "must be sets of at most 50 ordered classes to be drawn as bars",
                argument="ordered",
                remedies=[passing(ordered=True)],
            )
        return draw(spans_sheet(self.spans[:MOST_DRAWN], self.classes))

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        kind = "ordered classes" if self.ordered else "classes"
        return f"verax sets: {self.n_rows:,} sets{groups}, {self.n_classes:,} {kind}"

    def _tables(self) -> list[Table]:
        rows = [
            ("coverage", self.coverage, ".1%"),
            ("coverage minus claim", self.excess, "+.1%"),
            ("mean size", self.size, ".3f"),
            ("empty sets", self.empty, ".1%"),
            ("single sets", self.single, ".1%"),
            (f"level-set score, t={self.threshold:g}", self.level_set, ".4f"),
            ("Winkler score", self.winkler, ".4f"),
            ("sets without gaps", self.gapless, ".1%"),
            ("steps to a miss", self.miss_distance, ".2f"),
        ]
        shown = [row for row in rows if row[1] is not None]

        def text(row: Any) -> str:
            return in_format(row[1].value, row[2])

        def ends(row: Any) -> str:
            interval = row[1].interval
            return format(interval, row[2]) if interval.defined else ""

        columns = [
            Column("measure", "measure", "", lambda row: row[0], right=False),
            Column("value", "value", text, lambda row: row[1].value),
            Column("low high", interval_head(self.confidence), ends, lambda row: row[1].interval),
        ]
        parts = {"size": self.by_size, "class": self.by_class, **self.by}
        return [Table(columns, shown), *(_lines(name, lines, self) for name, lines in parts.items() if lines)]

    def _notes(self) -> list[str]:
        return [*(f"caution: {caution}" for caution in self.cautions), *self.remarks]


def _lines(name: str, lines: tuple[CoverageLine, ...], evaluation: SetEvaluation) -> Table:
    flagged = [line for line in lines if line.flagged]
    shown = list(lines)
    if len(lines) > _MOST_LINES:
        shown = (flagged + [line for line in lines if not line.flagged])[:_MOST_LINES]
    more = f", {len(shown)} of {len(lines)}" if len(shown) < len(lines) else ""
    columns = [
        Column("label", name, "", lambda line: str(line.label), right=name == "size"),
        Column("n_rows", "rows", ","),
        Column("coverage", "coverage", ".1%"),
        Column(
            "low high",
            interval_head(evaluation.confidence),
            lambda line: format(line.interval, ".1%") if line.interval.defined else "",
            "interval",
        ),
        Column("size", "mean size", ".2f"),
        Column("p_adjusted", "p (Holm)", lambda line: _p(line)),
    ]
    return Table(columns, shown, f"coverage by {name}{more}")


def _p(line: CoverageLine) -> str:
    if line.p_adjusted != line.p_adjusted:
        return ""
    return f"{line.p_adjusted:.3g}{' *' if line.flagged else ''}"
