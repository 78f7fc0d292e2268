"""Models with rows of their own, compared as independent samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.conclusions import finite_parts, in_range, infinite_notes, no_skill, results
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.traits import Traits
from verax.analyses.listfaults import faults_in, with_fault_recipes
from verax.engines.pieces import all_pairs
from verax.errors import InputError
from verax.inference.estimates import Estimate
from verax.inputs.arrays import Floats
from verax.inputs.lists.rows import ListFaults
from verax.inputs.memory import InMemory
from verax.inputs.rows import pair_each
from verax.scores.base import Rule
from verax.scores.registry import name_of


def compare_unpaired(
    y: Mapping[Any, object],
    forecasts: Mapping[str, object] | None,
    rules: list[Rule],
    options: dict[str, Any],
    confidence: float,
    margin: float | None,
) -> Comparison:
    """Independent samples: the variance of a difference is the sum of the two (Welch)."""
    handles = _each_alone(y, forecasts, options)
    names = list(handles)
    faults: dict[str, ListFaults] = {}
    sums: list[PairedSums] = []
    for name, handle in handles.items():
        recipe = PairedRecipe((name,), tuple(rules), traits=not handle.listed)
        found = handle.summarise(with_fault_recipes(handle, {"sums": recipe}))
        sums.append(found["sums"])
        faults |= faults_in(handle, found)
    traits = {
        name: Traits.of(means, ordered=options["ordered"])
        for name, own in zip(names, sums, strict=True)
        if (means := own.traits(0)) is not None
    }
    models, differences = {}, {}
    total = sum(own.first.n_rows for own in sums)
    notes = ["Every model has rows of its own: differences are between independent samples."]
    pairs = all_pairs(len(names))
    for rule in rules:
        tallies = [own.of_rule(rule) for own in sums]
        mean = np.array([t.means[0] for t in tallies])
        error = np.array([t.standard_errors()[0][0] for t in tallies])
        gaps = np.array([mean[a] - mean[b] for a, b in pairs])
        gap_errors = np.array([math.hypot(error[a], error[b]) for a, b in pairs])
        own = np.array([t.standard_errors()[1] for t in tallies])
        freedom = np.append(own, [_satterthwaite(error[[a, b]], own[[a, b]]) for a, b in pairs])
        estimate = Estimate(np.append(mean, gaps), np.append(error, gap_errors), freedom)
        name, finite = name_of(rule), [finite_parts(tally)[0] for tally in tallies]
        models[name], differences[name] = results(
            names,
            len(names),
            estimate,
            estimate.intervals(confidence),
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
    found = {name: InMemory({name: rows}, several=True) for name, rows in pair_each(y, forecasts, **options)}
    if len(found) < 2:
        raise InputError("must name at least two models", argument="forecasts", found="there is one")
    return found


def _gap(a: tuple[int, float], b: tuple[int, float]) -> float:
    """The difference of the means of finite losses; NaN where a model has none."""
    return a[1] - b[1] if math.isfinite(a[1]) and math.isfinite(b[1]) else math.nan


def _satterthwaite(errors: Floats, freedom: Floats) -> float:
    """The degrees of freedom of the difference of two independent means (Welch and Satterthwaite)."""
    variances = errors**2
    if not variances.any():
        return float(freedom.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(variances.sum() ** 2 / (variances**2 / freedom).sum())
