"""The binary events of top lists: the class at each place, any listed class, and the whole list.

A list with confidences t_1, ..., t_k and the rest r divides all outcomes into k + 1 events: the class at each
place, and "not listed". Their Brier score, with U = 1 where the outcome is not listed and 0 elsewhere, is

    S = sum_j (t_j - 1{Y is the class at place j})^2 + (r - U)^2.

It is decomposed with two isotonic fits: one for all listed classes together, and one for "not listed". The
padded Brier score also asks which of the m - k unlisted classes happened: S + (1 - 1 / (m - k)) r (2 U - r).
docs/guide/toplists.md has the proof. Invalid lists are their largest valid sublists, as they are scored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, split
from verax.common.checks import check_count
from verax.common.sizes import as_float
from verax.errors import InputError, Remedy, RuleError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.lists.ragged import ListMasses, Ragged
from verax.inputs.lists.rows import NO_ORDER, ListRows
from verax.inputs.rows import Rows
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import name_of
from verax.scores.rules import Brier

# The number of first places that have an event of their own unless another number is asked for.
PLACES = 10
# What the events other than places are called: those that are stated, and those that are scored.
ANY, WHOLE = "any place", "whole list"
LISTED, UNLISTED = "listed", "not listed"
# How an event of a list is scored, by itself.
SQUARED = Split("squared error", "the squared error of the event", False, "squared", 1.0)


def place_name(place: int) -> str:
    """What the event of one place is called; places are counted from 1."""
    return f"place {place}"


def list_event_names(longest: int, places: int) -> list[str]:
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
    """

    lists: Ragged
    survey: ListMasses
    place: Ints
    weights: Floats | None
    groups: Groups | None
    n_classes: int

    @classmethod
    def of(cls, rows: Rows, what: str | None) -> ListEvents:
        """The events of lists that have met their outcomes; `what` needs their groups, in words."""
        assert isinstance(rows, ListRows)
        groups = None if what is None else rows.groups
        if what is not None:
            check_one_way(groups, what)
        batch = rows.batch(0, rows.n_rows)
        place = _places(batch.lists, batch.y)
        found = cls(batch.lists, batch.survey, place, batch.weights, groups, rows.n_classes)
        if batch.weights is not None and not batch.weights.all():
            return found.taken(np.flatnonzero(batch.weights > 0))
        return found

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
    def n_invalid(self) -> int:
        """How many of them are invalid."""
        return int(np.count_nonzero(self.survey.kept < self.lists.lengths))

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return int(self.lists.lengths.max(initial=0))

    # ---- what is stated --------------------------------------------------------------------

    def stated(self, places: int) -> dict[str, Callable[[], BinaryEvent]]:
        """What makes the first places, any place, and the whole list, by name."""
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
        """What makes the events of the score: all listed classes together, and that none is the outcome."""
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
        """What the padded Brier score of each list has more than that of its events."""
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
    """How the events of lists add up to a score."""
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
