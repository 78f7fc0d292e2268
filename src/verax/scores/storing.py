"""Tallies as values that can be stored, rules by name: reading runs no stored code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from verax.common.specs import Several, Text
from verax.common.stored import inside, mapping, text
from verax.engines.stats import Formula
from verax.engines.tally import RuleSums
from verax.errors import InputError
from verax.scores.base import Rule
from verax.scores.coverage import LIST_METRICS, ListMetric, TopKError
from verax.scores.metrics import METRICS, DecisionMetric
from verax.scores.registry import name_of, stored_rule

# What is not a rule is stored with this before its name, which no rule has.
_OF_LISTS = "lists:"


def names_of(formulas: Iterable[Formula]) -> list[str]:
    """Names from which `formulas_named` finds the same rules and metrics of lists.

    >>> import verax as vx
    >>> names_of([vx.brier, vx.penalized(vx.rps, penalty="minimal"), *LIST_METRICS[:1]])
    ['brier', "penalized(rps, penalty='minimal')", 'lists:accuracy']
    """
    return [rule_name(formula) for formula in formulas]


def formulas_named(names: Iterable[str]) -> list[Formula]:
    """The rules and metrics of lists with these names."""
    metrics = {_OF_LISTS + metric.name: metric for metric in LIST_METRICS}
    return [metrics[name] if name in metrics else stored_rule(name) for name in map(text, names)]


def rule_name(formula: Formula) -> str:
    """The name of one of them."""
    if isinstance(formula, (ListMetric, TopKError)) and formula in LIST_METRICS:
        return _OF_LISTS + formula.name
    if isinstance(formula, Rule) and _is_read_back(formula):
        return name_of(formula)
    raise InputError(
        "must be rules of verax, to be stored: they are stored by name",
        argument="rules",
        kind="type",
        found=f"{formula!r} is not known by its name",
        values=[formula],
    )


def _is_read_back(rule: Rule) -> bool:
    try:
        return stored_rule(name_of(rule)) == rule
    except ValueError:
        return False


def metric_values(metric: DecisionMetric) -> dict[str, Any]:
    """A registered metric of decisions as values that can be stored and compared.

    >>> from verax.scores.metrics import METRICS
    >>> metric_values(METRICS["ec"])
    {'name': 'ec', 'costs': 'quadratic', 'normalize': None}
    """
    costs, normalize = metric.settings or (None, None)
    table = costs if costs is None or isinstance(costs, str) else np.asarray(costs, float).tolist()
    return {"name": metric.name, "costs": table, "normalize": normalize}


def metric_named(values: Mapping[str, Any]) -> DecisionMetric:
    """The metric of `metric_values`."""
    metric = METRICS[text(mapping(values)["name"])]
    if metric.with_costs is None:
        return metric
    return metric.with_costs(values["costs"], values["normalize"])


def tally_values(tally: RuleSums) -> dict[str, Any]:
    """A tally as values that can be stored.

    >>> import verax as vx
    >>> tally = RuleSums([vx.brier], 2).update(vx.Forecasts([0, 1], [[0.8, 0.2], [0.6, 0.4]]))
    >>> float(tally_of(tally_values(tally)).moments.mean[0]) == float(tally.moments.mean[0])
    True
    """
    return {"rules": names_of(tally.rules), **tally.to_values()}


def tally_of(values: Mapping[str, Any]) -> RuleSums:
    """The tally of `tally_values`."""
    rest = dict(mapping(values))
    with inside("rules"):
        rules = formulas_named(Several(Text("equal")).read(rest.pop("rules", None), {}))
    return RuleSums.from_values(rest, rules)
