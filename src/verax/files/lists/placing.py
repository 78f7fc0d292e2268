"""Log-probabilities of generated tokens: whether there are any, and which token holds the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from verax.errors import InputError, passing, show
from verax.inputs.reading import Reading
from verax.inputs.records.record import SKIP, Choices, RecordError, Shape, body_of, failure_of
from verax.inputs.records.responses import NO_LOGPROBS
from verax.inputs.records.shapes import n_samples, read
from verax.inputs.records.variants import merger

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
    several = shape.said is not None and any(n_samples(record, shape) > 1 for _, record in records)
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
