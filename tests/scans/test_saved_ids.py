"""What an attacker with a saved file learns of ids, and what parts can still be merged by groups."""

import itertools
import os
import re
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import verax as vx
from commandline import verax
from verax.analyses.loading import merged_card
from verax.common import idkeys
from verax.scans.saved import SavedHandle

N = 600
NAMES = rb"PAT-\d{6}"


def rows(seed, n=N):
    """Rows of patients, some of whom have one row, and ids of their own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = np.clip(0.5 + (y - 0.5) * rng.uniform(-0.2, 0.9, n), 0.01, 0.99)
    patient = np.array([f"PAT-{i:06d}" for i in rng.integers(0, 420, n)])
    return y, np.c_[1 - p, p], patient, np.array([f"ROW-{seed}-{i}" for i in range(n)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(idkeys.VARIABLE, str(tmp_path / "home" / "ids.key"))
    for i in range(2):
        y, p, patient, row = rows(i)
        table = pa.table({"label": y, "p_0": p[:, 0], "p_1": p[:, 1], "patient": patient, "row": row})
        pacsv.write_csv(table, tmp_path / f"{i}.csv")
    return tmp_path


def saved(folder, i, *typed, name=None):
    place = folder / (name or f"{i}.verax")
    columns = ("--groups", "patient", "--id", "row")
    ran = verax("evaluate", folder / f"{i}.csv", *columns, "--save", place, *typed)
    assert ran.returncode == 0, ran
    return place, ran.stdout


def digests(secret, names):
    """What an attacker who has the key could make of names."""
    return {idkeys.IdKey(secret).digests(np.array([name]))[0] for name in names}


@pytest.mark.parametrize("page", [False, True])
def test_the_attacker_finds_no_id_and_cannot_try_names(folder, page):
    typed = ["--html", folder / "page.html"] if page else []
    path, said = saved(folder, 0, *typed)
    content = path.read_bytes()
    assert not re.search(NAMES, content)
    assert b"ROW-" not in content
    patients = np.unique(rows(0)[2])
    assert f"of each of {len(patients)} groups, with ids as digests" in said
    assert ("also of single rows" in said) == page
    # Without the key, all names that there may be lead nowhere; with it they do.
    names = [f"PAT-{i:06d}" for i in range(420)]
    for guess in (b"", bytes(32), os.urandom(32)):
        assert not any(digest.encode() in content for digest in digests(guess, names))
    key = idkeys.kept_key()
    assert sum(digest.encode() in content for digest in digests(key.secret, names)) == len(patients)
    if page:
        return
    # The order of digests is not that of the names.
    found = re.findall(rb"id:[0-9a-f]{8}:[0-9a-f]{24}", content)
    assert len(set(found)) == len(patients)
    of_names = [str(each) for each in key.digests(patients)]
    assert of_names != sorted(of_names)
    assert [each.decode() for each in dict.fromkeys(found)] == sorted(of_names)


def test_the_key_is_for_its_user_alone(folder):
    saved(folder, 0)
    file = folder / "home" / "ids.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = file.read_bytes()
    saved(folder, 1)
    assert file.read_bytes() == first
    file.write_text("no key")
    ran = verax("evaluate", folder / "0.csv", "--groups", "patient", "--save", folder / "x.verax")
    assert ran.returncode == 2
    assert f"The key of ids cannot be used, {file}" in ran.stderr
    # An empty key would be none.
    file.write_text("")
    with pytest.raises(vx.InputError, match="it holds 0 bytes, and a key has 32"):
        idkeys.kept_key()


def test_processes_that_make_the_key_at_once_have_one(folder):
    code = "from verax.common.idkeys import made_key; print(made_key().tag)"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({run.communicate()[0] for run in runs}) == 1
    assert os.listdir(folder / "home") == ["ids.key"]


def whole_card():
    a, b = rows(0), rows(1)
    y, p, patient = (np.concatenate([a[i], b[i]]) for i in range(3))
    return vx.evaluate(y, p, groups=patient)


@pytest.mark.parametrize("ways", [*itertools.product(["keyed", "plain"], repeat=2)])
def test_parts_are_merged_by_groups_as_all_rows_at_once(ways, folder):
    places = [saved(folder, i, "--ids", way)[0] for i, way in enumerate(ways)]
    merged, whole = merged_card(places).card, whole_card()
    assert merged.n_groups == whole.n_groups
    for name in whole.scores:
        a, b = merged.scores[name].interval, whole.scores[name].interval
        assert (a.low, a.high) == pytest.approx((b.low, b.high), rel=1e-12)


def test_merging_needs_the_same_key(folder, monkeypatch):
    places = [saved(folder, 0)[0]]
    monkeypatch.setenv(idkeys.VARIABLE, str(folder / "elsewhere" / "ids.key"))
    places.append(saved(folder, 1)[0])
    ran = verax("merge", *places)
    assert ran.returncode == 2
    assert "their ids were saved with another key" in ran.stderr
    # Whoever merges needs no key if both parts have the same.
    places[0] = saved(folder, 0)[0]
    monkeypatch.setenv(idkeys.VARIABLE, str(folder / "nowhere" / "ids.key"))
    assert merged_card(places).card.n_groups == whole_card().n_groups
    assert not (folder / "nowhere").exists()


def test_without_ids_a_part_stands_alone(folder):
    path, said = saved(folder, 0, "--ids", "none")
    assert "with no ids, so that it cannot be merged with other parts by groups" in said
    assert not re.search(NAMES, path.read_bytes())
    assert vx.load(path).n_groups == vx.evaluate(*rows(0)[:2], groups=rows(0)[2]).n_groups
    other, _ = saved(folder, 1, "--ids", "none")
    ran = verax("merge", path, other)
    assert ran.returncode == 2
    assert "or without ids" in ran.stderr
    assert not idkeys.key_file().exists()


def test_plain_ids_are_said(folder):
    path, said = saved(folder, 0, "--ids", "plain")
    assert "groups, with plain ids" in said
    assert re.search(NAMES, path.read_bytes())
    assert verax("evaluate", folder / "0.csv", "--save", path, "--ids", "some").returncode == 2


def test_rows_without_groups_leave_nothing(folder):
    ran = verax("evaluate", folder / "0.csv", "--id", "row", "--save", folder / "a.verax")
    assert "It holds sums of 600 rows, no ids and no values of single rows." in ran.stdout
    assert b"ROW-" not in (folder / "a.verax").read_bytes()
    assert not idkeys.key_file().exists()


def test_python_does_the_same(folder):
    y, p, patient, _ = rows(0)
    card = vx.evaluate(y, p, groups=patient)
    for ids, plain in ((None, False), ("plain", True), ("none", False)):
        card.save(folder / "a.verax", ids=ids)
        assert bool(re.search(NAMES, (folder / "a.verax").read_bytes())) == plain
    handle = vx.scan(folder / "0.csv", groups="patient", target="label", record=True)
    vx.evaluate(handle)
    handle.save(folder / "b.verax")
    assert not re.search(NAMES, (folder / "b.verax").read_bytes())
    # Numbers of any type have one digest, as ids have one value.
    key = idkeys.kept_key()
    same = [key.digests(np.array([value]))[0] for value in (7, 7.0, "7")]
    assert len(set(same)) == 1
    with pytest.raises(vx.InputError, match="ids"):
        card.save(folder / "a.verax", ids="some")


def test_merged_parts_of_pages_have_no_ids(folder):
    places = [saved(folder, i, "--html", folder / "p.html")[0] for i in range(2)]
    SavedHandle(places).save(folder / "both.verax", merged_card(places).card)
    assert not re.search(NAMES, (folder / "both.verax").read_bytes())
    assert vx.load(folder / "both.verax").n_groups == whole_card().n_groups
