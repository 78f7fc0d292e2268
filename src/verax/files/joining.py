"""Several files about the same rows, matched by an id or by the order of their rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from glob import glob
from operator import add
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from verax.common.ids import numbered, repeated
from verax.common.paths import Files, as_path
from verax.common.urls import scheme_of
from verax.errors import InputError, Remedy, join, passing, show
from verax.files.listfile import ListFile
from verax.files.predictions import Array, Predictions, Roles
from verax.files.sources import read
from verax.inputs.reading import named_columns
from verax.inputs.skipping import Skipped


@dataclass(frozen=True)
class LeftOut:
    """The rows of a file that some other file lacks: how many, and the first of their ids."""

    count: int
    ids: tuple[str, ...]

    def __str__(self) -> str:
        shown = [show(text) for text in self.ids]
        more = self.count - len(shown)
        which = join([*shown, *([f"{more:,} more"] if more else [])])
        return f"{self.count:,} {'row' if self.count == 1 else 'rows'} ({which})"


@dataclass(frozen=True)
class Joined:
    r"""The probabilities of several models for the same rows.

    Attributes
    ----------
    y : array of shape (N,) or list
        The outcomes, as the first file has them; the names of classes if any file has top lists.
    classes : tuple or None
        The classes of the first file of full distributions, which are those of all.
    models : dict of str to array of shape (N, K) or TopLists
        The forecasts of each model, by name.
    files : dict of str to Predictions or ListFile
        The matched rows of each file.
    how : str
        How the rows were matched.
    left_out : dict of str to LeftOut
        The rows of each file that others lack; empty unless only shared rows were asked for.
    skipped : Skipped or None
        The rows of the first file that are invalid in any file; None unless these were to be left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("old", "new"):
    ...     _ = (folder / f"{name}.csv").write_text("id,label,p_cat,p_dog\n7,cat,0.8,0.2\n8,dog,0.4,0.6\n")
    >>> joined = files.read_together({"old": folder / "old.csv", "new": folder / "new.csv"})
    >>> list(joined.models), joined.y.tolist()
    (['old', 'new'], [0, 1])
    """

    y: Any
    classes: tuple[Hashable, ...] | None
    models: dict[str, Any]
    files: dict[str, Any]
    how: str
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    skipped: Skipped | None = None

    @property
    def first(self) -> Any:
        """The file that the others were matched with, which has weights, groups, ids and subgroups."""
        return next(iter(self.files.values()))


def name_files(given: Sequence[str]) -> dict[str, Files]:
    """Names of models: what stands before an equals sign, or the shortest path that tells files apart.

    Parameters
    ----------
    given : sequence of str
        Paths or patterns, also as name=path. Several with the same name are files of one model.

    Returns
    -------
    dict of str to Path or tuple of Path
        The file or files of each model, by name.

    Examples
    --------
    >>> [(name, str(path)) for name, path in name_files(["a/run.csv", "b/run.csv", "old=c.csv"]).items()]
    [('a/run', 'a/run.csv'), ('b/run', 'b/run.csv'), ('old', 'c.csv')]
    >>> len(name_files(["new=1.csv", "new=2.csv"])["new"])
    2
    """
    pairs = [_named(text) for text in given]
    taken = {name for name, _ in pairs if name is not None}
    tails = iter(_tails([path for name, path in pairs if name is None], taken))
    files: dict[str, list[Path]] = {}
    for name, path in pairs:
        files.setdefault(next(tails) if name is None else name, []).append(path)
    return {name: paths[0] if len(paths) == 1 else tuple(paths) for name, paths in files.items()}


def files_of_one_model(given: Sequence[str]) -> tuple[str, Files]:
    """The name and the files of the only model.

    Parameters
    ----------
    given : sequence of str
        Paths or patterns, also as name=path; the name must then be the same in all.

    Returns
    -------
    tuple of str and Path or tuple of Path
        The name of the model, by default that of its first file, and its file or files.

    Examples
    --------
    >>> name, paths = files_of_one_model(["1.csv", "2.csv"])
    >>> name, len(paths)
    ('1', 2)
    """
    pairs = [_named(text) for text in given]
    names = list(dict.fromkeys(name for name, _ in pairs))
    if len(names) > 1:
        raise InputError(
            "must be files of one model",
            argument="path",
            found=f"they are called {join([show(name or 'nothing') for name in names])}",
            remedies=[Remedy("`verax compare` takes several models.")],
        )
    paths = tuple(path for _, path in pairs)
    (name, *_) = _tails(paths[:1], set())
    return names[0] or name, paths[0] if len(paths) == 1 else paths


def are_named(given: Sequence[str]) -> bool:
    """Whether the caller says which model files belong to, as name=path."""
    return any(_named(text)[0] is not None for text in given)


def _tails(paths: Sequence[Path], taken: set[str]) -> list[str]:
    """The shortest ends of paths that tell them apart; patterns are called by the folders before them."""
    names: list[str] = []
    parts = [_plain_parts(path) for path in paths]
    for depth in range(1, 1 + max(map(len, parts), default=0)):
        names = ["/".join(folders[-depth:]) for folders in parts]
        if len({*names, *taken}) == len(names) + len(taken):
            return names
    twice = next((name for name, count in Counter([*names, *taken]).items() if count > 1), None)
    if twice is not None:
        raise InputError(
            "Models must have different names",
            argument="path",
            found=f"two are called {show(twice)}",
            remedies=[Remedy("Name them: a=first.csv b=second.csv.")],
        )
    return names


def _plain_parts(path: Path) -> list[str]:
    parts = [*path.parts[:-1], path.stem or str(path)]
    return [part for part in parts if not set(part) & set("*?[")] or parts


def _named(text: str) -> tuple[str | None, Path]:
    name, equals, path = text.partition("=")
    # Folders such as site=a are parts of paths, of patterns and of URLs.
    named = equals and name and path and not (scheme_of(text) or os.path.exists(text) or glob(text))
    return (name, as_path(path)) if named else (None, as_path(text))


def read_together(
    paths: Mapping[str, Path | Sequence[Path]],
    *,
    probs: Mapping[str, Any] | Sequence[str] | str | None = None,
    shared_ids: bool = False,
    **request: Any,
) -> Joined:
    r"""Read the files of several models and match their rows.

    With an `id` column rows are matched by it, otherwise by their order. Anything that does not fit is an
    error: rows that only one file has, ids that come twice, other classes, other outcomes.

    Parameters
    ----------
    paths : mapping of str to Path or sequence of Path
        The file or files of each model, by name. Several models may be in one file.
    probs : mapping, sequence of str or str, optional
        As for `read`, or for each model the columns of its own.
    shared_ids : bool, default False
        Whether to leave out rows whose id some file lacks, and count them.
    **request : Any
        The other parameters of `open`; weights, groups and subgroups are taken from the first file.

    Returns
    -------
    Joined
        The matched rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "both.csv")
    >>> _ = path.write_text("label,old_0,old_1,new_0,new_1\n0,0.6,0.4,0.8,0.2\n1,0.5,0.5,0.4,0.6\n")
    >>> columns = {"old": ["old_0", "old_1"], "new": ["new_0", "new_1"]}
    >>> joined = files.read_together({"old": path, "new": path}, probs=columns)
    >>> joined.models["new"].tolist()
    [[0.8, 0.2], [0.4, 0.6]]
    """
    # The first file says which classes there are and in what order; the others must have the same.
    rest = {key: value for key, value in request.items() if key not in ("weights", "groups", "by")}
    parts: dict[str, Predictions] = {}
    for name, path in paths.items():
        columns = probs[name] if isinstance(probs, Mapping) else probs
        options = {"probs": columns, **(rest if parts else request)}
        parts[name] = with_classes_of(
            {name: part.classes for name, part in parts.items()},
            name,
            options.pop("classes", None),
            partial(read, path, **options),
        )
    return match(parts, shared_ids=shared_ids)


def match(parts: Mapping[str, Predictions | ListFile], *, shared_ids: bool = False) -> Joined:
    r"""Match the rows of files by their ids where all have some, otherwise by their order.

    Parameters
    ----------
    parts : mapping of str to Predictions or ListFile
        The rows of each model, by name.
    shared_ids : bool, default False
        Whether to leave out rows whose id some file lacks, and count them.

    Returns
    -------
    Joined
        The matched rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.csv")
    >>> _ = path.write_text("id,label,p_cat,p_dog\n7,cat,0.8,0.2\n8,dog,0.4,0.6\n")
    >>> joined = files.match({"old": files.read(path, id="id"), "new": files.read(path, id="id")})
    >>> list(joined.models), joined.y.tolist()
    (['old', 'new'], [0, 1])
    """
    dense = [part for part in parts.values() if isinstance(part, Predictions)]
    for other in dense[1:]:
        _check_classes(dense[0], other)
    files, left_out, skipped = _matched(parts, shared_ids)
    by_name = len(dense) < len(files)
    outcomes = [_names(part) if by_name else np.asarray(part.y) for part in files.values()]
    first, *others = files.values()
    for another, there in zip(others, outcomes[1:], strict=True):
        _check_outcomes(first, another, outcomes[0], there)
    files[next(iter(files))] = replace(first, skipped=skipped)
    by_id = all(part.ids is not None for part in files.values())
    how = f"by {_id_name(first)}" if by_id else "by the order of the rows"
    models = {name: part.p if isinstance(part, Predictions) else part.lists for name, part in files.items()}
    y = first.outcomes if isinstance(first, Predictions) and not by_name else outcomes[0].tolist()
    return Joined(y, dense[0].classes if dense else None, models, files, how, left_out, skipped)


def _names(part: Predictions | ListFile) -> Array:
    """What happened in each row, by the names of classes where they have any."""
    values: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in part.y]
    if isinstance(part, Predictions) and part.classes is not None:
        known = set(part.classes)
        values = [value if value in known else part.classes[int(value)] for value in values]
    names = np.empty(len(values), object)
    names[:] = values
    return names


def _id_name(part: Predictions | ListFile) -> str:
    """What the ids of a file are called."""
    return part.roles.id_name if isinstance(part, Predictions) else ", ".join(named_columns(part.id_field))


def _n_given(part: Predictions | ListFile) -> int:
    """How many rows the file has, those included that were left out."""
    return len(part) if part.skipped is None else part.skipped.n_given


class _Read(Protocol):
    """Predictions, or what reads them: it knows how each column was read."""

    @property
    def roles(self) -> Roles: ...


R = TypeVar("R", bound=_Read)


def with_classes_of(
    before: Mapping[str, Sequence[Hashable] | None],
    name: str,
    given: Sequence[Hashable] | None,
    read_as: Callable[..., R],
) -> R:
    """A model read with the classes of those before it, which its columns must be called by, if by names.

    Classes that are given name the columns of every model.
    """
    first, classes = next(iter(before.items()), ("", None))
    if classes is None or given is not None:
        return read_as(classes=given)
    source = ""
    try:
        model = read_as(classes=classes)
    except InputError as error:
        if error.argument != "classes":
            raise
        source = error.source
    else:
        renamed = model.roles.renamed
        if all(str(a).casefold() == b.casefold() for a, b in zip(classes, renamed, strict=False)):
            return model
    raise InputError(
        "must name columns of the same classes for all models",
        argument="probs",
        kind="label",
        found=f"{name} has others than {first}",
        source=source,
        remedies=[passing("in the order of the columns of every model", classes=...)],
    )


def _matched(
    parts: Mapping[str, Predictions | ListFile], shared: bool
) -> tuple[dict[str, Predictions | ListFile], dict[str, LeftOut], Skipped | None]:
    """The rows that all files have, in the order of the first; what was left out of each; invalid rows."""
    by_id = all(part.ids is not None for part in parts.values())
    if shared and not by_id:
        raise InputError(
            "needs ids, by which rows are matched",
            argument="shared_ids",
            kind="missing",
            remedies=[passing("(the column that says which rows belong together)", id=...)],
        )
    if by_id:
        keys, gone = _codes(parts)
    else:
        keys, gone = {name: _numbers(part) for name, part in parts.items()}, {}
        _check_lengths(parts)
    lacks = _Lacks(keys, gone)
    if by_id and not shared:
        _check_ids(parts, lacks)
    common = reduce(lambda a, b: a[np.isin(a, b)], keys.values())
    if not len(common):
        raise InputError(
            "The files must have rows in common", argument="id", kind="missing", found="none is in all"
        )
    files = {name: _in_order(parts[name], keys[name], common) for name in parts}
    lacked = {name: np.flatnonzero(lacks.rows(name, keys)) for name in keys} if shared else {}
    left_out = {
        name: LeftOut(len(rows), tuple(_some_ids(parts[name], rows[:3]))) for name, rows in lacked.items()
    }
    return files, left_out, _skipped(parts, next(iter(files.values())), lacked)


def _skipped(
    parts: Mapping[str, Predictions | ListFile], matched: Predictions | ListFile, lacked: Mapping[str, Array]
) -> Skipped | None:
    """The rows of the first file that are invalid in any, by their numbers there; None unless asked for.

    `lacked` has the places of rows that other files lack.
    """
    left_out = [part.skipped for part in parts.values() if part.skipped is not None]
    if not left_out:
        return None
    name, first = next(iter(parts.items()))
    numbers = _numbers(first)
    gone = ~np.isin(numbers, _numbers(matched))
    if name in lacked:
        gone[lacked[name]] = False
    rows = tuple(sorted([*left_out[0].rows, *numbers[gone].tolist()]))
    count = left_out[0].count + int(gone.sum())
    return Skipped(len(matched) + count, count, rows, reduce(add, left_out).reasons)


def _numbers(part: Predictions | ListFile) -> Array:
    if isinstance(part, ListFile):
        return part.places
    return np.arange(len(part)) if part.rows is None else part.rows


def _in_order(part: Predictions | ListFile, keys: Array, common: Array) -> Predictions | ListFile:
    """The rows of a file that have these keys, in their order."""
    if len(keys) == len(common) and bool((keys == common).all()):
        return part
    places = np.zeros(int(keys.max()) + 1, np.int64)
    places[keys] = np.arange(len(keys))
    return part.take(places[common])


@dataclass(frozen=True)
class _Lacks:
    """Which rows of a file others lack; one that was left out there as invalid is not lacking.

    Attributes
    ----------
    keys : mapping of str to array of int
        For each file the key of each row, the same for the same row.
    gone : mapping of str to array of int
        The keys of the rows that were left out of it.
    """

    keys: Mapping[str, Array]
    gone: Mapping[str, Array]

    def rows(self, name: str, others: Iterable[str]) -> Array:
        """The rows of a file that some of the others lack, as a mask."""
        lacked = np.zeros(len(self.keys[name]), np.bool_)
        for other in others:
            if other != name:
                there = np.concatenate([self.keys[other], self.gone.get(other, self.keys[other][:0])])
                lacked |= ~np.isin(self.keys[name], there)
        return lacked


def _check_ids(parts: Mapping[str, Predictions | ListFile], lacks: _Lacks) -> None:
    """Refuse files that lack rows of each other, the first one first."""
    first = next(iter(parts))
    for other in list(parts)[1:]:
        for has, lacking in ((first, other), (other, first)):
            rows = np.flatnonzero(lacks.rows(has, [lacking]))
            if len(rows):
                raise _lacking(parts[has], parts[lacking], rows)


def _check_lengths(parts: Mapping[str, Predictions | ListFile]) -> None:
    first, *others = parts.values()
    for other in others:
        if _n_given(first) != _n_given(other):
            raise InputError(
                "The files must have the same rows",
                argument="id",
                kind="length",
                found=f"{first.path} has {_n_given(first):,} rows and {other.path} {_n_given(other):,}",
                values=[_n_given(first), _n_given(other)],
                remedies=[passing("(the column that says which rows belong together)", id=...)],
            )


def _codes(parts: Mapping[str, Predictions | ListFile]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Codes of the ids of each file, and of those that were left out of it; repeated ids are refused."""
    columns = [np.asarray(part.ids) for part in parts.values()]
    gone = [
        np.array(part.ids_left_out if isinstance(part, Predictions) else (), str) for part in parts.values()
    ]
    codes, _ = numbered([*columns, *gone], "id", [part.path for part in parts.values()])
    for part, column in zip(parts.values(), codes, strict=False):
        rows = repeated(column)
        if rows is not None:
            value = str(np.asarray(part.ids)[rows[0]])
            raise InputError(
                f"The ids in {show(_id_name(part))} must be different from each other",
                argument="id",
                source=part.path,
                found=f"{show(value)} occurs {int((column == column[rows[0]]).sum())} times",
                values=[value],
            )
    n = len(parts)
    return dict(zip(parts, codes[:n], strict=True)), dict(zip(parts, codes[n:], strict=True))


def _some_ids(part: Predictions | ListFile, places: Array) -> list[str]:
    ids: Any = part.ids
    return [str(ids[place]) for place in places.tolist()]


def _lacking(has: Predictions | ListFile, lacks: Predictions | ListFile, places: Array) -> InputError:
    """The error about rows of a file, at these places, that another lacks."""
    ids = _some_ids(has, places[:3])
    some = ", ".join(map(show, ids)) + (", ..." if len(places) > 3 else "")
    rows = "1 row" if len(places) == 1 else f"{len(places):,} rows"
    return InputError(
        "The files must have the same rows",
        argument="id",
        kind="missing",
        found=f"{lacks.path} lacks {rows} of {has.path}: {_id_name(has)} {some}",
        values=ids,
        count=len(places),
        remedies=[passing("to compare the rows that all files have", shared_ids=True)],
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


def _check_outcomes(
    first: Predictions | ListFile, other: Predictions | ListFile, here: Array, there: Array
) -> None:
    raters = [part.roles.raters for part in (first, other) if isinstance(part, Predictions)]
    if len(set(raters)) > 1:
        raise InputError(
            "The files must have the same raters",
            argument="raters",
            kind="label",
            found=f"{first.path} has {join(raters[0])}, and {other.path} {join(raters[1])}",
        )
    if here.shape != there.shape:
        raise InputError(
            "The files must have outcomes of one kind",
            argument="target",
            kind="type",
            found=f"{first.path} and {other.path} have one-hot rows and single outcomes",
        )
    differ = (here != there).reshape(len(first), -1).any(axis=1)
    if differ.any():
        row = int(np.argmax(differ))
        number = int(_numbers(first)[row])
        which = f"row {number}" if first.ids is None else f"{_id_name(first)} {show(str(first.ids[row]))}"
        raise InputError(
            "The files must have the same outcomes",
            argument="target",
            kind="label",
            found=f"{first.path} and {other.path} differ in {int(differ.sum()):,} of {len(first):,} rows: "
            f"{which} is {_label(first, here[row])} and {_label(first, there[row])}",
            rows=(number,),
            count=int(differ.sum()),
            remedies=[passing("if the rows are in different orders", id=...)] if first.ids is None else [],
        )


def _label(rows: Predictions | ListFile, outcome: Any) -> str:
    if isinstance(rows, Predictions) and rows.roles.raters and not rows.roles.counted:
        names = range(rows.p.shape[1]) if rows.classes is None else rows.classes
        return show([None if code < 0 else names[code] for code in outcome.tolist()])
    if (
        isinstance(rows, ListFile)
        or rows.roles.counted
        or rows.roles.outcomes_are == "one-hot"
        or rows.classes is None
        or outcome in rows.classes
    ):
        return show(np.asarray(outcome).tolist())
    return show(rows.classes[int(outcome)])
