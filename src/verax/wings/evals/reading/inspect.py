"""Samples of Inspect logs: scores, epochs, limits and errors, and the tokens of their answers."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

from verax.errors import Remedy, show
from verax.inputs.records.record import SKIP, Choices, Listed, RecordError, Shape, first, mapping, sequence
from verax.inputs.records.responses import answer_text_in, generated_texts, n_samples, read_chat
from verax.inputs.records.texts import number_of
from verax.wings.evals.reading.graded import (
    Graded,
    epoch_of,
    flat_fields,
    number_or_none,
    text_or_none,
)

# Values of Inspect's scorers: correct, partially correct, incorrect, and no answer, which is incorrect.
_NO_ANSWER = "N"
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, _NO_ANSWER: 0.0}
# Why a model stopped, if it was cut.
_CUT = ("max_tokens", "model_length")
_TRUE, _FALSE = ("yes", "true"), ("no", "false")


def is_sample(record: Any) -> bool:
    """Whether a record is a sample of an Inspect log."""
    fields = mapping(record)
    known = "id" in fields and "epoch" in fields and "target" in fields
    return known and ("scores" in fields or "score" in fields or "output" in fields)


def _number(value: Any) -> float | str | None:
    """A score as a number, converted as in Inspect; other texts as they are; None for NaN."""
    if not isinstance(value, str):
        return number_or_none(value)
    if value in _VALUES:
        return _VALUES[value]
    if value.lower() in (*_TRUE, *_FALSE):
        return float(value.lower() in _TRUE)
    try:
        return number_or_none(float(value))
    except ValueError:
        return value


def _scores(record: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """The score of every scorer; older logs have one without a name."""
    scores = mapping(record.get("scores"))
    if not scores and isinstance(record.get("score"), Mapping):
        scores = {"score": record["score"]}
    return {name if type(name) is str else str(name): mapping(score) for name, score in scores.items()}


def _grades(scores: Mapping[str, Mapping[Any, Any]]) -> dict[str, float | str | None]:
    """A number per scorer, or per name if a scorer gives several."""
    grades: dict[str, float | str | None] = {}
    for name, score in scores.items():
        value = score.get("value")
        if isinstance(value, Mapping):
            grades |= {f"{name}.{part}": _number(inner) for part, inner in value.items()}
        else:
            grades[name] = _number(value)
    return grades


def _status(record: Mapping[Any, Any], scores: Mapping[str, Mapping[Any, Any]]) -> str | None:
    """What became of the answer; None where nothing did."""
    limit = record.get("limit")
    if record.get("error") or (limit and mapping(limit).get("type") == "operator"):
        return "error"
    if limit:
        return "limit"
    output = mapping(record.get("output"))
    choice = mapping(first(output.get("choices"))) if output else output
    if output.get("error"):
        return "error"
    if choice.get("stop_reason") == "content_filter":
        return "refused"
    if choice.get("stop_reason") in _CUT:
        return "limit"
    for score in scores.values():
        if score.get("value") == _NO_ANSWER:
            return "empty"
    text = output.get("completion", None if not choice else mapping(choice.get("message")).get("content"))
    if isinstance(text, str) and not text.strip() and choice.get("stop_reason") != "tool_calls":
        return "empty"
    return None


def _check_letters(record: Mapping[Any, Any]) -> None:
    """Refuse a target that is a letter beyond the choices of its question."""
    choices = sequence(record.get("choices"))
    if not 2 <= len(choices) <= len(string.ascii_uppercase):
        return
    target = record["target"]
    letters = string.ascii_uppercase[: len(choices)]
    if isinstance(target, str) and target in letters:
        return
    for answer in [target] if isinstance(target, str) else sequence(target):
        wrong = (
            isinstance(answer, str)
            and len(answer) == 1
            and answer in string.ascii_uppercase
            and answer not in letters
        )
        if wrong and answer not in choices:
            raise RecordError(
                f"must have one of the letters {letters[0]} to {letters[-1]} as its target, one per choice",
                f"has the target {show(answer)} and {len(choices)} choices",
                reason="letters that are no choice",
                kind="label",
                argument="y",
                values=[answer],
                remedies=[Remedy("Correct the data set, or leave out the question."), SKIP],
            )


def _first(scores: Mapping[str, Mapping[Any, Any]], of: Callable[[Mapping[Any, Any]], Any]) -> Any:
    """What the first scorer has that has it."""
    return next((value for score in scores.values() if (value := of(score)) is not None), None)


def _scorer_of(metric: str | None, scores: Mapping[str, Any]) -> str | None:
    """The scorer that a metric is of, where there are several; None without one."""
    if metric is None or len(scores) < 2:
        return None
    return metric if metric in scores else next((s for s in scores if metric.startswith(f"{s}.")), None)


def _stated(score: Mapping[Any, Any]) -> Any:
    """The confidence in the metadata of a scorer."""
    about = score.get("metadata")
    return about.get("confidence") if type(about) is dict else None


def read_sample(record: Any, metric: str | None = None) -> Graded:
    """Read the grades of a sample; answer, confidence and status are those of a metric's scorer first."""
    _check_letters(record)
    scores = _scores(record)
    grades = _grades(scores)
    scorer = _scorer_of(metric, scores)
    ordered = scores if scorer is None else {scorer: scores[scorer], **scores}
    answer, stated = _first(ordered, lambda score: score.get("answer")), _first(ordered, _stated)
    confidence = number_of(stated) if isinstance(stated, str) else number_or_none(stated)
    metadata, target = record.get("metadata"), record.get("target")
    return Graded(
        str(record["id"]),
        grades,
        next(iter(grades), None),
        answer if type(answer) is str else text_or_none(answer),
        target if type(target) is str else text_or_none(target),
        confidence,
        _status(record, scores if scorer is None else {scorer: scores[scorer]}),
        epoch_of(record["epoch"], first=1),
        about=flat_fields(metadata) if metadata else {},
        unread=confidence is None and any(isinstance(_stated(score), str) for score in scores.values()),
    )


def _has_logprobs(record: Any) -> bool:
    return is_sample(record) and bool(
        mapping(mapping(first(mapping(mapping(record).get("output")).get("choices"))).get("logprobs")).get(
            "content"
        )
    )


def _read(record: Any, choices: Choices) -> Listed:
    listed = read_chat(mapping(mapping(record).get("output")), choices)
    listed.outcome = text_or_none(mapping(record).get("target"))
    return listed


def _outcome_of(_: Listed, target: Any) -> Any:
    return target


INSPECT_TOKENS = Shape(
    "inspect",
    "tokens of an Inspect log with top_logprobs",
    "output.choices[0].logprobs.content[i] with token, logprob and top_logprobs; target",
    _has_logprobs,
    _read,
    unwrapped=False,
    outcome_of=_outcome_of,
    samples=lambda record: n_samples(mapping(record).get("output"), "choices"),
    generated=lambda record, sample=0: generated_texts(mapping(record).get("output"), sample),
    answer_text=lambda record, sample: answer_text_in(mapping(record).get("output"), sample),
    question_of=lambda record: str(mapping(record).get("id")),
)
