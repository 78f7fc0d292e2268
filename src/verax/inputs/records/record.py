"""Records of rows: their content, their shapes, and errors about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verax.common import strictjson
from verax.common.texts import percent
from verax.errors import InputError, Kind, Remedy, passing, show
from verax.inputs.validity import MANY

# Lists read from text with few digits may sum to this much more than 1.
FEW_DIGITS = 1e-4
# Other probabilities that were written as text, as for rows of doubles.
MANY_DIGITS = 1e-6

SKIP = passing("to leave such records out", invalid="skip")


def advised(remedies: Sequence[Remedy], count: int, n: int) -> list[Remedy]:
    """Remedies for `count` invalid records among `n`; a large share must not be left out, and the reason why.

    >>> advised([SKIP], 1, 100) == [SKIP], str(advised([SKIP], 3, 100)[0].text)[:34]
    (True, 'Leaving out 3 of 100 records (3.0%')
    """
    if SKIP not in remedies or count <= MANY * n:
        return list(remedies)
    why = Remedy(
        f"Leaving out {count:,} of {n:,} records ({percent(count / n, 1)}) would bias every result if they "
        "are easier or harder than the others: correct them, or ask again."
    )
    return [*(remedy for remedy in remedies if remedy is not SKIP), why]


@dataclass(slots=True)
class Listed:
    """The list of one record.

    Attributes
    ----------
    labels, values : list
        The listed classes and their probabilities.
    outcome : Hashable or None
        The outcome, if the shape has it.
    alone : bool
        The record has the chosen token and no alternatives.
    unlikely : int
        Entries left out because the interface marks them as "too unlikely", without a log-probability.
    missing : int
        Entries without a number.
    from_text : int
        Numbers that were read from texts such as "about 70%".
    names : tuple of str or None
        The names of classes given as positions, in this record.
    unconditional : bool
        The record also has log-likelihoods of the choices without the question, which are not read.
    several : bool
        The record has several sampled answers.
    blank : int
        Classes without a number, because their cells are blank.
    counted : bool
        Probabilities are the shares of sampled answers, which have no log-probabilities.
    """

    labels: list[Any]
    values: list[float]
    outcome: Hashable | None = None
    alone: bool = False
    unlikely: int = 0
    missing: int = 0
    from_text: int = 0
    names: tuple[str, ...] | None = None
    unconditional: bool = False
    several: bool = False
    blank: int = 0
    counted: bool = False


@dataclass(frozen=True)
class Choices:
    """Choices of the caller for reading records.

    Attributes
    ----------
    position : int
        The generated token to read, counted from 0; negative from the end, with -1 the last.
    per_length : bool
        Divide log-likelihoods of answers by their numbers of characters.
    fields : frozenset of str
        Fields other than classes: outcome, id, weight, group.
    names : tuple of hashable or None
        The names of all classes, if known.
    beside : bool
        Whether flat records may have text fields beside their classes.
    sample : int
        The number of the sampled answer to read.
    after : re.Pattern or None
        The pattern before the token to read, in place of a position; a group in it is the answer itself.
    last_match : bool
        Read the token after the last match, not the first.
    n_classes : int or None
        The number of classes, if known.
    """

    position: int = 0
    per_length: bool = False
    fields: frozenset[str] = field(default_factory=frozenset)
    names: tuple[Hashable, ...] | None = None
    beside: bool = False
    sample: int = 0
    after: re.Pattern[str] | None = None
    last_match: bool = False
    n_classes: int | None = None


@dataclass(frozen=True)
class Shape:
    """One way in which records hold lists.

    Attributes
    ----------
    name : str
        Its name for callers.
    what : str
        A description in words.
    needs : str
        The fields that it reads.
    fits : callable
        Tells by its fields whether a record has this shape.
    read : callable
        Reads the list of a record; raises `RecordError`.
    tokens : bool
        The classes are tokens of a vocabulary, which no file names completely.
    tolerance : float
        A list may sum to this much more than 1.
    unwrapped : bool
        `fits` and `read` see the body of a response; otherwise the record as it is.
    positions : bool
        The classes are the numbers of the choices of a question.
    outcome_of : callable or None
        The class that an outcome in another field or file means, if that depends on the list.
    id_field : str, tuple of str or None
        The field that identifies records of this shape by default.
    samples : callable or None
        The number of sampled answers to a question.
    generated : callable or None
        The texts of the generated tokens of a sampled answer, counted by `Choices.position`.
    answer_text : callable or None
        The whole text of a sampled answer; None if it has none.
    question_of : callable or None
        A value that tells questions apart, if a file may have several records of one.
    """

    name: str
    what: str
    needs: str
    fits: Callable[[Any], bool]
    read: Callable[[Any, Choices], Listed]
    tokens: bool = True
    tolerance: float = FEW_DIGITS
    unwrapped: bool = True
    positions: bool = False
    outcome_of: Callable[[Listed, Any], Hashable | None] | None = None
    id_field: str | tuple[str, ...] | None = None
    samples: Callable[[Any], int] | None = None
    generated: Callable[..., list[str]] | None = None
    answer_text: Callable[[Any, int], str | None] | None = None
    question_of: Callable[[Any], Hashable | None] | None = None


class RecordError(Exception):
    """An error about one record, which becomes an `InputError` once its place is known.

    Parameters
    ----------
    requirement : str
        The requirement.
    found : str
        The violation: "holds 'b'".
    reason : str
        The reason that is counted if such records are left out: "requests that failed".
    """

    requirement: str
    found: str
    reason: str
    argument: str
    values: Sequence[Any]
    remedies: Sequence[Remedy]

    def __init__(
        self,
        requirement: str,
        found: str,
        *,
        reason: str,
        kind: Kind = "type",
        argument: str = "rows",
        values: Sequence[Any] = (),
        remedies: Sequence[Remedy] = (),
    ) -> None:
        super().__init__(found)
        self.requirement, self.found, self.reason, self.kind = requirement, found, reason, kind
        self.argument, self.values, self.remedies = argument, values, remedies

    def at(
        self, where: str, row: int, source: str = "", *, count: int = 1, of: int | None = None
    ) -> InputError:
        """The error with the place of the record, the first of `count` invalid ones among `of`."""
        remedies = self.remedies if of is None else advised(self.remedies, count, of)
        return InputError(
            self.requirement,
            argument=self.argument,
            kind=self.kind,
            found=f"{where} {self.found}",
            rows=[row],
            values=self.values,
            count=count,
            remedies=remedies,
            source=source,
        )


def not_understood(value: object, wanted: str) -> RecordError:
    """The error about a record without the content that its shape needs."""
    return RecordError(
        f"must hold {wanted}",
        f"holds {show(value)}",
        reason="records that cannot be read",
        values=[value],
        remedies=[SKIP],
    )


def mapping(value: Any) -> Mapping[Any, Any]:
    """The value if it is a mapping, else an empty one."""
    # Nearly all are plain dictionaries, and the general question takes longer.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def first(value: Any) -> Any:
    """The first item of a list; None if there is none."""
    return value[0] if isinstance(value, (list, tuple)) and value else None


# Fields that may hold a whole response, as a value or as JSON text.
WRAPPERS = ("response", "body", "raw_response", "completion", "result")


def body_of(record: Any) -> Any:
    """The response in a record, such as the body of a batch line; otherwise the record itself."""
    while isinstance(record, Mapping):
        inner = next(
            (response for name in WRAPPERS if (response := _opened(record.get(name))) is not None), None
        )
        if inner is None:
            break
        record = inner
    return record


def _opened(value: Any) -> Mapping[Any, Any] | None:
    """A mapping, also if it is written as JSON text."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = strictjson.parse(value)
        except strictjson.JsonError:
            return None
    return value if isinstance(value, Mapping) else None


def failed(record: Any) -> RecordError:
    """The error about a request that failed."""
    return RecordError(
        "must hold answers",
        f"is a failed request ({failure_of(record)})",
        reason="requests that failed",
        kind="missing",
        remedies=[SKIP],
    )


def failure_of(record: Any) -> str:
    """The reason of a failed request, in the words of the interface; empty for others."""
    fields = mapping(record)
    if "response" not in fields and not fields.get("error"):
        return ""
    response = mapping(fields.get("response"))
    error = fields.get("error") or mapping(response.get("body")).get("error") or response.get("error")
    status = response.get("status_code")
    if error:
        told = mapping(error)
        parts = [str(told[name]) for name in ("code", "message") if told.get(name)]
        return show(": ".join(parts) or error, 100)
    if isinstance(status, int) and status >= 400:
        return f"status {status}"
    return "no response" if "response" in fields and fields["response"] is None else ""


def value_at(record: Any, path: str) -> Any:
    """The value of a field; dots lead into nested fields. Raises KeyError if there is none."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    value = record
    for part in path.split("."):
        if isinstance(value, (list, tuple)) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            raise KeyError(path)
    return value


def repeated(labels: Sequence[Any]) -> RecordError:
    """The error about a list that names a class twice."""
    twice = next(label for label, n in Counter(labels).items() if n > 1)
    return RecordError(
        "must not list a class twice",
        f"lists {show(twice)} again",
        reason="lists that name a class twice",
        kind="list",
        values=[twice],
        remedies=[
            passing("to add the probabilities of entries with the same text", merge_variants="same"),
            SKIP,
            Remedy("Different tokens can look the same as text: token ids tell them apart."),
        ],
    )
