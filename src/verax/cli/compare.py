"""`verax compare`: several models on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files, split
from verax.cli.output import Json, command_line, show
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy
from verax.inference.estimates import Method
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules

if TYPE_CHECKING:
    from verax.cli.opening import GivenRows
    from verax.files.joining import LeftOut

_EXAMPLES = """Examples: `verax compare a.parquet b.parquet`,
`verax compare new=a.parquet old=b.parquet --id id --rule brier --rule log_score --json`,
`verax compare a.parquet b.parquet --weights w --reference frequencies`,
`verax compare odds.csv --target result --probs model='Model*' --probs book='Book*'`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "save": "`verax evaluate --save` saves mergeable results of one model",
        "require": "`verax evaluate --require` checks bounds on one model",
    },
)
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
            "--shared-ids", help="Compare only rows whose --id is in all files; the others are counted."
        ),
    ] = False,
    rule: options.Rules = None,
    least: options.Least = 20,
    time_ordered: Annotated[
        bool, typer.Option("--time-ordered", help="Rows are in time order and may be autocorrelated.")
    ] = False,
    method: Annotated[str, typer.Option(help="moments, bootstrap or permutation.")] = "moments",
    bootstrap: Annotated[
        int, typer.Option(help="Replicates for the methods bootstrap and permutation.")
    ] = 2000,
    reference: Annotated[
        str | None, typer.Option(help="Reference for skill: frequencies, uniform, or a model.")
    ] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
) -> None:
    """Compare models on the same rows: which differences are significant, pair by pair.

    Rows are matched by --id, or by their order; rows that do not match are refused. Several models in one
    file are named with their columns: --probs name=columns. Top lists are recognised by their content, and
    may be compared with full distributions.
    """
    from verax.analyses.comparison.compare import compare as weigh

    reading.check_groups(html)
    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    order_matters = needs_order(rules, ordered=reading.ordered)
    paths = _paths(given, reading)
    rows, about = _opened(paths, reading, ordered=order_matters, shared_ids=shared_ids)
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    how: dict[str, Any] = {"method": cast(Method, method), "reference": reference, "bootstrap": bootstrap}
    in_time = {"time_ordered": time_ordered} if time_ordered or rows.held else {}
    found = rows.ask(weigh, rule=rules, ordered=order_matters, time_ordered=time_ordered, **how, **plan)
    found = found.with_skipped(rows.skipped)
    settings = {"ordered": reading.ordered, **in_time, **plan}
    parts = rows.subgroups(rule[0] if rule else None, least=least, bootstrap=100, **settings)
    report = None
    if html is not None:
        lines = [", ".join(map(_short, paths.values())), *next(iter(about.said.values()))]
        report = rows.report(parts, source="; ".join(lines), rules=rule, **settings)
        report.with_command(command_line("compare")).save(html)
        parts = report.subgroups or parts
    verdict = rows.verdict(rules, found, ordered=order_matters, time_ordered=time_ordered, **plan)
    if report is not None:
        verdict = report.verdict
    result = {
        "command": "compare",
        "verdict": verdict,
        "files": {name: called(path) for name, path in paths.items()},
        "matched": about.matched,
        "left_out": {name: vars(left) for name, left in about.left_out.items()},
        "taken": about.taken,
        "comparison": found.to_dict(stored=False),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        "html": None if html is None else str(html),
    }
    texts = [] if verdict is None else [f"{verdict}\n"]
    texts += [f"{name}: {'; '.join(lines)}" for name, lines in about.said.items()]
    texts += [f"Rows were matched {about.matched}."]
    texts += [
        f"{name}: {left} left out, which another file lacks."
        for name, left in about.left_out.items()
        if left.count
    ]
    texts += ["", repr(found), *(f"\n{part}" for part in parts.values())]
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)


@dataclass(frozen=True)
class _About:
    """How the files of each model were read, and how their rows were matched."""

    taken: dict[str, Any]
    said: dict[str, list[str]]
    matched: str = "by the order of the rows"
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)


def _opened(
    paths: dict[str, Files], reading: Reading, *, ordered: bool, shared_ids: bool
) -> tuple[GivenRows, _About]:
    """The rows of all models, in memory if they are in several files, and what to say of them."""
    from verax.cli.opening import GivenRows

    files = {name: called(path) for name, path in paths.items()}
    if reading.named_probs is not None:
        handle: Any = reading.scan(next(iter(paths.values())), "model")
        rows = replace(GivenRows.of(handle.in_order() if ordered else handle, files), bins=reading.bins)
        parted = [line.partition(": ") for line in (*handle.taken, *rows.notes)]
        said = {name: [text for model, _, text in parted if model == name] for name in files}
        taken: dict[str, Any] = {name: part.roles.to_dict() for name, part in rows.parts.items()}
        return rows, _About(taken or said, said)
    from verax.files.joining import match, with_classes_of

    handles: dict[str, Any] = {}
    given = split(reading.classes) or None
    for name, path in paths.items():
        # Weights, groups and subgroups are those of the first file, and so are the classes.
        own_reading = replace(reading, weights=None, groups=None, by=None) if handles else reading
        known = {model: handle.classes for model, handle in handles.items() if not handle.lists}
        open_as: Callable[..., Any] = partial(own_reading.scan, path, name, hold="all")
        handle = with_classes_of(known, name, given, open_as)
        handles[name] = (handle.in_order() if ordered and not handle.lists else handle).held()
    parts = {name: held.rows[held.models[0]] for name, held in handles.items()}
    joined = match(parts, shared_ids=shared_ids)
    options: dict[str, Any] = {"classes": joined.classes, "weights": joined.first.weights}
    options["groups"] = joined.first.groups
    scale = {} if all(held.lists for held in handles.values()) else reading.scale
    held_rows = GivenRows(
        *((joined.y, joined.models), options | scale, None, joined.files, files),
        skipped=joined.skipped,
        bins=reading.bins,
        _scale=scale,
    )
    lines = {name: [*held.taken, *(f"note: {note}" for note in held.notes)] for name, held in handles.items()}
    taken = {
        name: lines[name] if held.lists else joined.files[name].roles.to_dict()
        for name, held in handles.items()
    }
    return held_rows, _About(taken, lines, joined.how, joined.left_out)


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
                remedies=[Remedy("For two models in one file: --probs a='A*' --probs b='B*'.")],
            )
        return paths
    if len(given) > 1:
        raise InputError(
            "can name the columns of models in one file only",
            argument="probs",
            found=f"there are {len(given)} files",
        )
    return {name: Path(given[0]) for name in named}
