"""The pages of the documentation whose examples the tests run."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages that a build generates hold no examples of their own.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "generated" not in page.relative_to(DOCS).parts),
]


def name_of(page: Path) -> str:
    """The path of a page below the repository, for the names of tests."""
    return page.relative_to(ROOT).as_posix()
