"""Checks of lists: invalid ones and what is cut off, sums above one, ties, empty lists, unnamed outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from verax.analyses.cards.listcard import ListCard
from verax.inputs.lists.toplists import TopLists
from verax.report.checks import Check, Kind, left_out_check
from verax.report.lists.problem import ListProblem
from verax.report.words import clean, count, number, percent

_NAMED = 5


def look_over(problem: ListProblem, cards: Mapping[str, ListCard]) -> list[Check]:
    """All checks, in the order in which the page shows them."""
    return [
        *([] if problem.skipped is None else [left_out_check(problem.skipped)]),
        _each(problem, "Lists that are invalid", _invalid),
        _each(problem, "Classes that are listed twice", _twice),
        _each(problem, "Lists that sum to more than one", _sums),
        _each(problem, "Order of the listed classes", _order),
        _each(problem, "Classes with the same probability", _tied),
        _each(problem, "Lists of different lengths, or empty", _lengths),
        _each(problem, "Listed classes with probability zero", _zeros),
        _duplicates(problem),
        _uncovered(cards),
        _impossible(cards),
    ]


def _each(
    problem: ListProblem, question: str, look: Callable[[ListProblem, TopLists], tuple[Kind, str]]
) -> Check:
    """One check of the lists of every model; the gravest answer gives its kind."""
    order: tuple[Kind, ...] = ("fine", "note", "look")
    found = {name: look(problem, lists) for name, lists in problem.models.items()}
    kind = max((kind for kind, _ in found.values()), key=order.index)
    shown = {name: text for name, (own, text) in found.items() if own == kind or kind != "fine"}
    texts = dict.fromkeys(shown.values())
    if len(texts) == 1:
        return Check(question, kind, next(iter(texts)))
    return Check(question, kind, " ".join(f"{name}: {text}" for name, text in shown.items()))


def _rows(problem: ListProblem, mask: Any) -> str:
    """The first few rows of a mask, by id or by number."""
    rows = np.flatnonzero(mask)[:_NAMED].tolist()
    word = ("row" if problem.ids is None else "id") + ("" if len(rows) == 1 else "s")
    names = [str(row) if problem.ids is None else f"“{clean(problem.ids[row], 40)}”" for row in rows]
    return f"{word} {', '.join(names)}{', …' if np.count_nonzero(mask) > _NAMED else ''}"


def _invalid(problem: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    bad = ~lists.valid
    n = lists.n_invalid
    if not n:
        return "fine", "None: no unlisted class has more than a listed one."
    kept = lists[np.flatnonzero(bad)].largest_valid()
    cut = lists.lengths[bad] - kept.lengths
    share = n / lists.n_rows
    text = (
        f"{count(n, 'list')} ({percent(share)}) give an unlisted class more than a listed one "
        f"({_rows(problem, bad)}). They are scored as their largest valid sublists, which lose "
        f"{number(float(cut.mean()), 1)} of {number(float(lists.lengths[bad].mean()), 1)} classes on "
        "average, with a fine."
    )
    return "look" if share > 0.01 else "note", text


def _twice(_: ListProblem, __: TopLists) -> tuple[Kind, str]:
    return "fine", "None: lists that name a class twice are refused when they are read."


def _sums(problem: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    total = lists.totals
    over = total > 1
    n = int(np.count_nonzero(over))
    if not n:
        return "fine", "None: every list sums to one or less."
    largest = float(total.max())
    text = (
        f"{count(n, 'list')} {'sums' if n == 1 else 'sum'} to more than one, at most to {largest:.10g} "
        f"({_rows(problem, over)}). That is within the tolerance for rounding; they leave nothing."
    )
    return "note" if largest > 1 + 1e-9 else "fine", text


def _order(_: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    n = lists.n_reordered
    if not n:
        return "fine", "The most likely class stood first in every list."
    return "note", f"{count(n, 'entry', 'entries')} stood below a less likely one; lists were put in order."


def _tied(problem: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    t = lists.confidences
    same = np.zeros(t.size, np.bool_)
    if t.size:
        same[1:] = t[1:] == t[:-1]
        starts = lists.offsets[:-1]
        same[starts[starts < t.size]] = False
    rows = np.zeros(lists.n_rows, np.bool_)
    rows[np.repeat(np.arange(lists.n_rows), lists.lengths)[same]] = True
    n = int(np.count_nonzero(rows))
    if not n:
        return "fine", "None: every list has a clear order."
    share = n / lists.n_rows
    text = (
        f"{count(n, 'list')} ({percent(share)}) have ties ({_rows(problem, rows)}). Ties share their places."
    )
    return "note", text


def _lengths(problem: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    shortest, longest = int(lists.lengths.min()), int(lists.lengths.max())
    empty = lists.lengths == 0
    n = int(np.count_nonzero(empty))
    span = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    text = f"Every list has {span} of {problem.n_classes:,} classes." if problem.n_classes < 10**15 else ""
    if n:
        are = "is empty and says" if n == 1 else "are empty and say"
        text += f" {count(n, 'list')} {are} nothing ({_rows(problem, empty)})."
    return ("look" if n else "note" if shortest < longest else "fine"), text.strip()


def _zeros(_: ListProblem, lists: TopLists) -> tuple[Kind, str]:
    zero = lists.confidences == 0
    n = int(np.count_nonzero(zero))
    if not n:
        return "fine", "None."
    return "note", f"{count(n, 'entry', 'entries')}. A zero rules a class out for good; is that meant?"


def _duplicates(problem: ListProblem) -> Check:
    question = "Lists that are there twice"
    first = next(iter(problem.models.values()))
    rows = problem.rows(next(iter(problem.models)))
    outcomes = rows.batch(0, rows.n_rows).y.tolist()
    seen: dict[Any, int] = {}
    twice = np.zeros(first.n_rows, np.bool_)
    starts = first.offsets.tolist()
    codes, values = first.classes, first.confidences
    for i, outcome in enumerate(outcomes):
        a, b = starts[i], starts[i + 1]
        key = (outcome, codes[a:b].tobytes(), values[a:b].tobytes())
        twice[i] = key in seen
        seen.setdefault(key, i)
    n = int(np.count_nonzero(twice))
    if not n:
        return Check(question, "fine", "No two rows have the same outcome and the same list.")
    share = n / first.n_rows
    text = (
        f"{count(n, 'row')} ({percent(share)}) {'repeats' if n == 1 else 'repeat'} an earlier one in outcome "
        f"and list ({_rows(problem, twice)}). If these are copies, the intervals are too narrow."
    )
    return Check(question, "look" if share > 0.01 else "note", text)


def _uncovered(cards: Mapping[str, ListCard]) -> Check:
    question = "Outcomes that are not listed"
    texts: list[str] = []
    kind: Kind = "fine"
    for name, card in cards.items():
        whose = f"{name}: " if len(cards) > 1 else ""
        texts.append(f"{whose}{percent(1 - card.coverage, 1)} of the rows")
        if card.coverage == 0:
            kind = "look"
            texts[-1] += "; no outcome is named by any list. Are the names the same?"
    return Check(question, kind, f"{'; '.join(texts)}.")


def _impossible(cards: Mapping[str, ListCard]) -> Check:
    question = "Outcomes that had been given probability zero"
    found = {name: card.n_zero_probability for name, card in cards.items() if card.n_zero_probability}
    if not found:
        return Check(question, "fine", "None: every outcome had some probability.")
    texts = [f"{f'{name}: ' if len(cards) > 1 else ''}{count(n, 'row')}" for name, n in found.items()]
    return Check(question, "look", f"{'; '.join(texts)}. There the log scores are infinite.")
