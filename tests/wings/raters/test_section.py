"""The section on several raters: the numbers are those of `raters`, wherever the rows are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from reports import GRADES, light, sample
from verax.display.marks import Line
from verax.report.sections import context_of
from verax.wings.raters.section import RATERS

WHO = ["ann", "bob", "<b>cy</b>"]
Y, P = sample(150, 4)
_draw = np.random.default_rng(1)
LABELS = pd.DataFrame({who: [GRADES[_draw.choice(4, p=q)] for q in P] for who in WHO})
LABELS.loc[::4, WHO[2]] = None
OWN = {"raters": "columns", "classes": GRADES}


@pytest.fixture(scope="module")
def report():
    return light(LABELS, {"new": P, "old": 0.5 * P + 0.125}, ordered=True, **OWN)


@pytest.mark.long
def test_the_section_has_the_numbers_of_raters(report):
    exact = vx.raters(LABELS, P, ordered=True, **OWN)
    found = RATERS.found(report.contents)["new"]
    assert found.rule == "rps"
    for name in ("loss", "disagreement", "excess", "worth"):
        assert getattr(found, name) == getattr(exact, name)
    assert found.raters == exact.raters
    shown = RATERS.exhibit(report.contents)
    assert shown["models"][0]["words"].startswith(exact.verdict)
    assert [line["name"] for line in shown["models"][1]["raters"]] == WHO
    assert report.to_dict()["models"]["old"]["raters"]["n_rated"] == exact.n_rated


def test_the_page_draws_panels_and_splits_the_worst_cases(report):
    page = report.to_html()
    assert 'id="raters"' in page
    assert "&lt;b&gt;cy&lt;/b&gt;" in page
    assert "<b>cy</b>" not in page
    figure = RATERS.figures(report.contents)["raters"].chosen[0].figure
    h = RATERS.found(report.contents)["new"].disagreement.value
    (panel,) = [line.y for line in figure.of_kind(Line) if line.name == "panel of raters"]
    np.testing.assert_allclose(panel, [h * (1 + 1 / r) for r in range(1, len(panel) + 1)])
    context = context_of(report.contents, report.verdict, title="", source="")
    causes = dict(context["worst"][1])
    assert set(causes) == {"The model is off", "Raters disagree"}
    ids = {str(case.id) for case in report.contents.findings[1].worst if case.disagreement < case.excess}
    assert {case["id"] for case in causes["The model is off"]} == ids


def test_rows_elsewhere_and_shares_have_the_section_and_single_outcomes_none(tmp_path):
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(GRADES)}
    LABELS.assign(**columns).to_parquet(tmp_path / "rated.parquet")
    handle = vx.scan(tmp_path / "rated.parquet", raters=WHO, classes=GRADES)
    (found,) = RATERS.found(light(handle).contents).values()
    exact = vx.raters(LABELS, P, **OWN)
    assert found.worth.value == pytest.approx(exact.worth.value, rel=1e-12)
    assert found.raters[2].n_rows == exact.raters[2].n_rows
    counts = np.stack([LABELS.eq(name).sum(axis=1) for name in GRADES], axis=1)
    shown = RATERS.exhibit(light(counts / counts.sum(axis=1, keepdims=True), P).contents)
    assert "number of raters is not known" in shown["about"]
    assert shown["models"][0]["raters"] == []
    once = RATERS.exhibit(light(np.eye(4, dtype=int)[Y], P, raters="counts").contents)
    assert "150 cases have one rater" in once["about"]
    assert "no case has two raters" in once["models"][0]["words"]
    hard = light(Y, P).contents
    assert (RATERS.exhibit(hard), RATERS.figures(hard)) == (None, {})


def test_the_skill_on_the_page_is_that_of_the_card_for_cases_of_several_raters():
    shown = light(LABELS, P, **OWN).to_dict()["models"]
    card = vx.evaluate(LABELS, P, **OWN)
    (model,) = shown.values()
    assert model["skill"]["brier"]["skill"] == pytest.approx(card.measures["skill"].mean, rel=1e-12)
