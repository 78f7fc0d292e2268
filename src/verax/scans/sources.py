"""Files that are open already, as handles: commands look at a file first, and then decide how to read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from verax.common.paths import Unchanged
from verax.files.kept import KeptRows
from verax.files.predictions import Predictions
from verax.files.source import Source
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Collector, Handle, Part, Recipe, Summaries
from verax.scans.batches import LocalHandle, Work
from verax.scans.parts import part_of

# More probabilities than this are not held in memory unless that is asked for. The report on so many takes
# about 0.8 GB, and histograms give the same within small bounds, in a fraction of the time.
MOST_IN_MEMORY = 2**23
# What files of unknown length may take on disk to be held.
_MOST_BYTES = 2**27


def fits_in_memory(source: Source) -> bool:
    """Whether all rows of a file may be held at once."""
    if source.n_rows is not None:
        return source.n_rows * source.width <= MOST_IN_MEMORY
    return source.n_bytes <= _MOST_BYTES


def fit_in_memory(paths: Iterable[Path]) -> bool:
    """Whether the lists of several files may be held at once."""
    return Unchanged(paths).n_bytes <= _MOST_BYTES


class SourceHandle(LocalHandle):
    """An open file. It was opened with all that will be asked of it, so the order of its classes is known.

    Parameters
    ----------
    source : Source
        The file.
    ordered : bool
        Whether the order of the classes matters.
    progress : Callable[[int], None] | None
        Called with the number of rows of every batch that has been read.
    keep : KeptRows | None
        Given the rows of every batch.
    rows : int | None
        How many rows are read at a time; by default as many as keep a batch to some megabytes.
    """

    name: str
    models: tuple[str, ...]
    n_rows: int | None
    classes: tuple[Hashable, ...] | None
    n_classes: int
    taken: tuple[str, ...]

    def __init__(
        self,
        source: Source,
        *,
        ordered: bool,
        progress: Callable[[int], None] | None = None,
        keep: KeptRows | None = None,
        rows: int | None = None,
    ) -> None:
        self._source, self._progress, self._keep, self._rows = source, progress, keep, rows
        self._request = replace(source.request, ordered=ordered)
        self.name, self.models, self.n_rows = source.path, (Path(source.path).stem,), source.n_rows
        self.classes, self.n_classes, self.taken = source.classes, source.width, source.taken
        self.by: tuple[str, ...] = source.roles.by
        self.weighted: bool = source.roles.weights is not None

    def in_order(self) -> Handle:
        """The same: see above."""
        return self

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        # Batches without a valid row are not shown, but counted.
        found = super()._summarise(recipes)
        return replace(found, skipped=self._source.skipped)

    def _work(self) -> Iterator[Work]:
        for batch in self._source.batches(self._rows, coded=True):
            if self._keep is None:
                yield partial(self._collect, batch)
                continue
            part = part_of({self.models[0]: batch}, self._request)
            assert isinstance(part.rows, Forecasts)
            self._keep.add(part.rows)
            yield partial(_add, part)

    def _collect(self, batch: Predictions, collector: Collector) -> int:
        return collector.add(part_of({self.models[0]: batch}, self._request))


def _add(part: Part, collector: Collector) -> int:
    return collector.add(part)
