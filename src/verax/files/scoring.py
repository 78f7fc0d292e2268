"""Files scored without holding their rows: batches are tallied while the next ones are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from verax.analyses.cards.evaluation import fitting_rules
from verax.analyses.cards.scorecard import Scorecard, card_of_rows, check_whole
from verax.errors import InputError, Remedy, passing
from verax.files.families import NEARLY, PERCENT
from verax.files.kept import KeptRows
from verax.files.predictions import Predictions, short
from verax.files.source import Source
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.forecasts import Forecasts
from verax.kernels.ledger import expecting
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, needs_order


def evaluate_source(
    source: Source,
    *,
    ordered: bool = False,
    costs: CostsLike | None = None,
    rules: Sequence[Rule | str] | None = None,
    normalize: bool = False,
    logits: bool = False,
    confidence: float = 0.95,
    bootstrap: int = 1000,
    seed: int = 0,
    weights_are: WeightsAre = "importance",
    rows: int | None = None,
    progress: Callable[[int], None] | None = None,
    keep: KeptRows | None = None,
    part: bool = False,
) -> Scorecard:
    """The card of all rows of a file, as `evaluate` would make it, in memory that does not grow with them.

    Parameters
    ----------
    source : Source
        A file, as `files.open` returns it.
    rows : int | None
        How many rows are read at a time.
    progress : Callable[[int], None] | None
        Called with the number of rows of every batch that has been scored.
    keep : KeptRows | None
        Given the rows of every batch that has been scored.
    part : bool
        The card will be merged with others, so the rows here may have no weight or belong to a single group.

    Notes
    -----
    The other parameters are those of `evaluate`. Memory grows with the number of groups only.
    """
    chosen = fitting_rules(rules, ordered)
    plan = Resampling.checked(confidence, bootstrap, seed, weights_are=weights_are)
    order_matters = needs_order(chosen, costs=costs, ordered=ordered)

    def score(batch: Predictions) -> tuple[Scorecard, Forecasts]:
        forecasts = forecasts_of(batch, normalize=normalize, logits=logits, ordered=order_matters)
        card = card_of_rows(forecasts, chosen, ordered, costs, plan)
        return card.with_skipped(batch.skipped, batch.rows), forecasts

    card: Scorecard | None = None
    with expecting((source.n_rows or 0) * len(source.roles.probs)):
        for scored, forecasts in in_order(score, source.batches(rows, coded=True), n_cores()):
            card = scored if card is None else card.merge(scored)
            if keep is not None:
                keep.add(forecasts)
            if progress is not None:
                progress(scored.n_rows)
    assert card is not None
    card = card.with_skipped(source.skipped)
    if not part:
        check_whole(card, source.path)
    return card


class FileForecasts(Forecasts):
    """Forecasts of a file, whose errors name the file and its columns."""

    def __init__(self, batch: Predictions, *given: Any, **options: Any) -> None:
        try:
            super().__init__(*given, **options)
        except InputError as error:
            raise error.replace(source=batch.path) from None
        self._batch = batch

    def check(self) -> None:
        """Raise the error that names the file, its columns and the first invalid rows."""
        try:
            super().check()
        except InputError as error:
            if error.kind == "sum":
                error = self._about_sums(error)
            raise error.replace(source=self._batch.path) from None

    def _about_sums(self, error: InputError) -> InputError:
        """The error about sums of rows, with their columns and the remedies that fit."""
        if self._normalize:
            return error.replace(requirement="The probabilities of a row must have a positive sum")
        total, probs = float(error.values[0]), self._batch.roles.probs
        logits = passing("if these are logits", logits=True)
        if abs(total - 1) <= NEARLY:
            remedies = error.remedies
        elif abs(total - PERCENT) <= PERCENT * NEARLY:
            percentages = Remedy("These are percentages.")
            remedies = (percentages, passing("to divide every row by its sum", normalize=True))
        elif len(probs) == 1:
            remedies = (passing("if these are counts or weights", normalize=True), logits)
        else:
            ask = Remedy("Is a column missing, or one too many?")
            remedies = (ask, passing("to choose the columns", probs=...), logits)
        return error.replace(
            requirement=f"The probabilities of a row must sum to 1 within {self.unity.tolerance:g}",
            found=f"{error.found}; the columns taken are {short(probs)}",
            remedies=remedies,
        )


def doubts_about(source: Source | Predictions, counts: Sequence[float]) -> tuple[InputError, ...]:
    """What the numbers of outcomes in all rows say against how the outcomes were read.

    The doubts are errors that are not raised, so that every caller can put them into words.
    """
    numbered = source.classes == tuple(range(len(counts)))
    by_number = source.roles.outcomes_are == "positions" or numbered
    if not by_number or counts[0] > 0 or not all(count > 0 for count in counts[1:]):
        return ()
    first = "" if source.classes is None or numbered else f" ({source.classes[0]})"
    return (
        InputError(
            f"Class 0{first} never occurs and all others do",
            argument="target",
            kind="label",
            found=f"if the labels in {source.roles.target!r} count from 1, they were read wrongly",
            remedies=[passing("if they do", classes=[1, 2, ...])],
        ),
    )


def forecasts_of(batch: Predictions, **options: Any) -> Forecasts:
    """A part of a file as forecasts whose rows are named by their numbers in the file."""
    return FileForecasts(
        batch,
        batch.y,
        batch.p,
        classes=batch.classes,
        weights=batch.weights,
        groups=batch.groups,
        first_row=batch.start,
        **options,
    )


def forecasts_in(
    source: Source, progress: Callable[[int], None] | None = None, **options: Any
) -> Iterator[tuple[Forecasts, Predictions]]:
    """The rows of a file as forecasts, a batch at a time."""
    for batch in source.batches():
        yield forecasts_of(batch, **options), batch
        if progress is not None:
            progress(len(batch))
