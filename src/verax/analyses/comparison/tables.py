"""The tables of a comparison: ranks, differences, questions and tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verax.analyses.comparison.records import Model
from verax.display.tables import Column, Table, interval_head
from verax.scores.grades import Grade
from verax.scores.registry import stored_rule

# A `Comparison`, which makes its tables here.
Compared = Any
# Whether models differ, as letters.
LETTERS = Column(
    "letters",
    "same letter: not significantly different",
    right=False,
    spare=1,
    brief="same letter: not significant",
)


def grade_named(rule: str) -> Grade | None:
    """The rule of grades that has this name; None for other rules."""
    found = stored_rule(rule) if rule.partition("(")[0] == Grade.name else None
    return found if isinstance(found, Grade) else None


def in_grades(found: Compared) -> Compared:
    """The same with grades in place of their losses, as they are shown: higher is better."""
    scales = {rule: scale for rule in found.models if (scale := grade_named(rule)) is not None}

    def turned(by_rule: dict[str, list[Any]], turn: Callable[[Any, float], Any]) -> dict[str, list[Any]]:
        return {
            rule: [turn(own, scales[rule].high) for own in lines] if rule in scales else lines
            for rule, lines in by_rule.items()
        }

    return replace(
        found,
        models=turned(found.models, _grade),
        differences=turned(found.differences, lambda own, _: replace(own.turned, a=own.a, b=own.b)),
        answers=turned(found.answers, lambda own, top: replace(own, low=top - own.high, high=top - own.low)),
        gap_bounds=turned(found.gap_bounds, lambda own, _: replace(own, low=-own.high, high=-own.low)),
        peers=turned(found.peers, lambda own, _: _grade(own, 0.0)),
        tasks={name: in_grades(task) for name, task in found.tasks.items()},
    )


def _grade(own: Model, top: float) -> Model:
    """The mean grade of a model, from its mean loss."""
    return replace(
        own,
        mean=top - own.mean,
        finite_mean=top - own.finite_mean,
        interval=(-own.interval).shifted(top),
    )


def tables_of(found: Compared) -> list[Table]:
    """Under each rule the ranks and differences of models, and what else was asked for."""
    shown = in_grades(found)
    tables = [table for rule in found.models for table in _of_rule(shown, rule)]
    if found.margin is not None:
        tables.append(_margin_table(found, found.margin))
    return tables + _task_tables(shown)


def _of_rule(found: Compared, rule: str) -> list[Table]:
    head, against, scale = interval_head(found.confidence), found.reference, grade_named(rule)
    ranking = [
        Column("rank", "rank"),
        Column("name", "model", right=False),
        Column("mean", "mean", _mean),
        Column("low high", head, ".5f", "interval", right=False),
        LETTERS,
    ]
    title = f"{rule} (lower is better)"
    if scale is not None:
        ranking[2] = Column("mean", "mean grade", _mean)
        title = f"grade, from {scale.low:g} to {scale.high:g} (higher is better)"
    if against is not None:
        ranking.append(Column("skill", f"skill against {against}", _skill, right=False))
    pairs = [
        Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
        Column("difference", "difference", lambda d: d.infinite_words or signed(d.difference)),
        Column("low high", head, ".6f", "interval", right=False),
        Column("p_value", "p", lambda d: shown_p(d.p_value), spare=1),
        Column("p_adjusted", "p (Holm)", lambda d: shown_p(d.p_adjusted)),
    ]
    gaps = {(own.a, own.b): own for own in found.gap_bounds.get(rule, ())}
    if gaps:
        pairs.append(Column("", "with ungraded", lambda d: _ends(gaps[d.a, d.b], "+z.4f"), right=False))
    return [
        Table(ranking, found.models[rule], title),
        Table(pairs, found.differences[rule]),
        *_question_tables(found, rule, head),
    ]


def _question_tables(found: Compared, rule: str, head: str) -> list[Table]:
    """What became of the questions of each model, where not all have the same or some are not graded."""
    answers, peers = found.answers.get(rule, []), found.peers.get(rule, [])
    tables = []
    if any(own.ungraded or own.absent for own in answers):
        n = max(own.questions + own.absent for own in answers)
        columns = [
            Column("name", "model", right=False),
            Column("questions", "asked", ","),
            Column("", f"of {n:,}", lambda own: f"{100 * own.questions / n:.1f}%"),
            Column("ungraded", "not graded", ","),
        ]
        if any(own.asked > own.questions for own in answers):
            columns.insert(3, Column("asked", "answers", ","))
        if rule in found.gap_bounds:
            title = f"{_value(rule)} with ungraded"
            columns.append(Column("", title, lambda own: _ends(own, ".4f"), right=False))
        tables.append(Table(columns, answers, f"{rule}: questions"))
    if peers:
        columns = [
            Column("name", "model", right=False),
            Column("mean", "peer score", lambda m: signed(m.mean)),
            Column("low high", head, "+z.6f", "interval", right=False),
        ]
        value = _value(rule)
        title = f"{rule}: {value.removeprefix('mean ')} minus the {value} of the others on the same question"
        tables.append(Table(columns, peers, title))
    baselines = found.baselines.get(rule, [])
    if baselines:
        columns = [
            Column("name", "model", right=False),
            Column("mean", "baseline score", lambda m: signed(m.mean)),
            Column("low high", head, "+z.6f", "interval", right=False),
        ]
        title = f"{rule}: loss minus that of the same probability for every class, on the same questions"
        tables.append(Table(columns, baselines, title))
    return tables


def _task_tables(found: Compared) -> list[Table]:
    """The best model of each task, and its lead over the next."""
    if not found.tasks:
        return []
    columns = [
        Column("", "task", lambda line: line[0], right=False),
        Column("", "rows", lambda line: f"{line[1].n_rows:,}"),
        Column("", "best", lambda line: line[1].best(), right=False),
        Column("", "next", lambda line: _next(line[1])[0], right=False),
        Column("", "difference", lambda line: _next(line[1])[1]),
        Column("", interval_head(found.confidence), lambda line: _next(line[1])[2], right=False),
        Column("", "p (Holm, all tasks)", lambda line: _next(line[1])[3]),
    ]
    return [Table(columns, list(found.tasks.items()), f"{next(iter(found.models))} by task")]


def _next(found: Compared) -> tuple[str, str, str, str]:
    """The second model, and the difference of the best from it."""
    models = next(iter(found.models.values()))
    if len(models) < 2:
        return "", "", "", ""
    gap = found.difference(models[0].name, models[1].name)
    shown = f"{gap.interval:.6f}"
    return models[1].name, gap.infinite_words or signed(gap.difference), shown, shown_p(gap.p_adjusted)


def _margin_table(found: Compared, margin: float) -> Table:
    """Which models are worse than another by less than the margin."""
    columns = [
        Column("", "model", lambda t: f"{t.model} against {t.against}", right=False),
        Column("difference", "worse by", lambda t: signed(t.difference)),
        Column("bound", f"{100 * found.confidence:g}% upper bound", lambda t: signed(t.bound)),
        Column("p_value", "p", lambda t: shown_p(t.p_value)),
        Column("", "shown", lambda t: "yes" if t.p_adjusted <= 1 - found.confidence else "no"),
    ]
    return Table(columns, found.margin_tests, f"worse by less than {margin:g} (one-sided tests)")


def _value(rule: str) -> str:
    return "mean loss" if grade_named(rule) is None else "mean grade"


def _ends(bounds: Any, form: str) -> str:
    """The bounds that ungraded answers leave."""
    return " to ".join(format(end, form) for end in (bounds.low, bounds.high))


def _skill(m: Model) -> str:
    return signed(m.skill, f" ({m.skill_interval:.4f})", 4)


def _mean(m: Model) -> str:
    """The mean; where it is infinite, in how many rows the loss is, and the mean of the others."""
    if not m.infinite_rows:
        return f"{m.mean:.5f}"
    return f"inf ({m.infinite_rows:,} {'row' if m.infinite_rows == 1 else 'rows'}; else {m.finite_mean:.5f})"


def signed(value: float, interval: str = "", digits: int = 6) -> str:
    """A difference with its sign."""
    return "undefined" if math.isnan(value) else f"{value:+z.{digits}f}{interval}"


def shown_p(value: float) -> str:
    """A p-value; nothing where there is none."""
    return "" if math.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"
