"""CSV and JSON Lines, read in blocks: a CSV file gives texts only, a JSON file what its values are."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from verax._settings import settings
from verax.common import strictjson
from verax.common.paths import arrow_file, check_exists, check_regular, refuse_special, refusing_wrong_names
from verax.common.stages import stage
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.lists.logprobs import parse_line
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    import pyarrow.csv as pacsv

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
COMPRESSED = tuple(_CODECS)
# Lines that are compared to see whether they have keys in common.
_LINES_LOOKED_AT = 64
# Objects of a document that are made columns of at a time.
_OBJECTS = 2**14
# The beginning of a line of JSON that is no object.
_NO_OBJECT = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?[ \t]*[^\s{]")
# A line in a message is cut here.
_SHOWN = 80


def ending(path: Path) -> str:
    """The ending of a name, in small letters, without that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def decompressed(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed according to its ending; never mapped into memory."""
    codec = _CODECS.get(path.suffix.lower())
    refuse_special(path)
    with arrow_file(path) as file:
        if codec is None:
            yield file
        else:
            with _explaining(path, codec), pa.CompressedInputStream(file, codec) as stream:
                yield stream


@contextmanager
def _explaining(path: Path, codec: str) -> Iterator[None]:
    """What a decompressor complains about, as an error that names the file: its content is at fault."""
    try:
        yield
    except OSError as error:
        # Errors of the system have a number.
        if error.errno is not None:
            raise
        first = (str(error).splitlines() or ["it ends too early"])[0].rstrip(". ")
        remedy = Remedy("It may be truncated, or not compressed this way.")
        raise refuse(path, f"The file cannot be decompressed as {codec}", first, remedy) from None


def refuse(path: Path, what: str, found: str, *remedies: Remedy, rows: Sequence[int] = ()) -> InputError:
    """The error about a file that is not what its name says."""
    return InputError(
        what, argument="path", kind="file", source=str(path), found=found, rows=rows, remedies=remedies
    )


# A number as programs write it.
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


class Csv:
    """Text in columns. All columns are read as text, so that `01` stays what it is, except `numbers`.

    Parameters
    ----------
    path : Path
    request : Reading
        Gives the delimiter and the decimal mark.
    tabs : bool
        Columns are separated by tabs unless the request says otherwise.

    Attributes
    ----------
    numbers : Collection[str]
        Columns that are to be read as numbers; as text from the batch on where a cell is none.
    """

    n_rows = None

    def __init__(self, path: Path, request: Reading, *, tabs: bool) -> None:
        check_regular(path)
        self.path = path
        self.numbers: Collection[str] = ()
        self._decimal = request.decimal
        self._delimiter = request.delimiter or ("\t" if tabs else ",")
        self._header = self._first_line()
        if self._header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise refuse(path, "The text must be UTF-8", "it is UTF-16", Remedy("Save it as UTF-8."))
        # A block must hold whole rows, which are about as long as the header.
        self._block = max(settings.text_block, 8 * len(self._header))
        names = self._names()
        self.schema: Any = pa.schema([(name, pa.string()) for name in names])
        if len(names) == 1:
            self._refuse_other_delimiter()
        self._refuse_numbers(names)

    def _names(self) -> list[str]:
        header = self._header.removeprefix(codecs.BOM_UTF8).rstrip(b"\r")
        # Arrow would look for types that no one asks for. It is left the headers that follow empty lines, or
        # whose quotes enclose line breaks.
        if header.strip() and b"\r" not in header and header.count(b'"') % 2 == 0:
            with suppress(UnicodeDecodeError, csv.Error):
                names = next(csv.reader([header.decode()], delimiter=self._delimiter))
                if not any('"' in name for name in names):
                    return names
        with self._explained(), self._reader() as reader:
            return list(reader.schema.names)

    def _refuse_numbers(self, names: Sequence[str]) -> None:
        """Refuse a first line that holds data; columns may be called 0, 1, 2."""
        if all(map(_NUMBER.fullmatch, names)) and not all(map(str.isdecimal, names)):
            raise refuse(
                self.path,
                "The first line must name the columns",
                f"it holds numbers: {', '.join(names[:4])}",
                Remedy("Add a first line such as label,p_cat,p_dog."),
            )

    @contextmanager
    def _reader(
        self,
        columns: Sequence[str] = (),
        *,
        numbers: Collection[str] = (),
        handler: Any = None,
    ) -> Iterator[pacsv.CSVStreamingReader]:
        import pyarrow.csv as pacsv

        convert = pacsv.ConvertOptions(
            column_types={name: pa.float64() if name in numbers else pa.string() for name in columns},
            include_columns=list(columns),
            decimal_point=self._decimal,
            # Only nothing is missing: a class may well be called NA or None.
            null_values=[""],
            strings_can_be_null=True,
        )
        # One thread counts the lines.
        read = pacsv.ReadOptions(block_size=self._block, use_threads=handler is None)
        parse = pacsv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=handler)
        with decompressed(self.path) as stream, pacsv.open_csv(stream, read, parse, convert) as reader:
            yield reader

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        done = 0
        if self.numbers:
            try:
                with self._reader(columns, numbers=self.numbers) as reader:
                    for batch in reader:
                        yield from sliced(batch, rows)
                        done += batch.num_rows
                return
            except pa.ArrowInvalid:
                # A cell that is not a number is found by reading it as text.
                pass
        with self._explained(), self._reader(columns) as reader:
            for batch in reader:
                skipped = min(done, batch.num_rows)
                done -= skipped
                yield from sliced(batch.slice(skipped), rows)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            self._refuse_encoding()
            self._refuse_ragged()
            raise error

    def _first_line(self) -> bytes:
        parts: list[bytes] = []
        with decompressed(self.path) as stream:
            while block := stream.read(2**16):
                parts.append(block)
                if b"\n" in block:
                    break
                if len(parts) * len(parts[0]) > settings.longest_header:
                    raise refuse(
                        self.path,
                        f"The first line must have at most {settings.longest_header:,} bytes",
                        "it has more",
                        Remedy("It may be another kind of file."),
                    )
        line = b"".join(parts).partition(b"\n")[0]
        n = line.count(self._delimiter.encode()) + 1
        if (
            n > settings.most_columns
            and len(next(csv.reader([line.decode(errors="replace")], delimiter=self._delimiter)))
            > settings.most_columns
        ):
            raise refuse(
                self.path, f"A file must have at most {settings.most_columns:,} columns", f"it has {n:,}"
            )
        return line

    def _refuse_encoding(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        line = 1
        with decompressed(self.path) as stream:
            while block := stream.read(settings.text_block):
                try:
                    line += decoder.decode(block).count("\n")
                except UnicodeDecodeError as error:
                    line += error.object[: error.start].count(b"\n")
                    raise refuse(
                        self.path,
                        "The text must be UTF-8",
                        f"line {line} is not",
                        Remedy("Save it as UTF-8."),
                    ) from None

    def _refuse_ragged(self) -> None:
        """Name the first line with more or fewer cells than the header."""
        invalid: list[Any] = []

        def note(row: Any) -> str:
            invalid.append(row)
            return "error"

        try:
            with self._reader(handler=note) as reader:
                for _ in reader:
                    pass
        except pa.ArrowInvalid:
            pass
        if not invalid:
            return
        self._refuse_other_delimiter()
        row = invalid[0]
        remedy = Remedy("Complete the line, or leave it out.")
        if row.expected_columns == 1:
            remedy = passing("if the columns are separated otherwise", delimiter=...)
        cells, header = (
            f"{n} cell{'s' if n != 1 else ''}" for n in (row.actual_columns, row.expected_columns)
        )
        raise refuse(
            self.path,
            "Every line must have the same number of cells as the header",
            f"line {row.number} has {cells} and the header {header}: {show(row.text, _SHOWN)}",
            remedy,
        )

    def _refuse_other_delimiter(self) -> None:
        """Refuse a header that has other delimiters than the one expected."""
        header = self._header.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").rstrip("\r")
        if self._delimiter in header:
            return
        for mark, spoken in ((";", "';'"), ("\t", "a tab"), ("|", "'|'"), (",", "','")):
            if mark in header:
                raise InputError(
                    f"The columns seem to be separated by {spoken}",
                    argument="delimiter",
                    kind="file",
                    source=str(self.path),
                    found=f"the first line reads {show(header, _SHOWN)}",
                    values=[mark],
                    remedies=[passing(delimiter=mark)],
                )


def json_document(path: Path) -> Any:
    """The whole of a JSON document."""
    most = max(settings.large_member, settings.most_ratio * check_exists(path).st_size)
    with decompressed(path) as stream:
        text = stream.read(most + 1)
    if len(text) > most:
        raise refuse(path, "The file must hold one document", f"it expands to more than {most:,} bytes")
    try:
        return strictjson.parse(text)
    except strictjson.JsonError as error:
        raise refuse(path, "The file must be JSON", str(error)) from None


def lines_of(path: Path, *, once: bool = True) -> Iterator[tuple[int, Any]]:
    """The values of a JSON Lines file, with the numbers of their lines from 1."""
    with refusing_wrong_names(path), decompressed(path) as stream:
        packed = path.suffix.lower() in COMPRESSED
        n_bytes = 0 if packed else check_exists(path).st_size
        yield from json_lines(stream, str(path), n_bytes, once=once)


def json_lines(stream: Any, source: str, n_bytes: int = 0, *, once: bool = True) -> Iterator[tuple[int, Any]]:
    """The values of the lines of a stream without the empty ones; reports progress in `n_bytes`."""
    reader = stream if hasattr(stream, "peek") else io.BufferedReader(stream, 2**20)
    read, reported = 0, 0
    for number, line in enumerate(reader, start=1):
        read += len(line)
        if n_bytes and read - reported >= settings.progress_bytes:
            reported = read
            stage(f"megabytes of {source} read", read // 10**6, n_bytes // 10**6)
        if line.strip():
            yield number, parse_line(line, number, source, once=once)


class JsonLines:
    """An object per line. Every block has its own types; who uses the columns makes sense of them."""

    n_rows = None

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self.path = path
        self._texts: dict[str, Any] = {}
        first = next(self._tables(), None)
        if first is None:
            raise refuse(path, "The file must hold one JSON object per line", "it has none")
        # Texts that look like times are texts all the same.
        for field in first.schema:
            if pa.types.is_timestamp(field.type) or pa.types.is_string(field.type):
                self._texts[field.name] = pa.string()
        self.schema: Any = pa.schema([(f.name, self._texts.get(f.name, f.type)) for f in first.schema])

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time; a column that a block lacks is empty there."""
        for table in self._tables():
            empty = pa.nulls(table.num_rows)
            chosen = {name: table[name] if name in table.schema.names else empty for name in columns}
            for batch in pa.table(chosen).combine_chunks().to_batches():
                yield from sliced(batch, rows)

    def _tables(self) -> Iterator[Any]:
        start = 0
        for block in self._blocks():
            table = self._parsed(block, start)
            start += table.num_rows
            yield table

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines, about `settings.text_block` bytes at a time."""
        waiting = b""
        with decompressed(self.path) as stream:
            while block := stream.read(settings.text_block):
                lines, newline, rest = (waiting + block).rpartition(b"\n")
                waiting = rest
                if lines.strip():
                    yield lines + newline
                if len(waiting) > settings.longest_line:
                    raise refuse(
                        self.path, "The file must hold one JSON object per line", "a line has no end"
                    )
        if waiting.strip():
            yield waiting

    def _parsed(self, block: bytes, start: int) -> Any:
        import pyarrow.json as pajson

        lines = [line for line in block.split(b"\n") if line.strip()]
        if _NO_OBJECT.search(block) or any(strictjson.levels(line) > settings.most_levels for line in lines):
            # A line that is null, or nested very deeply, ends the process in Arrow.
            self._refuse_lines(block, start)
        self._refuse_many_keys(lines)
        options = pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)
        parse = pajson.ParseOptions(explicit_schema=pa.schema(list(self._texts.items())))
        try:
            return pajson.read_json(pa.BufferReader(block), options, parse)
        except pa.ArrowException as error:
            self._refuse_lines(block, start)
            raise error

    def _refuse_many_keys(self, lines: Sequence[bytes]) -> None:
        """Refuse lines that have hardly a key in common: each of them would be a column of all lines."""
        if len(lines) < _LINES_LOOKED_AT:
            return
        some = lines[:: len(lines) // _LINES_LOOKED_AT]
        if len(_keys(some)) <= 4 * max(len(_keys([line])) for line in some):
            return
        n = len(_keys(lines))
        if n > settings.most_columns or n * len(lines) > settings.most_cells:
            raise refuse(
                self.path,
                "The objects must have the same keys",
                f"{len(lines):,} lines have {n:,} different ones",
            )

    def _refuse_lines(self, block: bytes, start: int) -> None:
        """Name the first line that is no object, or whose values are of another type than before."""
        types: dict[str, str] = {}
        row = start - 1
        for line in block.splitlines():
            if not line.strip():
                continue
            row += 1
            where = f"row {row} "
            try:
                if strictjson.levels(line) > settings.most_levels:
                    raise strictjson.JsonError(
                        f"its values are nested more than {settings.most_levels} levels deep"
                    )
                record = strictjson.parse(line)
            except strictjson.JsonError as error:
                text = show(line.decode(errors="replace"), _SHOWN)
                raise refuse(
                    self.path, "Every line must be JSON", f"{where}is not ({error}): {text}", rows=[row]
                ) from None
            if not isinstance(record, dict):
                text = show(record, _SHOWN)
                raise refuse(self.path, "Every line must be a JSON object", f"{where}is {text}", rows=[row])
            for name, value in record.items():
                kind = _json_type(value)
                before = types.setdefault(name, kind) if kind else kind
                if before != kind:
                    raise refuse(
                        self.path,
                        f"Column {show(name)} must hold values of one type",
                        f"it holds a {before}, and {where}holds a {kind}",
                        rows=[row],
                    )


def _keys(lines: Sequence[bytes]) -> set[str]:
    """The different keys of the objects of some lines; a line that is none has no keys."""
    keys: set[str] = set()
    for line in lines:
        with suppress(strictjson.JsonError):
            record = strictjson.parse(line)
            keys.update(record if isinstance(record, dict) else ())
    return keys


class JsonDocument(JsonLines):
    """A JSON document that is an array of objects, one per row; it is parsed as a whole."""

    def _blocks(self) -> Iterator[bytes]:
        document = json_document(self.path)
        if not isinstance(document, list) or not document:
            problem = f"it holds {'no object' if document == [] else f'a single {_json_type(document)}'}"
            values = document.values() if isinstance(document, dict) else [None]
            columns = all(isinstance(value, (list, dict)) for value in values)
            lines = Remedy(
                "These are columns; pandas writes rows with to_json(path, orient='records')."
                if columns
                else "Or write one object per line, and call the file .jsonl."
            )
            raise refuse(self.path, "The document must be an array of objects, one per row", problem, lines)
        for start in range(0, len(document), _OBJECTS):
            yield b"\n".join(json.dumps(record).encode() for record in document[start : start + _OBJECTS])


def _json_type(value: object) -> str:
    """What JSON calls the type of a value; nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "list" if isinstance(value, list) else "object"


def sliced(batch: Any, rows: int) -> Iterator[Any]:
    """A record batch in pieces of up to `rows` rows."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
