"""A handle that records the summaries of analyses, so that they can be saved.

Shards are analysed one by one, wherever they are, and their summaries are saved. Later the same analyses of
all shards read these files (`verax.scans.saved`), without any row.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.scorecard import Scorecard
from verax.common.idkeys import storing_ids
from verax.errors import InputError, Remedy
from verax.inputs.handles import Gathering, Handle, Part, Recipe, Summaries, refuse_followed
from verax.inputs.skipping import Skipped
from verax.scans.names import former_names, saved_name
from verax.scans.parts import UNNAMED, default_name
from verax.scans.shards import About, Shard


@dataclass
class _Record:
    """All summaries made so far, by the names they are saved under, with their former names."""

    summaries: dict[str, Any] = field(default_factory=dict)
    former: dict[str, tuple[str, ...]] = field(default_factory=dict)
    card: Scorecard | None = None
    n_rows: int | None = None
    skipped: Skipped | None = None


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
        refuse_followed(handle)
        self._handle = handle
        self._record = _Record()
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
        names = {asked: saved_name(recipe, self.models) for asked, recipe in recipes.items()}
        known = self._record.summaries
        self._make({names[asked]: recipe for asked, recipe in recipes.items() if names[asked] not in known})
        by_name = {asked: known[name] for asked, name in names.items() if name in known}
        return Summaries(by_name, self._record.n_rows or 0, self._record.skipped)

    def _make(self, recipes: Mapping[str, Recipe[Any]]) -> None:
        """Make summaries from the rows, and record them by these names."""
        if not recipes:
            return
        record, models = self._record, dict(zip(self._handle.models, self.models, strict=True))
        made = self._handle._summarise({name: _Renamed(recipe, models) for name, recipe in recipes.items()})
        record.n_rows, record.skipped = made.n_rows, made.skipped
        for name, summary in made.by_name.items():
            record.summaries[name] = summary
            record.former[name] = former_names(recipes[name], self.models)
            if record.card is None and isinstance(recipes[name], CardRecipe):
                record.card = summary

    def save(self, path: str | Path, card: Scorecard | None = None) -> None:
        """Write all summaries made to a file that `scan` opens; `load` reads its card.

        Parameters
        ----------
        path : str or path
            The file.
        card : Scorecard, optional
            The card, if it is not the first one made.
        """
        record = self._record
        if record.n_rows is None:
            raise InputError(
                "must have been asked for something before it is saved",
                argument="handle",
                remedies=[Remedy("Call the analyses that you need later, such as `evaluate`, first.")],
            )
        about = About.of(self, record.n_rows, record.skipped)
        with storing_ids():
            summaries = {name: summary.to_bytes() for name, summary in record.summaries.items()}
            Shard(about, summaries, record.former).write(path, record.card if card is None else card)


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
