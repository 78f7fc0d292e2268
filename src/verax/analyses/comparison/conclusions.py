"""From sums of losses to means, ranks, skill and differences of models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from verax.analyses.comparison.paired import OF_RULE, OF_TRAIT, PairedSums
from verax.analyses.comparison.ranked import letter_display
from verax.analyses.comparison.reasons import ERROR_DISTANCE, Claims, Traits
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.measures import is_share
from verax.engines.differences import PairedTally
from verax.engines.pieces import all_pairs
from verax.errors import ParseError, join
from verax.inference.answers import Discordant
from verax.inference.bootstrap import bootstrap_interval
from verax.inference.estimates import (
    Estimate,
    Method,
    Units,
    bootstrap_means,
    bootstrapped,
    holm,
    permuted,
    sign_flips,
)
from verax.inference.intervals import Interval, Resampling, few_misses
from verax.inference.modelmeans import LossKind, interval_of_model
from verax.inference.series import about_season
from verax.inference.signflips import SignFlips, size_of
from verax.inputs.arrays import Floats
from verax.inputs.groups import is_two_way
from verax.inputs.handles import Part
from verax.scores.base import Rule
from verax.scores.grades import Grade
from verax.scores.registry import name_of, stored_rule
from verax.scores.rules import Log

Skill = tuple[float, Interval]
# The floor of the rule that is offered where outcomes had probability zero.
FLOOR = 1e-6
# Bounds for few and for many classes give the range of a rule for any number of classes.
_FEW_CLASSES, _MANY_CLASSES = 2, 1000


@dataclass(frozen=True)
class RowWise:
    """Rows in memory, for what sums cannot give: resampling, and standard errors of rows in order of time.

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
    n_classes: int | None = None,
) -> Comparison:
    """Compare models from sums of their losses, without claims about their traits.

    `dense` are the models that have traits; by default all. If `losses_of_rules` is false, the columns are
    other values, such as gaps, and intervals are not kept within the range of the rule. The range of losses
    is that of the number of classes, or of any where it is not given.
    """
    first = sums.first
    two_way = first.labels is not None and is_two_way(first.labels)
    units = Units("rows" if first.labels is None else "groups", two_way=two_way)
    method: Method = "moments"
    if row_wise is not None:
        units, method = row_wise.units, row_wise.method
    models, differences, notes = {}, {}, []
    trait_means = {name: sums.traits(i) for i, name in enumerate(names if dense is None else dense)}
    traits = {
        name: Traits.of(means, ordered=ordered) for name, means in trait_means.items() if means is not None
    }
    # The reference, which comes last, has no traits.
    rows = first.effective_rows(copies=plan.copies)
    accuracies = [traits[name].accuracy if name in traits else math.nan for name in names]
    accuracies += [math.nan] * (first.n_models - len(names))
    failing = [few_misses((1 - accuracy) * rows, rows) for accuracy in accuracies]
    for rule in rules:
        name, key = name_of(rule), OF_RULE.format(name_of(rule))
        columns = np.zeros((0, 0)) if row_wise is None else row_wise.columns[key]
        estimate = _estimate(sums, key, plan, row_wise)
        in_time = units.kind == "blocks"
        losses = LossKind(kind_of(rule), range_of(rule, n_classes), plan.copies, plan.few_groups, in_time)
        if losses_of_rules and losses.kind == "loss":
            estimate = estimate.with_cautions(failing)
        models[name], differences[name], remarks = conclude(
            names,
            sums[key],
            estimate,
            rule=name,
            reference=reference,
            confidence=plan.confidence,
            losses=losses if losses_of_rules else None,
            draws=bootstrap_means(columns, units, plan) if method == "bootstrap" else None,
            flips=sign_flips(columns, units, plan) if method == "permutation" else None,
        )
        notes += remarks
        differences[name] = with_range(differences[name], rule)
        notes += exact_notes(name, differences[name])
        if units.kind != "rows" or not isinstance(rule, Grade):
            notes += caution_notes(name, differences[name])
        if estimate.seasons is not None:
            of_pairs = zip(
                all_pairs(first.n_models), estimate.seasons[first.n_models :].tolist(), strict=True
            )
            seasons = [season for (_, b), season in of_pairs if b < len(names)]
            notes += season_notes(name, differences[name], seasons, first.n_rows)
        if losses_of_rules:
            models[name] = in_range(models[name], rule)
    return Comparison(
        models,
        differences,
        traits,
        first.n_rows,
        first.n_groups,
        units.describe(method),
        plan.confidence,
        reference,
        tuple(notes),
    )


def kind_of(rule: Rule) -> Literal["share", "grade", "loss"]:
    """What the mean of a rule is."""
    return "grade" if isinstance(rule, Grade) else "share" if is_share(rule) else "loss"


def range_of(rule: Rule, n_classes: int | None = None) -> tuple[float, float]:
    """The range of a rule for a number of classes; for any where it is None."""
    some = (_FEW_CLASSES, _MANY_CLASSES) if n_classes is None else (n_classes,)
    lows, highs = zip(*(rule.bounds(n) for n in some), strict=True)
    return min(lows), max(highs)


def interval_alone(tally: PairedTally, rule: Rule, n_classes: int, confidence: float) -> Interval:
    """The interval of the only model of a tally."""
    estimate = Estimate.of(tally, np.zeros((0, 0)), Units("rows"))
    losses = LossKind(kind_of(rule), range_of(rule, n_classes))
    return interval_of_model(tally, 0, losses, estimate, confidence)


def in_range(models: list[Model], rule: Rule) -> list[Model]:
    """Models with intervals cut to the range of the rule, which t intervals over few groups may exceed."""
    return [replace(model, interval=model.interval.within(range_of(rule))) for model in models]


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
    """The significant claims about traits of models; `errors` has sums of the distance of errors."""

    def p_values(trait: int) -> Floats:
        tallies = errors if errors is not None and trait == ERROR_DISTANCE else sums
        return _estimate(tallies, OF_TRAIT.format(trait), plan, row_wise).p_values()

    return Claims.of(list(traits), p_values, ordered=errors is not None, level=1 - plan.confidence)


def conclude(
    names: list[str],
    tally: PairedTally,
    estimate: Estimate,
    *,
    rule: str,
    reference: str | None,
    confidence: float,
    losses: LossKind | None = None,
    draws: Floats | None = None,
    flips: SignFlips | None = None,
) -> tuple[list[Model], list[Difference], list[str]]:
    """Models in order, their differences, and what to know about them, by one rule.

    Parameters
    ----------
    names : list of str
        The models; the tally may have one more, the reference.
    losses : LossKind, optional
        What the losses are; values that are no losses have t intervals.
    draws : array, optional
        Bootstrap means of all columns, for intervals and p-values; by default those of the t distribution.
    flips : SignFlips, optional
        Differences of swapped models, for their intervals and p-values.
    """
    if draws is not None:
        intervals, p_values = bootstrapped(draws, estimate, confidence)
    elif flips is not None:
        intervals, p_values = permuted(flips, estimate, confidence)
    else:
        intervals = estimate.intervals(confidence)
        # A single model has no differences: skip loading the distribution of their tests.
        p_values = estimate.p_values() if len(names) > 1 else np.full(len(estimate.mean), np.nan)
    few: list[Discordant | None] = [None] * (len(intervals) - tally.n_models)
    if losses is not None:
        for i in range(tally.n_models):
            if losses.kind != "loss" or draws is None:
                intervals[i] = interval_of_model(tally, i, losses, estimate, confidence)
        if losses.kind != "loss" and draws is None and flips is None and not losses.in_time and few:
            few = Discordant.of(tally, losses.bounds[1])
    for c, answers in enumerate(few, tally.n_models):
        if answers is not None:
            intervals[c] = answers.interval(confidence).by("Tango", intervals[c].caution)
            p_values[c] = answers.p_value
    skill = _skill(estimate, tally, names, reference, confidence, draws)
    # Where a difference is undefined the mean itself is not: it is infinite.
    of_models = np.arange(len(estimate.mean)) < tally.n_models
    mean = np.where(np.isnan(estimate.mean) & of_models, np.inf, estimate.mean)
    models, differences = results(
        *(names, tally.n_models, replace(estimate, mean=mean), intervals, p_values, skill),
        *(finite_parts(tally), tally.moments.std[1:], 1 - confidence, few),
    )
    return models, differences, infinite_notes(rule, models, tally.n_rows)


def finite_parts(tally: PairedTally) -> list[tuple[int, float]]:
    """For each column the number of infinite losses, and the mean of the finite ones.

    Without finite losses the mean is infinite for a model, and NaN for a difference.
    """
    counts, means = tally.moments.n_infinite[1:], tally.moments.finite_mean[1:].copy()
    models = means[: tally.n_models]
    models[np.isnan(models)] = np.inf
    return [(int(counts[i]), float(means[i])) for i in range(tally.n_columns)]


def infinite_notes(rule: str, models: list[Model], n_rows: int) -> list[str]:
    """A note that names the models with infinite losses, how they are ranked, and a rule with a floor."""
    affected = [f"{m.name} ({m.infinite_rows:,} of {n_rows:,} rows)" for m in models if m.infinite_rows]
    if not affected:
        return []
    why = "the outcome had probability zero"
    why += ", or the list is invalid," if "invalid_penalty=inf" in rule else ""
    sentences = [f"{rule} is infinite for {', '.join(affected)}: {why} there."]
    sentences.append("Its differences are computed over the other rows, without intervals and p-values.")
    if len(affected) > 1:
        sentences.append(
            "Such models are ranked by the number of these rows, then by the mean of the others."
        )
    floored = _with_floor(rule)
    if floored is not None:
        sentences.append(
            f"The rule {floored} scores such outcomes as if they had had probability {FLOOR:g}, a floor that "
            "makes it slightly improper."
        )
    return [" ".join(sentences)]


def _with_floor(name: str) -> Log | None:
    """The log score with this name, with a floor; None for other rules."""
    try:
        rule = stored_rule(name)
    except ParseError:
        # A rule of the caller, whose name is not registered.
        return None
    return replace(rule, clip=FLOOR) if isinstance(rule, Log) else None


def with_shapes(differences: list[Difference], rule: Rule, sums: PairedTally) -> list[Difference]:
    """Differences over rows with their skewness and the number of rows that differ, for tests of a margin.

    `sums` are those of a `MarginRecipe`.
    """
    means = sums.means.reshape(4, -1).T.tolist()
    return with_range([_with_shape(d, *shape) for d, shape in zip(differences, means, strict=True)], rule)


def with_range(differences: list[Difference], rule: Rule) -> list[Difference]:
    """Differences with the range of the rule as the size of unseen ones, if no unit differs.

    It is 1 if the rule has no range.
    """
    low, high = rule.bounds(_FEW_CLASSES)
    most = high - low if math.isfinite(high - low) else 1.0
    return [
        replace(d, differing=(*d.differing[:3], most)) if d.differing and not d.differing[3] else d
        for d in differences
    ]


def _with_shape(d: Difference, cubes: float, sizes: float, worse: float, better: float) -> Difference:
    """A difference over rows with its skewness, from the means of the columns of a `MarginRecipe`."""
    if not math.isfinite(d.difference) or not d.freedom > 0:
        return d
    n, mean, variance = d.freedom + 1, d.difference, d.deviation**2
    third = cubes - 3 * mean * (variance + mean**2) + 2 * mean**3
    skewness = third / d.deviation**3 / math.sqrt(n - 1) if d.deviation > 0 else 0.0
    size = float(size_of(np.asarray(sizes), np.asarray(variance + mean**2)))
    return replace(
        d,
        skewness=min(max(skewness, -1.0), 1.0),
        skewed_freedom=d.freedom,
        differing=(round(worse * n, 9), round(better * n, 9), n, size),
    )


def exact_notes(rule: str, differences: list[Difference]) -> list[str]:
    """A note for each difference with an exact test, because few answers differ."""
    return [
        f"{rule}, {d.a} - {d.b}: {answers.differing} of {answers.n:,} answers differ; McNemar's exact test "
        f"(mid-p {answers.mid_p:.3g}) and Tango's interval."
        for d in differences
        if (answers := d.answers) is not None
    ]


def caution_notes(rule: str, differences: list[Difference]) -> list[str]:
    """A note for each caution, with the differences that carry it."""
    cautions: dict[str, list[Difference]] = {
        d.interval.caution: [] for d in differences if d.interval.caution and d.interval.defined
    }
    for d in differences:
        if d.interval.caution in cautions:
            cautions[d.interval.caution].append(d)
    return [
        f"{rule}, {_named(pairs)}: {caution}; p-values may be too small and intervals too narrow."
        for caution, pairs in cautions.items()
    ]


def season_notes(rule: str, differences: list[Difference], seasons: Sequence[int], n_rows: int) -> list[str]:
    """A note for each season after which differences repeat; those of few seasons carry a caution."""
    about: dict[str, list[Difference]] = {}
    for d, length in zip(differences, seasons, strict=True):
        about.setdefault(about_season(length, n_rows), []).append(d)
    return [f"{rule}, {_named(pairs)}: {told}." for told, pairs in about.items() if told]


def _named(differences: Sequence[Difference]) -> str:
    """The pairs of some differences."""
    pairs = [f"{d.a} - {d.b}" for d in differences]
    return join(pairs if len(pairs) <= 3 else [*pairs[:2], f"{len(pairs) - 2} other pairs"])


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
        shape: tuple[Any, ...] = ()
        if tally.labels is not None:
            error, freedom, skewness, skewed_freedom = tally.contrast(i, base, ratio)
            shape = freedom, -skewness, skewed_freedom
        else:
            # Var(A - r B) from the variances of A, B and A - B, which are known.
            a, b, gap = estimate.error[[i, base, pair]] ** 2
            known = np.isfinite([a, b, gap]).all()
            error = math.sqrt(max(a + ratio**2 * b - ratio * (a + b - gap), 0.0)) if known else math.nan
        single = estimate.like(pair, 1 - ratio, error / estimate.mean[base], *shape)
        result.append((float(1 - ratio), single.intervals(confidence)[0]))
    return result


def no_skill(caution: str, confidence: float) -> Skill:
    """An undefined skill, with the reason."""
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
    few: Sequence[Discordant | None] = (),
) -> tuple[list[Model], list[Difference]]:
    """Models in order of their means, and their differences, from the estimates of each column.

    `few` has the answers of pairs of models that differ in few answers.
    """
    mean = estimate.mean
    pairs = [(a, b, n_columns + i) for i, (a, b) in enumerate(all_pairs(n_columns)) if b < len(names)]
    adjusted = holm(np.array([p_values[c] for _, _, c in pairs]))
    known: dict[str, Any] = {
        "standard_error": estimate.error,
        "freedom": estimate.freedom,
        "skewness": estimate.skewness,
        "deviation": deviations,
        "skewed_freedom": np.fmax(estimate.skewed_freedom, np.where(estimate.skewness, 0, estimate.freedom)),
    }
    known = {name: np.where(np.isfinite(mean), column, np.nan) for name, column in known.items()}

    def of_pair(c: int) -> dict[str, Any]:
        return {name: float(column[c]) for name, column in known.items()}

    none = [None] * len(all_pairs(n_columns))
    counts = [None if answers is None else astuple(answers) for answers in few] or none
    differing = (
        none if estimate.differing is None else [tuple(units) for units in estimate.differing.tolist()]
    )
    differences = [
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
            **of_pair(c),
            discordant=counts[c - n_columns],
            differing=differing[c - n_columns],
        )
        for (a, b, c), p in zip(pairs, adjusted, strict=True)
    ]
    order = sorted(range(len(names)), key=lambda i: (finite[i][0], finite[i][1] if finite[i][0] else mean[i]))
    models = [
        Model(names[i], float(mean[i]), intervals[i], rank + 1, "", *skill[i], *finite[i])
        for rank, i in enumerate(order)
    ]
    return lettered(models, differences, level), differences


def lettered(models: list[Model], differences: list[Difference], level: float) -> list[Model]:
    """Models with their letters, from the adjusted p-values of differences."""
    ranked = [model.name for model in models if math.isfinite(model.mean)]
    letters = letter_display(ranked, [(d.a, d.b) for d in differences if d.p_adjusted <= level])
    return [replace(model, letters=letters.get(model.name, "")) for model in models]


def in_order(models: Sequence[Model]) -> list[Model]:
    """Models by increasing mean, ranked."""
    ordered = sorted(models, key=lambda model: model.mean)
    return [replace(model, rank=rank + 1) for rank, model in enumerate(ordered)]


def in_subgroups(comparisons: Mapping[Any, Comparison], among: int) -> dict[Any, Comparison]:
    """Comparisons of the same models in several subgroups, with Holm's correction over all of them.

    If there are `among` subgroups in all, the p-values of those not given are assumed to be larger.
    """
    corrected = dict(comparisons)
    for rule in next(iter(corrected.values())).differences if corrected else ():
        gaps = [d for comparison in corrected.values() for d in comparison.differences[rule]]
        n_pairs = len(gaps) // len(corrected)
        adjusted = iter(holm(np.array([d.p_value for d in gaps]), among * n_pairs).tolist())
        for label, comparison in corrected.items():
            differences = [replace(d, p_adjusted=next(adjusted)) for d in comparison.differences[rule]]
            models = lettered(comparison.models[rule], differences, 1 - comparison.confidence)
            corrected[label] = replace(
                comparison,
                differences={**comparison.differences, rule: differences},
                models={**comparison.models, rule: models},
            )
    return corrected
