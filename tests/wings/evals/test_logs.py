"""Evaluation logs read as tables of graded answers; the structures are those of real logs."""

import json

import numpy as np
import pytest
import scipy.special

import verax as vx
from evallogs import (
    DEFLATED,
    STORED,
    ZSTD,
    archive,
    chosen,
    generative,
    inspect_header,
    inspect_sample,
    olmes,
    openai_events,
    write_eval,
    write_helm,
    write_lines,
)
from verax.files.lists import open_lists
from verax.files.logs import COLUMNS, read_log

HARNESS = "samples_gsm8k_2025-01-31T10-00-00.123456.jsonl"


def rows_of(log, *names):
    return [tuple(row.values()) for row in log.table.select(list(names)).to_pylist()]


@pytest.mark.parametrize("kind", [STORED, DEFLATED, ZSTD, "json"])
def test_inspect_logs(tmp_path, kind):
    samples = [
        inspect_sample(1),
        inspect_sample("b", "I", epoch=2),
        inspect_sample("b", "P"),
        inspect_sample(3, 0.3),
    ]
    if kind == "json":
        path = tmp_path / "log.json"
        path.write_text(json.dumps({**inspect_header(), "samples": samples}, indent=1))
    else:
        path = write_eval(tmp_path / "log.eval", samples, kind)
    log = read_log(path)
    assert log.table.schema.names == [*COLUMNS, "choice", "subject"]
    assert rows_of(log, "id", "epoch", "grade") == [
        ("1", 1, 1.0),
        ("b", 2, 0.0),
        ("b", 1, 0.5),
        ("3", 1, 0.3),
    ]
    assert rows_of(log, "model", "task", "answer", "gold", "status")[0] == (
        "openai/gpt-4o",
        "mmlu",
        "B",
        "B",
        None,
    )
    assert log.taken == ("grades: choice of an Inspect log", "model: openai/gpt-4o", "task: mmlu")
    assert log.notes == ("The 4 answers are to 3 questions, which are repeated.",)


def test_grades_of_inspect_stand_whatever_became_of_answers(tmp_path):
    """As its own accuracy counts them: I and N are 0; NaN and texts that are no scores are none."""
    refused, cut = (
        {"choices": [{"message": {"content": "no"}, "stop_reason": why}], "completion": "no"}
        for why in ("content_filter", "max_tokens")
    )
    samples = [
        inspect_sample(1, None, error={"message": "timeout"}),
        inspect_sample(2, "I", limit={"type": "token", "limit": 100}),
        inspect_sample(3, "I", output=refused),
        inspect_sample(4, "C", output=cut),
        inspect_sample(5, "I", said=" "),
        inspect_sample(6, "N"),
        inspect_sample(7, "?"),
        inspect_sample(8, float("nan")),
        inspect_sample(9, None, limit={"type": "time", "limit": 9}),
        inspect_sample(10),
    ]
    log = read_log(write_eval(tmp_path / "a.eval", samples))
    assert rows_of(log, "status", "grade") == [
        ("error", None), ("limit", 0.0), ("refused", 0.0), ("limit", 1.0), ("empty", 0.0), ("empty", 0.0),
        ("unscored", None), ("unscored", None), ("limit", None), (None, 1.0),
    ]  # fmt: skip
    assert "Answers not graded: 4 of 10 (1 error, 2 unscored and 1 limit)." in log.notes
    assert rows_of(read_log(tmp_path / "a.eval", grade="choice"), "grade") == rows_of(log, "grade")


def test_an_interrupted_run_says_so(tmp_path):
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1)], status="started", dataset={"samples": 9})
    assert read_log(path).notes == ("The run did not finish (status started): the log has 1 of 9 samples.",)


def test_several_scorers_and_nested_metadata(tmp_path):
    scores = {"judge": {"value": {"style": 3, "facts": 4.5}}, "match": {"value": "C"}}
    about = {"id": "x", "source": {"year": 2020}, "tags": [1], "mixed": 1}
    samples = [
        inspect_sample(1, scores=scores, metadata=about),
        inspect_sample(2, scores=scores, metadata={"mixed": "a"}),
    ]
    log = read_log(write_eval(tmp_path / "a.eval", samples))
    assert (log.metric, log.metrics) == ("judge.style", ("judge.style", "judge.facts", "match"))
    assert rows_of(log, "grade", "match", "metadata.id", "source.year", "mixed") == [
        (3.0, 1.0, "x", 2020, "1"),
        (3.0, 1.0, None, None, "a"),
    ]
    assert rows_of(read_log(tmp_path / "a.eval", grade="judge.facts"), "grade") == [(4.5,)] * 2
    with pytest.raises(vx.InputError, match="no metric 'acc'"):
        read_log(tmp_path / "a.eval", grade="acc")


def test_answers_of_several_scorers(tmp_path):
    scores = {
        "strict": {"value": "N", "answer": None},
        "judge": {"value": "C", "answer": "Paris", "metadata": {"confidence": 0.8}},
    }
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, scores=scores)])
    columns = ("grade", "answer", "confidence", "status")
    assert rows_of(read_log(path), *columns) == [(0.0, "Paris", 0.8, "empty")]
    # That one scorer found no answer does not take the grade of another away.
    assert rows_of(read_log(path, grade="judge"), *columns) == [(1.0, "Paris", 0.8, None)]


def test_a_letter_that_is_no_choice(tmp_path):
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1), inspect_sample(2, target="E")])
    with pytest.raises(vx.InputError, match=r"letters A to D .*sample 1 has the target 'E' and 4 choices"):
        read_log(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no archive at all", "must be a zip archive"),
        (archive({"header.json": b"{}"}, flags=1), "must not be encrypted"),
        (archive({"header.json": b"{}"}, 12), "deflate or zstd; member 'header.json' has method 12"),
        (archive({"header.json": b" " * 2**25}), "not be compressed by more than 200 to 1"),
        (archive({"header.json": b" " * 9}, claim=2**31), "at most 1,073,741,824 bytes"),
        (archive({"header.json": b" " * 2**20}, claim=99), "not what the directory says"),
        (archive({"header.json": b"{]"}), "is no JSON"),
        (archive({"a.txt": b"{}"}), "neither header.json nor"),
        (archive({"header.json": b"{}"}), "has no field eval"),
        (archive({"header.json": json.dumps(inspect_header()).encode()}), "it has no samples"),
    ],
)
def test_archives_that_are_refused(tmp_path, content, said):
    path = tmp_path / "a.eval"
    path.write_bytes(content)
    with pytest.raises(vx.InputError, match=said):
        read_log(path)


def test_truncated_damaged_and_overlapping_archives(tmp_path):
    whole = bytearray(write_eval(tmp_path / "a.eval", [inspect_sample(i) for i in range(3)]).read_bytes())
    damaged = whole.copy()
    damaged[damaged.index(b"samples/1_epoch_1.json") + 100] ^= 0xFF
    # Entries of the directory that share the bytes of one member, as in bombs without recursion.
    small = archive({"samples/a": b"x" * 1000}, STORED)
    start, end = small.index(b"PK\x01\x02"), small.index(b"PK\x05\x06")
    entries = small[start:end] * 20
    number = (20).to_bytes(2, "little") * 2
    overlapping = small[:start] + entries + small[end : end + 8] + number + len(entries).to_bytes(4, "little")
    for content, said in (
        (whole[: len(whole) // 2], "must be a zip archive"),
        (damaged, "The archive must be complete"),
        (overlapping + small[end + 16 :], "must not overlap"),
    ):
        (tmp_path / "b.eval").write_bytes(content)
        with pytest.raises(vx.InputError, match=said):
            read_log(tmp_path / "b.eval")


def test_harness_filters_are_metrics_of_one_row(tmp_path):
    folder = tmp_path / "org__model"
    records = [
        generative(0, "2", 1.0),
        generative(1, "[invalid]", 0.0),
        generative(0, "2", 1.0, "flexible-extract"),
        generative(1, "3", 1.0, "flexible-extract"),
    ]
    log = read_log(write_lines(folder / HARNESS, records))
    strict, flexible = "exact_match,strict-match", "exact_match,flexible-extract"
    assert (log.model, log.metric, log.metrics) == ("org/model", strict, (strict, flexible))
    assert rows_of(log, "id", "task", "grade", "answer", "status", flexible, "doc.subject") == [
        ("0", "gsm8k", 1.0, "2", None, 1.0, "sums"),
        ("1", "gsm8k", 0.0, "[invalid]", "unparsable", 1.0, "sums"),
    ]
    # Answers are those that the metric graded.
    other = read_log(folder / HARNESS, grade=flexible)
    assert rows_of(other, "grade", "answer", "status") == [(1.0, "2", None), (1.0, "3", None)]
    found = [generative(0, "[invalid]", 0.0, "flexible-extract"), generative(1, "3", 1.0, "flexible-extract")]
    loose = read_log(write_lines(tmp_path / "loose.jsonl", found))
    assert rows_of(loose, "grade", "status") == [(0.0, "unparsable"), (1.0, None)]
    (folder / "results_2025-01-31T10-00-00.123456.json").write_text('{"model_name": "org/other"}')
    assert read_log(folder / HARNESS, grade=flexible).model == "org/other"
    # Without an owner and a name around the underscores, a folder is no model.
    assert read_log(write_lines(tmp_path / "runs__" / HARNESS, records)).model is None


def test_harness_choices_and_repeats(tmp_path):
    records = [chosen(0, [-1.0, -2.0], 0), chosen(1, [-1.0, -2.0], 1), chosen(0, [-3.0, -2.0], 0)]
    log = read_log(write_lines(tmp_path / "a.jsonl", records))
    assert rows_of(log, "id", "epoch", "grade", "answer", "acc_norm") == [
        ("0", 1, 1.0, "A", 1.0), ("1", 1, 0.0, "A", 1.0), ("0", 2, 0.0, "B", 1.0)
    ]  # fmt: skip
    # The softmax of -1 and -2.
    assert rows_of(log, "confidence")[0] == (pytest.approx(0.7310585786300049),)
    # The same number for another question: two tasks in one file.
    write_lines(tmp_path / "b.jsonl", [*records, chosen(1, [-1.0, -2.0], 1, doc_hash="other")])
    with pytest.raises(vx.InputError, match=r"line 4 has the id '1' again.*different files"):
        read_log(tmp_path / "b.jsonl")


def several_metrics(n=40):
    """Samples of choices with every accuracy of the harness, as its documentation defines them."""
    rng = np.random.default_rng(4)
    records = []
    for doc in range(n):
        texts = ["no", "perhaps so", "it is certainly not the case", "é" * 6]
        given, alone = -rng.uniform(1, 30, 4), -rng.uniform(1, 30, 4)
        lengths = np.array([len(text) for text in texts])
        sizes = np.array([len(text.encode()) for text in texts])
        best = {
            "acc": given,
            "acc_norm": given / lengths,
            "acc_bytes": given / sizes,
            "acc_mutual_info": given - alone,
        }
        target = int(rng.integers(4))
        contexts = ["Q:"] * 4 + [""] * 4
        record = {
            "doc_id": doc,
            "doc": {},
            "target": target,
            "arguments": [[c, " " + t] for c, t in zip(contexts, texts * 2, strict=True)],
            "resps": [[[float(v), False]] for v in (*given, *alone)],
            "filtered_resps": [[float(v), False] for v in (*given, *alone)],
            "filter": "none",
            "metrics": list(best),
            **{name: float(values.argmax() == target) for name, values in best.items()},
        }
        records.append((record, texts, best))
    return records


@pytest.mark.parametrize("metric", ["acc", "acc_norm", "acc_bytes", "acc_mutual_info"])
def test_answers_and_confidences_are_those_of_the_metric(metric, tmp_path):
    given = several_metrics()
    path = write_lines(tmp_path / "a.jsonl", [record for record, _, _ in given])
    log = read_log(path, grade=metric)
    rows = rows_of(log, "grade", "answer", "confidence", "gold")
    for (record, texts, best), (grade, answer, confidence, gold) in zip(given, rows, strict=True):
        values = best[metric]
        assert answer == texts[values.argmax()]
        assert gold == texts[record["target"]]
        assert grade == float(answer == gold)
        # The share of the softmax, by SciPy.
        assert confidence == pytest.approx(scipy.special.softmax(values).max())
    if metric == "acc_norm":
        lists = open_lists(path, per_length=True)
        assert lists.probabilities()[0] == pytest.approx(scipy.special.softmax(given[0][2][metric]))


def test_metrics_of_all_answers_together(tmp_path):
    records = [chosen(i, [-1.0, -2.0], i % 2, f1=[i % 2, 0], metrics=["acc", "f1"]) for i in range(4)]
    log = read_log(write_lines(tmp_path / "a.jsonl", records))
    assert log.notes == ("Metrics of all answers together, not read: f1.",)
    assert rows_of(log, "grade", "status") == [(1.0, None), (0.0, None)] * 2
    for named in ({}, {"grade": "f1"}):
        if not named:
            only = [{**record, "metrics": ["f1"]} for record in records]
            write_lines(tmp_path / "b.jsonl", only)
        with pytest.raises(vx.InputError, match=r"number for each answer; these are of all .* f1"):
            read_log(tmp_path / ("a.jsonl" if named else "b.jsonl"), **named)


def test_olmes(tmp_path):
    records = [olmes(0, [-33.0, -29.0, -31.0], 1), olmes(1, [-20.0, -21.0, -25.0], 2)]
    path = write_lines(tmp_path / "task-000-arc_easy-predictions.jsonl", records)
    log = read_log(path)
    assert (log.taken[-1], log.metric) == ("task: arc_easy", "acc_raw")
    assert rows_of(log, "grade", "answer", "gold", "native_id")[0] == (1.0, "1", "1", "Mercury_0")
    about = {
        "task_name": "arc",
        "task_config": {"primary_metric": "acc_per_char"},
        "model_config": {"model": "olmo"},
    }
    (tmp_path / "task-000-arc_easy-metrics.json").write_text(json.dumps(about))
    log = read_log(path)
    assert (log.model, log.metric, log.taken[-1]) == ("olmo", "acc_per_char", "task: arc")
    # Per character: -33/10, -29/11 and -31/12; -20/10, -21/11 and -25/12.
    assert rows_of(log, "answer") == [("2",), ("1",)]
    # The log-likelihoods are distributions over the choices.
    read = open_lists(path)
    assert (read.y, read.are_distributions) == ([1, 2], True)
    assert read.probabilities()[0] == pytest.approx([0.01587624, 0.86681333, 0.11731043])


def test_helm(tmp_path):
    folder = write_helm(
        tmp_path / "mmlu:subject=law,model=openai_gpt2",
        [("id1", " A", 1.0), ("id2", "", 0.0), ("id3", "!", 0.0)],
    )
    for path in (folder, folder / "scenario_state.json", folder / "per_instance_stats.json"):
        log = read_log(path)
        assert (log.model, log.metric, log.taken[-1]) == (
            "openai/gpt2",
            "exact_match",
            "task: mmlu:subject=law",
        )
        assert rows_of(log, "id", "grade", "answer", "gold", "status") == [
            ("id1", 1.0, "A", "law", None),
            ("id2", 0.0, "", "law", "empty"),
            ("id3", 0.0, "!", "law", "error"),
        ]
    assert log.notes[0] == "Perturbed instances, not read: 1."
    (folder / "per_instance_stats.json").unlink()
    with pytest.raises(vx.InputError, match=r"grades of a HELM run are in per_instance_stats\.json"):
        read_log(folder / "scenario_state.json")


def test_openai_evals(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", openai_events([("s.1", True), ("s.2", False), ("s.3", None)]))
    log = read_log(path)
    assert (log.model, log.metric, log.taken[-1]) == ("gpt-4", "correct", "task: test-match.s1.simple-v0")
    assert rows_of(log, "id", "grade", "answer", "status") == [
        ("s.1", 1.0, "15", None), ("s.2", 0.0, "2015", None), ("s.3", None, "2015", "error")
    ]  # fmt: skip


def test_folders_of_tasks(tmp_path):
    write_eval(tmp_path / "run" / "a.eval", [inspect_sample(1)]) if (
        tmp_path / "run"
    ).mkdir() is None else None
    write_eval(tmp_path / "run" / "b.eval", [inspect_sample(1, "I")], task="law")
    (tmp_path / "run" / "notes.txt").write_text("no log")
    log = read_log(tmp_path / "run")
    assert rows_of(log, "task", "id", "grade") == [("mmlu", "1", 1.0), ("law", "1", 0.0)]
    write_eval(tmp_path / "run" / "c.eval", [inspect_sample(1)])
    with pytest.raises(
        vx.InputError, match=r"c.eval: .*has the id '1', epoch 1, of task 'mmlu' again, and so does .*a.eval"
    ):
        read_log(tmp_path / "run")
    write_eval(tmp_path / "run" / "c.eval", [inspect_sample(1)], model="openai/o3", task="x")
    with pytest.raises(vx.InputError, match=r"one model; .*'openai/gpt-4o' and .*c.eval has 'openai/o3'"):
        read_log(tmp_path / "run")
    with pytest.raises(vx.InputError, match="must be an evaluation log"):
        read_log(tmp_path / "run" / "notes.txt")


def test_tokens_of_inspect_logs(tmp_path):
    top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -2.5}]
    choice = {"message": {"content": "B"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    output = {"choices": [choice], "completion": "B"}
    path = write_eval(tmp_path / "a.eval", [inspect_sample(i, output=output) for i in range(3)])
    read = open_lists(path, classes=["A", "B", "C", "D"])
    assert (read.shape, read.y) == ("inspect", ["B"] * 3)
    assert read.lists.to_dicts()[0] == {"B": pytest.approx(0.904837418), "A": pytest.approx(0.082084999)}
