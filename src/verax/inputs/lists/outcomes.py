"""Outcomes as lists call their classes: as texts or numbers, by names or by positions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from verax.inputs.lists.vocabulary import ClassVocabulary

# Longer texts of digits are no positions of classes.
_DIGITS = 18


def alike(given: list[Any], vocabulary: ClassVocabulary) -> list[Hashable]:
    """Outcomes as texts where the classes are texts, as numbers where they are numbers.

    The keys of JSON and the cells of CSV files are always text. Classes called LABEL_0, LABEL_1 stand for
    0 and 1.
    """
    kinds = {type(name) for name in vocabulary.names}
    if kinds == {int}:
        return [_integer(v) if isinstance(v, str) else v for v in given]
    if kinds != {str}:
        return given
    known, texts = set(vocabulary.names), [str(value) for value in given]
    return [
        labelled if text not in known and (labelled := f"LABEL_{text}") in known else text for text in texts
    ]


def _integer(text: str) -> Hashable:
    """A text as the whole number that it stands for, if it does."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isdecimal() and len(digits) <= _DIGITS else text


def from_positions(y: list[Any], vocabulary: ClassVocabulary) -> tuple[bool, list[Hashable]]:
    """Outcomes that are positions of classes as the names of these, and whether they are.

    They are if all are whole numbers and no class is called by a number.
    """
    names = vocabulary.names
    numbers = [_position(value, len(names)) for value in y]
    if None in numbers or any(isinstance(name, int) or str(name).strip().isdecimal() for name in names):
        return False, y
    return True, [names[number] for number in numbers if number is not None]


def first_beyond(y: list[Any], vocabulary: ClassVocabulary) -> int | None:
    """Where positions that count from 1 first exceed the last class; None where they do not count from 1.

    They do if all are whole numbers, none is 0, some are as large as the number of classes and none larger.
    """
    names = vocabulary.names
    numbers = [whole_number(value) for value in y]
    if any(isinstance(name, int) or whole_number(name) is not None for name in names):
        return None
    if not numbers or any(number is None or not 0 < number <= len(names) for number in numbers):
        return None
    return numbers.index(len(names)) if len(names) in numbers else None


def names_at_positions(y: list[Any], vocabulary: ClassVocabulary) -> list[Hashable]:
    """Outcomes with the names of classes in place of their positions; what is no position stays."""
    names = vocabulary.names
    numbers = [_position(value, len(names)) for value in y]
    return [value if at is None else names[at] for value, at in zip(y, numbers, strict=True)]


def whole_number(value: Any) -> int | None:
    """A whole number, also written as a text; None for anything else, and for numbers of too many digits."""
    if isinstance(value, int):
        return int(value)
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _position(value: Any, n: int) -> int | None:
    number = whole_number(value)
    return number if number is not None and 0 <= number < n else None
