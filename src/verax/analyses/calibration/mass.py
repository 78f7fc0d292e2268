"""Where the score of top lists comes from: the events that a list defines, and what they leave out.

A list with confidences t_1, ..., t_k and the rest r divides all outcomes into k + 1 events: the class at each
place, and "not listed". Their Brier score, with U = 1 where the outcome is not listed and 0 elsewhere, is

    S = sum_j (t_j - 1{Y is the class at place j})^2 + (r - U)^2.

It is decomposed with two isotonic fits: one for all listed classes together, and one for "not listed". The
padded Brier score also asks which of the m - k unlisted classes happened: S + (1 - 1 / (m - k)) r (2 U - r).
docs/guide/toplists.md has the proof. Invalid lists are their largest valid sublists, as they are scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Decomposition, components_of
from verax.analyses.calibration.events import Event, Split, split
from verax.analyses.calibration.lists import sorted_event
from verax.analyses.calibration.optimism import Measured, Sampling
from verax.analyses.calibration.places import ListEvent, ListEvents
from verax.analyses.calibration.refits import Draw
from verax.analyses.units import SamplingUnits
from verax.common.sizes import as_float, in_digits
from verax.display.tables import Cells
from verax.errors import InputError, RuleError
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import NO_ORDER
from verax.inputs.rows import Rows
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import name_of
from verax.scores.rules import Brier

LISTED, UNLISTED = "listed", "not listed"


def decomposition_of_lists(rows: Rows, rule: Rule, plan: Resampling) -> ListDecomposition:
    """The decomposition of the Brier score of the events that lists define."""
    how = split_of_lists(rule, rows.n_classes)
    found = ListEvents.of(rows, "decompositions")
    n_invalid = found.n_invalid
    found = as_scored(found)
    if plan.copies and plan.replicates and found.groups is None:
        found = _repeated(found)
    if plan.replicates and found.groups is not None and found.groups.one_way_count(found.weights) < 2:
        raise InputError("must name at least two groups for intervals", argument="groups")
    sampling = None
    if plan.replicates:
        sampling = Sampling.of(found.n_lists, found.weights, found.groups, plan.replicates, plan.seed)
    parts, whole, total = [], np.zeros(4), None
    for listed, times in scored_events(found):
        event = sorted_event(listed, how, _starts(found, listed))
        observed = event.components(listed.taken(found.weights))
        measured = None if sampling is None else _ListSampling.of_lists(found, listed, plan).measure(event)
        parts.append(components_of(listed.name, observed, measured, sampling, plan))
        whole = whole + how.factor * times * observed
        if measured is not None:
            scaled = measured.scaled(how.factor * times)
            total = scaled if total is None else _added(total, scaled)
    return ListDecomposition(
        rule=repr(rule),
        whole=components_of(how.quantity, whole, total, sampling, plan),
        parts=tuple(parts),
        total=how.total,
        thresholds=False,
        n_rows=rows.n_rows,
        n_classes=rows.n_classes,
        n_groups=None if found.groups is None else found.groups.one_way_count(found.weights),
        resampling=plan,
        left_out=how.factor * float((found.units.share * left_out_of(found)).sum()),
        mean_length=_mean_length(found),
        n_invalid=n_invalid,
    )


def scored_events(found: ListEvents) -> Iterator[tuple[ListEvent, float]]:
    """The listed classes together, with their mean number per list, and that the outcome is not listed."""
    if found.longest:
        yield replace(found.entries(), name=LISTED), _mean_length(found)
    whole = found.whole()
    yield ListEvent(UNLISTED, whole.rest, whole.given, ~whole.happened, None), 1.0


def _mean_length(found: ListEvents) -> float:
    return float((found.units.share * found.lists.lengths).sum())


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


def as_scored(found: ListEvents) -> ListEvents:
    """The largest valid sublists. Outcomes beyond them are not listed."""
    if not found.n_invalid:
        return found
    survey = found.survey
    heads = found.lists.heads(survey.kept)
    left = survey.unaccounted_kept
    kept = replace(survey, total=1 - left, unaccounted=left)
    place = np.where(found.place > survey.kept, 0, found.place)
    return replace(found, lists=heads, survey=kept, place=place)


def _repeated(found: ListEvents) -> ListEvents:
    """Every list as often as its weight says."""
    if found.weights is None:
        return found
    if (found.weights != np.floor(found.weights)).any():
        raise InputError("must be whole numbers where they count copies", argument="weights")
    rows = np.repeat(np.arange(found.n_lists), found.weights.astype(np.int64))
    lists, survey = found.lists.take(rows), found.survey.taken(rows)
    return replace(found, lists=lists, survey=survey, place=found.place[rows], weights=None)


def _starts(found: ListEvents, event: ListEvent) -> Floats:
    """Where the event's part of its list's unit interval begins."""
    if event.of is None:
        return np.asarray(event.rest)
    return np.asarray(found.ends - found.lists.row_of - event.given)


def left_out_of(found: ListEvents) -> Floats:
    """What the padded Brier score of each list has more than that of its events."""
    left, unlisted = found.survey.unaccounted, (found.place == 0).astype(float)
    others = as_float(found.n_classes) - found.lists.lengths
    within = np.where(others > 0, 1 - 1 / np.maximum(others, 1.0), 0.0)
    return np.asarray(within * left * (2 * unlisted - left))


def _added(total: Measured, more: Measured) -> Measured:
    total += more
    return total


@dataclass(frozen=True)
class _ListSampling(Sampling):
    """The draws of an event of lists. Lists are independent, and the entries of a list are not.

    Attributes
    ----------
    lists : SamplingUnits
        What is independent among the lists.
    owner : (n,) int array
        The list that each element of the event belongs to.
    times : float
        How many elements a list has on average.
    """

    lists: SamplingUnits
    owner: Ints
    times: float

    @classmethod
    def of_lists(cls, found: ListEvents, event: ListEvent, plan: Resampling) -> _ListSampling:
        """The draws of one event."""
        of = np.arange(found.n_lists) if event.of is None else event.of
        share = found.units.share[of]
        # Without groups every list is one of its own.
        groups = found.groups
        codes = of if groups is None else groups.codes[of]
        labels = np.arange(found.n_lists) if groups is None else groups.labels
        times = float(share.sum())
        units = SamplingUnits(share / times, Groups(codes, labels))
        return cls(units, None, plan.replicates, plan.seed, 1, found.units, of, times)

    @property
    def wild(self) -> bool:
        """Whether groups are drawn, not lists."""
        return self.lists.groups is not None

    def _influence(self, columns: Iterator[Floats], dtype: Any) -> Floats:
        n = len(self.lists.share)
        sums = (np.bincount(self.owner, column, n) / self.times for column in columns)
        return self.lists.influence(sums, 4, dtype)

    def _independent(self, event: Event, chance: Floats, stream: int, n: int) -> Iterator[Draw]:
        """Outcomes of independent lists, by one uniform number per list for all its entries."""
        end = event.start + chance

        def drawn(i: int) -> Any:
            uniform = np.random.default_rng([self.seed, stream, i]).random(len(self.lists.share))[self.owner]
            return (uniform >= event.start) & (uniform < end) | (uniform < end - 1)

        return (partial(drawn, i) for i in range(n))


@dataclass(frozen=True, repr=False, eq=False)
class ListDecomposition(Decomposition):
    """Where the Brier score of the events that lists define comes from.

    `parts` are "listed" (all listed classes together; per entry) and "not listed" (per list). The whole is
    `mean_length` times the first plus the second.

    Attributes
    ----------
    left_out : float
        What the padded Brier score has more: it also asks which of the unlisted classes happened, and lists
        say nothing about that.
    mean_length : float
        The mean length of the lists, as they are scored.
    n_invalid : int
        How many lists are invalid, and are taken as their largest valid sublist.

    See Also
    --------
    Decomposition : What it shares with other decompositions.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}, {1: 0.7, 2: 0.2}, {2: 0.5, 0: 0.3}], n_classes=4)
    >>> found = vx.decompose([0, 2, 2], lists, rule="brier")
    >>> found.mean_length, [part.name for part in found.parts]
    (2.0, ['listed', 'not listed'])
    """

    left_out: float
    mean_length: float
    n_invalid: int

    @property
    def padded(self) -> float:
        """The mean padded Brier score, without a fine for invalid lists."""
        return self.score + self.left_out

    def _as_dict(self) -> dict[str, Any]:
        more = {name: getattr(self, name) for name in ("left_out", "padded", "mean_length", "n_invalid")}
        return {**super()._as_dict(), **more}

    @property
    def _part(self) -> str:
        return "event"

    def _heading(self) -> str:
        grouped = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        m = in_digits(self.n_classes)
        return f"verax decomposition of {self.quantity}: {self.n_rows:,} top lists{grouped}, {m} classes"

    def _cells(self) -> Cells:
        header, whole, *parts = super()._cells()
        names = {"class listed": "a listed class", "class not listed": UNLISTED}
        return [header, whole, *([names[name], *texts] for name, *texts in parts)]

    def _notes(self) -> list[str]:
        notes = super()._notes()
        notes.insert(
            1,
            f"A list has {self.mean_length:.4g} listed classes on average. Left out: which of the unlisted "
            f"classes happened, of which lists say nothing. With it the padded brier is {self.padded:.4f}, "
            f"that is {self.left_out:+.4f}.",
        )
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            notes.insert(2, f"{some} invalid, taken as the largest valid sublist, without a fine.")
        return notes
