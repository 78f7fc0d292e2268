"""Cards that were saved: read again, and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from verax.analyses.cards.container import CARD, not_saved, read_summaries
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.common.packing import kind_in
from verax.common.paths import as_path
from verax.errors import InputError, VeraxError


def card_from_bytes(data: bytes) -> Scorecard:
    """A card of probabilities or of top lists from its bytes."""
    return (ListCard if kind_in(data) == ListCard.kind else Scorecard).from_bytes(data)


# How each summary is read; files may hold others that a newer version knows.
LOADERS: Mapping[str, Callable[[bytes], Any]] = {CARD: card_from_bytes}


def load_card(path: str | Path) -> Scorecard:
    """The card of a file; others are refused."""
    summaries = load_summaries(path)
    if CARD not in summaries:
        raise not_saved(
            as_path(path), InputError("must hold a card", argument="data", found="it has no card")
        )
    card: Scorecard = summaries[CARD]
    return card


def load_summaries(path: str | Path) -> dict[str, Any]:
    """All summaries in a file that this version knows, by name."""
    stored = read_summaries(path)
    try:
        return {name: LOADERS[name](data) for name, data in stored.items() if name in LOADERS}
    except InputError as error:
        raise not_saved(as_path(path), error) from None


def merge_files(paths: Iterable[str | Path]) -> dict[str, Any]:
    """The summaries of the rows of all files, by name; of those that every file has."""
    merged: dict[str, Any] | None = None
    first = None
    for path in map(as_path, paths):
        summaries = load_summaries(path)
        if merged is None:
            merged, first = summaries, path
            continue
        try:
            merged = {name: merged[name].merge(summaries[name]) for name in merged if name in summaries}
        except VeraxError as error:
            raise VeraxError(f"{first} and {path} cannot be merged: {error}") from None
    if merged is None or CARD not in merged:
        raise not_saved(Path(first or ""), InputError("", argument="data", found="a file has no card"))
    return merged
