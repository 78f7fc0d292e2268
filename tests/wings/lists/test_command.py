"""`verax worst`, `retain` and `compare` on files of lists: recognised, with the numbers of the library."""

import csv
import json
import math
import re

import numpy as np
import pytest

import verax as vx
from commandline import verax
from scanned import alike

NAMES = list("abcdef")


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Log-probabilities of six tokens in files of lists of three lengths, and all of them in a table."""
    folder = tmp_path_factory.mktemp("lists")
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(6, 0.5), 60)
    y = [NAMES[rng.choice(6, p=row)] for row in p]
    lists = {}
    for k in (1, 3):
        rows = [[(NAMES[i], math.log(row[i])) for i in np.argsort(-row)[:k]] for row in p]
        with open(folder / f"top{k}.jsonl", "w") as file:
            for i, row in enumerate(rows):
                top = [{"token": token, "logprob": value} for token, value in row]
                content = [{"token": row[0][0], "logprob": row[0][1], "top_logprobs": top}]
                record = {"id": f"q{i}", "outcome": y[i], "choices": [{"logprobs": {"content": content}}]}
                file.write(json.dumps(record) + "\n")
        shown = [{token: math.exp(value) for token, value in row} for row in rows]
        lists[k] = vx.TopLists.from_dicts(shown, n_classes=6, tolerance=1e-4)
    with open(folder / "full.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "y", *NAMES])
        # In another order: rows are matched by id.
        table.writerows([f"q{i}", y[i], *p[i].tolist()] for i in reversed(range(60)))
    return folder, y, p, lists


def run(*arguments):
    result = verax(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_worst_shows_lists(problem):
    folder, y, _, lists = problem
    found = run("worst", folder / "top3.jsonl", "--classes", 6, "-n", 4, "--id", "id")
    wanted = vx.worst(y, lists[3], rule="brier", n=4)
    assert [case["row"] for case in found["cases"]] == [case.row for case in wanted]
    assert [case["id"] for case in found["cases"]] == [f"q{case.row}" for case in wanted]
    assert [case["place"] for case in found["cases"]] == [case.place for case in wanted]
    assert found["lists"]["n_lists"] == 60
    text = verax("worst", folder / "top3.jsonl", "--classes", 6, "-n", 1).stdout
    assert f"\n{wanted[0].row} " in text
    assert "Rows are called by their numbers in the file" in text


def test_retain_has_metrics_of_lists(problem):
    folder, y, _, lists = problem
    options = ("--classes", 6, "--removed", "0,10,20", "--metric", "coverage", "--metric", "top_2_accuracy")
    found = run("retain", folder / "top3.jsonl", "--doubt", "entropy", *options)
    wanted = vx.selective(
        y, lists[3], by=["entropy"], metric=["coverage", "top_2_accuracy"], removed=[0, 0.1, 0.2]
    )
    for curve, other in zip(found["curves"], wanted.values(), strict=True):
        assert curve["values"] == pytest.approx(other.values.tolist(), rel=1e-12)
        assert curve["lists"]["n_invalid"] == 0
    refused = verax("retain", folder / "top3.jsonl", "--classes", 6, "--metric", "qwk")
    assert refused.returncode == 2
    assert "'qwk' needs a decision or the order of the classes" in refused.stderr


def test_compare_matches_lists_with_lists_and_with_distributions(problem):
    folder, y, p, lists = problem
    files = {
        name: f"{name}={folder / file}"
        for name, file in (("three", "top3.jsonl"), ("one", "top1.jsonl"), ("full", "full.csv"))
    }
    found = run("compare", *files.values(), "--classes", ",".join(NAMES), "--id", "id", "--rule", "brier")
    wanted = vx.compare(
        y, {"three": lists[3], "one": lists[1], "full": p}, rule="brier", classes=NAMES
    ).to_dict(stored=False)
    means = {m["name"]: m["mean"] for m in found["comparison"]["models"]["brier"]}
    assert means == pytest.approx({m["name"]: m["mean"] for m in wanted["models"]["brier"]}, rel=1e-9)
    assert found["matched"] == "by id"
    assert found["comparison"]["lists"]["one"]["n_lists"] == 60
    by_order = verax("compare", files["three"], files["full"], "--classes", ",".join(NAMES))
    assert by_order.returncode == 2
    assert "The files must have the same outcomes" in by_order.stderr
    short = folder / "short.jsonl"
    short.write_text("".join((folder / "top1.jsonl").read_text().splitlines(keepends=True)[:40]))
    lacking = verax("compare", files["three"], short, "--classes", 6, "--id", "id")
    assert "short.jsonl lacks 20 rows of" in lacking.stderr
    shared = run("compare", files["three"], short, "--classes", 6, "--id", "id", "--shared-ids")
    assert (shared["comparison"]["n_rows"], shared["left_out"]["three"]["count"]) == (40, 20)
    refused = verax("compare", files["three"], files["one"], "--classes", 6, "--by", "site")
    assert "--by must name a field of every record" in refused.stderr
    page = folder / "compared.html"
    run("compare", *files.values(), "--classes", ",".join(NAMES), "--id", "id", "--html", page)
    # The worst rows are called by their ids.
    assert re.search(r">q\d+<", page.read_text())
    assert "three" in page.read_text()


def test_evaluate_writes_the_report_on_lists(problem):
    folder, *_ = problem
    page = folder / "lists.html"
    found = run("evaluate", folder / "top3.jsonl", "--classes", 6, "--html", page)
    assert found["html"] == str(page)
    assert "<html" in page.read_text()


def test_subgroups_of_lists_and_too_few_classes(problem, tmp_path):
    folder, y, _, lists = problem
    rows = [json.loads(line) for line in (folder / "top3.jsonl").read_text().splitlines()]
    sites = ["north" if i % 3 else "south" for i in range(len(rows))]
    marked = tmp_path / "marked.jsonl"
    lines = [json.dumps({**row, "site": site}) for row, site in zip(rows, sites, strict=True)]
    marked.write_text("\n".join(lines))
    page = tmp_path / "marked.html"
    options = ("--classes", 6, "--by", "site", "--bootstrap", 0, "--html", page)
    found = run("evaluate", marked, *options)["subgroups"]["site"]
    text = page.read_text()
    assert "<h3>By <bdi>site</bdi></h3>" in text
    assert all(f"<bdi>{site}</bdi></th><td" in text for site in ("north", "south"))
    wanted = vx.subgroups(y, {"marked": lists[3]}, by=np.array(sites))
    wanted.by = "site"
    expected = json.loads(json.dumps(wanted.to_dict(stored=False)))
    # Nobody named the model whose lists these are.
    expected["lists"] = expected["lists"].pop("marked")
    alike(found, expected)
    refused = verax("evaluate", folder / "top3.jsonl", "--classes", 2)
    assert refused.returncode == 2
    said = "--classes must be at least 6, the number of classes that the lists name; it is 2, and"
    assert said in refused.stderr


def test_a_floor_of_the_log_score_is_the_same_everywhere(problem, tmp_path):
    folder, y, _, lists = problem
    floor, file = "log_score(clip=0.001)", folder / "top1.jsonl"
    options = ("--classes", 6, "--rule", floor, "--html", tmp_path / "report.html")
    wanted = vx.padded(vx.parse(floor))(y, lists[1])
    assert math.isfinite(wanted)
    (score,) = run("evaluate", file, *options)["card"]["scores"].values()
    assert score["mean"] == pytest.approx(wanted, rel=1e-12)
    other = run("compare", f"a={file}", f"b={folder / 'top3.jsonl'}", "--id", "id", *options)
    means = {model["name"]: model["mean"] for model in other["comparison"]["models"][floor]}
    assert means["a"] == pytest.approx(wanted, rel=1e-12)


def test_toplist_has_subgroups_and_a_report(problem, tmp_path):
    folder, _, _, _ = problem
    records = [json.loads(line) for line in (folder / "top3.jsonl").read_text().splitlines()]
    path = tmp_path / "lists.jsonl"
    sites = "ab"
    path.write_text("".join(json.dumps({**r, "site": sites[i % 2]}) + "\n" for i, r in enumerate(records)))
    page = tmp_path / "report.html"
    found = run("toplist", path, "--classes", 6, "--by", "site", "--html", page, "-k", 2)
    assert [line["label"] for line in found["subgroups"]["site"]["subgroups"]] == ["a", "b"]
    assert found["metrics"]["length"]["mean"] == 2
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
