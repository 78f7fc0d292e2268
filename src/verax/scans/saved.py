"""A handle on files of saved summaries: analyses read what was recorded of each shard, merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from verax.analyses.cards.fingerprints import Fingerprint
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.grades import grade_scale
from verax.common.idkeys import storing_ids
from verax.common.paths import matching
from verax.errors import InputError, Remedy
from verax.inputs.handles import Handle, Recipe, RowFacts, Summaries
from verax.inputs.reading import Reading
from verax.inputs.skipping import Skipped
from verax.scans.names import former_names, saved_name
from verax.scans.options import ScanOptions
from verax.scans.shards import About, Shard, holds_shard, merged

ENDING = ".verax"


class SavedHandle(Handle):
    """Summaries in files, merged; refuses summaries that were not recorded."""

    has_rows = False

    def __init__(self, paths: Sequence[Path]) -> None:
        files = [(path, Shard.read(path)) for path in paths]
        abouts = [shard.about for _, shard in files]
        first = abouts[0]
        for path, about in zip(paths, abouts, strict=True):
            what = about.difference(first)
            if what is not None:
                raise InputError(
                    f"{paths[0]} and {path} cannot be merged",
                    argument="source",
                    kind="file",
                    found=f"their {what} differ",
                )
        # Those without a row have no summaries.
        self._shards = {str(path): shard for path, shard in files if shard.about.n_rows}
        known = RowFacts(
            models=first.models,
            classes=first.classes,
            n_classes=first.n_classes,
            by=first.by,
            lists=first.lists,
            taken=tuple(f"{path}: summaries of {shard.about.name}" for path, shard in files),
            graded=None if first.graded is None else grade_scale(first.graded),
            rated=True,
        )
        together = f"{paths[0]} and {len(paths) - 1:,} more" if len(paths) > 1 else str(paths[0])
        self._describe(together, sum(about.n_rows for about in abouts), known)
        self._skipped = _left_out(abouts)

    def in_order(self) -> Handle:
        # Summaries that depend on the order were recorded only if it was known.
        return self

    def knows(self, recipe: Recipe[Any]) -> bool:
        return all(self._pieces(recipe).values())

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        by_name = {name: self._merged(recipe) for name, recipe in recipes.items()} if self._shards else {}
        return Summaries(by_name, self.n_rows or 0, self._skipped)

    def _pieces(self, recipe: Recipe[Any]) -> dict[str, list[bytes]]:
        """The pieces of the summary that a recipe makes, in each file with rows; none where it is lacking."""
        name = saved_name(recipe, self.models)
        found = {path: shard.pieces([name]) for path, shard in self._shards.items()}
        if not all(found.values()):
            former = former_names(recipe, self.models)
            found = {path: pieces or self._shards[path].pieces(former) for path, pieces in found.items()}
        return found

    def _merged(self, recipe: Recipe[Any]) -> Any:
        by_file = self._pieces(recipe)
        lacking = next((path for path, pieces in by_file.items() if not pieces), None)
        if lacking is not None:
            raise self._lacking(lacking, recipe)
        sizes = {"classes": self.n_classes, "models": len(self.models)}
        loaded = (recipe.load(piece, sizes) for pieces in by_file.values() for piece in pieces)
        return reduce(lambda a, b: a.merge(b), loaded)

    def _lacking(self, path: str, recipe: Recipe[Any]) -> InputError:
        """The error about a file without a summary."""
        if recipe.follows and len(self._shards) > 1:
            return InputError(
                f"{path} lacks summaries that depend on the rows of the other files",
                argument="source",
                kind="missing",
                found="this analysis passes over the rows twice",
                remedies=[Remedy("Open the rows of all files together: `scan([...])`.", python_only=True)],
            )
        return InputError(
            f"{path} lacks summaries that this analysis needs",
            argument="source",
            kind="missing",
            found=f"none was made by {type(recipe).__name__} with these settings",
            remedies=[Remedy("Run the analysis with the same settings and names of models before saving.")],
        )

    def save(
        self, path: str | Path, card: Scorecard | None = None, parts: Sequence[Fingerprint] = ()
    ) -> None:
        """Merge the summaries that all files have into one file, with their card."""
        if card is None:
            super().save(path)
            return
        about = About.of(self, self.n_rows or 0, self._skipped)
        with storing_ids():
            merged(list(self._shards.values()), about).write(path, card, parts)


def _left_out(abouts: Sequence[About]) -> Skipped | None:
    """The rows left out of all files; their numbers are dropped, as rows are numbered in each file from 0."""
    skipped = [about.skipped for about in abouts if about.skipped is not None]
    if not skipped:
        return None
    together = reduce(add, skipped)
    return Skipped(together.n_given, together.count, (), together.reasons)


def merge_saved(
    paths: Sequence[Path], card: Scorecard, path: Path, parts: Sequence[Fingerprint] = ()
) -> None:
    """Merge what saved files have in common into one file with their card; cards alone give a card."""
    if all(map(holds_shard, paths)):
        SavedHandle(paths).save(path, card, parts)
    else:
        card._save(path, parts)


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
