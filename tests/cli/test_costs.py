"""`verax evaluate --dry-run`, and estimates of what is left."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from commandline import verax
from evallogs import chosen, write_lines

N = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    p = np.random.default_rng(0).dirichlet(np.ones(3), N)
    frame = pd.DataFrame(p, columns=["p_0", "p_1", "p_2"]).assign(label=p.argmax(axis=1))
    frame.to_csv(folder / "preds.csv", index=False)
    frame.to_parquet(folder / "preds.parquet")
    return folder


def costs(*arguments):
    ran = verax("evaluate", *arguments, "--dry-run", "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["dry_run"]


def test_rows_and_passes_are_told_without_the_result(folder, tmp_path):
    page, card = tmp_path / "page.html", tmp_path / "card.verax"
    found = costs(folder / "preds.parquet", "--html", page, "--save", card)
    assert (found["n_rows"], found["exact"], found["kept"]) == (N, True, True)
    assert found["passes"] >= 1
    assert found["seconds"] > 0
    assert found["megabytes"] > 1
    assert not list(tmp_path.iterdir())
    text = verax("evaluate", folder / "preds.parquet", "--dry-run").stdout
    assert "3,000 rows" in text
    assert "Nothing was scored." in text


def test_rows_of_a_text_are_estimated_where_it_is_not_read_to_its_end(tmp_path, change):
    change(text_block=2**18)
    n, path = 200_000, tmp_path / "long.csv"
    path.write_text("label,p_0,p_1\n" + "0,0.75,0.25\n1,0.5,0.5\n" * (n // 2))
    text = costs(path)
    assert not text["exact"]
    assert text["n_rows"] == pytest.approx(n, rel=0.02)
    assert 0 < text["sampled"] < n


def test_a_file_that_fits_the_sample_is_measured_and_not_extrapolated(folder):
    text = costs(folder / "preds.csv")
    assert (text["n_rows"], text["exact"], text["sampled"]) == (N, True, N)
    assert text["per_million"] == pytest.approx(text["seconds"] / N * 1e6)


def test_logs_are_read_when_they_are_opened(tmp_path, change):
    log = write_lines(tmp_path / "samples.jsonl", [chosen(i, [-1, -2, -3], i % 3) for i in range(300)])
    found = costs(log)
    assert (found["n_rows"], found["sampled"], found["kept"]) == (300, 300, True)
    assert found["per_million"] == pytest.approx(found["seconds"] / 300 * 1e6)
    change(progress_after=0.0, progress_bytes=10_000)
    ran = verax("evaluate", log, "--log", "json")
    assert f"megabytes of {log} read" in ran.stderr


def test_larger_samples_leave_the_rows_of_a_command_as_they_are(folder, change):
    change(held_up_to=100, held_bytes_up_to=100)
    assert not costs(folder / "preds.csv")["kept"]


def test_a_log_says_how_many_rows_are_left(folder, change):
    change(progress_after=0.0, part_rows=500)
    ran = verax("evaluate", folder / "preds.parquet", "--log", "json")
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    said = [line for line in lines if line["level"] == "progress"]
    assert "500 of about 3,000 rows read" in said[0]["message"]
    change(held_up_to=100, held_bytes_up_to=100)
    again = verax("evaluate", folder / "preds.parquet", "--log", "json")
    assert "pass 2, 500 of about 3,000 rows read" in again.stderr
