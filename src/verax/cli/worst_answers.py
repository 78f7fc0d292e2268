"""The graded answers to look at first, as `verax worst` shows them, and the questions of records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from verax.cli.grading import Grading
from verax.cli.options import Reading
from verax.cli.output import show
from verax.common.paths import Files, called, files_named
from verax.display.tables import text_table
from verax.errors import VeraxError

# How many characters of a text are shown.
_LONGEST = 100


def show_worst_answers(paths: Files, grading: Grading, reading: Reading, n: int, *, as_json: bool) -> None:
    """Print the answers with the lowest grades; of equal ones, those with the highest confidence first."""
    answers = grading.read_one(paths, reading, questions=True)
    loss = grading.ends[1] - answers.grades
    sure = np.zeros(len(loss)) if answers.confidences is None else np.nan_to_num(answers.confidences)
    graded = np.flatnonzero(~np.isnan(loss))
    order = graded[np.lexsort((graded, -sure[graded], -loss[graded]))]
    lowest = [int(row) for row in order[:n] if loss[row] > 0]
    cases = []
    for row in lowest:
        case: dict[str, Any] = {"row": row, "id": None if answers.ids is None else str(answers.ids[row])}
        case |= {"grade": float(answers.grades[row])}
        case["confidence"] = None if answers.confidences is None else _number(answers.confidences[row])
        case["about"] = {name: _text(column[row]) for name, column in answers.about.items()}
        cases.append(case)
    file = called(paths)
    n_worst = int(np.sum(loss[graded] > 0))
    result = {
        "command": "worst",
        "file": file,
        "taken": list(answers.taken),
        "rule": "grade",
        "n_rows": len(graded),
        "answers": cases,
    }
    said = f"{len(lowest):,} of the {n_worst:,} answers below the best grade"
    if answers.confidences is not None:
        said += ", by grade and then by confidence"
    texts = [f"{file}: {'; '.join(answers.taken)}", said, *_table(cases, list(answers.about))]
    show(result, texts, as_json=as_json)


def _table(cases: list[dict[str, Any]], names: list[str]) -> list[str]:
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
    from verax.inputs.records.questions import question_text

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
