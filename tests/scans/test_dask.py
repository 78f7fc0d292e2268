"""Frames of Dask: the card of the rows in memory, whatever the partitions, the scheduler and the failures."""

from __future__ import annotations

import os
import signal
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import verax as vx
from scanned import CLASSES, COLUMNS, N, broken, same, table, without_package
from verax.scans.frames import PandasFrame
from verax.scans.partitions import PartitionTask

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
# Dask uses an argument of pandas that is going away.
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore:(.|\\n)*The inplace keyword")]


# Dask looks into every list of a column of lists, which takes longer than all the rest.
PLAIN = table().drop_columns(["all_p"]).to_pandas()


def partitioned(frame, seed=0, n=9):
    """A frame cut at random places; some partitions are empty, the first one is."""
    rng = np.random.default_rng(seed)
    edges = [0, 0, *np.sort(rng.integers(0, len(frame), n - 2)).tolist(), len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


@pytest.fixture(autouse=True)
def small_runs(change):
    """Partitions come in several parts."""
    change(part_rows=400)


@pytest.mark.long
@pytest.mark.parametrize(("probs", "scheduler"), [("p_*", "threads"), ("all_p", "sync")])
def test_a_frame_gives_the_card_of_its_rows(probs, scheduler):
    # Dask would make texts of lists that are Python objects.
    frame = partitioned(table().to_pandas(types_mapper=pd.ArrowDtype), seed=len(probs))
    with dask.config.set(scheduler=scheduler):
        handle = vx.scan(frame, probs=probs, **COLUMNS)
        assert handle.n_rows is None
        same(vx.evaluate(handle, ordered=True))


@pytest.mark.long
def test_many_partitions_merge_as_a_tree():
    frame = partitioned(PLAIN, n=40)
    with dask.config.set(scheduler="sync"):
        same(vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS), ordered=True))


def test_errors_name_the_partition_the_place_and_the_id():
    frame = dd.from_pandas(broken(1300).drop_columns(["all_p"]).to_pandas(), npartitions=5, sort=False)
    with pytest.raises(
        vx.InputError, match=r"Dask frame, partition 2: .*row 300 .*\(number 1300\)"
    ) as caught:
        vx.evaluate(vx.scan(frame, probs="p_*", id="number", **COLUMNS))
    assert caught.value.rows == (300,)


def test_rows_are_numbered_by_partition():
    frame = dd.from_pandas(broken(1300).drop_columns(["all_p"]).to_pandas(), npartitions=5, sort=False)
    handle = vx.scan(frame, probs="p_*", invalid="skip", **COLUMNS)
    card = vx.evaluate(handle)
    assert (card.n_rows, card.skipped.rows) == (N - 1, (2 * 2**33 + 300,))


def test_texts_categories_and_missing_values():
    rows = PLAIN.convert_dtypes(dtype_backend="numpy_nullable")
    rows["label"] = rows["label"].astype(pd.CategoricalDtype(CLASSES))
    frame = partitioned(rows, seed=3).categorize(columns=["label"])
    same(vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS), ordered=True))
    rows.loc[rows.index[:7], "p_low"] = pd.NA
    card = vx.evaluate(vx.scan(partitioned(rows), probs="p_*", invalid="skip", **COLUMNS))
    assert (card.n_rows, card.skipped.count) == (N - 7, 7)


def test_a_frame_without_rows_is_refused():
    empty = dd.from_pandas(PLAIN.iloc[:0], npartitions=1)
    with pytest.raises(vx.InputError, match="no rows"):
        vx.evaluate(vx.scan(empty, probs="p_*", **COLUMNS))


def files(folder, rows, n=3, **options):
    """Parquet files of some rows; the folder that they are in."""
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(rows)), n)):
        rows.slice(part[0], len(part)).to_pandas().to_parquet(folder / f"{i}.parquet", **options)
    return str(folder)


# How a frame is read from files, and whether that is all that it is.
READ = {
    "files": (lambda path: dd.read_parquet(path), True),
    "row groups": (lambda path: dd.read_parquet(path, split_row_groups=2), True),
    "joined": (lambda path: dd.read_parquet(path, blocksize="60kB", aggregate_files=True), True),
    "index": (lambda path: dd.read_parquet(path, index="site").partitions[:], True),
    "filter": (lambda path: dd.read_parquet(path, filters=[("number", "<", 2500)]), False),
    "arrow": (lambda path: dd.read_parquet(path, filesystem="pyarrow"), False),
    "computed": (lambda path: dd.read_parquet(path).assign(w=lambda rows: rows.w * 1), False),
    "chosen": (lambda path: dd.read_parquet(path).query("number >= 0"), False),
    "persisted": (lambda path: dd.read_parquet(path).persist(), False),
}


@pytest.mark.parametrize("name", READ)
def test_parquet_files_are_read_batch_by_batch_where_a_frame_is_nothing_else(name, tmp_path, monkeypatch):
    read, direct = READ[name]
    frame = read(files(tmp_path / "preds", table(), row_group_size=100))
    made = []
    convert = PandasFrame.batches
    monkeypatch.setattr(PandasFrame, "batches", lambda *args: made.append(1) or convert(*args))
    with dask.config.set(scheduler="sync"):
        same(vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS), ordered=True))
    assert (not made) is direct
    for part in ([0], [-1]) if direct and frame.npartitions > 1 else ():
        # The partitions hold the rows that Dask says they hold.
        some = frame.partitions[part[0]]
        card = vx.evaluate(vx.scan(some, probs="p_*", **COLUMNS))
        assert card.n_rows == len(some.compute())


def test_folders_named_by_values_and_rows_that_are_left_out(tmp_path):
    path = str(tmp_path / "preds")
    table().to_pandas().to_parquet(path, partition_cols=["site"])
    card = vx.evaluate(vx.scan(dd.read_parquet(path), probs="p_*", by="site", **COLUMNS), ordered=True)
    same(card)
    few = dd.read_parquet(path, filters=[("number", "<", 700)])
    assert vx.evaluate(vx.scan(few, probs="p_*", **COLUMNS)).n_rows == 700


@pytest.mark.long
@pytest.mark.parametrize("computed", [False, True])
def test_errors_name_the_partition_of_a_frame_of_which_few_columns_are_read(computed, tmp_path):
    wide = broken(1300).drop_columns(["all_p"])
    for i in range(60):
        wide = wide.append_column(f"x{i}", wide["w"])
    frame = dd.read_parquet(files(tmp_path / "preds", wide, n=20))
    frame = frame.assign(w=frame.w * 1) if computed else frame
    with pytest.raises(vx.InputError, match=r"Dask frame, partition 10: .*row 50 .*\(number 1300\)"):
        vx.evaluate(vx.scan(frame, probs="p_*", id="number", **COLUMNS))


def test_a_partition_is_scored_by_the_threads_that_would_have_none(tmp_path, change, monkeypatch):
    change(cores=4)
    given = []
    score = PartitionTask.score
    monkeypatch.setattr(PartitionTask, "score", lambda *args: given.append(args[-1]) or score(*args))
    for n, scheduler, threads in ((1, "threads", 4), (3, "threads", 1), (1, "sync", 1)):
        frame = dd.from_pandas(PLAIN, npartitions=n, sort=False)
        with dask.config.set(scheduler=scheduler):
            same(vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS), ordered=True))
        assert set(given) == {threads}
        given.clear()


def dies_once(frame, flag):
    """Kills the worker that gets a certain partition first."""
    if len(frame) and frame["number"].iloc[0] == 1000 and not os.path.exists(flag):
        with open(flag, "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.long
# Workers that die leave sockets and processes behind, about which Python warns.
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_is_replaced_and_nothing_counts_twice(tmp_path):
    distributed = pytest.importorskip("distributed")
    frame = dd.from_pandas(PLAIN, npartitions=5, sort=False)
    frame = frame.map_partitions(dies_once, str(tmp_path / "flag"), meta=frame._meta)
    # With one worker, what it had done before is lost, too.
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        handle = vx.scan(frame, probs="p_*", **COLUMNS)
        same(vx.evaluate(handle, ordered=True))
        assert (tmp_path / "flag").exists()
        bad = dd.from_pandas(broken(1300).drop_columns(["all_p"]).to_pandas(), npartitions=5, sort=False)
        with pytest.raises(vx.InputError, match="partition 2"):
            vx.evaluate(vx.scan(bad, probs="p_*", **COLUMNS))


@pytest.mark.slow
def with_another_verax(folder):
    """What PYTHONPATH is for an interpreter with another version of verax."""
    (folder / "sitecustomize.py").write_text(
        "import sys, types\n"
        "sys.modules |= {name: types.ModuleType(name) for name in ('verax', 'verax._version')}\n"
        "sys.modules['verax._version'].__version__ = '0.0.1'\n"
    )
    return str(folder)


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (without_package, "cannot import verax"),
        pytest.param(
            partial(without_package, name="lazy_loader"),
            "cannot import verax, which needs lazy_loader",
            marks=pytest.mark.long,
        ),
        pytest.param(
            with_another_verax,
            f"must have verax {vx.__version__}, as here, not 0.0.1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_workers_that_cannot_do_the_work_are_named_before_it(prepare, problem, tmp_path, monkeypatch):
    """They could not read the task, and the client would wait for ever."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", prepare(tmp_path))
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    frame = dd.from_pandas(PLAIN, npartitions=2)
    words = rf"Dask workers {problem}: .* on .* \(1 of 1\)\. Install verax-scores"
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster),
        pytest.raises(vx.VeraxError, match=words),
    ):
        vx.scan(frame, probs="p_*", **COLUMNS)
