"""Which shape a file of lists has, by its content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.common.checks import check_choice
from verax.common.paths import refusing_wrong_names
from verax.errors import InputError
from verax.files.formats.tables import FORMATS, SourceTable
from verax.files.lists.longform import LONG, is_long, long_table
from verax.files.lists.paired_columns import PAIRS, is_paired, paired_table
from verax.files.lists.placing import refuse_without_logprobs
from verax.files.lists.ranked import (
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
from verax.files.lists.streams import RecordStream, ending, open_stream
from verax.files.lists.wide import WIDE, wide_table
from verax.files.logs.containers import EVAL
from verax.inputs.reading import Reading
from verax.inputs.records.classifiers import FLAT, MAPPED, held
from verax.inputs.records.record import RecordError, Shape, failed, failure_of, mapping
from verax.inputs.records.shapes import SHAPES, recognise, unrecognised

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
    """Whether a file is neither JSON nor columnar nor an archive of JSON, by its name."""
    return not path.is_dir() and ending(path) not in (*_JSON, *_COLUMNAR, EVAL)


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
        head = [(number, _held(record, settings.columns)) for number, record in head]
    found = recognise([record for _, record in head])
    if found is None and settings.names is not None:
        # A field per class: what is in it may be a number or a text.
        named = all(set(settings.names) <= mapping(record).keys() for _, record in head)
        found = MAPPED if named else None
    if found is None:
        number, record = next(((n, r) for n, r in head if not failure_of(r)), head[0])
        raise unrecognised(record, f"{stream.word} {number}", stream.source)
    return found


def _held(record: Any, columns: tuple[str, ...]) -> Any:
    try:
        return held(record, columns)
    except RecordError:
        return None


def _may_hold_records(path: Path, settings: Reading) -> bool:
    """Whether a file is JSON, or has a column that holds more than one value per row."""
    if not path.is_dir() and ending(path) not in _COLUMNAR:
        return True
    try:
        schema = SourceTable.of_file(path, settings).schema
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
    found = recognise([record for _, record in head])
    return found is not None and not (found is FLAT and settings.logits)


def _is_columns(record: Any) -> bool:
    """Whether a JSON object holds columns: lists of one length, or mappings of the same row labels."""
    values = list(record.values()) if isinstance(record, dict) else []
    if len(values) < 2:
        return False
    if all(isinstance(value, dict) for value in values):
        return bool(values[0]) and all(value.keys() == values[0].keys() for value in values)
    alike = all(isinstance(value, list) and len(value) == len(values[0]) for value in values)
    return alike and not any(isinstance(cell, (list, dict)) for value in values for cell in value)
