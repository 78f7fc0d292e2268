"""One browser, and one report of ordered classes, for all tests of pages."""

from __future__ import annotations

import pytest

from browsers import Browser
from reports import graded
from verax._settings import changed


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
    with changed(report_methods=("temperature",)):
        yield


@pytest.fixture
def all_methods(change):
    """For tests of what recalibration gains: the methods that users get."""
    change(report_methods="best")
