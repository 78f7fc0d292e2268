"""Lists gathered record by record: merged, divided by their sums, checked, counted."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from verax.common.checks import as_float
from verax.errors import SHOWN_ROWS, InputError, Kind, Remedy, join, passing, show
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary, in_order
from verax.inputs.reading import Reading
from verax.inputs.records.record import SKIP, Listed, RecordError, Shape, advised, repeated
from verax.inputs.records.texts import merger
from verax.inputs.skipping import REASONS, Skipped
from verax.inputs.validity import Rescaled, Unity

# What records say about their lists, and what is counted of every list.
FLAGS = ("alone", "unlikely", "missing", "from_text", "unconditional", "several", "blank", "counted")
COUNTS = (
    *FLAGS,
    *("lists_merged", "entries_merged", "probability_merged"),
    *("entries_omitted", "probability_omitted"),
)
_flags = attrgetter(*FLAGS)
# How many further records are read after the first invalid one, to know how many there are.
_FURTHER = 10_000
RESCALE = passing("to rescale lists of all classes", normalize=True)


@dataclass(slots=True)
class Row:
    """What a record holds besides its list."""

    outcome: Hashable | None = None
    id: str | None = None
    weight: float | None = None
    group: Sequence[Hashable] = ()
    by: tuple[Any, ...] = ()
    question: Hashable | None = None


class ListCollector:
    """Lists as they come, in flat arrays; memory is that of the lists.

    Parameters
    ----------
    shape : Shape
    settings : Reading
    source, word : str
        The file, and what its records are called in messages: "line", "row", "item".
    first : int, optional
        Number of records before these, which are a part of all: what only all of them tell is not asked.

    Attributes
    ----------
    rows : list of Row
        What the records hold besides the lists that were kept.
    numbers, places : array
        Where these are in the file: the numbers of their lines, and which records they are, from 0.
    same_order : bool
        All lists name the same classes in the same order.
    """

    shape: Shape
    settings: Reading
    source: str
    word: str
    numbers: array[int]
    places: array[int]

    def __init__(
        self, shape: Shape, settings: Reading, source: str, word: str, first: int | None = None
    ) -> None:
        self.shape, self.settings, self.source, self.word = shape, settings, source, word
        self._first, self._part = first or 0, first is not None
        # What was noted of lists that are not as usual, by their places in `rows`.
        self._noted: dict[int, dict[str, float]] = {}
        self._now: dict[str, float] = {}
        # The sums that lists were divided by; 1 for those that were not.
        self._divisors: np.ndarray[Any, Any] = np.zeros(0)
        self._lacking: np.ndarray[Any, Any] = np.zeros(0, np.bool_)
        self.rows: list[Row] = []
        self.numbers, self.places = array("q"), array("q")
        self._given = 0
        self._codes, self._values, self._lengths = array("q"), array("d"), array("q")
        self._called = merger(settings.merge_variants)
        self._code: dict[Hashable, int] = {}
        self._fixed = settings.names is not None
        # The largest number of choices.
        self._most = settings.n_classes if settings.names is None else len(settings.names)
        for name in settings.names or ():
            self._code.setdefault(self._called(name) if self._called else name, len(self._code))
        if self._fixed and len(self._code) < len(settings.names or ()):
            raise InputError(
                "must stay different when variants are merged",
                argument="classes",
                kind="label",
                found=f"{show(list(settings.names or ()))} become {show(list(self._code))}",
            )
        self._texts: tuple[str, ...] | None = None
        self._same_texts = True
        self._labels: list[Any] | None = None
        self.same_order: bool = True
        # Whether the names that occur are taken as all classes, though no list names all of them.
        self.assumed: bool = False
        self._problem: tuple[RecordError, int, int] | None = None
        self._failed = 0
        self._skipped: list[int] = []
        self._reasons: Counter[str] = Counter()

    # ---- record by record -------------------------------------------------------------------

    def add(self, number: int, record: Any, read: Callable[[Any, int], tuple[Listed, Row]]) -> None:
        """Read a record and keep its list; what is wrong with it is an error, or it is left out."""
        place = self._first + self._given
        self._given += 1
        self._now = {}
        try:
            listed, row = read(record, place)
            labels, values = self._prepared(listed)
            codes, values = self._coded(labels, values)
        except RecordError as problem:
            if self.settings.invalid == "skip":
                self._skip([place], problem.reason)
                return
            self._problem = self._problem or (problem, number, place)
            self._failed += 1
            if place - self._problem[2] >= _FURTHER:
                self.refuse_problem()
            return
        self._note_order(listed, labels)
        if self._now:
            self._noted[len(self.rows)] = self._now
        self._codes.extend(codes)
        self._values.extend(values)
        self._lengths.append(len(codes))
        self.numbers.append(number)
        self.places.append(place)
        self.rows.append(row)

    def refuse_problem(self) -> None:
        """Refuse the first invalid record, where there is one; how many there are decides what is advised."""
        if self._problem is None:
            return
        problem, number, place = self._problem
        where = f"{self.word} {number}"
        raise problem.at(where, place, self.source, count=self._failed, of=self._given) from None

    def _prepared(self, listed: Listed) -> tuple[list[Any], list[float]]:
        labels, values = listed.labels, listed.values
        if listed.missing and self.settings.missing != "omit":
            raise RecordError(
                "must give every class a number",
                f"has {listed.missing} without one",
                reason="missing probabilities",
                kind="missing",
                remedies=[passing("to leave out such entries", missing="omit"), SKIP],
            )
        flags = _flags(listed)
        if any(flags):
            self._now.update(zip(FLAGS, flags, strict=True))
        if self._called is not None:
            return self._merged(labels, values)
        if len(set(labels)) < len(labels):
            raise repeated(labels)
        return labels, values

    def _note_order(self, listed: Listed, labels: list[Any]) -> None:
        """Note whether the classes, or the texts of choices, are the same as in the first record."""
        if self.same_order:
            self._labels = labels if self._labels is None else self._labels
            self.same_order = labels == self._labels
        if self._same_texts:
            self._texts = listed.names if self._texts is None else self._texts
            self._same_texts = self._texts is not None and self._texts == listed.names

    def _merged(self, labels: list[Any], values: list[float]) -> tuple[list[Any], list[float]]:
        assert self._called is not None
        whole: dict[Hashable, float] = {}
        largest: dict[Hashable, float] = {}
        for label, value in zip(labels, values, strict=True):
            name = self._called(label)
            whole[name] = whole.get(name, 0.0) + value
            largest[name] = max(largest.get(name, value), value)
        if len(whole) < len(labels):
            self._now["lists_merged"] = 1
            self._now["entries_merged"] = len(labels) - len(whole)
            self._now["probability_merged"] = sum(whole.values()) - sum(largest.values())
        return list(whole), list(whole.values())

    def _coded(self, labels: list[Any], values: list[float]) -> tuple[list[int], list[float]]:
        """The codes of classes, and their probabilities."""
        known = self._code
        if self.shape.positions:
            if self._most is not None and len(labels) > self._most:
                raise _more_choices(len(labels), self._most)
            return labels, values
        if not self._fixed:
            return [known.setdefault(label, len(known)) for label in labels], values
        codes = [known.get(label, -1) for label in labels]
        if -1 not in codes:
            return codes, values
        if self.settings.others != "omit":
            raise RecordError(
                "must list classes that are among the names",
                f"lists {show(labels[codes.index(-1)])}",
                reason="lists with a class that is not among the names",
                kind="label",
                values=[labels[codes.index(-1)]],
                remedies=[passing("to leave out such entries", others="omit"), SKIP],
            )
        listed = [place for place, code in enumerate(codes) if code >= 0]
        self._now["entries_omitted"] = len(codes) - len(listed)
        self._now["probability_omitted"] = sum(values) - sum(values[place] for place in listed)
        return [codes[place] for place in listed], [values[place] for place in listed]

    @property
    def n_given(self) -> int:
        """The number of records so far."""
        return self._given

    def _skip(self, places: Sequence[int], reason: str) -> None:
        self._skipped.extend(places)
        self._reasons[reason] += len(places)

    # ---- all together -----------------------------------------------------------------------

    def finish(self) -> tuple[TopLists, np.ndarray[Any, Any]]:
        """All lists, and which of the records in `rows` they are."""
        codes = np.frombuffer(self._codes, np.int64) if self._codes else np.zeros(0, np.int64)
        values = np.frombuffer(self._values, np.float64) if self._values else np.zeros(0)
        values = values.copy()
        lengths = np.frombuffer(self._lengths, np.int64) if self._lengths else np.zeros(0, np.int64)
        row_of = np.repeat(np.arange(lengths.size), lengths)
        total = np.bincount(row_of, values, minlength=lengths.size)
        m, vocabulary = self._classes(lengths, total)
        if codes.size and self._code and vocabulary is not None:
            codes = vocabulary.codes(list(self._code))[codes]
        self._normalize(values, row_of, total, lengths, m)
        bad = self._check(values, row_of, total, lengths, m)
        kept = np.flatnonzero(~bad)
        if not kept.size and not self._part:
            problem = str(self.skipped) if self._given else "it has none"
            raise InputError(
                "must hold at least one valid list",
                argument="rows",
                kind="length",
                found=problem,
                source=self.source,
            )
        entries = ~bad[row_of]
        lists = TopLists(
            codes[entries],
            values[entries],
            offsets_of(lengths[kept]),
            m,
            vocabulary=vocabulary,
            tolerance=self.shape.tolerance,
            choices=lengths[kept] if self.shape.positions else None,
        )
        return lists, kept

    def _classes(
        self, lengths: np.ndarray[Any, Any], total: np.ndarray[Any, Any]
    ) -> tuple[int, ClassVocabulary | None]:
        """How many classes there are, and what they are called."""
        settings = self.settings
        if self.shape.positions:
            return self._choices(lengths)
        if self._fixed:
            return len(self._code), ClassVocabulary(self._code, complete=True)
        if settings.n_classes is not None:
            self._check_number(settings.n_classes)
            return settings.n_classes, ClassVocabulary(self._code, complete=False)
        m = len(self._code)
        whole = (lengths == m) | (np.abs(total - 1) <= self.shape.tolerance)
        if m < 2 or not bool(whole.all()):
            place = int(np.argmin(whole)) if whole.size else 0
            raise InputError(
                "must be stated where lists do not name all classes",
                argument="classes",
                kind="missing",
                found=f"{self.word} {self.numbers[place] if self.numbers else 0} names "
                f"{int(lengths[place]) if lengths.size else 0} of the {m} that occur",
                source=self.source,
                remedies=[Remedy("Give their number, or the names of all.")],
            )
        self.assumed = not bool((lengths == m).all())
        # Lists in the order of their probabilities do not tell in which order the classes are.
        return m, ClassVocabulary(self._code if self.same_order else in_order(self._code), complete=True)

    def _check_number(self, m: int) -> None:
        """Refuse fewer classes than the lists name."""
        names = list(self._code)
        if len(names) <= m:
            return
        named = join([*map(show, names[:6]), *([f"{len(names) - 6:,} more"] if len(names) > 6 else [])])
        raise InputError(
            f"must be at least {len(names):,}, the number of classes that the lists name",
            argument="classes",
            kind="length",
            found=f"it is {m:,}, and they name {named}",
            values=[m],
            source=self.source,
        )

    def _choices(self, lengths: np.ndarray[Any, Any]) -> tuple[int, ClassVocabulary | None]:
        """Classes that are the positions of choices, called by their texts where these never change."""
        settings = self.settings
        names = settings.names
        m = settings.n_classes or (int(lengths.max(initial=2)) if names is None else len(names))
        if (
            names is None
            and not self._part
            and self._same_texts
            and self._texts is not None
            and len(self._texts) == m
        ):
            texts = tuple(text.strip() for text in self._texts)
            names = texts if len(set(texts)) == m else None
        return m, None if names is None else ClassVocabulary(names, complete=True)

    def _normalize(self, values: Any, row_of: Any, total: Any, lengths: Any, m: int) -> None:
        """Divide by their sums lists that name all classes; where other entries are left out, all lists.

        What is left out then is no part of the question, and must not go to a class that a list lacks.
        """
        self._divisors, self._lacking = np.ones(lengths.size), np.zeros(lengths.size, np.bool_)
        if not self.settings.normalize:
            return
        lacking = lengths < as_float(m)
        off = ~lacking & (np.abs(total - 1) > Unity(self.shape.tolerance).limit)
        if self._fixed and self.settings.others == "omit":
            self._lacking = lacking
            off |= lacking
        off &= np.isfinite(total) & (total > 0)
        self._divisors = np.where(off, total, 1.0)
        values /= self._divisors[row_of]
        total[off] = 1.0

    def _check(
        self, values: Any, row_of: Any, total: Any, lengths: Any, m: int
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which lists are none, for a reason each; an error unless such are left out."""
        limit = Unity(self.shape.tolerance).limit
        outside = ~((values >= 0) & (values <= 1 + limit))
        odd = np.zeros(lengths.size, np.bool_)
        odd[row_of[outside]] = True
        shown = np.zeros(lengths.size)
        shown[row_of[outside][::-1]] = values[outside][::-1]
        whole = lengths >= as_float(m)
        unequal = ~odd & whole & (np.abs(total - 1) > limit)
        more = ~odd & ~whole & (total > 1 + limit)
        self._refuse(
            odd, shown, "must lie between 0 and 1", "value", *([RESCALE] if whole[odd].any() else [])
        )
        self._refuse(unequal, total, f"of a list of all {m:,} classes must sum to 1", "sum", RESCALE)
        self._refuse(more, total, "of a list must not sum to more than 1", "sum")
        return np.asarray(odd | more | unequal)

    def _refuse(self, mask: Any, values: Any, requirement: str, kind: Kind, *remedies: Remedy) -> None:
        """Name the lists that break a requirement, or leave them out."""
        rows = np.flatnonzero(mask)
        if not rows.size:
            return
        places = np.frombuffer(self.places, np.int64)[rows]
        if self.settings.invalid == "skip":
            self._skip(places.tolist(), REASONS["p", "sum" if kind == "sum" else "sign"])
            return
        some = rows[:SHOWN_ROWS].tolist()
        verb = "sums to" if kind == "sum" else "holds"
        where = [f"{self.word} {self.numbers[row]} {verb} {show(float(values[row]))}" for row in some]
        more = f" ({rows.size:,} in all)" if rows.size > len(some) else ""
        raise InputError(
            requirement,
            argument="confidences",
            kind=kind,
            found=join(where) + more,
            rows=places[:SHOWN_ROWS].tolist(),
            values=[float(values[row]) for row in some],
            count=int(rows.size),
            source=self.source,
            remedies=advised([*remedies, SKIP], int(rows.size), self._given),
        )

    def tallies(self, kept: np.ndarray[Any, Any]) -> dict[str, float]:
        """How often what was done to these lists, by their places in `rows`; nothing that was not."""
        noted = [self._noted[row] for row in kept.tolist() if row in self._noted]
        totals = {name: math.fsum(counted.get(name, 0.0) for counted in noted) for name in COUNTS}
        counts = {
            name: total if name.startswith("probability") else int(total)
            for name, total in totals.items()
            if total
        }
        divided = Rescaled.of(self._divisors[kept], Unity(self.shape.tolerance))
        if divided.count:
            counts |= {"divided": divided.count, "smallest_sum": divided.low, "largest_sum": divided.high}
        lacking = int(np.count_nonzero(self._lacking[kept]))
        counts |= {"lacking": lacking} if lacking else {}
        return counts

    def leave_out(self, rows: Sequence[int], reason: str) -> None:
        """Count records as left out, by their places in `rows`."""
        self._skip([self.places[row] for row in rows], reason)

    @property
    def skipped(self) -> Skipped | None:
        """What was left out; None unless that was asked for."""
        if self.settings.invalid != "skip":
            return None
        places = tuple(sorted(set(self._skipped)))
        return Skipped(self._given, len(places), places, dict(self._reasons))


def _more_choices(n: int, most: int) -> RecordError:
    """The error about a question with more choices than there are classes."""
    return RecordError(
        f"must have at most {most} choices, the number of classes",
        f"has {n}",
        reason="more choices than there are classes",
        kind="length",
        remedies=[SKIP],
    )
