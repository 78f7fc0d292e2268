"""Evaluation logs on the command line, without options."""

import json

import pytest

from commandline import verax
from evallogs import chosen, generative, inspect_header, inspect_sample, write_eval, write_lines
from listrecords import chat
from verax.files.logs import read_log


def samples(grades, epochs=2):
    return [
        inspect_sample(i, value if epoch == 1 else "C", epoch=epoch)
        for epoch in range(1, epochs + 1)
        for i, value in enumerate(grades)
    ]


def compared(*arguments):
    ran = verax("compare", *arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_two_logs_are_compared_by_question(tmp_path):
    one = write_eval(tmp_path / "a.eval", samples("CCICCICC"), model="openai/gpt-4o")
    two = write_eval(tmp_path / "b.eval", list(reversed(samples("CIICIICI"))), model="openai/o3")
    found = compared(one, two)
    assert list(found["files"]) == ["openai/gpt-4o", "openai/o3"]
    (pair,) = found["comparison"]["differences"]["grade"]
    # 3 of 16 answers differ; the two epochs of a question have one mean.
    assert (pair["difference"], pair["freedom"]) == (pytest.approx(3 / 16), 7)
    said = verax("compare", f"new={one}", f"old={two}").stdout
    assert "new: grades: choice of an Inspect log; model: openai/gpt-4o; task: mmlu" in said
    assert "8 questions that were repeated" in said


def test_the_worst_answers_show_their_questions(tmp_path):
    log = write_eval(tmp_path / "a.eval", samples("CCICCIC", epochs=1))
    said = verax("worst", log, "-n", "1").stdout
    assert "1 of the 2 answers below the best grade" in said
    assert "Question 2?" in said
    found = json.loads(verax("worst", log, "--json").stdout)
    assert found["answers"][1]["about"]["question"] == "Question 5?"
    records = [chosen(i, [-1.0, -2.0, -3.0, -0.1 * i], i % 4) for i in range(12)]
    for i, record in enumerate(records):
        record["doc"]["question"] = f"Which is right in case {i}?"
    path = write_lines(tmp_path / "samples.jsonl", records)
    found = json.loads(verax("worst", path, "-n", "2", "--id", "doc_id", "--json").stdout)
    rows = [case["row"] for case in found["cases"]]
    assert found["questions"] == {str(row): f"Which is right in case {row}?" for row in rows}
    assert f"{rows[0]}: Which is right in case {rows[0]}?" in verax("worst", path, "--id", "doc_id").stdout


def test_columns_of_metadata(tmp_path):
    one = [inspect_sample(i, "CI"[i % 3 == 0]) for i in range(4, 20)]
    two = [inspect_sample(i, "CI"[i % 2]) for i in range(4, 20)]
    paths = [write_eval(tmp_path / "a.eval", one), write_eval(tmp_path / "b.eval", two)]
    ran = verax("evals", "compare", *paths, "--by", "subject")
    assert (ran.returncode, "--task compares models within each value" in ran.stderr) == (2, True)
    said = verax("compare", *paths, "--task", "subject").stdout
    assert "grade by task" in said
    assert "law" in said
    assert "math" in said


def test_folders_of_tasks_are_compared(tmp_path):
    for name, right in (("a", 1.0), ("b", 0.0)):
        for task in ("gsm8k", "math"):
            path = tmp_path / name / f"samples_{task}_2025-01-31T10-00-00.jsonl"
            write_lines(path, [generative(i, "x", right if i % 3 else 1.0) for i in range(12)])
    said = verax("compare", f"m1={tmp_path / 'a'}", f"m2={tmp_path / 'b'}").stdout
    assert "2 tasks: gsm8k and math" in said
    assert "gsm8k    12  m1" in said


def test_choices_are_distributions_unless_grades_are_asked_for(tmp_path):
    for name, sign in (("a", 1.0), ("b", -1.0)):
        records = [chosen(i, [-1.0 - sign * (i % 2), -2.0, -3.0, -4.0], i % 4) for i in range(20)]
        write_lines(tmp_path / f"{name}.jsonl", records)
    paths = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert "brier" in verax("compare", *paths).stdout
    assert "mean grade" in verax("compare", *paths, "--grade", "acc").stdout


def test_the_length_of_choices_is_part_of_the_metric(tmp_path):
    records = [chosen(i, [-1.0, -2.0, -3.0, -0.1 * i], i % 4) for i in range(12)]
    path = write_lines(tmp_path / "samples.jsonl", records)
    ran = verax("evaluate", path, "--grade", "acc", "--per-length")
    assert (ran.returncode, "Pass --grade acc_norm" in ran.stderr) == (2, True)
    assert verax("evaluate", path, "--grade", "acc_norm", "--per-length").returncode == 0
    # Answer and right answer are both in words.
    worst = json.loads(verax("worst", path, "--grade", "acc", "--json").stdout)["answers"][0]["about"]
    assert {worst["answer"], worst["gold"]} <= set("ABCD")


def test_metrics_of_a_corpus_are_no_grades(tmp_path):
    records = [chosen(i, [-1.0, -2.0], 0, metrics=["f1"], f1=[0, 0]) for i in range(12)]
    path = write_lines(tmp_path / "samples.jsonl", records)
    ran = verax("evaluate", path, "--grade", "f1")
    assert (ran.returncode, "of all answers together: f1" in ran.stderr) == (2, True)


def test_an_archive_with_log_probabilities_takes_classes(tmp_path):
    top = [{"A": -0.2, "B": -2.0, "C": -3.5}, {"B": -0.7, "A": -1.2, "D": -2.5}]
    given = []
    for i in range(6):
        sample = inspect_sample(i, target="AB"[i % 2])
        sample["output"]["choices"][0]["logprobs"] = chat(top[i % 2])["choices"][0]["logprobs"]
        given.append(sample)
    archive = write_eval(tmp_path / "a.eval", given)
    (tmp_path / "a.json").write_text(json.dumps({**inspect_header(), "samples": given}))
    found = [
        verax("evaluate", path, "--classes", "1000", "--json") for path in (archive, tmp_path / "a.json")
    ]
    cards = [json.loads(ran.stdout)["card"] for ran in found]
    assert cards[0]["scores"] == cards[1]["scores"]
    assert verax("evaluate", archive).stdout.startswith("a: Mean grade")


def test_confidences_in_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("correct,confidence\n1,70%\n0,about 0.4\n1,\n1,0.9\n0,high\n")
    ran = verax("evaluate", path)
    assert (ran.returncode, "row 4 holds 'high'" in ran.stderr) == (2, True)
    said = verax("evaluate", path, "--skip-invalid").stdout
    assert "confidences that are texts: 2 read; confidences that are texts: 1 left out" in said
    # The mean of 2 * 0.3^2, 2 * 0.4^2 and 2 * 0.1^2.
    assert "brier        0.1733" in said
    scores = {"choice": {"value": "C", "answer": "B", "metadata": {"confidence": "70%"}}}
    vague = {"choice": {"value": "C", "answer": "B", "metadata": {"confidence": "high"}}}
    log = write_eval(tmp_path / "a.eval", [inspect_sample(1, scores=scores), inspect_sample(2, scores=vague)])
    table = read_log(log)
    assert table.table["confidence"].to_pylist() == [0.7, None]
    assert "Confidences that are texts without a number, not read: 1." in table.notes
