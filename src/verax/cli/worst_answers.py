"""Graded answers as `verax evals worst` shows them, and the questions of records."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from verax.common.paths import Files, files_named
from verax.display.tables import text_table
from verax.errors import VeraxError

if TYPE_CHECKING:
    from verax.files.grades import GradedAnswers

# How many characters of a text are shown.
_LONGEST = 100


def case_of(answers: GradedAnswers, row: int) -> dict[str, Any]:
    """An answer with its grade, confidence, and what the file says of it."""
    named, sure = answers.ids, answers.confidences
    return {
        "row": row,
        "id": None if named is None else str(named[row]),
        "grade": float(answers.grades[row]),
        "confidence": None if sure is None else _number(sure[row]),
        "about": {name: _text(column[row]) for name, column in answers.about.items()},
    }


def table_of(cases: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Answers as a table; `names` are the columns of what the file says of them."""
    if not cases:
        return ["Every graded answer has the best grade."]
    sure = cases[0]["confidence"] is not None
    named = cases[0]["id"] is not None
    head = ["id" if named else "row", "grade", *(["confidence"] if sure else []), *names]
    rows = []
    for case in cases:
        row = [str(case["id"] if named else case["row"]), f"{case['grade']:g}"]
        row += [_decimals(case["confidence"])] if sure else []
        rows.append(row + [_short(case["about"][name]) for name in names])
    return text_table([head, *rows], right=[1])


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def questions_of(paths: Files, places: Collection[int]) -> dict[int, str]:
    """The questions of some records of a file, by their places in it; none where they cannot be told."""
    from verax.files.lists.streams import open_stream
    from verax.files.logs.containers import samples_of
    from verax.inputs.records.graded import question_text

    named = files_named(paths)
    if named is None or len(named[0]) != 1 or not named[0][0].is_file() or not places:
        return {}
    path = named[0][0]
    try:
        samples = samples_of(path)
        records = (record for _, record in open_stream(path)) if samples is None else samples
        last, found = max(places), {}
        for place, record in enumerate(records):
            if place in places and (text := question_text(record)) is not None:
                found[place] = text
            if place >= last:
                break
        return found
    except VeraxError:
        # A table without records has no questions.
        return {}
