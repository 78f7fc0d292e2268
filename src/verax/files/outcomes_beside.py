"""Outcomes in another file: a further column, matched by an id or by order, or ones that come later."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verax.common.ids import id_of
from verax.common.paths import as_path, matching
from verax.errors import InputError, Remedy, join, passing, show
from verax.files import arrow
from verax.files.arrow import ValueOrigin
from verax.files.column_files import ColumnFile
from verax.files.column_roles import REAL, find_target
from verax.files.formats.npy import array_of_probabilities, stored_arrays
from verax.files.formats.several import BatchReader, Located
from verax.files.formats.tables import ARRAYS, ROWS_AT_ONCE, TEXTS, SourceTable, common_format
from verax.files.formats.texts import ending
from verax.files.labels import Target
from verax.files.naming import TARGETS, is_id, spoken
from verax.files.predictions import Array, Predictions, short, together_ids
from verax.files.reference_answers import ReferenceAnswers, column_names, read_gold
from verax.inputs.lists.outcomes import alike
from verax.inputs.lists.vocabulary import ClassVocabulary
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.texts import merger

_SKIP = passing("to leave them out", invalid="skip")


def with_outcomes(table: SourceTable, path: str, request: Reading) -> tuple[SourceTable, Reading]:
    """A table with the outcomes that another file has for its rows as a further column, and its reading.

    Rows are matched by the columns of ids that were named, by the one id that both files have, or by order. A
    column of both files, as in submissions, holds probabilities in this one.
    """
    there = column_names(as_path(path), request.delimiter)
    here: Sequence[str] = table.schema.names
    ids = named_columns(request.id)
    for name in ids:
        if name not in here:
            raise InputError(
                f"There is no column {show(name)} (id)",
                argument="id",
                kind="missing",
                found=f"it has {short(here)}",
                source=table.name,
            )
    if not ids and there:
        ids = _shared_id(here, there, request.target, table.name, path)
    answers = read_gold(path, request.target, ids, request.delimiter, like=here)
    is_column = answers.column in here
    file = as_path(path).name
    target = f"{answers.column} ({file})" if is_column or not answers.column else answers.column
    kinds = table.kinds if is_column else {}
    first = table.numbers([answers.column]) if kinds.get(answers.column) == REAL else np.full((1, 1), np.nan)
    probs = (answers.column,) if ((first >= 0) & (first <= 1)).all() else ()
    # Outcomes in the file itself are neither read nor treated as probabilities.
    left_out = {name for name in here if spoken(name) in TARGETS and name not in (*probs, *ids)}
    reader = _WithOutcomes(table.reader, answers, ids, target, left_out, table.name)
    reader.column = _typed(answers, table.format)
    reader.skipping = request.invalid == "skip"
    joined = SourceTable(table.name, table.format, request, lambda: reader, table.files)
    given: Any = request.probs
    if isinstance(given, Mapping):
        given = {name: columns or probs for name, columns in given.items()}
    elif not request.sets:
        given = given or probs
    return joined, replace(request, target=target, id=ids, probs=given, outcomes=None)


def _shared_id(
    here: Sequence[str], there: Sequence[str], target: str | None, name: str, path: str
) -> tuple[str, ...]:
    """The one column that both files have and that is called like an id; none where there is none."""
    shared = [column for column in here if column in there and column != target and is_id(column)]
    if len(shared) > 1:
        raise InputError(
            "must name the column that says which rows belong together",
            argument="id",
            kind="missing",
            found=f"{name} and {path} both have {join(map(show, shared))}",
            remedies=[passing(id=shared[0]), passing("if they do so together", id=shared)],
        )
    return tuple(shared)


def _typed(answers: ReferenceAnswers, kind: str) -> Any:
    """The outcomes as a column of the type that tables of this format have."""
    outcomes = answers.outcomes
    values: list[Any] = list(outcomes.values()) if isinstance(outcomes, Mapping) else list(outcomes)
    given = [value for value in values if value is not None]
    if kind not in TEXTS:
        if all(isinstance(value, bool) for value in given):
            return pa.array(values, pa.bool_())
        if all(isinstance(value, int) for value in given):
            return pa.array(values, pa.int64())
        if all(isinstance(value, str) for value in given):
            # The cells of a text file do not say whether they are numbers.
            cells = Target.of_cells("", list(dict.fromkeys(given)))
            if cells.kind == "integer" and not cells.boolean:
                return pa.array([None if v is None else int(float(v)) for v in values], pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


class _WithOutcomes:
    """Batches of columns with those of another file beside them.

    Attributes
    ----------
    notes : tuple[str, ...]
        How rows were matched, and what was left over.
    """

    column: Any
    skipping = False

    def __init__(
        self,
        reader: BatchReader,
        answers: ReferenceAnswers,
        ids: Sequence[str],
        target: str,
        left_out: Collection[str],
        name: str,
    ) -> None:
        self._reader, self._answers, self._ids = reader, answers, list(ids)
        self._target, self._left_out, self._name = target, left_out, name
        self._unused = 0
        outcomes = answers.outcomes
        self._keys: Any = pa.array(outcomes.keys(), pa.string()) if isinstance(outcomes, Mapping) else None

    @property
    def schema(self) -> Any:
        """The columns of the table, with the outcomes at the end."""
        fields = [field for field in self._reader.schema if field.name not in self._left_out]
        return pa.schema([*fields, pa.field(self._target, self.column.type)])

    @property
    def n_rows(self) -> int | None:
        """The number of rows of the table."""
        return self._reader.n_rows

    @property
    def numbers(self) -> Collection[str]:
        """Columns of texts that are to be read as numbers."""
        return getattr(self._reader, "numbers", ())

    @numbers.setter
    def numbers(self, columns: Collection[str]) -> None:
        if hasattr(self._reader, "numbers"):
            self._reader.numbers = {name for name in columns if name != self._target}

    @property
    def notes(self) -> tuple[str, ...]:
        how = f"by {join(self._ids)}" if self._keys is not None else "by the order of the rows"
        left = f" {self._unused:,} of its ids have no prediction." if self._unused else ""
        return (
            *getattr(self._reader, "notes", ()),
            f"Outcomes are those of {self._answers.path}, matched {how}.{left}",
        )

    def place_of(self, row: int) -> str:
        """Where a row is."""
        return self._reader.place_of(row) if isinstance(self._reader, Located) else self._name

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time; when all were read, no outcome may be left."""
        wanted = [name for name in columns if name != self._target]
        needed = list(dict.fromkeys([*wanted, *self._ids])) or self._reader.schema.names[:1]
        start, used = 0, np.zeros(len(self.column), np.bool_)
        for batch in self._reader.batches(needed, rows):
            places = self._places(batch, start)
            used[places[places >= 0]] = True
            start += batch.num_rows
            outcomes = self.column.take(pa.array(places, mask=places < 0))
            arrays = [outcomes if name == self._target else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
        if self._keys is None:
            self._answers.check_length(start)
        else:
            self._check_used(used)

    def _places(self, batch: Any, start: int) -> np.ndarray[Any, Any]:
        """The place of the outcome of each row; -1 where it has none, which is to be skipped."""
        if self._keys is None:
            if start + batch.num_rows > len(self.column):
                self._answers.check_length(start + batch.num_rows)
            return np.arange(start, start + batch.num_rows)
        given = [batch.column(name) for name in self._ids]
        if len(given) == 1 and pa.types.is_integer(given[0].type):
            ids = given[0].cast(pa.string())
        else:
            values = zip(*(column.to_pylist() for column in given), strict=True)
            ids = pa.array([id_of(row_values) for row_values in values], pa.string())
        places = np.asarray(pc.fill_null(pc.index_in(ids, self._keys), -1))
        lacking = np.flatnonzero(places < 0)
        if len(lacking) and not self.skipping:
            first = [ids[int(row)].as_py() for row in lacking[:3]]
            raise InputError(
                f"must have an outcome for every row of {self._name}",
                argument="outcomes",
                kind="missing",
                found=f"{_counted(len(lacking), 'row')} {'has' if len(lacking) == 1 else 'have'} none: "
                f"{join(self._ids)} {', '.join(map(show, first))}{', ...' if len(lacking) > 3 else ''}",
                rows=[start + int(row) for row in lacking[:3]],
                values=first,
                count=len(lacking),
                source=self._answers.path,
                remedies=[_SKIP],
            )
        return places

    def _check_used(self, used: np.ndarray[Any, Any]) -> None:
        """Refuse outcomes of rows that are not there."""
        unused = np.flatnonzero(~used)
        if len(unused) and not self.skipping:
            first = [self._keys[int(row)].as_py() for row in unused[:3]]
            raise InputError(
                f"must have outcomes of rows of {self._name} only",
                argument="outcomes",
                kind="missing",
                found=f"{_counted(len(unused), 'id')} {'is' if len(unused) == 1 else 'are'} not there: "
                f"{', '.join(map(show, first))}{', ...' if len(unused) > 3 else ''}",
                values=first,
                count=len(unused),
                source=self._answers.path,
                remedies=[_SKIP, Remedy("Or add the predictions that are missing.")],
            )
        self._unused = len(unused)


def _counted(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def array_table(paths: Sequence[Path], request: Reading, name: str) -> SourceTable:
    """A .npy file of probabilities, or an .npz file, as columns; probabilities are lists."""
    if len(paths) > 1:
        raise InputError(
            "cannot be given with several files of arrays", argument="outcomes", kind="file", source=name
        )
    return SourceTable(name, "arrays", request, lambda: _ArrayColumns(paths[0], request), paths)


class _ArrayColumns:
    """Arrays of one length as columns."""

    def __init__(self, path: Path, request: Reading) -> None:
        arrays = stored_arrays(path)
        if ending(path) == ".npy":
            # The only array of a file is the probabilities, whatever it is called.
            arrays = {"probs": arrays[path.name]}
        first = next(iter(request.models("").values()))
        probs = array_of_probabilities(arrays, first, path)
        self.n_rows: int = arrays[probs].shape[0]
        self._arrays = {
            name: stored
            for name, stored in arrays.items()
            if len(stored.shape) in (1, 2) and stored.shape[0] == self.n_rows
        }
        head = {name: _as_column(next(array.slices(1))) for name, array in self._arrays.items()}
        self.schema: Any = pa.schema([(name, column.type) for name, column in head.items()])

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for parts in zip(*(self._arrays[name].slices(rows) for name in columns), strict=True):
            yield pa.RecordBatch.from_arrays([_as_column(part) for part in parts], names=list(columns))


def _as_column(values: np.ndarray[Any, Any]) -> Any:
    """An array as a column: of lists where it has several numbers per row."""
    if values.ndim == 1 or values.shape[1] == 1:
        return pa.array(values.reshape(-1))
    offsets = np.arange(0, values.size + 1, values.shape[1], dtype=np.int64)
    flat = np.ascontiguousarray(values).reshape(-1)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat))


def read_forecasts(path: Path, request: Reading) -> Predictions:
    """All rows of a file of forecasts without outcomes, in place of which `y` is zero."""
    return ColumnFile(
        _table(path, request), replace(request, target="", raters=(), rater_column=None, label_column=None)
    ).read()


@dataclass(frozen=True)
class LateOutcomes:
    """Outcomes with the names of their rows and the times at which they came."""

    ids: Array
    y: Array
    times: Array

    def among(self, classes: Sequence[Hashable] | None) -> Array:
        """The outcomes as positions, or as the classes if these have names."""
        if classes is None:
            return np.array([int(y) if str(y).isdecimal() else y for y in self.y.tolist()])
        known = {str(name): name for name in classes}
        texts = [str(y) for y in self.y.tolist()]
        unknown = [i for i, text in enumerate(texts) if text not in known]
        if unknown:
            raise InputError(
                f"must be among the classes, {join(map(show, classes))}",
                argument="outcomes",
                kind="label",
                found=f"{show(texts[unknown[0]])} is not, the outcome of {show(self.ids[unknown[0]])} "
                f"({len(unknown):,} in all)",
                rows=unknown[:5],
                values=[texts[i] for i in unknown[:5]],
                count=len(unknown),
            )
        alike = len({type(name) for name in classes}) == 1
        return np.array([known[text] for text in texts], None if alike else object)

    def called_like(self, names: Sequence[Hashable], merge_variants: str | None) -> Array:
        """The outcomes as lists call their classes, some of which have these names."""
        called, y = merger(merge_variants), self.y.tolist()
        y = y if called is None else [called(value) for value in y]
        return np.array(alike(y, ClassVocabulary(names, complete=False)))


def read_outcomes(path: Path, request: Reading, time: str) -> LateOutcomes:
    """All rows of a file of outcomes: their names, what happened, and when that was known."""
    table = _table(path, request)
    names = list(table.schema.names)
    ids = named_columns(request.id)
    target = find_target(names, request, table.name)
    for option, column in [("time", time), *(("id", name) for name in ids)]:
        if column not in names:
            raise InputError(
                f"must be a column of {table.name}",
                argument=option,
                kind="missing",
                found=f"there is no {show(column)}; it has {join(map(show, names))}",
                remedies=[passing("with another name", **{option: ...})],
            )
    rows = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in table.batches([*ids, target, time], ROWS_AT_ONCE)]
        or [table.schema.empty_table()],
        promote_options="default",
    )
    decimal = request.decimal if table.format in TEXTS else "."

    def labels(column: str, option: str) -> Any:
        return arrow.labels(rows[column], ValueOrigin(table.name, column, option, decimal=decimal))

    row_ids: Any = together_ids([labels(name, "id") for name in ids])
    return LateOutcomes(row_ids, labels(target, "target"), labels(time, "time"))


def _table(path: Path, request: Reading) -> SourceTable:
    paths = matching(path)
    if common_format(paths) in ARRAYS:
        raise InputError(
            f"{path} must be a file of columns, which names its rows", argument="path", kind="file"
        )
    return SourceTable.of_paths(paths, request, str(path))
