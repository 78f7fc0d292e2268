"""Sums of the losses of several models on the same rows, and of the traits that explain them."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.comparison.reasons import (
    ERROR_DISTANCE,
    FORMULAS,
    TRAITS,
    distances,
    error_column,
    mean_traits,
)
from verax.analyses.comparison.references import OtherGroups, uniform_losses
from verax.analyses.parts import RowPass, naming, probabilities
from verax.common.packing import UnreadableError
from verax.common.specs import Each, Valued
from verax.common.summaries import Summary, merges
from verax.engines.differences import PairedTally, tallies_of_pieces, with_differences
from verax.engines.models import InvalidRowsError, ModelLayout, ModelLosses
from verax.engines.pieces import ColumnBlock, Fill
from verax.engines.stats import RowStatistic
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts, ShareBatch
from verax.inputs.handles import Part, Recipe
from verax.kernels.ledger import compiles
from verax.scores.base import Rule, losses_of
from verax.scores.registry import name_of

# Number of rows prepared for kernels at a time.
_READY = 2**16
# Gives the lines of a model, in one array.
Lines = Callable[[str], Floats]


class Pieces:
    """Losses and traits of models on the rows of a part, as lines: written by kernels, or known.

    A line is the losses of a model by a rule, or one of its traits. Each line has its place in a piece.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._written: list[tuple[ModelLosses, Ints]] = []
        self._known: list[tuple[int, Floats]] = []

    @classmethod
    def of(
        cls, part: Part, rules: Sequence[Rule], places: Mapping[str, Sequence[int]], lines: Lines
    ) -> Pieces | None:
        """The losses of each model by each rule, then its traits if there are places for them.

        `lines` gives those of models without a kernel. None if no model has a kernel.
        """
        alike: dict[tuple[ModelLayout | None, bool], list[str]] = {}
        for name, lines_of_model in places.items():
            alike.setdefault(
                (ModelLayout.of(part.models[name]), len(lines_of_model) > len(rules)), []
            ).append(name)
        pieces, others = cls(part), []
        for (layout, traits), names in alike.items():
            losses = None
            if layout is not None:
                formulas = (*rules, *(FORMULAS if traits else ()))
                rows = [part.models[name] for name in names]
                if compiles(part.n_rows * layout.n_classes * len(rows), (layout, formulas)):
                    losses = ModelLosses.of(rows, formulas, layout, distances=traits)
            if losses is None:
                others += names
            else:
                pieces._written.append((losses, np.array([places[name] for name in names]).T))
        if not pieces._written:
            return None
        for name in others:
            for place, line in zip(places[name], lines(name), strict=True):
                pieces.know(place, line)
        return pieces

    def know(self, place: int, line: Floats) -> None:
        """Add a known line of all rows."""
        self._known.append((place, line))

    def tallies(
        self, blocks: Sequence[ColumnBlock], fill: Callable[[], Fill] | None = None
    ) -> list[list[PairedTally]] | None:
        """A tally of each column of each block of consecutive lines; None if compiled loops do not pay.

        `fill` returns a function that writes pieces, in place of that for the lines.
        """
        try:
            return tallies_of_pieces(blocks, self._part.n_rows, self._weights(), fill or self.fill)
        except InvalidRowsError:
            self._check()
            raise VeraxError(
                "Rows changed while they were read: at first some were invalid, and then none."
            ) from None

    def fill(self) -> Fill:
        """A function that writes pieces, for one thread."""
        n_rows = self._part.n_rows
        ready = [losses.reading(0, 1) for losses, _ in self._written]

        def write(start: int, stop: int, flat: Floats) -> None:
            n = stop - start
            for i, (losses, places) in enumerate(self._written):
                if not ready[i].start <= start < stop <= ready[i].stop:
                    ready[i] = losses.reading(start, min(start + _READY, n_rows))
                losses.write(ready[i], start, n, places * n, flat)
            for place, line in self._known:
                flat[place * n : (place + 1) * n] = line[start:stop]

        return write

    def _weights(self) -> Floats | None:
        rows = self._part.rows
        if rows.weights is None:
            return None
        weights = np.asarray(to_host(rows.batch(0, rows.n_rows).weights), float)
        if not (weights.min() >= 0 and weights.max() < np.inf and weights.any()):
            self._check()
        return weights

    def _check(self) -> None:
        """Raise the error that names the first invalid rows."""
        for name, rows in self._part.models.items():
            if isinstance(rows, Forecasts):
                with naming(self._part, name):
                    rows.check()


# Names of the tallies: losses by a rule, one trait, the traits of all models without their differences, and
# the shapes of differences.
OF_RULE, OF_TRAIT, OF_TRAITS, OF_MARGIN = "rule:{}", "trait:{}", "traits", "margin"
# Under this name a part caches the traits of a model.
_COLUMNS = "traits of {}"


class PairedSums(Summary, kind="paired tallies"):
    """Sums of several columns of all models, by name."""

    tallies: Mapping[str, PairedTally] = merges(Each(Valued(PairedTally, packed=True), flat=True))

    def _aligned(self, other: PairedSums) -> tuple[PairedSums, PairedSums]:
        # 0.2.0 summed the traits of a single rule differently; merge the rest.
        if self.tallies.keys() == other.tallies.keys():
            return self, other
        shared = [name for name in self.tallies if name in other.tallies]
        first, second = (PairedSums({name: sums[name] for name in shared}) for sums in (self, other))
        return first, second

    def __getitem__(self, name: str) -> PairedTally:
        return self.tallies[name]

    def of_rule(self, rule: Rule) -> PairedTally:
        """The sums of the losses by a rule."""
        return self.tallies[OF_RULE.format(name_of(rule))]

    def traits(self, i: int) -> Floats | None:
        """The mean of each trait of model `i`; None if they were not summed."""
        if OF_TRAITS in self.tallies:
            return self.tallies[OF_TRAITS].means[len(TRAITS) * i :][: len(TRAITS)]
        if OF_TRAIT.format(0) in self.tallies:
            return np.array([self.tallies[OF_TRAIT.format(trait)].means[i] for trait in TRAITS])
        return None

    @property
    def ungrouped(self) -> PairedSums:
        """The sums of the same rows, treated as independent."""
        return PairedSums({name: tally.ungrouped for name, tally in self.tallies.items()})

    @property
    def first(self) -> PairedTally:
        """One of the tallies, for the number of rows and groups that all share."""
        return next(iter(self.tallies.values()))


class ColumnRecipe(Recipe[PairedSums], cases=True):
    """Sum columns that have a value for each row and model."""

    def n_groups(self, sums: PairedSums) -> int:
        """The number of groups that columns are summed by."""
        labels = sums.first.labels if sums.tallies else None
        return 0 if labels is None else len(labels)

    def columns(self, part: Part) -> Mapping[str, Floats]:
        """(N, M) values by the name of their sums; those of rows in memory are cached."""
        if not part.whole:
            return self._columns(part)
        # Only the last columns are kept.
        last: dict[str, Any] = part.once("last paired columns", dict)
        if last.get("recipe") is not self:
            last |= {"recipe": self, "columns": self._columns(part)}
        columns: Mapping[str, Floats] = last["columns"]
        return columns

    @abstractmethod
    def _columns(self, part: Part) -> Mapping[str, Floats]:
        """(N, M) values by the name of their sums."""

    def _paired(self, name: str) -> bool:
        """Whether differences of these columns are summed as well."""
        return True

    def _by_pieces(self, part: Part) -> PairedSums | None:
        """The sums without all columns in memory; None if that is not faster."""
        return None

    def take(self, part: Part) -> PairedSums:
        """Summarise one part."""
        last = part.made("last paired columns")
        if part.rows.groups is None and (last is None or last.get("recipe") is not self):
            sums = self._by_pieces(part)
            if sums is not None:
                return sums
        _, weights = _outcomes(part, next(iter(part.models)))
        tallies = {}
        for name, values in self.columns(part).items():
            tally = PairedTally(values.shape[1], pairs=int(self._paired(name)))
            tallies[name] = tally.update(values, weights, part.rows.groups)
        return PairedSums(tallies)


@dataclass(frozen=True)
class PairedRecipe(ColumnRecipe, cases=True):
    """Sum the losses of several models on the same rows, and the traits that explain them.

    Attributes
    ----------
    models : tuple of str
        The models.
    rules : tuple of Rule
        The rules whose losses are summed.
    reference : str, optional
        A simple forecast that is added as the last model.
    counts : OtherGroups, optional
        The reference "frequencies", which needs the class counts of all rows.
    traits : bool
        Whether to sum the traits of full distributions; with their differences if there are several rules,
        which may disagree. Differences of the distance of errors need another pass (`ErrorRecipe`).
    """

    models: tuple[str, ...]
    rules: tuple[Rule, ...]
    reference: str | None = None
    counts: OtherGroups | None = None
    traits: bool = False

    def check(self, sums: PairedSums) -> None:
        """Refuse sums of other rules or models."""
        n = {name: tally.n_models for name, tally in sums.tallies.items()}
        scored = len(self.models) + (self.reference is not None)
        traits = [n.get(OF_TRAIT.format(i)) for i in TRAITS] if OF_TRAIT.format(0) in n else []
        if any(n.get(OF_RULE.format(name_of(rule))) != scored for rule in self.rules):
            raise UnreadableError("is about other rules or models", "tallies")
        if any(known is None or known > len(self.models) for known in traits):
            raise UnreadableError("is about the traits of other models", "tallies")
        if n.get(OF_TRAITS, 0) > len(TRAITS) * len(self.models):
            raise UnreadableError("is about the traits of other models", "tallies")
        if len({(tally.n_rows, tally.labels is None) for tally in sums.tallies.values()}) > 1:
            raise UnreadableError("is about different rows", "tallies")

    def _paired(self, name: str) -> bool:
        return name not in (OF_TRAITS, OF_TRAIT.format(ERROR_DISTANCE))

    def _dense(self, part: Part) -> list[int]:
        """The places of the models with traits: lists do not always name the most likely class."""
        dense = [i for i, name in enumerate(self.models) if isinstance(part.models[name], Forecasts)]
        return dense if self.traits else []

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        dense, n_rules = self._dense(part), len(self.rules)
        n_models = len(self.models) + (self.reference is not None)
        # For each model the losses by each rule, then the traits. Unused lines take no memory.
        table = np.empty((n_models, n_rules + (len(TRAITS) if dense else 0), part.n_rows))
        for i, name in enumerate(self.models):
            _fill(table[i] if i in dense else table[i, :n_rules], part, name, self.rules)
        if self.reference is not None:
            table[-1, :n_rules] = self._reference(part)
        columns = {OF_RULE.format(name_of(rule)): table[:, r].T for r, rule in enumerate(self.rules)}
        traits = table[dense[0] : dense[-1] + 1, n_rules:] if dense else table[:0]
        traits = traits if len(traits) == len(dense) else table[dense, n_rules:]
        # Rules may disagree about models: differences of traits are then needed, trait by trait.
        if n_rules > 1 and len(dense) > 1:
            columns |= {OF_TRAIT.format(i): traits[:, i].T for i in TRAITS}
            if part.whole:
                for i, rows_of_traits in zip(dense, traits, strict=True):
                    part.once(_COLUMNS.format(self.models[i]), partial(list, rows_of_traits))
        elif dense:
            columns[OF_TRAITS] = traits.reshape(-1, part.n_rows).T
        return columns

    def _by_pieces(self, part: Part) -> PairedSums | None:
        dense, n_rules = self._dense(part), len(self.rules)
        n_models = len(self.models) + (self.reference is not None)
        # For each model the places of its losses by each rule in a piece, then of its traits.
        places = [[r * n_models + i for r in range(n_rules)] for i in range(len(self.models))]
        blocks, names = (
            [ColumnBlock(n_rules, n_models, True)],
            [OF_RULE.format(name_of(rule)) for rule in self.rules],
        )
        paired, behind = n_rules > 1 and len(dense) > 1, n_rules * n_models
        if paired:
            blocks += [ColumnBlock(len(FORMULAS), len(dense), True), ColumnBlock(1, len(dense), False)]
            names += [OF_TRAIT.format(trait) for trait in TRAITS]
        elif dense:
            blocks.append(ColumnBlock(1, len(TRAITS) * len(dense), False))
            names.append(OF_TRAITS)
        for at, i in enumerate(dense):
            step, first = (len(dense), at) if paired else (1, len(TRAITS) * at)
            places[i] += [behind + first + step * trait for trait in TRAITS]

        def lines(name: str) -> Floats:
            table = np.empty((len(places[self.models.index(name)]), part.n_rows))
            _fill(table, part, name, self.rules)
            return table

        pieces = Pieces.of(part, self.rules, dict(zip(self.models, places, strict=True)), lines)
        if pieces is None:
            return None
        if self.reference is not None:
            for r, losses in enumerate(self._reference(part)):
                pieces.know((r + 1) * n_models - 1, losses)
        tallies = pieces.tallies(blocks)
        if tallies is None:
            return None
        return PairedSums(dict(zip(names, itertools.chain.from_iterable(tallies), strict=True)))

    def _reference(self, part: Part) -> list[Floats]:
        if self.counts is None:
            return uniform_losses(self.rules, part)
        y, weights = _outcomes(part, next(iter(part.models)))
        return self.counts.losses(self.rules, y, weights, part.rows.groups)


@dataclass(frozen=True)
class MarginRecipe(ColumnRecipe, cases=True):
    """Sum the shapes of the differences of all pairs of models over rows, which tests of a margin need.

    For each pair the third power of the difference, its size, and whether it is above or below zero.
    """

    models: tuple[str, ...]
    rule: Rule

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        losses = PairedRecipe(self.models, (self.rule,))._columns(part)[OF_RULE.format(name_of(self.rule))]
        gaps = with_differences(losses)[:, len(self.models) :]
        cubes = gaps**3
        return {OF_MARGIN: np.column_stack([cubes, np.abs(cubes), gaps > 0, gaps < 0])}

    def take(self, part: Part) -> PairedSums:
        """Summarise one part, regardless of groups."""
        _, weights = _outcomes(part, next(iter(part.models)))
        ((name, shapes),) = self._columns(part).items()
        return PairedSums({name: PairedTally(shapes.shape[1], pairs=0).update(shapes, weights)})


@dataclass(frozen=True)
class ErrorRecipe(ColumnRecipe, cases=True):
    """Sum the distance of errors: a ratio of means, which must be known first."""

    means: Mapping[str, tuple[float, float]]

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        columns = [error_column(trait_rows(part, name), *means) for name, means in self.means.items()]
        return {OF_TRAIT.format(ERROR_DISTANCE): np.stack(columns).T}

    def _by_pieces(self, part: Part) -> PairedSums | None:
        names, n_models = list(self.means), len(self.means)
        places = {name: [trait * n_models + i for trait in TRAITS] for i, name in enumerate(names)}
        if part.made(_COLUMNS.format(names[0])) is not None:
            return None
        pieces = Pieces.of(part, (), places, lambda name: np.stack(trait_rows(part, name)))
        if pieces is None:
            return None

        def fill() -> Fill:
            write, buffer = pieces.fill(), np.zeros(0)

            def write_errors(start: int, stop: int, flat: Floats) -> None:
                nonlocal buffer
                n, size = stop - start, len(TRAITS) * flat.size
                buffer = np.empty(size) if buffer.size < size else buffer
                piece = buffer[:size]
                write(start, stop, piece)
                traits = piece.reshape(len(TRAITS), n_models, n)
                for i, name in enumerate(names):
                    flat[i * n : (i + 1) * n] = error_column(list(traits[:, i]), *self.means[name])

            return write_errors

        tallies = pieces.tallies([ColumnBlock(1, n_models, True)], fill)
        return None if tallies is None else PairedSums({OF_TRAIT.format(ERROR_DISTANCE): tallies[0][0]})


def trait_rows(part: Part, name: str) -> Sequence[Floats]:
    """The column of each trait of a model's full distributions."""

    def read() -> list[Floats]:
        table = np.empty((len(TRAITS), part.n_rows))
        _fill(table, part, name, ())
        return list(table)

    return part.once(_COLUMNS.format(name), read)


def _fill(table: Floats, part: Part, name: str, rules: Sequence[Rule]) -> None:
    """Write the losses of a model by each rule to the first lines of a table, its traits to the rest."""
    rows, n = part.models[name], len(rules)
    traits = len(table) > n
    with naming(part, name):
        if isinstance(rows, Forecasts) and rows.xp is np and not rows.shared:
            formulas = [*rules, *(FORMULAS if traits else ())]
            row_pass = RowPass(rows, formulas, into=table[: len(formulas)])
            if traits:
                table[n + ERROR_DISTANCE] = distances(row_pass.decision, row_pass.y)
            return
        shared = isinstance(rows, Forecasts) and rows.shared
        formulas = [*rules, *(FORMULAS if traits and not shared else ())]
        if traits and not shared:
            formulas.append(RowStatistic("decision"))
        for line, values in zip(table, losses_of(formulas, rows), strict=False):
            line[:] = to_host(values)
    if not traits:
        return
    happened, _ = _outcomes(part, name)
    if shared:
        table[n:] = mean_traits(happened, probabilities(part, name))
    else:
        table[-1] = distances(table[-1], happened)


def _outcomes(part: Part, name: str) -> tuple[Any, Floats | None]:
    """The outcomes of a model's rows as it codes them, or (N, K) shares, and their weights."""

    def read() -> tuple[Any, Floats | None]:
        batch: Any = part.models[name].batch(0, part.n_rows)
        happened = batch.shares if isinstance(batch, ShareBatch) else batch.y
        return to_host(happened), None if batch.weights is None else to_host(batch.weights)

    return part.once(f"outcomes of {name}", read)
