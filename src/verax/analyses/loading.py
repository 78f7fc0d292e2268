"""`load`: a card that was saved, of whatever kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from verax.analyses.cards.container import GRADES, not_saved, read_summaries
from verax.analyses.cards.saved import load_card
from verax.analyses.cards.scorecard import Scorecard
from verax.common.paths import as_path
from verax.errors import InputError, VeraxError
from verax.wings.evals.result import GradeCard
from verax.wings.evals.summaries import GradeTally


def load(path: str | Path) -> Scorecard | GradeCard:
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
    grades = load_grades(path)
    return load_card(path) if grades is None else grades


def load_grades(path: str | Path) -> GradeCard | None:
    """The card of graded answers in a file; None where it holds a card of forecasts."""
    stored = read_summaries(path)
    if GRADES not in stored:
        return None
    try:
        return GradeCard.of(GradeTally.from_bytes(stored[GRADES]))
    except InputError as error:
        raise not_saved(as_path(path), error) from None


def merged_grades(paths: Sequence[str | Path]) -> GradeCard | None:
    """The card of the graded answers of all files; None where none holds any, and mixtures are refused."""
    cards = {path: load_grades(path) for path in paths}
    known = {path: card for path, card in cards.items() if card is not None}
    if not known:
        return None
    if len(known) < len(cards):
        other = next(path for path, card in cards.items() if card is None)
        raise VeraxError(
            f"{next(iter(known))} has graded answers, and {other} has none: merge files of one kind."
        )
    (first, merged), *rest = known.items()
    for path, card in rest:
        try:
            merged = merged.merge(card)
        except VeraxError as error:
            raise VeraxError(f"{first} and {path} cannot be merged: {error}") from None
    return merged
