"""Log-probabilities as interfaces return them, and the command that scores them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import verax as vx
from cases import facts, facts_of
from commandline import verax
from verax.files.lists import open_lists

LISTED = {" yes": -0.1, " no": -2.5, " maybe": -5.0}
PROBABILITIES = {token: math.exp(value) for token, value in LISTED.items()}
ARRAY = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in LISTED.items()]
CONTENT = {"token": " yes", "logprob": -0.1, "top_logprobs": ARRAY}
OTHER = {"token": ".", "logprob": 0.0, "top_logprobs": [{"token": ".", "logprob": 0.0}]}
CHAT = {"choices": [{"index": 0, "message": {"content": " yes."}, "logprobs": {"content": [CONTENT, OTHER]}}]}
COMPLETION = {"choices": [{"text": " yes", "logprobs": {"tokens": [" yes"], "top_logprobs": [LISTED]}}]}
SHAPES = {
    "mapping": LISTED,
    "array": ARRAY,
    "token": CONTENT,
    "top_logprobs": {"top_logprobs": ARRAY},
    "chat completion": CHAT,
    "batch": {"custom_id": "1", "response": {"status_code": 200, "body": CHAT}},
    "completion": COMPLETION,
    "objects": {token: {"logprob": value, "rank": 1} for token, value in LISTED.items()},
    "unlikely": [*ARRAY, {"token": "x", "logprob": -9999.0}],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape(shape, tmp_path):
    lists = vx.TopLists.from_logprobs([SHAPES[shape]], n_classes=1000)
    assert lists.to_dicts() == [pytest.approx(PROBABILITIES, rel=1e-15)]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(SHAPES[shape]) + "\n\n" + json.dumps(SHAPES[shape]) + "\n")
    for rows in (path, str(path)):
        assert vx.TopLists.from_logprobs(rows, n_classes=1000).to_dicts() == lists.to_dicts() * 2


ERRORS = {
    "text": ([["yes"]], facts("rows", "type", rows=[0], values=["yes"])),
    "no number": ([{"a": "b"}], facts("rows", "type", rows=[0], values=["b"])),
    "nan": ([{"a": math.nan}], facts("rows", "type", rows=[0])),
    "no logprobs": (
        [{"choices": [{"logprobs": None}]}],
        facts("rows", "missing", rows=[0]),
    ),
    "no choices": ([{"choices": []}], facts("rows", "type", rows=[0], values=[{"choices": []}])),
    "twice": ([[ARRAY[0], ARRAY[0]]], facts("rows", "list", rows=[0], values=[" yes"])),
    "one row": (LISTED, facts("rows", "type")),
    "positive": ([{"a": 0.2}], facts("confidences", "value", rows=[0], values=[1.2214027581601699])),
    "far above": ([{"a": 1e6}], facts("confidences", "value", rows=[0], values=[1.0142320547350045e304])),
    "no file": ("nowhere.jsonl", facts("rows", "file")),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_no_log_probability_is_named(name):
    rows, expected = ERRORS[name]
    with pytest.raises(vx.InputError) as caught:
        vx.TopLists.from_logprobs(rows, n_classes=1000)
    assert facts_of(caught.value, expected) == expected


def test_records(tmp_path):
    path = tmp_path / "records.jsonl"
    records = [{"item": {"answer": " no"}, **CHAT}, {"item": {"answer": " yes"}, **CHAT}]
    path.write_text("\n".join(map(json.dumps, records)))
    read = open_lists(path, outcome="item.answer", classes=1000)
    assert read.y == [" no", " yes"]
    assert read.lists.to_dicts() == [pytest.approx(PROBABILITIES)] * 2
    assert open_lists(path, outcome="item.answer", position=1, classes=9).lists.to_dicts() == [{".": 1.0}] * 2
    assert open_lists(path, outcome="choices.0.logprobs.content.0.token", classes=9).y == [" yes", " yes"]
    with pytest.raises(vx.InputError) as caught:
        open_lists(path, outcome="item.answer", position=2, classes=9)
    expected = facts("position", "value", rows=[0], values=[2])
    assert facts_of(caught.value, expected) == expected
    path.write_text(json.dumps({"outcome": 15, "top_logprobs": {"15": -0.1}}))
    assert open_lists(path, classes=9).y == ["15"]


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def responses(tmp_path):
    """A file as a chat-completion interface answers 200 multiple-choice questions, and what it holds."""
    rng = np.random.default_rng(0)
    tokens, answers, dense = list("ABCDEFG"), [], rng.dirichlet(np.full(7, 0.7), 200)
    path = tmp_path / "responses.jsonl"
    with path.open("w") as file:
        for p in dense:
            top = np.argsort(-p)[:5]
            listed = [{"token": tokens[i], "logprob": round(float(np.log(p[i])), 7)} for i in top]
            answers.append(int(rng.choice(7, p=p)))
            content = [{**listed[0], "top_logprobs": listed}]
            record = {"outcome": tokens[answers[-1]], "choices": [{"logprobs": {"content": content}}]}
            file.write(json.dumps(record) + "\n")
    return path, np.array(answers), dense


def test_toplist_scores_a_file(responses):
    path, y, p = responses
    result = verax("toplist", path, "--classes", 7, "--json")
    assert result.returncode == 0, result.stderr
    card = json.loads(result.stdout)
    lists = vx.TopLists.from_probabilities(p, 5)
    expected = vx.evaluate(y, lists)
    assert card["n_rows"] == 200
    assert card["n_classes"] == 7
    for name, score in expected.scores.items():
        assert card["scores"][name]["mean"] == pytest.approx(score.mean, rel=1e-5)
    assert card["metrics"]["coverage"]["mean"] == expected.coverage
    assert card["metrics"]["top_2_error"]["mean"] == pytest.approx(expected.top_k_error[2])
    assert card["n_invalid"] == 0
    shorter = json.loads(verax("toplist", path, "--classes", 7, "--length", 2, "--json").stdout)
    assert shorter["scores"]["padded(brier)"]["mean"] == pytest.approx(
        vx.brier(y, lists.truncate(2)), rel=1e-5
    )


def test_toplist_prints_a_card(responses):
    result = verax("toplist", responses[0], "--classes", 128256, "--all")
    assert result.returncode == 0, result.stderr
    assert "200 rows, 128,256 classes" in result.stdout
    assert "padded(penalized(log_score))" in result.stdout
    assert "coverage" in result.stdout


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("{", (), "line 1 is not"),
        ('{"top_logprobs": {"a": -0.1}}', (), "it has the fields 'top_logprobs'"),
        ('{"outcome": ["a"], "top_logprobs": {"a": -0.1}}', (), "line 1 holds ['a']"),
        ('{"outcome": "a", "top_logprobs": ' + "[" * 3000, (), "line 1 is not"),
        ('{"outcome": "a", "top_logprobs": {"a": -0.1, "b": -1.2}}', (), "line 1 sums to 1.20603"),
        ('{"outcome": "a", "top_logprobs": {"a": -0.1}}', ("--invalid-penalty", "-1"), "-1"),
    ],
)
def test_toplist_says_what_is_wrong_in_one_line(tmp_path, line, options, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    result = verax("toplist", path, "--classes", 1000, *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_resin():
    result = verax("reproduce", "resin", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["findings"]
    assert [f["where"] for f in found if f["agrees"] is not True] == ["Lemma 6", "Theorem 9"]
    # In exact rationals: 33/50 - 133/200, 2/3 - 133/200, 4/5 - 17/20, and a list that loses nothing.
    signs = {f["what"]: f["computed"] for f in found if isinstance(f["printed"], str)}
    exact = {
        "Brier: s padded as it is, minus the true list": -1 / 200,
        "Brier: largest valid sublist of s, minus the true list": 1 / 600,
        "three largest of padded t, minus those of padded s": -1 / 20,
        "Brier: ({0, 3}, (1/2, 1/6)) minus the largest valid sublist of s": 0,
        "excess over the true list with a fine of 1": 1,
        "largest excess of 200 random lists, minus its bound": 0,
    }
    assert {what: signs[what] for what in exact} == pytest.approx(exact, abs=1e-12)
    assert 0.5 < signs["largest excess of 200 random lists, over alpha"] < 1
    assert "Table 1" in verax("reproduce", "resin").stdout
