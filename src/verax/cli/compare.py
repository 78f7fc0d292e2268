"""`verax compare`: several models on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.lists import read_lists_together, save_list_report
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, save_report, show, subgroups_by
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy
from verax.inference.estimates import Method
from verax.inputs.lists.toplists import TopLists
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules

if TYPE_CHECKING:
    from verax.files import Joined
    from verax.files.lists.together import ListsTogether

_EXAMPLES = """Examples: `verax compare a.parquet b.parquet`,
`verax compare new=a.parquet old=b.parquet --id id --rule brier --rule log --json`,
`verax compare a.parquet b.parquet --weights w --reference frequencies`,
`verax compare odds.csv --target result --probs model='Model*' --probs book='Book*'`"""


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True)
def compare(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A file, a folder or a pattern such as 'new/*.csv' for each of two or more models, also as "
            "name=FILE. Files with the same name are those of one model.",
        ),
    ],
    reading: Reading,
    shared_ids: Annotated[
        bool,
        typer.Option(
            "--shared-ids", help="Compare the rows whose --id all files have; the others are counted."
        ),
    ] = False,
    rule: options.Rules = None,
    least: options.Least = 20,
    time_ordered: Annotated[
        bool, typer.Option("--time-ordered", help="Rows are in order of time and may be autocorrelated.")
    ] = False,
    method: Annotated[str, typer.Option(help="moments, bootstrap or permutation.")] = "moments",
    bootstrap: Annotated[
        int, typer.Option(help="Replicates of the methods bootstrap and permutation.")
    ] = 2000,
    reference: Annotated[
        str | None, typer.Option(help="What skill is measured against: frequencies, uniform, or a model.")
    ] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
) -> None:
    """Compare models by their files: which differences are real, pair by pair.

    Rows are matched by --id, or by their order; what does not match is refused. Several models in one file
    are named with their columns: --probs name=columns. Pairs of losses need all rows in memory. Files with a
    list per row are recognised by their content, and may be compared with full distributions.
    """
    from verax import files
    from verax.analyses.comparison.compare import compare as weigh

    paths = _paths(given, reading)
    reading.check_groups(html)
    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    order_matters = needs_order(rules, ordered=reading.ordered)
    how: dict[str, Any] = {"time_ordered": time_ordered, "method": cast(Method, method)}
    how |= {"reference": reference, "bootstrap": bootstrap, "ordered": order_matters}
    settings: dict[str, Any] = {"confidence": confidence, "seed": seed, **reading.scale}
    settings["weights_are"] = reading.weights_are
    listed = read_lists_together(paths, reading, shared_ids=shared_ids)
    if listed is not None:
        settings |= {"rule": rules, **how}
        _show_lists(paths, *listed, settings, asked=rule, least=least, html=html, as_json=as_json)
        return
    rows = reading.read_together(paths, ordered=order_matters, shared_ids=shared_ids)
    try:
        found = weigh(
            rows.y,
            rows.models,
            rule=rules,
            classes=rows.classes,
            weights=rows.first.weights,
            groups=rows.first.groups,
            **how,
            **settings,
        )
    except InputError:
        # Where a file is at fault, say which, by its own names and rows.
        for part in rows.files.values():
            files.forecasts_of(part, **reading.scale).check()
        raise
    found = found.with_skipped(rows.skipped)
    parts = subgroups_by(
        rows.first,
        rows.models,
        rule[0] if rule else None,
        least=least,
        bootstrap=100,
        ordered=reading.ordered,
        time_ordered=time_ordered,
        **settings,
    )
    if html is not None:
        source = "; ".join([", ".join(map(_short, paths.values())), *rows.first.taken])
        settings |= {"ordered": reading.ordered, "rules": rule, "time_ordered": time_ordered}
        save_report(html, rows.first, rows.models, parts, source=source, **settings)
    result = {
        "command": "compare",
        "files": {name: called(path) for name, path in paths.items()},
        "matched": rows.how,
        "left_out": {name: vars(left) for name, left in rows.left_out.items()},
        "taken": {name: part.roles.to_dict() for name, part in rows.files.items()},
        "comparison": found.to_dict(stored=False),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        "html": None if html is None else str(html),
    }
    taken = [f"{name}: {'; '.join(part.taken)}" for name, part in rows.files.items()]
    texts = [*taken, f"Rows were matched {rows.how}.", *_lacking(rows), "", repr(found)]
    texts += [f"\n{part}" for part in parts.values()]
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)


def _lacking(rows: Joined | ListsTogether) -> list[str]:
    """What was left out of each file, a line each."""
    return [
        f"{name}: {left} left out, which another file lacks."
        for name, left in rows.left_out.items()
        if left.count
    ]


def _show_lists(
    paths: dict[str, Files],
    rows: ListsTogether,
    taken: dict[str, list[str]],
    how: dict[str, Any],
    *,
    asked: list[str] | None,
    least: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """The comparison of files of which at least one holds lists, and the report if one is asked for."""
    from verax.analyses.comparison.compare import compare as weigh

    options = {"classes": rows.classes, "weights": rows.weights, "groups": rows.groups}
    if all(isinstance(p, TopLists) for p in rows.models.values()):
        # How lists were written was said when they were read.
        how = {name: value for name, value in how.items() if name not in ("normalize", "logits")}
    found = weigh(rows.y, rows.models, **options, **how).with_skipped(rows.skipped)
    of_parts = ("confidence", "seed", "weights_are", "normalize", "logits")
    parts = subgroups_by(
        rows,
        rows.models,
        asked[0] if asked else None,
        least=least,
        bootstrap=100,
        ordered=how["ordered"],
        time_ordered=how["time_ordered"],
        **{name: how[name] for name in of_parts if name in how},
    )
    if html is not None:
        shared = ("confidence", "seed", "weights_are", "time_ordered", "ordered", "normalize", "logits")
        named = {name: how[name] for name in shared if name in how}
        source = "; ".join(map(_short, paths.values()))
        named |= {"source": source, "rules": asked, "skipped": rows.skipped, "ids": rows.ids}
        save_list_report(html, rows.y, rows.models, parts, **options, **named)
    result = {
        "command": "compare",
        "files": {name: called(path) for name, path in paths.items()},
        "matched": rows.how,
        "left_out": {name: vars(left) for name, left in rows.left_out.items()},
        "taken": taken,
        "comparison": found.to_dict(stored=False),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        "html": None if html is None else str(html),
    }
    said = [f"{name}: {'; '.join(lines)}" for name, lines in taken.items()]
    texts = [*said, f"Rows were matched {rows.how}.", *_lacking(rows), "", repr(found)]
    texts += [f"\n{part}" for part in parts.values()]
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)


def _short(paths: Files) -> str:
    """What the files of a model are called in the report."""
    return paths.name if isinstance(paths, Path) else called(paths)


def _paths(given: list[str], reading: Reading) -> dict[str, Files]:
    """The files of each model, or one file for all models where the columns of each are named."""
    from verax import files

    named = reading.named_probs
    if named is None:
        paths = files.name_files(given)
        if len(paths) < 2:
            raise InputError(
                "Compare takes two models or more; evaluate takes one",
                argument="path",
                remedies=[Remedy("Of two models in one file: --probs a='A*' --probs b='B*'.")],
            )
        return paths
    if len(given) > 1:
        raise InputError(
            "can name the columns of models in one file only",
            argument="probs",
            found=f"there are {len(given)} files",
        )
    return {name: Path(given[0]) for name in named}
