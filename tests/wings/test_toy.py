"""A subject of another package: one folder on the path, and every part of verax knows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
