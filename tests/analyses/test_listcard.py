"""The card of top lists, what it promises, and the comparison of lists of different length."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from sklearn.metrics import accuracy_score

import verax as vx
from verax.analyses.uncertainty_scores import doubt

SHOWN = ["padded(brier)", "padded(log_score)", "padded(spherical)", "padded(zero_one)"]


def problem(n=400, m=12, k=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(m, 0.4), n)
    y = np.array([rng.choice(m, p=row) for row in p])
    return y, p, vx.TopLists.from_probabilities(p, k)


def test_the_card_has_the_scores_and_what_the_lists_cover():
    y, _, lists = problem()
    w = np.random.default_rng(1).exponential(size=len(y))
    card = vx.evaluate(y, lists, weights=w)
    assert isinstance(card, vx.results.ListCard)
    assert list(card.scores) == [*SHOWN, "padded(penalized(brier))", "padded(penalized(log_score))"]
    for name in ("brier", "log_score", "spherical", "zero_one", "pbs", "pll"):
        mean = np.average(vx.parse(name).samples(y, lists), weights=w)
        assert card[name] == pytest.approx(mean, rel=1e-12)
        assert card[f"padded({name})"] == card[name]
    listed = (lists.classes.reshape(-1, 4) == y[:, None]).any(axis=1)
    assert card.coverage == card["coverage"] == pytest.approx(np.average(listed, weights=w), rel=1e-12)
    assert card.mean_length == pytest.approx(4, rel=1e-14)
    assert card.mean_unaccounted == pytest.approx(np.average(lists.unaccounted, weights=w), rel=1e-12)
    first = lists.classes[::4] == y
    assert card.accuracy == pytest.approx(np.average(first, weights=w), rel=1e-12)
    assert card.top_k_error == {k: pytest.approx(vx.top_k_error(y, lists, k, weights=w)) for k in (1, 2, 3)}
    assert card.n_invalid == card.invalid_share == 0
    low, high = card.metrics["coverage"].interval
    assert low < card.coverage < high
    assert card.confusion is None
    with pytest.raises(KeyError, match="'rps' is not on this card; it has padded"):
        card["rps"]


def test_invalid_lists_are_counted_and_fined():
    lists = vx.TopLists.from_dicts([{0: 0.5, 3: 0.1}, {0: 0.5}, {0: 0.9, 1: 0.01}], n_classes=4)
    card = vx.evaluate([0, 0, 1], lists)
    assert card.n_invalid == 2
    assert card.invalid_share == pytest.approx(2 / 3)
    free = vx.padded(vx.brier, 0)
    assert card["brier"] == pytest.approx(free([0, 0, 1], lists) + 2 / 3, rel=1e-14)
    assert "2 lists are invalid, scored as the largest valid sublist plus 1." in str(card)
    # A rule means the same wherever it is named.
    assert vx.evaluate([0, 0, 1], lists, rules=["brier"])["brier"] == card["brier"]
    assert vx.brier([0, 0, 1], lists) == pytest.approx(card["brier"], rel=1e-14)
    assert vx.brier.samples([0, 0, 1], lists).mean() == pytest.approx(card["brier"], rel=1e-14)
    assert vx.brier.by_outcome(lists)[[0, 1, 2], [0, 0, 1]].mean() == pytest.approx(card["brier"], rel=1e-14)
    compared = vx.compare([0, 0, 1], {"a": lists, "b": lists.truncate(1)}, rule="brier")
    assert {m.name: m.mean for m in compared.models["brier"]}["a"] == pytest.approx(card["brier"], rel=1e-14)
    unfined = vx.evaluate([0, 0, 1], lists, rules=[free])
    assert unfined["brier"] == pytest.approx(free([0, 0, 1], lists), rel=1e-14)
    assert str(unfined).endswith("scored as the largest valid sublist.")
    assert unfined.n_invalid == 2


def answers(confidences, m=4, seed=5):
    """One class with a stated confidence per row, what happened, and whether it was that class."""
    rng = np.random.default_rng(seed)
    answer, y = rng.integers(0, m, len(confidences)), rng.integers(0, m, len(confidences))
    rows = [{int(c): float(t)} for c, t in zip(answer, confidences, strict=True)]
    return y, vx.TopLists.from_dicts(rows, n_classes=m), answer == y


def test_whether_an_answer_is_right_does_not_depend_on_its_confidence():
    rng = np.random.default_rng(4)
    y, unsure, right = answers(rng.choice([0.0, 0.1, 0.2, 0.6], 300))
    sure = vx.TopLists.from_decisions(unsure.classes, n_classes=4)
    card = vx.evaluate(y, unsure)
    assert card.n_invalid > 100
    assert card.accuracy == pytest.approx(right.mean(), rel=1e-14)
    assert card["zero_one"] == pytest.approx(1 - right.mean(), rel=1e-14)
    assert vx.zero_one(y, unsure) == vx.padded(vx.zero_one)(y, unsure) == card["zero_one"]
    assert card.scores["padded(zero_one)"].bounds == (0.0, 1.0)
    # It is a share, and has the interval of one, mirrored.
    low, high = card.metrics["accuracy"].interval
    assert tuple(card.scores["padded(zero_one)"].interval) == pytest.approx((1 - high, 1 - low), rel=1e-12)
    assert card["brier"] == pytest.approx(vx.padded(vx.brier, 0)(y, unsure) + card.invalid_share, rel=1e-12)
    _, other, right_too = answers(rng.choice([0.1, 0.9], 300), seed=6)
    right_too = other.classes == y
    compared = vx.compare(y, {"a": unsure, "b": other, "sure": sure}, rule=["zero_one", "brier"])
    found = compared.difference("a", "b", "zero_one").difference
    assert found == pytest.approx(right_too.mean() - right.mean(), abs=1e-12)
    assert compared.difference("a", "sure", "zero_one").difference == pytest.approx(0, abs=1e-15)


def test_what_a_list_expects_of_itself_by_the_zero_one_loss():
    lists = vx.TopLists.from_dicts([{0: 0.1}, {0: 0.5, 1: 0.1}, {}, {2: 0.7}], n_classes=4)
    # Of the largest valid sublist; the answer 0 of the first list is one of four equals.
    expected = vx.zero_one.by_outcome(lists) * lists.largest_valid().padded()
    found = doubt("zero_one").of_lists(lists.with_outcomes([0, 0, 0, 0]))
    np.testing.assert_allclose(found, expected.sum(axis=1), rtol=1e-13)
    assert found.tolist() == pytest.approx([0.75, 0.5, 0.75, 0.3])


def test_accuracy_is_that_of_the_distributions_that_lists_are():
    rng = np.random.default_rng(7)
    p = rng.multinomial(4, np.ones(5) / 5, 200) / 4
    y = rng.integers(0, 5, 200)
    dense = vx.evaluate(y, p)
    names = ["e", "b", "c", "a", "d"]
    rows = [{names[i]: row[i] for i in rng.permutation(5)} for row in p]
    of_positions = vx.TopLists.from_probabilities(p, 5)
    of_names = vx.TopLists.from_dicts(rows, n_classes=5, names=names)
    assert vx.evaluate(y, of_positions).accuracy == pytest.approx(dense.accuracy, rel=1e-14)
    assert dense.accuracy == pytest.approx(accuracy_score(y, p.argmax(axis=1)), rel=1e-14)
    happened = [names[i] for i in y]
    assert vx.evaluate(happened, of_names).accuracy == pytest.approx(dense.accuracy, rel=1e-14)
    # Names whose order nobody stated are sorted, whichever lists come first.
    order = np.argsort(names)
    sorted_accuracy = accuracy_score(y, order[p[:, order].argmax(axis=1)])
    assert sorted_accuracy != dense.accuracy
    for part in (slice(None), slice(None, None, -1)):
        lists = vx.TopLists.from_dicts(rows[part], n_classes=5)
        assert vx.evaluate(happened[part], lists).accuracy == pytest.approx(sorted_accuracy, rel=1e-14)
        named = vx.evaluate(happened[part], lists, classes=names)
        assert named.accuracy == pytest.approx(dense.accuracy, rel=1e-14)


def test_an_empty_list_has_no_answer():
    lists = vx.TopLists.from_dicts([{}, {0: 0.25}], n_classes=4)
    card = vx.evaluate([0, 0], lists)
    assert card.accuracy == 0.5
    assert card["zero_one"] == 0.75


def test_a_card_reads_well_and_survives_json():
    y, _, lists = problem(40)
    card = vx.evaluate(y, lists)
    assert str(card).startswith("verax scorecard of top lists: 40 rows, 12 classes\n")
    assert "Lower is better, except for accuracy and coverage." in str(card)
    plain = json.loads(json.dumps(card.to_dict()))
    assert plain["scores"]["padded(brier)"]["mean"] == card["brier"]
    assert plain["metrics"]["coverage"]["orientation"] == "higher is better"
    assert plain["metrics"]["length"]["orientation"] == "neither is better"
    assert "<table>" in card._repr_html_()
    assert len(card.to_frame("polars")) == len(card.scores) + len(card.metrics)


@pytest.mark.long
@given(cut=st.integers(1, 59), seed=st.integers(0, 2**32 - 1))
def test_cards_of_parts_merge_to_the_card_of_the_whole(cut, seed):
    y, _, lists = problem(60, seed=seed)
    whole = vx.evaluate(y, lists)
    merged = vx.evaluate(y[:cut], lists[:cut]).merge(vx.evaluate(y[cut:], lists[cut:]))
    for name, score in {**whole.scores, **whole.metrics}.items():
        same = merged.scores.get(name) or merged.metrics[name]
        assert same.mean == pytest.approx(score.mean, rel=1e-12)
        assert same.interval == pytest.approx(score.interval, rel=1e-9, nan_ok=True)
    assert (merged.n_rows, merged.n_invalid, merged.longest) == (60, whole.n_invalid, 4)


def test_cards_of_lists_and_of_distributions_do_not_merge():
    y, p, lists = problem(20)
    with pytest.raises(vx.VeraxError, match="card of top lists merges with another"):
        vx.evaluate(y, lists).merge(vx.evaluate(y, p))


def test_groups_are_resampled_together():
    y, _, lists = problem(200)
    groups = np.repeat(np.arange(20), 10)
    card = vx.evaluate(y, lists, groups=groups, bootstrap=200)
    assert card.n_groups == 20
    plain = vx.evaluate(y, lists)
    assert card["brier"] == pytest.approx(plain["brier"], rel=1e-12)
    assert card.scores["padded(brier)"].interval != plain.scores["padded(brier)"].interval
    low, high = card.metrics["coverage"].interval
    assert low <= card.coverage <= high


def test_zero_probability_outcomes_are_located():
    lists = vx.TopLists.from_decisions([0, 1, 2], n_classes=5)
    card = vx.evaluate([0, 2, 2], lists)
    assert card.zero_probability_rows == (1,)
    assert card["log_score"] == np.inf
    assert card.scores["padded(log_score)"].finite_mean == 0.0


def test_ordered_classes_are_refused():
    y, _, lists = problem(5)
    with pytest.raises(vx.errors.RuleError, match="Ordinal rules need the full distribution"):
        vx.evaluate(y, lists, ordered=True)


# ---- lengths -----------------------------------------------------------------------------------


def test_lengths_are_compared_on_the_same_outcomes():
    y, p, _ = problem()
    comparison = vx.compare_lengths(y, p)
    assert comparison.predictions == ("hard", "top-1", "top-2", "top-3", "top-5", "top-10", "full")
    assert list(comparison.means) == ["brier", "log_score", "spherical", "zero_one", "pbs", "pll"]
    hard = vx.TopLists.from_decisions(p.argmax(axis=1), n_classes=12)
    for name, losses in comparison.means.items():
        rule = vx.parse(name)
        lists = [hard, *(vx.TopLists.from_probabilities(p, k) for k in (1, 2, 3, 5, 10)), p]
        assert losses == pytest.approx([rule(y, each) for each in lists], rel=1e-12)
    assert comparison["log_score"][0] == np.inf
    assert comparison.infinite["log_score"][0] == np.sum(p.argmax(axis=1) != y)
    near = comparison.length_within("brier")
    full = comparison["brier"][-1]
    assert abs(vx.brier(y, vx.TopLists.from_probabilities(p, near)) / full - 1) <= 0.01
    shorter = comparison.lengths[comparison.lengths.index(near) - 1]
    assert abs(vx.brier(y, vx.TopLists.from_probabilities(p, shorter)) / full - 1) > 0.01
    words = dict(text.split(": ", 1) for text in comparison.words())
    assert "only the most likely class counts" in words["zero_one"]
    assert (
        f"ruled out happened in {100 * np.mean(p.argmax(axis=1) != y):.3g}% of the rows" in words["log_score"]
    )
    assert f"lists of {near} have" in words["brier"]
    assert json.loads(json.dumps(comparison.to_dict()))["length_within_1_percent"]["brier"] == near
    assert str(comparison).startswith("gain from longer lists: 400 rows, 12 classes\nbrier: the probability")


def test_the_gain_of_further_classes_is_over_the_first_whatever_else_was_measured():
    y, p, _ = problem()

    def mean(k):
        return np.mean(vx.brier.samples(y, vx.TopLists.from_probabilities(p, k)))

    share = 100 * (mean(1) - mean(3)) / (mean(1) - vx.brier(y, p))
    for k in ([1, 3], [0, 1, 3]):
        (words,) = vx.compare_lengths(y, p, k=k, rule="brier").words()
        assert f"to {mean(1):.4g}. The other classes" in words
        assert f"lists of 3 have {share:.3g} %" in words
    (words,) = vx.compare_lengths(y, p, k=[0, 3], rule="brier").words()
    assert words.startswith(f"brier: empty lists have {11 / 12:.4g}. The other classes")


@pytest.mark.parametrize("units", ["rows", "weights", "groups"])
def test_lengths_lose_against_each_other_as_models_do(units):
    y, p, _ = problem(120)
    read = {
        "rows": {},
        "weights": {"weights": np.random.default_rng(0).exponential(size=120)},
        "groups": {"groups": np.arange(120) // 4},
    }[units]
    found = vx.compare_lengths(y, p, k=range(1, 5), rule="brier", **read)
    losses = {k: vx.brier.samples(y, vx.TopLists.from_probabilities(p, k)) for k in range(1, 5)}
    losses = {"hard": 2.0 * (p.argmax(axis=1) != y), **{f"top-{k}": each for k, each in losses.items()}}
    losses["full"] = vx.brier.samples(y, p)
    for a, b in (("hard", "top-1"), ("top-1", "top-4"), ("top-4", "full"), ("full", "hard")):
        gap = found.difference(a, b)
        rows = losses[a] - losses[b]
        w = np.asarray(read.get("weights", np.ones(120)))
        assert gap.difference == pytest.approx(np.average(rows, weights=w), abs=1e-12)
        share = w / w.sum()
        part = share * (rows - gap.difference)
        if units == "groups":
            part, share = part.reshape(-1, 4).sum(axis=1), share.reshape(-1, 4).sum(axis=1)
        error = np.sqrt((part**2 / (1 - share)).sum())
        freedom = 1 / (share**2).sum() - 1
        half = stdtrit(freedom, 0.975) * error
        assert list(gap.interval) == pytest.approx([gap.difference - half, gap.difference + half], abs=1e-10)
    assert found.steps() == ("hard", "top-1", "top-4", "full")
    sure = found.length_within("brier", 0.2, sure=True)
    assert sure >= found.length_within("brier", 0.2)
    assert abs(found.difference(f"top-{sure}", "full").interval.high) <= 0.2 * found["brier"][-1]
    assert len(found.plot().axes) == 1
    with pytest.raises(KeyError, match="there is no prediction 'top-9'"):
        found.difference("top-9", "full")


def test_any_length_up_to_the_number_of_classes():
    rng = np.random.default_rng(4)
    p, y = rng.dirichlet(np.ones(300), 10), rng.integers(0, 300, 10)
    comparison = vx.compare_lengths(y, p, k=[150, 300], rule=["brier"])
    assert comparison.predictions == ("hard", "top-150", "top-300", "full")
    assert comparison["brier"][2] == pytest.approx(comparison["brier"][3], rel=1e-12)
    assert comparison["brier"][1] == pytest.approx(vx.brier(y, vx.TopLists.from_probabilities(p, 150)))
    only = vx.compare_lengths(y, p, k=[0], rule=["brier"])
    assert only["brier"][1] == pytest.approx(1 - 1 / 300)
    assert only["brier"][0] == 2 * np.mean(p.argmax(axis=1) != y)
    for bad in ([301], [-1], [1.5], [], "12", 0.5):
        with pytest.raises(vx.InputError) as caught:
            vx.compare_lengths(y, p, k=bad)
        assert caught.value.argument == "k"
    binary = vx.compare_lengths([0, 1], [0.2, 0.7], rule=["brier"])
    assert binary.predictions == ("hard", "top-1", "full")
    assert binary["brier"][1] == pytest.approx(binary["brier"][2])


def test_words_when_longer_lists_do_harm():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(6, 0.3), 500)
    y = np.where(rng.random(500) < p.max(axis=1), p.argmax(axis=1), rng.integers(0, 6, 500))
    comparison = vx.compare_lengths(y, p, rule=["brier"])
    assert comparison["brier"][-1] > comparison["brier"][1]
    assert "they do significantly more harm than good" in comparison.words()[0]


def test_given_lists_stand_for_the_full_distribution():
    y, _, lists = problem()
    comparison = vx.compare_lengths(y, lists, k=[0, 1, 4], rule=[vx.padded(vx.brier, 0.5), "spherical"])
    assert comparison.predictions == ("hard", "top-0", "top-1", "top-4", "as given")
    assert comparison["brier"][-1] == pytest.approx(vx.brier(y, lists), rel=1e-12)
    assert comparison["brier"][3] == comparison["brier"][-1]
    for argument, options in (("k", {"k": [9]}), ("logits", {"logits": True})):
        with pytest.raises(vx.InputError) as caught:
            vx.compare_lengths(y, lists, **options)
        assert caught.value.argument == argument
    with pytest.raises(KeyError, match="there is no rule 'rps'"):
        comparison["rps"]
    labelled = vx.TopLists.from_label_probabilities(np.random.default_rng(0).random((30, 5)), 8)
    sets = np.random.default_rng(1).integers(0, 2, (30, 5))
    assert vx.compare_lengths(sets, labelled)["brier"][-1] == pytest.approx(vx.brier(sets, labelled))
