"""`verax merge` of the cards of graded answers."""

from __future__ import annotations

from typing import Any

from verax.cli.merge import Merging
from verax.cli.output import show
from verax.cli.require import check_on_sums
from verax.wings.evals.cli.grade_cards import GradeBound, card_texts, grade_bounds, hold_grades
from verax.wings.evals.result import GradeCard


def show_merged(card: GradeCard, asked: Merging) -> None:
    """Print the card of graded answers of all files."""
    from verax.wings.evals.page import save_grade_page

    ends = card.rule.low, card.rule.high
    bounds = grade_bounds(asked.require, strictly=asked.require_interval, ends=ends)
    for bound in bounds:
        if card.card is not None and not isinstance(bound, GradeBound):
            check_on_sums(bound, card.card)
    checks = hold_grades(bounds, card, None)
    files = [str(file) for file in asked.files]
    if asked.save is not None:
        card._save(asked.save, asked.parts)
    if asked.html is not None:
        save_grade_page(card, asked.html, source=", ".join(files), verdicts=[str(check) for check in checks])
    result: dict[str, Any] = {
        "files": files,
        "grades": card.to_dict(stored=False),
        "notes": [*asked.repeats, *card.notes],
    }
    show(
        result,
        [*card_texts(card), *(f"Note: {note}" for note in asked.repeats)],
        as_json=asked.as_json,
        verdict=card.verdict,
        checks=checks,
        page=asked.html,
        results=asked.save,
    )
