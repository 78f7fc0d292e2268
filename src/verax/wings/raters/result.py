"""The result of `raters`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from verax.analyses.cases import Case, text_of
from verax.common.faces import Record
from verax.display.tables import NO_HEADING, Column, Table, Tabled, value_with_interval
from verax.inference.findings import Claim, Finding, WithVerdict, listed
from verax.inference.intervals import Interval
from verax.inputs.arrays import Ints
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MaySkip

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet


@dataclass(frozen=True)
class RatedMean:
    """A number with its confidence interval.

    Attributes
    ----------
    name : str
        Its name.
    value : float
        The number; NaN where there is none, and the caution of the interval says why.
    interval : Interval
        Its confidence interval.
    """

    name: str
    value: float
    interval: Interval


@dataclass(frozen=True)
class Rater(Record):
    """One rater.

    Attributes
    ----------
    name : str
        The name.
    n_rows : int
        How many cases the rater labelled.
    against : RatedMean
        The mean loss of the forecasts against the labels of this rater.
    own : RatedMean
        The mean loss of the rater's labels, as forecasts of the other raters.
    forecast : RatedMean
        The mean loss of the forecasts against the other raters, on the same cases.
    gain : RatedMean
        The loss of the forecasts minus that of the rater: negative where the forecasts are better.
    p_value : float, default NaN
        The two-sided p-value of the gain; NaN where it is not known.
    p_adjusted : float, default NaN
        The same, corrected for all raters (Holm).
    """

    name: str
    n_rows: int
    against: RatedMean
    own: RatedMean
    forecast: RatedMean
    gain: RatedMean
    p_value: float = math.nan
    p_adjusted: float = math.nan


@dataclass(frozen=True, repr=False, eq=False)
class RaterStudy(WithVerdict, Tabled, MaySkip):
    """Disagreement of several raters, and the number of raters that a forecast is worth.

    Attributes
    ----------
    rule : str
        The rule.
    n_rows : int
        The number of cases.
    n_rated : int
        The number of cases with two raters or more.
    n_groups : int, tuple of two ints, or None
        The number of groups; None without groups.
    mean_raters : float or None
        The mean number of raters of a case; None where only shares are known.
    loss : RatedMean
        The mean loss over the raters, of all cases.
    disagreement : RatedMean
        The part of the loss that no forecast avoids, over cases with two raters or more.
    excess : RatedMean
        The rest of the loss, over the same cases.
    worth : RatedMean
        The number of raters whose shares would forecast as well; infinite where there is no excess. It
        assumes raters who label independently given the case and are interchangeable. The interval of raters
        with names speaks for this panel.
    unbiased : bool
        Whether the disagreement is corrected for the number of raters.
    raters : tuple of Rater
        Each rater; empty where raters have no names.
    cases : tuple of ShareCase
        The worst cases, with the disagreement and the excess of each.
    confidence : float
        Confidence level of the intervals.
    general : RatedMean or None
        The worth with an interval for raters in general, of whom those with names are a sample; None where
        raters have no names.

    Examples
    --------
    >>> import verax as vx
    >>> counts, p = [[2, 1], [0, 3], [3, 0], [1, 2]], [0.4, 0.9, 0.2, 0.6]
    >>> found = vx.raters(counts, p, raters="counts")
    >>> round(found.loss.value, 3), round(found.disagreement.value, 3), round(found.excess.value, 3)
    (0.252, 0.333, -0.082)
    """

    rule: str
    n_rows: int
    n_rated: int
    n_groups: GroupCount | None
    mean_raters: float | None
    loss: RatedMean
    disagreement: RatedMean
    excess: RatedMean
    worth: RatedMean
    unbiased: bool
    raters: tuple[Rater, ...]
    cases: tuple[Case, ...]
    confidence: float
    general: RatedMean | None = None

    def _findings(self) -> list[Finding]:
        return [*self._worth(), *self._against_raters()]

    def _tested_together(self) -> str:
        return "Raters are tested together (Holm's correction)."

    def _worth(self) -> list[Finding]:
        """The worth; nothing where there is none."""
        value = self.worth.value
        if math.isnan(value):
            return []
        whose = f" for this panel of {len(self.raters)} raters" if self.raters else ""
        spread = f" ({_span(self.worth.interval)}{whose})" if self.worth.interval.defined else ""
        numbers = {"worth": (value, self.worth.interval)}
        if self.general is not None and self.general.interval.defined:
            spread += f", and {_span(self.general.interval)} for raters in general"
            numbers["general"] = (self.general.value, self.general.interval)
        text = f"The forecasts are worth {_raters(value)}{spread}."
        return [Finding(Claim.SCORE, text, numbers=numbers, caution=self.worth.interval.caution)]

    def _against_raters(self) -> list[Finding]:
        """Findings on the raters that the forecasts beat, and on those that beat them."""
        level = round(1 - self.confidence, 12)
        sides: dict[Claim, list[Rater]] = {}
        for rater in self.raters:
            claim = Claim.RATER_OPEN
            if rater.p_adjusted <= level:
                claim = Claim.BETTER_THAN_RATER if rater.gain.value < 0 else Claim.WORSE_THAN_RATER
            if not math.isnan(rater.p_adjusted):
                sides.setdefault(claim, []).append(rater)
        findings = []
        for claim, verb in _SIDES.items():
            raters = sides.get(claim, [])
            if not raters:
                continue
            named = listed([rater.name for rater in raters])
            findings.append(
                Finding(
                    claim,
                    f"Against the labels of the others, the forecasts {verb} {named}.",
                    tuple(rater.name for rater in raters),
                    {rater.name: (rater.gain.value, rater.gain.interval) for rater in raters},
                    p_value=max(rater.p_adjusted for rater in raters),
                    level=level,
                )
            )
        return findings

    @property
    def assumption(self) -> str:
        """The assumption behind the worth, in words; empty where there is none."""
        if math.isnan(self.worth.value):
            return ""
        return (
            "The worth assumes that raters label independently given the case and are interchangeable; "
            "raters who copy each other make it too small."
        )

    @property
    def _lines(self) -> list[RatedMean]:
        """The numbers that there are."""
        lines = (getattr(self, name) for name in _LINES)
        return [line for line in lines if line is not None]

    def _frame(self) -> Table:
        """One line per number, then one per rater, with the ends of their intervals."""
        lines = self._lines
        for rater in self.raters:
            lines += [
                RatedMean(f"{name}:{rater.name}", mean.value, mean.interval)
                for name, mean in (("against", rater.against), ("own", rater.own), ("gain", rater.gain))
            ]
        columns = [Column("name"), Column("rule", value=lambda _: self.rule), Column("value")]
        return Table([*columns, Column("low high", value="interval")], lines)

    def _tables(self) -> list[Table]:
        lines = [line for line in self._lines if not math.isnan(line.value)]
        tables = [
            Table(
                [
                    Column("", NO_HEADING, lambda line: _LINES[line.name], right=False),
                    Column("", self.rule, _text),
                ],
                lines,
            )
        ]
        if self.raters:
            columns = [
                Column("", "rater", lambda rater: rater.name, right=False),
                Column("", "cases", lambda rater: f"{rater.n_rows:,}"),
                Column("", "forecast against rater", lambda rater: _text(rater.against), spare=1),
                Column("", "rater against the others", lambda rater: _text(rater.own)),
                Column("", "forecast minus rater", lambda rater: _text(rater.gain)),
            ]
            tables.append(Table(columns, self.raters, title="Raters"))
        if self.cases:
            columns = [
                Column("", "row", lambda case: str(case.id), right=False),
                Column("", "raters", lambda case: text_of(case.outcome), right=False),
                Column("", "forecast", lambda case: case.shown, right=False),
                Column("", "disagreement", lambda case: f"{case.disagreement:.4f}"),
                Column("", "excess", lambda case: f"{case.excess:.4f}"),
                Column("", "cause", lambda case: case.source.partition(":")[0], right=False),
            ]
            tables.append(Table(columns, self.cases, title="Worst cases"))
        return tables

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        mean = self.mean_raters
        per_case = "" if mean is None else f", {mean:.3g} {'rater' if mean == 1 else 'raters'} per case"
        return f"verax raters: {self.n_rows:,} cases{groups}{per_case}"

    def _notes(self) -> list[str]:
        notes = [self.assumption] if self.assumption else []
        single = self.n_rows - self.n_rated
        if single:
            cases = "1 case has" if single == 1 else f"{single:,} cases have"
            notes.append(f"{cases} one rater and no disagreement: they enter the loss only.")
        if self.mean_raters is None:
            notes.append("The number of raters is not known: their shares are treated as exact.")
        elif not self.unbiased:
            notes.append(
                f"The disagreement by {self.rule} is that of the raters present, which is too small with few "
                "raters. Only the Brier score and RPS have a correction and a worth in raters."
            )
        cautions = dict.fromkeys(line.interval.caution for line in self._lines)
        return [*notes, *(f"Caution: {text}." for text in cautions if text and self.unbiased), *self.remarks]

    def _renumbered(self, rows: Ints, n_given: int) -> Self:
        cases = [
            replace(case, row=int(rows[case.row]), id=int(rows[case.row]) if case.id == case.row else case.id)
            for case in self.cases
        ]
        return replace(self, cases=tuple(cases))

    def plot(self) -> Any:
        """Draw disagreement and excess, beside the loss of panels of 1, 2, 3, ... raters.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from verax.display.plots import draw

        return draw(self._sheet())

    def _sheet(self) -> Sheet:
        """The losses beside those of panels of raters."""
        from verax.display.figures import Sheet

        return Sheet([raters_figure({"forecasts": self}, fewest=5, most=50)], size=(6.1, 2.5))


def raters_figure(studies: Mapping[str, RaterStudy], fewest: int, most: int) -> Figure:
    """The loss of each model beside that of panels of 1, 2, 3, ... raters."""
    from verax.display.axes import Axis
    from verax.display.figures import Figure
    from verax.display.marks import Band, Guide, Line, Mark, Ranged

    first = next(iter(studies.values()))
    h = first.disagreement.value
    worth = [study.worth.value for study in studies.values() if math.isfinite(study.worth.value)]
    n = min(most, max([fewest, *(math.ceil(2 * value) for value in worth)]))
    sizes = np.arange(1, n + 1, dtype=float)
    level = np.ones(n)
    marks: list[Mark] = [Guide("rater disagreement", "y", h)]
    for i, (name, study) in enumerate(studies.items()):
        low, high = ((h + end) * level for end in study.excess.interval)
        marks.append(Line(name, sizes, (h + study.excess.value) * level, i))
        marks.append(Band(f"{100 * study.confidence:g}% interval", sizes, low, high, i))
    if first.unbiased:
        marks.append(Line("panel of raters", sizes, h * (1 + 1 / sizes), "soft"))
    facts = [
        Ranged(f"worth in raters, {name}", s.worth.value, *s.worth.interval) for name, s in studies.items()
    ]
    x, y = Axis("raters in the panel", 1.0, float(n), whole=True), Axis(f"{first.rule}, lower is better")
    return Figure("", marks, x, y, facts=facts)


# The names of the lines of the table.
_LINES = {
    "loss": "loss",
    "disagreement": "rater disagreement",
    "excess": "excess of the forecasts",
    "worth": "worth in raters",
    "general": "worth, raters in general",
}


_SIDES = {
    Claim.BETTER_THAN_RATER: "lose significantly less than",
    Claim.WORSE_THAN_RATER: "lose significantly more than",
    Claim.RATER_OPEN: "are not significantly different from",
}
_WORTHS = ("worth", "general")


def _text(line: RatedMean) -> str:
    if math.isnan(line.value):
        return ""
    return value_with_interval(line.value, line.interval, ".2f" if line.name in _WORTHS else ".4f")


def _span(interval: Interval) -> str:
    low, high = interval
    return f"at least {low:.2f}; no upper limit" if math.isinf(high) else f"{low:.2f} to {high:.2f}"


def _raters(value: float) -> str:
    return "as much as any number of raters" if math.isinf(value) else f"{value:.2f} raters"
