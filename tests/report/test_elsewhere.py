"""The report on predictions that are not in memory says what that of the rows says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from reports import LIGHT, light
from scanned import alike
from scattered import Scattered, problem
from verax._settings import changed
from verax.analyses.samples import Sketch
from verax.analyses.worst import LossCounts
from verax.analyses.worst_rows import WorstRecipe
from verax.engines.keyed import Keyed, Run
from verax.engines.keys import loss_keys
from verax.inference.intervals import Resampling
from verax.report import Report
from verax.report.analysis import recipes_of
from verax.report.problem import Problem


@pytest.fixture(autouse=True)
def few_replicates(change):
    """As few as a page of many rows has, and one way to recalibrate: comparisons depend on neither."""
    change(**LIGHT)


def same_subgroups(found, exact):
    """Two reports show the same subgroups."""
    for name in exact.subgroups:
        ours, true = found.subgroups[name], exact.subgroups[name]
        assert found.parts.left_out[name] == exact.parts.left_out[name]
        assert (ours.rule, ours.within_groups) == (true.rule, true.within_groups)
        for a, b in zip(ours.lines, true.lines, strict=True):
            assert (str(a.label), a.model, a.card.n_rows) == (str(b.label), b.model, b.card.n_rows)
            for rule, score in b.card.scores.items():
                values = (a.card.scores[rule].mean, *a.card.scores[rule].interval)
                assert values == pytest.approx((score.mean, *score.interval), rel=1e-9)
            gap = b.decomposition.miscalibration - a.decomposition.miscalibration
            assert -1e-12 <= gap <= a.decomposition.whole.within + 1e-12
        for label, b in true.comparisons.items():
            (a,), (b,) = (each.differences[true.rule] for each in (ours.comparisons[label], b))
            assert (a.difference, *a.interval) == pytest.approx((b.difference, *b.interval), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "several", "ordered"),
    [
        ("plain", True, True),
        ("weights", False, False),
        pytest.param("groups", True, False, marks=pytest.mark.long),
    ],
)
def test_the_report_is_that_of_the_rows(kind, several, ordered, change):
    change(report_subgroups=14)
    rng, y, p = problem(480, 3, 4)
    p[5] = p[4]
    y[5] = y[4]
    groups, weights = rng.integers(0, 8, 480), rng.random(480)
    own = {"weights": {"weights": weights}, "groups": {"groups": groups}}.get(kind, {})
    by = {
        "plain": {
            "size": np.where(np.arange(480) < 15, "rare", np.where(p[:, 0] > 0.3, "large", "small")),
            "some": np.array([None if i % 3 else float(i % 2) for i in range(480)], dtype=object),
            "row": np.arange(480) // 30,
        },
        "weights": {"site": rng.integers(0, 4, 480)},
        # Subgroups of several groups, and of one each.
        "groups": {"site": groups % 3, "patient": groups},
    }[kind]
    models = (
        {"sharp": p, "flat": np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)} if several else {"model": p}
    )
    ids = np.array([f"row {i}" for i in range(480)])
    shown = {name: column for name, column in by.items() if name != "row"}
    exact = light(y, models, ordered=ordered, ids=ids, by=shown, **own)
    handle = Scattered(y, models, ids=ids, by=by, n_parts=3, **own)
    change(**LIGHT)
    found = Report.of(handle, ordered=ordered)
    handle.passes = 0
    with changed(read_again_up_to=0):
        assert light(handle, ordered=ordered).contents.findings[0].dense.slopes is None
    # Many rows are read once.
    assert handle.passes == 1
    assert found.contents.best.name == exact.contents.best.name
    primary = exact.contents.primary
    for ours, true in zip(found.contents.findings, exact.contents.findings, strict=True):
        name = true.name
        assert ours.card[primary] == pytest.approx(true.card[primary], rel=1e-12)
        (skill, interval), true_skill = (report.contents.skill(name, primary) for report in (found, exact))
        assert (skill, *interval) == pytest.approx((true_skill[0], *true_skill[1]), rel=1e-9)
        gap = true.decomposition.miscalibration - ours.decomposition.miscalibration
        assert -1e-12 <= gap <= ours.decomposition.whole.within + 1e-12
        assert ours.dense.overconfidence.to_dict() == pytest.approx(
            true.dense.overconfidence.to_dict(), rel=1e-5
        )
        assert [(case.id, case.ranks) for case in ours.worst] == [(c.id, c.ranks) for c in true.worst]
        assert [panel.title for panel in ours.panels] == [panel.title for panel in true.panels]
        for a, b in zip(ours.dense.by_class, true.dense.by_class, strict=True):
            assert (a.position, a.n_rows) == (b.position, b.n_rows)
            assert a.means == pytest.approx(b.means, rel=1e-12)
            assert a.intervals[primary] == pytest.approx(b.intervals[primary], rel=1e-9)
        curves = [each.contents.found["retention"][name] for each in (found, exact)]
        for a, b in zip(*(each.retained + each.selected for each in curves), strict=True):
            assert (a.order, a.metric) == (b.order, b.metric)
            assert a.within is b.within is None
            assert a.values == pytest.approx(b.values, rel=1e-12, nan_ok=True)
            assert a.interval == pytest.approx(b.interval, rel=1e-12)
        assert (ours.dense.decisions is None) == (true.dense.decisions is None)
        if true.dense.decisions is not None:
            assert vars(ours.dense.decisions) == pytest.approx(vars(true.dense.decisions), rel=1e-12)
        assert found.contents.found["recalibration"][name].recalibration.n_rows == 480
    if several:
        (ours,), (true,) = (each.contents.comparison.differences[primary] for each in (found, exact))
        assert (ours.difference, *ours.interval) == pytest.approx((true.difference, *true.interval), rel=1e-9)
    checks = {check.question: check for check in found.contents.checks}
    assert "1 row (0.21%) repeats an earlier one" in checks["Duplicate rows"].answer
    same_subgroups(found.contents, exact.contents)
    page = found.to_html()
    assert page.count("Subgroups in numbers") == len(shown)
    assert ("too many different values" in page) == (kind == "plain")


def test_sketches_count_rows_that_are_there_twice(change):
    change(hashes_kept=500)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**63, 20_000).astype(np.uint64)
    rows = np.concatenate([values, values[:4000]])
    rng.shuffle(rows)
    parts = [Sketch.of(rows[at], at) for at in np.array_split(np.arange(len(rows)), 7)]
    merged = [parts[0], parts[0]]
    for i, order in enumerate((range(1, 7), [4, 2, 6, 1, 5, 3])):
        for j in order:
            merged[i] = merged[i].merge(parts[j])
    np.testing.assert_array_equal(merged[0].hashes, np.unique(rows)[:500])
    np.testing.assert_array_equal(merged[0].counts, merged[1].counts)
    n, error = merged[0].repeats()
    assert abs(n - 4000) < 4 * error
    # Of 500 hashes about 100 are there twice.
    assert error == pytest.approx(24_000 * 7.45 / 600, rel=0.2)
    # Of rows in memory only those are kept that several rows are like.
    for all_rows in (rows, values):
        held, whole = (
            Sketch.of_all(all_rows, np.arange(len(all_rows))),
            Sketch.of(all_rows, np.arange(len(all_rows)), most=len(all_rows)),
        )
        assert (held.exact, held.repeats(), held.repeated(9)) == (True, whole.repeats(), whole.repeated(9))
        assert len(held.hashes) == whole.repeats()[0]
    few = Sketch.of(values[:300], np.arange(300)).merge(Sketch.of(values[:10], np.arange(300, 310)))
    assert few.repeats() == (10.0, 0.0)
    first = {int(value): i for i, value in enumerate(values[:10])}
    assert few.repeated(10) == [(300 + i, first[int(v)]) for i, v in enumerate(values[:10])]


def test_what_is_about_rows_is_refused_beside_a_handle():
    _, y, p = problem(50, 3, 0)
    with pytest.raises(vx.InputError, match="beside predictions"):
        Report.of(Scattered(y, p), weights=np.ones(50))


def test_ranks_lie_within_what_histograms_leave_open():
    rng = np.random.default_rng(0)
    losses = np.round(np.concatenate([rng.exponential(1, 20_000), [0.5] * 50, [np.inf] * 3]), 12)
    parts = [losses[::3], losses[1::3], losses[2::3]]
    runs = [Keyed((Run.of_values(part, loss_keys, 0, [None]),)) for part in parts]
    counts = LossCounts({"log_score": runs[2]})
    for run in runs[:2]:
        counts = LossCounts.from_bytes(counts.to_bytes()).merge(LossCounts({"log_score": run}))
    widest = 0
    for loss in [*losses[:500], 0.5, np.inf]:
        rank, within = counts.rank("log_score", float(loss))
        true = 1 + int((losses > loss).sum())
        assert rank <= true <= rank + within
        widest = max(widest, within)
    assert 0 < widest < 200
    assert counts.rank("log_score", np.inf) == (1, 0)


@pytest.mark.parametrize("ordered", [False, True])
def test_ranks_come_from_the_histograms_of_curves_where_no_row_has_a_weight(ordered):
    _, y, p = problem(800, 4, seed=8)
    p[5] = np.eye(4)[(y[5] + 1) % 4]
    handle, alone = Scattered(y, p), Scattered(y, p)
    alone.weighted = False
    plan = Resampling()
    kinds = {
        each.weighted: recipes_of(
            each, Problem.of(each, None, ordered=ordered, costs=None, weights_are="importance"), plan
        )
        for each in (handle, alone)
    }
    assert kinds[True].keys() - kinds[False].keys() == {"model/ranks"}
    found = [light(each, ordered=ordered).contents.findings[0].worst for each in (handle, alone)]
    assert found[0] == found[1]
    assert len(found[0].cases[0].ranks) > 1


def test_parts_of_an_older_version_have_a_report(tmp_path):
    """Without what they did not save: subgroups, and ranks by other rules."""
    _, y, p = problem(300, 3, 0)
    handle = vx.scan(Scattered(y, p, by=np.arange(300) % 2), record="model")
    old = Problem.of(handle, None, ordered=False, costs=None, weights_are="importance")
    recipes = recipes_of(handle, old, Resampling(0.95, 100))
    new = ("model/ranks", "model/worst", "by by")
    recipes = {name: recipe for name, recipe in recipes.items() if name not in new}
    handle.summarise({**recipes, "worst": WorstRecipe("model", (vx.brier,), 9)})
    handle.save(tmp_path / "old.verax")
    report = light(vx.scan(tmp_path / "old.verax"))
    assert [case.ranks for case in report.contents.findings[0].worst][:2] == [{"brier": 1}, {"brier": 2}]
    assert report.contents.subgroups == {}
    assert "By <bdi>" not in report.to_html()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "weights", "groups"])
def test_the_page_of_a_small_frame_is_that_of_its_rows_in_memory(kind):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 300)
    y = (rng.random((300, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    y[9], p[9] = y[4], p[4]
    flat = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    columns = {
        "who": rng.integers(0, 40, 300),
        "w": rng.random(300),
        "site": np.where(p[:, 0] > 0.3, "n", "s"),
    }
    models = {"sharp": p, "flat": flat}
    frame = pd.DataFrame(
        {"y": y, "id": np.arange(300) + 1000, **columns}
        | {f"{name}_{k}": own[:, k] for name, own in models.items() for k in range(3)}
    )
    given = {"weights": {"weights": "w"}, "groups": {"groups": "who"}}.get(kind, {})
    held = {name: columns[column] for name, column in given.items()}
    probs = {name: [f"{name}_{k}" for k in range(3)] for name in models}
    exact = Report.of(
        y, models, classes=[0, 1, 2], ordered=True, ids=frame["id"], by={"site": columns["site"]}, **held
    )
    handle = vx.scan(frame, target="y", probs=probs, classes=[0, 1, 2], id="id", by="site", **given)
    found = Report.of(handle, ordered=True)
    alike(found.to_dict(), exact.to_dict())
    # Charts come after the text, with all digits of their numbers.
    texts = [report.to_html().partition('<script type="application/json"')[0] for report in (found, exact)]
    assert texts[0] == texts[1]
