"""Data checks in words: duplicates, row sums, outcomes of probability zero, rare classes, invalid lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax._settings import settings
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.samples import Sketch
from verax.analyses.words import clean, count, number
from verax.common.texts import percent
from verax.errors import join
from verax.inputs.skipping import Skipped
from verax.report.breakdowns import Breakdowns
from verax.report.problem import Problem
from verax.report.survey import NAMED, OFF, ListCounts, ListSurvey, Survey

Kind = Literal["fine", "note", "look"]

_RARE = 10
_COPIES = "If these are copies, the confidence intervals are too narrow."


@dataclass(frozen=True)
class Check:
    """One question asked of the data, and the answer in words."""

    question: str
    kind: Kind
    answer: str


def checks_of(
    problem: Problem,
    survey: Survey | ListSurvey,
    cards: Mapping[str, Scorecard],
    class_rows: Any,
    parts: Breakdowns,
) -> list[Check]:
    """All checks, in the order in which the page shows them."""
    kinds = (
        _list_checks(problem, survey, cards)
        if isinstance(survey, ListSurvey)
        else _dense_checks(problem, survey, cards, class_rows)
    )
    return [
        *([] if problem.skipped is None else [_left_out(problem.skipped)]),
        *kinds,
        *(_small(name, left) for name, left in parts.left_out.items()),
        *(_many(name) for name in parts.too_many),
    ]


def _left_out(skipped: Skipped) -> Check:
    kind: Kind = "look" if skipped.caution else "note" if skipped.count else "fine"
    sentences = ". ".join(filter(None, (str(skipped), skipped.caution)))
    return Check("Invalid rows left out", kind, f"{sentences}.")


def _small(name: str, left: list[tuple[str, int]]) -> Check:
    question = f"Subgroups of {name} not tested"
    if not left:
        return Check(question, "fine", "None: all are tested.")
    shown = join([f"{clean(label, 40)} ({n:,})" for label, n in left[:NAMED]])
    more = f" and {len(left) - NAMED:,} more" if len(left) > NAMED else ""
    return Check(question, "note", f"Too small, or beyond the largest: {shown}{more}.")


def _many(name: str) -> Check:
    most = f"More than {settings.report_subgroups} different values"
    few = f"{most}: no subgroup was kept while the rows were read."
    return Check(f"Subgroups of {name} not tested", "note", f"{few} Join values to see subgroups.")


def _of(name: str, several: Mapping[str, Any]) -> str:
    return f"{name}: " if len(several) > 1 else ""


def _rows(rows: Sequence[int], n: float) -> str:
    """The first rows in brackets, of `n` in all; empty where they are not known."""
    if not rows:
        return ""
    shown = ", ".join(map(str, rows[:NAMED]))
    return f" ({'row' if n == 1 else 'rows'} {shown}{', …' if n > len(rows[:NAMED]) else ''})"


def _repeated(question: str, sketch: Sketch, what: str, none: str) -> Check:
    """Whether rows repeat others, counted or estimated from a sample."""
    n, error = sketch.repeats()
    share = n / sketch.n_rows
    if not n:
        seen = "" if sketch.exact else f" in a sample of {len(sketch.counts):,} rows"
        return Check(question, "fine", none.format(seen))
    if not sketch.exact:
        about = f"About {percent(share)} of the rows (standard error {percent(error / sketch.n_rows)})"
        return Check(question, "look" if share > 0.01 else "note", f"{about} repeat {what}. {_COPIES}")
    pairs = sketch.repeated(NAMED)
    which = "; ".join(f"row {row} repeats row {first}" for row, first in pairs)
    rest = int(n) - len(pairs)
    which = f": {which}{f'; and {rest:,} more' if rest else ''}" if which else ""
    verb = "repeats" if n == 1 else "repeat"
    text = f"{count(n, 'row')} ({percent(share)}) {verb} {what}{which}. {_COPIES}"
    return Check(question, "look" if share > 0.01 else "note", text)


def _impossible(cards: Mapping[str, Scorecard]) -> Check:
    question = "Outcomes given probability zero"
    with_zeros = {name: card for name, card in cards.items() if card.n_zero_probability}
    if not with_zeros:
        return Check(question, "fine", "None: every outcome had some probability.")
    texts = [
        f"{_of(name, cards)}{count(card.n_zero_probability, 'row')}"
        f"{_rows(card.zero_probability_rows, card.n_zero_probability)}"
        for name, card in with_zeros.items()
    ]
    return Check(question, "look", f"{'; '.join(texts)}. Their log scores are infinite.")


# ---- distributions -----------------------------------------------------------------------------


def _dense_checks(
    problem: Problem, survey: Survey, cards: Mapping[str, Scorecard], class_rows: Any
) -> list[Check]:
    numbers = problem.n_rows * problem.n_classes
    shares = {name: n / numbers for name, n in zip(cards, survey.certain.tolist(), strict=True)}
    no_copies = "No two rows{} have the same outcome and the same probabilities between 0 and 1."
    checks = [
        _repeated("Duplicate rows", survey.rows, "an earlier one in outcome and probabilities", no_copies)
    ]
    if survey.ids is not None:
        checks.append(_repeated_ids(survey.ids))
    return [
        *checks,
        _sums(survey, list(cards)),
        _impossible(cards),
        _unpredicted(problem, cards),
        _observed(problem, class_rows),
        _constant(problem, survey, list(cards)),
        _certain(survey, shares),
    ]


def _repeated_ids(sketch: Sketch) -> Check:
    check = _repeated("Duplicate ids", sketch, "an earlier id", "No two rows{} have the same id.")
    belong = "If their rows belong together, pass them as groups: intervals widen."
    kind: Kind = "fine" if check.kind == "fine" else "note"
    return Check(check.question, kind, check.answer.replace(_COPIES, belong))


def _sums(survey: Survey, models: list[str]) -> Check:
    question = "Rows that do not sum to 1"
    if survey.logits:
        return Check(question, "fine", "Probabilities are the softmax of logits, so every row sums to 1.")
    if survey.off[:, 1].max() <= OFF:
        return Check(question, "fine", "Every row sums to 1 within a millionth.")
    counts = {name: n for name, (n, _) in zip(models, survey.off.tolist(), strict=True) if n}
    rows = "; ".join(f"{_of(name, dict.fromkeys(models))}{count(n, 'row')}" for name, n in counts.items())
    verb = "differs" if list(counts.values()) == [1] else "differ"
    text = (
        f"{rows} {verb} from 1 by more than a millionth{_rows(survey.off_rows, max(counts.values()))}, by up "
        f"to {survey.off[:, 1].max():.2g}. "
    )
    used = "All rows were rescaled, as asked." if survey.rescaled else "That is within the tolerance."
    return Check(question, "note", text + used)


def _unpredicted(problem: Problem, cards: Mapping[str, Scorecard]) -> Check:
    question = "Classes never predicted"
    texts = []
    for name, card in cards.items():
        if card.confusion is None:
            return Check(question, "note", "Not checked: no confusion matrix is kept beyond 1,024 classes.")
        never = np.flatnonzero((card.confusion.sum(axis=0) == 0) & (card.class_counts > 0))
        if len(never):
            texts.append(f"{_of(name, cards)}{_classes(problem, never)}")
    if not texts:
        return Check(question, "fine", "Every class that occurred is the most likely one in some row.")
    return Check(question, "look", f"{'; '.join(texts)}: never the most likely class, though they occurred.")


def _observed(problem: Problem, n: Any) -> Check:
    question = "Absent or rare classes"
    never, rare = np.flatnonzero(n == 0), np.flatnonzero((n > 0) & (n < _RARE))
    texts = []
    if len(never):
        texts.append(f"{_classes(problem, never)} never occurred")
    if len(rare):
        texts.append(f"{_classes(problem, rare)} occurred fewer than {_RARE} times")
    if not texts:
        return Check(question, "fine", f"Every class occurred at least {_RARE} times.")
    return Check(question, "note", f"{'; '.join(texts)}. Little can be said about them.")


def _classes(problem: Problem, positions: Any) -> str:
    names = [problem.titles[i] for i in positions[:NAMED]]
    more = len(positions) - len(names)
    return join([*names, *([f"{more} more"] if more else [])])


def _constant(problem: Problem, survey: Survey, models: list[str]) -> Check:
    question = "Constant forecasts"
    same = (survey.least == survey.most).all(axis=1).tolist()
    constant = [name for name, is_same in zip(models, same, strict=True) if is_same]
    if not constant or problem.n_rows == 1:
        return Check(question, "fine", "None: forecasts differ from row to row.")
    who = "" if len(models) == 1 else f"{join(constant)}: "
    return Check(question, "look", f"{who}every row has the same probabilities. Are these predictions?")


def _certain(survey: Survey, shares: Mapping[str, float]) -> Check:
    question = "Probabilities of exactly 0 or 1"
    if not any(shares.values()):
        return Check(question, "fine", "None.")
    texts = [f"{_of(name, shares)}{percent(s)}" for name, s in shares.items() if s]
    hard = " These look like hard labels." if max(shares.values()) == 1 else ""
    text = f"{'; '.join(texts)} of all numbers. Zero means impossible. Is that intended?{hard}"
    return Check(question, "fine" if survey.logits else "note", text)


# ---- lists -------------------------------------------------------------------------------------


def _list_checks(problem: Problem, survey: ListSurvey, cards: Mapping[str, Scorecard]) -> list[Check]:
    counts = dict(zip(cards, survey.models.values(), strict=True))

    def of_models(question: str, look: Callable[[Problem, ListCounts], tuple[Kind, str]]) -> Check:
        return _each(question, {name: look(problem, lists) for name, lists in counts.items()})

    no_copies = "No two rows{} have the same outcome and the same list."
    return [
        of_models("Invalid lists", _invalid),
        Check("Classes listed twice", "fine", "None: lists that name a class twice are refused."),
        of_models("Lists that sum to more than 1", _over),
        of_models("Order of the listed classes", _order),
        of_models("Ties within a list", _tied),
        of_models("Lengths of lists", _lengths),
        of_models("Listed classes with probability zero", _zeros),
        _repeated("Duplicate lists", survey.rows, "an earlier one in outcome and list", no_copies),
        _uncovered(cards),
        _impossible(cards),
    ]


def _each(question: str, answers: Mapping[str, tuple[Kind, str]]) -> Check:
    """One check of the lists of every model; the gravest answer gives its kind."""
    order: tuple[Kind, ...] = ("fine", "note", "look")
    kind = max((kind for kind, _ in answers.values()), key=order.index)
    shown = {
        name: text for name, (answer_kind, text) in answers.items() if answer_kind == kind or kind != "fine"
    }
    texts = dict.fromkeys(shown.values())
    if len(texts) == 1:
        return Check(question, kind, next(iter(texts)))
    return Check(question, kind, " ".join(f"{name}: {text}" for name, text in shown.items()))


def _invalid(_: Problem, lists: ListCounts) -> tuple[Kind, str]:
    n = lists.n_invalid
    if not n:
        return "fine", "None: no unlisted class has more than a listed one."
    share = n / lists.n_lists
    gives = "gives" if n == 1 else "give"
    text = (
        f"{count(n, 'list')} ({percent(share)}) {gives} an unlisted class more than a listed one"
        f"{_rows(lists.invalid_rows, n)}. They are scored as their largest valid sublists, which lose "
        f"{number(lists.cut / n, 1)} of {number(lists.entries / n, 1)} classes on average, with a fine."
    )
    return "look" if share > 0.01 else "note", text


def _over(_: Problem, lists: ListCounts) -> tuple[Kind, str]:
    n, largest = lists.n_over, lists.largest
    if not n:
        return "fine", "None: every list sums to 1 or less."
    text = (
        f"{count(n, 'list')} {'sums' if n == 1 else 'sum'} to more than 1, by at most "
        f"{number(largest - 1)}{_rows(lists.over_rows, n)}. That is within the tolerance for rounding; "
        "nothing is left to unlisted classes."
    )
    return "note" if largest > 1 + 1e-9 else "fine", text


def _order(_: Problem, lists: ListCounts) -> tuple[Kind, str]:
    n = lists.n_moved
    if n is None:
        return "fine", "Lists were sorted where the most likely class was not first."
    if not n:
        return "fine", "The most likely class was first in every list."
    return "note", f"{count(n, 'entry', 'entries')} came after a less likely one; lists were sorted."


def _tied(_: Problem, lists: ListCounts) -> tuple[Kind, str]:
    n = lists.n_tied
    if not n:
        return "fine", "None: every list has a clear order."
    has = "has" if n == 1 else "have"
    text = f"{count(n, 'list')} ({percent(n / lists.n_lists)}) {has} ties{_rows(lists.tied_rows, n)}."
    return "note", f"{text} Ties share their places, except for accuracy."


def _lengths(problem: Problem, lists: ListCounts) -> tuple[Kind, str]:
    shortest, longest, n = lists.shortest, lists.longest, lists.n_empty
    span = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    text = f"Every list has {span} of {problem.n_classes:,} classes." if problem.n_classes < 10**15 else ""
    if n:
        text += f" {count(n, 'list')} {'is' if n == 1 else 'are'} empty{_rows(lists.empty_rows, n)}."
    return ("look" if n else "note" if shortest < longest else "fine"), text.strip()


def _zeros(_: Problem, lists: ListCounts) -> tuple[Kind, str]:
    if not lists.n_zeros:
        return "fine", "None."
    n = count(lists.n_zeros, "entry", "entries")
    return "note", f"{n}. Zero means impossible. Is that intended?"


def _uncovered(cards: Mapping[str, Scorecard]) -> Check:
    question = "Outcomes not listed"
    texts: list[str] = []
    kind: Kind = "fine"
    for name, card in cards.items():
        assert isinstance(card, ListCard)
        texts.append(f"{_of(name, cards)}{percent(1 - card.coverage, 1)} of the rows")
        if card.coverage == 0:
            kind = "look"
            texts[-1] += "; no list names any outcome. Do lists and outcomes use the same class names?"
    return Check(question, kind, f"{'; '.join(texts)}.")
