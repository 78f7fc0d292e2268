"""Models compared on the questions that they answered: all of them, those of each pair, or jointly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.answers import AnswerRecipe, AnswerSums, OfKnown, cautions, known_part
from verax.analyses.comparison.checks import check_among, check_margin, refuse
from verax.analyses.comparison.conclusions import (
    RowWise,
    in_order,
    in_subgroups,
    lettered,
    read_comparison,
)
from verax.analyses.comparison.joint import BaselineRecipe, Effects, JointRecipe, PeerRecipe, PseudoRecipe
from verax.analyses.comparison.opening import Asked, Missing, open_own
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.engines.pieces import all_pairs
from verax.errors import InputError, show
from verax.inference.estimates import Method, Units, holm
from verax.inference.intervals import Interval, Resampling
from verax.inputs.arrays import to_host
from verax.inputs.groups import check_several
from verax.inputs.handles import Handle
from verax.inputs.memory import each_label
from verax.inputs.rows import Baseline
from verax.scores.base import Rule
from verax.scores.registry import name_of

# The share of a mean that may be fitted without a caution, and the caution.
_MOSTLY, _FITTED = 0.5, "most of the mean is fitted"
_HOW = {
    "pairwise": "each pair on the questions that both answered",
    "joint": "joint estimate of models and questions",
}


def compare_own(
    y: Any,
    forecasts: Mapping[str, object] | None,
    rules: Sequence[Rule],
    asked: Asked,
    plan: Resampling,
    read: Mapping[str, Any],
    **how: Any,
) -> Comparison:
    """The comparison of forecasts of models with questions of their own."""
    if asked.ungraded == "wrong":
        raise InputError("must not be 'wrong' for forecasts, which are not graded", argument="ungraded")
    asked, rest = asked.reading(read)
    handle = open_own(y, forecasts, rules, asked, **rest)
    return compare_questions(handle, rules, asked, plan, **how)


def compare_questions(
    handle: Handle,
    rules: Sequence[Rule],
    asked: Asked,
    plan: Resampling,
    *,
    reference: str | None = None,
    margin: float | None = None,
    method: Method = "moments",
) -> Comparison:
    """The comparison of models on the questions of a handle, whose rows are `ScoredRows`."""
    check_among(handle, reference)
    margin, missing = check_margin(margin, rules), asked.missing
    refuse({"method": missing != "refuse" and method != "moments"}, "where models have different questions")
    refuse({"method": handle.kept is None and method != "moments"}, "with answers that are not in memory")
    refuse({"reference": missing == "pairwise" and reference is not None}, "with pairs of models")
    found = [_by_rule(handle, rule, missing, plan, reference, method) for rule in rules]
    first, bounds = found[0], asked.ungraded == "bounds"
    merged = replace(
        first,
        models={rule: own for each in found for rule, own in each.models.items()},
        differences={rule: own for each in found for rule, own in each.differences.items()},
        answers={rule: own for each in found for rule, own in each.answers.items()},
        gap_bounds={rule: own for each in found if bounds for rule, own in each.gap_bounds.items()},
        peers={rule: own for each in found for rule, own in each.peers.items()},
        baselines={rule: own for each in found for rule, own in each.baselines.items()},
        notes=tuple(dict.fromkeys(note for each in found for note in each.notes)),
        margin=margin,
        missing=missing,
    )
    column = asked.task_column(handle)
    if column is None:
        return merged
    own = {
        str(label): compare_questions(
            rows,
            rules,
            replace(asked, task=None),
            plan,
            reference=reference,
            margin=margin,
            method=method,
        )
        for label, rows in each_label(handle, column)
    }
    return replace(merged, tasks=in_subgroups(own, len(own)))


def _by_rule(
    handle: Handle,
    rule: Rule,
    missing: Missing,
    plan: Resampling,
    reference: str | None,
    method: Method,
) -> Comparison:
    """The comparison by one rule, with what became of all questions."""
    models, ends = handle.models, rule.bounds(handle.n_classes)
    answer = AnswerRecipe(models, rule)
    if missing == "refuse":
        recipe = PairedRecipe(models, (rule,))
        seen = handle.summarise({"sums": OfKnown(recipe, models, rule), "answers": answer})
        found = _read(handle, seen["sums"], models, rule, plan, reference, method, recipe)
    elif missing == "pairwise":
        found, seen = _pairwise(handle, rule, plan, answer)
    else:
        found, seen = _joint(handle, rule, plan, answer, reference)
    sums: AnswerSums = seen["answers"]
    answers = sums.answered(models, ends)
    left = [own for own in answers if own.ungraded]
    notes = [*found.notes, *cautions(answers, rule)]
    if left and missing == "refuse":
        n = answers[0].questions + answers[0].absent
        notes.insert(
            0,
            f"{name_of(rule)}: {found.n_rows:,} of {n:,} questions were answered and graded for "
            "every model; means and differences are about these.",
        )
    return replace(
        found,
        notes=tuple(notes),
        answers={name_of(rule): answers},
        gap_bounds={name_of(rule): sums.gaps(models, ends)} if left else {},
        peers={} if missing == "refuse" else {name_of(rule): _peers(handle, rule, plan)},
        baselines={} if missing == "refuse" else _baselines(handle, rule, plan),
    )


def _read(
    handle: Handle,
    sums: PairedSums,
    models: tuple[str, ...],
    rule: Rule,
    plan: Resampling,
    reference: str | None = None,
    method: Method = "moments",
    recipe: PairedRecipe | None = None,
) -> Comparison:
    """What paired sums of some models say."""
    if not sums.first.n_rows:
        raise InputError(
            "must be losses of at least one question for all models",
            argument="grades",
            kind="length",
            found=f"no question has one by {name_of(rule)}: {', '.join(map(show, models))}",
        )
    if sums.first.n_groups is not None and not handle.shard:
        check_several(sums.first.n_groups)
    row_wise = None
    if method != "moments" and recipe is not None and handle.kept is not None:
        part = known_part(handle.kept, models, rule)
        weights = None if part.rows.weights is None else to_host(part.rows.weights)
        units = Units.of(part.n_rows, weights, part.rows.groups, False, None)
        row_wise = RowWise(units, method, part, recipe.columns(part))
    return read_comparison(
        sums, list(models), [rule], ordered=False, reference=reference, plan=plan, row_wise=row_wise
    )


def _pairwise(handle: Handle, rule: Rule, plan: Resampling, answer: AnswerRecipe) -> tuple[Comparison, Any]:
    """Each model on its own questions, and each pair on those that both answered."""
    models = handle.models
    sets = [(name,) for name in models] + [(models[i], models[j]) for i, j in all_pairs(len(models))]
    recipes: dict[str, Any] = {
        f"{i}": OfKnown(PairedRecipe(own, (rule,)), own, rule) for i, own in enumerate(sets)
    }
    joint = JointRecipe(models, rule)
    # Files of earlier versions have no such sums.
    known = {"joint": joint} if handle.knows(joint) else {}
    seen = handle.summarise({**recipes, "answers": answer, **known})
    alone = [_read(handle, seen[f"{i}"], (name,), rule, plan) for i, name in enumerate(models)]
    name, notes = name_of(rule), []
    differences = []
    for i, pair in enumerate(sets[len(models) :], len(models)):
        if not seen[f"{i}"].first.n_rows:
            unknown = Interval.undefined("no shared question", confidence=plan.confidence)
            differences.append(Difference(pair[0], pair[-1], math.nan, unknown, math.nan, math.nan))
            continue
        differences += _read(handle, seen[f"{i}"], pair, rule, plan).differences[name]
    adjusted = holm(np.array([d.p_value for d in differences]))
    differences = [replace(d, p_adjusted=float(p)) for d, p in zip(differences, adjusted, strict=True)]
    own = [found.models[name][0] for found in alone]
    if known and len(seen["joint"].components) == 1:
        # Answering only easy questions must not help.
        means = Effects.of(seen["joint"], models, rule, handle.n_classes).means
        order = np.argsort(means, kind="stable").tolist()
        notes.append("Means are over different questions; models are ranked by the joint estimate.")
    else:
        order = np.argsort([model.mean for model in own], kind="stable").tolist()
        notes.append(
            "Means are over different questions, and no chain of shared questions connects all models: "
            "ranks compare unlike questions."
        )
    ranked = [replace(own[i], rank=rank + 1) for rank, i in enumerate(order)]
    first = alone[0]
    return (
        replace(
            first,
            models={name: lettered(ranked, differences, 1 - plan.confidence)},
            differences={name: differences},
            n_rows=int((seen["answers"].questions + seen["answers"].absent)[0]),
            method=f"{first.method}, {_HOW['pairwise']}",
            notes=tuple(notes),
        ),
        seen,
    )


def _joint(
    handle: Handle, rule: Rule, plan: Resampling, answer: AnswerRecipe, reference: str | None
) -> tuple[Comparison, Any]:
    """All models on all questions: effects first, then the sums of pseudo-losses."""
    models = handle.models
    seen = handle.summarise({"answers": answer, "joint": JointRecipe(models, rule)})
    effects = Effects.of(seen["joint"], models, rule, handle.n_classes)
    first = handle.summarise({"sums": PseudoRecipe(effects, rule)})["sums"].of_rule(rule)
    effects = replace(effects, shift=effects.means - first.means[: len(models)])
    sums = handle.summarise({"sums": PseudoRecipe(effects, rule)})["sums"]
    found = _read(handle, sums, models, rule, plan, reference)
    name = name_of(rule)
    few = {model: share for model, share in zip(models, effects.fitted, strict=True) if share > _MOSTLY}
    own = [
        replace(model, interval=_with_caution(model.interval, _FITTED)) if model.name in few else model
        for model in found.models[name]
    ]
    scale = "" if effects.ends is None else ", on the logit scale"
    notes = [
        "Means are over all questions. Losses of questions that a model did not answer are fitted, from the "
        f"difficulty that the answers of other models show{scale}."
    ]
    notes += [
        f"Caution: {model} has answers to {100 * (1 - share):.0f}% of the questions; the rest of its mean is "
        "fitted."
        for model, share in few.items()
    ]
    return replace(
        found,
        models={name: own},
        method=f"{found.method}, {_HOW['joint']}",
        notes=(*found.notes, *(notes if effects.fitted.any() else ())),
    ), seen


def _with_caution(interval: Interval, caution: str) -> Interval:
    return interval.by(interval.method, "; ".join(filter(None, (interval.caution, caution))))


def _peers(handle: Handle, rule: Rule, plan: Resampling) -> list[Model]:
    """The peer score of each model: its loss minus the mean loss of the others on the same questions."""
    return _alone(handle, {name: PeerRecipe(handle.models, name, rule) for name in handle.models}, rule, plan)


def _baselines(handle: Handle, rule: Rule, plan: Resampling) -> dict[str, list[Model]]:
    """The baseline score of each model by a rule, for forecasts; none for grades."""
    part = handle.kept
    if part is None or not all(own.has(Baseline(rule)) for own in part.models.values()):  # type: ignore[attr-defined]
        return {}
    recipes = {name: BaselineRecipe(name, rule) for name in handle.models}
    return {name_of(rule): _alone(handle, recipes, rule, plan)}


def _alone(handle: Handle, recipes: Mapping[str, Any], rule: Rule, plan: Resampling) -> list[Model]:
    """The mean of one column of each model, by its recipe."""
    seen = handle.summarise(recipes)
    found = []
    for name in handle.models:
        if seen[name].first.n_rows:
            found += read_comparison(
                seen[name],
                [name],
                [rule],
                ordered=False,
                reference=None,
                plan=plan,
                losses_of_rules=False,
            ).models[name_of(rule)]
    return in_order(found)
