"""Files of predictions as sources of rows: all of them at once, or in pieces."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.clusters import Groups
from verax.errors import InputError
from verax.files import extract, finding
from verax.files.archives import Stored, find_arrays, stored_arrays, stored_classes
from verax.files.labels import INTEGER, TEXT, Target, find_labels
from verax.files.predictions import Array, Predictions, Request, Roles, join
from verax.files.tables import Table, check_there, format_of

# How much a batch holds unless told otherwise: what one thread scores at a time.
_ROWS, _PROBABILITIES = 2**17, 2**21


class Source(ABC):
    """A file whose columns are known and whose rows have not been read.

    Attributes
    ----------
    roles : which column is what.
    classes : the names of the classes; None where the file has none.
    n_rows : the number of rows; None where only reading tells.
    """

    path: str
    roles: Roles
    classes: tuple[Hashable, ...] | None
    n_rows: int | None

    @property
    def taken(self) -> tuple[str, ...]:
        """What was taken for what, in words: a line each."""
        return self.roles.in_words(self.classes)

    @property
    def width(self) -> int:
        """About how many numbers a row has."""
        return max(2, len(self.classes or self.roles.probs))

    def batches(self, rows: int | None = None, *, coded: bool = False) -> Iterator[Predictions]:
        """All rows in order, about `rows` at a time, each batch with the number of its first row.

        With `coded`, groups come as `clusters.Groups`, which spares sorting them again.
        """
        start = 0
        rows = max(1, min(_ROWS, _PROBABILITIES // self.width)) if rows is None else rows
        for batch in self._batches(rows, coded):
            if len(batch):
                yield replace(batch, start=start)
                start += len(batch)
        if not start:
            raise InputError(f"{self.path} has no rows.", argument="path")

    @abstractmethod
    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]: ...

    def read(self) -> Predictions:
        """All rows."""
        return join(list(self.batches()))


def read(
    path: str | Path,
    *,
    target: str | None = None,
    probs: str | Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | None = None,
    by: Sequence[str] = (),
    id: str | None = None,  # noqa: A002 - the name of the option
    **options: Any,
) -> Predictions:
    """All rows of a file of predictions; the parameters are those of `open`."""
    return open(
        path,
        target=target,
        probs=probs,
        classes=classes,
        weights=weights,
        groups=groups,
        by=by,
        id=id,
        **options,
    ).read()


def open(  # noqa: A001 - files.open is its name
    path: str | Path,
    *,
    target: str | None = None,
    probs: str | Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: str | None = None,
    groups: str | None = None,
    by: Sequence[str] = (),
    id: str | None = None,  # noqa: A002
    positive: str | None = None,
    ordered: bool = False,
    logits: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
) -> Source:
    """Look at a file of predictions and find out which column is what; no row is kept.

    Parameters
    ----------
    path : CSV, TSV (also .gz, .bz2, .zst), Parquet (also a folder of part files), Arrow or Feather,
        JSON Lines, .npz, .npy.
    target : the column of outcomes: positions or names of classes. For .npy: the file of outcomes.
    probs : the columns of probabilities, as names or patterns such as "p_*"; or one column of lists;
        or one column, the probability of the second of two classes. By default found by name.
    classes : the names of the classes: they pick and order the columns of that name, or name columns
        that are only numbered.
    weights, groups, id, by : further columns.
    positive : the class that a single column of probabilities is about.
    ordered : the classes must have a known order: given, that of numbers, or of an ordered dictionary.
    logits : look for logits instead of probabilities.
    delimiter, decimal : of CSV files.
    """
    request = Request(
        target,
        (probs,) if isinstance(probs, str) else tuple(probs or ()),
        None if classes is None else tuple(classes),
        weights,
        groups,
        (by,) if isinstance(by, str) else tuple(by),
        id,
        positive,
        ordered,
        logits,
        delimiter,
        decimal,
    )
    path = Path(path)
    check_there(path)
    if format_of(path) in ("NPZ", "NPY"):
        return _Arrays(path, request)
    return _Columns(path, request)


scan = open


class _Columns(Source):
    """A file of columns."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = str(path)
        self._table = Table(path, request)
        self.n_rows = self._table.n_rows
        kinds = self._table.kinds()
        name = finding.find_target(list(kinds), request, self.path)
        self._target = self._look(name)
        self.roles = finding.find_roles(kinds, request, where=self.path, labels=self._target.seen)
        self._lists = kinds[self.roles.probs[0]] == finding.LIST
        if not self._lists:
            self._table.as_numbers(self.roles.probs)
        n_columns = None if self._lists else len(self.roles.probs)
        self._labels = find_labels(self._target, self.roles.names, n_columns, request)
        self.classes = self._labels.classes
        self._single, self._logits = n_columns == 1, request.logits
        if self._labels.columns is not None:
            probs = tuple(self.roles.probs[i] for i in self._labels.columns)
            self.roles = replace(self.roles, probs=probs, names=None)
        self.roles = replace(self.roles, outcomes_are=self._labels.outcomes_are, renamed=self._labels.renamed)

    def _look(self, name: str) -> Target:
        """What the target holds, from its type and its first rows."""
        kind = self._table.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return Target(name, INTEGER, boolean=bool(pa.types.is_boolean(kind)))
        if _kind_is_odd(kind):
            raise InputError(
                f"{self.path}: column {name!r} must hold classes, as names or whole numbers; "
                f"its type is {kind}.",
                argument="target",
            )
        head = self._table.head(name)
        if head.null_count == len(head):
            extract.refuse_missing(head, f"{self.path}: column {name!r}", "target", 0)
        if pa.types.is_dictionary(kind):
            seen = [str(v) for v in head.dictionary.to_pylist()]
            return Target(name, TEXT, tuple(seen), bool(kind.ordered))
        seen = [str(v) for v in head.unique().to_pylist() if v is not None]
        return Target(name, TEXT, tuple(seen))

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        waiting: list[Any] = []
        start = n = 0
        for batch in self._table.batches(self.roles.columns, rows):
            waiting.append(batch)
            n += batch.num_rows
            if n >= rows:
                yield self._predictions(waiting, start, coded)
                start, n, waiting = start + n, 0, []
        if n:
            yield self._predictions(waiting, start, coded)

    def _predictions(self, batches: list[Any], start: int, coded: bool) -> Predictions:
        table = pa.Table.from_batches(batches)

        def labels(role: str, name: str | None) -> Array | None:
            return None if name is None else extract.labels(table[name], self._where(name), role, start)

        p, weights = self._probabilities(table, start), None
        if self.roles.weights is not None:
            where = self._where(self.roles.weights)
            column = table[self.roles.weights].combine_chunks()
            weights = extract.numbers(_one_chunk(column), where, "weights", start)
        return Predictions(
            self.path,
            self._outcomes(table, start),
            p,
            self.classes,
            self.roles,
            weights,
            self._coded_groups(table, start) if coded else labels("groups", self.roles.groups),
            {name: extract.labels(table[name], self._where(name), "by", start) for name in self.roles.by},
            labels("id", self.roles.id),
        )

    def _coded_groups(self, table: Any, start: int) -> Groups | None:
        name = self.roles.groups
        return None if name is None else extract.groups(table[name], self._where(name), start)

    def _where(self, column: str) -> str:
        return f"{self.path}: column {column!r}"

    def _outcomes(self, table: Any, start: int) -> Array:
        column, where = table[self.roles.target], self._where(self.roles.target)
        if self._target.kind == INTEGER:
            return self._labels.encode_integers(extract.integers(column, where, start), where, start)
        codes, texts = extract.coded(column, where, "target", start)
        return self._labels.encode_texts(codes, texts, where, start)

    def _probabilities(self, table: Any, start: int) -> Array:
        if self._lists:
            column = self.roles.probs[0]
            p = extract.from_lists(table[column], self._where(column), start)
            if self.classes is not None and p.shape[1] != len(self.classes):
                raise InputError(
                    f"{self._where(column)} holds lists of {p.shape[1]} numbers, "
                    f"and {len(self.classes)} classes are named.",
                    argument="classes",
                )
            return p
        p = extract.side_by_side(
            [table[name] for name in self.roles.probs], lambda j: self._where(self.roles.probs[j]), start
        )
        if self._single:
            return both_classes(p[:, 0], self._where(self.roles.probs[0]), self._logits, start)
        return p


class _Arrays(Source):
    """An .npz file, or two .npy files."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = str(path)
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
        self._single, self._logits = n_columns == 1, request.logits
        given = request.classes
        if given is None and path.suffix.lower() == ".npz":
            given = stored_classes(arrays, max(2, n_columns))
        textual = y.dtype.kind in "USO"
        seen = (
            tuple(dict.fromkeys(str(v) for v in next(y.slices(2**16), np.zeros(0, "U")).ravel()))
            if textual
            else ()
        )
        target = Target(self.roles.target, TEXT if textual else INTEGER, seen)
        self._labels = find_labels(target, None, n_columns, replace(request, classes=given))
        self._kind = target.kind
        self.classes = self._labels.classes
        one_hot = len(y.shape) == 2 and y.shape[1] > 1
        self.roles = replace(self.roles, outcomes_are="one-hot" if one_hot else self._labels.outcomes_are)

    def _check_shapes(self, p: Stored) -> None:
        if len(p.shape) not in (1, 2) or p.dtype.kind not in "fiu":
            raise InputError(
                f"{p.where} must hold probabilities (N, K); its shape is {p.shape} and its type {p.dtype}.",
                argument="probs",
            )
        for name in self.roles.columns:
            stored = self._arrays[name]
            if not stored.shape or stored.shape[0] != p.shape[0]:
                raise InputError(
                    f"{stored.where} must have {p.shape[0]} rows, as many as the probabilities; "
                    f"its shape is {stored.shape}.",
                    argument="path",
                )

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        streams = {name: self._arrays[name].slices(rows) for name in self.roles.columns}
        start = 0
        for parts in zip(*streams.values(), strict=True):
            found = dict(zip(streams, parts, strict=True))
            roles = self.roles

            def column(name: str | None, found: dict[str, Array] = found) -> Array | None:
                return None if name is None else found[name].reshape(len(found[name]), -1)[:, 0]

            p = found[roles.probs[0]]
            yield Predictions(
                self.path,
                self._outcomes(found[roles.target], start),
                both_classes(p.reshape(-1), self._arrays[roles.probs[0]].where, self._logits, start)
                if self._single
                else _floating(p),
                self.classes,
                roles,
                column(roles.weights),
                column(roles.groups),
                {name: found[name] for name in roles.by},
                column(roles.id),
            )
            start += len(p)

    def _outcomes(self, y: Array, start: int) -> Array:
        where = self._arrays[self.roles.target].where
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if self._kind == TEXT:
            texts, codes = np.unique(y, return_inverse=True)
            return self._labels.encode_texts(codes, [str(t) for t in texts], where, start)
        if y.ndim > 1 or self.classes is None:
            return y
        whole = extract.integers(pa.chunked_array([pa.array(np.ascontiguousarray(y))]), where, start)
        return self._labels.encode_integers(whole, where, start)


def _pair_of_files(
    path: Path, arrays: dict[str, Stored], request: Request
) -> tuple[dict[str, Stored], Roles]:
    if request.target is None:
        raise InputError(
            f"{path} holds one array, the probabilities. Pass target=..., the .npy file of the outcomes.",
            argument="target",
        )
    other = Path(request.target)
    other = other if other.exists() else path.parent / other
    check_there(other)
    if other.suffix.lower() != ".npy":
        raise InputError(f"{other} must be a .npy file, like {path.name}.", argument="target")
    if request.weights or request.groups or request.by or request.id:
        raise InputError(
            f"{path} has no columns for weights, groups, by or id. Put everything into one .npz file.",
            argument="path",
        )
    return {**arrays, **stored_arrays(other)}, Roles(other.name, (path.name,), logits=request.logits)


def both_classes(p: Array, where: str, logits: bool, start: int) -> Array:
    """The probability of the second of two classes as a row of two (or its logit)."""
    p = p.astype(np.float64, copy=False)
    if logits:
        return np.stack([np.zeros_like(p), p], axis=1)
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where} must hold probabilities between 0 and 1; row {start + row} holds {float(p[row]):.9g}. "
            "Divide percentages by 100; for logits pass logits=True.",
            argument="probs",
            rows=(start + row,),
        )
    return np.stack([1 - p, p], axis=1)


def _floating(p: Array) -> Array:
    return (
        p
        if p.dtype in (np.float32, np.float64)
        else p.astype(np.float32 if p.dtype.itemsize <= 2 and p.dtype.kind == "f" else np.float64)
    )


def _one_chunk(column: Any) -> Any:
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _kind_is_odd(kind: Any) -> bool:
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    return not (textual or pa.types.is_null(kind) or re.match(r"string_view", str(kind)))
