"""Several files as one, with the columns that their folders are named by."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import unquote

import pyarrow as pa

from verax.common.paths import is_hidden
from verax.common.remote import RemotePath
from verax.errors import InputError, Remedy, join, show

# How Hive writes a missing value into the name of a folder.
_MISSING = "__HIVE_DEFAULT_PARTITION__"
# Tables whose log says which of their files count, what their folders hold, and how they are read.
_TABLES = (
    ("Delta Lake", "_delta_log", Remedy("Name its folder alone.")),
    (
        "Iceberg",
        "metadata/*.metadata.json",
        Remedy("Name its current file of metadata, or pass the table of its catalog to scan."),
    ),
    ("Hudi", ".hoodie", Remedy("Pass scan(spark.read.format('hudi').load(path)).", python_only=True)),
)
# How many files are looked into once for all passes: what is known of each takes some memory.
_KEPT = 1024


class BatchReader(Protocol):
    """What gives record batches of named columns."""

    @property
    def schema(self) -> Any: ...
    @property
    def n_rows(self) -> int | None: ...
    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]: ...


class File(BatchReader, Protocol):
    """One of several files."""

    def as_numbers(self, columns: Collection[str]) -> None: ...


@runtime_checkable
class Located(Protocol):
    """A reader that knows where its rows come from."""

    def place_of(self, row: int) -> str: ...


@runtime_checkable
class Peeked(Protocol):
    """A reader that has looked at its first rows once, because reading begins with work."""

    first: Any


class Watch(Protocol):
    """Looks at the first rows of each of several files."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def rows(self) -> int: ...
    def wants(self, file: str) -> bool: ...
    def see(self, file: str, first: Any) -> None: ...


class Places:
    """Where rows come from: pieces that begin at certain rows, noted while they are read.

    >>> places = Places()
    >>> places.note(0, "a.csv")
    >>> places.note(100, "b.csv")
    >>> places.of(99), places.of(100)
    ('a.csv', 'b.csv (starting at row 100)')
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._names: list[str] = []

    def note(self, start: int, name: str) -> None:
        """A piece begins here; pieces are noted in order, and again when they are read again."""
        if not self._starts or start > self._starts[-1]:
            self._starts.append(start)
            self._names.append(name)
        elif start == self._starts[-1]:
            # Pieces without rows come before one with rows.
            self._names[-1] = name

    def of(self, row: int) -> str:
        """The piece that a row is in."""
        return piece_name(self.name_of(row), self._starts[self._at(row)])

    def name_of(self, row: int) -> str:
        """The name alone of the piece that a row is in."""
        return self._names[self._at(row)]

    def _at(self, row: int) -> int:
        return max(0, bisect_right(self._starts, row) - 1)


def piece_name(name: str, start: int) -> str:
    """What a piece of the whole is called in errors that give the numbers of rows in the whole."""
    return f"{name} (starting at row {start:,})" if start else name


class Files:
    """Files of one format, one after the other.

    Folders called `site=a` give a column `site` (Hive partitions). It holds whole numbers where all
    values are such, else texts.

    Parameters
    ----------
    files : Sequence[Path]
    open_ : Callable[[Path], File]
        Opens one of them; its errors name it.
    base : Path | None
        Folders above this one name no columns.
    counted : bool
        Look into every file for its number of rows at once, and no second time unless there are many files.
    fixed : bool
        Whether all files must have the same columns; records may lack fields.
    notes : tuple of str
        What was left out of the folder.

    Attributes
    ----------
    numbers : Collection[str]
        Columns of texts that are to be read as numbers.
    watch : Watch | None
        Is shown the first rows of each file while they are read.
    """

    files: Sequence[Path]

    def __init__(
        self,
        files: Sequence[Path],
        open_: Callable[[Path], File],
        base: Path | None,
        *,
        counted: bool,
        fixed: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.files, self._open, self._counted = files, open_, counted
        self._columns: frozenset[str] | None = None
        self.notes: tuple[str, ...] = notes
        self._most_kept = _KEPT if counted else 0
        self.watch: Watch | None = None
        self._opened: dict[Path, File] = {}
        self._named: dict[str, Any] = {}
        self._places = Places()
        self.numbers: Collection[str] = ()
        first = self._now(files[0])
        if fixed:
            self._columns = frozenset(first.schema.names)
        self.n_rows: int | None = (
            (first.n_rows or 0) + sum(self._now(file).n_rows or 0 for file in files[1:]) if counted else None
        )
        self.schema: Any = first.schema
        keys = [_keys(file, base) for file in files]
        for file, named in zip(files, keys, strict=True):
            _check_alike(keys[0].keys(), list(named), files[0].parent, file.parent)
        for name, values in _named_by_folders(keys).items():
            # What a file says itself counts.
            if name not in first.schema.names:
                self._named[name] = values
                self.schema = self.schema.append(pa.field(name, values.type))

    def _now(self, file: Path) -> File:
        reader = self._opened.get(file)
        if reader is None:
            reader = self._open(file)
            if self._columns is not None:
                _check_alike(self._columns, reader.schema.names, self.files[0], file)
            if len(self._opened) < self._most_kept:
                self._opened[file] = reader
        reader.as_numbers([name for name in self.numbers if name not in self._named])
        return reader

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        start = 0
        stored = [name for name in columns if name not in self._named]
        for i, file in enumerate(self.files):
            reader = self._now(file)
            self._places.note(start, str(file))
            check_columns(reader, stored, file)
            watch = self.watch if self.watch is not None and self.watch.wants(str(file)) else None
            looked_at = [] if watch is None else [c for c in watch.columns if c in reader.schema.names]
            if watch is not None and self._counted and (reader.n_rows or 0) > watch.rows:
                # Some rows of a few columns are read at once, and no further column of all rows.
                watch.see(str(file), next(reader.batches(looked_at, watch.rows), None))
                watch, looked_at = None, []
            # Where no column is stored, any one tells the number of rows.
            read = list(dict.fromkeys([*stored, *looked_at])) or reader.schema.names[:1]
            for batch in reader.batches(read, rows):
                if watch is not None:
                    watch.see(str(file), batch)
                    watch = None
                start += batch.num_rows
                yield self._whole(batch.select(stored) if looked_at else batch, i, columns)

    def _whole(self, batch: Any, i: int, columns: Sequence[str]) -> Any:
        """A batch of the file `i` with the columns that its folders give."""
        if not self._named:
            return batch
        n = batch.num_rows
        values = [
            pa.repeat(self._named[name][i], n) if name in self._named else batch.column(name)
            for name in columns
        ]
        return pa.record_batch(values, names=list(columns))

    def place_of(self, row: int) -> str:
        """The file that a row is in."""
        return self._places.of(row)


def _check_alike(columns: Collection[str], others: Sequence[str], first: Path, file: Path) -> None:
    """Refuse a file with columns that the first one lacks, or without some that it has."""
    lacking = [name for name in columns if name not in others]
    new = [name for name in others if name not in columns]
    if not (lacking or new):
        return
    found = [f"this one has no {show(lacking[0])}"] if lacking else []
    found += [f"{first} has no {show(new[0])}"] if new else []
    raise InputError(
        "All files must have the same columns",
        argument="path",
        found=join(found),
        kind="missing",
        source=str(file),
        remedies=[Remedy("Name the files that belong together, with a pattern such as 'day-*.csv'.")],
    )


def check_columns(reader: BatchReader, columns: Sequence[str], file: str | Path) -> None:
    """Refuse one of several files or tables that lacks a column."""
    lacking = [name for name in columns if name not in reader.schema.names]
    if lacking:
        raise InputError(
            "All files must have the same columns",
            argument="path",
            found=f"this one has no {show(lacking[0])}",
            kind="missing",
            source=str(file),
        )


def _keys(file: Path, base: Path | None) -> dict[str, str | None]:
    """The columns that the folders of a file give.

    >>> _keys(Path("preds/site=a%20b/year=2020/0.parquet"), Path("preds"))
    {'site': 'a b', 'year': '2020'}
    """
    folders = (file if base is None else file.relative_to(base)).parts[:-1]
    pairs = [name.split("=", 1) for name in folders if "=" in name]
    return {unquote(key): None if value == _MISSING else unquote(value) for key, value in pairs if key}


def _named_by_folders(keys: Sequence[dict[str, str | None]]) -> dict[str, Any]:
    """The columns that the folders of files give, with a value for each file."""
    columns = {}
    for name in dict.fromkeys(name for folders in keys for name in folders):
        values = [folders.get(name) for folders in keys]
        whole = all(value is None or _is_whole(value) for value in values)
        columns[name] = (
            pa.array([None if v is None else int(v) for v in values], pa.int64())
            if whole
            else pa.array(values, pa.string())
        )
    return columns


def _is_whole(value: str) -> bool:
    # 007 is a name: as a number it would be another one.
    return value == "0" or (value.lstrip("-").isdecimal() and value.isascii() and value.lstrip("-")[0] != "0")


class Listing(NamedTuple):
    """The files of a folder: those that are read, the number of hidden and temporary ones, and the others."""

    files: list[Path]
    n_hidden: int
    others: list[Path]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, as a sentence."""
        left_out = [hidden_ones(self.n_hidden)] if self.n_hidden else []
        if self.others:
            more = f" and {len(self.others) - 1:,} more" if len(self.others) > 1 else ""
            left_out.append(f"{self.others[0].name}{more}")
        return (f"Files of the folder that are not read: {join(left_out)}.",) if left_out else ()


def hidden_ones(n: int) -> str:
    """A number of hidden or temporary files, in words."""
    return f"{n:,} hidden or temporary {'file' if n == 1 else 'files'}"


def listing_of(folder: Path, endings: Sequence[str]) -> Listing:
    """The files in a folder and those below it; those that are read have one of the endings."""
    files: list[Path] = []
    for where, folders, names in _below(folder):
        _refuse_table(where, folders)
        folders[:] = [name for name in folders if not is_hidden(name)]
        files += [where / name for name in names]
    shown = sorted(file for file in files if not is_hidden(file.name))
    fitting = [file for file in shown if file.name.lower().endswith(tuple(endings))]
    if not fitting:
        raise InputError(
            f"{folder} is a folder without files of predictions", argument="path", kind="missing"
        )
    others = [file for file in shown if not file.name.lower().endswith(tuple(endings))]
    return Listing(fitting, len(files) - len(shown), others)


def _below(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folders from this one on, with the names of the folders and files in them."""
    if isinstance(folder, RemotePath):
        return folder.walk()

    def refuse(error: OSError) -> None:
        raise error

    return ((Path(where), folders, names) for where, folders, names in os.walk(folder, onerror=refuse))


def refuse_tables(files: Sequence[Path]) -> None:
    """Refuse files of a table whose log says which of them count."""
    marks = [mark.partition("/")[0] for _, mark, _ in _TABLES]
    for folder in dict.fromkeys(file.parent for file in files):
        for where in (folder, folder.parent) if folder.name == "data" or "=" in folder.name else (folder,):
            _refuse_table(where, [mark for mark in marks if (where / mark).is_dir()])


def _refuse_table(folder: Path, folders: Collection[str]) -> None:
    """Refuse the folder of a table in a format that keeps files whose rows were removed or replaced."""
    for kind, mark, remedy in _TABLES:
        if mark.partition("/")[0] in folders and next(folder.glob(mark), None) is not None:
            raise InputError(
                "The files of a table must be read through its log: some may hold removed rows",
                argument="path",
                kind="file",
                found=f"{folder} is a table of {kind}",
                values=[str(folder)],
                remedies=[remedy, Remedy("Or write its rows to Parquet files.")],
            )
