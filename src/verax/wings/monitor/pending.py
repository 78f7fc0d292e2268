"""Forecasts without outcomes, and names of rows that were taken in before."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice, pairwise
from typing import Any

import numpy as np

from verax.common.hashing import label_hash
from verax.common.ids import id_text, name_hash
from verax.common.specs import Array
from verax.common.summaries import Summary, merges
from verax.common.times import read_again
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Floats, Ints, to_array, to_host
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary, LabelSets


@dataclass(frozen=True)
class ListForm:
    """Properties that the lists of one call share.

    Attributes
    ----------
    names : tuple or None
        The names of all classes, in order, if they are known.
    named : bool
        Whether lists name classes; otherwise they have positions.
    tolerance, slack : float
        As in `TopLists`.
    """

    names: tuple[Hashable, ...] | None
    named: bool
    tolerance: float
    slack: float


@dataclass(frozen=True, eq=False)
class WaitingList:
    """A top list without an outcome: its classes, by name or position, and their confidences."""

    classes: tuple[Hashable, ...]
    confidences: Floats
    form: ListForm = field(repr=False)


def waiting_lists(p: TopLists, vocabulary: ClassVocabulary | None) -> list[WaitingList]:
    """Lists row by row; `vocabulary` has the classes of their codes."""
    if isinstance(vocabulary, LabelSets):
        raise InputError("must not be lists of label sets: their outcomes cannot come later", argument="p")
    names = tuple(vocabulary.names) if vocabulary is not None and vocabulary.complete else None
    form = ListForm(names, vocabulary is not None, p.tolerance, p.slack)
    codes: list[Any] = p.classes.tolist()
    if vocabulary is not None:
        codes = [vocabulary.name(code) for code in codes]
    edges = p.offsets.tolist()
    return [WaitingList(tuple(codes[a:b]), p.confidences[a:b], form) for a, b in pairwise(edges)]


def same_forecast(one: Any, other: Any) -> bool:
    """Whether two forecasts of a row are the same."""
    if isinstance(one, WaitingList) and isinstance(other, WaitingList):
        return one.classes == other.classes and np.array_equal(one.confidences, other.confidences)
    return type(one) is type(other) and np.array_equal(one, other)


def together(rows: Sequence[Any], n_classes: int) -> Any:
    """Forecasts of several rows in their original form: an array, or top lists."""
    if not isinstance(rows[0], WaitingList):
        return np.stack(rows)
    forms = list(dict.fromkeys(row.form for row in rows))
    if len({form.named for form in forms}) > 1 or len({form.names for form in forms} - {None}) > 1:
        raise InputError("must name classes in the same way in all forecasts", argument="p", kind="label")
    names = next((form.names for form in forms if form.names is not None), None)
    classes: list[Any] = [name for row in rows for name in row.classes]
    vocabulary = None
    if forms[0].named:
        known = dict.fromkeys(classes) if names is None else names
        vocabulary = ClassVocabulary(known, complete=names is not None)
        classes = vocabulary.codes(classes).tolist()
    return TopLists(
        np.array(classes, np.int64),
        np.concatenate([row.confidences for row in rows]),
        offsets_of(np.array([len(row.classes) for row in rows], np.int64)),
        n_classes,
        vocabulary=vocabulary,
        tolerance=max(form.tolerance for form in forms),
        slack=max(form.slack for form in forms),
    )


def to_values(rows: Sequence[Any]) -> dict[str, Any]:
    """Forecasts, for storing."""
    if not rows or not isinstance(rows[0], WaitingList):
        return {"p": np.stack(rows) if rows else np.zeros((0, 0)), "lists": None}
    forms = {row.form: None for row in rows}
    places = {form: i for i, form in enumerate(forms)}
    lists = {
        "forms": [
            {**vars(form), "names": None if form.names is None else list(form.names)} for form in forms
        ],
        "form": np.array([places[row.form] for row in rows], np.int64),
        "classes": [list(row.classes) for row in rows],
        "confidences": np.concatenate([row.confidences for row in rows]),
    }
    return {"p": np.zeros((len(rows), 0)), "lists": lists}


def from_values(values: Mapping[str, Any]) -> Sequence[Any]:
    """Stored forecasts."""
    lists = values.get("lists")
    if lists is None:
        distributions: Sequence[Any] = values["p"]
        return distributions
    forms = [
        ListForm(
            None if form["names"] is None else tuple(form["names"]),
            bool(form["named"]),
            float(form["tolerance"]),
            float(form["slack"]),
        )
        for form in lists["forms"]
    ]
    edges = offsets_of(np.array([len(classes) for classes in lists["classes"]], np.int64)).tolist()
    confidences = np.asarray(lists["confidences"], float)
    if confidences.shape != (edges[-1],):
        raise ValueError("lists and confidences of different lengths")
    return [
        WaitingList(tuple(classes), confidences[a:b], forms[form])
        for classes, form, a, b in zip(
            lists["classes"], lists["form"].tolist(), edges, edges[1:], strict=False
        )
    ]


Hashes = np.ndarray[Any, np.dtype[np.uint64]]
# Number of row names in an error.
_LISTED = 5


@dataclass(frozen=True)
class Waiting:
    """A forecast without an outcome.

    Attributes
    ----------
    p : array of shape (K,), or WaitingList
        The probabilities, or the list of the most likely classes.
    expected : float
        The loss that it expects.
    step : int
        The number of time steps before it.
    time : object
        When it was made; None if unknown.
    by : tuple
        Its labels of subgroups.
    group, weight : object or None
        Its group and its weight.
    """

    p: Any
    expected: float
    step: int
    time: Any
    by: tuple[Any, ...]
    group: Any
    weight: float | None


class Pending:
    """Rows by name: forecasts without outcomes, and rows that were taken in.

    Forecasts without an outcome are kept whole. For rows with an outcome, hashes of the name and the outcome
    are kept (16 bytes), so that no row is taken in twice.
    """

    def __init__(self) -> None:
        self._rows: dict[Any, Waiting] = {}
        self._known: dict[int, int] = {}
        # Of a state of 0.3, which told numbers from their texts; names move to `_known` when they are seen.
        self._former: dict[int, int] = {}
        # For late outcomes: their number, and the sums of lags, losses, products and squares.
        self._late = np.zeros(6)
        # Time steps, each with the number of names that were known when it was taken in.
        self._marks: list[tuple[int, int]] = []

    @property
    def n(self) -> int:
        """The number of forecasts without an outcome."""
        return len(self._rows)

    @property
    def expected(self) -> float:
        """The mean loss that pending forecasts expect of themselves."""
        return float(np.mean([row.expected for row in self._rows.values()]))

    @property
    def begun(self) -> bool:
        """Whether any row is known by name."""
        return bool(self._rows or self._known or self._former)

    @property
    def has_former(self) -> bool:
        """Whether names are known as 0.3 wrote them."""
        return bool(self._former)

    @property
    def listed(self) -> tuple[Hashable, ...]:
        """The classes that waiting lists name; empty if they have positions."""
        lists = (row.p for row in self._rows.values() if isinstance(row.p, WaitingList))
        return tuple(
            dict.fromkeys(name for forecast in lists if forecast.form.named for name in forecast.classes)
        )

    @staticmethod
    def names(ids: object, n_rows: int) -> list[Any]:
        """Names of rows in canonical form, checked to be distinct."""
        values = to_host(to_array(ids, "ids")[0])
        if values.shape != (n_rows,):
            raise InputError(
                f"must be {n_rows:,} names, one per row",
                argument="ids",
                kind="length",
                found=f"the shape is {values.shape}",
            )
        names: list[Any] = list(map(id_text, values.tolist()))
        seen: set[Any] = set()
        twice = [i for i, name in enumerate(names) if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        if twice:
            raise _refusal("must name each row once", "ids", names, twice, "repeats", "repeat")
        return names

    def predict(self, names: list[Any], rows: Sequence[Waiting]) -> None:
        """Note new forecasts; refuse changed ones and those with a known outcome."""
        known = [i for i, before in enumerate(self._outcomes_of(names)) if before is not None]
        if known:
            raise _refusal("must be new rows", "ids", names, known, "has its outcome", "have their outcomes")
        changed = [
            i
            for i, (name, row) in enumerate(zip(names, rows, strict=True))
            if name in self._rows and not same_forecast(self._rows[name].p, row.p)
        ]
        if changed:
            raise _refusal(
                "must not change the forecast of a row",
                "p",
                names,
                changed,
                "was forecast before",
                "were forecast before",
            )
        self._rows |= {name: row for name, row in zip(names, rows, strict=True) if name not in self._rows}

    def forget(self, step: int, memory: int | None) -> None:
        """Forget the names of rows that were noted before the last `memory` of so far `step` time steps."""
        if self._marks and self._marks[-1][0] == step:
            self._marks.pop()
        self._marks.append((step, len(self._known)))
        if memory is None:
            return
        old = max([n for noted, n in self._marks if noted <= step - memory], default=0)
        self._known = dict(islice(self._known.items(), old, None))
        self._marks = [(noted, n - old) for noted, n in self._marks if noted > step - memory]

    def name_outcomes(self, classes: Sequence[Hashable]) -> None:
        """Know outcomes, which were positions so far, by the names of their classes."""
        called = {outcome_hash(i): outcome_hash(name) for i, name in enumerate(classes)}
        for known in (self._known, self._former):
            known.update({name: called.get(outcome, outcome) for name, outcome in known.items()})

    def waiting(self, names: list[Any], y: Any, called: Any) -> tuple[Ints, list[Waiting]]:
        """The places of new outcomes, and their forecasts; `called` has the outcomes by class name."""
        places = self.new_rows(names, y, called)
        unknown = [i for i in places.tolist() if names[i] not in self._rows]
        if unknown:
            raise _refusal(
                "must name rows that were forecast",
                "ids",
                names,
                unknown,
                "is not known",
                "are not known",
                Remedy("Call `predict` first, or `update` with forecasts and outcomes.", python_only=True),
            )
        return places, [self._rows[names[i]] for i in places.tolist()]

    def new_rows(self, names: list[Any], y: Any, called: Any) -> Ints:
        """The places of rows that were not taken in before; refuse changed outcomes of those that were.

        `called` has the outcomes by class name. Earlier versions knew them as they were given.
        """
        before = self._outcomes_of(names)
        changed = [
            i
            for i, (known, *outcomes) in enumerate(zip(before, y.tolist(), called.tolist(), strict=True))
            if known is not None and known not in map(outcome_hash, outcomes)
        ]
        if changed:
            raise _refusal(
                "must not change the outcome of a row",
                "y",
                names,
                changed,
                f"had another outcome before than {show(y.tolist()[changed[0]])}",
                "had other outcomes before",
            )
        return np.flatnonzero([known is None for known in before])

    def _outcomes_of(self, names: Sequence[str]) -> list[int | None]:
        """The hash of the outcome of each row by its name; None for rows that were not taken in."""
        hashes = np.array([name_hash(name) for name in names], np.uint64)
        former = former_hashes(names) if self._former else np.zeros((len(names), 2), np.uint64)
        return self._known_by(hashes, former)

    def _known_by(self, names: Hashes, former: Hashes) -> list[int | None]:
        """The hash of the outcome by the hash of the name, as it is now or as 0.3 had it."""
        if self._former:
            for name, spellings in zip(names.tolist(), former.tolist(), strict=True):
                for spelling in {name, *spellings} & self._former.keys():
                    self._known[name] = self._former.pop(spelling)
        return [self._known.get(name) for name in names.tolist()]

    def note(self, names: Sequence[Any], y: Any) -> None:
        """Note rows that were taken in with their outcomes."""
        for name, outcome in zip(names, y.tolist(), strict=True):
            self._known[name_hash(name)] = outcome_hash(outcome)
            self._rows.pop(name, None)

    def known_among(self, rows: RowNames) -> Hashes:
        """The names of rows that were taken in before, from hashes of names and outcomes.

        Repeated names and changed outcomes of known rows are errors.
        """
        names, outcomes, numbers = rows.names, rows.outcomes, rows.numbers
        _, first = np.unique(names, return_index=True)
        twice = np.setdiff1d(np.arange(len(names)), first)
        before = self._known_by(names, rows.former)
        changed = [
            i
            for i, (known, outcome) in enumerate(zip(before, outcomes.tolist(), strict=True))
            if known not in (None, outcome)
        ]
        for places, requirement, argument, problem in (
            (twice, "must name each row once", "ids", "repeats one before"),
            (changed, "must not change the outcome of a row", "y", "had another outcome before"),
        ):
            if len(places):
                at = numbers[places].tolist()
                raise InputError(
                    requirement,
                    argument=argument,
                    found=f"row {at[0]:,} {problem} ({len(at):,} in all)",
                    rows=at[:_LISTED],
                    count=len(at),
                )
        known_names: Hashes = names[np.array([known is not None for known in before], bool)]
        return known_names

    def note_hashes(self, names: Hashes, outcomes: Hashes) -> None:
        """Note rows that were taken in, by hashes of their names and outcomes."""
        new = dict(zip(names.tolist(), outcomes.tolist(), strict=True))
        self._known |= new
        self._rows = {name: row for name, row in self._rows.items() if name_hash(name) not in new}

    def note_late(self, lags: Floats, losses: Floats) -> None:
        """Note the delays of outcomes and their losses."""
        finite = np.isfinite(losses)
        a, b = lags[finite].astype(float), losses[finite]
        self._late += [len(a), a.sum(), b.sum(), (a * b).sum(), (a * a).sum(), (b * b).sum()]

    @property
    def lateness(self) -> float:
        """The z value of the correlation between loss and delay; NaN if undefined."""
        n, a, b, ab, aa, bb = self._late.tolist()
        if n < 10:
            return math.nan
        spread = (aa - a * a / n) * (bb - b * b / n)
        return (ab - a * b / n) / math.sqrt(spread) * math.sqrt(n) if spread > 0 else math.nan

    def to_values(self) -> dict[str, Any]:
        """The state, for storing."""
        rows = list(self._rows.values())
        return {
            "names": list(self._rows),
            **to_values([row.p for row in rows]),
            "claimed": np.array([row.expected for row in rows]),
            "steps": np.array([row.step for row in rows], np.int64),
            "times": [row.time for row in rows],
            "by": [list(row.by) for row in rows],
            "groups": [row.group for row in rows],
            "weights": [row.weight for row in rows],
            "known": np.array(list(self._known), np.uint64),
            "outcomes": np.array(list(self._known.values()), np.uint64),
            "former": np.array(list(self._former), np.uint64),
            "former_outcomes": np.array(list(self._former.values()), np.uint64),
            "late": self._late,
            "marks": np.array(self._marks, np.int64).reshape(-1, 2),
        }

    @classmethod
    def from_values(cls, values: Any) -> Pending:
        """The stored state."""
        pending = cls()
        columns = (
            *(from_values(values), values["claimed"].tolist(), values["steps"].tolist()),
            read_again(values["times"]),
            *(map(tuple, values["by"]), values["groups"], values["weights"]),
        )
        rows = (Waiting(*row) for row in zip(*columns, strict=True))
        pending._rows = dict(zip(map(id_text, values["names"]), rows, strict=True))
        known = dict(zip(values["known"].tolist(), values["outcomes"].tolist(), strict=True))
        if "former" in values:
            pending._known = known
            former = values["former"].tolist(), values["former_outcomes"].tolist()
            pending._former = dict(zip(*former, strict=True))
        else:
            pending._former = known
        pending._late = np.asarray(values["late"], float).reshape(6)
        marks = np.asarray(values.get("marks", ()), np.int64).reshape(-1, 2).tolist()
        pending._marks = [(step, n) for step, n in marks]
        return pending


def former_hashes(names: Sequence[str]) -> Hashes:
    """The hashes that 0.3 had of names that are numbers, as integers and as floats; else that of the text."""
    hashes = []
    for name in names:
        spellings: list[Any] = [name, name]
        with suppress(ValueError, OverflowError):
            number = float(name)
            if id_text(number) == name:
                spellings = [int(number) if number.is_integer() else number, number]
        hashes.append([label_hash(spelling) for spelling in spellings])
    return np.array(hashes, np.uint64).reshape(-1, 2)


def check_later(rows: Sequence[Waiting], times: Sequence[Any], names: Sequence[Any]) -> None:
    """Refuse outcomes that came before their forecasts were made."""
    early = [
        i
        for i, (row, time) in enumerate(zip(rows, times, strict=True))
        if row.time is not None and _is_before(time, row.time)
    ]
    if early:
        raise _refusal(
            f"must not be before {show(rows[early[0]].time)}, when the forecast was made",
            "time",
            names,
            early,
            "has its outcome before its forecast",
            "have their outcomes before their forecasts",
        )


def _is_before(time: Any, made: Any) -> bool:
    """Whether one time is before another one, where they can be compared; a date is its midnight."""
    if isinstance(time, date) and isinstance(made, date):
        return bool(np.datetime64(time) < np.datetime64(made))
    return isinstance(time, type(made)) and bool(time < made)


def lags_of(rows: Sequence[Waiting], times: Sequence[Any], step: int) -> Floats:
    """Delays of outcomes: in units of time if times can be subtracted, else in time steps."""
    try:
        between = [time - row.time for row, time in zip(rows, times, strict=True)]
        return np.array([d.total_seconds() if isinstance(d, timedelta) else float(d) for d in between])
    except TypeError:
        return np.array([float(step - row.step) for row in rows])


def _refusal(
    requirement: str,
    argument: str,
    names: Sequence[Any],
    places: Sequence[int],
    one: str,
    several: str,
    *remedies: Remedy,
) -> InputError:
    """An error that names some rows."""
    offenders = [names[i] for i in places]
    listed = join(
        [
            *map(show, offenders[:_LISTED]),
            *([f"{len(offenders) - _LISTED:,} more"] if offenders[_LISTED:] else []),
        ]
    )
    return InputError(
        requirement,
        argument=argument,
        kind="missing" if one.startswith("is not") else "value",
        found=f"{listed} {one if len(offenders) == 1 else several}",
        rows=places,
        values=offenders,
        remedies=remedies,
    )


def outcome_hash(outcome: Any) -> int:
    """A 64-bit hash of an outcome, the same for 1, 1.0 and True; a list has the labels of several raters."""
    if isinstance(outcome, list):
        return label_hash([outcome_hash(label) for label in outcome])
    if isinstance(outcome, float) and outcome.is_integer():
        outcome = int(outcome)
    return label_hash(int(outcome) if isinstance(outcome, bool) else outcome)


class RowNames(Summary, kind="names of rows"):
    """Names and outcomes of rows, as hashes; empty if rows have no names.

    Attributes
    ----------
    names, outcomes : array of shape (N,)
        The hashes.
    former : array of shape (N, 2)
        The hashes that 0.3 had of names; zeros unless asked for.
    numbers : array of shape (N,)
        The numbers of the rows.
    """

    names: Hashes = merges(Array("uint64", "rows", how="join"))
    outcomes: Hashes = merges(Array("uint64", "rows", how="join"))
    numbers: Ints = merges(Array("int64", "rows", how="join"))
    former: Hashes = merges(Array("uint64", "rows", 2, how="join"))


@dataclass(frozen=True)
class NamesRecipe(Recipe[RowNames], cases=True):
    """Collect the names of all rows.

    Attributes
    ----------
    model : str
        The model.
    classes : tuple or None
        The names of the classes.
    former : bool
        Whether to hash names as 0.3 did as well.
    """

    model: str
    classes: tuple[Hashable, ...] | None
    former: bool = False

    def take(self, part: Part) -> RowNames:
        """Summarise one part."""
        if part.ids is None:
            none = np.zeros(0, np.uint64)
            return RowNames(none, none, np.zeros(0, np.int64), np.zeros((0, 2), np.uint64))
        texts = list(map(id_text, part.ids.tolist()))
        raw = self._outcomes(part)
        hashes = (
            {}
            if raw and isinstance(raw[0], list)
            else {outcome: outcome_hash(outcome) for outcome in set(raw)}
        )
        outcomes = [hashes.get(outcome) if hashes else outcome_hash(outcome) for outcome in raw]
        names = np.array([name_hash(text) for text in texts], np.uint64)
        former = former_hashes(texts) if self.former else np.zeros((len(texts), 2), np.uint64)
        return RowNames(names, np.array(outcomes, np.uint64), part.row_numbers, former)

    def _outcomes(self, part: Part) -> list[Any]:
        rows: Any = part.models[self.model]
        if isinstance(rows, ListRows):
            return [rows.outcome(row) for row in range(rows.n_rows)]
        if rows.shared:
            return to_host(rows.shares(slice(None))).tolist()  # type: ignore[no-any-return]
        codes: list[int] = np.asarray(to_host(rows.batch(0, rows.n_rows).y)).tolist()
        return codes if self.classes is None else [self.classes[code] for code in codes]
