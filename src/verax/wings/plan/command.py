"""`verax plan`: how many rows would be enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app, handed_over
from verax.cli.arguments import Typed
from verax.cli.comparing import Missing, ModelColumn, SharedIds
from verax.cli.models import separate_rows
from verax.cli.options import reads_files, split
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Fields, Kinds

# The panel of `--help-all` with what belongs to validations.
_VALIDATION = "Validation"


def _validation(metavar: str, text: str) -> Any:
    """An option of --validate, in a panel of `--help-all`."""
    return typer.Option(metavar=metavar, help=text, rich_help_panel=_VALIDATION)


Difference = Annotated[
    float | None,
    typer.Option(metavar="LOSS", help="Difference of mean losses to detect; by default that of the pilot."),
]
Width = Annotated[
    float | None,
    typer.Option(metavar="LOSS", help="Half-width of the confidence interval."),
]
Margin = Annotated[
    float | None,
    typer.Option(metavar="LOSS", help="Noninferiority margin: acceptable loss increase of the first model."),
]
Models = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="The two models to compare, if there are more in the files."),
]
Power = Annotated[float, typer.Option(metavar="SHARE", help="The probability of showing it.")]
Assurance = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", help="Reach the power for this share of such pilots, such as 0.8, not on average."
    ),
]
RowsPerGroup = Annotated[
    float | None,
    typer.Option(metavar="N", help="Rows per group, if it differs from the pilot."),
]
Validate = Annotated[
    bool,
    typer.Option(
        "--validate",
        help="Plan the external validation of a risk model of two classes.",
        rich_help_panel=_VALIDATION,
    ),
]
Prevalence = Annotated[float | None, _validation("SHARE", "Expected share of events; default: the pilot's.")]
Auc = Annotated[float | None, _validation("SHARE", "Expected AUC; by default that of the pilot.")]
Normal = Annotated[str | None, _validation("MEAN,SD", "Without a pilot: forecasts whose logits are normal.")]
Beta = Annotated[str | None, _validation("A,B", "Without a pilot: forecasts with a beta distribution.")]
Threshold = Annotated[float | None, _validation("SHARE", "Threshold of the net benefit.")]
Spans = Annotated[
    str | None,
    _validation("NAME=WIDTH,...", "Widths of the intervals, such as slope=0.3,auc=none."),
]
PowerPlot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the power against the number of rows.")
]

_EXAMPLES = """Examples: `verax plan new=a.parquet old=b.parquet --difference 0.01`,
`verax plan a.parquet b.parquet --rule brier --margin 0.005 --groups site --plot power.png`,
`verax plan new=a.parquet old=b.parquet --difference 0.01 --assurance 0.8`,
`verax plan a.parquet --rule accuracy --width 0.02`,
`verax plan --rule brier --difference 0.02`,
`verax plan --validate --prevalence 0.02 --auc 0.8`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "by": "pass files with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax compare --html` writes the report",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax compare --require 'difference.high<0.01'` checks bounds",
    },
)
def plan(
    reading: Reading,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="The pilot: a file for each of one or two models, also as name=FILE. Without one the spread "
            "is the largest that --rule allows.",
        ),
    ] = None,
    difference: Difference = None,
    width: Width = None,
    margin: Margin = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="The rule; for one model also a metric or measure, such as accuracy or auc.",
        ),
    ] = None,
    models: Models = None,
    power: Power = 0.9,
    assurance: Assurance = None,
    rows_per_group: RowsPerGroup = None,
    validate: Validate = False,
    prevalence: Prevalence = None,
    auc: Auc = None,
    normal: Normal = None,
    beta: Beta = None,
    threshold: Threshold = None,
    spans: Spans = None,
    shared_ids: SharedIds = False,
    model_column: ModelColumn = None,
    missing: Missing = "refuse",
    plot: PowerPlot = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Plan the number of rows for a difference, an interval width or a validation.

    Two models are compared on the rows of the pilot, as `verax compare` does; one is planned for by the
    width of its interval. With --groups the answer is a number of groups, and what more rows of the same
    groups would be worth. --validate plans for O:E, calibration slope, AUC and net benefit together.
    """
    from verax.files import name_files

    expected = {"prevalence": prevalence, "auc": auc, "threshold": threshold}
    stated: dict[str, Any] = {**expected, "normal": normal, "beta": beta, "spans": spans}
    _refuse_others(validate, stated)
    if validate:
        stated |= {"normal": _pair("normal", normal), "beta": _pair("beta", beta), "spans": _widths(spans)}
        _show_validation(given, reading, {**stated, "confidence": confidence}, as_json=as_json)
        return
    wanted: dict[str, Any] = {"difference": difference, "width": width, "margin": margin, "power": power}
    wanted |= {"rule": rule, "models": models, "rows_per_group": rows_per_group, "confidence": confidence}
    wanted |= {"assurance": assurance}
    if not given:
        show_plan(None, wanted, {}, [], plot=plot, as_json=as_json)
        return
    if handed_over(next(iter(name_files(given[:1]).values())), reading):
        return
    if model_column is not None or missing != "refuse":
        from verax.analyses.comparison.compare import compare

        rules = None if rule is None else [rule]
        several = separate_rows(given, reading, rules, model_column=model_column)
        asked: dict[str, Any] = {
            **several.arguments(),
            "missing": missing,
            **({"rule": rules} if rules else {}),
        }
        pilot, files = compare(**asked), dict(several.files)
        said = several.about.reading_lines()
    else:
        rows, files, said = _pilot(given, reading, shared_ids)
        pilot, wanted["ordered"] = rows, reading.ordered
    show_plan(pilot, wanted, files, said, plot=plot, as_json=as_json)


# What else belongs to a difference or to the interval of one measure.
_OF_DIFFERENCES = (
    *("difference", "width", "margin", "rule", "models", "power", "assurance", "rows_per_group"),
    *("shared_ids", "model_column", "missing", "plot", "groups"),
)


def _refuse_others(validate: bool, stated: dict[str, Any]) -> None:
    """Refuse options of a validation without one, and all others with it."""
    if not validate:
        given = [name for name, value in stated.items() if value is not None]
        if given:
            raise InputError("is for --validate", argument=given[0], values=[stated[given[0]]])
        return
    for name in _OF_DIFFERENCES:
        if Typed.is_typed(name):
            raise InputError("cannot be combined with --validate", argument=name)


def _pair(argument: str, text: str | None) -> tuple[float, ...] | None:
    """Numbers separated by a comma."""
    return None if text is None else tuple(_number(argument, part) for part in split(text))


def _widths(text: str | None) -> dict[str, float | None] | None:
    """Widths by criterion, none for those that are left out."""
    if text is None:
        return None
    found: dict[str, float | None] = {}
    for part in split(text):
        name, _, width = part.partition("=")
        found[name.strip()] = None if width.strip() == "none" else _number("spans", width)
    return found


def _number(argument: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError("must hold numbers", argument=argument, values=[text]) from None


def _show_validation(
    given: list[str] | None, reading: Reading, stated: dict[str, Any], *, as_json: bool
) -> None:
    """Print the sizes of a validation, from a pilot if there are files."""
    from verax.wings.plan.validation import plan_validation

    rows, files, said = _pilot(given, reading, False) if given else (None, {}, [])
    found = plan_validation(rows, **stated)
    show(
        {"files": files, "validation": found.to_dict(stored=False)},
        [*said, *([""] if said else []), found._text()],
        as_json=as_json,
        verdict=found.verdict.with_source(Typed.source()),
    )


def show_plan(
    pilot: Any,
    wanted: dict[str, Any],
    files: dict[str, str],
    said: list[str],
    *,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print the plan for a pilot: rows, a comparison, or a card of grades; None for no pilot."""
    from verax.wings.plan.analysis import plan as size

    pair = tuple(split(wanted["models"])) or None
    if pair is not None and len(pair) != 2:
        raise InputError("must be two names, such as new,old", argument="models", values=[wanted["models"]])
    asked = {**wanted, "models": pair}
    sizes = size(pilot, **asked)
    if plot is not None:
        draw_to(plot, sizes.plot())
    show(
        {"files": files, "plan": sizes.to_dict(stored=False)},
        [*said, *([""] if said else []), sizes._text()],
        as_json=as_json,
        verdict=sizes.verdict.with_source(Typed.source()),
        plot=plot,
    )


def _pilot(given: list[str], reading: Reading, shared_ids: bool) -> tuple[Any, dict[str, str], list[str]]:
    """The rows of one model or of several, the files of each, and how these were read."""
    from verax.cli.models import open_models, paths_of
    from verax.cli.opening import Opened
    from verax.files import name_files

    if not reading.several and len(name_files(given)) == 1:
        opened = Opened.of(given, reading)
        rows = opened.in_order(reading.ordered)
        return rows.handle, dict(opened.files), rows.reading_lines()
    paths = paths_of(given, reading)
    several, about = open_models(paths, reading, ordered=reading.ordered, shared_ids=shared_ids)
    return several.handle, dict(several.files), about.reading_lines()


def output() -> Fields:
    """The fields of a plan with --json."""
    from verax.cli.schemas.building import PATH, TEXT, TOLD, mapped, of_type
    from verax.wings.plan.result import SamplePlan

    return {**TOLD, "files": mapped(TEXT), "plan": of_type(SamplePlan), "plot": PATH}


def outputs() -> Kinds:
    """The fields of a plan, and those of a validation."""
    from verax.cli.schemas.building import TEXT, TOLD, mapped, of_type
    from verax.wings.plan.validation import ValidationPlan

    return [output(), {**TOLD, "files": mapped(TEXT), "validation": of_type(ValidationPlan)}]
