"""The vocabulary of the command line: how a command names arguments and options in its complaints."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from verax.common.texts import UNPRINTABLE, on_a_line
from verax.errors import InputError, Remedy, VeraxError

# No message is longer than this, whatever the input was.
_LONGEST = 1000

# Arguments that are data, not options.
_SUBJECTS = {
    "p": "the probabilities",
    "y": "the outcomes",
    "weights": "the weights",
    "groups": "the groups",
    "ids": "the ids",
    "rows": "the records",
    "confidences": "the probabilities",
    "history": "the history",
    "path": "the file",
}
# Options that the library calls otherwise; of several, the first that a command has.
_CALLED = {
    "n": ("number",),
    "rules": ("rule",),
    "directions": ("direction",),
    "n_classes": ("n-classes", "classes"),
    "k": ("length",),
    "outcome": ("outcome", "target"),
    "epochs": ("epoch",),
}
# Placeholders for values that only the user knows.
_METAVARS = {
    "classes": "a,b,c",
    "probs": "'p_*'",
    "positive": "CLASS",
    "rule": "RULE",
    "outcomes": "FILE",
    "raters": "r1,r2",
    "horizon": "T",
}


class CommandWords:
    """The words of one command.

    Parameters
    ----------
    options : Collection[str]
        The long options that the command has, without dashes. A remedy that needs another option is
        left out.
    typed : str
        The command as it was typed.
    """

    def __init__(self, options: Collection[str] = (), typed: str = "verax") -> None:
        self._options = frozenset(options)
        self._typed = typed

    def subject(self, argument: str) -> str:
        """The name of an argument: data by a noun, an option as it is typed."""
        if argument in _SUBJECTS:
            return _SUBJECTS[argument]
        name = self._name(argument)
        return argument.replace("_", " ") if name is None else f"--{name}"

    def option(self, name: str, value: object) -> str | None:
        """The option as it is typed; None where the command has none of this name."""
        # Entries without a number, and questions that some model was not asked, have options of their own.
        known = "missing" if name == "missing" and value != "omit" else self._name(name)
        if known is None or known not in self._options:
            return None
        if value is True or known in _flags():
            return f"--{known}"
        text = _METAVARS.get(known, "COLUMN") if value is ... else shlex.quote(_typed(value))
        return f"--{known} {text}"

    def fits(self, remedy: Remedy) -> bool:
        """Whether advice is of use at the command line."""
        return not remedy.python_only

    def line(self, options: Sequence[str]) -> str | None:
        """What was typed, with further options."""
        return " ".join([self._typed, *options])

    def say(self, error: VeraxError) -> str:
        """An error in these words, on one line that is not too long."""
        text = error.say(self) if isinstance(error, InputError) else str(error)
        return one_line(text)

    def _name(self, argument: str) -> str | None:
        # Readings need NumPy, and help does not.
        from verax.inputs.reading import OPTIONS, flag_of

        named = (flag_of(argument),) if argument in OPTIONS else ()
        names = (*_CALLED.get(argument, ()), *named, argument.replace("_", "-"))
        return next((name for name in names if name in self._options), None)


@cache
def _flags() -> frozenset[str]:
    """Options of reading without a value."""
    from verax.inputs.reading import OPTIONS

    return frozenset(option.flag for option in OPTIONS.values() if option.form == "flag" and option.flag)


def _typed(value: object) -> str:
    """A value as it is typed after an option.

    >>> _typed(["a", "b"]), _typed({"utility": "max"}), _typed(0.5)
    ('a,b', 'utility=max', '0.5')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{key}={inner}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join("..." if inner is ... else str(inner) for inner in value)
    return str(value).replace("\t", "\\t")


def visible_json(text: str) -> str:
    """JSON for a terminal: what would control it or hide there is an escape of JSON."""
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Text as one line of bounded length.

    >>> one_line("two\nlines")
    'two\\nlines'
    """
    text = on_a_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
