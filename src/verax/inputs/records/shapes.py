"""All shapes of records, and the recognition of a file's shape."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from verax.common.wings import all_of
from verax.errors import InputError, Remedy, show
from verax.inputs.records.classifiers import ARRAYS, FLAT, MAPPED, PIPELINE, TOKENS
from verax.inputs.records.harness import HARNESS
from verax.inputs.records.olmes import OLMES
from verax.inputs.records.record import SKIP, Choices, Listed, RecordError, Shape, body_of, failed, failure_of
from verax.inputs.records.responses import NO_LOGPROBS, RESPONSES


def read_answer(holder: Any, shape: Shape, choices: Choices) -> Listed:
    """The list of the token that holds the answer, in the chosen sample."""
    if choices.after is not None and shape.generated is not None:
        texts = shape.generated(holder, choices.sample)
        choices = replace(choices, position=place_of(texts, choices.after, last=choices.last_match))
    return shape.read(holder, choices)


def place_of(texts: Sequence[str], pattern: re.Pattern[str], *, last: bool) -> int:
    """The place of the answer token: the one with the group of a pattern, or the first word after it.

    >>> place_of(["The", " answer", ":", " (", "B", ")"], re.compile("answer:"), last=False)
    4
    >>> place_of(["A", " or", " B", "?", " B"], re.compile("([A-D])"), last=True)
    4
    """
    whole = "".join(texts)
    matches = list(pattern.finditer(whole))
    if not matches:
        raise _no_match(whole, pattern, "has no match")
    match = matches[-1] if last else matches[0]
    if pattern.groups and match.start(1) >= 0:
        start: int | None = match.start(1)
    else:
        start = next((i for i in range(match.end(), len(whole)) if whole[i].isalnum()), None)
    end = 0
    for place, text in enumerate(texts):
        end += len(text)
        if start is not None and start < end:
            return place
    raise _no_match(whole, pattern, "ends with the match")


def _no_match(whole: str, pattern: re.Pattern[str], what: str) -> RecordError:
    return RecordError(
        f"must have an answer after {show(pattern.pattern)}",
        f"{what}: {show(whole[-80:])}",
        reason="answers without a match",
        kind="missing",
        argument="after",
        remedies=[SKIP, Remedy("It is a regular expression; (?i) at its beginning ignores case.")],
    )


def pooled(holder: Any, shape: Shape, choices: Choices) -> Listed:
    """The mean of the lists of all sampled answers.

    A class that a list lacks counts there as in `combine`, with an equal share of the unlisted probability.
    So the padded distribution of the result is the mean of the padded distributions.
    """
    n = 1 if shape.samples is None else shape.samples(holder)
    if n > 1 and shape.answer_text is not None and _lacks_logprobs(holder, shape, n):
        return _shares([shape.answer_text(holder, i) for i in range(n)], choices)
    lists = [read_answer(holder, shape, replace(choices, sample=i)) for i in range(max(n, 1))]
    if len(lists) == 1:
        return lists[0]
    by_label = [dict(zip(listed.labels, listed.values, strict=True)) for listed in lists]
    if any(len(values) < len(listed.labels) for values, listed in zip(by_label, lists, strict=True)):
        # A list that names a class twice is refused as any other.
        return next(e for v, e in zip(by_label, lists, strict=True) if len(v) < len(e.labels))
    rests = [_rest(values, choices.n_classes) for values in by_label]
    labels = list(dict.fromkeys(label for values in by_label for label in values))
    means = [
        math.fsum(values.get(label, rest) for values, rest in zip(by_label, rests, strict=True))
        / len(by_label)
        for label in labels
    ]
    order = sorted(range(len(labels)), key=lambda i: -means[i])
    first = lists[0]
    return replace(
        first,
        labels=[labels[i] for i in order],
        values=[means[i] for i in order],
        alone=all(listed.alone for listed in lists),
        unlikely=sum(listed.unlikely for listed in lists),
        missing=sum(listed.missing for listed in lists),
        from_text=sum(listed.from_text for listed in lists),
    )


def _lacks_logprobs(holder: Any, shape: Shape, n: int) -> bool:
    """Whether no sampled answer has log-probabilities."""
    for i in range(n):
        try:
            shape.read(holder, Choices(sample=i))
        except RecordError as problem:
            if problem.reason == NO_LOGPROBS:
                continue
        return False
    return True


def _shares(texts: Sequence[str | None], choices: Choices) -> Listed:
    """The share of each answer among sampled texts; the share of texts without an answer goes to no class."""
    counts = Counter[str]()
    problem = None
    for text in texts:
        try:
            answer = None if text is None else answer_in(text, choices.after, last=choices.last_match)
        except RecordError as error:
            answer, problem = None, error
        if answer is not None:
            counts[answer] += 1
    if not counts and problem is not None:
        raise problem
    ranked = counts.most_common()
    listed = Listed([answer for answer, _ in ranked], [times / len(texts) for _, times in ranked])
    listed.counted = True
    return listed


def answer_in(text: str, pattern: re.Pattern[str] | None, *, last: bool) -> str:
    """The answer in a text: the group of a pattern, the first word after it, or without one the whole text.

    >>> answer_in("So the answer: (B).", re.compile("answer:"), last=False)
    'B'
    """
    if pattern is None:
        return text.strip()
    matches = list(pattern.finditer(text))
    if not matches:
        raise _no_match(text, pattern, "has no match")
    match = matches[-1] if last else matches[0]
    if pattern.groups and match.start(1) >= 0:
        return match[1].strip()
    word = re.search(r"\w+", text[match.end() :])
    if word is None:
        raise _no_match(text, pattern, "ends with the match")
    return word[0]


def _rest(values: dict[Any, float], n_classes: int | None) -> float:
    """The probability that a list gives each unlisted class."""
    others = 0 if n_classes is None else n_classes - len(values)
    return max(0.0, 1.0 - math.fsum(values.values())) / others if others > 0 else 0.0


# In the order of trial: those with the most specific fields first.
SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (HARNESS, OLMES, *all_of("shapes"), *RESPONSES, PIPELINE, ARRAYS, MAPPED, TOKENS, FLAT)
}
# Shapes with log-probabilities of tokens.
TOKEN_SHAPES = tuple(shape for shape in SHAPES.values() if shape.tokens)
# The number of fields that an error about an unknown record names.
_SHOWN_FIELDS = 12


def shape_of(record: Any, among: Sequence[Shape] = tuple(SHAPES.values())) -> Shape | None:
    """The first shape that a record has; None without any."""
    body = body_of(record)
    return next((s for s in among if s.fits(body if s.unwrapped else record)), None)


def recognise(records: Sequence[Any]) -> Shape | None:
    """The shape of the first record that has one; failed requests have none."""
    shapes = (shape_of(record) for record in records if not failure_of(record))
    return next((shape for shape in shapes if shape is not None), None)


def holder_of(record: Any, shape: Shape) -> Any:
    """The part of a record that a shape reads: the record, or the response in it; refuses failed requests."""
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
    """The number of sampled answers in a record."""
    if shape.samples is None:
        return 1
    return max(1, shape.samples(body_of(record) if shape.unwrapped else record))


def read_tokens(record: Any, choices: Choices) -> Listed:
    """The list of a record with log-probabilities of tokens, in any shape."""
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
    """The error about records without a known shape."""
    return InputError(
        "must hold lists in a shape that is known",
        argument="rows",
        kind="type",
        found=f"{where} has none of them: {fields_of(record)}",
        rows=[0],
        source=source,
        remedies=[Remedy(f"Known shapes are {', '.join(SHAPES)}; docs/guide/listfiles.md shows each.")],
    )
