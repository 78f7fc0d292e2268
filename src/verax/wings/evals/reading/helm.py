"""Runs of HELM, whose files are joined into one record per answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.errors import InputError, Remedy
from verax.files.formats.texts import json_document
from verax.inputs.records.record import first, mapping, not_understood, sequence
from verax.wings.evals.reading.graded import (
    Graded,
    LogFormat,
    LogRecords,
    epoch_of,
    flat_fields,
    is_blank,
    name_or_none,
    number_or_none,
    text_or_none,
)
from verax.wings.evals.reading.look import Look, beside, no_log

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
_STATE, _STATS, _SPEC = "scenario_state.json", "per_instance_stats.json", "run_spec.json"


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
    fields = flat_fields(instance.get("extra_data"))
    split = instance.get("split")
    return {**fields, **({"split": split} if isinstance(split, str) else {})}


def _helm_status(result: Mapping[Any, Any], completion: Mapping[Any, Any]) -> str | None:
    if result.get("success") is False:
        return "error"
    if mapping(completion.get("finish_reason")).get("reason") == "content_filter":
        return "refused"
    text = completion.get("text")
    return "empty" if isinstance(text, str) and not text.strip() else None


def _open_helm(path: Path) -> LogRecords:
    stats_path, state_path = path.with_name(_STATS), path.with_name(_STATE)
    if not stats_path.is_file():
        raise InputError(
            f"The grades of a HELM run are in {_STATS}",
            argument="path",
            kind="missing",
            found="there is no such file beside it",
            source=str(path),
            remedies=[Remedy("Copy it from the folder of the run.")],
        )
    document = mapping(json_document(state_path)) if state_path.is_file() else {}
    states: dict[tuple[str, str], Any] = {}
    for state in sequence(document.get("request_states")):
        instance = mapping(mapping(state).get("instance"))
        if not instance.get("perturbation"):
            states.setdefault(_place(instance.get("id"), state), state)
    graded = [record for record in sequence(json_document(stats_path)) if is_helm(record)]
    plain = [record for record in graded if not record.get("perturbation")]
    if not plain:
        raise no_log(stats_path, "no instance has statistics")
    about = mapping(document.get("adapter_spec")) or mapping(
        beside(path.with_name(_SPEC)).get("adapter_spec")
    )
    return LogRecords(
        str(path),
        "instance",
        HELM,
        enumerate({**record, "state": states.get(_place(record["instance_id"], record))} for record in plain),
        model=name_or_none(about.get("model")) or name_or_none(about.get("model_deployment")),
        task=_task_of(path),
        notes=_perturbed(len(graded) - len(plain)),
    )


def _place(instance: Any, record: Any) -> tuple[str, str]:
    """What the two files of a run know an answer by."""
    return str(instance), str(mapping(record).get("train_trial_index"))


def is_display(record: Any) -> bool:
    """Whether a record is a prediction as HELM's site shows it."""
    return {"instance_id", "predicted_text", "stats"} <= mapping(record).keys()


def read_display(record: Any) -> Graded:
    """Read the grades of a prediction that HELM's site shows; what was not graded has no number."""
    fields = mapping(record)
    grades = {
        str(name): number
        for name, value in mapping(fields.get("stats")).items()
        if (number := number_or_none(value)) is not None
    }
    text = fields.get("mapped_output", fields.get("predicted_text"))
    return Graded(
        str(fields["instance_id"]),
        grades,
        next((name for name in _HELM_MAIN if name in grades), None),
        answer=text_or_none(text.strip() if isinstance(text, str) else None),
        status="empty" if is_blank(fields.get("predicted_text")) else None,
        epoch=epoch_of(fields.get("train_trial_index"), first=0),
    )


def _open_display(path: Path) -> LogRecords:
    items = [record for record in sequence(json_document(path)) if is_display(record)]
    plain = [record for record in items if not record.get("perturbation")]
    about = mapping(beside(path.with_name(_SPEC)).get("adapter_spec"))
    return LogRecords(
        str(path),
        "instance",
        HELM_DISPLAY,
        enumerate(plain),
        model=name_or_none(about.get("model")),
        task=_task_of(path),
        notes=_perturbed(len(items) - len(plain)),
    )


def _task_of(path: Path) -> str | None:
    """The task of a run, from its folder, such as mmlu:subject=law,model=openai_gpt2."""
    return re.sub(r",?model=[^,]*$", "", path.parent.name) or None


def _perturbed(n: int) -> tuple[str, ...]:
    return (f"Perturbed instances, not read: {n:,}.",) if n else ()


def _is_shown(look: Look) -> bool:
    """Whether a file is what HELM's site shows, without the statistics of the run beside it."""
    return is_display(look.record) and not look.path.with_name(_STATS).is_file()


HELM = LogFormat(
    "helm",
    "a HELM run",
    lambda look: look.path.name in (_STATE, _STATS),
    _open_helm,
    is_helm,
    read_helm,
)
HELM_DISPLAY = LogFormat(
    "helm-display", "predictions of a HELM run", _is_shown, _open_display, is_display, read_display
)
