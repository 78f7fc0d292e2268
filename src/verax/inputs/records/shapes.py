"""All shapes of records, and which of them a file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verax.errors import InputError, Remedy, show
from verax.inputs.records.answers import pooled, read_answer
from verax.inputs.records.classifiers import ARRAYS, FLAT, MAPPED, PIPELINE, TOKENS
from verax.inputs.records.harness import HARNESS
from verax.inputs.records.inspect import INSPECT_TOKENS
from verax.inputs.records.olmes import OLMES
from verax.inputs.records.record import (
    Choices,
    Listed,
    Shape,
    body_of,
    failed,
    failure_of,
)
from verax.inputs.records.responses import RESPONSES

# In the order in which they are tried: the ones with the most telling fields first.
SHAPES = {
    shape.name: shape
    for shape in (HARNESS, OLMES, INSPECT_TOKENS, *RESPONSES, PIPELINE, ARRAYS, MAPPED, TOKENS, FLAT)
}
# Those that hold log-probabilities of tokens.
TOKEN_SHAPES = tuple(shape for shape in SHAPES.values() if shape.tokens)
# How many fields of a record that nobody knows are named.
_SHOWN_FIELDS = 12


def shape_of(record: Any, among: Sequence[Shape] = tuple(SHAPES.values())) -> Shape | None:
    """The first shape that a record has; None where it has none of them."""
    body = body_of(record)
    return next((s for s in among if s.fits(body if s.unwrapped else record)), None)


def recognise(records: Sequence[Any]) -> Shape | None:
    """The shape of the first record that has one; requests that failed have none."""
    found = (shape_of(record) for record in records if not failure_of(record))
    return next((shape for shape in found if shape is not None), None)


def holder_of(record: Any, shape: Shape) -> Any:
    """What a shape reads: the record, or the response in it; a request that failed is refused."""
    if failure_of(record):
        raise failed(record)
    return body_of(record) if shape.unwrapped else record


def read(record: Any, shape: Shape, choices: Choices, *, pool: bool = False) -> Listed:
    """The list of a record of a known shape; with `pool`, the mean over its sampled answers."""
    holder = holder_of(record, shape)
    listed = (pooled if pool else read_answer)(holder, shape, choices)
    listed.several = not listed.counted and shape.samples is not None and shape.samples(holder) > 1
    return listed


def n_samples(record: Any, shape: Shape) -> int:
    """How many answers of a record were sampled."""
    if shape.samples is None:
        return 1
    return max(1, shape.samples(body_of(record) if shape.unwrapped else record))


def read_tokens(record: Any, choices: Choices) -> Listed:
    """The list of a record with log-probabilities of tokens, in whatever shape."""
    shape = shape_of(record, TOKEN_SHAPES)
    if shape is None:
        shape = FLAT if isinstance(record, Mapping) else TOKENS
    return read(record, shape, choices)


def fields_of(record: Any) -> str:
    """The fields of a record, in words."""
    if not isinstance(record, Mapping):
        return f"it is {show(record)}"
    names = [show(str(name), 40) for name in record]
    more = len(names) - _SHOWN_FIELDS
    shown = ", ".join(names[:_SHOWN_FIELDS]) + (f" and {more} more" if more > 0 else "")
    return f"it has the fields {shown}" if names else "it has no fields"


def unrecognised(record: Any, where: str, source: str) -> InputError:
    """The error about a file whose records have no known shape."""
    return InputError(
        "must hold lists in a shape that is known",
        argument="rows",
        kind="type",
        found=f"{where} has none of them: {fields_of(record)}",
        rows=[0],
        source=source,
        remedies=[Remedy(f"Known shapes are {', '.join(SHAPES)}; docs/guide/listfiles.md shows each.")],
    )
