"""What a file keeps of the rows of a shard: facts about them, summaries by name, and their card."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from verax.analyses.cards.container import CARD, not_saved, read_summaries, write_summaries
from verax.analyses.cards.fingerprints import Fingerprint
from verax.analyses.cards.scorecard import Scorecard
from verax.common.caching import cached_property
from verax.common.packing import UnreadableError, dump, load, refusing
from verax.common.specs import Each, Label, Number, Several, Text, Truth, Valued, Whole
from verax.common.summaries import fields_of, from_bytes
from verax.common.wings import know_saved
from verax.errors import InputError
from verax.inputs.handles import Handle
from verax.inputs.skipping import Skipped

# Where summaries of the core are defined that files may keep; wings say where theirs are.
_SUMMARIES = (
    "verax.analyses.calibration.recipes",
    "verax.analyses.calibration.slope",
    "verax.analyses.calibration.smooth_ece",
    "verax.analyses.calibration.uncertainty",
    "verax.analyses.list_samples",
    "verax.analyses.subgroups.analysis",
    "verax.report.analysis",
    "verax.report.survey",
)
# The entries of a file beside its summaries and its card, and their kinds.
_ABOUT, _FORMER = "about", "former names"
_ABOUT_KIND = "recorded summaries"


@dataclass(frozen=True)
class About:
    """The facts about the rows of a shard.

    Attributes
    ----------
    name : str
        The name of the shard.
    models : tuple of str
        The names of the models.
    classes : tuple or None
        The names of the classes.
    by : tuple of str
        The columns of subgroups.
    lists : bool
        Whether the forecasts are top lists.
    n_classes, n_rows : int
        The numbers of classes and of valid rows.
    skipped : Skipped or None
        The rows that were left out.
    graded : tuple of two floats or None
        The range of grades, if rows are graded answers.
    """

    name: str
    models: tuple[str, ...]
    classes: tuple[Any, ...] | None
    by: tuple[str, ...]
    lists: bool
    n_classes: int
    n_rows: int
    skipped: Skipped | None
    graded: tuple[float, float] | None

    @classmethod
    def of(cls, handle: Handle, n_rows: int, skipped: Skipped | None) -> About:
        """The facts about the rows of a handle."""
        same = {name: getattr(handle, name) for name in ("name", "models", "classes", "by", "lists")}
        graded = None if handle.graded is None else (handle.graded.low, handle.graded.high)
        return cls(**same, n_classes=handle.n_classes, n_rows=n_rows, skipped=skipped, graded=graded)

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        values = {
            **vars(self),
            # Texts hold integers of any size.
            "n_classes": str(self.n_classes),
            "skipped": None if self.skipped is None else self.skipped.to_values(),
        }
        # Files of forecasts are as those of 0.2, which knew no grades.
        return dump(_ABOUT_KIND, {name: values[name] for name in values if name != "graded" or self.graded})

    @classmethod
    def from_bytes(cls, stored: bytes) -> About:
        """The facts that `to_bytes` wrote."""
        values = load(stored, _ABOUT_KIND)
        with refusing("is missing or of another type"):
            facts = fields_of(_SPECS, {"lists": False, "graded": None, **values}, {})
            if not facts["n_classes"].isdecimal() or not facts["models"]:
                raise UnreadableError("is not a number, or has no model", "n_classes")
            facts["n_classes"] = int(facts["n_classes"])
            if facts["classes"] is not None and len(set(facts["classes"])) != facts["n_classes"]:
                raise UnreadableError("is about other classes", "classes")
            return cls(**facts)

    def difference(self, other: About) -> str | None:
        """The name of what keeps the rows of both from being put together, if anything does."""
        for name in ("classes", "n_classes", "by", "lists", "graded"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None if len(self.models) == len(other.models) else "models"


_SPECS = {
    "name": Text("first"),
    "models": Several(Text("equal")),
    "classes": Several(Label(), optional=True),
    "n_classes": Text("equal"),
    "by": Several(Text("equal")),
    "lists": Truth("equal"),
    "n_rows": Whole(),
    "skipped": Valued(Skipped, optional=True),
    "graded": Several(Number("equal"), optional=True),
}
_FORMER_SPECS = {_FORMER: Each(Several(Text("equal")))}


@dataclass(frozen=True)
class Shard:
    """Summaries of the rows of a shard.

    Attributes
    ----------
    about : About
        The facts about the rows.
    summaries : mapping of str to bytes
        The summaries by name. A summary may be in pieces, which are numbered: an older version merged it, or
        did not know its kind.
    former : mapping of str to tuple of str
        The names of the same summaries in files of 0.3 and before, the latest first.
    """

    about: About
    summaries: Mapping[str, bytes]
    former: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Shard:
        """The shard in a file; a file with a card only is refused."""
        stored = read_summaries(path)
        if _ABOUT not in stored:
            error = InputError("", argument="data", found="it holds a card only; read it with `load`")
            raise not_saved(path, error)
        about = About.from_bytes(stored.pop(_ABOUT))
        stored.pop(CARD, None)
        names = [name for name in stored if _without_place(name) == _FORMER]
        return cls(about, stored, _joined(map(_former_of, map(stored.pop, names))))

    def write(self, path: str | Path, card: Scorecard | None, parts: Sequence[Fingerprint] = ()) -> None:
        """Write it to a file, with its card and the parts that were merged into it."""
        entries = {_ABOUT: self.about.to_bytes(), **self.summaries}
        if card is not None:
            entries[CARD] = card.to_bytes()
        if self.former:
            entries[_FORMER] = dump(_FORMER, {_FORMER: dict(sorted(self.former.items()))})
        write_summaries(path, entries, parts)

    @cached_property
    def names(self) -> set[str]:
        """The names of its summaries."""
        return set(map(_without_place, self.summaries))

    def pieces(self, names: Iterable[str]) -> list[bytes]:
        """The pieces of the first summary of these names that it has; none if it has none."""
        name = next((name for name in names if name in self.summaries), None)
        if name is None:
            return []
        numbered = (_piece(name, i) for i in range(len(self.summaries)))
        return [self.summaries[piece] for piece in itertools.takewhile(self.summaries.__contains__, numbered)]


def holds_shard(path: Path) -> bool:
    """Whether a file holds summaries beside its card."""
    return _ABOUT in read_summaries(path)


def merged(shards: Sequence[Shard], about: About) -> Shard:
    """The summaries that all shards have, merged; those of a kind from a newer version are kept in pieces.

    A summary that one file names as 0.3 did is found by the former names that another file knows for it.
    """
    former = _joined(shard.former for shard in shards)
    replaced = {name for names in former.values() for name in names}
    candidates = former.keys() | set().union(*(shard.names for shard in shards)) - replaced
    summaries: dict[str, bytes] = {}
    for name in sorted(candidates):
        of_shards = [shard.pieces((name, *former.get(name, ()))) for shard in shards]
        if all(of_shards):
            pieces = _merged_pieces(itertools.chain(*of_shards))
            summaries |= {_piece(name, i): piece for i, piece in enumerate(pieces)}
    return Shard(about, summaries, {name: names for name, names in former.items() if name in summaries})


def _merged_pieces(pieces: Iterable[bytes]) -> list[bytes]:
    know_summaries()
    known, unknown = None, []
    for piece in pieces:
        summary = from_bytes(piece)
        if summary is None:
            unknown.append(piece)
        else:
            known = summary if known is None else known.merge(summary)
    return unknown if known is None else [known.to_bytes()]


def know_summaries() -> None:
    """Import every class of summaries, so that each is known by its kind."""
    for module in _SUMMARIES:
        import_module(module)
    know_saved()


def _former_of(stored: bytes) -> dict[str, tuple[str, ...]]:
    with refusing("is missing or of another type"):
        former: dict[str, tuple[str, ...]] = fields_of(_FORMER_SPECS, load(stored, _FORMER), {})[_FORMER]
        return former


def _joined(tables: Iterable[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The former names of all tables; those of one summary may differ, as 0.3 told lists from arrays."""
    former: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for name, names in table.items():
            former[name] = tuple(dict.fromkeys((*former.get(name, ()), *names)))
    return former


def _piece(name: str, i: int) -> str:
    return f"{name}+{i}" if i else name


def _without_place(name: str) -> str:
    return name.partition("+")[0]
