"""Models compared over folds: the method trained on other data, and these fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, Unpack

import numpy as np

from verax.analyses.comparison.conclusions import (
    finite_parts,
    infinite_notes,
    no_skill,
    read_comparison,
    results,
)
from verax.analyses.comparison.paired import PairedSums
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.common.checks import check_choice, check_count, check_number
from verax.errors import InputError, Remedy, passing, show
from verax.inference.estimates import Practical, over_folds, practical_t
from verax.inference.intervals import Resampling, WeightsAre, check_confidence
from verax.inputs.arrays import Floats
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules, name_of
from verax.wings.select.directions import is_higher_better
from verax.wings.select.folds.given import FoldScores, are_reports, ratio_of, read_reports, read_scores
from verax.wings.select.folds.result import FoldComparison
from verax.wings.select.folds.rows import (
    FoldSums,
    are_handles,
    open_folds,
    repeats_of,
    sums_by_fold,
    sums_of_handles,
)

Better = Literal["lower", "higher"]


@reads
def compare_folds(
    y: object = None,
    forecasts: Mapping[str, object] | None = None,
    *,
    folds: object = None,
    scores: object = None,
    ids: object = None,
    repeats: int | None = None,
    test_train: float | None = None,
    better: Better | None = None,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    ordered: bool = False,
    rope: float = 0.0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> FoldComparison:
    """Compare methods over folds of cross-validation, repeats or seeds.

    Two questions have two answers. Is the method better, if it is trained on other data of the same kind? The
    corrected t test over folds answers this. Are these fitted models better on other rows? The paired test
    over rows answers that, and ignores the variance of training.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), Handle, sequence or mapping of Handle, or reports, optional
        Outcomes: those of the test rows of all folds, one fold below the other. Or predictions that `scan`
        has opened: of all folds, with the name of a column as `folds`, or one for each fold. Or a skore
        `ComparisonReport` of cross-validation reports, or such reports by model.
    forecasts : mapping of str to forecasts, optional
        The forecasts of each model for the same rows, by name.
    folds : array_like of shape (N,) or str, optional
        The test fold of each row; of predictions that `scan` has opened, the name of a column that it was
        told of (`by=`). Folds of different repeats have different labels.
    scores : mapping or frame, optional
        In place of rows, the score of each model in each fold: arrays by model, a frame with a column per
        model, the `cv_results_` of a scikit-learn search, or what `cross_validate` returned, by model.
    ids : array_like of shape (N,), optional
        The case of each row. Cases that are in several folds of one repeat are refused. Rows of several
        repeats are clustered by case.
    repeats : int, optional
        How many rounds of cross-validation there are; by default 1, or what `ids` or reports say.
    test_train : float, optional
        The number of test rows of a fold divided by that of training rows. By default from the folds: with
        k folds per round it is 1 / (k - 1). 0 for seeds on one split, which says nothing about other splits.
    better : {"lower", "higher"}, optional
        Which of `scores` are better; those of scikit-learn are higher for better models.
    rule : Rule, str or sequence of these, optional
        One rule or several, for rows; by default Brier and log score, or RPS and log score if `ordered`.
    ordered
    rope : float, default 0.0
        Half the width of the region of practical equivalence: methods whose mean scores differ by less are
        alike for practical purposes. In units of the only score.
    confidence
    weights_are
    **read

    Returns
    -------
    FoldComparison
        Mean scores, ranks and differences with corrected intervals, and the paired comparison of rows.

    See Also
    --------
    compare : Models on the same rows, without folds.
    compare_datasets : Models on several data sets.

    References
    ----------
    Nadeau and Bengio (2003), doi:10.1023/A:1024068626366; Corani and Benavoli (2015),
    doi:10.1007/s10994-015-5486-z.

    Examples
    --------
    Scores of two models in the same five folds:

    >>> import verax as vx
    >>> scores = {"a": [0.20, 0.22, 0.19, 0.24, 0.21], "b": [0.23, 0.24, 0.23, 0.26, 0.25]}
    >>> found = vx.compare_folds(scores=scores, better="lower", rope=0.01)
    >>> gap = found.difference("a", "b")
    >>> round(gap.difference, 3), f"{gap.interval:.3f}", round(gap.p_value, 3)
    (-0.03, '-0.049 to -0.011', 0.011)
    >>> round(found.practical["score"][0].better, 3)
    0.98
    """
    check_confidence(confidence)
    rope = check_number("rope", rope, "must be a number of at least 0", lambda value: value >= 0)
    check_choice("better", better, ("lower", "higher", None))
    if repeats is not None:
        check_count("repeats", repeats)
    if test_train is not None:
        check_number("test_train", test_train, "must be a number of at least 0", lambda value: value >= 0)
    if scores is not None:
        _refuse_rows({"y": y, "forecasts": forecasts, "folds": folds, "ids": ids, "rule": rule, **read})
        return _of_scores(read_scores(scores), repeats, test_train, better, rope, confidence)
    if better is not None:
        raise InputError("cannot be used with rows: losses are lower for better forecasts", argument="better")
    chosen: Any = default_rules(ordered=ordered) if rule is None else rule
    rules = as_rules(chosen)
    plan = Resampling.checked(confidence, 1000, 0, weights_are=weights_are)
    if are_reports(y):
        rows = read_reports(y)
        y, forecasts, folds, ids = rows.y, rows.forecasts, rows.folds, rows.ids
        read = {"classes": rows.classes, **read}
        test_train = rows.test_train if test_train is None else test_train
        repeats = repeats or rows.repeats
    order_matters = needs_order(rules, ordered=ordered)
    sums = sums_of_handles(y, rules) if are_handles(y) else None
    if sums is None:
        handle = open_folds(y, forecasts, folds, ids, repeats, ordered=order_matters, **read)
        repeats = repeats or repeats_of(handle)
        sums = sums_by_fold(handle, folds, rules)
    return _of_rows(sums, rules, repeats or 1, test_train, rope, plan, ordered=order_matters)


def _refuse_rows(given: Mapping[str, object]) -> None:
    """Refuse what is about rows beside scores."""
    for argument, value in given.items():
        if value is not None and value is not False and not (isinstance(value, str) and value == "raise"):
            raise InputError("cannot be used with scores", argument=argument)


def _of_rows(
    given: FoldSums,
    rules: list[Rule],
    repeats: int,
    test_train: float | None,
    rope: float,
    plan: Resampling,
    *,
    ordered: bool,
) -> FoldComparison:
    """The comparison from the sums of each fold."""
    names, labels = list(given.models), list(given.sums)
    _check_folds(len(labels))
    _check_rope(rope, [name_of(rule) for rule in rules])
    for label, sums in given.sums.items():
        if not sums.first.weight > 0:
            raise InputError(
                "must not all be zero in a fold", argument="weights", found=f"they are in fold {show(label)}"
            )
    sizes = np.array([sums.first.n_rows for sums in given.sums.values()])
    ratio = test_train
    if ratio is None:
        ratio_of(len(labels), repeats)
        ratio = float(sizes.sum() / (sizes.sum() / repeats - sizes).sum())
    whole: PairedSums = reduce(lambda a, b: a.merge(b), given.sums.values())
    notes: list[str] = []
    rows: Comparison | None = None
    if repeats == 1 or given.cases_known:
        rows = read_comparison(
            whole,
            names,
            rules,
            ordered=ordered,
            reference=None,
            plan=plan,
            dense=given.dense,
        )
    else:
        notes.append(
            "Rows of several repeats are the same cases; pass ids=, or groups=, to compare the fitted models "
            "on them."
        )
    values = {}
    models: dict[str, list[Model]] = {}
    differences: dict[str, list[Difference]] = {}
    for rule in rules:
        tally, name = whole.of_rule(rule), name_of(rule)
        values[name] = np.array([sums.of_rule(rule).means[: len(names)] for sums in given.sums.values()])
        values[name][np.isnan(values[name])] = np.inf
        finite = finite_parts(tally)
        models[name], differences[name] = _conclude(names, values[name], ratio, plan.confidence, finite)
        notes += infinite_notes(name, models[name], tally.n_rows)
    comparison = FoldComparison(
        models,
        differences,
        _practical(differences, rope),
        values,
        tuple(names),
        tuple(labels),
        ratio,
        repeats,
        rope,
        plan.confidence,
        False,
        rows,
        tuple(notes),
    )
    return comparison.with_skipped(given.skipped).with_faults(given.faults)


# ---- scores --------------------------------------------------------------------------------------


def _of_scores(
    given: FoldScores,
    repeats: int | None,
    test_train: float | None,
    better: Better | None,
    rope: float,
    confidence: float,
) -> FoldComparison:
    """The comparison of scores that are known for each fold."""
    names = list(given.names)
    n_folds = len(next(iter(given.values.values())))
    _check_folds(n_folds)
    _check_rope(rope, list(given.values))
    higher = is_higher_better(next(iter(given.values)), better or given.better)
    rounds = repeats or given.repeats or 1
    ratio = given.test_train if test_train is None else test_train
    notes = []
    if ratio is None:
        ratio = ratio_of(n_folds, rounds)
        if repeats is None:
            notes.append(
                f"The {n_folds} folds are taken as one round of cross-validation. Pass repeats= for several "
                "rounds, or test_train= for other splits."
            )
    models: dict[str, list[Model]] = {}
    differences: dict[str, list[Difference]] = {}
    for name, values in given.values.items():
        losses = -values if higher else values
        models[name], differences[name] = _conclude(names, losses, ratio, confidence)
    practical = _practical(differences, rope)
    if higher:
        models = {name: [_negated(m) for m in ranked] for name, ranked in models.items()}
        differences = {name: [d.other_way for d in gaps] for name, gaps in differences.items()}
    return FoldComparison(
        models,
        differences,
        practical,
        dict(given.values),
        given.names,
        tuple(range(n_folds)),
        ratio,
        rounds,
        rope,
        confidence,
        higher,
        None,
        tuple(notes),
    )


def _negated(model: Model) -> Model:
    return replace(model, mean=-model.mean, interval=-model.interval, finite_mean=-model.finite_mean)


# ---- both ----------------------------------------------------------------------------------------


def _check_folds(n: int) -> None:
    if n < 2:
        raise InputError(
            "must be at least two",
            argument="folds",
            kind="length",
            found=f"there is {n}",
            remedies=[Remedy("Compare the fitted models of a single split with `compare`.")],
        )


def _check_rope(rope: float, names: list[str]) -> None:
    if rope and len(names) > 1:
        raise InputError(
            "is in units of one score",
            argument="rope",
            found=f"there are {len(names)}: {', '.join(names)}",
            remedies=[passing(rule=names[0])],
        )


def _conclude(
    names: list[str],
    losses: Floats,
    test_train: float,
    confidence: float,
    finite: list[tuple[int, float]] | None = None,
) -> tuple[list[Model], list[Difference]]:
    """Models in order and their differences, from the losses of each fold."""
    estimate = over_folds(losses, test_train)
    spread = estimate.error / np.sqrt(1 / len(losses) + test_train)
    return results(
        names,
        len(names),
        estimate,
        [interval.by("corrected t", interval.caution) for interval in estimate.intervals(confidence)],
        estimate.p_values(),
        [no_skill("there is no reference", confidence)] * len(names),
        [(0, float(mean)) for mean in estimate.mean] if finite is None else finite,
        spread,
        1 - confidence,
    )


def _practical(differences: Mapping[str, list[Difference]], rope: float) -> dict[str, list[Practical]]:
    """How probable it is that one of each pair is better; from losses, before they are turned to scores."""
    return {
        name: [practical_t(d.a, d.b, d.difference, d.standard_error, d.freedom, rope) for d in gaps]
        for name, gaps in differences.items()
    }
