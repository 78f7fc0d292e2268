"""The predictions that the files of a command line name: what every command reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from verax.cli.progress import advance, expect, shows_progress
from verax.common.paths import Files, UnchangedFiles, called, files_named
from verax.errors import RuleError
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.analyses.subgroups.result import Subgroups
    from verax.scans.forms import Form

# Endings of plain text, and the bytes of it that tell how long lines are.
_PLAIN, _LOOK = (".csv", ".tsv", ".txt", ".jsonl"), 2**18


def open_files(
    path: Files,
    model: str,
    reading: Reading,
    *,
    classes: Sequence[Hashable] | None = None,
    hold: Literal["fitting", "all"] = "fitting",
    densify: bool = True,
    pooled: Literal["refused", "named", "matched"] = "refused",
) -> Any:
    """Files as a handle; lists are recognised by their content where no columns are named.

    See `ScanOptions` for `hold`, `densify` and `pooled`.
    """
    from verax.scans.forms import form_of_lists
    from verax.scans.options import ScanOptions
    from verax.scans.scan import FILES, open_by_engine

    lists = bool(reading.lists) or form_of_lists(path, reading) is not None
    changed: dict[str, Any] = {"lists": lists, "by": tuple(reading.cuts)}
    if not lists:
        changed |= {} if classes is None else {"classes": tuple(classes)}
        if not reading.several:
            changed["sets" if reading.sets else "probs"] = {model: reading.columns}
    asked_reading = replace(reading, **changed)
    asked = ScanOptions(asked_reading, advance, hold, densify and lists, pooled, rounded=not lists)
    handle: Any = open_by_engine(path, asked, FILES)
    handle.bins = {name: n for name, n in reading.cuts.items() if n}
    if shows_progress():
        expect(rows_about(handle))
    return handle


def form_of(paths: Files, reading: Reading) -> Form | None:
    """The form of files that a command of a wing reads, by what is stated and by their content."""
    from verax.cli.options import with_said
    from verax.scans.forms import form_with_command

    return form_with_command(paths, with_said(reading))


def rows_about(handle: Any) -> int | None:
    """The number of rows, for plain text by the length of its first lines; None where only reading tells."""
    if handle.n_rows is not None:
        return int(handle.n_rows)
    named = files_named(handle.name)
    if named is None or not all(path.suffix.lower() in _PLAIN for path in named[0]):
        return None
    with named[0][0].open("rb") as file:
        block = file.read(_LOOK)
    lines = block.count(b"\n")
    return None if not lines else max(1, round(UnchangedFiles(named[0]).n_bytes * lines / len(block)) - 1)


@dataclass(frozen=True)
class Opened:
    """Predictions that `scan` has opened, and what there is to say of their files.

    Attributes
    ----------
    files : mapping of str to str
        The names of the files of each model.
    handle : Handle
        The rows, wherever they are.
    arrays : mapping of str to object
        Lists and distributions of several models as arguments of the report, which cuts these to lists.
    """

    files: Mapping[str, str]
    handle: Any
    arrays: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Sequence[str], reading: Reading) -> Opened:
        """The files of one model: a path, a pattern, a folder, or several, also as name=path."""
        from verax.files.joining import are_named, files_of_one_model

        model, paths = files_of_one_model(given)
        handle = open_files(paths, model, reading, pooled="named" if are_named(given) else "refused")
        if handle.lists and reading.ordered:
            from verax.inputs.lists.rows import NO_ORDER

            raise RuleError(NO_ORDER)
        return cls({model: called(paths)}, handle)

    def in_order(self, ordered: bool = True) -> Opened:
        """The same for analyses to which the order of the classes matters."""
        if not ordered:
            return self
        same = replace(self, handle=self.handle.in_order())
        same.handle.bins = self.handle.bins
        return same

    @property
    def file(self) -> str:
        """The name of the first model's files."""
        return next(iter(self.files.values()))

    @property
    def lists(self) -> bool:
        """Whether the forecasts are top lists."""
        return bool(self.handle.lists)

    def asked(
        self, *analyses: Callable[[Any], Any], rule: str | None, **how: Any
    ) -> tuple[list[Callable[[], Any]], dict[str, Callable[[], Subgroups]]]:
        """What gives the answer of each analysis, and the scores by each column of subgroups.

        What all of them ask first is answered here, by one pass.
        """
        handle, of_all = self.handle, [partial(_of_all, analysis) for analysis in analyses]
        columns = {name: partial(_by_column, name, {"rule": rule, **how}) for name in handle.by}
        every: list[Callable[[Any], Any]] = [*of_all, *columns.values()]
        # Of two kinds of groups, some analyses see one.
        if handle.whole or handle.two_way or len(every) == 1:
            rows = [handle] * len(every)
        else:
            from verax.scans.scan import answered

            rows = answered(handle, every)
        n = len(analyses)
        answers: list[Callable[[], Any]] = [
            partial(each, _without_subgroups(of)) for each, of in zip(analyses, rows, strict=False)
        ]
        parts: dict[str, Callable[[], Subgroups]] = {
            name: partial(column, of) for (name, column), of in zip(columns.items(), rows[n:], strict=True)
        }
        return answers, parts

    def taken(self) -> dict[str, Any]:
        """How the files of the first model were read, as plain Python values."""
        if not self.lists:
            return self.handle.roles.to_dict()  # type: ignore[no-any-return]
        rows = getattr(self.handle, "rows", None)
        return _taken_of_lists(self.handle) if rows is None else next(iter(rows.values())).to_dict()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the rows for readers of results, a sentence each."""
        return tuple(self.handle.notes)

    def reading_lines(self) -> list[str]:
        """How the files were read, and what to know of them, for the terminal."""
        return [f"{self.file}: {'; '.join(self.handle.taken)}", *(f"Note: {note}" for note in self.notes)]

    @property
    def source(self) -> str:
        """The file, for the report."""
        return Path(self.handle.name).name

    @property
    def read(self) -> str:
        """How the file was read, and what a reader of results should know, for the report."""
        sentences = ["; ".join(self.handle.taken), *self.notes]
        return ". ".join(sentence.removesuffix(".") for sentence in sentences)


def _of_all(analysis: Callable[[Any], Any], handle: Any) -> Any:
    """The answer of an analysis without subgroups."""
    return analysis(_without_subgroups(handle))


def _without_subgroups(handle: Any) -> Any:
    same = copy(handle)
    same.by, same.bins = (), {}
    return same


def _by_column(column: str, how: dict[str, Any], handle: Any) -> Subgroups:
    from verax.analyses.subgroups.subgroups import subgroups

    return subgroups(handle.one_way(), by=column, **how)


def _taken_of_lists(handle: Any) -> dict[str, Any]:
    return {
        "shape": handle.taken[0].partition(": ")[2],
        "taken": list(handle.taken),
        "counts": dict(getattr(handle, "counts", {})),
        "skipped": None,
        "notes": list(handle.notes),
    }
