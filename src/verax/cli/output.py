"""How results leave the command line: as text or as JSON.

All text for a terminal passes through `show`, which escapes what would control it.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax._settings import settings
from verax._version import __version__
from verax.cli.app import BROKEN_PIPE, FAILED, give_up_stdout
from verax.cli.arguments import Piped, Typed, figure_format
from verax.cli.presenting import Presentation, line_width, log, wrapped
from verax.cli.progress import stop_progress
from verax.cli.words import visible_json
from verax.common import strictjson
from verax.common.texts import shortened, visible
from verax.display.tables import Column, Table
from verax.display.writing import written
from verax.inference.findings import in_json

if TYPE_CHECKING:
    from verax.cli.require import BoundCheck
    from verax.inference.findings import Verdict
    from verax.report import Report

# The files that commands write: their option, and how the terminal calls them.
_FILES = {
    "report": ("html", "The report is"),
    "page": ("html", "The page is"),
    "results": ("save", "Saved results are"),
    "predictor": ("save", "The conformal predictor is"),
    "recalibration": ("save", "The recalibration is"),
    "plot": ("plot", "The figure is"),
}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(
    result: Mapping[str, Any],
    texts: Sequence[str],
    model: str = "",
    /,
    *,
    as_json: bool,
    verdict: Verdict | EllipsisType | None = ...,
    checks: Sequence[BoundCheck] | None = None,
    **files: Path | None,
) -> None:
    """Print a result as JSON or as text, as much of it as was asked for; exit with 1 if a bound failed.

    Parameters
    ----------
    model : str
        The model that the verdict is about, where it has a name.
    verdict : Verdict or None
        The verdict, which stands first; None if there is nothing to claim.
    checks : Sequence[BoundCheck] or None
        Bounds with what they are held to.
    **files : Path or None
        The files that were written, by what they hold.
    """
    result = completed(result, verdict, checks, **files)
    texts = [
        *([] if verdict is ... else verdict_lines(verdict, model)),
        *texts,
        *map(str, checks or ()),
        *(
            f"{_FILES[name][1]} in {path}.{held_in(path) if name == 'results' else ''}"
            for name, path in files.items()
            if path is not None
        ),
    ]
    if Presentation.log == "json":
        for note in result.get("notes", ()):
            log("note", note)
        texts = [text for text in texts if not text.startswith("Note: ")]
    config = Typed.config
    if as_json:
        texts = []
        echo(visible_json(Piped.named(to_json(result))))
    elif Presentation.quiet:
        failed = [text for text in texts if text.startswith("FAILED ")]
        texts = [*([str(result["verdict"])] if result.get("verdict") else []), *failed]
    elif config is not None:
        texts = [*texts, f"Options of reading are from {config.path}."]
    for text in texts:
        echo(_lines(text))
    if result.get("met") is False:
        raise typer.Exit(FAILED)


def completed(
    result: Mapping[str, Any],
    verdict: Verdict | EllipsisType | None = ...,
    checks: Sequence[BoundCheck] | None = None,
    /,
    **files: Path | None,
) -> dict[str, Any]:
    """A result as JSON has it: after the command and the verdict, before bounds, files and configuration."""
    first = {"command": Typed.path().removeprefix("verax ")}
    first |= {"file": result["file"]} if "file" in result else {}
    whole = {**first, **({} if verdict is ... else claims_in_json(verdict)), **result}
    if checks is not None:
        whole["require"] = [check.to_dict() for check in checks]
        whole["met"] = all(check.met for check in checks)
    whole |= {_FILES[name][0]: None if path is None else str(path) for name, path in files.items()}
    if "notes" in whole:
        # Notes come last.
        whole["notes"] = whole.pop("notes")
    return whole | ({} if Typed.config is None else {"config": Typed.config.path})


def held_in(path: Path) -> str:
    """What a file of saved results holds of rows, after a space; nothing of a pipe, which is gone."""
    from verax.analyses.loading import contents_of

    return f" {contents_of(path)}" if path.is_file() else ""


def _lines(text: str) -> str:
    lines = visible(Piped.named(text)).split("\n")
    text = "\n".join(shortened(line, settings.longest_shown) for line in lines)
    width = line_width()
    return text if width is None else wrapped(text, width)


def echo(text: str) -> None:
    """Print at once, so that a full disk or a closed pipe is noticed here."""
    stop_progress()
    try:
        typer.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        give_up_stdout()
        raise typer.Exit(BROKEN_PIPE) from None


# Below every table that names outcomes by number.
NUMBERED = "Classes and outcomes are numbered from 0."


def make_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = (),
    spare: Collection[str] = (),
    caption: str = "",
) -> str:
    """A table for `show`.

    Parameters
    ----------
    right : Collection[str]
        The columns that are aligned at the right.
    spare : Collection[str]
        The columns that narrow terminals give up first.
    """
    columns = [
        Column("", head, itemgetter(i), right=head in right, spare=head in spare)
        for i, head in enumerate(header)
    ]
    return "\n".join([title, *Table(columns, list(rows), ruled=True).text(), *([caption] if caption else [])])


def to_json(result: Mapping[str, Any]) -> str:
    """A result as JSON, with the version that made it first."""
    return strictjson.to_json({"verax": __version__, **result})


def command_line() -> str:
    """The command as it was typed, for the report; its name where verax was not started from a shell."""
    if Path(sys.argv[0]).name in ("verax", "verax.exe", "__main__.py"):
        return shlex.join(["verax", *sys.argv[1:]])
    return Typed.path()


def claims_in_json(verdict: Verdict | None) -> dict[str, Any]:
    """A verdict in JSON: its text, and the findings that it is made of."""
    if verdict is None:
        return {"verdict": None, "findings": [], "next_step": None}
    return in_json(verdict)


def verdict_lines(verdict: Verdict | None, model: str = "") -> list[str]:
    """A verdict in the terminal: its text, and the command of the next step."""
    if not verdict:
        return []
    step = verdict.next_step
    known = step is not None and step.command and "{source}" not in step.command
    command = f"\n  {step.command}" if step is not None and known else ""
    return [f"{model}{': ' * bool(model)}{verdict}{command}\n"]


def check_report(html: Path | None) -> None:
    """Refuse a report that the installed packages cannot write, before anything is computed for it."""
    if html is not None:
        from verax.report.page import check_packages

        check_packages()


def save_report(report: Report, path: Path, checks: Sequence[BoundCheck], read: str) -> None:
    """Save a report with the command, the bounds and how the files were read."""
    held = [(f"{check.bound.text} ({check.value:.4g})", check.met) for check in checks]
    report.with_command(command_line(), held, Typed.source(), read).save(path)


def draw_to(path: Path, figure: Any) -> None:
    """Save a figure to a file; the ending says in which format (PNG where there is none)."""
    # On a full disk matplotlib's PDF fails with an error of its own, so it is drawn in memory.
    drawn = io.BytesIO()
    figure.savefig(drawn, format=figure_format(path), dpi=150)
    with written(path) as new:
        new.write_bytes(drawn.getbuffer())
