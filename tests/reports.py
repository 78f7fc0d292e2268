"""Rows for reports, texts that must not get out of hand on a page, and what a page says."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

import numpy as np

from verax._settings import changed
from verax.report import Report

GRADES = ["none", "mild", "moderate", "severe"]
EVIL = [
    "<script>alert(1)</script>",
    "\"quoted\" 'and'\nbroken & <b>",
    "</script><!--",
    "]]> \u2028 \ud800 \x00 {{ 7*7 }}",
]


def sample(n=600, k=4, *, sharpness=1.0, seed=0):
    """Outcomes drawn from probabilities, and these probabilities made `sharpness` times as sure."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 1.5
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = q**sharpness
    return y, p / p.sum(axis=1, keepdims=True)


# Reports with few replicates and one way to recalibrate, where neither matters.
LIGHT = {"report_tests": 20, "report_list_tests": 19, "report_bands": 20, "report_methods": ("temperature",)}


def light(*args, replicates=20, **options):
    """A report with few replicates and without recalibration, for what depends on neither."""
    with changed(**LIGHT | {"report_tests": replicates, "report_methods": ()}):
        return Report.of(*args, **options)


@cache
def graded():
    """Outcomes, two forecasts of ordered grades, sites, and the report on them: built once for all tests."""
    y, p = sample()
    other = 0.5 * p + 0.125
    site = np.where(np.arange(600) % 3 == 0, "north", "south")
    site[:5] = "isle"
    ids = [f"p{i}" for i in range(600)]
    report = Report.of(
        y, {"new": p, "old": other}, classes=GRADES, ordered=True, by={"site": site}, ids=ids, title="Grades"
    )
    return y, p, other, site, report


@cache
def two_class():
    """The report on two forecasts of two classes, with sites: built once for all tests."""
    rng = np.random.default_rng(3)
    x, site = rng.normal(size=300), np.where(np.arange(300) % 2, "north", "south")
    y = rng.random(300) < 1 / (1 + np.exp(1 - 1.2 * x))
    sharp, flat = (1 / (1 + np.exp(1 - a * z)) for a, z in ((2.2, x), (0.6, x + rng.normal(size=300))))
    return light(y, {"sharp": sharp, "flat": flat}, classes=["well", "ill"], by={"site": site})


def remedy_of(report):
    """What recalibration would bring to the best model."""
    return report.contents.found["recalibration"][report.contents.best.name]


def answer(report, question):
    """The data check that asks this."""
    return next(c for c in report.contents.checks if c.question.startswith(question))


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self._raw = [], [], False
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._raw = False

    def handle_data(self, data):
        if not self._raw:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
