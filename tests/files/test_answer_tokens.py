"""Which token of which sampled answer is read, for every interface that gives log-probabilities."""

import json

import numpy as np
import pytest

import verax as vx
from listrecords import ANSWERS, FIRST, OF_TOKENS, SAMPLES, token
from verax.files.lists import open_lists

ANSWER, COLON = token("Answer", {"Answer": -0.1, "A": -3.0}), token(":", {":": -0.05, " is": -4.0})
SPACE = token(" (", {" (": -0.1, " A": -3.0})
# Maybe A. Answer: (B
REASONED = [FIRST, ANSWERS[1], ANSWER, COLON, SPACE, ANSWERS[0]]


def write(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def likeliest(read):
    return [max(row, key=row.get) for row in read.lists]


@pytest.mark.parametrize("shape", OF_TOKENS)
def test_the_token_after_a_text(shape, tmp_path):
    records = [{"answer": "B", **OF_TOKENS[shape]([FIRST] * i + REASONED)} for i in range(2)]
    path = write(tmp_path / "a.jsonl", records)
    read = open_lists(path, classes=1000, after="Answer:")
    assert likeliest(read) == ["B", "B"]
    assert read.taken[2] == "answers: token at the first match of 'Answer:'"
    # A group is the answer itself: here the first letter, or the last.
    assert likeliest(open_lists(path, classes=1000, after="([A-D])(?![a-z])")) == ["A", "A"]
    last = open_lists(path, classes=1000, after="([A-D])(?![a-z])", last_match=True)
    assert (likeliest(last), last.taken[2]) == (
        ["B", "B"],
        "answers: token at the last match of '([A-D])(?![a-z])'",
    )
    with pytest.raises(vx.InputError, match=r"an answer after 'Result:'; line 1 has no match") as caught:
        open_lists(path, classes=1000, after="Result:")
    assert caught.value.argument == "after"
    with pytest.raises(vx.InputError, match="ends with the match"):
        open_lists(path, classes=1000, after=r"\(B")


def test_a_later_answer_is_refused_with_the_option_that_finds_it(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"answer": "B", **OF_TOKENS["chat"](REASONED)}])
    with pytest.raises(vx.InputError, match=r"after=\.\.\. to read the token after a text"):
        open_lists(path, classes=1000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"after": "Answer: ("}, "must be a regular expression; 'Answer: \\(' is none"),
        ({"after": ""}, "must be a regular expression"),
        ({"after": "x", "position": 1}, "together with a position"),
        ({"last_match": True}, "needs a pattern"),
        ({"samples": "all"}, "samples"),
    ],
)
def test_options_that_do_not_fit(options, said, tmp_path):
    path = write(tmp_path / "a.jsonl", [{"answer": "B", **OF_TOKENS["chat"](REASONED)}])
    with pytest.raises(vx.InputError, match=said):
        open_lists(path, classes=1000, **options)


@pytest.mark.parametrize("shape", SAMPLES)
def test_sampled_answers_are_averaged_or_kept(shape, tmp_path):
    field = SAMPLES[shape]
    both = [OF_TOKENS[shape]([FIRST, answer])[field][0] for answer in ANSWERS]
    path = write(tmp_path / "a.jsonl", [{"answer": "B", field: both}, {"answer": "A", field: both[1:]}])
    repeats = open_lists(path, classes=10, position=1, samples="repeats")
    assert (likeliest(repeats), repeats.y) == (["B", "A", "A"], ["B", "B", "A"])
    assert repeats.groups.tolist() == [0, 0, 1]
    assert repeats.notes[0] == "Lists of one of several sampled answers, which form a group: 2 of 3 lists."
    pooled = open_lists(path, classes=10, position=1, samples="pool")
    assert pooled.notes == ("Records with several sampled answers, which are averaged: 1 of 2 lists.",)
    # As `combine` pools the lists of two forecasters.
    rows = repeats.lists.to_dicts()
    codes = {name: i for i, name in enumerate("ABCD")}
    one, two = (
        vx.TopLists.from_dicts([{codes[k]: v for k, v in row.items()}], n_classes=10) for row in rows[:2]
    )
    expected = vx.combine([one, two]).to_dicts()[0]
    assert {codes[k]: v for k, v in pooled.lists.to_dicts()[0].items()} == pytest.approx(expected)
    assert pooled.lists.to_dicts()[1] == rows[2]


def test_repeats_take_outcomes_of_another_file_in_order(tmp_path):
    both = [OF_TOKENS["chat"]([answer])["choices"][0] for answer in ANSWERS]
    path = write(tmp_path / "a.jsonl", [{"choices": both}, {"choices": both}])
    (tmp_path / "gold.txt").write_text("A\nB\n")
    read = open_lists(path, classes=10, samples="repeats", outcomes=tmp_path / "gold.txt")
    assert (read.y, read.groups.tolist()) == (["A", "A", "B", "B"], [0, 0, 1, 1])
    card = vx.evaluate(read.y, read.lists, groups=read.groups)
    assert card.accuracy == np.mean([0, 1, 1, 0])


def test_samples_without_log_probabilities_are_pooled_by_their_shares(tmp_path):
    texts = [["Answer: A", "So the answer: (B)", "Answer: A", "No idea"], ["answer: B"] * 4]
    rows = [
        {"label": "A", "choices": [{"message": {"role": "assistant", "content": text}} for text in own]}
        for own in texts
    ]
    path = tmp_path / "sampled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = open_lists(path, classes=["A", "B", "C"], samples="pool", after="(?i)answer:")
    # An answer without a match leaves its share to no class in particular.
    assert read.lists.to_dicts() == [{"A": 0.5, "B": 0.25}, {"B": 1.0}]
    assert (
        "Lists of the shares of sampled answers, which have no log-probabilities: 2 of 2 lists."
        in " ".join(read.notes)
    )
    whole = open_lists(path, classes=50, samples="pool")
    assert whole.lists.to_dicts()[1] == {"answer: B": 1.0}
    with pytest.raises(vx.InputError, match="must hold log-probabilities") as caught:
        open_lists(path, classes=["A", "B", "C"])
    assert {"samples": "pool"} in [dict(remedy.options) for remedy in caught.value.remedies]
    with pytest.raises(vx.InputError, match="must have an answer after"):
        open_lists(path, classes=["A", "B", "C"], samples="pool", after="Final:")
