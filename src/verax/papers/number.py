"""One published number beside what it should be."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

AGREED, DIFFERS, EXPLAINED, NO_DATA = STATUSES = ("agreed", "differs", "explained", "no data")
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# A difference of probabilities that is smaller than this is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PublishedNumber:
    """One published number: its place in the paper, the printed and the computed value, and why they differ.

    `printed` is a number, a relation that the computed value should satisfy, such as "< 0", or, where
    nothing can be computed, a text. `computed` is None where the data were not published; `erratum` then
    says which. `section` is the section of the errata page that explains a difference.
    """

    where: str
    what: str
    printed: float | str
    computed: float | None
    erratum: str = ""
    section: str = ""
    tolerance: float = 5e-4

    @property
    def agrees(self) -> bool | None:
        """Whether the computed value has the printed digits or relation; None where nothing is computed."""
        if self.computed is None:
            return None
        if isinstance(self.printed, str):
            relation, bound = self.printed.split()
            value = 0.0 if abs(self.computed - float(bound)) <= _ROUNDING else self.computed - float(bound)
            return bool(_RELATIONS[relation](value, 0.0))
        # Two infinities agree, though their difference is not a number.
        return self.printed == self.computed or abs(self.printed - self.computed) <= self.tolerance

    @property
    def status(self) -> str:
        """`agreed`, `explained` (it differs, and the errata say why), `differs` or `no data`."""
        if self.agrees is None:
            return NO_DATA
        if self.agrees:
            return AGREED
        return EXPLAINED if self.section else DIFFERS

    @property
    def texts(self) -> tuple[str, str]:
        """The printed and the computed value as tables show them."""
        printed = self.printed if isinstance(self.printed, str) else f"{self.printed:.6g}"
        return printed, "" if self.computed is None else f"{round(self.computed, 12):.6g}"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain Python values."""
        return {
            "where": self.where,
            "what": self.what,
            "printed": self.printed,
            "computed": self.computed,
            "agrees": self.agrees,
            "status": self.status,
            "erratum": self.erratum,
            "section": self.section,
        }
