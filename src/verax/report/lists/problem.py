"""What a report on top lists is about: outcomes, lists of one or several models, and names, all read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.errors import InputError, show
from verax.inference.intervals import WeightsAre
from verax.inputs.arrays import Floats, to_array, to_host
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.skipping import Skipped
from verax.report.words import distinct
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import RULES, as_rules


def holds_lists(p: object) -> bool:
    """Whether forecasts are top lists, or some of several are."""
    given = p.values() if isinstance(p, Mapping) else [p]
    return any(isinstance(each, TopLists) for each in given)


def rules_of_lists(rules: Sequence[Rule | str] | None) -> tuple[Rule, ...]:
    """The rules on the page, without what pads them; the first ranks models and rows."""
    if rules is None:
        return tuple(RULES[name] for name in ("brier", "log_score", "spherical", "pbs"))
    return tuple(r.rule if isinstance(r, Padded) else r for r in as_rules(rules))


@dataclass(frozen=True, eq=False)
class ListProblem:
    """Lists that have met their outcomes.

    Attributes
    ----------
    models : dict
        The lists by the name that the page shows.
    full : dict
        The full distributions of the models that were given so; their lists are the most likely classes.
    rules : tuple of rules
        The rules on the card. The first is the one that ranks models and rows.
    form : dict
        How full distributions are read: their classes, whether they are logits, and so on.
    skipped : Skipped or None
        The invalid rows that the caller has left out.
    """

    models: dict[str, TopLists]
    full: dict[str, Any]
    y: Any
    weights: Floats | None
    groups: Groups | None
    ids: Any
    rules: tuple[Rule, ...]
    weights_are: WeightsAre
    time_ordered: bool
    form: dict[str, Any]
    skipped: Skipped | None = None

    @classmethod
    def of(
        cls,
        y: object,
        p: object,
        *,
        weights: object | None,
        groups: object | None,
        ids: object | None,
        rules: Sequence[Rule | str] | None,
        weights_are: WeightsAre,
        time_ordered: bool,
        classes: Any = None,
        normalize: bool = False,
        logits: bool = False,
    ) -> ListProblem:
        """Read and check everything; `p` is one model or a mapping of several."""
        given = dict(p) if isinstance(p, Mapping) else {"model": p}
        form = {"classes": classes, "normalize": normalize, "logits": logits}
        longest = max(
            int(each.lengths.max(initial=1)) for each in given.values() if isinstance(each, TopLists)
        )
        lists, full = {}, {}
        for shown, forecast in zip(distinct(given), given.values(), strict=True):
            if isinstance(forecast, TopLists):
                lists[shown] = forecast
                continue
            raw = to_array(forecast, "p")[0]
            k = min(longest, int(raw.shape[1]) if raw.ndim == 2 else 2)
            lists[shown] = TopLists.from_probabilities(forecast, k, **form)
            full[shown] = forecast
        sizes = {each.n_classes for each in lists.values()}
        if len(sizes) > 1:
            raise InputError(
                "must have the same number of classes for all models",
                argument="p",
                kind="length",
                found=f"there are {show(sorted(sizes))}",
            )
        first = next(iter(lists.values())).with_outcomes(y, weights=weights, groups=groups)
        check_one_way(first.groups, "the report")
        return cls(
            models=lists,
            full=full,
            y=y,
            weights=None if first.weights is None else np.asarray(first.weights),
            groups=first.groups,
            ids=None if ids is None else to_host(to_array(ids, "ids")[0]),
            rules=rules_of_lists(rules),
            weights_are=weights_are,
            time_ordered=time_ordered,
            form=form,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return next(iter(self.models.values())).n_rows

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return next(iter(self.models.values())).n_classes

    @property
    def total_weight(self) -> float | None:
        """The sum of the weights; None where rows have none."""
        return None if self.weights is None else float(self.weights.sum())

    @property
    def grouped(self) -> bool:
        """Whether rows belong to groups."""
        return self.groups is not None

    @property
    def named(self) -> bool:
        """Whether rows have ids."""
        return self.ids is not None

    @property
    def primary(self) -> Rule:
        """The rule that ranks models and rows."""
        return self.rules[0]

    @property
    def shared(self) -> dict[str, Any]:
        """Weights and groups, as functions take them."""
        return {"weights": self.weights, "groups": self.groups}

    def rows(self, name: str) -> ListRows:
        """The lists of one model with the outcomes."""
        return self.models[name].with_outcomes(self.y, **self.shared)
