"""Exceptions that carry their facts as data, and the vocabulary that turns them into messages.

All of them are `ValueError`s, so existing handlers keep working. An `InputError` carries its facts in
fields. A `Vocabulary` turns them into a sentence: `PYTHON` names arguments and keywords; the command
line has a vocabulary of its own, which names options. Code looks at the fields, never at the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np

# How many offending rows an error names; all are counted.
SHOWN_ROWS = 3

__all__ = ["InputError", "MissingPackageError", "ParseError", "RuleError", "VeraxError"]

Kind = Literal[
    "type",  # an argument of the wrong Python type, dtype or shape
    "value",  # an option outside its range, or none of the allowed values
    "length",  # arguments that disagree about the number of rows or classes
    "finite",  # NaN or infinity among numbers
    "sign",  # negative probabilities or weights
    "sum",  # rows of probabilities that do not sum to 1
    "label",  # an outcome or a name that is none of the classes
    "order",  # an order of classes or columns that is needed and not stated
    "missing",  # a missing value, or a column or file that is not there
    "list",  # a top list that cannot be one
    "file",  # a file that cannot be read as what it should be
]


class VeraxError(ValueError):
    """Base class of all verax errors. The message names the problem, its location and the fix.

    Examples
    --------
    >>> import verax as vx
    >>> try:
    ...     vx.brier([0, 2], [[0.5, 0.5], [0.5, 0.5]])
    ... except vx.VeraxError as error:
    ...     print(type(error).__name__)
    InputError
    """


@dataclass(frozen=True)
class Remedy:
    """A fix for the caller: options to pass and their purpose, or plain advice.

    Attributes
    ----------
    text : what the options do or when they help ("to rescale", "if these are logits"); without options,
        a whole sentence.
    options : keyword arguments of the public functions with a value; `...` stands for a value that only
        the caller knows.
    python_only : not applicable at the command line.
    whole : the command line writes the whole line with the options, to be copied.
    """

    text: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    python_only: bool = False
    whole: bool = False


def passing(text: str = "", /, **options: object) -> Remedy:
    """Suggest passing options.

    >>> InputError("rows must sum to 1", argument="p", remedies=[passing("to rescale", normalize=True)])
    InputError('`p` rows must sum to 1. Pass normalize=True to rescale.')
    """
    return Remedy(text, options)


class Vocabulary(Protocol):
    """Names of arguments and options, as the caller writes them."""

    def subject(self, argument: str) -> str:
        """Name of an argument at the beginning of a sentence."""

    def option(self, name: str, value: object) -> str | None:
        """Format an option as the caller passes it; None if the caller has no such option."""

    def fits(self, remedy: Remedy) -> bool:
        """Whether advice applies to this caller."""

    def line(self, options: Sequence[str]) -> str | None:
        """The whole line with options; None if the caller adds options to a call."""


class PythonVocabulary:
    """Arguments in backquotes, options as keywords."""

    def subject(self, argument: str) -> str:
        return f"`{argument}`"

    def option(self, name: str, value: object) -> str | None:
        if isinstance(value, (list, tuple)):
            return f"{name}=[{', '.join('...' if item is ... else repr(item) for item in value)}]"
        return f"{name}={'...' if value is ... else repr(value)}"

    def fits(self, remedy: Remedy) -> bool:
        return True

    def line(self, options: Sequence[str]) -> str | None:
        return None


PYTHON = PythonVocabulary()


class InputError(VeraxError):
    """Invalid forecasts, outcomes, weights, classes or options.

    Each parameter is also an attribute of the error.

    Parameters
    ----------
    requirement : str
        The violated requirement, as a predicate of the argument ("rows must sum to 1 within 1e-06"). A text
        that does not begin with a lower-case letter is a complete sentence.
    argument : str
        Name of the offending argument in the public functions.
    kind : Kind, default "value"
        Kind of the violated requirement.
    found : str, default ""
        The actual value ("row 17 sums to 0.93").
    rows : sequence of int, default ()
        The first offending rows (0-based); empty if the error does not concern particular rows.
    values : sequence, default ()
        The offending values of these rows, or the value of the option.
    count : int, optional
        Total number of offending rows; by default the length of `rows`.
    remedies : iterable of Remedy, default ()
        Suggested fixes.
    source : str, default ""
        Name of the file with the rows.

    Examples
    --------
    >>> import verax as vx
    >>> try:
    ...     vx.brier([0, 1], [[0.5, 0.5], [0.5, 0.4]])
    ... except vx.InputError as error:
    ...     print(error.argument, error.rows)
    p (1,)
    """

    def __init__(
        self,
        requirement: str,
        *,
        argument: str,
        kind: Kind = "value",
        found: str = "",
        rows: Sequence[int] = (),
        values: Sequence[Any] = (),
        count: int | None = None,
        remedies: Iterable[Remedy] = (),
        source: str = "",
    ) -> None:
        self.requirement = requirement
        self.argument = argument
        self.kind: Kind = kind
        self.found = found
        self.rows: tuple[int, ...] = tuple(rows)
        self.values: tuple[Any, ...] = tuple(values)
        self.count: int = len(self.rows) if count is None else count
        self.remedies: tuple[Remedy, ...] = tuple(remedies)
        self.source = source
        super().__init__(self.say(PYTHON))

    def replace(self, **changes: Any) -> InputError:
        """Return a copy of the error with some facts changed, such as the argument.

        Parameters
        ----------
        **changes : Any
            New values, by parameter name.

        Returns
        -------
        InputError
            A new error.
        """
        return InputError(**{**self._facts(), **changes})

    def say(self, vocabulary: Vocabulary) -> str:
        """Format the message with the caller's names of arguments and options.

        Parameters
        ----------
        vocabulary : Vocabulary
            Names of arguments and options, as the caller writes them.

        Returns
        -------
        str
            The message.
        """
        text = self.requirement
        if text[:1].islower():
            text = f"{vocabulary.subject(self.argument)} {text}"
        if self.found:
            is_question = text.endswith("?")
            text = (
                f"{text} {self.found[:1].upper()}{self.found[1:]}" if is_question else f"{text}; {self.found}"
            )
        text = text if text.endswith((".", "?", "!")) else f"{text}."
        text = " ".join([text, *_advice(self.remedies, vocabulary)])
        return f"{self.source}: {text}" if self.source else text

    def _facts(self) -> dict[str, Any]:
        names = "requirement argument kind found rows values count remedies source"
        return {name: getattr(self, name) for name in names.split()}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._facts(),)


def _rebuild(facts: dict[str, Any]) -> InputError:
    return InputError(**facts)


def _advice(remedies: Iterable[Remedy], vocabulary: Vocabulary) -> Iterable[str]:
    """Format remedies as sentences; consecutive options are alternatives and share one."""
    fitting = [remedy for remedy in remedies if vocabulary.fits(remedy)]
    for with_options, group in groupby(fitting, key=lambda remedy: bool(remedy.options)):
        if not with_options:
            yield from (remedy.text for remedy in group)
            continue
        ways = [way for remedy in group if (way := _way(remedy, vocabulary))]
        if ways:
            yield f"{'Run' if ways[0].startswith('`') else 'Pass'} {', or '.join(ways)}."


def _way(remedy: Remedy, vocabulary: Vocabulary) -> str:
    """Format the options of a remedy with their purpose; empty if the caller lacks one of them."""
    options = [vocabulary.option(name, value) for name, value in remedy.options.items()]
    words = [option for option in options if option is not None]
    if len(words) < len(options):
        return ""
    line = vocabulary.line(words) if remedy.whole else None
    return f"{' and '.join(words) if line is None else f'`{line}`'} {remedy.text}".rstrip()


class RuleError(VeraxError):
    """The rule lacks a required property, such as propriety or symmetry.

    Examples
    --------
    >>> import verax as vx
    >>> try:
    ...     vx.penalized(vx.sa_rps)
    ... except vx.errors.RuleError as error:
    ...     print(type(error).__name__)
    RuleError
    """


class FormerNameWarning(DeprecationWarning):
    """A rule was typed by the name that it had in earlier versions."""


class ParseError(VeraxError):
    """The text does not name a rule.

    Examples
    --------
    >>> import verax as vx
    >>> try:
    ...     vx.parse("briar")
    ... except vx.errors.ParseError as error:
    ...     print(str(error).partition(" Valid names")[0])
    There is no rule called 'briar'. Did you mean 'brier'?
    """


class MissingPackageError(VeraxError, ImportError):
    """An optional package is required but not installed.

    Examples
    --------
    >>> import verax as vx
    >>> issubclass(vx.errors.MissingPackageError, ImportError)
    True
    """


@dataclass
class Offenders:
    """The rows that break one requirement: all are counted, the first few are kept with their values.

    `so_far` says that more rows may follow, which have not been read.
    """

    argument: str
    requirement: str
    kind: Kind = "value"
    verbs: tuple[str, str] = ("holds", "hold")
    remedies: tuple[Remedy, ...] = ()
    so_far: bool = False
    count: int = 0
    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    found: list[np.ndarray[Any, Any]] = field(default_factory=list)
    amounts: list[np.ndarray[Any, Any]] = field(default_factory=list)

    @property
    def numbers(self) -> np.ndarray[Any, Any]:
        """The numbers of all these rows."""
        import numpy as np

        return np.concatenate([np.zeros(0, np.int64), *self.found])

    @property
    def sizes(self) -> np.ndarray[Any, Any]:
        """What all these rows have of forecasts: their sums, or the numbers of a single column."""
        import numpy as np

        return np.concatenate([np.zeros(0), *self.amounts])

    def add(
        self, mask: np.ndarray[Any, Any], values: Sequence[Any] | np.ndarray[Any, Any], start: int
    ) -> None:
        """Note the rows where `mask` is true; `start` is the number of the mask's first row."""
        import numpy as np

        rows = np.flatnonzero(mask)
        self.count += int(rows.size)
        self.found.append(start + rows)
        if self.argument == "p" and self.kind in ("sum", "sign"):
            self.amounts.append(np.asarray(values, float)[rows])
        for i in rows[: SHOWN_ROWS - len(self.rows)]:
            self.rows.append(start + int(i))
            self.values.append(values[i])

    def error(self, *remedies: Remedy) -> InputError:
        """The error that names these rows; `remedies` replace the usual ones."""
        return InputError(
            self.requirement,
            argument=self.argument,
            kind=self.kind,
            found=self._where(),
            rows=self.rows,
            values=self.values,
            count=self.count,
            remedies=remedies or self.remedies,
        )

    def _where(self) -> str:
        shown = [show(value) for value in self.values]
        if self.count == 1:
            return f"row {self.rows[0]} {self.verbs[0]} {shown[0]}"
        rows = join(str(row) for row in self.rows)
        total = (
            f" ({self.count} rows {'so far' if self.so_far else 'in all'})"
            if self.count > len(self.rows)
            else ""
        )
        return f"rows {rows} {self.verbs[1]} {join(shown)}{total}"


def join(parts: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'; 'none' where there are none."""
    *head, last = list(parts) or ["none"]
    return f"{', '.join(head)} and {last}" if head else last


def show(value: object, limit: int = 60) -> str:
    """Format a value for a message: short, on one line, never the repr of a NumPy scalar."""
    import numpy as np

    if isinstance(value, np.ndarray):
        inner = ", ".join(show(v) for v in value.ravel()[:8].tolist())
        return f"[{inner}{', ...' if value.size > 8 else ''}]"
    if isinstance(value, np.generic):
        value = value.item()
    try:
        text = f"{value:.9g}" if isinstance(value, float) else " ".join(repr(value).split())
    except Exception:
        # An integer of too many digits, or an object whose repr fails.
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
