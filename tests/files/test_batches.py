"""Files of predictions, scored in batches."""

from __future__ import annotations

import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import card_of_file, forecasts
from commandline import verax
from verax import files
from verax.files import arrow
from verax.files.formats.tables import runs_of
from verax.files.labels import INTEGER, ClassLabels, Target
from verax.kernels.threads import in_order


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More rows than a batch, ordered, with weights and groups."""
    y, p = forecasts(30_000, 4, ties=False)
    rng = np.random.default_rng(0)
    columns = {f"p_{j}": p[:, j] for j in range(4)}
    rows = {"label": y, **columns, "w": rng.random(len(y)), "who": rng.integers(0, 900, len(y))}
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    papq.write_table(
        pa.table({**rows, "name": np.array(["k", "ll"])[rows["who"] % 2]}), path, row_group_size=4096
    )
    return path, rows, p


@pytest.mark.long
@pytest.mark.parametrize("rows", [999, 4096, None])
@pytest.mark.parametrize(
    "extra", [{}, {"weights": "w"}, {"groups": "who"}, {"weights": "w", "groups": "name"}]
)
def test_batches_give_the_card_of_all_rows(many, rows, extra):
    path, columns, p = many
    card = card_of_file(files.open(path, ordered=True, **extra), ordered=True, rows=rows)
    arrays = {
        role: columns.get(name, np.array(["k", "ll"])[columns["who"] % 2]) for role, name in extra.items()
    }
    whole = vx.evaluate(columns["label"], p, ordered=True, **arrays)
    assert card.n_rows == whole.n_rows
    for name, score in {**whole.scores, **whole.metrics}.items():
        own = {**card.scores, **card.metrics}[name]
        assert own.mean == pytest.approx(score.mean, rel=1e-12)
        assert own.interval == pytest.approx(score.interval, rel=1e-9)
    np.testing.assert_allclose(card.confusion, whole.confusion, rtol=1e-12)


def test_invalid_rows_are_named_by_their_number_in_the_file(tmp_path):
    y, p = forecasts(5000, 3, ties=False)
    p[4321] *= 2
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    with pytest.raises(vx.InputError, match=r"row 4321 sums to 2") as caught:
        card_of_file(files.open(tmp_path / "a.npz"), rows=1000)
    assert caught.value.rows == (4321,)
    p[4321:4500] = 0.5
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    with pytest.raises(vx.InputError, match=r"rows 4321, 4322 and 4323 .* \(179 rows so far\)"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=1000)


def test_weights_may_be_zero_in_a_batch_and_not_in_all(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    w = np.where(np.arange(300) < 100, 0.0, 1.0)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w)
    card = card_of_file(files.open(tmp_path / "a.npz"), rows=50)
    assert card["brier"] == pytest.approx(vx.brier(y[100:], p[100:]), rel=1e-12)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w * 0)
    with pytest.raises(vx.InputError, match="must not all be zero"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=50)


def test_one_group_is_refused_only_if_all_rows_are_in_it(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.arange(300) // 150)
    assert card_of_file(files.open(tmp_path / "a.npz"), rows=50).n_groups == 2
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.zeros(300))
    with pytest.raises(vx.InputError, match="at least two groups"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=50)


def test_work_overlaps_and_stays_in_order():
    both = threading.Barrier(2, timeout=300)

    def work(item):
        if item < 2:
            both.wait()
        return item

    assert list(in_order(work, range(20), 2)) == list(range(20))
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    for result in in_order(lambda x: x, items(), 2):
        if result == 5:
            break
    assert len(made) < 20


def test_columns_stay_whole_and_are_scored_as_they_are(many, monkeypatch):
    path, columns, p = many
    read = files.read(path, probs="p_*")
    assert read.p.flags.f_contiguous or read.p.T.flags.c_contiguous
    big = np.asfortranarray(np.tile(p, (6, 1)))
    y = np.tile(columns["label"], 6)
    copies = []
    original = np.ascontiguousarray
    monkeypatch.setattr(
        np, "ascontiguousarray", lambda x, *a: (copies.append(np.ndim(x)), original(x, *a))[1]
    )
    assert vx.evaluate(y, big)["brier"] == pytest.approx(vx.brier(columns["label"], p), rel=1e-12)
    assert 2 not in copies
    np.ascontiguousarray(big)
    assert 2 in copies


def test_texts_are_coded_in_order():
    column = pa.chunked_array([["b", "a", "b"], ["c"]])
    groups = arrow.groups(column, arrow.ValueOrigin("a.csv", "who", "groups"))
    assert (groups.codes.tolist(), groups.labels.tolist()) == ([1, 0, 1, 2], ["a", "b", "c"])


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2], [5, 3, 9], [-4, 7], [0, 2**40], [-(2**63), 2**63 - 1], [-(2**63), 3 - 2**63]]
)
def test_labels_that_are_numbers_are_found_near_and_far(numbers):
    names = tuple(map(str, numbers))
    known = ClassLabels(Target("y", INTEGER), names, names, tuple(numbers))
    values = np.array([*numbers, 0, 1, 2, -1, 10**12, -(2**63), 2**63 - 1, 4, 5] * 3)
    places = {number: i for i, number in enumerate(numbers)}
    assert known.positions_of(values).tolist() == [places.get(int(value), -1) for value in values]
    assert known.positions_of(np.array(numbers)).tolist() == list(range(len(numbers)))


def test_a_pattern_names_several_files(tmp_path):
    for i, rows in enumerate(["a,0.8,0.2\nb,0.4,0.6\n", "b,0.1,0.9\n"]):
        (tmp_path / f"part{i}.csv").write_text("label,p_a,p_b\n" + rows)
    found = files.read(f"{tmp_path}/part*.csv")
    assert found.y.tolist() == [0, 1, 1]
    assert found.p[:, 0].tolist() == [0.8, 0.4, 0.1]
    with pytest.raises(vx.InputError, match="There is no file"):
        files.read(f"{tmp_path}/other*.csv")


def test_rows_divided_by_their_sums_are_counted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,p_a,p_b\na,0.7,0.3\nb,0.4,0.5\na,1.2,0.8\n")
    source = files.open(path, normalize=True)
    source.read()
    assert source.notes == ("2 of 3 rows were divided by their sums, 0.9 to 2.",)
    result = verax("evaluate", path, "--normalize", "--json")
    assert source.notes[0] in json.loads(result.stdout)["notes"]
    path.write_text("label,p_a,p_b\na,0.7,0.3\nb,0.4,0.6\n")
    assert files.open(path).notes == ()
    source = files.open(path, normalize=True)
    source.read()
    assert source.notes == ("None of the 2 rows had to be divided by its sum.",)


def _runs(n_batches, first):
    """The numbers of rows of runs of batches of 100 rows, and how many rows were read when each was made."""
    read = []

    def batches():
        for start in range(0, 100 * n_batches, 100):
            read.append(start + 100)
            yield pa.record_batch({"x": np.arange(start, start + 100)})

    runs = []
    for start, run in runs_of(batches(), 100, 4, first):
        assert run[0]["x"][0].as_py() == start
        runs.append((sum(batch.num_rows for batch in run), read[-1]))
    return runs


@pytest.mark.parametrize(
    ("n_batches", "first", "runs"),
    [
        (11, 0, [(400, 500), (400, 900), (300, 1100)]),
        (8, 0, [(400, 500), (400, 800)]),
        (10, 2, [(100, 200), (100, 300), (400, 700), (400, 1000)]),
        (3, 0, [(300, 300)]),
    ],
)
def test_long_runs_wait_for_one_batch_more_than_they_have(n_batches, first, runs):
    # The last run has a batch at least, and no run waits for twice its rows, which would be held in memory.
    assert _runs(n_batches, first) == runs
