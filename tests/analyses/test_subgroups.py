"""Subgroups: their cards, which are miscalibrated beyond chance, and which model is better in each."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import verax as vx
from cases import forecasts
from scattered import Scattered
from verax.inputs import breakdown


def calibrated(n, seed=0):
    """Binary forecasts that are calibrated."""
    rng = np.random.default_rng(seed)
    q = rng.random(n)
    return (rng.random(n) < q).astype(int), q, rng


def test_each_subgroup_has_its_own_card_and_decomposition():
    y, p = forecasts(300, 4, ties=False)
    site = np.array(["a", "b", "c"])[np.arange(300) % 3]
    found = vx.subgroups(y, p, by=site, ordered=True)
    assert list(found) == ["a", "b", "c"]
    for label, line in found.items():
        rows = site == label
        assert line.card["rps"] == pytest.approx(vx.rps(y[rows], p[rows]))
        assert line.card["qwk"] == vx.evaluate(y[rows], p[rows], ordered=True)["qwk"]
        alone = vx.decompose(y[rows], p[rows], rule="rps")
        assert line.decomposition.miscalibration == pytest.approx(alone.miscalibration)


def test_only_what_is_miscalibrated_stands_out():
    y, q, rng = calibrated(900)
    site = np.repeat(["one", "two", "three"], 300)
    wrong = site == "two"
    y[wrong] = rng.random(300) < q[wrong] ** 2.5
    found = vx.subgroups(y, q, by=pd.Series(site, name="site"))
    assert [line.label for line in found.flagged] == ["two"]
    assert found["two"].p_adjusted >= found["two"].p_value
    text = repr(found)
    assert text.startswith("verax subgroups by site\n")
    assert "The model is significantly miscalibrated in the subgroup site = two (p" in text
    assert text.count("stands out") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "most"), [(4, 1), pytest.param(30, 6, marks=pytest.mark.long)])
def test_chance_alone_is_rarely_flagged(runs, most):
    flags = 0
    for seed in range(runs):
        y, q, _ = calibrated(240, seed)
        flags += bool(vx.subgroups(y, q, by=np.arange(240) % 4).flagged)
    assert flags <= most


def test_several_models_are_compared_in_each_subgroup():
    y, q, rng = calibrated(600)
    noisy = np.clip(q + 0.3 * rng.normal(size=600), 0.01, 0.99)
    site = np.repeat(["north", "south"], 300)
    models = {"good": q, "noisy": np.where(site == "north", noisy, q)}
    found = vx.subgroups(y, models, by=site)
    assert set(found) == {(s, m) for s in ("north", "south") for m in models}
    north = found.comparisons["north"].difference("good", "noisy")
    rows = site == "north"
    assert north.difference == pytest.approx(vx.brier(y[rows], q[rows]) - vx.brier(y[rows], noisy[rows]))
    assert found.comparisons["south"].difference("good", "noisy").difference == 0
    p = found.comparisons["north"].difference("good", "noisy").p_adjusted
    shown = "< 0.0001" if p < 1e-4 else f"= {p:.4f}"
    assert f"north: good is significantly best by brier (p {shown}, Holm)." in repr(found)
    assert "No model is significantly best by brier in south." in repr(found)


def test_differences_between_models_are_corrected_for_all_subgroups():
    """Holm over three pairs in each of four subgroups, by its definition; letters follow."""
    y, q, rng = calibrated(400)
    noise = {"a": 0.0, "b": 0.1, "c": 0.6}
    models = {name: np.clip(q + s * rng.normal(size=400), 0.01, 0.99) for name, s in noise.items()}
    found = vx.subgroups(y, models, by=np.arange(400) % 4)
    gaps = [d for each in found.comparisons.values() for d in each.differences["brier"]]
    order = sorted(gaps, key=lambda d: d.p_value)
    steps = np.maximum.accumulate([(12 - i) * d.p_value for i, d in enumerate(order)])
    np.testing.assert_allclose([d.p_adjusted for d in order], np.minimum(steps, 1), rtol=1e-12)
    assert len({d.p_adjusted <= 0.05 for d in gaps}) == 2
    for each in found.comparisons.values():
        letters = {model.name: set(model.letters) for model in each.models["brier"]}
        for d in each.differences["brier"]:
            assert bool(letters[d.a] & letters[d.b]) == (d.p_adjusted > 0.05)
    of_many = vx.subgroups(y, models, by=np.arange(400) % 4, among=40)
    least = min(d.p_adjusted for each in of_many.comparisons.values() for d in each.differences["brier"])
    assert least == pytest.approx(min(1.0, 120 * order[0].p_value))


def test_the_best_model_is_told_by_p_values():
    """A model that differs from all others is best, whatever the letters of the others."""
    y, q, rng = calibrated(400)
    models = {"good": q, "bad": np.clip(q + 0.4 * rng.normal(size=400), 0.01, 0.99)}
    found = vx.subgroups(y, models, by=np.zeros(400, int))
    assert found.comparisons[0].leader() == "good"
    (tied,) = vx.subgroups(y, {"a": q, "b": q}, by=np.zeros(400, int)).comparisons.values()
    assert tied.leader() is None


@pytest.mark.parametrize("m", [9, 24])
def test_any_number_of_subgroups_can_be_flagged(m):
    """P-values have no floor, however many subgroups there are."""
    y, q, rng = calibrated(80 * m)
    site = np.repeat(np.arange(m), 80)
    wrong = site == 7
    y[wrong] = rng.random(80) < q[wrong] ** 4
    found = vx.subgroups(y, q, by=site, rules=["brier"])
    assert [line.label for line in found.flagged] == [7]
    said = "The model is significantly miscalibrated in the subgroup 7 (p < 0.0001, tested at 1%)."
    assert said in found.verdict
    assert found.verdict in repr(found)
    with pytest.warns(DeprecationWarning, match="a property now"):
        assert found.verdict() == found.verdict
    assert found[7].p_value < 1e-6


def test_subgroups_that_are_the_groups():
    y, q, _ = calibrated(120)
    site = np.repeat(["a", "b", "c"], 40)
    found = vx.subgroups(y, q, by=site, groups=site, rules=["brier"])
    assert found.within_groups
    alone = vx.subgroups(y, q, by=site, rules=["brier"])
    assert found["a"].card.scores["brier"].interval == alone["a"].card.scores["brier"].interval
    assert "one group" in repr(found)
    with pytest.raises(vx.InputError) as caught:
        vx.subgroups(y, q, by=site, groups=np.where(site == "a", 0, np.arange(120)))
    assert (caught.value.argument, caught.value.values) == ("by", ("a",))


def test_labels_classes_and_groups():
    y, p = forecasts(200, 3, ties=False)
    names = [10, 20, 30]
    labels = np.array(names)[y]
    patients = np.arange(200) // 2
    found = vx.subgroups(labels, p, by=np.arange(200) // 100, classes=names, rule="rps", groups=patients)
    line = found[0]
    assert line.card["rps"] == pytest.approx(vx.rps(y[:100], p[:100]))
    assert line.card.n_groups == 50
    assert 0 < line.p_value < 1
    assert found.untested == ""
    text = vx.subgroups(["lo", "hi"] * 50, p[:100, :2], by=[0, 1] * 50, classes=["lo", "hi"], normalize=True)
    assert len(text) == 2


def test_out():
    y, q, _ = calibrated(80)
    found = vx.subgroups(y, q, by=[True, False] * 40)
    assert len(json.loads(json.dumps(found.to_dict()))["subgroups"]) == 2
    assert found._repr_html_().count("<table>") == 1


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("by", {"by": [0, 1]}),
        ("by", {"by": [0.0] * 79 + [np.nan]}),
        ("least", {"least": 0}),
        ("least", {"least": None}),
        ("p", {"p": {}}),
        ("costs", {"costs": "cubic"}),
    ],
)
def test_refusals(argument, options):
    y, q, _ = calibrated(80)
    with pytest.raises(vx.InputError) as caught:
        vx.subgroups(y, **{"p": q, "by": [0, 1] * 40, **options})
    assert caught.value.argument == argument


def test_small_subgroups_are_named():
    y, q, _ = calibrated(80)
    with pytest.raises(vx.InputError) as caught:
        vx.subgroups(y, q, by=[0] * 79 + [1])
    assert (caught.value.argument, caught.value.kind, caught.value.values) == ("by", "length", (1,))
    assert caught.value.remedies[-1].options == {"least": 1}


def test_rules_on_the_cards():
    y, q, _ = calibrated(80)
    found = vx.subgroups(y, q, by=[0, 1] * 40, rules=["log_score", "spherical"])
    assert list(found[0].card.scores) == ["brier", "log_score", "spherical"]


def test_rows_stay_in_the_precision_they_came_in():
    """Single precision may be off one by 1e-4, and a subgroup is no stricter than the whole."""
    rng = np.random.default_rng(3)
    p = (rng.dirichlet(np.ones(3), 80) * 1.00002).astype(np.float32)
    y = rng.integers(0, 3, 80)
    found = vx.subgroups(y, p, by=[0, 1] * 40)
    assert found[0].card["brier"] == pytest.approx(vx.brier(y[::2], p[::2]), rel=1e-12)
    logits = vx.subgroups(y, np.log(p), by=[0, 1] * 40, logits=True)
    assert logits[1].card["log_score"] == pytest.approx(
        vx.log_score(y[1::2], np.log(p[1::2]), logits=True), rel=1e-12
    )


def test_weights_count_as_copies():
    rng = np.random.default_rng(4)
    y, q, w = rng.random(90) < 0.5, rng.random(90), rng.integers(1, 4, 90)
    by = np.arange(90) % 2
    found = vx.subgroups(y, q, by=by, weights=w)
    for label in (0, 1):
        rows = np.repeat(np.flatnonzero(by == label), w[by == label])
        assert found[label].card["brier"] == pytest.approx(vx.brier(y[rows], q[rows]), rel=1e-12)
        expected = vx.decompose(y[rows], q[rows], rule="brier").miscalibration
        assert found[label].decomposition.miscalibration == pytest.approx(expected, rel=1e-9)


def test_rows_of_a_subgroup_stay_in_order_of_time():
    rng = np.random.default_rng(0)
    noise = np.cumsum(rng.normal(0, 0.05, (400, 2)), axis=0) % 0.9 + 0.05
    models, y = {"a": noise[:, 0], "b": noise[:, 1]}, rng.integers(0, 2, 400)
    site = np.arange(400) % 2
    found = vx.subgroups(y, models, by=site, time_ordered=True)
    for label, comparison in found.comparisons.items():
        rows = site == label
        alone = vx.compare(
            y[rows], {name: p[rows] for name, p in models.items()}, rule="brier", time_ordered=True
        )
        assert comparison.method.startswith("Diebold-Mariano")
        (ours,), (pair,) = comparison.differences["brier"], alone.differences["brier"]
        assert replace(ours, p_adjusted=pair.p_adjusted) == pair
        # Corrected for the pairs of all subgroups.
        assert ours.p_adjusted >= pair.p_adjusted
    independent = vx.subgroups(y, models, by=site)
    for label, comparison in independent.comparisons.items():
        narrow, wide = (c.differences["brier"][0].interval for c in (comparison, found.comparisons[label]))
        assert wide.high - wide.low > narrow.high - narrow.low
    assert "in order of time" in repr(found)
    assert "in order of time" not in repr(independent)


def test_holm_counts_the_subgroups_that_are_not_here():
    y, q, rng = calibrated(600)
    site = np.repeat(["one", "two", "three"], 200)
    y[200:400] = rng.random(200) < q[200:400] ** 3
    asked = {"by": site, "rules": ["brier"]}
    alone, among = vx.subgroups(y, q, **asked), vx.subgroups(y, q, **asked, among=40)
    assert alone["two"].stands_out
    # Half of the level is for what all subgroups show together, and subgroups that are not here keep it.
    smallest, together = min(line.p_value for line in among.lines), among.pooled["model"].p_whole
    expected = min(2 * 40 * smallest, max(40 * smallest, 2 * together))
    assert min(line.p_adjusted for line in among.lines) == pytest.approx(min(1.0, expected))
    assert among.pooled["model"].p_adjusted == pytest.approx(min(1.0, 4 * among.pooled["model"].p_value))
    with pytest.raises(vx.InputError, match="among"):
        vx.subgroups(y, q, by=site, among=2)


@pytest.mark.long
@pytest.mark.parametrize("lists", [False, True])
def test_subgroups_in_parts_are_those_in_memory(lists):
    """The same numbers and the same refusals: of one-group subgroups, weights and invalid rows."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(3), 150)
    y = rng.integers(0, 3, 150)
    q = vx.TopLists.from_probabilities(p, 2) if lists else p
    site = np.repeat(["a", "b", "c"], 50)
    asked = {"rules": ["brier"]}
    for own in ({}, {"groups": site}, {"groups": np.arange(150) // 5})[int(lists) :]:
        exact = vx.subgroups(y, q, by=site, **own, **asked)
        found = vx.subgroups(Scattered(y, q, by=site, **own), by="by", **asked)
        assert found.within_groups == exact.within_groups == (own.get("groups") is site)
        for ours, true in zip(found.lines, exact.lines, strict=True):
            assert ours.label == true.label
            assert ours.card["brier"] == pytest.approx(true.card["brier"], rel=1e-12)
            for one, other in zip(ours.card.scores.values(), true.card.scores.values(), strict=True):
                assert list(one.interval) == pytest.approx(list(other.interval), rel=1e-9)
            assert ours.decomposition.whole.observed == pytest.approx(
                true.decomposition.whole.observed, rel=1e-9
            )
    refused = {
        "by": {"groups": np.where(site == "a", 0, np.arange(150))},
        "weights": {"weights": (site != "a").astype(float)},
    }
    for argument, own in refused.items():
        for call in (
            lambda own=own: vx.subgroups(y, q, by=site, **own, **asked),
            lambda own=own: vx.subgroups(Scattered(y, q, by=site, **own), by="by", **asked),
        ):
            with pytest.raises(vx.InputError) as caught:
                call()
            assert (caught.value.argument, caught.value.values) == (argument, ("a",))


def test_invalid_rows_of_subgroups_have_their_numbers_in_the_whole():
    y, q, _ = calibrated(120)
    p = np.column_stack([1 - q, q])
    p[77] = [0.9, 0.9]
    site = np.tile(["a", "b", "c"], 40)
    for models in (p, {"one": p, "two": p[:, ::-1]}):
        with pytest.raises(vx.InputError) as caught:
            vx.subgroups(y, models, by=site)
        assert caught.value.rows == (77,)


def test_subgroups_of_parts_share_the_number_of_forecasts_that_are_told_apart(change):
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 900)
    y, site = rng.integers(0, 3, 900), rng.integers(0, 3, 900)
    exact = vx.subgroups(y, q, by=site)
    change(exact_up_to=1500)
    found = [vx.subgroups(Scattered(y, q, by=site, n_parts=n, seed=n), by="by").lines for n in (1, 6)]
    for one, several, whole in zip(*found, exact.lines, strict=True):
        parts = [line.decomposition.whole for line in (one, several, whole)]
        assert parts[0].within == parts[1].within > 0
        assert parts[0].miscalibration == pytest.approx(parts[1].miscalibration, rel=1e-12)
        assert abs(parts[0].miscalibration - parts[2].miscalibration) <= parts[0].within + 1e-12


def test_subgroups_of_files_do_not_depend_on_the_number_of_threads(tmp_path, change, monkeypatch):
    """Threads share the subgroups of a part, and each subgroup is gathered in one place."""
    y, p = forecasts(600, 3, ties=False)
    rows = pd.DataFrame(p, columns=["p_0", "p_1", "p_2"]).assign(label=y, site=np.arange(600) % 7)
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    change(threads_from=1)
    change(part_rows=100)
    found, seen = [], set()
    take_in = breakdown._bound

    def noting(gathered, most):
        seen.add(threading.get_ident())
        take_in(gathered, most)

    monkeypatch.setattr(breakdown, "_bound", noting)
    for threads in (1, 4):
        seen.clear()
        change(cores=threads)
        handle = vx.scan(tmp_path / "rows.parquet", target="label", by="site")
        found.append(vx.subgroups(handle, by="site"))
        assert len(seen) > 2 or threads == 1
    assert found[0].to_dict() == found[1].to_dict()
    memory = vx.subgroups(y, p, by=rows["site"])
    for label, line in memory.items():
        assert found[1][label].card["brier"] == pytest.approx(line.card["brier"], abs=1e-12)
        ours, theirs = found[1][label].decomposition, line.decomposition
        assert ours.whole.observed == pytest.approx(theirs.whole.observed, abs=1e-12)
