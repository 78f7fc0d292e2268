"""What `over_time` found: a line for each period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from verax.common.checks import check_choice
from verax.common.faces import Worded
from verax.display.tables import Column, FrameKind, Table, Tabled, data_frame, interval_head
from verax.inference.findings import Claim, Finding
from verax.inference.intervals import Interval
from verax.inference.verdicts import WithVerdict, in_brackets
from verax.inputs.skipping import MaySkip

# How many periods readers see; data frames and JSON have all.
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class PeriodLine:
    """One period.

    Attributes
    ----------
    period : object
        The time, or the name of the period.
    n_rows : int
        The number of rows.
    loss : float
        Their mean loss.
    interval : Interval
        Its confidence interval.
    stated : float
        The mean probability of the most likely class.
    accuracy : float
        How often the most likely class happened.
    gap : float
        `stated` minus `accuracy`: positive if forecasts are overconfident.
    gap_interval : Interval
        Its confidence interval.
    frequencies : tuple of float
        How often each class happened; empty beyond 32 classes and for top lists.
    probabilities : tuple of float
        The mean probability of each class, likewise.
    """

    period: Worded[Any]
    n_rows: int
    loss: float
    interval: Interval
    stated: float
    accuracy: float
    gap: float
    gap_interval: Interval
    frequencies: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, repr=False, eq=False)
class OverTime(WithVerdict, Tabled, MaySkip):
    """Losses, calibration and class frequencies by period.

    Attributes
    ----------
    lines : tuple of PeriodLine
        The periods, in order.
    rule : str
        The rule that scores rows.
    every : str or None
        The length of a period; None if each distinct time is one.
    classes : tuple of str
        The names of the classes; empty where lines have no frequencies.
    n_rows : int
        The number of rows.
    confidence : float
        Confidence level of the intervals, each for its own period.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.over_time([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.6], time=[2025, 2025, 2026, 2026])
    >>> [line.accuracy for line in found.lines]
    [1.0, 0.0]
    """

    lines: tuple[PeriodLine, ...]
    rule: str
    every: Literal["day", "week", "month", "quarter", "year"] | None
    classes: tuple[str, ...]
    n_rows: int
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean loss of each period with its interval, and confidence and accuracy below it.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.figure.Figure
            The losses above confidence and accuracy.
        """
        from verax.display.monitoring import draw_over_time

        return draw_over_time(self, ax)

    def to_frame(self, kind: FrameKind = "pandas", *, of: Literal["periods", "classes"] = "periods") -> Any:
        """One row per period, or per period and class, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.
        of : {"periods", "classes"}, default "periods"
            What a row is: a period, or a class in a period.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        check_choice("of", of, ("periods", "classes"))
        if of == "periods":
            return super().to_frame(kind)
        columns: dict[str, list[Any]] = {name: [] for name in ("period", "name", "frequency", "probability")}
        for line in self.lines:
            rows = zip(self.classes, line.frequencies, line.probabilities, strict=True)
            for name, frequency, probability in rows:
                values = (line.period, name, frequency, probability)
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
        return data_frame(columns, kind)

    def _findings(self) -> list[Finding]:
        low, high = (pick(self.lines, key=lambda line: line.loss) for pick in (min, max))
        if low is high:
            text = f"Mean {self.rule} {low.loss:.4g}{in_brackets(low.interval)} in {low.period}."
        else:
            best, worst = (
                f"{each.period}, {each.loss:.4g}{in_brackets(each.interval)}" for each in (low, high)
            )
            text = f"Mean {self.rule} is lowest in {best}, and highest in {worst}."
            text += f" The {len(self.lines):,} periods are not tested against each other."
        numbers = {"lowest": (low.loss, low.interval), "highest": (high.loss, high.interval)}
        about = tuple(dict.fromkeys((str(low.period), str(high.period))))
        return [Finding(Claim.SCORE, text, about, numbers)]

    def _columns(self) -> list[Column]:
        level = interval_head(self.confidence)
        return [
            Column("period", self.every or "time", right=False),
            Column("n_rows", "rows", ","),
            Column("loss", self.rule, ".4f"),
            Column("low high", level, ".4f", "interval"),
            Column("stated", "confidence", ".3f"),
            Column("accuracy", "accuracy", ".3f"),
            Column("gap", "gap", "+.3f"),
            Column("gap_low gap_high", level, "+.3f", "gap_interval"),
        ]

    def _tables(self) -> list[Table]:
        return [Table(self._columns(), self.lines[-_SHOWN:])]

    def _frame(self) -> Table:
        return Table(self._columns(), self.lines)

    def _heading(self) -> str:
        n = len(self.lines)
        return f"verax over time: {self.n_rows:,} rows in {n:,} period{'s' if n > 1 else ''}"

    def _notes(self) -> list[str]:
        n = len(self.lines)
        shown = [f"The last {_SHOWN} of {n:,} periods."] if n > _SHOWN else []
        return [*shown, "A positive gap means overconfident: confidence minus accuracy.", *self._said()]
