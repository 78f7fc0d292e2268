"""The card of a file of lists, as `evaluate` and `toplist` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from verax.cli.app import FAILED, words
from verax.cli.output import show
from verax.cli.require import read_list_bounds
from verax.cli.shards import report_on_shard
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded

if TYPE_CHECKING:
    from verax.analyses.subgroups.result import Subgroups
    from verax.files.lists import ListFile


def show_card(
    read: ListFile,
    *,
    rules: Sequence[Rule],
    require: list[str] | None,
    strictly: bool,
    as_json: bool,
    nested: bool,
    length: int | None = None,
    save: Path | None = None,
    html: Path | None = None,
    parts: Mapping[str, Subgroups] | None = None,
    **settings: Any,
) -> None:
    """Score the lists of a file, print the card and what was done to them, and hold it to bounds.

    Parameters
    ----------
    rules : sequence of Rule
        What to score by; rules of bounds are added.
    nested : bool
        In JSON the card is a field of the result; otherwise its fields are those of the result.
    length : int or None
        Score only the first entries of each list.
    save : Path or None
        Where to save the sums, which may be of a part of all lists.
    html : Path or None
        Where a report was written, or where it is to be written where sums are saved, too.
    parts : Mapping or None
        The scores by each field of subgroups.
    """
    from verax.analyses.cards.tally import Tally

    bounds = read_list_bounds(require, strictly=strictly)
    asked = [bound.rule for bound in bounds if bound.rule is not None]
    fined = [rule if isinstance(rule, Padded) else padded(rule) for rule in (*rules, *asked)]
    lists = read.lists if length is None else read.lists.truncate(length)
    options = {"weights": read.weights, "groups": read.groups, **settings}
    tally = Tally.of(read.y, lists, rules=list(dict.fromkeys(fined)), **options)
    card = tally.with_skipped(read.skipped).card(part=save is not None)
    notes = list(read.notes)
    if save is not None and html is not None:
        from verax.scans.listfiles import ReadLists

        said = f"{Path(read.path).name}: {'; '.join(read.taken)}"
        no_report = report_on_shard(html, save, card, ReadLists(read), said)
        if no_report is not None:
            html = None
            notes.append(f"There is no report on this part alone. {words().say(no_report)}")
    elif save is not None:
        card.save(save)
    verdicts = [bound.hold(card) for bound in bounds]
    result: dict[str, Any] = {
        "command": "evaluate" if nested else "toplist",
        "file": read.path,
        **({"card": card.to_dict(stored=False)} if nested else card.to_dict(stored=False)),
        "lists": read.to_dict(),
        **(
            {"subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()}} if parts else {}
        ),
        "require": [verdict.to_dict() for verdict in verdicts],
        "met": all(verdict.met for verdict in verdicts),
        "notes": notes,
        "save": None if save is None else str(save),
        "html": None if html is None else str(html),
    }
    texts = [f"{read.path}: {'; '.join(read.taken)}", str(card), *(f"Note: {note}" for note in notes)]
    texts += [f"\n{part}" for part in (parts or {}).values()]
    saved = [] if save is None else [f"The sums are in {save}."]
    saved += [] if html is None else [f"The report is in {html}."]
    show(result, [*texts, *map(str, verdicts), *saved], as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)
