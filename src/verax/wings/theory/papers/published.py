"""Published numbers recomputed by the library's own functions, beside the printed ones.

Each paper is a module here with a function `findings()`. The command line shows them; the pages of the papers
and the table of the errata are tested against them.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from verax.errors import InputError, show

PAPERS = {
    "ahmadian": "Ahmadian, Ghatee and Wahlström (2025), Superior scoring rules",
    "galdran": "Galdran (2023), Performance metrics for probabilistic ordinal classifiers",
    "resin": "Resin (2023), From classification accuracy to proper scoring rules",
}
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


@dataclass(frozen=True)
class Erratum:
    """A section of the errata page: the place in the paper, what is printed, and what is true."""

    paper: str
    where: str
    printed: str
    section: str
    true: str


def findings(paper: str) -> list[PublishedNumber]:
    """The published numbers of a paper, recomputed."""
    if paper not in PAPERS:
        raise InputError(
            f"must be one of {', '.join(PAPERS)}, not {show(paper)}", argument="paper", values=[paper]
        )
    numbers: list[PublishedNumber] = import_module(f"verax.wings.theory.papers.{paper}").findings()
    return numbers


# In the order of the errata page, which shows them as a table.
ERRATA = tuple(
    Erratum(*fields)
    for fields in (
        ("Galdran", "Eq. 4", "RPS of two forecasts 1/8, 1/4", "the-rps-of-the-first-example", "9/32, 9/16"),
        ("Galdran", "section 2.3", "a forecast (1/10, 5/10, 9/10)", "the-asymmetric-forecast", "sums to 3/2"),
        (
            "Galdran",
            "section 2.2",
            "RPS is Brier for two classes",
            "rps-and-brier-for-two-classes",
            "half of it",
        ),
        ("Galdran", "Eq. 7", "sa-RPS is at most 1", "the-range-of-sa-rps", "at most $K - 1$"),
        (
            "Galdran",
            "section 3.1",
            "sa-RPS is proper",
            "sa-rps-is-not-a-proper-scoring-rule",
            "not for $K \\ge 3$",
        ),
        (
            "Galdran",
            "section 2.1",
            "why the Brier score is proper",
            "what-proves-propriety",
            'the argument also "proves" an improper score proper',
        ),
        (
            "Galdran",
            "section 3.3",
            "ranges do not overlap",
            "ranges-that-do-overlap",
            "for kappa they do, in 7 of 7 tables",
        ),
        (
            "Galdran",
            "abstract",
            "four problems, three data sets",
            "what-was-measured",
            "two of each; seven networks, not six",
        ),
        (
            "Ahmadian",
            "README",
            "log losses .4685, .3098",
            "the-log-loss-of-the-example",
            "base 10; natural: 1.0788, .7133",
        ),
        ("Ahmadian", "code", "the penalty of Algorithm 2", "one-name-two-penalties", "$c$ times as heavy"),
        (
            "Ahmadian",
            "Theorem 5",
            "PBS and PLL are strictly proper",
            "theorem-5-pbs-and-pll-are-strictly-proper",
            "depends on ties; not as published",
        ),
        (
            "Ahmadian",
            "Eq. 23",
            "wrong forecasts vary more",
            "theorem-2-why-the-brier-score-is-not-superior",
            "for three classes only",
        ),
        (
            "Ahmadian",
            "section 4.1",
            "more errors, worse score",
            "more-errors-worse-score",
            "row by row only, not for means",
        ),
        (
            "Ahmadian",
            "8.2 and 8.3",
            "99.996 % and 63 %",
            "sections-8-2-and-8-3-the-two-simulations",
            "99.98 to 100 %, 28 to 83 %, by sampler",
        ),
        ("Ahmadian", "section 3", "F-measures are proper", "f-measures-are-not-proper", "they are not"),
        (
            "Ahmadian",
            "Algorithm 4",
            "cross-validation by blocks",
            "algorithm-4-blocks-past-the-end",
            "late folds have nothing to test",
        ),
        (
            "Ahmadian",
            "README",
            "a Keras callback for PBS",
            "the-callback-of-the-readme",
            "fails: Keras 3 callbacks have no `validation_data`",
        ),
        (
            "Ahmadian",
            "Table 3",
            "a gain of 2.98 points of F1",
            "the-gain-in-f1",
            "not replicated: 0.26 ± 0.28",
        ),
        (
            "Ahmadian",
            "Table 3",
            "PBS selects better than PLL, consistently",
            "pbs-and-pll-in-table-3",
            "in 11 of 18 rows",
        ),
        ("Resin", "Lemma 6", "for any calibrated list", "lemma-6", "for valid ones"),
        (
            "Resin",
            "Theorem 9",
            "a strict inequality",
            "theorem-9-strictness",
            "can be an equality; the theorem stands",
        ),
    )
)
