"""Texts without a header: ranked runs and judgements in TREC's format, and predictions of fastText."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from verax.common.ids import id_of
from verax.common.paths import as_path, check_regular
from verax.errors import InputError, passing, show
from verax.files.formats.records import RecordStream, text_lines
from verax.files.reference_answers import ReferenceAnswers
from verax.inputs.records.classifiers import ARRAYS
from verax.inputs.records.record import FEW_DIGITS
from verax.inputs.records.texts import number_of

PREFIX = "__label__"

TREC = replace(
    ARRAYS,
    name="trec",
    what="ranked runs in TREC's format, whose scores are probabilities",
    needs="lines of: query, Q0, document, rank, score, name of the run",
    fits=lambda _: False,
    tokens=True,
    tolerance=FEW_DIGITS,
    id_field="query",
)
EACH_DOCUMENT = passing("to score every document as relevant or not", shape="relevance")
# The two events that a document of a query may be.
RELEVANT = ("not relevant", "relevant")
RELEVANCE = replace(
    ARRAYS,
    name="relevance",
    what="ranked runs in TREC's format, whose scores are probabilities that a document is relevant",
    needs="lines of: query, Q0, document, rank, probability, name of the run",
    fits=lambda _: False,
    id_field=("query", "document"),
)
FASTTEXT = replace(
    ARRAYS,
    name="fasttext",
    what="predictions of fastText (predict-prob)",
    needs="lines of: __label__name probability, one pair after the other",
    fits=lambda _: False,
    # It prints sums of up to 1.00001 per label.
    tolerance=FEW_DIGITS,
)


def is_run(lines: list[str]) -> bool:
    """Whether lines are those of a ranked run."""
    cells = [line.split() for line in lines]
    return bool(cells) and all(
        len(row) == 6 and row[1].upper() == "Q0" and row[3].isdecimal() and number_of(row[4]) is not None
        for row in cells
    )


def is_fasttext(lines: list[str]) -> bool:
    """Whether lines are predictions of fastText."""
    return bool(lines) and all(line.startswith(PREFIX) for line in lines)


def head_of(path: Path, n: int = 5) -> list[str]:
    """The first lines of a text; none where it is no text."""
    try:
        return [line for _, line in islice(text_lines(path), n)]
    except InputError:
        return []


def runs(path: Path) -> RecordStream:
    """A record per query."""
    check_regular(path)
    return RecordStream(str(path), "line", _queries(path))


def _queries(path: Path) -> Iterator[tuple[int, Any]]:
    """The documents of a query, whose lines must stand together."""
    seen: set[str] = set()
    query, start = "", 0
    classes: list[str] = []
    values: list[Any] = []
    for number, line in text_lines(path):
        cells = line.split()
        if len(cells) != 6:
            raise _refusal(path, number, f"has {len(cells)} cells", "Every line of a run must have six cells")
        if cells[0] != query:
            if classes:
                yield start, {"query": query, "classes": classes, "probabilities": values}
            query, start, classes, values = cells[0], number, [], []
            if query in seen:
                raise _refusal(
                    path, number, f"has {show(query)} again", "The lines of a query must be contiguous"
                )
            seen.add(query)
        try:
            values.append(float(cells[4]))
        except ValueError:
            raise _refusal(path, number, f"has {show(cells[4])}", "Scores must be numbers") from None
        classes.append(cells[2])
    if classes:
        yield start, {"query": query, "classes": classes, "probabilities": values}


def ranked_documents(path: Path) -> RecordStream:
    """A record per query and document: the probabilities of both events."""
    check_regular(path)
    return RecordStream(str(path), "line", _documents(path))


def _documents(path: Path) -> Iterator[tuple[int, Any]]:
    seen: set[tuple[str, str]] = set()
    for number, line in text_lines(path):
        cells = line.split()
        if len(cells) != 6:
            raise _refusal(path, number, f"has {len(cells)} cells", "Every line of a run must have six cells")
        key, value = (cells[0], cells[2]), number_of(cells[4])
        if value is None:
            raise _refusal(path, number, f"has {show(cells[4])}", "Scores must be numbers")
        if key in seen:
            raise _refusal(
                path, number, f"has {show(' '.join(key))} again", "A query must list a document once"
            )
        seen.add(key)
        events = {"classes": list(RELEVANT), "probabilities": [1.0 - value, value]}
        yield number, {"query": key[0], "document": key[1], **events}


class Judgements(ReferenceAnswers):
    """Which documents are relevant to a query; those that nobody judged are not, and are counted."""

    def __init__(self, outcomes: Mapping[str, Hashable], path: str) -> None:
        super().__init__(outcomes, path, "relevance")
        self._listed: set[str] = set()
        self._unjudged: set[str | None] = set()

    def of(self, place: int, row_id: str | None) -> Any:
        if row_id is None or row_id not in self.outcomes:
            self._unjudged.add(row_id)
            return RELEVANT[0]
        self._listed.add(row_id)
        return super().of(place, row_id)

    @property
    def notes(self) -> tuple[str, ...]:
        known = self.outcomes if isinstance(self.outcomes, Mapping) else {}
        missed = sum(value == RELEVANT[1] and key not in self._listed for key, value in known.items())
        unjudged = [f"Documents without a judgement, treated as not relevant: {len(self._unjudged):,}."]
        return (
            *(unjudged if self._unjudged else ()),
            *([f"Relevant documents that the run does not list, not scored: {missed:,}."] if missed else ()),
        )


def read_relevance(path: str) -> Judgements:
    """Whether each judged document of a query is relevant, from lines of a file of judgements (qrels)."""
    where = as_path(path)
    judged = {id_of([query, document]): RELEVANT[grade > 0] for query, document, grade in _judged(where)}
    return Judgements(judged, str(where))


def _judged(path: Path) -> Iterator[tuple[str, str, float]]:
    """The lines of a file of judgements: query, iteration, document, relevance."""
    try:
        check_regular(path)
    except InputError as error:
        raise error.replace(argument="outcomes") from None
    for number, line in text_lines(path):
        cells = line.split()
        if len(cells) != 4 or number_of(cells[3]) is None:
            raise _refusal(path, number, f"is {show(line.strip())}", "Every line must have four cells")
        yield cells[0], cells[2], float(cells[3])


def read_judgements(path: str) -> ReferenceAnswers:
    """The relevant document of every query, from lines of: query, iteration, document, relevance.

    Queries with several relevant documents have a list of them, which is no outcome.
    """
    relevant: dict[str, list[str]] = {}
    where = as_path(path)
    for query, document, grade in _judged(where):
        if grade > 0:
            relevant.setdefault(query, []).append(document)
    single: dict[str, Hashable | list[str]] = {
        query: documents[0] if len(documents) == 1 else documents for query, documents in relevant.items()
    }
    return ReferenceAnswers(single, str(where), "relevant documents")  # type: ignore[arg-type]


def predictions(path: Path) -> RecordStream:
    """A record per line; an empty line is an empty list."""
    return RecordStream(str(path), "line", _predictions(path))


def _predictions(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in text_lines(path, empty=True):
        cells = line.split()
        labels, values = cells[::2], cells[1::2]
        if len(cells) % 2 or not all(label.startswith(PREFIX) for label in labels):
            raise _refusal(
                path, number, f"is {show(line.strip())}", "Every line must have pairs of label and number"
            )
        yield number, {"classes": [label.removeprefix(PREFIX) for label in labels], "probabilities": values}


def label_of(text: Any) -> Any:
    """The label of a line of fastText's own data; several are a list, which is no outcome.

    >>> label_of("__label__cat what is this"), label_of("cat")
    ('cat', 'cat')
    """
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return text
    labels = [word.removeprefix(PREFIX) for word in text.split() if word.startswith(PREFIX)]
    return labels[0] if len(labels) == 1 else labels


def _refusal(path: Path, number: int, found: str, requirement: str) -> InputError:
    return InputError(
        requirement,
        argument="path",
        kind="file",
        found=f"line {number} {found}",
        rows=[number - 1],
        source=str(path),
    )
