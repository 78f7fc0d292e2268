"""However rows are cut, and in whatever order summaries merge, every analysis says the same."""

from __future__ import annotations

import numpy as np
import pytest

from scanned import ANALYSES, N, alike, asked, expected, same, table
from verax.scans import dask as dask_engine
from verax.scans import scan as scanning
from verax.scans.partitions import PartitionedHandle

NAMES = [*ANALYSES, "compare"]
# A report takes a while and holds most of the others.
CASES = [(name, seed) for name in NAMES for seed in range(1 if name == "report" else 2)]


class Cut:
    """Rows cut at random places and handed out in random order."""

    def __init__(self, seed):
        self.seed = seed


class CutHandle(PartitionedHandle):
    """Scores random parts, and merges their bytes as a random tree."""

    def _run(self, work):
        rng = np.random.default_rng(self._frame.seed)
        edges = np.sort(rng.integers(0, N + 1, 8))
        parts = np.split(np.arange(N), edges)
        stored = [
            work.score(table().select(work.reader.columns).take(part).to_batches(max_chunksize=301), i)
            for i, part in enumerate(parts)
        ]
        rng.shuffle(stored)
        while len(stored) > 1:
            some = [stored.pop(int(rng.integers(len(stored)))) for _ in range(min(len(stored), 3))]
            stored.append(work.merge(some).to_bytes())
        return stored


def opened(source, asked):
    return CutHandle("the rows", source, asked, table().slice(0, 50)) if isinstance(source, Cut) else None


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    monkeypatch.setattr("verax.scans.parts.rows_at_a_time", lambda width: 400)


@pytest.fixture
def engine(monkeypatch):
    """An engine is a function `opened`."""
    monkeypatch.setattr(dask_engine, "opened", opened)
    assert "dask" in scanning.ENGINES


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_parts_and_orders_of_merging_do_not_matter(name, seed, engine):
    found = asked(Cut(seed), name)
    alike(found.to_dict(), expected(name))
    if name == "evaluate":
        same(found)


@pytest.mark.frameworks
@pytest.mark.parametrize("name", [name for name in NAMES if name != "report"])
def test_dask_says_what_one_process_says(name):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table().drop_columns(["all_p"]).to_pandas(), npartitions=5, sort=False)
    alike(asked(frame, name).to_dict(), expected(name))
