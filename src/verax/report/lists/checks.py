"""Checks of lists: invalid ones and what is cut off, sums above one, ties, empty lists, unnamed outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from verax.analyses.cards.listcard import ListCard
from verax.analyses.samples import Sketch
from verax.report.checks import Check, Kind, left_out_check
from verax.report.lists.counting import ListCounts
from verax.report.lists.problem import ListProblem
from verax.report.words import clean, count, number, percent

_NAMED = 5


def look_over(problem: ListProblem, cards: Mapping[str, ListCard]) -> list[Check]:
    """All checks of lists in memory, in the order in which the page shows them."""
    counts = {
        name: ListCounts.of(problem.rows(name), lists.n_reordered) for name, lists in problem.models.items()
    }
    return _checks(problem, counts, _duplicates(problem), cards)


def survey_checks(
    problem: ListProblem, counts: Mapping[str, ListCounts], rows: Sketch, cards: Mapping[str, ListCard]
) -> list[Check]:
    """The same of lists that are elsewhere: rows are not named."""
    return _checks(problem, counts, _about_duplicates(rows), cards)


def _checks(
    problem: ListProblem,
    counts: Mapping[str, ListCounts],
    duplicates: Check,
    cards: Mapping[str, ListCard],
) -> list[Check]:
    def each(question: str, look: Callable[[ListProblem, ListCounts], tuple[Kind, str]]) -> Check:
        return _each(question, {name: look(problem, found) for name, found in counts.items()})

    return [
        *([] if problem.skipped is None else [left_out_check(problem.skipped)]),
        each("Lists that are invalid", _invalid),
        each("Classes that are listed twice", _twice),
        each("Lists that sum to more than one", _sums),
        each("Order of the listed classes", _order),
        each("Classes with the same probability", _tied),
        each("Lists of different lengths, or empty", _lengths),
        each("Listed classes with probability zero", _zeros),
        duplicates,
        _uncovered(cards),
        _impossible(cards),
    ]


def _each(question: str, found: Mapping[str, tuple[Kind, str]]) -> Check:
    """One check of the lists of every model; the gravest answer gives its kind."""
    order: tuple[Kind, ...] = ("fine", "note", "look")
    kind = max((kind for kind, _ in found.values()), key=order.index)
    shown = {name: text for name, (own, text) in found.items() if own == kind or kind != "fine"}
    texts = dict.fromkeys(shown.values())
    if len(texts) == 1:
        return Check(question, kind, next(iter(texts)))
    return Check(question, kind, " ".join(f"{name}: {text}" for name, text in shown.items()))


def _rows(problem: ListProblem, mask: Any) -> str:
    """The first few rows of a mask in brackets, by id or by number; nothing where they are not known."""
    if mask is None:
        return ""
    rows = np.flatnonzero(mask)[:_NAMED].tolist()
    word = ("row" if problem.ids is None else "id") + ("" if len(rows) == 1 else "s")
    names = [str(row) if problem.ids is None else f"“{clean(problem.ids[row], 40)}”" for row in rows]
    return f" ({word} {', '.join(names)}{', …' if np.count_nonzero(mask) > _NAMED else ''})"


def _invalid(problem: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    n = found.n_invalid
    if not n:
        return "fine", "None: no unlisted class has more than a listed one."
    share = n / found.n_lists
    text = (
        f"{count(n, 'list')} ({percent(share)}) give an unlisted class more than a listed one"
        f"{_rows(problem, found.masks.get('invalid'))}. They are scored as their largest valid sublists, "
        f"which lose {number(found.cut / n, 1)} of {number(found.entries / n, 1)} classes on average, with "
        "a fine."
    )
    return "look" if share > 0.01 else "note", text


def _twice(_: ListProblem, __: ListCounts) -> tuple[Kind, str]:
    return "fine", "None: lists that name a class twice are refused when they are read."


def _sums(problem: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    n, largest = found.n_over, found.largest
    if not n:
        return "fine", "None: every list sums to one or less."
    text = (
        f"{count(n, 'list')} {'sums' if n == 1 else 'sum'} to more than one, by at most "
        f"{number(largest - 1)}{_rows(problem, found.masks.get('over'))}. That is within the tolerance for "
        "rounding; nothing is left to unlisted classes."
    )
    return "note" if largest > 1 + 1e-9 else "fine", text


def _order(_: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    n = found.n_moved
    if n is None:
        return "fine", "Lists were put in order where the most likely class did not stand first."
    if not n:
        return "fine", "The most likely class stood first in every list."
    return "note", f"{count(n, 'entry', 'entries')} stood below a less likely one; lists were put in order."


def _tied(problem: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    n = found.n_tied
    if not n:
        return "fine", "None: every list has a clear order."
    share, rows = n / found.n_lists, _rows(problem, found.masks.get("tied"))
    text = f"{count(n, 'list')} ({percent(share)}) have ties{rows}."
    return "note", f"{text} Ties share their places, except for accuracy."


def _lengths(problem: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    shortest, longest, n = found.shortest, found.longest, found.n_empty
    span = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    text = f"Every list has {span} of {problem.n_classes:,} classes." if problem.n_classes < 10**15 else ""
    if n:
        are = "is empty and says" if n == 1 else "are empty and say"
        text += f" {count(n, 'list')} {are} nothing{_rows(problem, found.masks.get('empty'))}."
    return ("look" if n else "note" if shortest < longest else "fine"), text.strip()


def _zeros(_: ListProblem, found: ListCounts) -> tuple[Kind, str]:
    if not found.n_zeros:
        return "fine", "None."
    n = count(found.n_zeros, "entry", "entries")
    return "note", f"{n}. A zero rules a class out for good; is that meant?"


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
        f"and list{_rows(problem, twice)}. If these are copies, the intervals are too narrow."
    )
    return Check(question, "look" if share > 0.01 else "note", text)


def _about_duplicates(sketch: Sketch) -> Check:
    question = "Lists that are there twice"
    n, error = sketch.repeats()
    share = n / sketch.n_rows
    many = "" if sketch.exact else f" in a sample of {len(sketch.counts):,} rows"
    if not share:
        return Check(question, "fine", f"No two rows{many} have the same outcome and the same list.")
    spread = "" if sketch.exact else f" (standard error {percent(error / sketch.n_rows)})"
    repeat = f"{percent(share)} of the rows{spread} repeat another one in outcome and list"
    text = f"{repeat}. If these are copies, the intervals are too narrow."
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
