"""`verax recalibrate`: which method makes probabilities better, by how much, and new files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.options import reads_files, split
from verax.cli.output import Json, claims_in_json, show
from verax.errors import InputError, passing
from verax.errors import show as shown
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds, Schema
    from verax.wings.recalibrate.result import ListRecalibration, Recalibration

_EXAMPLES = """Examples: `verax recalibrate preds.parquet`,
`verax recalibrate grades.csv --target grade --ordered --classes none,mild,severe --groups patient`,
`verax recalibrate a.parquet --method temperature --apply b.parquet --out calibrated.parquet`,
`verax recalibrate preds.parquet --method isotonic --save isotonic.json`,
`verax recalibrate --load isotonic.json --apply b.parquet --out calibrated.csv`,
`verax recalibrate completions.jsonl --classes 50000 --save scaling.json`
"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "by": "one function is fitted to all rows; pass a file with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax evaluate --html` writes the report, which has the gains of all methods",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def recalibrate(
    reading: Reading,
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help=f"{options.FILES_HELP} None with --load.", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="best (default), blend, none, temperature, prior, bcts, svector, vector, smatrix, dirichlet "
            "or isotonic; for two classes also quadratic, beta or spline; for ordered classes also ordered; "
            "for top lists none, temperature, rest or temperature_rest. With several, the best of them.",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Rule to minimise and to measure the gain; by default brier, or rps if ordered.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", help="Number of folds; groups stay together.")] = 5,
    apply_to: Annotated[
        Path | None,
        typer.Option(
            "--apply",
            metavar="FILE",
            help="Files to recalibrate: a file, a folder or a pattern. Outcomes are not needed.",
        ),
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="OLD=NEW",
            help="Name of a column in the --apply data. May be repeated. By default columns of the "
            "same name, or of the same classes.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output file: .csv, .tsv, .parquet or .arrow. All columns are kept. Top lists are written "
            "as .jsonl, with their outcomes and ids.",
        ),
    ] = None,
    frequencies: Annotated[
        str | None,
        typer.Option(
            metavar="P,...",
            help="Class frequencies of the --apply data: comma-separated numbers, or 'estimate'.",
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the recalibration to this JSON file.")
    ] = None,
    load: Annotated[Path | None, typer.Option(metavar="FILE", help="Use a saved recalibration.")] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Find the best recalibration method, write recalibrated files.

    All applicable methods are compared by cross-validation. The simplest of the best is used if the forecasts
    fail a test of calibration (5 %) and its gain exceeds one standard error; otherwise nothing is changed.
    """
    _check(given, load, apply_to, out, frequencies)
    if out is not None and reading.outputs != "probabilities":
        raise InputError("cannot be given with --out, which writes class probabilities", argument="outputs")
    if load is not None:
        from verax.wings.recalibrate.result import Recalibration

        fitted = Recalibration.load(load)
        file: str | None = None
        taken: Any = None
        texts = [f"{load}: {fitted.verdict}"]
    else:
        assert given
        how = {"method": split(method) or "best", "rule": rule, "folds": folds}
        file, fitted, taken, texts = _fit(given, reading, {**how, "confidence": confidence, "seed": seed})
    n_rows = None
    if apply_to is not None and out is not None:
        n_rows = _apply(fitted, reading, apply_to, out, frequencies, _pairs(renamed), load is not None)
        done = "unchanged" if fitted.method == "none" and frequencies is None else "recalibrated"
        texts.append(f"{out}: {n_rows:,} rows of {apply_to}, {done}.")
    if save is not None:
        fitted.save(save)
    result = {
        "file": file,
        "taken": taken,
        "recalibration": fitted.to_dict(stored=False),
        **claims_in_json(fitted.verdict if load is not None else fitted.verdict.with_source(Typed.source())),
        "applied": None if apply_to is None else {"file": str(apply_to), "out": str(out), "n_rows": n_rows},
    }
    show(result, texts, as_json=as_json, recalibration=save)


def _check(
    given: list[str] | None,
    load: Path | None,
    apply_to: Path | None,
    out: Path | None,
    frequencies: str | None,
) -> None:
    """Refuse what does not go together, before anything is read."""
    if (not given) == (load is None):
        raise InputError(
            "A file to learn from or a recalibration that was kept must be given, and not both",
            argument="load",
            kind="value" if given else "missing",
        )
    if (apply_to is None) != (out is None):
        one, other = ("out", "apply") if out is None else ("apply", "out")
        raise InputError(f"must be given with --{other}", argument=one, kind="missing")
    if frequencies is not None and apply_to is None:
        raise InputError("must be given with --apply", argument="frequencies", kind="value")
    if out is not None:
        from verax.wings.recalibrate.rewriting import WRITTEN, check_can_be_written

        if out.suffix.lower() not in WRITTEN:
            check_can_be_written(out)


def _fit(
    given: list[str], reading: Reading, how: dict[str, Any]
) -> tuple[str, Recalibration, Any, list[str]]:
    """The files, a recalibration learnt from them, how their columns were read, and what to say."""
    from verax.cli.opening import Opened
    from verax.scores.metrics import needs_order
    from verax.scores.registry import parse
    from verax.wings.recalibrate.analysis import recalibrate as learn

    rules = [] if how["rule"] is None else [parse(how["rule"])]
    opened = Opened.of(given, reading)
    rows = opened.in_order(needs_order(rules, ordered=reading.ordered))
    fitted = learn(rows.handle, ordered=reading.ordered, **how)
    taken = rows.taken()
    if not opened.lists:
        fitted = replace(fitted, columns=tuple(taken["probs"])).with_skipped(fitted.skipped)
    return opened.file, fitted, taken, [*rows.reading_lines(), repr(fitted)]


def _pairs(renamed: list[str] | None) -> dict[str, str]:
    """The new names of columns by their old ones."""
    pairs = [text.partition("=") for text in renamed or ()]
    for text, (old, _, new) in zip(renamed or (), pairs, strict=True):
        if not (old and new):
            raise InputError(f"must be OLD=NEW, not {shown(text)}", argument="map", values=[text])
    return {old: new for old, _, new in pairs}


def _apply(
    fitted: Recalibration,
    reading: Reading,
    apply_to: Path,
    out: Path,
    frequencies: str | None,
    renamed: dict[str, str],
    loaded: bool,
) -> int:
    """Write a file with recalibrated probabilities; the number of rows."""
    from verax.wings.recalibrate.result import ListRecalibration
    from verax.wings.recalibrate.rewriting import check_can_be_written, columns_in, rewrite

    if isinstance(fitted, ListRecalibration):
        return _apply_to_lists(fitted, reading, apply_to, out, frequencies)
    check_can_be_written(out)

    columns = reading.columns if loaded and reading.probs else fitted.columns
    if not columns:
        raise InputError(
            "must name the columns of probabilities in the order of the classes",
            argument="probs",
            kind="missing",
            remedies=[passing(probs=...)],
        )
    request = Reading(logits=reading.logits, delimiter=reading.delimiter, decimal=reading.decimal)
    columns = columns_in(apply_to, columns, fitted.classes, renamed, request)
    given: dict[str, Any] = {"frequencies": _frequencies(frequencies), **reading.scale}
    given |= {"invalid": "skip"} if reading.invalid == "skip" else {}
    return rewrite(
        apply_to,
        out,
        columns,
        lambda p: fitted.apply(p, **given),
        delimiter=reading.delimiter,
        decimal=reading.decimal,
        logits=reading.logits,
    )


def _apply_to_lists(
    fitted: ListRecalibration, reading: Reading, apply_to: Path, out: Path, frequencies: str | None
) -> int:
    """Write recalibrated lists; the number of records."""
    from verax.cli.opening import open_files
    from verax.wings.recalibrate.rewriting import check_can_hold_lists, write_lists

    check_can_hold_lists(out)
    if frequencies is not None:
        raise InputError(
            "cannot be used with top lists, which do not say how frequent each class is",
            argument="frequencies",
        )
    handle: Any = open_files(apply_to, "", replace(reading, lists=True), hold="all", densify=False)
    (read,) = handle.loaded().rows.values()
    return write_lists(read, fitted.apply(read.lists), out)


def _frequencies(text: str | None) -> Any:
    if text is None or text == "estimate":
        return text
    try:
        return [float(part) for part in split(text)]
    except ValueError:
        raise InputError(
            f"must be numbers separated by commas, or 'estimate', not {shown(text)}",
            argument="frequencies",
            values=[text],
        ) from None


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import COUNT, PATH, TEXT, TOLD, either, of_type, or_none, record, ref
    from verax.wings.recalibrate.result import Recalibration

    return {
        **TOLD,
        "file": PATH,
        "taken": or_none(either(ref("columns"), ref("list_file"))),
        "recalibration": of_type(Recalibration),
        "applied": or_none(record(file=TEXT, out=TEXT, n_rows=COUNT)),
        "save": PATH,
    }


def definitions() -> dict[str, Schema]:
    """Schemas of the maps, which fields do not tell."""
    from verax.cli.schemas.building import (
        FINITE,
        NUMBERS,
        TEXT,
        TEXTS,
        TRUTH,
        Maybe,
        const,
        either,
        listed,
        of_type,
        record,
    )
    from verax.wings.recalibrate.forms import CalibrationMap

    return {
        "unchanged": record(kind=const("unchanged")),
        "log_linear": record(
            kind=TEXT,
            slopes=either(FINITE, listed(either(FINITE, listed(FINITE)))),
            offsets=listed(FINITE),
            floor=FINITE,
            power=Maybe(FINITE),
            spread=Maybe(FINITE),
        ),
        "isotonic": record(
            kind=TEXT,
            thresholds=TRUTH,
            forecasts=listed(NUMBERS),
            frequencies=listed(NUMBERS),
            spread=FINITE,
        ),
        "blend": record(
            kind=TEXT, methods=TEXTS, parts=listed(of_type(CalibrationMap)), weights=listed(FINITE)
        ),
        "monotone_curve": record(
            kind=TEXT,
            **dict.fromkeys(("knots", "slopes", "offsets"), listed(FINITE)),
            **dict.fromkeys(("level", "floor", "power", "spread"), FINITE),
        ),
        "list_scaling": record(kind=TEXT, slope=FINITE, shift=FINITE, floor=FINITE),
    }
