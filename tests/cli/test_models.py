"""compare, retain and worst on files."""

from __future__ import annotations

import json
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import commandline
import verax as vx
from cases import forecasts

NAMES = ("none", "mild", "severe")
Y, P = forecasts(400, 3, ties=False)
Q = 0.7 * P + 0.3 / 3
PATIENT = np.arange(400) % 90


def verax(*arguments, ok=True):
    result = commandline.verax(*arguments)
    assert (result.returncode == 0) == ok, result.stderr
    return result


def table(p, rows=slice(None), **columns):
    columns = {
        "scan": np.array([f"scan {i}" for i in range(400)]),
        "grade": np.array(NAMES)[Y],
        "patient": PATIENT,
        "site": np.arange(400) % 2,
        **columns,
    }
    columns |= {f"p_{name}": p[:, j] for j, name in enumerate(NAMES)}
    return pa.table({name: column[rows] for name, column in columns.items()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    shuffled = np.random.default_rng(0).permutation(400)
    papq.write_table(table(P), path / "a.parquet", row_group_size=77)
    papq.write_table(table(Q), path / "b.parquet")
    # The same rows in another order, with the columns in another order, as CSV.
    columns = ["p_severe", "scan", "p_none", "grade", "p_mild"]
    pacsv.write_csv(table(Q, shuffled).select(columns), path / "shuffled.csv")
    papq.write_table(table(Q, slice(1, None)), path / "short.parquet")
    papq.write_table(table(Q, np.r_[0, 0:399]), path / "twice.parquet")
    other = np.array(NAMES)[np.where(np.arange(400) == 7, (Y + 1) % 3, Y)]
    papq.write_table(table(Q, grade=other), path / "other.parquet")
    return path


ORDER = ("--target", "grade", "--classes", ",".join(NAMES))


def test_compare_is_the_library(folder):
    result = verax(
        "compare", folder / "a.parquet", folder / "b.parquet", *ORDER, "--groups", "patient", "--json"
    )
    found = json.loads(result.stdout)
    expected = vx.compare(Y, {"a": P, "b": Q}, rule=["brier", "log_score"], groups=PATIENT)
    assert found["comparison"]["differences"]["brier"][0]["difference"] == pytest.approx(
        expected.difference("a", "b", "brier").difference, rel=1e-12
    )
    assert found["comparison"]["n_groups"] == 90
    assert found["matched"] == "by the order of the rows"
    assert found["taken"]["a"]["groups"] == "patient"


def test_rows_are_matched_by_id(folder):
    files = (folder / "a.parquet", f"mixed={folder / 'shuffled.csv'}")
    ordered = ("--ordered", "--rule", "rps", "--json")
    found = json.loads(verax("compare", *files, *ORDER, "--id", "scan", *ordered).stdout)
    expected = vx.compare(Y, {"a": P, "mixed": Q}, rule="rps")
    line = found["comparison"]["differences"]["rps"][0]
    assert (line["a"], line["b"]) == ("a", "mixed")
    assert line["p_value"] == pytest.approx(expected.difference("a", "mixed").p_value, rel=1e-6)
    assert found["matched"] == "by scan"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (["a.parquet"], "Compare takes two models or more"),
        (["a.parquet", "short.parquet"], "has 400 rows and"),
        (["a.parquet", "short.parquet", "--id", "scan"], "lacks 1 row of"),
        (["short.parquet", "a.parquet", "--id", "scan"], "lacks 1 row of"),
        (["a.parquet", "twice.parquet", "--id", "scan"], "'scan 0' occurs 2 times"),
        (["a.parquet", "shuffled.csv"], "Pass --id COLUMN if the rows are in different orders"),
        (["a.parquet", "other.parquet"], "differ in 1 of 400 rows: row 7"),
        (["a.parquet", "other.parquet", "--id", "scan"], ": scan 'scan 7' is"),
        (["a.parquet", "b.parquet", "--method", "guess"], "'moments', 'bootstrap', 'permutation'"),
        (["x=a.parquet", "x=b.parquet"], "Compare takes two models or more"),
    ],
)
def test_what_does_not_match_is_refused(folder, files, complaint, monkeypatch):
    monkeypatch.chdir(folder)
    result = verax("compare", *files, *ORDER, ok=False)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.long
def test_reports(folder):
    both = (folder / "a.parquet", folder / "b.parquet", *ORDER, "--ordered", "--id", "scan")
    text = verax("compare", *both, "--by", "site", "--html", folder / "both.html").stdout
    assert f"The report is in {folder / 'both.html'}." in text
    page = (folder / "both.html").read_text()
    assert "a.parquet, b.parquet" in page
    assert "scan " in page
    options = ("--ordered", "--id", "scan", "--groups", "patient", "--html", folder / "one.html", "--json")
    found = json.loads(verax("evaluate", folder / "a.parquet", *ORDER, *options).stdout)
    assert found["html"] == str(folder / "one.html")
    assert f"{vx.rps(Y, P):.4f}" in (folder / "one.html").read_text()


def test_subgroups_of_a_comparison(folder):
    both = ("compare", folder / "a.parquet", folder / "b.parquet", *ORDER, "--by", "site")
    found = json.loads(verax(*both, "--json").stdout)["subgroups"]["site"]
    expected = vx.subgroups(Y, {"a": P, "b": Q}, by=np.arange(400) % 2)
    assert [line["p_value"] for line in found["subgroups"]] == [line.p_value for line in expected.lines]
    assert found["comparisons"].keys() == {"0", "1"}
    text = verax(*both).stdout
    assert "verax subgroups by site" in text
    # Rows in memory have no name for what the subgroups are of.
    assert expected.verdict in text.replace("site = ", "").replace(" of site", "")


def test_subgroups_of_rows_in_order_of_time(folder):
    both = ("compare", folder / "a.parquet", folder / "b.parquet", *ORDER, "--by", "site", "--time-ordered")
    page = folder / "series.html"
    found = json.loads(verax(*both, "--rule", "brier", "--html", page, "--json").stdout)
    models = {"a": P, "b": Q}
    for label, comparison in found["subgroups"]["site"]["comparisons"].items():
        rows = np.arange(400) % 2 == int(label)
        alone = vx.compare(
            Y[rows], {name: p[rows] for name, p in models.items()}, rule="brier", time_ordered=True
        )
        assert comparison["method"] == "Diebold-Mariano test, rows in order of time"
        p_value = comparison["differences"]["brier"][0]["p_value"]
        assert p_value == pytest.approx(alone.differences["brier"][0].p_value)
    assert "in order of time" in verax(*both).stdout
    assert "Diebold-Mariano test, rows in order of time" in page.read_text()


def test_the_terminal_and_the_report_say_the_same_of_subgroups(folder):
    one = ("evaluate", folder / "a.parquet", *ORDER, "--by", "site", "--html", folder / "same.html", "--json")
    for options in ((), ("--groups", "site")):
        found = json.loads(verax(*one, *options).stdout)["subgroups"]["site"]
        assert found["within_groups"] == bool(options)
        page = (folder / "same.html").read_text()
        assert escape(found["verdict"], quote=False) in page
        assert ("Each subgroup is one group" in page) == bool(options)


def test_worst_is_the_library(folder):
    arguments = ("worst", folder / "a.parquet", *ORDER, "--ordered", "--id", "scan", "-n", 7)
    found = json.loads(verax(*arguments, "--json").stdout)
    ids = [f"scan {i}" for i in range(400)]
    expected = vx.worst(Y, P, rule="rps", n=7, ids=ids, classes=NAMES).to_dict(stored=False)
    assert found["cases"] == json.loads(json.dumps(expected["cases"]))
    assert "of the probability was" in verax(*arguments).stdout


def test_retain_is_the_library(folder):
    options = ("--ordered", "--metric", "qwk", "--metric", "ec", "--rule", "rps", "--rule", "brier")
    options += (
        "--bootstrap",
        30,
        "--groups",
        "patient",
        "--removed",
        "0,5,10",
        "--plot",
        folder / "curve.png",
    )
    found = json.loads(verax("retain", folder / "a.parquet", *ORDER, *options, "--json").stdout)
    expected = vx.retention(
        Y,
        P,
        rule=["rps", "brier"],
        metric=["qwk", "ec"],
        removed=[0, 0.05, 0.1],
        bootstrap=30,
        groups=PATIENT,
    )
    assert found["curves"] == json.loads(json.dumps(expected.to_dict(stored=False)["curves"]))
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    text = verax("retain", folder / "a.parquet", *ORDER, "--doubt", "entropy").stdout
    value = vx.selective(Y, P, by="entropy").area
    assert f"{value:.4f}" in text
    assert "uses the outcome" not in text


def test_ties_of_retain(folder):
    coarse = np.round(P, 1)
    coarse /= coarse.sum(axis=1, keepdims=True)
    papq.write_table(table(coarse), folder / "coarse.parquet")
    for ties in ("share", "order"):
        options = ("--doubt", "max_probability", "--ties", ties, "--json")
        found = json.loads(verax("retain", folder / "coarse.parquet", *ORDER, *options).stdout)
        (curve,) = found["curves"] if isinstance(found["curves"], list) else found["curves"].values()
        expected = vx.selective(Y, coarse, by="max_probability", ties=ties)
        assert curve["area"] == expected.area


def test_what_retain_refuses(folder):
    for options, complaint in (
        (("--doubt", "entropy", "--rule", "rps"), "not both"),
        (("--removed", "0,x"), "must be percentages"),
        (("--area", "sum"), "steps"),
        (("--ties", "random"), "share"),
        (("--metric", "qwq"), "qwk"),
    ):
        result = verax("retain", folder / "a.parquet", *ORDER, *options, ok=False)
        assert result.returncode == 2
        assert complaint in result.stderr
        assert result.stderr.count("\n") == 1


# ---- rows that not all files have, invalid rows, several models in one file ------------------------


def scored(path, ids, shift=0.0, broken=()):
    """A file of two classes whose rows depend on their ids; some lack a probability."""
    lines = ["id,label,p_a,p_b"]
    for i in ids:
        p = round((0.37 * i + shift) % 1, 3)
        lines.append(f"i{i},{'ab'[i % 2]},{1 - p:.3f},{'' if i in broken else p}")
    path.write_text("\n".join(lines) + "\n")


def brier_of(ids, shift=0.0):
    p = [round((0.37 * i + shift) % 1, 3) for i in ids]
    return vx.brier([i % 2 for i in ids], p)


def means(result):
    return {
        model["name"]: model["mean"] for model in json.loads(result.stdout)["comparison"]["models"]["brier"]
    }


def test_rows_that_all_files_have(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored(tmp_path / "a.csv", range(40))
    scored(tmp_path / "b.csv", [3, *range(44, 9, -1)], 0.2)
    command = ["compare", "a.csv", "b.csv", "--id", "id", "--rule", "brier"]
    refused = verax(*command, ok=False)
    assert "b.csv lacks 9 rows of a.csv: id 'i0', 'i1', 'i2', ... Pass --shared-ids" in refused.stderr
    found = verax(*command, "--shared-ids", "--json")
    ids = [3, *range(10, 40)]
    assert means(found) == pytest.approx({"a": brier_of(ids), "b": brier_of(ids, 0.2)})
    assert json.loads(found.stdout)["left_out"] == {
        "a": {"count": 9, "ids": ["i0", "i1", "i2"]},
        "b": {"count": 5, "ids": ["i44", "i43", "i42"]},
    }
    assert "a: 9 rows ('i0', 'i1', 'i2' and 6 more) left out" in verax(*command, "--shared-ids").stdout
    refused = verax("compare", "a.csv", "b.csv", "--shared-ids", ok=False)
    assert "--shared-ids needs ids" in refused.stderr


@pytest.mark.parametrize("match", [[], ["--id", "id"]])
def test_rows_that_are_invalid_in_any_file_are_left_out_of_all(match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored(tmp_path / "a.csv", range(40), broken=(5,))
    scored(tmp_path / "b.csv", range(40), 0.2, broken=(7, 9))
    command = ["compare", "a.csv", "b.csv", "--rule", "brier", "--skip-invalid", "--json", *match]
    found = verax(*command, "--html", "report.html")
    ids = [i for i in range(40) if i not in (5, 7, 9)]
    assert means(found) == pytest.approx({"a": brier_of(ids), "b": brier_of(ids, 0.2)})
    skipped = json.loads(found.stdout)["comparison"]["skipped"]
    assert (skipped["n_given"], skipped["count"], skipped["rows"]) == (40, 3, [5, 7, 9])
    assert "3 of 40 rows were left out (rows 5, 7 and 9)" in (tmp_path / "report.html").read_text()


def test_invalid_rows_that_a_file_lacks_are_left_out_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored(tmp_path / "a.csv", range(30), broken=(12,))
    scored(tmp_path / "b.csv", range(10, 40), 0.2, broken=(13, 35))
    found = verax(
        *(
            "compare",
            "a.csv",
            "b.csv",
            "--rule",
            "brier",
            "--id",
            "id",
            "--shared-ids",
            "--skip-invalid",
            "--json",
        )
    )
    ids = [i for i in range(10, 30) if i not in (12, 13)]
    assert means(found) == pytest.approx({"a": brier_of(ids), "b": brier_of(ids, 0.2)})
    assert json.loads(found.stdout)["comparison"]["skipped"]["rows"] == [12, 13]
    assert json.loads(found.stdout)["left_out"]["a"]["count"] == 10


@pytest.mark.parametrize("command", ["evaluate", "worst", "retain", "decompose"])
def test_every_command_leaves_out_invalid_rows_on_request(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored(tmp_path / "a.csv", range(40), broken=(5, 8))
    refused = verax(command, "a.csv", ok=False)
    assert "row 5 has none (2 rows so far)" in refused.stderr
    assert "--skip-invalid to leave such rows out." in refused.stderr
    said = "2 of 40 rows were left out (rows 5 and 8): 2 with probabilities that are missing or not finite."
    assert said in verax(command, "a.csv", "--skip-invalid").stdout
    assert '"skipped"' in verax(command, "a.csv", "--skip-invalid", "--json").stdout


def test_worst_rows_keep_their_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored(tmp_path / "a.csv", range(40), broken=(5, 8))
    found = json.loads(verax("worst", "a.csv", "--skip-invalid", "--json").stdout)
    p = {i: round((0.37 * i) % 1, 3) for i in range(40) if i not in (5, 8)}
    losses = {i: 2 * ((i % 2) - q) ** 2 for i, q in p.items()}
    assert [case["row"] for case in found["cases"]] == sorted(losses, key=lambda i: -losses[i])[:10]


def test_several_models_in_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["result,Model Home,Model Draw,Model Away,Book Home,Book Draw,Book Away"]
    lines += ["Home,0.5,0.3,0.2,0.4,0.3,0.3", "Away,0.2,0.2,0.6,0.3,0.3,0.4", "Home,0.6,0.2,0.2,0.5,0.2,0.3"]
    (tmp_path / "odds.csv").write_text("\n".join(lines) + "\n")
    command = ["compare", "odds.csv", "--target", "result", "--rule", "brier"]
    found = verax(
        *command, "--probs", "model=Model*", "--probs", "book=Book Home,Book Draw,Book Away", "--json"
    )
    y = [0, 2, 0]
    model = vx.brier(y, [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.6, 0.2, 0.2]])
    book = vx.brier(y, [[0.4, 0.3, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3]])
    assert means(found) == pytest.approx({"model": model, "book": book})
    for options, complaint in (
        ([], "For two models in one file: --probs a='A*' --probs b='B*'."),
        (["--probs", "a=Model*", "--probs", "a=Book*"], "'a' is there twice"),
        (["--probs", "a=Model*", "--probs", "b=Bank*"], "There is no column 'Bank*'"),
        (["odds.csv", "--probs", "a=Model*", "--probs", "b=Book*"], "in one file only"),
    ):
        assert complaint in verax(*command, *options, ok=False).stderr


@pytest.fixture
def two_models(tmp_path):
    """Two models of a binary outcome, in a file each, and the same in memory."""
    rng = np.random.default_rng(11)
    signal = rng.normal(size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * signal))).astype(int)
    p = {"good": 1 / (1 + np.exp(-2 * signal)), "poor": 1 / (1 + np.exp(-signal - rng.normal(0, 2, 400)))}
    p = {name: own.round(4) for name, own in p.items()}
    for name, own in p.items():
        pacsv.write_csv(pa.table({"id": np.arange(400), "y": y, "p": own}), tmp_path / f"{name}.csv")
    return y, p, [f"{name}={tmp_path / name}.csv" for name in p]


@pytest.mark.parametrize("rule", ["auc", "roc_auc", "average_precision"])
def test_models_are_compared_by_their_ranking(two_models, rule):
    y, p, files = two_models
    wanted = (vx.average_precision if rule == "average_precision" else vx.roc_auc)(y, p)
    found = json.loads(commandline.verax("compare", *files, "--id", "id", "--rule", rule, "--json").stdout)
    gap, own = wanted.difference("good", "poor"), found["ranking"]["differences"][0]
    assert (own["a"], own["b"]) == ("good", "poor")
    assert [own["difference"], *own["interval"], own["p_value"]] == pytest.approx(
        [gap.difference, *gap.interval, gap.p_value]
    )
    assert found["verdict"] == wanted.verdict
    assert wanted.verdict.startswith("good is significantly better than poor: ")
    assert wanted.verdict.claims == ("best_model",)
    text = commandline.verax("compare", *files, "--rule", rule, "--require", "difference.low>0.02")
    assert (text.returncode, "met     difference.low>0.02" in text.stdout) == (0, True)
    assert commandline.verax("compare", *files, "--rule", rule, "--require", "difference>0.9").returncode == 1


def test_models_are_compared_by_rates_at_a_threshold(two_models):
    y, p, files = two_models
    wanted = vx.operating_points(y, p, threshold=0.3)
    ran = commandline.verax("compare", *files, "--rule", "recall", "--threshold", "0.3", "--json")
    found = json.loads(ran.stdout)
    gap = wanted.difference("good", "poor", "sensitivity")
    own = next(each for each in found["rates"]["differences"] if each["rate"] == "sensitivity")
    assert [own["difference"], *own["interval"]] == pytest.approx([gap.difference, *gap.interval])
    # By hand: the shares of events that each model acts on.
    by_hand = np.mean(p["good"][y == 1] >= 0.3) - np.mean(p["poor"][y == 1] >= 0.3)
    assert own["difference"] == pytest.approx(by_hand)
    assert found["verdict"] == wanted.verdict_by("sensitivity")
    assert found["rule"] == "sensitivity"
    chosen = commandline.verax(
        "compare", *files, "--rule", "specificity", "--threshold", "sensitivity>=0.8"
    ).stdout
    assert "specificity" in chosen
    assert "youden" not in chosen.partition("Paired differences")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "auc", "--rule", "brier"], "--rule must be auc alone"),
        (["--rule", "auc", "--threshold", "0.3"], "--threshold is for rates of decisions, not for auc"),
        (["--threshold", "0.3"], "--threshold is for rates of decisions"),
        (["--rule", "auc", "--margin", "0.1"], "--margin cannot be used with --rule auc"),
        (["--rule", "lr_positive"], "There is no rule called 'lr_positive'"),
        (["--rule", "accuracy"], "Did you mean 'zero_one'?"),
    ],
)
def test_refusals_of_comparisons_by_other_scores(two_models, options, message):
    refused = commandline.verax("compare", *two_models[2], *options)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_claims_about_rates_of_several_events_are_corrected_for_all_of_them():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 300)
    p = {"a": rng.dirichlet(np.ones(3), 300), "b": rng.dirichlet(np.ones(3), 300)}
    points = vx.operating_points(y, p, threshold=0.3)
    for finding, event in zip(points.verdict_by("sensitivity").findings, "012", strict=True):
        alone = points.difference("a", "b", "sensitivity", event).p_adjusted
        assert finding.p_value == pytest.approx(min(1, 3 * alone))
