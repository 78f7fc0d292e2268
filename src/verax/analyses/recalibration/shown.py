"""Recalibrations as they are shown: the verdict, and a table of what each method gains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from verax.analyses.recalibration.records import BEST, MEANINGS, METHOD_TITLES, Gain, Trial
from verax.analyses.words import alike, percent, percent_span, said
from verax.common.sizes import in_digits
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.inference.findings import Claim, Finding, NextStep, Verdict
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MaySkip
from verax.scores.registry import headline_rule, name_of


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
    def helps(self) -> bool:
        """Whether the verdict claims a gain: it is significant, the choice of the method included."""
        return self.method != "none" and self.gain.certain

    @property
    def verdict(self) -> Verdict:
        """Whether recalibration helps, by how much, and how sure that is."""
        if self.method == "none" and self.asked != "none":
            return Verdict([self._undone()])
        gain, (claim, text) = self.gain, self._claim()
        return Verdict(
            [
                Finding(
                    claim,
                    text,
                    (self.method,),
                    {"gain": (gain.share, gain.share_interval), "loss": self.trials[-1].loss},
                    p_value=None if math.isnan(gain.p_value) else gain.p_value,
                    level=1 - self.confidence,
                    caution=gain.interval.caution,
                    step=self._step() if claim == Claim.HELPS else None,
                )
            ]
        )

    def _claim(self) -> tuple[Claim, str]:
        """What is claimed of a method, in a sentence.

        Of a choice it is what choosing gains: the winner's own trial is the best of several, so it flatters.
        """
        name, score, gain = METHOD_TITLES[self.method], said(self.rule), self.gain
        how = "nested cross-validation" if self.picks else "cross-validation"
        if math.isnan(gain.share):
            before, after = self.trials[0].loss, self.trials[-1].loss
            if math.isinf(after):
                return Claim.NO_GAIN, f"{_capital(name)} leaves the {score} infinite."
            return Claim.NO_GAIN, f"With {name} the {score} falls from {before:.4g} to {after:.4g} in {how}."
        if gain.unseen_errors:
            right = f"after {name} all {self.n_rows:,} are right, so none shows what an error would cost"
            return Claim.NO_GAIN, f"Too few rows to tell whether recalibration helps: {right}."
        if not gain.share:
            return Claim.NO_GAIN, f"{_capital(name)} does not change the {score}."
        by = f"the {score} by {percent(abs(gain.share))} ({_span(gain)}, {how})"
        if gain.share < 0:
            if gain.interval.high < 0:
                return Claim.HARMS, f"{_capital(name)} raises {by}, significantly."
            more = f"it is {percent(-gain.share)} higher ({_span(gain)}, {how})"
            return Claim.NO_GAIN, f"{_capital(name)} does not lower the {score}: {more}."
        if not gain.certain:
            return Claim.NO_GAIN, f"{_capital(name)} may lower {by}, but not significantly."
        return Claim.HELPS, f"{_capital(name)} lowers {by}; it {MEANINGS[self.method]}."

    def _step(self) -> NextStep:
        """The call and the command that make this recalibration again, and use or keep it."""
        options: dict[str, str] = {}
        if self.asked != BEST:
            options["method"] = self.method
        if self.rule != name_of(headline_rule(ordered=self.ordered)):
            options["rule"] = self.rule
        given = [*(f"{key}={value!r}" for key, value in options.items()), *["ordered=True"] * self.ordered]
        typed = [f" --{key} {value}" for key, value in options.items()]
        return NextStep(
            f"recalibrate with {METHOD_TITLES[self.method]}",
            f"vx.recalibrate({', '.join(['y', 'p', *given])}).apply(p)",
            f"verax recalibrate {{source}}{''.join(typed)} --save recalibration.json",
        )

    def _undone(self) -> Finding:
        """Why nothing is to be done, or that too few of all rows were used to tell."""
        best = min(self.trials[1:-1], key=lambda trial: (math.isnan(trial.loss), trial.loss))
        why = f"No recalibration method helps significantly with {self.n_rows:,} {self._of}."
        if self.sampled is not None:
            used, rows = self.sampled
            why = f"Undecided on {used:,} of {rows:,} rows: no recalibration method helps significantly."
        closest = "None lowers the held-out loss."
        if best.gain.share > 0:
            closest = f"Closest: {METHOD_TITLES[best.method]}, {best.gain} lower loss in cross-validation."
        numbers = {"gain": (best.gain.share, best.gain.share_interval)}
        return Finding(Claim.NO_GAIN, f"{why} {closest}", (best.method,), numbers)

    def _passed_over(self) -> str:
        """Why a method with a larger gain of its own is not chosen; of no method the verdict tells."""
        if not self.picks or self.method == "none":
            return ""
        best = min(self.trials[1:-1], key=lambda trial: (math.isnan(trial.loss), trial.loss))
        if best.method == self.method or math.isnan(best.gain.share):
            return ""
        larger = f"{_capital(METHOD_TITLES[best.method])} has a larger gain of its own ({best.gain})"
        return f"{larger}, but {METHOD_TITLES[self.method]} is simpler and within one standard error."

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

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, its caution, and why a method with a larger gain of its own is not chosen."""
        caution = self.gain.interval.caution
        told = caution and self.method != "none" and not self.gain.unseen_errors
        more = (f"Caution: {caution}." if told else "", self._passed_over())
        return (str(self.verdict), *filter(None, more))

    def _notes(self) -> list[str]:
        remarks = [*self.sentences]
        differ = len(set(self.picks)) > 1
        if differ:
            picked = ", ".join(f"{m} by {self.picks.count(m)}" for m in dict.fromkeys(self.picks))
            remarks.append(f"Choices of the folds: {picked}.")
        return [*remarks, *self.notes, *self._said()]


def _span(gain: Gain) -> str:
    ends = gain.share_interval
    if not ends.defined:
        return "without an interval"
    low, high = (ends.low, min(ends.high, 1.0)) if gain.share > 0 else (-ends.high, -ends.low)
    if alike(low, high):
        return "the same in all rows"
    return f"{100 * ends.confidence:g}% CI {percent_span(low, high)}"


def _gain(name: str) -> Callable[[Trial], Any]:
    return lambda trial: getattr(trial.gain, name)


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
