"""`recalibrate`: which method improves the probabilities, and by how much on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from verax.analyses.comparison.compare import compare_losses
from verax.analyses.comparison.result import Comparison
from verax.analyses.recalibration.choosing import FoldedRows, Trials, dealt, mean_loss, n_units
from verax.analyses.recalibration.fitting import MOST_ROWS, STRENGTHS, Configuration
from verax.analyses.recalibration.forms import CalibrationMap
from verax.analyses.recalibration.records import BEST, TITLES, Gain, Trial, of_nothing
from verax.analyses.recalibration.result import Recalibration
from verax.analyses.sampled import rows_to_fit
from verax.common.checks import check_choice, check_count, check_flag
from verax.errors import InputError, passing
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, each_count
from verax.inputs.options import Reading, reads
from verax.inputs.pairs import one_class_each
from verax.scores.base import Rule
from verax.scores.gradients.logits import check_trainable
from verax.scores.metrics import needs_order
from verax.scores.registry import RULES, each_of, name_of, parse

# Most classes for which "best" tries a matrix, which has a number for each pair of them.
_MATRIX = 16


@reads
def recalibrate(
    y: object,
    p: object = None,
    *,
    method: str | Sequence[str] = BEST,
    rule: Rule | str | None = None,
    ordered: bool = False,
    folds: int = 5,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> Recalibration:
    """Recalibrate probabilities, with the cross-validated gain of each method.

    Gains are measured in cross-validation. "best" finds the method with the smallest cross-validated loss. If
    its gain is not significant (one-sided t test, 5 %), it does nothing. Otherwise it takes the simplest
    method that also gains and whose loss is within one standard error of the smallest. The gain of the choice
    is cross-validated as well, by repeating it without each fold. The methods, simplest first:

    - "none": nothing;
    - "temperature": the logarithms of the probabilities divided by one number;
    - "prior": a factor for the odds of each class (a prior shift);
    - "bcts": temperature with class offsets; for two classes that is Platt scaling;
    - "beta": beta calibration, for two classes;
    - "vector": a slope and an offset for each class;
    - "dirichlet": Dirichlet calibration, that is matrix scaling of the log-probabilities, with a penalty on
      all but the diagonal (ODIR), whose strength is chosen within the cross-validation;
    - "isotonic": a non-decreasing function of the probability of each class, normalised; if `ordered`, of
      each threshold, kept monotone.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. The model was not
        trained on these rows. Or predictions that `scan` has opened, in place of both `y` and `p`; of more
        than 100,000 rows, or 8 million probabilities, the fit uses a random sample (`sampled`).
    p : array_like of shape (N, K) or (N,), optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    method : str or sequence of str, default "best"
        A method, "best", or methods among which to choose; a method by itself is taken whatever it gains.
    rule : Rule or str, optional
        The proper rule that is minimised and measured. By default the log score where it is finite, else RPS
        for ordered classes and Brier for others. An isotonic fit is the best by every proper score.
    ordered
    folds : int, default 5
        Number of folds. Rows of a group stay together, so there are no more folds than groups; of two kinds
        of groups it is those of the first that do.
    seed : int, default 0
        Random seed of the folds.
    confidence
    **read

    Returns
    -------
    Recalibration
        The chosen method, ready to `apply`, and what each method gains.

    See Also
    --------
    decompose : How much there is to gain.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), arXiv:1706.04599; Alexandari, Kundaje and Shrikumar (2020),
    arXiv:1901.06852; Kull, Silva Filho and Flach (2017), doi:10.1214/17-EJS1338SI; Kull et al. (2019),
    arXiv:1910.12656.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    >>> y = np.array([rng.choice(3, p=row) for row in q])
    >>> p = q**2 / (q**2).sum(axis=1, keepdims=True)  # overconfident
    >>> found = vx.recalibrate(y, p)
    >>> found.method, found.trial("temperature").detail
    ('temperature', 'temperature 2.01')
    >>> better = found.apply(p)
    """
    ordered = check_flag("ordered", ordered)
    check_count("folds", folds, least=2)
    check_seed(seed)
    check_confidence(confidence)
    asked = _asked(method)
    chosen = None if rule is None else parse(rule)
    in_order = needs_order([] if chosen is None else [chosen], ordered=ordered)
    y, p, own, tell = rows_to_fit(y, p, read, ordered=in_order)
    forecasts = one_class_each(Forecasts(y, p, ordered=in_order, **own))
    forecasts.check()
    batch, groups = forecasts.batch(0, forecasts.n_rows), forecasts.groups
    outcomes, rows = to_host(batch.y), np.ascontiguousarray(to_host(widen(batch.p)), dtype=float)
    weights = None if batch.weights is None else to_host(batch.weights)
    chosen = _default(outcomes, rows, weights, ordered) if chosen is None else chosen
    check_trainable(chosen, forecasts.n_classes)
    methods = _methods(asked, forecasts.n_classes)
    nested = len(methods) > 1 or "dirichlet" in methods
    units = n_units(groups, forecasts.n_rows, weights)
    n_folds = _n_folds(folds, units, groups, nested=nested)
    dealt_to = dealt(outcomes, groups, n_folds, seed, weights)
    sample = FoldedRows(outcomes, rows, weights, groups, chosen, ordered, dealt_to, seed)
    return tell(_Study(sample, methods, asked, confidence).result(forecasts))


def _asked(method: str | Sequence[str]) -> list[str]:
    """The methods asked for, by name."""
    names = [method] if isinstance(method, str) else list(each_of(method))
    if not names:
        raise InputError("must name at least one method", argument="method")
    for name in names:
        check_choice("method", name, [*TITLES, *([BEST] if len(names) == 1 else [])])
    return list(dict.fromkeys(names))


def _methods(asked: list[str], n_classes: int) -> list[str]:
    """The methods that are tried, doing nothing first."""
    two = n_classes == 2
    if "beta" in asked and not two:
        raise InputError(
            "beta is for two classes",
            argument="method",
            found=f"there are {n_classes}",
            values=["beta"],
            remedies=[passing("for more classes", method="dirichlet")],
        )
    if asked != [BEST]:
        return asked if len(asked) == 1 else [name for name in TITLES if name in ("none", *asked)]
    if two:
        # Vector scaling and a matrix have the same functions of two classes as beta calibration.
        return ["none", "temperature", "prior", "bcts", "beta", "isotonic"]
    matrix = ["dirichlet"] if n_classes <= _MATRIX else []
    return ["none", "temperature", "prior", "bcts", "vector", *matrix, "isotonic"]


def _default(y: Ints, p: Floats, weights: Floats | None, ordered: bool) -> Rule:
    """The log score unless it is infinite."""
    impossible = p[np.arange(len(y)), y] <= 0
    if weights is not None:
        impossible &= weights > 0
    return RULES["log_score"] if not impossible.any() else RULES["rps" if ordered else "brier"]


def _n_folds(folds: int, units: int, groups: Groups | None, *, nested: bool) -> int:
    """As many folds as there may be, refused where a choice cannot be cross-validated."""
    least = 3 if nested else 2
    if units < least or folds < least:
        few = units < least
        what = "rows" if groups is None else "groups"
        why = "to choose and to measure the choice on others" if nested else "to fit and to measure on others"
        raise InputError(
            f"must be at least {least} {what if few else 'folds'}, {why}",
            argument=("p" if groups is None else "groups") if few else "folds",
            kind="length" if few else "value",
            found=f"there {'is' if units == 1 else 'are'} {units}" if few else "",
            values=[units if few else folds],
        )
    return min(folds, units)


class _Study:
    """All methods tried on a sample."""

    def __init__(self, sample: FoldedRows, methods: list[str], asked: list[str], confidence: float) -> None:
        self.sample, self.methods, self.asked, self.confidence = sample, methods, asked, confidence
        self.choice = len(methods) > 1
        tried = list(dict.fromkeys(["none", *methods]))
        self.configurations = {
            name: [Configuration(name, s) for s in (STRENGTHS if name == "dirichlet" else (None,))]
            for name in tried
        }
        everything = [how for family in self.configurations.values() for how in family]
        self.trials = Trials.of(sample, everything, nested=self.choice or "dirichlet" in methods)
        # Within a method the strength is chosen, without each fold and by all rows.
        self.within = {name: self._within(family) for name, family in self.configurations.items()}

    def _within(self, family: list[Configuration]) -> list[Configuration]:
        if len(family) == 1:
            return family * (self.sample.n_folds + 1)
        return self.trials.selected(family, gated=False)

    def result(self, forecasts: Forecasts) -> Recalibration:
        sample = self.sample
        everything = [how for family in self.configurations.values() for how in family]
        outcome = (
            self.trials.selected(everything, gated=True) if self.choice else self.within[self.methods[0]]
        )
        losses = {name: self.trials.held_out(picks)[0] for name, picks in self.within.items()}
        held_losses, held_out = self.trials.held_out(outcome)
        if self.choice:
            losses[BEST] = held_losses
        comparison = None
        if len(losses) > 1:
            comparison = compare_losses(
                losses,
                sample.rule,
                weights=sample.weights,
                groups=sample.groups,
                reference="none",
                confidence=self.confidence,
            )
        final = outcome[-1]
        forms = {name: self.trials.whole[picks[-1]] for name, picks in self.within.items()}
        trials = [self._trial(name, losses[name], comparison, forms) for name in losses]
        if self.choice and any(how.method != final.method for how in outcome):
            own = next(trial for trial in trials if trial.method == final.method)
            trials[-1] = replace(trials[-1], gain=trials[-1].gain.undecided(own.gain))
        return Recalibration(
            method=final.method,
            asked=", ".join(self.asked),
            form=self.trials.whole[final],
            rule=name_of(sample.rule),
            trials=tuple(trials),
            classes=forecasts.classes,
            ordered=sample.ordered,
            frequencies=_frequencies(sample),
            n_rows=len(sample.y),
            n_groups=None if sample.groups is None else sample.groups.count_with(sample.weights),
            folds=sample.n_folds,
            seed=sample.seed,
            confidence=self.confidence,
            picks=tuple(how.method for how in outcome[:-1]) if self.choice else (),
            notes=tuple(self._notes()),
            comparison=comparison,
            held_out=held_out,
        )

    def _trial(
        self, name: str, losses: Floats, comparison: Comparison | None, forms: dict[str, CalibrationMap]
    ) -> Trial:
        if comparison is None or name == "none":
            mean = mean_loss(losses, self.sample.weights)
            return Trial(name, mean, of_nothing(self.confidence))
        model = next(m for ms in comparison.models.values() for m in ms if m.name == name)
        gap = comparison.difference("none", name)
        gain = Gain(gap.difference, gap.interval, model.skill, model.skill_interval, gap.p_value)
        before = next(m.mean for ms in comparison.models.values() for m in ms if m.name == "none")
        groups = self.sample.groups
        units = len(losses) if groups is None else min(each_count(groups.count_with(self.sample.weights)))
        gain = gain.agreeing(before, units)
        detail = "" if name == BEST else forms[name].words
        strength = None if name == BEST else self.within[name][-1].strength
        return Trial(name, model.mean, gain, detail if strength is None else f"penalty {strength:g}")

    def _notes(self) -> list[str]:
        sample = self.sample
        notes = []
        if len(sample.y) > MOST_ROWS and set(self.methods) - {"none", "isotonic"}:
            notes.append(
                f"Slopes and offsets were fitted to {MOST_ROWS:,} rows drawn at random; all rows were scored."
            )
        never = np.flatnonzero(_frequencies(sample) == 0).tolist()
        if never:
            notes.append(f"Classes that never happened in these rows: {', '.join(map(str, never[:6]))}.")
        return notes


def _frequencies(sample: FoldedRows) -> Floats:
    w = None if sample.weights is None else sample.weights / sample.weights.max()
    counts = np.bincount(sample.y, w, sample.p.shape[1]).astype(float)
    return np.asarray(counts / counts.sum())
