"""Published numbers recomputed by the library's own functions, beside the printed ones.

Each paper is a module here with a function `findings()`; the command line shows them.
"""

from __future__ import annotations

from importlib import import_module

from verax.cli.papers.number import PublishedNumber
from verax.errors import InputError, show

PAPERS = {
    "ahmadian": "Ahmadian, Ghatee and Wahlström (2025), Superior scoring rules",
    "galdran": "Galdran (2023), Performance metrics for probabilistic ordinal classifiers",
    "resin": "Resin (2023), From classification accuracy to proper scoring rules",
}


def findings(paper: str) -> list[PublishedNumber]:
    """The published numbers of a paper, recomputed."""
    if paper not in PAPERS:
        raise InputError(
            f"must be one of {', '.join(PAPERS)}, not {show(paper)}", argument="paper", values=[paper]
        )
    found: list[PublishedNumber] = import_module(f"verax.cli.papers.{paper}").findings()
    return found
