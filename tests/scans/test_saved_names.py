"""Saved summaries are found by what their recipe is, not by how its settings were typed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from verax.analyses.calibration.recipes import EventRecipe
from verax.analyses.cards.container import read_summaries, write_summaries
from verax.analyses.discrimination.counts import RankRecipe, RankSource
from verax.analyses.loading import merged_card
from verax.inputs.handles import Recipe
from verax.scans.names import former_names, saved_name
from verax.scans.saved import merge_saved

COSTS = [[0, 1, 4], [2, 0, 1], [9, 3, 0]]
TYPED = {
    "list": COSTS,
    "tuple": tuple(map(tuple, COSTS)),
    "array": np.array(COSTS),
    "float array": np.array(COSTS, float),
}


def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2, 1, 1], 50)
    y = np.array([rng.choice(3, p=row) for row in p])
    return pa.table({"label": y, **{f"p_{k}": p[:, k] for k in range(3)}})


def asked(handle, costs):
    """A card and curves that depend on costs."""
    card = vx.evaluate(handle, costs=costs, ordered=True)
    metric = vx.retention(handle, rule="brier", metric="ec", costs=costs)
    return card["ec"], metric.values.tolist()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A shard for each way to type the costs."""
    folder = tmp_path_factory.mktemp("costs")
    for i, (typed, costs) in enumerate(TYPED.items()):
        shard = vx.scan(rows(i), target="label", record=True)
        asked(shard, costs)
        shard.save(folder / f"{typed}.verax")
    return folder


@pytest.mark.parametrize("typed", TYPED)
def test_costs_are_found_however_they_are_typed(typed, saved):
    week = vx.scan([saved / f"{each}.verax" for each in TYPED])
    whole = vx.scan(pa.concat_tables([rows(i) for i in range(len(TYPED))]), target="label")
    (cost, curve), (wanted, wanted_curve) = asked(week, TYPED[typed]), asked(whole, COSTS)
    assert cost == pytest.approx(wanted)
    assert curve == pytest.approx(wanted_curve)


def test_other_costs_are_not_found(saved):
    with pytest.raises(vx.InputError, match="with these settings"):
        vx.evaluate(vx.scan(saved / "list.verax"), costs=np.array(COSTS) + 1.0, ordered=True)


def merged(paths, path):
    merge_saved(paths, merged_card(paths).card, path)
    return path


def as_before(path, to):
    """The file with the names that 0.3 gave its summaries."""
    stored = read_summaries(path)
    stored.pop("former names")
    known = {saved_name(each, ("p",)): former_names(each, ("p",)) for each in EVERY_RECIPE}
    write_summaries(to, {known.get(name, [name])[0]: summary for name, summary in stored.items()})
    return to


EVERY_RECIPE = [EventRecipe("p", thresholds=False)]


def decomposed(path, seed):
    shard = vx.scan(rows(seed), target="label", record="p")
    vx.evaluate(shard)
    vx.decompose(shard, rule="brier")
    shard.save(path)
    return path


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_files_of_0_3_and_new_ones_are_read_and_merged_together(order, tmp_path):
    new = [decomposed(tmp_path / f"{i}.verax", i) for i in range(3)]
    expected = vx.decompose(vx.scan(new), rule="brier").score
    mixed = [as_before(new[0], tmp_path / "old.verax"), *new[1:]]
    assert vx.decompose(vx.scan([mixed[i] for i in order]), rule="brier").score == pytest.approx(expected)
    # Without any recipe: names of old files are matched by the former names in new ones.
    every = merged([mixed[i] for i in order], tmp_path / "every.verax")
    assert vx.decompose(vx.scan(every), rule="brier").score == pytest.approx(expected)
    (name,) = (name for name in read_summaries(every) if name.startswith("EventRecipe"))
    assert name == saved_name(EVERY_RECIPE[0], ("p",))
    again = merged([every, as_before(new[2], tmp_path / "old.verax")], tmp_path / "again.verax")
    assert vx.decompose(vx.scan(again), rule="brier").score > 0


def test_former_names_in_pieces_are_read(tmp_path):
    """As 0.3 merges files that it does not know."""
    one, other = (read_summaries(decomposed(tmp_path / f"{i}.verax", i)) for i in range(2))
    pieces = {f"{name}+1": other[name] for name in other if name not in ("about", "card")}
    write_summaries(tmp_path / "pieces.verax", {**one, **pieces})
    old = as_before(tmp_path / "0.verax", tmp_path / "old.verax")
    every = merged([tmp_path / "pieces.verax", old], tmp_path / "every.verax")
    assert vx.decompose(vx.scan(every), rule="brier").score > 0


def test_what_does_not_change_a_summary_does_not_change_its_name():
    event = EventRecipe("p", thresholds=False)
    assert len({saved_name(replace(event, with_top=top), ("p",)) for top in (True, False)}) == 1
    source = RankSource("p", ordered=False, means=False, n_events=2, n_outcomes=2)
    ranks = [RankRecipe(replace(source, copies=copies)) for copies in (True, False)]
    assert len({saved_name(each, ("p",)) for each in ranks}) == 1
    assert saved_name(event, ("p",)) == saved_name(EventRecipe("q", thresholds=False), ("q",))
    assert saved_name(event, ("p",)) != saved_name(replace(event, thresholds=True), ("p",))


def below(cls):
    return {cls, *(each for inner in cls.__subclasses__() for each in below(inner))}


def test_every_recipe_is_spelled_by_its_fields():
    """One that is no dataclass of its own would be named after the fields of its base."""
    source = Path(vx.__file__).parent
    for path in source.rglob("*.py"):
        if "Recipe" in path.read_text():
            import_module(".".join(("verax", *path.relative_to(source).with_suffix("").parts)))
    ours = (cls for cls in below(Recipe) if cls.__module__.startswith("verax."))
    recipes = {cls for cls in ours if not inspect.isabstract(cls)}
    assert len(recipes) > 40
    assert {cls for cls in recipes if "__dataclass_fields__" not in vars(cls)} == set()
