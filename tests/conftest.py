"""Fixtures for all test modules."""

from __future__ import annotations

import pytest

from cases import RULES


@pytest.fixture(params=RULES, ids=repr)
def rule(request):
    return request.param
