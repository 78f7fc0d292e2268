"""`verax merge`: saved sums of parts put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.cards.container import CARD, has_old_accuracy
from verax.analyses.cards.fingerprints import Fingerprint, refuse_repeats, repeats_among
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.loading import merged_card, parts_of
from verax.cli import options
from verax.cli.app import app
from verax.cli.cards import write_report
from verax.cli.output import Json, check_report, show
from verax.cli.require import Require, Strictly, check_on_sums, read_bounds
from verax.common.wings import cards
from verax.errors import InputError, Remedy
from verax.inference.findings import Verdict

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax merge monday.verax tuesday.verax`,
`verax merge monday.verax tuesday.verax --require 'brier<0.9' --save week.verax --json`
"""


@dataclass(frozen=True)
class Merging:
    """The files that `verax merge` was asked to merge, its options, their parts, and notes on repeats."""

    files: list[Path]
    require: list[str] | None
    require_interval: bool
    save: Path | None
    html: Path | None
    as_json: bool
    parts: list[Fingerprint]
    repeats: list[str]


@app.command(epilog=_EXAMPLES)
def merge(
    files: Annotated[
        list[Path], typer.Argument(help="Files that --save wrote, of the same classes and rules.")
    ],
    require: Require = None,
    require_interval: Strictly = False,
    save: options.Save = None,
    html: options.Html = None,
    allow_repeats: Annotated[
        bool, typer.Option("--allow-repeats", help="Count a part that is in several files each time.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Merge saved results into one scorecard for all rows.

    Parts are saved by `verax evaluate --save` and `verax toplist --save`, or by `card.save` and a `Tally` in
    Python. The order of the files does not matter. No row may be in two of them: files that hold the same
    part, also in what was merged before, are refused. For --html every part must have been saved with a
    report of its own (`verax evaluate --save --html`), with the same options.
    """
    kind, card = merged_card(files)
    by_file = [(str(file), parts_of(file)) for file in files]
    notes = refuse_repeats(repeats_among(by_file), allowed=allow_repeats)
    parts = [part for _, of_file in by_file for part in of_file]
    show_merged: Any = _show
    if kind != CARD:
        wing, declared = cards()[kind]
        show_merged = wing.at(declared.shows)
    show_merged(card, Merging(files, require, require_interval, save, html, as_json, parts, notes))


def _show(card: Scorecard, asked: Merging) -> None:
    """Print the card of forecasts of all files."""
    from verax.scans.saved import merge_saved

    files = asked.files
    check_report(asked.html)
    check_whole(card, _first_names(files, " + "))
    lists = isinstance(card, ListCard)
    bounds = read_bounds(asked.require, strictly=asked.require_interval, ordered=card.ordered, lists=lists)
    notes = [*asked.repeats, *(_notes(files) if lists else [])]
    for bound in bounds:
        check_on_sums(bound, card)
    checks = [bound.hold(card) for bound in bounds]
    if asked.save is not None:
        merge_saved(files, card, asked.save, asked.parts)
    verdict = None if asked.html is None else _report_on_all(asked.html, files, card)
    result: dict[str, Any] = {
        "files": [str(file) for file in files],
        "card": card.to_dict(stored=False),
        "notes": notes,
    }
    texts = [str(card), *(f"Note: {note}" for note in notes)]
    show(
        result,
        texts,
        as_json=asked.as_json,
        verdict=verdict,
        checks=checks,
        report=asked.html,
        results=asked.save,
    )


def _first_names(files: list[Path], mark: str) -> str:
    """The names of the first files."""
    return mark.join([*map(str, files[:3]), *(["..."] if len(files) > 3 else [])])


def _report_on_all(html: Path, files: list[Path], card: Scorecard) -> Verdict:
    """Write the report on saved summaries; its verdict. A file that lacks some of them is named."""
    from verax.scans.saved import SavedHandle

    try:
        return write_report(html, SavedHandle(files), card, _first_names(files, "; "))
    except InputError as error:
        if error.kind not in ("missing", "file"):
            raise
        advice = Remedy("Save every part by `verax evaluate --save ... --html ...`, with the same options.")
        raise error.replace(argument="html", remedies=[advice]) from None


def _notes(files: list[Path]) -> list[str]:
    """Notes on top lists that verax 0.2 saved."""
    old = [str(file) for file in files if has_old_accuracy(file)]
    if not old:
        return []
    some = f"{len(old)} of {len(files)} files were" if len(files) > 1 else f"{old[0]} was"
    mixed = "The merged accuracy mixes both definitions. " if len(old) < len(files) else ""
    return [
        f"{some} saved by verax 0.2, which counted answers in invalid lists as wrong in the accuracy and the "
        f"zero-one loss. {mixed}Score their rows again for the present definition."
    ]


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.fields import ANY_CARD, MAYBE_TOLD, MERGED

    return {**MERGED, **MAYBE_TOLD, "card": ANY_CARD}
