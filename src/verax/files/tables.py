"""Files of columns, scanned by pyarrow: what they hold, how many rows, and these in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.ipc as paipc
import pyarrow.parquet as papq

from verax.errors import InputError, show
from verax.files import finding
from verax.files.predictions import Request

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
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
    ".npz": "NPZ",
    ".npy": "NPY",
}
# The scanner may run ahead by so many batches: enough to keep two threads busy, little to hold.
_AHEAD = 4
_BLOCK = 2**22
_BUFFER = 2**16
# How many rows tell whether a column of texts was meant to hold numbers.
_LOOK = 100
_LIKE_A_NUMBER = re.compile(r"\s*-?\d*[.,]?\d+(e-?\d+)?\s*%?", re.IGNORECASE)


def format_of(path: Path) -> str:
    """What kind of file this is, by its name."""
    if path.is_dir():
        return "Parquet"
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        if suffixes and FORMATS.get(suffixes[-1]) in ("Parquet", "Arrow", "NPZ", "NPY"):
            raise InputError(f"{path} must be decompressed first.", argument="path")
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    known = ", ".join(dict.fromkeys(FORMATS))
    raise InputError(
        f"{path} has no known ending; these are read: {known} (text also with .gz, .bz2, .zst).",
        argument="path",
    )


def check_there(path: Path) -> None:
    """Refuse what is missing or empty."""
    if not path.exists():
        near = (
            sorted(p.name for p in path.parent.glob(f"{path.stem[:3]}*"))[:1] if path.parent.is_dir() else []
        )
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"There is no file {path}.{hint}", argument="path")
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise InputError(f"{path} is a folder without Parquet files; pass a file.", argument="path")
    elif path.stat().st_size == 0:
        raise InputError(f"{path} is empty.", argument="path")


class Table:
    """A file of named columns.

    Attributes
    ----------
    schema : names and Arrow types of the columns.
    n_rows : how many rows; None where only reading tells.
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self.format = format_of(path)
        self._request = request
        with self._errors():
            self._dataset = self._open({})
            self.schema = self._dataset.schema
            self._check_names()
        self.n_rows = self._count()

    def _open(self, types: dict[str, Any]) -> Any:
        path = str(self.path)
        if self.format == "Parquet":
            return pads.dataset(path, format="parquet")
        if self.format == "Arrow":
            return _Stream(path) if _is_stream(path) else pads.dataset(path, format="ipc")
        if self.format == "JSON Lines":
            return pads.dataset(path, format=pads.JsonFileFormat())
        # Only nothing is missing: a class may well be called NA or None.
        convert = pacsv.ConvertOptions(
            column_types=types,
            decimal_point=self._request.decimal,
            null_values=[""],
            strings_can_be_null=True,
        )
        with self.path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise InputError(f"{self.path} is UTF-16 text. Save it as UTF-8.", argument="path")
        delimiter = self._request.delimiter or ("\t" if self.format == "TSV" else ",")
        parse = pacsv.ParseOptions(delimiter=delimiter)
        scan = pads.CsvFragmentScanOptions(convert, pacsv.ReadOptions(block_size=_BLOCK))
        return pads.dataset(path, format=pads.CsvFileFormat(parse, scan))

    def _count(self) -> int | None:
        if self.format == "Parquet":
            with self._errors():
                return int(self._dataset.count_rows())
        return None

    def _check_names(self) -> None:
        names = self.schema.names
        twice = (
            next((n for n in dict.fromkeys(names) if names.count(n) > 1), None) if len(names) < 2000 else None
        )
        if len(set(names)) < len(names) and twice is None:
            twice = next(n for i, n in enumerate(names) if n in names[:i])
        if twice is not None:
            raise InputError(f"{self.path} has two columns called {twice!r}. Rename one.", argument="path")
        if len(names) == 1 and self.format in ("CSV", "TSV"):
            other = self._other_delimiter()
            if other is not None:
                raise other

    def _other_delimiter(self) -> InputError | None:
        """The complaint about a header without a delimiter but with another one."""
        own = self._request.delimiter or ("\t" if self.format == "TSV" else ",")
        header = _first_line(self.path)
        if own in header:
            return None
        for mark, spoken in ((";", "';'"), ("\t", "a tab"), ("|", "'|'"), (",", "','")):
            if mark in header:
                text = "'\\t'" if mark == "\t" else f"'{mark}'"
                return InputError(
                    f"{self.path} seems to be separated by {spoken}: its first line reads "
                    f"{show(header)}. Pass delimiter={text}.",
                    argument="delimiter",
                )
        return None

    def kinds(self) -> dict[str, str]:
        """What each column holds, in the words of `finding`."""
        kinds = {field.name: _kind(field.type) for field in self.schema}
        texts = [f.name for f in self.schema if pa.types.is_string(f.type) or pa.types.is_null(f.type)]
        with self._errors():
            head = self._dataset.head(_LOOK, columns=texts) if texts else pa.table({})
        for name in texts:
            values = [v for v in head[name].to_pylist() if v is not None]
            if not values or any(_LIKE_A_NUMBER.fullmatch(v) for v in values):
                kinds[name] = finding.DOUBTFUL
        return kinds

    def as_numbers(self, columns: Sequence[str]) -> None:
        """Read these columns as floating-point numbers, whatever their first values look like."""
        if self.format in ("CSV", "TSV"):
            with self._errors():
                self._dataset = self._open(dict.fromkeys(columns, pa.float64()))
                self.schema = self._dataset.schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, in order, as record batches of up to `rows` rows."""
        with self._errors():
            if self.format == "Parquet":
                yield from self._parquet(columns, rows)
                return
            scanner = self._dataset.scanner(
                columns=list(columns), batch_size=rows, batch_readahead=_AHEAD, fragment_readahead=1
            )
            yield from scanner.to_batches()

    def _parquet(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Through small buffers: the scanner of data sets would hold whole row groups."""
        for file in self._dataset.files:
            with papq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER) as parquet:
                yield from parquet.iter_batches(rows, columns=list(columns))

    def head(self, column: str, rows: int = 2**16) -> Any:
        """The first rows of a column."""
        for batch in self.batches([column], rows):
            if batch.num_rows:
                return batch.column(0)
        raise InputError(f"{self.path} has no rows.", argument="path")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What pyarrow complains about, in one line that names the file."""
        try:
            yield
        except InputError:
            raise
        except UnicodeDecodeError:
            raise InputError(f"{self.path} is not UTF-8 text. Save it as UTF-8.", argument="path") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._complaint(str(error)) from None

    def _complaint(self, text: str) -> InputError:
        value = re.search(
            r"column #(\d+):(?: Row #(\d+):)? CSV conversion error to \w+: invalid value '(.*?)'", text
        )
        if value is not None:
            name = self.schema.names[int(value[1])]
            row = f"row {int(value[2]) - 2}" if value[2] else "a row"
            return self.no_number(name, row, value[3])
        twice = re.search(r"multiple columns named (.*)", text)
        if twice is not None:
            return InputError(
                f"{self.path} has two columns called {twice[1]!r}. Rename one.", argument="path"
            )
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged is not None:
            other = self._other_delimiter()
            if other is not None:
                return other
            remedy = (
                "Is it another delimiter, or another kind of file? Pass delimiter=..."
                if ragged[2] == "1"
                else "Complete the line, or leave it out."
            )
            return InputError(
                f"{self.path}: line {ragged[1]} has {ragged[3]} values and the header {ragged[2]}. {remedy}",
                argument="path",
            )
        changed = re.search(r"Column\(/(.*?)\) changed from (\w+) to (\w+) in row (\d+)", text)
        if changed is not None:
            return InputError(
                f"{self.path}: column {changed[1]!r} holds a {changed[2]} and then a {changed[3]} "
                f"(row {changed[4]}). Make it one of them.",
                argument="path",
            )
        reason = text.rsplit("': ", 1)[-1].splitlines()[0].rstrip(".")
        return InputError(
            f"{self.path} cannot be read as {self.format}: {reason[:160]}. "
            "It may be truncated, or another kind of file.",
            argument="path",
        )

    def no_number(self, column: str, row: str, value: str) -> InputError:
        """The complaint about a text where a number should be."""
        remedy = (
            "Pass decimal=','." if re.fullmatch(r"-?\d*,\d+", value) else "Correct it, or leave the row out."
        )
        return InputError(
            f"{self.path}: column {column!r} must hold numbers; {row} holds {show(value)}. {remedy}",
            argument="probs",
        )


class _Stream:
    """Arrow's streaming format, which has no footer: it can only be read from the start."""

    def __init__(self, path: str) -> None:
        self._path = path
        with paipc.open_stream(path) as reader:
            self.schema = reader.schema

    def scanner(self, columns: Sequence[str], batch_size: int, **_: Any) -> _Stream:
        self._columns, self._rows = list(columns), batch_size
        return self

    def head(self, rows: int, columns: Sequence[str]) -> Any:
        return pa.Table.from_batches([next(self.scanner(columns, rows).to_batches())])

    def to_batches(self) -> Iterator[Any]:
        with pa.memory_map(self._path) as source, paipc.open_stream(source) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, self._rows):
                    yield batch.select(self._columns).slice(start, self._rows)


def _first_line(path: Path) -> str:
    """The header of a text file, compressed or not."""
    with pa.input_stream(str(path), compression="detect") as file:
        start: bytes = file.read(_BUFFER)
    return start.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").partition("\n")[0].rstrip("\r")


def _is_stream(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\xff\xff\xff\xff"


def _kind(kind: Any) -> str:
    if pa.types.is_dictionary(kind):
        return finding.OTHER
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return finding.REAL
    if pa.types.is_integer(kind):
        return finding.INTEGER
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return finding.LIST if _kind(kind.value_type) in (finding.REAL, finding.INTEGER) else finding.OTHER
    return finding.OBJECT if pa.types.is_struct(kind) else finding.OTHER
