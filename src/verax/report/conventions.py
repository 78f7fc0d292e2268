"""Conventions at the end of the page: definitions of the scores, methods, and a paragraph for papers."""

from __future__ import annotations

from dataclasses import replace

from verax._version import __version__
from verax.analyses.words import clean, count, large, title_of, within
from verax.errors import join
from verax.inputs.groups import in_words
from verax.report.contents import Contents, inner_name
from verax.report.definitions import ERRATA, Definition, definitions, of_rule
from verax.report.section import in_place, sections
from verax.scores.registry import name_of

# The scores that a page shows if there are more than a few; the others are folded.
MAIN = ("rps", "brier", "log_score")


def definitions_of(contents: Contents) -> list[Definition]:
    """The definitions of every score on the card; of padded rules, under the title of what is padded."""
    card = contents.findings[0].card
    if not contents.problem.lists:
        return definitions(card)
    padded_rules = []
    for line in card.scores.values():
        if line.rule is not None:
            name, definition = inner_name(line), of_rule(line, line.rule, contents.problem.n_classes)
            padded_rules.append(
                replace(definition, title=f"{title_of(name)}, padded", errata=ERRATA.get(name, ()))
            )
    return padded_rules


def methods_of(contents: Contents) -> list[str]:
    """How every figure was computed, one sentence or a few per subject."""
    lines = {"scores": _scores(contents), **_of_rows(contents), "dependence": _dependence(contents)}
    return in_place(lines, (line for section in sections() for line in section.conventions(contents)))


def _scores(contents: Contents) -> list[str]:
    """Intervals, skill, calibration and its curves."""
    card, problem = contents.findings[0].card, contents.problem
    how = card.to_dict(stored=False)["intervals"]
    method = how["method"][0].upper() + how["method"][1:]
    units = "groups" if problem.grouped else "rows"
    lines = [
        f"Confidence intervals are at the {100 * how['confidence']:g}% level. {method}; "
        f"{how['replicates']:,} replicates where there is resampling, seed {contents.seed}. Those of "
        "differences and of skill use Student's t.",
    ]
    if problem.lists:
        lines += [
            "Lists are scored as padded distributions: what a list leaves is divided evenly among the "
            "classes that are not listed. Invalid lists are scored as their largest valid sublists, with a "
            "fine of 1.",
            "Skill: loss reduction versus a uniform guess, which gives every class (or choice of a question) "
            "the same probability.",
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
    return [
        *lines,
        "Reliability curves are isotonic regressions of the event on its forecast, without bins; the band is "
        "the range expected of a calibrated forecast with the same values. Curves are drawn on a grid of two "
        "percent.",
        _all_rows(contents),
        *filter(None, [contents.precision]),
    ]


def _of_rows(contents: Contents) -> dict[str, list[str]]:
    """What was done to the rows, as it was asked."""
    problem = contents.problem
    lines: dict[str, list[str]] = {"limits": [], "rows": [], "raters": []}
    if problem.rescaled:
        lines["rows"].append("Every row of probabilities was divided by its sum, as asked.")
    if problem.logits:
        lines["rows"].append("Probabilities are the softmax of the logits given.")
    if problem.full:
        lines["rows"].append(
            f"{join(list(problem.full))}: full distributions were given; their lists are the most likely "
            "classes."
        )
    if problem.weighted:
        meant = "Only their ratios matter." if problem.weights_are == "importance" else "They count rows."
        lines["rows"].append(f"Rows are weighted; the weights sum to {problem.weight:,.6g}. {meant}")
    if problem.rated:
        lines["raters"].append(
            "Several raters labelled the rows. The loss of a row is its mean loss over its raters. "
            "Calibration, decisions and losses by class count a row once for each class that a rater chose, "
            "weighted by the share of the raters."
        )
    return lines


def _dependence(contents: Contents) -> list[str]:
    """What rows that depend on each other change."""
    problem, n_groups = contents.problem, contents.findings[0].card.n_groups
    lines = []
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
    if isinstance(n_groups, tuple):
        lines.append(f"Rows are grouped in two ways. {_two_ways(n_groups)}")
    return lines


def _two_ways(counts: tuple[int, int]) -> str:
    """What allows for both kinds of groups, and what for one."""
    return (
        "Confidence intervals of scores and of differences between models allow for both kinds of groups; "
        f"calibration, curves and subgroups allow for the kind with fewer groups ({min(counts):,})."
    )


def _all_rows(contents: Contents) -> str:
    """Which figures are of all rows."""
    sampled = [text for section in sections() if (text := section.sampled(contents))]
    but = f" except {join(sampled)}" if sampled else ""
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
    if any(model.dense is not None and model.dense.slopes is not None for model in contents.findings):
        tests.append("calibration slope 1 and intercept 0, by a Wald test with Holm's correction")
    times = {1: "once", 2: "in two ways", 3: "in three ways"}[len(tests)]
    after = " Significant means after Holm's correction over these tests." if len(tests) > 1 else ""
    return f"Calibration is tested {times}: {'; '.join(tests)}.{after} The p-values shown are uncorrected."


def paragraph_of(contents: Contents) -> str:
    """How the figures were computed, as a paper says it."""
    texts = {
        "scores": _scored(contents),
        "calibration": _assessed(contents),
        "gains": [],
        "rows": _counted(contents),
        "raters": ["The loss of a row is its mean loss over the labels of several raters."]
        if contents.problem.rated
        else [],
        "left out": _left_out(contents),
    }
    added = (text for section in sections() for text in section.methods(contents))
    computed = f"Computed with verax {__version__}, seed {contents.seed}."
    return " ".join([*in_place(texts, added), computed])


def _scored(contents: Contents) -> list[str]:
    problem, level = contents.problem, f"{100 * contents.confidence:g}%"
    scores = [title_of(name_of(rule)) for rule in problem.rules if name_of(rule) in (*MAIN, contents.primary)]
    units = "rows"
    against = (
        "a uniform guess over all classes"
        if problem.lists
        else "predicting the class frequencies of all other rows"
    )
    if problem.grouped:
        against = against.replace("rows", "groups")
        n_groups = contents.findings[0].card.n_groups or 0
        units = f"{in_words(n_groups)} of rows, which were resampled together"
        if isinstance(n_groups, tuple):
            first, second = n_groups
            units = f"groups of rows of two kinds ({first:,} and {second:,}). {_two_ways(n_groups)[:-1]}"
    texts = [
        f"Predicted probabilities of {large(problem.n_classes)}{' ordered' if problem.ordered else ''} "
        f"classes for {problem.n_rows:,} rows were evaluated with the "
        f"{join([within(score) for score in scores])} (lower is better), with {level} confidence intervals "
        f"assuming independent {units}.",
        f"Skill is the reduction of the mean loss relative to {against}.",
    ]
    if len(contents.findings) > 1:
        texts.append(
            f"The {len(contents.findings)} models were compared on the same rows "
            f"({contents.comparison.method}), with Holm's correction for all pairs."
        )
    return texts


def _assessed(contents: Contents) -> list[str]:
    if contents.problem.lists:
        return []
    how = f", a consistency test with {contents.replicates} draws" if contents.replicates else ""
    return [
        "Calibration was assessed by isotonic reliability diagrams and the CORP decomposition "
        f"(Dimitriadis, Gneiting and Jordan, 2021){how}, the accuracy of the most likely class against "
        "its mean probability, and calibration slopes."
    ]


def _counted(contents: Contents) -> list[str]:
    texts = []
    names = [clean(name, 40) for name in contents.subgroups]
    if names:
        texts.append(
            f"Performance and calibration were also assessed in subgroups by {join(names)}, with Holm's "
            "correction over the subgroups."
        )
    if contents.problem.weighted:
        texts.append("Rows were weighted.")
    return texts


def _left_out(contents: Contents) -> list[str]:
    skipped = contents.problem.skipped
    if skipped is None or not skipped.count:
        return []
    return [f"{count(skipped.count, 'invalid row')} of {skipped.n_given:,} left out; no value was imputed."]
