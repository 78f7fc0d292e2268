"""Grades in logs of HELM and of OpenAI's evals, whose files are joined into one record per answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.inputs.records.record import first, mapping, not_understood, sequence
from verax.wings.evals.reading.graded import (
    UNSCORED,
    Graded,
    LogShape,
    epoch_of,
    flat_fields,
    number_or_none,
    text_or_none,
)

# The metrics of HELM's leaderboards, in order of preference.
_HELM_MAIN = (
    *("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"),
    *(
        "final_number_exact_match",
        "math_equiv_chain_of_thought",
        "math_equiv",
        "chain_of_thought_correctness",
    ),
    *("ifeval_strict_accuracy", "f1_score", "rouge_l", "bleu_4"),
)
# The names of scores in events of OpenAI's evals.
_SCORES = ("correct", "score", "accuracy")


def is_helm(record: Any) -> bool:
    """Whether a record has the statistics of an instance of HELM."""
    fields = mapping(record)
    return "instance_id" in fields and isinstance(fields.get("stats"), list)


def read_helm(record: Any) -> Graded:
    """Read the grades of an instance; its `state` is the request, if that file was found."""
    fields = mapping(record)
    grades: dict[str, float | None] = {}
    for stat in sequence(fields.get("stats")):
        name = mapping(mapping(stat).get("name")).get("name")
        if not isinstance(name, str):
            raise not_understood(stat, "stats: objects with a name and a mean")
        grades[name] = number_or_none(mapping(stat).get("mean"))
    state = mapping(fields.get("state"))
    instance, result = mapping(state.get("instance")), mapping(state.get("result"))
    completion = mapping(first(result.get("completions")))
    text = completion.get("text")
    right = [
        mapping(mapping(reference).get("output")).get("text")
        for reference in sequence(instance.get("references"))
        if "correct" in sequence(mapping(reference).get("tags"))
    ]
    trial = fields.get("train_trial_index")
    return Graded(
        str(fields["instance_id"]),
        grades,
        next((name for name in _HELM_MAIN if name in grades), None),
        answer=text_or_none(text.strip() if isinstance(text, str) else None),
        gold=text_or_none([known for known in right if isinstance(known, str)]),
        status=_helm_status(result, completion),
        epoch=epoch_of(trial, first=0),
        about=_about(instance),
    )


def _about(instance: Mapping[Any, Any]) -> dict[str, Any]:
    fields = dict(flat_fields(instance.get("extra_data")))
    split = instance.get("split")
    return {**fields, **({"split": split} if isinstance(split, str) else {})}


def _helm_status(result: Mapping[Any, Any], completion: Mapping[Any, Any]) -> str | None:
    if result.get("success") is False:
        return "error"
    if mapping(completion.get("finish_reason")).get("reason") == "content_filter":
        return "refused"
    text = completion.get("text")
    return "empty" if isinstance(text, str) and not text.strip() else None


def is_openai_evals(record: Any) -> bool:
    """Whether a record is an event, or the head, of a log of OpenAI's evals."""
    fields = mapping(record)
    head = mapping(fields.get("spec"))
    return (
        bool({"completion_fns", "eval_name", "base_eval"} & head.keys())
        or {
            "sample_id",
            "type",
            "data",
        }
        <= fields.keys()
    )


def read_openai_evals(record: Any) -> Graded:
    """Read the grades from the events of one sample."""
    fields = mapping(record)
    data = mapping(fields.get("data"))
    grades = {
        str(name): number for name, value in data.items() if (number := number_or_none(value)) is not None
    }
    picked = data.get("picked", data.get("choice"))
    sampled = data.get("sampled", fields.get("sampled"))
    text = first(sampled) if isinstance(sampled, list) else sampled
    status = None if grades else "error" if fields.get("failed") or not data else UNSCORED
    if isinstance(text, str) and not text.strip():
        status = "empty"
    return Graded(
        str(fields["sample_id"]),
        grades,
        next((name for name in _SCORES if name in grades), None) or next(iter(grades), None),
        answer=text_or_none(picked if picked is not None else text),
        gold=text_or_none(data.get("expected")),
        status=status,
    )


HELM = LogShape("helm", "a HELM run", is_helm, read_helm)
OPENAI_EVALS = LogShape("openai-evals", "a log of OpenAI's evals", is_openai_evals, read_openai_evals)
