"""`verax sets`: how good prediction sets are, and sets made by conformal prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds, Schema

_EXAMPLES = """Examples: `verax sets preds.parquet --level 0.9`,
`verax sets test.parquet --calibrate calibration.parquet --level 0.9 --by site --html sets.html`,
`verax sets grades.csv --calibrate held-out.csv --target grade --level 0.9 --score rps --ordered
--classes none,mild,severe`,
`verax sets preds.parquet --threshold 0.2 --plot sets.png`,
`verax sets diagnoses.csv --sets considered --classes flu,cold,covid --level 0.9`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    sets=True,
    without={
        "weights_are": "weights are importance weights here",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def sets(
    given: options.Given,
    reading: Reading,
    level: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Claimed coverage, such as 0.9: the probability that sets reach."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Cost of a class in the level-set score, where a miss costs 1; without --level, sets are "
            "the classes above it.",
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows to calibrate the sets on, by split conformal prediction; held-out rows.",
        ),
    ] = None,
    score: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Nonconformity score with --calibrate: lac, aps, or a rule such as rps."
        ),
    ] = "lac",
    plot: Annotated[Path | None, options.drawing("sizes and coverage")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with drawings and tables.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save the conformal predictor to this JSON file, with --calibrate."
        ),
    ] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Judge prediction sets, or make them by conformal prediction.

    Without --calibrate, sets are built from the stated probabilities: the most likely classes until they
    reach --level. Top lists are the sets of the classes they name. --sets names the columns of sets that are
    in the file.
    """
    from verax.cli.opening import Opened
    from verax.wings.sets.analysis import evaluate_sets

    if calibrate is not None and reading.sets:
        raise InputError(
            "makes sets of probabilities, and the file has sets", argument="calibrate", kind="value"
        )
    if calibrate is None and save is not None:
        raise InputError("must be given with --calibrate", argument="save", kind="value")
    opened = Opened.of(given, reading)
    made = None if calibrate is None else _calibrated(calibrate, reading, level, score, seed)
    rows = opened.in_order(reading.ordered)
    how: dict[str, Any] = {
        "level": level,
        "threshold": threshold,
        "ordered": reading.ordered,
        "confidence": confidence,
    }
    given_sets = rows.handle if made is None else made.apply(rows.handle)
    judged = evaluate_sets(given_sets, by=rows.handle.by or None, **how)
    if made is not None and save is not None:
        made.save(save)
    if plot is not None:
        draw_to(plot, judged.plot())
    if html is not None:
        from verax.wings.sets.page import save_sets_page

        save_sets_page(judged, html, source=opened.file)
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        "conformal": None if made is None else made.to_dict(stored=False),
        "sets": judged.to_dict(stored=False),
    }
    texts = [*rows.reading_lines(), *([] if made is None else [made._text()]), judged._text()]
    verdict = judged.verdict.with_source(Typed.source())
    show(result, texts, as_json=as_json, verdict=verdict, predictor=save, plot=plot, page=html)


def _calibrated(file: Path, reading: Reading, level: float | None, score: str, seed: int) -> Any:
    """The conformal predictor of the rows of a file."""
    from verax.cli.opening import Opened
    from verax.inputs.handles import no_lists
    from verax.wings.sets.conformal import conformal
    from verax.wings.sets.quantiles import Nonconformity

    if level is None:
        raise InputError("must be given with --calibrate", argument="level", kind="missing")
    opened = Opened.of([str(file)], reading)
    if opened.lists:
        raise no_lists(opened.file)
    ordered = reading.ordered or Nonconformity.of(score, seed).ordinal
    return conformal(opened.in_order(ordered).handle, level=level, score=score, seed=seed)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, TOLD, of_type, or_none
    from verax.cli.schemas.fields import ANY_FILE, KEPT
    from verax.wings.sets.conformal import Conformal
    from verax.wings.sets.result import SetEvaluation

    return {
        **TOLD,
        **ANY_FILE,
        "conformal": or_none(of_type(Conformal)),
        "sets": of_type(SetEvaluation),
        "plot": PATH,
        **KEPT,
    }


def definitions() -> dict[str, Schema]:
    """Schemas of parts of results that fields do not tell."""
    from verax.cli.schemas.building import COUNT, TEXT, record

    return {"nonconformity": record(name=TEXT, seed=COUNT)}
