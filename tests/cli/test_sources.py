"""Every command takes what `evaluate` takes: each kind of predictions, way to name files, and option."""

import csv
import json
import re

import numpy as np
import pytest

import verax as vx
from commandline import verax

CLASSES = ["a", "b", "c"]
COLUMNS = ["case", "patient", "visit", "label", "site", "doc", "day", "w"]
N = 40

# What is asked of each command, so that it is quick.
COMMANDS = {
    "evaluate": ["--bootstrap", "0", "--rule", "brier"],
    "compare": [],
    "decompose": ["--bootstrap", "0"],
    "worst": ["-n", "3"],
    "retain": ["--removed", "0,10"],
    "recalibrate": ["--method", "temperature", "--folds", "2"],
}
# The kinds of predictions: full distributions, top lists, and lists that name every class.
KINDS = {"dense": ".csv", "lists": ".jsonl", "complete": ".jsonl"}
# What a model's files are called: alone, or in two parts.
WAYS = {
    "pattern": ["{}/*{}"],
    "folder": ["{}"],
    "several": ["{}/1{}", "{}/2{}"],
    "named": ["named={}{}"],
    "named pattern": ["named={}/*{}"],
    "named several": ["named={}/1{}", "named={}/2{}"],
}
# Which commands have an option, where that is not all of them.
OPTIONS = {
    ("--by", "site", "--least", "5"): ("evaluate", "compare"),
    ("--groups", "doc"): ("evaluate", "compare", "decompose", "retain", "recalibrate"),
    ("--groups", "doc,day"): ("evaluate", "compare", "recalibrate"),
    ("--id", "case"): ("evaluate", "compare", "worst", "retain"),
    ("--id", "patient,visit"): ("evaluate", "compare", "worst", "retain"),
    ("--normalize",): tuple(COMMANDS),
    ("--skip-invalid",): tuple(COMMANDS),
    ("--weights", "w"): ("evaluate", "compare", "decompose", "retain", "recalibrate"),
    ("--classes", "a,b,c"): tuple(COMMANDS),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The predictions of two models for the same rows: dense, lists, complete, each whole and in parts."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], N)
    y = [CLASSES[rng.choice(3, p=row)] for row in p]
    for model in ("m", "n"):
        forecasts = p if model == "m" else 0.7 * p + 0.3 * rng.dirichlet([1, 1, 1], N)
        rows = [
            {
                "case": f"r{i}",
                "patient": f"p{i // 2}",
                "visit": i % 2,
                "label": y[i],
                "site": "ns"[i % 2],
                "doc": f"d{i // 4}",
                "day": f"t{i % 5}",
                "w": 1.0 + i % 3,
                "p": forecasts[i],
            }
            for i in range(N)
        ]
        for kind, ending in KINDS.items():
            parts = folder / f"{model}-{kind}"
            parts.mkdir()
            write(folder / f"{model}-{kind}{ending}", kind, rows)
            write(parts / f"1{ending}", kind, rows[:15])
            write(parts / f"2{ending}", kind, rows[15:])
    return folder


def write(path, kind, rows):
    with path.open("w", newline="") as out:
        if kind == "dense":
            writer = csv.writer(out)
            writer.writerow([*COLUMNS, *(f"p_{name}" for name in CLASSES)])
            writer.writerows([[row[name] for name in COLUMNS] + row["p"].tolist() for row in rows])
            return
        for row in rows:
            best = np.argsort(-row["p"])[: 3 if kind == "complete" else 2]
            listed = [{"label": CLASSES[j], "score": row["p"][j]} for j in best]
            out.write(json.dumps({**{name: row[name] for name in COLUMNS}, "predictions": listed}) + "\n")


def asked(command, files, way, kind, *options):
    """A command on files that are called in some way."""
    models = ("m", "n") if command == "compare" else ("m",)
    texts = [
        text.format(files / f"{model}-{kind}", KINDS[kind]).replace("named", model)
        for model in models
        for text in way
    ]
    if command == "compare" and len(way) > 1 and "=" not in way[0]:
        pytest.skip("each file is a model")
    needed = ["--classes", "a,b,c"] if kind != "dense" and "--classes" not in options else []
    return verax(command, *texts, *COMMANDS[command], *needed, *options, "--json")


def found(ran):
    """What a command found, without what its files are called."""
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    verdict = result.pop("verdict", None) or ""
    # The next step names the files.
    told = ("file", "files", "taken", "next_step")
    text = re.sub(
        r'"next_step": \{[^}]*\}', "", json.dumps({k: v for k, v in result.items() if k not in told})
    )
    # A model is called like its file, or as it was named.
    for kind in KINDS:
        for model in "mn":
            text = text.replace(f"{model}-{kind}", model)
            verdict = verdict.replace(f"{model}-{kind}", model)
    return text, verdict


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_files_in_parts_are_those_of_the_whole_file(files, command, kind):
    options = [option for option in (("--weights", "w"), ("--groups", "doc")) if command in OPTIONS[option]]
    options = [text for option in options for text in option]
    whole = found(asked(command, files, ["{}{}"], kind, *options))
    # All commands for one model open files by the same code.
    for name in WAYS if command in ("evaluate", "compare") else ("folder", "named several"):
        if command == "compare" and name == "several":
            continue
        assert found(asked(command, files, WAYS[name], kind, *options)) == whole, name


# Lists that name every class are read as distributions, to which the options are applied.
@pytest.mark.parametrize("kind", ["dense", "lists", pytest.param("complete", marks=pytest.mark.long)])
@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_an_option_is_taken_by_all_its_commands(files, option, kind):
    for command in OPTIONS[option]:
        found(asked(command, files, ["{}/*{}"], kind, *option))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_known_by_two_columns(files, kind):
    ran = json.loads(asked("worst", files, ["{}{}"], kind, "--id", "patient,visit").stdout)
    case = ran["cases"][0]
    assert case["id"] == f"p{case['row'] // 2}, {case['row'] % 2}"
    ran = json.loads(asked("compare", files, ["{}{}"], kind, "--id", "patient,visit").stdout)
    assert ran["matched"] == "by patient, visit"


@pytest.mark.parametrize("kind", KINDS)
def test_two_kinds_of_groups_are_counted_or_refused_in_one_way(files, kind):
    ran = json.loads(asked("evaluate", files, ["{}{}"], kind, "--groups", "doc,day").stdout)
    assert ran["card"]["n_groups"] == [10, 5]
    for command in ("decompose", "retain"):
        ran = asked(command, files, ["{}{}"], kind, "--groups", "doc,day")
        assert ran.returncode == 2
        assert "the groups must be of one kind for" in ran.stderr


def test_recalibrated_files_of_a_pattern_are_those_of_the_whole_file(files, tmp_path):
    for name, applied in (("whole", "n-dense.csv"), ("parts", "n-dense/*.csv")):
        ran = asked(
            *("recalibrate", files, ["{}{}"], "dense"),
            *("--apply", files / applied, "--out", tmp_path / f"{name}.csv"),
        )
        assert json.loads(ran.stdout)["applied"]["n_rows"] == N
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_a_command_for_one_model_names_the_one_for_several(files):
    ran = verax("evaluate", f"a={files}/m-dense.csv", f"b={files}/n-dense.csv")
    assert ran.returncode == 2
    assert "must be files of one model" in ran.stderr
    assert "`verax compare` takes several models" in ran.stderr


def test_errors_about_lists_name_the_file_of_the_row(files, tmp_path):
    for i in (1, 2):
        (tmp_path / f"{i}.jsonl").write_text((files / "m-lists" / f"{i}.jsonl").read_text())
    with (tmp_path / "2.jsonl").open("a") as out:
        out.write('{"id": "r99", "label": "a", "predictions": [{"label": "a", "score": 1.7}]}\n')
    ran = verax("worst", tmp_path / "*.jsonl", "--classes", "a,b,c")
    assert ran.returncode == 2
    assert "2.jsonl" in ran.stderr
    assert "line 26" in ran.stderr


@pytest.mark.parametrize("command", ["evaluate", "decompose", "worst", "retain"])
def test_files_of_lists_that_are_too_large_are_streamed(files, command, change):
    held = json.loads(asked(command, files, ["{}/*{}"], "lists").stdout)
    change(held_bytes_up_to=100)
    streamed = json.loads(asked(command, files, ["{}/*{}"], "lists").stdout)
    key = {"evaluate": "card", "decompose": "decomposition", "worst": "cases", "retain": "curves"}[command]
    assert [*numbers(streamed[key])] == pytest.approx([*numbers(held[key])], abs=0.02)


def numbers(value):
    """The means and losses in a result."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("mean", "loss", "score", "values"):
                yield from inner if isinstance(inner, list) else [inner]
            else:
                yield from numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner)


def test_text_files_of_a_pattern_are_streamed_by_their_size_together(files, change):

    pattern = f"{files}/m-dense/*.csv"
    n_bytes = sum(path.stat().st_size for path in (files / "m-dense").glob("*.csv"))
    change(held_bytes_up_to=n_bytes)
    assert vx.scan(pattern).fits
    change(held_bytes_up_to=n_bytes - 1)
    assert not vx.scan(pattern).fits
