"""The questions that records with lists are about."""

from __future__ import annotations

from collections.abc import Collection

from verax.common.paths import Files, files_named
from verax.errors import VeraxError
from verax.files.formats.records import open_stream
from verax.wings.evals.reading.graded import question_text


def questions_of(paths: Files, rows: Collection[int]) -> dict[int, str]:
    """The questions of some records of a file, by their places in it; none where they cannot be told."""
    named = files_named(paths)
    if named is None or len(named[0]) != 1 or not named[0][0].is_file() or not rows:
        return {}
    last, questions = max(rows), {}
    try:
        for place, (_, record) in enumerate(open_stream(named[0][0])):
            if place in rows and (text := question_text(record)) is not None:
                questions[place] = text
            if place >= last:
                break
    except VeraxError:
        # A table without records has no questions.
        return {}
    return questions
