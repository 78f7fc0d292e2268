"""`verax demo`: a tour on models trained on the spot."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.app import app
from verax.cli.output import Json, show
from verax.common.packages import needed
from verax.display.tables import text_table
from verax.display.writing import make_folder, written
from verax.errors import MissingPackageError

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds
    from verax.wings.demo.tour import Example


@app.command(epilog="Examples: `verax demo --out tour`, `verax demo --files examples`")
def demo(
    folder: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The folder that predictions and reports are written to."),
    ] = Path("verax-demo"),
    examples: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="DIR",
            help="Only write the files that examples in the documentation use, into this folder.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train four models, judge their probabilities, write the reports.

    An ordered problem (disease progression in four stages) and a nominal one (ten digits), on data that
    come with scikit-learn, two models each. The predictions are also written as files, to try the other
    commands on. --files writes the small files of all examples in the documentation and in --help instead.
    """
    if examples is not None:
        _write_files(examples, as_json=as_json)
        return
    from verax.wings.demo.tour import digits, progression, tour

    needed("sklearn", "The demo", "sklearn", "scikit-learn")
    make_folder(folder, "out")
    results = []
    for problem in (progression(), digits()):
        predictions = write_predictions(problem, folder)
        if not as_json:
            title = f"== {problem.question} {len(problem.outcomes):,} held-out rows"
            show({}, [title, *(f"\n{text}" for text in tour(problem))], as_json=False)
        try:
            report, verdict = write_report(problem, folder)
        except MissingPackageError as error:
            # The tour does not need it, and says how to get it.
            report, verdict = None, str(error)
        results.append(
            {
                "problem": problem.name,
                "question": problem.question,
                "verdict": verdict,
                "predictions": [str(path) for path in predictions],
                "report": None if report is None else str(report),
            }
        )
        if not as_json:
            show({}, [f"\n{verdict}\n"], as_json=False)
    show({"problems": results, "files": []}, [_next_steps(results)], as_json=as_json)


def _write_files(folder: Path, *, as_json: bool) -> None:
    from verax.wings.demo.files import about, write_files

    make_folder(folder, "files")
    paths = write_files(folder)
    names = [path.relative_to(folder).as_posix() for path in paths]
    lines = text_table([["file", "what it holds"], *([name, about(name)] for name in names)])
    result = {"problems": [], "files": list(map(str, paths))}
    show(
        result,
        [f"Written to {folder}:", *lines, f"Try next:\n  cd {folder}\n  verax evaluate preds.parquet"],
        as_json=as_json,
    )


def write_predictions(problem: Example, out: Path) -> list[Path]:
    """A Parquet file per model, with the outcome, a column per class, and further columns."""
    import pyarrow as pa
    import pyarrow.parquet as papq

    paths = []
    for model, p in problem.models.items():
        columns: dict[str, Any] = {**problem.columns, "outcome": problem.outcomes}
        columns |= {f"p_{name}": p[:, i] for i, name in enumerate(problem.classes)}
        path = out / f"{problem.name}-{model.lower().replace(' ', '-')}.parquet"
        with written(path) as new:
            papq.write_table(pa.table(columns), new)
        paths.append(path)
    return paths


def write_report(problem: Example, out: Path) -> tuple[Path | None, str]:
    """Write the report on a problem; its path, and its verdict."""
    from verax.report import Report
    from verax.report.page import check_packages

    check_packages()
    (_, ids), (by, subgroups) = problem.columns.items()
    report = Report.of(
        problem.outcomes,
        problem.models,
        classes=problem.classes,
        ordered=problem.ordered,
        by={by: subgroups},
        ids=ids,
        title=problem.question,
        source=f"{problem.name}, data that come with scikit-learn",
    )
    path = out / f"{problem.name}.html"
    report.save(path)
    return path, report.verdict


def _next_steps(results: list[dict[str, Any]]) -> str:
    ordered, nominal = results
    first, second = nominal["predictions"]
    verax = "verax" if shutil.which("verax") else sys.argv[0]
    stages = "--ordered --classes low,moderate,high,severe"
    return "\n".join(
        [
            "Written:",
            *(f"  {result['report']}  (open it in a browser)" for result in results if result["report"]),
            *(f"  {path}" for result in results for path in result["predictions"]),
            "Try next:",
            f"  {verax} evaluate {ordered['predictions'][0]} --target outcome {stages} --require 'rps<0.2'",
            f"  {verax} compare {first} {second} --target outcome --id image",
            f"  {verax} worst {first} --target outcome --id image",
        ]
    )


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, TEXT, TEXTS, listed, record

    problem = record(problem=TEXT, question=TEXT, verdict=TEXT, predictions=TEXTS, report=PATH)
    return {"problems": listed(problem), "files": TEXTS}
