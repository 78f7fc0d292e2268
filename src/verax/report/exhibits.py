"""The figures and tables of the page, section by section, as the template lays them out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.calibration.claims import ListClaim
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.result import WITHIN_GROUPS, Subgroups, score_of
from verax.analyses.verdicts.calibration import claim_words, two_shares
from verax.analyses.words import clean, count, number, p_of, part_of, probability, span, title_of
from verax.common.texts import percent
from verax.errors import join
from verax.inference.findings import Claim, Level, Verdict
from verax.report.breakdowns import drawn
from verax.report.contents import Contents, Findings, ListFindings
from verax.report.limits import LEAST, PANELS
from verax.report.reliability import n_events
from verax.report.verdict import calibration_of
from verax.scores.metrics import cost_matrix
from verax.scores.registry import name_of

# Up to this number of classes the confusion matrix is shown; beyond, its largest cells are listed.
_MATRIX = 16
_CONFUSED = 20


# ---- calibration -------------------------------------------------------------------------------


def reliability_exhibit(contents: Contents) -> dict[str, Any]:
    """The reliability diagrams, which of them there are, and what they come to."""
    panels = contents.findings[0].panels
    kind, left = "", ""
    if not contents.problem.lists:
        total = n_events(contents.problem)
        events = "thresholds" if contents.problem.ordered else "classes"
        kind = f", for each of the {events}" if total > 1 else f", for {panels[0].title}"
        if total > PANELS:
            left = f"Shown are the {PANELS} of {total:,} {events} with the largest miscalibration."
    return {
        "kind": kind,
        "left_out": left,
        "panels": [_panel(contents, i) for i in range(len(panels))],
        "words": [_calibration_verdict(contents, f) for f in contents.findings],
        "claims": [
            [_claim(claim) for claim in f.places.claims] for f in contents.findings if f.places is not None
        ],
    }


def _panel(contents: Contents, i: int) -> dict[str, Any]:
    panels = [f.panels[i] for f in contents.findings]
    return {
        "title": panels[0].title,
        "models": [
            {
                "words": "no such place"
                if panel.components is None
                else f"miscalibration {number(panel.components.miscalibration)}",
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
        band = span((means[2], means[3]), 3)
        rows.append((number(means[0], 3), number(means[1], 3), band, percent(float(mass))))
    return rows


def _calibration_verdict(contents: Contents, model: Findings) -> str:
    """The claims about the calibration of a model, and the numbers behind them."""
    if model.places is not None:
        return _claims_verdict(contents, model.places)
    assert model.dense is not None
    sure, line = model.dense.overconfidence, model.dense.slope
    facts = [f"Most likely class: {two_shares(sure.claimed, 'claimed', sure.right, 'correct')}"]
    if line is not None and model.dense.slopes is not None:
        of = f" of {clean(model.dense.slopes.prefix + line.name)}" if len(model.dense.slopes) > 1 else ""
        ends = f"{100 * contents.confidence:g}% CI {span(line.slope_interval, 2)}"
        facts.append(f"calibration slope{of} {number(line.slope, 2)} ({ends})")
    whole = model.decomposition.whole
    if whole.p_value is not None:
        kind = "thresholds" if contents.problem.ordered else "classes"
        facts.append(f"miscalibration of all {kind}, {p_of(whole)}")
    claims = " ".join(finding.text for finding in calibration_of(contents, model))
    return f"{claims} {'; '.join(facts)}."


def _claim(claim: ListClaim) -> dict[str, str]:
    return {
        "name": claim.name,
        "n": f"{claim.n_lists:,}",
        "claimed": percent(claim.claimed, 2),
        "happened": percent(claim.happened, 2),
        "gap": f"{100 * claim.gap:+.2f}".replace("-", "−"),
        "p": probability(claim.p_value),
        "holm": probability(claim.p_adjusted),
    }


def _claims_verdict(contents: Contents, lists: ListFindings) -> str:
    level = 1 - contents.confidence
    off = [c for c in lists.claims if c.p_adjusted is not None and c.p_adjusted <= level]
    off = [c for c in off if c.name.startswith("place")]
    if not off:
        return "No place claims significantly more or less than happens."
    texts = [f"{c.name} ({two_shares(c.claimed, 'claimed', c.happened, 'correct')})" for c in off[:4]]
    if len(off) > 4:
        texts.append(count(len(off) - 4, "more place"))
    return f"Significantly off: {join(texts)}."


# ---- lists -------------------------------------------------------------------------------------


def coverage_exhibit(contents: Contents) -> list[dict[str, Any]]:
    """How many outcomes are among the first places of each model's lists, and how many were claimed."""
    tables = []
    for model in contents.findings:
        assert model.places is not None
        whole = model.places.whole
        rows = [(f"{k}", percent(a, 1), percent(b, 1)) for k, a, b in model.places.so_far()]
        words = (
            f"The outcome is listed in {percent(whole.happened, 1)} of the rows; the lists claim "
            f"{percent(whole.claimed, 1)}, {claim_words(whole, Level.at(contents.confidence))}."
        )
        tables.append({"rows": rows, "words": words})
    return tables


# ---- decisions ---------------------------------------------------------------------------------


def confusion_exhibit(contents: Contents, model: Findings) -> dict[str, Any]:
    """One model's decisions: a matrix, or the mistakes that matter most where it would be too large."""
    problem, counts = contents.problem, model.card.confusion
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
        "matrix": _matrix(problem.titles, counts, costs) if small else None,
        "listed": [] if small else _confused(problem.titles, counts, costs),
        "words": _cost_words(contents, model),
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
                    "share": part_of(share) if counts[i, j] else "",
                    "depth": round(float(share), 3),
                    "right": i == j,
                    "cost": "" if costs is None or not counts[i, j] or i == j else f"{costs[i, j]:g}",
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


def _cost_words(contents: Contents, model: Findings) -> str:
    costs = contents.problem.costs
    decisions = None if model.dense is None else model.dense.decisions
    if costs is None or decisions is None:
        return "Decisions take the most likely class. No costs were given, so every mistake counts the same."
    kind = f"{costs.replace('_', '-')} costs" if isinstance(costs, str) else "the costs given"
    text = f"With {kind}, deciding for the most likely class costs {number(decisions.likeliest)} per row. "
    gain = decisions.likeliest - decisions.cheapest
    if abs(gain) < 0.005 * abs(decisions.likeliest):
        return text + "Deciding for the smallest expected cost would change little."
    better = "only" if gain > 0 else "even"
    return (
        text
        + f"Deciding for the smallest expected cost would have cost {better} {number(decisions.cheapest)}."
    )


# ---- classes and subgroups ---------------------------------------------------------------------


def by_class_exhibit(contents: Contents) -> dict[str, Any]:
    """The losses by class."""
    problem = contents.problem
    models = [f.dense.by_class for f in contents.findings if f.dense is not None]
    shown = len(models[0])
    observed = int((contents.findings[0].card.class_counts > 0).sum())
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
                    "name": problem.titles[line.position],
                    "n": f"{line.n_rows:,}",
                    "values": [(number(line.means[rule]), span(line.intervals[rule])) for rule in line.means],
                }
                for line in lines
            ]
            for lines in models
        ],
    }


# Findings about models in subgroups, which follow those about calibration.
_OF_MODELS = frozenset({Claim.BEST, Claim.LEAD_OPEN})


def subgroups_exhibit(contents: Contents, name: str) -> dict[str, Any]:
    """The losses and the calibration of the subgroups of one breakdown."""
    if name in contents.parts.too_many:
        words = "There are too many different values to keep their subgroups while rows are read once."
        return {"name": name, "lines": [], "words": words, "flagged": ""}
    subgroups = contents.subgroups.get(name)
    left = contents.parts.left_out[name]
    words = ""
    if left:
        words = f"{count(len(left), 'subgroup')} left out, too small or too many; see the data checks."
        if subgroups is not None:
            total = len(left) + len({line.label for line in subgroups.lines})
            words += f" The p-values are corrected for all {total:,} subgroups."
    if subgroups is None:
        enough = f"{LEAST} rows" + (" of at least two groups" if contents.problem.grouped else "")
        words = f"No subgroup is large enough: it takes {enough}."
        return {"name": name, "lines": [], "words": words, "flagged": ""}
    shown = drawn(subgroups)
    if len(shown) < len(subgroups.lines):
        n, tested = (len({line.label for line in each}) for each in (shown, subgroups.lines))
        largest = f"Shown are {n:,} of {tested:,} subgroups, the largest and those that stand out."
        words = " ".join(filter(None, [words, largest]))
    lines = subgroup_lines(subgroups, several=len(contents.findings) > 1)
    verdict = str(
        Verdict(finding for finding in subgroups.verdict.findings if finding.claim not in _OF_MODELS)
    )
    words = " ".join(filter(None, [WITHIN_GROUPS * subgroups.within_groups, words, subgroups.limits]))
    rule = title_of(subgroups.rule.removeprefix("padded(").removesuffix(")"))
    return {
        "name": clean(name),
        "lines": lines,
        "words": words,
        "flagged": verdict,
        "any_flagged": any(line.stands_out for line in shown),
        "leaders": subgroups.leaders,
        "rule": rule,
        "level": f"{100 * subgroups.level:g}%",
    }


def subgroup_lines(subgroups: Subgroups, *, several: bool) -> list[dict[str, Any]]:
    """The lines of the table of subgroups; with the model where there are several."""
    lines = []
    for line in drawn(subgroups):
        score = score_of(line.card, subgroups.rule)
        lines.append(
            {
                "label": clean(line.label),
                "model": line.model if several else "",
                "n": f"{line.card.n_rows:,}",
                "mean": number(score.mean),
                "interval": span(score.interval),
                "accuracy": percent(line.card.accuracy, 1),
                "miscalibration": number(line.decomposition.miscalibration),
                "events": _events(line),
                "p": probability(line.p_adjusted),
                "flag": line.stands_out,
            }
        )
    return lines


def _events(line: Subgroup) -> dict[str, str] | None:
    """Observed and expected events of two classes."""
    events = line.events
    if events is None:
        return None
    ratio, ends = number(events.ratio, 2), span(events.interval, 2)
    return {
        "observed": f"{events.observed:,.0f}",
        "expected": f"{events.expected:,.1f}",
        "ratio": ratio,
        "ends": ends,
    }


# ---- models ------------------------------------------------------------------------------------


def comparison_exhibit(contents: Contents) -> dict[str, Any]:
    """The models, ranked and pair by pair, and where the scores disagree about them."""
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
                        "interval": span(contents.interval(m.name, rule), 5),
                        "letters": m.letters,
                        "skill": percent(m.skill, 1) if math.isfinite(m.skill) else "–",
                    }
                    for m in models
                ],
                "pairs": [
                    {
                        "a": d.a,
                        "b": d.b,
                        "difference": d.infinite_words or number(d.difference, 5),
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
        "notes": [*comparison.undecided, *comparison.notes, *_answers(contents)],
    }


def _answers(contents: Contents) -> list[str]:
    """Whose first listed class is right most often, and by how much."""
    if contents.answers is None:
        return []
    best, *others = contents.answers.models["zero_one"]
    gaps = []
    for other in others:
        gap = contents.answers.difference(other.name, best.name, "zero_one")
        points, low, high = (number(100 * end, 2) for end in (gap.difference, *gap.interval))
        p, level = probability(gap.p_adjusted), f"{100 * contents.confidence:g}% CI"
        told = f"p {p}" if p.startswith("<") else f"p = {p}"
        gaps.append(f"{other.name} by {points} percentage points ({level} {low} to {high}, {told})")
    most = f"Accuracy of the first listed class is highest for {best.name} ({percent(1 - best.mean, 1)})."
    corrected = " (p-values after Holm’s correction)" if len(gaps) > 1 else ""
    return [f"{most} Behind it{corrected}: {'; '.join(gaps)}."]
