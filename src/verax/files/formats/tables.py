"""Files of columns: which format, what their columns hold, and their rows in pieces."""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verax.common.caching import cached_property
from verax.common.paths import UnchangedFiles, n_hidden_among, refusing_wrong_names
from verax.errors import InputError, MissingPackageError, Remedy, join, show
from verax.files import column_roles
from verax.files.arrow import view
from verax.files.formats.archives import Excel
from verax.files.formats.columnar import DELTA, ICEBERG, Arrow, IcebergTable, Parquet, delta_at, lake_of
from verax.files.formats.several import (
    BatchReader,
    Files,
    Listing,
    Located,
    Peeked,
    hidden_ones,
    listing_of,
    refuse_tables,
)
from verax.files.formats.texts import COMPRESSED, Csv, JsonDocument, JsonLines
from verax.inputs.reading import Reading
from verax.inputs.skipping import NO_ROWS

FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".tab": "TSV",
    ".txt": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".jsonl": "JSON Lines",
    ".ndjson": "JSON Lines",
    ".json": "JSON",
    ".npz": "NPZ",
    ".npy": "NPY",
    ".xlsx": "Excel",
    ".xlsm": "Excel",
    ".xlsb": "Excel",
    ".xls": "Excel",
    ".ods": "Excel",
}
TEXTS = ("CSV", "TSV")
_PARSED = (*TEXTS, "JSON Lines", "JSON")
ARRAYS = ("NPZ", "NPY")
# A .json or a workbook in a folder is likely about the others.
_BESIDE = ("JSON", "Excel")
# The endings of files in a folder. Those of texts may be followed by that of their compression.
_ENDINGS = tuple(
    end + packed for packed in ("", *COMPRESSED) for end, kind in FORMATS.items() if kind not in _BESIDE
)
# How many rows tell what columns of texts hold, and at most what the outcomes are.
LOOK, _LOOK_AT_OUTCOMES = 1000, 2**16
# How many files of a folder tell what it holds.
_LOOK_AT_FILES = 64
# How many runs of batches are short where later ones are longer.
_FIRST_RUNS = 4
# Arrow's allocator keeps several times as much freed memory as is in use. It gives that back each time this
# number of bytes was read; more often would take time.
_READ = 2**26
# Rows that are read at once where a file is gone through.
ROWS_AT_ONCE = 2**16
_LIKE_A_NUMBER = re.compile(r"\s*-?\d*[.,]?\d+(e-?\d+)?\s*%?", re.IGNORECASE)


# What to do with files that are not read, by their ending.
_INSTEAD = {
    ".numbers": "Save the sheet as CSV or as an Excel workbook.",
    ".zip": "Unzip it first, or compress the text with gzip.",
    **dict.fromkeys((".pkl", ".pickle"), "Pickles may run code: write the frame with to_parquet or to_csv."),
    **dict.fromkeys((".rds", ".rdata"), "Write it from R with write.csv or arrow::write_parquet."),
    **dict.fromkeys((".pt", ".pth"), "Write the arrays with numpy.savez."),
    **dict.fromkeys((".h5", ".hdf5", ".mat"), "Write it as Parquet, CSV or NPZ."),
}


def files_of(path: Path) -> list[Path]:
    """A file itself, or the files in a folder."""
    return listed(path).files


def listed(path: Path) -> Listing:
    """A file itself, or what is in a folder."""
    with refusing_wrong_names(path):
        folder = path.is_dir() and not lake_of(path)
        return listing_of(path, _ENDINGS) if folder else Listing([path], 0, [])


def _place_of(file: Path) -> object:
    """What tells a file from others; by name alone it could be named again in capitals, or by a hard link."""
    with suppress(OSError, ValueError):
        state = os.stat(file)
        if state.st_ino and stat.S_ISREG(state.st_mode):
            return state.st_dev, state.st_ino
    return os.path.normcase(os.path.realpath(file))


def files_once(paths: Sequence[Path]) -> list[Path]:
    """The files that are named, with those in folders; refuse one that is named twice."""
    by_place: dict[object, Path] = {}
    for path in paths:
        for file in files_of(path):
            where = _place_of(file)
            known = by_place.get(where)
            if known is not None:
                raise InputError(
                    "Every file must be named once: its rows would count twice",
                    argument="path",
                    kind="file",
                    found=f"{known} is also named as {file}" if known != file else f"{file} is named twice",
                    values=[str(file)],
                )
            by_place[where] = file
    if len(by_place) > 1:
        refuse_tables(list(by_place.values()))
    return list(by_place.values())


def format_of(path: Path) -> str:
    """What kind of file this is, by its name."""
    path = files_of(path)[0]
    lake = lake_of(path)
    if lake is not None:
        return lake
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        if suffixes and FORMATS.get(suffixes[-1]) in ("Parquet", "Arrow", "Excel", *ARRAYS):
            raise InputError(f"{path} must be decompressed first", argument="path", kind="file")
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    sheet = suffixes[-1:] == [".numbers"]
    raise InputError(
        f"{path} {'is a spreadsheet' if sheet else 'has no known ending'}",
        argument="path",
        kind="file",
        found=f"these are read: {', '.join(FORMATS)} (text also with {', '.join(COMPRESSED)})",
        remedies=[Remedy(_INSTEAD[suffixes[-1]])] if suffixes and suffixes[-1] in _INSTEAD else [],
    )


class SourceTable:
    """Named columns, of a file or of anything else that has a `BatchReader`.

    Attributes
    ----------
    name : str
        What errors call it.
    format : str
        What kind of file it is, or what else.
    schema : pyarrow.Schema
        Names and types of the columns; those of a CSV file are all texts.
    n_rows : int | None
        How many rows; None where only reading tells.
    files : tuple[Path, ...]
        The files that it is read from.
    n_bytes : int
        What its files take on disk.
    reader : BatchReader
        Gives its rows.
    """

    name: str
    format: str

    def __init__(
        self,
        name: str,
        kind: str,
        request: Reading,
        open_: Callable[[], BatchReader],
        files: Sequence[Path] = (),
    ) -> None:
        self.name, self.format, self._request = name, kind, request
        self.files: tuple[Path, ...] = tuple(files)
        # What is read must not change meanwhile.
        self._unchanged = UnchangedFiles(files)
        self.n_bytes: int = self._unchanged.n_bytes
        # The first numbers of columns that were asked for, and the first rows of others.
        self._numbers: dict[str, np.ndarray[Any, Any]] = {}
        self._heads: dict[tuple[str, int], Any] = {}
        with self._errors():
            self.reader: BatchReader = open_()
            self.schema: Any = self.reader.schema
            self.n_rows: int | None = self.reader.n_rows
            self._check_names()

    @classmethod
    def of_file(cls, path: Path, request: Reading) -> SourceTable:
        """The columns of a file, whose name tells its format, or of the files in a folder."""
        listing = listed(path)
        if listing.files != [path]:
            return cls.of_files(listing.files, request, str(path), base=path, notes=listing.notes)
        return cls._of_format(format_of(path), path, request)

    @classmethod
    def of_first(cls, path: Path, request: Reading) -> SourceTable:
        """The columns of a file, or of the first files in a folder, which tell what it holds."""
        files = files_of(path)[:_LOOK_AT_FILES]
        return (
            cls.of_file(path, request)
            if files == [path]
            else cls.of_files(files, request, str(path), base=path)
        )

    @classmethod
    def _of_format(cls, kind: str, path: Path, request: Reading) -> SourceTable:
        readers: dict[str, Callable[[], BatchReader]] = {
            "Parquet": lambda: Parquet(path),
            "Arrow": lambda: Arrow(path),
            "JSON Lines": lambda: JsonLines(path),
            "JSON": lambda: JsonDocument(path),
            DELTA: lambda: delta_at(path),
            ICEBERG: lambda: IcebergTable.at(path),
            "Excel": lambda: Excel(path),
        }
        csv = partial(Csv, path, request, tabs=kind == "TSV")
        return cls(str(path), kind, request, readers.get(kind, csv), [path])

    @classmethod
    def of_paths(cls, paths: Sequence[Path], request: Reading, name: str) -> SourceTable:
        """The columns of what a caller named: a file, a folder, or files that fit a pattern or are listed."""
        if [str(path) for path in paths] == [name]:
            return cls.of_file(paths[0], request)
        n_hidden = n_hidden_among(name)
        notes = (f"Left out: {hidden_ones(n_hidden)}.",) if n_hidden else ()
        return cls.of_files(files_once(paths), request, name, notes=notes)

    @classmethod
    def of_files(
        cls,
        paths: Sequence[Path],
        request: Reading,
        name: str,
        *,
        base: Path | None = None,
        notes: tuple[str, ...] = (),
    ) -> SourceTable:
        """The columns of files of one format, with those that their folders below `base` are named by."""
        kind = common_format(paths)

        def open_(path: Path) -> SourceTable:
            return cls._of_format(kind, path, request)

        fixed = kind not in ("JSON Lines", "JSON")
        options: Any = {"counted": kind == "Parquet", "fixed": fixed, "notes": notes}
        return cls(name, kind, request, lambda: Files(paths, open_, base, **options), paths)

    def _check_names(self) -> None:
        seen: set[str] = set()
        for name in self.schema.names:
            if name in seen:
                raise InputError(
                    f"There are two columns called {show(name)}",
                    argument="path",
                    kind="file",
                    source=self.name,
                    remedies=[Remedy("Rename one of them.")],
                )
            seen.add(name)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What each column holds, in the words of `column_roles`."""
        kinds = {field.name: _kind(field.type) for field in self.schema}
        texts = [f.name for f in self.schema if pa.types.is_string(f.type) or pa.types.is_null(f.type)]
        head = self._head(texts, LOOK) if texts else []
        for name in texts if head else ():
            # Other files may hold something else.
            columns = [batch.column(name) for batch in head]
            texts = [column.drop_null() for column in columns if pa.types.is_string(column.type)]
            kinds[name] = self._kind_of_texts(pa.chunked_array(texts, pa.string()))
        return kinds

    def _head(self, columns: Sequence[str], rows: int) -> list[Any]:
        """The first batches of these columns: at least LOOK rows, wherever blocks of the file end."""
        if isinstance(self.reader, Peeked):
            return self.reader.first.select(list(columns)).to_batches()  # type: ignore[no-any-return]
        if self.format in _PARSED and rows <= LOOK:
            return [batch.select(list(columns)) for batch in self._first_batches]
        return self._read_head(columns, rows)

    @cached_property
    def _first_batches(self) -> list[Any]:
        """The first rows of all columns of a text, whose lines are parsed whole whatever is asked for."""
        return self._read_head(self.schema.names, LOOK)

    def _read_head(self, columns: Sequence[str], rows: int) -> list[Any]:
        batches: list[Any] = []
        for batch in self.batches(columns, rows):
            batches.append(batch)
            if sum(part.num_rows for part in batches) >= min(rows, LOOK):
                break
        return batches

    def head_of_all(self, rows: int) -> list[Any]:
        """The first batches of all columns."""
        return self._head(self.schema.names, rows)

    def numbers(self, columns: Sequence[str]) -> np.ndarray[Any, Any]:
        """The first rows of some columns as (n, m) numbers; NaN where a cell is none, or missing.

        Each column is read once, however many models ask for it.
        """
        missing = [name for name in columns if name not in self._numbers]
        head = self._head(missing, LOOK) if missing else []
        for name in missing:
            parts = [self._floats(batch.column(name)) for batch in head]
            self._numbers[name] = np.concatenate([np.zeros(0), *parts])
        return np.stack([self._numbers[name] for name in columns], axis=1) if columns else np.zeros((0, 0))

    def _floats(self, column: Any) -> np.ndarray[Any, Any]:
        if pa.types.is_string(column.type):
            return self._parsed(column)
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        return _with_nan(column.cast(pa.float64(), safe=False))

    def lists(self, column: str) -> np.ndarray[Any, Any]:
        """The first lists of a column as (n, m) numbers, without those of another length than the first."""
        lists = [v for batch in self._head([column], LOOK) for v in batch.column(0).to_pylist() if v]
        width = len(lists[0]) if lists else 0
        rows = [[np.nan if v is None else float(v) for v in row] for row in lists if len(row) == width]
        return np.array(rows).reshape(len(rows), width)

    def _parsed(self, texts: Any) -> np.ndarray[Any, Any]:
        """The numbers that texts hold; NaN where one holds none."""
        if self._request.decimal != ".":
            texts = pc.replace_substring(texts, self._request.decimal, ".")
        try:
            # What Arrow reads as a number is the same number to Python.
            return _with_nan(texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            cells = [_number(v or "") for v in texts.to_pylist()]
            return np.array([np.nan if cell is None else cell for cell in cells])

    def _kind_of_texts(self, texts: Any) -> str:
        numbers = self._parsed(texts)
        unclear = np.flatnonzero(np.isnan(numbers)).tolist()
        known = all(_number(texts[i].as_py()) is not None for i in unclear)
        if len(numbers) and self.format in TEXTS and known:
            whole = bool((np.isfinite(numbers) & (np.floor(numbers) == numbers)).all())
            return column_roles.INTEGER if whole else column_roles.REAL
        values = texts.to_pylist()
        doubtful = not values or any(_LIKE_A_NUMBER.fullmatch(v[:40]) for v in values)
        return column_roles.DOUBTFUL if doubtful else column_roles.OTHER

    def as_numbers(self, columns: Collection[str]) -> None:
        """Say which columns of a text file hold numbers, which is faster than to convert them later."""
        if hasattr(self.reader, "numbers"):
            self.reader.numbers = columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of how the rows were found: a sentence each."""
        return tuple(getattr(self.reader, "notes", ()))

    def place_of(self, row: int) -> str:
        """Where a row is, where that says more than the name of the table."""
        return self.reader.place_of(row) if isinstance(self.reader, Located) else self.name

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, in order, as record batches of up to `rows` rows."""
        with self._errors():
            self._unchanged.check()
            read = 0
            for batch in self.reader.batches(columns, rows):
                if self.format in ("JSON Lines", "JSON"):
                    # The parser lets bytes pass that are no UTF-8.
                    batch.validate(full=True)
                if batch.num_rows:
                    yield batch
                read += batch.nbytes
                if read >= _READ:
                    pa.default_memory_pool().release_unused()
                    read = 0
            self._unchanged.check()

    def runs(
        self, columns: Sequence[str], rows: int, times: int = 1, first: int = _FIRST_RUNS
    ) -> Iterator[tuple[int, list[Any]]]:
        """All rows in runs of about `rows`, later of `times` that number, as batches of one schema, with the
        number of the first row.
        """
        return runs_of(self.batches(columns, rows), rows, times, first)

    def head(self, column: str, rows: int = _LOOK_AT_OUTCOMES) -> Any:
        """The first rows of a column, chunked; read once, however many models ask for it."""
        if (column, rows) not in self._heads:
            batches = self._head([column], rows)
            if not batches:
                raise InputError(NO_ROWS, argument="path", kind="file", source=self.name)
            # Later blocks of a JSON file may have another type.
            alike = [batch.column(0) for batch in batches if batch.schema == batches[0].schema]
            self._heads[column, rows] = pa.chunked_array(alike)
        return self._heads[column, rows]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What pyarrow complains about, as an error that names the file."""
        try:
            with refusing_wrong_names(self.name):
                yield
        except (InputError, MissingPackageError):
            raise
        except OSError as error:
            # Of the system, unless it comes without a number: then the content is at fault.
            if error.errno is not None:
                raise
            raise self._unreadable(error) from None
        except MemoryError as error:
            raise self._unreadable(error, "it does not fit in memory") from None
        except (pa.ArrowException, ValueError, KeyError, OverflowError, IndexError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: BaseException, reason: str = "") -> InputError:
        # A file that was truncated while it was read is also broken.
        self._unchanged.check()
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return InputError(
            f"It cannot be read as {self.format}",
            argument="path",
            kind="file",
            source=self.name,
            found=reason or first[:160].rstrip(". "),
            remedies=[Remedy("It may be truncated, or another kind of file.")],
        )


def runs_of(
    batches: Iterable[Any], rows: int, times: int = 1, first: int = _FIRST_RUNS
) -> Iterator[tuple[int, list[Any]]]:
    """Record batches in runs of one schema, with the number of the first row.

    A run has at least `rows` rows, unless there are no more of its schema: short ones at the end would be
    scored without kernels. After the first runs they have at least `times` that number, except the last.
    """
    waiting: deque[Any] = deque()
    start = n = n_runs = 0
    length = rows if first else rows * times
    for batch in batches:
        # Parts of a folder and blocks of a JSON file may have types of their own.
        if waiting and batch.schema != waiting[0].schema:
            yield start, list(waiting)
            start, n = start + n, 0
            waiting.clear()
        waiting.append(batch)
        n += batch.num_rows
        while n >= length + rows:
            run, taken = [], 0
            while taken < length:
                run.append(waiting.popleft())
                taken += run[-1].num_rows
            yield start, run
            start, n, n_runs = start + taken, n - taken, n_runs + 1
            length = rows if n_runs < first else rows * times
    if n:
        yield start, list(waiting)


def common_format(paths: Sequence[Path]) -> str:
    """The format of all these files; refuse mixed ones."""
    kinds = {format_of(path): path for path in reversed(paths)}
    if len(kinds) > 1:
        first, *others = reversed(kinds.items())
        raise InputError(
            "Several files must be of one format",
            argument="path",
            kind="file",
            found=join(f"{path} is {kind}" for kind, path in (first, *others)),
            remedies=[Remedy("Name those of one format, with a pattern such as 'preds/*.parquet'.")],
        )
    return next(iter(kinds))


def _with_nan(numbers: Any) -> np.ndarray[Any, Any]:
    """Numbers of Arrow with NaN where one is missing; not by `fill_null`, which imports pandas."""
    return view(numbers) if not numbers.null_count else np.array(numbers.to_pylist(), dtype=float)


def _number(text: str) -> float | None:
    """The number in a text; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _kind(kind: Any) -> str:
    if pa.types.is_dictionary(kind):
        return column_roles.OTHER
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column_roles.REAL
    if pa.types.is_integer(kind):
        return column_roles.INTEGER
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return (
            column_roles.LIST
            if _kind(kind.value_type) in (column_roles.REAL, column_roles.INTEGER)
            else column_roles.OTHER
        )
    return column_roles.OBJECT if pa.types.is_struct(kind) else column_roles.OTHER
