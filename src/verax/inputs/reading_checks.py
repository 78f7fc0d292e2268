"""Checks of reading options: each returns the normalised value, or refuses it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from os import PathLike
from typing import Any

from verax.common.checks import check_count, check_integer, check_n_classes, check_number, is_whole
from verax.errors import InputError, Remedy, passing, show

# The usual content of columns of forecasts; the others are probabilities at thresholds.
PROBABILITIES = "probabilities"
RATERS_ARE = ("labels", "counts", "shares")


def check_together(reading: Any) -> None:
    """Refuse options that exclude each other, and options without those that they need."""
    _check_outcomes(reading)
    if reading.sets and (reading.probs or reading.lists):
        other = "probs" if reading.probs else "lists"
        raise InputError("cannot be given beside prediction sets", argument=other)
    if reading.grades is not None:
        beside = next((name for name in ("sets", "probs", "lists") if getattr(reading, name)), None)
        if beside is not None:
            raise InputError("cannot be given beside grades", argument=beside)
    if reading.lists is False and not reading.sets and reading.n_classes is not None:
        raise InputError(
            "must be a list of names", argument="classes", kind="type", found=_it_is(reading.classes)
        )
    if reading.sets:
        _refuse_all(reading, _NOT_OF_SETS, "prediction sets")
    if reading.outputs != PROBABILITIES:
        _check_thresholds(reading)
    if reading.time is not None or reading.horizon is not None:
        _check_horizon(reading)
    if reading.after is not None and reading.position is not None:
        raise InputError("cannot be given together with a position", argument="after")
    if reading.last_match and reading.after is None:
        raise InputError(
            "needs a pattern to match", argument="last_match", kind="missing", remedies=[passing(after=...)]
        )
    if reading.are_lists:
        _refuse_all(reading, _NOT_OF_LISTS, "top lists")
        if reading.outputs != PROBABILITIES:
            raise InputError("does not apply to top lists", argument="outputs")
        if reading.names is not None:
            _check_list_names(reading.names)
    elif reading.sets and reading.n_classes is not None:
        check_count("classes", reading.classes, least=2)


_NOT_OF_SETS = ("logits", "normalize", "percent", "raters", "rater_column", "positive")
_NOT_OF_LISTS = ("positive", "logits", "percent", "raters")


def _refuse_all(reading: Any, names: Iterable[str], what: str) -> None:
    for name in names:
        if getattr(reading, name):
            raise InputError(f"does not apply to {what}", argument=name)


def _check_outcomes(reading: Any) -> None:
    """Refuse outcomes that are stated in two ways."""
    if reading.raters and reading.target:
        raise InputError("cannot be given beside the column of outcomes", argument="raters")
    if reading.raters_are != RATERS_ARE[0] and not reading.raters:
        raise InputError(
            "is about the columns of raters", argument="raters_are", remedies=[passing(raters=...)]
        )
    long = {"rater_column": reading.rater_column, "label_column": reading.label_column}
    if all(value is None for value in long.values()):
        return
    for name, other in (("rater_column", "label_column"), ("label_column", "rater_column")):
        if long[name] is None:
            raise InputError(
                "must be given with the other column of a long table",
                argument=name,
                kind="missing",
                found=f"{other.replace('_', ' ')} is {show(long[other])}",
            )
    if reading.raters or reading.target:
        what = "raters" if reading.raters else "target"
        raise InputError("cannot be given beside the columns of a long table of raters", argument=what)
    if reading.id is None:
        raise InputError(
            "must name the column of cases in a long table of raters", argument="id", kind="missing"
        )


def _check_thresholds(reading: Any) -> None:
    """Refuse unnamed columns of thresholds, and options that are about classes."""
    for name in ("logits", "normalize", "sets", "positive"):
        if getattr(reading, name):
            logistic = [Remedy("Apply the logistic function to them first.")] if name == "logits" else []
            raise InputError(
                f"does not apply to {reading.outputs} outputs, which are probabilities",
                argument=name,
                remedies=logistic,
            )
    if not reading.probs:
        raise InputError(
            f"must name the columns of {reading.outputs} outputs, lowest threshold first",
            argument="probs",
            kind="missing",
            remedies=[passing(probs=...)],
        )


# Rows of other kinds and outcomes of several raters have no event to wait for.
_NOT_AT_HORIZON = ("raters", "rater_column", "sets", "grades", "lists")


def _check_horizon(reading: Any) -> None:
    """Refuse a horizon or its column of times alone, or beside options that leave no event to wait for."""
    for name, other in (("horizon", "time"), ("time", "horizon")):
        if getattr(reading, name) is None:
            raise InputError(
                f"must be given with {_NAMED_AT[other]}",
                argument=name,
                kind="missing",
                remedies=[passing(_NEEDED_FOR[name], **{name: ...})],
            )
    if reading.complete:
        raise InputError("cannot be given beside a horizon: with it no row is censored", argument="complete")
    _refuse_all(reading, _NOT_AT_HORIZON, "outcomes at a horizon, which are of two classes")
    if reading.outputs != PROBABILITIES:
        raise InputError("does not apply to outcomes at a horizon", argument="outputs")
    if reading.weights_are == "counts":
        raise InputError(
            "cannot be counts with a horizon: weights for censored rows are no numbers of rows",
            argument="weights_are",
            values=["counts"],
        )


_NAMED_AT = {"time": "the column of times", "horizon": "a horizon"}
_NEEDED_FOR = {
    "time": "(the column of times of the event, or up to which a row was followed)",
    "horizon": "(the time that the probabilities are about)",
}


def _check_list_names(names: tuple[Hashable, ...]) -> None:
    try:
        different = len(set(names)) == len(names)
    except TypeError:
        different = False
    if len(names) < 2 or not different:
        raise InputError(
            "must be the number of classes, or two different names or more",
            argument="classes",
            found=_it_is(list(names)),
        )


def text(argument: str, value: Any) -> str | None:
    """A text, or none."""
    if value is not None and not isinstance(value, str):
        raise InputError("must be a text", argument=argument, kind="type", found=_it_is(value))
    return value


def texts(argument: str, value: Any) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    texts = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputError(
            "must be a name or a list of names", argument=argument, kind="type", found=_it_is(value)
        )
    return tuple(texts)


def columns(argument: str, value: Any) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """The columns of one model, or of several by name."""
    if not isinstance(value, Mapping):
        return texts(argument, value)
    return {str(name): texts(argument, names) for name, names in value.items()}


def grades(argument: str, value: Any) -> str | dict[str, str] | None:
    """The column of grades of one model, or of each model by name."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or not value or not all(isinstance(c, str) for c in value.values()):
        raise InputError(
            "must be the column of grades, or that of each model by its name",
            argument=argument,
            kind="type",
            found=_it_is(value),
        )
    return {str(name): column for name, column in value.items()}


def group_columns(argument: str, given: object) -> str | tuple[str, str] | None:
    """The column of groups, or two of them."""
    columns = texts(argument, given)
    if len(set(columns)) < len(columns) or len(columns) > 2:
        raise InputError(
            "must be one column or two", argument=argument, values=columns, found=_it_is(columns)
        )
    return (columns[0], columns[1]) if len(columns) == 2 else columns[0] if columns else None


def id_columns(argument: str, given: object) -> str | tuple[str, ...] | None:
    """The column that identifies rows, or several that do so together."""
    columns = texts(argument, given)
    if len(set(columns)) < len(columns):
        raise InputError(
            "must be different columns", argument=argument, values=columns, found=_it_is(columns)
        )
    return columns if len(columns) > 1 else columns[0] if columns else None


def classes(argument: str, value: Any) -> int | tuple[Hashable, ...] | None:
    """The names of classes as a tuple (a text gives its characters), or their number."""
    if value is None or isinstance(value, tuple):
        return value
    if is_whole(value):
        try:
            return check_n_classes(value)
        except InputError as error:
            raise error.replace(argument=argument) from None
    if hasattr(value, "__array_namespace__"):
        from verax.inputs.arrays import to_host

        value = to_host(value)
    scalar = getattr(value, "ndim", 1) == 0
    if scalar or isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError("must be a list of names", argument=argument, kind="type", found=_it_is(value))
    return tuple(value)


def mark(argument: str, mark: Any) -> str | None:
    """A single character; None lets the content tell the delimiter."""
    if mark is None and argument == "delimiter":
        return None
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
        raise InputError("must be one character", argument=argument, found=_it_is(mark), values=[mark])
    return mark


def file(argument: str, value: Any) -> str | None:
    """The name of a file as text."""
    if value is not None and not isinstance(value, (str, PathLike)):
        raise InputError("must be the name of a file", argument=argument, kind="type", found=show(value))
    return None if value is None else str(value)


def after(argument: str, value: Any) -> str | None:
    """A regular expression, as its text."""
    value = value.pattern if isinstance(value, re.Pattern) else value
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise InputError("must be a regular expression", argument=argument, kind="type", found=show(value))
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(
            "must be a regular expression",
            argument=argument,
            found=f"{show(value)} is none ({error})",
            values=[value],
            remedies=[
                Remedy(
                    "Write a backslash before brackets and other special characters that are meant as such."
                )
            ],
        ) from None
    return value


def pair(_: str, value: Any) -> Any:
    """Two numbers, which their users check."""
    return tuple(value) if isinstance(value, list) else value


def lists(argument: str, value: Any) -> bool | None:
    """Whether there are top lists; None if only their content tells."""
    if not (value is None or isinstance(value, bool)):
        raise InputError(
            "must be a truth value, or options of lists by name",
            argument=argument,
            kind="type",
            found=_it_is(value),
        )
    return value


def positive_number(argument: str, value: Any) -> float | None:
    """A finite number above zero."""
    if value is None:
        return None
    return check_number(argument, value, "must be a number above 0", lambda number: number > 0)


def position(argument: str, value: Any) -> int | None:
    """The place of a token."""
    return None if value is None else check_integer(argument, value)


def _it_is(value: object) -> str:
    return f"it is {show(value)}"
