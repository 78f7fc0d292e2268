"""Which shape a file of lists has, by its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.common.checks import check_choice
from verax.common.paths import refusing_wrong_names
from verax.errors import InputError, passing, show
from verax.files.formats.records import RecordStream, endings_of_forms, open_stream
from verax.files.formats.tables import FORMATS, SourceTable
from verax.files.formats.texts import ending
from verax.inputs.reading import Reading
from verax.inputs.records.classifiers import FLAT, MAPPED, record_of_fields
from verax.inputs.records.record import (
    SKIP,
    Choices,
    RecordError,
    Shape,
    body_of,
    failed,
    failure_of,
    mapping,
)
from verax.inputs.records.responses import NO_LOGPROBS
from verax.inputs.records.shapes import SHAPES, n_samples, read, recognise, unrecognised
from verax.inputs.records.texts import merger
from verax.wings.lists.files.ranked import (
    FASTTEXT,
    RELEVANCE,
    RELEVANT,
    TREC,
    head_of,
    is_fasttext,
    is_run,
    predictions,
    ranked_documents,
    runs,
)
from verax.wings.lists.files.tables import (
    LONG,
    PAIRS,
    WIDE,
    is_long,
    is_paired,
    long_table,
    paired_table,
    wide_table,
)

# How many records are looked at, and how many of their last tokens.
_RECORDS, _TOKENS = 25, 1000


def refuse_later_answers(
    records: Sequence[Any], shape: Shape, settings: Reading, answers: Iterable[Hashable], source: str
) -> None:
    """Refuse to read the first token where more records have an answer as a later one.

    A position that the caller states is taken as it is.
    """
    if settings.position is not None or settings.after is not None or shape.generated is None:
        return
    called = merger(settings.merge_variants or "space")
    assert called is not None
    known = {called(answer) for answer in answers}
    first, later, shown = 0, Counter[tuple[int, int]](), None
    looked_at = records[:_RECORDS]
    for record in looked_at:
        n = len(shape.generated(body_of(record) if shape.unwrapped else record))
        likeliest = _likeliest(record, shape, 0)
        if n < 2 or likeliest is None or called(likeliest) in known:
            first += likeliest is not None and called(likeliest) in known
            continue
        places = range(n - 1, max(0, n - _TOKENS), -1)
        place = next((i for i in places if called(_likeliest(record, shape, i)) in known), None)
        if place is not None:
            later[place, place - n] += 1
            shown = likeliest if shown is None else shown
    n_later = sum(later.values())
    if n_later > first:
        raise InputError(
            "must be the token that holds the answer",
            argument="position",
            kind="missing",
            found=f"in {n_later} of the first {len(looked_at)} records the first token is no answer, such as "
            f"{show(shown)}, and a later one is",
            source=source,
            remedies=[
                *_remedies(later),
                passing("to read the token after a text, such as 'Answer:'", after=...),
                passing("to score the first token all the same", position=0),
            ],
        )


def refuse_without_logprobs(
    records: Sequence[tuple[int, Any]], shape: Shape, settings: Reading, word: str, source: str
) -> None:
    """Refuse responses none of which has log-probabilities, before anything else is asked about them.

    Several sampled answers have shares, which take their place where the caller pools samples.
    """
    several = shape.answer_text is not None and any(n_samples(record, shape) > 1 for _, record in records)
    if several and settings.samples == "pool":
        return
    lacking = [
        (place, number, problem)
        for place, (number, record) in enumerate(records)
        if not failure_of(record) and (problem := _no_logprobs(record, shape)) is not None
    ]
    if lacking and len(lacking) == sum(not failure_of(record) for _, record in records):
        place, number, problem = lacking[0]
        every = f"{word} {number} {problem.found}"
        raise InputError(
            problem.requirement,
            argument=problem.argument,
            kind=problem.kind,
            found=every if len(lacking) == 1 else f"{every}, as do all {len(lacking)} records looked at",
            rows=[place],
            source=source,
            remedies=[
                *(remedy for remedy in problem.remedies if remedy is not SKIP),
                *([passing("to read the shares of sampled answers", samples="pool")] if several else []),
            ],
        )


def _no_logprobs(record: Any, shape: Shape) -> RecordError | None:
    """What is wrong with a response that has no log-probabilities; None where it has some."""
    if shape.generated is None:
        return None
    try:
        read(record, shape, Choices())
    except RecordError as problem:
        return problem if problem.reason == NO_LOGPROBS else None
    return None


def _likeliest(record: Any, shape: Shape, position: int) -> Hashable | None:
    """The likeliest token at a position; None where there is none."""
    try:
        listed = read(record, shape, Choices(position))
    except RecordError:
        return None
    return max(zip(listed.values, listed.labels, strict=True), key=lambda pair: pair[0], default=(0, None))[1]


def _remedies(later: Counter[tuple[int, int]]) -> list[Any]:
    """The position that most answers have, counted from either end."""
    n = sum(later.values())
    for end, words in ((0, "(counted from 0)"), (1, "(counted from the last, which is -1)")):
        places = Counter[int]()
        for both_ends, times in later.items():
            places[both_ends[end]] += times
        place, times = places.most_common(1)[0]
        if 2 * times > n:
            return [passing(f"{words}, where {times} of these {n} records answer", position=place)]
    return []


# Every shape by its name: of records, and of texts and tables.
ALL_SHAPES = {**SHAPES, **{shape.name: shape for shape in (LONG, WIDE, PAIRS, TREC, RELEVANCE, FASTTEXT)}}
_JSON = (".jsonl", ".ndjson", ".json")


def open_shaped(path: Path, settings: Reading) -> tuple[RecordStream, Shape, Reading]:
    """The records of a file, their shape, and the settings with what the file itself says."""
    stream, shape, settings = _opened(path, settings)
    head = stream.head()
    if not head:
        raise InputError(f"{stream.source} has no records", argument="path", kind="file")
    if all(failure_of(record) for _, record in head):
        # Their shape is not known, and there may be no answer at all.
        raise failed(head[0][1]).at(f"{stream.word} {head[0][0]}", 0, stream.source)
    shape = shape or shape_of_records(stream, settings)
    refuse_without_logprobs(head, shape, settings, stream.word, stream.source)
    return stream, shape, settings


def _opened(path: Path, settings: Reading) -> tuple[RecordStream, Shape | None, Reading]:
    """The records of a file, with their shape unless it is to be recognised by them."""
    shape = stated_shape(settings) or _by_text(path, settings)
    if shape is LONG:
        stream, settings = long_table(path, settings)
        return stream, LONG, settings
    if shape is WIDE:
        stream, settings = wide_table(path, settings)
        return stream, WIDE, settings
    if shape is PAIRS:
        stream, settings = paired_table(path, settings)
        return stream, PAIRS, settings
    if shape is RELEVANCE:
        groups = settings.groups or "query"
        settings = replace(settings, id=RELEVANCE.id_field, groups=groups, classes=RELEVANT)
        return ranked_documents(path), RELEVANCE, settings
    if shape is TREC:
        return runs(path), TREC, replace(settings, id=settings.id or TREC.id_field)
    if shape is FASTTEXT:
        return predictions(path), FASTTEXT, settings
    return open_stream(path, settings), shape, settings


def _is_text(path: Path) -> bool:
    """Whether a file is neither JSON nor columnar nor one that a form of a wing unpacks, by its name."""
    return not path.is_dir() and ending(path) not in (*_JSON, *_COLUMNAR, *endings_of_forms())


_COLUMNAR = tuple(suffix for suffix, kind in FORMATS.items() if kind in ("Parquet", "Arrow", "NPZ", "NPY"))


def _by_text(path: Path, settings: Reading) -> Shape | None:
    """A shape that is not one of records; None for all others."""
    if _is_text(path):
        lines = head_of(path)
        if is_run(lines):
            return TREC
        if is_fasttext(lines):
            return FASTTEXT
    tabular = path.is_dir() or ending(path) in FORMATS
    if not tabular or ending(path) in _JSON:
        return None
    if is_long(path, settings):
        return LONG
    return PAIRS if not path.is_dir() and is_paired(path, settings) else None


def shape_of_records(stream: RecordStream, settings: Reading) -> Shape:
    """The shape of the first record that has one."""
    stated = stated_shape(settings)
    if stated is not None:
        return stated
    head = stream.head()
    if settings.columns:
        head = [(number, _record_of_fields(record, settings.columns)) for number, record in head]
    shape = recognise([record for _, record in head])
    if shape is None and settings.names is not None:
        # A field per class: what is in it may be a number or a text.
        named = all(set(settings.names) <= mapping(record).keys() for _, record in head)
        shape = MAPPED if named else None
    if shape is None:
        number, record = next(((n, r) for n, r in head if not failure_of(r)), head[0])
        raise unrecognised(record, f"{stream.word} {number}", stream.source)
    return shape


def _record_of_fields(record: Any, columns: tuple[str, ...]) -> Any:
    try:
        return record_of_fields(record, columns)
    except RecordError:
        return None


def _may_hold_records(path: Path, settings: Reading) -> bool:
    """Whether a file is JSON, or has a column that holds more than one value per row."""
    if not path.is_dir() and ending(path) not in _COLUMNAR:
        return True
    try:
        schema = SourceTable.of_first(path, settings).schema
    except InputError:
        return False
    return any(pa.types.is_nested(field.type) for field in schema)


def stated_shape(settings: Reading) -> Shape | None:
    """The shape that the caller names."""
    if settings.shape is None:
        return None
    check_choice("shape", settings.shape, tuple(ALL_SHAPES))
    return ALL_SHAPES[settings.shape]


def has_lists(path: Path, settings: Reading) -> bool:
    """Whether a file holds lists, by a look at its first records; a file of columns for each class does not.

    Flat log-probabilities look like logits, if these are asked for.
    """
    with refusing_wrong_names(path):
        if not path.exists() or ending(path) in (".npz", ".npy"):
            return False
    if stated_shape(settings) is not None or _by_text(path, settings) is not None:
        return True
    if _is_text(path) or not _may_hold_records(path, settings):
        return False
    try:
        head = open_stream(path, settings).head(20)
    except InputError:
        return False
    if ending(path) == ".json" and len(head) == 1 and _is_columns(head[0][1]):
        return False
    shape = recognise([record for _, record in head])
    return shape is not None and not (shape is FLAT and settings.logits)


def _is_columns(record: Any) -> bool:
    """Whether a JSON object holds columns: lists of one length, or mappings of the same row labels."""
    values = list(record.values()) if isinstance(record, dict) else []
    if len(values) < 2:
        return False
    if all(isinstance(value, dict) for value in values):
        return bool(values[0]) and all(value.keys() == values[0].keys() for value in values)
    alike = all(isinstance(value, list) and len(value) == len(values[0]) for value in values)
    return alike and not any(isinstance(cell, (list, dict)) for value in values for cell in value)
