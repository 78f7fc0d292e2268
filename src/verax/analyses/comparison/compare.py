"""Models compared on the same rows, under each rule and for each pair of models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack, get_args

import numpy as np

from verax.analyses.cards.scorecard import check_groups
from verax.analyses.comparison.claims import Claims, trait_column, trait_rows
from verax.analyses.comparison.conclusions import (
    conclude,
    finite_parts,
    infinite_notes,
    no_skill,
    results,
    too_short,
)
from verax.analyses.comparison.references import (
    FREQUENCIES,
    UNIFORM,
    ClassCounts,
    OtherGroups,
    check_reference,
    uniform,
    uniform_lists,
)
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.streams import compare_handle
from verax.analyses.comparison.traits import Traits
from verax.common.checks import check_choice, check_flag
from verax.engines.differences import PairedTally, all_pairs
from verax.engines.sums import relative
from verax.errors import InputError, passing, show
from verax.inference.estimates import (
    Estimate,
    Method,
    Units,
    bootstrap_means,
    permutation_p,
)
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Handle
from verax.inputs.lists.rows import ListFaults
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, at_fault, faults_of, pair_each
from verax.scores.base import Rule, losses_of
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, name_of

_NOT_IN_MEMORY = "with predictions that are not in memory, because it needs all rows at once"

# ---- compare -----------------------------------------------------------------------------------


@reads
def compare(
    y: object,
    forecasts: Mapping[str, object] | None = None,
    *,
    rule: Rule | str | Sequence[Rule | str],
    ordered: bool = False,
    time_ordered: bool = False,
    lags: int | None = None,
    method: Method = "moments",
    reference: str | None = None,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    weights_are: WeightsAre = "importance",
    **read: Unpack[Reading],
) -> Comparison:
    """Mean losses of several models, and which of their differences are real.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), mapping or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions of
        several models that `scan` has opened. Or a mapping from names to outcomes where every model has rows
        of its own, which are then compared as independent samples.
    forecasts : mapping of str to forecasts, optional
        The forecasts of each model, by name, row for row the same cases: full distributions or
        `TopLists` of any length, also side by side. A single model is enough with a `reference`.
    rule : Rule, str or sequence of these
        One rule or several.
    ordered : bool, default False
        Whether the classes have an order.
    time_ordered : bool, default False
        The rows are in order of time and neighbours may depend on each other (the test of Diebold and
        Mariano). Standard errors come from the slowest cosines of the differences, and Student's t
        distribution has as many degrees of freedom as cosines: 0.4 n^(2/3), fewer where the
        autocorrelation is large. Resampling draws as many blocks of neighbours as that, at least 8. A
        caution says where the series is too short for its autocorrelation.
    lags : int, optional
        How far rows depend on each other, if that is known: there are then n / (2 lags + 1) degrees of
        freedom and blocks. 0 gives the test of independent rows.
    method : {"moments", "bootstrap", "permutation"}, default "moments"
        "moments": standard errors of the differences, t distribution. "bootstrap": percentile intervals
        and p-values from resampled rows, groups or blocks. "permutation": p-values from swapping the
        models at random in rows, groups or blocks; intervals as with "moments".
    reference : str, optional
        What skill is measured against: the class "frequencies" of all other groups (of all other rows
        without groups; of two kinds of groups, those of the first), with half a row of mean weight added to
        every class; "uniform"; or the name of a model.
    confidence : float, default 0.95
        Confidence level of the intervals.
    bootstrap : int, default 2000
        Number of bootstrap replicates, or of permutations.
    seed : int, default 0
        Random seed.
    weights_are : {"importance", "counts"}, default "importance"
        What weights are. "importance": how much each row counts; only their ratios matter. "counts":
        a row of weight 3 is three rows. With "counts" only method="moments" is possible.
    **read

    Returns
    -------
    Comparison
        Mean losses, differences and tests.

    See Also
    --------
    evaluate : All scores of one model.
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
    rules = as_rules(rule)
    time_ordered = check_flag("time_ordered", time_ordered)
    plan = Resampling.checked(confidence, bootstrap, seed, least=100, weights_are=weights_are)
    if isinstance(y, Handle):
        _check(dict.fromkeys(y.models), method, reference, lists=y.lists)
        _refuse({"time_ordered": time_ordered, "method": method != "moments"}, _NOT_IN_MEMORY)
        ordered = needs_order(rules, ordered=ordered)
        handle = y.in_order() if ordered else y
        return compare_handle(handle, rules, ordered=ordered, reference=reference, plan=plan)
    forecasts = _check(forecasts, method, reference)
    _check_counts(plan, method, groups_given=read.get("groups") is not None)
    options: dict[str, Any] = {**read, "ordered": needs_order(rules, ordered=ordered)}
    weights, groups = options.pop("weights", None), options.pop("groups", None)
    if isinstance(y, Mapping):
        paired_only = {"time_ordered": time_ordered, "method": method != "moments"}
        for argument, value in (("weights", weights), ("groups", groups), ("reference", reference)):
            paired_only[argument] = value is not None
        _refuse(paired_only, "where every model has rows of its own")
        return _compare_unpaired(y, forecasts, rules, options, plan.confidence)
    rows = _Paired.of(y, forecasts, rules, options, weights, groups, reference, plan.copies)
    units = Units.of(rows.n_rows, rows.weights, rows.groups, time_ordered, lags)
    if method != "moments":
        check_one_way(rows.groups, f"method={method!r}")
    return _compare_paired(rows, rules, units, method, plan, reference)


def compare_losses(
    losses: Mapping[str, Floats],
    rule: Rule,
    *,
    weights: Floats | None,
    groups: Groups | None,
    reference: str,
    confidence: float,
) -> Comparison:
    """The same for losses of the same rows that are known already, by one rule."""
    columns = np.column_stack(list(losses.values()))
    rows = _Paired(list(losses), {rule: columns}, {}, {}, weights, groups)
    units = Units.of(rows.n_rows, weights, groups, False, None)
    return _compare_paired(rows, [rule], units, "moments", Resampling(confidence), reference)


def _check(
    forecasts: Mapping[str, object] | None, method: str, reference: str | None, *, lists: bool = False
) -> Mapping[str, object]:
    if not isinstance(forecasts, Mapping):
        raise InputError(
            "must be a mapping from the names of models to their forecasts",
            argument="forecasts",
            kind="type",
            found=f"it is a {type(forecasts).__name__}",
        )
    lists = lists or any(isinstance(each, TopLists) for each in forecasts.values())
    if len(forecasts) < (2 if reference is None else 1):
        raise InputError(
            "must name at least two models",
            argument="forecasts",
            found=f"there {'is' if len(forecasts) == 1 else 'are'} {len(forecasts)}",
            remedies=[
                passing("to measure the skill of one model", reference=UNIFORM if lists else FREQUENCIES)
            ],
        )
    check_choice("method", method, get_args(Method))
    if reference is not None and not isinstance(reference, str):
        raise InputError(
            f"must be the name of a model or of a simple forecast, not {show(reference)}",
            argument="reference",
            kind="type",
            values=[reference],
        )
    return forecasts


def _check_counts(plan: Resampling, method: str, *, groups_given: bool) -> None:
    """Copies of rows are not resampled one by one: they are known by their number only."""
    if plan.copies and method != "moments" and not groups_given:
        raise InputError(
            "cannot be used with bootstrap or permutation of rows",
            argument="weights_are",
            values=[plan.weights_are],
            remedies=[passing(method="moments")],
        )


def _refuse(given: Mapping[str, bool], where: str) -> None:
    """Refuse the arguments that are given and cannot be used there."""
    for argument, is_given in given.items():
        if is_given:
            raise InputError(f"cannot be used {where}", argument=argument)


# ---- rows that are paired ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Paired:
    """The losses of every model on the same rows: for each rule (n, M), the reference last if it is new."""

    names: list[str]
    losses: dict[Rule, Floats]
    traits: dict[str, Traits]
    trait_rows: dict[str, Floats]
    weights: Floats | None
    groups: Groups | None
    faults: Mapping[str, ListFaults] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        y: object,
        forecasts: Mapping[str, object],
        rules: list[Rule],
        options: dict[str, Any],
        weights: object | None,
        groups: object | None,
        reference: str | None,
        copies: bool,
    ) -> _Paired:
        names = [str(name) for name in forecasts]
        columns: dict[Rule, list[Floats]] = {rule: [] for rule in rules}
        traits, by_row = {}, {}
        faults: dict[str, ListFaults] = {}
        first: Rows | None = None
        for name, read in pair_each(y, forecasts, **options, weights=weights, groups=groups):
            if first is not None and read.n_classes != first.n_classes:
                raise InputError(
                    "must have the same classes for all models",
                    argument="forecasts",
                    kind="length",
                    found=f"{name!r} has {read.n_classes}, {names[0]!r} has {first.n_classes}",
                    values=[read.n_classes, first.n_classes],
                )
            first = first or read
            if read.groups is not None:
                check_groups(read.groups.count)
            for rule, loss in zip(rules, _losses(name, rules, read), strict=True):
                columns[rule].append(loss)
            faults |= faults_of({name: read})
            if isinstance(read, Forecasts):
                traits[name] = Traits.of(read, options["ordered"])
                if len(rules) > 1 and len(names) > 1:
                    by_row[name] = trait_rows(read)
        assert first is not None
        batch = first.batch(0, first.n_rows)
        w = None if batch.weights is None else to_host(batch.weights)
        if reference is not None and reference not in names:
            check_reference(reference, names, lists=bool(faults))
            k, codes = first.n_classes, to_host(batch.y)
            if reference == FREQUENCIES:
                counts = ClassCounts.of(codes, k, w, first.groups)
                simple = OtherGroups(counts, copies).losses(rules, codes, w, first.groups)
            elif faults:
                simple = losses_of(rules, uniform_lists(first.n_rows, k))
            else:
                simple = losses_of(rules, Forecasts(codes, uniform(len(codes), k)))
            for rule, loss in zip(rules, simple, strict=True):
                columns[rule].append(to_host(loss))
            del simple
        # Each column goes as its copy comes: both together would set the peak of memory.
        losses = {rule: np.column_stack(columns.pop(rule)) for rule in rules}
        return cls(names, losses, traits, by_row, w, first.groups, faults)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.losses.values())))


def _losses(name: str, rules: list[Rule], read: Rows) -> list[Floats]:
    try:
        return [np.asarray(to_host(loss), dtype=float) for loss in losses_of(rules, read)]
    except InputError as error:
        raise at_fault(name, error) from None


def _compare_paired(
    rows: _Paired,
    rules: list[Rule],
    units: Units,
    method: Method,
    plan: Resampling,
    reference: str | None,
) -> Comparison:
    confidence = plan.confidence
    models, differences = {}, {}
    labels = None if rows.groups is None else rows.groups.labels[rows.groups.codes]
    notes = []
    for rule in rules:
        losses, name = rows.losses[rule], name_of(rule)
        tally = PairedTally(losses.shape[1]).update(losses, rows.weights, labels)
        models[name], differences[name], said = conclude(
            rows.names,
            tally,
            Estimate.of(tally, losses, units, copies=plan.copies),
            rule=name,
            reference=reference,
            confidence=confidence,
            draws=bootstrap_means(losses, units, plan) if method == "bootstrap" else None,
            p_values=(
                permutation_p(losses, units, plan.replicates, plan.seed) if method == "permutation" else None
            ),
        )
        notes += said
        if units.kind == "blocks":
            notes += too_short(name, differences[name])
    n_groups = None if rows.groups is None else rows.groups.count
    text = units.describe(method)
    return Comparison(
        models,
        differences,
        rows.traits,
        rows.n_rows,
        n_groups,
        text,
        confidence,
        reference,
        tuple(notes),
        _claims(rows, units, labels, plan),
    ).with_faults(rows.faults)


def _claims(rows: _Paired, units: Units, labels: Any, plan: Resampling) -> Claims | None:
    """What the rows support about the traits of models; None where there is nothing to explain."""
    if len(rows.trait_rows) < 2:
        return None

    def p_values(trait: int) -> Floats:
        weights = None if rows.weights is None else relative(rows.weights)
        found = [trait_column(own, trait, weights) for own in rows.trait_rows.values()]
        columns = np.column_stack(found)
        tally = PairedTally(columns.shape[1]).update(columns, rows.weights, labels)
        return Estimate.of(tally, columns, units, copies=plan.copies).p_values()

    ordered = any(traits.error_distance is not None for traits in rows.traits.values())
    return Claims.of(list(rows.trait_rows), p_values, ordered=ordered, level=1 - plan.confidence)


# ---- rows that are not paired ----------------------------------------------------------------------


def _compare_unpaired(
    y: Mapping[Any, object],
    forecasts: Mapping[str, object],
    rules: list[Rule],
    options: dict[str, Any],
    confidence: float,
) -> Comparison:
    """Independent samples: the variance of a difference is the sum of the two (Welch)."""
    if set(y) != set(forecasts):
        raise InputError("must have the outcomes of each model under its name", argument="y", kind="label")
    names = [str(name) for name in forecasts]
    read = dict(pair_each(y, forecasts, **options))
    losses = {name: _losses(name, rules, f) for name, f in read.items()}
    traits = {n: Traits.of(f, options["ordered"]) for n, f in read.items() if isinstance(f, Forecasts)}
    models, differences = {}, {}
    total = sum(f.n_rows for f in read.values())
    notes = ["Every model has rows of its own: differences are between independent samples."]
    pairs = all_pairs(len(names))
    for i, rule in enumerate(rules):
        tallies = [PairedTally(1).update(losses[name][i][:, None]) for name in names]
        mean = np.array([t.means[0] for t in tallies])
        error = np.array([t.standard_errors()[0][0] for t in tallies])
        gaps = np.array([mean[a] - mean[b] for a, b in pairs])
        gap_errors = np.array([math.hypot(error[a], error[b]) for a, b in pairs])
        own = np.array([t.standard_errors()[1] for t in tallies])
        freedom = np.append(own, [_satterthwaite(error[[a, b]], own[[a, b]]) for a, b in pairs])
        estimate = Estimate(np.append(mean, gaps), np.append(error, gap_errors), freedom)
        name, finite = name_of(rule), [finite_parts(tally)[0] for tally in tallies]
        models[name], differences[name] = results(
            names,
            len(names),
            estimate.mean,
            estimate.intervals(confidence),
            estimate.p_values(),
            [no_skill("there is no reference", confidence)] * len(names),
            [*finite, *((finite[a][0] + finite[b][0], _gap(finite[a], finite[b])) for a, b in pairs)],
            1 - confidence,
        )
        notes += infinite_notes(name, models[name], total)
    method = "Welch's t test"
    found = Comparison(models, differences, traits, total, None, method, confidence, None, tuple(notes))
    return found.with_faults(faults_of(read))


def _gap(a: tuple[int, float], b: tuple[int, float]) -> float:
    """The difference of the means of finite losses; NaN where a model has none."""
    return a[1] - b[1] if math.isfinite(a[1]) and math.isfinite(b[1]) else math.nan


def _satterthwaite(errors: Floats, freedom: Floats) -> float:
    """The degrees of freedom of the difference of two independent means (Welch and Satterthwaite)."""
    variances = errors**2
    if not variances.any():
        return float(freedom.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(variances.sum() ** 2 / (variances**2 / freedom).sum())
