"""Recalibrations as they are shown: the verdict, and a table of what each method gains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from verax.analyses.recalibration.records import BEST, METHOD_TITLES, Gain, Trial
from verax.common.sizes import in_digits
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.inference.findings import Claim, Finding, NextStep, Verdict
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MaySkip


class ShownRecalibration(Tabled, MaySkip):
    """What readers see of a recalibration; its attributes are described there."""

    method: str
    asked: str
    rule: str
    trials: tuple[Trial, ...]
    ordered: bool
    n_rows: int
    n_groups: GroupCount | None
    folds: int
    confidence: float
    picks: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        raise NotImplementedError

    @property
    def gain(self) -> Gain:
        """Reduction of the held-out loss; for a choice of methods, including the choice."""
        return self.trials[-1].gain

    @property
    def _of(self) -> str:
        """What the rows are called."""
        return "rows"

    @property
    def verdict(self) -> Verdict:
        """Whether recalibration helps, by how much, and how sure that is."""
        if self.method == "none" and self.asked != "none":
            return Verdict([self._undone()])
        # Of a choice, what choosing gains: the winner's own trial is the best of several, so it flatters.
        title, gain, trial = _capital(METHOD_TITLES[self.method]), self.gain, self.trials[-1]
        how = "nested cross-validation" if self.picks else "cross-validation"
        numbers: dict[str, Any] = {"gain": (gain.share, gain.share_interval), "loss": trial.loss}
        about, p = (self.method,), None if math.isnan(gain.p_value) else gain.p_value
        if math.isnan(gain.share):
            before, after = self.trials[0].loss, trial.loss
            text = f"{title}: the loss falls from {before:.4g} to {after:.4g} in {how}."
            return Verdict([Finding(Claim.NO_GAIN, text, about, numbers)])
        said = f"{gain} of {self.rule} in {how}"
        tested: dict[str, Any] = {
            "p_value": p,
            "level": 1 - self.confidence,
            "caution": gain.interval.caution,
        }
        if gain.share < 0:
            worse = gain.interval.high < 0
            sure = " and is significantly worse" if worse else ""
            claim = Claim.HARMS if worse else Claim.NO_GAIN
            return Verdict(
                [Finding(claim, f"{title} gains nothing{sure}: {said}.", about, numbers, **tested)]
            )
        if not gain.certain:
            text = f"{title} gains {said}, which may be chance."
            return Verdict([Finding(Claim.NO_GAIN, text, about, numbers, **tested)])
        step = NextStep(
            f"recalibrate with {METHOD_TITLES[self.method]}",
            f"vx.recalibrate(y, p, method={self.method!r}).apply(p)",
            "verax recalibrate {source}",
        )
        text = f"{title} gains {said}."
        return Verdict([Finding(Claim.HELPS, text, about, numbers, **tested, step=step)])

    def _undone(self) -> Finding:
        """Why nothing is to be done, or that too few of all rows were used to tell."""
        best = min(self.trials[1:-1], key=lambda trial: (math.isnan(trial.loss), trial.loss))
        closest = f"Closest: {METHOD_TITLES[best.method]}, {best.gain} in cross-validation."
        why = "No recalibration method gains significantly."
        if self.sampled is not None:
            used, rows = self.sampled
            why = f"Undecided on {used:,} of {rows:,} rows: no recalibration method gains significantly."
        numbers = {"gain": (best.gain.share, best.gain.share_interval)}
        return Finding(Claim.NO_GAIN, f"{why} {closest}", (best.method,), numbers)

    def _heading(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        rows = f"{self.n_rows:,} {self._of}{groups}, {in_digits(self.n_classes)} {kind}"
        return f"verax recalibration: {rows}; {self.rule} on held-out rows, {self.folds} folds"

    def _tables(self) -> list[Table]:
        def text(of: Callable[[Trial], str]) -> Callable[[Trial], str]:
            """Nothing for what was not recalibrated."""
            return lambda trial: "" if trial.method == "none" else of(trial)

        def spread(trial: Trial) -> str:
            low, high = trial.gain.share_interval
            return f"{100 * low:z.1f} to {100 * high:z.1f}" if trial.gain.share_interval.defined else ""

        def called(trial: Trial) -> str:
            return f"{trial.method} (nested)" if trial.method == BEST else trial.method

        def known(value: float, shown: str) -> str:
            return "" if math.isnan(value) else shown

        columns = [
            Column("", NO_HEADING, lambda trial: "->" if trial.method == self.method else "", right=False),
            Column("method", "method", called, right=False),
            Column("loss", self.rule, ".5f"),
            Column(
                "gain", "gain", text(lambda t: known(t.gain.value, f"{t.gain.value:z.5f}")), _gain("value")
            ),
            Column("low high", value=_gain("interval")),
            Column(
                "share",
                "gain in %",
                text(lambda t: known(t.gain.share, f"{100 * t.gain.share:z.1f}")),
                _gain("share"),
            ),
            Column("", interval_head(self.confidence), text(spread), right=False),
            Column(
                "p_value", "p", text(lambda t: known(t.gain.p_value, _p(t.gain.p_value))), _gain("p_value")
            ),
            Column("detail", "fitted to all rows", text(lambda t: t.detail), right=False),
        ]
        return [Table(columns, self.trials)]

    def _notes(self) -> list[str]:
        remarks = [str(self.verdict)]
        caution = self.gain.interval.caution
        if caution and self.method != "none":
            remarks.append(f"Caution: {caution}.")
        differ = len(set(self.picks)) > 1
        if differ:
            picked = ", ".join(f"{m} by {self.picks.count(m)}" for m in dict.fromkeys(self.picks))
            remarks.append(f"Choices of the folds: {picked}.")
        return [*remarks, *self.notes, *self._said()]


def _gain(name: str) -> Callable[[Trial], Any]:
    return lambda trial: getattr(trial.gain, name)


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
