"""Lists that are easily misread: what is not one list per row is put right, said and counted, or refused."""

from __future__ import annotations

import json
import math

import pytest

import realdata
import verax as vx
from commandline import verax
from listrecords import ANSWERS, FIRST, OF_TOKENS, SAMPLES, chat_of, sample
from verax import files
from verax.files.lists import open_lists

LETTERS = (" A", " B", " C", " D")


def write(path, records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


# ---- lm-evaluation-harness --------------------------------------------------------------------------

CONDITIONAL = [[-1.0, -2.0, -3.0, -4.0], [-2.5, -0.5, -1.5, -3.5]]


def with_unconditional(values, target, texts=LETTERS, **more):
    """A record of a task with acc_mutual_info: a request with an empty context follows for every choice."""
    record = sample([*values, *(-0.1 for _ in values)], target, [*texts, *(text.strip() for text in texts)])
    for place in range(len(values), 2 * len(values)):
        record["arguments"][f"gen_args_{place}"]["arg_0"] = ""
    return {**record, "acc_mutual_info": 1.0, **more}


@pytest.mark.parametrize("change", ["as written", "list", "no arguments", "blank contexts"])
def test_unconditional_log_likelihoods_are_no_classes(change, tmp_path):
    records = [with_unconditional(values, i) for i, values in enumerate(CONDITIONAL)]
    for record in records:
        if change == "list":
            record["arguments"] = [[each["arg_0"], each["arg_1"]] for each in record["arguments"].values()]
            del record["acc_mutual_info"]
        elif change == "no arguments":
            del record["arguments"]
        elif change == "blank contexts":
            for each in record["arguments"].values():
                each["arg_0"] = ""
    read = open_lists(write(tmp_path / "samples.jsonl", records))
    assert (read.lists.n_classes, read.counts["unconditional"]) == (4, 2)
    assert "(acc_mutual_info), not read: 2 of 2 lists" in read.notes[0]
    for row, values in zip(read.probabilities(), CONDITIONAL, strict=True):
        whole = sum(map(math.exp, values))
        assert row.tolist() == pytest.approx([math.exp(value) / whole for value in values])
    assert vx.evaluate(read.y, read.probabilities(), classes=read.classes)["accuracy"] == 1


def test_an_even_number_of_choices_is_not_halved(tmp_path):
    # Sentences that are scored whole, with an empty context each, and choices that are contexts.
    whole = sample([-1, -2, -3, -4], 0, ["a b", "b a", "a c", "c a"])
    for each in whole["arguments"].values():
        each["arg_0"] = ""
    assert open_lists(write(tmp_path / "a.jsonl", [whole])).lists.n_classes == 4
    inputs = sample([-1, -2], 1, [" the end"] * 2)
    inputs["arguments"]["gen_args_1"]["arg_0"] = "Other"
    read = open_lists(write(tmp_path / "b.jsonl", [inputs]))
    assert (read.lists.n_classes, read.y) == (2, [1])


def test_questions_with_several_right_choices_are_refused(tmp_path):
    targets = {"choices": [text.strip() for text in LETTERS], "labels": [1, 1, 0, 0]}
    record = sample(CONDITIONAL[0], 0, LETTERS, doc={"mc2_targets": targets})
    path = write(tmp_path / "samples.jsonl", [record])
    with pytest.raises(vx.InputError, match="must have one correct choice; line 1 has 2 of 4"):
        open_lists(path)
    targets["labels"] = [1, 0, 0, 0]
    assert open_lists(write(path, [record])).y == ["A"]


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("invalid", ["raise", "skip"])
def test_targets_that_count_from_one_are_refused(n, invalid, tmp_path):
    # Without those that are too large, the others would mean the choice after their own.
    records = [sample([-1.0] * n, str(1 + i % n), [f"choice {c}" for c in "abcd"[:n]]) for i in range(8)]
    path = write(tmp_path / "samples.jsonl", records)
    with pytest.raises(vx.InputError, match="from 1") as caught:
        open_lists(path, invalid=invalid)
    assert list(caught.value.values) == [str(n)]
    assert "skip" not in str(caught.value)
    # One 0 shows that they count from 0; then the largest is an ordinary mistake.
    read = open_lists(write(path, [*records, {**records[0], "target": 0}]), invalid="skip")
    assert read.skipped.count == 8 // n


@pytest.mark.parametrize("invalid", ["raise", "skip"])
def test_positions_of_named_classes_that_count_from_one_are_refused(invalid, tmp_path):
    records = [{"answer": 1 + i % 3, "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2}} for i in range(6)]
    path = write(tmp_path / "records.jsonl", records)
    for classes in (None, ["a", "b", "c"]):
        with pytest.raises(vx.InputError, match="they seem to count from 1"):
            open_lists(path, classes=classes, invalid=invalid)
    with pytest.raises(vx.InputError, match="they seem to count from 1"):
        vx.evaluate(vx.scan(path, target="answer", classes=["a", "b", "c"], lists=True, invalid=invalid))


# ---- responses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SAMPLES)
def test_several_samples_are_counted(shape, tmp_path):
    field = SAMPLES[shape]
    records = []
    for i in range(3):
        both = [OF_TOKENS[shape]([answer])[field][0] for answer in ANSWERS]
        records.append({"answer": "B", field: both if i else both[:1]})
    read = open_lists(write(tmp_path / "records.jsonl", records), classes=1000)
    assert read.counts["several"] == 2
    assert read.notes == (
        "Records with several sampled answers, of which only the first is read: 2 of 3 lists.",
    )
    assert [max(row, key=row.get) for row in read.lists] == ["B"] * 3


@pytest.mark.parametrize("shape", OF_TOKENS)
def test_answers_after_other_tokens_are_not_accuracy_zero(shape, tmp_path):
    fixed = [{"answer": "AB"[i], **OF_TOKENS[shape]([FIRST, FIRST, each])} for i, each in enumerate(ANSWERS)]
    path = write(tmp_path / "fixed.jsonl", fixed)
    for options in ({"classes": 1000}, {"classes": list("ABCD"), "others": "omit", "normalize": True}):
        with pytest.raises(
            vx.InputError, match="in 2 of the first 2 records the first token is no"
        ) as caught:
            open_lists(path, **options)
        assert caught.value.argument == "position"
        assert caught.value.remedies[0].options == {"position": 2}
    with pytest.raises(vx.InputError, match="the first token is no answer, such as 'The'"):
        vx.scan(path, target="answer", classes=1000)
    # Reasoning of different lengths: the answer is known by its distance from the end.
    loose = [
        {"answer": "AB"[i], **OF_TOKENS[shape]([FIRST] * (i + 1) + [each])} for i, each in enumerate(ANSWERS)
    ]
    path = write(tmp_path / "loose.jsonl", loose)
    with pytest.raises(vx.InputError) as caught:
        open_lists(path, classes=1000)
    assert caught.value.remedies[0].options == {"position": -1}
    read = open_lists(path, classes=1000, position=-1)
    assert [max(row, key=row.get) for row in read.lists] == ["B", "A"]
    # The first token is scored where the caller says so, and where it is an answer as often as not.
    assert open_lists(path, classes=1000, position=0).lists.n_rows == 2
    early = [{"answer": "A", **OF_TOKENS[shape]([ANSWERS[1], FIRST, ANSWERS[0]])}]
    assert open_lists(write(path, [*early, fixed[0]]), classes=1000).lists.to_dicts()[0]["A"] > 0.5


def test_responses_without_log_probabilities_are_refused_first(tmp_path):
    # Before the number of classes, the outcomes and the ids are asked for.
    response = {"choices": [{"message": {"content": "A"}, "logprobs": None}]}
    records = [{"custom_id": i, "response": {"status_code": 200, "body": response}} for i in range(3)]
    path = write(tmp_path / "batch.jsonl", records)
    for options in ({}, {"classes": 1000}, {"invalid": "skip"}):
        with pytest.raises(
            vx.InputError, match="line 1 holds a response without 'logprobs', as do all 3"
        ) as caught:
            open_lists(path, **options)
        assert "skip" not in str(caught.value)
    # Where only some lack them, these can be left out.
    records[1]["response"]["body"] = chat_of([ANSWERS[0]])
    with pytest.raises(vx.InputError, match="must be stated"):
        open_lists(write(path, records))
    (tmp_path / "gold.csv").write_text("custom_id,answer\n0,B\n1,B\n2,B\n")
    options = {"classes": 1000, "outcomes": tmp_path / "gold.csv", "id": "custom_id"}
    assert open_lists(path, invalid="skip", **options).skipped.count == 2


# ---- rows that are not what they seem ----------------------------------------------------------------


def test_records_of_one_question_are_no_independent_rows(tmp_path):
    # One line per filter: the intervals are those of the questions.
    records = [
        sample([-1.0 - i % 3, -2.0, -1.5], i % 3, LETTERS[:3], doc_id=i, doc={"n": i}) for i in range(12)
    ]
    once = open_lists(write(tmp_path / "once.jsonl", records))
    assert once.groups is None
    twice = [{**record, "filter": name} for name in ("none", "other") for record in records]
    read = open_lists(write(tmp_path / "twice.jsonl", twice))
    assert read.notes[-1].startswith("The 24 records are about 12 questions;")
    card = vx.evaluate(read.y, read.probabilities(), classes=read.classes, groups=read.groups)
    alone = vx.evaluate(once.y, once.probabilities(), classes=once.classes, groups=list(range(12)))
    found, expected = card.scores["brier"].interval, alone.scores["brier"].interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    # Numbers start anew in every task: other documents are other questions.
    other = [{**record, "doc": {"n": -1 - i}} for i, record in enumerate(records)]
    assert open_lists(write(tmp_path / "tasks.jsonl", [*records, *other])).groups is None
    # Groups that the caller names are those.
    named = open_lists(tmp_path / "twice.jsonl", groups="filter")
    assert set(named.groups.tolist()) == {"none", "other"}


def test_repeated_ids_form_groups(tmp_path):
    records = [
        {"id": i % 4, "custom_id": f"q{i % 3}", "answer": "B", **chat_of([ANSWERS[0]])} for i in range(12)
    ]
    path = write(tmp_path / "records.jsonl", records)
    assert len(set(open_lists(path, classes=9, id="id").groups.tolist())) == 4
    assert len(set(open_lists(path, classes=9).groups.tolist())) == 3


def test_names_that_occur_are_not_silently_all_classes(tmp_path):
    records = [
        {"label": f"s{i}", "classes": [f"s{i}", f"s{i + 1}"], "probabilities": [0.7, 0.3]} for i in range(5)
    ]
    path = write(tmp_path / "records.jsonl", records)
    read = open_lists(path)
    assert read.lists.n_classes == 6
    assert read.notes[0].startswith("The 6 names that occur are assumed to be all classes; penalized scores")
    assert open_lists(path, classes=1000).notes == ()
    # An outcome that no list names is a class, too: to leave it out would drop what the model missed.
    write(path, [*records, {**records[0], "label": "unseen"}])
    for invalid in ("raise", "skip"):
        with pytest.raises(vx.InputError, match="line 6 has 'unseen', which no list names") as caught:
            open_lists(path, invalid=invalid)
        assert caught.value.argument == "classes"
        assert "skip" not in str(caught.value)
    assert open_lists(path, classes=1000).lists.n_rows == 6


def test_empty_lists_are_counted(tmp_path):
    records = [{"label": "a", "classes": ["a", "b"], "probabilities": [0.7, 0.2]}] * 3
    records += [{"label": "a", "classes": [], "probabilities": []}] * 2
    read = open_lists(write(tmp_path / "records.jsonl", records), classes=10)
    assert read.counts["empty"] == 2
    assert read.notes == ("Empty lists, scored as equal probabilities of all classes: 2 of 5 lists.",)
    # Also those of which nothing is left.
    tokens = [
        {"answer": "A", "top_logprobs": {"The": -0.1, "A": -3}},
        {"answer": "A", "top_logprobs": {"x": -1}},
    ]
    read = open_lists(write(tmp_path / "tokens.jsonl", tokens), classes=list("AB"), others="omit")
    assert read.counts["empty"] == 1


def test_outcomes_that_no_list_has_first_are_noted(tmp_path):
    records = [{"answer": "AB"[i % 2], "top_logprobs": {"The": -0.1, "A": -3, "B": -4}} for i in range(12)]
    read = open_lists(write(tmp_path / "records.jsonl", records), classes=10)
    assert read.notes[0].startswith(
        "No outcome, such as 'A', is the likeliest class of any list; these are 'The'."
    )
    records[5]["top_logprobs"] = {"A": -0.1}
    assert open_lists(write(tmp_path / "records.jsonl", records), classes=10).notes == ()


# ---- blank cells -------------------------------------------------------------------------------------


def table_of(rows, y, path, *, logarithms=False):
    """A table of tokens: a column per answer, blank where the interface does not list it."""

    def cell(value):
        return "" if value is None else repr(math.log(value) if logarithms else value)

    lines = [",".join([truth, *map(cell, row)]) for truth, row in zip(y, rows, strict=True)]
    path.write_text("answer,A,B,C,D\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("logarithms", [False, True])
def test_blank_cells_are_classes_that_are_not_listed(logarithms, tmp_path):
    rows = [[0.7, 0.2, 0.05, 0.05], [0.98, None, None, None], [None, 0.6, 0.3, None], [None] * 4]
    y = ["A", "B", "C", "D"]
    path = table_of(rows, y, tmp_path / "table.csv", logarithms=logarithms)
    read = open_lists(path, shape="wide")
    expected = [{c: v for c, v in zip("ABCD", row, strict=True) if v is not None} for row in rows]
    for found, wanted in zip(read.lists.to_dicts(), expected, strict=True):
        assert found == pytest.approx(wanted)
    assert (read.y, read.lists.n_classes, read.counts["blank"], read.counts["empty"]) == (y, 4, 9, 1)
    assert "Blank entries, read as classes that are not listed: 9." in read.notes
    assert open_lists(path, shape="wide", classes=1000).lists.n_classes == 1000
    lists = vx.TopLists.from_dicts(expected, n_classes=4)
    assert vx.brier(read.y, read.lists) == pytest.approx(vx.brier(y, lists))
    # A class that never happened: blank cells leave no sums that would tell that its column is one.
    y[1] = "A"
    table_of(rows, y, path, logarithms=logarithms)
    if logarithms:
        with pytest.raises(vx.InputError, match="'B' holds numbers from -inf to 0, and no outcome is called"):
            open_lists(path, shape="wide")
    assert open_lists(path, shape="wide", classes=list("ABCD")).lists.to_dicts() == read.lists.to_dicts()
    # Text that is no number is not blank.
    path.write_text(path.read_text().replace("0.98" if not logarithms else repr(math.log(0.98)), "unsure"))
    with pytest.raises(vx.InputError, match="must give every class a number; line 3"):
        open_lists(path, shape="wide", classes=list("ABCD"))


def test_tables_with_blank_cells_are_divided_by_the_sums_of_what_is_listed(tmp_path):
    # The rest belongs to other tokens, whether or not a row lists all answers.
    rows = [[0.5, 0.2, 0.1, 0.1], [0.6, None, None, 0.2]]
    read = open_lists(
        table_of(rows, "AD", tmp_path / "table.csv"), shape="wide", classes=list("ABCD"), normalize=True
    )
    first, second = read.lists.to_dicts()
    assert (first["A"], first["D"]) == pytest.approx((0.5 / 0.9, 0.1 / 0.9))
    assert second == pytest.approx({"A": 0.75, "D": 0.25})
    assert any(note.startswith("Lists that lack a class: 1 of 2 lists.") for note in read.notes)


def test_rows_with_blank_cells_are_not_advised_away(tmp_path):
    path = table_of([[0.98, None, None, None], [0.4, 0.3, 0.2, 0.1]], "AB", tmp_path / "table.csv")
    refused = verax("evaluate", path)
    assert refused.returncode == 2
    assert (
        "Pass --shape wide to read lists, where a blank cell is a class that is not listed" in refused.stderr
    )
    result = verax("evaluate", path, "--shape", "wide", "--json")
    assert json.loads(result.stdout)["card"]["n_rows"] == 2
    skipped = verax("evaluate", path, "--skip-invalid")
    assert "Caution: 50.0% of the rows were left out." in skipped.stdout


def test_blank_log_probabilities_of_flat_records(tmp_path):
    records = [
        {"answer": "A", "A": -0.1, "B": None, "C": -4.0},
        {"answer": "B", "A": -2.0, "B": -0.3, "C": None},
    ]
    read = open_lists(write(tmp_path / "flat.jsonl", records), classes=100)
    assert [set(row) for row in read.lists] == [{"A", "C"}, {"A", "B"}]
    assert read.counts["blank"] == 2


def test_real_answers_with_blanks_keep_their_accuracy(tmp_path):
    """LLaMA on questions of MMLU, of which answers below 8% are blank: leaving such rows out biases."""
    data = realdata.load("llm-mmlu-conformal", "mmlu_llama.npz")
    p, y = data["probs"][0].astype(float)[:600], data["labels"][:600].astype(int)
    p /= p.sum(axis=1, keepdims=True)
    rows = [[value if value >= 0.08 else None for value in row] for row in p.tolist()]
    path = table_of(rows, ["ABCD"[truth] for truth in y], tmp_path / "table.csv")
    accuracy = (p.argmax(axis=1) == y).mean()
    read = open_lists(path, shape="wide")
    assert vx.evaluate(read.y, read.lists)["accuracy"] == pytest.approx(accuracy)
    skipped = vx.evaluate(vx.scan(path, target="answer", invalid="skip"))
    assert skipped.skipped.caution
    assert skipped["accuracy"] < accuracy


def test_files_with_different_invalid_rows_stay_matched(tmp_path):
    # Matched by what is left, the rows between the two invalid ones would be compared with their neighbours.
    def stated(i, invalid):
        p = 0.5 + 0.04 * i
        return {"label": "a", "probabilities": {"a": 0.9, "b": 0.9} if invalid else {"a": p, "b": 1 - p}}

    paths = {
        name: write(tmp_path / f"{name}.jsonl", [stated(i, i == bad) for i in range(12)])
        for name, bad in (("first", 3), ("second", 7))
    }
    found = files.match({name: open_lists(path, invalid="skip") for name, path in paths.items()})
    assert found.models["first"].to_dicts() == found.models["second"].to_dicts()
    assert (found.skipped.n_given, found.skipped.count, found.skipped.rows) == (12, 2, (3, 7))
    # Files of different lengths are refused as ever.
    write(paths["second"], [stated(i, i == 7) for i in range(13)])
    with pytest.raises(vx.InputError, match="must have the same rows"):
        files.match({name: open_lists(path, invalid="skip") for name, path in paths.items()})


def test_several_files_say_what_one_file_says(tmp_path):
    stated = [{"label": "a", "probabilities": {"a": 0.5 + 0.1 * i, "b": 0.6}} for i in range(4)]
    stated += [{"label": "a", "probabilities": {"a": None, "b": None}}]
    write(tmp_path / "1.jsonl", stated[:2])
    write(tmp_path / "2.jsonl", stated[2:])
    options = ("--classes", "a,b", "--normalize", "--omit-missing", "--json")
    found = json.loads(verax("evaluate", tmp_path / "*.jsonl", *options).stdout)
    whole = json.loads(verax("evaluate", write(tmp_path / "whole.jsonl", stated), *options).stdout)
    assert found["lists"]["counts"] == whole["lists"]["counts"]
    assert found["lists"]["notes"] == found["notes"] == whole["lists"]["notes"]
    assert "4 of 5 lists were divided by their sums, 1.1 to 1.4." in found["notes"]
    assert "Empty lists, scored as equal probabilities of all classes: 1 of 5 lists." in found["notes"]


def test_records_of_one_question_in_several_files_are_noted(tmp_path):
    records = [sample([-1.0 - i % 3, -2.0], i % 2, LETTERS[:2]) for i in range(6)]
    write(tmp_path / "1.jsonl", records)
    write(tmp_path / "2.jsonl", [{**record, "filter": "other"} for record in records])
    handle = vx.scan(
        str(tmp_path / "*.jsonl"), target="target", classes=["A", "B"], lists={"shape": "lm-eval"}
    )
    vx.evaluate(handle)
    assert handle.notes[0].startswith(
        "The 12 records are about 6 questions, and are treated as independent rows"
    )


@pytest.mark.parametrize("target", ["9" * 5000, "-" + "9" * 5000, "--3", "²"])
def test_outcomes_that_only_look_like_numbers_are_refused(target, tmp_path):
    path = write(tmp_path / "samples.jsonl", [sample([-1.0, -2.0], target, LETTERS[:2], doc_hash=["odd"])])
    with pytest.raises(vx.InputError, match="must be the number"):
        open_lists(path)
    numbered = {"label": target, "classes": [1, 2], "probabilities": [0.5, 0.5]}
    with pytest.raises(vx.InputError, match="must be among the classes"):
        open_lists(write(path, [numbered]))
    named = {"label": target, "classes": ["a", "b"], "probabilities": [0.5, 0.5]}
    with pytest.raises(vx.InputError, match="must be among the classes"):
        open_lists(write(path, [named]), classes=["a", "b"])


@pytest.mark.parametrize("lines", ["null\n{}\n", "{}\n  null\n{}\n", "[]\n{}\n"])
def test_a_line_that_is_no_object_does_not_end_the_process(lines, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines.replace("{}", '{"label": 0, "p_0": 0.4, "p_1": 0.6}'))
    with pytest.raises(vx.InputError, match=r"Every line must be a JSON object; row [01] is"):
        files.open(path).read()


def test_entries_left_out_may_have_no_probability(tmp_path):
    record = {"answer": "a", "classes": ["a", "b"], "probabilities": [0.5, 0.0]}
    read = open_lists(write(tmp_path / "a.jsonl", [record]), classes=["a", "c"], others="omit")
    assert "1, with 0 of the probability on average." in read.notes[0]


def test_a_single_column_is_no_wide_table(tmp_path):
    path = tmp_path / "binary.csv"
    path.write_text("label,p\n0,0.3\n1,0.8\n1,0.4\n")
    with pytest.raises(vx.InputError, match="must have a column per class; 'p' holds"):
        open_lists(path, shape="wide")
