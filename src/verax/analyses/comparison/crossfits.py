"""Comparisons beyond fixed forecasts on the same rows: cross-validated fits, and independent samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.conclusions import (
    finite_parts,
    in_range,
    infinite_notes,
    interval_alone,
    lettered,
    no_skill,
    results,
)
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.comparison.reasons import Traits
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.parts import faults_in, with_fault_recipes
from verax.analyses.units import sums_at
from verax.engines.pieces import all_pairs
from verax.errors import InputError
from verax.inference.estimates import Estimate, holm
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import ListFaults
from verax.inputs.memory import InMemory, paired_by_model
from verax.scores.base import Rule
from verax.scores.registry import name_of

# P-values below this are zero but for rounding.
_NO_CHANCE = 1e-12


def less_certain(comparison: Comparison, factor: Callable[[str, str], float]) -> Comparison:
    """A comparison of held-out losses, with intervals for the fits to all rows.

    The interval of held-out losses treats the fits of the folds as fixed, and the fit to all rows differs
    from them by chance: the standard error of the difference of two models grows by a factor.
    """
    (rule,) = comparison.differences
    differences = [_less_certain(d, factor(d.a, d.b)) for d in comparison.differences[rule]]
    adjusted = holm(np.array([d.p_value for d in differences])).tolist()
    differences = [replace(d, p_adjusted=p) for d, p in zip(differences, adjusted, strict=True)]
    base = comparison.reference
    models = [
        model
        if base not in comparison.names or model.name == base
        else replace(
            model, skill_interval=_widened(model.skill_interval, model.skill, factor(model.name, str(base)))
        )
        for model in comparison.models[rule]
    ]
    models = lettered(models, differences, 1 - comparison.confidence)
    return replace(comparison, differences={rule: differences}, models={rule: models})


def factor_of_fits(
    losses: Mapping[str, Floats],
    fits: Mapping[str, Floats],
    weights: Floats | None,
    groups: Groups | None,
) -> Callable[[str, str], float]:
    """The factor by which the standard error of a difference grows, from the spread of the fits.

    The spread of the losses of the fits shows how much the fit to all rows differs from them
    (`fit_variance`), so the variance of a difference is that of the rows plus a multiple of this spread.

    Parameters
    ----------
    losses : mapping of str to (N,) array
        The held-out losses, by the name of the model.
    fits : mapping of str to (V, N) array
        For every model that was fitted, the losses in all rows of the fit without each fold.
    """
    n = len(next(iter(losses.values())))
    w = np.ones(n) if weights is None else weights / weights.max()
    units = np.arange(n) if groups is None else groups.first_kind

    def sums(column: Floats) -> Floats:
        return sums_at(units, np.where(w > 0, w * column, 0.0), int(units.max()) + 1)

    spread = {name: np.array([sums(fit) for fit in of_model]) for name, of_model in fits.items()}

    def factor(a: str, b: str) -> float:
        folds = len(spread.get(a, spread.get(b, ())))
        with np.errstate(invalid="ignore"):
            gaps = losses[a] - losses[b]
            of_rows = sums(gaps - np.average(gaps[w > 0], weights=w[w > 0]))
            of_fits = spread.get(a, np.zeros(1)) - spread.get(b, np.zeros(1))
        if not folds or not np.isfinite(of_rows).all() or not np.isfinite(of_fits).all() or not of_rows.any():
            return 1.0
        extra = fit_variance(folds) * float(of_fits.var(axis=0, ddof=1).sum())
        return math.sqrt(1 + extra / float((of_rows**2).sum()))

    return factor


def fit_variance(n_folds: int) -> float:
    """The variance of a cross-validated gain that comes from the fits, as a multiple of their spread.

    Near the optimum a loss is quadratic in what is fitted. Let s_v be what the rows of fold v contribute to
    the gradient there, standardised, and s their sum. In units of one row, the gain of the fit to all rows
    is -|s|^2 / 2 and, with a = V / (V - 1), its cross-validated estimate is the sum over the folds of

        a s_v (s - s_v) - a^2 |s - s_v|^2 / (2 V).

    Their difference is `up` |s|^2 - `down` sum |s_v|^2, and has the variance below for each number fitted.
    An interval of held-out losses has the variance a, and the losses of a row vary by a^2 / V over the fits.
    """
    v, a = n_folds, n_folds / (n_folds - 1)
    up, down = a - a * a * (v - 2) / (2 * v) + 0.5, a + a * a / (2 * v)
    of_difference = 2 * up * up + 2 * down * down / v - 4 * up * down / v
    return (of_difference - a) / (a * a / v)


def _less_certain(gap: Difference, factor: float) -> Difference:
    """A difference with its standard error multiplied by a factor."""
    from scipy.special import stdtr, stdtrit

    if factor == 1 or not math.isfinite(gap.p_value):
        return gap
    freedom = gap.freedom if math.isfinite(gap.freedom) else 1e9
    # The quantile of a p-value near zero is lost in rounding.
    t = abs(stdtrit(freedom, gap.p_value / 2))
    if gap.p_value < _NO_CHANCE:
        t = abs(gap.difference) / gap.standard_error if gap.standard_error > 0 else math.inf
    return replace(
        gap,
        interval=_widened(gap.interval, gap.difference, factor),
        p_value=float(2 * stdtr(freedom, -t / factor)),
        standard_error=gap.standard_error * factor,
    )


def _widened(ends: Interval, around: float, factor: float) -> Interval:
    """An interval with the distances of its ends from a value multiplied by a factor."""
    if factor == 1 or not ends.defined:
        return ends
    return Interval(
        around - factor * (around - ends.low),
        around + factor * (ends.high - around),
        method=f"{ends.method} with the variance of the fits",
        confidence=ends.confidence,
        caution=ends.caution,
    )


def compare_unpaired(
    y: Mapping[Any, object],
    forecasts: Mapping[str, object] | None,
    rules: list[Rule],
    options: dict[str, Any],
    confidence: float,
    margin: float | None,
) -> Comparison:
    """Compare independent samples: the variance of a difference is the sum of both (Welch)."""
    handles = _each_alone(y, forecasts, options)
    names = list(handles)
    faults: dict[str, ListFaults] = {}
    sums: list[PairedSums] = []
    for name, handle in handles.items():
        recipe = PairedRecipe((name,), tuple(rules), traits=not handle.listed)
        summaries = handle.summarise(with_fault_recipes(handle, {"sums": recipe}))
        sums.append(summaries["sums"])
        faults |= faults_in(handle, summaries)
    traits = {
        name: Traits.of(means, ordered=options["ordered"])
        for name, of_model in zip(names, sums, strict=True)
        if (means := of_model.traits(0)) is not None
    }
    models, differences = {}, {}
    total = sum(of_model.first.n_rows for of_model in sums)
    notes = ["Every model has rows of its own: differences are between independent samples."]
    pairs = all_pairs(len(names))
    for rule in rules:
        tallies = [of_model.of_rule(rule) for of_model in sums]
        mean = np.array([t.means[0] for t in tallies])
        error = np.array([t.standard_errors()[0][0] for t in tallies])
        gaps = np.array([mean[a] - mean[b] for a, b in pairs])
        gap_errors = np.array([math.hypot(error[a], error[b]) for a, b in pairs])
        degrees = np.array([t.standard_errors()[1] for t in tallies])
        freedom = np.append(degrees, [_satterthwaite(error[[a, b]], degrees[[a, b]]) for a, b in pairs])
        estimate = Estimate(np.append(mean, gaps), np.append(error, gap_errors), freedom)
        of_models = [
            interval_alone(tally, rule, handle.n_classes, confidence)
            for tally, handle in zip(tallies, handles.values(), strict=True)
        ]
        name, finite = name_of(rule), [finite_parts(tally)[0] for tally in tallies]
        models[name], differences[name] = results(
            names,
            len(names),
            estimate,
            [*of_models, *estimate.intervals(confidence)[len(names) :]],
            estimate.p_values(),
            [no_skill("there is no reference", confidence)] * len(names),
            [*finite, *((finite[a][0] + finite[b][0], _gap(finite[a], finite[b])) for a, b in pairs)],
            np.full(len(freedom), np.nan),
            1 - confidence,
        )
        models[name] = in_range(models[name], rule)
        notes += infinite_notes(name, models[name], total)
    method = "Welch's t test"
    compared = Comparison(models, differences, traits, total, None, method, confidence, None, tuple(notes))
    return replace(compared, margin=margin).with_faults(faults)


def _each_alone(
    y: Mapping[Any, object], forecasts: Mapping[str, object] | None, options: dict[str, Any]
) -> dict[str, InMemory]:
    """A handle for the rows of each model."""
    if not isinstance(forecasts, Mapping) or set(y) != set(forecasts):
        raise InputError("must have the outcomes of each model under its name", argument="y", kind="label")
    handles = {
        name: InMemory({name: rows}, several=True) for name, rows in paired_by_model(y, forecasts, **options)
    }
    if len(handles) < 2:
        raise InputError("must name at least two models", argument="forecasts", found="there is one")
    return handles


def _gap(a: tuple[int, float], b: tuple[int, float]) -> float:
    """The difference of the means of finite losses; NaN if a model has none."""
    return a[1] - b[1] if math.isfinite(a[1]) and math.isfinite(b[1]) else math.nan


def _satterthwaite(errors: Floats, freedom: Floats) -> float:
    """The degrees of freedom of the difference of two independent means (Welch and Satterthwaite)."""
    variances = errors**2
    if not variances.any():
        return float(freedom.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(variances.sum() ** 2 / (variances**2 / freedom).sum())
