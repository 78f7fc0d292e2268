"""The card of a file, as `evaluate` and `toplist` show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verax._settings import settings
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.rows import check_whole
from verax.cli.app import words
from verax.cli.arguments import Typed
from verax.cli.opening import Opened
from verax.cli.output import check_report, save_report, show
from verax.cli.require import Bound
from verax.errors import InputError
from verax.inference.intervals import FewGroups
from verax.inputs.handles import refuse_followed
from verax.scores.base import Rule

if TYPE_CHECKING:
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.analyses.cards.scorecard import Scorecard
    from verax.analyses.subgroups.result import Subgroups
    from verax.inference.findings import Verdict
    from verax.report import Report

# Beyond this number of classes, skill and calibration are computed only if asked for.
MOST_CLASSES = 1024


@dataclass(frozen=True)
class CardQuestion:
    """A question about the rows of a card.

    Attributes
    ----------
    rules : sequence of Rule
        The rules on the card.
    bounds : sequence of Bound
        The bounds that the card must meet.
    asked : list of str or None
        The rules that were asked for; the first is that of subgroups.
    page, part : bool
        Whether there is to be a report; whether the rows may be a part of more.
    plan : mapping
        Confidence, seed and what weights are.
    few_groups : float, "unseen" or None
        What is assumed of the groups of shares.
    """

    rules: Sequence[Rule]
    bounds: Sequence[Bound]
    asked: list[str] | None = None
    ordered: bool = False
    least: int = 20
    bootstrap: int | None = None
    page: bool = False
    part: bool = False
    plan: Mapping[str, Any] = field(default_factory=dict)
    few_groups: FewGroups = None

    def of(self, rows: Opened) -> CardAnswer:
        """The answer."""
        from verax.analyses.cards.tally import Tally

        asked, plan = self.asked, self.plan
        how = {"ordered": self.ordered, **plan} if not rows.lists else {**plan}
        scored_rows = rows
        if self.part:
            scored_rows = replace(rows, handle=copy(rows.handle))
            scored_rows.handle.shard = True

        rules = list(self.rules)
        paged: list[Callable[[Any], Any]] = []
        if self.page and not self.part:
            from verax.report import Report

            paged = [partial(Report.of, rules=asked, **how)]
        (scored, *reported), by_column = scored_rows.asked(
            partial(Tally.of, rules=rules, ordered=self.ordered, few_groups=self.few_groups, **plan),
            *paged,
            rule=asked[0] if asked else None,
            least=self.least,
            **how,
        )
        tally: Tally = scored()
        report: Report | None = reported[0]() if reported else None
        parts = {name: column() for name, column in by_column.items()}
        card = tally.card(part=self.part)
        calibration, small = None, _is_small(card)
        if card.weight and (small or any(bound.on_calibration for bound in self.bounds)):
            calibration = _calibration(rows, asked, self.bounds, self.bootstrap, **how)
        if report is not None:
            report = replace(report.with_subgroups(parts), source=rows.source)
            return CardAnswer(card, calibration, report.verdict, report.subgroups or parts, report)
        verdict: Verdict | None = None
        if card.weight and (small or rows.lists):
            from verax.analyses.subgroups.verdict import verdict_of

            verdict, parts = verdict_of(rows.handle, rules=asked, ordered=self.ordered, parts=parts, **plan)
        return CardAnswer(card, calibration, verdict, parts)


@dataclass(frozen=True)
class CardAnswer:
    """A card with calibration, verdict, subgroups and report."""

    card: Scorecard
    calibration: CalibrationSummary | None
    verdict: Verdict | None
    parts: Mapping[str, Subgroups]
    report: Report | None = None


def show_card(
    rows: Opened,
    question: CardQuestion,
    *,
    flat: bool = False,
    html: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
    scale: Mapping[str, bool] | None = None,
) -> None:
    """Score the rows, print the card and what was done to them, and hold it to bounds.

    Parameters
    ----------
    flat : bool
        Whether the fields of the card are those of the JSON itself, and not in a field of it.
    save, html : Path or None
        Where to save the sums, which may be of a part of all rows, and where to write a report.
    scale : mapping of str to bool
        How numbers of distributions are read.
    """
    check_report(html)
    if save is not None:
        refuse_followed(rows.handle)
    question = replace(question, page=html is not None, part=save is not None)
    answer = question.of(rows)
    card, calibration, parts, dense = answer.card, answer.calibration, answer.parts, not rows.lists
    notes = _notes(rows, card, computed=calibration is not None)
    checks = [bound.hold(card, calibration) for bound in question.bounds]
    if html is not None and save is not None:
        no_report = _report_on_shard(html, save, card, rows.handle, rows.source, None if dense else parts)
        if no_report is not None:
            html = None
            notes.append(f"There is no report on this part alone. {words().say(no_report)}")
    elif html is not None:
        assert answer.report is not None
        save_report(answer.report, html, checks, rows.read)
    elif save is not None:
        card.save(save)
    verdict = None if answer.verdict is None else answer.verdict.with_source(Typed.source())
    file = rows.file
    scores, by = (
        card.to_dict(stored=False),
        {name: part.to_dict(stored=False) for name, part in parts.items()},
    )
    result: dict[str, Any] = {"file": file}
    measures = None if calibration is None else calibration.to_dict(stored=False)
    if dense:
        result |= {
            "taken": rows.taken(),
            **(scale or {}),
            "card": scores,
            "calibration": measures,
            "subgroups": by,
        }
    else:
        result |= scores if flat else {"card": scores}
        skipped = None if card.skipped is None else card.skipped.to_dict()
        lists = {**rows.taken(), "skipped": skipped}
        result |= {"calibration": measures, "lists": lists, **({"subgroups": by} if by else {})}
    result["notes"] = notes
    texts = [f"{file}: {'; '.join(rows.handle.taken)}", str(card)]
    texts += [] if calibration is None else [f"\n{calibration}"]
    texts += [f"Note: {note}" for note in notes]
    texts += [f"\n{part}" for part in parts.values()]
    show(result, texts, as_json=as_json, verdict=verdict, checks=checks, report=html, results=save)


def _is_small(card: Scorecard) -> bool:
    if isinstance(card, ListCard):
        return card.n_rows * card.longest <= settings.calibration_up_to
    return card.n_classes <= MOST_CLASSES and card.n_rows * card.n_classes <= settings.calibration_up_to


def _notes(rows: Opened, card: Scorecard, *, computed: bool) -> list[str]:
    """Notes for readers of the card, a sentence each."""
    notes = list(rows.notes)
    if not rows.lists:
        from verax.files.source import doubts_about

        doubts = doubts_about(rows.handle, card.class_counts.tolist())
        notes = [*(words().say(doubt) for doubt in doubts), *notes]
    if not computed and card.weight:
        many = f"{card.n_rows:,} lists"
        if not rows.lists:
            many = f"{card.n_rows:,} rows of {card.n_classes:,} classes"
        notes.append(
            f"Skill and calibration were not computed, because {many} are many. `verax decompose` or a "
            "bound such as --require 'skill>0' computes them."
        )
    return notes


def _calibration(
    rows: Opened, asked: list[str] | None, bounds: Sequence[Bound], bootstrap: int | None, **settings: Any
) -> CalibrationSummary:
    """Skill and calibration of the rows, with intervals where a bound is about one."""
    from verax.analyses.calibration.summary import decomposable, summarize
    from verax.analyses.measures import OF_ALL
    from verax.scores.registry import as_rules

    with_interval = any(bound.name in OF_ALL and bound.end != "mean" for bound in bounds)
    named = as_rules(asked) if asked and not rows.lists else []
    rule = next(filter(decomposable, named), None)
    draws = (bootstrap or 100) if with_interval else 0
    also = [bound.name for bound in bounds if bound.on_calibration]
    return summarize(rows.handle, rule=rule, bootstrap=draws, also=also, **settings)


def _report_on_shard(
    html: Path, save: Path, card: Scorecard, handle: Any, source: str, parts: Mapping[str, Subgroups] | None
) -> InputError | None:
    """Save the card of a file with what the report on all files needs, and write the report on this one.

    `parts` are the subgroups of lists, which no report computes itself. A part that has no report of its own
    gives the reason.
    """
    from verax.scans.parts import UNNAMED
    from verax.scans.record import Recorded

    shard, reason = Recorded(handle, model=UNNAMED), None
    try:
        write_report(html, shard, card, source, parts)
    except InputError as error:
        if _is_whole(card):
            raise
        reason = error
    shard.save(save, card)
    return reason


def _is_whole(card: Scorecard) -> bool:
    """Whether a card stands for itself: it has weight, and more than one group where there are groups."""
    try:
        check_whole(card)
    except InputError:
        return False
    return True


def write_report(
    html: Path, handle: Any, card: Scorecard, source: str, parts: Mapping[str, Subgroups] | None = None
) -> Verdict:
    """Write the report with the rules and settings of a card; its verdict."""
    from verax.report import Report
    from verax.scores.registry import fitting_rules, padded_rules

    plan, rules = card.resampling, [rule for rule in card.tally.rules if isinstance(rule, Rule)]
    usual = padded_rules() if isinstance(card, ListCard) else fitting_rules(None, card.ordered)
    report = Report.of(
        handle,
        ordered=card.ordered,
        rules=None if set(rules) == set(usual) else rules,
        confidence=plan.confidence,
        seed=plan.seed,
        weights_are=plan.weights_are,
        source=source,
    )
    report = report.with_subgroups(parts) if parts else report
    report.save(html)
    return report.verdict
