"""Files of lists, also beside files of full distributions, about the same rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from verax.errors import InputError, passing, show
from verax.files.joining import LeftOut
from verax.files.lists.listfile import ListFile
from verax.files.predictions import Predictions, each_name
from verax.inputs.skipping import Skipped


@dataclass(frozen=True)
class ListsTogether:
    """The forecasts of several models for the same rows, lists or distributions.

    Attributes
    ----------
    y : list
        The outcomes, as the first file has them.
    classes : tuple of hashable or None
        The classes of the distributions, if there are any with names.
    models : dict
        The lists or the probabilities of each model, by name.
    how : str
        How the rows were matched.
    left_out : dict
        The rows of each file that others lack; empty unless only shared rows were asked for.
    skipped : Skipped or None
        The invalid rows that were left out: of rows matched by their order those of any file, otherwise those
        of the first.
    ids : list of str or None
        The names of the rows; None where they have none.
    by : dict of str to array
        Labels of subgroups by column, as the first file has them.
    """

    y: list[Hashable]
    classes: tuple[Hashable, ...] | None
    models: dict[str, Any]
    weights: Any
    groups: Any
    how: str
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    skipped: Skipped | None = None
    ids: list[str] | None = None
    by: Mapping[str, Any] = field(default_factory=dict)


def match_lists(files: Mapping[str, ListFile | Predictions], *, shared_ids: bool = False) -> ListsTogether:
    """Match the rows of files by their ids where all have some, otherwise by their order.

    Rows that only one file has are an error, unless `shared_ids` leaves them out; so are other outcomes.
    """
    first = next(iter(files.values()))
    by_id = all(part.ids is not None for part in files.values())
    keys = {name: _ids(part) if by_id else _numbers(part) for name, part in files.items()}
    if shared_ids and not by_id:
        raise InputError(
            "needs ids, by which rows are matched",
            argument="shared_ids",
            kind="missing",
            remedies=[passing("(the field that says which rows belong together)", id=...)],
        )
    common = set.intersection(*map(set, keys.values()))
    lacked = {name: [key for key in own if key not in common] for name, own in keys.items()}
    # Rows that are invalid in one file are left out of all.
    skipped = first.skipped if by_id else _skipped(files, len(common))
    if any(lacked.values()) and not shared_ids and (by_id or skipped is None):
        raise _lacking(files, lacked, by_id)
    if not common:
        raise InputError(
            "The files must have rows in common", argument="id", kind="missing", found="none is in all"
        )
    order = [key for key in next(iter(keys.values())) if key in common]
    rows = {name: _places(own, order) for name, own in keys.items()}
    outcomes = {name: _outcomes(part, rows[name]) for name, part in files.items()}
    _check_outcomes(files, outcomes, order if by_id else None)
    own = rows[next(iter(files))]
    return ListsTogether(
        y=next(iter(outcomes.values())),
        classes=next((part.classes for part in files.values() if isinstance(part, Predictions)), None),
        models={
            name: part.p[rows[name]] if isinstance(part, Predictions) else part.lists[rows[name]]
            for name, part in files.items()
        },
        weights=None if first.weights is None else np.asarray(first.weights)[own],
        groups=None if first.groups is None else np.asarray(first.groups)[own],
        how=f"by {_id_name(first)}" if by_id else "by the order of the rows",
        left_out={name: LeftOut(len(ids), tuple(ids[:3])) for name, ids in lacked.items()}
        if shared_ids
        else {},
        skipped=skipped,
        ids=order if by_id else None,
        by={name: np.asarray(labels)[own] for name, labels in first.by.items()},
    )


def _id_name(part: ListFile | Predictions) -> str:
    """What the ids of a file are called."""
    return part.roles.id_name if isinstance(part, Predictions) else ", ".join(each_name(part.id_field))


def _numbers(part: ListFile | Predictions) -> list[str]:
    """The numbers of the rows in their file, those counted that were left out."""
    if isinstance(part, Predictions):
        return [str(part.number(row)) for row in range(len(part))]
    return list(map(str, part.places.tolist()))


def _skipped(files: Mapping[str, ListFile | Predictions], n_common: int) -> Skipped | None:
    """What was left out of files with as many rows as each other; None for others, or unless asked for."""
    left_out = [part.skipped for part in files.values()]
    given = {len(part) + (0 if part.skipped is None else part.skipped.count) for part in files.values()}
    known = [each for each in left_out if each is not None]
    if len(given) > 1 or not known:
        return None
    n_given = given.pop()
    rows = tuple(sorted({row for each in known for row in each.rows}))
    return Skipped(n_given, n_given - n_common, rows, reduce(add, known).reasons)


def _places(keys: list[str], order: list[str]) -> Any:
    """Where the rows with these keys are."""
    place = {key: i for i, key in enumerate(keys)}
    return np.array([place[key] for key in order], np.int64)


def _ids(part: ListFile | Predictions) -> list[str]:
    assert part.ids is not None
    texts = list(map(str, part.ids))
    if len(set(texts)) < len(texts):
        seen: set[str] = set()
        twice = next(text for text in texts if text in seen or seen.add(text))  # type: ignore[func-returns-value]
        raise InputError(
            "The ids must be different from each other",
            argument="id",
            source=part.path,
            found=f"{show(twice)} occurs twice",
            values=[twice],
        )
    return texts


def _outcomes(part: ListFile | Predictions, rows: Any) -> list[Hashable]:
    """What happened in some rows, by the names of classes where they have any."""
    values: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in part.y]
    if isinstance(part, Predictions) and part.classes is not None:
        known = set(part.classes)
        values = [value if value in known else part.classes[int(value)] for value in values]
    return [values[row] for row in rows.tolist()]


def _lacking(
    files: Mapping[str, ListFile | Predictions], lacked: Mapping[str, list[str]], by_id: bool
) -> InputError:
    name = next(name for name, ids in lacked.items() if ids)
    if not by_id:
        found = ", ".join(f"{part.path} has {len(part):,} rows" for part in files.values())
        remedy = passing("(the field that says which rows belong together)", id=...)
    else:
        ids = lacked[name]
        found = f"another file lacks {len(ids):,} of {files[name].path}, such as {show(ids[0])}"
        remedy = passing("to compare the rows that all files have", shared_ids=True)
    return InputError(
        "The files must have the same rows", argument="id", kind="missing", found=found, remedies=[remedy]
    )


def _check_outcomes(
    files: Mapping[str, ListFile | Predictions],
    outcomes: Mapping[str, list[Hashable]],
    ids: list[str] | None,
) -> None:
    (name, first), *others = outcomes.items()
    for other, values in others:
        row = next((i for i, (a, b) in enumerate(zip(first, values, strict=True)) if a != b), None)
        if row is not None:
            which = f"row {row}" if ids is None else f"id {show(ids[row])}"
            raise InputError(
                "The files must have the same outcomes",
                argument="target",
                kind="label",
                found=f"{which} is {show(first[row])} in {files[name].path} and {show(values[row])} in "
                f"{files[other].path}",
                rows=[row],
                remedies=[passing("if the rows are in different orders", id=...)] if ids is None else [],
            )
