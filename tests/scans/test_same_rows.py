"""Rows that are there twice: ids that repeat, two models' files named as one, a file named twice."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from commandline import verax
from evallogs import write_lines

RNG = np.random.default_rng(0)
N = 60
Y = RNG.integers(0, 2, N)


def predictions(path, ids=None, y=Y, order=None, seed=1, **columns):
    """A model's file; other seeds are other models."""
    p = np.clip(0.5 + (y - 0.5) * np.random.default_rng(seed).uniform(0, 0.9, len(y)), 0.01, 0.99)
    table = {**({} if ids is None else {"id": list(ids)}), "label": y, "p_0": 1 - p, "p_1": p, **columns}
    rows = pa.table({name: pa.array(values) for name, values in table.items()})
    rows = rows if order is None else rows.take(order)
    if path.suffix == ".parquet":
        papq.write_table(rows, path)
    elif path.suffix == ".npz":
        np.savez(
            path,
            **{name: np.asarray(values) for name, values in table.items() if name[0] != "p"},
            p=np.c_[1 - p, p],
        )
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    else:
        import pyarrow.csv as pacsv

        pacsv.write_csv(rows, path)
    return path


def said(*arguments):
    ran = verax(*arguments)
    assert ran.returncode == 2, ran
    return ran.stderr


def run(*arguments):
    ran = verax(*arguments)
    assert ran.returncode == 0, ran
    return ran.stdout


TEXTS = [f"q{i}" for i in range(N)]
OTHER = RNG.permutation(N)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_the_same_ids_in_two_files_are_two_models(ending, tmp_path):
    a = predictions(tmp_path / f"a.{ending}", TEXTS)
    b = predictions(tmp_path / f"b.{ending}", TEXTS, order=OTHER, seed=2)
    with pytest.raises(vx.InputError, match=r"different rows of one model.*same ids in column 'id'.*compare"):
        vx.evaluate(vx.scan([a, b]))
    # An id that is named decides alone.
    with pytest.raises(
        vx.InputError, match=r"must be different in all rows.*b\.\w+ .*60 rows repeat"
    ) as caught:
        vx.evaluate(vx.scan([a, b], id="id"))
    assert caught.value.count == N
    assert caught.value.argument == "id"
    assert vx.evaluate(vx.scan([a, b], id="id", groups="id")).n_groups == N
    other = predictions(tmp_path / f"c.{ending}", [f"r{i}" for i in range(N)], seed=2)
    for given in ({}, {"id": "id"}):
        assert vx.evaluate(vx.scan([a, other], **given)).n_rows == 2 * N


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_the_same_outcomes_row_by_row_are_two_models(ending, tmp_path):
    a = predictions(tmp_path / f"a.{ending}")
    b = predictions(tmp_path / f"b.{ending}", seed=2)
    with pytest.raises(vx.InputError, match=r"a\.\w+ and .*b\.\w+ have the same outcomes, row by row"):
        vx.evaluate(vx.scan([a, b]))
    shard = predictions(tmp_path / f"c.{ending}", y=RNG.permutation(Y), seed=2)
    assert vx.evaluate(vx.scan([a, shard])).n_rows == 2 * N


def test_parts_that_look_alike_by_chance_are_pooled(tmp_path):
    # Ids that count from 0 in every part, with other outcomes.
    parts = [predictions(tmp_path / f"{i}.csv", range(N), y=RNG.permutation(Y)) for i in range(3)]
    assert vx.evaluate(vx.scan(parts)).n_rows == 3 * N
    # Parts that are sorted, or short, or have one class each: chance or design may give the same outcomes.
    for y, noted in ((np.sort(Y), True), (np.array([0, 1, 1, 0, 1]), True), (np.zeros(N, int), False)):
        parts = [predictions(tmp_path / f"{i}.csv", y=y, seed=i) for i in range(2)]
        handle = vx.scan(parts)
        assert vx.evaluate(handle).n_rows == 2 * len(y)
        assert any("If they are of two models" in note for note in handle.notes) == noted


def test_ids_that_repeat_in_one_source(tmp_path):
    ids = [*TEXTS[:-1], "q0"]
    path = predictions(tmp_path / "a.csv", ids)
    for source in (path, pa.table({"id": ids, "label": Y, "p": np.full(N, 0.5)})):
        with pytest.raises(vx.InputError, match="row 59 has the id of row 0") as caught:
            vx.evaluate(vx.scan(source, id="id"))
        assert (caught.value.rows, caught.value.count) == ((0, 59), 1)
    visits = predictions(tmp_path / "b.csv", ids, visit=[0] * (N - 1) + [1])
    assert vx.evaluate(vx.scan(visits, id=["id", "visit"])).n_rows == N


def test_ids_that_repeat_in_a_stream(tmp_path, change):

    change(held_up_to=10)
    a = predictions(tmp_path / "a.parquet", TEXTS)
    b = predictions(tmp_path / "b.parquet", TEXTS, seed=2)
    with pytest.raises(vx.InputError, match=r"row 60, .*b\.parquet .*has the id of row 0, .*a\.parquet"):
        vx.evaluate(vx.scan([a, b], id="id"))
    handle = vx.scan(a, id="id")
    assert vx.evaluate(handle)["brier"] == vx.evaluate(handle)["brier"]


def test_lists_of_two_models(tmp_path):
    def answers(seed):
        p = np.random.default_rng(seed).uniform(0.5, 0.9, N)
        return [
            {"id": i, "probabilities": {str(y): q, str(1 - y): 1 - q}, "outcome": str(y)}
            for i, y, q in zip(TEXTS, Y.tolist(), p.tolist(), strict=True)
        ]

    a, b = (write_lines(tmp_path / f"{name}.jsonl", answers(seed)) for name, seed in (("a", 1), ("b", 2)))
    with pytest.raises(vx.InputError, match="same outcomes, row by row"):
        vx.scan([a, b], lists=True)
    with pytest.raises(vx.InputError, match=r"row 60, .*b\.jsonl .*has the id of row 0, .*a\.jsonl"):
        vx.evaluate(vx.scan([a, b], lists=True, id="id"))
    assert vx.evaluate(vx.scan([a, b], lists=True, id="id", groups="id")).n_groups == N


@pytest.mark.parametrize("command", ["evaluate", "decide"])
def test_two_models_at_the_command_line(command, tmp_path):
    a = predictions(tmp_path / "a.csv", TEXTS)
    b = predictions(tmp_path / "b.csv", TEXTS, seed=2)
    message = said(command, a, b)
    assert "verax compare a=FILE b=FILE --id id" in message
    assert "m=FILE m=FILE" in message
    assert "must be different in all rows" in said(command, a, b, "--id", "id")
    assert "outcomes: label" in run(command, f"m={a}", f"m={b}")
    assert "significant" in run("compare", a, b, "--id", "id")


def test_graded_answers_of_two_models(tmp_path):
    for name, grade in (("a", 1), ("b", 0)):
        rows = [f"q{i},{(i + grade) % 2},0.7" for i in range(20)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["qid,correct,confidence", *rows]) + "\n")
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    assert "same ids in column 'qid'" in said("evaluate", a, b)
    assert "40 graded answers" in run("evaluate", f"m={a}", f"m={b}")


def test_a_file_is_named_once(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    file = predictions(folder / "a.parquet")
    for named in ([folder, file], [file, file], [file, f"{folder}/*.parquet"]):
        with pytest.raises(vx.InputError, match=r"named once: its rows would count twice; .*a\.parquet"):
            vx.scan(named)


@pytest.mark.parametrize(
    ("mark", "data", "kind"),
    [
        ("_delta_log/00.json", "", "Delta Lake"),
        ("_delta_log/00.json", "site=a", "Delta Lake"),
        ("metadata/v1.metadata.json", "data", "Iceberg"),
        (".hoodie/hoodie.properties", "", "Hudi"),
    ],
)
def test_tables_with_a_log_are_refused(mark, data, kind, tmp_path):
    table = tmp_path / "table"
    (table / mark).parent.mkdir(parents=True)
    (table / mark).write_text("{}")
    (table / data).mkdir(exist_ok=True)
    files = [predictions(table / data / f"{i}.parquet", y=RNG.permutation(Y)) for i in range(2)]
    # The folder of a Delta table alone is read through its log.
    for source in (*([table] if kind != "Delta Lake" else []), tmp_path, f"{table / data}/*.parquet"):
        with pytest.raises(vx.InputError, match=rf"removed rows; .*table is a table of {kind}"):
            vx.scan(source)
    assert vx.evaluate(vx.scan(files[0])).n_rows == N


def test_checksums_of_parquet_pages_are_verified(tmp_path):
    rows = pa.table({"label": Y, "p": np.full(N, 0.3)})
    for checksums, refused in ((True, True), (False, False)):
        path = tmp_path / f"{checksums}.parquet"
        papq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=checksums)
        # The statistics that precede the numbers of a page have none.
        head, *cells = path.read_bytes().split(np.float64(0.3).tobytes())
        cells[9:11] = [np.float64(0.4).tobytes().join(cells[9:11])]
        path.write_bytes(np.float64(0.3).tobytes().join([head, *cells]))
        if refused:
            with pytest.raises(vx.InputError, match=r"cannot be read as Parquet.*CRC"):
                vx.evaluate(vx.scan(path))
        else:
            assert vx.evaluate(vx.scan(path)).n_rows == N
