"""`vx.compare`: mean losses of several models and their differences, under each rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, get_args

import numpy as np

from verax.analyses.comparison.checks import check_margin, check_models, refuse
from verax.analyses.comparison.conclusions import (
    RowWise,
    claims_of,
    read_comparison,
    with_shapes,
)
from verax.analyses.comparison.crossfits import compare_unpaired, less_certain
from verax.analyses.comparison.opening import Missing, QuestionOptions, open_forecasts
from verax.analyses.comparison.paired import (
    OF_MARGIN,
    OF_RULE,
    ErrorRecipe,
    MarginRecipe,
    PairedRecipe,
    PairedSums,
)
from verax.analyses.comparison.questions import compare_questions, hands_on_grades
from verax.analyses.comparison.reasons import ACCURACY, ERROR_DISTANCE, Claims, Traits
from verax.analyses.comparison.references import (
    FREQUENCIES,
    CountRecipe,
    OtherGroups,
)
from verax.analyses.comparison.result import Comparison
from verax.analyses.parts import faults_in, with_fault_recipes
from verax.common.checks import check_choice, check_flag
from verax.engines.differences import PairedTally
from verax.errors import InputError, passing
from verax.inference.estimates import Method, Units
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.arrays import Floats, to_host
from verax.inputs.groups import Groups, check_one_way, check_several, counts_by_kind
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules, name_of

_NOT_IN_MEMORY = "with predictions that are not in memory, because it needs all rows at once"

# ---- compare -----------------------------------------------------------------------------------


@hands_on_grades
@reads
def compare(
    y: object = None,
    forecasts: Mapping[str, object] | None = None,
    *,
    ids: object = None,
    epochs: object = None,
    task: object = None,
    times: object = None,
    closes: object = None,
    missing: Missing = "refuse",
    rule: Rule | str | Sequence[Rule | str] | None = None,
    ordered: bool = False,
    time_ordered: bool = False,
    lags: int | None = None,
    season: int | None = None,
    method: Method = "moments",
    reference: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> Comparison:
    """Mean losses of several models, and which of their differences are significant.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), mapping or Handle, optional
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions of
        several models that `scan` has opened. Or a mapping from model names to outcomes if models have
        different rows. These are matched by `ids`; without ids they are compared as independent samples.
    forecasts : mapping of str to forecasts, optional
        The forecasts of each model by name, row for row the same cases. Each model has full distributions or
        `TopLists` of any length. A single model is enough with a `reference`.
    ids : array_like of shape (N,) or mapping of str to array_like, optional
        The question of each row, by which rows are matched; by model name if models have different rows.
    epochs : array_like of shape (N,) or mapping of str to array_like, optional
        Which repeat of its question each row is, if questions were asked several times. Repeats are then
        clustered by question, unless `groups` are given. If questions have different numbers of repeats,
        each question has one loss: the mean over its repeats.
    task : array_like of shape (N,) or mapping of str to array_like, optional
        The task of each row. Models are also compared within each task, with Holm's correction over all.
    times : array_like of shape (N,) or mapping of str to array_like, optional
        When each forecast was made, if forecasts of a question change over time. A question then has one
        loss: the mean over its forecasts, weighted by how long each was valid.
    closes : array_like of shape (N,) or mapping of str to array_like, optional
        When the question of each row closes, which ends its last forecast.
    missing : {"refuse", "pairwise", "joint"}, default "refuse"
        What to do if some models were not asked some questions. "pairwise" compares each pair on the
        questions that both answered. "joint" estimates all models on all questions, with intervals clustered
        by question: missing losses are fitted by least squares, from the difficulty that the answers of other
        models show.
    rule : Rule, str or sequence of these, optional
        One rule or several; by default Brier and log score, or RPS and log score if `ordered`.
    ordered
    time_ordered : bool, default False
        The rows are in order of time and neighbours may depend on each other (the test of Diebold and
        Mariano). Standard errors come from the equal-weighted cosine estimator (EWC), and Student's t
        distribution has one degree of freedom per cosine: 0.4 n^(2/3), fewer where the differences
        drift slowly. Resampling draws the same number of blocks of neighbours, at least 8. A caution
        notes where the series is too short to show slow drift: always below 1,000 rows. If differences
        repeat after a season, such as 24 hours, whole seasons are the units: with fewer than 30 there is a
        caution, and with fewer than 10 no test.
    lags : int, optional
        The number of rows over which dependence reaches, if known: there are then n / (2 lags + 1) degrees
        of freedom and blocks. 0 gives the test of independent rows.
    season : int, optional
        The number of rows after which rows repeat, if known: 168 for a week of hours. By default it is
        looked for.
    method : {"moments", "bootstrap", "permutation"}, default "moments"
        "moments": standard errors of the differences, t distribution; over groups the more cautious of
        Student's t and Hall's skewness-corrected t, and exact where few groups differ. "bootstrap":
        percentile intervals and p-values from resampled rows, groups or blocks; over groups no more
        certain than "moments". "permutation": p-values from swapping the models at random in rows, groups
        or blocks; intervals hold the differences that this test does not reject. With every method the
        interval holds zero exactly if the p-value exceeds 1 - confidence.
    reference : str, optional
        What skill is measured against: the class "frequencies" of all other groups (of all other rows
        without groups; of two kinds of groups, those of the first), with half a row of mean weight added to
        every class; "uniform"; or the name of a model.
    margin : float, optional
        Non-inferiority margin: how much the mean loss of a model may exceed that of another and still count
        as not worse, in units of the only rule. Each model is tested against each other one (one-sided).
        Models that are not inferior in both directions are equivalent.
    confidence
    bootstrap : int, default 2000
        Number of bootstrap replicates, or of permutations.
    seed
    weights_are
        With "counts" only method="moments" is possible.
    **read

    Returns
    -------
    Comparison
        Mean losses, differences and tests.

    See Also
    --------
    evaluate : All scores of one model.
    compare_grades : The same for graded answers.
    roc_auc : Models compared by their ranking of the rows.
    operating_points : Models compared by rates at a threshold.
    subgroups : The same within parts of the data.

    References
    ----------
    Diebold and Mariano (1995), doi:10.1080/07350015.1995.10524599; Lazarus, Lewis, Stock and Watson
    (2018), doi:10.1080/07350015.2018.1506926; Holm (1979).

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 500)
    >>> good = 0.6 * np.eye(3)[y] + 0.4 * rng.dirichlet(np.ones(3), 500)
    >>> comparison = vx.compare(y, {"good": good, "flat": np.full((500, 3), 1 / 3)}, rule="brier")
    >>> comparison.best(), comparison.difference("good", "flat").p_value < 1e-6
    ('good', True)
    """
    options = QuestionOptions(ids, epochs, task, missing, times=times, closes=closes)
    rules = as_rules(default_rules(ordered=ordered) if rule is None else rule)
    by_questions = isinstance(y, Mapping) and ids is not None
    if not by_questions:
        options.refuse()
    time_ordered = check_flag("time_ordered", time_ordered)
    plan = Resampling.checked(confidence, bootstrap, seed, least=100, weights_are=weights_are)
    check_choice("method", method, get_args(Method))
    ordered = needs_order(rules, ordered=ordered)
    if isinstance(y, Mapping) and by_questions:
        refuse(
            {"time_ordered": time_ordered, "lags": lags is not None, "season": season is not None},
            "with questions that ids match",
        )
        options, rest = options.with_reading({"ordered": ordered, **read})
        questions = open_forecasts(y, forecasts, rules, options, **rest)
        return compare_questions(
            questions, rules, options, plan, reference=reference, margin=margin, method=method
        )
    margin = check_margin(margin, rules)
    if isinstance(y, Mapping):
        refused = {"time_ordered": time_ordered, "method": method != "moments"}
        reading: dict[str, Any] = {"reference": reference, "weights": None, "groups": None, **read}
        refused |= {name: reading.pop(name) is not None for name in ("weights", "groups", "reference")}
        refuse(refused, "where every model has rows of its own")
        return compare_unpaired(y, forecasts, rules, {**reading, "ordered": ordered}, plan.confidence, margin)
    handle = open_rows(y, forecasts, ordered=ordered, named="forecasts", sets=True, **read)
    check_models(handle, reference)
    row_wise = row_wise_of(handle, method, time_ordered, lags, plan, season)
    return compare_paired(handle, rules, ordered, reference, plan, row_wise, margin)


def compare_losses(
    losses: Mapping[str, Floats],
    rule: Rule,
    *,
    factor: Callable[[str, str], float],
    weights: Floats | None,
    groups: Groups | None,
    reference: str,
    confidence: float,
) -> Comparison:
    """Compare models by the cross-validated losses of one rule.

    `factor` is how much the standard error of the difference of two models grows for the fit to all rows.
    """
    columns = np.stack(list(losses.values())).T
    tally = PairedTally(len(losses)).update(columns, weights, groups)
    sums, plan = PairedSums({OF_RULE.format(name_of(rule)): tally}), Resampling(confidence)
    comparison = read_comparison(sums, list(losses), [rule], ordered=False, reference=reference, plan=plan)
    return less_certain(comparison, factor)


# ---- rows that are paired ----------------------------------------------------------------------


def row_wise_of(
    handle: Handle,
    method: Method,
    time_ordered: bool,
    lags: int | None,
    plan: Resampling,
    season: int | None = None,
) -> RowWise | None:
    """The rows for resampling and for tests in order of time, which are in memory; None if sums suffice."""
    part = handle.kept
    if part is None:
        refuse({"time_ordered": time_ordered, "method": method != "moments"}, _NOT_IN_MEMORY)
    if part is None or (method == "moments" and not time_ordered):
        Units.of(0, None, None, False, lags, season)
        return None
    rows = part.rows
    weights = rows.batch(0, rows.n_rows).weights
    if plan.copies and method != "moments" and rows.groups is None:
        # Only the number of copies is known, so copies cannot be resampled one by one.
        raise InputError(
            "cannot be used with bootstrap or permutation of rows",
            argument="weights_are",
            values=[plan.weights_are],
            remedies=[passing(method="moments")],
        )
    w = None if weights is None else to_host(weights)
    units = Units.of(rows.n_rows, w, rows.groups, time_ordered, lags, season)
    if method != "moments":
        check_one_way(rows.groups, f"method={method!r}")
    return RowWise(units, method, part)


def compare_paired(
    handle: Handle,
    rules: list[Rule],
    ordered: bool,
    reference: str | None,
    plan: Resampling,
    row_wise: RowWise | None,
    margin: float | None = None,
) -> Comparison:
    """Compare models on the same rows of a handle."""
    names = list(handle.models)
    dense = [name for name in names if name not in handle.listed]
    recipe = _paired_recipe(handle, rules, reference, plan, traits=bool(dense))
    if row_wise is not None:
        # The sums then reuse these columns.
        row_wise = replace(row_wise, columns=recipe.columns(row_wise.part))
    recipes: dict[str, Any] = {"sums": recipe}
    shapes = MarginRecipe(handle.models, rules[0])
    if margin is not None and row_wise is None and handle.knows(shapes):
        recipes["shapes"] = shapes
    summaries = handle.summarise(with_fault_recipes(handle, recipes))
    sums: PairedSums = summaries["sums"]
    if sums.first.n_groups is not None and not handle.shard:
        check_several(sums.first.n_groups)
    comparison = read_comparison(
        sums,
        names,
        rules,
        ordered=ordered,
        reference=reference,
        plan=plan,
        dense=dense,
        row_wise=row_wise,
        n_classes=handle.n_classes,
    )
    if "shapes" in recipes and sums.first.labels is None:
        name = name_of(rules[0])
        gaps = with_shapes(comparison.differences[name], rules[0], summaries["shapes"][OF_MARGIN])
        comparison = replace(comparison, differences={name: gaps})
    if len(rules) > 1 and len(comparison.traits) > 1:
        comparison = replace(comparison, claims=_claims(handle, sums, comparison.traits, plan, row_wise))
    faults = {name or names[0]: of_model for name, of_model in faults_in(handle, summaries).items()}
    return replace(comparison, margin=margin).with_skipped(summaries.skipped).with_faults(faults)


def _paired_recipe(
    handle: Handle, rules: Sequence[Rule], reference: str | None, plan: Resampling, *, traits: bool
) -> PairedRecipe:
    """The recipe for the losses of all models and of a simple reference."""
    recipe = PairedRecipe(handle.models, tuple(rules), traits=traits)
    if reference is not None and reference not in handle.models:
        recipe = replace(recipe, reference=reference)
    if recipe.reference == FREQUENCIES:
        counts = handle.summarise({"counts": CountRecipe()})["counts"]
        recipe = replace(recipe, counts=OtherGroups(counts, plan.copies))
    return recipe


def skill_against(handle: Handle, rule: Rule, reference: str, plan: Resampling) -> float:
    """The skill of the only model, without an interval; NaN if all rows are in one group."""
    recipe = _paired_recipe(handle, [rule], reference, plan, traits=False)
    tally = handle.summarise({"sums": recipe})["sums"].of_rule(rule)
    mean, of_reference = tally.means[:2].tolist()
    alone = tally.n_groups is not None and min(counts_by_kind(tally.n_groups)) < 2
    return math.nan if alone or not (of_reference > 0 and math.isfinite(mean)) else 1 - mean / of_reference


def _claims(
    handle: Handle, sums: PairedSums, traits: dict[str, Traits], plan: Resampling, row_wise: RowWise | None
) -> Claims:
    """The significant claims about traits; the distance of errors takes another pass."""
    recipe = _error_recipe(sums, traits) if handle.has_rows else None
    errors = None if recipe is None else handle.summarise({"errors": recipe})["errors"]
    if recipe is not None and row_wise is not None:
        row_wise = replace(row_wise, columns={**row_wise.columns, **recipe.columns(row_wise.part)})
    return claims_of(sums, errors, traits, plan, row_wise)


def error_sums(handle: Handle, sums: PairedSums, traits: dict[str, Traits]) -> PairedSums | None:
    """Sums of the distance of errors, from another pass; None if classes have no order."""
    recipe = _error_recipe(sums, traits)
    return None if recipe is None else handle.summarise({"errors": recipe})["errors"]


def _error_recipe(sums: PairedSums, traits: dict[str, Traits]) -> ErrorRecipe | None:
    if all(of_model.error_distance is None for of_model in traits.values()):
        return None
    means = {
        name: (float(of_model[ACCURACY]), float(of_model[ERROR_DISTANCE]))
        for i, name in enumerate(traits)
        if (of_model := sums.traits(i)) is not None
    }
    return ErrorRecipe(means)
