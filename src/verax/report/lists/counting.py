"""What checks of lists count: of lists in memory, or part by part of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from verax.analyses.samples import Sketch
from verax.common.hashing import label_hash, mixed
from verax.common.summaries import Each, Number, Summary, Truth, Valued, Whole, merges
from verax.inputs.arrays import Bools, Ints
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.ragged import MASS_TOLERANCE
from verax.inputs.lists.rows import ListRows


class ListCounts(Summary):
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

    n_lists: int = merges(Whole(least=1))
    n_invalid: int = merges(Whole())
    cut: int = merges(Whole())
    entries: int = merges(Whole())
    n_over: int = merges(Whole())
    n_tied: int = merges(Whole())
    n_empty: int = merges(Whole())
    n_zeros: int = merges(Whole())
    largest: float = merges(Number("most"))
    shortest: int = merges(Whole("least"))
    longest: int = merges(Whole("most"))
    n_moved: int | None = merges(Whole("add", optional=True), default=None)
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


class ListSurvey(Summary, kind="counts of lists"):
    """What checks count in the lists of all models, and a sketch of the rows of the first."""

    # Models may be called like their files.
    models: Mapping[str, ListCounts] = merges(Each(Valued(ListCounts), "order"))
    rows: Sketch = merges(Valued(Sketch))
    weighted: bool = merges(Truth("any"))
    named: bool = merges(Truth("first"))


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
