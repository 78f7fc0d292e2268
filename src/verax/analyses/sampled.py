"""Fits to predictions that are not in memory: on a random sample of their rows, of which results tell.

The sample has the rows with the smallest hashes of their content, or of the names of their groups. So it
does not depend on how rows are divided. Where they are few it is all of them, in their own order, and a fit
says what it says of rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from verax.analyses.samples import Sample, SampleRecipe
from verax.inputs.handles import Handle, Summaries, refuse_lists
from verax.inputs.skipping import MaySkip

R = TypeVar("R", bound=MaySkip)
# So many rows, and so many probabilities, are kept at most.
_ROWS, _NUMBERS = 100_000, 2**23


def on_sample(handle: Handle, fit: Callable[..., R], *, ordered: bool, several: bool = False) -> R:
    """What `fit(y, p, ...)` finds in a sample of the rows; with `several` models p is a dict of theirs."""
    refuse_lists(handle)
    handle = handle.in_order() if ordered else handle
    models = handle.models if several else (handle.one_model(),)
    sample, found = sampled_rows(handle)
    p: Any = {name: sample.p[:, handle.models.index(name)] for name in models}
    y: Any = sample.y
    if handle.classes is not None:
        y = [handle.classes[k] for k in sample.y.tolist()]
    own = {"classes": handle.classes, "weights": sample.weights, "groups": sample.groups}
    result = fit(y, p if several else p[models[0]], **own)
    if len(sample.y) < found.n_rows:
        result = result.with_sample(len(sample.y), found.n_rows)
    return result.with_skipped(found.skipped)


def sampled_rows(handle: Handle) -> tuple[Sample, Summaries]:
    """A sample of the rows, all of them in their order where they are few or in memory."""
    most = max(1, min(_ROWS, _NUMBERS // (len(handle.models) * handle.n_classes)))
    found = handle.summarise({"sample": SampleRecipe(most)})
    return found["sample"].whole_groups().in_order(), found
