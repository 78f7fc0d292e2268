"""The numbers of the report are those of the library; where they come from is on the page."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import verax as vx
from reports import LIGHT, Page, light, sample
from verax.analyses.words import abbreviated


def test_every_number_is_the_library_s(ordered):
    y, p, other, site, report = ordered
    found = report.to_dict()
    assert json.loads(json.dumps(found))["n_rows"] == 600
    for name, forecast in (("new", p), ("old", other)):
        card = vx.evaluate(y, forecast, ordered=True)
        for score, line in found["models"][name]["card"]["scores"].items():
            assert line["mean"] == pytest.approx(card[score], rel=1e-12)
            assert line["interval"] == pytest.approx(card.scores[score].interval, rel=1e-12)
    compared = vx.compare(y, {"new": p, "old": other}, rule="rps", ordered=True, reference="frequencies")
    skill = {m.name: m.skill for m in compared.models["rps"]}
    assert {n: m["skill"]["rps"]["skill"] for n, m in found["models"].items()} == pytest.approx(skill)
    new = found["models"]["new"]
    worst = vx.worst(y, p, rule="rps", n=9)
    assert [case["row"] for case in new["worst"]["cases"]] == [case.row for case in worst]
    assert new["worst"]["cases"][0]["id"] == f"p{worst[0].row}"
    curves = vx.reliability(y, p, ordered=True, resamples=0)
    assert [c["miscalibration"] for c in new["reliability"]] == pytest.approx(
        [c.components.miscalibration for c in curves], abs=1e-12
    )
    kept = vx.retention(y, p, rule="brier", metric="qwk")
    drawn = next(c for c in new["retention"] if (c["order"], c["metric"]) == ("brier", "qwk"))
    assert drawn["values"] == pytest.approx(kept.values)
    doubt = vx.selective(y, p, by="entropy", metric="ec")
    drawn = next(c for c in new["selective"] if (c["order"], c["metric"]) == ("entropy", "ec"))
    assert drawn["values"] == pytest.approx(doubt.values)
    for line in new["by_class"]:
        rows = y == line["position"]
        assert line["means"]["log_score"] == pytest.approx(vx.log_score(y[rows], p[rows]))
        assert line["n_rows"] == rows.sum()
    cheap = vx.expected_cost(y, vx.decide(p, costs="quadratic"), n_classes=4)
    assert new["decisions"]["cheapest"] == pytest.approx(cheap)
    assert new["decisions"]["likeliest"] == pytest.approx(vx.expected_cost(y, p.argmax(axis=1), n_classes=4))
    lines = {(s["label"], s["model"]): s for s in found["subgroups"]["site"]["subgroups"]}
    north = site == "north"
    assert lines["north", "old"]["card"]["scores"]["rps"]["mean"] == pytest.approx(
        vx.rps(y[north], other[north])
    )
    assert found["left_out"] == {"site": [["isle", 5]]}


def test_intervals_of_a_class_are_those_of_its_mean(ordered):
    y, p, *_, report = ordered
    line = report.to_dict()["models"]["new"]["by_class"][2]
    losses = vx.brier.samples(y[y == 2], p[y == 2])
    half = 1.9704 * losses.std(ddof=1) / np.sqrt(len(losses))  # about the quantile of t with 150 degrees
    assert line["intervals"]["brier"] == pytest.approx([losses.mean() - half, losses.mean() + half], rel=2e-3)


def test_weights_count_as_copies():
    y, p = sample(200)
    w = np.random.default_rng(1).integers(1, 4, 200)
    rows = np.repeat(np.arange(200), w)
    weighted = light(y, p, weights=w).to_dict()["models"]["model"]
    repeated = light(y[rows], p[rows]).to_dict()["models"]["model"]
    for part in ("retention", "by_class"):
        assert len(weighted[part]) == len(repeated[part])
    assert [c["values"] for c in weighted["retention"]] == [
        pytest.approx(c["values"]) for c in repeated["retention"]
    ]
    for a, b in zip(weighted["by_class"], repeated["by_class"], strict=True):
        assert a["means"] == pytest.approx(b["means"])
    for a, b in zip(weighted["reliability"], repeated["reliability"], strict=True):
        assert a["miscalibration"] == pytest.approx(b["miscalibration"])


def test_curves_of_many_rows_are_drawn_on_a_grid_with_the_same_means():
    y, p = sample(2000, 3)
    (found,) = light(y, p).contents.findings
    diagram = vx.reliability(y, p, resamples=LIGHT["report_bands"])
    for k, panel in enumerate(found.panels):
        assert len(panel.points) <= 50
        np.testing.assert_allclose(panel.points[:, 4] @ panel.points[:, 2:4], diagram[k].band.mean(axis=1))
        x, fitted, low, high, share = panel.points.T
        assert share.sum() == pytest.approx(1)
        assert share @ x == pytest.approx(p[:, k].mean())
        assert share @ fitted == pytest.approx((y == k).mean())
        assert (np.diff(fitted) >= -1e-12).all()
        assert (low <= high).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_two_classes(ordered):
    y, p = sample(300, 2)
    both = light(y, p, ordered=ordered, classes=["no", "yes"])
    single = light(y, p[:, 1], ordered=ordered, classes=["no", "yes"])
    assert both.verdict == single.verdict
    assert [panel.title for panel in both.contents.findings[0].panels] == ["at most no" if ordered else "yes"]
    assert "yes" in both.to_html()


def test_the_page_names_date_version_command_and_requirements(ordered):
    made = ordered[-1].with_command(
        "verax compare a.csv b.csv", [("rps<0.2 (0.14)", True), ("ece<0.01", False)]
    )
    text = Page(made.to_html()).text
    assert f"{made.made}, verax {vx.__version__}: verax compare a.csv b.csv" in text
    assert "met rps<0.2 (0.14) not met ece<0.01" in text
    assert made.to_dict()["required"][1] == {"requirement": "ece<0.01", "met": False}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made.made)
    assert "The 2 models were compared on the same rows" in text
    frame = made._repr_html_()
    assert frame.startswith('<iframe title="verax report" srcdoc="&lt;!doctype html')
    assert frame.count("<") == 2


def test_secondary_scores_are_folded(ordered):
    html = ordered[-1].to_html()
    folded = html.index("Secondary, improper and penalised scores")
    assert html.index("Brier score<small>") < folded < html.index("Squared absolute RPS<small>")


def test_long_names_on_axes_do_not_look_alike():
    names = ["a class with a long name, stage one", "a class with a long name, stage two", "short"]
    shown = abbreviated(names)
    assert len(set(shown)) == 3
    assert max(map(len, shown)) < 30


def test_half_the_brier_score_of_two_classes_is_scikit_learns():
    y, p = sample(90, 2)
    half = f"{np.mean((p[:, 1] - y) ** 2):.4g}"
    assert f"brier_score_loss is half of it: {half}" in Page(light(y, p).to_html()).text


def test_two_kinds_of_groups():
    y, p = sample(240, 3)
    other = 0.5 * p + 1 / 6
    patient, site = np.arange(240) // 3, np.arange(240) % 8
    report = light(y, {"new": p, "old": other}, groups=(patient, site), by={"half": np.arange(240) % 2})
    contents, crossed = report.contents, vx.evaluate(y, p, groups=(patient, site))
    assert contents.findings[0].card.scores["brier"].interval == crossed.scores["brier"].interval
    difference = vx.compare(y, {"new": p, "old": other}, groups=(patient, site)).difference("new", "old")
    assert contents.comparison.difference("new", "old", "brier").interval == difference.interval
    # Everything else has the kind with fewer groups.
    alone = light(y, {"new": p, "old": other}, groups=site, by={"half": np.arange(240) % 2}).contents
    assert contents.findings[0].dense.slopes == alone.findings[0].dense.slopes
    assert contents.subgroups["half"] == alone.subgroups["half"]
    text = Page(report.to_html()).text
    assert "groups of rows of two kinds (80 and 8)" in text
    assert "subgroups allow for the kind with fewer groups (8)" in text
