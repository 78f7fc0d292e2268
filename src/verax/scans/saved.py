"""Saved summaries: a handle that records the summaries of analyses, and one on the files that it writes.

Shards are analysed one by one, wherever they are, and their summaries are saved. Later the same analyses of
all shards read these files, without any row.
"""

from __future__ import annotations

import copy
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from hashlib import blake2b
from importlib import import_module
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from verax.analyses.cards.container import CARD, not_saved, read_summaries, write_summaries
from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.opening import grade_scale
from verax.common.packing import UnreadableError, dump, load, refusing
from verax.common.paths import matching
from verax.common.specs import Label, Number, Several, Text, Truth, Valued, Whole
from verax.common.summaries import fields_of, from_bytes
from verax.common.wings import know_saved
from verax.errors import InputError, Remedy
from verax.inputs.handles import LATER, Gathering, Handle, Part, Recipe, RowFacts, Summaries
from verax.inputs.reading import Reading
from verax.inputs.skipping import Skipped
from verax.scans.options import ScanOptions
from verax.scans.parts import UNNAMED, default_name

ENDING = ".verax"
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
_ABOUT, _KIND = "about", "recorded summaries"
# Inside of rules the log score was once called "log"; on its own it was not.
_FORMER_LOG = re.compile(r"(?<!')\blog_score\b|\blog_score\b(?!')")
# The names of classes and functions in recipes when files were first saved.
_SAVED_AS = {"UncertaintyScore(": "Doubt(", "<function expected_of_itself>": "<function _expected_of_itself>"}


class Recorded(Handle):
    r"""A handle that keeps every summary it makes, so that none is made twice, and saves them.

    It is for one thread: analyses in several threads, or `save` during one, may miss summaries.

    Parameters
    ----------
    handle : Handle
        Predictions that `scan` has opened.
    model : str, optional
        A name for the only model. A model without a name, elsewhere named after its file, is called "model"
        by default, so that summaries of all shards merge.

    Examples
    --------
    >>> import pathlib, tempfile, verax as vx
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for day in ("monday", "tuesday"):
    ...     _ = (folder / f"{day}.csv").write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    ...     shard = vx.scan(folder / f"{day}.csv", record=True)
    ...     _ = vx.evaluate(shard), vx.decompose(shard, rule="brier")
    ...     shard.save(folder / f"{day}.verax")
    >>> week = vx.scan([folder / "monday.verax", folder / "tuesday.verax"])
    >>> vx.evaluate(week).n_rows, round(vx.decompose(week, rule="brier").score, 3)
    (4, 0.2)
    """

    shard = True

    def __init__(self, handle: Handle, *, model: str | None = None) -> None:
        self._handle = handle
        self._record: dict[str, Any] = {}
        # Files of summaries do not tell whether there were weights, and are asked as if there were.
        self._describe(handle.name, handle.n_rows, replace(handle.facts, weighted=True))
        if model is None and handle.models == (default_name(handle.name),):
            model = UNNAMED
        if model is not None:
            handle.one_model()
            self.models: tuple[str, ...] = (model,)

    def in_order(self) -> Handle:
        same = copy.copy(self)
        same._handle = self._handle.in_order()
        return same

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        keys = {name: _keys(recipe, self.models)[0] for name, recipe in recipes.items()}
        new = {key: recipes[name] for name, key in keys.items() if key not in self._record}
        if new:
            names = dict(zip(self._handle.models, self.models, strict=True))
            summaries = self._handle._summarise({key: _Renamed(recipe, names) for key, recipe in new.items()})
            self._record |= {**summaries.by_name, "n_rows": summaries.n_rows, "skipped": summaries.skipped}
            for key in [key for key, recipe in new.items() if isinstance(recipe, CardRecipe)]:
                self._record.setdefault(CARD, self._record.get(key))
        by_name = {name: self._record[key] for name, key in keys.items() if key in self._record}
        return Summaries(by_name, self._record["n_rows"], self._record["skipped"])

    def save(self, path: str | Path, card: Scorecard | None = None) -> None:
        """Write all summaries made to a file that `scan` opens; `load` reads its card.

        Parameters
        ----------
        path : str or path
            The file.
        card : Scorecard, optional
            The card, if it is not the first one made.
        """
        if not self._record:
            raise InputError(
                "must have been asked for something before it is saved",
                argument="handle",
                remedies=[Remedy("Call the analyses that you need later, such as `evaluate`, first.")],
            )
        about = _about_bytes(self, self._record["n_rows"], self._record["skipped"])
        others = ("n_rows", "skipped")
        stored = {
            name: summary.to_bytes()
            for name, summary in self._record.items()
            if name not in others and summary is not None
        }
        if card is not None:
            stored[CARD] = card.to_bytes()
        write_summaries(path, {_ABOUT: about, **stored})


@dataclass(frozen=True)
class _Renamed(Recipe[Any], cases=True):
    """A recipe for parts whose models have other names."""

    recipe: Recipe[Any]
    names: Mapping[str, str]

    def gathering(self) -> Gathering[Any]:
        return _RenamedParts(self.recipe.gathering(), self.names)

    def take(self, part: Part) -> Any:
        return self.recipe.take(_renamed(part, self.names))

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> Any:
        return self.recipe.load(stored, sizes)


@dataclass(frozen=True)
class _RenamedParts:
    """Takes in parts whose models have other names."""

    gathered: Gathering[Any]
    names: Mapping[str, str]

    def add(self, part: Part) -> None:
        self.gathered.add(_renamed(part, self.names))

    def summary(self) -> Any:
        return self.gathered.summary()


def _renamed(part: Part, names: Mapping[str, str]) -> Part:
    subset = part.subset
    return replace(
        part,
        models={names[name]: rows for name, rows in part.models.items()},
        subset=None if subset is None else lambda rows: _renamed(subset(rows), names),
    )


class SavedHandle(Handle):
    """Summaries in files, merged; refuses summaries that were not recorded."""

    has_rows = False

    def __init__(self, paths: Sequence[Path]) -> None:
        files = [(path, read_summaries(path)) for path in paths]
        about = [_about(path, stored) for path, stored in files]
        self._stored = [
            (str(path), stored) for (path, stored), facts in zip(files, about, strict=True) if facts["n_rows"]
        ]
        first = about[0]
        for path, other in zip(paths, about, strict=True):
            for name in ("classes", "n_classes", "by", "lists", "graded"):
                if other[name] != first[name]:
                    raise _different(paths[0], path, name)
            if len(other["models"]) != len(first["models"]):
                raise _different(paths[0], path, "models")
        names = zip(paths, (facts["name"] for facts in about), strict=True)
        known = RowFacts(
            **{name: first[name] for name in ("models", "classes", "n_classes", "by", "lists")},
            taken=tuple(f"{path}: summaries of {name}" for path, name in names),
            graded=None if first["graded"] is None else grade_scale(first["graded"]),
            rated=True,
        )
        together = f"{paths[0]} and {len(paths) - 1:,} more" if len(paths) > 1 else str(paths[0])
        self._describe(together, sum(facts["n_rows"] for facts in about), known)
        skipped = [facts["skipped"] for facts in about if facts["skipped"] is not None]
        # Rows are numbered in each file from 0.
        self._skipped = None
        if skipped:
            left_out = reduce(add, skipped)
            self._skipped = Skipped(left_out.n_given, left_out.count, (), left_out.reasons)

    def in_order(self) -> Handle:
        # Summaries that depend on the order were recorded only if it was known.
        return self

    def knows(self, recipe: Recipe[Any]) -> bool:
        keys = _keys(recipe, self.models)
        return all(any(key in stored for key in keys) for _, stored in self._stored)

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        by_name = {name: self._merged(recipe) for name, recipe in recipes.items()} if self._stored else {}
        return Summaries(by_name, self.n_rows or 0, self._skipped)

    def _merged(self, recipe: Recipe[Any]) -> Any:
        keys = _keys(recipe, self.models)
        pieces = [
            (path, next(filter(None, (_pieces(stored, key) for key in keys)), []))
            for path, stored in self._stored
        ]
        lacking = [path for path, stored_pieces in pieces if not stored_pieces]
        if lacking and recipe.follows and len(self._stored) > 1:
            raise InputError(
                f"{lacking[0]} lacks summaries that depend on the rows of the other files",
                argument="source",
                kind="missing",
                found="this analysis passes over the rows twice",
                remedies=[Remedy("Open the rows of all files together: `scan([...])`.", python_only=True)],
            )
        if lacking:
            raise InputError(
                f"{lacking[0]} lacks summaries that this analysis needs",
                argument="source",
                kind="missing",
                found=f"none was made by {type(recipe).__name__} with these settings",
                remedies=[
                    Remedy("Run the analysis with the same settings and names of models before saving.")
                ],
            )
        sizes = {"classes": self.n_classes, "models": len(self.models)}
        loaded = (recipe.load(piece, sizes) for _, stored_pieces in pieces for piece in stored_pieces)
        return reduce(lambda a, b: a.merge(b), loaded)

    def save(self, path: str | Path, card: Scorecard | None = None) -> None:
        """Merge the summaries that all files have into one file, with their card."""
        if card is None:
            super().save(path)
            return
        stored = {_ABOUT: _about_bytes(self, self.n_rows or 0, self._skipped), CARD: card.to_bytes()}
        files = [file for _, file in self._stored]
        shared = set.intersection(*(set(map(_without_place, file)) for file in files)) if files else set()
        for key in sorted(shared - {_ABOUT, CARD}):
            pieces = _merged_bytes(piece for file in files for piece in _pieces(file, key))
            stored |= {_piece(key, i): piece for i, piece in enumerate(pieces)}
        write_summaries(path, stored)


def _merged_bytes(pieces: Iterable[bytes]) -> list[bytes]:
    """Summaries of the same kind, merged; those of a kind from a newer version stay unchanged."""
    know_summaries()
    merged, unknown = None, []
    for piece in pieces:
        summary = from_bytes(piece)
        if summary is None:
            unknown.append(piece)
        else:
            merged = summary if merged is None else merged.merge(summary)
    return unknown if merged is None else [merged.to_bytes()]


def know_summaries() -> None:
    """Import every class of summaries, so that each is known by its kind."""
    for module in _SUMMARIES:
        import_module(module)
    know_saved()


def merge_saved(paths: Sequence[Path], card: Scorecard, path: Path) -> None:
    """Merge what saved files have in common into one file with their card; cards alone give a card."""
    if any(_ABOUT not in read_summaries(shard) for shard in paths):
        card.save(path)
    else:
        SavedHandle(paths).save(path, card)


def _piece(key: str, i: int) -> str:
    return f"{key}+{i}" if i else key


def _without_place(name: str) -> str:
    return name.partition("+")[0]


def _pieces(stored: Mapping[str, bytes], key: str) -> list[bytes]:
    """The summary in a file; several if an older version merged it, or did not know its kind."""
    names = (_piece(key, i) for i in range(len(stored)))
    return [stored[name] for name in itertools.takewhile(stored.__contains__, names)]


def _about_bytes(handle: Handle, n_rows: int, skipped: Skipped | None) -> bytes:
    """The facts about rows in a file."""
    return dump(
        _KIND,
        {
            **{name: getattr(handle, name) for name in ("name", "models", "classes", "by", "lists")},
            # Texts hold integers of any size.
            "n_classes": str(handle.n_classes),
            "n_rows": n_rows,
            "skipped": None if skipped is None else skipped.to_values(),
            **({} if handle.graded is None else {"graded": (handle.graded.low, handle.graded.high)}),
        },
    )


def _keys(recipe: Recipe[Any], models: Sequence[str]) -> list[str]:
    """Names of the summaries of a recipe, the same in every process: the current one, then earlier ones.

    Models without a name are named after their files, so a recipe about one model uses its place.
    """
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return [_key(recipe, text, models) for text in recipe.spellings()]


def _key(recipe: Recipe[Any], text: str, models: Sequence[str]) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    # New fields of recipes must not change the names of saved summaries.
    later: Any = recipe
    for option in fields(later) if is_dataclass(later) else ():
        if LATER.items() <= option.metadata.items():
            text = text.replace(f", {option.name}={option.default!r}", "")
    for now, saved in _SAVED_AS.items():
        text = text.replace(now, saved)
    text = _FORMER_LOG.sub("log", text)
    for i, name in enumerate(models):
        text = text.replace(f"model={name!r}", f"model={i}")
    return f"{type(recipe).__name__}-{blake2b(text.encode(), digest_size=12).hexdigest()}"


def _about(path: Path, stored: Mapping[str, bytes]) -> dict[str, Any]:
    if _ABOUT not in stored:
        error = InputError("", argument="data", found="it holds a card only; read it with `load`")
        raise not_saved(path, error)
    values = load(stored[_ABOUT], _KIND)
    with refusing("is missing or of another type"):
        facts = fields_of(_STORED, {"lists": False, "graded": None, **values}, {})
        if not facts["n_classes"].isdecimal() or not facts["models"]:
            raise UnreadableError("is not a number, or has no model", "n_classes")
        facts["n_classes"] = int(facts["n_classes"])
        if facts["classes"] is not None and len(set(facts["classes"])) != facts["n_classes"]:
            raise UnreadableError("is about other classes", "classes")
        return facts


_STORED = {
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


def _different(one: Path, other: Path, what: str) -> InputError:
    return InputError(
        f"{one} and {other} cannot be merged", argument="source", kind="file", found=f"their {what} differ"
    )


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on files of summaries; None for anything else."""
    given = [source] if isinstance(source, (str, Path)) else source
    if not isinstance(given, (list, tuple)) or not given:
        return None
    if not all(isinstance(file, (str, Path)) and str(file).endswith(ENDING) for file in given):
        return None
    if options.reading != Reading():
        raise InputError("must be given without options: they were said when it was saved", argument="source")
    return SavedHandle([path for file in given for path in matching(file)])
