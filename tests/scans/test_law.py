"""However rows are cut, and in whatever order summaries merge, every analysis says the same."""

from __future__ import annotations

import pytest

from scanned import ANALYSES, alike, asked, expected, same, table
from scattered import cut_engine

NAMES = [*ANALYSES, "compare"]
# A report takes a while and holds most of the others.
CASES = [(name, seed) for name in NAMES for seed in range(1 if name == "report" else 2)]


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    monkeypatch.setattr("verax.scans.parts.rows_at_a_time", lambda width: 400)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_parts_and_orders_of_merging_do_not_matter(name, seed, monkeypatch):
    found = asked(cut_engine(monkeypatch, table(), seed), name)
    alike(found.to_dict(), expected(name))
    if name == "evaluate":
        same(found)


@pytest.mark.frameworks
@pytest.mark.parametrize("name", [name for name in NAMES if name != "report"])
def test_dask_says_what_one_process_says(name):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table().drop_columns(["all_p"]).to_pandas(), npartitions=5, sort=False)
    alike(asked(frame, name).to_dict(), expected(name))
