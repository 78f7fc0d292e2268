"""The answers to each question, from a row per question or a row per answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.analyses.comparison.grades import read_grades
from verax.common.checks import check_choice
from verax.common.ids import numbered
from verax.errors import InputError, Remedy
from verax.inputs.arrays import Floats, Ints, to_array, to_host
from verax.inputs.groups import missing
from verax.inputs.questions import column_of, ids_of
from verax.scores.grades import Grade

Ungraded = Literal["exclude", "wrong"]
_ONLY = "grades"


@dataclass(frozen=True)
class Answers:
    """The graded answers of one model to each question.

    Attributes
    ----------
    ids : list
        The questions.
    grades : list of arrays
        The grades of each, from 0 for the worst to 1 for the best.
    groups : array of shape (Q,) or None
        The group of each question.
    left : int
        The number of answers without a grade, which are left out.
    """

    ids: list[Any]
    grades: list[Floats]
    groups: Any
    left: int

    @property
    def counts(self) -> Ints:
        """The number of graded answers to each question."""
        return np.array([len(of_question) for of_question in self.grades])


def read_answers(
    grades: object, ids: object, groups: object, scale: Grade, ungraded: Ungraded
) -> dict[str, Answers]:
    """The answers of each model, by its name; of one model under an empty name."""
    check_choice("ungraded", ungraded, ("exclude", "wrong"))
    given = grades if isinstance(grades, Mapping) else {"": grades}
    if not given:
        raise InputError("must have the grades of a model", argument="grades", kind="length")
    return {
        str(name): _of_model(str(name), values, ids, groups, scale, ungraded)
        for name, values in given.items()
    }


def _of_model(
    name: str, values: object, ids: object, groups: object, scale: Grade, ungraded: Ungraded
) -> Answers:
    raw = to_host(to_array(values, _ONLY)[0])
    source = repr(name) if name else ""
    if raw.ndim == 2 and ids is None:
        ids, n = np.repeat(np.arange(len(raw)), raw.shape[1]), raw.shape[1]
        if groups is not None:
            groups = np.repeat(column_of(groups, name, len(raw), "groups"), n)
        raw = raw.ravel()
        # A row that is shorter than others ends with gaps.
        empty = missing(raw) if raw.dtype == object else np.isnan(raw.astype(float))
    elif ids is None:
        raise InputError(
            "must be a row per question with a column per repeat, or have `ids`",
            argument="grades",
            kind="missing",
            source=source,
            found=f"the shape is {raw.shape}",
            remedies=[Remedy("Pass `ids`, the question of each answer.", python_only=True)],
        )
    else:
        empty = np.zeros(len(raw), np.bool_)
    read = read_grades(raw, scale, source)
    column = ids_of(ids, name, len(read)) if isinstance(ids, Mapping) else ids_of(ids, "", len(read))
    if ungraded == "wrong":
        read = np.where(np.isnan(read) & ~empty, scale.low, read)
    (codes,), n_ids = numbered([column])
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n_ids))
    known = ~np.isnan(read)
    shares = (read - scale.low) / (scale.high - scale.low)
    split = [part[known[part]] for part in np.split(order, starts[1:])]
    labels = None if groups is None else column_of(groups, name, len(read), "groups")[order[starts]]
    left = int((~known & ~empty).sum())
    return Answers(column[order[starts]].tolist(), [shares[part] for part in split], labels, left)
