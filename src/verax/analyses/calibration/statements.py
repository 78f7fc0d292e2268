"""The statements of very many lists in cells of nearly equal confidences: one pass, no sorting.

A cell is 1/128 of a power of two, so that confidences in a cell differ by less than 0.8 %. Means, squares and
the numbers of what happened are exact; only the isotonic fit sees cells instead of single confidences.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verax._settings import settings
from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.calibration.list_events import ANY, WHOLE, place_name
from verax.engines.keyed import Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, exact_keys, forecast_keys
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats
from verax.inputs.lists.rows import ListRows
from verax.kernels.ledger import compiles
from verax.kernels.threads import n_cores

# Statements of longer lists are not counted in cells.
_LONGEST = 64


@dataclass(frozen=True)
class Statements:
    """What the statements of all lists add up to; (P + 1) rows: the places, and the whole list.

    Attributes
    ----------
    weight, claimed, happened : array of shape (P + 1, C)
        By cell: the weight, the weighted confidences, and the weight of those that happened.
    squares, hits : array of shape (P + 1,)
        The weighted squares of the confidences, and the weighted confidences of those that happened.
    variance : array of shape (P + 1,)
        The variance of the weighted number that happens, if lists are independent and confidences right.
    lists : (P + 1,) int array
        The number of lists that make each statement.
    """

    weight: Floats
    claimed: Floats
    happened: Floats
    squares: Floats
    hits: Floats
    variance: Floats
    lists: np.ndarray[tuple[int, ...], np.dtype[np.int64]]

    @classmethod
    def fit(cls, rows: ListRows) -> bool:
        """Whether there are enough lists for counting to pay. Groups need the single lists."""
        batch = rows.batch(0, rows.n_rows)
        n_entries, longest = batch.lists.confidences.size, int(batch.lists.lengths.max())
        if n_entries < settings.entries_in_cells_from or longest > _LONGEST or rows.groups is not None:
            return False
        return compiles(n_entries, Statements)

    @classmethod
    def of(cls, rows: ListRows) -> Statements:
        """One pass over the lists, by all threads; sums are added in the order of the rows."""
        from verax.kernels.lists import N_CELLS, count_statements

        batch = rows.batch(0, rows.n_rows)
        lists, n_rows = batch.lists, rows.n_rows
        n_events = int(lists.lengths.max()) + 1
        # Extreme weights are brought to the size of one.
        w = np.ones(1) if batch.weights is None else batch.weights / batch.weights.max()
        edges = np.linspace(0, n_rows, n_cores() + 1, dtype=np.int64).tolist()

        def count(a: int, b: int) -> tuple[Floats, Floats]:
            tables, sums = np.zeros((3, n_events, N_CELLS)), np.zeros((n_events, 4))
            own = w if len(w) == 1 else w[a:b]
            given = (lists.classes, lists.confidences, lists.offsets[a : b + 1], batch.survey.total[a:b])
            count_statements(*given, batch.y[a:b], own, *tables, sums)
            return tables, sums

        with ThreadPoolExecutor(n_cores()) as pool:
            parts = list(pool.map(count, edges[:-1], edges[1:]))
        weight, claimed, happened = np.sum([tables for tables, _ in parts], axis=0)
        squares, hits, first, second = np.sum([sums for _, sums in parts], axis=0).T
        variance = claimed.sum(axis=1) - squares if len(w) == 1 else first - second
        positive = lists.lengths if len(w) == 1 else lists.lengths[w > 0]
        makers = np.append([np.count_nonzero(positive > j) for j in range(n_events - 1)], len(positive))
        return cls(weight, claimed, happened, squares, hits, np.maximum(variance, 0.0), makers)

    def _events(self, places: int) -> Iterator[tuple[str, slice]]:
        """The names of the events, and the rows that they add up from."""
        last = len(self.weight) - 1
        for j in range(min(places, last)):
            yield place_name(j + 1), slice(j, j + 1)
        yield ANY, slice(0, last)
        yield WHOLE, slice(last, last + 1)

    def sums(self, places: int) -> dict[str, EventSums]:
        """What is known of every event, whose cells are like distinct confidences."""
        return {name: self._sums(name, rows) for name, rows in self._events(places)}

    def _sums(self, name: str, rows: slice) -> EventSums:
        weight, claimed, happened = (
            table[rows].sum(axis=0) for table in (self.weight, self.claimed, self.happened)
        )
        filled = weight > 0
        weight, claimed, happened = weight[filled], claimed[filled], happened[filled]
        squares, hits, variance = (
            float(each[rows].sum()) for each in (self.squares, self.hits, self.variance)
        )
        total, hit = float(weight.sum()), float(happened.sum())
        totals = [float(claimed.sum()), hit, variance, squares - 2 * hits + hit, 0.0]
        n_lists, mean = int(self.lists[rows].max()), np.minimum(claimed / weight, 1.0)
        run = Run(
            exact_keys(mean),
            Sum.of(np.stack([weight, happened, claimed, weight], axis=1)),
            mean[:, None],
            mean[:, None],
        )
        # Nothing is drawn, so nobody asks for the squares of the weights.
        sums = Sum.of([total, np.nan, n_lists])
        forecasts = KeyedSums(forecast_keys, EXACT, {0: Keyed((run,))})
        return EventSums(1, forecasts, Sum.of([totals, [0.0] * 5]), sums, False)
