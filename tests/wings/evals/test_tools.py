"""Files of tools that grade answers: made by the tools, and in the layout that they document."""

import csv
import json
import math
import subprocess
import sys

import numpy as np
import pytest

import verax as vx
from commandline import verax
from evallogs import generative, write_lines
from realdata import load
from toollogs import deepeval_case, mlflow_trace, output_item, promptfoo_document, promptfoo_result
from verax.files.logs import read_log


def column(log, name):
    return log.table[name].to_pylist()


def mean(log):
    return np.mean([grade for grade in column(log, "grade") if grade is not None])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- Files that the tools wrote -----------------------------------------------------------------


@pytest.mark.parametrize("model", ["model-a", "model-b"])
def test_promptfoo_repeats_have_test_numbers_of_their_own(model):
    path = load("eval-logs", "promptfoo_out.jsonl")
    log = read_log(path, stacked=True)
    rows = [row for row in log.table.to_pylist() if row["model"] == model]
    # What promptfoo prints is the mean of its scores, with the answers that were cut.
    scores = [result["score"] for result in lines(path) if result["provider"]["label"] == model]
    assert [row["grade"] for row in rows] == scores
    assert [row["epoch"] for row in rows] == [1, 2, 1, 2]
    assert [row["status"] for row in rows] == [None, None, "limit", "limit"]
    assert len({row["id"] for row in rows}) == 2
    ran = verax("evals", "evaluate", path)
    assert (ran.returncode, f"Compare them: `verax evals compare {path}`" in ran.stderr) == (2, True)
    found = json.loads(verax("evals", "compare", path, "--json").stdout)
    assert list(found["files"]) == ["model-a", "model-b"]


def test_a_document_of_promptfoo():
    path = load("eval-logs", "promptfoo_results_v3.json")
    log = read_log(path)
    assert (log.shape, log.model, column(log, "grade")) == ("promptfoo", "PydanticAI GPT-4o", [1.0])


def test_success_of_deepeval_is_no_grade():
    path = load("eval-logs", "deepeval_test_run.json")
    log = read_log(path)
    (printed,) = json.loads(path.read_text())["metricsScores"]
    assert mean(log) == pytest.approx(np.mean(printed["scores"]))
    assert column(log, "status").count("unscored") == printed["errors"] == 1
    # The name of the third case is made up from its order.
    assert (log.model, column(log, "id")) == ("model-a", ["q1", "q2", "2+3?", "q4"])


def test_braintrust_leaves_out_answers_that_failed():
    path = load("eval-logs", "braintrust_results.jsonl")
    log = read_log(path)
    scores = [result["scores"]["exact"] for result in lines(path) if "exact" in result["scores"]]
    assert mean(log) == np.mean(scores) == 0.5
    assert column(log, "epoch") == [1, 2] * 3
    assert column(log, "status")[4:] == ["error"] * 2


def test_a_grade_of_langsmith_stands_beside_an_error():
    path = load("eval-logs", "langsmith_to_pandas.jsonl")
    log = read_log(path)
    assert mean(log) == pytest.approx(np.mean([run["feedback.exact"] for run in lines(path)]))
    assert (column(log, "epoch"), column(log, "status")[2]) == ([1] * 3 + [2] * 3, "error")


def test_mlflow_scorers_that_failed():
    path = load("eval-logs", "mlflow_result_df.jsonl")
    log = read_log(path)
    values = [trace["exact/value"] for trace in lines(path)]
    assert mean(log) == np.mean([value for value in values if value is not None])
    assert column(log, "status") == [None, None, "unscored"]
    # The right answers, which people wrote, are no grades.
    assert (log.metrics, column(log, "gold")) == (("exact",), ["2", "9", "18"])


def test_ragas():
    path = load("eval-logs", "ragas_to_pandas.csv")
    log = read_log(path)
    with path.open() as file:
        assert column(log, "grade") == [float(row["exact_match"]) for row in csv.DictReader(file)]
    assert column(log, "id") == ["1+1?", "3*3?", "2+3?"]


_BRAINTRUST = """
import json, sys
from braintrust import Eval
from braintrust.framework import EvalCase

def task(asked):
    if asked == "9+9":
        raise RuntimeError("429")
    return {"1+1": "2", "3*3": "10"}[asked]

def exact(input, output, expected):
    return float(output == expected)

def judge(input, output, expected):
    return None if input == "3*3" else 0.25

cases = [EvalCase(input=q, expected=a) for q, a in (("1+1", "2"), ("3*3", "9"), ("9+9", "18"))]
ran = Eval("t", data=cases, task=task, scores=[exact, judge], trial_count=2, no_send_logs=True)
for result in ran.results:
    print(json.dumps(result.as_dict(), default=str), file=open(sys.argv[1], "a"))
means = {name: score.score for name, score in ran.summary.scores.items()}
json.dump(means, open(sys.argv[2], "w"))
"""


def test_braintrust_itself(tmp_path):
    pytest.importorskip("braintrust")
    path, printed = tmp_path / "results.jsonl", tmp_path / "means.json"
    subprocess.run(
        [sys.executable, "-c", _BRAINTRUST, path, printed], check=True, capture_output=True, timeout=120
    )
    means = json.loads(printed.read_text())
    for scorer in ("exact", "judge"):
        log = read_log(path, grade=scorer)
        assert mean(log) == pytest.approx(means[scorer])
    assert column(log, "status") == [None, None, "unscored", "unscored", "error", "error"]


# ---- Files in their layout ----------------------------------------------------------------------


def test_errors_of_promptfoo_are_no_wrong_answers(tmp_path):
    graded = promptfoo_result("2", "2", 1.0)
    broken = promptfoo_result("3", "3", 0.0, test=1)
    broken["gradingResult"]["componentResults"][0]["metadata"] = {"graderError": True}
    bare = promptfoo_result("4", "4", 1.0, test=3)
    bare["gradingResult"] = {"pass": True, "score": 1, "reason": "No assertions"}
    results = [graded, broken, promptfoo_result("", "5", None, test=2), bare]
    results.append(promptfoo_result("no", "6", 0.0, test=4))
    results[-1]["response"]["isRefusal"] = True
    path = tmp_path / "out.json"
    path.write_text(json.dumps(promptfoo_document(results)))
    log = read_log(path)
    assert column(log, "grade") == [1.0, None, None, None, 0.0]
    assert column(log, "status") == [None, "unscored", "error", "unscored", "refused"]
    assert column(read_log(path, grade="exact"), "grade")[:3] == [1.0, None, None]


def test_prompts_of_promptfoo_are_models_of_their_own(tmp_path):
    other = {"raw": "2?", "label": "brief"}
    results = [promptfoo_result("2", "2", 1.0), promptfoo_result("x", "2", 0.0, prompt=other, promptIdx=1)]
    log = read_log(write_lines(tmp_path / "out.jsonl", results), stacked=True)
    assert column(log, "model") == ["m, Say {{expected}}", "m, brief"]
    assert column(log, "epoch") == [1, 1]


def test_several_metrics_are_asked_for(tmp_path):
    cases = [deepeval_case("q1", "1+1", "2", {"Exact": 1.0, "Tone [GEval]": None})]
    cases.append(deepeval_case("test_case_1", "3*3", " ", {"Exact": 0.0, "Tone [GEval]": 0.8}))
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"testCases": cases, "hyperparameters": None, "identifier": "nightly"}))
    ran = verax("evals", "evaluate", path)
    assert ran.returncode == 2
    assert "the metrics are 'Exact' and 'Tone [GEval]'" in ran.stderr
    assert "Pass --grade Exact, or --grade 'Tone [GEval]'" in ran.stderr
    log = read_log(path, grade="Tone [GEval]")
    assert (column(log, "grade"), column(log, "status")) == ([None, 0.8], ["unscored", "empty"])
    assert (column(log, "id"), column(log, "task")) == (["q1", "3*3"], ["nightly"] * 2)
    assert "Graded by gpt." in log.notes


def test_one_name_of_several_cases_of_deepeval_is_not_their_question(tmp_path):
    cases = [deepeval_case("sums", asked, "2", {"Exact": 1.0}) for asked in ("1+1", "2+0")]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"testRunData": {"testCases": cases}}))
    assert column(read_log(path), "id") == ["1+1", "2+0"]


def test_judges_and_people_of_mlflow_are_metrics_of_their_own(tmp_path):
    judged = ("correct", "yes", "LLM_JUDGE")
    traces = [
        mlflow_trace("1+1", "2", judged, ("correct", True, "HUMAN")),
        mlflow_trace("3*3", "9", judged, ("correct", False, "HUMAN")),
        mlflow_trace("9+9", "8", ("correct", None, "LLM_JUDGE")),
    ]
    path = write_lines(tmp_path / "traces.jsonl", traces)
    with pytest.raises(vx.InputError, match=r"several; the metrics are 'correct' and 'correct\.human'"):
        read_log(path)
    log = read_log(path, grade="correct.human")
    assert column(log, "grade") == [1.0, 0.0, None]
    assert column(log, "correct") == [1.0, 1.0, None]
    assert column(log, "request.question") == ["1+1", "3*3", "9+9"]


def test_tables_of_mlflow_2(tmp_path):
    names = ["inputs", "outputs", "ground_truth", "faithfulness/v1/score", "faithfulness/v1/justification"]
    rows = [["q", "a", "a", 4, "good"], ["r", "b", "c", None, "Failed to score model on payload: 429"]]
    path = tmp_path / "eval_results_table.json"
    path.write_text(json.dumps({"columns": names, "data": rows}))
    log = read_log(path)
    assert (log.metric, column(log, "grade")) == ("faithfulness/v1", [4.0, None])
    said = verax("evals", "evaluate", path, "--grade-range", "1,5").stdout
    assert "Mean grade 4" in said


def test_output_items_of_openai(tmp_path):
    items = [
        output_item(1, "2", {"match": 1.0}),
        output_item(2, "", {"match": 0.0}, finish_reason="length"),
        output_item(3, "", {}, error={"code": "429"}),
    ]
    for path in (tmp_path / "items.jsonl", tmp_path / "items.json"):
        if path.suffix == ".jsonl":
            write_lines(path, items)
        else:
            path.write_text(json.dumps({"object": "list", "data": items}))
        log = read_log(path)
        assert (log.model, column(log, "grade")) == ("gpt-4o", [1.0, 0.0, None])
        assert column(log, "status") == [None, "limit", "error"]
        assert column(log, "subject") == ["sums"] * 3


def test_predictions_of_helm(tmp_path):
    shown = [
        {"instance_id": f"id{i}", "predicted_text": text, "train_trial_index": 0, "stats": stats}
        for i, (text, stats) in enumerate(
            [(" A", {"exact_match": 1.0}), ("", {"exact_match": 0.0}), ("B", {})]
        )
    ]
    folder = tmp_path / "mmlu:subject=law,model=openai_gpt2"
    folder.mkdir()
    (folder / "display_predictions.json").write_text(json.dumps(shown))
    (folder / "run_spec.json").write_text(json.dumps({"adapter_spec": {"model": "openai/gpt2"}}))
    log = read_log(folder)
    assert (log.model, log.taken[-1]) == ("openai/gpt2", "task: mmlu:subject=law")
    assert column(log, "grade") == [1.0, 0.0, None]
    assert column(log, "status") == [None, "empty", "unscored"]


def test_graders_of_ragas_that_failed(tmp_path):
    path = tmp_path / "ragas.csv"
    path.write_text("user_input,response,reference,faithfulness,answer_relevancy\nq,a,a,0.5,\nr,b,c,,0.25\n")
    log = read_log(path, grade="faithfulness")
    assert column(log, "grade") == [0.5, None]
    assert column(log, "answer_relevancy") == [None, 0.25]
    assert column(log, "status") == [None, "unscored"]


@pytest.mark.parametrize(
    ("name", "content", "tool"),
    [
        ("mmlu_gpt-4.json", '{"score": 0.5, "score:std": 0.4, "stem": 0.6}', "simple-evals"),
        ("means.csv", "metric,score\nfaithfulness,0.5\n", "Ragas"),
        ("summary.jsonl", '{"experiment_name": "a", "scores": {"exact": {"score": 0.5}}}\n', "Braintrust"),
        (
            "results.json",
            '{"results": {"mmlu": {"acc,none": 0.5}}, "n-shot": {}, "config": {}}',
            "lm-evaluation",
        ),
    ],
)
def test_means_without_answers(tmp_path, name, content, tool):
    path = tmp_path / name
    path.write_text(content)
    ran = verax("evals", "evaluate", path)
    assert ran.returncode == 2
    assert f"it holds means of {tool}" in ran.stderr
    # Beside answers they are passed over.
    write_lines(tmp_path / "samples.jsonl", [generative(0, "2", 1.0)])
    assert mean(read_log(tmp_path)) == 1.0


def test_a_line_that_was_cut(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [generative(i, "2", 1.0) for i in range(3)])
    text = path.read_text()
    path.write_text(text[: len(text) - 40])
    log = read_log(path)
    assert (len(log.table), log.notes[0]) == (
        2, "The last line is incomplete: the run goes on, or the file was cut. Lines read: 2."
    )  # fmt: skip
    path.write_text(text.replace('"doc_id": 1', '"doc_id" 1'))
    with pytest.raises(vx.InputError, match="line 2"):
        read_log(path)


def test_grades_that_are_texts(tmp_path):
    results = [
        {"input": f"q{i}", "output": "a", "scores": {"tone": text}}
        for i, text in enumerate(["good", "bad", "good", "so so", None])
    ]
    path = write_lines(tmp_path / "results.jsonl", results)
    with pytest.raises(vx.InputError, match=r"'tone' holds 'good' \(2\), 'bad' \(1\) and 'so so' \(1\)"):
        read_log(path)
    ran = verax("evals", "evaluate", path)
    assert "Pass --grade tone:good=1,bad=0 for grades that are texts" in ran.stderr
    said = verax("evals", "evaluate", path, "--grade", "tone:good=1,bad=0").stdout
    assert "Mean grade 0.6667" in said
    log = read_log(path, values={"good": 1.0, "bad": 0.0})
    assert column(log, "grade") == [1.0, 0.0, 1.0, None, None]
    assert column(log, "status") == [None, None, None, "unscored", "unscored"]
    assert "Texts that are no grades, not read: 'so so' (1)." in log.notes


def test_texts_in_a_column_of_grades(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("qid,verdict\n" + "".join(f"{i},{'Good' if i % 3 else 'poor'}\n" for i in range(9)))
    ran = verax("evals", "evaluate", path, "--grade", "verdict")
    assert (ran.returncode, "row 0 holds 'poor'" in ran.stderr) == (2, True)
    assert "--grade verdict:Good=1,poor=0" in ran.stderr
    said = verax("evals", "evaluate", path, "--grade", "verdict:Good=1,poor=0").stdout
    assert "Mean grade 0.6667" in said


def test_several_models_are_not_one(tmp_path):
    results = [promptfoo_result("2", "2", 1.0, model=name) for name in ("a", "b", "c")]
    path = write_lines(tmp_path / "out.jsonl", results)
    with pytest.raises(vx.InputError, match="has 'a', 'b' and 'c'"):
        read_log(path)
    assert math.isclose(mean(read_log(path, stacked=True)), 1.0)
    ran = verax("evals", "compare", write_lines(tmp_path / "samples.jsonl", [generative(0, "2", 1.0)]))
    assert (ran.returncode, "Compare takes two models or more" in ran.stderr) == (2, True)
