"""The calibration of top lists as it is shown: claims of places and lists, curves, parts of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.curves import Reliability, ReliabilityCurve
from verax.analyses.calibration.list_events import ANY, LISTED, UNLISTED, WHOLE
from verax.common.sizes import in_digits
from verax.display.tables import NO_HEADING, Column, FrameKind, Table
from verax.inference.estimates import holm

# Of an event: the lists it is about, their share of the weight, what was claimed, what happened, the p-value.
Found = tuple[int, float, float, float, float | None]


@dataclass(frozen=True)
class ListClaim:
    """What was claimed of an event on average, and how often it happened.

    Attributes
    ----------
    name : str
        "place 1", "place 2", ..., "any place" or "whole list".
    n_lists : int
        How many lists it is about: those that are long enough.
    share : float
        Their share of the weight of all lists.
    claimed : float
        The mean probability it was given.
    happened : float
        The share in which it happened.
    p_value, p_adjusted : float or None
        Two-sided p-value of the difference, and after Holm's correction over the places and the whole list;
        None where all lists belong to one group. Any place has those of the whole list: it is the same sum.
    """

    name: str
    n_lists: int
    share: float
    claimed: float
    happened: float
    p_value: float | None
    p_adjusted: float | None

    @property
    def gap(self) -> float:
        """Claimed minus happened: positive means overconfident."""
        return self.claimed - self.happened

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain Python values."""
        return {**vars(self), "gap": self.gap}


def corrected(found: dict[str, Found]) -> tuple[ListClaim, ...]:
    """Claims by name (lists, share, claimed, happened, p-value), with Holm's correction over all tests."""
    # Any place is the whole list in other units, so it is no test of its own.
    p_values = {name: np.nan if p is None else p for name, (*_, p) in found.items() if name != ANY}
    adjusted = dict(zip(p_values, holm(np.array([*p_values.values()])).tolist(), strict=True))
    claims = []
    for name, (n_lists, share, claimed, happened, _) in found.items():
        test = WHOLE if name == ANY else name
        known = not np.isnan(p_values[test])
        tested = (p_values[test], adjusted[test]) if known else (None, None)
        claims.append(ListClaim(name, n_lists, share, claimed, happened, *tested))
    return tuple(claims)


@dataclass(frozen=True, repr=False, eq=False)
class ListReliability(Reliability):
    """The reliability of top lists; `diagram["place 1"]`, `["any place"]`, `["whole list"]` are curves.

    Attributes
    ----------
    claims : tuple of ListClaim
        For each curve what was claimed on average, how often it happened, and a test of the difference.
    longest : int
        The length of the longest list.
    n_invalid : int
        How many lists are invalid; their confidences are taken as they were stated.
    in_cells : bool
        Whether confidences within 0.8 % of each other were pooled, because there were many lists.

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

    claims: tuple[ListClaim, ...]
    longest: int
    n_invalid: int
    in_cells: bool = False

    def claim(self, name: str) -> ListClaim:
        """What was claimed of one event, and how often it happened.

        Parameters
        ----------
        name : str
            "place 1", ..., "any place" or "whole list".

        Returns
        -------
        ListClaim
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

    def _tables(self) -> list[Table]:
        """One row per event: claimed, happened, the test of the gap, and the miscalibration of the curve."""
        curves = {claim.name: curve.components for claim, curve in zip(self.claims, self.curves, strict=True)}
        columns = [
            Column("name", NO_HEADING, right=False),
            Column("n_lists", "lists", ","),
            Column("share"),
            Column("claimed", "claimed", ".4f"),
            Column("happened", "happened", ".4f"),
            Column("p_value"),
            Column("p_adjusted"),
            Column("gap", "gap", "+.4f"),
            Column("", "p", lambda claim: _p(claim.p_adjusted)),
            Column(
                "miscalibration",
                "miscalibration",
                lambda claim: f"{curves[claim.name].miscalibration:z.5f}",
                lambda claim: curves[claim.name].miscalibration,
            ),
            Column(
                "p_miscalibration",
                "p",
                lambda claim: _p(curves[claim.name].p_value),
                lambda claim: curves[claim.name].p_value,
            ),
        ]
        return [Table(columns, self.claims)]

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
            notes.append(f"{some} invalid; the confidences are used as stated.")
        if self.in_cells:
            notes.append("Because of their number, confidences within 0.8% of each other are pooled.")
        return notes + self._said()

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
        return self._tables()[0].frame(kind)


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"


# What readers call the parts.
_LABELS = {LISTED: "a listed class", UNLISTED: UNLISTED}


@dataclass(frozen=True, repr=False, eq=False)
class ListDecomposition(Decomposition):
    """Where the Brier score of the events that lists define comes from.

    `parts` are "listed" (all listed classes together; per entry) and "not listed" (per list). The whole is
    `mean_length` times the first plus the second.

    Attributes
    ----------
    left_out : float
        What the padded Brier score has more: it also asks which of the unlisted classes happened, and lists
        say nothing about that.
    mean_length : float
        The mean length of the lists, as they are scored.
    n_invalid : int
        How many lists are invalid, and are taken as their largest valid sublist.

    See Also
    --------
    Decomposition : What it shares with other decompositions.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}, {1: 0.7, 2: 0.2}, {2: 0.5, 0: 0.3}], n_classes=4)
    >>> found = vx.decompose([0, 2, 2], lists, rule="brier")
    >>> found.mean_length, [part.name for part in found.parts]
    (2.0, ['listed', 'not listed'])
    """

    left_out: float
    mean_length: float
    n_invalid: int

    @property
    def padded(self) -> float:
        """The mean padded Brier score, without a fine for invalid lists."""
        return self.score + self.left_out

    def _as_dict(self) -> dict[str, Any]:
        more = {name: getattr(self, name) for name in ("left_out", "padded", "mean_length", "n_invalid")}
        return {**super()._as_dict(), **more}

    @property
    def _part(self) -> str:
        return "event"

    def _heading(self) -> str:
        grouped = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        m = in_digits(self.n_classes)
        return f"verax decomposition of {self.quantity}: {self.n_rows:,} top lists{grouped}, {m} classes"

    def _label(self, line: Components) -> str:
        return self.quantity if line is self.whole else _LABELS[line.name]

    def _notes(self) -> list[str]:
        notes = super()._notes()
        notes.insert(
            1,
            f"A list has {self.mean_length:.4g} listed classes on average. Left out: which of the unlisted "
            f"classes happened, because lists do not say. With it the padded brier is {self.padded:.4f}, "
            f"that is {self.left_out:+.4f}.",
        )
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            notes.insert(2, f"{some} invalid, taken as the largest valid sublist, without a fine.")
        return notes
