"""The card of a file of lists, as `evaluate` and `toplist` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from verax.cli.app import FAILED, words
from verax.cli.lists import save_list_report
from verax.cli.output import said_of, show, subgroups_by
from verax.cli.require import Bound, read_list_bounds
from verax.cli.shards import report_on_shard
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded

if TYPE_CHECKING:
    from verax.analyses.cards.scorecard import Scorecard
    from verax.analyses.subgroups.result import Subgroups
    from verax.files.lists import ListFile
    from verax.inputs.handles import Handle


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

        no_report = report_on_shard(html, save, card, ReadLists(read), said_of(read), parts)
        if no_report is not None:
            html = None
            notes.append(f"There is no report on this part alone. {words().say(no_report)}")
    elif save is not None:
        card.save(save)
    found = _Shown(read.path, read.taken, read.to_dict(), card, bounds, notes, parts or {}, save, html)
    found.show("evaluate" if nested else "toplist", nested=nested, as_json=as_json)


def show_lists(
    read: ListFile,
    *,
    model: str,
    asked: list[str] | None,
    rule: str | None,
    least: int,
    bootstrap: int,
    save: Path | None,
    html: Path | None,
    ordered: bool,
    **settings: Any,
) -> None:
    """The card of lists with their subgroups and, if asked for, their report."""
    shared = {name: settings[name] for name in ("confidence", "seed", "weights_are")}
    parts = subgroups_by(read, read.lists, rule, least=least, bootstrap=bootstrap, **shared)
    if html is not None and save is None:
        save_list_report(
            html,
            read.y,
            {model: read.lists},
            parts,
            weights=read.weights,
            skipped=read.skipped,
            groups=read.groups,
            ids=read.ids,
            ordered=ordered,
            source=said_of(read),
            rules=asked,
            **shared,
        )
    show_card(read, nested=True, parts=parts, save=save, html=html, ordered=ordered, **settings)


def show_large(
    handle: Handle,
    *,
    rule: str | None,
    rules: Sequence[Rule],
    require: list[str] | None,
    strictly: bool,
    as_json: bool,
    least: int,
    bootstrap: int,
    save: Path | None = None,
    html: Path | None = None,
    **settings: Any,
) -> None:
    """The same of files that are too large to be held."""
    from verax.analyses.cards.tally import Tally
    from verax.analyses.subgroups.subgroups import subgroups

    bounds = read_list_bounds(require, strictly=strictly)
    asked = [bound.rule for bound in bounds if bound.rule is not None]
    fined = [rule if isinstance(rule, Padded) else padded(rule) for rule in (*rules, *asked)]
    tally = Tally.of(handle, rules=list(dict.fromkeys(fined)), **settings)
    card = tally.card(part=save is not None)
    notes = list(getattr(handle, "notes", ()))
    parts = {}
    for name in handle.by:
        parts[name] = subgroups(handle, by=name, rule=rule, least=least, bootstrap=bootstrap, **settings)
    if html is not None:
        said = f"{handle.name}: {'; '.join(handle.taken)}"
        no_report = report_on_shard(html, save, card, handle, said, parts)
        if no_report is not None:
            html = None
            notes.append(f"There is no report on this part alone. {words().say(no_report)}")
    elif save is not None:
        card.save(save)
    skipped = None if card.skipped is None else card.skipped.to_dict()
    shape = handle.taken[0].partition(": ")[2]
    counts, said_of_lists = getattr(handle, "counts", {}), list(getattr(handle, "notes", ()))
    lists = {"shape": shape, "taken": list(handle.taken), "counts": counts}
    lists |= {"skipped": skipped, "notes": said_of_lists}
    found = _Shown(handle.name, handle.taken, lists, card, bounds, notes, parts, save, html)
    found.show("evaluate", nested=True, as_json=as_json)


@dataclass(frozen=True)
class _Shown:
    """What a command prints of lists."""

    path: str
    taken: Sequence[str]
    lists: Mapping[str, Any]
    card: Scorecard
    bounds: Sequence[Bound]
    notes: Sequence[str]
    parts: Mapping[str, Subgroups]
    save: Path | None
    html: Path | None

    def show(self, command: str, *, nested: bool, as_json: bool) -> None:
        """Print it, and fail where a bound does not hold."""
        card, save, html = self.card, self.save, self.html
        verdicts = [bound.hold(card) for bound in self.bounds]
        by = {name: part.to_dict(stored=False) for name, part in self.parts.items()}
        result: dict[str, Any] = {
            "command": command,
            "file": self.path,
            **({"card": card.to_dict(stored=False)} if nested else card.to_dict(stored=False)),
            "lists": self.lists,
            **({"subgroups": by} if by else {}),
            "require": [verdict.to_dict() for verdict in verdicts],
            "met": all(verdict.met for verdict in verdicts),
            "notes": list(self.notes),
            "save": None if save is None else str(save),
            "html": None if html is None else str(html),
        }
        texts = [
            f"{self.path}: {'; '.join(self.taken)}",
            str(card),
            *(f"Note: {note}" for note in self.notes),
        ]
        texts += [f"\n{part}" for part in self.parts.values()]
        saved = [] if save is None else [f"The sums are in {save}."]
        saved += [] if html is None else [f"The report is in {html}."]
        show(result, [*texts, *map(str, verdicts), *saved], as_json=as_json)
        if not result["met"]:
            raise typer.Exit(FAILED)
