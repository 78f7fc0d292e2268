"""The report in a real browser: it draws, answers, fits, prints, and keeps to itself."""

from __future__ import annotations

import base64
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

import verax as vx
from browsers import CHROMIUM, DRIVER
from reports import EVIL, GRADES, LIGHT, graded, light, sample, two_class
from verax.analyses.words import short_of
from verax.report import Report
from verax.wings.monitor.page import save_monitor_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver: apt-get install chromium-driver"
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    graded()[-1].save(path)
    return path


@pytest.fixture(scope="module")
def two_class_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "report.html"
    two_class().save(path)
    return path


# Of the figures of a place one is seen, in the width for screens. Circles are means with intervals.
SEEN = "[data-chart=${arguments[0]}] .variant:not([hidden]) .large"
MARKS = f"return [...document.querySelectorAll(`{SEEN} .ranges circle`)].map(x => x.getAttribute('cx'))"
TIP = "const tip = document.querySelector('.tip'); return tip.hidden ? null : tip.textContent"


def test_it_draws_and_keeps_to_itself(browser, page):
    browser.open(page)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    drawn = "[...document.querySelectorAll('[data-chart]')]"
    marks = "svg .line path, svg .ranges path"
    empty = f"return {drawn}.filter(x => !x.querySelector('{marks}')).map(x => x.dataset.chart)"
    assert browser.run(empty) == []
    # Three of them are of recalibration, before and after.
    assert browser.run(f"return {drawn}.length") == 13
    named = """return [...document.querySelectorAll('[data-chart] svg[data-plot]')]
        .map(x => [x.getAttribute('role'), x.querySelector('title').textContent,
                   x.getAttribute('aria-labelledby').split(' ').every(id => x.querySelector(`#${id}`))])"""
    for role, title, described in browser.run(named):
        assert role == "img"
        assert title
        assert described
    # The policy is in force: neither a fetch nor a script that is not the page's own gets through.
    refused = "fetch('data:text/plain,x').then(() => arguments[0](false), () => arguments[0](true))"
    assert browser.driver.execute_async_script(refused)
    browser.run(
        """const script = document.createElement("script");
           script.textContent = "window.strange = 1";
           document.body.append(script)"""
    )
    assert browser.run("return window.strange") is None
    browser.complaints()


def test_hovering_shows_the_numbers(browser, page):
    browser.open(page)
    box = browser.run(
        """const place = document.querySelector("[data-chart=classes] .variant:not([hidden]) .large");
           const mark = place.querySelector(".ranges circle");
           mark.scrollIntoView({block: "center"});
           const box = mark.getBoundingClientRect();
           return [box.x + box.width / 2, box.y + box.height / 2]"""
    )
    browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    browser.settle()
    text = browser.run(TIP)
    assert text is not None
    assert "none" in text
    assert "mean loss" in text
    y, p = sample()
    assert f"{vx.rps(y[y == 0], p[y == 0]):.4g}"[:5] in text
    assert browser.complaints() == []


def test_switching_score_model_and_metric(browser, page):
    browser.open(page)
    means = MARKS
    shown = """return [...document.querySelectorAll(`[data-${arguments[0]}]`)]
        .filter(x => !x.hidden).map(x => x.dataset[arguments[0]])"""
    before = browser.run(means, "classes")
    assert set(browser.run(shown, "score")) == {"0"}
    browser.choose("score", 1)
    after = browser.run(means, "classes")
    assert len(after) == len(before) > 0
    assert after != before
    assert set(browser.run(shown, "score")) == {"1"}
    values = "return [...document.querySelectorAll('main select[data-signal=score]')].map(s => s.value)"
    assert browser.run(values) == ["1", "1"]
    assert set(browser.run(shown, "model")) == {"0"}
    browser.choose("model", 1)
    assert set(browser.run(shown, "model")) == {"1"}
    assert browser.run(means, "classes") != after
    line = f"return document.querySelector(`{SEEN} .line path`).getAttribute('d')"
    kappa = browser.run(line, "retained")
    browser.choose("metric", 1)
    assert browser.run(line, "retained") != kappa
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [400, 320])
def test_a_phone_needs_no_sideways_scrolling(browser, page, width):
    browser.open(page)
    browser.resize(width, 800)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    widest = """return Math.max(...[...document.querySelectorAll("[data-chart] svg")]
        .map(svg => svg.getBoundingClientRect().right))"""
    assert browser.run(widest) <= width
    browser.choose("score", 2)
    assert browser.complaints() == []


def test_wide_tables_scroll_in_their_own_frame_with_whole_words(browser, page):
    browser.open(page)
    browser.resize(400, 800)
    lines = """const whole = [];
        for (const cell of document.querySelectorAll(".matrix th bdi, #comparison tbody th bdi")) {
          if (cell.closest("[hidden], details:not([open])")) continue;
          const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          const range = document.createRange();
          range.selectNodeContents(walker.nextNode());
          whole.push([cell.textContent, new Set([...range.getClientRects()].map(box => box.top)).size]);
        }
        return whole"""
    found = browser.run(lines)
    assert {name for name, _ in found} == {*GRADES, "new", "old"}
    assert {n for _, n in found} == {1}
    frame = """const frame = document.querySelector("#confusion [data-model]:not([hidden]) .scroll");
        frame.scrollLeft = 10000;
        const last = frame.querySelector("tbody tr td:last-child").getBoundingClientRect();
        return [frame.tabIndex, frame.getAttribute("role"), frame.getAttribute("aria-label"), last.right]"""
    stop, role, label, right = browser.run(frame)
    assert (stop, role) == (0, "region")
    assert label == "Confusion matrix"
    assert right <= 400


def test_on_a_phone_no_column_is_cut(browser, page, two_class_page):
    for path in (page, two_class_page):
        browser.open(path)
        browser.resize(390, 800)
        browser.run("for (const part of document.querySelectorAll('details')) part.open = true")
        cut = """return [...document.querySelectorAll(".scroll")]
            .filter(x => x.clientWidth && !x.querySelector(".matrix") && !x.closest(".numbers"))
            .filter(x => x.scrollWidth > x.clientWidth + 1)
            .map(x => x.getAttribute("aria-label"))"""
        assert browser.run(cut) == []
    # What a number is stands beside it.
    label = "return getComputedStyle(document.querySelector('#thresholds .listed td'), '::before').content"
    assert browser.run(label) == '"Acted on"'


def test_two_classes_in_the_browser(browser, two_class_page):
    browser.open(two_class_page)
    assert browser.complaints() == []
    lines = f"return document.querySelectorAll(`{SEEN} .line path, {SEEN} .guide path`).length"
    # Two models and a line to compare with, but for accuracy by confidence, where calibrated rows
    # lie above the diagonal; decision curves have that of acting in all rows besides.
    assert [browser.run(lines, name) for name in ("roc", "recall", "confident", "worth")] == [3, 3, 2, 4]
    bands = f"return document.querySelector(`{SEEN} .band path`).getAttribute('d')"
    browser.choose("model", 0)
    first = browser.run(bands, "roc")
    browser.choose("model", 1)
    assert browser.run(bands, "roc") != first
    assert "the chosen model" in browser.run("return document.querySelector('#thresholds').textContent")


def test_printed_figures_keep_the_size_of_their_texts(browser, two_class_page):
    browser.open(two_class_page)
    browser.resize(690)
    browser.command("Emulation.setEmulatedMedia", media="print")
    browser.settle()
    scales = """return [...document.querySelectorAll("[data-chart] svg[data-plot]")]
        .filter(x => x.clientWidth).map(x => x.getBoundingClientRect().width / x.viewBox.baseVal.width)"""
    found = browser.run(scales)
    browser.command("Emulation.setEmulatedMedia", media="screen")
    assert len(found) > 8
    assert min(found) > 0.6
    assert max(found) <= 1.001


def test_intervals_end_inside_the_plot(browser, page):
    browser.open(page)
    seen = """const seen = [...document.querySelectorAll(arguments[0])]
        .flatMap(x => [...x.querySelectorAll("svg[data-plot]")]).filter(x => x.clientWidth);
        return seen"""
    gaps = f"""{seen}.map(svg => {{
        const [left, , width] = svg.dataset.plot.split(" ").map(Number);
        const ends = [...svg.querySelectorAll(".ranges path")]
            .flatMap(x => x.getAttribute("d").match(/[\\d.]+/g).filter((_, i) => i !== 1).map(Number));
        return Math.min(...ends.map(x => Math.min(x - left, left + width - x)));
    }})"""
    ticks = f"""{seen}.flatMap(svg => {{
        const labels = [...svg.querySelectorAll("text[text-anchor=middle]")];
        const numbers = labels.filter(x => /^[−\\d.]+$/.test(x.textContent));
        const boxes = numbers.map(x => x.getBoundingClientRect());
        return boxes.slice(1).map((box, i) => box.left - boxes[i].right)
    }})"""
    charts = "[data-chart=classes], [data-chart=models]"
    for width in (1280, 400):
        browser.resize(width)
        for score in range(3):
            browser.choose("score", score)
            found = browser.run(gaps, charts)
            assert len(found) == 2
            assert min(found) >= 8
            apart = browser.run(ticks, f"{charts}, [data-chart=differences]")
            assert len(apart) >= 4
            assert min(apart) >= 8


def test_dark_and_light(browser, page):
    browser.open(page)
    look = """const style = (x, name) => getComputedStyle(x)[name];
        return [style(document.body, "backgroundColor"), style(document.body, "color"),
                style(document.querySelector("[data-chart=classes] svg text"), "fill")]"""

    def brightness():
        colours = [[float(n) for n in c[c.index("(") + 1 : -1].split(",")[:3]] for c in browser.run(look)]
        return [sum(c) / 3 for c in colours]

    paper, ink, label = brightness()
    assert paper > 240
    assert max(ink, label) < 120
    browser.prefer("dark")
    paper, ink, label = brightness()
    assert paper < 40
    assert min(ink, label) > 150
    assert browser.run("return document.getElementById('theme').textContent") == "Light"
    browser.run("document.getElementById('theme').click()")
    assert brightness()[0] > 240
    browser.prefer("light")
    browser.run("document.getElementById('theme').click()")
    assert brightness()[0] < 40


def test_it_prints(browser, page, tmp_path):
    browser.open(page)
    browser.prefer("dark")
    printed = browser.command("Page.printToPDF", preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69)
    data = base64.b64decode(printed["data"])
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") > 3
    assert browser.run("return document.querySelectorAll('details.definition[open]').length") == 0
    if shutil.which("pdftotext"):
        (tmp_path / "page.pdf").write_bytes(data)
        command = ["pdftotext", "-layout", tmp_path / "page.pdf", "-"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "What to look at first" in text
        assert "11/54" in text  # an erratum, folded on the screen
        assert "Skip to the verdict" not in text
        # Numbers behind the charts, folded on the screen, and not torn apart.
        assert "Expected range" in text
        assert "Mean height" in text
        pages = text.split("\f")
        (matrix,) = [page for page in pages if "Rows: outcomes" in page]
        assert matrix.count("cost 1") > 2
        assert all(grade in matrix for grade in GRADES)
        (checks,) = [page for page in pages if "Data checks" in page]
        assert "Subgroups of site" in checks
        assert f"verax {vx.__version__}" in checks


def test_the_keyboard_is_enough(browser, page):
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    focus = (
        "const x = document.activeElement; return [x.tagName, x.className, x.textContent.trim().slice(0, 30)]"
    )
    browser.press(Keys.TAB)
    assert browser.run(focus)[1] == "skip"
    assert browser.run("return document.activeElement.getBoundingClientRect().left") >= 0
    browser.press(Keys.ENTER)
    assert browser.run("return location.hash") == "#verdict"
    browser.run("document.querySelector('.skip').focus()")
    stops = []
    for _ in range(100):
        browser.press(Keys.TAB)
        stop = browser.run(focus)
        if stop[0] == "BODY":
            break
        stops.append(stop)
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", stops[-1]
    tags = [tag for tag, *_ in stops]
    assert tags[:2] == ["SELECT", "BUTTON"]
    assert tags[2:12] == ["A"] * 10
    assert {"SUMMARY", "DIV"} <= set(tags)  # what folds, and tables that scroll
    browser.run("document.querySelector('details.definition summary').focus()")
    browser.press(Keys.SPACE)
    assert browser.run("return document.querySelector('details.definition').open")


def test_texts_from_outside_stay_texts(browser, tmp_path, change):
    change(**LIGHT)
    y, p = sample(120)
    evil = [*EVIL[:3], 'x" onload="alert(2)']
    report = Report.of(
        y,
        {EVIL[0]: p, "m']; alert(3); ['": 0.5 * p + 0.125},
        classes=evil,
        by={EVIL[2]: np.array(evil, dtype=object)[np.arange(120) % 4]},
        ids=[f"{evil[i % 4]}{i}" for i in range(120)],
        title=EVIL[0],
        source="javascript:alert(4)",
    )
    path = tmp_path / "evil.html"
    report.save(path)
    browser.open(path)
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        browser.driver.switch_to.alert  # noqa: B018
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.driver.title == EVIL[0]
    assert EVIL[0] in browser.run("return document.querySelector('h1').textContent")
    labels = "return [...document.querySelectorAll('[data-chart=classes] svg text')].map(x => x.textContent)"
    # Long names lose their middle.
    assert any(text.startswith("<script>al") and text.endswith("</script>") for text in browser.run(labels))
    worst = browser.run("return document.querySelector('.cases .id bdi').textContent")
    assert worst == str(report.contents.findings[0].worst[0].id)
    assert browser.run("return document.querySelectorAll('[onload], b').length") == 0


# Names that JavaScript objects have already.
INHERITED = ["__proto__", "constructor", "hasOwnProperty", "toString"]


@dataclass(frozen=True, repr=False)
class Inherited(vx.rules.Brier):
    """A rule with such a name."""

    name = "__proto__"


def test_names_that_javascript_objects_have_already(browser, tmp_path):
    y, p = sample(240)
    report = light(
        y,
        {INHERITED[0]: p, INHERITED[1]: 0.5 * p + 0.125, INHERITED[2]: 0.9 * p + 0.025},
        classes=INHERITED,
        by={"__proto__": np.array(INHERITED, dtype=object)[np.arange(240) % 4]},
        rules=[Inherited(), "log_score"],
    )
    path = tmp_path / "inherited.html"
    report.save(path)
    browser.open(path)
    assert browser.complaints() == []
    # Flagged values have another shape.
    means = f"return document.querySelectorAll(`{SEEN} .ranges :is(circle, path[d$=Z])`).length"
    labels = """return [...document.querySelectorAll(`[data-chart=${arguments[0]}] svg text`)]
        .map(x => x.textContent)"""
    for chart, names in (
        ("classes", INHERITED),
        ("subgroups-0", INHERITED),
        ("models", INHERITED[:3]),
    ):
        assert browser.run(means, chart) >= len(names), chart
        assert set(names) <= set(browser.run(labels, chart)), chart
    ranked = [curve.order for curve in next(iter(report.contents.found["retention"].values())).retained]
    key = (
        "return [...document.querySelectorAll('[data-chart=retained] .key li')].map(x => x.innerText.trim())"
    )
    assert {short_of(order) for order in ranked} <= set(browser.run(key))
    lines = f"return document.querySelectorAll(`{SEEN} .line path`).length"
    assert browser.run(lines, "retained") == len(set(ranked))
    before = browser.run(MARKS, "models")
    browser.choose("score", 1)
    browser.choose("model", 1)
    assert browser.complaints() == []
    assert browser.run(means, "subgroups-0") >= len(INHERITED)
    assert browser.run(MARKS, "models") != before


def test_without_scripts_every_number_is_there(browser, page):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.driver.get(page.as_uri())
        hidden = browser.run("return document.querySelectorAll('[data-model][hidden]').length")
        assert hidden == 0
        assert browser.run("return document.querySelectorAll('table').length") > 20
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """A report with long ids, certain mistakes, negative skill and rare decisions."""
    rng = np.random.default_rng(0)
    p = np.exp(6 * rng.normal(size=(1200, 3)))
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(0, 3, 1200)
    # Class 2 happens 1,000 times, and is decided in 5 of them.
    y[:200], y[200:] = rng.integers(0, 2, 200), 2
    p[200:] = [0.02, 0.97, 0.01]
    p[200:205] = [0.02, 0.01, 0.97]
    ids = [f"patient-2024-03-17T09:12:33.123456Z/scan/{i:06d}/left-eye-macula-centred" for i in range(1200)]
    path = tmp_path_factory.mktemp("edges") / "report.html"
    light(y, {"model": p}, classes=["a", "b", "c"], ids=ids).save(path)
    return path


@pytest.mark.parametrize("width", [390, 1280])
def test_numbers_are_whole_beside_long_ids_and_clear_of_their_bars(browser, edges, width):
    browser.open(edges)
    browser.resize(width)
    broken = """return [...document.querySelectorAll(".what .loss")].filter(x => {
        const range = document.createRange();
        range.selectNodeContents(x.lastChild);
        return range.getClientRects().length !== 1 || x.getBoundingClientRect().right > innerWidth;
    }).length"""
    assert browser.run("return document.querySelectorAll('.what .loss').length") > 3
    assert browser.run(broken) == 0
    # How far the text of a probability ends before its bar begins, at the least.
    gap = """const shown = [...document.querySelectorAll(".chances .n")].filter(x => x.offsetParent);
        return Math.min(...shown.map(x => {
        const range = document.createRange();
        range.selectNodeContents(x);
        const bar = x.parentElement.querySelector("i");
        return bar ? bar.getBoundingClientRect().left - range.getBoundingClientRect().right : 99;
    }))"""
    assert browser.run(gap) >= 4
    assert browser.run("return document.body.scrollWidth <= innerWidth")


def test_negative_skill_is_drawn_to_the_left(browser, edges):
    browser.open(edges)
    bars = browser.run("""return [...document.querySelectorAll(".scores .gauge .signed")].map(x => {
        const places = [x.querySelector("i"), x.querySelector("b"), x];
        const [bar, zero, all] = places.map(y => y.getBoundingClientRect());
        const skill = x.closest("tr").querySelectorAll("td.n")[1].firstChild.textContent;
        return [skill, bar.left, bar.right, zero.left, all.left, all.right];
    })""")
    assert any(skill.startswith("−") for skill, *_ in bars)
    for skill, left, right, zero, first, last in bars:
        assert first - 1 <= left
        assert right <= last + 1
        value = float(skill.strip("%").replace("−", "-")) / 100
        length = (last - first) / 2  # some score is at -100 % or below, so zero is in the middle
        if value < 0:
            assert right == pytest.approx(zero, abs=1)
        else:
            assert left == pytest.approx(zero, abs=1)
        assert right - left == pytest.approx(length * min(1, abs(value)), abs=1.5)


def test_small_shares_are_not_nothing(browser, edges):
    browser.open(edges)
    cells = browser.run("""return [...document.querySelectorAll(".matrix tbody tr")].at(-1)
        .innerText.split(/\\s+/)""")
    assert cells == ["c", "0", "995", "99.5%", "5", "0.5%", "1,000"]


def test_the_page_of_a_monitor_fits_phones_and_screens(browser, tmp_path):
    monitor, rng = vx.Monitor(0.4, by="site"), np.random.default_rng(0)
    for day in range(70):
        p, site = rng.dirichlet(np.ones(3), 30), rng.choice(["north", "south"], 30)
        monitor.update(rng.integers(0, 3, 30), p, time=np.datetime64("2026-01-01") + day, by={"site": site})
    path = tmp_path / "monitor.html"
    save_monitor_page(monitor, path)
    browser.driver.get(path.as_uri())
    browser.complaints()
    for width in (390, 1440):
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        # No column of the table is cut, and charts are seen one at a time: for phones or for screens.
        assert (
            browser.run("const x = document.querySelector('.scroll'); return x.scrollWidth - x.clientWidth")
            <= 0
        )
        shown = "return [...document.querySelectorAll('svg')].filter(x => x.clientWidth)"
        drawn = f"{shown}.filter(x => x.dataset.plot)"
        named = browser.run(f"{drawn}.map(x => [x.role, x.querySelector('desc').textContent])")
        assert len(named) == 2 + 4
        assert all(role == "img" and len(said) > 20 for role, said in named)
        widest = (
            f"return Math.max(...{shown.removeprefix('return ')}.map(x => x.getBoundingClientRect().right))"
        )
        assert browser.run(widest) <= width
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A page of a monitor, which is nothing but figures and tables."""
    monitor, rng = vx.Monitor(0.4), np.random.default_rng(0)
    for day in range(12):
        monitor.update(rng.integers(0, 3, 30), rng.dirichlet(np.ones(3), 30), time=day)
    path = tmp_path_factory.mktemp("plain") / "monitor.html"
    save_monitor_page(monitor, path)
    return path, monitor


def test_figures_tell_their_values_by_pointer_and_arrow_keys(browser, plain):
    from selenium.webdriver.common.keys import Keys

    path, monitor = plain
    browser.driver.get(path.as_uri())
    browser.complaints()
    assert browser.run(TIP) is None
    box = browser.run(
        """const svg = document.querySelector("#losses svg");
           svg.scrollIntoView({block: "center"});
           const box = svg.getBoundingClientRect();
           const [left, top, width, height] = svg.dataset.plot.split(" ").map(Number);
           return [box.x + left + 2, box.y + top + height / 2, box.x + left + width - 2]"""
    )
    steps = monitor.history.lines
    for x, step in ((box[0], steps[0]), (box[2], steps[-1])):
        browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=box[1])
        browser.settle()
        assert f"{step.loss:.5g}" in browser.run(TIP)
        assert f"time: {step.time}" in browser.run(TIP)
    browser.run("document.querySelector('#losses svg').focus()")
    browser.press(Keys.HOME)
    first = browser.run(TIP)
    assert f"{steps[0].loss:.5g}" in first
    browser.press(Keys.ARROW_RIGHT)
    assert f"{steps[1].loss:.5g}" in browser.run(TIP)
    browser.press(Keys.ARROW_LEFT)
    assert browser.run(TIP) == first
    assert browser.run("return document.querySelectorAll('.target').length") == 1
    browser.press(Keys.ESCAPE)
    assert browser.run(TIP) is None
    assert browser.complaints() == []


def test_figures_can_be_taken_along(browser, plain):
    path, monitor = plain
    browser.driver.get(path.as_uri())
    browser.complaints()
    saved = """const [done] = arguments, found = {};
        const waiting = new Set(["losses.svg", "losses.png", "losses.csv"]), make = URL.createObjectURL;
        let last;
        URL.createObjectURL = (blob) => { last = blob; return make(blob); };
        HTMLAnchorElement.prototype.click = async function () {
            const name = this.download, blob = last;
            const bytes = new Uint8Array(await blob.arrayBuffer());
            const content = name.endsWith("png") ? [...bytes.slice(0, 8)] : await blob.text();
            found[name] = [blob.type, content, bytes.length];
            waiting.delete(name);
            if (!waiting.size) done(found);
        };
        for (const button of document.querySelectorAll("#losses .get button")) button.click();"""
    found = browser.driver.execute_async_script(saved)
    assert found["losses.png"][1] == list(b"\x89PNG\r\n\x1a\n")
    assert found["losses.png"][2] > 5000
    kind, svg, _ = found["losses.svg"]
    assert kind == "image/svg+xml"
    assert "rgb(" in svg
    assert "var(" not in svg
    table = found["losses.csv"][1].splitlines()
    assert table[0].count(",") == table[1].count(",") > 2
    assert any(f'"{monitor.history.lines[0].loss:.5g}"' in line for line in table)
    assert browser.complaints() == []
