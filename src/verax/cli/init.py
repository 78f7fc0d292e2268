"""`verax init`: how files are read, shown, and written into `verax.toml`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import FAILED, app
from verax.cli.arguments import Typed
from verax.cli.config import NAME, Config, with_lines
from verax.cli.options import reads_files
from verax.cli.output import Json, show
from verax.common.paths import called
from verax.common.toml import to_toml
from verax.errors import InputError, Remedy
from verax.inputs.reading import Reading, flag_of

if TYPE_CHECKING:
    from verax.scans.forms import Form

if TYPE_CHECKING:
    from verax.cli.schemas.building import Fields, Kinds

# Options whose value a file tells: it has no other reading with them left out.
_TOLD = ("delimiter", "decimal")
_PERCENT, _NEARLY = 100.0, 0.02
# Names of columns that are used only where an option states them.
_WEIGHTS = ("weight", "weights", "sample_weight", "sample_weights", "w")
_FIRST = 3


@app.command(
    epilog="Examples: `verax init preds.parquet`, `verax init submission.csv --outcomes truth.csv`, "
    "`verax init grades.csv --target grade --ordered --classes none,mild,severe --groups patient`"
)
@reads_files(lists=True, grades=True)
def init(
    reading: Reading,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...", help=f"{options.FILES_HELP} None with --check.", show_default=False
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    force: Annotated[bool, typer.Option("--force", help=f"Replace an existing {NAME}.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help=f"Exit with 1 if files are no longer read as {NAME} says; write nothing."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show how files are read, and write that into verax.toml.

    Every column is listed with its role and the reason. Commands in this folder then need neither the files
    nor options of reading. A reading that is in doubt is refused with the line that settles it.
    """
    from verax.cli.opening import form_of
    from verax.files.joining import files_of_one_model

    if check:
        _check(given, as_json=as_json)
        return
    if not given:
        raise InputError("Missing argument 'FILE...'", argument="path", kind="missing")
    path = Path(NAME)
    if path.exists() and not force:
        raise InputError(
            f"There is a {NAME} already",
            argument="path",
            kind="file",
            remedies=[
                Remedy("Pass --force to replace it, or --check to see whether files are still read so.")
            ],
        )
    # The content of the old file does not count.
    typed = {
        name: value
        for name, value in reading.given().items()
        if Typed.is_typed(flag_of(name)) or Typed.is_typed(flag_of(name).replace("-", "_"))
    }
    asked = Reading.of(None, typed)
    rows: _Rows | _RowsOfForm
    decided: list[str] = []
    form = form_of(files_of_one_model(given)[1], asked)
    if form is not None:
        rows = found = _RowsOfForm(form, given, asked)
        written = found.reading
    else:
        settled, rows, decided = _settled(given, asked)
        written = _explicit(given, settled, rows)
    if written.outcomes is not None:
        written = replace(written, outcomes=_relative(written.outcomes))
    shown = _shown(rows, typed)
    text = f"files = {to_toml([_relative(file) for file in given])}\n{written.to_toml()}\n"
    lines = [*_in_words(shown, rows, decided), "", f"{NAME}:", *(f"  {line}" for line in text.splitlines())]
    write = yes
    if not write and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        print("\n".join(lines))
        lines = []
        write = typer.confirm(f"Write {NAME}?")
    if write:
        path.write_text(text, encoding="utf-8")
    lines.append(f"{NAME} is written." if write else f"Nothing is written. Pass --yes to write {NAME}.")
    result = {
        "file": rows.file,
        "reading": _plain(written.given()),
        **shown,
        "decided": decided,
        "toml": text,
        "written": str(path) if write else None,
    }
    show(result, lines, as_json=as_json)


class _Rows:
    """The rows of files, all of which were read."""

    def __init__(self, given: Sequence[str], reading: Reading) -> None:
        from verax.analyses.cards.evaluation import evaluate
        from verax.cli.opening import Opened
        from verax.files.predictions import Roles

        opened = Opened.of(given, reading)
        self.file, self.lists = opened.file, opened.lists
        self.all_columns: tuple[str, ...] = tuple(getattr(opened.handle, "all_columns", ()))
        self.handle = opened.handle
        # Rows that are not in memory are checked as they are scored.
        rule = "padded(brier)" if opened.lists else "brier"
        self.n_rows: int = evaluate(self.handle, rules=[rule], bootstrap=2).n_rows
        self.roles = Roles("", ()) if self.lists else self.handle.roles
        self.classes = self.handle.classes
        self.taken, self.notes = tuple(self.handle.taken), tuple(self.handle.notes)

    @property
    def same(self) -> tuple[Any, ...]:
        """The roles and classes that must not change when all of them are stated."""
        if self.lists:
            return (self.taken, self.n_rows)
        roles = self.roles
        return (roles.target, roles.probs, roles.outcomes_are, roles.id, self.classes, self.n_rows)


class _RowsOfForm:
    """The rows of files in a form that a command of a wing reads, all of which were read."""

    lists, classes, notes = True, None, ()

    def __init__(self, form: Form, given: Sequence[str], reading: Reading) -> None:
        from verax.files.joining import are_named, files_of_one_model

        _, paths = files_of_one_model(given)
        found = form.settled(paths, reading, named=are_named(given))
        self.file, self.n_rows, self.taken = called(paths), found.n_rows, found.taken
        self.reading = found.reading


def _settled(given: Sequence[str], reading: Reading) -> tuple[Reading, _Rows, list[str]]:
    """How files are read, with what they tell by themselves: separators, and that they hold percentages."""
    decided: list[str] = []
    for _ in range(len(_TOLD) + 2):
        try:
            return reading, _Rows(given, reading), decided
        except InputError as error:
            change = _only_options(error)
            if not change or any(getattr(reading, name) == value for name, value in change.items()):
                # Where there is a file already, the line goes there, as for every command.
                raise (with_lines(error, NAME) if Typed.config is None else error) from None
            reading = replace(reading, **change)
            why = f"{error.requirement}; {error.found}" if error.found else error.requirement
            decided += [f"{name} = {to_toml(value)}, because: {why}" for name, value in change.items()]
    raise AssertionError


def _only_options(error: InputError) -> dict[str, Any]:
    """The options that an error names with their values, where nothing else can be meant."""
    named = [dict(remedy.options) for remedy in error.remedies if remedy.options]
    if len(named) != 1:
        return {}
    (change,) = named
    if set(change) <= set(_TOLD) and ... not in change.values():
        return change
    value = error.values[0] if error.values else None
    percent = isinstance(value, float) and abs(value / _PERCENT - 1) <= _NEARLY
    return {"percent": True} if percent and change == {"normalize": True} else {}


def _explicit(given: Sequence[str], reading: Reading, rows: _Rows) -> Reading:
    """The same reading with everything that was found stated, as far as files are still read the same."""
    fields: dict[str, Any] = {}
    roles = rows.roles
    if not reading.outcomes and not reading.raters and roles.target and not rows.lists:
        fields["target"] = roles.target
    if not rows.lists and not reading.sets and not reading.probs and roles.probs:
        fields["probs"] = roles.probs
    if not rows.lists and not reading.classes and rows.classes:
        fields["classes"] = tuple(rows.classes)
    if roles.id is not None and reading.id is None:
        fields["id"] = roles.id
    for name, value in fields.items():
        try:
            stated = replace(reading, **{name: value})
            if _Rows(given, stated).same == rows.same:
                reading = stated
        except InputError:
            # Some files say more than options can, such as names of arrays.
            continue
    return reading


def _shown(rows: _Rows | _RowsOfForm, typed: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read, as plain Python values."""
    plain = None if isinstance(rows, _RowsOfForm) or rows.lists else rows
    return {
        "columns": [] if plain is None else _columns(plain, typed),
        "taken": list(rows.taken),
        "classes": None if rows.classes is None else [str(name) for name in rows.classes],
        "n_rows": rows.n_rows,
        "first": [] if plain is None or not plain.handle.fits else _first_rows(plain),
        "notes": list(rows.notes),
        "doubts": [] if plain is None else _doubts(plain),
    }


def _columns(rows: _Rows, typed: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each column with its role and why it has it."""
    roles = rows.roles
    by_column: dict[str, tuple[str, str]] = {}
    if roles.target:
        other = "outcomes" in typed
        why = "stated" if "target" in typed else "in another file" if other else "its name"
        by_column[roles.target] = ("outcomes", why)
    for name in roles.raters:
        by_column[name] = ("labels of a rater", "stated")
    classes = [None] * len(roles.probs) if rows.classes is None else [str(c) for c in rows.classes]
    alone = len(roles.probs) == 1
    why = "stated" if "probs" in typed else "rows sum to 1" if roles.found_by == "sums" else "its name"
    for j, name in enumerate(roles.probs):
        about = classes[-1] if alone and classes else classes[j] if j < len(classes) else None
        what = "logit" if roles.logits else "probability"
        by_column[name] = (what if about is None else f"{what} of {about}", why)
    beside = {"weights": "weights", "groups": "groups", "by": "subgroups", "id": "ids", "time": "times"}
    for name, role in beside.items():
        columns = getattr(roles, name)
        for column in (columns,) if isinstance(columns, str) else columns or ():
            by_column.setdefault(column, (role, "stated" if name in typed else "its name"))
    every = list(dict.fromkeys([*rows.all_columns, *by_column]))
    return [
        {"column": name, "role": by_column[name][0], "why": by_column[name][1]}
        if name in by_column
        else {"column": name, "role": "not used", "why": ""}
        for name in every
    ]


def _first_rows(rows: _Rows) -> list[dict[str, Any]]:
    """The first rows as they are scored: what happened, and the probabilities."""
    import numpy as np

    part = next(iter(rows.handle.loaded().rows.values()))
    first = []
    for i in range(min(_FIRST, len(part))):
        y = part.y[i]
        if rows.classes is not None and np.ndim(y) == 0 and y not in rows.classes:
            y = rows.classes[int(y)]
        p = np.asarray(part.p[i : i + 1]).ravel()[:8]
        first.append({"outcome": str(y), "probabilities": [round(float(value), 6) for value in p]})
    return first


def _doubts(rows: _Rows) -> list[str]:
    """Ambiguities, each with the line that settles it."""
    doubts, roles = [], rows.roles
    if roles.outcomes_are == "positions" and rows.classes is not None:
        pairs = ", ".join(f"{i} = {name}" for i, name in list(enumerate(rows.classes))[:6])
        doubts.append(f"Outcomes are positions of classes ({pairs}).")
    doubts += [f"{name} may hold probabilities as well, and is not used." for name in roles.not_taken]
    unused = [name for name in rows.all_columns if name not in (*roles.columns, roles.target)]
    weights = [name for name in unused if name.strip().lower() in _WEIGHTS and roles.weights is None]
    return doubts + [
        f"{name} is not used; if these are weights, write weights = {to_toml(name)}." for name in weights
    ]


def _in_words(values: Mapping[str, Any], rows: _Rows | _RowsOfForm, decided: Sequence[str]) -> list[str]:
    """How files are read, for the terminal."""
    lines = [f"{rows.file}: {rows.n_rows:,} rows"]
    if values["columns"]:
        shown = values["columns"] if len(values["columns"]) <= 40 else values["columns"][:40]
        width = max(len(column["column"]) for column in shown)
        for column in shown:
            why = f" ({column['why']})" if column["why"] else ""
            lines.append(f"  {column['column'] or '(no name)':{max(width, 9)}}  {column['role']}{why}")
        if len(shown) < len(values["columns"]):
            lines.append(f"  ... ({len(values['columns']):,} columns)")
    else:
        lines += [f"  {line}" for line in values["taken"]]
    if values["classes"]:
        some = ", ".join(values["classes"][:8]) + (", ..." if len(values["classes"]) > 8 else "")
        lines.append(f"Classes: {some} ({len(values['classes']):,})")
    for row in values["first"]:
        numbers = ", ".join(f"{value:g}" for value in row["probabilities"])
        lines.append(f"  outcome {row['outcome']}: {numbers}")
    lines += [f"Decided: {reason}." for reason in decided]
    lines += [f"Note: {note}" for note in values["notes"]]
    lines += [f"Doubt: {doubt}" for doubt in values["doubts"]]
    return lines


def _check(given: Sequence[str] | None, *, as_json: bool) -> None:
    """Whether files are read as the nearest `verax.toml` says."""
    from verax.cli.opening import form_of
    from verax.files.joining import files_of_one_model

    config: Config | None = Typed.config
    if config is None:
        raise InputError(
            f"There is no {NAME} in this folder or above it",
            argument="config",
            kind="missing",
            remedies=[Remedy("`verax init FILE` writes one.")],
        )
    files = list(given or config.files)
    if not files:
        raise InputError(
            "Missing argument 'FILE...'",
            argument="path",
            kind="missing",
            remedies=[Remedy(f"Name the files, or write them into {config.path}.")],
        )
    changed, n_rows = [], None
    try:
        rows: _Rows | _RowsOfForm
        form = form_of(files_of_one_model(files)[1], config.reading)
        if form is not None:
            rows = _RowsOfForm(form, files, config.reading)
        else:
            rows = _Rows(files, config.reading)
            changed = _differences(config.reading, rows)
        n_rows = rows.n_rows
    except InputError as error:
        from verax.cli.app import words

        changed = [error.say(words())]
    says = [f"{config.path}: {change}" for change in changed] or [
        f"{', '.join(files)}: read as {config.path} says."
    ]
    result = {
        "file": " ".join(files),
        "config": config.path,
        "holds": not changed,
        "changed": changed,
        "n_rows": n_rows,
    }
    show(result, says, as_json=as_json)
    if changed:
        raise typer.Exit(FAILED)


def _differences(reading: Reading, rows: _Rows) -> list[str]:
    """Columns and classes that are not read as stated."""
    if rows.lists:
        return []
    differences = []
    if reading.probs and not isinstance(reading.probs, Mapping):
        plain = not any(set(name) & set("*?[") for name in reading.probs)
        if plain and set(reading.probs) != set(rows.roles.probs):
            differences.append(f"probabilities are in {', '.join(rows.roles.probs)}")
    if isinstance(reading.classes, tuple) and rows.classes is not None:
        now, then = [str(c) for c in rows.classes], [str(c) for c in reading.classes]
        if now != then:
            differences.append(f"the classes are {', '.join(now)}")
    if reading.target and rows.roles.target != reading.target and not reading.outcomes:
        differences.append(f"the outcomes are in {rows.roles.target}")
    return differences


def _relative(file: str) -> str:
    """A file as it is called from this folder, also as name=path."""
    name, equals, path = file.rpartition("=")
    if "://" in path or not os.path.isabs(path):
        return file
    return f"{name}{equals}{os.path.relpath(path)}"


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values that JSON has."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def output() -> Kinds:
    """The fields of the kinds of output with --json."""
    from verax.cli.schemas.building import COUNT, NUMBER, PATH, TEXT, TEXTS, TRUTH, listed, or_none, record

    read: Fields = {
        "file": TEXT,
        "reading": {"type": "object"},
        "columns": listed(record(column=TEXT, role=TEXT, why=TEXT)),
        "taken": TEXTS,
        "classes": or_none(TEXTS),
        "n_rows": COUNT,
        "first": listed(record(outcome=TEXT, probabilities=listed(NUMBER))),
        "notes": TEXTS,
        "doubts": TEXTS,
        "decided": TEXTS,
        "toml": TEXT,
        "written": PATH,
    }
    return [read, {"file": TEXT, "holds": TRUTH, "changed": TEXTS, "n_rows": or_none(COUNT)}]
