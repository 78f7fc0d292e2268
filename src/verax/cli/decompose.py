"""`verax decompose`: where a score comes from, and whether the forecasts are calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.calibration.decomposition import decompose as split
from verax.analyses.calibration.reliability import reliability
from verax.analyses.calibration.summary import add_skill
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show
from verax.inputs.reading import Reading
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, parse

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax decompose preds.parquet`,
`verax decompose grades.csv --target grade --ordered --classes none,mild,severe --plot reliability.png`,
`verax decompose preds.parquet --rule log_score --bootstrap 1000 --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "by": "`verax evaluate --by` decomposes the score of each subgroup",
        "html": "`verax evaluate --html` writes the report, which has the decomposition",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require 'miscalibration<0.01'` checks bounds",
    },
)
def decompose(
    given: options.Given,
    reading: Reading,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="brier, log, rps or ranked_log; by default brier, or rps for ordered classes.",
        ),
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Random draws for confidence intervals and the calibration test; 0 for none. By default "
            "1,000, and fewer with more than 48 classes, as in the report.",
        ),
    ] = None,
    plot: Annotated[Path | None, options.drawing("reliability curves")] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a score into miscalibration, discrimination, uncertainty.

    The score is miscalibration - discrimination + uncertainty. Very large files are streamed, and the result
    states the approximation error. The Brier score of top lists is split over the listed classes and the
    unlisted ones together.
    """
    from verax.cli.opening import Opened

    chosen = parse(rule or default_rules(ordered=reading.ordered)[0])
    order_matters = needs_order([chosen], ordered=reading.ordered)
    opened = Opened.of(given, reading)
    plan: dict[str, Any] = {"seed": seed, "confidence": confidence}
    rows = opened.in_order(order_matters)
    how: dict[str, Any] = {"rule": chosen, "bootstrap": bootstrap, "weights_are": reading.weights_are, **plan}
    decomposition = split(rows.handle, **how)
    # Skill is known of full distributions only.
    summary = None if opened.lists else add_skill(decomposition, rows.handle)
    if plot is not None:
        draw_to(plot, reliability(rows.handle, ordered=chosen.ordinal, **plan).plot())
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        **reading.scale,
        "decomposition": decomposition.to_dict(stored=False),
        "calibration": None if summary is None else summary.to_dict(stored=False),
    }
    texts = [*rows.reading_lines(), repr(decomposition), *([] if summary is None else [f"\n{summary}"])]
    show(result, texts, as_json=as_json, plot=plot)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.analyses.calibration.components import Decomposition
    from verax.cli.schemas.building import PATH, TRUTH, of_type
    from verax.cli.schemas.fields import ANY_FILE, CALIBRATION

    return {
        **ANY_FILE,
        "normalize": TRUTH,
        "logits": TRUTH,
        "decomposition": of_type(Decomposition),
        "calibration": CALIBRATION,
        "plot": PATH,
    }
