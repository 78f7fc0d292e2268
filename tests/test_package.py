"""The package as a whole: imports, names, documentation."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import verax as vx

ROOT = Path(__file__).parents[1]
MODULES = [m.name for m in pkgutil.walk_packages(vx.__path__, "verax.") if m.name != "verax.__main__"]


@pytest.mark.parametrize("module", ["verax", "verax.cli.commands"])
def test_importing_imports_nothing_heavy(module):
    code = f"""
import sys, {module}
heavy = "numba scipy sklearn pandas polars pyarrow matplotlib altair jinja2 torch jax keras xgboost mlflow"
print(sorted(set(heavy.split()) & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_every_promised_name_is_there():
    for name in vx.__all__:
        assert getattr(vx, name) is not None
        assert name in dir(vx)
    with pytest.raises(AttributeError, match="no attribute 'briar'"):
        vx.briar  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda p: p.name
)
def test_examples_in_the_documentation(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    if page.name in ("README.md", "scores.md", "toplists.md"):
        assert result.attempted > 0
