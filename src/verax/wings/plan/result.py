"""The plan: numbers of rows and groups, with the range that the pilot leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from verax.common.checks import any_number
from verax.common.faces import Hidden, Merged
from verax.display.tables import Column, Table, Tabled
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import Interval, few, few_groups
from verax.inference.sizes import Goal
from verax.inputs.skipping import MaySkip
from verax.wings.plan.pilots import Pilot

# The share of pilots for which a second number is told.
ASSURANCE = 0.8


@dataclass(frozen=True)
class SizeLine:
    """How many rows something takes.

    Attributes
    ----------
    power : float or None
        The probability that the rows show it; None for the width of an interval.
    size : float
        The difference, the distance from the margin, or the half-width of the interval.
    rows : float
        The number of rows; infinite where no number is enough, NaN where one row or group carries the spread,
        so that no single number can be told.
    rows_low : float
        The number of rows if the spread is at the lower end of what the pilot leaves open.
    rows_high : float
        The same at the upper end.
    groups : float or None
        The number of groups; None without groups.
    groups_low : float or None
        The same at the lower end.
    groups_high : float or None
        The same at the upper end.
    """

    power: float | None
    size: float
    rows: float
    rows_low: float
    rows_high: float
    groups: float | None
    groups_low: float | None
    groups_high: float | None


@dataclass(frozen=True, repr=False, eq=False)
class SamplePlan(WithVerdict, Tabled, MaySkip):
    """How many rows or groups would be enough.

    Attributes
    ----------
    pilot : Pilot
        The pilot.
    goal : Goal
        The goal that the rows are to reach.
    kind : str
        "difference", "margin" or "width".
    line : SizeLine
        How many rows that takes.
    lines : tuple of SizeLine
        How many other powers, or other widths, take.
    rows_per_group : float or None
        How many rows each group of the pilot needs instead of more groups; infinite where no number is
        enough. None where it is not known.
    rows_until_decided : float or None
        About how many rows a `ConfidenceSequence` takes on average; None where it does not apply.
    assumed : bool
        Whether the difference is the one that the pilot has.
    margin : float or None
        Noninferiority margin of the first model.
    assurance : float or None
        The share of pilots for which `rows` reaches the goal; None where it does on average over pilots.
    rows_on_average : float
        The number of rows that reaches the goal on average over what the pilot leaves open.
    rows_assured : float
        The number that does for a share of such pilots: `assurance`, or 0.8.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.plan(rule="brier", width=0.02)
    >>> found.rows, found.groups
    (9607, None)
    >>> round(vx.plan(rule="brier", difference=0.1).power_at(4000), 3)
    0.886
    """

    pilot: Pilot
    goal: Hidden[Goal]
    kind: Literal["difference", "margin", "width"]
    line: Merged[SizeLine]
    lines: tuple[SizeLine, ...]
    rows_per_group: float | None
    rows_until_decided: float | None
    assumed: Hidden[bool]
    margin: float | None
    assurance: float | None = None
    rows_on_average: float = math.nan
    rows_assured: float = math.nan

    _facts = ("pilot.what", "_confidence", "more_rows", "notes")

    @property
    def _confidence(self) -> float:
        return 1 - self.goal.level

    @property
    def rows(self) -> float:
        """The number of rows that are enough; infinite where no number is, NaN where it cannot be told."""
        return self.line.rows

    @property
    def groups(self) -> float | None:
        """The number of groups that are enough; None without groups."""
        return self.line.groups

    @property
    def more_rows(self) -> float:
        """How many rows are to be collected beside those of the pilot."""
        return self.rows if math.isnan(self.rows) else max(0.0, self.rows - self.pilot.n_rows)

    def power_at(self, rows: float) -> float:
        """The probability that a number of rows shows the difference, or keeps to the margin.

        It is averaged over what the pilot leaves open of the spread.

        Parameters
        ----------
        rows : float
            The number of rows, in groups of the same size as those planned for.

        Returns
        -------
        float
            The power; NaN for the width of an interval.
        """
        if self.kind == "width":
            return math.nan
        return self.goal.mean_power_at(
            self.pilot.spread, max(2.0, any_number("rows", rows) / self.pilot.rows_per_unit)
        )

    def half_width_at(self, rows: float) -> float:
        """The half-width of the interval that a number of rows gives.

        Parameters
        ----------
        rows : float
            The number of rows, in groups of the same size as those planned for.

        Returns
        -------
        float
            Half the width.
        """
        return self.goal.half_width_at(
            self.pilot.spread, max(2.0, any_number("rows", rows) / self.pilot.rows_per_unit)
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the power, or the half-width of the interval, against the number of rows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw
        from verax.wings.plan.figures import plan_sheet

        return draw(plan_sheet(self), ax)

    # ---- in words ------------------------------------------------------------------------------

    def _heading(self) -> str:
        return f"verax plan: {self.pilot.what}"

    def _findings(self) -> list[Finding]:
        line, step = self.line, None
        if self.pilot.carried:
            step = NextStep("collect a larger pilot")
        elif self.pilot.n_rows and 0 < self.more_rows < math.inf:
            step = NextStep(f"collect {self.more_rows:,.0f} more {self.pilot.unit}s")
        numbers: dict[str, Any] = {"rows": line.rows, "more_rows": self.more_rows, "size": self.goal.size}
        if self.pilot.n_rows and line.rows_low < line.rows_high:
            ends = Interval(line.rows_low, line.rows_high, confidence=1 - self.goal.level)
            numbers["rows"] = (line.rows, ends)
        caution = "; ".join(filter(None, (self.pilot.caution, self.pilot.too_small)))
        return [Finding(Claim.ROWS_NEEDED, self._sentence(), numbers=numbers, caution=caution, step=step)]

    def _sentence(self) -> str:
        goal, line = self.goal, self.line
        confidence = f"{100 * (1 - goal.level):g}% confidence"
        if self.kind == "width":
            aim = f"An interval of plus or minus {goal.size:.4g} at {confidence}"
        elif self.kind == "margin":
            model, other = self.pilot.pair or ("a", "b")
            aim = (
                f"To show with {100 * (goal.power or 0):g}% power that {model} is worse than {other} by less "
            )
            aim += f"than {self.margin:.4g} ({confidence}, one-sided)"
        else:
            aim = f"To show a difference of {goal.size:.4g} with {100 * (goal.power or 0):g}% power "
            aim += f"at {confidence}"
        if math.isinf(line.rows):
            return f"{aim}: no number of {self.pilot.unit}s is enough."
        if math.isnan(line.rows):
            unit = self.pilot.unit if self.pilot.n_groups is None else "group"
            span = f"{_count(line.rows_low)} to {_count(line.rows_high)} {self.pilot.unit}s"
            return f"{aim}: {span}. One {unit} of the pilot carries the spread, so no single number holds."
        groups = ""
        if line.groups is not None:
            groups = f" in {line.groups:,.0f} groups of about {self.pilot.rows_per_unit:.3g}"
        more = ", which the pilot has" if self.pilot.n_rows and not self.more_rows else ""
        return f"{aim}: {line.rows:,.0f} {self.pilot.unit}s{groups}{self._open}{more}."

    @property
    def _open(self) -> str:
        """What the number of rows reaches, over what the pilot leaves open, and the other number."""
        if not self.pilot.n_rows or self.rows_on_average == self.rows_assured:
            return ""
        share, assured = f"{100 * (self.assurance or ASSURANCE):g}% of such pilots", self.rows_assured
        if self.assurance is not None:
            mean = "" if self.kind == "width" else " on average"
            return f" for {share} ({self.rows_on_average:,.0f}{mean or ' for the spread seen'})"
        mean = "" if self.kind == "width" else " on average over what the pilot leaves open"
        return f"{mean} ({assured:,.0f} for {share})"

    def _tables(self) -> list[Table]:
        by_power = self.kind != "width"
        columns = [
            Column("power", "power" if by_power else "", "g"),
            Column("size", "" if by_power else "plus or minus", ".4g"),
            Column("rows", f"{self.pilot.unit}s", lambda line: _count(line.rows)),
            Column("rows_low", "from", lambda line: _count(line.rows_low)),
            Column("rows_high", "to", lambda line: _count(line.rows_high)),
        ]
        if self.line.groups is not None:
            columns.append(Column("groups", "groups", lambda line: _count(line.groups)))
        return [Table([c for c in columns if self.pilot.n_rows or "_" not in c.name], self.lines)]

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader."""
        pilot, notes = self.pilot, []
        if not pilot.n_rows:
            notes.append(
                f"There is no pilot: the spread is the largest that {pilot.rule} allows. Most comparisons "
                "need far fewer rows; a pilot of 100 rows tells."
            )
        elif self.kind == "difference" and self.assumed:
            notes.append("The difference is that of the pilot, which is uncertain itself.")
        caution = few_groups(pilot.n_groups) if pilot.n_groups is not None else ""
        caution = caution or (few(pilot.n_rows, "row", "rows") if pilot.n_rows else "") or pilot.caution
        caution = "; ".join(filter(None, (caution, pilot.too_small)))
        if pilot.n_rows and pilot.rule and not pilot.tails_known:
            notes.append(
                "The range is that of a normal distribution; with the rows of the pilot instead of their "
                "result it would allow for heavy tails."
            )
        if caution:
            notes.append(f"Caution: the pilot may mislead: {caution}.")
        notes += self._of_groups()
        if self.rows_until_decided is not None and math.isfinite(self.rows_until_decided):
            notes.append(
                f"A ConfidenceSequence, which may be looked at after every row, takes about "
                f"{self.rows_until_decided:,.0f} rows on average."
            )
        return notes

    def _of_groups(self) -> list[str]:
        """Lines on the value of more rows of the same groups."""
        sharing, enough = self.pilot.sharing, self.rows_per_group
        if sharing is None or enough is None:
            return []
        alike = f"the correlation of two rows of a group is {sharing.correlation:.2g}"
        if math.isinf(enough):
            return [
                f"With the {self.pilot.n_groups:,} groups of the pilot no number of rows is enough: {alike}."
            ]
        rows = "1 row" if enough == 1 else f"{enough:,.0f} rows"
        return [f"With the {self.pilot.n_groups:,} groups of the pilot, {rows} in each are enough: {alike}."]

    def _notes(self) -> list[str]:
        return [*self.notes, *self.remarks]


def _count(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else "no number" if math.isinf(value) else f"{value:,.0f}"
