"""Repeats in tables of answers: the column that names the question, and the one that counts its repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.ids import numbered
from verax.inputs.arrays import Array, Ints

# What columns that count repeats are called. A column of another name that counts within an id may number
# the questions of a subject.
_REPEATS = (
    *("epoch", "repeat", "repetition", "rep", "sample", "sample_idx", "sample_index", "sample_id", "trial"),
    *("run", "attempt", "try", "replicate", "iteration", "iter", "generation", "completion", "seed", "draw"),
)
# What columns of questions are called, in order of preference.
_QUESTIONS = (
    *("question_id", "qid", "id", "problem_id", "task_id", "item_id", "example_id", "doc_id", "prompt_id"),
    *("question", "problem", "task", "item", "example", "prompt", "input"),
)


@dataclass(frozen=True)
class Repeats:
    """Which column names the question of each answer, and which counts its repeats.

    Attributes
    ----------
    question, repeat : str
        The columns.
    questions : int
        The number of questions.
    times : int
        How often each was asked.
    """

    question: str
    repeat: str
    questions: int
    times: int

    def words(self, models: bool) -> str:
        """How the answers are read, in a line."""
        of = " of each model" if models else ""
        return (
            f"{self.questions * self.times:,} answers{of} to {self.questions:,} questions ({self.question}), "
            f"each asked {self.times:,} times ({self.repeat})"
        )


def may_matter(name: str, *, known: bool) -> bool:
    """Whether a column may name questions or count repeats; any may count those of a `known` question."""
    return known or name.casefold() in {*_QUESTIONS, *_REPEATS}


def found_repeats(
    columns: Mapping[str, Sequence[Any]], question: Sequence[str], taken: Iterable[str], model: Array | None
) -> Repeats | None:
    """The repeats of questions by the values of columns: each has the same number, counted from 0 or 1.

    `question` is the column that is known to name questions, if there is one, and `taken` are those that mean
    something else. With `model` all of this holds for every model.

    >>> table = {"task": ["a", "a", "b", "b"], "sample": [0, 1, 0, 1], "correct": [1, 0, 1, 1]}
    >>> found_repeats(table, (), ["correct"], None)
    Repeats(question='task', repeat='sample', questions=2, times=2)
    """
    free = {name: cells for name, cells in columns.items() if name not in {*taken, *question}}
    named = {name.casefold(): name for name in reversed(list(columns))}
    questions = list(question) or [
        named[name] for name in _QUESTIONS if name in named and named[name] in free
    ]
    repeats = [name for name in free if question or name.casefold() in _REPEATS]
    if not questions or not repeats:
        return None
    of_model, n_models = np.zeros(len(next(iter(columns.values()))), np.int64), 1
    if model is not None:
        (of_model,), n_models = numbered([model])
    counts = {name: count for name in repeats if (count := _counting(free[name])) is not None}
    for name in questions:
        for repeat, count in counts.items():
            times = int(count.max(initial=-1)) + 1
            if repeat != name and times > 1:
                n = _questions(columns[name], count, times, of_model, n_models)
                if n:
                    return Repeats(name, repeat, n, times)
    return None


def _counting(cells: Sequence[Any]) -> Ints | None:
    """Cells as numbers from 0, if they are whole numbers from 0 or 1 to some other."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except (TypeError, ValueError):
        return None
    if not len(numbers) or not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return None
    first, last = numbers.min(), numbers.max()
    if first not in (0, 1) or last - first >= len(numbers) or len(set(numbers.tolist())) != last - first + 1:
        return None
    return np.asarray(numbers - first, np.int64)


def _questions(cells: Sequence[Any], count: Ints, times: int, model: Ints, n_models: int) -> int:
    """The number of questions, if each has every repeat once for every model; otherwise 0."""
    if any(cell is None for cell in cells):
        return 0
    (codes,), n = numbered([np.array([str(cell) for cell in cells])])
    together = (codes * n_models + model) * times + count
    whole = len(cells) == n * times * n_models and len(np.unique(together)) == len(cells)
    return n if whole else 0
