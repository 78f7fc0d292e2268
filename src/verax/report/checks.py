"""Checks of the data: duplicates, row sums, outcomes of probability zero, classes that never occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.analyses.cards.scorecard import Scorecard
from verax.common.hashing import mixed as mix
from verax.common.sorting import stable_order
from verax.errors import join
from verax.inputs.skipping import Skipped
from verax.report.problem import Problem
from verax.report.words import clean, count, number, percent

Kind = Literal["fine", "note", "look"]

_NAMED = 5
_RARE = 10


@dataclass(frozen=True)
class Check:
    """One question asked of the data, and the answer in words."""

    question: str
    kind: Kind
    answer: str


def look_over(
    problem: Problem, cards: Mapping[str, Scorecard], left_out: Mapping[str, list[tuple[str, int]]]
) -> list[Check]:
    """All checks, in the order in which the page shows them."""
    checks = [
        *([] if problem.skipped is None else [left_out_check(problem.skipped)]),
        _duplicated_rows(problem),
        *([_duplicated_ids(problem)] if problem.ids is not None else []),
        *_sums(problem),
        impossible(problem, cards),
        unpredicted(problem, cards),
        observed(problem, np.bincount(problem.y, minlength=problem.n_classes)),
        _constant(problem),
        certain(problem, {name: float(np.mean((p == 0) | (p == 1))) for name, p in problem.models.items()}),
    ]
    checks += [small(name, left) for name, left in left_out.items()]
    return checks


# ---- rows --------------------------------------------------------------------------------------

NO_COPIES = "No two rows{} have the same outcome and the same probabilities between 0 and 1."


def left_out_check(skipped: Skipped) -> Check:
    """The invalid rows that were left out."""
    kind: Kind = "look" if skipped.caution else "note" if skipped.count else "fine"
    found = ". ".join(filter(None, (str(skipped), skipped.caution)))
    return Check("Invalid rows that were left out", kind, f"{found}.")


def _duplicated_rows(problem: Problem) -> Check:
    question = "Rows that are there twice"
    forecasts = list(problem.models.values())
    pairs = duplicates(problem.y, forecasts)
    # Rows of zeros and ones are alike without being copies.
    pairs = pairs[~saturated(forecasts)[pairs[:, 0]]]
    if not len(pairs):
        return Check(question, "fine", NO_COPIES.format(""))
    share = len(pairs) / problem.n_rows
    which = "; ".join(
        f"{_rows(problem, [row])} repeats {_name(problem, first)}" for row, first in pairs[:_NAMED]
    )
    more = f"; and {len(pairs) - _NAMED:,} more" if len(pairs) > _NAMED else ""
    what = (
        f"{count(len(pairs), 'row')} ({percent(share)}) {'repeats' if len(pairs) == 1 else 'repeat'} an "
        f"earlier one in outcome and probabilities: {which}{more}. If these are copies, the intervals are "
        "too narrow."
    )
    return Check(question, "look" if share > 0.01 else "note", what)


def saturated(forecasts: Sequence[Any]) -> Any:
    """The rows in which every probability, of every model, is 0 or 1.

    >>> import numpy as np
    >>> saturated([np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 0.0])]).tolist()
    [True, False]
    """
    sure = [(p == 0) | (p == 1) for p in forecasts]
    return np.logical_and.reduce([each if each.ndim == 1 else each.all(axis=1) for each in sure])


def duplicates(y: Any, forecasts: Sequence[Any]) -> Any:
    """The rows that repeat an earlier one in every number, each with the row before that it repeats.

    Rows are put in the order of a 64-bit mix of their numbers, and neighbours of equal mix compared.

    >>> import numpy as np
    >>> p = np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    >>> duplicates(np.array([0, 1, 0, 1]), [p]).tolist()
    [[2, 0]]
    """
    mixed = mix(y.astype(np.uint64))
    columns = [column for p in forecasts for column in (p.T if p.ndim == 2 else [p])]
    for column in columns:
        # Adding zero makes one number of the two zeros.
        mixed = mix(mixed ^ (column.astype(np.float64) + 0.0).view(np.uint64))
    order = stable_order(mixed)
    before, after = order[:-1], order[1:]
    near = mixed[before] == mixed[after]
    before, after = before[near], after[near]
    same = y[before] == y[after]
    for column in columns:
        same &= column[before] == column[after]
    pairs = np.stack([after[same], before[same]], axis=1)
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


def _duplicated_ids(problem: Problem) -> Check:
    question = "Ids that are there twice"
    texts = np.array([str(value) for value in problem.ids.tolist()], dtype=object)
    values, counts = np.unique(texts, return_counts=True)
    twice = values[counts > 1]
    if not len(twice):
        return Check(question, "fine", "Every id is there once.")
    shown = join(f"“{clean(v, 40)}”" for v in twice[:_NAMED].tolist())
    more = ", …" if len(twice) > _NAMED else ""
    how = f"{count(len(twice), 'id')} occur more than once ({shown}{more})."
    return Check(
        question, "note", f"{how} If their rows belong together, pass them as groups: intervals widen."
    )


def _sums(problem: Problem) -> list[Check]:
    question = "Rows that do not sum to one"
    if problem.logits:
        return [Check(question, "fine", "Probabilities were made of logits, so every row sums to one.")]
    if any(p.ndim == 1 for p in problem.models.values()):
        return [Check(question, "fine", "One probability per row was given; the other class has the rest.")]
    off = {name: np.abs(p.sum(axis=1, dtype=np.float64) - 1) for name, p in problem.models.items()}
    worst = max(off, key=lambda name: float(off[name].max()))
    largest, row = float(off[worst].max()), int(off[worst].argmax())
    counts = {name: int(np.sum(o > 1e-6)) for name, o in off.items()}
    of = "" if len(off) == 1 else f" of {worst}"
    if largest <= 1e-6:
        return [Check(question, "fine", "Every row sums to one within a millionth.")]
    # Of each model, because the same row may be off in several.
    rows = "; ".join(f"{_of(name, off)}{count(n, 'row')}" for name, n in counts.items() if n)
    verb = "differs" if list(counts.values()) == [1] else "differ"
    answer = (
        f"{rows} {verb} from one by more than a millionth; the farthest{of} sums to "
        f"{float(problem.models[worst][row].sum(dtype=np.float64)):.6f} ({_rows(problem, [row])}). "
    )
    answer += (
        "All rows were rescaled, as asked."
        if problem.normalize
        else "That is within the tolerance; used as is."
    )
    return [Check(question, "note", answer)]


def _rows(problem: Problem, rows: Sequence[int]) -> str:
    """The first few rows by id, or by number."""
    shown = ", ".join(_name(problem, row) for row in rows[:_NAMED])
    word = ("id" if problem.ids is not None else "row") + ("" if len(rows) == 1 else "s")
    return f"{word} {shown}{', …' if len(rows) > _NAMED else ''}"


def _name(problem: Problem, row: int) -> str:
    """The id of a row in quotes, or its number."""
    found = problem.id_of(int(row))
    return str(found) if problem.ids is None else f"“{clean(found, 40)}”"


# ---- outcomes and classes ----------------------------------------------------------------------


def impossible(problem: Problem, cards: Mapping[str, Scorecard]) -> Check:
    """Outcomes that had been given probability zero."""
    question = "Outcomes that had been given probability zero"
    found = {name: card for name, card in cards.items() if card.n_zero_probability}
    if not found:
        return Check(question, "fine", "None: every outcome had some probability.")
    texts = []
    for name, card in found.items():
        n, rows = card.n_zero_probability, card.zero_probability_rows
        texts.append(f"{_of(name, cards)}{count(n, 'row')} ({_rows(problem, rows)})")
    return Check(question, "look", f"{'; '.join(texts)}. There the log scores are infinite.")


def _of(name: str, several: Mapping[str, Any]) -> str:
    return f"{name}: " if len(several) > 1 else ""


def unpredicted(problem: Problem, cards: Mapping[str, Scorecard]) -> Check:
    """Classes that are never predicted."""
    question = "Classes that are never predicted"
    texts = []
    for name, card in cards.items():
        if card.confusion is None:
            return Check(
                question, "note", "Not looked at: beyond 1,024 classes no table of decisions is kept."
            )
        never = np.flatnonzero((card.confusion.sum(axis=0) == 0) & (card.class_counts > 0))
        if len(never):
            texts.append(f"{_of(name, cards)}{_classes(problem, never)}")
    if not texts:
        return Check(question, "fine", "Every class that happened is the most likely one in some row.")
    return Check(question, "look", f"{'; '.join(texts)}: never the most likely class, though they happened.")


def observed(problem: Problem, n: Any) -> Check:
    """Classes that never happened or hardly, by the number of rows of each."""
    question = "Classes that never happened, or hardly"
    never, rare = np.flatnonzero(n == 0), np.flatnonzero((n > 0) & (n < _RARE))
    texts = []
    if len(never):
        texts.append(f"{_classes(problem, never)} never happened")
    if len(rare):
        texts.append(f"{_classes(problem, rare)} happened fewer than {_RARE} times")
    if not texts:
        return Check(question, "fine", f"Every class happened at least {_RARE} times.")
    return Check(question, "note", f"{'; '.join(texts)}. Little can be said about them.")


def _classes(problem: Problem, positions: Any) -> str:
    names = [problem.names[i] for i in positions[:_NAMED]]
    more = len(positions) - len(names)
    return join([*names, *([f"{more} more"] if more else [])])


def _constant(problem: Problem) -> Check:
    question = "Forecasts that are always the same"
    constant = [name for name, p in problem.models.items() if bool((p == p[:1]).all())]
    if not constant or problem.n_rows == 1:
        return Check(question, "fine", "No: forecasts differ from row to row.")
    who = "" if len(problem.models) == 1 else f"{join(constant)}: "
    return Check(question, "look", f"{who}every row has the same probabilities. Are these predictions?")


def certain(problem: Problem, shares: Mapping[str, float]) -> Check:
    """Probabilities of exactly 0 or 1, by their share of the numbers of each model."""
    question = "Probabilities of exactly 0 or 1"
    if problem.logits:
        return Check(question, "fine", "Probabilities were made of logits.")
    if not any(shares.values()):
        return Check(question, "fine", "None.")
    texts = [f"{_of(name, shares)}{percent(s)}" for name, s in shares.items() if s]
    most = max(shares.values())
    note = "of all numbers. A zero rules an outcome out for good; is that meant?"
    hard = " These look like hard labels rather than probabilities." if number(most) == "1.0000" else ""
    return Check(question, "note", f"{'; '.join(texts)} {note}{hard}")


def small(name: str, left: list[tuple[str, int]]) -> Check:
    """Subgroups that are not shown."""
    question = f"Subgroups of {name} that are too small, or too many"
    if not left:
        return Check(question, "fine", "None: all are shown.")
    shown = join([f"{clean(label, 40)} ({n:,})" for label, n in left[:_NAMED]])
    more = f" and {len(left) - _NAMED:,} more" if len(left) > _NAMED else ""
    return Check(question, "note", f"Left out: {shown}{more}.")
