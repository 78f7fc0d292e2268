"""Files of predictions as sources of rows: all of them at once, or in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from verax.common.paths import check_exists
from verax.errors import InputError, Remedy, passing, show
from verax.files import arrow, column_roles
from verax.files.arrow import Bools, Place
from verax.files.formats.npy import Stored, find_arrays, stored_arrays, stored_classes
from verax.files.formats.tables import TEXTS, Table, format_of
from verax.files.labels import INTEGER, TEXT, Target, find_labels
from verax.files.predictions import Array, Predictions, Request, Roles, concatenate, each_name
from verax.inputs.groups import Groups, crossed, paired
from verax.inputs.skipping import REASONS, Skipped, Survey
from verax.inputs.validity import Unity

# The rows of a batch, and the numbers in them, unless told otherwise: what one thread scores at a time.
_ROWS, _PROBABILITIES = 2**17, 2**21


class Source(ABC):
    """A file whose columns are known and whose rows have not been read.

    Attributes
    ----------
    path : str
    roles : Roles
        Which column is what.
    classes : tuple[Hashable, ...] | None
        The names of the classes; None where the file has none.
    n_rows : int | None
        The number of rows; None where only reading tells.
    width : int
        How many probabilities a row has.
    skipped : Skipped | None
        The invalid rows left out of what was read last; None unless that was asked for.
    """

    path: str
    roles: Roles
    classes: tuple[Hashable, ...] | None
    n_rows: int | None
    width: int
    skipped: Skipped | None = None
    _request: Request

    @property
    def taken(self) -> tuple[str, ...]:
        """What was taken for what: a line each."""
        return self.roles.in_words(self.classes)

    def batches(self, rows: int | None = None, *, coded: bool = False) -> Iterator[Predictions]:
        """All rows in order, about `rows` at a time, each batch with the number of its first row.

        Parameters
        ----------
        rows : int | None
            By default as many as keep a batch to some megabytes.
        coded : bool
            Return groups as `Groups`, which saves sorting them again.
        """
        start = left = 0
        self.skipped = Skipped(0) if self._request.invalid == "skip" else None
        rows = max(1, min(_ROWS, _PROBABILITIES // self.width)) if rows is None else rows
        for batch in self._batches(rows, coded):
            whole = replace(batch, start=start)
            start += batch.n_given
            if self.skipped is not None:
                whole = whole.valid(normalize=self._request.normalize, logits=self._request.logits)
                self.skipped += whole.skipped or Skipped(len(whole))
            if len(whole):
                left += len(whole)
                yield whole
        if not start:
            raise InputError(f"{self.path} has no rows", argument="path", kind="file")
        if not left:
            raise InputError(
                f"{self.path} has no valid row", argument="path", kind="file", found=str(self.skipped)
            )

    @abstractmethod
    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]: ...

    def read(self) -> Predictions:
        """All rows."""
        return concatenate(list(self.batches()))


def read(path: str | Path, **options: Any) -> Predictions:
    """All rows of a file of predictions; the parameters are those of `open`."""
    return open(path, **options).read()


def open(  # noqa: A001 - files.open is its name
    path: str | Path,
    *,
    target: str | None = None,
    probs: str | Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    id: str | None = None,  # noqa: A002
    positive: str | None = None,
    ordered: bool = False,
    logits: bool = False,
    normalize: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    invalid: Literal["raise", "skip"] = "raise",
) -> Source:
    """Look at a file of predictions and find out which column is what; no row is kept.

    Parameters
    ----------
    path : str | Path
        CSV, TSV (also .gz, .bz2, .zst), Parquet (also a folder of part files), Arrow or Feather, JSON Lines,
        .npz, .npy.
    target : str | None
        The column of outcomes: positions or names of classes. For .npy: the file of outcomes.
    probs : str | Sequence[str] | None
        The columns of probabilities, as names or patterns such as "p_*"; or one column of lists; or one
        column, the probability of the second of two classes. By default found by name.
    classes : Sequence[Hashable] | None
        The names of the classes: they pick and order the columns of that name, or name columns that are
        only numbered.
    weights, groups, id : str | None
        Further columns. Rows that belong together in two ways have two columns of groups.
    by : str | Sequence[str]
        Columns of subgroups.
    positive : str | None
        The class that a single column of probabilities is about.
    ordered : bool
        The classes must have a known order: given, that of numbers, or of an ordered dictionary.
    logits : bool
        Look for logits instead of probabilities.
    normalize : bool
        Rows will be divided by their sums: look for percentages, too.
    delimiter, decimal : str
        Of CSV files.
    invalid : {"raise", "skip"}
        What to do with rows that are invalid or lack a value: refuse them, or leave them out. They are
        counted and listed, and all other rows keep their numbers.
    """
    request = Request.of(
        target=target,
        probs=probs,
        classes=classes,
        weights=weights,
        groups=groups,
        by=by,
        id=id,
        positive=positive,
        ordered=ordered,
        logits=logits,
        normalize=normalize,
        delimiter=delimiter,
        decimal=decimal,
        invalid=invalid,
    )
    if not isinstance(path, (str, Path)):
        raise InputError("must be the name of a file", argument="path", kind="type", found=show(path))
    path = Path(path)
    check_exists(path)
    if format_of(path) in ("NPZ", "NPY"):
        return _Arrays(path, request)
    return _Columns(path, request)


scan = open


class _Columns(Source):
    """A file of columns."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = str(path)
        self._request = request
        self._table = Table(path, request)
        self.n_rows = self._table.n_rows
        kinds = self._table.kinds()
        self._target = self._look(column_roles.find_target(list(kinds), request, self.path))
        look = column_roles.Look(kinds, self._table.numbers, self._table.lists, self._target.seen)
        self.roles = column_roles.find_roles(look, request, where=self.path)
        self._lists = kinds[self.roles.probs[0]] == column_roles.LIST
        n_columns = None if self._lists else len(self.roles.probs)
        self._labels = find_labels(self._target, self.roles.names, n_columns, request, self.path)
        self.classes = self._labels.classes
        self._single = n_columns == 1
        if self._labels.columns is not None:
            probs = tuple(self.roles.probs[i] for i in self._labels.columns)
            self.roles = replace(self.roles, probs=probs, names=None)
        self.roles = replace(self.roles, outcomes_are=self._labels.outcomes_are, renamed=self._labels.renamed)
        self._table.as_numbers({*self.roles.probs, self.roles.weights} - {self.roles.target, None})  # type: ignore[arg-type]
        self.width = self._length_of_lists() if self._lists else max(2, len(self.roles.probs))

    def _look(self, name: str) -> Target:
        """What the target holds, from its type and its first rows."""
        kind = self._table.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return Target(name, INTEGER, boolean=bool(pa.types.is_boolean(kind)))
        place = self._place(name, "target")
        if not arrow.is_text(kind):
            raise place.refusal("must hold classes, as names or whole numbers", f"its type is {kind}")
        head = self._table.head(name)
        if head.null_count == len(head):
            arrow.refuse_missing(head, place)
        if pa.types.is_dictionary(kind):
            seen = [str(v) for v in head.chunk(0).dictionary.to_pylist() if v is not None]
            return Target(name, TEXT, tuple(seen), bool(kind.ordered))
        seen = [str(v) for v in head.unique().to_pylist() if v is not None]
        if self._table.format in TEXTS:
            return Target.of_cells(name, self._plain_numbers(seen))
        return Target(name, TEXT, tuple(seen))

    def _length_of_lists(self) -> int:
        """How many numbers the first list has."""
        place = self._place(self.roles.probs[0], "probs")
        first = self._table.head(place.column, 1)
        arrow.refuse_missing(first, place)
        width = len(first[0])
        if self.classes is not None and width != len(self.classes):
            raise place.refusal(
                f"must hold lists of {len(self.classes)} numbers, as many as there are classes",
                f"holds {width}",
                at=0,
                value=width,
                kind="length",
                remedies=[passing("that names all of them", classes=...)],
            )
        if width < 2:
            raise place.refusal(
                "must hold lists of two numbers or more", f"holds {width}", at=0, value=width, kind="length"
            )
        return width

    def _place(self, column: str, argument: str, start: int = 0) -> Place:
        decimal = self._request.decimal if self._table.format in TEXTS else "."
        return Place(self.path, column, argument, start, decimal=decimal)

    def _plain_numbers(self, cells: list[str]) -> list[str]:
        """Cells with the decimal mark of Python."""
        mark = self._request.decimal
        return cells if mark == "." else [cell.replace(mark, ".") for cell in cells]

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        waiting: list[Any] = []
        start = n = 0
        for batch in self._table.batches(self.roles.columns, rows):
            # Parts of a folder and blocks of a JSON file may have types of their own.
            if waiting and (n >= rows or batch.schema != waiting[0].schema):
                yield self._predictions(waiting, start, coded)
                start, n, waiting = start + n, 0, []
            waiting.append(batch)
            n += batch.num_rows
        if n:
            yield self._predictions(waiting, start, coded)

    def _predictions(self, batches: list[Any], start: int, coded: bool) -> Predictions:
        table = pa.Table.from_batches(batches)
        if self._request.invalid == "skip":
            survey = self._unusable(table)
            kept = survey.kept
            found = self._of_table(table.take(kept), start, coded)
            gone = self._ids_of(table.take(np.flatnonzero(survey.bad)))
            return replace(found, rows=start + kept, skipped=survey.skipped(start), ids_left_out=gone)
        return self._of_table(table, start, coded)

    def _ids_of(self, table: Any) -> tuple[str, ...]:
        """The ids of some rows, without missing ones."""
        if self.roles.id is None or not table.num_rows:
            return ()
        column = table[self.roles.id].drop_null()
        return tuple(str(text) for text in arrow.labels(column, self._place(self.roles.id, "id")))

    def _unusable(self, table: Any) -> Survey:
        """The rows that cannot be read: a value is missing, or is no number, no list or no class."""
        survey, roles = Survey(table.num_rows), self.roles
        for argument, names in (
            ("groups", each_name(roles.groups)),
            ("by", roles.by),
            ("id", each_name(roles.id)),
        ):
            for name in names:
                survey.add(arrow.missing(table[name]), REASONS[argument, "missing"])
        if roles.weights is not None:
            weights = arrow.unusable(table[roles.weights], self._place(roles.weights, "weights"))
            survey.add(weights, REASONS["weights", "sign"])
        for name in roles.probs:
            column, place = table[name], self._place(name, "probs")
            bad = arrow.unusable_lists(column, self.width) if self._lists else arrow.unusable(column, place)
            survey.add(bad, REASONS["p", "finite"])
            if self._single and not self._request.logits:
                usable = np.flatnonzero(~bad)
                p = arrow.side_by_side([column.take(usable)], [place])[:, 0]
                survey.add(usable[~is_probability(p)], REASONS["p", "sign"])
        self._add_outcomes(table[roles.target], survey)
        return survey

    def _add_outcomes(self, column: Any, survey: Survey) -> None:
        """Note the rows without an outcome, or with one that is no class."""
        bad = arrow.missing(column)
        survey.add(bad, REASONS["y", "missing"])
        there = np.flatnonzero(~bad)
        column, place = column.take(there), self._place(self.roles.target, "target")
        if arrow.is_text(column.type):
            codes, texts = arrow.coded(column, place)
            y = self._labels.positions(codes, self._as_typed(texts))
        else:
            y = self._labels.positions_where_whole(arrow.view(column.cast(pa.float64(), safe=False)))
        survey.add(there[y < 0], REASONS["y", "label"])

    def _as_typed(self, texts: list[str]) -> list[str]:
        """Outcomes of a CSV file with the decimal mark of Python, where they are numbers."""
        return self._plain_numbers(texts) if self._target.cells and self._target.kind == INTEGER else texts

    def _of_table(self, table: Any, start: int, coded: bool) -> Predictions:
        roles = self.roles

        def labels(argument: str, name: str | None) -> Array | None:
            if name is None:
                return None
            return arrow.labels(table[name], self._checked(table, name, argument, start))

        def groups(name: str) -> Groups:
            return arrow.groups(table[name], self._checked(table, name, "groups", start))

        kinds: list[Any] = [groups(n) if coded else labels("groups", n) for n in each_name(roles.groups)]
        return Predictions(
            self.path,
            self._outcomes(table, start),
            self._probabilities(table, start),
            self.classes,
            roles,
            self._weights(table, start),
            _together(kinds),
            {name: labels("by", name) for name in roles.by},  # type: ignore[misc]
            labels("id", roles.id),
        )

    def _checked(self, table: Any, name: str, argument: str, start: int) -> Place:
        """The place of labels, which must be texts everywhere or numbers everywhere."""
        place = self._place(name, argument, start)
        first, here = self._table.schema.field(name).type, table.schema.field(name).type
        if first != here and arrow.is_text(first) != arrow.is_text(here):
            raise place.refusal("must hold values of one type", f"holds {here} after {first}", at=0)
        return place

    def _weights(self, table: Any, start: int) -> Array | None:
        name = self.roles.weights
        if name is None:
            return None
        return arrow.side_by_side([table[name]], [self._place(name, "weights", start)])[:, 0]

    def _outcomes(self, table: Any, start: int) -> Array:
        column, place = table[self.roles.target], self._place(self.roles.target, "target", start)
        if not arrow.is_text(column.type):
            return self._labels.encode_integers(arrow.integers(column, place), place)
        codes, texts = arrow.coded(column, place)
        return self._labels.encode_texts(codes, self._as_typed(texts), place)

    def _probabilities(self, table: Any, start: int) -> Array:
        places = [self._place(name, "probs", start) for name in self.roles.probs]
        if self._lists:
            return arrow.from_lists(table[self.roles.probs[0]], places[0], self.width)
        p = arrow.side_by_side([table[name] for name in self.roles.probs], places)
        return both_classes(p[:, 0], places[0], self._request.logits) if self._single else p


class _Arrays(Source):
    """An .npz file, or two .npy files."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = str(path)
        self._request = request
        arrays = stored_arrays(path)
        if path.suffix.lower() == ".npy":
            arrays, self.roles = _pair_of_files(path, arrays, request)
        else:
            self.roles = find_arrays(arrays, request, path)
        self._arrays = arrays
        p, y = arrays[self.roles.probs[0]], arrays[self.roles.target]
        self._check_shapes(p)
        self.n_rows = p.shape[0]
        n_columns = 1 if len(p.shape) == 1 or p.shape[1] == 1 else p.shape[1]
        self.width = max(2, n_columns)
        self._single, self._logits = n_columns == 1, request.logits
        given = request.classes
        if given is None and path.suffix.lower() == ".npz":
            given = stored_classes(arrays, self.width)
        target = self._look(y)
        self._kind = target.kind
        self._labels = find_labels(target, None, n_columns, replace(request, classes=given), self.path)
        self.classes = self._labels.classes
        one_hot = len(y.shape) == 2 and y.shape[1] > 1
        self.roles = replace(self.roles, outcomes_are="one-hot" if one_hot else self._labels.outcomes_are)

    def _look(self, y: Stored) -> Target:
        """What the outcomes are, from their type and the first of them."""
        if y.dtype.kind in "biuf":
            return Target(self.roles.target, INTEGER, boolean=y.dtype.kind == "b")
        if y.dtype.kind not in "US" or len(y.shape) > 2 or (len(y.shape) == 2 and y.shape[1] != 1):
            raise y.refusal(
                "must hold positions, names of classes, or one-hot rows; "
                f"its shape is {y.shape} and its type {y.dtype}",
                "target",
            )
        first: Array = next(y.slices(2**16), np.zeros(0, "U"))
        seen = dict.fromkeys(_texts(first.ravel(), self._place("target")))
        return Target(self.roles.target, TEXT, tuple(seen))

    def _place(self, argument: str, start: int = 0) -> Place:
        name = self.roles.probs[0] if argument == "probs" else self.roles.target
        return Place(self.path, name, argument, start)

    def _check_shapes(self, p: Stored) -> None:
        if len(p.shape) not in (1, 2) or 0 in p.shape[1:] or p.dtype.kind not in "fiu":
            raise p.refusal(
                f"must hold probabilities of shape (N, K); its shape is {p.shape} and its type {p.dtype}",
                "probs",
            )
        for name in self.roles.columns:
            stored = self._arrays[name]
            if not stored.shape or stored.shape[0] != p.shape[0]:
                raise stored.refusal(
                    f"must have {p.shape[0]} rows, as many as the probabilities; its shape is {stored.shape}"
                )
            single = len(stored.shape) == 1 or stored.shape[1:] == (1,)
            if name not in (self.roles.probs[0], self.roles.target) and not single:
                raise stored.refusal(f"must have one value per row; its shape is {stored.shape}")

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        streams = {name: self._arrays[name].slices(rows) for name in self.roles.columns}
        start = 0
        for parts in zip(*streams.values(), strict=True):
            found = dict(zip(streams, parts, strict=True))
            n = len(found[self.roles.probs[0]])
            if self._request.invalid == "skip":
                survey = self._unusable(found)
                usable = {name: values[survey.kept] for name, values in found.items()}
                batch = self._predictions(usable, start)
                yield replace(batch, rows=start + survey.kept, skipped=survey.skipped(start))
            else:
                yield self._predictions(found, start)
            start += n

    def _unusable(self, found: dict[str, Array]) -> Survey:
        """The rows whose outcome is no class or whose only probability is none."""
        p, y = found[self.roles.probs[0]], found[self.roles.target]
        survey = Survey(len(p))
        if self._single and not self._logits:
            survey.add(~is_probability(p.reshape(-1)), REASONS["p", "sign"])
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if self._kind == TEXT:
            texts, codes = np.unique(y, return_inverse=True)
            survey.add(
                self._labels.positions(codes, _texts(texts, self._place("target"))) < 0, REASONS["y", "label"]
            )
        elif y.ndim == 1:
            survey.add(self._labels.positions_where_whole(y) < 0, REASONS["y", "label"])
        return survey

    def _predictions(self, found: dict[str, Array], start: int) -> Predictions:
        roles = self.roles

        def column(name: str | None) -> Array | None:
            return None if name is None else found[name].reshape(-1)

        p = found[roles.probs[0]]
        if self._single:
            p = both_classes(p.reshape(-1), self._place("probs", start), self._logits)
        return Predictions(
            self.path,
            self._outcomes(found[roles.target], start),
            _floating(p),
            self.classes,
            roles,
            column(roles.weights),
            _together([column(name) for name in each_name(roles.groups)]),
            {name: found[name].reshape(-1) for name in roles.by},
            column(roles.id),
        )

    def _outcomes(self, y: Array, start: int) -> Array:
        place = self._place("target", start)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if self._kind == TEXT:
            texts, codes = np.unique(y, return_inverse=True)
            return self._labels.encode_texts(codes, _texts(texts, place), place)
        if y.ndim > 1 or self.classes is None:
            return y
        whole = arrow.integers(pa.chunked_array([pa.array(np.ascontiguousarray(y))]), place)
        return self._labels.encode_integers(whole, place)


def _together(kinds: list[Any]) -> Any:
    """The labels of no, one or two kinds of groups, coded or not, as the groups of the rows."""
    if len(kinds) < 2:
        return kinds[0] if kinds else None
    return crossed(*kinds) if isinstance(kinds[0], Groups) else paired(*kinds)


def _texts(values: Array, place: Place) -> list[str]:
    """Texts of an array; bytes must be UTF-8."""
    try:
        return [v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist()]
    except UnicodeDecodeError:
        raise place.refusal("must hold texts", "it holds bytes that are not UTF-8") from None


def _pair_of_files(
    path: Path, arrays: dict[str, Stored], request: Request
) -> tuple[dict[str, Stored], Roles]:
    if request.target is None:
        raise InputError(
            f"{path} holds one array, the probabilities; the outcomes are in another .npy file",
            argument="target",
            kind="missing",
            remedies=[passing("(that file)", target=...)],
        )
    other = Path(request.target)
    beside = path.parent / other
    other = beside if beside.exists() and not other.exists() else other
    check_exists(other)
    if other.suffix.lower() != ".npy":
        raise InputError(f"{other} must be a .npy file, like {path.name}", argument="target", kind="file")
    if request.weights or request.groups or request.by or request.id:
        raise InputError(
            f"{path} has no columns for weights, groups, subgroups or ids",
            argument="path",
            kind="missing",
            remedies=[Remedy("Put everything into one .npz file.")],
        )
    name = other.name if other.name != path.name else str(other)
    (stored,) = stored_arrays(other).values()
    return {**arrays, name: stored}, Roles(name, (path.name,), logits=request.logits)


def both_classes(p: Array, place: Place, logits: bool) -> Array:
    """The probability of the second of two classes as a row of two (or its logit)."""
    unity, p = Unity.at(64), p.astype(np.float64, copy=False)
    if logits:
        return np.stack([np.zeros_like(p), p], axis=1)
    rows = unity.both_classes(p, np)
    bad = ~is_probability(p)
    if bad.any():
        at = int(np.argmax(bad))
        value = float(p[at])
        raise place.refusal(
            "must hold probabilities between 0 and 1",
            f"holds {show(value)}",
            at=at,
            value=value,
            kind="value",
            count=int(bad.sum()),
            remedies=[Remedy("Divide percentages by 100."), passing("if these are logits", logits=True)],
        )
    return np.asarray(rows)


def is_probability(p: Array) -> Bools:
    """Which numbers may be the probability of the second of two classes."""
    unity = Unity.at(64)
    return unity.holds(np.asarray(unity.both_classes(p.astype(np.float64, copy=False), np)))


def _floating(p: Array) -> Array:
    return p if p.dtype in (np.float16, np.float32, np.float64) else p.astype(np.float64)
