"""What checks count in the rows: sums, extremes and hashes of distributions, kinds of top lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.parts import dense, in_columns, probabilities
from verax.analyses.samples import Sketch, row_hashes
from verax.common.hashing import label_hash, mixed, text_hashes
from verax.common.ids import by_value
from verax.common.specs import Array, Each, Number, RowNumbers, Truth, Valued, Whole
from verax.common.stored import Size, Sizes, only_counts
from verax.common.summaries import Summary, merges
from verax.engines.keys import compiled
from verax.inputs.arrays import Bools, Floats, Ints, to_host
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.ragged import MASS_TOLERANCE
from verax.inputs.lists.rows import ListRows

# Rows that are off one by more than this are counted.
OFF = 1e-6
# How many rows are named.
NAMED = 5


# ---- distributions -----------------------------------------------------------------------------


class _Off(Array):
    """Numbers of rows, which add up, and the largest differences."""

    def __init__(self, *shape: Size) -> None:
        super().__init__("f8", *shape, least=0)
        self.names = {"both_off": _both_off}

    def merged(self, name: str) -> str:
        return f"both_off(self.{name}, other.{name})"

    def read(self, stored: Any, sizes: Sizes) -> Any:
        values = super().read(stored, sizes)
        only_counts(values[:, 0])
        return values


def _both_off(a: Floats, b: Floats) -> Floats:
    return np.stack([a[:, 0] + b[:, 0], np.maximum(a[:, 1], b[:, 1])], axis=1)


class Survey(Summary, kind="survey"):
    """What was seen in the rows.

    Attributes
    ----------
    weighted, named : bool
        Whether rows have weights, and ids.
    rows : Sketch
        Hashes of the rows.
    ids : Sketch or None
        Hashes of their ids.
    off : array of shape (M, 2)
        For each model the number of rows that do not sum to one as given, and the largest difference.
    certain : array of shape (M,)
        How many probabilities are exactly 0 or 1.
    least, most : array of shape (M, K)
        The extremes of each column.
    off_rows : tuple of int
        The first rows that do not sum to one in some model.
    rescaled, logits : bool
        Whether rows were divided by their sums, and whether probabilities were made of logits.
    rated : bool
        Whether several raters labelled the rows.
    """

    weighted: bool = merges(Truth("any"))
    named: bool = merges(Truth("first"))
    rows: Sketch = merges(Valued(Sketch))
    ids: Sketch | None = merges(Valued(Sketch, optional=True))
    off: Floats = merges(_Off("models", 2))
    certain: Ints = merges(Array("i8", "models", least=0))
    least: Floats = merges(Array("f8", "models", "classes", how="least"))
    most: Floats = merges(Array("f8", "models", "classes", how="most"))
    off_rows: tuple[int, ...] = merges(RowNumbers(NAMED), default=())
    rescaled: bool = merges(Truth("any"), default=False)
    logits: bool = merges(Truth("any"), default=False)
    rated: bool = merges(Truth("any"), default=False)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 0.2 did not store the last four.
        return {"off_rows": (), "rescaled": False, "logits": False, "rated": False, **values}


@dataclass(frozen=True)
class SurveyRecipe(Recipe[Survey], cases=True):
    """Look at the rows of all models."""

    def take(self, part: Part) -> Survey:
        """At some rows."""
        return self.more(part, None)

    def more(self, part: Part, earlier: Survey | None) -> Survey:
        """At some rows, as far as they may add to what was seen before."""
        forecasts = [probabilities(part, name) for name in part.models]
        seen = [_looked_over(p) for p in forecasts]
        off, sure, least, most = (np.array(column) for column in zip(*seen, strict=True))
        forms = {dense(part, name).form for name in part.models}
        gaps = [_gap(part, name) for name in part.models] if "rescaled" in forms or off[:, 0].any() else []
        if "rescaled" in forms:
            off = np.array([[np.count_nonzero(gap > OFF), gap.max()] for gap in gaps], float)
        far = np.any([gap > OFF for gap in gaps], axis=0) if gaps else np.zeros(0, np.bool_)
        ids = None if part.ids is None else text_hashes(by_value(part.ids))
        before = (None, None) if earlier is None else (earlier.rows, earlier.ids)
        return Survey(
            part.rows.weights is not None,
            part.ids is not None,
            sketch_of(part, _told_apart(part, forecasts, int(sure.min())), before[0]),
            None if ids is None else sketch_of(part, ids, before[1]),
            off,
            sure,
            least,
            most,
            first_rows(part, far),
            "rescaled" in forms,
            "logits" in forms,
            part.rows.shared,
        )


def sketch_of(part: Part, hashes: Any, earlier: Sketch | None = None) -> Sketch:
    """A sketch of the rows of a part; of rows in memory, all of them."""
    if part.whole and len(hashes) > settings.hashes_kept:
        return Sketch.of_all(hashes, part.row_numbers)
    return Sketch.of(hashes, part.row_numbers, earlier)


def first_rows(part: Part, mask: Any) -> tuple[int, ...]:
    """The numbers of the first rows of a mask."""
    return tuple(part.row_numbers[np.flatnonzero(mask)[:NAMED]].tolist())


def _gap(part: Part, name: str) -> Floats:
    """How far each row is from a sum of one, as it was given."""
    rows = dense(part, name)
    if rows.form != "rescaled":
        return np.asarray(np.abs(probabilities(part, name).sum(axis=1) - 1))
    given = np.asarray(to_host(rows.given), float)
    return np.asarray(np.abs(given.sum(axis=1) - 1) if given.ndim == 2 else np.zeros(len(given)))


def _told_apart(part: Part, forecasts: list[Floats], sure: int) -> Any:
    """The hashes of rows; rows of zeros and ones, of which every model has at least `sure`, have their own.

    They are alike without being copies.
    """
    hashes = row_hashes(part)
    if sure < forecasts[0].shape[1]:
        return hashes
    alike = saturated(forecasts)
    # Other files have rows of the same numbers.
    salt = np.bitwise_xor.reduce(hashes)
    return np.where(alike, mixed(part.row_numbers.astype(np.uint64) ^ salt), hashes)


def _looked_over(p: Floats) -> tuple[list[float], int, Floats, Floats]:
    """How many rows do not sum to one and by how much, how many numbers are 0 or 1, and the extremes."""
    look = _kernel_look if compiled(len(p)) else _look
    parts = [look(lines) for _, lines in in_columns(p)]
    off, largest, sure, least, most = zip(*parts, strict=True)
    return [float(sum(off)), max(largest)], sum(sure), np.min(least, axis=0), np.max(most, axis=0)


def _look(lines: Floats) -> tuple[int, float, int, Floats, Floats]:
    """The same of some rows, with a line for each class."""
    gap = np.abs(np.add.reduce(lines) - 1)
    sure = int(np.count_nonzero((lines == 0) | (lines == 1)))
    return int(np.count_nonzero(gap > OFF)), float(gap.max()), sure, lines.min(axis=1), lines.max(axis=1)


def _kernel_look(lines: Floats) -> tuple[int, float, int, Floats, Floats]:
    from verax.kernels.filling import look_over

    least, most = np.empty((2, len(lines)))
    return *look_over(lines, OFF, least, most), least, most


def saturated(forecasts: Sequence[Any]) -> Any:
    """The rows in which every probability, of every model, is 0 or 1.

    >>> import numpy as np
    >>> saturated([np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 0.0])]).tolist()
    [True, False]
    """
    sure = [(p == 0) | (p == 1) for p in forecasts]
    return np.logical_and.reduce([certain if certain.ndim == 1 else certain.all(axis=1) for certain in sure])


# ---- lists -------------------------------------------------------------------------------------


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
    invalid_rows, over_rows, tied_rows, empty_rows : tuple of int
        The first rows of these kinds.
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
    invalid_rows: tuple[int, ...] = merges(RowNumbers(NAMED), default=())
    over_rows: tuple[int, ...] = merges(RowNumbers(NAMED), default=())
    tied_rows: tuple[int, ...] = merges(RowNumbers(NAMED), default=())
    empty_rows: tuple[int, ...] = merges(RowNumbers(NAMED), default=())

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 0.2 did not store these.
        return {"invalid_rows": (), "over_rows": (), "tied_rows": (), "empty_rows": (), **values}

    @classmethod
    def of(cls, rows: ListRows, part: Part) -> ListCounts:
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
        counts: dict[str, Any] = {f"n_{name}": int(np.count_nonzero(mask)) for name, mask in masks.items()}
        counts |= {f"{name}_rows": first_rows(part, mask) for name, mask in masks.items()}
        return cls(
            n_lists=rows.n_rows,
            cut=int((lengths - survey.kept)[bad].sum()),
            entries=int(lengths[bad].sum()),
            n_zeros=int(np.count_nonzero(lists.confidences == 0)),
            largest=float(survey.total.max()),
            shortest=int(lengths.min()),
            longest=int(lengths.max()),
            n_moved=rows.n_reordered,
            **counts,
        )


def _tied(rows: ListRows) -> Bools:
    """Which lists have two entries with the same probability."""
    t, starts = rows.lists.confidences, rows.lists.offsets[:-1]
    same = np.zeros(t.size, np.bool_)
    if t.size:
        same[1:] = t[1:] == t[:-1]
        same[starts[starts < t.size]] = False
    tied = np.zeros(rows.n_rows, np.bool_)
    tied[rows.lists.row_of[same]] = True
    return tied


class ListSurvey(Summary, kind="counts of lists"):
    """What checks count in the lists of all models, and a sketch of the rows of the first."""

    # Models may be called like their files.
    models: Mapping[str, ListCounts] = merges(Each(Valued(ListCounts), "order"))
    rows: Sketch = merges(Valued(Sketch))
    weighted: bool = merges(Truth("any"))
    named: bool = merges(Truth("first"))


@dataclass(frozen=True)
class ListSurveyRecipe(Recipe[ListSurvey]):
    """What checks look for in the lists of every model."""

    def take(self, part: Part) -> ListSurvey:
        """In some rows."""
        models = {}
        for name, rows in part.models.items():
            assert isinstance(rows, ListRows)
            models[name] = ListCounts.of(rows, part)
        first = part.rows
        assert isinstance(first, ListRows)
        return ListSurvey(
            models, sketch_of(part, _list_hashes(first)), first.weights is not None, part.ids is not None
        )


def _list_hashes(rows: ListRows) -> Any:
    """64 bits of the outcome and of all entries of each list, by the names of the classes."""
    lists = rows.lists
    happened = np.array([label_hash(rows.outcome(i)) for i in range(rows.n_rows)], np.uint64)
    codes, place = np.unique(lists.classes, return_inverse=True)
    names = np.array([label_hash(rows.name(code)) for code in codes.tolist()], np.uint64)
    hashes = mixed(happened)
    with np.errstate(over="ignore"):
        # Adding zero makes one number of the two zeros.
        entries = mixed(_at(names, place) ^ mixed((lists.confidences + 0.0).view(np.uint64)))
        np.add.at(hashes, lists.row_of, entries)
    return mixed(hashes)


def _at(names: Any, place: Ints) -> Any:
    return names[place] if len(names) else np.zeros(0, np.uint64)
