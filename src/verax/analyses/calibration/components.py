"""The parts of a mean score as they are shown: miscalibration, discrimination and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from verax.analyses.binary import event_in_words
from verax.analyses.calibration.sources import LISTED, UNLISTED
from verax.analyses.calibration.uncertainty import Uncertainty
from verax.common.caching import cached_property
from verax.common.checks import in_digits
from verax.common.faces import Brief, Hidden, Maybe
from verax.common.results import Result
from verax.common.texts import bound
from verax.display.tables import NO_HEADING, Column, Table, Tabled, value_with_interval
from verax.inference.intervals import Interval, Resampled, Resampling
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip

COMPONENTS = ("score", "miscalibration", "discrimination", "uncertainty")


@dataclass(frozen=True, repr=False, eq=False)
class Components(Tabled, Result):
    """A mean score and what it is made of, for one event or for all of them.

    Attributes
    ----------
    name : str
        The class, "<= class" for a threshold, or what the events add up to.
    observed : array of shape (4,)
        Score, miscalibration, discrimination, uncertainty.
    accuracy : Uncertainty or None
        Their biases and variances; None without a bootstrap.
    calibrated : array of shape (B,)
        Miscalibrations of outcomes drawn from the forecast: each row independently, or the deviations of all
        rows of a group with one sign. Empty without a bootstrap, and for log scores of groups.
    confidence : float
        Confidence level of the intervals.
    within : float or None
        By how much miscalibration and discrimination may be larger: 0 unless there are over 2^20 distinct
        forecasts in rows that are not in memory. None in results that version 0.2 stored.

    Examples
    --------
    >>> import verax as vx
    >>> decomposition = vx.decompose([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1], rule="brier")
    >>> whole = decomposition.whole
    >>> round(whole.score, 3), round(whole.miscalibration, 3)
    (0.37, 0.12)
    """

    name: str
    observed: Hidden[Floats]
    accuracy: Hidden[Uncertainty | None]
    calibrated: Hidden[Floats]
    confidence: Hidden[float]
    within: Maybe[float | None] = 0.0

    _facts = (
        *COMPONENTS,
        *("intervals", "_caution", "corrected", "expected_miscalibration", "p_value", "p_is_bound"),
    )

    @property
    def _caution(self) -> str | None:
        return None if self.accuracy is None else self.accuracy.caution

    @property
    def score(self) -> float:
        """The mean score of the forecast."""
        return float(self.observed[0])

    @property
    def miscalibration(self) -> float:
        """The gain of isotonic recalibration. Lower is better."""
        return float(self.observed[1])

    @property
    def discrimination(self) -> float:
        """The gain of the recalibrated forecast on a constant one. Higher is better."""
        return float(self.observed[2])

    @property
    def uncertainty(self) -> float:
        """The score of the constant forecast of the frequency; it does not depend on the forecast."""
        return float(self.observed[3])

    @cached_property
    def intervals(self) -> Brief[dict[str, Interval] | None]:
        """Intervals of the score and the components, by name; None without a bootstrap.

        They are about the values for many more rows. The isotonic fit follows noise, so the miscalibration
        and the discrimination observed may lie above their intervals. That of the miscalibration includes
        zero unless draws of calibrated forecasts refute it.
        """
        if self.accuracy is None or not self.accuracy.known:
            return None
        observed = zip(COMPONENTS, self.observed.tolist(), strict=True)
        by_name = {
            name: self.accuracy.interval(i, value, self.confidence)
            for i, (name, value) in enumerate(observed)
        }
        miscalibration = by_name["miscalibration"]
        if miscalibration.low > 0 and self._reached > (1 - self.confidence) / 2 * len(self.calibrated):
            by_name["miscalibration"] = miscalibration.holding(0.0)
        return by_name

    @property
    def _reached(self) -> int:
        """The number of draws of calibrated forecasts with at least this miscalibration."""
        # Values that differ by rounding alone are equal.
        return int((self.calibrated >= self.miscalibration - 1e-12 * (1 + abs(self.score))).sum())

    @property
    def corrected(self) -> dict[str, float] | None:
        """Estimates corrected for the optimism of the isotonic fit; None without a bootstrap.

        They estimate the values for many more rows, and may be slightly negative.
        """
        if self.accuracy is None:
            return None
        return dict(zip(COMPONENTS, (self.observed - self.accuracy.bias).tolist(), strict=True))

    @property
    def expected_miscalibration(self) -> float | None:
        """The mean miscalibration that a calibrated forecast with these values would show."""
        return float(self.calibrated.mean()) if len(self.calibrated) else None

    @property
    def p_value(self) -> float | None:
        """The share of calibrated forecasts with these values that would show at least this miscalibration.

        None without a bootstrap, and for log scores of groups.
        """
        if not len(self.calibrated):
            return None
        return (1 + self._reached) / (1 + len(self.calibrated))

    @property
    def p_is_bound(self) -> bool:
        """Whether no draw shows as much, so that the p-value is at most the one stated."""
        return bool(len(self.calibrated)) and not self._reached

    def _heading(self) -> str:
        return f"{self.name}: {', '.join(f'{name} {self.text(name)}' for name in COMPONENTS)}"

    def _frame(self) -> Table:
        """One row: the components with the ends of their intervals."""
        return Table(_COLUMNS, [self])

    def text(self, name: str) -> str:
        """One of the four numbers with its interval, for tables.

        Miscalibration and discrimination also have the corrected estimate, which the interval is about; what
        is below zero is shown as zero.

        Parameters
        ----------
        name : str
            "score", "miscalibration", "discrimination" or "uncertainty".

        Returns
        -------
        str
            Its value, with the corrected estimate and the interval in brackets.
        """
        value, interval, corrected = getattr(self, name), (self.intervals or {}).get(name), self.corrected
        if interval is None or not interval.defined or corrected is None or name not in COMPONENTS[1:3]:
            return value_with_interval(value, interval, "z.4f")
        return f"{value:z.4f} ({max(corrected[name], 0.0):z.4f}, {interval:z.4f})"


def _columns_of(name: str) -> tuple[Column, Column]:
    """A component, and the ends of its interval."""
    return (
        Column(name, name, lambda line: line.text(name)),
        Column(f"{name}_low {name}_high", value=lambda line: (line.intervals or {}).get(name)),
    )


# Readers see the components with their intervals; frames have everything.
_COLUMNS = (
    Column("event", value="name"),
    *(column for name in COMPONENTS for column in _columns_of(name)),
    Column("expected_miscalibration"),
    Column("p_value"),
)


@dataclass(frozen=True, repr=False, eq=False)
class Decomposition(Tabled, MaySkip):
    """The sources of a mean score: score = miscalibration - discrimination + uncertainty.

    The score is infinite, and the miscalibration with it, where an event that was given probability
    zero happened.

    Attributes
    ----------
    rule : str
        The rule.
    whole : Components
        The components of its score. For the log score of three and more classes they are of "one-vs-rest
        log", the sum of the K binary log scores.
    parts : tuple of Components
        The components of every class or threshold, as binary scores.
    total : str
        How the parts make the whole, in words.
    thresholds : bool
        Whether the parts are thresholds of ordered classes.
    n_rows : int
        The number of rows.
    n_classes : int
        The number of classes, K.
    n_groups : int or None
        The number of groups; None without groups.
    resampling : Resampling
        How the intervals were computed.

    Examples
    --------
    >>> import verax as vx
    >>> decomposition = vx.decompose([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1], rule="brier")
    >>> [part.name for part in decomposition.parts]
    ['0', '1']
    """

    rule: str
    whole: Components
    parts: tuple[Components, ...]
    total: str
    thresholds: Hidden[bool]
    n_rows: int
    n_classes: int
    n_groups: int | None
    resampling: Hidden[Resampling]

    _facts: ClassVar[tuple[str, ...]] = ("_verax", "_bootstrap")

    @property
    def _bootstrap(self) -> Resampled:
        return self.resampling.by("t; of components corrected for overfitting of the isotonic fit")

    @property
    def quantity(self) -> str:
        """The quantity decomposed: the rule, or "one-vs-rest log" for three and more classes."""
        return self.whole.name

    @property
    def score(self) -> float:
        """The mean score."""
        return self.whole.score

    @property
    def miscalibration(self) -> float:
        """The gain of isotonic recalibration of every event. Lower is better."""
        return self.whole.miscalibration

    @property
    def discrimination(self) -> float:
        """The gain of the recalibrated events on constant ones. Higher is better."""
        return self.whole.discrimination

    @property
    def uncertainty(self) -> float:
        """The score of constant forecasts of the frequencies; it does not depend on the forecast."""
        return self.whole.uncertainty

    @property
    def intervals(self) -> Brief[dict[str, Interval] | None]:
        """Intervals of the score and the components, by name; None without a bootstrap."""
        return self.whole.intervals

    @property
    def corrected(self) -> dict[str, float] | None:
        """Estimates corrected for the optimism of the isotonic fit; None without a bootstrap."""
        return self.whole.corrected

    @property
    def within(self) -> float | None:
        """By how much miscalibration and discrimination may be larger, where they come from a histogram."""
        return self.whole.within

    @property
    def p_value(self) -> float | None:
        """The share of calibrated forecasts with these values with at least this miscalibration."""
        return self.whole.p_value

    # ---- out -------------------------------------------------------------------------------

    def _tables(self) -> list[Table]:
        """One row for the whole, then one per class or threshold: components and their intervals."""
        columns = (
            Column(
                "part",
                NO_HEADING,
                self._label,
                lambda line: "whole" if line is self.whole else self._part,
                False,
            ),
            *_COLUMNS,
        )
        return [Table(columns, [self.whole, *self.parts])]

    @property
    def _part(self) -> str:
        """The name of a kind of part."""
        return "threshold" if self.thresholds else "class"

    def _label(self, line: Components) -> str:
        """The name of a line for readers."""
        return self.quantity if line is self.whole else event_in_words(line.name, ordered=self.thresholds)

    def _heading(self) -> str:
        kind = "ordered classes" if self.thresholds else "classes"
        grouped = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        rows = f"{self.n_rows:,} rows{grouped}, {self.n_classes:,} {kind}"
        return f"verax decomposition of {self.quantity}: {rows}"

    def _notes(self) -> list[str]:
        notes = [f"score = miscalibration - discrimination + uncertainty; {self.quantity} is {self.total}."]
        if self.intervals is not None:
            units = "independent rows" if self.n_groups is None else "independent groups"
            notes.append(
                f"In brackets {100 * self.resampling.confidence:g}% intervals for {units}; before those of "
                "miscalibration and discrimination, estimates corrected for overfitting of the isotonic fit."
            )
            caution = self.intervals["discrimination"].caution
            notes += [f"Caution: {caution}."] if caution else []
        if self.p_value is not None:
            notes.append(
                "A calibrated forecast would show a miscalibration of "
                f"{self.whole.expected_miscalibration:.4f}; p {'<=' if self.whole.p_is_bound else '='} "
                f"{self.p_value:.2g} from {len(self.whole.calibrated):,} draws."
            )
        if self.whole.within:
            notes.append(
                "From bins of forecasts: miscalibration and discrimination may be larger by at most "
                f"{bound(self.whole.within)}."
            )
        if self.score == float("inf"):
            notes.append(
                "Infinite: an outcome with probability zero happened. Recalibration "
                "repairs this, so the miscalibration is also infinite."
            )
        return notes + self.remarks


# The names of the parts for readers.
_LABELS = {LISTED: "a listed class", UNLISTED: UNLISTED}


@dataclass(frozen=True, repr=False, eq=False)
class ListDecomposition(Decomposition):
    """The sources of the Brier score of the events that lists define.

    `parts` are "listed" (all listed classes together; per entry) and "not listed" (per list). The whole is
    `mean_length` times the first plus the second.

    Attributes
    ----------
    left_out : float
        The rest of the padded Brier score: it also asks which of the unlisted classes happened, and lists
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
    >>> decomposition = vx.decompose([0, 2, 2], lists, rule="brier")
    >>> decomposition.mean_length, [part.name for part in decomposition.parts]
    (2.0, ['listed', 'not listed'])
    """

    left_out: float
    mean_length: float
    n_invalid: int

    _facts = ("padded",)

    @property
    def padded(self) -> float:
        """The mean padded Brier score, without a fine for invalid lists."""
        return self.score + self.left_out

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
