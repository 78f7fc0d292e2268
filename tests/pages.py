"""The pages of the documentation whose examples the tests run."""

from __future__ import annotations

import re
from pathlib import Path

from verax.cli.app import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages that a build generates hold no examples of their own.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "generated" not in page.relative_to(DOCS).parts),
]


# Fenced blocks of code. Commands begin with a prompt, and what they print is below them; in a block without
# prompts, lines that begin with the name of a command.
FENCE = re.compile(r"^```([^`\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROMPTED = re.compile(r"^\$ (verax .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PLAIN = re.compile(rf"^(verax (?:{'|'.join(COMMANDS)})(?: .*)?)()$", re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """The kind and the text of each block of code, directives aside."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if not kind.startswith("{")]


def typed(page: Path) -> list[tuple[str, str]]:
    """The commands of a page, each with what the page shows below it."""
    texts = [text for _, text in FENCE.findall(page.read_text(encoding="utf-8"))]
    return [each for text in texts for each in (PROMPTED if "$ verax" in text else PLAIN).findall(text)]


def name_of(page: Path) -> str:
    """The path of a page below the repository, for the names of tests."""
    return page.relative_to(ROOT).as_posix()
