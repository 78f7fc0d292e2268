"""The same questions asked of every subgroup: how good, how well calibrated, which model is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from verax.analyses.parts import faults_in, with_fault_recipes
from verax.analyses.subgroups.analysis import (
    SubgroupRequest,
    cards_of,
    in_order_of_time,
    read_subgroups,
    subgroup_recipes,
)
from verax.analyses.subgroups.result import Subgroups
from verax.common.checks import check_count, check_flag
from verax.errors import InputError, Remedy, join
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.breakdown import BreakdownRecipe, breakdowns
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, needs_order
from verax.scores.registry import as_rules, each_of, headline_rule, parse

# The replicates of intervals on cards that need them.
_OF_CARDS = 1000


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
    seed: int = 0,
    least: int = 20,
    among: int | None = None,
    weights_are: WeightsAre = "importance",
    time_ordered: bool = False,
    **read: Unpack[RowOptions],
) -> Subgroups:
    """The card and the decomposition of every subgroup, and which are significantly miscalibrated.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), TopLists, or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name. Models are then compared in every subgroup.
    by : array_like of shape (N,), two of them, or str
        Labels of the subgroups. Two columns, as a list, a mapping or a frame, are crossed: their labels are
        pairs. Of predictions that `scan` has opened, the name of a column that it was told of. If they are
        the `groups` themselves, rows are taken to be independent within each subgroup.
    rule : Rule or str, optional
        What is decomposed and compared; by default RPS for ordered classes, else Brier.
    rules : sequence of Rule or str, optional
        The rules on the cards, besides `rule`; by default all applicable ones, or the zero-one loss if
        `rule` is given.
    ordered
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        The cost of each decision (column) for each outcome (row).
    confidence : float, default 0.95
        Confidence level of the intervals and of the tests.
    seed
    least : int, default 20
        Subgroups with fewer rows are refused, because nothing can be said about them.
    among : int, optional
        How many subgroups there are, where these are some of them: Holm's correction counts them all.
    weights_are
    time_ordered : bool, default False
        Whether the rows are in order of time: models are compared in each subgroup as `compare` does it then.
        Cards and calibration tests still assume independent rows.
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
    plan = Resampling.checked(confidence, _OF_CARDS, seed, weights_are=weights_are)
    chosen = parse(rule) if rule is not None else headline_rule(ordered=ordered)
    on_card = None
    if rule is not None or rules is not None:
        on_card = tuple(as_rules([chosen, *each_of("zero_one" if rules is None else rules)], "rules"))
    time_ordered = check_flag("time_ordered", time_ordered)
    order_matters = needs_order([chosen, *(on_card or [])], costs=costs, ordered=ordered)
    models = p if isinstance(p, Mapping) else {"model": p}
    column, labels = one_column(by, y if isinstance(y, Handle) else None)
    handle = open_rows(y, models, ordered=order_matters, by={column: labels}, **read)
    if time_ordered and not handle.whole:
        raise InputError("cannot be used with predictions that are not in memory", argument="time_ordered")
    if not isinstance(y, Handle) and handle.n_rows is not None:
        check_labels(labels, handle.n_rows)
    asked = SubgroupRequest(column, chosen, on_card, ordered, costs, least, among)
    recipe = BreakdownRecipe(column, subgroup_recipes(handle, asked, plan))
    found = handle.summarise(with_fault_recipes(handle, {"by": recipe}))
    cards = cards_of(found["by"], handle)
    within = all(card.n_groups == 1 for card in cards.values()) and handle.has_rows
    sums = found["by"]
    if within:
        sums = handle.summarise({"by": replace(recipe, grouped=False)})["by"]
    result = read_subgroups(sums, column, handle, asked, plan, within_groups=within)
    if time_ordered:
        result = in_order_of_time(result, handle, asked, plan)
    faults = faults_in(handle, found)
    if len(handle.models) == 1 and not isinstance(p, Mapping):
        # Nobody named the model.
        faults = dict(zip([""], faults.values(), strict=False))
    return result.with_skipped(found.skipped).with_faults(faults)


def check_labels(by: object, n_rows: int) -> None:
    """Refuse labels that are missing, or not one per row."""
    if isinstance(by, np.ndarray) and by.ndim == 1 and by.dtype.kind in "biu":
        # None of them can be missing, and their number was checked when they were read.
        return
    try:
        Groups.of(by, n_rows)
    except InputError as error:
        raise (error.replace(argument="by") if error.argument == "groups" else error) from None


def one_column(by: object, handle: Handle | None) -> tuple[str, Any]:
    """The labels of the subgroups and what they are called; two columns in memory are crossed."""
    columns = breakdowns(by, handle)
    several = "" if handle is not None else ", or two to be crossed"
    if not 1 <= len(columns) <= (1 if handle is not None else 2):
        raise InputError(
            f"must be one column of labels{several}",
            argument="by",
            kind="length",
            found=f"there are {len(columns)}: {join(columns)}" if columns else "there is none",
            remedies=[Remedy("Ask about one column at a time.")] if columns else [],
        )
    kinds = list(columns.values())
    return " and ".join(columns), kinds[0] if len(kinds) == 1 else kinds
