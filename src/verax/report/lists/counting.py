"""What checks of lists count: of lists in memory, or part by part of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.analyses.samples import Sketch
from verax.common.hashing import label_hash, mixed
from verax.common.packing import dump, load, refusing
from verax.inputs.arrays import Bools, Ints
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.ragged import MASS_TOLERANCE
from verax.inputs.lists.rows import ListRows

_KIND = "counts of lists"
_SUMS = ("n_lists", "n_invalid", "cut", "entries", "n_over", "n_tied", "n_empty", "n_zeros")


@dataclass(frozen=True)
class ListCounts:
    """How many lists of a model have what.

    Attributes
    ----------
    n_lists, n_invalid, n_over, n_tied, n_empty, n_zeros : int
        All lists; those that are invalid, sum to more than one, have ties, are empty; and entries of zero.
    cut, entries : int
        Of the invalid lists: the entries beyond their largest valid sublists, and all.
    largest : float
        The largest sum of a list.
    shortest, longest : int
        The lengths.
    n_moved : int or None
        Entries that stood below a less likely one; None where that is not known.
    masks : dict
        Which lists these are, where they are in memory.
    """

    n_lists: int
    n_invalid: int
    cut: int
    entries: int
    n_over: int
    n_tied: int
    n_empty: int
    n_zeros: int
    largest: float
    shortest: int
    longest: int
    n_moved: int | None = None
    masks: Mapping[str, Bools] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: ListRows, n_moved: int | None = None) -> ListCounts:
        """Of lists that are not none."""
        lists, survey = rows.lists, rows.survey
        lengths = lists.lengths
        masks = {
            "invalid": survey.kept < lengths,
            # Sums of doubles that differ from one in the last digits only are one.
            "over": survey.total > 1 + MASS_TOLERANCE,
            "tied": _tied(rows),
            "empty": lengths == 0,
        }
        bad = masks["invalid"]
        return cls(
            n_lists=rows.n_rows,
            cut=int((lengths - survey.kept)[bad].sum()),
            entries=int(lengths[bad].sum()),
            n_zeros=int(np.count_nonzero(lists.confidences == 0)),
            largest=float(survey.total.max()),
            shortest=int(lengths.min()),
            longest=int(lengths.max()),
            n_moved=n_moved,
            masks=masks,
            **{f"n_{name}": int(np.count_nonzero(mask)) for name, mask in masks.items()},
        )

    def merge(self, other: ListCounts) -> ListCounts:
        """Of the lists of both."""
        return replace(
            self,
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMS},
            largest=max(self.largest, other.largest),
            shortest=min(self.shortest, other.shortest),
            longest=max(self.longest, other.longest),
            masks={},
        )

    def to_values(self) -> dict[str, Any]:
        """All numbers, to be stored."""
        return {name: value for name, value in vars(self).items() if name != "masks"}


def _tied(rows: ListRows) -> Bools:
    """Which lists have two entries with the same probability."""
    t, starts = rows.lists.confidences, rows.lists.offsets[:-1]
    same = np.zeros(t.size, np.bool_)
    if t.size:
        same[1:] = t[1:] == t[:-1]
        same[starts[starts < t.size]] = False
    found = np.zeros(rows.n_rows, np.bool_)
    found[rows.lists.row_of[same]] = True
    return found


@dataclass(frozen=True)
class ListSurvey:
    """What checks count in the lists of all models, and a sketch of the rows of the first."""

    models: Mapping[str, ListCounts]
    rows: Sketch
    weighted: bool
    named: bool

    def merge(self, other: ListSurvey) -> ListSurvey:
        """Of the rows of both, whose models may be called like their files."""
        pairs = zip(self.models.items(), other.models.values(), strict=True)
        models = {name: own.merge(theirs) for (name, own), theirs in pairs}
        return replace(self, models=models, rows=self.rows.merge(other.rows))

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        models = {name: own.to_values() for name, own in self.models.items()}
        return dump(_KIND, {**vars(self), "models": models, "rows": vars(self.rows)})

    @classmethod
    def from_bytes(cls, data: bytes) -> ListSurvey:
        """What `to_bytes` wrote."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            models = {name: ListCounts(**own) for name, own in values["models"].items()}
            return cls(models, Sketch(**values["rows"]), bool(values["weighted"]), bool(values["named"]))


class ListSurveyRecipe(Recipe[ListSurvey]):
    """What checks look for in the lists of every model."""

    def take(self, part: Part) -> ListSurvey:
        """In some rows."""
        models = {}
        for name, rows in part.models.items():
            assert isinstance(rows, ListRows)
            models[name] = replace(ListCounts.of(rows), masks={})
        first = part.rows
        assert isinstance(first, ListRows)
        return ListSurvey(models, Sketch.of(_hashes(first)), first.weights is not None, part.ids is not None)

    def load(self, stored: bytes) -> ListSurvey:
        """From bytes."""
        return ListSurvey.from_bytes(stored)

    def __repr__(self) -> str:
        return "ListSurveyRecipe()"


def _hashes(rows: ListRows) -> Any:
    """64 bits of the outcome and of all entries of each list, by the names of the classes."""
    lists = rows.lists
    happened = np.array([label_hash(rows.outcome(i)) for i in range(rows.n_rows)], np.uint64)
    codes, place = np.unique(lists.classes, return_inverse=True)
    names = np.array([label_hash(rows.name(code)) for code in codes.tolist()], np.uint64)
    found = mixed(happened)
    with np.errstate(over="ignore"):
        # Adding zero makes one number of the two zeros.
        entries = mixed(_at(names, place) ^ mixed((lists.confidences + 0.0).view(np.uint64)))
        np.add.at(found, lists.row_of, entries)
    return mixed(found)


def _at(names: Any, place: Ints) -> Any:
    return names[place] if len(names) else np.zeros(0, np.uint64)
