"""One published number beside what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PublishedNumber:
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
