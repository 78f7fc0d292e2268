"""`verax compare`: several models on the same rows."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from verax.cli import options
from verax.cli.frame import app
from verax.cli.options import reading, split, spoken
from verax.cli.output import Json, save_report, show
from verax.errors import InputError
from verax.inference import Method
from verax.registry import as_rules

_EXAMPLES = """Examples: `verax compare a.parquet b.parquet`,
`verax compare new=a.parquet old=b.parquet --id id --rule brier --rule log --json`,
`verax compare a.parquet b.parquet --weights w --reference frequencies`"""


@app.command(epilog=_EXAMPLES)
def compare(
    given: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Two or more files of predictions, also as name=file.")
    ],
    rule: options.Rules = None,
    row_id: options.Id = None,
    target: options.Target = None,
    probs: options.Probs = None,
    classes: options.Classes = None,
    ordered: options.Ordered = False,
    positive: options.Positive = None,
    weights: options.Weights = None,
    groups: options.Groups = None,
    by: options.By = None,
    time_ordered: Annotated[
        bool, typer.Option("--time-ordered", help="Rows are in order of time; neighbours may depend.")
    ] = False,
    method: Annotated[str, typer.Option(help="moments, bootstrap or permutation.")] = "moments",
    bootstrap: Annotated[int, typer.Option(help="Replicates, where the method draws any.")] = 2000,
    reference: Annotated[
        str | None, typer.Option(help="What skill is measured against: frequencies, uniform, or a model.")
    ] = None,
    logits: options.Logits = False,
    normalize: options.Normalize = False,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    as_json: Json = False,
    html: options.Html = None,
) -> None:
    """Compare models by their files: which differences are real, pair by pair.

    Rows are matched by --id, or by their order; what does not match is refused. Pairs of losses need all
    rows in memory.
    """
    from verax import files
    from verax.comparison import compare as weigh

    if len(given) < 2:
        raise InputError("compare takes two files or more; evaluate takes one.", argument="path")
    paths = files.name_files(given)
    rules = as_rules(rule or (["rps", "log"] if ordered else ["brier", "log"]))
    needs_order = ordered or any(r.ordinal for r in rules)
    with spoken(None):
        rows = files.read_together(
            paths,
            **reading(target=target, probs=probs, classes=classes, delimiter=delimiter),
            id=row_id,
            weights=weights,
            groups=groups,
            by=split(by),
            positive=positive,
            ordered=needs_order,
            logits=logits,
            decimal=decimal,
        )
        settings: dict[str, Any] = {"classes": rows.classes, "ordered": needs_order}
        settings |= {"weights": rows.first.weights, "groups": rows.first.groups}
        settings |= {"logits": logits, "normalize": normalize}
        try:
            found = weigh(
                rows.y,
                rows.models,
                rule=rules,
                time_ordered=time_ordered,
                method=cast(Method, method),
                reference=reference,
                confidence=confidence,
                bootstrap=bootstrap,
                seed=seed,
                **settings,
            )
        except InputError:
            # Each file says best what is wrong with it, by its own names and rows.
            for part in rows.files.values():
                files.forecasts_of(part, logits=logits, normalize=normalize).check()
            raise
        if html is not None:
            source = ", ".join(path.name for path in paths.values())
            settings = {"ordered": ordered, "rules": rule, "logits": logits, "normalize": normalize}
            settings |= {"confidence": confidence, "seed": seed}
            save_report(html, rows.first, rows.models, source=source, **settings)
    result = {
        "command": "compare",
        "files": {name: str(path) for name, path in paths.items()},
        "matched": rows.how,
        "taken": {name: part.roles.to_dict() for name, part in rows.files.items()},
        "comparison": found.to_dict(),
        "html": None if html is None else str(html),
    }
    taken = [f"{name}: {'; '.join(part.taken)}" for name, part in rows.files.items()]
    texts = [*taken, f"Rows were matched {rows.how}.", "", repr(found)]
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)
