"""`verax decide`: what happens at a threshold, for whom decisions are worth it, and what deferring saves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds, Schema

_EXAMPLES = """Examples: `verax decide preds.parquet`,
`verax decide preds.parquet --threshold 0.2 --threshold 0.5 --groups site`,
`verax decide preds.parquet --threshold 'sensitivity>=0.9'`,
`verax decide preds.parquet --threshold cost --miss 5 --plot curves.png`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    without={
        "by": "pass a file with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax evaluate --html` writes the report",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require 'sensitivity>0.8'` checks bounds",
    },
)
def decide(
    given: options.Given,
    reading: Reading,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="T",
            help="Act where the probability is at least this (may be repeated), or what to choose it for: "
            "sensitivity>=0.9, specificity>=0.9, ppv>=0.5, npv>=0.99, youden, f1, balanced_accuracy, "
            "accuracy or cost. By default 0.5.",
        ),
    ] = None,
    miss: Annotated[
        float | None,
        typer.Option(
            metavar="COST",
            help="Cost of a miss, in false alarms, for --threshold cost and deferring.",
        ),
    ] = None,
    defer: Annotated[
        list[float] | None,
        typer.Option(
            metavar="COST",
            help="Cost of deferring a case; a false alarm or wrong class costs 1. May be repeated.",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            metavar="N", help="Folds that show how a chosen threshold varies; groups stay together."
        ),
    ] = 5,
    plot: Annotated[Path | None, options.drawing("the decision curves")] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Show rates at a threshold, decision curves, gains of deferring.

    A row is acted on where the probability of the event is at least the threshold. Of two classes the event
    is the second class; others have one event per class, or with --ordered one for each class above which
    one might act. A threshold for a sensitivity or specificity promises it with the given confidence. Rates
    of other thresholds chosen on the rows are corrected for the choice by resampling.
    """
    from verax.cli.opening import Opened
    from verax.wings.decide.deferral import deferral
    from verax.wings.decide.net_benefit import net_benefit
    from verax.wings.decide.rates.points import operating_points

    at = _threshold(threshold)
    if at == "cost" and miss is None:
        raise InputError("must be given with --threshold cost", argument="miss", kind="missing")
    opened = Opened.of(given, reading)
    rows = opened.in_order(reading.ordered)
    costs: Any = None if miss is None else [[0.0, 1.0], [miss, 0.0]]
    plan: dict[str, Any] = {"confidence": confidence}
    both = {"ordered": reading.ordered, "seed": seed, **plan}
    chosen = {"costs": costs} if at == "cost" else {}
    points = operating_points(rows.handle, threshold=at, folds=folds, **chosen, **both)
    curves = net_benefit(rows.handle, **both)
    limits = defer or [0.1, 0.2, 0.3]
    two = rows.handle.n_classes == 2
    deferred = deferral(rows.handle, defer=limits, costs=costs if two and miss else "zero_one", **plan)
    if plot is not None:
        draw_to(plot, curves.plot())
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        **reading.scale,
        "points": points.to_dict(stored=False),
        "curves": curves.to_dict(stored=False),
        "deferral": deferred.to_dict(stored=False),
    }
    texts = [*rows.reading_lines(), repr(points), f"\n{curves}", f"\n{deferred}"]
    show(result, texts, as_json=as_json, plot=plot)


def _threshold(given: list[str] | None) -> Any:
    """Thresholds that were typed, or what to choose one for."""
    if not given:
        return 0.5
    try:
        return sorted({float(text) for text in given})
    except ValueError:
        if len(given) == 1:
            return given[0]
        raise InputError(
            "must be probabilities, or one text that says what to choose it for",
            argument="threshold",
            found=f"it is {', '.join(given)}",
            values=given,
        ) from None


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, of_type
    from verax.cli.schemas.fields import COLUMN_FILE
    from verax.wings.decide.deferral import Deferral
    from verax.wings.decide.net_benefit import DecisionCurves
    from verax.wings.decide.rates.result import OperatingPoints

    return {
        **COLUMN_FILE,
        "points": of_type(OperatingPoints),
        "curves": of_type(DecisionCurves),
        "deferral": of_type(Deferral),
        "plot": PATH,
    }


def compared() -> Kinds:
    """The fields of the output of `verax compare` by a rate."""
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import BY_SCORES
    from verax.wings.decide.rates.result import OperatingPoints

    return {**BY_SCORES, "rates": of_type(OperatingPoints)}


def definitions() -> dict[str, Schema]:
    """Schemas of parts of results that fields do not tell."""
    from verax.analyses.rates import RATES
    from verax.cli.schemas.building import exactly, face, listed, of_type, record
    from verax.wings.decide.curves import CurveDifference
    from verax.wings.decide.net_benefit import DecisionCurves
    from verax.wings.decide.rates.result import OperatingPoint, Rate

    return {
        "operating_point": record(**face(OperatingPoint), **dict.fromkeys(RATES, of_type(Rate))),
        # Differences of elementary scores are among those of curves, but not here.
        "decision_curves": record(**face(DecisionCurves, differences=listed(exactly(CurveDifference)))),
    }
