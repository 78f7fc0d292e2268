"""Figures as data: their words, keys and tables, and that all that draw them show the same."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import verax as vx
from figures import GRADES, SHEETS, rows, sheet
from reports import EVIL
from verax.display.axes import Axis
from verax.display.drawings import drawing, rows_height
from verax.display.figures import Figure, Sheet
from verax.display.marks import BEHIND, Band, Bars, Line, Points, Ranged, Ranges, Shade, Strip

plt = pytest.importorskip("matplotlib.pyplot")
NUMBER = re.compile(r"−?\d[\d,]*(?:\.\d+)?(?:e[−+]?\d+)?")
# Triangles have thousands of points.
NAMES = [pytest.param(n, marks=[pytest.mark.long] * (n == "three outcomes")) for n in SHEETS]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def value(text):
    return float(text.replace(",", "").replace("−", "-"))


def drawn_figures(name):
    return sheet(name).drawn()


def svg_of(figure, width=540, ident="f"):
    return drawing(figure, width, rows_height(figure) if figure.of_kind(Ranges) else 300, ident)


# ---- words, keys, tables -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_number_that_a_figure_says_is_in_its_table(name):
    for figure in drawn_figures(name):
        _, body = figure.table()
        cells = [cell for row in body for cell in row]
        known = np.array([value(text) for cell in cells for text in NUMBER.findall(cell)])
        words = figure.sentence
        for cell in sorted({c for c in cells if re.search("[a-z]", c)}, key=len, reverse=True):
            # Names may have numbers of their own.
            words = words.replace(cell, " ")
        for text in NUMBER.findall(words):
            digits = len(text.partition(".")[2])
            off = np.abs(known - value(text)).min()
            assert off <= 0.5000001 * 10.0**-digits or off <= 0.006 * abs(value(text)), (
                text,
                figure.sentence,
            )


def test_a_number_that_is_not_in_the_table_is_found():
    ranges = Ranges("mean", [Ranged("a", 0.5), Ranged("b", 0.75)])
    figure = Figure("", [ranges], Axis("loss"), Axis(names=("a", "b")))
    assert figure.sentence == "Lowest: a, 0.5; highest: b, 0.75."
    assert figure.table() == (["Name", "loss"], [["a", "0.5"], ["b", "0.75"]])


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_a_key_has_a_mark_and_every_named_mark_an_entry(name):
    for figure in drawn_figures(name):
        said = {entry.name for entry in figure.key()}
        of_marks = {text for mark in figure.marks for text in _texts(mark)}
        assert said <= of_marks
        named = {m.name for m in figure.marks if not isinstance(m, Ranges) and m.name}
        assert named - {m.name for m in figure.marks if type(m).__name__ == "Surface"} <= said
        for i, mark in enumerate(figure.marks):
            rest = replace(figure, marks=[*figure.marks[:i], *figure.marks[i + 1 :]])
            gone = said - {entry.name for entry in rest.key()}
            assert gone <= _texts(mark)


def _texts(mark):
    texts = {getattr(mark, key, "") for key in ("name", "flagged", "other", "joining", "interval")}
    return {text for text in texts if isinstance(text, str)}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_lies_beyond_the_axes_unless_the_note_says_so(name):
    for figure in drawn_figures(name):
        (left, right), (bottom, top) = figure.ends()
        slack = 1e-9 * max(abs(right - left), abs(top - bottom))
        places = [
            (float(x), float(y))
            for mark in figure.marks
            if isinstance(mark, (Line, Points)) and mark.colour not in BEHIND
            for x, y in zip(mark.x, mark.y, strict=True)
            if not (np.isnan(x) or np.isnan(y))
        ]
        outside = sum(
            not (left - slack <= x <= right + slack and bottom - slack <= y <= top + slack) for x, y in places
        )
        assert ("beyond the axes" in figure.notes) == (outside > 0)
        assert str(outside) in figure.notes or not outside


def test_what_lies_beyond_the_axes_is_counted():
    figure = Figure("", [Line("a", [0, 1, 2], [0, 5, 9])], y=Axis(low=0, high=6))
    assert figure.notes == "1 point lies beyond the axes."
    figure = Figure("", [Points("a", [0, 1], [math.inf, 9])], y=Axis(low=0, high=6), note="Losses.")
    assert figure.notes == "Losses. 2 points lie beyond the axes."
    assert "∞" in svg_of(figure)
    assert "9 ↑" in svg_of(figure)


def test_bands_stand_beside_their_lines_in_tables_and_hints():
    marks = [Line("a", [0, 1], [0.25, 0.5], along=[9, 8]), Band("95% band", [0, 1], [0.2, 0.4], [0.3, 0.6])]
    figure = Figure("", marks, Axis("x"), Axis("rate", percent=True), heads={"along": "threshold"})
    head, body = figure.table()
    assert head == ["Drawn", "x", "rate", "From", "To", "threshold"]
    assert body == [["a", "0", "25%", "20%", "30%", "9"], ["a", "1", "50%", "40%", "60%", "8"]]
    assert figure.tips()[1].text == "a\nthreshold: 8\nx: 1\nrate: 50% (40% to 60%)"
    alone = replace(figure, marks=marks[1:])
    assert alone.table()[1][0] == ["95% band", "0", "20%", "30%"]


@pytest.mark.parametrize("shared", ["", "x", "y", "xy", "x row"])
def test_figures_that_share_axes_have_the_same_ends(shared):
    figures = [Figure("", [Line("", [0, i], [0, 10 * i])], Axis("x"), Axis("y")) for i in (1, 2, 3, 4)]
    ends = [figure.ends() for figure in Sheet(figures, 2, shared=shared).drawn()]
    across, upward = ([each[k] for each in ends] for k in (0, 1))
    assert (len(set(across)) == 1) == ("x" in shared)
    assert len(set(upward)) == (2 if "row" in shared else 1 if "y" in shared else 4)


# ---- the three that draw -------------------------------------------------------------------------


def _paths(root, figure):
    """The points of all paths of a drawing, in the units of the axes."""
    left, top, width, height = map(float, root.get("data-plot").split())
    (x0, x1), (y0, y1) = figure.ends()
    found = []
    for path in root.iter(f"{SVG}path"):
        at = np.array([p.split() for p in re.findall(r"[ML]([-\d.]+ [-\d.]+)", path.get("d"))], dtype=float)
        if len(at) > 1:
            x, y = (at[:, 0] - left) / width, 1 - (at[:, 1] - top) / height
            across, upward = _unscaled(figure.x, x, x0, x1), _unscaled(figure.y, y, y0, y1)
            found.append(np.stack([across, upward], axis=1))
    return found


def _unscaled(axis, share, low, high):
    if axis.log:
        return 10 ** (np.log10(low) + share * (np.log10(high) - np.log10(low)))
    return low + share * (high - low)


@pytest.mark.parametrize("name", ["roc", "benefit", "murphy", "retention", "monitor", "power", "raters"])
def test_matplotlib_and_svg_draw_the_same_lines(name):
    from verax.display.plots import draw

    axes = draw(sheet(name)).axes
    for figure, ax in zip(drawn_figures(name), axes, strict=False):
        paths = _paths(ET.fromstring(svg_of(figure)), figure)
        lines = [line for line in figure.of_kind(Line) if not line.step]
        drawn = [np.asarray(line.get_xydata(), dtype=float) for line in ax.lines]
        spans = np.array([np.ptp(ends) for ends in figure.ends()])
        for line in lines:
            data = np.stack([np.asarray(line.x, float), np.asarray(line.y, float)], axis=1)
            assert any(d.shape == data.shape and np.allclose(d, data) for d in drawn)
            near = [p for p in paths if p.shape == data.shape]
            tolerance = 0.002 * np.where([figure.x.log, figure.y.log], np.abs(data) * 4, spans)
            assert any((np.abs(p - data) <= tolerance).all() for p in near), line.name
        assert ax.get_xlim() == pytest.approx(figure.ends()[0])
        assert sorted(ax.get_ylim()) == pytest.approx(figure.ends()[1])


@pytest.mark.parametrize("name", NAMES)
def test_the_key_of_matplotlib_is_that_of_the_figure(name):
    from verax.display.plots import draw

    made = sheet(name)
    figure = draw(made)
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    shown = {text.get_text() for legend in legends for text in legend.get_texts()}
    assert shown == {entry.name for entry in made.key_entries()}
    figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [250, 900])
def test_drawings_are_whole_and_stay_in_their_frame(name, width):
    for figure in drawn_figures(name):
        root = ET.fromstring(svg_of(figure, width))
        assert root.get("role") == "img"
        title, said = (root.find(f"{SVG}{tag}") for tag in ("title", "desc"))
        assert root.get("aria-labelledby") == f"{title.get('id')} {said.get('id')}"
        assert title.text
        assert (said.text or "").startswith(figure.sentence)
        assert "nan" not in ET.tostring(root, "unicode").lower().replace("nanme", "")
        left, top, across, tall = map(float, root.get("data-plot").split())
        assert left >= 0
        assert top >= 0
        assert left + across <= width
        assert top + tall <= float(root.get("height"))


def test_texts_from_outside_stay_texts_in_drawings():
    y, p = rows()
    found = vx.compare(y, {EVIL[0]: p, EVIL[1]: 0.5 * p + 0.125, "</desc>": p[::-1]}, rule="brier")
    text = svg_of(found._figure("brier"))
    root = ET.fromstring(text)
    assert "<script>" not in text
    assert "</desc>" in "".join(root.itertext())


def test_bars_strips_and_shades_are_drawn_where_they_are():
    marks = [
        Strip("forecasts", [0, 0.5, 1], [2, 4]),
        Shade("range", "x", 0.25, 0.75),
        Bars("shares", [0.25, 0.75], [0.5, 1.0], width=0.2),
    ]
    figure = Figure("", marks, Axis("p", 0, 1), Axis("share", 0, 1))
    root = ET.fromstring(svg_of(figure))
    left, top, width, height = map(float, root.get("data-plot").split())
    boxes = list(root.iter(f"{SVG}rect"))[1:]
    shade, short, tall = boxes
    assert float(shade.get("x")) == pytest.approx(left + 0.25 * width, abs=0.1)
    assert float(short.get("height")) == pytest.approx(0.5 * height, abs=0.1)
    assert float(tall.get("y")) == pytest.approx(top, abs=0.1)
    ax = plt.figure().subplots()
    from verax.display.plots import draw_figure

    draw_figure(ax, figure)
    heights = sorted(bar.get_height() for bar in ax.patches)
    assert heights == pytest.approx([0.1, 0.2, 0.5, 1.0, 1.0])
    assert figure.table()[1][:2] == [
        ["forecasts", "", "", "0", "0.5", "2"],
        ["forecasts", "", "", "0.5", "1", "4"],
    ]


def test_classes_that_a_span_holds_are_named():
    spans = [row for row in sheet("spans").figures[0].table()[1] if row[2] or row[3]]
    assert {cell for row in spans for cell in row[1:]} >= set(GRADES[:1])
