"""`verax raters`, and `--raters` of other commands: what the library says, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

RNG = np.random.default_rng(2)
NAMES = ["low", "middle", "high"]
WHO = ["ann", "bob", "cy"]
N = 60
TRUTH = RNG.dirichlet(np.ones(3), N)
P = 0.7 * TRUTH + 0.1
LABELS = pd.DataFrame({name: [NAMES[RNG.choice(3, p=q)] for q in TRUTH] for name in WHO})
LABELS.loc[::4, "bob"] = None
PATIENT = np.arange(N) // 3
IDS = np.array([f"eye {i}" for i in range(N)])
OWN = {"raters": "columns", "classes": NAMES}
RATED = ("--raters", "ann,bob,cy")
LONG = "--id id --rater-column who --label-column grade"


def table(p=P):
    columns = {"id": IDS, "patient": PATIENT, "site": np.where(PATIENT % 2, "north", "south")}
    return pd.DataFrame({**columns, **LABELS, **{f"p_{c}": p[:, i] for i, c in enumerate(NAMES)}})


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("raters")
    table().to_csv(path / "rated.csv", index=False)
    table(0.5 * P + 0.5 / 3)[::-1].to_parquet(path / "cautious.parquet", index=False)
    other = table().assign(ann=table().ann.where(np.arange(N) != 5, "high"))
    other.loc[5, "cy"] = None
    other.to_csv(path / "other.csv", index=False)
    both = table().rename(columns={f"p_{c}": f"a_{c}" for c in NAMES})
    both.assign(**{f"b_{c}": 1 / 3 for c in NAMES}).to_csv(path / "both.csv", index=False)
    long = table().melt([name for name in table() if name not in WHO], WHO, "who", "grade").dropna()
    long = long.sample(frac=1, random_state=1).sort_values("id", key=lambda own: own.str[4:].astype(int))
    long.to_csv(path / "long.csv", index=False)
    long.assign(p_low=np.where(np.arange(len(long)) == 7, 0.5, long.p_low)).to_csv(path / "odd.csv")
    pd.concat([long, long[4:5]]).to_csv(path / "twice.csv", index=False)
    np.savez(path / "rated.npz", probs=P, labels=np.zeros(N, int))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


def as_json(command, *arguments):
    done = verax(command, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_says_what_the_library_says(tmp_path):
    plot = tmp_path / "worth.png"
    own = ["--groups", "patient", "--id", "id", "-n", 3, "--plot", plot]
    found = as_json("raters", "rated.csv", *RATED, *own)
    exact = vx.raters(LABELS, P, **OWN, groups=PATIENT, ids=IDS, n=3)
    assert found["verdict"] == exact.verdict
    assert found["raters"]["worth"]["value"] == pytest.approx(exact.worth.value, rel=1e-12)
    assert found["raters"]["n_groups"] == 20
    assert [rater["name"] for rater in found["raters"]["raters"]] == WHO
    assert [case["id"] for case in found["raters"]["cases"]] == [case.id for case in exact.cases]
    assert found["taken"]["raters"] == WHO
    assert plot.stat().st_size > 1000


def test_a_long_table_is_read_as_its_cases():
    own = ["--id", "id", "--groups", "patient", "-n", 3]
    found = as_json("raters", "long.csv", "--rater-column", "who", "--label-column", "grade", *own)
    wide = as_json("raters", "rated.csv", *RATED, *own)
    assert found["raters"] == wide["raters"]
    assert found["taken"]["raters"] == WHO


def test_ordered_classes_are_scored_with_rps():
    found = as_json("raters", "rated.csv", *RATED, "--ordered", "--classes", ",".join(NAMES))
    exact = vx.raters(LABELS, P, **OWN, ordered=True)
    assert found["raters"]["rule"] == "rps"
    assert found["raters"]["disagreement"]["value"] == pytest.approx(exact.disagreement.value, rel=1e-12)


def test_evaluate_scores_every_rater():
    found = as_json("evaluate", "rated.csv", *RATED, "--rule", "brier", "--by", "site", "--bootstrap", 0)
    exact = vx.evaluate(LABELS, P, rules=["brier"], **OWN)
    assert found["card"]["n_rows"] == N
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(exact["brier"], rel=1e-12)
    assert sum(part["card"]["n_rows"] for part in found["subgroups"]["site"]["subgroups"]) == N


def test_files_of_two_models_are_matched_by_id():
    found = as_json("compare", "rated.csv", "cautious.parquet", *RATED, "--id", "id", "--rule", "brier")
    exact = vx.compare(LABELS, {"rated": P, "cautious": 0.5 * P + 0.5 / 3}, rule="brier", **OWN)
    (difference,) = found["comparison"]["differences"]["brier"]
    (wanted,) = exact.to_dict()["differences"]["brier"]
    assert difference["difference"] == pytest.approx(wanted["difference"], rel=1e-10)
    several = ["--probs", "a=a_*", "--probs", "b=b_*"]
    one_file = as_json("compare", "both.csv", *several, *RATED, "--rule", "brier")
    assert list(one_file["comparison"]["traits"]) == ["a", "b"]


def test_worst_cases_show_what_raters_chose():
    found = as_json("worst", "rated.csv", *RATED, "-n", 1)
    (exact,) = vx.worst(LABELS, P, n=1, **OWN).cases
    (case,) = found["cases"]
    assert case["outcome"] == [list(pair) for pair in exact.outcome.items()]
    assert case["excess"] == pytest.approx(exact.excess)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("raters rated.csv", "--raters must name the column of each rater"),
        ("raters rated.csv --raters ann --target bob", "--raters names the columns of outcomes"),
        ("raters rated.csv --raters ann,nobody", "no column 'nobody'"),
        ("raters rated.csv --raters ann,site", "row 0 holds 'south'"),
        ("raters rated.csv --raters ann,bob --rule zero_one --by site", "rows of one subgroup"),
        ("raters rated.npz --raters ann,bob", "must be columns of a table"),
        ("evaluate rated.csv --raters ann,bob --target cy", "beside the column of outcomes"),
        ("raters long.csv --rater-column who", "--label-column must be given"),
        ("raters long.csv --rater-column who --label-column grade", "--id must name the column of cases"),
        (f"raters odd.csv {LONG}", "Column 'p_low' must hold one value for each case"),
        (f"raters twice.csv {LONG}", "must label a case once"),
        (f"raters long.csv {LONG} --raters who", "beside the columns of a long table"),
        (f"raters long.csv {LONG}s", "no column 'grades'"),
        ("monitor rated.csv --raters ann,bob --time id --state a.state", "one class per row"),
        ("toplist rated.csv --raters ann,bob --classes 9", "one outcome each"),
        ("compare rated.csv other.csv --raters ann,bob,cy", "differ in 1 of 60 rows"),
    ],
)
def test_bad_options_are_refused_in_one_line(typed, message):
    done = verax(*typed.split())
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
