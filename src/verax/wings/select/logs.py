"""Logs of training as columns of numbers, one row per epoch."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from verax.common import strictjson
from verax.common.packages import needed
from verax.common.paths import check_regular
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import Floats, to_array, to_host
from verax.wings.select.directions import PARTS

Record = Mapping[str, object]

# Names, in small letters, of the columns of tables with a row per value.
_TAGS = ("tag", "metric", "metric_name", "key", "name")
_RUNS = ("run", "run_name", "run_id", "dir_name")
_VALUE = "value"
_TIMES = ("wall time", "wall_time", "timestamp", "time")
_STEPS = ("step", "global_step", "epoch")
# What TensorBoard calls the file of one curve; slashes in names became underscores.
_DOWNLOAD = re.compile(r"(?:run-(?P<run>.*?)-)?tag-(?P<tag>.+)")
# Weights & Biases exports a chart with these beside each curve.
_BOUND = re.compile(r"(?P<curve>.+ - .+)__(?:MIN|MAX)")


class Unified(NamedTuple):
    """Records of one run with a name per metric, and notes on anything left out."""

    records: list[Record]
    notes: list[str]


def unify(records: list[Record], *, run: str | None, argument: str, called: str) -> Unified:
    """Records as they are, unless TensorBoard or Weights & Biases wrote them.

    Parameters
    ----------
    run : str, optional
        Which run, where a table has several.
    argument : str
        What errors are about.
    called : str
        The name of the metric where the records have "value" alone, as TensorBoard's downloads do.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    column = {name.strip().lower(): name for name in reversed(names)}
    tag = next((column[name] for name in _TAGS if name in column), None)
    if tag is not None and _VALUE in column:
        return _from_long(records, column, tag, run, argument)
    if any(_BOUND.fullmatch(name) for name in names):
        return _from_chart(records, names, run)
    if run is not None:
        raise InputError("must not be given: the records have no runs", argument="run", values=[run])
    if _VALUE in column and column.keys() <= {_VALUE, *_STEPS, *_TIMES}:
        value = column[_VALUE]
        renamed = [{called if name == value else name: r[name] for name in r} for r in records]
        return Unified(list[Record](renamed), [])
    return Unified(records, [])


def _from_long(
    records: list[Record], column: Mapping[str, str], tag: str, run: str | None, argument: str
) -> Unified:
    """From a row per run, metric and step."""
    runs = next((column[name] for name in _RUNS if name in column), None)
    value = column[_VALUE]
    for i, record in enumerate(records):
        if record.get(tag) in (None, ""):
            raise InputError(
                f"Every record must have a {tag}, the name of its metric",
                argument=argument,
                kind="missing",
                found=f"record {i} has none",
                rows=(i,),
            )
    label = {i: "" if runs is None else str(record.get(runs, "")) for i, record in enumerate(records)}
    prefixes = _chosen(list(dict.fromkeys(label.values())), run)
    steps = {name for small, name in column.items() if small in _STEPS}
    wide: list[Record] = [
        {name: record[name] for name in record if name in steps}
        | {prefixes[label[i]] + str(record[tag]): record.get(value)}
        for i, record in enumerate(records)
        if label[i] in prefixes
    ]
    used = {tag, value, runs, *steps, *(column[name] for name in _TIMES if name in column)}
    return Unified(wide, _left_out([name for name in column.values() if name not in used]))


def _from_chart(records: list[Record], names: Sequence[str], run: str | None) -> Unified:
    """From columns "run - metric" with the bounds of each curve beside it."""
    bounds = {name for name in names if (match := _BOUND.fullmatch(name)) and match["curve"] in names}
    curves = {name: name.rpartition(" - ") for name in names if " - " in name and name not in bounds}
    prefixes = _chosen(list(dict.fromkeys(label for label, _, _ in curves.values())), run)
    new = {name: name for name in names if name not in curves and name not in bounds}
    new |= {
        name: prefixes[label] + metric for name, (label, _, metric) in curves.items() if label in prefixes
    }
    wide: list[Record] = [{new[name]: r[name] for name in r if name in new} for r in records]
    return Unified(wide, ["The bounds of the chart's curves (__MIN, __MAX) are left out."] if bounds else [])


def _left_out(names: Sequence[str]) -> list[str]:
    return [f"Not numbers of metrics, and left out: {join(names)}."] if names else []


def _chosen(labels: Sequence[str], run: str | None) -> dict[str, str]:
    """The runs to read, with the prefixes of their metrics.

    Runs that differ in the part of the data alone ("train", "validation") belong together.
    """
    split = {label: _split(label) for label in labels}
    if run is not None:
        named = [label for label in labels if label == run]
        split = {label: split[label] for label in named or [x for x in labels if split[x][0] == run]}
    stems = list(dict.fromkeys(stem for stem, _ in split.values()))
    if len(stems) == 1:
        return {label: f"{part}/" if part else "" for label, (_, part) in split.items()}
    every = list(dict.fromkeys(_split(label)[0] or label for label in labels))
    raise InputError(
        "must be one of the runs",
        argument="run",
        kind="missing" if run is None else "value",
        found=f"there {'are' if len(every) > 1 else 'is'} {_some(every)}"
        + ("" if run is None else f", and no {show(run)}"),
        values=[run],
        remedies=[passing(run=every[0])],
    )


def _some(names: Sequence[str]) -> str:
    shown = [show(name) for name in names[:5]]
    return join(shown) if len(names) <= 5 else f"{', '.join(shown)} and {len(names) - 5:,} more"


def _split(label: str) -> tuple[str, str]:
    """The name of a run without the part of the data, and that part.

    >>> _split("first/validation"), _split("train"), _split("first"), _split(".")
    (('first', 'validation'), ('', 'train'), ('first', ''), ('', ''))
    """
    stem, _, last = label.replace("\\", "/").rpartition("/")
    if last.lower() in PARTS:
        return stem, last
    return ("" if label == "." else label), ""


def name_of_file(stem: str) -> str:
    """The name of the metric in a file of one curve.

    >>> name_of_file("run-validation-tag-epoch_loss"), name_of_file("run-.-tag-val_brier")
    ('validation/epoch_loss', 'val_brier')
    """
    match = _DOWNLOAD.fullmatch(stem)
    if match is None:
        return stem
    last = re.split(r"[_/]", match["run"] or "")[-1]
    return f"{last}/{match['tag']}" if last.lower() in PARTS else match["tag"]


def log_history(state: object) -> list[Record]:
    """The records of a Hugging Face `Trainer`, its state, `trainer_state.json` or `log_history`."""
    records: Any = getattr(state, "state", state)
    records = records.get("log_history", records) if isinstance(records, Mapping) else records
    records = getattr(records, "log_history", records)
    single = getattr(records, "shape", None) == ()
    if single or isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Collection):
        raise InputError(
            f"must be a Trainer, its state or its log_history, not a {type(state).__name__}",
            argument="state",
            kind="type",
            remedies=[Remedy("History.read reads trainer_state.json.", python_only=True)],
        )
    return list(records)


def curve(points: Iterable[Any]) -> list[Record]:
    """The records of TensorBoard's JSON of one curve: wall time, step and value of each point."""
    return [dict(zip(("Wall time", "Step", "Value"), point, strict=True)) for point in points]


# What rows are numbered by, and the columns that have these numbers, in small letters, best first.
EPOCH, STEP = "epoch", "step"
_COUNTERS = {
    EPOCH: ("epoch",),
    STEP: (
        "step",
        "global_step",
        "global step",
        "_step",
        "trainer/global_step",
        "train/global_step",
        "iteration",
        "iter",
        "iterations",
        "round",
        "boosting_round",
        # The index of a frame.
        "",
        "unnamed: 0",
    ),
}


@dataclass(frozen=True)
class TrainingLog:
    """Columns of equal length, one row per epoch or step; NaN where there is no value."""

    epochs: Floats
    columns: dict[str, Floats]
    counter: str
    notes: tuple[str, ...]


def merge(
    records: Iterable[Record], argument: str, *, run: str | None = None, called: str = "value"
) -> TrainingLog:
    """Records brought together by their epoch, or step; without either, each record is one.

    Loggers write training and validation metrics of one epoch into separate records with holes. Where
    a metric has several values in an epoch, the last one counts, with a note. Steps count where
    epochs are fractions, which are rounded: Hugging Face names its checkpoints by step.

    Parameters
    ----------
    records : Iterable[Record]
        Values by name, or as TensorBoard and Weights & Biases write them.
    argument : str
        What errors are about.
    run : str, optional
        Which run, where there are several.
    called : str
        The name of a metric that is logged as "value" alone.
    """
    numbers = (
        hasattr(records, "__array_namespace__")
        and getattr(getattr(records, "dtype", None), "kind", "") != "O"
    )
    if numbers or isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise InputError(
            f"must be a list of records, one mapping of names to numbers per epoch, not {show(records)}",
            argument=argument,
            kind="type",
            values=[records],
        )
    listed = [_checked(record, argument, i) for i, record in enumerate(records)]
    if not listed:
        raise InputError("There are no epochs to select from", argument=argument, kind="length")
    listed, remarks = unify(listed, run=run, argument=argument, called=called)
    every = list(dict.fromkeys(name for record in listed for name in record))
    number, counter = _counter(listed, every)
    names = [name for name in every if not _counts(name)]
    cells: dict[str, dict[float, float]] = {name: {} for name in names}
    texts: dict[str, tuple[int, object]] = {}
    repeated: dict[str, None] = {}
    epochs: dict[float, None] = {}
    for i, record in enumerate(listed):
        epoch = float(i) if number is None else _epoch(record, number, argument, i)
        epochs[epoch] = None
        for name in names:
            value = _number(record.get(name))
            if value is None:
                texts.setdefault(name, (i, record.get(name)))
            elif not math.isnan(value):
                if epoch in cells[name]:
                    repeated[name] = None
                cells[name][epoch] = value
    for name, (i, cell) in texts.items():
        if cells[name]:
            raise InputError(
                f"Column {show(name)} must hold numbers",
                argument=argument,
                kind="type",
                found=f"record {i} holds {show(cell)}",
                rows=(i,),
                values=[cell],
                remedies=[Remedy("Correct it, or leave the column out.")],
            )
    order = sorted(epochs)
    columns = {
        name: np.array([cells[name].get(epoch, math.nan) for epoch in order])
        for name in names
        if name not in texts
    }
    if not columns:
        raise InputError("No column besides the epoch holds numbers", argument=argument, kind="missing")
    notes = _notes(texts, [name for name in repeated if name in columns], counter)
    return TrainingLog(np.array(order), columns, counter, (*remarks, *notes))


def _counts(name: str, kinds: Iterable[str] = _COUNTERS) -> bool:
    """Whether a column numbers rows instead of measuring something."""
    return any(name.strip().lower() in _COUNTERS[kind] for kind in kinds)


def _counter(records: Sequence[Record], names: Sequence[str]) -> tuple[str | None, str]:
    """The column that numbers the records, None without any, and what it counts."""

    def numbers(name: str) -> list[float | None]:
        return [_number(record.get(name)) for record in records]

    def complete(kind: str) -> list[str]:
        candidates = [name for name in names if _counts(name, (kind,))]
        return [name for name in candidates if all(x is not None and math.isfinite(x) for x in numbers(name))]

    epochs, steps = complete(EPOCH), complete(STEP)
    whole = [name for name in epochs if all(x is not None and x.is_integer() for x in numbers(name))]
    if whole or (epochs and not steps):
        return (whole or epochs)[0], EPOCH
    if steps:
        return steps[0], STEP
    # None is complete: the error about the first says which record lacks it.
    return next((name for kind in (EPOCH, STEP) for name in names if _counts(name, (kind,))), None), EPOCH


def _checked(record: object, argument: str, i: int) -> Record:
    if not isinstance(record, Mapping) or not all(isinstance(name, str) for name in record):
        raise InputError(
            "Every record must be a mapping of names to numbers",
            argument=argument,
            kind="type",
            found=f"record {i} is {show(record)}",
            rows=(i,),
            values=[record],
        )
    return record


def _epoch(record: Record, number: str, argument: str, i: int) -> float:
    epoch = _number(record.get(number))
    if epoch is None or not math.isfinite(epoch):
        raise InputError(
            f"Every record must have the number of its {number} if one has",
            argument=argument,
            kind="missing",
            found=f"record {i} has {show(record.get(number))}",
            rows=(i,),
            values=[record.get(number)],
        )
    return epoch


def _number(value: object) -> float | None:
    """The number in a cell, NaN if it is empty; None if there is something else."""
    if value is None or value == "":
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _notes(texts: Iterable[str], repeated: Sequence[str], counter: str) -> tuple[str, ...]:
    notes = []
    if texts := list(texts):
        notes.append(f"Not numbers, and left out: {join(texts)}.")
    if repeated:
        notes.append(f"Several values in one {counter}, of which the last one counts: {join(repeated)}.")
    return tuple(notes)


# ---- forms ---------------------------------------------------------------------------------------


def records_of(columns: object, argument: str) -> list[Record]:
    """The records in a mapping of names to columns, or in a data frame."""
    given: Any = columns
    if not isinstance(columns, Mapping):
        import narwhals as nw

        try:
            given = nw.from_native(given, eager_only=True).to_dict(as_series=False)
        except TypeError:
            raise InputError(
                f"must be a mapping of names to lists or a data frame, not {show(columns)}",
                argument=argument,
                kind="type",
            ) from None
    lists = {str(name): _column(str(name), values, argument) for name, values in given.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            "must have columns of one length",
            argument=argument,
            kind="length",
            found=join(f"{show(name)} has {n}" for name, n in lengths.items()),
            remedies=[Remedy("Use records with epochs where metrics are not logged equally often.")],
        )
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _column(name: str, values: object, argument: str) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return list(values)
    array = None if isinstance(values, (str, bytes, Mapping)) else to_host(to_array(values, name)[0])
    if array is None or array.ndim != 1:
        raise InputError(
            "must hold a list of numbers for every name",
            argument=argument,
            kind="type",
            found=f"{show(name)} holds {show(values)}",
            values=[values],
        )
    return array.tolist()  # type: ignore[no-any-return]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable("The text must be UTF-8", f"byte {error.start} is not") from None


def _unreadable(requirement: str, found: str, row: int | None = None) -> InputError:
    rows = () if row is None else (row,)
    return InputError(requirement, argument="history", kind="file", found=found, rows=rows)


def read_csv(path: Path) -> list[Record]:
    """The rows of a CSV file with a header."""
    text = _read_text(path)
    header = text.partition("\n")[0].strip()
    if "," not in header and any(mark in header for mark in ";\t|"):
        raise _unreadable("Columns must be separated by commas", f"the first line reads {show(header, 80)}")
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise _unreadable("The file must be CSV", str(error)) from None
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise _unreadable(
                "Every row must have the header's number of cells", f"row {line} has more or fewer", line - 2
            )
    return list(rows)


def read_json_lines(path: Path) -> list[Record]:
    """The records of a file with a JSON object per line."""
    records = []
    for i, line in enumerate(_read_text(path).split("\n")):
        if not line.strip():
            continue
        try:
            records.append(strictjson.parse(line))
        except strictjson.JsonError as error:
            raise _unreadable(
                "Every line must be a JSON object", f"line {i + 1} is not ({error}): {show(line, 80)}", i
            ) from None
    return records


def read_json(path: Path) -> list[Record]:
    """The records of a JSON file: a list of objects, an object of lists, or what a trainer wrote."""
    try:
        data = strictjson.parse(_read_text(path))
    except strictjson.JsonError as error:
        raise _unreadable("The file must be JSON", str(error)) from None
    if isinstance(data, Mapping) and "log_history" in data:
        return log_history(data)
    if isinstance(data, list) and data and all(isinstance(row, list) and len(row) == 3 for row in data):
        return curve(data)
    return data if isinstance(data, list) else records_of(_by_set(data), "history")


def _by_set(data: Any) -> Any:
    """Results by data set and metric, {"validation_0": {"auc": [...]}}, by the names of both."""
    if not isinstance(data, Mapping) or not all(isinstance(metrics, Mapping) for metrics in data.values()):
        return data
    return {
        f"{part}-{metric}": values for part, metrics in data.items() for metric, values in metrics.items()
    }


_MARK = "tfevents"
_LOADER = "tensorboard.backend.event_processing.event_file_loader"


def are_events(path: Path) -> bool:
    """Whether this is an event file, or a folder, in which event files are looked for."""
    return _MARK in path.name or path.is_dir()


def read_events(path: Path) -> list[Record]:
    """The scalars of an event file, or of all in a folder, whose subfolders are runs."""
    files = sorted(path.rglob(f"*{_MARK}*")) if path.is_dir() else [path]
    if not files:
        raise InputError(
            "The folder must hold event files of TensorBoard",
            argument="path",
            kind="file",
            found=f"no name in {path} contains {_MARK}",
        )
    for file in files:
        check_regular(file)
    loader = needed(_LOADER, f"Reading {files[0].name}", "tensorboard").EventFileLoader
    array_of = needed("tensorboard.util.tensor_util", "Reading it", "tensorboard").make_ndarray
    records: list[Record] = []
    for file in files:
        run = file.parent.relative_to(path).as_posix() if path.is_dir() else "."
        for event in loader(str(file)).Load():
            for value in event.summary.value:
                array = array_of(value.tensor)
                if array.size == 1 and array.dtype.kind in "fiu":
                    row = {"tag": value.tag, "step": event.step, "value": float(array.item())}
                    records.append({"run": run, **row})
    return records
