"""Logs of TensorBoard, Weights & Biases and Hugging Face, as records with a number per metric."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from verax.errors import InputError, Remedy, join, passing, show
from verax.scores.directions import PARTS

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
    """Records of one run with a name per metric, and what was left out on the way."""

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
    bounds = {name for name in names if (found := _BOUND.fullmatch(name)) and found["curve"] in names}
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
    """The runs to read, with what goes in front of the names of their metrics.

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
    found = _DOWNLOAD.fullmatch(stem)
    if found is None:
        return stem
    last = re.split(r"[_/]", found["run"] or "")[-1]
    return f"{last}/{found['tag']}" if last.lower() in PARTS else found["tag"]


def log_history(state: object) -> list[Record]:
    """The records of a Hugging Face `Trainer`, its state, `trainer_state.json` or `log_history`."""
    found: Any = getattr(state, "state", state)
    found = found.get("log_history", found) if isinstance(found, Mapping) else found
    found = getattr(found, "log_history", found)
    single = getattr(found, "shape", None) == ()
    if single or isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Collection):
        raise InputError(
            f"must be a Trainer, its state or its log_history, not a {type(state).__name__}",
            argument="state",
            kind="type",
            remedies=[Remedy("History.read reads trainer_state.json.", python_only=True)],
        )
    return list(found)


def curve(points: Iterable[Any]) -> list[Record]:
    """The records of TensorBoard's JSON of one curve: wall time, step and value of each point."""
    return [dict(zip(("Wall time", "Step", "Value"), point, strict=True)) for point in points]
