"""`verax sites`, and `verax evaluate --sites`."""

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

ROWS = 2400


@pytest.fixture(scope="module")
def admissions(tmp_path_factory):
    rng = np.random.default_rng(3)
    p = rng.beta(1.5, 8, ROWS)
    died = rng.random(ROWS) < p
    path = tmp_path_factory.mktemp("sites") / "admissions.csv"
    hospital = np.array(["north", "south", "east", "west"])[rng.integers(4, size=ROWS)]
    pd.DataFrame({"hospital": hospital, "died": np.where(died, "yes", "no"), "risk": p}).to_csv(
        path, index=False
    )
    return path


READ = "--target", "died", "--probs", "risk", "--positive", "yes", "--sites", "hospital"


def exact(path):
    table = pd.read_csv(path)
    return vx.sites(table.died, table.risk, sites=table.hospital, classes=["no", "yes"])


def test_the_command_says_what_the_library_says(admissions):
    done = verax("sites", admissions, *READ, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = exact(admissions)
    assert found["verdict"] == expected.verdict
    assert found["sites"]["column"] == "hospital"
    assert [site["label"] for site in found["sites"]["table"]] == ["east", "north", "south", "west"]
    across = found["sites"]["summary"]["oe"]
    assert across["next"]["value"] == pytest.approx(expected.next_site.value)
    assert across["near"] == pytest.approx(expected.summary["oe"].near)


def test_evaluate_takes_sites(admissions):
    done = verax("evaluate", admissions, *READ)
    assert done.returncode == 0, done.stderr
    assert "type that in place of `verax evaluate`" in done.stderr
    assert "The next site will have an O:E of" in " ".join(done.stdout.split())


def test_its_page_and_its_figure(admissions, tmp_path):
    done = verax("sites", admissions, *READ, "--html", tmp_path / "a.html", "--plot", tmp_path / "a.png")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "a.html").read_text()
    for text in ("O:E by hospital", "AUC by hospital", "How far off the next site will be", "next site"):
        assert text in page
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (READ[:-2], "--sites"),
        ((*READ[:-1], "ward"), "ward"),
        ((*READ, "--by", "hospital"), "--sites names the column"),
    ],
)
def test_what_is_refused(admissions, typed, says):
    done = verax("sites", admissions, *typed)
    assert done.returncode == 2
    assert says in done.stderr
