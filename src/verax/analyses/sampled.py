"""Rows that fits are to: all rows in memory, or a random sample of others, of which results tell.

The sample has the rows with the smallest hashes of their content, or of the names of their groups. So it
does not depend on how rows are divided. Where they are few it is all of them, in their own order, and a fit
says what it says of rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from verax._settings import settings
from verax.analyses.list_samples import ListSample, ListSampleRecipe
from verax.analyses.samples import Sample, SampleRecipe
from verax.common.hashing import mixed
from verax.common.ids import name_hash
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle, Summaries
from verax.inputs.memory import open_rows
from verax.inputs.skipping import MaySkip

R = TypeVar("R", bound=MaySkip)
# Probabilities that are kept at most.
_NUMBERS = 2**23
# Earlier versions kept this number of probabilities of all models, or of lists, for reports.
_EARLIER, _EARLIER_LISTS = 60_000, 10_000


def rows_to_fit(
    y: Any,
    p: Any,
    read: Mapping[str, Any],
    *,
    ordered: bool,
    several: bool = False,
    most: Callable[[int], int] | None = None,
) -> tuple[Any, Any, dict[str, Any], Callable[[R], R]]:
    """Outcomes, forecasts and options that a fit is to, and what tells its result of a sample.

    They are those given, or a sample of the rows of a handle; with `several` models, forecasts are a mapping.
    With `most`, the largest number of rows for a number of classes, rows in memory are sampled like others.
    """
    in_memory = not isinstance(y, Handle)
    if in_memory and most is None:
        return y, p, dict(read), lambda result: result
    handle = open_rows(y, p, ordered=ordered, dense=True, **(read if in_memory else {}))
    if in_memory and most is not None and (handle.n_rows or 0) <= most(handle.n_classes):
        return y, p, dict(read), lambda result: result
    models = handle.models if several else (handle.one_model(),)
    sample, summaries = sampled_rows(handle, None if most is None else most(handle.n_classes))
    drawn: Any = {name: sample.p[:, handle.models.index(name)] for name in models}
    outcomes: Any = sample.y
    if handle.classes is not None:
        outcomes = [handle.classes[k] for k in sample.y.tolist()]

    def tell(result: R) -> R:
        return sample.tell(result, summaries.n_rows).with_skipped(summaries.skipped)

    options = {"classes": handle.classes, "weights": sample.weights, "groups": sample.groups}
    return outcomes, drawn if several else drawn[models[0]], options, tell


def sampled_rows(handle: Handle, most: int | None = None) -> tuple[Sample, Summaries]:
    """A sample of the rows, all of them in their order where they are few; or in memory, without `most`."""
    summaries = handle.summarise({"sample": sample_recipe(handle, most)})
    return summaries["sample"].at_most(most), summaries


def sample_recipe(handle: Handle, most: int | None) -> SampleRecipe:
    """The recipe of a sample; files of earlier versions have samples of other sizes."""
    cells = len(handle.models) * handle.n_classes
    usual = max(1, min(settings.sampled_rows, _NUMBERS // cells))
    if most is None:
        return SampleRecipe(usual)
    recipes = [SampleRecipe(size, everything=False) for size in (most, max(_EARLIER // cells, 500), usual)]
    return next((recipe for recipe in recipes if handle.knows(recipe)), recipes[0])


def sampled_lists(handle: Handle, most: int | None) -> tuple[ListSample, Summaries]:
    """A sample of the lists of the only model, all of them in their order where they are few; or in memory,
    without `most`.
    """
    recipe = list_sample_recipe(handle, handle.one_model(), most)
    summaries = handle.summarise({"sample": recipe})
    return summaries["sample"].at_most(most), summaries


def list_sample_recipe(handle: Handle, model: str, most: int | None) -> ListSampleRecipe:
    """The recipe of a sample of lists; files of earlier versions have samples of other sizes."""
    if most is None:
        return ListSampleRecipe(model, settings.sampled_rows)
    sizes = most, max(_EARLIER_LISTS // len(handle.models), 500), settings.sampled_rows
    recipes = [ListSampleRecipe(model, size, everything=False) for size in sizes]
    return next((recipe for recipe in recipes if handle.knows(recipe)), recipes[0])


# Where the distribution function of a Poisson number with mean 1 rises.
_STEPS = np.cumsum(np.exp(-1.0) / np.cumprod([1, *range(1, 25)]))


def poisson_copies(groups: Groups, n: int, seed: int) -> Iterator[Floats]:
    """How often each row is in each replicate: a Poisson number with mean 1, the same for all rows of a
    group.

    It comes from the name of the group, the number of the replicate and the seed alone. So the replicates do
    not depend on how rows are divided, nor on who reads them.

    >>> groups = Groups.of(np.array(["a", "b", "a"]), 3)
    >>> [copies.tolist() for copies in poisson_copies(groups, 3, seed=0)]
    [[1.0, 0.0, 1.0], [1.0, 2.0, 1.0], [2.0, 0.0, 2.0]]
    """
    names = np.array([name_hash(label) for label in groups.labels.tolist()], np.uint64)
    for replicate in range(n):
        (stream,) = mixed(np.array([seed * 1_000_003 + replicate], np.uint64))
        uniform = (mixed(names ^ stream) >> np.uint64(11)) * 2.0**-53
        yield np.searchsorted(_STEPS, uniform, side="right").astype(float)[groups.codes]


def drawn_groups(weights: Floats, whole: float) -> float:
    """How many groups of equal weight tell as much, from the weights of Poisson replicates and of all rows.

    A replicate varies by the sum of the squared weights of the groups.

    >>> drawn_groups(np.array([6.0, 10.0, 8.0, 8.0, 4.0, 12.0]), 8.0)
    9.6
    """
    spread = float(np.mean((weights - whole) ** 2))
    return whole**2 / spread if spread > 0 else np.inf
