"""Reports on shards, which save what the report on all of them will need, and that report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard, check_whole
from verax.errors import InputError, Remedy
from verax.scores.base import Rule
from verax.scores.registry import fitting_rules, padded_rules

if TYPE_CHECKING:
    from verax.analyses.subgroups.result import Subgroups
    from verax.inference.findings import Verdict
    from verax.inputs.handles import Handle


def report_on_shard(
    html: Path,
    save: Path | None,
    card: Scorecard,
    handle: Handle,
    said: str,
    parts: Mapping[str, Subgroups] | None = None,
) -> InputError | None:
    """Write the report on a file and, if asked to, save its summaries; why a part alone has no report.

    `parts` are the subgroups of lists, which no report computes itself.
    """
    from verax.scans.parts import UNNAMED
    from verax.scans.saved import Recorded

    shard = Recorded(handle, model=UNNAMED)
    reason = None
    try:
        _report(html, shard, card, said, parts)
    except InputError as error:
        if save is None or _is_whole(card):
            raise
        reason = error
    if save is not None:
        shard.save(save, card)
    return reason


def _is_whole(card: Scorecard) -> bool:
    """Whether a card stands for itself: it has weight, and more than one group where there are groups."""
    try:
        check_whole(card)
    except InputError:
        return False
    return True


def save_merged(path: Path, paths: Sequence[Path], card: Scorecard) -> None:
    """Save all that the files have in common, with their card."""
    from verax.scans.saved import merge_saved

    merge_saved(paths, card, path)


def report_on_all(html: Path, paths: Sequence[Path], card: Scorecard) -> Verdict:
    """Write the report on saved summaries and return its verdict; a file that lacks some of them is named."""
    from verax.scans.saved import SavedHandle

    said = "; ".join(map(str, paths[:3])) + ("; ..." if len(paths) > 3 else "")
    try:
        return _report(html, SavedHandle(paths), card, said)
    except InputError as error:
        if error.kind not in ("missing", "file"):
            raise
        advice = Remedy("Save every part by `verax evaluate --save ... --html ...`, with the same options.")
        raise error.replace(argument="html", remedies=[advice]) from None


def _report(
    html: Path, handle: Any, card: Scorecard, said: str, parts: Mapping[str, Subgroups] | None = None
) -> Verdict:
    from verax.report import Report

    plan, rules = card.resampling, [rule for rule in card.tally.rules if isinstance(rule, Rule)]
    usual = padded_rules() if isinstance(card, ListCard) else fitting_rules(None, card.ordered)
    report = Report.of(
        handle,
        ordered=card.ordered,
        rules=None if set(rules) == set(usual) else rules,
        confidence=plan.confidence,
        seed=plan.seed,
        weights_are=plan.weights_are,
        source=said,
    )
    report = report.with_subgroups(parts) if parts else report
    report.save(html)
    return report.verdict
