"""Tables with pairs of columns, and ranked runs whose documents are relevant or not."""

import json

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

import verax as vx
from commandline import verax
from verax.files.lists import holds_lists, open_lists

PAIRED = (
    "id,answer,t1,t1_prob,t2,t2_prob,t3,t3_prob\n1,B,B,0.7,A,0.2,C,0.1\n2,A,A,0.9,B,0.05,,\n3,C,C,0.6,,,,\n"
)


def test_blank_pairs_are_not_listed(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(PAIRED)
    assert holds_lists(path)
    read = open_lists(path, classes=["A", "B", "C", "D"])
    assert (read.shape, read.y) == ("pairs", ["B", "A", "C"])
    assert read.lists.to_dicts() == [{"B": 0.7, "A": 0.2, "C": 0.1}, {"A": 0.9, "B": 0.05}, {"C": 0.6}]
    assert read.notes == ("Blank entries, read as classes that are not listed: 3.",)
    ran = verax("evaluate", path, "--classes", "A,B,C,D", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["card"]["n_rows"]) == (0, 3)


@pytest.mark.parametrize(
    "header",
    ["answer,token_1,logprob_1,token_2,logprob_2", "answer,Top 1 label,Top 1 prob,Top 2 label,Top 2 prob"],
)
def test_names_of_pairs(tmp_path, header):
    path = tmp_path / "wide.csv"
    values = (-0.1, -2.4) if "logprob" in header else (np.exp(-0.1), np.exp(-2.4))
    path.write_text(f"{header}\nB,B,{values[0]},A,{values[1]}\n")
    read = open_lists(path, classes=9)
    assert read.lists.to_dicts() == [{"B": pytest.approx(np.exp(-0.1)), "A": pytest.approx(np.exp(-2.4))}]


def test_numbered_columns_of_numbers_are_no_pairs(tmp_path):
    path = tmp_path / "features.csv"
    path.write_text("label,x1,x2,p1,p2\n1,3,4,0.4,0.6\n0,5,6,0.7,0.3\n")
    assert not holds_lists(path)
    path.write_text("label,a\n1,2\n")
    with pytest.raises(vx.InputError, match="one set of columns such as t1"):
        open_lists(path, shape="pairs", outcome="label")


RUN = """q1 Q0 d1 1 0.9 bm
q1 Q0 d2 2 0.6 bm
q1 Q0 d3 3 0.2 bm
q2 Q0 d1 1 0.5 bm
q2 Q0 d4 2 0.4 bm
"""
QRELS = "q1 0 d1 1\nq1 0 d2 2\nq1 0 d3 0\nq2 0 d1 0\nq2 0 d9 1\n"


def test_documents_as_binary_events(tmp_path):
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    run.write_text(RUN)
    qrels.write_text(QRELS)
    # One answer per query is not what these are.
    with pytest.raises(vx.InputError, match="shape='relevance' to score every document"):
        open_lists(run, classes=50, outcomes=qrels)
    read = open_lists(run, outcomes=qrels, shape="relevance")
    assert read.are_distributions
    p, relevant = read.probabilities()[:, 1], np.array([1, 1, 0, 0, 0])
    assert p.tolist() == [0.9, 0.6, 0.2, 0.5, 0.4]
    assert [name == "relevant" for name in read.y] == relevant.astype(bool).tolist()
    assert read.groups.tolist() == ["q1", "q1", "q1", "q2", "q2"]
    assert read.notes == (
        "Documents without a judgement, treated as not relevant: 1.",
        "Relevant documents that the run does not list, not scored: 1.",
    )
    ran = verax("evaluate", run, "--outcomes", qrels, "--shape", "relevance", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["card"]
    card = vx.evaluate(read.y, read.probabilities(), classes=read.classes, groups=read.groups)
    assert card["brier"] == pytest.approx(2 * brier_score_loss(relevant, p))
    assert card["auc"] == pytest.approx(roc_auc_score(relevant, p))
    assert found["scores"]["brier"]["mean"] == pytest.approx(card["brier"])


def test_judgements_and_runs_must_be_files(tmp_path):
    (tmp_path / "run.txt").write_text(RUN)
    for shape in ("trec", "relevance"):
        with pytest.raises(vx.InputError, match="is a folder; a file is needed"):
            open_lists(tmp_path / "run.txt", classes=9, outcomes=tmp_path, shape=shape)
        with pytest.raises(vx.InputError, match="is a folder; a file is needed"):
            open_lists(tmp_path, classes=9, outcomes=tmp_path / "run.txt", shape=shape)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q2 Q0 d4 3 0.1 bm", "line 6 has 'q2 d4' again"),
        ("q2 Q0 d5 3 14.2 bm", r"must lie between 0 and 1; line 6 holds -13\.2"),
        ("q2 Q0 d5 3 bm", "line 6 has 5 cells"),
    ],
)
def test_runs_without_probabilities_are_refused(tmp_path, line, said):
    (tmp_path / "run.txt").write_text(RUN + line + "\n")
    (tmp_path / "qrels.txt").write_text(QRELS)
    with pytest.raises(vx.InputError, match=said):
        open_lists(tmp_path / "run.txt", outcomes=tmp_path / "qrels.txt", shape="relevance")
