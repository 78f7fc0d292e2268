"""Files of lists as they come: every shape is read to the same lists, counted, and refused by line."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import demofiles
import realdata
import verax as vx
from cases import facts, facts_of
from commandline import verax
from listrecords import ALONE, SHAPES, TOP, TRUTH, chat, records_of, sample
from verax.files.lists import holds_lists, open_lists
from verax.wings.lists.files.recognising import ALL_SHAPES

EXPECTED = [{token: math.exp(value) for token, value in row.items()} for row in TOP]


def write(path, records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def close(found, expected=EXPECTED):
    assert [set(row) for row in found] == [set(row) for row in expected]
    assert [row[t] for row in found for t in sorted(row)] == pytest.approx(
        [row[t] for row in expected for t in sorted(row)], rel=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_lists(shape, tmp_path):
    path = write(tmp_path / "records.jsonl", records_of(shape))
    assert holds_lists(path)
    read = open_lists(path, classes=1000)
    close(read.lists)
    assert read.y == TRUTH
    assert read.lists.n_classes == 1000
    expected = vx.TopLists.from_dicts(EXPECTED, n_classes=1000)
    assert vx.log_score(read.y, read.lists) == pytest.approx(vx.log_score(TRUTH, expected), rel=1e-12)
    # The same records as a document, compressed, in Parquet where it has such types, and with gold elsewhere.
    whole = tmp_path / "records.json"
    whole.write_text(json.dumps(records_of(shape)))
    close(open_lists(whole, classes=1000).lists)
    (tmp_path / "gold.csv").write_text('id,n,truth\nq1,2," D"\nq0,1," A"\n')
    bare = write(tmp_path / "bare.jsonl", [SHAPES[shape](row) | {"id": f"q{i}"} for i, row in enumerate(TOP)])
    found = open_lists(bare, classes=1000, outcomes=tmp_path / "gold.csv", id="id")
    close(found.lists)
    assert (found.y, found.ids) == (TRUTH, ["q0", "q1"])
    assert found.taken[1].endswith("gold.csv, matched by id")


@pytest.mark.parametrize("shape", ALONE)
def test_without_alternatives_the_chosen_token_counts(shape, tmp_path):
    records = [{"outcome": TRUTH[i], **ALONE[shape](row, top=i > 0)} for i, row in enumerate(TOP)]
    read = open_lists(write(tmp_path / "a.jsonl", records), classes=50)
    close(read.lists, [{" A": EXPECTED[0][" A"]}, EXPECTED[1]])
    assert read.counts["alone"] == 1
    assert read.notes == ("Lists without alternatives, only with the chosen token: 1 of 2 lists.",)
    # In memory, too.
    rows = vx.TopLists.from_logprobs(records, n_classes=50)
    assert rows.to_dicts() == read.lists.to_dicts()


def test_parts_of_characters_are_told_apart_by_their_bytes(tmp_path):
    top = [{"token": "\ufffd", "logprob": -1.0, "bytes": [240, 159]}]
    top += [{"token": "\ufffd", "logprob": -2.0, "bytes": [226, 128]}, {"token": "\ufffd", "logprob": -3.0}]
    read = open_lists(write(tmp_path / "a.jsonl", [{"outcome": "x", "top_logprobs": top}]), classes=9)
    assert list(read.lists.to_dicts()[0]) == ["bytes:\\xf0\\x9f", "bytes:\\xe2\\x80", "\ufffd"]
    same = [{"outcome": "x", "top_logprobs": [top[2], top[2]]}]
    with pytest.raises(vx.InputError) as caught:
        open_lists(write(tmp_path / "b.jsonl", same), classes=9)
    expected = facts("rows", "list", rows=[0], values=["\ufffd"])
    assert facts_of(caught.value, expected) == expected
    merged = open_lists(tmp_path / "b.jsonl", classes=9, merge_variants="same")
    assert merged.lists.to_dicts() == [{"\ufffd": pytest.approx(2 * math.exp(-3))}]


VARIANTS = {" Paris": 0.4, "Paris": 0.2, "paris": 0.1, "Paris.": 0.05, "\u2581Paris": 0.02, " Lyon": 0.1}


@pytest.mark.parametrize(
    ("rule", "expected", "merged"),
    [
        ("space", {"Paris": 0.62, "paris": 0.1, "Paris.": 0.05, "Lyon": 0.1}, 0.22),
        ("case", {"paris": 0.72, "paris.": 0.05, "lyon": 0.1}, 0.32),
        ("punctuation", {"paris": 0.77, "lyon": 0.1}, 0.37),
    ],
)
def test_variants_are_merged_by_a_stated_rule(rule, expected, merged, tmp_path):
    records = [{"outcome": "paris.", "top_logprobs": {t: math.log(p) for t, p in VARIANTS.items()}}]
    path = write(tmp_path / "a.jsonl", [*records, {"outcome": " Lyon", "top_logprobs": {" Rome": -0.1}}])
    read = open_lists(path, classes=1000, merge_variants=rule)
    assert read.lists.to_dicts()[0] == pytest.approx(expected)
    n = len(VARIANTS) - len(expected)
    assert (read.counts["entries_merged"], read.counts["lists_merged"]) == (n, 1)
    assert read.counts["probability_merged"] == pytest.approx(merged)
    assert f"{n} in 1 of 2 lists, with {merged / 2:.3g} of the probability" in read.notes[0]
    # Outcomes are called by the same rule.
    assert read.y[1] == next(iter(set(expected) & {"Lyon", "lyon"}))


def test_outcomes_in_another_spelling_are_not_coverage_zero(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"outcome": "a.", "top_logprobs": {"A": -0.1, "B": -3}}] * 3)
    with pytest.raises(vx.InputError, match=r"any of the 3 outcomes, such as 'a\.'") as caught:
        open_lists(path, classes=9)
    assert caught.value.remedies[0].options == {"merge_variants": "punctuation"}
    assert open_lists(path, classes=9, merge_variants="punctuation").y == ["a"] * 3
    # With no such rule it is a note, not an error: all may have been missed.
    path = write(tmp_path / "a.jsonl", [{"outcome": "Z", "top_logprobs": {"A": -0.1, "B": -3}}] * 3)
    assert open_lists(path, classes=9).notes[0].startswith("No list names any of the outcomes, such as 'Z'")


def test_what_is_left_out_is_not_counted(tmp_path):
    too_much = {"outcome": "a", "top_logprobs": {"a": -0.1, " a": -0.2}}
    records = [GOOD, too_much, {"outcome": "a", "top_logprobs": {"a": -0.5, " a": -2.0}}]
    path = write(tmp_path / "a.jsonl", records)
    read = open_lists(path, classes=9, merge_variants="space", invalid="skip")
    assert read.skipped.rows == (1,)
    assert {name: read.counts[name] for name in ("lists_merged", "entries_merged")} == {
        "lists_merged": 1,
        "entries_merged": 1,
    }
    assert read.counts["probability_merged"] == pytest.approx(math.exp(-2))


# ---- what is wrong --------------------------------------------------------------------------------

GOOD = {"outcome": "a", "top_logprobs": {"a": -0.1}}
FAILED = {"custom_id": "q", "response": None, "error": {"code": "rate_limit", "message": "slow down"}}
WRONG = {
    "failed": (FAILED, "line 3 is a failed request ('rate_limit: slow down')", "requests that failed"),
    "status": (
        {"response": {"status_code": 500, "body": {}}, "error": None},
        "line 3 is a failed request (status 500)",
        "requests that failed",
    ),
    "no outcome": ({"top_logprobs": {"a": -0.1}}, "line 3 has no 'outcome': it has the fields", "outcomes"),
    "no logprobs": ({"outcome": "a", "choices": [{}]}, "line 3 holds", "cannot be read"),
    "a number": ({"outcome": "a", "top_logprobs": {"a": "b"}}, "line 3 holds 'b'", "cannot be read"),
    "above zero": ({"outcome": "a", "top_logprobs": {"a": 0.5}}, "line 3 holds 1.64872", "above 1"),
    "the sum": ({"outcome": "a", "top_logprobs": {"a": -0.1, "b": -0.2}}, "line 3 sums to 1.723", "sum to 1"),
    "an outcome": ({"outcome": ["a"], "top_logprobs": {"a": -0.1}}, "line 3 holds ['a']", "not among"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_by_line_or_left_out(name, tmp_path):
    record, message, reason = WRONG[name]
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps(record)}\n{json.dumps(GOOD)}\n")
    with pytest.raises(vx.InputError) as caught:
        open_lists(path, classes=10, outcome="outcome")
    assert message in str(caught.value)
    assert caught.value.rows == (1,)
    assert caught.value.source == str(path)
    read = open_lists(path, classes=10, outcome="outcome", invalid="skip")
    assert read.y == ["a", "a"]
    assert read.numbers.tolist() == [1, 4]
    assert (read.skipped.n_given, read.skipped.count, read.skipped.rows) == (3, 1, (1,))
    assert reason in next(iter(read.skipped.reasons))


def test_fields_of_an_unrecognised_record_are_listed(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"question": "?", "reply": "A"}])
    assert not holds_lists(path)
    with pytest.raises(
        vx.InputError, match=r"line 1 has none of them: it has the fields 'question', 'reply'"
    ):
        open_lists(path, classes=4)
    with pytest.raises(vx.InputError, match="no file names all tokens") as caught:
        open_lists(write(path, [GOOD]))
    assert caught.value.argument == "classes"
    with pytest.raises(vx.InputError, match="must name the field that holds what happened") as caught:
        open_lists(write(path, [{"custom_id": 1, "response": {"body": chat(TOP[0])}}]), classes=4)
    assert "'custom_id', 'response'" in str(caught.value)


def test_outcomes_elsewhere_must_fit(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"key": i, **chat(TOP[i])} for i in range(2)])
    gold = tmp_path / "gold.csv"
    gold.write_text("key,truth\n0, A\n")
    options = {"classes": 99, "outcomes": gold}
    with pytest.raises(vx.InputError, match="line 2 has the id '1', which is missing there"):
        open_lists(path, id="key", **options)
    assert open_lists(path, id="key", invalid="skip", **options).y == [" A"]
    with pytest.raises(vx.InputError, match="there are 1 outcomes and more records"):
        open_lists(path, outcome="truth", **options)
    with pytest.raises(vx.InputError, match="There is no column 'custom_id'; the columns are 'key', 'truth'"):
        open_lists(path, id="custom_id", **options)
    gold.write_text("key,truth\n0, A\n0, B\n1, A\n")
    with pytest.raises(vx.InputError, match="'0' has ' A' and ' B'"):
        open_lists(path, id="key", **options)
    gold.write_text("truth\n A\n D\n")
    assert open_lists(path, **options).y == TRUTH
    document = tmp_path / "gold.json"
    for content, row_id in (
        ({"1": " D", "0": " A"}, "key"),
        ([{"key": 1, "truth": " D"}, {"key": 0, "truth": " A"}], "key"),
        ([{"truth": " A"}, {"truth": " D"}], None),
        (TRUTH, None),
    ):
        document.write_text(json.dumps(content))
        assert open_lists(path, classes=99, outcomes=document, id=row_id).y == TRUTH


# ---- classifiers ----------------------------------------------------------------------------------


def test_lists_of_all_classes_are_distributions(tmp_path):
    """Hugging Face, scikit-learn, a long table, fastText and Parquet: the same dense rows, exactly."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 50)
    names, y = np.array(["cat", "dog", "fox"]), rng.integers(0, 3, 50)
    order = [rng.permutation(3) for _ in p]
    scored = [[{"label": str(names[j]), "score": p[i, j]} for j in order[i]] for i in range(50)]
    truth = [str(name) for name in names[y]]
    pipeline = write(
        tmp_path / "p.jsonl", [{"text": "", "label": t, "out": s} for t, s in zip(truth, scored, strict=True)]
    )
    bare = write(tmp_path / "bare.jsonl", scored)
    (tmp_path / "gold.txt").write_text("\n".join(truth))
    document = tmp_path / "sk.json"
    document.write_text(json.dumps({"classes_": names.tolist(), "predict_proba": p.tolist(), "y": truth}))
    long = tmp_path / "long.csv"
    rows = [f"{i},{names[j]},{float(p[i, j])!r},{truth[i]}" for i in range(50) for j in order[i]]
    long.write_text("row_id,class,probability,truth\n" + "\n".join(rows))
    by_class = tmp_path / "by_class.csv"
    rows = [f"{i},{names[j]},{float(p[i, j])!r},{truth[i]}" for j in range(3) for i in range(50)]
    by_class.write_text("row_id,class,probability,truth\n" + "\n".join(rows))
    columns = {"labels": [names[o].tolist() for o in order], "probs": [p[i, o] for i, o in enumerate(order)]}
    papq.write_table(pa.table({"target": truth, **columns}), tmp_path / "lists.parquet")
    structs = pa.array(scored)
    papq.write_table(pa.table({"target": truth, "out": structs}), tmp_path / "structs.parquet")
    fasttext = tmp_path / "ft.out"
    lines = [" ".join(f"__label__{names[j]} {float(p[i, j])!r}" for j in order[i]) for i in range(50)]
    fasttext.write_text("\n".join(lines))
    test = tmp_path / "test.ft"
    test.write_text("\n".join(f"__label__{t} some words" for t in truth))
    expected = vx.evaluate(y, p)
    for path, options in (
        (pipeline, {}),
        (bare, {"outcomes": tmp_path / "gold.txt"}),
        (document, {}),
        (long, {}),
        (by_class, {"shape": "long"}),
        (tmp_path / "lists.parquet", {}),
        (tmp_path / "structs.parquet", {}),
        (fasttext, {"outcomes": test}),
    ):
        assert holds_lists(path, **options), path
        read = open_lists(path, **options)
        assert read.complete
        assert read.are_distributions
        assert set(read.classes) == set(names)
        card = vx.evaluate(read.y, read.probabilities(), classes=read.classes)
        assert card["brier"] == pytest.approx(expected["brier"], rel=1e-12), path
        assert card["log_score"] == pytest.approx(expected["log_score"], rel=1e-12)
    # Shorter lists do not say how many classes there are.
    write(pipeline, [{"label": t, "out": s[:2]} for t, s in zip(truth, scored, strict=True)])
    with pytest.raises(vx.InputError, match="line 1 names 2 of the 3 that occur"):
        open_lists(pipeline)
    assert not open_lists(pipeline, classes=names.tolist()).complete
    write(pipeline, [{"label": "emu", "out": s} for s in scored])
    with pytest.raises(vx.InputError, match="line 1 has 'emu', and the classes are"):
        open_lists(pipeline)


def test_labels_that_are_only_numbered_stand_for_their_numbers(tmp_path):
    out = [{"label": "LABEL_1", "score": 0.9}, {"label": "LABEL_0", "score": 0.1}]
    assert open_lists(write(tmp_path / "a.jsonl", [{"label": 1, "out": out}] * 2)).y == ["LABEL_1"] * 2


def test_outcomes_may_be_positions_where_the_order_of_the_classes_is_known(tmp_path):
    records = [{"label": i, "classes": ["cat", "dog"], "probs": [0.9, 0.1]} for i in (0, 1)]
    read = open_lists(write(tmp_path / "a.jsonl", records))
    assert read.y == ["cat", "dog"]
    assert read.taken[1] == "outcomes: label (positions: 0 = cat, 1 = dog)"
    turned = {"label": 0, "classes": ["dog", "cat"], "probs": [0.8, 0.2]}
    with pytest.raises(vx.InputError, match="line 1 has '0', and the classes are 'cat' and 'dog'"):
        open_lists(write(tmp_path / "a.jsonl", [*records, turned]))
    assert open_lists(tmp_path / "a.jsonl", classes=["cat", "dog"]).y == ["cat", "dog", "cat"]


def test_a_file_of_columns_holds_no_lists(tmp_path):
    """Dense files stay what they are, also those that look like long tables or flat log-probabilities."""
    texts = {
        "binary.csv": "id,label,probability\n1,0,0.2\n2,1,0.7\n3,1,0.6\n",
        "grouped.csv": "patient_id,label,probability\n1,0,0.7\n1,1,0.7\n2,1,0.6\n",
        "dense.csv": "label,p_a,p_b\na,0.2,0.8\nb,0.5,0.5\n",
        "dense.jsonl": '{"label": "a", "p_a": 0.2, "p_b": 0.8}\n{"label": "b", "p_a": 0.5, "p_b": 0.5}\n',
        "column.jsonl": '{"label": 0, "probs": [0.2, 0.8]}\n{"label": 1, "probs": [0.5, 0.5]}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert not holds_lists(tmp_path / name), name
    flat = tmp_path / "logits.jsonl"
    flat.write_text('{"label": 0, "logit_0": -0.2, "logit_1": -2}\n')
    assert holds_lists(flat)
    assert not holds_lists(flat, logits=True)


# ---- lm-evaluation-harness sample logs ----------------------------------------------------------


def test_sample_logs_of_multiple_choice(tmp_path):
    rng = np.random.default_rng(0)
    values, y = rng.normal(-8, 2, (30, 4)), rng.integers(0, 4, 30)
    letters = [" A", " B", " C", " D"]
    path = write(
        tmp_path / "samples.jsonl", [sample(v, str(t), letters) for v, t in zip(values, y, strict=True)]
    )
    read = open_lists(path)
    assert read.are_distributions
    assert read.classes == ("A", "B", "C", "D")
    card = vx.evaluate(read.y, read.probabilities(), classes=read.classes)
    assert card["log_score"] == pytest.approx(vx.log_score(y, values, logits=True), rel=1e-12)
    # The older form has numbers and pairs of arguments; the target may be the text of a choice.
    old = [
        {
            "target": letters[t].strip(),
            "arguments": [["Q", c] for c in letters],
            "resps": [[[x, False]] for x in v],
        }
        for v, t in zip(values.tolist(), y, strict=True)
    ]
    assert open_lists(write(path, old)).y == read.y
    # Choices that differ from question to question are numbered, and may be more or fewer.
    other = [sample([-1.0, -2.0], "1", [" yes", " no"]), sample([-1.0, -2.0, -3.0], "0", [" x", " yy", " z"])]
    mixed = open_lists(write(path, other))
    assert (mixed.y, mixed.lists.n_classes, mixed.complete) == ([1, 0], 3, False)
    assert mixed.lists.unaccounted == pytest.approx([0, 0], abs=1e-12)
    by_length = open_lists(path, per_length=True).lists.to_dicts()[0]
    assert by_length[1] / by_length[0] == pytest.approx(math.exp(-2 / 2 + 1 / 3))


def test_skill_is_against_the_choices_of_each_question(tmp_path):
    """By hand: the Brier score of the same probability for each of k choices is 1 - 1/k."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, 60)
    values = [rng.normal(-8, 2, k) for k in sizes]
    y = [int(rng.integers(k)) for k in sizes]
    texts = [[f" {i} {j}" for j in range(k)] for i, k in enumerate(sizes)]
    records = [sample(v, str(t), own) for v, t, own in zip(values, y, texts, strict=True)]
    path = write(tmp_path / "samples.jsonl", records)
    read = open_lists(path)
    assert read.lists.choices.tolist() == sizes.tolist()
    assert read.lists[5:8].truncate(1).choices.tolist() == sizes[5:8].tolist()
    losses = [vx.brier([t], v[None], logits=True) for v, t in zip(values, y, strict=True)]
    expected = 1 - np.mean(losses) / np.mean(1 - 1 / sizes)
    handle = vx.scan(path)
    for given in ((handle,), (read.y, {"model": read.lists})):
        (model,) = vx.compare(*given, rule="brier", reference="uniform").models["brier"]
        assert model.skill == pytest.approx(expected)


def test_sample_logs_of_questions_with_more_choices_than_classes(tmp_path):
    path = write(tmp_path / "a.jsonl", [sample([-1.0] * 3, "0", [" x", " y", " z"])])
    with pytest.raises(vx.InputError, match=r"must have at most 2 choices.*line 1 has 3"):
        open_lists(path, classes=["x", "y"])
    read = open_lists(path, classes=["A", "B", "C", "D"])
    assert (read.y, read.lists.n_classes) == (["A"], 4)


def test_targets_of_sample_logs_that_are_no_choice(tmp_path):
    path = tmp_path / "a.jsonl"
    for target, texts in (("7", [" a", " b"]), ("[0, 1]", [" a", " b"]), ("0", [" 1", " 0"])):
        write(path, [sample([-1.0, -2.0], target, texts)])
        with pytest.raises(vx.InputError, match="line 1 has"):
            open_lists(path)
    assert open_lists(path, outcome="doc.answer").y == ["0"]
    generated = {"target": "18", "resps": [["It is 18"]], "filtered_resps": ["18"]}
    with pytest.raises(vx.InputError, match="none of them"):
        open_lists(write(path, [generated]))


# ---- ranked runs ----------------------------------------------------------------------------------


def test_ranked_runs_with_judgements(tmp_path):
    run, judged = tmp_path / "bm25.run", tmp_path / "qrels.txt"
    run.write_text("q1 Q0 d1 1 0.7 x\nq1 Q0 d2 2 0.2 x\nq2 Q0 d9 1 0.5 x\nq3 Q0 d1 1 0.4 x\n")
    judged.write_text("q1 0 d2 1\nq1 0 d3 0\nq2 0 d9 2\nq3 0 d1 1\nq3 0 d2 1\n")
    assert holds_lists(run)
    with pytest.raises(vx.InputError, match=r"line 4 holds \['d1', 'd2'\]"):
        open_lists(run, outcomes=judged, classes=1000)
    read = open_lists(run, outcomes=judged, classes=1000, invalid="skip")
    assert (read.ids, read.y) == (["q1", "q2"], ["d2", "d9"])
    assert read.lists.to_dicts() == [{"d1": 0.7, "d2": 0.2}, {"d9": 0.5}]
    run.write_text("q1 Q0 d1 1 12.5 x\n")
    with pytest.raises(vx.InputError, match=r"must lie between 0 and 1; line 1 holds 12\.5"):
        open_lists(run, outcomes=judged, classes=1000)
    run.write_text("q1 Q0 d1 1 0.5 x\nq2 Q0 d1 1 0.5 x\nq1 Q0 d2 2 0.1 x\n")
    with pytest.raises(vx.InputError, match="line 3 has 'q1' again"):
        open_lists(run, outcomes=judged, classes=1000)


# ---- stated probabilities --------------------------------------------------------------------------

STATED = [
    ({"A": "70%", "B": "about 20%", "C": 0.1}, [0.7, 0.2, 0.1]),
    ({"A": 1.0, "B": 1.0, "C": 1}, None),
    ({"A": "60", "B": "30", "C": "10"}, None),
    ({"A": 0, "B": 0, "C": 0}, None),
    ({"A": 0.5, "B": None, "C": "unsure"}, None),
    ({"A": 0.3, "B": 0.3, "C": 0.3}, None),
]


def test_stated_probabilities(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"answer": "A", "probabilities": row} for row, _ in STATED])
    with pytest.raises(vx.InputError, match="line 5 has 2 without one") as caught:
        open_lists(path)
    # One of six is too many to be left out on advice.
    assert {"missing"} == {name for r in caught.value.remedies for name in r.options}
    assert "Leaving out 1 of 6 records (16.7%) would bias every result" in str(caught.value)
    for right, options in ((99, {"normalize", "invalid"}), (97, {"normalize"})):
        rows = [{"answer": "A", "probabilities": STATED[i // right][0]} for i in range(100)]
        with pytest.raises(vx.InputError, match=r"must sum to 1|between 0 and 1") as caught:
            open_lists(write(tmp_path / "b.jsonl", rows), classes=["A", "B", "C"])
        assert options == {name for r in caught.value.remedies for name in r.options}
    # Left out.
    read = open_lists(path, classes=["A", "B", "C"], invalid="skip")
    assert read.lists.to_dicts() == [pytest.approx({"A": 0.7, "B": 0.2, "C": 0.1})]
    assert read.skipped.rows == (1, 2, 3, 4, 5)
    assert sum(read.skipped.reasons.values()) == 5
    # Divided by their sums; the one that sums to zero cannot be.
    options = {"classes": ["A", "B", "C"], "normalize": True, "missing": "omit"}
    with pytest.raises(vx.InputError, match="line 4 sums to 0"):
        open_lists(path, **options)
    read = open_lists(path, invalid="skip", **options)
    third = {"A": pytest.approx(1 / 3), "B": pytest.approx(1 / 3), "C": pytest.approx(1 / 3)}
    assert read.lists.to_dicts()[1] == third
    assert read.lists.to_dicts()[2] == pytest.approx({"A": 0.6, "B": 0.3, "C": 0.1})
    assert read.lists.to_dicts()[3] == {"A": 0.5}
    assert {k: read.counts[k] for k in ("divided", "missing", "from_text")} == {
        "divided": 3,
        "missing": 2,
        "from_text": 2,
    }
    # As lists with their missing mass: there is a fourth class, "none of these".
    read = open_lists(path, classes=["A", "B", "C", "other"], missing="omit", invalid="skip")
    assert read.lists.unaccounted == pytest.approx([0, 1, 0.5, 0.1], abs=1e-9)


def test_other_tokens_than_the_answers_can_be_left_out(tmp_path):
    records = [{"outcome": "A", "top_logprobs": {"A": -0.5, "B": -1.5, "The": -2.0}}]
    path = write(tmp_path / "a.jsonl", records)
    with pytest.raises(vx.InputError, match="line 1 lists 'The'"):
        open_lists(path, classes=["A", "B"])
    read = open_lists(path, classes=["A", "B"], others="omit", normalize=True)
    total = math.exp(-0.5) + math.exp(-1.5)
    assert read.lists.to_dicts() == [
        pytest.approx({"A": math.exp(-0.5) / total, "B": math.exp(-1.5) / total})
    ]
    assert read.counts["probability_omitted"] == pytest.approx(math.exp(-2))


def test_lists_that_lack_an_answer_are_divided_by_the_sum_of_what_is_there(tmp_path):
    rows = [{"A": 0.5, "B": 0.2, "C": 0.1, "The": 0.1}, {"A": 0.6, "The": 0.3}, {"The": 0.9}]
    rows += [{"B": 0.25, "A": 0.5, "I": 0.25}]
    records = [{"outcome": "A", "top_logprobs": {k: math.log(t) for k, t in row.items()}} for row in rows]
    path = write(tmp_path / "a.jsonl", records)
    read = open_lists(path, classes=["A", "B", "C"], others="omit", normalize=True)
    expected = [{"A": 0.625, "B": 0.25, "C": 0.125}, {"A": 1.0}, {}, {"A": 2 / 3, "B": 1 / 3}]
    assert read.lists.to_dicts() == [pytest.approx(row) for row in expected]
    assert read.lists.unaccounted.tolist() == [0, 0, 1, 0]
    assert (read.counts["divided"], read.counts["lacking"]) == (3, 3)
    assert any("Lists that lack a class: 3 of 4 lists." in note for note in read.notes)
    # The dropped mass is for nobody: the same as the distributions over the answers alone.
    dense = [[row.get(name, 0.0) for name in "ABC"] if row else [1 / 3] * 3 for row in expected]
    assert vx.brier(read.y, read.lists) == pytest.approx(vx.brier([0] * 4, dense), rel=1e-12)
    # Without others left out, what a list lacks stays with the classes it does not name.
    plain = write(tmp_path / "b.jsonl", [{"outcome": "A", "top_logprobs": {"A": math.log(0.6)}}])
    assert open_lists(plain, classes=["A", "B", "C"], normalize=True).lists.to_dicts() == [{"A": 0.6}]


def test_accuracy_does_not_depend_on_how_a_file_is_read(tmp_path):
    rng = np.random.default_rng(1)
    p, y = rng.multinomial(3, np.ones(4) / 4, 120) / 3, rng.integers(0, 4, 120)
    rows = [sorted(zip("ABCD", row.tolist(), strict=True), key=lambda pair: -pair[1]) for row in p]
    rng.shuffle(rows[0])
    path = write(
        tmp_path / "a.jsonl",
        [{"outcome": "ABCD"[o], "probs": dict(row)} for row, o in zip(rows, y, strict=True)],
    )
    expected = pytest.approx((p.argmax(axis=1) == y).mean(), rel=1e-14)
    # Lists are in the order of their probabilities, which says nothing about the order of the classes.
    whole = open_lists(path)
    assert whole.are_distributions
    assert whole.classes == tuple("ABCD")
    assert vx.evaluate(np.array(whole.y), whole.probabilities(), classes=list("ABCD")).accuracy == expected
    for classes in (None, 4, 7, ["A", "B", "C", "D"]):
        read = open_lists(path, classes=classes)
        assert vx.evaluate(read.y, read.lists).accuracy == expected
    assert vx.evaluate(vx.scan(path, classes=7, lists=True)).accuracy == expected
    dicts = vx.TopLists.from_dicts([dict(row) for row in rows], n_classes=4)
    assert vx.evaluate(["ABCD"[o] for o in y], dicts).accuracy == expected


def test_weights_and_groups(tmp_path):
    path = write(tmp_path / "b.jsonl", [{**GOOD, "w": 2.5, "site": "n"}, {**GOOD, "w": 1, "site": "s"}])
    read = open_lists(path, classes=10, weights="w", groups="site")
    assert (read.weights.tolist(), read.groups.tolist()) == ([2.5, 1.0], ["n", "s"])
    path = write(tmp_path / "a.jsonl", [{**GOOD, "w": "x"}])
    with pytest.raises(vx.InputError, match="line 1 holds 'x'"):
        open_lists(path, classes=10, weights="w")


# ---- the documentation -----------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "listfiles.md"
ROWS = dict(re.findall(r"^\| `([a-z.-]+)` \| .* \| `(.*)` \|$", PAGE.read_text(), re.MULTILINE))


def test_every_shape_is_documented():
    assert set(ROWS) == set(ALL_SHAPES)


@pytest.mark.parametrize("shape", [name for name, text in ROWS.items() if text.startswith("{")])
def test_the_records_of_the_documentation_have_their_shape(shape, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(ROWS[shape])
    p = [0.9, 0.1] if shape in ("pipeline", "arrays", "probabilities") else [math.exp(-0.1), math.exp(-2.4)]
    p = np.array(p) / sum(p) if shape in ("lm-eval", "olmes") else p
    read = open_lists(path, classes=["A", "B"] if sum(p) == 1 else 3)
    assert (read.shape, read.y) == (shape, ["A"])
    assert read.lists.to_dicts() == [{"A": pytest.approx(p[0]), "B": pytest.approx(p[1])}]


# ---- the commands ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("lists")
    demofiles.write_all(path)
    return path


def run(folder, *arguments):
    return verax(*(folder / a if str(a).endswith((".jsonl", ".csv")) else a for a in arguments))


def test_evaluate_scores_sample_logs_as_distributions(folder):
    result = run(folder, "evaluate", "samples.jsonl", "--json", "--require", "accuracy>=0")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    read = open_lists(folder / "samples.jsonl")
    card = vx.evaluate(read.y, read.probabilities(), classes=read.classes)
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(card["brier"], rel=1e-12)
    assert found["card"]["classes"] == list("ABCD")
    assert math.isfinite(found["calibration"]["skill"])
    assert found["met"] is True
    # Ordered choices have ordinal scores.
    ordered = run(folder, "evaluate", "samples.jsonl", "--ordered", "--classes", "A,B,C,D", "--json")
    assert "rps" in json.loads(ordered.stdout)["card"]["scores"], ordered.stderr


@pytest.mark.long
def test_evaluate_and_toplist_give_lists_the_same_scores(folder):
    options = ("--classes", 50000, "--outcomes", "gold.csv", "--id", "custom_id", "--skip-invalid", "--json")
    found = json.loads(run(folder, "evaluate", "batch.jsonl", *options).stdout)
    other = json.loads(run(folder, "toplist", "batch.jsonl", *options).stdout)
    assert found["card"]["scores"] == other["scores"]
    assert found["card"]["skipped"]["reasons"] == {"requests that failed": 10}
    assert found["lists"]["shape"] == "chat"
    read = open_lists(
        folder / "batch.jsonl", classes=50000, outcomes=folder / "gold.csv", id="custom_id", invalid="skip"
    )
    card = vx.evaluate(read.y, read.lists)
    assert other["scores"]["padded(brier)"]["mean"] == card["brier"]
    assert other["metrics"]["coverage"]["mean"] == card.coverage


@pytest.mark.parametrize(
    ("bound", "code", "said"),
    [
        ("coverage>0.9", 0, "met     coverage>0.9: coverage is 1"),
        ("brier<0.01", 1, "FAILED  brier<0.01: padded(brier) is 0.0"),
        ("accuracy.low>0.5", 0, "met     accuracy.low>0.5: low end of accuracy (Clopper-Pearson) is 0.8"),
        ("length<=2", 0, "met     length<=2: length is 2"),
        ("top_2_error<=0", 0, "met     top_2_error<=0"),
        ("coverage<0.9", 2, "higher is better for coverage"),
        ("skill>0", 0, "met     skill>0: skill is 0.9"),
        ("skill.low>0.99", 1, "FAILED  skill.low>0.99: low end of skill is"),
        ("ece<0.5", 0, "met     ece<0.5: ece is"),
        ("ece>0.5", 2, "lower is better for ece"),
        ("ece.high<0.5", 2, "no interval is known for ece"),
        ("auc>0.5", 2, "auc needs full distributions"),
        ("qwk>0", 2, "qwk needs full distributions"),
        ("length.high<3", 2, "neither end of the interval of length"),
        ("top_20_error<1", 2, "no list has the number of classes"),
        ("covrage>0.9", 2, "covrage"),
    ],
)
def test_bounds_on_lists(bound, code, said, folder):
    result = run(folder, "toplist", "completions.jsonl", "--classes", 50000, "--require", bound)
    assert result.returncode == code
    assert said in result.stdout + result.stderr


def test_toplist_reads_standard_input(folder):
    stdin = SimpleNamespace(buffer=io.BytesIO((folder / "completions.jsonl").read_bytes()))
    with mock.patch("sys.stdin", stdin):
        piped = verax("toplist", "-", "--classes", 50000, "--json")
    assert piped.returncode == 0, piped.stderr
    read = run(folder, "toplist", "completions.jsonl", "--classes", 50000, "--json")
    assert json.loads(piped.stdout)["scores"] == json.loads(read.stdout)["scores"]


def test_distributions_have_weights_groups_and_a_report(tmp_path):
    rng = np.random.default_rng(3)
    records = [
        sample(rng.normal(size=3), str(i % 3), [" A", " B", " C"], w=1 + i % 2, site=i % 12)
        for i in range(60)
    ]
    path, page = write(tmp_path / "a.jsonl", records), tmp_path / "page.html"
    options = ("--weights", "w", "--groups", "site", "--html", page, "--json")
    found = json.loads(verax("evaluate", path, *options).stdout)
    read = open_lists(path, weights="w", groups="site")
    expected = vx.evaluate(
        read.y, read.probabilities(), classes=read.classes, weights=read.weights, groups=read.groups
    )
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(expected["brier"], rel=1e-12)
    assert found["card"]["scores"]["brier"]["interval"] == pytest.approx(expected.scores["brier"].interval)
    assert page.stat().st_size > 10_000


def test_lists_of_some_classes_have_no_subgroups_and_no_order(folder):
    for option in (("--by", "site"), ("--ordered",)):
        assert run(folder, "evaluate", "completions.jsonl", "--classes", 50000, *option).returncode == 2


@pytest.mark.parametrize("shape", ["lm-eval", "chat", "pipeline", "long"])
def test_real_answers_of_a_language_model(shape, tmp_path):
    """LLaMA on 2,886 questions of MMLU, written in four shapes: the card of the dense rows."""
    data = realdata.load("llm-mmlu-conformal", "mmlu_llama.npz")
    p, y = data["probs"][0].astype(float)[:400], data["labels"][:400].astype(int)
    p /= p.sum(axis=1, keepdims=True)
    letters = "ABCD"
    records = []
    for row, truth in zip(p.tolist(), y.tolist(), strict=True):
        logs = {letter: math.log(value) for letter, value in zip(letters, row, strict=True)}
        scored = [{"label": letter, "score": value} for letter, value in zip(letters, row, strict=True)]
        records.append(
            {
                "lm-eval": sample(list(logs.values()), str(truth), [f" {c}" for c in letters]),
                "chat": {"answer": letters[truth], **chat(logs)},
                "pipeline": {"answer": letters[truth], "out": scored},
            }.get(shape)
        )
    if shape == "long":
        path = tmp_path / "long.csv"
        lines = [
            f"{i},{c},{v!r},{letters[t]}"
            for i, t in enumerate(y)
            for c, v in zip(letters, p[i].tolist(), strict=True)
        ]
        path.write_text("id,class,probability,truth\n" + "\n".join(lines))
    else:
        path = write(tmp_path / "a.jsonl", records)
    read = open_lists(path, classes=list(letters))
    card = vx.evaluate(read.y, read.lists)
    expected = vx.evaluate(y, p)
    for name in ("brier", "log_score", "spherical"):
        assert card[name] == pytest.approx(expected[name], rel=1e-9)
    assert card.coverage == 1


def test_two_columns_identify_the_rows_of_long_tables_and_of_their_outcomes(tmp_path):
    rows = [(f"p{i // 2}", i % 2) for i in range(6)]
    lines = [f"{a},{b},{name},{p}" for a, b in rows for name, p in (("yes", 0.6), ("no", 0.3))]
    (tmp_path / "long.csv").write_text("\n".join(["patient,visit,class,probability", *lines]))
    gold = [f"{a},{b},{'yes' if b else 'no'}" for a, b in reversed(rows)]
    (tmp_path / "gold.csv").write_text("\n".join(["patient,visit,label", *gold]))
    found = open_lists(
        tmp_path / "long.csv", id=["patient", "visit"], classes=5, outcomes=tmp_path / "gold.csv"
    )
    assert found.ids == [f"{a}, {b}" for a, b in rows]
    assert found.y == ["yes" if b else "no" for _, b in rows]
