"""The files of several models, opened and matched row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verax.common.paths import Files, as_path, called
from verax.errors import InputError, Remedy, passing
from verax.inputs.reading import Reading, named_columns

if TYPE_CHECKING:
    from verax.cli.opening import Opened
    from verax.files.joining import Joined, LeftOut


@dataclass(frozen=True)
class AboutFiles:
    """How the files of each model were read, and how their rows were matched."""

    taken: dict[str, Any]
    lines_of: dict[str, list[str]]
    matched: str = "by the order of the rows"
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        left_out = {name: vars(left) for name, left in self.left_out.items()}
        return {"matched": self.matched, "left_out": left_out, "taken": self.taken}

    def reading_lines(self) -> list[str]:
        """Lines for the terminal: how the files of each model were read."""
        return [f"{name}: {'; '.join(lines)}" for name, lines in self.lines_of.items()]

    def lines(self) -> list[str]:
        """Lines for the terminal: how files were read and rows matched."""
        some = {name: left for name, left in self.left_out.items() if left.count}
        return [
            *self.reading_lines(),
            f"Rows were matched {self.matched}.",
            *(f"{name}: {left} left out, which another file lacks." for name, left in some.items()),
            "",
        ]


def open_models(
    paths: dict[str, Files], reading: Reading, *, ordered: bool, shared_ids: bool
) -> tuple[Opened, AboutFiles]:
    """The rows of all models, in memory if they are in several files, and what to say of them."""
    from verax.cli.opening import Opened, open_files

    files = {name: called(path) for name, path in paths.items()}
    if reading.several:
        rows = Opened(files, open_files(next(iter(paths.values())), "model", reading)).in_order(ordered)
        parted = [line.partition(": ") for line in (*rows.handle.taken, *rows.notes)]
        said = {name: [text for model, _, text in parted if model == name] for name in files}
        roles = {name: columns.to_dict() for name, columns in rows.handle.roles_of_models.items()}
        return rows, AboutFiles(roles or said, said)
    from verax.files.joining import match

    handles = _read_each(paths, reading, ordered=ordered, beside_first=True)
    joined = match(
        {name: opened.rows[opened.models[0]] for name, opened in handles.items()},
        shared_ids=shared_ids,
    )
    lines = {
        name: [*opened.taken, *(f"note: {note}" for note in opened.notes)] for name, opened in handles.items()
    }
    taken = {
        name: lines[name] if opened.lists else joined.files[name].roles.to_dict()
        for name, opened in handles.items()
    }
    handle, arrays = _in_memory(joined, reading, ordered=ordered)
    return Opened(files, handle, arrays), AboutFiles(taken, lines, joined.how, joined.left_out)


def _read_each(
    paths: Mapping[str, Files], reading: Reading, *, ordered: bool, beside_first: bool
) -> dict[str, Any]:
    """The rows of each model; with `beside_first`, weights, groups and subgroups are those of the first."""
    from verax.cli.opening import open_files
    from verax.files.joining import with_classes_of

    handles: dict[str, Any] = {}
    for name, path in paths.items():
        asked = replace(reading, weights=None, groups=None, by=()) if handles and beside_first else reading
        known = {model: handle.classes for model, handle in handles.items() if not handle.lists}
        open_as: Callable[..., Any] = partial(open_files, path, name, asked, hold="all", pooled="matched")
        handle = with_classes_of(known, name, reading.names, open_as)
        handles[name] = (handle.in_order() if ordered and not handle.lists else handle).loaded()
    return handles


def _in_memory(joined: Joined, reading: Reading, *, ordered: bool) -> tuple[Any, dict[str, Any]]:
    """The matched rows of several files as a handle, and as arrays where only some are lists."""
    from verax.inputs.memory import open_rows
    from verax.scans.cuts import Cut
    from verax.scans.loaded import LoadedRows

    first = joined.first
    cut = {name: n for name, n in reading.cuts.items() if n}
    by = {name: Cut.of_rows(name, first.by[name], n).labels(first.by[name]) for name, n in cut.items()}
    # Weights, groups and subgroups are those of the first file.
    beside = {"weights": first.weights, "groups": first.groups, "by": {**first.by, **by}}
    rows = {name: replace(model_rows, **beside) for name, model_rows in joined.files.items()}
    if len({hasattr(model_rows, "lists") for model_rows in rows.values()}) == 1:
        return LoadedRows(rows, replace(reading, ordered=ordered), name="", taken=()).in_memory(), {}
    numbers = (first.places if hasattr(first, "lists") else first.rows) if joined.skipped else None
    arrays = {
        "y": joined.y,
        "p": joined.models,
        "ids": first.ids,
        "numbers": numbers,
        "skipped": joined.skipped,
    }
    arrays |= {"classes": joined.classes, "weights": first.weights, "groups": first.groups, **reading.scale}
    return open_rows(**arrays, ordered=ordered, by=rows[next(iter(rows))].by), arrays


@dataclass(frozen=True)
class SeparateRows:
    """Predictions of models with rows of their own, as arguments of `compare`."""

    parts: Mapping[str, Any]
    files: Mapping[str, str]
    about: AboutFiles
    reading: Reading
    columns: Mapping[str, str]

    def arguments(self) -> dict[str, Any]:
        """Keywords of `compare`."""
        first = next(iter(self.parts.values()))
        lists = hasattr(first, "lists")
        names = {name: list(part.y) if lists else part.outcomes for name, part in self.parts.items()}
        keywords: dict[str, Any] = {
            "y": names,
            "forecasts": {name: part.lists if lists else part.p for name, part in self.parts.items()},
            "ids": {name: part.ids for name, part in self.parts.items()},
            "ordered": self.reading.ordered,
            **({} if lists else {"classes": first.classes, **self.reading.scale}),
        }
        for column in ("weights", "groups"):
            values = {name: getattr(part, column) for name, part in self.parts.items()}
            if all(value is not None for value in values.values()):
                keywords[column] = values
        for name, column in self.columns.items():
            keywords[name] = {model: part.by[column] for model, part in self.parts.items()}
        return keywords


def separate_rows(
    given: list[str],
    reading: Reading,
    rule: list[str] | None,
    *,
    model_column: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> SeparateRows:
    """The rows of each model, which need not be about the same questions: files, or stacked in one.

    `columns` are those of further arguments of `compare`: tasks, repeats of a question, times and closes.
    """
    stated = dict(columns or {})
    paths = paths_of(given, reading) if model_column is None else _stacked(given)
    if ("times" in stated) != ("closes" in stated):
        lacking = "closes" if "times" in stated else "times"
        remedies = [passing(**{lacking: ...})]
        raise InputError("must be named as well", argument=lacking, kind="missing", remedies=remedies)
    if reading.by:
        raise InputError(
            "cannot be used where models have rows of their own",
            argument="by",
            remedies=[passing("for a comparison per value of a column", task=reading.by[0])],
        )
    # Columns beside forecasts are read as subgroups are.
    beside = {**stated, **({} if model_column is None else {"models": model_column})}
    reading = replace(reading, by=tuple(beside.values()))
    from verax.scores.metrics import needs_order
    from verax.scores.registry import as_rules

    if reading.id is None:
        raise InputError("must name the questions", argument="id", kind="missing", remedies=[passing(id=...)])
    order_matters = needs_order(as_rules(rule or ["brier"]), ordered=reading.ordered)
    handles = _read_each(paths, reading, ordered=order_matters, beside_first=False)
    parts = {name: opened.rows[opened.models[0]] for name, opened in handles.items()}
    said = {
        name: [*opened.taken, *(f"note: {note}" for note in opened.notes)] for name, opened in handles.items()
    }
    words = {f"subgroups: {column}": f"{name}: {column}" for name, column in beside.items()}
    said = {name: [words.get(line, line) for line in lines] for name, lines in said.items()}
    files = {name: called(path) for name, path in paths.items()}
    if model_column is not None:
        ((name, part),) = parts.items()
        parts = _by_model(part, model_column)
        said, files = {files[name]: said[name]}, dict.fromkeys(parts, files[name])
    about = AboutFiles(said, said, f"by {', '.join(named_columns(reading.id))}")
    return SeparateRows(parts, files, about, reading, stated)


def _stacked(given: list[str]) -> dict[str, Files]:
    """The only file, of models that are stacked in rows."""
    from verax.files import name_files

    paths: dict[str, Files] = dict(name_files(given))
    if len(paths) > 1:
        raise InputError(
            "must be left out where every model has a file of its own",
            argument="model_column",
            found=f"there are {len(paths)} files",
        )
    return paths


def _by_model(part: Any, column: str) -> dict[str, Any]:
    """The rows of each model of a file."""
    import numpy as np

    labels = np.array([str(label) for label in part.by[column]])
    parts = {name: part.take(np.flatnonzero(labels == name)) for name in dict.fromkeys(labels.tolist())}
    if len(parts) < 2:
        raise InputError(
            "must name two models or more",
            argument="model_column",
            found=f"column {column} has {', '.join(parts)} only",
            remedies=[Remedy("`verax evaluate` takes one.")],
        )
    return parts


def short_name(paths: Files) -> str:
    """The name of a model's files in the report."""
    return paths.name if isinstance(paths, Path) else called(paths)


def paths_of(given: list[str], reading: Reading) -> dict[str, Files]:
    """The files of each model, or one file for all models where the columns of each are named."""
    from verax import files

    named = reading.several
    if not named:
        paths = files.name_files(given)
        if len(paths) < 2:
            raise InputError(
                "Compare takes two models or more; evaluate takes one",
                argument="path",
                remedies=[Remedy("For two models in one file: --probs a='A*' --probs b='B*'.")],
            )
        return paths
    if len(given) > 1:
        raise InputError(
            "can name the columns of models in one file only",
            argument="probs",
            found=f"there are {len(given)} files",
        )
    return {name: as_path(given[0]) for name in named}
