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
