"""Top lists with their outcomes, as rows that can be scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.specs import Text, Whole
from verax.common.summaries import Summary, merges
from verax.errors import InputError, Offenders, show
from verax.inputs.arrays import Array, Floats, Ints, Namespace, kind_of, to_array, to_host
from verax.inputs.groups import Groups
from verax.inputs.lists.ragged import MASS_TOLERANCE, ListMasses, Ragged, frozen
from verax.inputs.lists.vocabulary import ClassVocabulary

NOT_FINED = "Accuracy and the zero-one loss do not depend on validity."
BY_MASS = (
    "Lists were cut at a given mass: no consistent score is known for these, so lists that are not true may "
    "do better. Compare lists of the same length."
)
NO_ORDER = (
    "A top list has no cumulative probabilities: it does not say where among the ordered classes its "
    "unlisted probability lies, and padding it evenly would reward lists that are not true "
    "(m=3, truth (0, 1/2, 1/2): the true top-1 list has an expected RPS of 5/32, one that overstates its "
    "class 11/72). Ordinal rules need the full distribution; for lists use a symmetric rule such as brier."
)


@dataclass(frozen=True)
class ListBatch:
    """Consecutive lists with the codes of their outcomes."""

    lists: Ragged
    survey: ListMasses
    y: Ints
    weights: Floats | None
    groups: Ints | None
    start: int
    n_classes: int
    vocabulary: ClassVocabulary | None = None
    xp: Namespace = np

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.y.size)


class KeptStatistics:
    """Row statistics of lists with their outcomes, kept for the next rule that needs them.

    Lists and codes of outcomes are copies of the caller's arrays, so they cannot change. Blocks of rows are
    registered when complete, so threads may fill them in any order.
    """

    def __init__(self, y: Ints) -> None:
        self.y: Ints = frozen(y)
        self._values: dict[str, Floats] = {}
        self._blocks: set[tuple[int, int]] = set()

    def are_of(self, y: Ints) -> bool:
        """Whether the statistics belong to these outcomes."""
        return np.array_equal(self.y, y)

    def put(self, start: int, stop: int, statistics: Mapping[str, Floats]) -> None:
        """Keep the statistics of a block of rows; all blocks have the same ones."""
        for name, values in statistics.items():
            if name not in self._values:
                self._values.setdefault(name, np.empty(self.y.size))
            self._values[name][start:stop] = values
        self._blocks.add((start, stop))

    def get(self, start: int, stop: int) -> dict[str, Floats] | None:
        """The statistics of a block of rows; None if unknown."""
        if (start, stop) not in self._blocks:
            return None
        return {name: values[start:stop] for name, values in self._values.items()}


class ListFaults(Summary, kind="faults of lists"):
    """The faults of top lists that a result reports beside its numbers.

    Attributes
    ----------
    n_lists : int
        The number of lists.
    n_invalid : int
        The number of invalid lists.
    unmatched : str
        If no outcome is among the class names of the lists: an example of both.
    n_by_mass : int
        The number of lists that were cut at a given mass instead of a given length.
    """

    n_lists: int = merges(Whole())
    n_invalid: int = merges(Whole(most="n_lists"))
    unmatched: str = merges(Text("first"), default="")
    n_by_mass: int = merges(Whole(most="n_lists"), default=0)

    def __str__(self) -> str:
        some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
        fine = "scored as the largest valid sublist plus 1, unless the rule has a fine of its own"
        invalid = f"{some} invalid, {fine}. {NOT_FINED}" if self.n_invalid else ""
        return " ".join(filter(None, [invalid, BY_MASS if self.n_by_mass else "", self.unmatched]))

    def merge(self, other: ListFaults) -> ListFaults:
        """The faults of the lists of both; the order of merging does not matter."""
        counts = self.n_lists + other.n_lists, self.n_invalid + other.n_invalid
        n_by_mass = self.n_by_mass + other.n_by_mass
        if not self.n_lists or not other.n_lists:
            return ListFaults(*counts, self.unmatched or other.unmatched, n_by_mass)
        # If no part names an outcome, keep the shortest example.
        both = [self.unmatched, other.unmatched]
        shortest = min(both, key=lambda text: (len(text), text)) if all(both) else ""
        return ListFaults(*counts, shortest, n_by_mass)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Earlier files lack the number of lists of a given mass.
        return {"n_by_mass": 0, **values}

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {
            "n_lists": self.n_lists,
            "n_invalid": self.n_invalid,
            "unmatched": self.unmatched,
            "n_by_mass": self.n_by_mass,
        }


class CheckedRows(ABC):
    """Rows of NumPy arrays, checked when they are made."""

    n_classes: int
    weights: Array | None
    groups: Groups | None
    xp: Namespace = np
    # Each row has one outcome.
    shared: bool = False

    def _take_in(self, n: int, weights: object | None, groups: object | None, *, part: bool) -> None:
        """Check the weights and the groups of `n` rows, which may be a `part` of more."""
        self.weights = None if weights is None else check_weights(weights, n, part=part)
        self.groups = None if groups is None else Groups.of(groups, n)

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @abstractmethod
    def batch(self, start: int, stop: int) -> Any: ...

    def batches(self, rows: int) -> Iterator[Any]:
        """All rows, `rows` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.batch(start, min(start + rows, self.n_rows))

    def check(self) -> None:  # noqa: B027
        """Nothing is left to check."""


class ListRows(CheckedRows):
    """Checked lists with their survey, the codes of the outcomes and the weights.

    An outcome that no list names has a code of its own. `vocabulary` has the names behind the codes, `given`
    the outcomes before they became codes. `n_reordered` entries stood below a less likely one. A `part` of
    all rows may be empty or without weight; `first_row` is the number of its first row in the whole. `kept`
    are statistics of the same lists with the same outcomes from earlier calls. `choices` are the numbers of
    classes that rows can have, if fewer than all. `by_mass` tells whether lists were cut at a given mass.
    """

    kept: KeptStatistics | None
    choices: Ints | None
    by_mass: bool

    first_row: int
    n_reordered: int
    vocabulary: ClassVocabulary | None

    def __init__(
        self,
        lists: Ragged,
        survey: ListMasses,
        n_classes: int,
        y: Ints,
        weights: object | None = None,
        groups: object | None = None,
        *,
        part: bool = False,
        vocabulary: ClassVocabulary | None = None,
        given: object = None,
        first_row: int = 0,
        n_reordered: int = 0,
        kept: KeptStatistics | None = None,
        choices: Ints | None = None,
        by_mass: bool = False,
    ) -> None:
        self.kept, self.choices, self.by_mass = kept, choices, by_mass
        self.n_classes: int = n_classes
        self.first_row, self.n_reordered = first_row, n_reordered
        self.vocabulary, self._given = vocabulary, given
        self._lists, self._survey, self._y = lists, survey, frozen(np.ascontiguousarray(y))
        if y.size != lists.n_rows:
            raise InputError(
                "must have one outcome per list",
                argument="y",
                kind="length",
                found=f"there are {y.size} outcomes and {lists.n_rows} lists",
            )
        if y.size == 0 and not part:
            raise InputError("must have at least one list", argument="p", kind="length")
        self._take_in(y.size, weights, groups, part=part)

    @property
    def n_rows(self) -> int:
        return self._lists.n_rows

    @property
    def width(self) -> int:
        """The mean number of entries per list, at least 1."""
        return max(1, round(self._lists.confidences.size / max(1, self.n_rows)))

    def batch(self, start: int, stop: int) -> ListBatch:
        """Rows `start` to `stop`."""
        weights = None if self.weights is None else self.weights[start:stop]
        return ListBatch(
            self._lists.rows(start, stop),
            self._survey.rows(start, stop),
            self._y[start:stop],
            weights,
            None if self.groups is None else self.groups.codes[start:stop],
            start,
            self.n_classes,
            self.vocabulary,
        )

    # ---- single rows -----------------------------------------------------------------------

    def name(self, code: int) -> Hashable:
        """The class with this code."""
        return code if self.vocabulary is None else self.vocabulary.name(code)

    def outcome(self, row: int) -> Hashable:
        """The outcome of a row: the name of the class, or its position if classes have no names."""
        code = int(self._y[row])
        if code >= 0 or self.vocabulary is None:
            return self.name(code)
        return self.vocabulary.shown(self._given, row)

    def entries(self, row: int) -> dict[Hashable, float]:
        """One list as {class: confidence}, most likely first."""
        batch = self.batch(row, row + 1).lists
        names = [self.name(code) for code in batch.classes.tolist()]
        return dict(zip(names, batch.confidences.tolist(), strict=True))

    @property
    def survey(self) -> ListMasses:
        """The mass and the validity of every list."""
        return self._survey

    @property
    def lists(self) -> Ragged:
        """The lists themselves."""
        return self._lists

    def with_codes(self, codes: Ints) -> ListRows:
        """The same lists with other outcomes."""
        return ListRows(self._lists, self._survey, self.n_classes, codes, vocabulary=self.vocabulary)

    def taken(self, places: Ints, weights: Any, groups: Groups | None) -> ListRows:
        """Some of the rows, with their weights and groups."""
        lists, survey = self._lists.take(places), self._survey.taken(places)
        given = None if self.vocabulary is None else [self.outcome(row) for row in places.tolist()]
        options: dict[str, Any] = {"part": True, "vocabulary": self.vocabulary, "given": given}
        options["choices"] = None if self.choices is None else self.choices[places]
        return ListRows(lists, survey, self.n_classes, self._y[places], weights, groups, **options)

    def heads(self, k: int) -> ListRows:
        """The `k` most likely classes of every list; shorter lists stay unchanged."""
        lengths = np.minimum(self._lists.lengths, min(k, int(self._lists.lengths.max(initial=0))))
        return self.with_lists(self._lists.heads(lengths), self._survey.tolerance - MASS_TOLERANCE)

    def with_lists(self, lists: Ragged, slack: float) -> ListRows:
        """Other lists for the same rows; sums of the distributions behind them differ from 1 by `slack`."""
        made = copy(self)
        made._lists, made._survey, made.kept = lists, lists.survey(self.n_classes, slack), None
        return made

    @property
    def faults(self) -> ListFaults:
        """The number of invalid lists, and whether outcomes and lists name the same classes."""
        n_invalid = int(np.count_nonzero(self._survey.kept < self._lists.lengths))
        return ListFaults(self.n_rows, n_invalid, self._unmatched(), self.n_rows if self.by_mass else 0)

    def _unmatched(self) -> str:
        if self.vocabulary is None or not self.vocabulary.spelled or (self._y >= 0).any():
            return ""
        if not self._lists.lengths.any():
            return ""
        row = int(np.flatnonzero(self._lists.lengths > 0)[0])
        listed = show(next(iter(self.entries(row))))
        happened = f"in row {self.first_row + row} {show(self.outcome(row))} happened"
        example = f"{happened}, and its list begins with {listed}"
        return f"No outcome is in any list: {example}. Do lists and outcomes use the same class names?"


def check_weights(weights: object, n: int, *, part: bool = False) -> Floats:
    """Weights as a private copy: finite, not negative, and not all zero unless these are a part of all."""
    raw, _ = to_array(weights, "weights")
    if kind_of(raw) not in ("real", "integer", "bool") or tuple(raw.shape) != (n,):
        raise InputError(
            f"must be {n} numbers, one per row",
            argument="weights",
            kind="length",
            found=f"its shape is {tuple(raw.shape)} and its type {raw.dtype}",
        )
    w = np.array(to_host(raw), np.float64)
    bad = Offenders("weights", "must be finite and not negative", "sign")
    bad.add(~(np.isfinite(w) & (w >= 0)), w, 0)
    if bad.count:
        raise bad.error()
    if not w.any() and not part:
        raise InputError("must not all be zero", argument="weights")
    return w
