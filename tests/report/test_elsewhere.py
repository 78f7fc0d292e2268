"""The report on predictions that are not in memory says what that of the rows says."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scattered import Scattered, problem
from verax.analyses import samples
from verax.analyses.samples import Sketch
from verax.report import Report


@pytest.mark.parametrize(
    ("kind", "several", "ordered"),
    [("plain", True, True), ("weights", False, False), ("groups", True, False)],
)
def test_the_report_is_that_of_the_rows(kind, several, ordered):
    rng, y, p = problem(1200, 3, 4)
    p[5] = p[4]
    y[5] = y[4]
    options = {"weights": {"weights": rng.random(1200)}, "groups": {"groups": rng.integers(0, 30, 1200)}}
    own = options.get(kind, {})
    models = (
        {"sharp": p, "flat": np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)} if several else {"model": p}
    )
    ids = np.array([f"row {i}" for i in range(1200)])
    exact = Report.of(y, models, ordered=ordered, ids=ids, **own)
    handle = Scattered(y, models, ids=ids, **own)
    found = Report.of(handle, ordered=ordered)
    assert handle.passes == 1
    assert found.contents.best.name == exact.contents.best.name
    primary = exact.contents.primary
    for ours, true in zip(found.contents.findings, exact.contents.findings, strict=True):
        name = true.name
        assert ours.card[primary] == pytest.approx(true.card[primary], rel=1e-12)
        skill, true_skill = (report.contents.skill(name, primary)[0] for report in (found, exact))
        assert skill == pytest.approx(true_skill, abs=3e-3)
        gap = true.decomposition.miscalibration - ours.decomposition.miscalibration
        assert -1e-12 <= gap <= ours.decomposition.whole.within + 1e-12
        assert ours.sureness.to_dict() == pytest.approx(true.sureness.to_dict(), rel=1e-5)
        assert [case.id for case in ours.worst] == [case.id for case in true.worst]
        assert [panel.title for panel in ours.panels] == [panel.title for panel in true.panels]
        for a, b in zip(ours.by_class, true.by_class, strict=True):
            assert (a.position, a.n_rows) == (b.position, b.n_rows)
            assert a.means == pytest.approx(b.means, rel=1e-12)
            assert a.intervals[primary] == pytest.approx(b.intervals[primary], rel=1e-9)
        for a, b in zip(ours.retained + ours.selected, true.retained + true.selected, strict=True):
            assert (a.order, a.metric) == (b.order, b.metric)
            assert (np.abs(a.values - b.values) <= a.within + 1e-12).all()
        assert (ours.decisions is None) == (true.decisions is None)
        if true.decisions is not None:
            assert vars(ours.decisions) == pytest.approx(vars(true.decisions), rel=1e-12)
        assert ours.remedy.recalibration.n_rows == 1200
    again = vx.compare(Scattered(y, models, **own), rule=primary, reference="frequencies", ordered=ordered)
    if kind != "weights":
        for model in again.models[primary]:
            skill, interval = found.contents.skill(model.name, primary)
            assert (skill, *interval) == pytest.approx((model.skill, *model.skill_interval), rel=1e-8)
    if several:
        (ours,), (true,) = (each.contents.comparison.differences[primary] for each in (found, exact))
        assert (ours.difference, *ours.interval) == pytest.approx((true.difference, *true.interval), rel=1e-9)
    checks = {check.question: check for check in found.contents.checks}
    assert "1 row (0.083%) repeat" in checks["Rows that are there twice"].answer
    assert "come from histograms" in found.to_html()


def test_sketches_count_rows_that_are_there_twice(monkeypatch):
    monkeypatch.setattr(samples, "KEPT", 500)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**63, 20_000).astype(np.uint64)
    rows = np.concatenate([values, values[:4000]])
    rng.shuffle(rows)
    parts = [Sketch.of(part) for part in np.array_split(rows, 7)]
    merged = [parts[0], parts[0]]
    for i, order in enumerate((range(1, 7), [4, 2, 6, 1, 5, 3])):
        for j in order:
            merged[i] = merged[i].merge(parts[j])
    np.testing.assert_array_equal(merged[0].hashes, np.unique(rows)[:500])
    np.testing.assert_array_equal(merged[0].counts, merged[1].counts)
    n, error = merged[0].repeats()
    assert abs(n - 4000) < 4 * error
    assert Sketch.of(values[:300]).merge(Sketch.of(values[:10])).repeats() == (10.0, 0.0)


def test_what_is_about_rows_is_refused_beside_a_handle():
    _, y, p = problem(50, 3, 0)
    with pytest.raises(vx.InputError, match="beside predictions"):
        Report.of(Scattered(y, p), weights=np.ones(50))
