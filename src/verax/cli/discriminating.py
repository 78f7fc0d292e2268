"""`verax compare` by how models rank rows, and by rates of decisions at a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from verax.cli.comparing import show_compared
from verax.cli.models import open_models, paths_of
from verax.cli.options import number_or_text
from verax.cli.require import bounds_on_difference
from verax.common.wings import answer_to
from verax.errors import InputError, passing
from verax.inputs.reading import Reading
from verax.scores.naming import METRICS_ELSEWHERE, RANKINGS

Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        help="The threshold of a rate: a probability, or what to choose it for. Choices are those of "
        "`verax decide`, such as youden or 'sensitivity>=0.9'. By default 0.5.",
    ),
]


def named_score(rules: list[str] | None, threshold: str | None) -> str | None:
    """The ranking score or rate that models are compared by; None where rules are named."""
    from verax.analyses.rates import COMPARED

    names = [METRICS_ELSEWHERE.get(name.lower(), name) for name in rules or ()]
    # Without a threshold, accuracy is that of the most likely class, which the zero-one loss compares.
    rates = [name for name in COMPARED if name != "accuracy" or threshold is not None]
    known = [name for name in names if name in RANKINGS or name in rates]
    if not known:
        if threshold is not None:
            rate = [passing("for a rate at it", rule="sensitivity")]
            raise InputError("is for rates of decisions", argument="threshold", remedies=rate)
        return None
    if len(names) > 1:
        raise InputError(
            f"must be {known[0]} alone: it is no loss of rows, and is compared in another way",
            argument="rule",
            values=names,
        )
    if known[0] in RANKINGS and threshold is not None:
        raise InputError(f"is for rates of decisions, not for {known[0]}", argument="threshold")
    return known[0]


def show_scores(
    score: str,
    threshold: str | None,
    given: list[str],
    reading: Reading,
    *,
    shared_ids: bool,
    require: Sequence[str] | None,
    confidence: float,
    seed: int,
    as_json: bool,
) -> None:
    """Compare models by a ranking score or a rate, print the result, and hold it to bounds."""
    from verax.analyses.discrimination import ranking

    paths = paths_of(given, reading)
    bounds = bounds_on_difference(require, list(paths))
    ordered = reading.ordered or score == "c_index"
    rows, about = open_models(paths, reading, ordered=ordered, shared_ids=shared_ids)
    comparison: Any
    if score in RANKINGS:
        how: dict[str, Any] = {} if score == "c_index" else {"ordered": ordered}
        comparison = getattr(ranking, RANKINGS[score])(rows.handle, confidence=confidence, **how)
        result = {"ranking": comparison.to_dict(stored=False)}
    else:
        how = {"ordered": ordered, "confidence": confidence, "seed": seed}
        compared_by = answer_to("comparison by a rate")
        comparison = compared_by(rows.handle, score, number_or_text(threshold or "0.5"), **how)
        result = {"rates": comparison.points.to_dict(stored=False)}
    result |= {
        "files": dict(rows.files),
        **about.to_dict(),
        "rule": score,
    }
    show_compared(comparison, result, bounds, about.lines(), plot=None, as_json=as_json)
