"""The predictions of one model, as the files of a command line name them: what every command reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from verax.common.paths import Files, called
from verax.errors import InputError
from verax.inputs.handles import Handle, no_lists

if TYPE_CHECKING:
    from verax.cli.options import Reading
    from verax.files.lists import ListFile
    from verax.files.predictions import Predictions
    from verax.files.source import Source
    from verax.inputs.skipping import Skipped

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """Files of one model that have been looked at.

    Attributes
    ----------
    file : str
        What they are called.
    model : str
        The name of the model.
    top : ListFile or Handle or None
        Top lists: read, or behind a handle where they are too large for that. None for full distributions.
    """

    file: str
    model: str
    top: ListFile | Handle | None
    _reading: Reading
    _paths: Files
    _complete: ListFile | None

    @classmethod
    def of(cls, given: Sequence[str], reading: Reading) -> Opened:
        """The files that were named: a path, a pattern, a folder, or several, also as name=path."""
        from verax.files.joining import files_of_one_model

        model, paths = files_of_one_model(given)
        file = called(paths)
        if not reading.holds_lists(paths):
            return cls(file, model, None, reading, paths, None)
        handle = reading.large_lists(paths)
        if handle is not None:
            return cls(file, model, handle, reading, paths, None)
        lists = reading.open_lists(paths)
        # Lists that name all classes are full distributions.
        whole = lists.are_distributions
        if reading.logits and not whole:
            raise InputError("does not apply to lists that do not name all classes", argument="logits")
        return cls(file, model, None if whole else lists, reading, paths, lists if whole else None)

    def source(self, *, ordered: bool) -> Source:
        """The rows of full distributions; `ordered` says whether the order of the classes matters."""
        if self.top is not None:
            raise no_lists(self.file)
        if self._complete is None:
            return self._reading.open(self._paths, ordered=ordered)
        from verax.files.lists import DistributionFile

        return DistributionFile(self._complete)

    def taken(self) -> dict[str, Any]:
        """How top lists were read, as plain Python values."""
        top = self.top
        if not isinstance(top, Handle):
            assert top is not None
            return top.to_dict()
        return {
            "shape": top.taken[0].partition(": ")[2],
            "taken": list(top.taken),
            "counts": getattr(top, "counts", {}),
            "skipped": None,
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of top lists: a sentence each."""
        return tuple(getattr(self.top, "notes", ()))

    def said(self) -> list[str]:
        """How top lists were read, for the terminal."""
        assert self.top is not None
        return [f"{self.file}: {'; '.join(self.top.taken)}", *(f"Note: {note}" for note in self.notes)]

    def rows(self, *, ordered: bool) -> GivenRows:
        """The rows, for functions that take (y, p) or a handle; those that fit in memory are read."""
        top = self.top
        if isinstance(top, Handle):
            return GivenRows((top,), {}, self.taken, self.said)
        if top is not None:
            beside = {"weights": top.weights, "groups": top.groups}
            return GivenRows((top.y, top.lists), beside, self.taken, self.said, top.skipped)
        from verax.scans.sources import SourceHandle, fits_in_memory

        source = self.source(ordered=ordered)

        def said() -> list[str]:
            return [f"{self.file}: {'; '.join(source.taken)}"]

        if not fits_in_memory(source):
            return GivenRows((SourceHandle(source, ordered=ordered),), {}, source.roles.to_dict, said)
        read, scale = source.read(), self._reading.scale
        options: dict[str, Any] = {
            "classes": read.classes,
            "weights": read.weights,
            "groups": read.groups,
            **scale,
        }
        return GivenRows((read.y, read.p), options, source.roles.to_dict, said, read.skipped, read, scale)


@dataclass(frozen=True)
class GivenRows:
    """Rows as arguments of functions that take (y, p) or a handle.

    Attributes
    ----------
    given : tuple
        Outcomes and forecasts, or a handle.
    options : dict
        What belongs to them: classes, weights, groups, and how numbers are read.
    taken : callable
        How the files were read, as plain Python values.
    said : callable
        The same in lines for the terminal.
    skipped : Skipped or None
        Invalid rows that were left out before.
    """

    given: tuple[Any, ...]
    options: dict[str, Any]
    taken: Callable[[], dict[str, Any]]
    said: Callable[[], list[str]]
    skipped: Skipped | None = None
    _read: Predictions | None = None
    _scale: Mapping[str, bool] = field(default_factory=dict)

    def ask(self, function: Callable[..., T], **how: Any) -> T:
        """What a function finds in the rows; errors about rows of a file name the file and its columns."""
        try:
            return function(*self.given, **self.options, **how)
        except InputError:
            if self._read is not None:
                from verax.files import forecasts_of

                forecasts_of(self._read, **self._scale).check()
            raise

    def without(self, *names: str) -> GivenRows:
        """The same without some of the options."""
        return replace(self, options={k: v for k, v in self.options.items() if k not in names})
