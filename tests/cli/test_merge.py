"""`evaluate --save` and `merge`: shards saved one by one give the card of the whole file."""

from __future__ import annotations

import html
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import demofiles
import verax as vx
from commandline import verax
from scanned import alike
from verax.files.lists import open_lists
from verax.report import Report

OPTIONS = ["--ordered", "--classes", "low,mid,high", "--groups", "site", "--weights", "w"]
OPTIONS += ["--confidence", 0.9]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A file, and its parts by group, the last of which has no weight."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)
    site = np.sort(rng.integers(0, 5, 60))
    w = np.where(site == 4, 0.0, rng.exponential(size=60))
    label = np.array(["low", "mid", "high"])[rng.integers(0, 3, 60)]
    columns = {f"p_{name}": p[:, i] for i, name in enumerate(["low", "mid", "high"])}
    table = pa.table({**columns, "label": label, "site": site, "w": w})
    papq.write_table(table, folder / "all.parquet")
    saved = []
    for i in range(5):
        path = folder / f"{i}.parquet"
        papq.write_table(table.filter(pa.array(site == i)), path)
        result = verax("evaluate", path, *OPTIONS, "--save", path.with_suffix(".verax"))
        assert result.returncode == 0, result.stderr
        assert f"Saved results are in {path.with_suffix('.verax')}." in result.stdout
        saved.append(path.with_suffix(".verax"))
    return folder, saved


def close(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            close(a[name], b[name])
    elif isinstance(a, list):
        for one, other in zip(a, b, strict=True):
            close(one, other)
    else:
        assert a == (pytest.approx(b, rel=1e-9) if isinstance(b, float) else b)


def test_shards_merge_into_the_card_of_the_whole_file(shards):
    folder, saved = shards
    whole = json.loads(verax("evaluate", folder / "all.parquet", *OPTIONS, "--json").stdout)["card"]
    week = folder / "week.verax"
    result = verax("merge", *saved[:3], "--save", week)
    assert result.returncode == 0, result.stderr
    merged = json.loads(verax("merge", saved[4], week, saved[3], "--json").stdout)["card"]
    close(merged, whole)
    # The last group has no weight.
    assert merged["n_groups"] == 4
    assert merged["intervals"]["confidence"] == 0.9


def test_bounds_are_held_by_the_merged_card(shards):
    _, saved = shards
    assert verax("merge", *saved, "--require", "rps<0.9").returncode == 0
    failed = verax("merge", *saved, "--require", "rps<0.01", "--require-interval")
    assert failed.returncode == 1
    assert "FAILED" in failed.stdout
    for bound in ("skill>0.1", "log_score(base=10)<3"):
        refused = verax("merge", *saved, "--require", bound)
        assert refused.returncode == 2
        assert "the saved results do not include" in refused.stderr


def test_files_that_do_not_go_together_are_named(shards, tmp_path):
    folder, saved = shards
    other = tmp_path / "other.verax"
    verax("evaluate", folder / "all.parquet", "--save", other)
    result = verax("merge", *saved, other)
    assert result.returncode == 2
    assert "0.verax and" in result.stderr
    assert "other.verax cannot be merged" in result.stderr
    result = verax("merge", folder / "all.parquet")
    assert (result.returncode, "must be a file that verax saved" in result.stderr) == (2, True)
    result = verax("merge", saved[0])
    assert (result.returncode, "at least two groups" in result.stderr) == (2, True)


def test_lists_are_saved_and_merged(tmp_path):
    demofiles.write_all(tmp_path)
    lists, saved = tmp_path / "completions.jsonl", tmp_path / "lists.verax"
    result = verax("toplist", lists, "--classes", 50000, "--save", saved)
    assert result.returncode == 0, result.stderr
    one = json.loads(verax("toplist", lists, "--classes", 50000, "--json").stdout)
    two = json.loads(
        verax("merge", saved, saved, "--allow-repeats", "--require", "coverage>0.01", "--json").stdout
    )["card"]
    assert two["n_rows"] == 2 * one["n_rows"]
    for name, line in one["metrics"].items():
        assert two["metrics"][name]["mean"] == pytest.approx(line["mean"], rel=1e-12)


def test_reports_on_lists_are_saved_and_merged(tmp_path):
    demofiles.write_all(tmp_path)
    rows = (tmp_path / "completions.jsonl").read_text().splitlines(keepends=True)
    for name, part in (("a", rows[:12]), ("b", rows[12:]), ("whole", rows)):
        (tmp_path / f"{name}.jsonl").write_text("".join(part))
        outputs = ["--save", tmp_path / f"{name}.verax", "--html", tmp_path / f"{name}.html"]
        result = verax("evaluate", tmp_path / f"{name}.jsonl", "--classes", 50000, *outputs)
        assert result.returncode == 0, result.stderr
    # A pattern names both parts, which are small enough to be read as the whole file is.
    named = [f"both={tmp_path}/[ab].jsonl", "--classes", 50000, "--html", tmp_path / "both.html"]
    both = verax("evaluate", *named, "--json")
    assert both.returncode == 0, both.stderr
    alone = json.loads(verax("evaluate", tmp_path / "whole.jsonl", "--classes", 50000, "--json").stdout)
    alike(json.loads(both.stdout)["card"], alone["card"])
    parts = [tmp_path / "a.verax", tmp_path / "b.verax"]
    merged = verax("merge", *parts, "--html", tmp_path / "all.html")
    assert merged.returncode == 0, merged.stderr
    verdict = Report.of(vx.scan(tmp_path / "whole.verax")).verdict
    read = open_lists(tmp_path / "whole.jsonl", classes=50000)
    held = Report.of(read.y, {"both": read.lists}, groups=read.groups, skipped=read.skipped).verdict
    assert held in html.unescape((tmp_path / "both.html").read_text())
    for name in ("all", "whole"):
        assert verdict in html.unescape((tmp_path / f"{name}.html").read_text())


def test_the_report_on_all_shards_is_that_on_the_whole_file(shards, tmp_path):
    folder, _ = shards
    parts = [papq.read_table(folder / f"{i}.parquet") for i in range(4)]
    papq.write_table(pa.concat_tables(parts), tmp_path / "whole.parquet")
    for source in (*(folder / f"{i}.parquet" for i in range(4)), tmp_path / "whole.parquet"):
        target = tmp_path / source.name
        outputs = ["--save", target.with_suffix(".verax"), "--html", target.with_suffix(".html")]
        result = verax("evaluate", source, *OPTIONS, *outputs)
        assert result.returncode == 0, result.stderr
        alone = "There is no report on this part alone" in result.stdout
        assert alone == (source.stem != "whole") != target.with_suffix(".html").exists()
    four = [tmp_path / f"{i}.verax" for i in range(4)]
    # What was merged and saved merges again, with all its summaries.
    three = verax("merge", *four[:3], "--save", tmp_path / "three.verax")
    assert three.returncode == 0, three.stderr
    merged = verax("merge", four[3], tmp_path / "three.verax", "--html", tmp_path / "week.html")
    assert merged.returncode == 0, merged.stderr
    verdict = Report.of(vx.scan(tmp_path / "whole.verax"), ordered=True, confidence=0.9).verdict
    assert verdict in html.unescape((tmp_path / "week.html").read_text())
    # With the rows there are more tests of calibration, so each has less of the level: how the model does is
    # the same, and what is said about calibration may differ.
    opening = verdict[: verdict.index("). ") + 2]
    assert "RPS" in opening
    assert opening in html.unescape((tmp_path / "whole.html").read_text())


def test_parts_without_a_report_have_no_report(shards, tmp_path):
    _, saved = shards
    result = verax("merge", *saved, "--html", tmp_path / "week.html")
    assert result.returncode == 2
    assert "0.verax" in result.stderr
    assert "verax evaluate --save" in result.stderr
    assert not (tmp_path / "week.html").exists()


def test_lists_saved_by_an_earlier_version_are_said_to_have_another_accuracy(tmp_path):
    with zipfile.ZipFile(Path(__file__).parent.parent / "saved" / "0.2.0.zip") as archive:
        for name in ("lists0.verax", "lists1.verax", "plain0.verax"):
            archive.extract(name, tmp_path)
    old = [tmp_path / "lists0.verax", tmp_path / "lists1.verax"]
    (note,) = json.loads(verax("merge", *old, "--json").stdout)["notes"]
    assert note.startswith("2 of 2 files were saved by verax 0.2")
    assert "mixes both" not in note
    new = tmp_path / "new.verax"
    vx.load(old[1]).save(new)
    text = verax("merge", old[0], new).stdout
    assert "Note: 1 of 2 files were saved by verax 0.2" in text
    assert "The merged accuracy mixes both definitions." in text
    assert json.loads(verax("merge", new, "--json").stdout)["notes"] == []
    assert json.loads(verax("merge", tmp_path / "plain0.verax", "--json").stdout)["notes"] == []
