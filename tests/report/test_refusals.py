"""Files, packages, refusals, and rows that are odd, few or many."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import verax as vx
from installing import installing
from reports import Page, light, sample
from verax.report import Report
from verax.report.definitions import definitions
from verax.report.limits import most_subgroups


def test_saving_is_all_or_nothing(ordered, tmp_path, monkeypatch):
    report, path = ordered[-1], tmp_path / "report.html"
    path.write_text("old")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            report.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"
    report.save(path)
    assert path.read_text(encoding="utf-8") == report.to_html()
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_missing_packages_are_named_with_the_remedy():
    code = """
import sys
sys.modules["jinja2"] = None
import verax as vx
report = vx.report.Report.of([0, 1] * 10, [[0.7, 0.3], [0.2, 0.8]] * 10)
print(report.verdict[:9])
try:
    report.to_html()
except vx.errors.MissingPackageError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == f"The model\nA report needs jinja2: {installing('report')}.\n"


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("p", {"p": {}}),
        ("p", {"p": {"a": [[0.5, 0.5]] * 4, "b": [[0.5, 0.6]] * 4}}),
        ("p", {"p": {"a": [[0.5, 0.5]] * 4, "b": [[0.2, 0.3, 0.5]] * 4}}),
        ("ids", {"ids": [1, 2]}),
        ("by", {"by": {"site": [1, 2]}}),
        ("confidence", {"confidence": 95}),
        ("costs", {"costs": [[0, 1]]}),
        ("costs", {"costs": "cubic"}),
    ],
)
def test_refusals(argument, options):
    with pytest.raises(vx.InputError) as refused:
        Report.of([0, 1, 0, 1], **{"p": [[0.5, 0.5]] * 4, **options})
    assert refused.value.argument == argument


def test_the_model_at_fault_is_named():
    with pytest.raises(vx.InputError) as refused:
        Report.of([0, 1], {"a": [[0.5, 0.5]] * 2, "b": [[0.5, 0.5], [0.5, 0.6]]})
    assert (refused.value.kind, refused.value.rows) == ("sum", (1,))
    assert "'b'" in refused.value.source


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_make_a_page(n):
    y, p = sample(n, 3)
    assert "verax" in light(y, p, ordered=True).to_html()


def test_degenerate_forecasts_make_a_page():
    y, p = sample(60, 3)
    for forecast in (np.eye(3)[y], np.eye(3)[(y + 1) % 3], np.full((60, 3), 1 / 3)):
        Report.of(y, forecast, ordered=True).to_html()
    Report.of(np.zeros(60, int), p, ordered=True, by={"s": np.arange(60) % 2}).to_html()
    Report.of(y, {"a": np.eye(3)[y], "b": np.eye(3)[y]}, weights=(y > 0).astype(float), by={"s": y}).to_html()


def test_many_ordered_classes_leave_kappa_out_and_say_so():
    y, p = sample(60, 65)
    report = light(y, p, ordered=True)
    (curves,) = report.contents.found["retention"].values()
    metrics = {curve.metric for curve in curves.retained}
    assert metrics == {"accuracy", "rps", "ec"}
    assert "Beyond 64 classes, curves show accuracy instead of kappa." in Page(report.to_html()).text


@pytest.mark.parametrize(("k", "tested"), [(4, 100), (1000, 16), (20_000, 100)])
def test_fewer_subgroups_where_their_tables_are_large(k, tested):
    assert most_subgroups(k, 2) == tested


def test_the_prose_of_definitions_is_declared(ordered):
    card = ordered[-1].contents.findings[0].card
    for definition in definitions(card):
        assert definition.title
        assert definition.text.endswith(".")
        assert definition.reference
    assert {d.name for d in definitions(card)} == {*card.scores, *card.metrics}


@pytest.mark.long
def test_holm_counts_subgroups_that_are_not_tested():
    """Of 40 subgroups one is too small to be tested: the others are corrected for 40."""
    rng = np.random.default_rng(1)
    q, site = rng.random(2400), np.repeat(np.arange(40), 60)
    site[-60:-10] = 38
    y = (rng.random(2400) < np.where(site == 0, q**4, q)).astype(int)
    report = light(y, q, by={"site": site})
    found = report.contents.subgroups["site"]
    everywhere = vx.subgroups(y, q, by=site, least=1)
    assert (len(found), len(everywhere)) == (39, 40)
    first = found[0]
    # Half of the level is for what those that are tested have together; nobody says that they are all.
    assert first.p_adjusted == pytest.approx(80 * first.p_value)
    assert everywhere[0].p_adjusted == pytest.approx(80 * first.p_value)
    assert not found.pooled["model"].alike
    assert [line.label for line in found.flagged] == [line.label for line in everywhere.flagged] == [0]
    assert "p-values are corrected for all 40 subgroups" in report.to_html()


def test_models_of_rows_in_order_of_time_are_compared_as_such():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), (2, 120)), rng.integers(0, 2, 120)
    models = {"a": p[0], "b": p[1]}
    report = light(y, models, time_ordered=True, by=np.arange(120) % 2)
    expected = vx.compare(y, models, rule="brier", time_ordered=True, reference="frequencies")
    assert report.contents.comparison.differences["brier"] == expected.differences["brier"]
    for comparison in report.contents.subgroups["subgroup"].comparisons.values():
        assert comparison.method.startswith("Diebold-Mariano")
    assert "rows in order of time" in report.to_html()


def test_bars_of_skill_share_one_scale():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    good, bad = 0.6 * np.eye(3)[y] + 0.4 / 3, np.roll(0.5 * np.eye(3)[y] + 0.5 / 3, 1, axis=1)
    for p, signed in ((good, False), (bad, True)):
        page = light(y, {"model": p}).to_html()
        assert ('class="signed"' in page) == signed
        assert ('class="below"' in page) == signed
