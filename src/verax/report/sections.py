"""What each section of the page shows, as texts and tables that the template lays out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.complaints import join
from verax.curves import SEES_THE_OUTCOME, RetentionCurve
from verax.decisions import cost_matrix
from verax.inspection import Case
from verax.registry import name_of
from verax.report.charts import metrics_of
from verax.report.contents import Contents, Findings
from verax.report.definitions import definitions
from verax.report.panels import PANELS, n_events
from verax.report.verdict import excess_share, miscalibrated, verdict_of
from verax.report.words import clean, count, number, percent, probability, span, title_of

# Up to so many classes a confusion matrix is laid out; beyond, its largest cells are listed.
_MATRIX = 16
_CONFUSED = 20
# Up to so many classes a forecast is drawn in full and written in full.
_DRAWN, _WRITTEN = 24, 5
_CUTS = (0, 5, 10, 15, 20)


def context_of(contents: Contents, *, title: str, source: str) -> dict[str, Any]:
    """Everything that the template asks for."""
    from verax import __version__

    problem = contents.problem
    return {
        "title": clean(title),
        "source": clean(source, 400),
        "version": __version__,
        "verdict": verdict_of(contents),
        "facts": _facts(contents),
        "models": [f.name for f in contents.findings],
        "several": len(contents.findings) > 1,
        "best": [f.name for f in contents.findings].index(contents.best.name),
        "scores": [title_of(name_of(rule)) for rule in problem.rules],
        "primary": title_of(contents.primary),
        "primary_score": [name_of(rule) for rule in problem.rules].index(contents.primary),
        "level": f"{100 * contents.confidence:g}%",
        "cards": [_card(contents, f) for f in contents.findings],
        "worst": [[_case(contents, case) for case in f.worst] for f in contents.findings],
        "reliability": _reliability(contents),
        "curves": _curves(contents),
        "confusion": [_confusion(contents, f) for f in contents.findings],
        "by_class": _by_class(contents),
        "subgroups": [_subgroups(contents, name) for name in problem.by],
        "comparison": _comparison(contents) if len(contents.findings) > 1 else None,
        "definitions": definitions(contents.findings[0].card),
        "methods": _methods(contents),
        "checks": contents.checks,
    }


def _facts(contents: Contents) -> list[tuple[str, str]]:
    problem, card = contents.problem, contents.best.card
    facts = [
        ("rows", f"{problem.n_rows:,}"),
        ("classes", f"{problem.n_classes:,}" + (", ordered" if problem.ordered else "")),
    ]
    if len(contents.findings) > 1:
        facts.append(("models", f"{len(contents.findings)}"))
    if card.n_groups is not None:
        facts.append(("groups", f"{card.n_groups:,}"))
    best = " of the best" if len(contents.findings) > 1 else ""
    facts.append((f"accuracy{best}", percent(card.accuracy, 1)))
    skill, _ = contents.skill(contents.best.name, contents.primary)
    facts.append((f"skill{best}", percent(skill)))
    return facts


# ---- the card ----------------------------------------------------------------------------------


def _card(contents: Contents, found: Findings) -> dict[str, Any]:
    lines = []
    for score in [*found.card.scores.values(), *found.card.metrics.values()]:
        skilled = score.name in contents.comparison.models
        skill, interval = (
            contents.skill(found.name, score.name) if skilled else (math.nan, (math.nan, math.nan))
        )
        lines.append(
            {
                "name": title_of(score.name),
                "summary": score.summary,
                "main": score.name == contents.primary,
                "mean": number(score.mean),
                "interval": span(score.interval),
                "skill": percent(skill, 1) if math.isfinite(skill) else "–",
                "skill_interval": f"{percent(interval[0], 1)} to {percent(interval[1], 1)}"
                if not math.isnan(interval[0])
                else "",
                "bar": None if not math.isfinite(skill) else round(100 * min(1, max(0, skill)), 2),
                "proper": score.proper or "",
                "better": score.orientation.partition(" ")[0],
                "note": _infinite(score),
            }
        )
    return {"lines": lines, "notes": _calibration_words(contents, found)}


def _infinite(score: Any) -> str:
    if not score.infinite_weight:
        return ""
    return f"{number(score.finite_mean)} without the {count(score.infinite_weight, 'row')} of infinite loss"


def _calibration_words(contents: Contents, found: Findings) -> str:
    d, whole = found.decomposition, found.decomposition.whole
    text = (
        f"{title_of(d.quantity)} {number(d.score)} = miscalibration {number(d.miscalibration)} − discrimination "
        f"{number(d.discrimination)} + uncertainty {number(d.uncertainty)}."
    )
    if whole.expected_miscalibration is not None:
        text += (
            f" A calibrated forecast would show a miscalibration of {number(whole.expected_miscalibration)} by chance "
            f"(p {'' if (whole.p_value or 0) < 1e-4 else '= '}{probability(whole.p_value)}, {contents.replicates} replicates)."
        )
    return text


# ---- rows --------------------------------------------------------------------------------------


def _case(contents: Contents, case: Case) -> dict[str, Any]:
    problem = contents.problem
    names = problem.names
    outcome = names.index(str(case.outcome))
    order = sorted(range(len(names)), key=lambda i: -case.forecast[i])
    written = (
        range(len(names))
        if len(names) <= _WRITTEN
        else sorted({*order[:3], outcome}, key=lambda i: -case.forecast[i])
    )
    others = {title_of(rule): rank for rule, rank in case.ranks.items() if rule != contents.primary}
    return {
        "id": clean(case.id),
        "label": "id" if problem.ids is not None else "row",
        "outcome": names[outcome],
        "said": names[order[0]],
        "said_p": number(case.forecast[order[0]], 2),
        "outcome_p": number(case.forecast[outcome], 2),
        "loss": number(case.loss),
        "why": case.source,
        "ranks": join(f"{rank:,} by {rule}" for rule, rank in others.items()) if others else "",
        "bars": [(round(100 * case.forecast[i], 1), i == outcome) for i in range(len(names))]
        if len(names) <= _DRAWN
        else [],
        "probabilities": [(names[i], number(case.forecast[i], 2), i == outcome) for i in written],
        "omitted": len(names) - len(written),
    }


# ---- calibration -------------------------------------------------------------------------------


def _reliability(contents: Contents) -> dict[str, Any]:
    total = n_events(contents.problem)
    kind = "thresholds" if contents.problem.ordered else "classes"
    first = contents.findings[0]
    return {
        "kind": kind,
        "left_out": f"Shown are the {PANELS} of {total:,} {kind} with the largest miscalibration."
        if total > PANELS
        else "",
        "panels": [_panel(contents, i) for i in range(len(first.panels))],
        "words": [_calibration_verdict(contents, f) for f in contents.findings],
    }


def _panel(contents: Contents, i: int) -> dict[str, Any]:
    panels = [f.panels[i] for f in contents.findings]
    return {
        "title": panels[0].title,
        "models": [
            {
                "miscalibration": number(panel.components.miscalibration),
                "rows": _bins(panel.points),
            }
            for panel in panels
        ],
    }


def _bins(points: Any) -> list[tuple[str, str, str, str]]:
    """A curve in ten bins, for reading."""
    cell = np.minimum((points[:, 0] * 10).astype(int), 9)
    rows = []
    for b in np.unique(cell):
        part = points[cell == b]
        mass = part[:, 4].sum()
        means = (part[:, :4] * part[:, 4:]).sum(axis=0) / mass
        band = f"{number(means[2], 3)} to {number(means[3], 3)}"
        rows.append((number(means[0], 3), number(means[1], 3), band, percent(float(mass))))
    return rows


def _calibration_verdict(contents: Contents, found: Findings) -> str:
    seen = miscalibrated(found, contents.confidence)
    if seen is None:
        return "Calibration was not tested: it would have taken too long for so many rows and classes."
    if not seen:
        return "No miscalibration beyond chance is seen."
    share = excess_share(found)
    traits = contents.comparison.traits[found.name]
    return (
        f"Miscalibrated beyond chance; recalibrating would take about {percent(share)} off the loss. Its most likely "
        f"class has {percent(traits.confidence, 1)} on average and is right {percent(traits.accuracy, 1)} of the time."
    )


# ---- curves ------------------------------------------------------------------------------------


def _curves(contents: Contents) -> dict[str, Any]:
    first = contents.findings[0]
    metrics = metrics_of(first.retained)
    return {
        "metrics": [_metric_title(m) for m in metrics],
        "caution": SEES_THE_OUTCOME,
        "cuts": _CUTS,
        "retained": [_curve_table(f.retained) for f in contents.findings],
        "selected": [_curve_table(f.selected) for f in contents.findings],
    }


def _metric_title(name: str) -> str:
    better = "higher" if name == "qwk" else "lower"
    named = {"zero_one": "Error rate", "qwk": "Quadratic kappa", "ec": "Expected cost"}
    return f"{named.get(name, title_of(name))} ({better} is better)"


def _curve_table(curves: list[RetentionCurve]) -> list[dict[str, Any]]:
    rows = []
    for curve in curves:
        at = {round(100 * float(r)): float(v) for r, v in zip(curve.removed, curve.values, strict=True)}
        rows.append(
            {
                "metric": _metric_title(curve.metric),
                "order": title_of(curve.order),
                "values": [number(at[cut]) for cut in _CUTS],
                "area": f"{number(curve.area)} ({span(curve.interval)})",
            }
        )
    return rows


# ---- decisions ---------------------------------------------------------------------------------


def _confusion(contents: Contents, found: Findings) -> dict[str, Any]:
    problem, counts = contents.problem, found.card.confusion
    if counts is None:
        return {
            "matrix": None,
            "listed": [],
            "words": "Beyond 1,024 classes no table of decisions is kept.",
            "costly": False,
        }
    costs = None if problem.costs is None else cost_matrix(problem.costs, problem.n_classes)
    small = problem.n_classes <= _MATRIX
    return {
        "matrix": _matrix(problem.names, counts, costs) if small else None,
        "listed": [] if small else _confused(problem.names, counts, costs),
        "words": _cost_words(contents, found),
        "costly": costs is not None,
    }


def _matrix(names: tuple[str, ...], counts: Any, costs: Any) -> list[dict[str, Any]]:
    rows = []
    totals = counts.sum(axis=1)
    for i, name in enumerate(names):
        cells = []
        for j in range(len(names)):
            share = counts[i, j] / totals[i] if totals[i] else 0.0
            cells.append(
                {
                    "count": f"{counts[i, j]:,.6g}",
                    "share": percent(share, 0) if counts[i, j] else "",
                    "depth": round(float(share), 3),
                    "right": i == j,
                    "cost": "" if costs is None else f"{costs[i, j]:g}",
                }
            )
        lost = (
            0.0
            if costs is None
            else float((costs[i] * counts[i]).sum() / totals[i])
            if totals[i]
            else math.nan
        )
        rows.append({"name": name, "cells": cells, "total": f"{totals[i]:,.6g}", "cost": number(lost, 3)})
    return rows


def _confused(names: tuple[str, ...], counts: Any, costs: Any) -> list[dict[str, str]]:
    """The mistakes that cost most, or are the most frequent."""
    mistakes = counts.copy()
    np.fill_diagonal(mistakes, 0)
    weight = mistakes if costs is None else mistakes * costs
    order = np.argsort(-weight, axis=None, kind="stable")[:_CONFUSED]
    rows = []
    for i, j in zip(*np.unravel_index(order, counts.shape), strict=True):
        if weight[i, j] > 0:
            share = percent(mistakes[i, j] / counts[i].sum())
            cost = "" if costs is None else number(float(weight[i, j] / counts.sum()))
            rows.append(
                {
                    "happened": names[i],
                    "decided": names[j],
                    "count": f"{mistakes[i, j]:,.6g}",
                    "share": share,
                    "cost": cost,
                }
            )
    return rows


def _cost_words(contents: Contents, found: Findings) -> str:
    costs, decisions = contents.problem.costs, found.decisions
    if costs is None or decisions is None:
        return "Decisions take the most likely class. No costs were given, so every mistake counts the same."
    kind = f"{costs.replace('_', '-')} costs" if isinstance(costs, str) else "the costs given"
    text = f"With {kind}, deciding for the most likely class costs {number(decisions.likeliest)} a row. "
    gain = decisions.likeliest - decisions.cheapest
    if abs(gain) < 0.005 * abs(decisions.likeliest):
        return text + "Deciding for the smallest expected cost would change little."
    better = "only" if gain > 0 else "even"
    return (
        text
        + f"Deciding for the smallest expected cost would have cost {better} {number(decisions.cheapest)}."
    )


# ---- classes and subgroups ---------------------------------------------------------------------


def _by_class(contents: Contents) -> dict[str, Any]:
    problem = contents.problem
    shown = len(contents.findings[0].by_class)
    observed = int((np.bincount(problem.y, minlength=problem.n_classes) > 0).sum())
    left = (
        f"Shown are the {shown} of {observed:,} classes that most of the loss comes from."
        if shown < observed
        else ""
    )
    return {
        "left_out": left,
        "rules": [name_of(rule) for rule in problem.rules],
        "models": [
            [
                {
                    "name": problem.names[line.position],
                    "n": f"{line.n_rows:,}",
                    "values": [(number(line.means[rule]), span(line.intervals[rule])) for rule in line.means],
                }
                for line in found.by_class
            ]
            for found in contents.findings
        ],
    }


def _subgroups(contents: Contents, name: str) -> dict[str, Any]:
    found = contents.subgroups.get(name)
    left = contents.left_out[name]
    words = (
        f"Left out as too small, or beyond the largest 20: {count(len(left), 'subgroup')}; see the data checks."
        if left
        else ""
    )
    if found is None:
        return {
            "name": name,
            "lines": [],
            "words": "No subgroup has the 20 rows that it takes to say anything.",
            "flagged": "",
        }
    rule = found.rule
    lines = [
        {
            "label": clean(line.label),
            "model": line.model if len(contents.findings) > 1 else "",
            "n": f"{line.card.n_rows:,}",
            "mean": number(line.card.scores[rule].mean),
            "interval": span(line.card.scores[rule].interval),
            "accuracy": percent(line.card.accuracy, 1),
            "miscalibration": number(line.decomposition.miscalibration),
            "chance": number(line.decomposition.whole.expected_miscalibration),
            "p": probability(line.p_adjusted),
            "flag": line.stands_out,
        }
        for line in found.lines
    ]
    flagged = [
        f"{clean(line.label, 40)}" + (f" ({line.model})" if len(contents.findings) > 1 else "")
        for line in found.flagged
    ]
    tested = any(line.p_adjusted is not None for line in found.lines)
    verdict = (
        f"Miscalibrated beyond chance: {join(flagged)}."
        if flagged
        else "No subgroup is miscalibrated beyond chance."
        if tested
        else ""
    )
    return {"name": name, "lines": lines, "words": words, "flagged": verdict, "rule": title_of(rule)}


# ---- models ------------------------------------------------------------------------------------


def _comparison(contents: Contents) -> dict[str, Any]:
    comparison = contents.comparison
    return {
        "method": comparison.method,
        "rules": [
            {
                "title": title_of(rule),
                "models": [
                    {
                        "rank": m.rank,
                        "name": m.name,
                        "mean": number(m.mean, 5),
                        "interval": span(m.interval, 5),
                        "letters": m.letters,
                        "skill": percent(m.skill, 1) if math.isfinite(m.skill) else "–",
                    }
                    for m in models
                ],
                "pairs": [
                    {
                        "a": d.a,
                        "b": d.b,
                        "difference": number(d.difference, 5),
                        "interval": span(d.interval, 5),
                        "p": probability(d.p_value),
                        "holm": probability(d.p_adjusted),
                    }
                    for d in comparison.differences[rule]
                ],
            }
            for rule, models in comparison.models.items()
        ],
        "disagreements": comparison.disagreements,
        "notes": comparison.notes,
    }


def _methods(contents: Contents) -> list[str]:
    card, problem = contents.findings[0].card, contents.problem
    how = card.to_dict()["intervals"]
    lines = [
        f"Intervals of {how['confidence']:.0%} ({how['method']}); {how['replicates']:,} replicates where there is resampling, seed {contents.seed}.",
        "Skill is one minus the mean loss over that of forecasting class frequencies, which come from the other nine tenths "
        "of the rows, so they do not peek.",
        "Reliability curves are isotonic regressions of the event on its forecast, without bins; the band is where curves of a "
        "calibrated forecast with the same values lie. Drawn on a grid of two percent.",
        "Nothing was clipped, and no rows were left out: every figure is of all rows.",
    ]
    if problem.normalize:
        lines.append("Every row of probabilities was divided by its sum, as asked.")
    if problem.logits:
        lines.append("Probabilities are the softmax of the logits given.")
    if problem.weights is not None:
        lines.append(
            f"Rows are weighted; the weights sum to {card.weight:,.6g} and count as numbers of rows."
        )
    if problem.groups is not None:
        lines.append(
            "Rows of a group are resampled together. Bands of reliability curves take rows as independent and are too narrow."
        )
    return lines
