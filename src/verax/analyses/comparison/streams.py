"""Models compared on predictions that are not in memory: sums of their losses, part by part.

The sums are those of `compare`, so the results are the same. What resamples rows or needs their order in time
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.cards.scorecard import check_groups
from verax.analyses.comparison.claims import (
    ACCURACY,
    ERROR_DISTANCE,
    OVERCONFIDENCE,
    RULED_OUT,
    SHARPNESS,
    Claims,
    error_column,
    trait_rows,
)
from verax.analyses.comparison.conclusions import conclude
from verax.analyses.comparison.references import (
    FREQUENCIES,
    CountRecipe,
    OtherGroups,
    check_reference,
    uniform,
    uniform_lists,
)
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.traits import Traits
from verax.analyses.listfaults import faults_in, with_fault_recipes
from verax.common.summaries import Each, Summary, Valued, merges
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate, Units
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import count_groups, is_two_way
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows
from verax.scores.base import Rule, losses_of
from verax.scores.registry import name_of

_TRAITS = (ACCURACY, OVERCONFIDENCE, SHARPNESS, RULED_OUT, ERROR_DISTANCE)


class PairedSums(Summary, kind="paired tallies"):
    """Sums of several columns of all models, by name."""

    tallies: Mapping[str, PairedTally] = merges(Each(Valued(PairedTally, packed=True), flat=True))

    def __getitem__(self, name: str) -> PairedTally:
        return self.tallies[name]


@dataclass(frozen=True)
class PairedRecipe(Recipe[PairedSums]):
    """The losses of several models on the same rows, and what explains them.

    Attributes
    ----------
    models : tuple of str
        The models.
    rules : tuple of Rule
        Whose losses are summed.
    reference : str, optional
        A simple forecast that is added as the last model.
    counts : OtherGroups, optional
        The reference "frequencies", which needs the class counts of all rows.
    traits : bool
        Sum the traits of the forecasts, too.
    """

    models: tuple[str, ...]
    rules: tuple[Rule, ...]
    reference: str | None = None
    counts: OtherGroups | None = None
    traits: bool = False

    def take(self, part: Part) -> PairedSums:
        """The sums of some rows."""
        losses = [losses_of(self.rules, part.models[name]) for name in self.models]
        if self.reference is not None:
            losses.append(self._reference(part.rows))
        columns = {
            f"rule:{name_of(rule)}": np.column_stack([np.asarray(to_host(own[i]), float) for own in losses])
            for i, rule in enumerate(self.rules)
        }
        if self.traits:
            rows = [_traits_of(part, name) for name in self.models]
            columns |= {f"trait:{i}": np.column_stack([own[:, i] for own in rows]) for i in _TRAITS}
        return _summed(part, columns)

    def _reference(self, rows: Rows) -> list[Any]:
        if isinstance(rows, ListRows):
            return losses_of(self.rules, uniform_lists(rows.n_rows, rows.n_classes))
        batch = rows.batch(0, rows.n_rows)
        y = to_host(batch.y)
        if self.counts is None:
            return losses_of(self.rules, Forecasts(y, uniform(len(y), rows.n_classes)))
        weights = None if batch.weights is None else to_host(batch.weights)
        return self.counts.losses(self.rules, y, weights, rows.groups)


@dataclass(frozen=True)
class ErrorRecipe(Recipe[PairedSums]):
    """How far wrong decisions are off: a ratio of means, which must be known first."""

    means: Mapping[str, tuple[float, float]]

    def take(self, part: Part) -> PairedSums:
        """The sums of some rows."""
        columns = [error_column(_traits_of(part, name), *means) for name, means in self.means.items()]
        return _summed(part, {f"trait:{ERROR_DISTANCE}": np.column_stack(columns)})


def _traits_of(part: Part, name: str) -> Floats:
    rows = part.models[name]
    assert isinstance(rows, Forecasts)
    return part.once(("traits", name), lambda: trait_rows(rows))


def _summed(part: Part, columns: Mapping[str, Floats]) -> PairedSums:
    rows = part.rows
    batch = rows.batch(0, rows.n_rows)
    weights = None if batch.weights is None else to_host(batch.weights)
    labels = None if rows.groups is None else rows.groups.labels[rows.groups.codes]
    return PairedSums(
        {name: PairedTally(own.shape[1]).update(own, weights, labels) for name, own in columns.items()}
    )


# ---- the comparison -------------------------------------------------------------------------------


def compare_handle(
    handle: Handle, rules: list[Rule], *, ordered: bool, reference: str | None, plan: Resampling
) -> Comparison:
    """`compare` for predictions that are not in memory."""
    names = list(handle.models)
    # Lists do not always say which class is most likely.
    recipe = PairedRecipe(tuple(names), tuple(rules), traits=not handle.lists)
    if reference is not None and reference not in names:
        recipe = replace(recipe, reference=reference, counts=_reference(handle, reference, plan))
    found = handle.summarise(with_fault_recipes(handle, {"sums": recipe}))
    sums: PairedSums = found["sums"]
    comparison = read_comparison(sums, names, rules, ordered=ordered, reference=reference, plan=plan)
    if len(rules) > 1 and len(names) > 1 and comparison.traits:
        comparison = replace(comparison, claims=_claims(handle, sums, comparison.traits, plan))
    faults = {name or names[0]: own for name, own in faults_in(handle, found).items()}
    return comparison.with_skipped(found.skipped).with_faults(faults)


def read_comparison(
    sums: PairedSums,
    names: list[str],
    rules: list[Rule],
    *,
    ordered: bool,
    reference: str | None,
    plan: Resampling,
) -> Comparison:
    """The comparison of models from sums of their losses, without claims about their traits."""
    first = next(iter(sums.tallies.values()))
    if first.labels is not None:
        check_groups(count_groups(first.labels))
    models, differences, notes = {}, {}, []
    for rule in map(name_of, rules):
        tally = sums[f"rule:{rule}"]
        estimate = _estimate(tally, plan)
        models[rule], differences[rule], said = conclude(
            names, tally, estimate, rule=rule, reference=reference, confidence=plan.confidence
        )
        notes += said
    known = f"trait:{ACCURACY}" in sums.tallies
    traits = {name: traits_of(sums, i, ordered) for i, name in enumerate(names)} if known else {}
    n_groups = None if first.labels is None else count_groups(first.labels)
    two_way = first.labels is not None and is_two_way(first.labels)
    units = Units("rows" if first.labels is None else "groups", two_way=two_way)
    return Comparison(
        models,
        differences,
        traits,
        first.n_rows,
        n_groups,
        units.describe("moments"),
        plan.confidence,
        reference,
        tuple(notes),
    )


def _reference(handle: Handle, reference: str, plan: Resampling) -> OtherGroups | None:
    """What the reference needs to know of all rows."""
    check_reference(reference, handle.models, lists=handle.lists)
    if reference != FREQUENCIES:
        return None
    return OtherGroups(handle.summarise({"counts": CountRecipe()})["counts"], plan.copies)


def _estimate(tally: PairedTally, plan: Resampling) -> Estimate:
    return Estimate.of(tally, np.zeros((0, tally.n_models)), Units("rows"), copies=plan.copies)


def traits_of(sums: PairedSums, i: int, ordered: bool) -> Traits:
    """The traits of one model, from the means of its columns."""
    accuracy, over, sharpness, ruled_out, distance = (
        float(sums[f"trait:{trait}"].means[i]) for trait in _TRAITS
    )
    off = distance / (1 - accuracy) if ordered and accuracy < 1 else None
    return Traits(accuracy, accuracy + over, sharpness, ruled_out, off)


def _claims(handle: Handle, sums: PairedSums, traits: dict[str, Traits], plan: Resampling) -> Claims:
    """What the rows support about the traits of models; how far they are off takes another pass."""
    errors: PairedSums | None = None
    if handle.has_rows and any(found.error_distance is not None for found in traits.values()):
        accuracy, distance = (sums[f"trait:{trait}"].means for trait in (ACCURACY, ERROR_DISTANCE))
        means = {name: (float(accuracy[i]), float(distance[i])) for i, name in enumerate(traits)}
        errors = handle.summarise({"errors": ErrorRecipe(means)})["errors"]
    return claims_of(sums, errors, traits, plan)


def claims_of(
    sums: PairedSums, errors: PairedSums | None, traits: dict[str, Traits], plan: Resampling
) -> Claims:
    """What sums support about the traits of models; `errors` are those of distances, if they are known."""

    def p_values(trait: int) -> Floats:
        own: Any = errors if trait == ERROR_DISTANCE else sums
        return _estimate(own[f"trait:{trait}"], plan).p_values()

    return Claims.of(list(traits), p_values, ordered=errors is not None, level=1 - plan.confidence)
