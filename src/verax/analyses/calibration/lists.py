"""Whether the confidences of top lists are right: reliability of places and of whole lists, with tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.curves import Reliability, ReliabilityCurve, curve_of
from verax.analyses.calibration.events import Event, Split
from verax.analyses.calibration.places import ANY, Claim, ListEvent, ListEvents, check_places
from verax.analyses.calibration.statements import Statements
from verax.analyses.table import RowTable
from verax.common.sizes import in_digits
from verax.display.tables import Cells, FrameKind, html_table, record_frame, text_table
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows

# How an event of a list is scored, by itself.
SQUARED = Split("squared error", "the squared error of the event", False, "squared", 1.0)


def reliability_of_lists(
    rows: Rows, *, places: int | None, resamples: int, seed: int, confidence: float
) -> ListReliability:
    """The curves of the first places, of any place and of the whole list, and what was claimed of each."""
    n_places = check_places(places)
    assert isinstance(rows, ListRows)
    plan = resamples, confidence, seed
    if not resamples and Statements.fit(rows):
        many, batch = Statements.of(rows), rows.batch(0, rows.n_rows)
        n_invalid = int(np.count_nonzero(batch.survey.kept < batch.lists.lengths))
        return ListReliability(
            many.curves(n_places, confidence),
            False,
            int(many.lists[-1]),
            rows.n_classes,
            *plan,
            many.claims(n_places),
            int(batch.lists.lengths.max()),
            n_invalid,
            in_cells=True,
        )
    found = ListEvents.of(rows, "reliability curves")
    rng = np.random.default_rng(seed)
    curves = []
    for listed in found.all(n_places):
        event, own = sorted_event(listed), rows_of(listed, found.weights, found.groups_of(listed))
        drawing = found.draw_entries if listed.name == ANY else None
        curves.append(curve_of(event, event.fit(own.weights), own, resamples, rng, confidence, drawing))
    return ListReliability(
        tuple(curves),
        False,
        found.n_lists,
        found.n_classes,
        *plan,
        found.claims(n_places),
        found.longest,
        found.n_invalid,
    )


def sorted_event(event: ListEvent, how: Split = SQUARED, start: Floats | None = None) -> Event:
    """An event of lists in the order of its forecasts."""
    start = np.broadcast_to(0.0, event.given.shape) if start is None else start
    return Event.of(event.name, event.given, event.given, event.rest, event.happened, how, start)


def rows_of(event: ListEvent, weights: Floats | None, groups: Groups | None = None) -> RowTable:
    """The elements of an event as rows of their own, with the weights of their lists and their own groups."""
    happened = event.happened.astype(np.int64)
    return RowTable(happened, np.zeros((0, 2)), happened, {}, event.taken(weights), groups, 2)


@dataclass(frozen=True, repr=False, eq=False)
class ListReliability(Reliability):
    """The reliability of top lists; `diagram["place 1"]`, `["any place"]`, `["whole list"]` are curves.

    Attributes
    ----------
    claims : tuple of Claim
        For each curve what was claimed on average, how often it happened, and a test of the difference.
    longest : int
        The length of the longest list.
    n_invalid : int
        How many lists are invalid; their confidences are taken as they were stated.
    in_cells : bool
        Whether there were so many lists that confidences within 0.8 % of each other were pooled.

    See Also
    --------
    Reliability : What it shares with other diagrams.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}, {1: 0.7, 2: 0.2}, {2: 0.5, 0: 0.3}], n_classes=4)
    >>> diagram = vx.reliability([0, 2, 2], lists, resamples=0)
    >>> round(diagram.claim("whole list").claimed, 3)
    0.833
    """

    claims: tuple[Claim, ...]
    longest: int
    n_invalid: int
    in_cells: bool = False

    def claim(self, name: str) -> Claim:
        """What was claimed of one event, and how often it happened.

        Parameters
        ----------
        name : str
            "place 1", ..., "any place" or "whole list".

        Returns
        -------
        Claim
            The claim, with a test.
        """
        names = [claim.name for claim in self.claims]
        if name not in names:
            raise KeyError(f"{name!r} has no claim; there are {', '.join(names)}")
        return self.claims[names.index(name)]

    def title_of(self, curve: ReliabilityCurve) -> str:
        """The title of a curve's panel.

        Parameters
        ----------
        curve : ReliabilityCurve
            One of the curves.

        Returns
        -------
        str
            The title.
        """
        return curve.name

    def _cells(self) -> Cells:
        header = ["", "lists", "claimed", "happened", "gap", "p", "miscalibration", "p"]
        lines = []
        for curve, claim in zip(self.curves, self.claims, strict=True):
            shape = curve.components
            lines.append(
                [
                    claim.name,
                    f"{claim.n_lists:,}",
                    f"{claim.claimed:.4f}",
                    f"{claim.happened:.4f}",
                    f"{claim.gap:+.4f}",
                    _p(claim.p_adjusted),
                    f"{shape.miscalibration:z.5f}",
                    _p(shape.p_value),
                ]
            )
        return [header, *lines]

    def _heading(self) -> str:
        m = in_digits(self.n_classes)
        lists = f"{self.n_rows:,} lists of up to {self.longest} out of {m} classes"
        return f"verax reliability of top lists: {lists}"

    def _notes(self) -> list[str]:
        notes = [
            "Claimed: the mean confidence. Happened: how often it was right; of the whole list, how often "
            "the outcome was listed.",
            "First p: of the gap, after Holm's correction. Second p: of the miscalibration of the curve.",
        ]
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            notes.append(f"{some} invalid; the confidences are taken as stated.")
        if self.in_cells:
            notes.append("There are so many that confidences within 0.8 % of each other are pooled.")
        return notes + self._said()

    def __repr__(self) -> str:
        return "\n".join([self._heading(), *text_table(self._cells(), right=range(1, 8)), *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=self._heading(), notes=self._notes())

    def _as_dict(self) -> dict[str, Any]:
        found = super()._as_dict()
        del found["ordered"]
        claims = [claim.to_dict() for claim in self.claims]
        about = {name: getattr(self, name) for name in ("longest", "n_invalid", "in_cells")}
        return {**found, "claims": claims, **about}

    def claims_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event: claimed, happened, the test of the gap, and the miscalibration of the curve.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        return record_frame(
            [
                {
                    **claim.to_dict(),
                    "miscalibration": curve.components.miscalibration,
                    "p_miscalibration": curve.components.p_value,
                }
                for curve, claim in zip(self.curves, self.claims, strict=True)
            ],
            kind,
        )


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"
