"""The number of threads of a computation, and ways to share work among them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from verax._settings import settings

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


def n_cores() -> int:
    """The number of cores for this process, or `settings.cores`."""
    if settings.cores is not None:
        return settings.cores
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def in_order(work: Callable[[A], B], items: Iterable[A], n_threads: int, ahead: int = 1) -> Iterator[B]:
    """The work on each item, done by threads while further items are made, in the order of the items.

    Few items are under way at a time, `ahead` more than there are threads, and the order is always theirs:
    memory is bounded, and sums do not depend on the number of threads.

    >>> list(in_order(lambda x: x * x, range(5), 2))
    [0, 1, 4, 9, 16]
    """
    pending: deque[Future[B]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) >= n_threads + ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def side_by_side(work: Callable[[A], B], items: Sequence[A], size: float) -> list[B]:
    """The work on each item, by one thread per core where an item is large, in rows or bins.

    >>> side_by_side(lambda x: x * x, [1, 2, 3], size=1e6)
    [1, 4, 9]
    """
    threads = min(n_cores(), len(items)) if size >= settings.threads_from else 1
    return list(in_order(work, items, threads) if threads > 1 else map(work, items))


def by_turns(
    work: Callable[[A, C], B], items: Iterable[A], states: Sequence[C], ahead: int = 2
) -> Iterator[B]:
    """The work on each item with one of the states, which take turns, in the order of the items.

    A thread for each state does its items one after the other, so that states may change. Which items a state
    gets depends on their order alone. Few items are under way at a time: by default two more than there are
    threads, so that none waits while the next item is made.

    >>> totals = [[], []]
    >>> list(by_turns(lambda x, total: total.append(x), range(5), totals)), totals
    ([None, None, None, None, None], [[0, 2, 4], [1, 3]])
    """
    pending: deque[Future[B]] = deque()
    pools = [ThreadPoolExecutor(1) for _ in states]
    try:
        for i, item in enumerate(items):
            turn = i % len(states)
            pending.append(pools[turn].submit(work, item, states[turn]))
            if len(pending) >= len(states) + ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
        for pool in pools:
            pool.shutdown()
