"""Cards that were saved: read again by `load`, and merged. Wings may have cards of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from verax.analyses.cards.container import CARD, not_saved, parts_in, read_summaries
from verax.analyses.cards.fingerprints import Fingerprint
from verax.analyses.cards.listcard import card_from_bytes
from verax.analyses.cards.scorecard import Scorecard
from verax.common.idkeys import kept_key, tag_of
from verax.common.paths import as_path
from verax.common.wings import cards
from verax.errors import InputError, VeraxError


def load(path: str | Path) -> Any:
    """Read a card that `save` or `verax evaluate --save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Scorecard or GradeCard
        The card, the `ListCard`, or the card of graded answers.

    Raises
    ------
    VeraxError
        If the file holds no card.

    Examples
    --------
    >>> import pathlib, tempfile, verax as vx
    >>> path = pathlib.Path(tempfile.mkdtemp(), "monday.verax")
    >>> card = vx.evaluate([0, 1], [[0.8, 0.2], [0.4, 0.6]])
    >>> card.save(path)
    >>> vx.load(path)["brier"] == card["brier"]
    True
    >>> (card + vx.load(path)).n_rows
    4
    """
    return saved_card(path).card


class MergingCard(Protocol):
    """A card that a file holds: those of parts merge."""

    def merge(self, other: Self, /) -> Self: ...
    def _save(self, path: Path, parts: Sequence[Fingerprint], /) -> None: ...
    @property
    def _fingerprint(self) -> Fingerprint: ...


class SavedCard(NamedTuple):
    """A card of some kind: "card" for forecasts, or a name that a wing declares."""

    kind: str
    card: MergingCard


def saved_card(path: str | Path) -> SavedCard:
    """The card of a file, of any kind; a file without one is refused."""
    stored, of_wings = read_summaries(path), cards()
    kind = next((name for name in of_wings if name in stored), CARD)
    if kind not in stored:
        raise not_saved(
            as_path(path), InputError("must hold a card", argument="data", found="it has no card")
        )
    if kind in of_wings:
        wing, declared = of_wings[kind]
        read = wing.at(declared.loads)
    else:
        read = card_from_bytes
    try:
        return SavedCard(kind, read(stored[kind]))
    except InputError as error:
        raise not_saved(as_path(path), error) from None


def load_card(path: str | Path) -> Scorecard:
    """The card of forecasts in a file; others are refused."""
    kind, card = saved_card(path)
    if not isinstance(card, Scorecard):
        raise not_saved(
            as_path(path), InputError("must hold a card", argument="data", found=f"its card is of {kind}")
        )
    return card


def merged_card(paths: Iterable[str | Path]) -> SavedCard:
    """The card of the rows of all files; mixtures of kinds are refused."""
    first, *rest = paths
    kind, merged = saved_card(first)
    for path in rest:
        other, card = saved_card(path)
        if other != kind:
            raise _mixture({kind: first, other: path})
        try:
            merged = merged.merge(card)
        except VeraxError as error:
            raise VeraxError(f"{first} and {path} cannot be merged: {error}") from None
    return SavedCard(kind, merged)


def parts_of(path: str | Path) -> list[Fingerprint]:
    """The parts of the rows of a file: those that were merged into it, or all its rows as one."""
    return parts_in(path) or [saved_card(path).card._fingerprint]


def _mixture(by_kind: dict[str, str | Path]) -> VeraxError:
    """The error about two files with cards of different kinds, of which a wing knows at least one."""
    known = cards()
    kind = next(kind for kind in by_kind if kind in known)
    (other,) = (path for each, path in by_kind.items() if each != kind)
    says = known[kind][1].says
    return VeraxError(f"{by_kind[kind]} has {says}, and {other} has none: merge files of one kind.")


def contents_of(path: str | Path) -> str:
    """What a file of saved results holds of rows, as a sentence: whether of single ones, and how named."""
    stored = read_summaries(path)
    card: Any = saved_card(path).card
    labels = card._group_labels
    more = "; and what a report needs: forecasts and outcomes, also of single rows" if len(stored) > 1 else ""
    if labels is None or not len(labels):
        return f"It holds sums of {card.n_rows:,} rows, no ids and no values of single rows{more}."
    tag = tag_of(labels if labels.dtype.names is None else labels[labels.dtype.names[0]])
    named = "plain ids" if not tag else "ids as digests"
    if tag and ((key := kept_key()) is None or key.tag != tag):
        named = "no ids, so that it cannot be merged with other parts by groups"
    return (
        f"It holds sums of {card.n_rows:,} rows and of each of {len(labels):,} groups, with {named}; "
        f"a group of one row tells its loss{more}."
    )
