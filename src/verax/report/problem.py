"""What a report is about: the names of models and classes, options, and what was counted in the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax._settings import settings
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.words import class_titles, distinct
from verax.common.checks import check_flag
from verax.errors import InputError
from verax.inference.intervals import WeightsAre
from verax.inputs.arrays import to_array
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import label_columns
from verax.inputs.handles import Handle, Summaries
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import open_rows
from verax.inputs.rows import Rows
from verax.inputs.skipping import Skipped, without_invalid
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import CostsLike, cost_range, needs_order
from verax.scores.registry import (
    RULES,
    as_rules,
    compared_rules,
    fitting_rules,
    headline_first,
    headline_rule,
)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a report is about. It holds no rows.

    Attributes
    ----------
    models : dict
        The names of the models as the page shows them, by the names that the handle has.
    names : tuple of str
        The labels of the classes, all different; empty for top lists.
    titles : tuple of str
        What the page calls the classes: with the name of the outcome if they are numbers.
    rules : tuple of rules
        The rules on the card. The first is the one that ranks models and rows.
    by : tuple of str
        The names of the breakdowns.
    lists : bool
        Whether the forecasts are top lists.
    full : tuple of str
        The models that were given as full distributions beside lists.
    n_rows, weight : int, float
        The number of rows, and the sum of their weights.
    skipped : Skipped or None
        The invalid rows that were left out; None unless that was asked for.
    again : bool
        Whether rows can be read again at little cost.
    compared : tuple of rules
        The rules that models are compared by in words; the first is that which ranks models.
    """

    models: dict[str, str]
    n_classes: int
    names: tuple[str, ...]
    titles: tuple[str, ...]
    ordered: bool
    costs: CostsLike | None
    rules: tuple[Rule, ...]
    by: tuple[str, ...]
    lists: bool
    weights_are: WeightsAre
    time_ordered: bool
    full: tuple[str, ...] = ()
    n_rows: int = 0
    weight: float = 0.0
    weighted: bool = False
    grouped: bool = False
    named: bool = False
    rescaled: bool = False
    logits: bool = False
    rated: bool = False
    skipped: Skipped | None = None
    again: bool = False
    compared: tuple[Rule, ...] = ()

    @classmethod
    def of(
        cls,
        handle: Handle,
        rules: Sequence[Rule | str] | None,
        *,
        ordered: bool,
        costs: CostsLike | None,
        weights_are: WeightsAre,
        time_ordered: bool = False,
        full: Sequence[str] = (),
    ) -> Problem:
        """What is known before the rows are read."""
        if handle.lists:
            for name, given in (("ordered", ordered), ("costs", costs is not None)):
                if given:
                    raise InputError("cannot be used in a report on top lists", argument=name)
            chosen = rules_of_lists(rules)
            compared: Sequence[Rule] = chosen
        else:
            chosen = headline_first(rules, ordered=ordered)
            compared = compared_rules(rules, ordered=ordered)
        if costs is not None:
            cost_range(costs, None, handle.n_classes)
        if check_flag("time_ordered", time_ordered) and handle.kept is None:
            raise InputError(
                "cannot be used with predictions that are not in memory", argument="time_ordered"
            )
        names = () if handle.lists else distinct(handle.class_names)
        shown = dict(zip(handle.models, distinct(handle.models), strict=True))
        return cls(
            models=shown,
            n_classes=handle.n_classes,
            names=names,
            titles=class_titles(names, handle.outcome),
            ordered=ordered,
            costs=costs if costs is not None or not ordered else "quadratic",
            rules=chosen,
            by=distinct(handle.by),
            lists=handle.lists,
            weights_are=weights_are,
            time_ordered=time_ordered,
            full=tuple(shown[name] for name in full),
            compared=chosen[:1] if handle.lists and rules is None else tuple(compared),
        )

    def counted(self, handle: Handle, summaries: Summaries) -> Problem:
        """With what was counted in the rows."""
        card: Scorecard = summaries[f"{handle.models[0]}/card"]
        check_whole(card, handle.name)
        survey = summaries["survey"]
        return replace(
            self,
            n_rows=summaries.n_rows,
            weight=card.weight,
            weighted=survey.weighted,
            grouped=card.n_groups is not None,
            named=survey.named,
            rescaled=getattr(survey, "rescaled", False),
            logits=getattr(survey, "logits", False),
            rated=getattr(survey, "rated", False),
            skipped=summaries.skipped,
            again=handle.kept is not None
            or (handle.has_rows and summaries.n_rows <= settings.read_again_up_to),
        )

    @property
    def n_copies(self) -> float:
        """The number of rows, where weights are numbers of rows with all copies."""
        return self.weight if self.weighted and self.weights_are == "counts" else self.n_rows

    @property
    def primary(self) -> Rule:
        """The rule that ranks models and rows."""
        return self.rules[0]

    @property
    def calibrated_by(self) -> Rule:
        """The rule whose miscalibration is shown."""
        return headline_rule(ordered=self.ordered)


def rules_of_lists(rules: Sequence[Rule | str] | None) -> tuple[Rule, ...]:
    """The rules on the page of lists, without what pads them; the first ranks models and rows."""
    if rules is None:
        return tuple(RULES[name] for name in ("brier", "log_score", "spherical", "pbs"))
    return tuple(r.rule if isinstance(r, Padded) else r for r in as_rules(rules))


# ---- rows in memory --------------------------------------------------------------------------------


def open_given(
    y: object,
    p: object,
    *,
    rules: Sequence[Rule | str] | None,
    ordered: bool,
    costs: CostsLike | None,
    by: Any,
    skip: bool,
    skipped: Skipped | None,
    numbers: Any,
    **read: Any,
) -> tuple[Handle, dict[str, Rows]]:
    """A handle on what was given, and the rows of the models that were full distributions beside lists."""
    chosen = fitting_rules(rules, ordered=ordered)
    in_order = needs_order(chosen, costs=costs, ordered=ordered)
    options: dict[str, Any] = {"skipped": skipped, "numbers": numbers, **read}
    if p is None:
        return open_rows(y, None, ordered=in_order, by=by, alone=True, **options), {}
    named = dict(p) if isinstance(p, Mapping) else {"model": p}
    given: dict[str, Any] = dict(zip(distinct(named), named.values(), strict=True))
    columns = label_columns(by)
    if any(isinstance(forecasts, TopLists) for forecasts in given.values()):
        if skip:
            raise InputError("cannot be used in a report on top lists", argument="invalid")
        return _open_lists(y, given, by=columns, **options)
    if skip:
        per_row = {"y": y, "p": given, "by": columns or None, **read}
        valid, options["skipped"], options["numbers"] = without_invalid(per_row)
        y, given, columns = valid.pop("y"), valid.pop("p"), valid.pop("by") or {}
        options |= valid
    return open_rows(y, given, ordered=in_order, dense=True, by=columns, **options), {}


def _open_lists(
    y: object, given: dict[str, Any], *, classes: Any, normalize: bool, logits: bool, **options: Any
) -> tuple[Handle, dict[str, Rows]]:
    """Lists, and full distributions among them cut to lists of the same length."""
    form = {"classes": classes, "normalize": normalize, "logits": logits}
    longest = max(
        int(forecast_lists.lengths.max(initial=1))
        for forecast_lists in given.values()
        if isinstance(forecast_lists, TopLists)
    )
    lists, full = {}, {}
    for name, forecast in given.items():
        lists[name] = forecast
        if not isinstance(forecast, TopLists):
            raw = to_array(forecast, "p")[0]
            k = min(longest, int(raw.shape[1]) if raw.ndim == 2 else 2)
            lists[name] = TopLists.from_probabilities(forecast, k, **form)
            full[str(name)] = Forecasts(
                y, forecast, weights=options["weights"], groups=options["groups"], **form
            )
    return open_rows(y, lists, **options), dict(full)
