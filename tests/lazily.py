"""Packages that take seconds to import: where a test needs them, not where tests are collected."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class _Package:
    """A package that is imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # Collecting looks for marks and fixtures in everything.
        if name.startswith(("_", "pytest")):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def lazily(name: str) -> Any:
    """A package for later; where it is missing, the module that asks for it is skipped."""
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
    return _Package(name)
