"""The page as the template asks for it: verdict, scores, worst rows, conventions; the rest are exhibits.

A section that does not apply is None, and the template leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verax._version import __version__
from verax.analyses.cards.lines import CardLine
from verax.analyses.cases import Case, ListCase, ShareCase, text_of
from verax.analyses.operating.rates import RATES
from verax.errors import join
from verax.report.balance import balance_exhibit
from verax.report.contents import Contents, Findings, inner_name
from verax.report.definitions import ERRATA, Definition, definitions, of_rule
from verax.report.exhibits import (
    by_class_exhibit,
    comparison_exhibit,
    confusion_exhibit,
    coverage_exhibit,
    curves_exhibit,
    lengths_exhibit,
    reliability_exhibit,
    subgroups_exhibit,
)
from verax.report.limits import COUNTED
from verax.report.remedy_section import remedy_exhibit
from verax.report.threshold_section import confidence_exhibit, thresholds_exhibit
from verax.report.thresholds import TwoClassCurves
from verax.report.verdict import verdict_of
from verax.report.words import (
    chance,
    clean,
    count,
    large,
    number,
    part_of,
    percent,
    probability,
    span,
    title_of,
    within,
)
from verax.scores.metrics import HIGHER
from verax.scores.registry import name_of

# Up to this number of classes a forecast is written in full; beyond, the most likely ones and the outcome.
_WRITTEN, _TOP = 6, 4
# The scores that are shown if there are more than a few; the others are folded.
_MAIN, _FEW_SCORES = ("rps", "brier", "log_score"), 3
# What metrics of lists are called.
_TITLES = {
    "accuracy": "Accuracy",
    "coverage": "Coverage",
    "length": "Mean length",
    "unaccounted": "Probability left to others",
    "invalid": "Invalid lists",
}


def context_of(
    contents: Contents,
    *,
    title: str,
    source: str,
    made: str = "",
    command: str = "",
    required: Sequence[tuple[str, bool]] = (),
) -> dict[str, Any]:
    """Everything that the template asks for."""
    findings, lists = contents.findings, contents.problem.lists
    names = [f.name for f in findings]
    return {
        "title": clean(title),
        "source": clean(source, 400),
        "version": __version__,
        "made": made,
        "command": clean(command, 400),
        "required": [(clean(text, 200), met) for text, met in required],
        "paragraph": _paragraph(contents),
        "models": names,
        "several": len(names) > 1,
        "lists": lists,
        "best": names.index(contents.best.name),
        "scores": [title_of(name_of(rule)) for rule in contents.problem.rules],
        "primary": within(title_of(contents.primary)),
        "level": f"{100 * contents.confidence:g}%",
        "verdict": verdict_of(contents),
        "facts": _facts(contents),
        "cards": [_card(contents, f) for f in findings],
        "worst": [[_case(contents, case) for case in f.worst] for f in findings],
        "coverage": coverage_exhibit(contents) if lists else None,
        "reliability": reliability_exhibit(contents),
        "remedy": None if lists else remedy_exhibit(contents),
        "curves": None if lists else curves_exhibit(contents),
        "thresholds": thresholds_exhibit(contents),
        "confident": confidence_exhibit(contents),
        "confusion": None if lists else [confusion_exhibit(contents, f) for f in findings],
        "lengths": lengths_exhibit(contents) if lists else None,
        "balance": None if lists else balance_exhibit(contents),
        "by_class": None if lists else by_class_exhibit(contents),
        "subgroups": [subgroups_exhibit(contents, name) for name in contents.breakdowns],
        "comparison": comparison_exhibit(contents) if len(names) > 1 else None,
        "definitions": _definitions(contents),
        "methods": _methods(contents),
        "checks": contents.checks,
    }


def _best_curve(contents: Contents, curves: Any) -> Any:
    """The curve of the best model."""
    names = [found.name for found in contents.findings]
    return curves.curves[names.index(contents.best.name)]


def _facts(contents: Contents) -> list[tuple[str, str]]:
    problem, best = contents.problem, contents.best
    facts = [
        ("rows", f"{problem.n_rows:,}"),
        ("ordered classes" if problem.ordered else "classes", large(problem.n_classes)),
    ]
    if len(contents.findings) > 1:
        facts.append(("models", f"{len(contents.findings)}"))
    if isinstance(best.card.n_groups, int):
        facts.append(("groups", f"{best.card.n_groups:,}"))
    whose = " of the best" if len(contents.findings) > 1 else ""
    if best.places is not None:
        facts += [
            (f"coverage{whose}", percent(best.places.whole.happened, 1)),
            (f"claimed{whose}", percent(best.places.whole.claimed, 1)),
        ]
    facts.append((f"accuracy{whose}", percent(best.card.accuracy, 1)))
    skill, _ = contents.skill(best.name, contents.primary)
    facts.append((f"skill{whose}", percent(skill)))
    two = _two(contents)
    if two is not None:
        facts.insert(
            2,
            (
                f"observed {clean(problem.names[1], 40)}",
                percent(_best_curve(contents, two.net_benefit).prevalence, 1),
            ),
        )
        facts.append((f"ROC AUC{whose}", number(_best_curve(contents, two.roc).area, 3)))
    return facts


# ---- the card ----------------------------------------------------------------------------------


def _card(contents: Contents, found: Findings) -> dict[str, Any]:
    lines = [
        _line(line, title_of(inner_name(line)), *contents.skill(found.name, inner_name(line)))
        for line in found.card.scores.values()
        if line.rule is not None
    ]
    names = [inner_name(line) for line in found.card.scores.values() if line.rule is not None]
    for line, name in zip(lines, names, strict=True):
        line["first"] = name == contents.primary
        line["main"] = len(lines) <= _FEW_SCORES or name in (*_MAIN, contents.primary)
    for name, metric in found.card.metrics.items():
        if name in RATES and name != "accuracy" and _two(contents) is not None:
            continue
        own = _line(metric, _metric_title(contents, name), math.nan, (math.nan, math.nan))
        lines.append({**own, "first": False, "main": True})
    return {"lines": lines, "zero": draw_skill(lines), "notes": _decomposed(contents, found)}


def _two(contents: Contents) -> TwoClassCurves | None:
    return None if contents.thresholds is None else contents.thresholds.two


def _metric_title(contents: Contents, name: str) -> str:
    if not contents.problem.lists:
        return RATES[name].title if name in RATES else title_of(name)
    return _TITLES.get(name, name.replace("_", "-", 1).replace("_", " ").capitalize())


def draw_skill(lines: list[dict[str, Any]]) -> float:
    """Give every line the width of its bar in percent, and return where zero lies.

    Bars of negative skill go to the left of it; what is below -100 % ends there, and has its number beside.
    """
    known = [min(1.0, max(-1.0, line["drawn"])) for line in lines if line["drawn"] is not None]
    lowest = min([0.0, *known])
    for line in lines:
        drawn = line.pop("drawn")
        line["bar"] = None if drawn is None else round(100 * min(1.0, max(-1.0, drawn)) / (1 - lowest), 2)
    return round(-100 * float(lowest) / (1 - float(lowest)), 2)


def _line(score: CardLine, title: str, skill: float, interval: tuple[float, float]) -> dict[str, Any]:
    known = math.isfinite(skill)
    explained = [score.summary] if score.summary.lower() != title.lower() else []
    explained += ["higher is better"] if score.orientation == HIGHER else []
    return {
        "name": title,
        "summary": "; ".join(explained),
        "mean": number(score.mean),
        "interval": span(score.interval),
        "skill": percent(skill, 1) if known else "",
        "skill_interval": f"{percent(interval[0], 1)} to {percent(interval[1], 1)}" if known else "",
        "drawn": skill if known else None,
        "proper": score.proper if score.orientation != HIGHER else "",
        "note": _infinite_words(score),
    }


def _infinite_words(score: CardLine) -> str:
    """The mean without rows of infinite loss; empty where there are none."""
    if not score.infinite_weight:
        return ""
    return f"{number(score.finite_mean)} without the {count(score.infinite_weight, 'row')} of infinite loss"


def _decomposed(contents: Contents, found: Findings) -> str:
    d, whole = found.decomposition, found.decomposition.whole
    what = title_of(d.quantity)
    if contents.problem.lists:
        what = "Brier score of the events that a list defines (its classes, and “not listed”):"
    text = (
        f"{what} {number(d.score)} = miscalibration {number(d.miscalibration)} "
        f"− discrimination {number(d.discrimination)} + uncertainty {number(d.uncertainty)}."
    )
    if contents.problem.lists:
        padded: Any = d
        text += f" Including which unlisted class happened, it is {number(padded.padded)}."
    if whole.expected_miscalibration is not None:
        text += (
            f" A calibrated forecast would show {number(whole.expected_miscalibration)} of miscalibration by "
            f"chance; p = {probability(whole.p_value)} from {len(whole.calibrated)} draws."
        )
    return text


# ---- rows --------------------------------------------------------------------------------------


def _case(contents: Contents, case: Case) -> dict[str, Any]:
    others = [
        f"{case.rank_words(rule)} by {within(title_of(rule))}"
        for rule in case.ranks
        if rule != contents.primary
    ]
    own = _listed(case) if isinstance(case, ListCase) else _distributed(contents, case)
    return {
        "id": clean(case.id),
        "label": "id" if contents.problem.named else "row",
        "loss": number(case.loss),
        "ranks": join(others) if others else "",
        **own,
    }


def _distributed(contents: Contents, case: Case) -> dict[str, Any]:
    names, p = contents.problem.names, case.forecast
    shares: Mapping[Hashable, float] = case.outcome if isinstance(case, ShareCase) else {}
    # Of raters who disagree, the class that most of them chose.
    chosen = max(shares, key=lambda name: shares[name]) if shares else case.outcome
    outcome = names.index(str(chosen))
    order = sorted(range(len(names)), key=lambda i: -p[i])
    shown = range(len(names)) if len(names) <= _WRITTEN else sorted({*order[:_TOP], outcome}, key=order.index)
    omitted, rest = len(names) - len(shown), chance(max(0.0, 1 - sum(p[i] for i in shown)))
    return {
        "outcome": f"{names[outcome]} ({part_of(shares[chosen])} of the raters)"
        if shares
        else names[outcome],
        "expected": "" if order[0] == outcome else names[order[0]],
        "said": "and was the most likely class" if order[0] == outcome else "",
        # Without an order the source of the loss is the rival class, and that is said already.
        "why": f"{case.source}." if contents.problem.primary.ordinal else "",
        "bars": [(names[i], chance(p[i]), round(100 * p[i], 1), i == outcome) for i in shown],
        "rest": [(f"{omitted:,} others", rest)] if omitted else [],
    }


def _listed(case: ListCase) -> dict[str, Any]:
    entries = list(case.forecast.items())
    shown = entries[:_WRITTEN]
    if case.place is not None and case.place > _WRITTEN:
        shown = [*shown[:-1], entries[case.place - 1]]
    hidden = len(entries) - len(shown)
    left = chance(max(0.0, sum(t for _, t in entries) - sum(t for _, t in shown)))
    place = "and was not listed" if case.place is None else f"listed at place {case.place} of {len(entries)}"
    return {
        "outcome": clean(text_of(case.outcome)),
        "expected": "",
        "said": place if case.valid else f"{place}; the list is invalid",
        "why": "",
        "bars": [
            (clean(text_of(name)), chance(t), round(100 * min(t, 1.0), 1), name == case.outcome)
            for name, t in shown
        ],
        "rest": [
            *([(f"{hidden:,} more listed", left)] if hidden else []),
            (f"{large(case.n_unlisted)} not listed", chance(case.unaccounted)),
        ],
    }


# ---- conventions -------------------------------------------------------------------------------


def _definitions(contents: Contents) -> list[Definition]:
    """The definitions of every score on the card; of padded rules, under the title of what is padded."""
    card = contents.findings[0].card
    if not contents.problem.lists:
        return definitions(card)
    found = []
    for line in card.scores.values():
        if line.rule is not None:
            name, own = inner_name(line), of_rule(line, line.rule, contents.problem.n_classes)
            found.append(replace(own, title=f"{title_of(name)}, padded", errata=ERRATA.get(name, ())))
    return found


def _methods(contents: Contents) -> list[str]:
    card, problem = contents.findings[0].card, contents.problem
    how = card.to_dict(stored=False)["intervals"]
    method = how["method"][0].upper() + how["method"][1:]
    units = "groups" if problem.grouped else "rows"
    lines = [
        f"Confidence intervals are at the {how['confidence']:.0%} level. {method}; {how['replicates']:,} "
        f"replicates where there is resampling, seed {contents.seed}. Those of differences and of skill use "
        "Student's t.",
    ]
    if problem.lists:
        lines += [
            "Lists are scored as padded distributions: what a list leaves is divided evenly among the "
            "classes that are not listed. Invalid lists are scored as their largest valid sublists, with a "
            "fine of 1.",
            "Skill: loss reduction versus an empty list.",
            "Each place is the event that its class happens; the whole list is the event that the outcome is "
            "listed, with the sum of the list as forecast. The test of a place compares the number that "
            f"happened with the sum of the confidences, for independent {units}; “Holm” is after Holm’s "
            "correction over all places and the whole list.",
        ]
    else:
        lines += [
            "Skill: loss reduction versus predicting class frequencies, which come from all other "
            f"{units}, so that no row is used for its own forecast.",
            _calibration_method(contents),
        ]
    lines += [
        "Reliability curves are isotonic regressions of the event on its forecast, without bins; the band is "
        "the range expected of a calibrated forecast with the same values. Curves are drawn on a grid of two "
        "percent.",
        _all_rows(contents),
        *filter(None, [contents.precision]),
    ]
    if problem.n_classes == 2 and not problem.lists and contents.thresholds is None:
        lines.append(
            "ROC, precision-recall and decision curves take further passes over the rows, so they are left "
            f"out for {problem.n_rows:,} rows. `verax decide` and `vx.roc_curve` compute them."
        )
    if problem.ordered and problem.n_classes > COUNTED:
        lines.append(f"Beyond {COUNTED} classes, curves show accuracy instead of kappa.")
    if problem.rescaled:
        lines.append("Every row of probabilities was divided by its sum, as asked.")
    if problem.logits:
        lines.append("Probabilities are the softmax of the logits given.")
    if problem.full:
        lines.append(
            f"{join(list(problem.full))}: full distributions were given; their lists are the most likely "
            "classes."
        )
    if problem.weighted:
        meant = "Only their ratios matter." if problem.weights_are == "importance" else "They count rows."
        lines.append(f"Rows are weighted; the weights sum to {problem.weight:,.6g}. {meant}")
    if problem.rated:
        lines.append(
            "Several raters labelled the rows. The loss of a row is its mean loss over its raters. "
            "Calibration, decisions and losses by class count a row once for each class that a rater chose, "
            "weighted by the share of the raters."
        )
    if problem.time_ordered:
        lines.append(
            "Models are compared on rows in order of time, which may be autocorrelated. All other intervals "
            "and tests assume independent rows."
        )
    if problem.grouped:
        lines.append(
            "Rows of a group are resampled together. The bands of reliability curves assume independent "
            "rows, so they are too narrow."
        )
    return lines


def _all_rows(contents: Contents) -> str:
    """Which figures are of all rows."""
    dense = [found.dense for found in contents.findings if found.dense is not None]
    tried = [each.remedy.recalibration for each in dense]
    part = any(each is not None and each.n_rows < contents.problem.n_rows for each in tried)
    but = " except those of recalibration, which is tried on a random sample" if part else ""
    return f"Nothing was clipped, and no valid row was left out: every figure is of all rows{but}."


def _calibration_method(contents: Contents) -> str:
    kind = "threshold" if contents.problem.ordered else "class"
    tests = []
    if contents.replicates:
        drawn = f"{contents.replicates} sets of outcomes drawn from the forecasts"
        if contents.problem.grouped:
            drawn = (
                f"{contents.replicates} draws in which the deviations of a group from the forecasts keep or "
                "change their sign together"
            )
        tests.append(f"the miscalibration of every {kind}, against {drawn}")
    top = "the mean probability of the most likely class minus its accuracy, "
    if contents.problem.grouped:
        tests.append(
            f"{top}by Student's test between groups, with a standard error no smaller than that of "
            "independent rows"
        )
    else:
        tests.append(
            f"{top}against the number of hits expected of independent draws with these probabilities"
        )
    if any(found.dense is not None and found.dense.slopes is not None for found in contents.findings):
        tests.append("calibration slope 1 and intercept 0, by a Wald test with Bonferroni's correction")
    times = {1: "once", 2: "in two ways", 3: "in three ways"}[len(tests)]
    after = " Significant means after Holm's correction over these tests." if len(tests) > 1 else ""
    return f"Calibration is tested {times}: {'; '.join(tests)}.{after} The p-values shown are uncorrected."


def _paragraph(contents: Contents) -> str:
    """How the figures were computed, as a paper says it."""
    problem, level = contents.problem, f"{100 * contents.confidence:g}%"
    scores = [
        title_of(name_of(rule)) for rule in problem.rules if name_of(rule) in (*_MAIN, contents.primary)
    ]
    several = len(contents.findings) > 1
    units = "rows"
    against = "an empty list" if problem.lists else "predicting the class frequencies of all other rows"
    if problem.grouped:
        against = against.replace("rows", "groups")
        units = f"{contents.findings[0].card.n_groups:,} groups of rows, which were resampled together"
    texts = [
        f"Predicted probabilities of {large(problem.n_classes)}{' ordered' if problem.ordered else ''} "
        f"classes for {problem.n_rows:,} rows were evaluated with the "
        f"{join([within(score) for score in scores])} (lower is better), with {level} confidence intervals "
        f"assuming independent {units}.",
        f"Skill is the reduction of the mean loss relative to {against}.",
    ]
    if several:
        texts.append(
            f"The {len(contents.findings)} models were compared on the same rows "
            f"({contents.comparison.method}), with Holm's correction for all pairs."
        )
    if not problem.lists:
        how = f", a consistency test with {contents.replicates} draws" if contents.replicates else ""
        texts.append(
            "Calibration was assessed by isotonic reliability diagrams and the CORP decomposition "
            f"(Dimitriadis, Gneiting and Jordan, 2021){how}, the accuracy of the most likely class against "
            "its mean probability, and calibration slopes. The gain of recalibration was estimated by nested "
            "cross-validation."
        )
    texts += _two_class_methods(contents)
    names = [clean(name, 40) for name in contents.subgroups]
    if names:
        texts.append(
            f"Performance and calibration were also assessed in subgroups by {join(names)}, with Holm's "
            "correction over the subgroups."
        )
    if problem.weighted:
        texts.append("Rows were weighted.")
    if problem.rated:
        texts.append("The loss of a row is its mean loss over the labels of several raters.")
    if problem.skipped is not None and problem.skipped.count:
        texts.append(
            f"{count(problem.skipped.count, 'invalid row')} of {problem.skipped.n_given:,} left out; no "
            "value was imputed."
        )
    texts.append(f"Computed with verax {__version__}, seed {contents.seed}.")
    return " ".join(texts)


def _two_class_methods(contents: Contents) -> list[str]:
    """What a paper on a model of two classes says besides."""
    two = _two(contents)
    if two is None:
        return []
    rate, event = two.net_benefit.curves[0].prevalence, clean(contents.problem.names[1], 60)
    grouped = contents.problem.grouped
    areas = "confidence intervals over groups" if grouped else "DeLong's confidence intervals"
    rates = "Wilson's confidence intervals" + (" with variances over groups" if grouped else "")
    return [
        f"The event was {event}, observed in {percent(rate, 1)} of the rows.",
        f"Discrimination was assessed by the area under the ROC curve, with {areas}, "
        "and by average precision; clinical utility by net benefit (Vickers and Elkin, 2006).",
        f"Sensitivity, specificity and predictive values have {rates}; at thresholds "
        "chosen on the data they were estimated by cross-validation.",
    ]
