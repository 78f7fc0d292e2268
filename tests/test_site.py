"""The site: every public name has its place in the reference."""

from __future__ import annotations

import importlib
import re

import pytest

import verax as vx
from pages import DOCS

# Adapters have no `__all__`; their page lists what they define.
MODULES = ["verax", "verax.report", "verax.selection", "verax.files"]
REFERENCE = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))


def listed() -> list[str]:
    """The names of the reference, with their modules."""
    blocks = re.findall(r"currentmodule:: (\S+)\n(.*?)```", REFERENCE, re.DOTALL)
    return [f"{module}.{name}" for module, block in blocks for name in re.findall(r"^   (\w+)$", block, re.M)]


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(module):
    names = {name for name in importlib.import_module(module).__all__ if f"{module}.{name}" not in MODULES}
    names -= {"adapters", "compat"} if module == "verax" else set()
    assert names == {
        name.removeprefix(f"{module}.") for name in listed() if name.rpartition(".")[0] == module
    }


def test_the_reference_has_every_name_once_and_every_rule():
    names = listed()
    assert len(names) == len(set(names))
    assert {f"verax.{name}" for name in vx.RULES} <= set(names)
