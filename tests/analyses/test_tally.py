"""The public tally and saved cards: however rows are divided and merged, the card is the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import forecasts
from verax.analyses.cards.stored import card_values
from verax.common.packing import dump
from verax.results import Scorecard

N = 40


def same(a, b, at=""):
    """Equal to 1e-12, whatever the order of summation; intervals to 1e-9, as squares of differences are."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), at
        for name in a:
            same(a[name], b[name], f"{at}.{name}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), at
        for one, other in zip(a, b, strict=True):
            same(one, other, at)
    elif isinstance(a, float):
        tolerance = 1e-9 if "interval" in at or "std" in at else 1e-12
        assert math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (a != a and b != b), (at, a, b)
    else:
        assert a == b, at


def facts(card):
    """All of a card but the numbers of rows and the measures that need all rows, which parts do not know."""
    found = card.with_rows(None).to_dict(stored=False)
    del found["zero_probability"]["rows"]
    found.get("skipped", {}).pop("rows", None)
    return found


@st.composite
def partitions(draw):
    """Which part each row is in; parts may be empty."""
    n_parts = draw(st.integers(1, 6))
    return n_parts, np.array(draw(st.lists(st.integers(0, n_parts - 1), min_size=N, max_size=N)))


def in_any_tree(parts, rng):
    """Everything merged in a random order, in a tree of a random shape, through bytes at each step."""
    parts = [vx.Tally.from_bytes(part.to_bytes()) for part in parts]
    while len(parts) > 1:
        a, b = (parts.pop(rng.integers(len(parts))) for _ in range(2))
        parts.append(vx.Tally.from_bytes((a + b).to_bytes()))
    return parts[0]


WEIGHTS = {
    "none": lambda rng: None,
    "some": lambda rng: rng.exponential(size=N) * (rng.random(N) < 0.7),
    "extreme": lambda rng: 2.0 ** (rng.choice([-1040, -600, 600, 980]) + rng.integers(-20, 20, N)),
    "counts": lambda rng: rng.integers(0, 4, N).astype(float),
}
GROUPS = {
    "none": lambda rng: None,
    "one kind": lambda rng: np.array([f"patient {i}" for i in rng.integers(0, 9, N)]),
    "two kinds": lambda rng: [rng.integers(0, 5, N), np.array(list("abcd"))[rng.integers(0, 4, N)]],
}


def take(column, rows):
    if isinstance(column, list):
        return [np.asarray(each)[rows] for each in column]
    return None if column is None else column[rows]


@pytest.mark.long
@given(
    partition=partitions(),
    weights=st.sampled_from(list(WEIGHTS)),
    groups=st.sampled_from(list(GROUPS)),
    form=st.sampled_from(["ordered", "nominal", "lists", "skipped"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_partition_in_any_order_gives_the_card_of_all_rows(partition, weights, groups, form, seed):
    rng = np.random.default_rng(seed)
    y, p = forecasts(N, 3, seed)
    p[::9] = np.eye(3)[(y[::9] + 1) % 3]
    w, g = WEIGHTS[weights](rng), GROUPS[groups](rng)
    settings_ = {
        "ordered": form == "ordered",
        "bootstrap": 50,
        "weights_are": "counts" if weights == "counts" else "importance",
    }
    if form == "skipped":
        y[1::5], p[2::5, 0], settings_["invalid"] = 7, np.nan, "skip"

    def rows(which):
        return {
            "y": y[which],
            "p": vx.TopLists.from_probabilities(p[which], 2) if form == "lists" else p[which],
            "weights": take(w, which),
            "groups": take(g, which),
            **settings_,
        }

    n_parts, place = partition
    merged = in_any_tree([vx.Tally.of(**rows(place == i)) for i in range(n_parts)], rng)
    same(facts(merged.card()), facts(vx.evaluate(**rows(np.full(N, True)))))


def test_parts_by_group_merge():
    y, p = forecasts(30, 4)
    groups = np.arange(30) // 5
    parts = [vx.Tally.of(y[groups == g], p[groups == g], groups=groups[groups == g]) for g in range(6)]
    same(facts(sum(parts).card()), facts(vx.evaluate(y, p, groups=groups)))
    with pytest.raises(vx.InputError, match="at least two groups"):
        parts[0].card()


def test_what_makes_no_sense_for_all_rows_is_refused_by_the_card():
    y, p = forecasts(6, 3)
    empty = vx.Tally.of([], p[:0])
    with pytest.raises(vx.InputError, match="at least one row"):
        empty.card()
    with pytest.raises(vx.InputError, match="all be zero"):
        (empty + vx.Tally.of(y, p, weights=np.zeros(6))).card()
    with pytest.raises(vx.InputError, match="sum to 1"):
        vx.Tally.of(y, p * 0.9)


def test_an_empty_part_need_not_know_the_names_of_the_classes():
    y, p = np.array(list("aba")), np.array([[0.6, 0.4]] * 3)
    named = vx.Tally.of(y, p, classes=["a", "b"])
    for merged in (vx.Tally.of([], p[:0]) + named, named + vx.Tally.of([], p[:0])):
        assert merged.card().classes == ("a", "b")


def test_a_tally_of_predictions_that_are_not_in_memory(tmp_path):
    y, p = forecasts(30, 3)
    for i, rows in enumerate((slice(0, 20), slice(20, 30))):
        np.savez(tmp_path / f"{i}.npz", labels=y[rows], probs=p[rows])
    parts = [vx.Tally.of(vx.scan(tmp_path / f"{i}.npz"), ordered=True) for i in range(2)]
    same(facts(sum(parts).card()), facts(vx.evaluate(y, p, ordered=True)))


LIKE = {"confidence": 0.9, "seed": 1, "bootstrap": 20, "rules": ["brier"], "classes": [5, 6, 7]}
LIKE |= {"ordered": True, "weights_are": "counts", "costs": "zero_one"}


@pytest.mark.parametrize("option", LIKE)
def test_only_like_merges_with_like(option, tmp_path):
    y, p = forecasts(10, 3)
    y = y + 5 if option == "classes" else y
    one, other = vx.Tally.of(y % 5, p), vx.Tally.of(y, p, **{option: LIKE[option]})
    with pytest.raises(vx.VeraxError, match="annot be merged"):
        one + other
    one.card().save(tmp_path / "a.verax")
    other.card().save(tmp_path / "b.verax")
    from verax.analyses.loading import merged_card

    with pytest.raises(vx.VeraxError, match=r"a\.verax and .*b\.verax cannot be merged"):
        merged_card([tmp_path / "a.verax", tmp_path / "b.verax"])


def test_intervals_that_do_not_merge_say_in_what_they_differ():
    y, p = forecasts(10, 3)
    with pytest.raises(vx.VeraxError, match=r"merged: confidence 0\.95 and 0\.9, seed 0 and 3\.$"):
        vx.evaluate(y, p) + vx.evaluate(y, p, confidence=0.9, seed=3)


def test_costs_of_the_same_numbers_merge():
    y, p = forecasts(10, 3)
    costs = [[0, 1, 5], [1, 0, 1], [2, 1, 0]]
    a, b = vx.evaluate(y, p, costs=costs), vx.evaluate(y, p, costs=np.array(costs))
    assert (a + b)["ec"] == pytest.approx(a["ec"], rel=1e-12)
    assert vx.results.Scorecard.from_bytes(a.to_bytes())["ec"] == a["ec"]


def test_cards_are_added_and_refuse_other_things():
    y, p = forecasts(10, 3)
    card = vx.evaluate(y, p)
    assert sum([card, card, card]).n_rows == 30
    with pytest.raises(TypeError):
        card + 1
    with pytest.raises(TypeError):
        vx.Tally.of(y, p) + card
    with pytest.raises(vx.VeraxError, match="card of top lists"):
        card.merge(vx.evaluate(y, vx.TopLists.from_probabilities(p, 2)))


@pytest.mark.parametrize("lists", [False, True])
def test_a_saved_card_is_small_and_comes_back_with_its_intervals(lists, tmp_path):
    y, p = forecasts(600, 3, ties=False)
    forecast = vx.TopLists.from_probabilities(p, 2) if lists else p
    card = vx.evaluate(y, forecast, confidence=0.9, weights_are="counts", weights=np.arange(600.0))
    assert str(card)  # computes replicates, which are not saved
    card.save(tmp_path / "a.verax")
    assert (tmp_path / "a.verax").stat().st_size < 6_000
    found = vx.load(tmp_path / "a.verax")
    assert type(found) is type(card)
    assert found.to_dict() == card.to_dict()


def test_a_saved_card_brings_its_measures_which_parts_that_are_merged_do_not(tmp_path):
    y, p = forecasts(40, 2)
    card = vx.evaluate(y, p)
    card.save(tmp_path / "a.verax")
    found = vx.load(tmp_path / "a.verax")
    assert found["auc"] == card["auc"] == vx.roc_auc(y, p).value
    assert str(found) == str(card)
    assert not (found + found).known_measures
    wrong = dump(card.kind, {**card_values(card, None), "measures": {"auc": (0.5, 0.1, "t", "")}})
    with pytest.raises(vx.InputError, match="four numbers and two texts"):
        Scorecard.from_bytes(wrong)


def test_damaged_and_other_files_are_refused_by_name(tmp_path):
    y, p = forecasts(20, 3)
    path = tmp_path / "a.verax"
    vx.evaluate(y, p).save(path)
    stored = path.read_bytes()
    cases = {
        "damaged": stored[:300] + b"x" + stored[301:],
        "complete|should be": stored[:-9],
        "else": b"PAR1",
    }
    for says, data in cases.items():
        path.write_bytes(data)
        with pytest.raises(vx.InputError, match=rf"a\.verax must be a file that verax saved.*{says}"):
            vx.load(path)
    with pytest.raises(vx.InputError, match="There is no file"):
        vx.load(tmp_path / "b.verax")
