"""Long tables of raters: a row for each label that a rater gave to a case, read as a row for each case."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.ids import id_of
from verax.errors import InputError, Remedy, join, passing, show
from verax.files.column_roles import require_column
from verax.files.formats.tables import SourceTable
from verax.files.naming import stripped
from verax.files.predictions import short
from verax.inputs.arrays import Ints
from verax.inputs.reading import Reading, named_columns

# How many rows are read at a time.
_ROWS = 2**16


class CaseTable:
    """The cases of a long table, in memory, with a column for the labels of each rater.

    Other columns have the value of the first row of each case.

    Parameters
    ----------
    table : SourceTable
        The long table.
    request : Reading
        The columns of raters, labels and ids, which are the cases.
    """

    schema: Any
    n_rows: int | None

    def __init__(self, table: SourceTable, request: Reading) -> None:
        rater, label, ids = request.rater_column, request.label_column, named_columns(request.id)
        assert rater is not None
        assert label is not None
        for argument, names in (("rater_column", [rater]), ("label_column", [label]), ("id", ids)):
            for name in names:
                require_column(name, table.schema.names, argument, table.name)
        self.name: str = table.name
        rows = whole_table(table)
        self._ids = [rows[name] for name in ids]
        self._case, self._first = self._cases(ids)
        others = [name for name in rows.column_names if name not in (rater, label)]
        self._others = {name: rows[name] for name in others}
        columns = {name: rows[name].take(self._first) for name in others}
        labels = self._labels(rows[rater], rows[label], rater, others)
        self.raters: tuple[str, ...] = tuple(labels)
        self._table = pa.table(columns | labels)
        self.schema, self.n_rows = self._table.schema, self._table.num_rows

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All cases, in the order of their first rows."""
        yield from self._table.select(list(columns)).to_batches(max_chunksize=rows)

    def check_alike(self, columns: Collection[str]) -> None:
        """Refuse a case whose rows differ in one of these columns."""
        for name in self._others:
            if name not in columns:
                continue
            codes = _codes(self._others[name])
            differ = codes != codes[self._first][self._case]
            if differ.any():
                at = int(np.argmax(differ))
                values = [self._others[name][row].as_py() for row in (int(self._first[self._case[at]]), at)]
                raise InputError(
                    f"Column {show(name)} must hold one value for each case",
                    argument="id",
                    source=self.name,
                    found=f"{self._called(at)} has {show(values[0])} and {show(values[1])}",
                    values=values,
                )

    def _called(self, row: int) -> str:
        return show(id_of([column[row].as_py() for column in self._ids]))

    def _cases(self, ids: Sequence[str]) -> tuple[Ints, Ints]:
        """The case of each row, and the first row of each case; cases are in the order of these."""
        codes = np.stack([_codes(column) for column in self._ids], axis=1)
        if (codes < 0).any():
            row, column = (int(i[0]) for i in np.nonzero(codes < 0))
            raise InputError(
                f"Column {show(ids[column])} must name the case of every row",
                argument="id",
                kind="missing",
                source=self.name,
                found=f"row {row} has no value",
                rows=(row,),
            )
        _, first, case = np.unique(codes, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return np.argsort(order)[case.reshape(-1)], first[order]

    def _labels(self, raters: Any, labels: Any, column: str, taken: Collection[str]) -> dict[str, Any]:
        """The labels of each rater, missing where one did not label a case."""
        codes = _codes(raters)
        values = [str(value) for value in raters.take(_first_rows(codes)).to_pylist()]
        columns = {}
        for code, name in sorted(enumerate(values), key=lambda pair: pair[1]):
            given = np.flatnonzero(codes == code)
            at = np.full(len(self._first), -1)
            at[self._case[given]] = given
            if np.count_nonzero(at >= 0) < len(given):
                cases, counts = np.unique(self._case[given], return_counts=True)
                again = int(self._first[cases[np.argmax(counts)]])
                raise InputError(
                    "must label a case once",
                    argument="rater_column",
                    source=self.name,
                    found=f"{show(name)} labels {self._called(again)} {counts.max()} times",
                    values=[name],
                )
            columns[f"{column} {name}" if name in taken else name] = labels.take(pa.array(at, mask=at < 0))
        if not columns:
            raise InputError(
                "must name at least one rater", argument="rater_column", kind="missing", source=self.name
            )
        return columns


def cases_of(table: SourceTable, request: Reading) -> tuple[SourceTable, CaseTable]:
    """A long table with a row for each case, and what gives these rows."""
    cases = CaseTable(table, request)
    return SourceTable(table.name, table.format, request, lambda: cases), cases


def whole_table(table: SourceTable) -> Any:
    """All rows, in one piece for each column."""
    parts = [pa.Table.from_batches([batch]) for batch in table.batches(table.schema.names, _ROWS)]
    whole = pa.concat_tables(parts, promote_options="permissive") if parts else table.schema.empty_table()
    return whole.combine_chunks()


def _codes(column: Any) -> Ints:
    """Numbers of the different values of a column, in order of appearance; -1 where one is missing."""
    if pa.types.is_nested(column.type):
        column = pa.array([None if value is None else repr(value) for value in column.to_pylist()])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    indices = column.dictionary_encode().indices
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _first_rows(codes: Ints) -> Ints:
    """The first row of each code."""
    distinct, first = np.unique(codes, return_index=True)
    return np.asarray(first[distinct >= 0])


def by_class(
    columns: tuple[str, ...],
    classes: tuple[Hashable, ...] | None,
    names: Sequence[str] | None,
    width: int,
    where: str,
) -> tuple[str, ...]:
    """The columns in the order of the classes.

    They are named like the classes, with a prefix or without. Where the caller has renamed the classes,
    `names` are what the columns of probabilities call them. Without names the order is that of the columns.

    >>> by_class(("n_dog", "n_cat"), ("cat", "dog"), None, 2, "a.csv")
    ('n_cat', 'n_dog')
    >>> by_class(("n_stage2", "n_stage1"), ("stage1", "stage2"), None, 2, "a.csv")
    ('n_stage1', 'n_stage2')
    """
    if len(columns) != width:
        raise InputError(
            f"must name a column for each of the {width} classes",
            argument="raters",
            kind="length",
            source=where,
            found=f"there {'is' if len(columns) == 1 else 'are'} {len(columns)}: {short(columns)}",
            remedies=[passing("if each column has the labels of one rater", raters_are="labels")],
        )
    if classes is None:
        return columns
    for known in filter(None, (classes, names)):
        wanted = [str(name) for name in known]
        # Classes may have a beginning in common: what columns have in common is then more than their prefix.
        for prefix in [column.removesuffix(wanted[0]) for column in columns if column.endswith(wanted[0])]:
            named = tuple(prefix + name for name in wanted)
            if sorted(named) == sorted(columns):
                return named
        bare = stripped(columns)
        if sorted(bare) == sorted(wanted):
            return tuple(columns[bare.index(name)] for name in wanted)
    raise InputError(
        "must be named like the classes, with a common prefix or without",
        argument="raters",
        kind="label",
        source=where,
        found=f"the columns are {short(columns)}, and the classes {join(list(map(str, classes[:6])))}",
        remedies=[Remedy("Rename the columns, such as n_cat and n_dog for the classes cat and dog.")],
    )
