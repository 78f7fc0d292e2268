"""Files of Inspect: archives of samples, and JSON documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from verax.common import strictjson
from verax.errors import InputError, show
from verax.files.formats.archives import Archive
from verax.files.formats.texts import json_document
from verax.inputs.records.record import mapping, sequence
from verax.wings.evals.reading.graded import LogFormat, LogRecords, name_or_none
from verax.wings.evals.reading.inspect import is_sample, read_sample
from verax.wings.evals.reading.look import Look, no_log

EVAL = ".eval"
# What is read of a sample for its grades. Its events and messages are by far the most of it.
_FIELDS = (
    *("id", "epoch", "input", "choices", "target", "output"),
    *("scores", "score", "metadata", "error", "limit"),
)


def _found(look: Look) -> bool:
    return look.ending == EVAL or look.is_document_of("version", "status", "eval")


def samples_of(path: Path) -> Iterator[Any] | None:
    """The samples of an Inspect log as records with lists; None for any other file."""
    try:
        if not _found(Look(path)):
            return None
    except (InputError, OSError):
        return None
    return (record for _, record in _opened(path, None).records)


def open_inspect(path: Path) -> LogRecords:
    """The samples of an archive, or of a JSON document, as far as grades need them."""
    return _opened(path, _FIELDS)


def _opened(path: Path, fields: Collection[str] | None) -> LogRecords:
    if path.suffix.lower() == EVAL:
        archive = Archive(path)
        heads = [name for name in ("header.json", "_journal/start.json") if name in archive.names]
        if not heads:
            raise no_log(path, "it has neither header.json nor _journal/start.json")
        header = _json(next(archive.read((heads[0],)))[1], path, heads[0])
        names = tuple(name for name in archive.names if name.startswith("samples/"))
        records: Iterable[tuple[int, Any]] = enumerate(
            _json(content, path, name, fields) for name, content in archive.read(names)
        )
        n = len(names)
    else:
        header = json_document(path)
        samples = sequence(mapping(header).get("samples"))
        records, n = enumerate(samples), len(samples)
    about = mapping(mapping(header).get("eval"))
    if not about:
        raise no_log(path, "its header has no field eval")
    if not n:
        raise no_log(path, f"it has no samples (its status is {show(mapping(header).get('status'))})")
    return LogRecords(
        str(path),
        "sample",
        INSPECT,
        records,
        model=name_or_none(about.get("model")),
        task=name_or_none(about.get("task")),
        notes=_incomplete(mapping(header), n),
    )


def _incomplete(header: Mapping[Any, Any], n: int) -> tuple[str, ...]:
    """The sentence about a run that ended early: samples that are not there are not counted anywhere."""
    about = mapping(header.get("eval"))
    planned = mapping(about.get("dataset")).get("samples")
    epochs = mapping(about.get("config")).get("epochs")
    limited = mapping(about.get("config")).get("limit")
    wanted = (
        planned * (epochs if type(epochs) is int else 1) if type(planned) is int and limited is None else None
    )
    status = header.get("status")
    if status in ("success", None) and (wanted is None or n >= wanted):
        return ()
    of = "" if wanted is None or n >= wanted else f" of {wanted:,}"
    return (f"The run did not finish (status {status or 'started'}): the log has {n:,}{of} samples.",)


def _json(content: bytes, path: Path, name: str, fields: Collection[str] | None = None) -> Any:
    try:
        return strictjson.parse(content) if fields is None else strictjson.parse_fields(content, fields)
    except strictjson.JsonError as error:
        raise no_log(path, f"member {name[:80]!r} is no JSON ({str(error)[:80]})") from None


INSPECT = LogFormat("inspect", "an Inspect log", _found, open_inspect, is_sample, read_sample, read_sample)
