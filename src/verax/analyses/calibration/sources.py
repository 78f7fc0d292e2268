"""Binary events of the rows of a part: of classes, thresholds or top lists.

A list has the class at each place, any listed class, and the whole list. One with confidences t_1, ..., t_k
and the rest r divides all outcomes into k + 1 events: the class at each place, and "not listed". Their Brier
score, with U = 1 where the outcome is not listed and 0 elsewhere, is

    S = sum_j (t_j - 1{Y is the class at place j})^2 + (r - U)^2.

It is decomposed with two isotonic fits: one for all listed classes together, and one for "not listed". The
padded Brier score also asks which of the m - k unlisted classes happened: S + (1 - 1 / (m - k)) r (2 U - r).
docs/guide/toplists.md has the proof. Invalid lists are their largest valid sublists, as they are scored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, binary_events, event_names, split
from verax.analyses.parts import Accepted, checked, dense, probabilities, scaled, seen
from verax.common.checks import as_float, check_count
from verax.errors import InputError, Remedy, RuleError
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Part
from verax.inputs.lists.ragged import ListMasses, Ragged
from verax.inputs.lists.rows import NO_ORDER, ListRows
from verax.inputs.rows import Rows
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import name_of
from verax.scores.rules import Brier

# The number of first places that have an event of their own unless another number is asked for.
PLACES = 10
# The names of the events other than places: those that are stated, and those that are scored.
ANY, WHOLE = "any place", "whole list"
LISTED, UNLISTED = "listed", "not listed"
# The score of an event of a list, by itself.
SQUARED = Split("squared error", "the squared error of the event", False, "squared", 1.0)


def place_name(place: int) -> str:
    """The name of the event of one place; places are counted from 1."""
    return f"place {place}"


def list_event_names(longest: int, places: int) -> list[str]:
    """The names of the first places, of any place and of the whole list, of lists up to a length."""
    named = [place_name(place) for place in range(1, min(places, longest) + 1)]
    return [*named, *([ANY] if longest else []), WHOLE]


def check_places(places: int | None) -> int:
    """The number of places to look at."""
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
class ListEvents:
    """Lists that have weight, with the place of each outcome.

    Attributes
    ----------
    lists, survey : Ragged, ListMasses
        The lists and their mass.
    place : (N,) int array
        The place of the outcome in its list, from 1; 0 where it is not listed.
    weights, groups : array, Groups or None
        Of the lists.
    n_classes : int
        The number of classes.
    n_invalid : int
        The number of invalid lists, with those of weight zero.
    """

    lists: Ragged
    survey: ListMasses
    place: Ints
    weights: Floats | None
    groups: Groups | None
    n_classes: int
    n_invalid: int

    @classmethod
    def of(cls, rows: Rows, what: str | None) -> ListEvents:
        """The events of lists that have met their outcomes; `what` needs their groups, in words."""
        assert isinstance(rows, ListRows)
        groups = None if what is None else rows.groups
        if what is not None:
            check_one_way(groups, what)
        batch = rows.batch(0, rows.n_rows)
        place = _places(batch.lists, batch.y)
        n_invalid = int(np.count_nonzero(batch.survey.kept < batch.lists.lengths))
        events = cls(batch.lists, batch.survey, place, batch.weights, groups, rows.n_classes, n_invalid)
        if batch.weights is not None and not batch.weights.all():
            return events.taken(np.flatnonzero(batch.weights > 0))
        return events

    def taken(self, rows: Ints) -> ListEvents:
        """Some of the lists."""
        return replace(
            self,
            lists=self.lists.take(rows),
            survey=self.survey.taken(rows),
            place=self.place[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else Groups(self.groups.codes[rows], self.groups.labels),
        )

    @property
    def n_lists(self) -> int:
        """The number of lists that have weight."""
        return self.lists.n_rows

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return int(self.lists.lengths.max(initial=0))

    # ---- what is stated --------------------------------------------------------------------

    def stated(self, places: int) -> dict[str, Callable[[], BinaryEvent]]:
        """Functions that make the first places, any place, and the whole list, by name."""
        named = {place_name(i): partial(self.at, i) for i in range(1, min(places, self.longest) + 1)}
        return {**named, **({ANY: self.entries} if self.longest else {}), WHOLE: self.whole}

    def at(self, place: int) -> BinaryEvent:
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
        owner = None if len(long) == self.n_lists else long
        return BinaryEvent(place_name(place), given, rest, given, self.place[long] == place, owner)

    def entries(self) -> BinaryEvent:
        """Every listed class of every list."""
        given = np.minimum(self.lists.confidences, 1.0)
        happened = np.zeros(given.size, np.bool_)
        listed = np.flatnonzero(self.place)
        happened[self.lists.offsets[listed] + self.place[listed] - 1] = True
        return BinaryEvent(ANY, given, 1 - given, given, happened, self.lists.row_of)

    def whole(self) -> BinaryEvent:
        """Whether the outcome is listed at all, against the sum of the list."""
        given = np.minimum(self.survey.total, 1.0)
        return BinaryEvent(WHOLE, given, self.survey.unaccounted, given, self.place > 0)

    # ---- what is scored --------------------------------------------------------------------

    def scored(self) -> dict[str, Callable[[], BinaryEvent]]:
        """Functions that make the events of the score: all listed classes, and that none is the outcome."""
        return {**({LISTED: self._listed} if self.longest else {}), UNLISTED: self._unlisted}

    def _listed(self) -> BinaryEvent:
        return replace(self.entries(), name=LISTED)

    def _unlisted(self) -> BinaryEvent:
        whole = self.whole()
        rest = np.minimum(whole.rest, 1.0)
        return BinaryEvent(UNLISTED, whole.rest, whole.given, rest, ~whole.happened)

    def as_scored(self) -> ListEvents:
        """The largest valid sublists. Outcomes beyond them are not listed."""
        if not self.n_invalid:
            return self
        survey = self.survey
        left = survey.unaccounted_kept
        place = np.where(self.place > survey.kept, 0, self.place)
        kept = replace(survey, total=1 - left, unaccounted=left)
        return replace(self, lists=self.lists.heads(survey.kept), survey=kept, place=place)

    @property
    def left_out(self) -> Floats:
        """The padded Brier score of each list beyond that of its events."""
        left, unlisted = self.survey.unaccounted, (self.place == 0).astype(float)
        others = as_float(self.n_classes) - self.lists.lengths
        within = np.where(others > 0, 1 - 1 / np.maximum(others, 1.0), 0.0)
        return np.asarray(within * left * (2 * unlisted - left))


def _places(lists: Ragged, y: Ints) -> Ints:
    """The place of each outcome in its list, from 1; 0 where it is not listed."""
    entry = np.flatnonzero(lists.classes == y[lists.row_of])
    place = np.zeros(lists.n_rows, np.int64)
    row = lists.row_of[entry]
    place[row] = entry - lists.offsets[row] + 1
    return place


def split_of_lists(rule: Rule, n_classes: int) -> Split:
    """The way the events of lists add up to a score."""
    inner = rule.rule if isinstance(rule, Padded) else rule
    if inner.ordinal:
        raise RuleError(NO_ORDER)
    if not isinstance(inner, Brier):
        raise RuleError(
            "The score of top lists can be decomposed by brier only, which is a sum over the events that a "
            f"list defines; {name_of(inner)} is not."
        )
    scales = {"sum": "", "half": "half ", "mean": f"1/{n_classes:,} of "}
    total = f"{scales[inner.scale]}the sum over the listed classes and “not listed”"
    return replace(split(inner, n_classes), quantity="brier of the events", total=total)


# Weights in memory beyond this, or below one over it, are scaled, so that no sum of squares overflows.
_EXTREME = 2.0**256


@dataclass(frozen=True)
class PartEvents:
    """The events of the rows, or lists, of a part that have weight.

    Attributes
    ----------
    weights : array of shape (N,) or None
        The weights; None where every row has weight 1.
    groups : Groups or None
        The group of each row.
    n_rows : int
        The number of rows, N.
    events : callable
        Yields the events one after the other: all of them, or only some by their numbers.
    taken : callable
        Makes the same of the rows from one place to another.
    entries : bool
        Whether an event may have several elements of a row, as the entries of a list are.
    """

    weights: Floats | None
    groups: Groups | None
    n_rows: int
    events: Callable[..., Iterator[BinaryEvent]]
    taken: Callable[[int, int], PartEvents]
    entries: bool = False

    @property
    def mass(self) -> Floats:
        """The weight of each row, (N,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def pieces(self, most: int) -> Iterator[PartEvents]:
        """The same rows, no more than some at a time."""
        if self.n_rows <= most:
            yield self
            return
        for start in range(0, self.n_rows, most):
            yield self.taken(start, min(start + most, self.n_rows))

    @property
    def labels(self) -> Any:
        """The name of each row's group, (N,)."""
        assert self.groups is not None
        return self.groups.labels[self.groups.codes]


class EventSource(ABC):
    """The source of the events of a part. Sources are sent along with recipes."""

    @abstractmethod
    def read(self, part: Part) -> PartEvents:
        """The events of a part."""


@dataclass(frozen=True)
class RowEvents(EventSource):
    """The events of distributions, as a rule is made of them.

    Attributes
    ----------
    model : str
        The model whose forecasts they are.
    how : Split
        The kind of events.
    """

    model: str
    how: Split

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        forecasts = dense(part, self.model)
        check_one_way(forecasts.groups, "calibration")
        y, weights = outcomes(part, self.model)
        p, groups = probabilities(part, self.model), forecasts.groups
        weights = usable(part, weights)
        at = rows_taken(weights)
        if at is not None:
            assert weights is not None
            y, p, weights, groups = y[at], p[at], weights[at], _some_of(groups, at)
        names = event_names(labels_of(forecasts), self.how)
        return _events_of(y, p, weights, groups, self.how, names, forecasts.unity.decimals)

    def most_likely(self, part: Part) -> BinaryEvent:
        """The event that the most likely class happens, in the rows that have weight."""
        rows = seen(part, self.model, ())
        at = rows_taken(usable(part, rows.weights))
        given, happened = rows.top, rows.decision == rows.y
        if at is not None:
            given, happened = given[at], happened[at]
        given = np.minimum(given, 1.0)
        return BinaryEvent("most likely class", given, None, given, happened)


@dataclass(frozen=True)
class ListSource(EventSource):
    """Events of top lists, those that a list is too short for without elements.

    Attributes
    ----------
    model : str
        The model whose lists they are.
    names : tuple of str
        The events: places, any place and the whole list; or with `scored` those of the score.
    scored : bool
        Whether the lists are taken as they are scored: as their largest valid sublists.
    """

    model: str
    names: tuple[str, ...]
    scored: bool = False

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        return self.of(lists_of(part, self.model))

    def of(self, lists: ListEvents) -> PartEvents:
        """The events of lists that were read."""
        return self._of(lists.as_scored() if self.scored else lists)

    def _of(self, lists: ListEvents) -> PartEvents:
        makes = lists.scored() if self.scored else lists.stated(len(self.names))
        events = partial(_each_of, [makes.get(name, partial(_nothing, name)) for name in self.names])

        def taken(start: int, stop: int) -> PartEvents:
            return self._of(lists.taken(np.arange(start, stop)))

        return PartEvents(lists.weights, lists.groups, lists.n_lists, events, taken, entries=True)


def _events_of(
    y: Ints,
    p: Floats,
    weights: Floats | None,
    groups: Groups | None,
    how: Split,
    names: Sequence[str],
    decimals: int,
) -> PartEvents:
    """The events of rows that have weight."""

    def taken(start: int, stop: int) -> PartEvents:
        some = slice(start, stop)
        some_weights = None if weights is None else weights[some]
        return _events_of(y[some], p[some], some_weights, _some_of(groups, some), how, names, decimals)

    events = partial(binary_events, y, p, how, names, decimals)
    return PartEvents(weights, groups, len(y), events, taken)


def _some_of(groups: Groups | None, rows: Any) -> Groups | None:
    """The groups of some rows."""
    return None if groups is None else Groups(groups.codes[rows], groups.labels)


def _nothing(name: str) -> BinaryEvent:
    none = np.zeros(0)
    return BinaryEvent(name, none, none, none, none.astype(bool), none.astype(np.int64))


def _each_of(
    makes: Sequence[Callable[[], BinaryEvent]], only: Collection[int] | None = None
) -> Iterator[BinaryEvent]:
    return (make() for i, make in enumerate(makes) if only is None or i in only)


def outcomes(part: Part, model: str) -> tuple[Ints, Floats | None]:
    """Outcomes and weights of rows, which are checked; of rows in memory, and of those that were checked
    before, nothing else is computed.
    """
    if not (part.whole or part.made(Accepted(model))):
        rows = seen(part, model, ())
        return rows.y, rows.weights

    def read() -> tuple[Ints, Floats | None]:
        forecasts = dense(part, model)
        checked(part, model)
        batch = forecasts.batch(0, forecasts.n_rows)
        return to_host(batch.y), None if batch.weights is None else to_host(batch.weights)

    return part.once(("outcomes", model), read)


def rows_taken(weights: Floats | None) -> Ints | None:
    """The rows that have weight; None where all do."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def usable(part: Part, weights: Floats | None) -> Floats | None:
    """Weights whose squares can be summed; where parts merge, they must be that as they are."""
    if weights is None or not part.whole or 1 / _EXTREME < weights.max(initial=1.0) < _EXTREME:
        return weights
    return scaled(part, weights)


def lists_of(part: Part, model: str) -> ListEvents:
    """The lists of a part that have weight."""
    lists = ListEvents.of(part.models[model], "calibration")
    return replace(lists, weights=usable(part, lists.weights))


def labels_of(forecasts: Forecasts) -> list[str]:
    """The names of the classes as texts."""
    return [str(c) for c in (range(forecasts.n_classes) if forecasts.classes is None else forecasts.classes)]


def events_of_kind(part: Part, model: str, kind: str) -> list[tuple[Floats, Any, Floats]]:
    """Forecasts, outcomes and weights of the events that a kind of calibration error is about, as `ece` names
    it; none where no list has one.
    """
    lists = part.models[model]
    if isinstance(lists, ListRows):
        stated = ListEvents.of(lists, None)
        if not stated.n_lists or (kind != "mass" and not stated.longest):
            return []
        if kind == "confidence":
            event = stated.at(1)
        else:
            event = stated.entries() if kind == "listed" else stated.whole()
        weights = event.of_rows(stated.weights)
        w = np.ones(len(event.given)) if weights is None else scaled(part, weights)
        return [(event.given, event.happened, w)]
    rows, p = seen(part, model, ()), probabilities(part, model)
    w = np.ones(len(rows.y)) if rows.weights is None else scaled(part, rows.weights)
    if kind == "classwise":
        return [(p[:, k], rows.y == k, w) for k in range(p.shape[1])]
    return [(rows.top, rows.decision == rows.y, w)]
