"""Forecasts whose outcomes come later, kept row by row: probabilities, or top lists."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Floats
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary, LabelSets


@dataclass(frozen=True)
class ListForm:
    """What the lists of one call have in common.

    Attributes
    ----------
    names : tuple or None
        The names of all classes, in order, if they are known.
    named : bool
        Whether lists name classes; otherwise they have positions.
    tolerance, slack : float
        As in `TopLists`.
    """

    names: tuple[Hashable, ...] | None
    named: bool
    tolerance: float
    slack: float


@dataclass(frozen=True, eq=False)
class WaitingList:
    """A top list without an outcome: its classes, by name or position, and their confidences."""

    classes: tuple[Hashable, ...]
    confidences: Floats
    form: ListForm = field(repr=False)


def waiting_lists(p: TopLists, vocabulary: ClassVocabulary | None) -> list[WaitingList]:
    """Lists row by row; `vocabulary` says what their codes stand for."""
    if isinstance(vocabulary, LabelSets):
        raise InputError("must not be lists of label sets: their outcomes cannot come later", argument="p")
    names = tuple(vocabulary.names) if vocabulary is not None and vocabulary.complete else None
    form = ListForm(names, vocabulary is not None, p.tolerance, p.slack)
    codes: list[Any] = p.classes.tolist()
    if vocabulary is not None:
        codes = [vocabulary.name(code) for code in codes]
    edges = p.offsets.tolist()
    return [WaitingList(tuple(codes[a:b]), p.confidences[a:b], form) for a, b in pairwise(edges)]


def same_forecast(one: Any, other: Any) -> bool:
    """Whether two forecasts of a row are the same."""
    if isinstance(one, WaitingList) and isinstance(other, WaitingList):
        return one.classes == other.classes and np.array_equal(one.confidences, other.confidences)
    return type(one) is type(other) and np.array_equal(one, other)


def together(rows: Sequence[Any], n_classes: int) -> Any:
    """Forecasts of several rows as they were given: an array, or lists."""
    if not isinstance(rows[0], WaitingList):
        return np.stack(rows)
    forms = list(dict.fromkeys(row.form for row in rows))
    if len({form.named for form in forms}) > 1 or len({form.names for form in forms} - {None}) > 1:
        raise InputError("must name classes in the same way in all forecasts", argument="p", kind="label")
    names = next((form.names for form in forms if form.names is not None), None)
    classes: list[Any] = [name for row in rows for name in row.classes]
    vocabulary = None
    if forms[0].named:
        known = dict.fromkeys(classes) if names is None else names
        vocabulary = ClassVocabulary(known, complete=names is not None)
        classes = vocabulary.codes(classes).tolist()
    return TopLists(
        np.array(classes, np.int64),
        np.concatenate([row.confidences for row in rows]),
        offsets_of(np.array([len(row.classes) for row in rows], np.int64)),
        n_classes,
        vocabulary=vocabulary,
        tolerance=max(form.tolerance for form in forms),
        slack=max(form.slack for form in forms),
    )


def to_values(rows: Sequence[Any]) -> dict[str, Any]:
    """Forecasts, to be stored."""
    if not rows or not isinstance(rows[0], WaitingList):
        return {"p": np.stack(rows) if rows else np.zeros((0, 0)), "lists": None}
    forms = {row.form: None for row in rows}
    places = {form: i for i, form in enumerate(forms)}
    lists = {
        "forms": [
            {**vars(form), "names": None if form.names is None else list(form.names)} for form in forms
        ],
        "form": np.array([places[row.form] for row in rows], np.int64),
        "classes": [list(row.classes) for row in rows],
        "confidences": np.concatenate([row.confidences for row in rows]),
    }
    return {"p": np.zeros((len(rows), 0)), "lists": lists}


def from_values(values: Mapping[str, Any]) -> Sequence[Any]:
    """Forecasts as they were stored."""
    lists = values.get("lists")
    if lists is None:
        found: Sequence[Any] = values["p"]
        return found
    forms = [
        ListForm(
            None if form["names"] is None else tuple(form["names"]),
            bool(form["named"]),
            float(form["tolerance"]),
            float(form["slack"]),
        )
        for form in lists["forms"]
    ]
    edges = offsets_of(np.array([len(own) for own in lists["classes"]], np.int64)).tolist()
    confidences = np.asarray(lists["confidences"], float)
    if confidences.shape != (edges[-1],):
        raise ValueError("lists and confidences of different lengths")
    return [
        WaitingList(tuple(own), confidences[a:b], forms[form])
        for own, form, a, b in zip(lists["classes"], lists["form"].tolist(), edges, edges[1:], strict=False)
    ]
