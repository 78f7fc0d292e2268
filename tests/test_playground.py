"""The playground: its JavaScript is printed from the formulas, and a browser gives the same numbers."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import verax as vx
from browsers import CHROMIUM, DRIVER, Browser
from pages import DOCS

pytest.importorskip("sphinx")
sys.path.insert(0, str(DOCS / "_ext"))
import javascript
import playground

STATIC = DOCS / "_static"
RULES = list(vx.rules.RULES.values())
# Corners, edges, ties of two and three classes, neighbours of ties, and others.
POINTS = [[1, 0, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.3, 0.7], [0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3]]
POINTS += [[0.41, 0.39, 0.2], [0.25, 0.5, 0.25], [1e-9, 0.25, 0.75 - 1e-9], [0.1, 0.2, 0.7]]

ANSWERS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "log": lambda a: math.log(a) if a > 0 else -math.inf,
    "sqrt": math.sqrt,
    "maximum": max,
    "minimum": min,
    "equal": lambda a, b: a == b,
    "choose": lambda a, b, c: b if a else c,
}


def run(steps, known):
    """What a list of steps computes."""
    for step in steps:
        operands = [known[x] if x in known else float(x) for x in step.operands]
        known[step.name] = ANSWERS[step.operation](*operands)
    return known


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_steps_compute_the_losses(n_classes):
    rules = {**vx.rules.RULES, "lowest": vx.rules.ZeroOne("lowest")}
    trace = javascript.trace_of(rules, n_classes)
    assert set(ANSWERS) | {"exp", "abs"} == set(javascript.TEXTS)
    rng = np.random.default_rng(0)
    forecasts = [
        *rng.dirichlet(np.ones(n_classes), 5),
        np.eye(n_classes)[0],
        np.full(n_classes, 1 / n_classes),
    ]
    for y in range(n_classes):
        steps, names = javascript.statistics_of(trace.statistics, n_classes, y)
        for p in forecasts:
            known = run(steps, {f"p{j}": float(x) for j, x in enumerate(p)})
            stats = {name: known[x] if x in known else float(x) for name, x in names.items()}
            stats |= {f"c{i}": c for i, c in enumerate(trace.constants)}
            found = [run(trace.steps, stats)[loss] for loss in trace.losses]
            np.testing.assert_allclose(
                found, [rule([y], [p]) for rule in rules.values()], rtol=1e-13, atol=1e-15
            )


@pytest.mark.filterwarnings("ignore:The formula of")
def test_a_formula_without_a_trace_is_named():
    class Branching(type(vx.brier)):
        name = "branching"

        def formula(self, stats):
            return stats.p_true if stats.p_true > 0 else stats.rest_sq

    with pytest.raises(ValueError, match="These rules have no trace: mine"):
        javascript.trace_of({"mine": Branching(), "brier": vx.brier}, 3)


# ---- in a browser --------------------------------------------------------------------------------


def in_browser(test):
    reason = "needs chromium and chromedriver: apt-get install chromium-driver"
    return pytest.mark.browser(pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=reason)(test))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser()
    path = tmp_path_factory.mktemp("playground") / "page.html"
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    # The heading of the page has the identifier that Sphinx makes of it.
    heading = '<section id="playground"><h1>Playground</h1>'
    path.write_text(head + heading + playground.markup(STATIC.as_uri()), "utf-8")
    made.open(path)
    yield made
    made.driver.quit()


def shown(browser, column="td:nth-child(3)"):
    """The numbers beside the triangle, with all their digits."""
    script = "return [...document.querySelectorAll(`tbody ${arguments[0]}`)].map(cell => cell.dataset.value)"
    return [float(text.replace("Infinity", "inf")) for text in browser.run(script, column)]


def place_of(browser, selector):
    script = "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
    return browser.run(script + "return [b.x, b.y, b.width, b.height]", selector)


def slide(browser, kind, j, percent):
    browser.run(
        """const slider = document.querySelectorAll(`.sliders.${arguments[0]} input`)[arguments[1]];
           slider.value = arguments[2];
           slider.dispatchEvent(new Event("input"))""",
        kind,
        j,
        percent,
    )


def position(browser, kind="forecast"):
    script = "return document.querySelector(arguments[0]).getAttribute('aria-valuetext')"
    return [float(x) for x in browser.run(script, f".handle.{kind}").strip("()").split(",")]


@in_browser
def test_the_page_gives_the_numbers_of_python(browser):
    assert browser.complaints() == []
    # The page, its style sheet and its script, which are used.
    asked = [address.rpartition("/")[2] for address in browser.requests()]
    assert asked == ["page.html", "playground.css", "playground.js"]
    placed = "return getComputedStyle(document.querySelector('.playground .map svg')).position"
    assert browser.run(placed) == "absolute"
    script = "return veraxRules.losses(arguments[0], arguments[1]).map(String)"
    for p in POINTS:
        for y in range(3):
            found = [float(x.replace("Infinity", "inf")) for x in browser.run(script, p, y)]
            np.testing.assert_allclose(found, [rule([y], [p]) for rule in RULES], rtol=1e-12, atol=1e-15)


@in_browser
def test_dots_sliders_and_keys_move_the_forecast(browser):
    def check():
        p = position(browser)
        assert sum(p) == pytest.approx(1)
        np.testing.assert_allclose(shown(browser), [rule([0], [p]) for rule in RULES], rtol=1e-12, atol=1e-15)
        return p

    browser.run("document.querySelector('input[value=\"0\"]').click()")
    assert check() == [0.5, 0.3, 0.2]
    # Dragged by the pointer to the middle of the edge between classes 0 and 2, and beyond it.
    box, start = place_of(browser, ".map svg"), place_of(browser, ".forecast .dot")
    start = start[0] + start[2] / 2, start[1] + start[3] / 2
    places = [("mousePressed", *start), ("mouseMoved", box[0] + box[2] / 2, box[1] + box[3] + 30)]
    places += [("mouseReleased", *places[-1][1:])]
    for kind, x, y in places:
        browser.command(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )
    assert check() == [0.5, 0, 0.5]
    # By touch, to the top corner.
    for kind, points in (
        ("touchStart", [(box[0] + box[2] / 2, box[1] + box[3] / 2)]),
        ("touchMove", [(box[0] + box[2] / 2, box[1] + 2)]),
        ("touchEnd", []),
    ):
        browser.command(
            "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points]
        )
    assert check() == [0, 1, 0]
    assert math.inf in shown(browser)
    # By keys: ten steps to the left, one to the right.
    browser.run("document.querySelector('.handle.forecast').focus()")
    for key, shift in (("ArrowLeft", 8), ("ArrowRight", 0)):
        browser.command("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, modifiers=shift)
    np.testing.assert_allclose(check(), [0.1, 0.89, 0.01], atol=0.011)
    # By a slider; the others keep their proportions.
    slide(browser, "forecast", 1, 50)
    assert check()[1] == 0.5


@in_browser
def test_the_truth_can_be_set_and_improper_rules_are_named(browser):
    browser.run(
        "[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('sa-RPS')).click()"
    )
    p, q = position(browser), position(browser, "truth")
    assert (p, q) == ([0.1, 0.9, 0], [0.45, 0.2, 0.35])
    np.testing.assert_allclose(shown(browser), [rule.expected(p, q) for rule in RULES], rtol=1e-12)
    np.testing.assert_allclose(shown(browser, "td:nth-child(4)"), [r.entropy(q) for r in RULES], rtol=1e-12)
    beats = browser.run("return [...document.querySelectorAll('tr.beats')].map(row => row.dataset.rule)")
    assert beats == ["abs_rps", "sa_rps"]
    slide(browser, "truth", 2, 0)
    q = position(browser, "truth")
    assert q[2] == 0
    np.testing.assert_allclose(shown(browser), [rule.expected(p, q) for rule in RULES], rtol=1e-12)
    # It fits a phone.
    browser.resize(390)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    assert browser.complaints() == []
