"""Settings for the tests of sections and of commands."""

from __future__ import annotations

import pytest

from reports import LIGHT
from verax._settings import changed


@pytest.fixture(autouse=True)
def light_reports(request, change):
    """What commands do with reports needs few replicates and one way to recalibrate."""
    if request.path.stem.endswith("command"):
        change(**LIGHT)


@pytest.fixture(autouse=True, scope="module")
def one_method(request):
    """Sections are shown with temperature scaling alone, because other fits take most of the time."""
    with changed(**({"report_methods": ("temperature",)} if request.path.stem == "test_section" else {})):
        yield
