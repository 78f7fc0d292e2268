"""Parameters of commands, checked and completed before a command runs.

Standard input (`-`) is copied to a private temporary file, because files are read more than once. A file that
a command would both read and write is refused.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shlex
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from verax._settings import settings
from verax.cli.panels import path_of
from verax.cli.presenting import add_choices, presented
from verax.common.packages import needed
from verax.common.paths import as_path, refuse_special
from verax.common.remote import RemotePath, has_marks
from verax.common.toml import CONFIG, PROJECT
from verax.common.urls import object_of, scheme_of
from verax.display.writing import check_writable
from verax.errors import InputError, Remedy

if TYPE_CHECKING:
    from verax.cli.config import Config

STDIN = "-"
# Parameters that name files to write. The state of a monitor is read and written.
OUTPUTS = ("html", "save", "plot", "out", "state")
# Parameters that name files to read; outcomes and weights may be arrays in files of their own.
INPUTS = (
    *("given", "files", "file", "predictions", "apply_to", "load", "outcomes", "calibrate", "reference"),
    *("config", "target", "weights", "groups", "history"),
)
_PIPE = "Pipe it in, and name - in its place: `cat FILE | verax evaluate -`."
_BLOCK, _LOOK = 2**20, 2**16
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz", "npy", "eval")
# How files begin, and their endings.
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrow", b"\x93NUMPY": ".npy"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst", b"\x04\x22\x4d\x18": ".lz4"}


def prepare(command: Any) -> None:
    """Make a command look at its values before it runs."""
    if hasattr(command, "prepared"):
        return
    command.prepared = True
    add_choices(command)
    for parameter in command.params:
        if not parameter.required and parameter.callback is None and not parameter.multiple:
            _pass_missing(parameter)
    run = command.invoke

    def invoke(context: Any) -> Any:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        context.params |= {name: _places(value) for name, value in context.params.items()}
        Typed.begin(context)
        with Piped.spooled(context.params):
            for path in _inputs(context.params):
                if not isinstance(path, RemotePath):
                    refuse_special(path, _PIPE)
            refuse_overwriting(context.params)
            check_outputs(context.params)
            with presented(context):
                return run(context)

    command.invoke = invoke


def _pass_missing(parameter: Any) -> None:
    """Pass on None where nothing was typed: typer would make a validator for it first."""
    process = parameter.process_value
    parameter.process_value = lambda context, value: None if value is None else process(context, value)


class Typed:
    """The command that runs, as it was typed."""

    context: ClassVar[Any] = None
    params: ClassVar[Mapping[str, Any]] = {}
    # The options that say how files are read, by name.
    reading: ClassVar[frozenset[str]] = frozenset()
    # The file that says how files are read, and the files that are named there and not typed.
    config: ClassVar[Config | None] = None
    files: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def begin(cls, context: Any) -> None:
        """Note the command, and complete its files by those of `verax.toml`."""
        cls.context, cls.config, cls.files = context, None, ()
        params = context.params
        if "config" in params:
            # Readings need NumPy, and help does not.
            from verax.cli.config import Config

            cls.config = Config.found(params["config"])
        needs_files = getattr(context.command.callback, "needs_files", False)
        if cls.config is not None and needs_files and not params["given"]:
            cls.files = cls.config.files
            params["given"] = list(cls.files)
        cls.params = dict(params)

    @classmethod
    def is_typed(cls, flag: str) -> bool:
        """Whether an option was typed."""
        source = cls.context.get_parameter_source(flag.replace("-", "_"))
        return source is not None and source.name == "COMMANDLINE"

    @classmethod
    def path(cls) -> str:
        """The command, such as `verax evals compare`."""
        return "verax" if cls.context is None else path_of(cls.context)

    @classmethod
    def source(cls) -> str:
        """The files and the options that say how they are read, for the next command.

        Subgroups are left out: not every command has them.
        """
        words: list[str] = list(cls.files)
        for param in () if cls.context is None else cls.context.command.params:
            value, name = cls.params.get(param.name), param.name
            if not cls.is_typed(name) or name == "by":
                continue
            values = list(map(str, _texts(value)))
            flags = [flag for flag in param.opts if flag.startswith("-")]
            if not flags:
                words = [*values, *words]
            elif name in cls.reading:
                flag = max(flags, key=len)
                words += [flag] if value is True else [word for text in values for word in (flag, text)]
        return shlex.join(words) or "FILE"


def refuse_overwriting(values: Mapping[str, Any]) -> None:
    """Refuse an output that is an input, or another output: by what it is, so also through links.

    Parameters
    ----------
    values : Mapping[str, Any]
        The parameters of a command by name.
    """
    written = {name: as_path(values[name]) for name in OUTPUTS if values.get(name) is not None}
    seen: dict[object, str] = {}
    for name, path in written.items():
        if path.name in (CONFIG, PROJECT):
            raise _same(path, name, "says how files are read, and is no result")
        key = _identity(path)
        if key is not None and key in seen:
            raise _same(path, name, f"is also --{seen[key]}")
        seen[key] = name
    # A file that is not there yet cannot be an input.
    existing = [(key, name) for key, name in seen.items() if isinstance(key, tuple)]
    for path in _inputs(values) if existing else ():
        this = _identity(path)
        for key, name in existing:
            if this == key or _would_read(path, written[name]):
                raise _same(written[name], name, "is one of the files to read")
    config = None if Typed.config is None else Path(Typed.config.path)
    if config is not None and _identity(config) in seen:
        raise _same(config, seen[_identity(config)], "says how files are read")


def check_outputs(values: Mapping[str, Any]) -> None:
    """Refuse an output that could not be written, before the work that it would be of.

    Parameters
    ----------
    values : Mapping[str, Any]
        The parameters of a command by name.
    """
    for name in OUTPUTS:
        if values.get(name) is not None:
            path = as_path(values[name])
            check_writable(path, name)
            _refuse_other_kind(path, name)
    if values.get("plot") is not None:
        figure_format(as_path(values["plot"]))


# What is read of a file to see what verax saved in it, and the kind of a monitor's state.
_HEAD, _STATE = 2**12, "monitor"
_FORMAT = re.compile(rb'\s*\{\s*"format"\s*:\s*"(verax [a-z ]+)"')


def _refuse_other_kind(path: Path, name: str) -> None:
    """Refuse to write over what verax saved for another purpose."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(_HEAD)
    text = _FORMAT.match(start)
    kind = text.group(1).decode() if text else ""
    if start.startswith(b"VERAX"):
        from verax.common.packing import kind_at

        kind = kind_at(start)
    is_state = kind == _STATE
    if not kind or (is_state == (name == "state") and name in ("state", "save")):
        return
    what = "the state of a monitor" if is_state else kind
    raise InputError(
        f"{path} must not be written over",
        argument=name,
        kind="file",
        found=f"verax saved something else in it: {what}",
        values=[str(path)],
        remedies=[Remedy("Name another file.")],
    )


def figure_format(path: Path) -> str:
    """The format that the ending of a figure's file names; PNG where there is none."""
    needed("matplotlib.pyplot", "Drawing", "plot")
    from matplotlib.backend_bases import FigureCanvasBase

    kind = path.suffix.removeprefix(".").lower() or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise InputError(
            f"must end in one of {', '.join(f'.{name}' for name in sorted(known))}",
            argument="plot",
            found=f"it ends in .{kind}",
            values=[str(path)],
        )
    return kind


def _same(path: Path, name: str, problem: str) -> InputError:
    return InputError(
        "must be a file of its own, because it is overwritten",
        argument=name,
        kind="file",
        found=f"{path} {problem}",
        values=[str(path)],
        remedies=[Remedy("Name another file.")],
    )


def _identity(path: Path) -> object:
    """The identity of a file: device and inode, or its full name if it is not there; None for devices."""
    if isinstance(path, RemotePath):
        return object_of(path.address)
    try:
        status = path.stat()
    except (OSError, ValueError):
        whole = os.path.normcase(os.path.realpath(path))
        # The files of macOS have one name in capitals and in small letters.
        return whole.casefold() if sys.platform == "darwin" else whole
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _inputs(values: Mapping[str, Any]) -> Iterator[Path]:
    """Files and folders that parameters name: as they are, as name=FILE, or by a pattern."""
    for name in INPUTS:
        for text in _texts(values.get(name)):
            if isinstance(text, (str, Path)) and str(text):
                whole = str(as_path(text))
                for named in {whole, whole if scheme_of(whole) else whole.partition("=")[2] or whole}:
                    if scheme_of(named):
                        # Commands ask its server; what is written is compared by name.
                        yield as_path(named)
                    elif _exists(named):
                        yield Path(named)
                    elif has_marks(named):
                        yield from map(Path, glob(named, recursive=True))


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        # Commands say what is wrong with a name.
        return False


def _would_read(folder: Path, path: Path) -> bool:
    """Whether a folder's files include this one, by its ending."""
    if (
        isinstance(folder, RemotePath)
        or not folder.is_dir()
        or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    ):
        return False
    from verax.files.formats.records import endings_of_forms
    from verax.files.formats.tables import FORMATS
    from verax.files.formats.texts import ending

    return ending(path) in (*FORMATS, *endings_of_forms())


class Piped:
    """Standard input as a file in a private folder, while a command runs."""

    _folder: ClassVar[str] = ""

    @classmethod
    @contextmanager
    def spooled(cls, values: dict[str, Any]) -> Iterator[None]:
        """Put the name of a temporary file in place of `-`."""
        asked = [
            (name, text)
            for name, value in values.items()
            for text in _texts(value)
            if name in INPUTS and _is_stdin(text)
        ]
        if not asked:
            yield
            return
        name = asked[0][0]
        if len(asked) > 1:
            raise InputError(
                "Standard input can be read once", argument=name, kind="file", found="it is named twice"
            )
        with tempfile.TemporaryDirectory(prefix="verax-") as folder:
            cls._folder = folder + os.sep
            path = _spool(Path(folder), values.get("stdin_format"))
            value = values[name]
            names = [
                str(text)[: -len(STDIN)] + str(path) if _is_stdin(text) else text for text in _texts(value)
            ]
            values[name] = names if isinstance(value, (list, tuple)) else type(value)(names[0])
            yield

    @classmethod
    def named(cls, text: str) -> str:
        """A text in which standard input has its name, without that of the folder it was copied to."""
        return text.replace(cls._folder, "") if cls._folder else text


def _texts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _places(value: Any) -> Any:
    """The paths of a parameter, of which those that URLs name are places."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_places, value))
    return as_path(value) if isinstance(value, Path) else value


def _is_stdin(text: object) -> bool:
    return isinstance(text, (str, Path)) and (str(text) == STDIN or str(text).endswith("=" + STDIN))


def _spool(folder: Path, form: str | None) -> Path:
    """Copy standard input to a file whose ending tells its format."""
    if form is not None and form not in FORMATS:
        raise InputError(f"must be one of {', '.join(FORMATS)}", argument="format", values=[form])
    if sys.stdin is None or sys.stdin.buffer.isatty():
        raise InputError(
            "Standard input is a terminal; a file must be piped in: `cat preds.csv | verax evaluate -`",
            argument="path",
            kind="file",
        )
    copied, size = folder / "stdin", 0
    with copied.open("wb") as file:
        while block := sys.stdin.buffer.read(_BLOCK):
            size += len(block)
            if size > settings.most_piped:
                raise InputError(
                    f"Standard input may have up to {settings.most_piped >> 30} GiB",
                    argument="path",
                    kind="file",
                    remedies=[Remedy("Write it to a file, and name that.")],
                )
            file.write(block)
    if not size:
        raise InputError("Standard input is empty", argument="path", kind="file")
    return copied.rename(copied.with_name("stdin" + (f".{form}" if form else _ending(copied))))


def _ending(path: Path) -> str:
    """The ending that fits the content of a file."""
    with path.open("rb") as file:
        start = file.read(_LOOK)
    for magic, packed in _PACKED.items():
        if start.startswith(magic):
            # Only text is compressed as a whole; JSON Lines begin with an object.
            inside = _start_of(path, packed)
            return _ending_of_text(inside) + packed
    for magic, ending in _MAGIC.items():
        if start.startswith(magic):
            return ending
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                return ".npz" if all(name.endswith(".npy") for name in archive.namelist()) else ".eval"
        except zipfile.BadZipFile:
            raise InputError("Standard input is a damaged archive", argument="path", kind="file") from None
    return _ending_of_text(start)


def _start_of(path: Path, packed: str) -> bytes:
    from verax.files.formats.texts import decompressed

    named = path.with_name("stdin" + packed)
    path.rename(named)
    try:
        with decompressed(named) as stream:
            return bytes(stream.read(_LOOK))
    finally:
        named.rename(path)


def _ending_of_text(start: bytes) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    line, newline, _ = text.partition(b"\n")
    if text[:1] not in (b"{", b"["):
        return ".tsv" if b"\t" in line and b"," not in line else ".csv"
    try:
        json.loads(line)
    except ValueError:
        # A line that is longer than what was looked at is an object of its own.
        return ".json" if newline or text[:1] == b"[" else ".jsonl"
    return ".jsonl" if text[:1] == b"{" or newline else ".json"
