"""Files of evaluation logs, unpacked into one record per answer with the model and the task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verax.common import strictjson
from verax.common.paths import check_regular
from verax.errors import InputError, Remedy, show
from verax.files.formats.archives import Archive
from verax.files.formats.texts import COMPRESSED, decompressed, json_document, lines_of
from verax.inputs.records.record import first, mapping, sequence
from verax.wings.evals.reading.graded import LogShape
from verax.wings.evals.reading.harness_grades import HARNESS_GRADES, OLMES_GRADES
from verax.wings.evals.reading.inspect import INSPECT
from verax.wings.evals.reading.other_logs import HELM, OPENAI_EVALS

# In the order in which they are tried.
LOGS = (INSPECT, OLMES_GRADES, HARNESS_GRADES, HELM, OPENAI_EVALS)
EVAL = ".eval"
_STATE, _STATS, _SPEC = "scenario_state.json", "per_instance_stats.json", "run_spec.json"
# How much of a document tells what it is.
_HEAD = 2**14
_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d{2}-\d{2}T[\d.:-]+)$")
_PREDICTIONS = re.compile(r"(?P<run>task-\d+-(?P<task>.+))-predictions$")


@dataclass(frozen=True)
class LogRecords:
    """The answers of one file.

    Attributes
    ----------
    source, word : str
        The file, and what its records are called in messages.
    shape : LogShape
        The kind of log.
    records : iterable
        Every record with its number.
    model, task, main : str or None
        The model, the task and the metric that the log names.
    notes : tuple of str
        What a reader of results should know: a sentence each.
    """

    source: str
    word: str
    shape: LogShape
    records: Iterable[tuple[int, Any]]
    model: str | None = None
    task: str | None = None
    main: str | None = None
    notes: tuple[str, ...] = ()


def kind_of_log(path: Path) -> LogShape | None:
    """The kind of log that a file is, by its name and a look at its beginning; None where it is none."""
    name = _stem(path)
    if path.suffix.lower() == EVAL:
        return INSPECT
    if path.name in (_STATE, _STATS):
        return HELM
    if name.suffix.lower() == ".json":
        return INSPECT if _is_inspect_document(path) else None
    if name.suffix.lower() not in (".jsonl", ".ndjson"):
        return None
    try:
        record = next((record for _, record in _lines(path)), None)
    except (InputError, OSError):
        return None
    return next((shape for shape in (OLMES_GRADES, HARNESS_GRADES, OPENAI_EVALS) if shape.fits(record)), None)


def open_log(path: Path, shape: LogShape) -> LogRecords:
    """The records of a file of this kind."""
    if shape is INSPECT:
        return _inspect(path)
    if shape is HELM:
        return _helm(path)
    if shape is OPENAI_EVALS:
        return _openai_evals(path)
    return _olmes(path) if shape is OLMES_GRADES else _harness(path)


def samples_of(path: Path) -> Iterator[Any] | None:
    """The samples of an Inspect log as records with lists; None for any other file."""
    if path.suffix.lower() != EVAL and not (
        _stem(path).suffix.lower() == ".json" and _is_inspect_document(path)
    ):
        return None
    return (record for _, record in _inspect(path).records)


# ---- Inspect ------------------------------------------------------------------------------------


def _is_inspect_document(path: Path) -> bool:
    try:
        check_regular(path)
        with decompressed(path) as stream:
            head = stream.read(_HEAD)
    except (InputError, OSError):
        return False
    return all(re.search(rb'"%s"\s*:' % name, head) for name in (b"version", b"status", b"eval"))


def _inspect(path: Path) -> LogRecords:
    if path.suffix.lower() == EVAL:
        archive = Archive(path)
        heads = [name for name in ("header.json", "_journal/start.json") if name in archive.names]
        if not heads:
            raise _no_log(path, "it has neither header.json nor _journal/start.json")
        header = _json(next(archive.read((heads[0],)))[1], path, heads[0])
        names = tuple(name for name in archive.names if name.startswith("samples/"))
        records: Iterable[tuple[int, Any]] = enumerate(
            _json(content, path, name) for name, content in archive.read(names)
        )
        n = len(names)
    else:
        header = json_document(path)
        samples = sequence(mapping(header).get("samples"))
        records, n = enumerate(samples), len(samples)
    about = mapping(mapping(header).get("eval"))
    if not about:
        raise _no_log(path, "its header has no field eval")
    if not n:
        raise _no_log(path, f"it has no samples (its status is {show(mapping(header).get('status'))})")
    return LogRecords(
        str(path),
        "sample",
        INSPECT,
        records,
        model=_text(about.get("model")),
        task=_text(about.get("task")),
        notes=_incomplete(mapping(header), n),
    )


def _incomplete(header: Mapping[Any, Any], n: int) -> tuple[str, ...]:
    """The sentence about a run that ended early: samples that are not there are not counted anywhere."""
    about = mapping(header.get("eval"))
    planned = mapping(about.get("dataset")).get("samples")
    epochs = mapping(about.get("config")).get("epochs")
    limited = mapping(about.get("config")).get("limit")
    wanted = (
        planned * (epochs if type(epochs) is int else 1) if type(planned) is int and limited is None else None
    )
    status = header.get("status")
    if status in ("success", None) and (wanted is None or n >= wanted):
        return ()
    of = "" if wanted is None or n >= wanted else f" of {wanted:,}"
    return (f"The run did not finish (status {status or 'started'}): the log has {n:,}{of} samples.",)


def _json(content: bytes, path: Path, name: str) -> Any:
    try:
        return strictjson.parse(content)
    except strictjson.JsonError as error:
        raise _no_log(path, f"member {name[:80]!r} is no JSON ({str(error)[:80]})") from None


def _no_log(path: Path, found: str) -> InputError:
    return InputError(
        "The file must be an evaluation log", argument="path", kind="file", found=found, source=str(path)
    )


# ---- lm-evaluation-harness and OLMES ------------------------------------------------------------


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    check_regular(path)
    return lines_of(path)


def _harness(path: Path) -> LogRecords:
    named = _SAMPLES.match(_stem(path).stem)
    task = named["task"] if named else None
    beside = path.with_name(f"results_{named['date']}.json") if named else None
    about = _beside(beside)
    config = mapping(about.get("config"))
    model = _text(about.get("model_name")) or _text(config.get("model"))
    folder = path.parent.name
    if model is None and "__" in folder.strip("_"):
        # The harness writes the name of the model into that of the folder, as owner__model.
        model = folder.replace("__", "/")
    return LogRecords(str(path), "line", HARNESS_GRADES, _lines(path), model=model, task=task)


def _olmes(path: Path) -> LogRecords:
    named = _PREDICTIONS.match(_stem(path).stem)
    about = _beside(path.with_name(f"{named['run']}-metrics.json")) if named else {}
    settings = mapping(about.get("task_config"))
    model = mapping(about.get("model_config")).get("model")
    return LogRecords(
        str(path),
        "line",
        OLMES_GRADES,
        _lines(path),
        model=_text(model),
        task=_text(about.get("task_name")) or (named["task"] if named else None),
        main=_text(settings.get("primary_metric")),
    )


def _beside(path: Path | None) -> Mapping[Any, Any]:
    """A document beside a log, which may be absent or unreadable."""
    try:
        return mapping(json_document(path)) if path is not None and path.is_file() else {}
    except InputError:
        return {}


# ---- HELM ---------------------------------------------------------------------------------------


def _helm(path: Path) -> LogRecords:
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
    graded = [record for record in sequence(json_document(stats_path)) if HELM.fits(record)]
    plain = [record for record in graded if not record.get("perturbation")]
    if not plain:
        raise _no_log(stats_path, "no instance has statistics")
    about = mapping(document.get("adapter_spec")) or mapping(
        _beside(path.with_name(_SPEC)).get("adapter_spec")
    )
    perturbed = len(graded) - len(plain)
    notes = (f"Perturbed instances, not read: {perturbed:,}.",) if perturbed else ()
    return LogRecords(
        str(path),
        "instance",
        HELM,
        enumerate({**record, "state": states.get(_place(record["instance_id"], record))} for record in plain),
        model=_text(about.get("model")) or _text(about.get("model_deployment")),
        # Runs are called mmlu:subject=law,model=openai_gpt2.
        task=re.sub(r",?model=[^,]*$", "", path.parent.name) or None,
        notes=notes,
    )


def _place(instance: Any, record: Any) -> tuple[str, str]:
    """What the two files of a run know an answer by."""
    return str(instance), str(mapping(record).get("train_trial_index"))


# ---- OpenAI's evals -----------------------------------------------------------------------------


def _openai_evals(path: Path) -> LogRecords:
    head: Mapping[Any, Any] = {}
    graded: list[tuple[int, Any]] = []
    sampled: dict[str, Any] = {}
    failed: dict[str, int] = {}
    for number, event in _lines(path):
        fields = mapping(event)
        if "spec" in fields:
            head = mapping(fields["spec"])
        if not OPENAI_EVALS.fits(event) or "sample_id" not in fields:
            continue
        key, data = str(fields["sample_id"]), mapping(fields["data"])
        if fields["type"] == "sampling":
            sampled[key] = data.get("sampled")
            failed.setdefault(key, number)
        elif fields["type"] in ("match", "metrics"):
            graded.append((number, {**fields, "sample_id": key, "data": data, "sampled": sampled.get(key)}))
        else:
            failed.setdefault(key, number)
    known = {record["sample_id"] for _, record in graded}
    missing: list[tuple[int, Any]] = [
        (number, {"sample_id": key, "type": "none", "data": {}, "sampled": sampled.get(key), "failed": True})
        for key, number in failed.items()
        if key not in known
    ]
    model = first(head.get("completion_fns"))
    return LogRecords(
        str(path),
        "line",
        OPENAI_EVALS,
        sorted([*graded, *missing], key=lambda pair: pair[0]),
        model=_text(model),
        task=_text(head.get("eval_name")) or _text(head.get("base_eval")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _stem(path: Path) -> Path:
    """The name of a file without the ending of its compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
