"""Files whose rows have been read into memory, and the limits for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from verax._settings import settings
from verax.common.paths import UnchangedFiles
from verax.errors import InputError, RuleError
from verax.files.listfile import ListFile
from verax.files.predictions import Predictions, Roles
from verax.inputs.groups import kinds_of
from verax.inputs.handles import Handle, Part, RowFacts
from verax.inputs.lists.rows import NO_ORDER
from verax.inputs.memory import InMemory
from verax.inputs.reading import Reading
from verax.inputs.skipping import NO_ROWS, NO_VALID_ROW
from verax.scans.local import LocalHandle, Work
from verax.scans.parts import part_of, part_of_lists


def rows_fit(n_rows: int | None, width: int, n_bytes: int) -> bool:
    """Whether rows of full distributions fit in memory at once."""
    return n_bytes <= settings.held_bytes_up_to if n_rows is None else n_rows * width <= settings.held_up_to


def files_fit(paths: Iterable[Path]) -> bool:
    """Whether the lists of files fit in memory at once."""
    return UnchangedFiles(paths).n_bytes <= settings.held_bytes_up_to


class LoadedRows(LocalHandle):
    """Rows of files that have been read, as one part.

    Attributes
    ----------
    rows : mapping of str to Predictions or ListFile
        The rows of each model.
    request : Reading
        How full distributions were read.
    """

    fits = True

    def __init__(
        self,
        rows: Mapping[str, Predictions | ListFile],
        request: Reading,
        *,
        name: str,
        taken: tuple[str, ...],
        notes: tuple[str, ...] = (),
    ) -> None:
        first = next(iter(rows.values()))
        if not len(first):
            _refuse_none(first, name)
        self.rows: dict[str, Predictions | ListFile] = dict(rows)
        self.request: Reading = request
        self._notes = notes
        rated = isinstance(first, Predictions) and bool(first.roles.raters)
        facts = RowFacts(
            models=tuple(rows),
            classes=first.classes,
            n_classes=first.lists.n_classes if isinstance(first, ListFile) else first.p.shape[1],
            taken=taken,
            by=tuple(first.by),
            lists=isinstance(first, ListFile),
            sets=bool(request.sets),
            outcome="" if isinstance(first, ListFile) else first.roles.outcome,
            weighted=first.weights is not None or rated,
            rated=rated,
        )
        self._describe(name, len(first), facts)
        self.two_way: bool = first.groups is not None and len(kinds_of(first.groups)) > 1

    @property
    def roles(self) -> Roles:
        """The role of each column, for the first model; lists have a field of outcomes only."""
        first = next(iter(self.rows.values()))
        return Roles(first.outcome, ()) if isinstance(first, ListFile) else first.roles

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    def in_order(self) -> Handle:
        if self.lists:
            raise RuleError(NO_ORDER)
        request = replace(self.request, ordered=True)
        return LoadedRows(self.rows, request, name=self.name, taken=self.taken, notes=self.notes)

    def loaded(self) -> LoadedRows:
        """The same."""
        return self

    def in_memory(self) -> Handle:
        part = self._part()
        handle = InMemory(
            part.models,
            several=self.several,
            ids=part.ids,
            by=part.by,
            numbers=part.numbers,
            skipped=part.skipped,
        )
        handle.name, handle.taken, handle.outcome = self.name, self.taken, self.outcome
        return handle

    def _work(self, times: int) -> Iterator[Work]:
        yield lambda collector: collector.add(self._part())

    def _part(self) -> Part:
        rows: Any = self.rows
        return part_of_lists(rows, 0) if self.lists else part_of(rows, self.request)


def _refuse_none(rows: Predictions | ListFile, name: str) -> None:
    left_out = rows.skipped is not None and rows.skipped.count
    raise InputError(
        NO_VALID_ROW if left_out else NO_ROWS,
        argument="source",
        kind="file",
        found=str(rows.skipped) if left_out else "",
        source=name,
    )
