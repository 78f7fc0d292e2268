"""One browser, and one report of ordered classes, for all tests of pages."""

from __future__ import annotations

import pytest

from browsers import Browser
from reports import graded


@pytest.fixture(scope="session")
def browser():
    made = Browser()
    yield made
    made.driver.quit()


@pytest.fixture
def ordered():
    return graded()


@pytest.fixture(autouse=True, scope="module")
def one_method():
    """Pages try temperature scaling alone, because fits of all methods take most of their time.

    Folders have no scope of their own: what they set would stay set for the tests of other folders.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verax.report.remedies.METHODS", ("temperature",))
        yield


@pytest.fixture
def all_methods(monkeypatch):
    """For tests of what recalibration gains: the methods that users get."""
    monkeypatch.setattr("verax.report.remedies.METHODS", "best")
