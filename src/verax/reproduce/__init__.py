"""Published numbers recomputed by the library's own functions, beside the printed ones.

Each paper is a module here with a function `findings()`; the command line shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from verax.errors import InputError, show

PAPERS = {
    "ahmadian": "Ahmadian, Ghatee and Wahlström (2025), Superior scoring rules",
    "galdran": "Galdran (2023), Performance metrics for probabilistic ordinal classifiers",
    "resin": "Resin (2023), From classification accuracy to proper scoring rules",
}


@dataclass(frozen=True)
class Finding:
    """One published number: its place in the paper, the printed and the computed value, and why they differ.

    `printed` is None where the paper gives no number and a text where it is not one.
    """

    where: str
    what: str
    printed: float | str | None
    computed: float
    erratum: str = ""
    tolerance: float = 5e-4

    @property
    def agrees(self) -> bool | None:
        """Whether printed and computed agree to the digits printed; None where nothing is."""
        if not isinstance(self.printed, (int, float)):
            return None
        # Two infinities agree, though their difference is not a number.
        return self.printed == self.computed or abs(self.printed - self.computed) <= self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain Python values."""
        return {
            "where": self.where,
            "what": self.what,
            "printed": self.printed,
            "computed": self.computed,
            "agrees": self.agrees,
            "erratum": self.erratum,
        }


def findings(paper: str) -> list[Finding]:
    """The published numbers of a paper, recomputed."""
    if paper not in PAPERS:
        raise InputError(
            f"must be one of {', '.join(PAPERS)}, not {show(paper)}", argument="paper", values=[paper]
        )
    found: list[Finding] = import_module(f"verax.reproduce.{paper}").findings()
    return found
