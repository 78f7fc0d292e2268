"""What sums of losses say of models: means, ranks, skill and differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.analyses.comparison.claims import ERROR_DISTANCE, Claims
from verax.analyses.comparison.letters import letter_display
from verax.analyses.comparison.paired import OF_RULE, OF_TRAIT, PairedSums
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.traits import Traits
from verax.engines.differences import PairedTally
from verax.engines.pieces import all_pairs
from verax.errors import ParseError, join
from verax.inference.bootstrap import bootstrap_interval
from verax.inference.estimates import (
    Estimate,
    Method,
    Units,
    bootstrap_intervals,
    bootstrap_means,
    bootstrap_p,
    holm,
    permutation_p,
)
from verax.inference.intervals import Interval, Resampling
from verax.inputs.arrays import Floats
from verax.inputs.groups import is_two_way
from verax.inputs.handles import Part
from verax.scores.base import Rule
from verax.scores.registry import name_of, stored_rule
from verax.scores.rules import Log

Skill = tuple[float, Interval]
# The floor of the rule that is offered where outcomes had probability zero.
FLOOR = 1e-6
# Bounds for few and for many classes tell the range of a rule, whatever their number.
_FEW_CLASSES, _MANY_CLASSES = 2, 1000


@dataclass(frozen=True)
class RowWise:
    """What is computed from rows in memory instead of from sums: resampling, and errors of series.

    Attributes
    ----------
    units : Units
        What is independent.
    method : str
        How intervals and p-values are computed.
    part : Part
        The rows.
    columns : mapping of str to array
        (N, M) values of each row and model, by the name of their sums.
    """

    units: Units
    method: Method
    part: Part
    columns: Mapping[str, Floats] = field(default_factory=dict)


def read_comparison(
    sums: PairedSums,
    names: list[str],
    rules: Sequence[Rule],
    *,
    ordered: bool,
    reference: str | None,
    plan: Resampling,
    dense: Sequence[str] | None = None,
    row_wise: RowWise | None = None,
    losses_of_rules: bool = True,
) -> Comparison:
    """The comparison of models from sums of their losses, without claims about their traits.

    `dense` are the models that have traits; all unless said. Columns that are no losses, such as gaps, have
    no range that their intervals could be kept in.
    """
    first = sums.first
    two_way = first.labels is not None and is_two_way(first.labels)
    units = Units("rows" if first.labels is None else "groups", two_way=two_way)
    method: Method = "moments"
    if row_wise is not None:
        units, method = row_wise.units, row_wise.method
    models, differences, notes = {}, {}, []
    for rule in rules:
        name, key = name_of(rule), OF_RULE.format(name_of(rule))
        losses = np.zeros((0, 0)) if row_wise is None else row_wise.columns[key]
        models[name], differences[name], said = conclude(
            names,
            sums[key],
            _estimate(sums, key, plan, row_wise),
            rule=name,
            reference=reference,
            confidence=plan.confidence,
            draws=bootstrap_means(losses, units, plan) if method == "bootstrap" else None,
            p_values=(
                permutation_p(losses, units, plan.replicates, plan.seed) if method == "permutation" else None
            ),
        )
        notes += said
        if units.kind == "blocks":
            notes += too_short(name, differences[name])
        if losses_of_rules:
            models[name] = in_range(models[name], rule)
    found = {name: sums.traits(i) for i, name in enumerate(names if dense is None else dense)}
    return Comparison(
        models,
        differences,
        {name: Traits.of(means, ordered=ordered) for name, means in found.items() if means is not None},
        first.n_rows,
        first.n_groups,
        units.describe(method),
        plan.confidence,
        reference,
        tuple(notes),
    )


def in_range(models: list[Model], rule: Rule) -> list[Model]:
    """Models with intervals inside the range of the rule, which t intervals over few groups may leave.

    Joint estimates may lie outside themselves; their intervals stay as they are.
    """
    ends = [rule.bounds(n) for n in (_FEW_CLASSES, _MANY_CLASSES)]
    low, high = min(own[0] for own in ends), max(own[1] for own in ends)
    return [
        replace(model, interval=model.interval.within((low, high))) if low <= model.mean <= high else model
        for model in models
    ]


def _estimate(sums: PairedSums, key: str, plan: Resampling, row_wise: RowWise | None) -> Estimate:
    if row_wise is None:
        return Estimate.of(sums[key], np.zeros((0, 0)), Units("rows"), copies=plan.copies)
    return Estimate.of(sums[key], row_wise.columns[key], row_wise.units, copies=plan.copies)


def claims_of(
    sums: PairedSums,
    errors: PairedSums | None,
    traits: Mapping[str, Traits],
    plan: Resampling,
    row_wise: RowWise | None = None,
) -> Claims:
    """What sums support about the traits of models; `errors` are those of distances, if they are known."""

    def p_values(trait: int) -> Floats:
        own = errors if errors is not None and trait == ERROR_DISTANCE else sums
        return _estimate(own, OF_TRAIT.format(trait), plan, row_wise).p_values()

    return Claims.of(list(traits), p_values, ordered=errors is not None, level=1 - plan.confidence)


def conclude(
    names: list[str],
    tally: PairedTally,
    estimate: Estimate,
    *,
    rule: str,
    reference: str | None,
    confidence: float,
    draws: Floats | None = None,
    p_values: Floats | None = None,
) -> tuple[list[Model], list[Difference], list[str]]:
    """Models in order, their differences, and what to know about them, by one rule.

    Parameters
    ----------
    names : list of str
        The models; the tally may have one more, the reference.
    draws : array, optional
        Bootstrap means of all columns, for intervals and p-values; by default those of the t distribution.
    p_values : array, optional
        Of all columns, from elsewhere.
    """
    intervals = estimate.intervals(confidence)
    if draws is not None:
        intervals = bootstrap_intervals(draws, estimate, confidence)
        p_values = bootstrap_p(draws, estimate.mean)
    if p_values is None:
        # A single model has no differences, and nobody waits for the distribution of their tests.
        p_values = estimate.p_values() if len(names) > 1 else np.full(len(estimate.mean), np.nan)
    skill = _skill(estimate, tally, names, reference, confidence, draws)
    # Where a difference is undefined the mean itself is not: it is infinite.
    of_models = np.arange(len(estimate.mean)) < tally.n_models
    mean = np.where(np.isnan(estimate.mean) & of_models, np.inf, estimate.mean)
    models, differences = results(
        *(names, tally.n_models, replace(estimate, mean=mean), intervals, p_values, skill),
        *(finite_parts(tally), tally.moments.std[1:], 1 - confidence),
    )
    return models, differences, infinite_notes(rule, models, tally.n_rows)


def finite_parts(tally: PairedTally) -> list[tuple[int, float]]:
    """In how many rows the loss of each column is infinite, and the mean of the others.

    Without any others it is infinite for a model, and NaN for a difference.
    """
    counts, means = tally.moments.n_infinite[1:], tally.moments.finite_mean[1:].copy()
    models = means[: tally.n_models]
    models[np.isnan(models)] = np.inf
    return [(int(counts[i]), float(means[i])) for i in range(tally.n_columns)]


def infinite_notes(rule: str, models: list[Model], n_rows: int) -> list[str]:
    """Which models have infinite losses, what they are ranked by, and which rule has a floor instead."""
    found = [f"{m.name} ({m.infinite_rows:,} of {n_rows:,} rows)" for m in models if m.infinite_rows]
    if not found:
        return []
    said = [f"{rule} is infinite for {', '.join(found)}: the outcome had probability zero there."]
    said.append("Its differences are computed over the other rows, without intervals and p-values.")
    if len(found) > 1:
        said.append("Such models are ranked by the number of these rows, then by the mean of the others.")
    floored = _with_floor(rule)
    if floored is not None:
        said.append(
            f"The rule {floored} scores such outcomes as if they had had probability {FLOOR:g}, a floor that "
            "makes it slightly improper."
        )
    return [" ".join(said)]


def _with_floor(name: str) -> Log | None:
    """The log score of this name with a floor; None for other rules."""
    try:
        rule = stored_rule(name)
    except ParseError:
        # A rule of the caller, whose name is not registered.
        return None
    return replace(rule, clip=FLOOR) if isinstance(rule, Log) else None


def too_short(rule: str, differences: list[Difference]) -> list[str]:
    """Which differences come from a series that is too short, by each caution."""
    cautions = {d.interval.caution: "" for d in differences if d.interval.caution and d.interval.defined}
    for caution in cautions:
        short = [f"{d.a} - {d.b}" for d in differences if d.interval.caution == caution]
        cautions[caution] = join(short if len(short) <= 3 else [*short[:2], f"{len(short) - 2} other pairs"])
    return [
        f"{rule}, {named}: {caution}; p-values may be too small and intervals too narrow."
        for caution, named in cautions.items()
    ]


def _skill(
    estimate: Estimate,
    tally: PairedTally,
    names: list[str],
    reference: str | None,
    confidence: float,
    draws: Floats | None,
) -> list[Skill]:
    """One minus the mean over that of the reference, with the interval of a ratio of means."""
    if reference is None:
        return [no_skill("there is no reference", confidence)] * len(names)
    m = tally.n_models
    base = names.index(reference) if reference in names else m - 1
    column = {models: m + i for i, models in enumerate(all_pairs(m))}
    result: list[Skill] = []
    for i in range(len(names)):
        if i == base:
            result.append((0.0, Interval(0.0, 0.0, method="exact", confidence=confidence)))
            continue
        if estimate.mean[base] == 0:
            result.append(no_skill("the mean loss of the reference is zero", confidence))
            continue
        ratio = estimate.mean[i] / estimate.mean[base]
        if draws is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                skills = 1 - draws[:, i] / draws[:, base]
            result.append((float(1 - ratio), bootstrap_interval(skills, confidence, "bootstrap")))
            continue
        pair = column[min(i, base), max(i, base)]
        freedom, skewness = None, 0.0
        if tally.labels is not None:
            error, freedom, skewness = tally.contrast(i, base, ratio)
        else:
            # Var(A - r B) from the variances of A, B and A - B, which are known.
            a, b, gap = estimate.error[[i, base, pair]] ** 2
            known = np.isfinite([a, b, gap]).all()
            error = math.sqrt(max(a + ratio**2 * b - ratio * (a + b - gap), 0.0)) if known else math.nan
        single = estimate.like(pair, 1 - ratio, error / estimate.mean[base], freedom, -skewness)
        result.append((float(1 - ratio), single.intervals(confidence)[0]))
    return result


def no_skill(caution: str, confidence: float) -> Skill:
    """Why there is no skill."""
    return math.nan, Interval.undefined(caution, confidence=confidence)


def results(
    names: list[str],
    n_columns: int,
    estimate: Estimate,
    intervals: list[Interval],
    p_values: Floats,
    skill: list[Skill],
    finite: list[tuple[int, float]],
    deviations: Floats,
    level: float,
) -> tuple[list[Model], list[Difference]]:
    """Models in order of their means, and their differences, from what was found for each column."""
    mean, freedom = estimate.mean, np.broadcast_to(estimate.freedom, estimate.mean.shape)
    pairs = [(a, b, n_columns + i) for i, (a, b) in enumerate(all_pairs(n_columns)) if b < len(names)]
    adjusted = holm(np.array([p_values[c] for _, _, c in pairs]))
    skewness = np.broadcast_to(estimate.skewness, mean.shape)
    known = estimate.error, freedom, skewness, deviations
    found = [
        Difference(
            names[a],
            names[b],
            float(mean[c]),
            intervals[c],
            float(p_values[c]),
            float(p),
            finite[a][0],
            finite[b][0],
            finite[c][1],
            *(float(own[c]) if math.isfinite(mean[c]) else math.nan for own in known),
        )
        for (a, b, c), p in zip(pairs, adjusted, strict=True)
    ]
    order = sorted(range(len(names)), key=lambda i: (finite[i][0], finite[i][1] if finite[i][0] else mean[i]))
    models = [
        Model(names[i], float(mean[i]), intervals[i], rank + 1, "", *skill[i], *finite[i])
        for rank, i in enumerate(order)
    ]
    return lettered(models, found, level), found


def lettered(models: list[Model], differences: list[Difference], level: float) -> list[Model]:
    """Models in order of their means, with the letters that the adjusted p-values of differences give."""
    told_apart = [model.name for model in models if math.isfinite(model.mean)]
    letters = letter_display(told_apart, [(d.a, d.b) for d in differences if d.p_adjusted <= level])
    return [replace(model, letters=letters.get(model.name, "")) for model in models]


def in_order(models: Sequence[Model]) -> list[Model]:
    """Models by increasing mean, ranked."""
    ordered = sorted(models, key=lambda model: model.mean)
    return [replace(model, rank=rank + 1) for rank, model in enumerate(ordered)]


def in_subgroups(comparisons: Mapping[Any, Comparison], among: int) -> dict[Any, Comparison]:
    """Comparisons of the same models in each of some subgroups, with Holm's correction over all of them.

    If these are some of `among` subgroups, the p-values of the others are assumed to be larger.
    """
    found = dict(comparisons)
    for rule in next(iter(found.values())).differences if found else ():
        own = [d for each in found.values() for d in each.differences[rule]]
        n_pairs = len(own) // len(found)
        adjusted = iter(holm(np.array([d.p_value for d in own]), among * n_pairs).tolist())
        for label, each in found.items():
            differences = [replace(d, p_adjusted=next(adjusted)) for d in each.differences[rule]]
            models = lettered(each.models[rule], differences, 1 - each.confidence)
            found[label] = replace(
                each,
                differences={**each.differences, rule: differences},
                models={**each.models, rule: models},
            )
    return found
