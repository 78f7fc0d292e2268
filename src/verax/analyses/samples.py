"""Samples of rows that are not in memory: by hashes of their content, so that they do not depend on the
parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np

from verax._settings import settings
from verax.analyses.parts import in_columns, probabilities, seen
from verax.common.hashing import mixed
from verax.common.ids import name_hash
from verax.common.packing import UnreadableError
from verax.common.sorting import n_distinct
from verax.common.specs import Array, Names, Whole
from verax.common.stored import within
from verax.common.summaries import Summary, merges
from verax.engines.keys import compiled
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.handles import Gathering, Part, Recipe
from verax.inputs.skipping import MaySkip

# The number of rows that are hashed at a time: a cache holds them.
_BLOCK = 2**14
# The columns of a sample.
_COLUMNS = ("units", "rows", "numbers", "y", "p", "weights", "groups")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
R = TypeVar("R", bound=MaySkip)
# Instead of the number of a row, where there is none.
_NONE = np.iinfo(np.int64).max


def row_hashes(part: Part) -> Any:
    """64 bits of the outcome, or of the shares of the raters, and of all probabilities of each row."""
    return part.once("row hashes", lambda: _hashes(part))


def _hashes(part: Part) -> Any:
    forecasts = [probabilities(part, name) for name in part.models]
    y = seen(part, next(iter(part.models)), ()).y
    if isinstance(part.rows, Forecasts) and part.rows.shared:
        forecasts.insert(0, np.asarray(to_host(part.rows.shares(slice(0, len(y)))), float))
    hashes = np.empty(len(y), np.uint64)
    if compiled(len(y)):
        from verax.kernels.filling import add_to_hashes

        hashes[:] = y
        hashes += _FACTOR
        for i, p in enumerate(forecasts):
            for rows, columns in in_columns(p):
                add_to_hashes(columns, _FACTOR, i == len(forecasts) - 1, hashes[rows])
        return hashes
    with np.errstate(over="ignore"):
        for start in range(0, len(y), _BLOCK):
            rows = slice(start, start + _BLOCK)
            state = y[rows].astype(np.uint64) + _FACTOR
            for p in forecasts:
                for column in p[rows].T:
                    # Adding zero makes one number of the two zeros.
                    bits = (column + 0.0).view(np.uint64)
                    state ^= bits ^ (bits >> np.uint64(32))
                    state *= _FACTOR
                    state ^= state >> np.uint64(29)
            hashes[rows] = mixed(state)
    return hashes


class Sketch(Summary):
    """The smallest different hashes of rows: a sample of the different rows.

    Of many rows in memory, those that several rows have.

    Attributes
    ----------
    n_rows : int
        The number of all rows.
    hashes, counts : arrays
        (n,) hashes, and how many rows have each.
    rows : Ints or None
        (n, 2) the numbers of the first two rows with each hash; the largest integer where there is one row.
        None in what version 0.2 stored.
    alone : int
        The number of further rows in memory, all different from each other and from these; never stored.
    """

    n_rows: int = merges(Whole(least=1))
    hashes: Any = merges(Array("u8", "n", increasing=True))
    counts: Ints = merges(Array("i8", "n", least=1, most="n_rows"))
    rows: Ints | None = merges(Array("i8", "n", 2, least=0, optional=True))
    alone: int = field(default=0)

    def _check(self) -> None:
        if not 0 < len(self.counts) <= settings.hashes_kept or self.counts.sum(dtype=float) > self.n_rows:
            raise UnreadableError("has no rows, or more than there were", "counts")

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"rows": None, **values}

    @classmethod
    def of(
        cls, hashes: Any, numbers: Ints, earlier: Sketch | None = None, *, most: int | None = None
    ) -> Sketch:
        """Sketch rows with these hashes and numbers; those that cannot matter beside earlier ones are
        left out.
        """
        most = settings.hashes_kept if most is None else most
        near = np.arange(len(hashes))
        if earlier is not None and len(earlier.hashes) == most:
            near = np.flatnonzero(hashes <= earlier.hashes[-1])
        elif len(hashes) > 4 * most:
            near = np.flatnonzero(hashes <= np.partition(hashes, 2 * most)[2 * most])
            if n_distinct(hashes[near]) < most:
                near = np.arange(len(hashes))
        order = near[np.argsort(hashes[near], kind="stable")]
        different, first, counts = np.unique(hashes[order], return_index=True, return_counts=True)
        second = order[np.minimum(first + 1, len(order) - 1)]
        rows = np.stack([numbers[order[first]], np.where(counts > 1, numbers[second], _NONE)], axis=1)
        return cls(len(hashes), different[:most], counts[:most], rows[:most].astype(np.int64))

    @classmethod
    def of_all(cls, hashes: Any, numbers: Ints) -> Sketch:
        """Sketch many rows in memory: hashes that several rows have, and the number of all others."""
        ordered = np.sort(hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(repeated):
            none: Any = np.zeros(0, np.int64)
            return cls(len(hashes), none.astype(np.uint64), none, none.reshape(0, 2), len(hashes))
        place = np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)
        near = np.flatnonzero(repeated[place] == hashes)
        sketch = cls.of(hashes[near], numbers[near], most=len(near))
        return cls(len(hashes), sketch.hashes, sketch.counts, sketch.rows, len(hashes) - len(near))

    def merge(self, other: Sketch) -> Sketch:
        """Sketch the rows of both, which are not all rows in memory."""
        assert not self.alone
        assert not other.alone
        if len(other.hashes) > len(self.hashes):
            return other.merge(self)
        places = np.searchsorted(self.hashes, other.hashes)
        known = self.hashes[np.minimum(places, len(self.hashes) - 1)] == other.hashes
        at, new = places[known], places[~known]
        counts, rows, most = self.counts.copy(), None, settings.hashes_kept
        counts[at] += other.counts[known]
        if self.rows is not None and other.rows is not None:
            rows = self.rows.copy()
            rows[at] = np.sort(np.concatenate([rows[at], other.rows[known]], axis=1), axis=1)[:, :2]
            rows = np.insert(rows, new, other.rows[~known], axis=0)[:most]
        hashes = np.insert(self.hashes, new, other.hashes[~known])[:most]
        counts = np.insert(counts, new, other.counts[~known])[:most]
        return Sketch(self.n_rows + other.n_rows, hashes, counts, rows)

    @property
    def exact(self) -> bool:
        """Whether all rows are in it."""
        return int(self.counts.sum()) + self.alone == self.n_rows

    def repeats(self) -> tuple[float, float]:
        """How many rows repeat another one, and the standard error of that number; 0 where it is exact."""
        seen_rows, different = int(self.counts.sum()) + self.alone, len(self.counts) + self.alone
        share = different / seen_rows
        if self.exact:
            return float(seen_rows - different), 0.0
        error = float(np.sqrt(((1 - share * self.counts) ** 2).sum())) / seen_rows
        return self.n_rows * (1 - share), self.n_rows * error

    def repeated(self, most: int) -> list[tuple[int, int]]:
        """The first rows that repeat an earlier one, each with that row; empty where these are not known."""
        rows = np.zeros((0, 2), np.int64) if self.rows is None else self.rows
        pairs = rows[rows[:, 1] < _NONE][:, ::-1]
        return [(a, b) for a, b in pairs[np.argsort(pairs[:, 0], kind="stable")][:most].tolist()]


class Hashed:
    """A sample of rows of any kind: those with the smallest hashes; rows of a group come together.

    Attributes
    ----------
    most, n_rows : int
        How many rows are kept, and of how many.
    units, rows : arrays
        (n,) hashes of groups, or of rows where there are none; and of rows.
    numbers : Ints or None
        (n,) numbers of the rows in the whole, where they are known.
    groups : array or None
        (n,) names of groups.
    """

    most: int
    n_rows: int
    units: Any
    rows: Any
    numbers: Ints | None
    groups: Any

    def at(self, rows: Ints) -> Self:
        """Some of the rows."""
        raise NotImplementedError

    def smallest(self) -> Self:
        """The sample, with no more rows than are kept."""
        return self if len(self.units) <= self.most else self.at(self._hashed_order()[: self.most])

    def _merged(self) -> Self:
        return self.smallest()

    def at_most(self, most: int | None) -> Self:
        """The sample cut to a number of rows: whole groups, in an order that does not depend on parts."""
        kept = self if most is None or most >= self.most else replace(self, most=most).smallest()  # type: ignore[type-var]
        return kept.whole_groups().in_order()

    def _hashed_order(self) -> Ints:
        numbers = () if self.numbers is None else (self.numbers,)
        return np.lexsort((*numbers, self.rows, self.units))

    def in_order(self) -> Self:
        """The same rows in an order that does not depend on the parts: their own where all rows are here."""
        everything, numbers = len(self.units) == self.n_rows, self.numbers
        return self.at(np.argsort(numbers)) if everything and numbers is not None else self.by_content()

    def by_content(self) -> Self:
        """The same rows in the order of their hashes, so that no fold and no draw depends on their places."""
        return self.at(self._hashed_order())

    def whole_groups(self) -> Self:
        """Without the group of which only a part was kept, if any."""
        if self.groups is None or self.n_rows == len(self.units):
            return self
        return self.at(np.flatnonzero(self.units != self.units.max()))


def unit_hashes(groups: Groups | None, hashes: Any) -> Any:
    """The hash of the group of each row; of the row itself where there are no groups."""
    if groups is None:
        return hashes
    names = np.array([name_hash(label) for label in groups.labels.tolist()], np.uint64)
    return names[groups.codes]


class Sample(Hashed, Summary, kind="row sample"):
    """The rows with the smallest hashes; rows of a group come together.

    Attributes
    ----------
    most : int
        How many are kept.
    n_rows : int
        Of how many rows.
    units, rows : arrays
        (n,) hashes of groups, or of rows where there are none; and of rows.
    numbers : Ints or None
        (n,) numbers of the rows in the whole; None in what version 0.2 stored.
    y : Ints
        (n,) outcomes.
    p : Floats
        (n, M, K) probabilities.
    weights, groups : arrays or None
        (n,) weights and names of groups.
    """

    most: int = merges(Whole("equal", least=1))
    n_rows: int = merges(Whole(least=1))
    units: Any = merges(Array("u8", "n", how="join"))
    rows: Any = merges(Array("u8", "n", how="join"))
    numbers: Ints | None = merges(Array("i8", "n", how="join", least=0, optional=True))
    y: Ints = merges(Array("i8", "n", how="join", least=0))
    p: Floats = merges(Array("f8", "n", "models", "classes", how="join", least=0, most=2))
    weights: Floats | None = merges(Array("f8", "n", how="join", least=0, optional=True))
    groups: Any = merges(Names("n"))

    def _check(self) -> None:
        within(self.y, 0, self.p.shape[2] - 1)
        if not 0 < len(self.y) <= min(self.most, self.n_rows):
            raise UnreadableError("has no rows, or more than there were", "y")

    def merged_with(self, others: Sequence[Sample]) -> Sample:
        """The sample of the rows of all, at once."""
        samples = (self, *others)
        columns = {name: [getattr(sample, name) for sample in samples] for name in _COLUMNS}
        joined: dict[str, Any] = {
            name: None if any(part is None for part in parts) else np.concatenate(parts)
            for name, parts in columns.items()
        }
        return Sample(self.most, sum(sample.n_rows for sample in samples), **joined).smallest()

    def at(self, rows: Ints) -> Sample:
        """Some of the rows."""
        kept: dict[str, Any] = {name: _at(getattr(self, name), rows) for name in _COLUMNS}
        return Sample(self.most, self.n_rows, **kept)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"numbers": None, **values}

    def n_cases(self, n_given: int) -> int:
        """The number of rows given that it is of: one for all classes of a case of several raters."""
        if len(self.y) == self.n_rows:
            return n_given
        in_pairs = self.n_rows > n_given
        return len(self.y) if self.numbers is None or not in_pairs else len(np.unique(self.numbers))

    def tell(self, result: R, n_given: int) -> R:
        """The result of a fit to it, with the number of its rows, and of how many given these are."""
        n_rows = self.n_cases(n_given)
        counted = result.with_cases(n_rows)
        return counted if n_rows == n_given else counted.with_sample(n_rows, n_given)

    def forecasts(self, model: int, *, ordered: bool) -> Forecasts:
        """The rows with the forecasts of a model; probabilities that have single precision keep it."""
        p = self.p[:, model]
        single = p.astype(np.float32)
        exact = bool((single == p).all())
        return Forecasts(
            self.y, single if exact else p, weights=self.weights, groups=self.groups, ordered=ordered
        )


def _at(column: Any, rows: Any) -> Any:
    return None if column is None else column[rows]


@dataclass(frozen=True)
class SampleRecipe(Recipe[Sample]):
    """A random sample of the rows with the forecasts of all models.

    Attributes
    ----------
    most : int
        The largest number of rows.
    everything : bool
        Whether all rows are kept where these are in memory.
    """

    most: int
    everything: bool = field(default=True, repr=False, compare=False)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """How many rows are kept."""
        return {"most": self.most}

    def gathering(self) -> Gathering[Sample]:
        """Rows that may be in the sample, which are sorted when there are many of them."""
        return _Gathered(self)

    def take(self, part: Part) -> Sample:
        """The sample of some rows."""
        return self.more(part, None)

    def more(self, part: Part, earlier: Sample | None) -> Sample:
        """The sample of some rows, as far as it may be among those found before."""
        hashes = row_hashes(part)
        groups = part.rows.groups
        units = unit_hashes(groups, hashes)
        near = np.arange(len(hashes))
        most = max(self.most, len(hashes)) if part.whole and self.everything else self.most
        if earlier is not None and len(earlier.y) == most:
            near = np.flatnonzero(units <= earlier.units.max())
        elif len(hashes) > most:
            near = np.flatnonzero(units <= np.partition(units, most - 1)[most - 1])
        rows = seen(part, next(iter(part.models)), ())
        p = np.stack([probabilities(part, name)[near] for name in part.models], axis=1)
        return Sample(
            most,
            len(hashes),
            units[near],
            hashes[near],
            part.row_numbers[near].astype(np.int64),
            rows.y[near],
            p,
            None if rows.weights is None else rows.weights[near],
            None if groups is None else groups.labels[groups.codes[near]],
        ).smallest()


class _Gathered:
    """The sample of the rows so far, and rows of further parts that may replace some of them."""

    def __init__(self, recipe: SampleRecipe) -> None:
        self._recipe = recipe
        self._earlier: Sample | None = None
        self._more: list[Sample] = []

    def add(self, part: Part) -> None:
        self._more.append(self._recipe.more(part, self._earlier))
        if self._earlier is None or sum(len(more.y) for more in self._more) > self._recipe.most:
            self._earlier, self._more = self.summary(), []

    def summary(self) -> Sample:
        first, *more = (*([] if self._earlier is None else [self._earlier]), *self._more)
        return first.merged_with(more)
