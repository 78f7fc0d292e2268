"""Models compared on the questions they answered: those that all share, those of each pair, or jointly."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, cast, get_args

import numpy as np

from verax.analyses.comparison.answers import (
    AnswerRecipe,
    AnswerSums,
    ModelAnswers,
    OfKnown,
    Under,
    cautions,
    known_part,
)
from verax.analyses.comparison.checks import check_among, check_margin, refuse
from verax.analyses.comparison.conclusions import (
    RowWise,
    in_order,
    in_subgroups,
    lettered,
    read_comparison,
)
from verax.analyses.comparison.grades import check_graded, grade_scale, in_grades
from verax.analyses.comparison.joint import BaselineRecipe, Effects, JointRecipe, PeerRecipe, PseudoRecipe
from verax.analyses.comparison.opening import Missing, QuestionOptions, open_grades
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.tables import shown_p
from verax.analyses.comparison.ungraded import Counted, Ungraded, Unsettled, in_spite
from verax.common.checks import check_choice
from verax.common.texts import percent
from verax.common.wings import answer_to
from verax.engines.pieces import all_pairs
from verax.errors import InputError, show
from verax.inference.answers import sign_test
from verax.inference.estimates import Method, Units, holm
from verax.inference.intervals import Interval, Resampling, WeightsAre
from verax.inputs.arrays import to_host
from verax.inputs.groups import check_several
from verax.inputs.handles import Handle, refuse_beside
from verax.inputs.memory import handles_by_label
from verax.inputs.rows import Baseline
from verax.scores.base import Rule
from verax.scores.grades import Grade
from verax.scores.registry import as_rules, default_rules, name_of

# The share of a mean that may be fitted without a caution, and the caution.
_MOSTLY, _FITTED = 0.5, "most of the mean is fitted"
# The level at which numbers of ungraded answers differ between models, and differences that are none.
_MISSING_LEVEL, _ROUNDING = 0.05, 1e-12
_HOW = {
    "pairwise": "each pair on the questions that both answered",
    "joint": "joint estimate of models and questions",
}


def compare_questions(
    handle: Handle,
    rules: Sequence[Rule],
    options: QuestionOptions,
    plan: Resampling,
    *,
    reference: str | None = None,
    margin: float | None = None,
    method: Method = "moments",
) -> Comparison:
    """Compare models on the questions of a handle, whose rows are `ScoredRows`."""
    check_among(handle, reference)
    margin, missing = check_margin(margin, rules), options.missing
    refuse({"method": missing != "refuse" and method != "moments"}, "where models have different questions")
    refuse({"method": handle.kept is None and method != "moments"}, "with answers that are not in memory")
    refuse({"reference": missing == "pairwise" and reference is not None}, "with pairs of models")
    comparisons = [_by_rule(handle, rule, missing, plan, reference, method) for rule in rules]
    by_rule: dict[str, Any] = {
        name: {rule: lines for one in comparisons for rule, lines in getattr(one, name).items()}
        for name in ("models", "differences", "answers", "gap_bounds", "peers", "baselines")
    }
    chosen = options.ungraded not in ("by-reason", "bounds")
    if chosen:
        by_rule["gap_bounds"] = {}
    merged = replace(
        comparisons[0],
        **by_rule,
        notes=tuple(dict.fromkeys(note for one in comparisons for note in one.notes)),
        margin=margin,
        missing=missing,
        unsettled=[] if chosen else _unsettled(handle, comparisons[0], rules[0], missing, plan),
    )
    column = options.task_column(handle)
    if column is None:
        return merged
    tasks = {
        str(label): compare_questions(
            rows,
            rules,
            replace(options, task=None),
            plan,
            reference=reference,
            margin=margin,
            method=method,
        )
        for label, rows in handles_by_label(handle, column)
    }
    return replace(merged, tasks=in_subgroups(tasks, len(tasks)))


def _by_rule(
    handle: Handle,
    rule: Rule,
    missing: Missing,
    plan: Resampling,
    reference: str | None,
    method: Method,
) -> Comparison:
    """Compare by one rule, with the number of answers of each model."""
    models, ends = handle.models, rule.bounds(handle.n_classes)
    answer = AnswerRecipe(models, rule)
    if missing == "refuse":
        recipe = PairedRecipe(models, (rule,))
        summaries = handle.summarise({"sums": OfKnown(recipe, models, rule), "answers": answer})
        comparison = _read(handle, summaries["sums"], models, rule, plan, reference, method, recipe)
    elif missing == "pairwise":
        comparison, summaries = _pairwise(handle, rule, plan, answer)
    else:
        comparison, summaries = _joint(handle, rule, plan, answer, reference)
    sums: AnswerSums = summaries["answers"]
    answers = sums.answered(models, ends)
    left = [model for model in answers if model.ungraded]
    notes = [*comparison.notes, *cautions(answers, rule), *_differing(sums, answers)]
    notes += [line for model in answers for line in in_spite(model.reasons, model.asked, f" of {model.name}")]
    if any(model.ungraded > model.counted for model in answers) and missing == "refuse":
        n = answers[0].questions + answers[0].absent
        notes.insert(
            0,
            f"{name_of(rule)}: {comparison.n_rows:,} of {n:,} questions were answered and graded for "
            "every model; means and differences are about these.",
        )
    found = replace(
        comparison,
        notes=tuple(notes),
        answers={name_of(rule): answers},
        gap_bounds={name_of(rule): sums.gaps(models, ends)} if left else {},
        peers={} if missing == "refuse" else {name_of(rule): _peers(handle, rule, plan)},
        baselines={} if missing == "refuse" else _baselines(handle, rule, plan),
    )
    return in_grades(found, rule.high) if isinstance(rule, Grade) else found


def _differing(sums: AnswerSums, answers: Sequence[ModelAnswers]) -> list[str]:
    """A caution for each pair of models of which one has a larger share of ungraded answers."""
    sentences = []
    for c, (i, j) in enumerate(all_pairs(len(answers))):
        p = sign_test(int(sums.more[c]), int(sums.fewer[c]))
        if p < _MISSING_LEVEL:
            a, b = answers[i], answers[j]
            sentences.append(
                f"Caution: answers are ungraded more often for one model: {a.ungraded:,} of {a.asked:,} of "
                f"{a.name}, {b.ungraded:,} of {b.asked:,} of {b.name} (McNemar's p {shown_p(p)})."
            )
    return sentences


def _unsettled(
    handle: Handle, found: Comparison, rule: Rule, missing: Missing, plan: Resampling
) -> list[Unsettled]:
    """Pairs whose difference of grades depends on what ungraded answers count as."""
    if not isinstance(rule, Grade):
        return []
    if not handle.shard and not any(model.ungraded for model in found.answers[name_of(rule)]):
        return []
    models = handle.models
    sets = [models] if missing == "refuse" else [(models[i], models[j]) for i, j in all_pairs(len(models))]
    ways: tuple[Counted, ...] = ("wrong", "exclude")
    recipes = {
        f"{how} {i}": Under(PairedRecipe(pair, (rule,)), pair, rule, how)
        for how in ways
        for i, pair in enumerate(sets)
    }
    # Files of earlier versions have no such sums.
    if not all(handle.knows(recipe) for recipe in recipes.values()):
        return []
    summaries = handle.summarise(recipes)
    by_way = []
    for way in ways:
        gaps: list[Difference] = []
        for i, pair in enumerate(sets):
            sums = summaries[f"{way} {i}"]
            if sums.first.n_rows:
                gaps += _read(handle, sums, pair, rule, plan).differences[name_of(rule)]
        adjusted = holm(np.array([gap.p_value for gap in gaps]))
        tested = [replace(gap.other_way, p_adjusted=float(p)) for gap, p in zip(gaps, adjusted, strict=True)]
        by_way.append({(gap.a, gap.b): gap for gap in tested})
    wrong, left_out = by_way
    return [
        Unsettled(*pair, gap.difference, gap.interval, left_out[pair].difference, left_out[pair].interval)
        for pair, gap in wrong.items()
        if pair in left_out and _claim(gap, plan) != _claim(left_out[pair], plan)
    ]


def _claim(gap: Difference, plan: Resampling) -> tuple[bool, float]:
    """Whether a difference is significant, and its sign."""
    sign = math.copysign(1, gap.difference) if abs(gap.difference) > _ROUNDING else 0.0
    return gap.p_adjusted <= 1 - plan.confidence, sign


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
    """Compare some models from their paired sums."""
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
        f"{i}": OfKnown(PairedRecipe(models_of, (rule,)), models_of, rule) for i, models_of in enumerate(sets)
    }
    joint = JointRecipe(models, rule)
    # Files of earlier versions have no such sums.
    known = {"joint": joint} if handle.knows(joint) else {}
    summaries = handle.summarise({**recipes, "answers": answer, **known})
    alone = [_read(handle, summaries[f"{i}"], (name,), rule, plan) for i, name in enumerate(models)]
    name, notes = name_of(rule), []
    differences = []
    for i, pair in enumerate(sets[len(models) :], len(models)):
        if not summaries[f"{i}"].first.n_rows:
            unknown = Interval.undefined("no shared question", confidence=plan.confidence)
            differences.append(Difference(pair[0], pair[-1], math.nan, unknown, math.nan, math.nan))
            continue
        differences += _read(handle, summaries[f"{i}"], pair, rule, plan).differences[name]
    adjusted = holm(np.array([d.p_value for d in differences]))
    differences = [replace(d, p_adjusted=float(p)) for d, p in zip(differences, adjusted, strict=True)]
    lines = [of_model.models[name][0] for of_model in alone]
    if known and len(summaries["joint"].components) == 1:
        # Otherwise a model could gain by answering easy questions only.
        means = Effects.of(summaries["joint"], models, rule, handle.n_classes).means
        order = np.argsort(means, kind="stable").tolist()
        notes.append("Means are over different questions; models are ranked by the joint estimate.")
    else:
        order = np.argsort([model.mean for model in lines], kind="stable").tolist()
        notes.append(
            "Means are over different questions, and no chain of shared questions connects all models: "
            "ranks compare unlike questions."
        )
    ranked = [replace(lines[i], rank=rank + 1) for rank, i in enumerate(order)]
    first = alone[0]
    return (
        replace(
            first,
            models={name: lettered(ranked, differences, 1 - plan.confidence)},
            differences={name: differences},
            n_rows=int((summaries["answers"].questions + summaries["answers"].absent)[0]),
            method=f"{first.method}, {_HOW['pairwise']}",
            notes=tuple(notes),
        ),
        summaries,
    )


def _joint(
    handle: Handle, rule: Rule, plan: Resampling, answer: AnswerRecipe, reference: str | None
) -> tuple[Comparison, Any]:
    """All models on all questions: first the effects, then the sums of pseudo-losses."""
    models = handle.models
    summaries = handle.summarise({"answers": answer, "joint": JointRecipe(models, rule)})
    effects = Effects.of(summaries["joint"], models, rule, handle.n_classes)
    first = handle.summarise({"sums": PseudoRecipe(effects, rule)})["sums"].of_rule(rule)
    effects = replace(effects, shift=effects.means - first.means[: len(models)])
    sums = handle.summarise({"sums": PseudoRecipe(effects, rule)})["sums"]
    comparison = _read(handle, sums, models, rule, plan, reference)
    name = name_of(rule)
    few = {model: share for model, share in zip(models, effects.fitted, strict=True) if share > _MOSTLY}
    ranked = [
        replace(model, interval=_with_caution(model.interval, _FITTED)) if model.name in few else model
        for model in comparison.models[name]
    ]
    scale = "" if effects.ends is None else ", on the logit scale"
    notes = [
        "Means are over all questions. Losses of questions that a model did not answer are fitted, from the "
        f"difficulty that the answers of other models show{scale}."
    ]
    notes += [
        f"Caution: {model} has answers to {percent(1 - share, 0)} of the questions; the rest of its mean is "
        "fitted."
        for model, share in few.items()
    ]
    return replace(
        comparison,
        models={name: ranked},
        method=f"{comparison.method}, {_HOW['joint']}",
        notes=(*comparison.notes, *(notes if effects.fitted.any() else ())),
    ), summaries


def _with_caution(interval: Interval, caution: str) -> Interval:
    return interval.by(interval.method, "; ".join(filter(None, (interval.caution, caution))))


def _peers(handle: Handle, rule: Rule, plan: Resampling) -> list[Model]:
    """The peer score of each model: its loss minus the mean loss of the others on the same questions."""
    return _alone(handle, {name: PeerRecipe(handle.models, name, rule) for name in handle.models}, rule, plan)


def _baselines(handle: Handle, rule: Rule, plan: Resampling) -> dict[str, list[Model]]:
    """The baseline score of each model by a rule; empty for grades."""
    part = handle.kept
    if part is None or not all(rows.has(Baseline(rule)) for rows in part.models.values()):  # type: ignore[attr-defined]
        return {}
    recipes = {name: BaselineRecipe(name, rule) for name in handle.models}
    return {name_of(rule): _alone(handle, recipes, rule, plan)}


def _alone(handle: Handle, recipes: Mapping[str, Any], rule: Rule, plan: Resampling) -> list[Model]:
    """The mean of one column for each model, from its recipe."""
    summaries = handle.summarise(recipes)
    models = []
    for name in handle.models:
        if summaries[name].first.n_rows:
            models += read_comparison(
                summaries[name],
                [name],
                [rule],
                ordered=False,
                reference=None,
                plan=plan,
                losses_of_rules=False,
            ).models[name_of(rule)]
    return in_order(models)


P = ParamSpec("P")
# Options of `compare` in versions that compared grades with it.
_OF_GRADES = ("grades", "grade_range", "ungraded")


def compare_grades(
    grades: Mapping[str, object] | Handle,
    p: Mapping[str, object] | None = None,
    *,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    task: object = None,
    missing: Missing = "refuse",
    ungraded: Ungraded = "by-reason",
    reasons: object = None,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    method: Method = "moments",
    reference: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    weights: object = None,
    weights_are: WeightsAre = "importance",
    groups: object = None,
    invalid: str = "raise",
    judge: Mapping[str, object] | None = None,
    checks: object = None,
) -> Comparison:
    """Mean grades of several models' answers, and which of their differences are significant.

    The loss of an answer is the best possible grade minus its grade.

    Parameters
    ----------
    grades : mapping of str to array_like of shape (N,), or Handle
        The grade of each answer, by model name: 1 for right and 0 for wrong, or a rubric or judge score in
        `grade_range`. Missing grades mean ungraded answers. Or answers that `scan(..., grades=...)` has
        opened.
    p : mapping of str to array_like of shape (N,), optional
        Forecasts: the confidence of each model in its answers, as the probability that an answer is right.
        They are compared by rules as well.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    ids : array_like of shape (N,) or mapping of str to array_like, optional
        The question of each row, by which rows are matched; by model name if models have different rows.
    epochs : array_like of shape (N,) or mapping of str to array_like, optional
        Which repeat of its question each row is, if questions were asked several times. A question then has
        one grade, the mean over its repeats, and counts once.
    task : array_like of shape (N,), mapping of str to array_like, or str, optional
        The task of each row; for a handle, the name of the column. Models are also compared within each task,
        with Holm's correction over all.
    missing : {"refuse", "pairwise", "joint"}, default "refuse"
        What to do if some models were not asked some questions. "pairwise" compares each pair on the
        questions that both answered. "joint" estimates all models on all questions, with intervals clustered
        by question: missing grades are fitted on the logit scale, from the difficulty that the answers of
        other models show.
    ungraded : {"by-reason", "bounds", "exclude", "wrong"}, default "by-reason"
        What to do with ungraded answers. They are always counted. "by-reason" gives the worst grade to those
        whose `reasons` are the model's doing, leaves out the others, and adds bounds of means and differences
        with all ungraded answers at the worst and the best grade; "bounds" leaves out all of them and adds
        bounds; "exclude" adds none. "wrong" gives all of them the worst grade.
    reasons : array_like of shape (N,) or mapping of str to array_like, optional
        What became of each answer: limit, empty, unparsable or refused, which are the model's doing, error or
        unscored, which are not, or missing. A grade stands whatever became of its answer.
    rule : Rule, str or sequence of these, optional
        The rules for confidences; by default Brier and log score.
    method : {"moments", "bootstrap", "permutation"}, default "moments"
        How intervals and p-values are computed; see `compare`.
    reference : str, optional
        The model that skill is measured against.
    margin : float, optional
        Non-inferiority margin: how much the mean grade of a model may be below that of another and still
        count as not worse. Each model is tested against each other one.
    confidence : float, default 0.95
        Confidence level of the intervals.
    bootstrap : int, default 2000
        Number of bootstrap replicates, or of permutations.
    seed : int, default 0
        Random seed.
    weights : array_like of shape (N,) or mapping of str to array_like, optional
        Importance weights of the answers.
    weights_are : {"importance", "counts"}, default "importance"
        What weights are. "importance": how much each row counts; only their ratios matter. "counts": a row of
        weight 3 is three rows.
    groups : array_like of shape (N,), mapping of str to array_like, or two of them, optional
        Labels of clusters whose answers belong together.
    invalid : {"raise", "skip"}, default "raise"
        Whether confidences outside 0 to 1 are refused, or not scored.
    judge : mapping of str to array_like of shape (N,), optional
        The grades that a judge, such as a language model, gave to all answers of each model. `grades` are
        then those of people, missing where nobody checked, and differences are corrected by them. Models
        without checks are refused, because a judge may be kinder to one model than to another.
    checks : {"random"}, or mapping of str to array_like of shape (N,), optional
        How the answers that people graded were chosen: at random, or with the probability given for each
        model.

    Returns
    -------
    Comparison
        Mean losses and grades, differences and tests.

    Raises
    ------
    InputError
        If grades, ids or options are invalid. It names the argument, the rows and the fix.

    See Also
    --------
    compare : The same for forecasts.
    evaluate_grades : The mean grade of one model.

    Examples
    --------
    One of the answers was not graded:

    >>> import verax as vx
    >>> grades = {"a": [1, 1, 1, 0, 1], "b": [1, 0, None, 0, 1]}
    >>> found = vx.compare_grades(grades, ids=["q1", "q2", "q3", "q4", "q5"])
    >>> found.n_rows, found.difference("a", "b").difference, found.gap_bounds["grade"][0].high
    (4, 0.25, 0.4)
    """
    if judge is not None:
        unused = {"p": p, "task": task, "rule": rule, "reference": reference, "margin": margin}
        unused |= {"weights": weights, "reasons": reasons}
        for name in (name for name, value in unused.items() if value is not None):
            raise InputError("cannot be used with `judge`", argument=name)
        kept = {"ids": ids, "epochs": epochs, "groups": groups, "confidence": confidence}
        corrected = answer_to("judged comparison")(
            grades, judge, checks=checks, grade_range=grade_range, **kept
        )
        return cast(Comparison, corrected)
    check_choice("invalid", invalid, ("raise", "skip"))
    check_choice("method", method, get_args(Method))
    plan = Resampling.checked(confidence, bootstrap, seed, least=100, weights_are=weights_are)
    options = QuestionOptions(ids, epochs, task, missing, ungraded, groups, weights, invalid == "skip")
    options = replace(options, reasons=reasons)
    scale = grade_scale(grade_range)
    if p is None and rule is not None:
        raise InputError("must be left out with grades: the grade is the loss", argument="rule")
    how: dict[str, Any] = {"reference": reference, "margin": margin, "method": method}
    if isinstance(grades, Handle):
        beside = {"p": p, "ids": ids, "epochs": epochs, "groups": groups, "weights": weights}
        beside["reasons"] = reasons
        refuse_beside([name for name, value in beside.items() if value is not None])
        scale = check_graded(grades, scale, ungraded)
        return compare_questions(grades, [scale], options, plan, **how)
    rules = [] if p is None else as_rules(default_rules(ordered=False) if rule is None else rule)
    handle = open_grades(grades, scale, options, confidences=p, rules=rules)
    return compare_questions(handle, [scale, *rules], options, plan, **how)


def hands_on_grades(compare: Callable[P, Comparison]) -> Callable[P, Comparison]:
    """Let `compare` accept grades, as in earlier versions: warn, and call `compare_grades`."""

    @wraps(compare)
    def handing_on(*args: Any, **kwargs: Any) -> Comparison:
        y = args[0] if args else kwargs.get("y")
        scanned = isinstance(y, Handle) and y.graded is not None
        if not scanned and not any(name in kwargs for name in _OF_GRADES):
            return compare(*args, **kwargs)
        if not scanned and kwargs.get("grades") is None:
            _warn("`ungraded` and `grade_range` are for vx.compare_grades(grades, ...).")
            left = kwargs.pop("ungraded", "bounds")
            kwargs.pop("grade_range", None)
            comparison = compare(*args, **kwargs)
            return replace(comparison, gap_bounds={}) if left == "exclude" else comparison
        _warn("Grades are compared by vx.compare_grades(grades, ...).")
        arguments = dict(zip(("y", "forecasts"), args, strict=False)) | kwargs
        if scanned:
            refuse_beside([name for name in ("grades", "forecasts") if arguments.get(name) is not None])
        elif arguments.get("y") is not None:
            raise InputError("must be left out with grades, which say what was right", argument="y")
        grades = arguments.pop("y", None) if scanned else arguments.pop("grades")
        arguments.pop("y", None)
        return compare_grades(grades, arguments.pop("forecasts", None), **arguments)

    return handing_on


def _warn(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=3)
