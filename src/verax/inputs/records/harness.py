"""Sample logs of lm-evaluation-harness: log-likelihoods of choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from verax.errors import Remedy, show
from verax.inputs.records.record import (
    MANY_DIGITS,
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
    first,
    mapping,
    not_understood,
    sequence,
)
from verax.inputs.records.texts import float_of

_WANTED = "log-likelihoods of two choices or more: resps or filtered_resps with one pair per choice"


# The metric that appends a second request for every choice, with an empty context.
_MUTUAL_INFORMATION = "acc_mutual_info"
# The metrics that divide log-likelihoods by the lengths of choices.
_LENGTHS: dict[str, Callable[[str], int]] = {"acc_norm": len, "acc_bytes": lambda text: len(text.encode())}


def pairs_of(record: Any) -> Any:
    """A (log-likelihood, is greedy) pair per choice, given the question; None for other tasks."""
    pairs = _all_pairs(record)
    if pairs is None:
        return None
    places = _conditional(record, len(pairs))
    return pairs if len(places) == len(pairs) else [pairs[place] for place in places]


def _all_pairs(record: Any) -> Any:
    """A pair per request, including those without the question."""
    fields = mapping(record)
    pairs = sequence(fields.get("filtered_resps"))
    if _are_pairs(pairs):
        return pairs
    pairs = [
        response[0] if len(sequence(response)) == 1 else None for response in sequence(fields.get("resps"))
    ]
    return pairs if _are_pairs(pairs) else None


def _conditional(record: Any, n: int) -> range:
    """The requests that score a choice given the question; each may have an unconditional one as well."""
    everything, half = range(n), range(n // 2)
    fields = mapping(record)
    subtracts = _MUTUAL_INFORMATION in fields or _MUTUAL_INFORMATION in sequence(fields.get("metrics"))
    if n % 2 or (not subtracts and _last_context(fields)):
        return everything
    requests = _requests(record)
    if requests is not None and len(requests) != n:
        return everything
    if requests is not None:
        texts = [text.strip() for _, text in requests]
        if texts[: len(half)] != texts[len(half) :]:
            return everything
        contexts = [context for context, _ in requests]
        if all(contexts[: len(half)]) and not any(contexts[len(half) :]):
            return half
    return half if subtracts and n > 2 else everything


def _last_context(fields: Mapping[Any, Any]) -> bool:
    """Whether the last request has a context: then none lacks the question, as in nearly all logs."""
    arguments = fields.get("arguments")
    if isinstance(arguments, dict):
        return bool(mapping(next(reversed(arguments.values()), None)).get("arg_0"))
    last = sequence(arguments)[-1:]
    return bool(last and first(last[0]))


def _are_pairs(pairs: Any) -> bool:
    # A loop, because every record passes here.
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return False
    return bool(pairs)


def log_likelihood(pair: Any) -> float:
    """The log-likelihood of a pair; newer logs write numbers as texts."""
    try:
        value = float_of(pair[0])
    except (TypeError, ValueError):
        value = math.nan
    if math.isnan(value) or value == math.inf:
        raise not_understood(pair, _WANTED)
    return value


def _requests(record: Any) -> list[tuple[str, str]] | None:
    """The context and the text of every request; None if they are missing."""
    arguments: Any = mapping(record).get("arguments")
    if isinstance(arguments, dict):
        requests = [
            (mapping(request).get("arg_0"), mapping(request).get("arg_1")) for request in arguments.values()
        ]
    else:
        requests = [
            tuple(request[:2]) if len(sequence(request)) > 1 else (None, None)
            for request in sequence(arguments)
        ]
    known = [(str(context), text) for context, text in requests if isinstance(text, str)]
    return known if known and len(known) == len(requests) else None


def choice_of(record: Any, place: int, n: int) -> str | None:
    """The text of one of `n` choices; None if texts are missing."""
    arguments = mapping(record).get("arguments")
    if not isinstance(arguments, dict) or len(arguments) != n:
        texts = choices_of(record)
        return texts[place] if texts is not None and len(texts) == n else None
    text = mapping(list(arguments.values())[place]).get("arg_1")
    return text if isinstance(text, str) else None


def choices_of(record: Any) -> tuple[str, ...] | None:
    """The texts of the choices, from the arguments of the requests; None if they are missing."""
    requests = _requests(record)
    if requests is None:
        return None
    return tuple(requests[place][1] for place in _conditional(record, len(requests)))


def position_of(target: Any, texts: tuple[str, ...] | None, n: int) -> Hashable | None:
    """The choice that a target names, by number or by text."""
    if isinstance(target, int) and not isinstance(target, bool):
        return target if 0 <= target < n else None
    stripped = [text.strip() for text in texts or ()]
    text = str(target).strip()
    places = [i for i, choice in enumerate(stripped) if choice == text]
    # Texts of many digits are no numbers of choices, and may be too long to convert.
    number = int(text) if text.isdecimal() and len(text) <= 18 and int(text) < n else None
    if number is not None and places not in ([], [number]):
        # The number of one choice is the text of another.
        return None
    return number if number is not None else places[0] if len(places) == 1 else None


def _read(record: Any, choices: Choices) -> Listed:
    pairs = pairs_of(record)
    if pairs is None or len(pairs) < 2:
        raise not_understood(mapping(record).get("filtered_resps", record), _WANTED)
    values = [log_likelihood(pair) for pair in pairs]
    texts = choices_of(record)
    if texts is not None and len(texts) != len(values):
        texts = None
    _check_one_right(record, texts)
    if choices.per_length:
        normalised = values_for("acc_norm", record, values)
        if normalised is None:
            raise not_understood(mapping(record).get("arguments"), "the texts of the choices (arguments)")
        values = normalised
    shares = softmax(values)
    if shares is None:
        raise not_understood(pairs, _WANTED)
    return Listed(
        list(range(len(values))),
        shares,
        outcome=record.get("target"),
        names=texts,
        unconditional=len(_all_pairs(record)) > len(values),
    )


def values_for(metric: str, record: Any, values: Sequence[float]) -> list[float] | None:
    """The numbers by which a metric chooses, from the log-likelihoods of choices; None if the log lacks them.

    `acc_norm` divides them by the numbers of characters, `acc_bytes` by those of bytes. `acc_mutual_info`
    subtracts the log-likelihoods without the question.
    """
    if metric == _MUTUAL_INFORMATION:
        unconditional = (_all_pairs(record) or [])[len(values) :]
        if len(unconditional) != len(values):
            return None
        pairs = zip(values, map(log_likelihood, unconditional), strict=True)
        return [value - alone for value, alone in pairs]
    if metric not in _LENGTHS:
        return list(values)
    texts = choices_of(record)
    if texts is None or len(texts) != len(values):
        return None
    # The texts of requests begin with a separator from the question.
    lengths = [max(1, _LENGTHS[metric](text.lstrip())) for text in texts]
    return [value / length for value, length in zip(values, lengths, strict=True)]


def softmax(values: Sequence[float]) -> list[float] | None:
    """Probabilities in proportion to exp(value); None if no value is finite."""
    top = max(values)
    if not math.isfinite(top):
        return None
    shares = [math.exp(value - top) for value in values]
    total = math.fsum(shares)
    return [share / total for share in shares]


def _check_one_right(record: Any, texts: tuple[str, ...] | None) -> None:
    """Refuse questions with several right choices; `target` names only the first."""
    for field in mapping(mapping(record).get("doc")).values():
        options, labels = (sequence(mapping(field).get(name)) for name in ("choices", "labels"))
        same = [str(option).strip() for option in options] == [text.strip() for text in texts or ()]
        if options and same and len(labels) == len(options) and list(labels).count(1) > 1:
            raise RecordError(
                "must have one correct choice",
                f"has {list(labels).count(1)} of {len(labels)}",
                reason="several right choices",
                kind="label",
                argument="y",
                remedies=[Remedy("Score a task with one correct choice each, such as truthfulqa_mc1.")],
            )


def _outcome_of(record: Any, target: Any) -> Hashable:
    """The number of the right choice."""
    n = len(pairs_of(record) or ())
    place = position_of(target, choices_of(record), n)
    if place is None:
        counted = str(target).strip() == str(n)
        from_one = Remedy("Subtract 1 from targets that count from 1.")
        raise RecordError(
            f"must be the number (0 to {n - 1}) or the text of one choice, and not of two",
            f"has {show(target)}",
            reason="outcomes not among the classes",
            kind="label",
            argument="y",
            values=[target],
            remedies=[from_one if counted else SKIP],
        )
    return place


def _question_of(record: Any) -> Hashable | None:
    """The question of a record, which has a record per filter; numbers restart in every task."""
    fields = mapping(record)
    if not isinstance(fields.get("doc_id"), (int, str)):
        return None
    return fields["doc_id"], str(fields.get("doc_hash") or "") or hash(
        repr((fields.get("doc"), fields.get("arguments")))
    )


HARNESS = Shape(
    "lm-eval",
    "lm-evaluation-harness sample logs (softmax of the choices' log-likelihoods)",
    "filtered_resps or resps with a [log-likelihood, is greedy] pair per choice, target, arguments",
    lambda record: pairs_of(record) is not None,
    _read,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
    positions=True,
    outcome_of=_outcome_of,
    question_of=_question_of,
)
