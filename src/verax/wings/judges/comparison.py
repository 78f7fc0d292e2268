"""Models whose answers one judge graded, compared by what people would have given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.answers import ModelAnswers
from verax.analyses.comparison.conclusions import in_order, lettered
from verax.analyses.comparison.grades import grade_scale
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.common.ids import numbered
from verax.engines.pieces import all_pairs
from verax.errors import InputError, Remedy, join
from verax.inference.estimates import holm
from verax.inference.findings import in_brackets
from verax.inference.intervals import Interval, check_confidence, t_quantile
from verax.inputs.arrays import Ints, to_array, to_host
from verax.inputs.questions import Questions, column_of
from verax.scores.grades import Grade
from verax.scores.registry import name_of
from verax.wings.judges.analysis import BY_GRADE, Checks, read_checks
from verax.wings.judges.corrected import JudgedAnswers, corrected_mean, difference, pad_of
from verax.wings.repeats.unitmeans import FEW_DIFFER, UnitMean

_ROUNDING = 1e-12


def compared(
    human: object,
    judge: object,
    *,
    checks: object = None,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    groups: object = None,
    confidence: float = 0.95,
) -> Comparison:
    """Models compared by the grades of a judge, corrected by those of people; see `compare_grades`."""
    check_confidence(confidence)
    scale = grade_scale(grade_range)
    models = _named(human, judge)
    if isinstance(checks, str) and checks == BY_GRADE:
        raise InputError(
            "cannot be 'by-grade' for differences of models",
            argument="checks",
            remedies=[Remedy("Pass the probability of each answer to be checked, by model name.")],
        )
    sizes = {name: _length(of_model) for name, of_model in models.items()}
    questions = Questions.of(sizes, ids, epochs)
    questions.refuse_absent()
    if groups is None and questions.repeated:
        groups = questions.ids
    elif groups is not None:
        groups = questions.column(groups, "groups", sizes)
    found = {name: _of_model(name, human, judge, checks, scale, questions, groups) for name in models}
    read = _in_common(found)
    return _concluded(read, found, scale, confidence)


def _named(human: object, judge: object) -> Mapping[str, object]:
    if not isinstance(judge, Mapping) or len(judge) < 2:
        raise InputError(
            "must be a mapping from the names of two models or more to the judge's grades of their answers",
            argument="judge",
            kind="type",
        )
    if not isinstance(human, Mapping):
        raise InputError(
            "must be a mapping from the names of models to people's grades, because a judge may be kinder to "
            "one model than to another",
            argument="grades",
            kind="type",
        )
    return {str(name): values for name, values in judge.items()}


def _length(values: object) -> int:
    return len(to_host(to_array(values, "judge")[0]))


def _of_model(
    name: str,
    human: Any,
    judge: Any,
    checks: object,
    scale: Grade,
    questions: Questions,
    groups: Any,
) -> Checks:
    """The grades of one model in the order of the questions."""
    places = questions.at[name]
    by_judge = column_of(judge, name, len(places), "judge")
    if name not in human or not _any_known(human[name]):
        raise _unchecked(name, judge)
    by_people = np.asarray(to_host(to_array(human[name], "grades")[0]))[places]
    of_checks = checks if checks is None or isinstance(checks, str) else _probabilities(checks, name, places)
    return read_checks(by_people, by_judge[places], of_checks, scale, groups, repr(name))


def _probabilities(checks: object, name: str, places: Ints) -> object:
    return column_of(checks, name, len(places), "checks")[places]


def _any_known(values: object) -> bool:
    raw = to_host(to_array(values, "grades")[0])
    return any(value is not None and value == value for value in raw.ravel().tolist())


def _unchecked(name: str, judge: Mapping[str, object]) -> InputError:
    """The refusal of a difference where a model has no checks, with what the judge alone says of it."""
    other = next(model for model in judge if model != name)
    a, b = (np.asarray(to_host(to_array(judge[model], "judge")[0]), float) for model in (name, other))
    found = f"people graded no answer of {name}; the judge may be kinder to it, by an unknown amount"
    if len(a) == len(b):
        gaps = (a - b)[~np.isnan(a - b)]
        mean = UnitMean.of(gaps)
        half = t_quantile(mean.freedom, 0.95) * math.sqrt(mean.variance)
        safe = abs(mean.value) - half
        found += f". The judge's own difference to {other} is {mean.value:+.3g}"
        found += (
            f", whose sign is safe while the judge favours neither by more than {safe:.2g}"
            if safe > 0
            else ", whose sign is open even so"
        )
    return InputError(
        "must have grades by people of every model, for a difference that is corrected",
        argument="grades",
        kind="missing",
        found=found,
        remedies=[Remedy("Let people grade answers of both models, best to the same questions.")],
    )


def _in_common(found: Mapping[str, Checks]) -> dict[str, JudgedAnswers]:
    """The answers to questions that the judge graded for every model."""
    rows = None
    for of_model in found.values():
        rows = of_model.rows if rows is None else np.intersect1d(rows, of_model.rows)
    assert rows is not None
    read = {}
    for name, of_model in found.items():
        at = np.searchsorted(of_model.rows, rows)
        judged = of_model.judged
        read[name] = JudgedAnswers(
            judged.human[at],
            judged.judge[at],
            None if judged.groups is None else _again(judged.groups[at]),
            None if judged.weights is None else judged.weights[at],
        )
    return read


def _again(codes: Ints) -> Ints:
    return np.asarray(np.unique(np.asarray(numbered([codes])[0][0]), return_inverse=True)[1])


def _concluded(
    read: Mapping[str, JudgedAnswers], found: Mapping[str, Checks], scale: Grade, confidence: float
) -> Comparison:
    rule, bounds = name_of(scale), (scale.low, scale.high)
    largest = scale.high - scale.low
    models = []
    for name, judged in read.items():
        mean = corrected_mean(judged).mean
        interval = mean.within(bounds, confidence, pad_of(judged.human, bounds))
        interval = interval.by(f"{interval.method}, corrected by people", mean.caution)
        none = Interval.undefined("there is no reference", confidence=confidence)
        models.append(Model(name, mean.value, interval, 0, "", math.nan, none, 0, mean.value))
    names = list(read)
    gaps, notes = [], []
    for i, j in all_pairs(len(names)):
        a, b = read[names[i]], read[names[j]]
        gaps.append(_difference(names[i], names[j], difference(a, b, largest), confidence))
        notes.append(_favours(names[i], names[j], a, b, largest, confidence))
    adjusted = holm(np.array([gap.p_value for gap in gaps]))
    gaps = [replace(gap, p_adjusted=float(p)) for gap, p in zip(gaps, adjusted, strict=True)]
    ordered = in_order([replace(model, mean=-model.mean) for model in models])
    ranked = lettered([replace(model, mean=-model.mean) for model in ordered], gaps, 1 - confidence)
    n = len(next(iter(read.values())).judge)
    first = next(iter(read.values()))
    return Comparison(
        models={rule: ranked},
        differences={rule: gaps},
        traits={},
        n_rows=n,
        n_groups=None if first.groups is None else int(first.groups.max()) + 1,
        method="Student's t, a judge's grades corrected by people",
        confidence=confidence,
        reference=None,
        notes=(*_of_checks(read, found), *notes),
        missing="refuse",
        answers={rule: [_answers(name, judged) for name, judged in read.items()]},
    )


def _answers(name: str, judged: JudgedAnswers) -> ModelAnswers:
    mean, n = float(judged.judge.mean()), len(judged.judge)
    return ModelAnswers(name, n, n, 0, 0, mean, mean, n)


def _difference(a: str, b: str, mean: UnitMean, confidence: float) -> Difference:
    return Difference(
        a,
        b,
        mean.value,
        mean.interval(confidence),
        mean.p_value,
        mean.p_value,
        finite_difference=mean.value,
        standard_error=math.sqrt(mean.variance),
        freedom=mean.freedom,
        skewed_freedom=mean.freedom,
        higher_is_better=True,
    )


def _of_checks(read: Mapping[str, JudgedAnswers], found: Mapping[str, Checks]) -> list[str]:
    counts = join([f"{judged.n_checked:,} of {name}" for name, judged in read.items()])
    stated = next(iter(found.values())).stated
    assumed = "" if stated else " This assumes that they were chosen at random."
    said = [f"People checked {counts}.{assumed}"]
    said.append("Differences are corrected question by question, so they need not be those of the means.")
    both = np.logical_and.reduce([judged.checked for judged in read.values()])
    if both.sum() < FEW_DIFFER:
        said.append(f"Caution: people checked the answers of all models to {int(both.sum())} questions only.")
    left = sum(of_model.left for of_model in found.values())
    if left:
        said.append(f"Caution: the judge left {left:,} answers ungraded; their questions are left out.")
    return said


def _favours(
    a: str, b: str, of_a: JudgedAnswers, of_b: JudgedAnswers, largest: float, confidence: float
) -> str:
    """Whether the judge is kinder to one model than to another, beside its own difference."""
    own = float(of_a.judge.mean() - of_b.judge.mean())
    alone = f" The judge alone puts {a} {own:+.3g} from {b}."
    gaps_a, gaps_b = of_a.judge - of_a.human, of_b.judge - of_b.human
    both = of_a.checked & of_b.checked
    if both.sum() >= 0.8 * max(of_a.n_checked, of_b.n_checked):
        apart = replace(of_a, human=np.where(both, 0.0, np.nan))
        gaps = gaps_a - gaps_b
        mean = apart.among_checked(gaps).with_unseen(gaps[both], largest)
    else:
        first, second = of_a.among_checked(gaps_a), of_b.among_checked(gaps_b)
        variance = first.variance + second.variance
        freedom = variance**2 / (
            first.variance**2 / first.freedom + second.variance**2 / second.freedom or math.inf
        )
        units = min(first.units, second.units)
        mean = UnitMean(first.value - second.value, variance, max(freedom, 1.0), units)
        mean = mean.with_unseen(np.r_[gaps_a[of_a.checked], gaps_b[of_b.checked]], largest)
    interval = mean.interval(confidence)
    kinder, other = (a, b) if mean.value >= 0 else (b, a)
    ends = interval if mean.value >= 0 else -interval
    if abs(mean.value) < _ROUNDING:
        return f"The judge is as kind to {a} as to {b}{in_brackets(interval)}.{alone}"
    open_ = ", which may be chance" if interval.low <= 0 <= interval.high else ""
    return (
        f"The judge favours {kinder} over {other} by {abs(mean.value):.3g}{in_brackets(ends)}{open_}.{alone}"
    )
