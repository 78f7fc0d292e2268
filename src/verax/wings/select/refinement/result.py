"""The result of `refinement`."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from typing import Any

from verax.common.checks import in_digits
from verax.common.faces import Hidden
from verax.display.tables import NO_HEADING, Column, Table, Tabled, value_with_interval
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import Interval
from verax.inputs.groups import GroupCount, counts_by_kind, in_words
from verax.inputs.skipping import MaySkip
from verax.wings.recalibrate.records import LEVEL, METHOD_TITLES, Gain
from verax.wings.recalibrate.result import Recalibration

# With fewer rows, or groups, the gain of a method is skewed: 95 % intervals covered 91 to 95 % at 100 rows of
# overconfident forecasts.
_FEW = 1000
_SKEWED = "only {} rows or groups: the calibration part is skewed"
_UNGAINED = "no gain is shown; the interval includes that of the closest method"
# The names of the lines of the table.
_TITLES = {
    "loss": "loss",
    "refinement": "refinement (loss after recalibration)",
    "calibration": "calibration (loss minus refinement)",
}


@dataclass(frozen=True)
class LossPart:
    """The loss or a part of it, with its confidence interval.

    Attributes
    ----------
    name : str
        "loss", "refinement" or "calibration".
    value : float
        The mean.
    interval : Interval
        Its confidence interval.
    """

    name: str
    value: float
    interval: Interval


@dataclass(frozen=True, repr=False, eq=False)
class Refinement(WithVerdict, Tabled, MaySkip):
    """The mean loss, split into what recalibration removes and what remains.

    Attributes
    ----------
    rule : str
        The rule.
    loss : LossPart
        The mean loss of the forecasts as they are.
    refinement : LossPart
        The mean loss after recalibration, on rows that the recalibration has not seen.
    calibration : LossPart
        The loss minus the refinement. It is negative where recalibration makes forecasts worse.
    gain : Gain
        The calibration part with its share of the loss.
    method : str
        The recalibration method; "none" where no gain is shown.
    asked : str
        The method or methods asked for; "best" for a choice.
    n_rows : int
        The number of rows.
    n_classes : int
        The number of classes.
    n_groups : int, tuple of int or None
        The number of groups, of each kind; None without groups.
    folds : int
        Number of folds of the cross-validation.
    seed : int
        Random seed of the folds.
    confidence : float
        Confidence level of the intervals.
    calibration_p : float
        The p-value of "the forecasts are calibrated", by which the method was chosen; NaN where it was asked
        for.
    notes : tuple of str
        What else to know.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 0, 1, 1, 0] * 30, [0.02, 0.9, 0.6, 0.3, 0.99, 0.1] * 30
    >>> parts = vx.refinement(y, p, rule="brier", method="temperature")
    >>> round(parts.loss.value, 3), round(parts.refinement.value, 3), round(parts.calibration.value, 3)
    (0.29, 0.268, 0.022)
    """

    rule: str
    loss: LossPart
    refinement: LossPart
    calibration: LossPart
    gain: Hidden[Gain]
    method: str
    asked: str
    n_rows: int
    n_classes: int
    n_groups: GroupCount | None
    folds: int
    seed: int
    confidence: float
    calibration_p: float = math.nan
    notes: tuple[str, ...] = ()

    _facts = ("gain.share", "gain.share_interval")

    @classmethod
    def of(cls, recalibration: Recalibration) -> Refinement:
        """Read the parts of the loss off a recalibration that has tried a method.

        Parameters
        ----------
        recalibration : Recalibration
            The recalibration, with its comparison of held-out losses.

        Returns
        -------
        Refinement
            The parts.
        """
        assert recalibration.comparison is not None
        (models,) = recalibration.comparison.models.values()
        by_name = {model.name: model for model in models}
        before, after, gain = by_name["none"], by_name[recalibration.method], recalibration.gain
        if recalibration.method == "none":
            gain = _not_below(gain, min(recalibration.trials[1:], key=lambda trial: trial.loss).gain)
        units = (
            recalibration.n_rows
            if recalibration.n_groups is None
            else min(counts_by_kind(recalibration.n_groups))
        )
        part = gain.interval
        if units < _FEW and part.defined and recalibration.helps:
            part = part.doubted(_SKEWED.format(units))
        return cls(
            rule=recalibration.rule,
            loss=LossPart("loss", before.mean, before.interval),
            refinement=LossPart("refinement", after.mean, after.interval),
            calibration=LossPart("calibration", gain.value, part),
            gain=gain,
            method=recalibration.method,
            asked=recalibration.asked,
            n_rows=recalibration.n_rows,
            n_classes=recalibration.n_classes,
            n_groups=recalibration.n_groups,
            folds=recalibration.folds,
            seed=recalibration.seed,
            confidence=recalibration.confidence,
            calibration_p=recalibration.calibration_p,
            notes=recalibration.notes,
        )

    def __float__(self) -> float:
        return self.refinement.value

    @property
    def parts(self) -> tuple[LossPart, ...]:
        """The loss, the refinement and the calibration part."""
        return (self.loss, self.refinement, self.calibration)

    def _findings(self) -> list[Finding]:
        gain = self.gain
        left = f"Refinement: {self.rule} {value_with_interval(self.refinement.value, self._ends, '.4f')}"
        after = f"{left} after {METHOD_TITLES[self.method]}."
        numbers = {
            "refinement": (self.refinement.value, self.refinement.interval),
            "calibration": (self.calibration.value, self.calibration.interval),
        }
        facts: dict[str, Any] = {"numbers": numbers, "caution": self.calibration.interval.caution}
        chosen = not math.isnan(self.calibration_p)
        facts |= {"p_value": self.calibration_p if chosen else None}
        facts |= {"level": LEVEL if chosen else round(1 - self.confidence, 12)}
        if math.isnan(gain.share):
            return [Finding(Claim.SCORE, f"{after} The loss before it is {self.loss.value:.4g}.", **facts)]
        if self.method == "none":
            text = f"{left}. No gain of recalibration is shown: it removes {gain} of the loss."
            return [Finding(Claim.NO_GAIN, text, **facts)]
        removes = f"{after} Recalibration removes {gain} of the loss."
        if chosen or gain.interval.low > 0:
            step = NextStep(
                "recalibrate",
                f"vx.recalibrate(y, p, rule={self.rule!r}, method={self.method!r})",
                f"verax recalibrate {{source}} --rule {shlex.quote(self.rule)} --method {self.method}",
            )
            return [Finding(Claim.HELPS, removes, (self.method,), **facts, step=step)]
        claim = Claim.HARMS if gain.interval.high < 0 else Claim.NO_GAIN
        return [Finding(claim, removes, (self.method,), **facts)]

    @property
    def _ends(self) -> Interval:
        return self.refinement.interval

    def _frame(self) -> Table:
        """One line per part, with the ends of its interval."""
        columns = [Column("name"), Column("rule", value=lambda _: self.rule), Column("value")]
        return Table([*columns, Column("low high", value="interval")], self.parts)

    def _tables(self) -> list[Table]:
        columns = [
            Column("", NO_HEADING, lambda part: _TITLES[part.name], right=False),
            Column("", self.rule, lambda part: value_with_interval(part.value, part.interval, "z.5f")),
        ]
        return [Table(columns, self.parts)]

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        rows = f"{self.n_rows:,} rows{groups}, {in_digits(self.n_classes)} classes"
        return f"verax refinement: {rows}; cross-validation, {self.folds} folds"

    def _notes(self) -> list[str]:
        cautions = dict.fromkeys(filter(None, (part.interval.caution for part in self.parts)))
        return [*(f"Caution: {text}." for text in cautions), *self.notes, *self.remarks]


def _not_below(gain: Gain, closest: Gain) -> Gain:
    """The gain of doing nothing, with intervals that include what the best other method may gain."""
    return replace(
        gain,
        interval=_including(gain.interval, closest.interval),
        share_interval=_including(gain.share_interval, closest.share_interval),
    )


def _including(interval: Interval, other: Interval) -> Interval:
    """An interval that includes another one, with the reason."""
    if not interval.defined or not other.defined:
        return interval
    return interval.holding(other.low).holding(other.high).doubted(_UNGAINED)
