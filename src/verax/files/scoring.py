"""Files scored without holding their rows: batches are tallied while the next ones are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from verax.errors import InputError
from verax.files.predictions import Predictions, short
from verax.files.sources import Source
from verax.forecasts import Forecasts
from verax.metrics import CostsLike, fitting_metrics, needs_order
from verax.resample import check_confidence, check_replicates
from verax.rowstats import n_cores
from verax.rule import Rule
from verax.scorecard import Resampling, Scorecard, fitting_rules
from verax.tally import Tally

# Sums that are further from 1 are no matter of rounding.
_NEARLY = 0.02

A = TypeVar("A")
B = TypeVar("B")


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
    rows: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Scorecard:
    """The card of all rows of a file, as `evaluate` would make it, in memory that does not grow with them.

    Parameters
    ----------
    source : a file, as `files.open` gives it.
    rows : how many rows are read at a time.
    progress : called with the number of rows of every batch that has been scored.
    others : as for `evaluate`.

    Groups keep a few numbers each; nothing else grows.
    """
    check_confidence(confidence)
    check_replicates(bootstrap, least=2)
    chosen = fitting_rules(rules, ordered)
    plan = Resampling(confidence, bootstrap, seed)
    order_matters = needs_order(chosen, costs=costs, ordered=ordered)

    def score(batch: Predictions) -> Scorecard:
        forecasts = forecasts_of(batch, normalize=normalize, logits=logits, ordered=order_matters)
        tally = Tally(chosen, forecasts.n_classes).update(forecasts)
        metrics = fitting_metrics(ordered, costs, forecasts.n_classes)
        return Scorecard(tally, forecasts.classes, ordered, metrics, plan)

    card: Scorecard | None = None
    for part in in_order(score, source.batches(rows, coded=True), n_cores()):
        card = part if card is None else card.merge(part)
        if progress is not None:
            progress(part.n_rows)
    assert card is not None
    if card.weight == 0:
        raise InputError("`weights` must not all be zero.", argument="weights")
    if card.n_groups is not None and card.n_groups < 2:
        raise InputError("`groups` must name at least two groups to resample.", argument="groups")
    return card


def in_order(work: Callable[[A], B], items: Iterable[A], n_threads: int) -> Iterator[B]:
    """The work on each item, done by threads while further items are made, in the order of the items.

    Few items are under way at a time, and the order is always theirs: memory is bounded, and sums
    do not depend on the number of threads.

    >>> list(in_order(lambda x: x * x, range(5), 2))
    [0, 1, 4, 9, 16]
    """
    pending: deque[Future[B]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


class FileForecasts(Forecasts):
    """Forecasts of a file, which complain in the words of its columns."""

    def __init__(self, batch: Predictions, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._batch = batch

    def check(self) -> None:
        """Raise the error that names the file, its columns and the first invalid rows."""
        try:
            super().check()
        except InputError as error:
            text = str(error)
            if "must sum to 1" in text:
                text = _about_sums(text, self._batch, error.rows[0])
            text = f"{self._batch.path}: {text}"
            raise InputError(text, argument=error.argument, rows=error.rows) from None


def _about_sums(text: str, batch: Predictions, row: int) -> str:
    """The complaint about rows that do not sum to 1, with their columns and the remedy that fits."""
    total = float(batch.p[row - batch.start].sum())
    columns = f"The columns taken are {short(batch.roles.probs)}."
    if abs(total - 1) <= _NEARLY:
        return f"{text} {columns}"
    found = text.split(". Pass ")[0]
    if abs(total - 100) <= 100 * _NEARLY:
        return f"{found}. {columns} These seem to be percentages: normalize=True divides them by their sum."
    remedy = "Is a column missing, or one too many? Pass probs=... to choose"
    if len(batch.roles.probs) == 1:
        remedy = "Pass normalize=True if these are counts or weights"
    return f"{found}. {columns} {remedy}; for logits pass logits=True."


def doubts_about(source: Source | Predictions, counts: Sequence[float]) -> tuple[str, ...]:
    """What the numbers of outcomes in all rows say against how the outcomes were read."""
    numbered = source.classes == tuple(range(len(counts)))
    by_number = source.roles.outcomes_are == "positions" or numbered
    if not by_number or counts[0] > 0 or not all(count > 0 for count in counts[1:]):
        return ()
    first = "" if source.classes is None or numbered else f" ({source.classes[0]})"
    return (
        f"Class 0{first} never occurs and all others do: if the labels in {source.roles.target!r} count "
        "from 1, they were read wrongly; say what they are by classes=[1, 2, ...].",
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
    """A file's rows as forecasts, a batch at a time, for whoever keeps what it needs of them."""
    for batch in source.batches():
        yield forecasts_of(batch, **options), batch
        if progress is not None:
            progress(len(batch))
