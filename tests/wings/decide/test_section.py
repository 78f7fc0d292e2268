"""The section on two classes: its numbers are those of the analyses, in memory and elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from reports import light, sample, two_class
from scattered import Scattered
from verax.analyses.words import number
from verax.common.texts import percent
from verax.wings.decide.section.sections import DECISIONS


@pytest.fixture(scope="module")
def page():
    return two_class().to_html()


def test_the_numbers_are_those_of_the_analyses(page):
    contents = two_class().contents
    found = DECISIONS.found(contents).two
    assert [curve.model for curve in found.roc] == ["sharp", "flat"]
    section = DECISIONS.exhibit(contents)
    assert section["event"] == "ill"
    for curve, words in zip(found.roc, section["areas"], strict=True):
        assert f"ROC AUC {number(curve.area, 3)}" in words
        assert words in page
    assert len(section["gaps"]) == 1
    # Four thresholds that were given, and two that were chosen.
    assert [len(lines) for lines in section["points"]] == [6, 6]
    assert section["points"][1][0]["cells"][0][0] == percent(found.points.points[11]["sensitivity"], 1)
    assert found.points.points[11].threshold == 0.1
    assert found.points.points[11].model == "flat"
    stored = two_class().to_dict()
    assert {"roc", "precision_recall", "net_benefit", "operating_points", "confidence_curve"} <= set(stored)


def test_the_methods_paragraph_has_what_a_clinical_paper_reports(page):
    paragraph = page[page.index('id="paragraph"') :].partition("</p>")[0]
    for text in (
        "The event was ill",
        "DeLong",
        "net benefit",
        "subgroups by site",
        f"verax {vx.__version__}",
    ):
        assert text in paragraph


def test_rates_are_not_shown_twice(page):
    scores, thresholds = page.index('id="card"'), page.index('id="thresholds"')
    assert "Specificity" not in page[scores:thresholds]
    assert "ROC AUC of the best" in page[:scores]


def test_one_row_and_one_outcome_have_a_page():
    assert DECISIONS.found(light([1], [0.3]).contents).two.chosen == ()
    assert "all rows have the same outcome" in light([0] * 4, [0.2, 0.4, 0.1, 0.3]).to_html()


def test_too_few_events_promise_nothing_on_the_page():
    y, p = sample(40, 2)
    section = DECISIONS.exhibit(light(y, p).contents)
    promise = section["points"][0][-2]
    assert promise["threshold"] == "none"
    assert "that takes 29 events" in promise["purpose"]


def test_rows_elsewhere_have_the_section_and_many_rows_a_note(change):
    pl = pytest.importorskip("polars")
    y, p = sample(120, 2)
    frame = pl.DataFrame({"y": y, "a": p[:, 0], "b": p[:, 1]})
    handle = vx.scan(frame, target="y", probs=["a", "b"])
    held = DECISIONS.found(light(y, p, classes=["a", "b"]).contents).two
    assert DECISIONS.found(light(handle).contents).two.roc.curves[0].area == held.roc.curves[0].area
    change(read_again_up_to=0)
    report = light(Scattered(y, p))
    assert DECISIONS.found(report.contents) is None
    assert "take further passes" in report.to_html()


@pytest.mark.long
def test_raters_who_disagree_have_a_page():
    y = np.array([0, 1, 1, 0] * 6)
    shares = np.column_stack([0.9 - 0.8 * y, 0.1 + 0.8 * y])
    page = light(shares, np.column_stack([0.8 - 0.3 * y, 0.2 + 0.3 * y])).to_html()
    assert "(90% of the raters)" in page
    assert 'id="thresholds"' in page


@pytest.mark.long
def test_class_balance():
    y, p = sample(200, 24)
    contents = light(y, p).contents
    from verax.report.balance import balance_exhibit

    found = balance_exhibit(contents)
    assert len(found["lines"]) == 20
    assert found["left_out"].startswith("The other 4 classes together have")
    counts = np.bincount(y, minlength=24)
    assert found["lines"][0]["n"] == str(counts.max())
    first = int(found["lines"][0]["name"])
    assert found["lines"][0]["means"] == [percent(p[:, first].mean(), 0)]
    ordered = balance_exhibit(light(*sample(200, 4), ordered=True).contents)
    assert [line["name"] for line in ordered["lines"]] == ["0", "1", "2", "3"]
