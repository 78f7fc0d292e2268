"""The same questions asked of every subgroup: how good, how well calibrated, which model is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from verax.analyses.calibration.decomposition import decompose
from verax.analyses.cards.evaluation import evaluate, fitting_rules
from verax.analyses.cards.listcard import padded_rules
from verax.analyses.comparison.compare import compare
from verax.analyses.subgroups.result import Subgroup, Subgroups
from verax.analyses.subgroups.streams import SubgroupRequest, subgroups_of_handle
from verax.analyses.subgroups.testing import check_sizes, corrected
from verax.common.checks import check_count, check_flag
from verax.errors import InputError, Remedy, join, show
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Handle
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, faults_of, pair_each
from verax.inputs.skipping import take_rows
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import CostsLike, needs_order
from verax.scores.registry import as_rules, each_of, name_of, parse


@reads
def subgroups(
    y: object,
    p: object = None,
    *,
    by: object,
    rule: Rule | str | None = None,
    rules: Sequence[Rule | str] | None = None,
    ordered: bool = False,
    costs: CostsLike | None = None,
    confidence: float = 0.95,
    bootstrap: int = 100,
    seed: int = 0,
    least: int = 20,
    among: int | None = None,
    weights_are: WeightsAre = "importance",
    time_ordered: bool = False,
    **read: Unpack[Reading],
) -> Subgroups:
    """The card and the decomposition of every subgroup, and which are miscalibrated beyond chance.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`.
    p : array_like of shape (N, K) or (N,), TopLists, or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name. Models are then compared in every subgroup.
    by : array_like of shape (N,) or str
        Labels of the subgroups; of predictions that `scan` has opened, the name of a column that it was
        told of. If they are the `groups` themselves, rows are taken to be independent within each
        subgroup.
    rule : Rule or str, optional
        What is decomposed and compared; by default RPS for ordered classes, else Brier.
    rules : sequence of Rule or str, optional
        The rules on the cards, beside `rule`; by default all that fit, or the zero-one loss if `rule` is
        given.
    ordered : bool, default False
        Whether the classes have an order.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        The cost of each decision (column) for each outcome (row).
    confidence : float, default 0.95
        Confidence level of the intervals and of the tests.
    bootstrap : int, default 100
        The fewest draws behind a p-value of calibration; 0 for no tests. Where the decision is not clear
        after so many, more are drawn. What is far beyond all draws has the p-value of a gamma
        distribution fitted to them, made larger to be safe.
    seed : int, default 0
        Random seed.
    least : int, default 20
        Subgroups with fewer rows are refused, because nothing can be said about them.
    among : int, optional
        How many subgroups there are, where these are some of them: Holm's correction counts them all.
    weights_are : {"importance", "counts"}, default "importance"
        What weights are. "importance": how much each row counts; only their ratios matter. "counts": a
        row of weight 3 is three rows.
    time_ordered : bool, default False
        Whether the rows are in order of time: models are compared in each subgroup as `compare` does it then.
        Cards and tests of calibration still take rows to be independent.
    **read

    Returns
    -------
    Subgroups
        The subgroups by label, or by (label, model).

    See Also
    --------
    compare : Models on all rows.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(600)
    >>> site = np.repeat(["north", "south"], 300)
    >>> y = rng.random(600) < np.where(site == "south", q**2, q)
    >>> found = vx.subgroups(y, q, by=site)
    >>> [line.label for line in found.flagged]
    ['south']
    """
    check_count("least", least)
    chosen = parse(rule if rule is not None else "rps" if check_flag("ordered", ordered) else "brier")
    on_card = None
    if rule is not None or rules is not None:
        on_card = as_rules([chosen, *each_of("zero_one" if rules is None else rules)], "rules")
    if isinstance(y, Handle):
        resampling = Resampling.checked(
            confidence, bootstrap, seed, least=2, or_none=True, weights_are=weights_are
        )
        if check_flag("time_ordered", time_ordered):
            raise InputError(
                "cannot be used with predictions that are not in memory", argument="time_ordered"
            )
        shown = tuple(on_card or (padded_rules() if y.lists else fitting_rules(None, ordered)))
        asked = SubgroupRequest(by, chosen, shown, ordered, costs, least, among)
        return subgroups_of_handle(y, asked, resampling)
    models = {str(name): value for name, value in p.items()} if isinstance(p, Mapping) else {"model": p}
    if not models:
        raise InputError("must hold at least one model", argument="p", kind="missing")
    order_matters = needs_order([chosen, *(on_card or [])], costs=costs, ordered=ordered)
    forecasts_of = dict(pair_each(y, models, ordered=order_matters, **read))
    for forecasts in forecasts_of.values():
        forecasts.check()
    # As given: in another precision, rows that may sum to 1.00001 would be refused.
    rows: dict[str, Any] = {
        name: to_host(rows.given) if isinstance(rows, Forecasts) else models[name]
        for name, rows in forecasts_of.items()
    }
    first = next(iter(forecasts_of.values()))
    check_one_way(first.groups, "subgroups, which are decomposed")
    batch = first.batch(0, first.n_rows)
    names, outcomes = _outcomes(y, forecasts_of, read.get("classes"))
    weight = None if batch.weights is None else to_host(batch.weights)
    parts = _parts(by, first.n_rows, least)
    cluster = None if first.groups is None else first.groups.labels[first.groups.codes]
    _check_weights(parts, weight)
    within = cluster is not None and _within_groups(parts, cluster, weight)
    if among is not None:
        check_count("among", among, least=len(parts))
    time_ordered = check_flag("time_ordered", time_ordered)
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed}
    weighing: dict[str, Any] = {"weights_are": weights_are}
    written: dict[str, Any] = {name: read[name] for name in ("normalize", "logits") if name in read}
    in_parts = chosen.rule if isinstance(chosen, Padded) else chosen
    lines, comparisons = [], {}
    draw: dict[tuple[Any, str], Callable[[int, int], Floats]] = {}
    for label, part in parts.items():
        shared: dict[str, Any] = {
            "classes": names,
            "weights": None if weight is None else weight[part],
            "groups": None if cluster is None or within else cluster[part],
            **weighing,
        }
        y_of, p_of = take_rows(outcomes, part), {name: p[part] for name, p in rows.items()}
        for name, forecast in p_of.items():
            own = shared if isinstance(forecast, TopLists) else shared | written
            card = evaluate(y_of, forecast, ordered=ordered, costs=costs, rules=on_card, **plan, **own)
            parted = decompose(y_of, forecast, rule=in_parts, bootstrap=bootstrap, **plan, **own)
            lines.append(Subgroup(label, name, card, parted, parted.p_value, None, False))
            draw[label, name] = partial(_drawn, y_of, forecast, in_parts, seed, own)
        if len(p_of) > 1:
            comparisons[label] = compare(
                y_of,
                p_of,
                rule=chosen,
                ordered=ordered,
                time_ordered=time_ordered,
                confidence=confidence,
                **shared,
                **written,
            )
    found = Subgroups(
        corrected(lines, 1 - confidence, draw, among or len(parts)),
        comparisons,
        name_of(chosen),
        getattr(by, "name", None) or "subgroup",
        within_groups=within,
        time_ordered=time_ordered,
    )
    return found.with_faults(faults_of(forecasts_of if isinstance(p, Mapping) else {"": first}))


def _outcomes(y: object, models: Mapping[str, Rows], classes: Any) -> tuple[Any, Any]:
    """The names of the classes, and outcomes that can be taken apart; as given where there are top lists."""
    first = next(iter(models.values()))
    if not all(isinstance(rows, Forecasts) for rows in models.values()):
        return classes, y
    assert isinstance(first, Forecasts)
    names, outcomes = first.classes, to_host(first.batch(0, first.n_rows).y)
    return names, outcomes if names is None else np.array([*names, None], dtype=object)[outcomes]


def _check_weights(parts: dict[Any, Any], weight: Any) -> None:
    """Refuse subgroups in which no row has weight."""
    empty = [] if weight is None else [label for label, part in parts.items() if not weight[part].any()]
    if empty:
        raise InputError(
            "must not all be zero in a subgroup",
            argument="weights",
            found=f"they are in {join(show(label) for label in empty[:5])}",
            values=empty,
            remedies=[Remedy("Leave these rows out.")],
        )


def _within_groups(parts: dict[Any, Any], cluster: Any, weight: Any) -> bool:
    """Whether each subgroup is one group; refused where that holds for some of several groups only."""
    rows = {label: part if weight is None else part[weight[part] > 0] for label, part in parts.items()}
    alone = [label for label, part in rows.items() if (cluster[part] == cluster[part[0]]).all()]
    if len(alone) == len(parts):
        return True
    if alone:
        raise InputError(
            "must give at least two groups to every subgroup",
            argument="by",
            found=f"all rows of {join(show(label) for label in alone[:5])} belong to one group",
            values=alone,
            remedies=[Remedy("Join them with others, or leave out the groups.")],
        )
    return False


def _drawn(y: Any, p: Any, rule: Rule, seed: int, own: dict[str, Any], n: int, stage: int) -> Floats:
    """More miscalibrations by chance, from a random stream of their own."""
    found = decompose(y, p, rule=rule, bootstrap=n, seed=seed + stage, **own)
    return found.whole.calibrated


def _parts(by: object, n_rows: int, least: int) -> dict[Any, Any]:
    """The rows of each subgroup, in the order of their labels."""
    try:
        read = Groups.of(by, n_rows)
    except InputError as error:
        raise (error.replace(argument="by") if error.argument == "groups" else error) from None
    parts = {label: np.flatnonzero(read.codes == i) for i, label in enumerate(read.labels.tolist())}
    check_sizes({label: len(rows) for label, rows in parts.items()}, least)
    return parts
