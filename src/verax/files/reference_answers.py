"""Outcomes that stand in another file than the lists: matched by an id, or by the order of the rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from verax.common.ids import id_of, id_text
from verax.common.paths import as_path, check_exists, check_regular
from verax.errors import InputError, passing, show
from verax.files.formats.npy import stored_arrays
from verax.files.formats.records import open_stream, text_lines
from verax.files.formats.tables import ARRAYS, FORMATS, ROWS_AT_ONCE, SourceTable
from verax.files.formats.texts import ending
from verax.files.naming import MAYBE_TARGETS, TARGETS, spoken
from verax.inputs.reading import Reading
from verax.inputs.records.record import SKIP, RecordError


class ReferenceAnswers:
    """What happened, by id or by place.

    Parameters
    ----------
    outcomes : Mapping or Sequence
        The outcome of every id, or one per record.
    path : str
        The file they come from.
    column : str
        What holds them there.
    """

    outcomes: Mapping[str, Hashable] | Sequence[Hashable]
    path: str
    column: str

    def __init__(
        self, outcomes: Mapping[str, Hashable] | Sequence[Hashable], path: str, column: str = ""
    ) -> None:
        self.outcomes, self.path, self.column = outcomes, path, column

    @property
    def by_id(self) -> bool:
        return isinstance(self.outcomes, Mapping)

    def of(self, place: int, row_id: str | None) -> Any:
        """The outcome of a record."""
        if isinstance(self.outcomes, Mapping):
            if row_id is None or row_id not in self.outcomes:
                raise RecordError(
                    f"must have an outcome for every record; {self.path}",
                    f"has the id {show(row_id)}, which is missing there",
                    reason="missing outcomes",
                    kind="missing",
                    argument="outcomes",
                    values=[row_id],
                    remedies=[SKIP],
                )
            return self.outcomes[row_id]
        if place >= len(self.outcomes):
            raise self._length("more")
        return self.outcomes[place]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of the outcomes: a sentence each."""
        return ()

    def check_length(self, n: int) -> None:
        """Refuse outcomes in order that are more than the records."""
        if not self.by_id and len(self.outcomes) != n:
            raise self._length(f"{n:,}")

    def _length(self, records: str) -> InputError:
        return InputError(
            "must have one outcome per record",
            argument="outcomes",
            kind="length",
            found=f"there are {len(self.outcomes):,} outcomes and {records} records",
            source=self.path,
            remedies=[passing("to match them by a column that both files have", id=...)],
        )


def read_gold(
    path: str,
    outcome: str | None,
    ids: tuple[str, ...],
    delimiter: str | None,
    like: Collection[str] = (),
) -> ReferenceAnswers:
    """The outcomes in a file of columns or arrays, or in a text with one outcome per line.

    Where none of several columns has a usual name, `like` names those that may hold the outcomes.
    """
    where = as_path(path)
    path = str(where)
    try:
        check_exists(where)
        if not where.is_dir():
            if FORMATS.get(ending(where)) in ARRAYS:
                return _arrays(where, outcome, ids, like)
            check_regular(where)
            if ending(where) == ".json":
                return _document(path, outcome, ids)
            if _is_plain(where, named=outcome is not None or bool(ids)):
                return ReferenceAnswers(
                    [line.strip() or None for _, line in text_lines(where, empty=True)], path
                )
        table = SourceTable.of_file(where, Reading(delimiter=delimiter))
    except InputError as error:
        raise error.replace(argument="outcomes") if error.argument == "path" else error from None
    column = _chosen(list(table.schema.names), outcome, ids, path, like)
    if not ids:
        return ReferenceAnswers([value for (value,) in _values(table, [column])], path, column)
    return ReferenceAnswers(_by_id(_values(table, [*ids, column]), path), path, column)


def column_names(path: Path, delimiter: str | None) -> list[str]:
    """The columns, or the arrays, of a file of outcomes; none where it names none."""
    check_exists(path)
    if not path.is_dir():
        check_regular(path)
        if FORMATS.get(ending(path)) in ARRAYS:
            return list(stored_arrays(path)) if ending(path) == ".npz" else []
        if ending(path) == ".json":
            items = [record for _, record in open_stream(path)]
            return list(items[0]) if len(items) > 1 and isinstance(items[0], dict) else []
        if _is_plain(path, named=False):
            return []
    return list(SourceTable.of_file(path, Reading(delimiter=delimiter)).schema.names)


def _arrays(path: Path, outcome: str | None, ids: tuple[str, ...], like: Collection[str]) -> ReferenceAnswers:
    """Outcomes of a .npy file, or of an array of an .npz file."""
    arrays = stored_arrays(path)
    single = ending(path) == ".npy"
    column = path.name if single else _chosen(list(arrays), outcome, ids, str(path), like)
    values = {name: arrays[name].read().tolist() for name in (*(() if single else ids), column)}
    if single or not ids:
        return ReferenceAnswers(values[column], str(path), "" if single else column)
    return ReferenceAnswers(_by_id(zip(*values.values(), strict=True), str(path)), str(path), column)


def _is_plain(path: Path, *, named: bool) -> bool:
    """Whether a file is text without columns: one of no known kind, or .txt where no column was named."""
    return FORMATS.get(ending(path)) is None or (ending(path) == ".txt" and not named)


def _document(path: str, outcome: str | None, ids: tuple[str, ...]) -> ReferenceAnswers:
    """Outcomes of a JSON document: {id: outcome}, an array of records, or an array of outcomes."""
    items = [record for _, record in open_stream(as_path(path))]
    if len(items) == 1 and ids and isinstance(items[0], dict) and not any(name in items[0] for name in ids):
        return ReferenceAnswers({id_text(name): outcome for name, outcome in items[0].items()}, path)
    if not all(isinstance(item, dict) for item in items):
        return ReferenceAnswers(items, path)
    names = list(dict.fromkeys(name for item in items for name in item))
    column = _chosen(names, outcome, ids, path)
    if not ids:
        return ReferenceAnswers([item.get(column) for item in items], path, column)
    return ReferenceAnswers(
        _by_id(([item.get(name) for name in (*ids, column)] for item in items), path), path, column
    )


def _chosen(
    names: list[str], outcome: str | None, ids: tuple[str, ...], path: str, like: Collection[str] = ()
) -> str:
    """The column of outcomes; refuse columns that are not there."""
    for name, argument in ((outcome, "outcome"), *((name, "id") for name in ids)):
        if name is not None and name not in names:
            raise _no_column(path, name, argument, names)
    return outcome if outcome is not None else _outcome_column(names, ids, path, like)


def _by_id(rows: Iterable[Sequence[Any]], path: str) -> dict[str, Hashable]:
    """The last value of each row by the name that the others give it."""
    outcomes: dict[str, Hashable] = {}
    for *ids, value in rows:
        key = id_of(ids)
        if key in outcomes and outcomes[key] != value:
            raise InputError(
                "must have one outcome per id",
                argument="outcomes",
                found=f"{show(key)} has {show(outcomes[key])} and {show(value)}",
                source=path,
                values=[key],
            )
        outcomes[key] = value
    return outcomes


def _values(table: SourceTable, columns: list[str]) -> Any:
    for batch in table.batches(columns, ROWS_AT_ONCE):
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def outcome_field(names: Sequence[str]) -> str | None:
    """The only name that outcomes usually have; None where there is none, or several."""
    for words in (("outcome",), TARGETS, MAYBE_TARGETS):
        matches = [name for name in names if isinstance(name, str) and spoken(name) in words]
        if matches:
            return matches[0] if len(matches) == 1 else None
    return None


def _outcome_column(names: list[str], ids: tuple[str, ...], path: str, like: Collection[str]) -> str:
    rest = [name for name in names if name not in ids]
    column = rest[0] if len(rest) == 1 else outcome_field(rest)
    if column is None and len(alike := [name for name in rest if name in like]) == 1:
        column = alike[0]
    if column is None:
        raise InputError(
            "must name the column that holds what happened",
            argument="outcome",
            kind="missing",
            found=f"the columns are {', '.join(map(show, names))}",
            source=path,
            remedies=[passing(outcome=...)],
        )
    return column


def _no_column(path: str, name: str, argument: str, names: list[str]) -> InputError:
    return InputError(
        f"There is no column {show(name)}",
        argument=argument,
        kind="missing",
        found=f"the columns are {', '.join(map(show, names))}",
        source=path,
        values=[name],
    )
