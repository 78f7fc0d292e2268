"""Several analyses of the same rows, which are read once for all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from verax.inputs.handles import Handle, Recipe, Summaries

Analysis = Callable[[Any], Any]


class _QuestionError(BaseException):
    """Stops an analysis at its first question. No handler of errors may take it for one."""

    def __init__(self, recipes: Mapping[str, Recipe[Any]]) -> None:
        super().__init__()
        self.recipes = recipes


def together(handle: Handle, analyses: Sequence[Analysis]) -> list[Any]:
    r"""What each analysis finds in the rows; one pass answers the first question of all.

    Each is run until it asks for summaries, and again when the answers are known. Further questions of an
    analysis take a pass each.

    Parameters
    ----------
    handle : Handle
        Rows that are not in memory.
    analyses : sequence of callables
        Each is given a handle in place of this one.

    Returns
    -------
    list
        What they return.

    Examples
    --------
    >>> import pathlib, tempfile, verax as vx
    >>> path = pathlib.Path(tempfile.mkdtemp(), "days.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> card, parts = together(vx.scan(path), [vx.evaluate, lambda rows: vx.decompose(rows, rule="brier")])
    >>> round(card["brier"], 3), round(parts.score, 3)
    (0.2, 0.2)
    """
    questions = [_first_question(handle, analysis) for analysis in analyses]
    # What asks for much computes losses that the others can use.
    order = sorted(range(len(questions)), key=lambda i: -len(questions[i]))
    summaries = handle._summarise({f"{i}/{name}": questions[i][name] for i in order for name in questions[i]})
    answers = [_answer(summaries, i) for i in range(len(questions))]
    # Analyses let go of what they do not need any more.
    del summaries
    return [analysis(_answering(handle, answers.pop(0))) for analysis in analyses]


def _first_question(handle: Handle, analysis: Analysis) -> Mapping[str, Recipe[Any]]:
    """What an analysis asks of the rows first."""

    def stop(recipes: Mapping[str, Recipe[Any]]) -> NoReturn:
        raise _QuestionError(recipes)

    try:
        analysis(_with_summaries(handle, stop))
    except _QuestionError as question:
        return question.recipes
    return {}


def _answer(summaries: Summaries, i: int) -> Summaries:
    """What one of the analyses asked for."""
    named = (name.partition("/") for name in summaries.by_name)
    return replace(
        summaries, by_name={name: summaries.by_name[f"{i}/{name}"] for of, _, name in named if of == str(i)}
    )


def _answering(handle: Handle, answer: Summaries) -> Handle:
    """A handle that knows the answer to the first question."""
    known = [answer]

    def summarise(recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return known.pop() if known else handle._summarise(recipes)

    return _with_summaries(handle, summarise)


def _with_summaries(handle: Handle, summarise: Callable[[Mapping[str, Recipe[Any]]], Summaries]) -> Handle:
    """The same handle, with another way to make summaries."""
    same = copy.copy(handle)
    vars(same)["_summarise"] = summarise
    return same
