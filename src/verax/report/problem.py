"""What a report is about: outcomes, forecasts of one or several models, and names, all read once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verax.common.checks import check_flag
from verax.errors import InputError, show
from verax.inference.intervals import WeightsAre
from verax.inputs.arrays import Floats, Ints, to_array, to_host
from verax.inputs.breakdown import labels_of
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.skipping import Skipped
from verax.report.words import distinct
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, cost_range, needs_order
from verax.scores.registry import RULES, as_rules, name_of


@dataclass(frozen=True, eq=False)
class Problem:
    """Checked rows: outcomes as positions, forecasts as they were given.

    Attributes
    ----------
    models : dict
        The forecasts by the name that the page shows, on the host.
    classes : tuple or None
        The classes as they were named; None for positions.
    names : tuple of str
        What the page calls the classes, all different.
    rules : tuple of rules
        The rules on the card. The first is the one that ranks models and rows.
    by : dict
        Labels of the rows for each breakdown.
    skipped : Skipped or None
        The invalid rows that were left out; None unless that was asked for.
    numbers : array or None
        The numbers of the rows among all that were given; None where none was left out.
    """

    models: dict[str, Any]
    y: Any
    classes: tuple[Hashable, ...] | None
    names: tuple[str, ...]
    ordered: bool
    costs: CostsLike | None
    weights: Floats | None
    groups: Any
    by: dict[str, Groups]
    ids: Any
    rules: tuple[Rule, ...]
    normalize: bool
    logits: bool
    weights_are: WeightsAre
    time_ordered: bool
    skipped: Skipped | None = None
    numbers: Ints | None = None

    @classmethod
    def of(
        cls,
        y: object,
        p: object,
        *,
        classes: Sequence[Hashable] | None,
        ordered: bool,
        costs: CostsLike | None,
        weights: object | None,
        groups: object | None,
        by: object | None,
        ids: object | None,
        rules: Sequence[Rule | str] | None,
        normalize: bool,
        logits: bool,
        weights_are: WeightsAre,
        time_ordered: bool,
    ) -> Problem:
        """Read and check everything; `p` is one model or a mapping of several."""
        given = dict(p) if isinstance(p, Mapping) else {"model": p}
        if not given:
            raise InputError("must hold at least one model", argument="p", kind="missing")
        chosen = as_rules(rules) if rules is not None else fitting(ordered)
        read = {}
        for name, forecast in given.items():
            try:
                read[name] = Forecasts(
                    y,
                    forecast,
                    classes=classes,
                    weights=weights,
                    groups=groups,
                    normalize=normalize,
                    logits=logits,
                    ordered=needs_order(chosen, costs=costs, ordered=ordered),
                )
                read[name].check()
            except InputError as error:
                if error.argument != "p" or len(given) == 1:
                    raise
                raise error.replace(source=f"model {show(name)}") from None
        first = next(iter(read.values()))
        check_one_way(first.groups, "the report")
        for name, forecasts in read.items():
            if forecasts.n_classes != first.n_classes:
                raise InputError(
                    "must have the same number of classes for all models",
                    argument="p",
                    kind="length",
                    found=f"{show(name)} has {forecasts.n_classes}, the first {first.n_classes}",
                    values=[name],
                )
        if costs is not None:
            cost_range(costs, None, first.n_classes)
        batch = first.batch(0, first.n_rows)
        labels = range(first.n_classes) if first.classes is None else first.classes
        return cls(
            models={
                shown: to_host(forecasts.given)
                for shown, forecasts in zip(distinct(read), read.values(), strict=True)
            },
            y=to_host(batch.y),
            classes=first.classes,
            names=distinct(labels),
            ordered=ordered,
            costs=costs if costs is not None or not ordered else "quadratic",
            weights=None if batch.weights is None else to_host(batch.weights),
            groups=None if first.groups is None else first.groups.labels[first.groups.codes],
            by=_breakdowns(by, first.n_rows),
            ids=None if ids is None else _ids(ids, first.n_rows),
            rules=by_merit(chosen, first.n_classes, ordered),
            normalize=normalize,
            weights_are=weights_are,
            time_ordered=check_flag("time_ordered", time_ordered),
            logits=logits,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.y)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weights is not None

    @property
    def grouped(self) -> bool:
        """Whether rows belong to groups."""
        return self.groups is not None

    @property
    def named(self) -> bool:
        """Whether rows have ids."""
        return self.ids is not None

    @property
    def n_copies(self) -> float:
        """The number of rows, where weights are numbers of rows with all copies."""
        counted = self.weights is not None and self.weights_are == "counts"
        return float(self.weights.sum()) if counted and self.weights is not None else self.n_rows

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.names)

    @property
    def options(self) -> dict[str, Any]:
        """How the library reads the forecasts."""
        return {"normalize": self.normalize, "logits": self.logits}

    @property
    def primary(self) -> Rule:
        """The rule that ranks models and rows."""
        return self.rules[0]

    def forecasts(self, name: str) -> Forecasts:
        """One model with the outcomes."""
        return Forecasts(self.y, self.models[name], weights=self.weights, groups=self.groups, **self.options)

    def id_of(self, row: int) -> object:
        """The id of a row, or its number."""
        if self.ids is not None:
            return self.ids[row]
        return row if self.numbers is None else int(self.numbers[row])


def fitting(ordered: bool) -> list[Rule]:
    """The rules that fit classes with or without an order."""
    return [rule for rule in RULES.values() if ordered or not rule.ordinal]


def by_merit(rules: list[Rule], n_classes: int, ordered: bool) -> tuple[Rule, ...]:
    """The rule to go by first: RPS for ordered classes, else Brier, else strictly proper, else bounded."""

    def demerits(rule: Rule) -> tuple[bool, ...]:
        holds = rule.properties.at(n_classes)
        name = name_of(rule)
        return (
            not (ordered and name == "rps"),
            name != "brier",
            not holds["strictly_proper"],
            not holds["proper"],
            not holds["bounded"],
        )

    first = min(rules, key=demerits)
    return (first, *(rule for rule in rules if rule != first))


def _ids(ids: object, n_rows: int) -> Any:
    values = to_host(to_array(ids, "ids")[0])
    if values.shape != (n_rows,):
        raise InputError(
            f"must be {n_rows} names, one per row",
            argument="ids",
            kind="length",
            found=f"its shape is {values.shape}",
        )
    return values


def _breakdowns(by: object | None, n_rows: int) -> dict[str, Groups]:
    """The labels of every breakdown; rows without one get a label that says so."""
    if by is None:
        return {}
    columns = dict(by) if isinstance(by, Mapping) else {str(getattr(by, "name", None) or "subgroup"): by}
    return {
        shown: labels_of(column, n_rows)
        for shown, column in zip(distinct(columns), columns.values(), strict=True)
    }
