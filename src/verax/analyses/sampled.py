"""Rows that fits are to: all rows in memory, or a random sample of others, of which results tell.

The sample has the rows with the smallest hashes of their content, or of the names of their groups. So it
does not depend on how rows are divided. Where they are few it is all of them, in their own order, and a fit
says what it says of rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from verax._settings import settings
from verax.analyses.list_samples import ListSample, ListSampleRecipe
from verax.analyses.samples import Sample, SampleRecipe
from verax.inputs.handles import Handle, Summaries
from verax.inputs.memory import open_rows
from verax.inputs.skipping import MaySkip

R = TypeVar("R", bound=MaySkip)
# Probabilities that are kept at most.
_NUMBERS = 2**23


def rows_to_fit(
    y: Any, p: Any, read: Mapping[str, Any], *, ordered: bool, several: bool = False
) -> tuple[Any, Any, dict[str, Any], Callable[[R], R]]:
    """Outcomes, forecasts and options that a fit is to, and what tells its result of a sample.

    They are those given, or a sample of the rows of a handle; with `several` models, forecasts are a mapping.
    """
    if not isinstance(y, Handle):
        return y, p, dict(read), lambda result: result
    handle = open_rows(y, p, ordered=ordered, dense=True)
    models = handle.models if several else (handle.one_model(),)
    sample, found = sampled_rows(handle)
    drawn: Any = {name: sample.p[:, handle.models.index(name)] for name in models}
    outcomes: Any = sample.y
    if handle.classes is not None:
        outcomes = [handle.classes[k] for k in sample.y.tolist()]

    def tell(result: R) -> R:
        if len(sample.y) < found.n_rows:
            result = result.with_sample(len(sample.y), found.n_rows)
        return result.with_skipped(found.skipped)

    own = {"classes": handle.classes, "weights": sample.weights, "groups": sample.groups}
    return outcomes, drawn if several else drawn[models[0]], own, tell


def sampled_rows(handle: Handle) -> tuple[Sample, Summaries]:
    """A sample of the rows, all of them in their order where they are few or in memory."""
    most = max(1, min(settings.sampled_rows, _NUMBERS // (len(handle.models) * handle.n_classes)))
    found = handle.summarise({"sample": SampleRecipe(most)})
    return found["sample"].whole_groups().in_order(), found


def sampled_lists(handle: Handle) -> tuple[ListSample, Summaries]:
    """A sample of the lists of the only model, all of them in their order where they are few or in memory."""
    found = handle.summarise({"sample": ListSampleRecipe(handle.one_model(), settings.sampled_rows)})
    return found["sample"].whole_groups().in_order(), found
