"""Zip archives, member by member, within limits: encrypted, damaged or inflated ones are refused."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax._settings import settings
from verax.common.packages import needed
from verax.common.paths import check_regular
from verax.errors import InputError, Remedy, show
from verax.files.formats.texts import sliced

_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED = 1
# A local header: its signature, 22 bytes that the directory has as well, and two lengths.
_LOCAL = struct.Struct("<4s22xHH")
# Bytes that deflate cannot inflate to much, whatever the directory says; without a limit it is faster.
_SMALL = 2**15
# Bytes that are read beyond what a member needs at least.
_EXTRA = 64


class Archive:
    """The members of a zip archive, whose directory is read and checked at once.

    Attributes
    ----------
    names : tuple of str
        Its members, in the order in which they lie in the file.
    """

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self._path = path
        try:
            with path.open("rb") as file, zipfile.ZipFile(file) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError) as error:
            raise self._refusal("The file must be a zip archive", str(error) or "it is none") from None
        self._check(members)
        self._check_names(members)
        self._members = {info.filename: info for info in sorted(members, key=lambda info: info.header_offset)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def read(self, names: Iterator[str] | tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """The content of some members, one after the other."""
        with self._path.open("rb", buffering=0) as file:
            for name in names:
                yield name, self._content(self._members[name], file)

    def _check(self, members: list[zipfile.ZipInfo]) -> None:
        size = self._path.stat().st_size
        if len(members) > settings.most_members:
            raise self._refusal(
                f"An archive must have at most {settings.most_members:,} members", f"it has {len(members):,}"
            )
        if sum(info.compress_size for info in members) > size:
            raise self._refusal("The members of an archive must not overlap", "they take more than the file")
        for info in members:
            where = f"member {info.filename[:80]!r}"
            if info.flag_bits & _ENCRYPTED:
                raise self._refusal("The archive must not be encrypted", f"{where} is")
            if info.compress_type not in (_STORED, _DEFLATED, _ZSTD):
                raise self._refusal(
                    "The archive must be compressed by deflate or zstd",
                    f"{where} has method {info.compress_type}",
                )
            if info.file_size > settings.largest_member:
                raise self._refusal(
                    f"A member of an archive must have at most {settings.largest_member:,} bytes",
                    f"{where} has {info.file_size:,}",
                )
            if info.file_size > max(settings.large_member, settings.most_ratio * info.compress_size):
                raise self._refusal(
                    f"A large member must not be compressed by more than {settings.most_ratio} to 1",
                    f"{where} inflates {info.compress_size:,} bytes to {info.file_size:,}",
                )

    def _check_names(self, members: list[zipfile.ZipInfo]) -> None:
        names: set[str] = set()
        for info in members:
            if info.filename in names:
                raise self._refusal(
                    "Every member of an archive must have a name of its own",
                    f"{info.filename[:80]!r} is there twice",
                )
            names.add(info.filename)

    def _content(self, info: zipfile.ZipInfo, file: Any) -> bytes:
        """The bytes of a member; the general reader takes much longer for small ones."""
        where = f"member {info.filename[:80]!r}"
        file.seek(info.header_offset)
        # Headers here and in the directory have fields of different lengths.
        raw = file.read(_LOCAL.size + len(info.orig_filename.encode()) + info.compress_size + _EXTRA)
        if len(raw) < _LOCAL.size or raw[:4] != b"PK\x03\x04":
            raise self._damaged(f"{where} is not where the directory says")
        _, name, extra = _LOCAL.unpack_from(raw)
        start = _LOCAL.size + name + extra
        if start + info.compress_size > len(raw):
            file.seek(info.header_offset)
            raw = file.read(start + info.compress_size)
        packed = raw[start : start + info.compress_size]
        try:
            if info.compress_type == _DEFLATED and len(packed) <= _SMALL:
                content = zlib.decompress(packed, -15, info.file_size)
            elif info.compress_type == _DEFLATED:
                content = zlib.decompressobj(-15).decompress(packed, info.file_size + 1)
            elif info.compress_type == _ZSTD:
                content = pa.Codec("zstd").decompress(packed, info.file_size, asbytes=True)
            else:
                content = packed
        except (zlib.error, OSError, ValueError) as error:
            raise self._damaged(f"{where} is damaged ({str(error)[:80]})") from None
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._damaged(f"{where} is not what the directory says")
        return content

    def _damaged(self, found: str) -> InputError:
        return self._refusal("The archive must be complete", found)

    def _refusal(self, requirement: str, found: str) -> InputError:
        remedy = Remedy("It may be truncated or damaged: copy it again.")
        return InputError(
            requirement, argument="path", kind="file", found=found, source=str(self._path), remedies=[remedy]
        )


class Excel:
    """A workbook, held in memory.

    Attributes
    ----------
    notes : tuple[str, ...]
        Which of several sheets is read.
    """

    def __init__(self, path: Path) -> None:
        check_regular(path)
        calamine = needed("python_calamine", "Reading Excel files", "excel", "python-calamine")
        with path.open("rb") as file:
            zipped = zipfile.is_zipfile(file)
        if zipped:
            # Its directory is held to the limits of archives.
            Archive(path)
        try:
            with path.open("rb") as file, calamine.load_workbook(file) as book:
                names = book.sheet_names
                rows = book.get_sheet_by_index(0).to_python(skip_empty_area=True) if names else []
        except calamine.CalamineError as error:
            raise _refusal(path, "The file must be an Excel workbook", str(error)) from None
        if len(rows) < 2:
            sheet = f"the first sheet, {show(names[0])}," if names else "it"
            raise _refusal(
                path, "The first sheet must have a row of names, and rows below it", f"{sheet} has none"
            )
        header, *cells = rows
        columns = {str(name): [row[j] for row in cells] for j, name in enumerate(header)}
        if len(columns) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise _refusal(
                path,
                f"There are two columns called {show(str(twice))}",
                remedies=[Remedy("Rename one of them.")],
            )
        self._table = pa.table({name: _column(values) for name, values in columns.items()})
        self.schema: Any = self._table.schema
        self.n_rows: int = self._table.num_rows
        others = f"The workbook has {len(names)} sheets; the first, {show(names[0])}, was read."
        self.notes: tuple[str, ...] = (others,) if len(names) > 1 else ()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for batch in self._table.select(list(columns)).to_batches():
            yield from sliced(batch, rows)


def _refusal(path: Path, requirement: str, found: str = "", remedies: Sequence[Remedy] = ()) -> InputError:
    return InputError(
        requirement, argument="path", kind="file", found=found, source=str(path), remedies=remedies
    )


def _column(cells: list[Any]) -> Any:
    """A column of one type: truth values, whole numbers, numbers, or texts; an empty cell is missing."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds and kinds <= {int, float}:
        whole = all(float(value).is_integer() for value in values if value is not None)
        return pa.array([None if v is None else int(v) for v in values] if whole else values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(cell: Any) -> str:
    """A cell beside texts, as Excel shows it: a whole number has no decimals."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)
