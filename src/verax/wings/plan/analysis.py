"""How many rows would show a difference, or make an interval narrow enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.result import Comparison
from verax.analyses.measures import MEASURES
from verax.analyses.rates import RATES
from verax.common.checks import check_n_classes, check_number
from verax.common.wings import answer_to
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.intervals import check_confidence
from verax.inference.sizes import Goal
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import METRICS, needs_order
from verax.scores.registry import as_rules, default_rules, name_of, parse
from verax.wings.judges.planning import CheckPlan, plan_checks
from verax.wings.judges.result import JudgedGrades
from verax.wings.plan.pilots import HasPilot, Pilot, of_card, of_comparison, of_rule, tails_of
from verax.wings.plan.result import ASSURANCE, SamplePlan, SizeLine

# Goals that plans are shown for, beside the one that was asked for.
_POWERS = (0.5, 0.8, 0.9, 0.95, 0.99)
_WIDTHS = (2.0, 1.5, 1.0, 0.75, 0.5)


@overload
def plan(
    y: object = None,
    forecasts: object = None,
    *,
    difference: float | None = None,
    width: float | None = None,
    margin: float | None = None,
    rule: Rule | str | None = None,
    models: tuple[str, str] | None = None,
    power: float = 0.9,
    assurance: float | None = None,
    confidence: float = 0.95,
    rows_per_group: float | None = None,
    ordered: bool = False,
    n_classes: int | None = None,
    human_labels: None = None,
    **read: Unpack[RowOptions],
) -> SamplePlan: ...
@overload
def plan(y: JudgedGrades, *, human_labels: float, confidence: float = 0.95) -> CheckPlan: ...
@reads
def plan(
    y: object = None,
    forecasts: object = None,
    *,
    difference: float | None = None,
    width: float | None = None,
    margin: float | None = None,
    rule: Rule | str | None = None,
    models: tuple[str, str] | None = None,
    power: float = 0.9,
    assurance: float | None = None,
    confidence: float = 0.95,
    rows_per_group: float | None = None,
    ordered: bool = False,
    n_classes: int | None = None,
    human_labels: float | None = None,
    **read: Unpack[RowOptions],
) -> SamplePlan | CheckPlan:
    """How many rows or groups would be enough, given what a pilot shows.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), Handle, Comparison, Scorecard or GradeCard, optional
        Outcomes: those of the pilot. Or predictions that `scan` has opened, or the result of `compare`,
        `evaluate` or `evaluate_grades`. Without a pilot the spread is the largest that `rule` allows.
    forecasts : forecasts, or mapping of str to forecasts, optional
        With outcomes: the forecasts of one model, or of several by name.
    difference : float, optional
        The difference of the mean losses that is to be shown. By default the one that the pilot has. With
        `margin`, the loss of the first model minus that of the second that is assumed to be true; by default
        0.
    width : float, optional
        Half-width of the confidence interval.
    margin : float, optional
        Noninferiority margin: acceptable loss increase of the first model (`compare(..., margin=)`).
    rule : Rule or str, optional
        The rule of the comparison, or the score or metric of the card; by default its first.
    models : tuple of two str, optional
        Which models are compared; by default the only two, or the best and the second.
    power : float, default 0.9
        The probability that the rows show what they are to show, on average over what the pilot leaves open.
    assurance : float, optional
        The share of such pilots for which the number of rows reaches the power, such as 0.8, in place of the
        average. With `width`, for which it gives the width.
    confidence : float, default 0.95
        Confidence level of the intervals. Tests are made at one minus that.
    rows_per_group : float, optional
        Rows per group, if it differs from the pilot.
    ordered
    n_classes : int, optional
        The number of classes, where there is no pilot and the bounds of the rule depend on it.
    human_labels : float, optional
        Half-width of the interval of a mean grade that people correct, with the result of
        `evaluate_grades(..., judge=...)` as the pilot: how many answers people should check.
    **read

    Returns
    -------
    SamplePlan or CheckPlan
        The number of rows and groups, with the range that the pilot leaves open; or the number of checks.

    See Also
    --------
    compare : Tests of differences, also with a margin.
    ConfidenceSequence : Intervals that may be looked at after every row.

    Notes
    -----
    The power is that of the t test, averaged over the variance, which a pilot tells with error: by the
    noncentral t distribution (Julious and Owen 2006), and for an `assurance` by a bound of the variance
    (Browne 1995). The degrees of freedom come from the kurtosis of the rows or groups; of rows with heavy
    tails they are halved, because a sample shows too little of them. Results of `compare` and `evaluate` do
    not know the kurtosis: from them they are those of a normal distribution, and too many where tails are
    heavy.

    References
    ----------
    Julious and Owen (2006), doi:10.1002/pst.197; Browne (1995), doi:10.1002/sim.4780141709

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> old = np.clip(0.5 + 0.3 * (2 * y - 1) + rng.normal(0, 0.2, 200), 0.01, 0.99)
    >>> new = np.clip(old + 0.02 * rng.normal(0, 1, 200), 0.01, 0.99)
    >>> found = vx.plan(y, {"old": old, "new": new}, rule="brier", difference=0.002)
    >>> found.rows
    1529
    """
    if human_labels is not None:
        return plan_checks(y, human_labels, confidence)
    check_confidence(confidence)
    check_number("power", power, "must lie between 0 and 1", lambda p: 0 < p < 1)
    if assurance is not None:
        check_number("assurance", assurance, "must lie between 0 and 1", lambda share: 0 < share < 1)
    kind = _kind(difference, width, margin)
    pilot = _pilot(y, forecasts, rule, models, kind, {"ordered": ordered, "n_classes": n_classes, **read})
    if kind != "width" and pilot.pair is None:
        raise InputError(
            "must have two models for a difference or a margin",
            argument="y" if forecasts is None else "forecasts",
            found=f"the pilot has the {pilot.what} of one",
            remedies=[passing("for the interval of one model", width=0.01)],
        )
    if kind == "width":
        goal = Goal(_positive("width", width), 1 - confidence, None)
    elif kind == "margin":
        goal = Goal(_room(_positive("margin", margin), difference), 1 - confidence, power, sides=1)
    else:
        goal = Goal(_difference(difference, pilot), 1 - confidence, power)
        pilot = pilot.with_mean(goal.size)
    if rows_per_group is not None:
        pilot = pilot.with_groups_of(_positive("rows_per_group", rows_per_group))
    if assurance is not None and not pilot.n_rows:
        raise InputError("must be left out where there is no pilot", argument="assurance", values=[assurance])
    return concluded(pilot, goal, kind, difference=difference, margin=margin, assurance=assurance)


Kind = Literal["difference", "margin", "width"]


def _kind(difference: object, width: object, margin: object) -> Kind:
    """The kind of goal."""
    given = {"difference": difference, "width": width, "margin": margin}
    named = [name for name, value in given.items() if value is not None]
    if width is not None and len(named) > 1:
        raise InputError(
            f"cannot be combined with {join([name for name in named if name != 'width'])}", argument="width"
        )
    return "width" if width is not None else "margin" if margin is not None else "difference"


def _pilot(
    y: object,
    forecasts: object,
    rule: Rule | str | None,
    models: Sequence[str] | None,
    kind: Kind,
    options: dict[str, Any],
) -> Pilot:
    """The pilot of a plan."""
    # A text may also be the name of a metric.
    name = rule if rule is None or isinstance(rule, str) else name_of(parse(rule))
    pair = None if models is None else _names(models)
    n_classes = options.pop("n_classes")
    if isinstance(y, tuple) and len(y) == 2 and forecasts is None:
        y, forecasts = y
    if y is None:
        classes = None if n_classes is None else check_n_classes(n_classes)
        return of_rule(rule, classes, paired=kind != "width")
    if isinstance(y, (Comparison, Scorecard, HasPilot)):
        _refuse_rows(forecasts, options)
    if isinstance(y, HasPilot):
        return y._pilot(name)
    if isinstance(y, Scorecard):
        return of_card(y, name)
    if isinstance(y, Comparison):
        return of_comparison(y, name, pair)  # type: ignore[arg-type]
    if isinstance(y, Handle) and y.graded is not None:
        if len(y.models) == 1:
            card: HasPilot = answer_to("grade card")(y)
            return card._pilot(name)
        return of_comparison(compare(y, rule=rule), None, pair)  # type: ignore[arg-type]
    if isinstance(y, Mapping):
        # Every model has rows of its own.
        compared = compare(y, forecasts, rule=rule, **options)  # type: ignore[arg-type]
        return of_comparison(compared, None, pair)  # type: ignore[arg-type]
    several = len(y.models) > 1 if isinstance(y, Handle) else isinstance(forecasts, Mapping)
    if not several:
        return _of_one(y, forecasts, rule, options)
    return _of_several(y, forecasts, rule, pair, options)


def _names(models: object) -> tuple[str, ...]:
    if not isinstance(models, (list, tuple)):
        raise InputError(
            "must be the names of two models",
            argument="models",
            kind="type",
            found=f"it is {show(models)}",
            remedies=[passing(models=[..., ...])],
        )
    return tuple(map(str, models))


def _of_several(
    y: object,
    forecasts: object,
    rule: Rule | str | None,
    pair: tuple[str, ...] | None,
    options: dict[str, Any],
) -> Pilot:
    """The pilot of the difference of two models on the same rows."""
    ordered = options.pop("ordered")
    chosen = as_rules(default_rules(ordered=ordered) if rule is None else rule)[:1]
    in_order = needs_order(chosen, ordered=ordered)
    handle = open_rows(y, forecasts, ordered=in_order, named="forecasts", **options)
    pilot = of_comparison(compare(handle, rule=chosen, ordered=ordered), None, pair)  # type: ignore[arg-type]
    assert pilot.pair is not None
    return _with_tails(pilot, handle, pilot.pair, chosen[0])


def _with_tails(pilot: Pilot, handle: Handle, models: tuple[str, ...], rule: Rule) -> Pilot:
    """The pilot with the tails of its rows; with two kinds of groups they are not known."""
    two_way = pilot.n_groups is not None and pilot.sharing is None
    return pilot if two_way else pilot.with_tails(tails_of(handle, models, rule))


def _of_one(y: object, p: object, rule: Rule | str | None, options: dict[str, Any]) -> Pilot:
    """The pilot of a score or metric of one model."""
    ordered = options.pop("ordered")
    metric = isinstance(rule, str) and (rule in METRICS or rule in MEASURES or rule in RATES)
    rules = default_rules(ordered=ordered)[:1] if rule is None or metric else as_rules(rule)
    handle = open_rows(y, p, ordered=needs_order(as_rules(rules), ordered=ordered), single=True, **options)
    if metric:
        return of_card(evaluate(handle, ordered=ordered), str(rule))
    card = evaluate(handle, rules=rules, ordered=ordered)
    scored = next(iter(card.scores.values())).rule
    assert scored is not None
    return _with_tails(of_card(card, None), handle, (handle.one_model(),), scored)


def _refuse_rows(forecasts: object, options: dict[str, Any]) -> None:
    given = {"forecasts": forecasts, **options}
    for argument, value in given.items():
        if value is not None and value is not False:
            raise InputError(
                "cannot be used where the pilot is a result",
                argument=argument,
                remedies=[Remedy("Pass it to the function that makes the result.", python_only=True)],
            )


def _positive(argument: str, value: object) -> float:
    return check_number(argument, value, "must be a positive number", lambda number: number > 0)


def _room(margin: float, difference: float | None) -> float:
    """How far the difference that is assumed is from the margin."""
    assumed = (
        0.0
        if difference is None
        else check_number("difference", difference, "must be a finite number", math.isfinite)
    )
    if not assumed < margin:
        raise InputError(
            "must be below the margin, or nothing can be shown", argument="difference", values=[difference]
        )
    return margin - assumed


def _difference(given: float | None, pilot: Pilot) -> float:
    """The difference to be shown, which may be that of the pilot."""
    if given is not None:
        return abs(check_number("difference", given, "must be a number other than 0", lambda d: d != 0))
    if math.isnan(pilot.seen):
        raise InputError(
            "must be given where there is no pilot",
            argument="difference",
            kind="missing",
            remedies=[passing("for the interval of one model", width=0.01)],
        )
    if pilot.seen == 0:
        raise InputError("must be given: the models of the pilot do not differ", argument="difference")
    return abs(pilot.seen)


def concluded(
    pilot: Pilot,
    goal: Goal,
    kind: Kind,
    *,
    difference: float | None,
    margin: float | None,
    assurance: float | None = None,
) -> SamplePlan:
    """The plan: what was asked, and others near it."""
    if kind == "width":
        goals = [replace(goal, size=goal.size * factor) for factor in _WIDTHS]
    else:
        powers = sorted({*_POWERS, goal.power or 0.0})
        goals = [replace(goal, power=power) for power in powers]
    lines = [_line(pilot, near, assurance) for near in goals]
    per_group = None
    if pilot.sharing is not None and pilot.n_groups is not None:
        per_group = pilot.sharing.rows_per_group(goal, pilot.n_groups, pilot.spread.known)
    looked = pilot.rows_until_decided(goal.size, goal.level) if kind == "difference" else None
    return SamplePlan(
        pilot,
        goal,
        kind,
        _line(pilot, goal, assurance),
        tuple(lines),
        assurance=assurance,
        rows_on_average=_rows(pilot, goal.units(pilot.spread)),
        rows_assured=_rows(pilot, goal.units(pilot.spread.exceeded_in(1 - (assurance or ASSURANCE)))),
        rows_per_group=per_group,
        rows_until_decided=looked,
        assumed=difference is None,
        margin=margin,
    )


def _line(pilot: Pilot, goal: Goal, assurance: float | None) -> SizeLine:
    """How many rows and groups a goal takes, on average over pilots, or for a share of them."""
    units = goal.units(pilot.spread if assurance is None else pilot.spread.exceeded_in(1 - assurance))
    ends = (units, units)
    if pilot.n_rows:
        low, high = pilot.spread.range(1 - goal.level)
        ends = goal.units(low), goal.units(high)
    units = math.nan if pilot.carried else units
    rows = [_rows(pilot, n) for n in (units, *ends)]
    groups = None if pilot.n_groups is None else units
    return SizeLine(goal.power, goal.size, rows[0], rows[1], rows[2], groups, *_of_groups(pilot, ends))


def _rows(pilot: Pilot, units: float) -> float:
    """The number of rows of some rows or groups."""
    return math.ceil(units * pilot.rows_per_unit) if math.isfinite(units) else units


def _of_groups(pilot: Pilot, ends: tuple[float, float]) -> tuple[float | None, float | None]:
    return (None, None) if pilot.n_groups is None else ends
