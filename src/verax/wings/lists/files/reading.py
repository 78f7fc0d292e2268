"""The records of one file, read one after the other into lists with what happened."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.common.ids import id_of
from verax.errors import InputError, Remedy, passing, show
from verax.files.formats.records import RecordStream
from verax.files.listfile import ListFile
from verax.files.predictions import together
from verax.files.reference_answers import ReferenceAnswers, outcome_field, read_gold
from verax.inputs.lists.outcomes import alike, first_beyond, from_positions, names_at_positions, whole_number
from verax.inputs.lists.toplists import TopLists
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.classifiers import record_of_fields
from verax.inputs.records.record import (
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
    advised,
    failure_of,
    mapping,
    value_at,
)
from verax.inputs.records.shapes import fields_of, n_samples, read
from verax.inputs.records.texts import merger
from verax.wings.lists.files.collecting import ListCollector, Row
from verax.wings.lists.files.ranked import (
    EACH_DOCUMENT,
    FASTTEXT,
    RELEVANCE,
    TREC,
    label_of,
    read_judgements,
    read_relevance,
)
from verax.wings.lists.files.recognising import refuse_later_answers
from verax.wings.lists.files.words import (
    counted_from_one,
    none_named,
    notes,
    other_spelling,
    repeated_questions,
    some,
    taken,
)


@dataclass(frozen=True)
class KnownSource:
    """What was found out before about a source of which some records are read.

    Attributes
    ----------
    start : int
        How many records come before these.
    outcome : str or None
        The field of outcomes.
    positions : bool
        Outcomes are the positions of classes.
    gold : ReferenceAnswers or None
        Outcomes that stand elsewhere.
    """

    start: int
    outcome: str | None
    positions: bool
    gold: ReferenceAnswers | None = None


class RecordReader:
    """One file, read once; or some of the records of a source of which enough is known."""

    stream: RecordStream
    shape: Shape
    settings: Reading
    outcome: str | None
    gold: ReferenceAnswers | None
    by_position: bool

    def __init__(
        self, stream: RecordStream, shape: Shape, settings: Reading, known: KnownSource | None = None
    ) -> None:
        self.stream, self.shape, self.settings, self._known = stream, shape, settings, known
        if shape.tokens and settings.names is None and settings.n_classes is None:
            raise InputError(
                "must be stated, because no file names all tokens",
                argument="classes",
                kind="missing",
                found=f"the records are {shape.what}",
                source=stream.source,
                remedies=[Remedy("It is the size of the vocabulary, such as 128256.")],
            )
        self.gold = None
        if known is not None:
            self.gold, self.outcome = known.gold, known.outcome
        else:
            if settings.outcomes is not None:
                self.gold = self._gold(settings.outcomes)
            self.outcome = None if self.gold is not None else self._outcome_field()
        self._ids, self._columns = named_columns(settings.id), settings.columns
        fields = frozenset((*named_columns(self.outcome), *settings.beside))
        self.choices: Choices = Choices(
            settings.position or 0,
            settings.per_length,
            fields,
            settings.names,
            beside=True,
            after=settings.pattern,
            last_match=settings.last_match,
            n_classes=settings.n_classes or (len(settings.names) if settings.names else None),
        )
        # The record that is read, and which of its sampled answers.
        self._record, self._sample = 0, 0
        self.by_position = False
        # The first outcome that may count from 1, and whether another shows that they count from 0.
        self._beyond: InputError | None = None
        self._has_zero = False
        first = None if known is None else known.start
        self.collector: ListCollector = ListCollector(shape, settings, stream.source, stream.word, first)

    def _gold(self, path: str) -> ReferenceAnswers:
        settings = self.settings
        if self.shape in (TREC, RELEVANCE):
            return read_judgements(path) if self.shape is TREC else read_relevance(path)
        gold = read_gold(path, settings.target, named_columns(settings.id), settings.delimiter)
        if self.shape is FASTTEXT and not isinstance(gold.outcomes, Mapping):
            gold.outcomes = [label_of(text) for text in gold.outcomes]
        return gold

    def _outcome_field(self) -> str | None:
        """The field of outcomes; None where the shape has outcomes of its own, or they come later."""
        if self.settings.late:
            return None
        if self.settings.target is not None or self.shape.outcome_of is not None:
            return self.settings.target
        head = self.stream.head()
        record = next((record for _, record in head if not failure_of(record)), head[0][1])
        fields = [n for n, v in mapping(record).items() if n == "outcome" or isinstance(v, (str, int))]
        field = outcome_field(fields)
        if field is None:
            raise InputError(
                "must name the field that holds what happened",
                argument="outcome",
                kind="missing",
                found=f"of the first record, {fields_of(record)}",
                source=self.stream.source,
                remedies=[
                    passing("(of the records)", outcome=...),
                    passing("if it is in another file", outcomes=..., id=...),
                ],
            )
        return field

    def read(self) -> ListFile:
        """All lists with what happened."""
        if self._known is None:
            self.check_first()
        n, start = 0, 0 if self._known is None else self._known.start
        repeats = self.settings.samples == "repeats"
        for number, record in self.stream:
            self._record = start + n
            for sample in range(n_samples(record, self.shape) if repeats else 1):
                self._sample = sample
                self.collector.add(number, record, self._row)
            n += 1
        self.collector.refuse_problem()
        if self.gold is not None and self._known is None:
            self.gold.check_length(n)
        if self._beyond is not None and not self._has_zero:
            raise self._beyond
        lists, kept = self.collector.finish()
        rows = [self.collector.rows[i] for i in kept.tolist()]
        numbers = np.frombuffer(self.collector.numbers, np.int64)[kept]
        y: list[Hashable] = []
        if not self.settings.late:
            y = self._outcomes(rows, lists, numbers)
            lists, kept, rows, numbers, y = self._with_known_outcomes(lists, kept, rows, numbers, y)
            if self._known is None:
                self._refuse_other_spelling(lists, y)
        settings, counts = self.settings, self.collector.tallies(kept)
        if n_empty := int((lists.lengths == 0).sum()):
            counts["empty"] = n_empty
        groups, grouped = self._groups(rows)
        assumed = lists.n_classes if self.collector.assumed else None
        positions = lists.vocabulary if self.by_position else None
        return ListFile(
            self.stream.source,
            self.shape.name,
            lists,
            y,
            [str(row.id) for row in rows] if settings.id is not None else None,
            np.array([row.weight for row in rows]) if settings.weights is not None else None,
            groups,
            numbers,
            np.frombuffer(self.collector.places, np.int64)[kept],
            counts,
            taken(self.shape, settings, self.outcome, self.gold, positions),
            (
                *notes(counts, lists, y, settings, assumed),
                *grouped,
                *(() if self.gold is None else self.gold.notes),
            )
            if self._known is None
            else (),
            self.collector.skipped,
            outcome=self.outcome or (self.gold.column if self.gold is not None else "") or "target",
            id_field=settings.id,
            by={name: np.array([row.by[i] for row in rows]) for i, name in enumerate(settings.by)},
            questions=self._questions(rows),
        )

    def check_first(self) -> list[Hashable]:
        """Refuse to read the first token where most records answer in a later one; the first outcomes."""
        records = [record for _, record in self.stream.head()]
        given = [self._given_outcome(place, record) for place, record in enumerate(records)]
        outcomes: list[Hashable] = [value for value in given if isinstance(value, (str, int))]
        answers = outcomes if self.settings.names is None else self.settings.names
        refuse_later_answers(records, self.shape, self.settings, answers, self.stream.source)
        return outcomes

    def _given_outcome(self, place: int, record: Any) -> Any:
        """The outcome of a record as it is written; None where there is none."""
        try:
            if self.gold is not None:
                key = id_of([value_at(record, name) for name in self._ids]) if self._ids else None
                return self.gold.of(place, key)
            return None if self.outcome is None else value_at(record, self.outcome)
        except (KeyError, RecordError):
            return None

    # ---- a record ---------------------------------------------------------------------------

    def _row(self, record: Any, place: int) -> tuple[Listed, Row]:
        settings = self.settings
        choices = self.choices if not self._sample else replace(self.choices, sample=self._sample)
        # What holds the list: the record itself, or the fields that were named.
        holder = record_of_fields(record, self._columns) if self._columns else record
        listed = read(holder, self.shape, choices, pool=settings.samples == "pool")
        row = Row()
        if self._ids:
            row.id = id_of([self._field(record, name, "id") for name in self._ids])
        if not settings.late:
            row.outcome = self._outcome(record, place, row.id, listed)
            self._check_outcome(row.outcome)
        if settings.weights is not None:
            row.weight = self._number(self._field(record, settings.weights, "weights"))
        if settings.groups is not None:
            row.group = [self._field(record, name, "groups") for name in named_columns(settings.groups)]
        if settings.by:
            row.by = tuple(self._field(record, name, "by") for name in settings.by)
        row.question = self._question(record, row)
        return listed, row

    def _outcome(self, record: Any, place: int, row_id: str | None, listed: Listed) -> Any:
        """What happened, as it is written; the number of a choice where the shape has choices."""
        if self.gold is not None:
            outcome = self.gold.of(self._record, row_id)
        elif self.outcome is not None:
            outcome = self._field(record, self.outcome, "outcome")
        else:
            outcome = listed.outcome
        if self.shape.outcome_of is None or outcome is None:
            return outcome
        return self._choice(listed, outcome, place)

    def _question(self, record: Any, row: Row) -> Hashable | None:
        """What tells questions apart: what the shape says, the id of the record, or that of a batch."""
        if self.shape.question_of is not None:
            return self.shape.question_of(record)
        if row.id is not None:
            return row.id
        custom_id = mapping(record).get("custom_id")
        if isinstance(custom_id, (str, int)):
            return custom_id
        return ("record", self._record) if self.settings.samples == "repeats" else None

    def _choice(self, listed: Listed, target: Any, place: int) -> Hashable | None:
        """Which choice a target means; whether targets count from 1 is only known after the last."""
        assert self.shape.outcome_of is not None
        try:
            choice = self.shape.outcome_of(listed, target)
        except RecordError:
            if self._beyond is None and whole_number(target) == len(listed.labels):
                self._beyond = counted_from_one(target, f"record {place}", place, self.stream.source)
            raise
        self._has_zero = self._has_zero or choice == 0
        return choice

    def _field(self, record: Any, path: str, argument: str) -> Any:
        try:
            value = value_at(record, path)
        except KeyError:
            value = None
        if value is None:
            reason = {"outcome": "missing outcomes", "id": "missing ids"}.get(argument, f"missing {argument}")
            raise RecordError(
                "must name a field of every record",
                f"has no {show(path)}: {fields_of(record)}",
                reason=reason,
                kind="missing",
                argument=argument,
                remedies=[SKIP],
            )
        return value

    def _check_outcome(self, value: Any) -> None:
        if value is None:
            raise RecordError(
                "must say what happened",
                "does not",
                reason="missing outcomes",
                kind="missing",
                argument="outcome",
                remedies=[SKIP],
            )
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise RecordError(
                "must name one class",
                f"holds {show(value)}",
                reason="outcomes not among the classes",
                kind="label",
                argument="outcome",
                values=[value],
                remedies=[*([EACH_DOCUMENT] if self.shape is TREC else []), SKIP],
            )

    @staticmethod
    def _number(value: Any) -> float:
        try:
            weight = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            weight = math.nan
        if 0 <= weight < math.inf:
            return weight
        raise RecordError(
            "must hold finite numbers, not negative",
            f"holds {show(value)}",
            reason="weights that are missing, negative or not finite",
            argument="weights",
            values=[value],
            remedies=[SKIP],
        )

    def _questions(self, rows: list[Row]) -> np.ndarray[Any, Any] | None:
        """A number for the question of each row; None where groups are named, or a question is not known."""
        if self.settings.groups is not None or any(row.question is None for row in rows):
            return None
        return np.array([hash(row.question) for row in rows], np.int64)

    def _groups(self, rows: list[Row]) -> tuple[np.ndarray[Any, Any] | None, list[str]]:
        """The groups of rows, and what there is to say of them.

        Records of one question are no independent rows: where the caller names no groups, they are groups.
        """
        if self.settings.groups is not None:
            return together([np.array(kind) for kind in zip(*(row.group for row in rows), strict=True)]), []
        codes: dict[Hashable, int] = {}
        groups = [codes.setdefault(row.question, len(codes)) for row in rows]
        if self._known is not None or len(codes) == len(groups) or None in codes:
            return None, []
        return np.array(groups, np.int64), [repeated_questions(len(groups), len(codes))]

    # ---- all of them ------------------------------------------------------------------------

    def _outcomes(self, rows: list[Row], lists: TopLists, numbers: Any) -> list[Hashable]:
        """What happened, as the lists call their classes."""
        given = [row.outcome for row in rows]
        vocabulary = lists.vocabulary
        if self.shape.positions:
            return given if vocabulary is None else [vocabulary.name(place) for place in given]  # type: ignore[arg-type]
        called = merger(self.settings.merge_variants)
        if called is not None:
            given = [called(value) for value in given]
        if vocabulary is None:
            return given
        y = alike(given, vocabulary)
        ordered = self.settings.names is not None or (vocabulary.complete and self.collector.same_order)
        beyond = first_beyond(y, vocabulary) if ordered and vocabulary.complete else None
        if beyond is not None:
            where = f"{self.stream.word} {numbers[beyond]}"
            raise counted_from_one(given[beyond], where, beyond, self.stream.source)
        if self._known is not None:
            return names_at_positions(y, vocabulary) if self._known.positions else y
        # The order of the classes is known where the caller states it, or all lists have it.
        if ordered:
            self.by_position, y = from_positions(y, vocabulary)
        return y

    def _with_known_outcomes(
        self, lists: TopLists, kept: Any, rows: list[Row], numbers: Any, y: list[Any]
    ) -> Any:
        """Refuse or leave out rows whose outcome is none of the classes, where all are known."""
        vocabulary = lists.vocabulary
        if vocabulary is None or not vocabulary.complete:
            return lists, kept, rows, numbers, y
        known = set(vocabulary.names)
        bad = [i for i, value in enumerate(y) if value not in known]
        if not bad:
            return lists, kept, rows, numbers, y
        if self.collector.assumed:
            raise InputError(
                "must be stated where lists do not name all classes",
                argument="classes",
                kind="missing",
                found=f"{self.stream.word} {numbers[bad[0]]} has {show(y[bad[0]])}, which no list names",
                rows=[self.collector.places[int(kept[i])] for i in bad[:3]],
                values=[y[i] for i in bad[:3]],
                count=len(bad),
                source=self.stream.source,
                remedies=[
                    *other_spelling(y, vocabulary, self.settings.merge_variants),
                    Remedy("Give their number, or the names of all."),
                ],
            )
        if self.settings.invalid != "skip" or (len(bad) == len(y) and self._known is None):
            raise InputError(
                "must be among the classes of the lists",
                argument="y",
                kind="label",
                found=f"{self.stream.word} {numbers[bad[0]]} has {show(y[bad[0]])}, and the classes are "
                f"{some(vocabulary.names)}",
                rows=[self.collector.places[int(kept[i])] for i in bad[:3]],
                values=[y[i] for i in bad[:3]],
                count=len(bad),
                source=self.stream.source,
                remedies=advised(
                    [*other_spelling(y, vocabulary, self.settings.merge_variants), SKIP],
                    len(bad),
                    self.collector.n_given,
                ),
            )
        self.collector.leave_out(kept[bad].tolist(), "outcomes not among the classes")
        good = np.setdiff1d(np.arange(len(y)), bad)
        chosen = good.tolist()
        return lists[good], kept[good], [rows[i] for i in chosen], numbers[good], [y[i] for i in chosen]

    def _refuse_other_spelling(self, lists: TopLists, y: list[Any]) -> None:
        """Refuse outcomes of which no list names any, though some list has one in another spelling."""
        vocabulary = lists.vocabulary
        if vocabulary is None or vocabulary.complete or not none_named(y, vocabulary):
            return
        remedies = other_spelling(y, vocabulary, self.settings.merge_variants)
        if remedies:
            raise InputError(
                "must name classes as the lists do",
                argument="y",
                kind="label",
                found=f"no list names any of the {len(y):,} outcomes, such as {show(y[0])}; they name "
                f"{some(vocabulary.names)}",
                rows=[0],
                values=[y[0]],
                source=self.stream.source,
                remedies=remedies,
            )
