"""Several files about the same rows, matched by an id or by the order of their rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, passing, show
from verax.files.predictions import Array, Predictions
from verax.files.sources import read


@dataclass(frozen=True)
class Joined:
    """The probabilities of several models for the same rows.

    Attributes
    ----------
    y : numpy.ndarray
        The outcomes, as the first file has them.
    classes : tuple[Hashable, ...] | None
        The classes of the first file, which are those of all.
    models : dict[str, numpy.ndarray]
        The probabilities of each model, by name.
    files : dict[str, Predictions]
        The rows of each file.
    how : str
        How the rows were matched.
    """

    y: Array
    classes: tuple[Hashable, ...] | None
    models: dict[str, Array]
    files: dict[str, Predictions]
    how: str

    @property
    def first(self) -> Predictions:
        """The file that the others were matched with."""
        return next(iter(self.files.values()))


def name_files(given: Sequence[str]) -> dict[str, Path]:
    """Names of models: what stands before an equals sign, or the shortest path that tells files apart.

    >>> [(name, str(path)) for name, path in name_files(["a/run.csv", "b/run.csv", "old=c.csv"]).items()]
    [('a/run', 'a/run.csv'), ('b/run', 'b/run.csv'), ('old', 'c.csv')]
    """
    paths = [_named(text) for text in given]
    names: list[str] = []
    for depth in range(1, 1 + max(len(path.parts) for _, path in paths)):
        tails = ["/".join([*path.parts[:-1], path.stem or str(path)][-depth:]) for _, path in paths]
        names = [name or tail for (name, _), tail in zip(paths, tails, strict=True)]
        if len(set(names)) == len(names):
            break
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            "Models must have different names",
            argument="path",
            found=f"two are called {show(twice[0])}",
            remedies=[Remedy("Name them: a=first.csv b=second.csv.")],
        )
    return dict(zip(names, (path for _, path in paths), strict=True))


def _named(text: str) -> tuple[str | None, Path]:
    name, equals, path = text.partition("=")
    named = equals and name and path and not os.path.exists(text)
    return (name, Path(path)) if named else (None, Path(text))


def read_together(paths: Mapping[str, Path], **request: Any) -> Joined:
    """Read the files of several models and match their rows.

    With an `id` column rows are matched by it, otherwise by their order. Anything that does not fit is an
    error: rows that only one file has, ids that come twice, other classes, other outcomes.

    Parameters
    ----------
    paths : Mapping[str, Path]
        The file of each model, by name.
    request : Any
        As for `read`; weights, groups and subgroups are taken from the first file.
    """
    name, path = next(iter(paths.items()))
    first = read(path, **request)
    # The first file says which classes there are and in what order; the others must have the same.
    rest = {key: value for key, value in request.items() if key not in ("weights", "groups", "by")}
    if first.classes is not None:
        rest["classes"] = first.classes
    read_files, models = {name: first}, {name: first.p}
    for other, where in list(paths.items())[1:]:
        found = read(where, **rest)
        order = _order(first, found)
        _check_classes(first, found)
        _check_outcomes(first, found, order)
        read_files[other] = found
        models[other] = found.p if order is None else found.p[order]
    how = "by the order of the rows" if first.ids is None else f"by {first.roles.id}"
    return Joined(first.y, first.classes, models, read_files, how)


def _order(first: Predictions, other: Predictions) -> Array | None:
    """Which row of `other` goes with each row of `first`; None where they stand in the same order."""
    if first.ids is None or other.ids is None:
        if len(first) != len(other):
            raise InputError(
                "The files must have the same rows",
                argument="id",
                kind="length",
                found=f"{first.path} has {len(first):,} rows and {other.path} {len(other):,}",
                values=[len(first), len(other)],
                remedies=[passing("(the column that says which rows belong together)", id=...)],
            )
        return None
    wanted, found = _texts(first), _texts(other)
    places = np.argsort(found, kind="stable")
    at = np.minimum(np.searchsorted(found, wanted, sorter=places), len(found) - 1)
    missing = found[places[at]] != wanted
    if missing.any():
        raise _lacking(first, other, wanted[missing])
    if len(found) > len(wanted):
        raise _lacking(other, first, np.setdiff1d(found, wanted))
    return places[at]


def _texts(rows: Predictions) -> Array:
    texts = np.asarray(rows.ids).astype(str)
    values, counts = np.unique(texts, return_counts=True)
    if len(values) < len(texts):
        value = str(values[counts.argmax()])
        raise InputError(
            f"The ids in {show(rows.roles.id)} must be different from each other",
            argument="id",
            source=rows.path,
            found=f"{show(value)} occurs {counts.max()} times",
            values=[value],
        )
    return texts


def _lacking(has: Predictions, lacks: Predictions, ids: Array) -> InputError:
    some = ", ".join(show(str(i)) for i in ids[:3]) + (", ..." if len(ids) > 3 else "")
    rows = "1 row" if len(ids) == 1 else f"{len(ids):,} rows"
    return InputError(
        "The files must have the same rows",
        argument="id",
        kind="missing",
        found=f"{lacks.path} lacks {rows} of {has.path}: {has.roles.id} {some}",
        values=[str(i) for i in ids[:3]],
    )


def _check_classes(first: Predictions, other: Predictions) -> None:
    n, m = first.p.shape[1], other.p.shape[1]
    if n != m:
        raise InputError(
            "The files must have the same classes",
            argument="classes",
            kind="length",
            found=f"{first.path} has {n} and {other.path} {m}",
            values=[n, m],
        )


def _check_outcomes(first: Predictions, other: Predictions, order: Array | None) -> None:
    outcomes = other.y if order is None else other.y[order]
    if first.y.shape != outcomes.shape:
        raise InputError(
            "The files must have outcomes of one kind",
            argument="target",
            kind="type",
            found=f"{first.path} has {first.roles.outcomes_are} and {other.path} {other.roles.outcomes_are}",
        )
    differ = (first.y != outcomes).reshape(len(first), -1).any(axis=1)
    if differ.any():
        row = int(np.argmax(differ))
        here, there = _label(first, first.y[row]), _label(first, outcomes[row])
        which = f"row {row}" if first.ids is None else f"{first.roles.id} {show(str(first.ids[row]))}"
        raise InputError(
            "The files must have the same outcomes",
            argument="target",
            kind="label",
            found=f"{first.path} and {other.path} differ in {int(differ.sum()):,} of {len(first):,} rows: "
            f"{which} is {here} and {there}",
            rows=(row,),
            count=int(differ.sum()),
            remedies=[passing("if the rows are in different orders", id=...)] if first.ids is None else [],
        )


def _label(rows: Predictions, outcome: Any) -> str:
    if rows.roles.outcomes_are == "one-hot" or rows.classes is None or outcome in rows.classes:
        return show(np.asarray(outcome).tolist())
    return show(rows.classes[int(outcome)])
