"""`fit_combination`: forecasters weighed by a proper rule, and whether their pool beats each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, get_args

import numpy as np

from verax.analyses.comparison.compare import compare_losses
from verax.analyses.comparison.crossfits import factor_of_fits
from verax.analyses.comparison.findings import TESTED
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.dealing import dealt
from verax.analyses.sampled import rows_to_fit
from verax.common.checks import check_choice, check_count
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, RuleError, join, show
from verax.inference.findings import Claim, Finding, NextStep, VerdictOnceCalled, WithVerdict, listed
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats, to_host
from verax.inputs.handles import Handle
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import paired_by_model
from verax.inputs.options import RowOptions, reads
from verax.inputs.rows import faults_of
from verax.inputs.shares import one_class_needed
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.registry import name_of, parse
from verax.wings.lists.combination.fitting import PoolSample, cross_fitted, valid_lists
from verax.wings.lists.pooling import Pool, PoolKind, as_lists, shares
from verax.wings.recalibrate.choosing import mean_loss

POOL, EQUAL = "combination", "equal weights"
# The statistics that a loss may depend on for weights to be sought by its slopes.
_SMOOTH = {"p_true", "rest_sq", "log_true", "invalid"}


@reads
def fit_combination(
    y: object,
    forecasts: Mapping[str, object] | None = None,
    *,
    rule: Rule | str = "brier",
    pool: PoolKind = "linear",
    folds: int = 10,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> Combination:
    """Weights of forecasters that lose least by a proper rule, and whether their pool beats its parts.

    The weights are not negative and sum to 1. They are fitted to all rows; what the pool loses is measured in
    cross-validation, on held-out rows, and compared with every forecaster and with equal
    weights.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions of
        several models that `scan` has opened, in place of both `y` and `forecasts`; of more than 100,000
        rows, or 8 million probabilities, the fit uses a random sample (`sampled`).
    forecasts : mapping of str to forecasts, optional
        The forecasts of each forecaster, by name, row for row the same cases: full distributions or
        `TopLists`. An invalid list counts as its largest valid sublist in the pool.
    rule : Rule or str, default "brier"
        What the weights minimise: Brier, log score or spherical, or another strictly proper rule without a
        penalty for wrong modes.
    pool : {"linear", "log"}, default "linear"
        The weighted mean of the probabilities, or their weighted geometric mean divided by its sum. Where
        lists do not name a class, it counts with the proxy probability of the list.
    folds : int, default 10
        Number of parts of the cross-validation; groups stay whole.
    confidence
    seed : int, default 0
        Random seed of the folds.
    **read

    Returns
    -------
    Combination
        The weights, and what the pool loses.

    See Also
    --------
    combine : Pool top lists with given weights.

    References
    ----------
    Genest and Zidek (1986), doi:10.1214/ss/1177013825; Gneiting and Ranjan (2013), doi:10.1214/13-EJS823

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(4), 1000)
    >>> y = np.array([rng.choice(4, p=row) for row in truth])
    >>> noisy = {name: 0.5 * truth + 0.5 * rng.dirichlet(np.ones(4), 1000) for name in ("ann", "bob")}
    >>> pool = vx.fit_combination(y, noisy)
    >>> {name: round(weight, 1) for name, weight in pool.weights.items()}, pool.beats_all
    ({'ann': 0.4, 'bob': 0.6}, True)
    """
    chosen = _check_rule(parse(rule))
    check_choice("pool", pool, get_args(PoolKind))
    check_count("folds", folds, least=2)
    check_confidence(confidence)
    check_seed(seed)
    # Rows of a handle come with one class each.
    if isinstance(y, Handle) and y.rated:
        raise one_class_needed()
    y, given, options, tell = rows_to_fit(y, forecasts, read, ordered=False, several=True)
    models = _check_models(given)
    rows = dict(paired_by_model(y, models, ordered=False, **options))
    first = next(iter(rows.values()))
    if first.shared:
        raise one_class_needed()
    losses = {name: np.asarray(to_host(losses_of([chosen], part)[0]), float) for name, part in rows.items()}
    form: dict[str, Any] = {
        name: options[name] for name in ("classes", "normalize", "logits") if name in options
    }
    lists = _as_lists(models, form)
    weights = None if first.weights is None else to_host(first.batch(0, first.n_rows).weights).astype(float)
    sample = PoolSample(y, Pool.of(valid_lists(lists)), pool, _inner(chosen), weights)
    dealt_to = dealt(first.n_rows, first.groups, folds, seed, weights)
    losses[EQUAL] = sample.losses(sample.equal)
    fitted, of_fits, losses[POOL] = cross_fitted(sample, dealt_to)
    best = min(models, key=lambda name: mean_loss(losses[name], weights))
    compared = compare_losses(
        losses,
        chosen,
        factor=factor_of_fits(losses, {POOL: of_fits}, weights, first.groups),
        weights=weights,
        groups=first.groups,
        reference=best,
        confidence=confidence,
    )
    whole = sample.fit(np.ones(sample.n_rows, np.bool_))
    result = Combination(
        dict(zip(models, whole.tolist(), strict=True)),
        pool,
        name_of(chosen),
        compared,
        fitted,
        int(dealt_to.max()) + 1,
        first.n_rows,
        seed,
    )
    return tell(result.with_faults(faults_of(rows)))


def _check_rule(rule: Rule) -> Rule:
    """The rule, if weights can be fitted by it: proper, symmetric, and without steps."""
    inner = padded(_inner(rule)).rule
    if not inner.needs <= _SMOOTH or not inner.properties.strictly_proper.at(3):
        raise RuleError(
            "Weights are fitted by a strictly proper rule without steps, such as brier, log_score or "
            f"spherical. {rule} has steps, where a mode changes, or does not tell all forecasts apart. "
            "Fit by one of those, and compare the pool by any rule."
        )
    return rule


def _inner(rule: Rule) -> Rule:
    return rule.rule if isinstance(rule, Padded) else rule


def _check_models(forecasts: object) -> dict[str, object]:
    if not isinstance(forecasts, Mapping):
        raise InputError(
            "must be a mapping from the names of forecasters to their forecasts",
            argument="forecasts",
            kind="type",
            found=f"it is {show(forecasts)}",
        )
    models = {str(name): p for name, p in forecasts.items()}
    if len(models) < 2:
        raise InputError("must name at least two forecasters", argument="forecasts")
    for name in (POOL, EQUAL):
        if name in models:
            raise InputError(f"must not call a forecaster {name!r}", argument="forecasts", values=[name])
    return models


def _as_lists(models: Mapping[str, object], form: Mapping[str, Any]) -> list[TopLists]:
    try:
        return as_lists(models.values(), **form)
    except InputError as error:
        raise error.replace(argument="forecasts") if error.argument == "lists" else error from None


@dataclass(frozen=True, repr=False, eq=False)
class Combination(WithVerdict, Tabled, MaySkip):
    """The weights of a pool of forecasters, and what it loses on rows that no fit has seen.

    Attributes
    ----------
    weights : dict of str to float
        The weight of each forecaster, fitted to all rows.
    pool : {"linear", "log"}
        How forecasts are pooled.
    rule : str
        What the weights minimise.
    comparison : Comparison
        The forecasters, their pool with equal weights and with fitted weights ("combination"), on the same
        rows; the fitted weights are those found without the fold of each row.
    fold_weights : array of shape (folds, M)
        The weights found without each fold.
    folds : int
        Number of parts of the cross-validation.
    n_rows : int
        The number of rows.
    seed : int
        Random seed of the folds.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> good, bad = 0.5 + 0.3 * (2 * y - 1), rng.random(200)
    >>> pool = vx.fit_combination(y, {"good": good, "bad": bad})
    >>> pool.weights["good"] > pool.weights["bad"]
    True
    """

    weights: dict[str, float]
    pool: PoolKind
    rule: str
    comparison: Comparison
    fold_weights: Floats
    folds: int
    n_rows: int
    seed: int

    _facts = ("beats_all",)

    def apply(self, forecasts: Mapping[str, object] | Sequence[object], **form: Any) -> Any:
        """The pool of other forecasts of the same forecasters: lists, or (N, K) rows where all are rows.

        Parameters
        ----------
        forecasts : mapping of str to forecasts, or sequence of forecasts
            The forecasts of each forecaster, by name or in the same order.
        **form : Any
            How rows are written, as for `fit_combination`: `classes`, `normalize`, `logits`.

        Returns
        -------
        array of shape (N, K) or TopLists
            The pooled forecasts.
        """
        listed = (
            list(forecasts)
            if isinstance(forecasts, (list, tuple)) or getattr(forecasts, "ndim", 0) == 3
            else []
        )
        models = (
            forecasts if isinstance(forecasts, Mapping) else dict(zip(self.weights, listed, strict=False))
        )
        if list(map(str, models)) != list(self.weights) or len(forecasts) != len(self.weights):
            raise InputError(
                f"must have the forecasts of {join(self.weights)}, in this order", argument="forecasts"
            )
        named = {str(name): p for name, p in models.items()}
        lists = Pool.of(valid_lists(_as_lists(named, form)))
        pooled = lists.pooled(shares(list(self.weights.values()), len(self.weights)), self.pool)
        return pooled if any(isinstance(p, TopLists) for p in named.values()) else pooled.padded()

    def against(self, name: str) -> Difference:
        """The mean loss of the combination less that of a forecaster, or of "equal weights".

        Parameters
        ----------
        name : str
            The name of a forecaster, or "equal weights".

        Returns
        -------
        Difference
            The difference with its interval; negative if the combination is better.
        """
        return self.comparison.difference(POOL, name)

    @property
    def beats_all(self) -> bool:
        """Whether the combination loses less than every forecaster, beyond chance (Holm's correction)."""
        return all(self._beats(name) for name in self.weights)

    def _beats(self, name: str) -> bool:
        gap = self.against(name)
        return gap.difference < 0 and gap.p_adjusted <= 1 - self.comparison.confidence

    @property
    def verdict(self) -> VerdictOnceCalled:
        """Whether the combination beats its parts and equal weights, as a verdict."""
        return VerdictOnceCalled(self._findings(), TESTED)

    def _findings(self) -> list[Finding]:
        beaten = [name for name in self.weights if self._beats(name)]
        others = [name for name in self.weights if name not in beaten]
        findings = []
        if beaten:
            whom = listed(beaten) if others else "each of its parts"
            text = f"The combination is significantly better than {whom}."
            findings.append(self._gaps(Claim.BETTER, text, beaten))
        if others:
            whom = listed(others) if beaten else "any of its parts"
            text = f"The combination is not significantly better than {whom}."
            best = next(model.name for model in self.comparison.models[self.rule] if model.name in others)
            step = NextStep(f"keep {best} alone, which is simpler")
            findings.append(replace(self._gaps(Claim.NOT_BETTER, text, others), step=step))
        if self._beats(EQUAL):
            text = "Fitted weights are significantly better than equal ones."
            return [*findings, self._gaps(Claim.BETTER, text, [EQUAL])]
        text = "Fitted weights are not significantly better than equal ones."
        equal = self._gaps(Claim.NOT_BETTER, text, [EQUAL])
        return [*findings, equal if others else replace(equal, step=NextStep("use equal weights"))]

    def _gaps(self, claim: Claim, text: str, names: Sequence[str]) -> Finding:
        """A finding about the differences of the combination from some forecasters."""
        gaps = {name: self.against(name) for name in names}
        return Finding(
            claim,
            text,
            tuple(names),
            {name: (gap.difference, gap.interval) for name, gap in gaps.items()},
            p_value=max(gap.p_adjusted for gap in gaps.values()),
            level=round(1 - self.comparison.confidence, 12),
        )

    def _tables(self) -> list[Table]:
        means = {model.name: model.mean for model in self.comparison.models[self.rule]}
        folds = zip(self.weights, self.fold_weights.T, strict=True)
        spans = {name: (float(of_folds.min()), float(of_folds.max())) for name, of_folds in folds}

        def gap(name: str) -> Difference | None:
            return None if name == POOL else self.against(name)

        def of_gap(field: str) -> Callable[[str], Any]:
            return lambda name: getattr(gap(name), field, None)

        def in_folds(name: str) -> str:
            return "{:.3f} to {:.3f}".format(*spans[name]) if name in spans else ""

        def change(name: str) -> str:
            difference = gap(name)
            if difference is None:
                return ""
            low, high = difference.interval
            return f"{difference.difference:+.5f} ({low:+.5f} to {high:+.5f})"

        columns = [
            Column("forecaster", "forecaster", value=str, right=False),
            Column("weight", "weight", ".3f", self.weights.get),
            Column("least_weight most_weight", "in folds", in_folds, spans.get, right=False),
            Column("mean", self.rule, ".5f", means.__getitem__),
            Column("difference", "combination less this", change, of_gap("difference"), right=False),
            Column("low high", value=of_gap("interval")),
            Column("p_adjusted", "p (Holm)", ".4f", of_gap("p_adjusted"), right=False),
        ]
        return [Table(columns, [*self.weights, EQUAL, POOL])]

    def _notes(self) -> list[str]:
        return self.remarks

    def _heading(self) -> str:
        return (
            f"verax {self.pool} pool of {len(self.weights)} forecasters by {self.rule}: {self.n_rows:,} "
            f"rows, losses cross-validated in {self.folds} parts"
        )
