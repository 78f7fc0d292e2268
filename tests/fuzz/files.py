"""Hostile files of predictions, in every format.

A file is made from a small table whose card is known, then left as it is, cut, overwritten with random
bytes, or given one cell that does not belong there. The card of the file is that of the table, or the
file is refused by a `VeraxError`; a hostile cell of a CSV file is named by its row. Several files are
pooled unless a row is in two of them.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as pafeather
import pyarrow.parquet as papq

import verax as vx
from cases import card_of_file
from verax import files
from verax._settings import changed, settings

ODD = (
    "a",
    "b",
    "c",
    "0",
    "1",
    "2",
    "01",
    "001",
    "1.0",
    "-1",
    "NA",
    "None",
    "nan",
    "true",
    "É",
    " x",
    "x y",
    "1e3",
)
ODD += ("\x1b[31m", "\u202eabc", "a,b", 'q"q', "line\nbreak", "__proto__", "p_a", "label")
CELLS = (
    "",
    "abc",
    "0,5",
    "1e999",
    "nan",
    "-0.5",
    "inf",
    "2",
    "0x1p3",
    "1_0",
    "\x1b[0m",
    "é",
    '"',
    "99999999999999999999",
)


def attempt(rng: np.random.Generator) -> None:
    """One hostile file."""
    block = changed(text_block=int(rng.choice([400, 2000, settings.text_block])))
    with block, tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = ["faithful", "bytes", "cell", "types", "arrays", "several"]
        kind = rng.choice(kinds, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
        {
            "several": several,
            "faithful": faithful,
            "bytes": broken,
            "cell": one_cell,
            "types": odd_types,
            "arrays": odd_arrays,
        }[str(kind)](rng, Path(name))


# ---- tables ------------------------------------------------------------------------------------


def draw(rng: np.random.Generator, odd: bool = True) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Classes, positions of the outcomes, probabilities."""
    k, n = int(rng.integers(2, 5)), int(rng.integers(1, 30))
    names = list(rng.choice(ODD if odd else ["a", "b", "c", "d"], k, replace=False))
    p = rng.dirichlet(np.ones(k), n)
    return [str(name) for name in names], rng.integers(0, k, n), p


def table_of(
    rng: np.random.Generator, names: list[str], y: np.ndarray, p: np.ndarray, **more: object
) -> pa.Table:
    columns: dict[str, object] = {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    columns = {"label": pa.array([names[i] for i in y]), **columns, **more}
    order = rng.permutation(len(columns))
    listed = list(columns.items())
    return pa.table(dict(listed[i] for i in order))


def write(rng: np.random.Generator, table: pa.Table, folder: Path) -> Path:
    """The table in a random format."""
    kind = rng.choice(
        ["csv", "tsv", "gz", "zst", "parquet", "folder", "arrow", "stream", "jsonl", "dictionary"]
    )
    if kind in ("csv", "tsv", "gz", "zst"):
        path = folder / ("a.tsv" if kind == "tsv" else "a.csv")
        pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter="\t" if kind == "tsv" else ","))
        if kind in ("gz", "zst"):
            content = path.read_bytes()
            path = folder / f"a.csv.{kind}"
            path.write_bytes(
                gzip.compress(content) if kind == "gz" else pa.Codec("zstd").compress(content, asbytes=True)
            )
        return path
    if kind == "jsonl":
        path = folder / "a.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        return path
    if kind == "folder":
        path = folder / "parts"
        path.mkdir()
        half = table.num_rows // 2
        papq.write_table(table.slice(0, half), path / "0.parquet")
        papq.write_table(table.slice(half), path / "1.parquet")
        return path
    if kind == "dictionary":
        i = table.schema.get_field_index("label")
        table = table.set_column(i, "label", table["label"].dictionary_encode())
    path = folder / ("a.parquet" if kind in ("parquet", "dictionary") else "a.arrow")
    if path.suffix == ".parquet":
        papq.write_table(table, path, row_group_size=int(rng.integers(1, 40)))
    elif kind == "arrow":
        pafeather.write_feather(table, path, compression=str(rng.choice(["lz4", "uncompressed"])))
    else:
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table, max_chunksize=int(rng.integers(1, 20)))
    return path


def score(path: Path, rng: np.random.Generator, **options: object) -> vx.results.Scorecard | vx.VeraxError:
    """The card of a file, or why it was refused; anything else is a failure."""
    rows = int(rng.choice([1, 3, 1000]))
    try:
        return card_of_file(files.open(path, **options), rows=rows, bootstrap=2)
    except vx.VeraxError as error:
        return error
    except Exception as error:
        content = path.read_bytes()[:300] if path.is_file() else path
        raise AssertionError(
            f"{type(error).__name__}: {error} for {path.name} {options} {content!r}"
        ) from error


def same(card: object, y: np.ndarray, p: np.ndarray, where: object, **options: object) -> None:
    assert not isinstance(card, vx.VeraxError), f"{where} was refused: {card}"
    expected = vx.evaluate(y, p, bootstrap=2, **options)
    assert card.n_rows == expected.n_rows, f"{where}: {card.n_rows} rows, not {expected.n_rows}"
    for name, wanted in expected.scores.items():
        found = card.scores[name].mean
        close = found == wanted.mean or abs(found - wanted.mean) <= 1e-9 * max(1, abs(wanted.mean))
        assert close, f"{where}: {name} is {found}, not {wanted.mean}"


# ---- what is done to them ----------------------------------------------------------------------


def faithful(rng: np.random.Generator, folder: Path) -> None:
    """Odd names and labels as they are: the card is that of the arrays."""
    names, y, p = draw(rng)
    weights = rng.random(len(y)) + 0.1
    groups = pa.array([str(g) for g in rng.choice(["01", "1", "001", "x"], len(y))])
    path = write(rng, table_of(rng, names, y, p, w=weights, who=groups), folder)
    many = len(set(groups.to_pylist())) > 1
    options = {"weights": "w", "classes": names, "groups": "who" if many else None}
    card = score(path, rng, **options, target="label", probs=[f"p_{name}" for name in names])
    blank = path.name.endswith("jsonl") is False and any(name.strip() != name for name in names)
    if isinstance(card, vx.VeraxError) and (blank or any("\n" in name for name in names)):
        return
    same(card, y, p, (path.name, names), weights=weights)
    assert not many or card.n_groups == len(set(groups.to_pylist())), f"{path.name}: {card.n_groups} groups"


def broken(rng: np.random.Generator, folder: Path) -> None:
    """Random bytes, missing bytes, other bytes: a card or a refusal."""
    names, y, p = draw(rng, odd=False)
    path = write(rng, table_of(rng, names, y, p), folder)
    path = next(iter(sorted(path.iterdir()))) if path.is_dir() else path
    content = bytearray(path.read_bytes())
    how = rng.integers(0, 4)
    if how == 0:
        content = bytearray(rng.bytes(int(rng.integers(0, 400))))
    elif how == 1:
        content = content[: int(rng.integers(0, len(content)))]
    elif how == 2:
        for at in rng.integers(0, len(content), int(rng.integers(1, 8))):
            content[at] = int(rng.integers(0, 256))
    else:
        at = int(rng.integers(0, len(content)))
        content[at:at] = rng.bytes(int(rng.integers(1, 30)))
    path.write_bytes(bytes(content))
    score(path, rng, invalid=str(rng.choice(["raise", "skip"])))


def one_cell(rng: np.random.Generator, folder: Path) -> None:
    """A CSV file with one hostile cell, which is named by its row where it is refused."""
    names, y, p = draw(rng, odd=False)
    rows = [[names[i], *map(repr, row.tolist())] for i, row in zip(y, p, strict=True)]
    row, column = int(rng.integers(0, len(rows))), int(rng.integers(0, len(names) + 1))
    cell = str(rng.choice(CELLS))
    rows[row][column] = '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"') else cell
    header = ",".join(["label", *(f"p_{name}" for name in names)])
    path = folder / "a.csv"
    path.write_text("\n".join([header, *map(",".join, rows), ""]))
    found = score(path, rng)
    if isinstance(found, vx.InputError) and found.rows:
        assert found.rows[0] == row, f"row {found.rows} is named for {cell!r} in row {row}"
        left = np.delete(np.arange(len(y)), row)
        if len(left):
            card = score(path, rng, invalid="skip")
            same(card, y[left], p[left], f"without {cell!r} in row {row}")
            assert card.skipped.rows == (row,), f"{card.skipped} for {cell!r} in row {row}"
    if not isinstance(found, vx.VeraxError):
        # A single outcome that is a whole number is a position.
        y = np.array([int(cell)]) if column == 0 else y
        numbers = np.array([[float(c) for c in r[1:]] for r in rows])
        same(found, y, numbers, f"{cell!r} in row {row}, column {column}")


def odd_types(rng: np.random.Generator, folder: Path) -> None:
    """Columns of types that no file of predictions should have."""
    names, y, p = draw(rng, odd=False)
    n = len(y)
    odd = [
        pa.array([date(2020, 1, 1)] * n),
        pa.array([Decimal("0.5")] * n),
        pa.array([{"x": 1}] * n),
        pa.array([[0.5, None]] * n),
        pa.array([[0.5] * int(rng.integers(0, 4)) for _ in range(n)], pa.list_(pa.float64())),
        pa.array([b"\xff"] * n),
        pa.array([2**63 + 5] * n, pa.uint64()),
        pa.array([None] * n),
        pa.array([float("nan")] * n),
        pa.array([float("inf")] * n),
        pa.array([True, False] * n)[:n],
        pa.array(np.full(n, 0.25, np.float16)),
        pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int8()), pa.array([None, "a"])),
        pa.array([0.0, 1.0] * n)[:n],
        pa.array([""] * n),
    ]
    table = table_of(rng, names, y, p, w=np.ones(n), who=np.arange(n))
    name = str(rng.choice(table.column_names))
    table = table.set_column(table.schema.get_field_index(name), name, odd[int(rng.integers(0, len(odd)))])
    path = folder / ("a.parquet" if rng.random() < 0.5 else "a.arrow")
    try:
        papq.write_table(table, path) if path.suffix == ".parquet" else pafeather.write_feather(table, path)
    except pa.ArrowException:  # no file can hold it
        return
    asked = {"weights": "w", "groups": "who", "id": "who", "by": "who"}
    chosen = {role: column for role, column in asked.items() if rng.random() < 0.4}
    probs = {} if rng.random() < 0.7 else {"probs": name if name != "label" else "w"}
    score(path, rng, **chosen, **probs, invalid=str(rng.choice(["raise", "skip"])))


def odd_arrays(rng: np.random.Generator, folder: Path) -> None:
    """NumPy files of any type, shape and order; big-endian numbers are numbers."""
    _, y, p = draw(rng, odd=False)
    types = ["<f8", ">f8", "<f4", "<f2", "<i8", "?", "c16", "U5", "S5", "M8[D]", "V8", "f4,i4", "<u8", ">i4"]
    p_type = str(rng.choice(types, p=[0.3, 0.2, *[0.5 / 12] * 12]))
    y_type = str(rng.choice(types[4:5] + types, p=[0.3, *[0.05] * 14]))
    with np.errstate(all="ignore"):
        try:
            stored, labels = p.astype(p_type), y.astype(y_type)
        except (TypeError, ValueError):
            return
    stored = np.asfortranarray(stored) if rng.random() < 0.4 else stored
    if rng.random() < 0.2:
        labels = labels.reshape([(-1, 1), (1, -1), (-1, 1, 1)][int(rng.integers(0, 3))])
    path = folder / "a.npz"
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(path, probs=stored, labels=labels)
    if rng.random() < 0.3:
        content = bytearray(path.read_bytes())
        for at in rng.integers(0, len(content), 3):
            content[at] = int(rng.integers(0, 256))
        path.write_bytes(bytes(content))
        score(path, rng, invalid=str(rng.choice(["raise", "skip"])))
        return
    card = score(path, rng)
    plain = p_type in ("<f8", ">f8") and y_type in ("<i8", ">i4", "<u8", "<f8", ">f8", "<f4", "<f2")
    if plain and labels.shape in (y.shape, (len(y), 1)):
        same(card, y, p, (p_type, y_type, labels.shape))


def several(rng: np.random.Generator, folder: Path) -> None:
    """Parts of a data set, some rows of which may be in several parts, or the files of two models."""
    names, y, p = draw(rng, odd=False)
    n, ending = len(y), str(rng.choice(["csv", "parquet", "jsonl"]))
    ids = np.array([f"q{i}" for i in range(n)]) if rng.random() < 0.5 else np.arange(n)
    how = int(rng.integers(3))
    # Different rows, some rows again, or all rows again in another order.
    first = np.arange(n) if how == 2 else np.flatnonzero(rng.random(n) < 0.5)
    second = {0: np.setdiff1d(np.arange(n), first), 1: np.flatnonzero(rng.random(n) < 0.5)}.get(how)
    parts = [first, rng.permutation(n) if second is None else second]
    chosen = np.concatenate(parts)
    paths = []
    for i, part in enumerate(parts):
        if len(part):
            table = table_of(rng, names, y[part], p[part], key=pa.array(ids[part]))
            paths.append(folder / f"{i}.{ending}")
            _store(table, paths[-1])
    if not paths:
        return
    told = {"target": "label", "probs": [f"p_{name}" for name in names], "classes": names}
    repeats = len(chosen) - len(set(chosen.tolist()))
    found = _refusal(lambda: vx.evaluate(vx.scan(paths, id="key", **told), bootstrap=2))
    if repeats:
        assert isinstance(found, vx.InputError), f"{parts} were pooled"
        assert (found.argument, found.count) == ("id", repeats), str(found)
    else:
        same(found, y[chosen], p[chosen], (ending, parts))
    # Without a name of theirs, ids tell of two models only where rows are in both.
    looked = _refusal(lambda: vx.evaluate(vx.scan(paths, **told), bootstrap=2))
    assert repeats or not isinstance(looked, vx.VeraxError), f"parts are no two models: {looked}"


def _refusal(function: Callable[[], object]) -> object:
    """What a function returns, or its refusal."""
    try:
        return function()
    except vx.VeraxError as error:
        return error


def _store(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        papq.write_table(table, path)
    elif path.suffix == ".csv":
        pacsv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
