"""Sample logs of lm-evaluation-harness: log-likelihoods of choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from verax.errors import Remedy, show
from verax.inputs.records.record import (
    MANY_DIGITS,
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
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


class ChoiceSample(NamedTuple):
    """The content of a sample of a task of choices, read once.

    Attributes
    ----------
    pairs : sequence
        A (log-likelihood, is greedy) pair per choice, given the question.
    unconditional : sequence
        The pairs of the same choices without the question; empty in nearly all logs.
    texts : tuple of str or None
        The texts of the choices, from the arguments of the requests; None if they are missing.
    """

    pairs: Sequence[Any]
    unconditional: Sequence[Any]
    texts: tuple[str, ...] | None


def sample_of(record: Any) -> ChoiceSample | None:
    """The sample of a record; None for tasks without choices."""
    fields = mapping(record)
    pairs = _all_pairs(fields)
    if pairs is None:
        return None
    n = len(pairs)
    texts = _requested(fields, 1)
    if texts is None or {*map(type, texts)} != {str}:
        n_choices = _n_choices(fields, None, n)
        return ChoiceSample(pairs[:n_choices], pairs[n_choices:], None)
    n_texts = _n_choices(fields, texts, len(texts))
    n_choices = n_texts if len(texts) == n else n
    named = tuple(texts[:n_texts]) if n_texts == n_choices else None
    return ChoiceSample(pairs[:n_choices], pairs[n_choices:], named)


def _all_pairs(fields: Mapping[Any, Any]) -> Any:
    """A pair per request, including those without the question; None for other tasks."""
    pairs = sequence(fields.get("filtered_resps"))
    if _are_pairs(pairs):
        return pairs
    pairs = [
        response[0] if len(sequence(response)) == 1 else None for response in sequence(fields.get("resps"))
    ]
    return pairs if _are_pairs(pairs) else None


def _n_choices(fields: Mapping[Any, Any], texts: Sequence[str] | None, n: int) -> int:
    """The number of requests that score a choice given the question; half of `n` if others lack it."""
    if n % 2:
        return n
    subtracts = _MUTUAL_INFORMATION in fields or _MUTUAL_INFORMATION in sequence(fields.get("metrics"))
    # In nearly all logs the last request has a context: then none lacks the question.
    if not subtracts and (texts is None or _last_has_a_context(fields)):
        return n
    contexts = None if texts is None else _requested(fields, 0)
    half = n // 2
    if texts is not None:
        stripped = [text.strip() for text in texts]
        if stripped[:half] != stripped[half:]:
            return n
        if contexts is not None and "" not in contexts[:half] and not any(contexts[half:]):
            return half
    return half if subtracts and n > 2 else n


def _are_pairs(pairs: Any) -> bool:
    # A loop, because every record passes here.
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return False
    return bool(pairs)


def log_likelihoods(pairs: Sequence[Any]) -> list[float]:
    """The log-likelihoods of pairs; newer logs write numbers as texts."""
    values = []
    for pair in pairs:
        try:
            value = float(pair[0])
        except OverflowError:
            value = float_of(pair[0])
        except (TypeError, ValueError):
            value = math.nan
        if not value < math.inf:
            raise not_understood(pair, _WANTED)
        values.append(value)
    return values


def _requested(fields: Mapping[Any, Any], part: int) -> list[Any] | None:
    """The contexts (part 0) or texts (part 1) of all requests; None if one lacks it."""
    arguments: Any = fields.get("arguments")
    try:
        if isinstance(arguments, dict):
            name = f"arg_{part}"
            return [request[name] for request in arguments.values()] or None
        return [sequence(request)[part] for request in sequence(arguments)] or None
    except (KeyError, IndexError, TypeError):
        return None


def _last_has_a_context(fields: Mapping[Any, Any]) -> bool:
    """Whether the last request asks a question, or does not tell."""
    arguments: Any = fields["arguments"]
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    try:
        return bool((requests[-1]["arg_0"] if isinstance(arguments, dict) else requests[-1][0]) != "")
    except (KeyError, IndexError, TypeError):
        return True


def position_of(target: Any, texts: tuple[str, ...] | None, n: int) -> int | None:
    """The choice that a target names, by number or by text."""
    if isinstance(target, int) and not isinstance(target, bool):
        return target if 0 <= target < n else None
    text = str(target).strip()
    places = [i for i, choice in enumerate(texts or ()) if choice.strip() == text]
    # Texts of many digits are no numbers of choices, and may be too long to convert.
    number = int(text) if text.isdecimal() and len(text) <= 18 and int(text) < n else None
    if number is not None and places not in ([], [number]):
        # The number of one choice is the text of another.
        return None
    return number if number is not None else places[0] if len(places) == 1 else None


def _read(record: Any, choices: Choices) -> Listed:
    sample = sample_of(record)
    if sample is None or len(sample.pairs) < 2:
        raise not_understood(mapping(record).get("filtered_resps", record), _WANTED)
    values = log_likelihoods(sample.pairs)
    _check_one_right(record, sample.texts)
    if choices.per_length:
        normalised = values_for("acc_norm", sample, values)
        if normalised is None:
            raise not_understood(mapping(record).get("arguments"), "the texts of the choices (arguments)")
        values = normalised
    shares = softmax(values)
    if shares is None:
        raise not_understood(sample.pairs, _WANTED)
    return Listed(
        list(range(len(values))),
        shares,
        outcome=record.get("target"),
        names=sample.texts,
        unconditional=bool(sample.unconditional),
    )


def values_for(metric: str, sample: ChoiceSample, values: Sequence[float]) -> list[float] | None:
    """The numbers by which a metric chooses, from the log-likelihoods of choices; None if the log lacks them.

    `acc_norm` divides them by the numbers of characters, `acc_bytes` by those of bytes. `acc_mutual_info`
    subtracts the log-likelihoods without the question.
    """
    if metric == _MUTUAL_INFORMATION:
        if not sample.unconditional:
            return None
        pairs = zip(values, log_likelihoods(sample.unconditional), strict=True)
        return [value - alone for value, alone in pairs]
    if metric not in _LENGTHS:
        return list(values)
    if sample.texts is None:
        return None
    # The texts of requests begin with a separator from the question.
    lengths = [max(1, _LENGTHS[metric](text.lstrip())) for text in sample.texts]
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
        if not isinstance(field, dict):
            continue
        options, labels = (sequence(field.get(name)) for name in ("choices", "labels"))
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


def _outcome_of(listed: Listed, target: Any) -> Hashable:
    """The number of the right choice."""
    n = len(listed.labels)
    place = position_of(target, listed.names, n)
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
    lambda record: _all_pairs(mapping(record)) is not None,
    _read,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
    positions=True,
    outcome_of=_outcome_of,
    question_of=_question_of,
)
