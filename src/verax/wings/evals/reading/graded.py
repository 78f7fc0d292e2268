"""An answer in an evaluation log: its grades, or why it has none."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verax.analyses.comparison.ungraded import OF_MODEL, OF_OTHERS
from verax.errors import Remedy, passing
from verax.inputs.records.record import mapping, sequence

if TYPE_CHECKING:
    from verax.wings.evals.reading.look import Look

# What may become of an answer, whether or not it has a grade.
STATUSES = (*OF_OTHERS, *OF_MODEL)
# What became of an answer whose grader gave no grade.
UNSCORED = "unscored"
# The depth to which metadata are read, and the largest number of columns from them.
_DEPTH, _MOST_FIELDS = 3, 200
_PLAIN = (str, int, float, bool)


@dataclass(slots=True)
class Graded:
    """One answer of one model.

    Attributes
    ----------
    id : str
        The question.
    grades : Mapping of str to float, str or None
        The grade by each metric or scorer of the log: a number, a text that is none, or None without any.
    main : str or None
        The metric that the log names first; None if the caller must choose among several.
    answer, gold : str or None
        The answer given, and the right one.
    confidence : float or None
        The probability that the model gives its answer, if the log has it.
    status : str or None
        What became of the answer, one of `STATUSES`: why it has no grade, or what its grade was given in
        spite of. A grade of the log stands. Without a grade "unscored" means that the grader failed.
    epoch : int or None
        The number of the repeat of the question, from 1; None if the log does not number them.
    task : str or None
        The task, if records name it.
    same : hashable
        A value that tells questions with the same id apart.
    about : dict
        Further fields, such as the metadata of the question.
    of_all : tuple of str
        Metrics of all answers together, without a number for a single one.
    unread : bool
        Whether the log states a confidence without a number.
    model, prompt : str or None
        The model, and the prompt that asked it, if records name them.
    """

    id: str
    grades: Mapping[str, float | str | None]
    main: str | None = None
    answer: str | None = None
    gold: str | None = None
    confidence: float | None = None
    status: str | None = None
    epoch: int | None = None
    task: str | None = None
    same: Hashable = None
    about: Mapping[str, Any] = field(default_factory=dict)
    of_all: tuple[str, ...] = ()
    unread: bool = False
    model: str | None = None
    prompt: str | None = None


@dataclass(frozen=True)
class LogFormat:
    """One kind of evaluation log.

    Attributes
    ----------
    name, what : str
        Its name, and its description in words.
    found : callable
        Tells by a look at its beginning whether a file is of this kind.
    opens : callable
        Opens a file.
    fits : callable
        Tells by its fields whether a record is of this kind.
    read : callable
        Reads a record; raises `RecordError`.
    read_by : callable or None
        Reads a record by a metric, where answer, confidence and status depend on it.
    filters : bool
        Whether several records may grade one answer, by different metrics.
    """

    name: str
    what: str
    found: Callable[[Look], bool]
    opens: Callable[[Path], LogRecords]
    fits: Callable[[Any], bool]
    read: Callable[[Any], Graded]
    read_by: Callable[[Any, str], Graded] | None = None
    filters: bool = False


@dataclass(frozen=True)
class LogRecords:
    """The answers of one file.

    Attributes
    ----------
    source, word : str
        The file, and what its records are called in messages.
    format : LogFormat
        The kind of log.
    records : iterable
        Every record with its number.
    model, task, main : str or None
        The model, the task and the metric that the log names.
    notes : sequence of str
        What a reader of results should know: a sentence each. Reading may add to them.
    """

    source: str
    word: str
    format: LogFormat
    records: Iterable[tuple[int, Any]]
    model: str | None = None
    task: str | None = None
    main: str | None = None
    notes: Sequence[str] = ()


def number_or_none(value: Any) -> float | None:
    """A number, or a truth value as one; None for anything else.

    >>> number_or_none(True), number_or_none(0.25), number_or_none("C"), number_or_none(float("nan"))
    (1.0, 0.25, None, None)
    """
    if isinstance(value, (bool, int, float)) and value == value and abs(value) <= 1e300:
        return float(value)
    return None


# Texts that are grades.
RIGHT = ("true", "correct", "right", "yes", "pass")
WRONG = ("false", "incorrect", "wrong", "no", "fail")


def grade_of(value: Any) -> float | str | None:
    """A grade: a number, or the text of one, or that of right or wrong; another text stays what it is.

    >>> [grade_of(v) for v in (True, "0.5", "Yes", "fail", "nan", "", None, " good", [1])]
    [1.0, 0.5, 1.0, 0.0, None, None, None, 'good', None]
    """
    if not isinstance(value, str):
        return number_or_none(value)
    text = value.strip()
    known = text.casefold()
    if known in RIGHT or known in WRONG:
        return float(known in RIGHT)
    try:
        return number_or_none(float(text))
    except ValueError:
        return text or None


# A metric whose grades are texts, with the grade of each.
_VALUES = re.compile(r"(?P<metric>.+?):(?P<values>[^:=,]+=[^=,]+(?:,[^=,]+=[^=,]+)*)")


def named_values(grade: str | None) -> tuple[str | None, dict[str, float]]:
    """A metric, and the grades of its texts where these are given with it.

    >>> named_values("tone:good=1,so so=0.5"), named_values("score:std")
    (('tone', {'good': 1.0, 'so so': 0.5}), ('score:std', {}))
    """
    parts = _VALUES.fullmatch(grade or "")
    if parts is None:
        return grade, {}
    pairs = [pair.split("=") for pair in parts["values"].split(",")]
    try:
        return parts["metric"], {text.strip(): float(number) for text, number in pairs}
    except ValueError:
        return grade, {}


def asking_for_values(metric: str, texts: Counter[str]) -> Remedy:
    """What to pass for a metric whose grades are texts."""
    example = ",".join(f"{text}={n}" for (text, _), n in zip(texts.most_common(), (1, 0), strict=False))
    return passing("for grades that are texts, with the grade of each", grade=f"{metric}:{example}")


def json_text(value: Any) -> str | None:
    """A text as it is, anything else as JSON, whose keys are sorted; None for nothing.

    >>> json_text("1+1"), json_text({"b": 1, "a": [2]}), json_text(None)
    ('1+1', '{"a": [2], "b": 1}', None)
    """
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def name_or_none(value: Any) -> str | None:
    """A text that is a name; None for anything else, and for an empty one."""
    return value if isinstance(value, str) and value else None


def is_blank(text: Any) -> bool:
    """Whether an answer is an empty text."""
    return isinstance(text, str) and not text.strip()


# Longer texts are not labels of groups.
LONGEST = 500


def labels_in(fields: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of metadata that may be labels, by name: those without long texts."""
    found = flat_fields(fields, prefix)
    for name in [name for name, value in found.items() if type(value) is str and len(value) > LONGEST]:
        del found[name]
    return found


def epoch_of(value: Any, *, first: int) -> int | None:
    """The number of a repeat, from 1, in a log that counts from `first`; None for anything else."""
    number = value - first + 1 if type(value) is int else 0
    return number if 0 < number < 2**31 else None


def text_or_none(value: Any) -> str | None:
    """A value as a text; several values separated by commas."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) if value else None
    return None if value is None or isinstance(value, Mapping) else str(value)


def flat_fields(fields: Any, prefix: str = "") -> dict[str, Any]:
    """Texts, numbers and truth values of metadata by name, with dots between the names of nested fields.

    >>> flat_fields({"subject": "law", "source": {"year": 2020}, "tags": ["a"]})
    {'subject': 'law', 'source.year': 2020}
    """
    found: dict[str, Any] = {}
    _flatten(fields, prefix, _DEPTH, found)
    return found


def _flatten(fields: Any, prefix: str, depth: int, found: dict[str, Any]) -> None:
    if not isinstance(fields, dict) or depth == 0 or len(fields) > _MOST_FIELDS:
        return
    for name, value in fields.items():
        if isinstance(value, _PLAIN):
            found[f"{prefix}{name}"] = value
        elif isinstance(value, dict):
            _flatten(value, f"{prefix}{name}.", depth - 1, found)


# Fields that may hold the question, in order of preference.
_FIELDS = (
    *("question", "problem", "query", "prompt", "input", "user_input", "text", "goal", "ctx", "sentence"),
    *("inputs.question", "inputs.input", "inputs"),
)
# Fields that may hold those fields.
_WITHIN = ("doc", "instance", "state", "request", "inputs", "vars", "datasource_item", "body")
# Texts are cut to this many characters; the end is kept, because examples come before the question.
_LONGEST = 200


def question_text(record: Any) -> str | None:
    """The question of a record on one line, shortened; None if there is none.

    >>> question_text({"doc": {"question": "How much is 2 + 2?"}, "resps": [["4"]]})
    'How much is 2 + 2?'
    >>> question_text({"input": [{"role": "user", "content": "Which planet?"}]})
    'Which planet?'
    """
    text = _text_in(mapping(record))
    return None if text is None else shortened(text)


def shortened(text: str) -> str:
    """A text on one line, whose end is kept."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else "..." + line[3 - _LONGEST :]


def _text_in(fields: Mapping[Any, Any]) -> str | None:
    for name in _FIELDS:
        text = _text_of(fields.get(name))
        if text:
            return text
    for name in _WITHIN:
        inner = mapping(fields.get(name))
        text = _text_in(inner) if inner else None
        if text:
            return text
    messages = _text_of(fields.get("messages"))
    return messages or _text_of(mapping(mapping(fields.get("arguments")).get("gen_args_0")).get("arg_0"))


def _text_of(value: Any) -> str | None:
    """A text, the text of an object, or that of the last user message of a conversation."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, Mapping):
        return _text_of(value.get("text", value.get("raw")))
    messages = [mapping(item) for item in sequence(value)]
    from_user = [message for message in messages if message.get("role") == "user"]
    if not from_user:
        return None
    content = from_user[-1].get("content")
    if isinstance(content, str):
        return _text_of(content)
    parts = [mapping(part).get("text") for part in sequence(content)]
    return _text_of(" ".join(part for part in parts if isinstance(part, str)))
