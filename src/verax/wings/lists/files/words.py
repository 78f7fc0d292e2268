"""What was taken from a file of lists and what was done to it, in words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, join, passing, show
from verax.files.predictions import short
from verax.files.reference_answers import ReferenceAnswers
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.record import Shape
from verax.inputs.records.texts import RULES, merger
from verax.inputs.validity import Rescaled


def some(names: tuple[Hashable, ...]) -> str:
    """The first of some names, in words."""
    shown = [show(name) for name in names[:6]]
    return join([*shown, f"{len(names) - 6:,} more"] if len(names) > 6 else shown)


def none_named(y: list[Any], vocabulary: ClassVocabulary) -> bool:
    """Whether no list names any of the outcomes."""
    known = set(vocabulary.names)
    return bool(known) and not any(value in known for value in y)


def counted_from_one(value: Any, where: str, row: int, source: str) -> InputError:
    """The error about positions that count from 1.

    To leave out the largest would keep the others, of which each would mean the class after its own.
    """
    return InputError(
        "must count positions from 0",
        argument="y",
        kind="label",
        found=f"none is 0, and {where} has {show(value)}, the number of classes: they seem to count from 1",
        rows=[row],
        values=[value],
        source=source,
        remedies=[Remedy("Subtract 1 from each.")],
    )


def other_spelling(y: list[Any], vocabulary: ClassVocabulary, rule: str | None) -> list[Remedy]:
    """The weakest rule of merging under which some outcome is a class; none where there is no such rule."""
    names = list(RULES)
    for name in names[names.index(rule or "same") + 1 :]:
        called = merger(name)
        assert called is not None
        known = {called(label) for label in vocabulary.names}
        if any(called(value) in known for value in y[:10_000]):
            return [passing(f"to merge {RULES[name]}", merge_variants=name)]
    return []


# What is not summed where the counts of parts are put together.
_JOINED: dict[str, Callable[[float, float], float]] = {"smallest_sum": min, "largest_sum": max}
# With fewer rows, that no outcome is the likeliest class of any list may be chance.
_ENOUGH = 10


# What becomes of several sampled answers to one question.
_SAMPLES = {
    "first": "Records with several sampled answers, of which only the first is read",
    "pool": "Records with several sampled answers, which are averaged",
    "repeats": "Lists of one of several sampled answers, which form a group",
}


def taken(
    shape: Shape,
    settings: Reading,
    outcome: str | None,
    gold: ReferenceAnswers | None,
    positions: ClassVocabulary | None,
) -> tuple[str, ...]:
    """How each part was read, one line each; `positions` are those that outcomes refer to."""
    if gold is not None:
        how = f"by {', '.join(named_columns(settings.id))}" if gold.by_id else "in order"
        outcomes = f"{gold.column + ' of ' if gold.column else ''}{gold.path}, matched {how}"
    else:
        outcomes = "later" if settings.late else outcome or "target"
    if positions is not None:
        outcomes += f" (positions: {short([f'{i} = {name}' for i, name in enumerate(positions.names)])})"
    lines = [f"lists: {shape.what}", f"outcomes: {outcomes}"]
    if shape.generated is not None:
        lines.append(f"answers: {_token(settings)}")
    for word in ("weights", "groups", "id"):
        name = getattr(settings, word)
        lines += [f"{word}: {' and '.join(named_columns(name))}"] if name is not None else []
    return tuple(lines)


def _token(settings: Reading) -> str:
    """Which generated token is read."""
    if settings.after is not None:
        which = "last" if settings.last_match else "first"
        return f"token at the {which} match of {show(settings.after)}"
    return f"token {settings.position}" if settings.position else "first token"


def notes(
    counts: Mapping[str, float],
    lists: TopLists,
    y: list[Any],
    settings: Reading,
    assumed: int | None,
) -> tuple[str, ...]:
    """A sentence for everything that a reader of results should know.

    `assumed` is the number of names that occur, where these are taken as all classes.
    """
    sentences = counted(counts, lists.n_rows, settings)
    if assumed is not None:
        sentences.append(
            f"The {assumed:,} names that occur are assumed to be all classes; penalized scores depend on "
            "their number. State the classes if there are more."
        )
    vocabulary = lists.vocabulary if y else None
    if vocabulary is not None and not vocabulary.complete and none_named(y, vocabulary):
        sentences.append(
            f"No list names any of the outcomes, such as {show(y[0])}; the lists name "
            f"{some(vocabulary.names)}."
        )
    elif vocabulary is not None and len(y) >= _ENOUGH:
        likeliest = tuple(map(vocabulary.name, np.unique(lists.truncate(1).classes).tolist()))
        if none_named(y, ClassVocabulary(likeliest, complete=False)):
            sentences.append(
                f"No outcome, such as {show(y[0])}, is the likeliest class of any list; these are "
                f"{some(likeliest)}. Another token may hold the answer (position, after)."
            )
    return tuple(sentences)


def counted(counts: Mapping[str, float], n_rows: int, settings: Reading) -> list[str]:
    """A sentence for everything that was counted in this number of lists."""
    n = f"of {n_rows:,} lists"
    texts = {
        "alone": f"Lists without alternatives, only with the chosen token: {{}} {n}.",
        "unlikely": "Entries not listed, because the interface calls them too unlikely: {}.",
        "from_text": "Numbers read from texts: {}.",
        "missing": "Entries left out, because they have no number: {}.",
        "blank": "Blank entries, read as classes that are not listed: {}.",
        "unconditional": "Log-likelihoods of choices without the question (acc_mutual_info), not read: "
        f"{{}} {n}.",
        "several": f"{_SAMPLES[settings.samples]}: {{}} {n}.",
        "counted": f"Lists of the shares of sampled answers, which have no log-probabilities: {{}} {n}. "
        "A class that was never sampled has probability zero.",
        "empty": f"Empty lists, scored as equal probabilities of all classes: {{}} {n}.",
        "lacking": f"Lists that lack a class: {{}} {n}. After division a missing class has probability zero.",
    }
    merge_variants = settings.merge_variants
    sentences = [text.format(f"{counts[name]:,}") for name, text in texts.items() if counts.get(name)]
    if counts.get("divided"):
        sums = counts["smallest_sum"], counts["largest_sum"]
        sentences.append(Rescaled(n_rows, int(counts["divided"]), *sums).sentence("lists"))
    if counts.get("entries_omitted"):
        sentences.append(
            f"Entries left out, because they are not among the classes: {counts['entries_omitted']:,}, with "
            f"{counts.get('probability_omitted', 0.0) / n_rows:.3g} of the probability on average."
        )
    if merge_variants is not None:
        merged, where = counts.get("entries_merged", 0), counts.get("lists_merged", 0)
        share = counts.get("probability_merged", 0.0) / n_rows
        sentences.append(
            f"Entries merged with others ({RULES[merge_variants]}): {merged:,} in {where:,} {n}, with "
            f"{share:.3g} of the probability on average."
        )
    return sentences


def added(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The counts of several parts as those of all."""
    sums: dict[str, float] = {}
    for part in counts:
        for name, value in part.items():
            if name not in sums:
                sums[name] = value
            else:
                join = _JOINED.get(name)
                sums[name] = sums[name] + value if join is None else join(sums[name], value)
    return sums


def ungrouped_questions(n_rows: int, n_questions: int) -> str:
    """The sentence about several records of one question, where each counts as a row of its own."""
    return (
        f"The {n_rows:,} records are about {n_questions:,} questions, and are treated as independent rows: "
        "confidence intervals are too narrow. Name a field of groups, such as doc_id."
    )


def repeated_questions(n_rows: int, n_questions: int) -> str:
    """The sentence about several records of one question."""
    return (
        f"The {n_rows:,} records are about {n_questions:,} questions; records of one question form a group, "
        "and confidence intervals allow for that."
    )
