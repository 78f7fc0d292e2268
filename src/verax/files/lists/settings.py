"""What a caller says about a file of lists."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from verax.common.checks import check_choice, check_flag, check_integer, check_n_classes
from verax.errors import InputError, Remedy, passing, show
from verax.files.predictions import each_name, group_columns, id_columns
from verax.inputs.records.variants import RULES

# What becomes of several sampled answers to one question.
SAMPLES = {
    "first": "Records with several sampled answers, of which only the first is read",
    "pool": "Records with several sampled answers, which are averaged",
    "repeats": "Lists of one of several sampled answers, which form a group",
}


@dataclass(frozen=True)
class ListSettings:
    """Checked options of `open_lists`, where they are described.

    Attributes
    ----------
    names : tuple of hashable or None
        The names of all classes.
    n_classes : int or None
        Their number, where their names are not all known.
    by : tuple of str
        Fields of subgroups.
    after : re.Pattern or None
        What stands before the token to read.
    columns : tuple of str
        The field that holds the list, or those of its classes and of their probabilities; none where the
        shape says where these are.
    late : bool
        Whether outcomes come later, in another file: none are read.
    """

    outcome: str | None = None
    outcomes: str | None = None
    id: str | tuple[str, ...] | None = None
    names: tuple[Hashable, ...] | None = None
    n_classes: int | None = None
    weights: str | None = None
    groups: str | tuple[str, str] | None = None
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    position: int | None = None
    after: re.Pattern[str] | None = None
    last_match: bool = False
    samples: str = "first"
    per_length: bool = False
    normalize: bool = False
    invalid: str = "raise"
    missing: str = "raise"
    others: str = "raise"
    merge_variants: str | None = None
    shape: str | None = None
    delimiter: str | None = None
    late: bool = False

    @property
    def beside(self) -> tuple[str, ...]:
        """The fields beside the outcome and the list, once each."""
        named = (*each_name(self.id), self.weights, *each_name(self.groups), *self.by)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @classmethod
    def of(cls, *, shapes: Iterable[str], classes: Any = None, **options: Any) -> ListSettings:
        """Settings from what a caller passes, with the types checked."""
        given = {**vars(cls()), **options}
        del given["names"], given["n_classes"], given["columns"]
        for name in ("outcome", "weights", "delimiter"):
            if given[name] is not None and not isinstance(given[name], str):
                raise InputError(
                    "must be a text", argument=name, kind="type", found=f"it is {show(given[name])}"
                )
        if given["outcomes"] is not None:
            if not isinstance(given["outcomes"], (str, PathLike)):
                raise InputError(
                    "must be the name of a file",
                    argument="outcomes",
                    kind="type",
                    found=show(given["outcomes"]),
                )
            given["outcomes"] = str(given["outcomes"])
        given["by"] = tuple(given["by"])
        given["id"], given["groups"] = id_columns(given["id"]), group_columns(given["groups"])
        if given["position"] is not None:
            given["position"] = check_integer("position", given["position"])
        given["after"] = _pattern(given["after"])
        if given["after"] is not None and given["position"] is not None:
            raise InputError("cannot be given together with a position", argument="after")
        if given["last_match"] and given["after"] is None:
            raise InputError(
                "needs a pattern to match",
                argument="last_match",
                kind="missing",
                remedies=[passing(after=...)],
            )
        check_choice("samples", given["samples"], SAMPLES)
        for name in ("normalize", "per_length", "last_match"):
            given[name] = check_flag(name, given[name])
        check_choice("invalid", given["invalid"], ("raise", "skip"))
        check_choice("missing", given["missing"], ("raise", "omit"))
        check_choice("others", given["others"], ("raise", "omit"))
        if given["merge_variants"] is not None:
            check_choice("merge_variants", given["merge_variants"], tuple(RULES))
        if given["shape"] is not None:
            check_choice("shape", given["shape"], tuple(shapes))
        return cls(**given, **_classes(classes))


def _pattern(after: Any) -> re.Pattern[str] | None:
    """A regular expression, from its text."""
    if after is None or isinstance(after, re.Pattern):
        return after
    if not isinstance(after, str) or not after:
        raise InputError("must be a regular expression", argument="after", kind="type", found=show(after))
    try:
        return re.compile(after)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(
            "must be a regular expression",
            argument="after",
            found=f"{show(after)} is none ({error})",
            values=[after],
            remedies=[
                Remedy(
                    "Write a backslash before brackets and other special characters that are meant as such."
                )
            ],
        ) from None


def _classes(classes: Any) -> dict[str, Any]:
    """The names of all classes, or their number."""
    if classes is None:
        return {}
    if isinstance(classes, (str, bytes, Mapping)) or not isinstance(classes, Iterable):
        try:
            return {"n_classes": check_n_classes(classes)}
        except InputError as error:
            raise error.replace(argument="classes") from None
    names = tuple(classes)
    try:
        different = len(set(names)) == len(names)
    except TypeError:
        different = False
    if len(names) < 2 or not different:
        raise InputError(
            "must be the number of classes, or two different names or more",
            argument="classes",
            found=f"it is {show(list(names))}",
        )
    return {"names": names}
