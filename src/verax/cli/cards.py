"""The card of a file, as `evaluate` and `toplist` show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from verax._settings import settings
from verax.analyses.cards.listcard import ListCard
from verax.cli.app import FAILED, words
from verax.cli.arguments import Typed
from verax.cli.opening import GivenRows
from verax.cli.output import check_report, command_line, show, told, verdict_lines
from verax.cli.require import Bound
from verax.cli.shards import report_on_shard
from verax.scores.base import Rule

if TYPE_CHECKING:
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.analyses.cards.scorecard import Scorecard
    from verax.analyses.cards.tally import Tally
    from verax.inference.findings import Verdict
    from verax.report import Report

# Beyond this number of classes, skill and calibration are computed only if asked for.
MOST_CLASSES = 1024


def show_card(
    rows: GivenRows,
    command: str,
    *,
    rules: Sequence[Rule],
    bounds: Sequence[Bound],
    asked: list[str] | None = None,
    ordered: bool = False,
    least: int = 20,
    bootstrap: int | None = None,
    html: Path | None = None,
    save: Path | None = None,
    as_json: bool = False,
    **plan: Any,
) -> None:
    """Score the rows, print the card and what was done to them, and hold it to bounds.

    Parameters
    ----------
    command : str
        `toplist` prints the fields of the card itself as JSON, `evaluate` a field that holds it.
    rules : sequence of Rule
        The rules on the card.
    asked : list of str or None
        The rules that were asked for; the first is that of subgroups.
    save, html : Path or None
        Where to save the sums, which may be of a part of all rows, and where to write a report.
    **plan : Any
        Confidence, seed and what weights are.
    """
    from verax.analyses.cards.tally import Tally

    check_report(html)
    dense = not rows.handle.lists
    settings = {"ordered": ordered, **plan} if dense else plan

    def scored(rows: GivenRows) -> Tally:
        return rows.marked(rows.ask(Tally.of, rules=list(rules), ordered=ordered, **plan))

    def reported(rows: GivenRows) -> Report:
        return rows.report(source=rows.source, rules=asked, **settings)

    report: Report | None = None
    if html is not None and save is None:
        tally, report = rows.together(scored, reported)
    else:
        tally = scored(rows)
    card = tally.card(part=save is not None)
    calibration, small = None, _is_small(card)
    verdict: Verdict | None = None
    if card.weight and (small or any(bound.on_calibration for bound in bounds)):
        calibration = _calibration(rows, asked, bounds, bootstrap, **settings)
    parts = {}
    if html is None or not rows.reports_subgroups:
        rule = asked[0] if asked else None
        parts = rows.subgroups(rule, least=least, bootstrap=bootstrap, **settings)
    notes = _notes(rows, card, computed=calibration is not None)
    verdicts = [bound.hold(card, calibration) for bound in bounds]
    if html is not None and save is not None:
        no_report = report_on_shard(html, save, card, rows.handle, rows.source, None if dense else parts)
        if no_report is not None:
            html = None
            notes.append(f"There is no report on this part alone. {words().say(no_report)}")
    elif html is not None and report is not None:
        if not rows.reports_subgroups:
            report = report.with_subgroups(parts)
        held = [(f"{each.bound.text} ({each.value:.4g})", each.met) for each in verdicts]
        report = report.with_command(command_line(command), held, Typed.source())
        report.save(html)
        parts, verdict = report.subgroups or parts, report.verdict
        if dense and not rows.held:
            notes.append(
                "The file is large, so its report was computed by streaming; it states the approximation "
                "error."
            )
    elif save is not None:
        card.save(save)
    if report is None and card.weight and (small or not dense):
        verdict, parts = rows.verdict(asked, ordered=ordered, parts=parts, **plan)
    verdict = None if verdict is None else verdict.with_source(Typed.source())
    file = next(iter(rows.files.values()))
    found, by = card.to_dict(stored=False), {name: part.to_dict(stored=False) for name, part in parts.items()}
    result: dict[str, Any] = {"command": command, "file": file, **told(verdict)}
    measures = None if calibration is None else calibration.to_dict(stored=False)
    if dense:
        scale = {name: rows.options.get(name, False) for name in ("normalize", "logits")}
        result |= {"taken": rows.taken(), **scale, "card": found, "calibration": measures, "subgroups": by}
    else:
        result |= found if command == "toplist" else {"card": found}
        skipped = None if card.skipped is None else card.skipped.to_dict()
        lists = {**rows.taken(), "skipped": skipped}
        result |= {"calibration": measures, "lists": lists, **({"subgroups": by} if by else {})}
    result |= {
        "require": [verdict.to_dict() for verdict in verdicts],
        "met": all(verdict.met for verdict in verdicts),
        "html": None if html is None else str(html),
        "save": None if save is None else str(save),
        "notes": notes,
    }
    texts = verdict_lines(verdict)
    texts += [f"{file}: {'; '.join(rows.handle.taken)}", str(card)]
    texts += [] if calibration is None else [f"\n{calibration}"]
    texts += [f"Note: {note}" for note in notes]
    texts += [f"\n{part}" for part in parts.values()]
    texts += map(str, verdicts)
    texts += [] if html is None else [f"The report is in {html}."]
    texts += [] if save is None else [f"Saved results are in {save}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _is_small(card: Scorecard) -> bool:
    if isinstance(card, ListCard):
        return card.n_rows * card.longest <= settings.calibration_up_to
    return card.n_classes <= MOST_CLASSES and card.n_rows * card.n_classes <= settings.calibration_up_to


def _notes(rows: GivenRows, card: Scorecard, *, computed: bool) -> list[str]:
    """What a reader of the card should know: a sentence each."""
    notes = list(rows.notes)
    if not rows.handle.lists:
        from verax.files.scoring import doubts_about

        about = rows.first if rows.held else rows.handle
        notes = [words().say(doubt) for doubt in doubts_about(about, card.class_counts.tolist())] + notes
    if not computed and card.weight:
        many = f"{card.n_rows:,} lists"
        if not rows.handle.lists:
            many = f"{card.n_rows:,} rows of {card.n_classes:,} classes"
        notes.append(
            f"Skill and calibration were not computed, because {many} are many. `verax decompose` or a "
            "bound such as --require 'skill>0' computes them."
        )
    return notes


def _calibration(
    rows: GivenRows, asked: list[str] | None, bounds: Sequence[Bound], bootstrap: int | None, **settings: Any
) -> CalibrationSummary:
    """Skill and calibration of the rows, with intervals where a bound is about one."""
    from verax.analyses.calibration.summary import decomposable, summarize
    from verax.analyses.measures import OF_ALL
    from verax.scores.registry import as_rules

    with_interval = any(bound.name in OF_ALL and bound.end != "mean" for bound in bounds)
    named = as_rules(asked) if asked and not rows.handle.lists else []
    rule = next(filter(decomposable, named), None)
    draws = (bootstrap or 100) if with_interval else 0
    also = [bound.name for bound in bounds if bound.on_calibration]
    return rows.ask(summarize, rule=rule, bootstrap=draws, also=also, **settings)
