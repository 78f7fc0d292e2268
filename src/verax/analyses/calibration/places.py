"""The events that top lists define: the class at each place, any listed class, an outcome that is listed.

A list with confidences t_1 >= ... >= t_k that sum to 1 - r says of each place j that its class happens with
probability t_j, and of the whole list that the outcome is one of its classes with probability 1 - r. If the
confidences are the probabilities of their classes, each of these statements is calibrated, whatever the
unlisted classes are. The statements are taken as they were made, those of invalid lists too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.overconfidence import p_of_groups, p_of_rows
from verax.analyses.units import SamplingUnits
from verax.common.caching import cached_property
from verax.common.checks import check_count
from verax.common.sizes import in_digits
from verax.errors import InputError, Remedy
from verax.inference.estimates import holm
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.lists.ragged import Ragged, Survey
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows

# So many of the first places have an event of their own unless another number is asked for.
PLACES = 10
# Of an event: the lists it is about, their share of the weight, what was claimed, what happened, the p-value.
Found = tuple[int, float, float, float, float | None]
# What the events other than places are called.
ANY, WHOLE = "any place", "whole list"


def place_name(place: int) -> str:
    """What the event of one place is called; places are counted from 1."""
    return f"place {place}"


def event_names(longest: int, places: int) -> list[str]:
    """The names of the first places, of any place and of the whole list, of lists up to a length."""
    named = [place_name(place) for place in range(1, min(places, longest) + 1)]
    return [*named, *([ANY] if longest else []), WHOLE]


def check_places(places: int | None) -> int:
    """How many places to look at."""
    if places is None:
        return PLACES
    check_count("places", places)
    return int(places)


def refuse_places(places: int | None) -> None:
    """Refuse a number of places where there are no lists."""
    if places is not None:
        raise InputError(
            "is for top lists, and `p` holds the probabilities of all classes",
            argument="places",
            values=[places],
            remedies=[Remedy("TopLists.from_probabilities(p, k) makes lists of them.", python_only=True)],
        )


@dataclass(frozen=True)
class ListEvent:
    """A binary event in some or all of the lists, or in all of their entries.

    Attributes
    ----------
    name : str
        What it is called.
    given, rest : (n,) arrays
        The probability that it was given, and that of the opposite.
    happened : (n,) bool array
        Whether it happened.
    of : (n,) int array or None
        The list that each belongs to; None for all lists, one after the other.
    """

    name: str
    given: Floats
    rest: Floats
    happened: Bools
    of: Ints | None

    def taken(self, values: Any) -> Any:
        """Values of the lists for each element of the event; None stays None."""
        return values if values is None or self.of is None else values[self.of]


@dataclass(frozen=True)
class Claim:
    """What was claimed of an event on average, and how often it happened.

    Attributes
    ----------
    name : str
        "place 1", "place 2", ..., "any place" or "whole list".
    n_lists : int
        How many lists it is about: those that are long enough.
    share : float
        Their share of the weight of all lists.
    claimed : float
        The mean probability it was given.
    happened : float
        The share in which it happened.
    p_value, p_adjusted : float or None
        Two-sided p-value of the difference, and after Holm's correction over the places and the whole list;
        None where all lists belong to one group. Any place has those of the whole list: it is the same sum.
    """

    name: str
    n_lists: int
    share: float
    claimed: float
    happened: float
    p_value: float | None
    p_adjusted: float | None

    @property
    def gap(self) -> float:
        """Claimed minus happened: positive means too sure."""
        return self.claimed - self.happened

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain Python values."""
        return {**vars(self), "gap": self.gap}


@dataclass(frozen=True)
class ListEvents:
    """Lists that have weight, with the place of each outcome.

    Attributes
    ----------
    lists, survey : Ragged, Survey
        The lists and their mass.
    place : (N,) int array
        The place of the outcome in its list, from 1; 0 where it is not listed.
    weights, groups : array, Groups or None
        Of the lists.
    n_classes : int
        The number of classes.
    """

    lists: Ragged
    survey: Survey
    place: Ints
    weights: Floats | None
    groups: Groups | None
    n_classes: int

    @classmethod
    def of(cls, rows: Rows, what: str) -> ListEvents:
        """The events of lists that have met their outcomes; `what` needs them, in words."""
        assert isinstance(rows, ListRows)
        check_one_way(rows.groups, what)
        batch = rows.batch(0, rows.n_rows)
        lists, survey, weights, groups = batch.lists, batch.survey, batch.weights, rows.groups
        place = _places(lists, batch.y)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights > 0)
            lists, place, weights = lists.take(kept), place[kept], weights[kept]
            survey = survey.taken(kept)
            groups = None if groups is None else Groups(groups.codes[kept], groups.labels)
        return cls(lists, survey, place, weights, groups, rows.n_classes)

    @property
    def n_lists(self) -> int:
        """The number of lists that have weight."""
        return self.lists.n_rows

    @property
    def n_invalid(self) -> int:
        """How many of them are invalid."""
        return int(np.count_nonzero(self.survey.kept < self.lists.lengths))

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return int(self.lists.lengths.max())

    @cached_property
    def units(self) -> SamplingUnits:
        """What is independent among the lists."""
        return SamplingUnits.of(self.n_lists, self.weights, self.groups)[0]

    @property
    def said(self) -> str:
        """The number of classes in words, and how many lists are invalid."""
        m = in_digits(self.n_classes)
        return f"{m} classes" + (
            f", {self.n_invalid:,} invalid lists taken as stated" if self.n_invalid else ""
        )

    def units_of(self, event: ListEvent) -> SamplingUnits:
        """What is independent among the elements of an event: lists, or groups of them."""
        if event.name != ANY:
            return SamplingUnits.of(len(event.given), event.taken(self.weights), self.groups_of(event))[0]
        share = event.taken(self.units.share)
        own = Groups(self.lists.row_of, np.arange(self.n_lists))
        groups = own if self.groups is None else self.groups_of(event)
        return SamplingUnits(share / share.sum(), groups)

    def all(self, places: int) -> Iterator[ListEvent]:
        """The first places, any place, and the whole list, one after the other."""
        for place in range(1, min(places, self.longest) + 1):
            yield self.at(place)
        if self.longest:
            yield self.entries()
        yield self.whole()

    def at(self, place: int) -> ListEvent:
        """The class at one place of the lists that are long enough."""
        long = np.flatnonzero(self.lists.lengths >= place)
        entry = self.lists.offsets[long] + place - 1
        given = np.minimum(self.lists.confidences[entry], 1.0)
        rest = 1 - given
        if place == 1:
            # Not one minus: what is left beside a nearly certain class would be rounding.
            others = self.lists.confidences.copy()
            others[entry] = 0.0
            rest = (self.lists.sums(others) + self.survey.unaccounted)[long]
        every = len(long) == self.n_lists
        return ListEvent(place_name(place), given, rest, self.place[long] == place, None if every else long)

    def entries(self) -> ListEvent:
        """Every listed class of every list."""
        given = np.minimum(self.lists.confidences, 1.0)
        happened = np.zeros(given.size, np.bool_)
        happened[self.entry_of_outcome] = True
        return ListEvent(ANY, given, 1 - given, happened, self.lists.row_of)

    def whole(self) -> ListEvent:
        """Whether the outcome is listed at all, against the sum of the list."""
        left = self.survey.unaccounted
        return ListEvent(WHOLE, np.minimum(self.survey.total, 1.0), left, self.place > 0, None)

    @property
    def entry_of_outcome(self) -> Ints:
        """The entries that happened, of the lists that have the outcome."""
        listed = np.flatnonzero(self.place)
        return self.lists.offsets[listed] + self.place[listed] - 1

    def draw_entries(self, rng: np.random.Generator) -> Ints:
        """Entries that happen if the confidences are right: at most one per list."""
        ends = np.append(self.ends, np.inf)
        start = np.arange(self.n_lists)
        entry = np.searchsorted(ends, start + rng.random(self.n_lists), side="right")
        return entry[entry < self.lists.offsets[1:]]

    @cached_property
    def ends(self) -> Floats:
        """Where each entry's part of its list's unit interval ends; list i has [i, i + 1]."""
        sums = np.cumsum(self.lists.confidences)
        before = np.concatenate([[0.0], sums])[self.lists.offsets[:-1]]
        within = np.minimum(sums - np.repeat(before, self.lists.lengths), 1.0)
        return np.asarray(self.lists.row_of + within)

    def claims(self, places: int) -> tuple[Claim, ...]:
        """What was claimed of each event on average and what happened, with tests."""
        return corrected({event.name: self._claim(event) for event in self.all(places)})

    def _claim(self, event: ListEvent) -> Found:
        given, happened = event.given, event.happened.astype(float)
        units = self.units_of(event)
        if event.name == ANY:
            share = units.share
            return self.n_lists, 1.0, _dot(share, given), _dot(share, happened), None
        p = (
            p_of_rows(given, happened, units.share)
            if units.groups is None
            else p_of_groups(given, happened, units)
        )
        part = float(event.taken(self.units.share).sum())
        return len(given), part, _dot(units.share, given), _dot(units.share, happened), p

    def groups_of(self, event: ListEvent) -> Groups | None:
        """The groups of the elements of an event; None without groups."""
        return None if self.groups is None else Groups(event.taken(self.groups.codes), self.groups.labels)


def _places(lists: Ragged, y: Ints) -> Ints:
    """The place of each outcome in its list, from 1; 0 where it is not listed."""
    entry = np.flatnonzero(lists.classes == y[lists.row_of])
    place = np.zeros(lists.n_rows, np.int64)
    row = lists.row_of[entry]
    place[row] = entry - lists.offsets[row] + 1
    return place


def _dot(share: Floats, values: Floats) -> float:
    return float((share * values).sum())


def corrected(found: dict[str, Found]) -> tuple[Claim, ...]:
    """Claims by name (lists, share, claimed, happened, p-value), with Holm's correction over all tests."""
    # Any place is the whole list in other units, so it is no test of its own.
    p_values = {name: np.nan if p is None else p for name, (*_, p) in found.items() if name != ANY}
    adjusted = dict(zip(p_values, holm(np.array([*p_values.values()])).tolist(), strict=True))
    claims = []
    for name, (n_lists, share, claimed, happened, _) in found.items():
        test = WHOLE if name == ANY else name
        known = not np.isnan(p_values[test])
        tested = (p_values[test], adjusted[test]) if known else (None, None)
        claims.append(Claim(name, n_lists, share, claimed, happened, *tested))
    return tuple(claims)
