"""One browser for all tests of pages."""

from __future__ import annotations

import pytest

from browsers import Browser


@pytest.fixture(scope="session")
def browser():
    made = Browser()
    yield made
    made.driver.quit()
