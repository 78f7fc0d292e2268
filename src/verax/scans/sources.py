"""Files that are open already, as handles: commands look at a file first, and then decide how to read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from verax.files.predictions import Predictions
from verax.files.source import Source
from verax.inputs.handles import Handle, Recipe, Summaries
from verax.scans.batches import LocalHandle
from verax.scans.parts import part_of

# More probabilities than this are not held in memory unless that is asked for: half a gigabyte of doubles.
MOST_IN_MEMORY = 2**26
# What a file of unknown length may take on disk to be held.
_MOST_BYTES = 2**30


def fits_in_memory(source: Source) -> bool:
    """Whether all rows of a file may be held at once."""
    if source.n_rows is not None:
        return source.n_rows * source.width <= MOST_IN_MEMORY
    path = Path(source.path)
    return not path.is_file() or path.stat().st_size <= _MOST_BYTES


class SourceHandle(LocalHandle):
    """An open file. It was opened with all that will be asked of it, so the order of its classes is known."""

    name: str
    models: tuple[str, ...]
    n_rows: int | None
    classes: tuple[Hashable, ...] | None
    n_classes: int
    taken: tuple[str, ...]

    def __init__(
        self, source: Source, *, ordered: bool, progress: Callable[[int], None] | None = None
    ) -> None:
        self._source, self._progress = source, progress
        self._request = replace(source.request, ordered=ordered)
        self.name, self.models, self.n_rows = source.path, (Path(source.path).stem,), source.n_rows
        self.classes, self.n_classes, self.taken = source.classes, source.width, source.taken
        self.by: tuple[str, ...] = source.roles.by

    def in_order(self) -> Handle:
        """The same: see above."""
        return self

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        # Batches without a valid row are not shown, but counted.
        found = super()._summarise(recipes)
        return replace(found, skipped=self._source.skipped)

    def _work(self, recipes: Mapping[str, Recipe[Any]]) -> Iterator[Callable[[], Summaries]]:
        for batch in self._source.batches(coded=True):
            yield partial(self._summaries, batch, recipes)

    def _summaries(self, batch: Predictions, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return Summaries.of(part_of({self.models[0]: batch}, self._request), recipes)
