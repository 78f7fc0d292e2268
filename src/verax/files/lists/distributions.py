"""Files of lists that all name all classes, as a source of rows of full distributions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from verax.files.lists.listfile import ListFile
from verax.files.predictions import Predictions, Request, Roles
from verax.files.source import Source


class DistributionFile(Source):
    """The rows of a file whose lists `are_distributions`: no class is unlisted, so nothing is padded."""

    path: str
    classes: tuple[Hashable, ...] | None
    n_rows: int | None
    width: int

    def __init__(self, read: ListFile) -> None:
        self.path, self.classes, self._read = read.path, read.classes, read
        self.n_rows, self.width = len(read), int(read.lists.n_classes)
        self._request = Request()
        names = tuple(map(str, read.classes if read.classes is not None else range(self.width)))
        self.roles: Roles = Roles(target=read.outcome, probs=names, id=read.id_field, by=tuple(read.by))

    @property
    def taken(self) -> tuple[str, ...]:
        """What was taken for what: a line each."""
        return (*self._read.taken, f"scored as distributions: every list names all {self.width} classes")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know: a sentence each."""
        return self._read.notes

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        read = self._read
        y = np.array(read.y)
        if self.classes is not None and not any(isinstance(name, int) for name in self.classes):
            place = {name: i for i, name in enumerate(self.classes)}
            y = np.array([place[name] for name in read.y])
        yield Predictions(
            read.path,
            y,
            read.probabilities(),
            self.classes,
            self.roles,
            read.weights,
            read.groups,
            dict(read.by),
            None if read.ids is None else np.array(read.ids),
            skipped=read.skipped,
        )
