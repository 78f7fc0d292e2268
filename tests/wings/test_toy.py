"""A subject of another package: one folder on the path, and every part of verax knows it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

TOY = Path(__file__).parents[1] / "toy"
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 200)
Y = (P.cumsum(axis=1) > RNG.random((200, 1))).argmax(axis=1)
LOSSES = ((P - np.eye(3)[Y]) ** 2).sum(axis=1)
HEAVY = LOSSES > 0.5
SHARES = {
    "n_rows": 200,
    "rows": pytest.approx(HEAVY.mean()),
    "loss": pytest.approx(LOSSES[HEAVY].sum() / LOSSES.sum()),
}


def run(*words):
    """What a process prints that has the folder of the toy on its path."""
    before = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [str(TOY), before]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The rows as CSV, whole and in two parts."""
    folder = tmp_path_factory.mktemp("toy")
    lines = [f"{y},{','.join(map(repr, p.tolist()))}" for y, p in zip(Y, P, strict=True)]
    for name, rows in {"rows": lines, "a": lines[:80], "b": lines[80:]}.items():
        (folder / f"{name}.csv").write_text("\n".join(["label,p_0,p_1,p_2", *rows]) + "\n")
    return folder


def test_the_command_is_listed_and_has_help(files):
    assert "heavy        Show how much of the loss comes from few rows." in run("-m", "verax", "--help")
    assert "--limit LOSS" in run("-m", "verax", "heavy", "--help")


def test_the_command_prints_text_and_json(files):
    words = ("-m", "verax", "heavy", str(files / "rows.csv"))
    assert f"{HEAVY.mean():.1%}" in run(*words)
    found = json.loads(run(*words, "--json"))["heavy"]
    assert {key: found[key] for key in SHARES} == SHARES


def test_its_json_has_a_schema(files):
    schema = json.loads(run("-m", "verax", "schema", "heavy"))
    found = json.loads(run("-m", "verax", "heavy", str(files / "rows.csv"), "--json"))
    jsonschema.validate(found, schema)


def test_its_section_stands_in_the_report(files, tmp_path):
    pytest.importorskip("jinja2")
    run("-m", "verax", "evaluate", str(files / "rows.csv"), "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    line = re.search(r"<section id=\"heavy\".*?</section>", page, re.DOTALL)[0]
    assert f"{100 * HEAVY.mean():.1f}% of the rows lose more than 0.5" in line
    assert page.index('id="worst"') < page.index('id="heavy"')
    assert '<a href="#heavy">Heavy losses</a>' in page


SOURCES = """
import sys
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import verax as vx
from verax._settings import changed
from verax_wings.heavy.analysis import heavy_losses

table = pa.csv.read_csv(f"{sys.argv[1]}/rows.csv")
y, p = table["label"].to_numpy(), table.select(["p_0", "p_1", "p_2"]).to_pandas().to_numpy()
pa.parquet.write_table(table, f"{sys.argv[1]}/rows.parquet", row_group_size=30)
sources = {"memory": (y, p), "frame": (vx.scan(table.to_pandas(), target="label"),)}
sources["file"] = (vx.scan(f"{sys.argv[1]}/rows.parquet"),)
if sys.argv[2] == "dask":
    import dask.dataframe as dd

    frame = dd.from_pandas(table.to_pandas(), npartitions=3)
    sources = {"dask": (vx.scan(frame, target="label"),)}
with changed(held_up_to=100, held_bytes_up_to=1000):
    for name, source in sources.items():
        found = heavy_losses(*source)
        print(name, found.n_rows, found.rows, found.loss)
"""


DASK = pytest.param("dask", "dask.dataframe", marks=pytest.mark.frameworks)


@pytest.mark.parametrize(("kind", "needs"), [("others", "pandas"), DASK])
def test_rows_may_be_anywhere(kind, needs, files):
    pytest.importorskip(needs)
    lines = run("-c", SOURCES, str(files), kind).splitlines()
    assert len(lines) == (1 if kind == "dask" else 3)
    for line in lines:
        _, n_rows, rows, loss = line.split()
        assert {"n_rows": float(n_rows), "rows": float(rows), "loss": float(loss)} == SHARES


SAVED = """
import sys
import verax as vx
from verax_wings.heavy.analysis import heavy_losses

folder = sys.argv[1]
for name in "ab":
    part = vx.scan(f"{folder}/{name}.csv", record=True)
    heavy_losses(part)
    part.save(f"{folder}/{name}.verax")
found = heavy_losses(vx.scan([f"{folder}/a.verax", f"{folder}/b.verax"]))
again = type(found).from_dict(found.to_dict())
assert again == found
print(found.n_rows, found.rows, found.loss)
"""


def test_parts_are_saved_and_merged(files):
    n_rows, rows, loss = map(float, run("-c", SAVED, str(files)).split())
    assert {"n_rows": n_rows, "rows": rows, "loss": loss} == SHARES
