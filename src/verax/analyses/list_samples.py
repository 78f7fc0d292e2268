"""Samples of top lists by hashes of their content, as `samples` has them of full distributions.

Symmetric rules do not ask which classes a list names, so a sample keeps the confidences and the place of the
outcome, and never a class. Its lists are the largest valid sublists, as they are scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.sources import lists_of
from verax.analyses.samples import Hashed, unit_hashes
from verax.common.hashing import mixed
from verax.common.packing import UnreadableError
from verax.common.specs import Array, Names, Number, Whole
from verax.common.summaries import Summary, merges
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.ragged import MASS_TOLERANCE, Ragged, offsets_of
from verax.inputs.lists.rows import ListRows

_COLUMNS = ("units", "rows", "numbers", "place", "lengths", "weights", "groups")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class ListSample(Hashed, Summary, kind="sample of lists"):
    """The lists with the smallest hashes; lists of a group come together.

    Attributes
    ----------
    most : int
        How many are kept.
    n_rows : int
        Of how many lists that have weight.
    n_invalid : int
        The number of invalid lists, with those of weight zero.
    slack : float
        How far the sums of the distributions that the lists come from may differ from 1.
    units, rows : arrays
        (n,) hashes of groups, or of lists where there are none; and of lists.
    numbers : Ints
        (n,) numbers of the lists in the whole.
    place, lengths : Ints
        (n,) the place of the outcome, from 1, or 0 where it is not listed; and lengths of the lists.
    confidences : Floats
        Those of all lists, one after the other.
    weights, groups : arrays or None
        (n,) weights and names of groups.
    """

    most: int = merges(Whole("equal", least=1))
    n_rows: int = merges(Whole())
    n_invalid: int = merges(Whole())
    slack: float = merges(Number("most", least=0))
    units: Any = merges(Array("u8", "n", how="join"))
    rows: Any = merges(Array("u8", "n", how="join"))
    numbers: Ints = merges(Array("i8", "n", how="join", least=0))
    place: Ints = merges(Array("i8", "n", how="join", least=0))
    lengths: Ints = merges(Array("i8", "n", how="join", least=0))
    confidences: Floats = merges(Array("f8", "entries", how="join", least=0, most=2))
    weights: Floats | None = merges(Array("f8", "n", how="join", least=0, optional=True))
    groups: Any = merges(Names("n"))

    def _check(self) -> None:
        if self.lengths.sum() != len(self.confidences) or (self.place > self.lengths).any():
            raise UnreadableError("has lists of other lengths", "lengths")
        if len(self.place) > min(self.most, self.n_rows):
            raise UnreadableError("has more lists than there were", "place")

    def at(self, rows: Ints) -> ListSample:
        """Some of the lists."""
        kept: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows] for name in _COLUMNS
        }
        return replace(self, **kept, confidences=self._ragged().take(rows).confidences)

    def _ragged(self) -> Ragged:
        """The lists, whose classes are their places, from 0."""
        offsets = offsets_of(self.lengths)
        places = np.arange(len(self.confidences)) - np.repeat(offsets[:-1], self.lengths)
        return Ragged(places, self.confidences, offsets)

    def lists(self, n_classes: int) -> ListRows:
        """The lists with their outcomes, weights and groups; classes are places."""
        lists = self._ragged()
        return ListRows(
            lists,
            lists.survey(n_classes, self.slack),
            n_classes,
            self.place - 1,
            self.weights,
            None if self.groups is None else Groups.of(self.groups, len(self.place)),
            part=True,
        )


@dataclass(frozen=True)
class ListSampleRecipe(Recipe[ListSample]):
    """A random sample of the lists of a model.

    Attributes
    ----------
    most : int
        The largest number of lists.
    everything : bool
        Whether all lists are kept where these are in memory.
    """

    model: str
    most: int
    everything: bool = field(default=True, repr=False, compare=False)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """How many lists are kept."""
        return {"most": self.most}

    def take(self, part: Part) -> ListSample:
        """The sample of some lists."""
        lists = lists_of(part, self.model)
        scored, weights = lists.as_scored(), part.models[self.model].weights
        numbers = part.row_numbers if weights is None else part.row_numbers[weights > 0]
        hashes = _hashes(scored.lists, scored.place)
        groups = lists.groups
        most = max(self.most, lists.n_lists) if part.whole and self.everything else self.most
        return ListSample(
            most,
            lists.n_lists,
            lists.n_invalid,
            lists.survey.tolerance - MASS_TOLERANCE,
            unit_hashes(groups, hashes),
            hashes,
            numbers.astype(np.int64),
            scored.place,
            scored.lists.lengths,
            scored.lists.confidences,
            lists.weights,
            None if groups is None else groups.labels[groups.codes],
        ).smallest()


def _hashes(lists: Ragged, place: Ints) -> Any:
    """64 bits of the confidences and of the place of the outcome of each list."""
    with np.errstate(over="ignore"):
        turn = (np.arange(lists.confidences.size) - np.repeat(lists.offsets[:-1], lists.lengths)).astype(
            np.uint64
        )
        # Adding zero makes one number of the two zeros.
        entries = mixed((lists.confidences + 0.0).view(np.uint64) ^ mixed(turn * _FACTOR))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        total = sums[lists.offsets[1:]] - sums[lists.offsets[:-1]]
        return mixed(total ^ mixed(place.astype(np.uint64)))
