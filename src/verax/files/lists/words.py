"""What was taken from a file of lists and what was done to it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.errors import show
from verax.files.lists.gold import Gold
from verax.files.lists.settings import Settings
from verax.files.lists.spelling import none_named, some
from verax.inputs.lists.toplists import TopLists
from verax.inputs.records.record import Shape
from verax.inputs.records.variants import RULES


def taken(shape: Shape, settings: Settings, outcome: str | None, gold: Gold | None) -> tuple[str, ...]:
    """A line for everything that was taken for something."""
    if gold is not None:
        how = f"by {settings.id}" if gold.by_id else "in order"
        outcomes = f"{gold.column + ' of ' if gold.column else ''}{gold.path}, matched {how}"
    else:
        outcomes = outcome or "target"
    lines = [f"lists: {shape.what}", f"outcomes: {outcomes}"]
    for word in ("weights", "groups", "id"):
        name = getattr(settings, word)
        lines += [f"{word}: {name}"] if name is not None else []
    return tuple(lines)


def notes(
    counts: Mapping[str, float], lists: TopLists, y: list[Any], merge_variants: str | None
) -> tuple[str, ...]:
    """A sentence for everything that a reader of results should know."""
    n = f"{lists.n_rows:,} lists"
    texts = {
        "alone": f"of {n} have no alternatives: only the token that was chosen.",
        "unlikely": "entries are not listed: the interface calls them too unlikely.",
        "from_text": "numbers were read from texts.",
        "missing": "entries without a number were left out of their lists.",
        "divided": f"of {n} were divided by their sums.",
    }
    found = [f"{counts[name]:,} {text}" for name, text in texts.items() if counts.get(name)]
    if counts.get("entries_merged"):
        share = counts["probability_merged"] / lists.n_rows
        found.append(
            f"{counts['entries_merged']:,} entries in {counts['lists_merged']:,} of {n} were merged with "
            f"others ({RULES[merge_variants or 'same']}); on average they hold {share:.3g} of the mass."
        )
    elif merge_variants is not None:
        found.append(f"No entries were merged ({RULES[merge_variants]}).")
    vocabulary = lists.vocabulary
    if vocabulary is not None and not vocabulary.complete and none_named(y, vocabulary):
        found.append(
            f"No list names any of the outcomes, such as {show(y[0])}; the lists name "
            f"{some(vocabulary.names)}."
        )
    return tuple(found)
