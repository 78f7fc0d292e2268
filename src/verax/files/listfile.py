"""What was read from a file of lists."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.common.checks import as_float
from verax.errors import InputError
from verax.files.predictions import Predictions, Roles
from verax.inputs.lists.toplists import TopLists
from verax.inputs.skipping import Skipped
from verax.inputs.validity import Unity

# With more classes lists are scored as lists, even if they name all.
MOST_CLASSES = 1024


@dataclass(frozen=True)
class ListFile:
    """The lists of a file with what happened, and what was done to them on the way.

    Attributes
    ----------
    path : str
        The file.
    shape : str
        The shape of its records, as `open_lists` calls it.
    lists : TopLists
        One list per record that was not left out.
    y : list
        What happened, as the lists call their classes.
    ids : list of str or None
        The ids of the rows; None unless a field was named.
    weights : numpy.ndarray or None
    groups : numpy.ndarray or None
    numbers : numpy.ndarray
        Where each list stands: the number of its line (from 1), or of its row or item (from 0).
    places : numpy.ndarray
        Which of the records each list is, from 0: what results call rows without an id.
    counts : dict
        How many records and entries were merged, divided, left out, and so on.
    taken : tuple of str
        How each part was read, one line each.
    notes : tuple of str
        What a reader of results should know: a sentence each.
    skipped : Skipped or None
        The records left out; None unless that was asked for.
    outcome, id_field : str
        What holds the outcomes, and what the ids if there are any.
    by : dict
        The labels of subgroups, by field.
    questions : numpy.ndarray or None
        A number per row, the same for records of one question; None where there are groups, or no questions
        are known.
    complete : bool
        Every list names all classes, so that the rows are full distributions.
    """

    path: str
    shape: str
    lists: TopLists
    y: list[Hashable]
    ids: list[str] | None
    weights: np.ndarray[Any, Any] | None
    groups: np.ndarray[Any, Any] | None
    numbers: np.ndarray[Any, Any]
    places: np.ndarray[Any, Any]
    counts: Mapping[str, float] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: Skipped | None = None
    outcome: str = "outcome"
    id_field: str | tuple[str, ...] | None = None
    by: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    questions: np.ndarray[Any, Any] | None = None

    def take(self, rows: np.ndarray[Any, Any]) -> ListFile:
        """Some of the lists, by their places among these."""

        def some(values: Any) -> Any:
            return None if values is None else values[rows]

        chosen = rows.tolist()
        return replace(
            self,
            lists=self.lists[rows],
            y=[self.y[i] for i in chosen],
            ids=None if self.ids is None else [self.ids[i] for i in chosen],
            weights=some(self.weights),
            groups=some(self.groups),
            numbers=self.numbers[rows],
            places=self.places[rows],
            questions=some(self.questions),
            by={name: labels[rows] for name, labels in self.by.items()},
        )

    def __len__(self) -> int:
        return self.lists.n_rows

    @property
    def complete(self) -> bool:
        vocabulary = self.lists.vocabulary
        named = vocabulary is None or vocabulary.complete
        return (
            bool(len(self)) and named and bool((self.lists.lengths == as_float(self.lists.n_classes)).all())
        )

    @property
    def are_distributions(self) -> bool:
        """Whether every list names all classes and sums to 1 as exactly as dense rows must."""
        if not self.complete or self.lists.n_classes > MOST_CLASSES:
            return False
        sums = np.add.reduceat(self.lists.confidences, self.lists.offsets[:-1])
        return bool((np.abs(sums - 1) <= Unity.at(64).limit).all())

    @property
    def classes(self) -> tuple[Hashable, ...] | None:
        """The names of all classes; None where they are positions, or not all known."""
        vocabulary = self.lists.vocabulary
        return vocabulary.names if vocabulary is not None and vocabulary.complete else None

    def probabilities(self) -> np.ndarray[Any, Any]:
        """(N, m) probabilities of a file whose lists all name all classes; nothing is added or lost."""
        if not self.complete:
            raise InputError(
                "must name all classes to be read as full distributions", argument="rows", kind="list"
            )
        return self.lists.padded()

    def to_dict(self) -> dict[str, Any]:
        """What was taken and done, as plain Python values, without the lists."""
        return {
            "shape": self.shape,
            "taken": list(self.taken),
            "counts": dict(self.counts),
            "skipped": None if self.skipped is None else self.skipped.to_dict(),
            "notes": list(self.notes),
        }


def distributions(read: ListFile) -> Predictions:
    """The rows of a file whose lists `are_distributions`: no class is unlisted, so nothing is padded."""
    classes = read.classes
    y = np.array(read.y)
    if classes is not None and not any(isinstance(name, int) for name in classes):
        place = {name: i for i, name in enumerate(classes)}
        y = np.array([place[name] for name in read.y])
    names = tuple(map(str, range(read.lists.n_classes) if classes is None else classes))
    return Predictions(
        read.path,
        y,
        read.probabilities(),
        classes,
        Roles(target=read.outcome, probs=names, id=read.id_field, by=tuple(read.by)),
        read.weights,
        read.groups,
        dict(read.by),
        None if read.ids is None else np.array(read.ids),
        rows=read.places if read.skipped is not None else None,
        skipped=read.skipped,
    )
