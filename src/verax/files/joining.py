"""Several files about the same rows, brought together: by an id, or by the order of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verax.errors import InputError, show
from verax.files.predictions import Array, Predictions
from verax.files.sources import read


@dataclass(frozen=True)
class Joined:
    """What several models say of the same rows.

    Attributes
    ----------
    y, classes, weights, groups, by, ids : of the rows, as the first file has them.
    models : the probabilities of each model, by name.
    files : what each file was taken to hold.
    how : how the rows were matched, in words.
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
        tails = ["/".join(path.with_suffix("").parts[-depth:]) for _, path in paths]
        names = [name or tail for (name, _), tail in zip(paths, tails, strict=True)]
        if len(set(names)) == len(names):
            break
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"Two models are called {twice[0]!r}. Name them: a=first.csv b=second.csv.", argument="path"
        )
    return dict(zip(names, (path for _, path in paths), strict=True))


def _named(text: str) -> tuple[str | None, Path]:
    name, equals, path = text.partition("=")
    return (name, Path(path)) if equals and name and path and not Path(text).exists() else (None, Path(text))


def read_together(paths: Mapping[str, Path], **request: Any) -> Joined:
    """Read the files of several models and match their rows.

    With an `id` column rows are matched by it, otherwise by their order. Anything that does not fit is an
    error: rows that only one file has, ids that come twice, other classes, other outcomes.

    Parameters
    ----------
    paths : the file of each model, by name.
    request : as for `read`; weights, groups and subgroups are taken from the first file.
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
                f"{first.path} has {len(first):,} rows and {other.path} {len(other):,}. "
                "Pass id=..., a column that says which rows belong together.",
                argument="id",
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
        raise InputError(
            f"{rows.path}: the ids in {rows.roles.id!r} must differ; "
            f"{show(str(values[counts.argmax()]))} comes {counts.max()} times.",
            argument="id",
        )
    return texts


def _lacking(has: Predictions, lacks: Predictions, ids: Array) -> InputError:
    some = ", ".join(show(str(i)) for i in ids[:3]) + (", ..." if len(ids) > 3 else "")
    rows = "1 row" if len(ids) == 1 else f"{len(ids):,} rows"
    return InputError(
        f"{lacks.path} lacks {rows} that {has.path} has: {has.roles.id} {some}. "
        "All models must speak of the same rows.",
        argument="id",
    )


def _check_classes(first: Predictions, other: Predictions) -> None:
    if first.p.shape[1] != other.p.shape[1]:
        raise InputError(
            f"{first.path} has {first.p.shape[1]} classes and {other.path} {other.p.shape[1]}.",
            argument="classes",
        )


def _check_outcomes(first: Predictions, other: Predictions, order: Array | None) -> None:
    outcomes = other.y if order is None else other.y[order]
    differ = (first.y != outcomes).reshape(len(first), -1).any(axis=1)
    if differ.any():
        row = int(np.argmax(differ))
        here, there = _label(first, first.y[row]), _label(first, outcomes[row])
        which = f"row {row}" if first.ids is None else f"{first.roles.id} {show(str(first.ids[row]))}"
        remedy = "If the rows stand in different orders, pass id=..." if first.ids is None else ""
        raise InputError(
            f"{first.path} and {other.path} have different outcomes in {int(differ.sum()):,} "
            f"of {len(first):,} rows: for {which} {here} and {there}. {remedy}".rstrip(),
            argument="target",
            rows=(row,),
        )


def _label(rows: Predictions, outcome: Any) -> str:
    if rows.roles.outcomes_are == "one-hot" or rows.classes is None or outcome in rows.classes:
        return show(np.asarray(outcome).tolist())
    return show(rows.classes[int(outcome)])
