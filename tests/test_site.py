"""The site: every public name has its place, every question an answer, and pages work in a browser."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

import verax as vx
from browsers import CHROMIUM, DRIVER, Browser
from findability import QUERIES, QUESTIONS
from pages import DOCS, ROOT

# Adapters have no `__all__`; their page lists what they define.
MODULES = [
    "verax",
    "verax.report",
    "verax.results",
    "verax.rules",
    "verax.diagrams",
    "verax.errors",
    "verax.selection",
    "verax.files",
]
REFERENCE = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))
CHOOSE = (DOCS / "choose.md").read_text()


def listed() -> list[str]:
    """The names of the reference, with their modules."""
    blocks = re.findall(r"currentmodule:: (\S+)\n(.*?)```", REFERENCE, re.DOTALL)
    return [f"{module}.{name}" for module, block in blocks for name in re.findall(r"^   (\w+)$", block, re.M)]


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(module):
    names = {name for name in importlib.import_module(module).__all__ if f"{module}.{name}" not in MODULES}
    # What is at the top stands there.
    names -= {"adapters", "compat"} if module == "verax" else set(vx.__all__)
    assert names == {
        name.removeprefix(f"{module}.") for name in listed() if name.rpartition(".")[0] == module
    }


def test_the_reference_has_every_name_once_and_every_rule():
    names = listed()
    assert len(names) == len(set(names))
    assert {f"verax.{name}" for name in vx.rules.RULES} <= set(names)


def test_every_page_of_the_reference_links_to_its_guide_page():
    links = runpy.run_path(str(DOCS / "_ext" / "related.py"))["links"](gallery=True)
    assert set(links) == set(listed())
    for text in links.values():
        pages = [DOCS / f"{place}.md" for place in re.findall(r"</(guide/\w+)>", text)]
        examples = [DOCS / "gallery" / f"{place}.py" for place in re.findall(r"</examples/([\w/]+)>", text)]
        assert len(pages) == 1
        assert all(path.exists() for path in [*pages, *examples])
    assert sum("Examples" in text for text in links.values()) > 40


def fits(cell, answer):
    return cell in ("any", answer)


def test_every_path_of_choosing_a_score_ends_in_a_rule_that_keeps_its_promise():
    lines = [line for line in CHOOSE.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    answers = [sorted({row[i] for row in rows} - {"any"}) for i in range(len(header) - 1)]
    assert [len(choices) for choices in answers] == [2, 2, 2, 3, 4]
    used = set()
    for path in itertools.product(*answers):
        judged, ordered, _, classes, purpose = path
        row = next(row for row in rows if all(map(fits, row, path)))
        used.add(tuple(row))
        title, anchor = re.fullmatch(r"\[(.*)\]\(#(.*)\)", row[-1]).groups()
        assert anchor == re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        section = CHOOSE.split(f"### {title}\n")[1].partition("\n#")[0]
        name, page = re.search(r"\[`(\w+)`\]\(rules/generated/(\w+)\.md\)", section).groups()
        promised = vx.rules.RULES[name].properties.at({"two": 2, "several": 5, "very many": 1000}[classes])
        assert name == page
        assert promised["proper"]
        if judged == "probabilities" or purpose == "training":
            assert promised["strictly_proper"], path
        if judged == "probabilities" and purpose == "monitoring":
            assert promised["bounded"], path
        if judged == "probabilities" and (ordered, classes) == ("yes", "several") and purpose != "training":
            assert promised["distance_sensitive"], path
        if classes == "very many":
            assert promised["symmetric"], path
    assert used == set(map(tuple, rows))


# ---- in a browser --------------------------------------------------------------------------------


def build(folder):
    """The site, built from the sources in the repository alone, without what takes long."""
    sources = folder / "docs"
    shutil.copytree(DOCS, sources, ignore=shutil.ignore_patterns("generated", "examples", "__pycache__"))
    for name in ("studies", "CHANGELOG.md"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "tests").mkdir()
    (folder / "tests" / "toy").symlink_to(ROOT / "tests" / "toy")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", sources, folder / "html"],
        env={**os.environ, "VERAX_DOCS_FAST": "1"},
        check=True,
    )
    return folder / "html"


def visit(browser, path, width=1280, query=""):
    browser.resize(width)
    browser.driver.get(path.as_uri() + query)
    browser.settle()


def wait_for(browser, condition):
    """Ask again until the page says yes, or ten seconds have passed."""
    script = f"""const done = arguments[0]; const end = Date.now() + 10000;
        const ask = () => ({condition}) ? done(true) : Date.now() > end ? done(false) : setTimeout(ask, 30);
        ask();"""
    assert browser.driver.execute_async_script(script), condition


# One test, so that one worker builds the site once.
@pytest.mark.pages
@pytest.mark.browser
def test_the_site_is_built_and_works_in_a_browser(tmp_path):
    pytest.importorskip("sphinx_gallery")
    site = build(tmp_path)
    checklinks = runpy.run_path(str(DOCS / "_ext" / "checklinks.py"))
    assert checklinks["problems"](site, partial=True) == []
    assert unanswered(site) == []
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    browser = Browser()
    try:
        look_at(site, browser)
    finally:
        browser.driver.quit()


def unanswered(site):
    """The questions of new readers that two clicks from the front page do not answer, menus aside."""
    reached = {"index": ""}
    for _ in range(2):
        for page in list(reached):
            text = (site / f"{page}.html").read_text(encoding="utf-8")
            for href, label in re.findall(
                r'<a [^>]*href="([^"#:]+)\.html[^>]*>(.*?)</a>', article(text), re.DOTALL
            ):
                place = os.path.normpath(os.path.join(os.path.dirname(page), href))
                if (site / f"{place}.html").exists():
                    reached[place] = f"{reached.get(place, '')} {re.sub('<[^>]+>', '', label)}".lower()
    return [question for question, (page, word) in QUESTIONS.items() if word not in reached.get(page, "")]


def article(text):
    """The page without menus, header and footer."""
    return text.partition("<article")[2].partition("</article>")[0]


def first(browser, site, words):
    """The first three results of the search, as the page shows them."""
    visit(browser, site / "search.html", query=f"?q={quote(words)}")
    wait_for(browser, "document.querySelector('.search-summary')?.textContent")
    links = "[...document.querySelectorAll('#search-results li > a')].slice(0, 3)"
    hrefs = browser.run(f"return {links}.map(a => a.getAttribute('href'))")
    return [href.partition("#")[0].removesuffix(".html") for href in hrefs]


def look_at(site, browser):
    """Front page, light and dark, a formula, search, the questions, phones, and no other host."""
    visit(browser, site / "index.html")
    assert browser.run("return [...document.images].every(image => image.complete && image.naturalWidth > 0)")
    links = browser.run(
        "return [...document.querySelectorAll('.sd-card a')].map(a => a.getAttribute('href'))"
    )
    assert {
        "start.html",
        "choose.html",
        "tutorials/index.html",
        "guide/index.html",
        "rules/index.html",
    } <= set(links)

    papers = {}
    for mode in ("dark", "light"):
        browser.run("document.querySelector(`.theme-change-button[data-mode=${arguments[0]}]`).click()", mode)
        papers[mode] = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert papers == {"dark": "rgb(20, 23, 27)", "light": "rgb(255, 255, 255)"}

    visit(browser, site / "rules" / "generated" / "rps.html")
    wait_for(browser, "document.querySelector('mjx-container svg')")
    assert browser.run("return document.querySelectorAll('mjx-merror, [data-mml-node=merror]').length") == 0

    # `make docs` has built the whole site, whose index has the gallery, the rules and the reference.
    whole = Path(os.environ.get("VERAX_SITE", site)).resolve()
    queries = {
        words: pages for words, pages in QUERIES.items() if all((whole / f"{p}.html").exists() for p in pages)
    }
    assert len(queries) > 40
    assert {
        words: found
        for words, pages in queries.items()
        if not set(pages) & set(found := first(browser, whole, words))
    } == {}

    visit(browser, site / "choose.html")
    for answer in ("probabilities", "several", "report"):
        browser.run("document.querySelector(`.chooser input[value='${arguments[0]}']`).click()", answer)
    assert browser.run("return document.querySelector('.chooser output').textContent").startswith("3 of 5")
    browser.run("document.querySelectorAll('.chooser input[name=\"1\"][value=yes]')[0].click()")
    browser.run("document.querySelectorAll('.chooser input[name=\"2\"][value=no]')[0].click()")
    assert browser.run("return document.querySelector('.chooser output h3').textContent") == "Report RPS"

    for page in (
        "index.html",
        "start.html",
        "choose.html",
        "guide/scores.html",
        "playground.html",
        "rules/generated/rps.html",
    ):
        visit(browser, site / page, width=390)
        assert browser.run("return document.documentElement.scrollWidth") <= 390, page

    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))] == []
    # The theme reports which mode it takes, and what it focuses.
    said = [
        text
        for text in browser.complaints()
        # Figures of the gallery are not made here; `checklinks` finds those that the whole site lacks.
        if not any(known in text for known in ("pydata-sphinx-theme.js", "[PST]", "/examples/"))
    ]
    assert said == []
