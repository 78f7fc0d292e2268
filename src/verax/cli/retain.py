"""`verax retain`: what metrics become as rows are removed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from verax.cli import options
from verax.cli.frame import app
from verax.cli.options import reading, split, spoken
from verax.cli.output import Json, draw_to, progress, show
from verax.curves import SEES_THE_OUTCOME, Doubt, RetentionCurves, as_metrics, doubt, draw
from verax.cuts import Options
from verax.errors import InputError
from verax.metrics import METRICS, needs_order
from verax.registry import as_rules
from verax.rule import Rule
from verax.tables import text_table

_EXAMPLES = """Examples:
`verax retain grades.csv --target grade --ordered --classes none,mild,severe --metric ec`,
`verax retain preds.parquet --doubt entropy --bootstrap 200 --plot curve.png`"""


@app.command(epilog=_EXAMPLES)
def retain(
    file: options.File,
    rule: options.Rules = None,
    doubt_by: Annotated[
        list[str] | None,
        typer.Option(
            "--doubt",
            help="Rank rows without their outcome instead: by max_probability, entropy, or the loss that "
            "a rule expects. May be repeated.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help=f"One of {', '.join(METRICS)}; by default qwk for ordered classes, else accuracy. "
            "May be repeated."
        ),
    ] = None,
    removed: Annotated[
        str | None, typer.Option(help="Percentages to remove, such as 0,5,10,20; by default 0 to 20.")
    ] = None,
    area: Annotated[str, typer.Option(help="mean (the mean height) or steps (unit spacing).")] = "mean",
    bootstrap: Annotated[int, typer.Option(help="Replicates for intervals; 0 for none.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves to this file.")] = None,
    target: options.Target = None,
    probs: options.Probs = None,
    classes: options.Classes = None,
    ordered: options.Ordered = False,
    positive: options.Positive = None,
    weights: options.Weights = None,
    groups: options.Groups = None,
    logits: options.Logits = False,
    normalize: options.Normalize = False,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    as_json: Json = False,
) -> None:
    """Remove the worst rows little by little and see what becomes of a metric, and of the area under it.

    The order needs all rows: of each, its loss by every rule (8 bytes), its outcome and its decision are
    kept, not its probabilities.
    """
    from verax import files

    with spoken(file):
        keys = _keys(rule, doubt_by, ordered)
        metrics = as_metrics(metric or ["qwk" if ordered else "accuracy"])
        cuts = Options(
            _shares(removed), _area(area), "nan", bootstrap, seed, confidence, sees_outcome=not doubt_by
        )
        order_matters = needs_order(keys, metrics, ordered=ordered)
        source = files.open(
            file,
            **reading(target=target, probs=probs, classes=classes, delimiter=delimiter),
            weights=weights,
            groups=groups,
            positive=positive,
            ordered=order_matters,
            logits=logits,
            decimal=decimal,
        )
        with progress(f"Reading {file.name}", source.n_rows) as advance:
            batches = files.forecasts_in(
                source, advance, normalize=normalize, logits=logits, ordered=order_matters
            )
            curves = draw((forecasts for forecasts, _ in batches), keys, metrics, cuts)
    if plot is not None:
        axes = curves.plot()
        draw_to(plot, (axes[0] if isinstance(axes, list) else axes).figure)
    result = {
        "command": "retain",
        "file": str(file),
        "taken": source.roles.to_dict(),
        "curves": curves.to_dict(),
        "plot": None if plot is None else str(plot),
    }
    show(result, [f"{file}: {'; '.join(source.taken)}", _table(curves)], as_json=as_json)


def _keys(rules: list[str] | None, doubts: list[str] | None, ordered: bool) -> list[Rule | Doubt]:
    if doubts and rules:
        raise InputError("Pass either --rule, which sees the outcome, or --doubt, not both.", argument="rule")
    if doubts:
        return [doubt(by) for by in doubts]
    return [*as_rules(rules or ["rps" if ordered else "brier"])]


def _shares(removed: str | None) -> list[float] | None:
    if removed is None:
        return None
    try:
        return [float(text) / 100 for text in split(removed)]
    except ValueError:
        raise InputError(
            f"--removed takes percentages such as 0,5,10; not {removed!r}.", argument="removed"
        ) from None


def _area(area: str) -> Literal["mean", "steps"]:
    if area not in ("mean", "steps"):
        raise InputError(f"--area is mean or steps, not {area!r}.", argument="area")
    return "mean" if area == "mean" else "steps"


def _table(curves: RetentionCurves) -> str:
    """A line a curve: its area, and its value at up to six cuts."""
    drawn = list(curves.values())
    shares = drawn[0].removed
    shown = sorted({round(i * (len(shares) - 1) / 5) for i in range(6)})
    header = ["rows ranked by", "metric", f"area ({drawn[0].area_kind})", "interval"]
    header += [f"{100 * shares[i]:g}% removed" for i in shown]
    lines = [header]
    for curve in drawn:
        interval = "" if curve.interval is None else f"{curve.interval[0]:.4f} to {curve.interval[1]:.4f}"
        values = [f"{curve.values[i]:.4f}" for i in shown]
        lines.append([curve.order, curve.metric, f"{curve.area:.4f}", interval, *values])
    better = {c.metric: "higher" if c.higher_is_better else "lower" for c in drawn}
    notes = [f"{metric}: {which} is better." for metric, which in better.items()]
    notes += [SEES_THE_OUTCOME] if drawn[0].sees_outcome else []
    return "\n".join([*text_table(lines, right=range(2, len(header))), *notes])
