"""Lists that are easily misread: what is not one list per row is put right, said and counted, or refused."""

from __future__ import annotations

import json
import math

import pytest

import verax as vx
from listrecords import sample
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
    with pytest.raises(vx.InputError, match="must have one right choice; line 1 has 2 of 4"):
        open_lists(path)
    targets["labels"] = [1, 0, 0, 0]
    assert open_lists(write(path, [record])).y == ["A"]
