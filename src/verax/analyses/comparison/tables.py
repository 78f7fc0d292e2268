"""The tables of a comparison: ranks, differences, questions and tasks."""

from __future__ import annotations

import math
from typing import Any

from verax.analyses.comparison.records import Model
from verax.common.texts import percent
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


def grade_named(name: str) -> Grade | None:
    """The rule of grades that has this name; None for other rules."""
    is_scale = isinstance(name, str) and name.partition("(")[0] == Grade.name
    scale = stored_rule(name) if is_scale else None
    return scale if isinstance(scale, Grade) else None


def tables_of(comparison: Compared) -> list[Table]:
    """Ranks and differences of models under each rule, then margins and tasks."""
    tables = [table for rule in comparison.models for table in _of_rule(comparison, rule)]
    if comparison.margin is not None:
        tables.append(_margin_table(comparison, comparison.margin))
    return tables + _task_tables(comparison)


def _of_rule(comparison: Compared, rule: str) -> list[Table]:
    head, against, scale = interval_head(comparison.confidence), comparison.reference, grade_named(rule)
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
    gaps = {(bounds.a, bounds.b): bounds for bounds in comparison.gap_bounds.get(rule, ())}
    if gaps:
        pairs.append(Column("", "with ungraded", lambda d: _ends(gaps[d.a, d.b], "+z.4f"), right=False))
    return [
        Table(ranking, comparison.models[rule], title),
        Table(pairs, comparison.differences[rule]),
        *_question_tables(comparison, rule, head),
    ]


def _question_tables(comparison: Compared, rule: str, head: str) -> list[Table]:
    """Questions, peer scores and baseline scores of each model, if models have different questions."""
    answers, peers = comparison.answers.get(rule, []), comparison.peers.get(rule, [])
    tables = []
    if any(model.ungraded or model.absent for model in answers):
        n = max(model.questions + model.absent for model in answers)
        columns = [
            Column("name", "model", right=False),
            Column("questions", "asked", ","),
            Column("", f"of {n:,}", lambda model: percent(model.questions / n, 1)),
            Column("ungraded", "not graded", ","),
        ]
        if any(model.asked > model.questions for model in answers):
            columns.insert(3, Column("asked", "answers", ","))
        if rule in comparison.gap_bounds:
            title = f"{_value(rule)} with ungraded"
            columns.append(Column("", title, lambda model: _ends(model, ".4f"), right=False))
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
    baselines = comparison.baselines.get(rule, [])
    if baselines:
        columns = [
            Column("name", "model", right=False),
            Column("mean", "baseline score", lambda m: signed(m.mean)),
            Column("low high", head, "+z.6f", "interval", right=False),
        ]
        title = f"{rule}: loss minus that of the same probability for every class, on the same questions"
        tables.append(Table(columns, baselines, title))
    return tables


def _task_tables(comparison: Compared) -> list[Table]:
    """The best model of each task, and its lead over the second."""
    if not comparison.tasks:
        return []
    columns = [
        Column("", "task", lambda line: line[0], right=False),
        Column("", "rows", lambda line: f"{line[1].n_rows:,}"),
        Column("", "best", lambda line: line[1].best(), right=False),
        Column("", "next", lambda line: _next(line[1])[0], right=False),
        Column("", "difference", lambda line: _next(line[1])[1]),
        Column("", interval_head(comparison.confidence), lambda line: _next(line[1])[2], right=False),
        Column("", "p (Holm, all tasks)", lambda line: _next(line[1])[3]),
    ]
    return [Table(columns, list(comparison.tasks.items()), f"{next(iter(comparison.models))} by task")]


def _next(comparison: Compared) -> tuple[str, str, str, str]:
    """The second model, and the difference of the best from it."""
    models = next(iter(comparison.models.values()))
    if len(models) < 2:
        return "", "", "", ""
    gap = comparison.difference(models[0].name, models[1].name)
    shown = f"{gap.interval:.6f}"
    return models[1].name, gap.infinite_words or signed(gap.difference), shown, shown_p(gap.p_adjusted)


def _margin_table(comparison: Compared, margin: float) -> Table:
    """Tests of whether a model is worse than another by less than the margin."""
    columns = [
        Column("", "model", lambda t: f"{t.model} against {t.against}", right=False),
        Column("difference", "worse by", lambda t: signed(t.difference)),
        Column("bound", f"{100 * comparison.confidence:g}% upper bound", lambda t: signed(t.bound)),
        Column("p_value", "p", lambda t: shown_p(t.p_value)),
        Column("", "shown", lambda t: "yes" if t.p_adjusted <= 1 - comparison.confidence else "no"),
    ]
    return Table(columns, comparison.margin_tests, f"worse by less than {margin:g} (one-sided tests)")


def _value(rule: str) -> str:
    return "mean loss" if grade_named(rule) is None else "mean grade"


def _ends(bounds: Any, form: str) -> str:
    """Bounds that allow for ungraded answers, as text."""
    return " to ".join(format(end, form) for end in (bounds.low, bounds.high))


def _skill(m: Model) -> str:
    return signed(m.skill, f" ({m.skill_interval:.4f})", 4)


def _mean(m: Model) -> str:
    """The mean; if infinite, also the number of infinite losses and the mean of the others."""
    if not m.infinite_rows:
        return f"{m.mean:.5f}"
    return f"inf ({m.infinite_rows:,} {'row' if m.infinite_rows == 1 else 'rows'}; else {m.finite_mean:.5f})"


def signed(value: float, interval: str = "", digits: int = 6) -> str:
    """A difference with its sign."""
    return "undefined" if math.isnan(value) else f"{value:+z.{digits}f}{interval}"


def shown_p(value: float) -> str:
    """A p-value as text; empty if undefined."""
    return "" if math.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"
