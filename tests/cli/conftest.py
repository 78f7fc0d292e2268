"""Settings for all tests of commands."""

from __future__ import annotations

import pytest

from reports import LIGHT


@pytest.fixture(autouse=True)
def light_reports(change):
    """What commands do with reports needs few replicates and one way to recalibrate."""
    change(**LIGHT)
