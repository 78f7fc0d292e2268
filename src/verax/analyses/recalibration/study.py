"""All methods tried on rows with folds: what each gains, and what choosing among them gains."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.compare import compare_losses
from verax.analyses.comparison.result import Comparison
from verax.analyses.recalibration.blending import add_blend
from verax.analyses.recalibration.choosing import Folded, Trials, mean_loss
from verax.analyses.recalibration.fitting import configurations_of
from verax.analyses.recalibration.forms import CalibrationMap
from verax.analyses.recalibration.records import BEST, BLEND, Gain, Trial, of_nothing
from verax.analyses.recalibration.rows import MOST_ROWS, Configuration
from verax.inputs.arrays import Floats
from verax.inputs.groups import each_count
from verax.scores.registry import name_of


def notes_on_fits(sample: Folded, fitted: Collection[str]) -> tuple[str, ...]:
    """What to know of the fits of some methods."""
    if len(sample.y) <= MOST_ROWS or not fitted:
        return ()
    return (f"Slopes and offsets were fitted to {MOST_ROWS:,} rows drawn at random; all rows were scored.",)


def has_strengths(methods: Collection[str]) -> bool:
    """Whether the strength of a penalty is to be chosen, which is a choice to cross-validate."""
    return any(len(configurations_of(name)) > 1 for name in methods)


class Study:
    """All methods tried on a sample."""

    def __init__(self, sample: Folded, methods: list[str], asked: list[str], confidence: float) -> None:
        self.sample: Folded = sample
        self.methods: list[str] = methods
        self.asked: list[str] = asked
        self.confidence: float = confidence
        self.choice: bool = len(methods) > 1
        tried = list(dict.fromkeys(["none", *methods]))
        self.configurations: dict[str, list[Configuration]] = {
            name: configurations_of(name) for name in tried
        }
        everything = [how for family in self.configurations.values() for how in family]
        nested = self.choice or has_strengths(methods)
        self.trials: Trials = Trials.of(sample, everything, nested=nested)
        # Within a method the strength is chosen, without each fold and by all rows.
        self.within: dict[str, list[Configuration]] = {
            name: self._within(family) for name, family in self.configurations.items()
        }
        if asked == [BLEND]:
            self.methods, self.choice = [BLEND], False
            self.within[BLEND] = [add_blend(self.trials)] * (sample.n_folds + 1)

    def _within(self, family: list[Configuration]) -> list[Configuration]:
        if len(family) == 1:
            return family * (self.sample.n_folds + 1)
        return self.trials.selected(family, gated=False)

    def facts(self) -> dict[str, Any]:
        """The fields of a recalibration that every kind of forecasts has."""
        sample = self.sample
        everything = [how for family in self.configurations.values() for how in family]
        outcome = (
            self.trials.selected(everything, gated=True) if self.choice else self.within[self.methods[0]]
        )
        chosen = self.within | ({BEST: outcome} if self.choice else {})
        losses = {name: self.trials.held_out(picks) for name, picks in chosen.items()}
        comparison = None
        if len(losses) > 1:
            comparison = compare_losses(
                losses,
                sample.rule,
                fits={n: self.trials.losses_of_fits(c) for n, c in chosen.items() if n != "none"},
                weights=sample.weights,
                groups=sample.groups,
                reference="none",
                confidence=self.confidence,
            )
        final = outcome[-1]
        forms = {name: self.trials.whole[picks[-1]] for name, picks in self.within.items()}
        trials = [self._trial(name, losses[name], comparison, picks, forms) for name, picks in chosen.items()]
        if self.choice and any(how.method != final.method for how in outcome):
            own = next(trial for trial in trials if trial.method == final.method)
            trials[-1] = replace(trials[-1], gain=trials[-1].gain.undecided(own.gain))
        return {
            "method": final.method,
            "asked": ", ".join(self.asked),
            "form": self.trials.whole[final],
            "rule": name_of(sample.rule),
            "trials": tuple(trials),
            "n_rows": len(sample.y),
            "n_groups": None if sample.groups is None else sample.groups.count_with(sample.weights),
            "folds": sample.n_folds,
            "seed": sample.seed,
            "confidence": self.confidence,
            "picks": tuple(how.method for how in outcome[:-1]) if self.choice else (),
            "comparison": comparison,
            "held_out": sample.held_out(self.trials.fits(outcome)),
        }

    def _trial(
        self,
        name: str,
        losses: Floats,
        comparison: Comparison | None,
        picks: Sequence[Configuration],
        forms: dict[str, CalibrationMap],
    ) -> Trial:
        if comparison is None or name == "none":
            mean = mean_loss(losses, self.sample.weights)
            return Trial(name, mean, of_nothing(self.confidence))
        model = next(m for ms in comparison.models.values() for m in ms if m.name == name)
        gap = comparison.difference("none", name)
        gain = Gain(gap.difference, gap.interval, model.skill, model.skill_interval, gap.p_value)
        before = next(m.mean for ms in comparison.models.values() for m in ms if m.name == "none")
        groups = self.sample.groups
        weights = self.sample.weights
        n_rows = len(self.sample.y) if weights is None else int(np.count_nonzero(weights))
        units = n_rows if groups is None else min(each_count(groups.count_with(weights)))
        unseen = self.sample.unseen_cost(self.trials.fits(picks))
        gain = gain.without_errors(units, before, unseen).agreeing(before, units)
        detail = "" if name == BEST else forms[name].words
        strength = None if name == BEST else self.within[name][-1].strength
        return Trial(name, model.mean, gain, detail if strength is None else f"penalty {strength:g}")
