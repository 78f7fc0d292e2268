"""How optional packages are installed, read from pyproject.toml."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installing(extra: str) -> str:
    """The command that error messages give for an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"pip install {shlex.join(sorted(project['optional-dependencies'][extra]))}"
