"""The same file gives the same output, byte for byte, whether its rows are kept in memory or read again."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from commandline import verax
from scanned import alike

N = 400
TWO = ("two.csv", "--probs", "a=p_*", "--probs", "b=q_*", "--classes", "low,mid,high")
BESIDE = ("--by", "site", "--groups", "patient", "--weights", "w", "--id", "id")
RUNS = {
    "a card": ("evaluate", "a.csv", *BESIDE),
    "a card of ordered classes": ("evaluate", "a.csv", "--ordered", "--classes", "low,mid,high"),
    "a card with numbers that are cut": ("evaluate", "a.csv", "--by", "age:4", "--by", "site"),
    "a card without invalid rows": ("evaluate", "bad.csv", "--skip-invalid", "--id", "id", "--by", "site"),
    "invalid rows": ("evaluate", "bad.csv", "--id", "id"),
    "arrays": ("evaluate", "a.npz"),
    "columns of a Parquet file": ("evaluate", "a.parquet", *BESIDE),
    "two kinds of groups": ("evaluate", "a.csv", "--groups", "patient,site", "--by", "site"),
    "two files": ("compare", "a.csv", "b.csv", *BESIDE),
    "two models": ("compare", *TWO, "--by", "site", "--groups", "patient", "--weights", "w"),
    "two models by AUC": ("compare", *TWO, "--rule", "auc"),
    "worst rows": ("worst", "a.csv", "--id", "id"),
    "worst valid rows": ("worst", "bad.csv", "--skip-invalid"),
    "a decomposition": ("decompose", "a.csv", "--groups", "patient", "--weights", "w"),
    "curves": ("retain", "a.csv", "--bootstrap", "50", "--groups", "patient"),
    "curves by doubt": ("retain", "a.csv", "--doubt", "entropy", "--weights", "w"),
    "recalibration": ("recalibrate", "bad.csv", "--skip-invalid", "--groups", "patient"),
    "sets": ("sets", "a.csv", "--level", "0.9", "--by", "site"),
    "decisions": ("decide", "a.csv"),
    "a plan": ("plan", "a.csv", "--width", "0.02"),
}
# These take the same ways as others above.
LONG = {
    "a card of ordered classes",
    "a card with numbers that are cut",
    "arrays",
    "two kinds of groups",
    "two models",
    "worst valid rows",
    "curves by doubt",
    "a plan",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held")
    rng = np.random.default_rng(0)
    names = np.array(["high", "low", "mid"])
    p = rng.dirichlet([2, 1, 1], N)
    y = np.array([rng.choice(3, p=row) for row in p])
    frame = pd.DataFrame({"id": np.arange(N) + 1000, "label": names[y]})
    frame = frame.assign(
        **{f"p_{name}": p[:, j] for j, name in enumerate(names)},
        site=np.array(["a", "b", "c"])[rng.integers(0, 3, N)],
        patient=rng.integers(0, 150, N),
        w=rng.random(N).round(3),
        age=rng.integers(18, 90, N),
    )
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    np.savez(folder / "a.npz", y=y, p=p)
    columns = [f"p_{name}" for name in names]
    flat = frame.assign(**dict(zip(columns, (0.7 * p + 0.1).T, strict=True)))
    flat.to_csv(folder / "b.csv", index=False)
    both = {f"q_{name}": flat[f"p_{name}"] for name in names}
    frame.assign(**both).to_csv(folder / "two.csv", index=False)
    frame.loc[[5, 77, 200], "p_low"] = np.nan
    frame.loc[9, "p_high"] = 1.7
    frame.to_csv(folder / "bad.csv", index=False)
    return folder


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=pytest.mark.long if run in LONG else ()) for run in RUNS]
)
def test_held_rows_change_no_byte(run, folder, monkeypatch, change, tmp_path):
    monkeypatch.chdir(folder)
    # Compiled loops begin when a process has done some work; parts are shorter than the files.
    change(kernels=False, part_rows=150)
    held = outputs(*RUNS[run], page=tmp_path / "page.html")
    change(held_up_to=125, held_bytes_up_to=1000, lists_held_up_to=1)
    assert outputs(*RUNS[run], page=tmp_path / "page.html") == held


def outputs(command, *arguments, page):
    """What a command prints as text and as JSON, and its page."""
    found = [verax(command, *arguments, *form) for form in (["--all"], ["--json"])]
    if command in ("evaluate", "compare") and "--rule" not in arguments:
        found.append(verax(command, *arguments, "--html", page))
        if found[-1].returncode == 0:
            found.append(page.read_text(encoding="utf-8"))
    return found


def test_models_in_files_of_their_own_are_compared_like_those_of_one_file(folder, monkeypatch):
    monkeypatch.chdir(folder)
    more = ("--by", "site", "--groups", "patient", "--weights", "w", "--json")
    # The second is the better one, whose calibration is told.
    one = verax(
        "compare", "two.csv", "--probs", "b=q_*", "--probs", "a=p_*", "--classes", "high,low,mid", *more
    )
    two = verax("compare", "b.csv", "a.csv", "--id", "id", *more)
    ours, theirs = json.loads(two.stdout), json.loads(one.stdout)
    alike(ours["comparison"], theirs["comparison"])
    assert ours["verdict"] == theirs["verdict"]
    assert [each["p_value"] for each in ours["findings"]] == pytest.approx(
        [each["p_value"] for each in theirs["findings"]]
    )


def test_groups_that_numbers_are_cut_into_are_of_equal_size(folder, monkeypatch, change):
    monkeypatch.chdir(folder)
    change(held_up_to=125, held_bytes_up_to=1000, part_rows=150)
    found = json.loads(verax("evaluate", "a.csv", "--by", "age:4", "--json").stdout)
    ages = np.sort(pd.read_csv("a.csv")["age"])
    parts = pd.cut(ages, [0, *np.quantile(ages, [0.25, 0.5, 0.75], method="lower"), 100])
    expected = [
        (f"{own.min()} to {own.max()}", len(own)) for _, own in pd.Series(ages).groupby(parts, observed=True)
    ]
    lines = found["subgroups"]["age"]["subgroups"]
    assert [(line["label"][3:], line["card"]["n_rows"]) for line in lines] == expected
