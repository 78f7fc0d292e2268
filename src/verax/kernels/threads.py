"""How many threads a computation may use, and work that they share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def n_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


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
