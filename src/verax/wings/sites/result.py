"""The result of `sites`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verax.analyses.comparison.tables import shown_p
from verax.analyses.words import said
from verax.common.checks import check_number
from verax.common.faces import Hidden, Record
from verax.common.texts import in_format, percent
from verax.display.tables import Column, Table, Tabled, interval_head, value_with_interval
from verax.errors import InputError
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict, listed
from verax.inference.intervals import Interval
from verax.inputs.skipping import MaySkip
from verax.wings.sites.spread import SCALES, NextSite

if TYPE_CHECKING:
    from verax.display.figures import Sheet

# An O:E between these ends is as good as right.
NEAR = (0.8, 1.25)
# How measures are called, in text and in tables, and how their numbers are written.
TITLES = {"oe": "O:E", "slope": "calibration slope", "auc": "AUC"}
_FORMATS = {"oe": ".2f", "slope": ".2f", "auc": ".3f"}


@dataclass(frozen=True, eq=False)
class SiteValue(Record):
    """A number with its interval.

    Attributes
    ----------
    value : float
        The number; NaN where there is none, and the caution of the interval says why.
    interval : Interval
        Its interval.
    """

    value: float
    interval: Interval

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class Site(Record):
    """One site.

    Attributes
    ----------
    label : object
        Its label.
    n_rows : int
        The number of its rows that have weight.
    n_groups : int or None
        The number of groups; None where rows are independent.
    loss : SiteValue
        The mean loss.
    observed, expected : float or None
        How many rows had the event, and the sum of its probabilities; None with more than two classes.
    oe, in_the_large, slope, auc : SiteValue or None
        Observed divided by expected events, the intercept of a calibration line of slope 1, its slope, and
        the area below the ROC curve; None with more than two classes.
    p_value, p_adjusted : float
        The p-value of its events given those of the other sites, and after Holm's correction for all sites.
        NaN where it was not tested.
    stands_out : bool
        Whether it differs significantly from what the other sites lead to expect.
    """

    label: Any
    n_rows: int
    n_groups: int | None
    loss: SiteValue
    observed: float | None = None
    expected: float | None = None
    oe: SiteValue | None = None
    in_the_large: SiteValue | None = None
    slope: SiteValue | None = None
    auc: SiteValue | None = None
    p_value: float = math.nan
    p_adjusted: float = math.nan
    stands_out: bool = False


@dataclass(frozen=True, eq=False)
class AcrossSites(Record):
    """What sites tell about one measure.

    Attributes
    ----------
    measure : {"oe", "slope", "auc", "loss"}
        What is measured.
    n_sites : int
        The number of sites that enter.
    mean : SiteValue
        The mean of sites.
    next : SiteValue
        The median of what the next site will have, with its prediction interval.
    tau : SiteValue
        The standard deviation between sites: of log O:E, of the log odds of the AUC, else of the measure.
    i_squared : float
        The share of the variance of the estimates that is between sites.
    q : float
        Cochran's Q, on `n_sites` - 1 degrees of freedom.
    near : float or None
        The probability that the next site has an O:E within 0.8 to 1.25; None for other measures.
    """

    measure: str
    n_sites: int
    mean: SiteValue
    next: SiteValue
    tau: SiteValue
    i_squared: float
    q: float
    near: float | None
    mixture: Hidden[NextSite | None] = None

    def share_below(self, value: float) -> float:
        """The probability that the next site has less.

        Parameters
        ----------
        value : float
            A value of the measure.

        Returns
        -------
        float
            The probability; NaN where nothing is known of the next site.
        """
        return math.nan if self.mixture is None else self.mixture.share_below(SCALES[self.measure].to(value))

    def observed(self, expected: float) -> SiteValue:
        """What the next site will *observe*: its O:E with the chance of its own events.

        Parameters
        ----------
        expected : float
            The number of events that its forecasts expect.

        Returns
        -------
        SiteValue
            The median and the prediction interval.
        """
        if self.measure != "oe":
            raise InputError("is known for O:E alone", argument="expected", found=f"this is {self.measure}")
        check_number("expected", expected, "must be above zero", lambda events: events > 0)
        known = self.next.interval
        if self.mixture is None:
            return self.next
        events = expected * math.exp(float(self.mixture.means.mean()))
        seen = self.mixture.noisier(1 / events)
        ends = map(math.exp, seen.interval(known.confidence))
        interval = Interval(*ends, method=known.method, confidence=known.confidence, caution=known.caution)
        return SiteValue(math.exp(seen.quantile(0.5)), interval)


@dataclass(frozen=True, repr=False, eq=False)
class SiteStudy(WithVerdict, Tabled, MaySkip):
    """How sites differ, and what the next one will see.

    Attributes
    ----------
    column : str
        The column of sites.
    n_rows : int
        The number of rows.
    event : str or None
        The event whose O:E is shown: the rarer of two classes; None with more classes.
    rule : str
        The rule of the mean loss.
    table : tuple of Site
        The sites.
    summary : mapping of str to AcrossSites
        What they tell together, by measure.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> site = rng.integers(8, size=8000)
    >>> log_odds = rng.normal(-2, 1, 8000)
    >>> p = 1 / (1 + np.exp(-log_odds))
    >>> truth = 1 / (1 + np.exp(-log_odds - rng.normal(0, 0.3, 8)[site]))
    >>> found = vx.sites(rng.random(8000) < truth, p, sites=site)
    >>> low, high = found.next_site.interval
    >>> print(f"{found.next_site.value:.2f}, {low:.2f} to {high:.2f}")
    1.06, 0.77 to 1.47
    """

    column: str
    n_rows: int
    event: str | None
    rule: str
    table: tuple[Site, ...]
    summary: Mapping[str, AcrossSites]
    confidence: float

    @property
    def next_site(self) -> SiteValue:
        """What the next site will have: its O:E, or with more than two classes its mean loss."""
        return self.summary["loss" if self.event is None else "oe"].next

    def title_of(self, measure: str) -> str:
        """What a measure is called.

        Parameters
        ----------
        measure : str
            A key of `summary`.

        Returns
        -------
        str
            Its name in sentences.
        """
        return TITLES.get(measure) or said(self.rule)

    # ---- what it claims ----------------------------------------------------------------------------

    def _findings(self) -> list[Finding]:
        return [*self._next(), *self._standing_out()]

    def _tested_together(self) -> str:
        return "Sites are tested together (Holm's correction)." if self._tested else ""

    @property
    def _tested(self) -> list[Site]:
        return [site for site in self.table if not math.isnan(site.p_value)]

    def _next(self) -> list[Finding]:
        """The mean of the sites, and the next one."""
        across = self.summary["loss" if self.event is None else "oe"]
        title, spec = self.title_of(across.measure), _FORMATS.get(across.measure, ".4f")
        numbers = {"mean": (across.mean.value, across.mean.interval), "next": _number(across.next)}
        if not across.next.interval.defined:
            why = across.next.interval.caution
            return [Finding(Claim.SCORE, f"Nothing is known about the next site: {why}.", numbers=numbers)]
        low, high = (in_format(end, spec) for end in across.next.interval)
        text = (
            f"The next site will have {_article(title)} {title} of {in_format(across.next.value, spec)} "
            f"({100 * self.confidence:g}% prediction interval {low} to {high}"
        )
        if across.near is not None:
            text += f"; within {NEAR[0]:g} to {NEAR[1]:g} with a probability of {percent(across.near)}"
        mean = value_with_interval(across.mean.value, across.mean.interval, spec)
        text += f"). The mean of {across.n_sites} sites is {mean}."
        apart = across.near is not None and across.near < self.confidence
        step = NextStep("recalibrate at each site before its forecasts are used") if apart else None
        caution = across.next.interval.caution
        return [Finding(Claim.NEXT_SITE, text, numbers=numbers, caution=caution, step=step)]

    def _standing_out(self) -> list[Finding]:
        """The sites that differ from what the others lead to expect."""
        tested, level = self._tested, round(1 - self.confidence, 12)
        found = sorted((site for site in tested if site.stands_out), key=lambda site: site.p_value)
        if not tested:
            return []
        if not found:
            return [Finding(Claim.NO_SITE, f"None of {len(tested)} sites stands out.", level=level)]
        named = listed([self._with_counts(site) for site in found])
        verb = "stands out" if len(found) == 1 else "stand out"
        return [
            Finding(
                Claim.SITE,
                f"{named} {verb} from the other sites.",
                tuple(str(site.label) for site in found),
                {str(site.label): _number(site.oe) for site in found if site.oe is not None},
                p_value=max(site.p_adjusted for site in found),
                level=level,
            )
        ]

    def _with_counts(self, site: Site) -> str:
        assert site.observed is not None
        assert site.expected is not None
        counts = f"{in_format(site.observed, ',.0f')} events, {in_format(site.expected, ',.1f')} expected"
        return f"{site.label} ({counts})"

    # ---- how it is shown ---------------------------------------------------------------------------

    def _tables(self) -> list[Table]:
        columns = [
            Column("site", self.column, lambda site: str(site.label), "label", right=False),
            Column("rows", "rows", ",", "n_rows"),
        ]
        if self.event is not None:
            columns += [
                Column("observed", "observed", ",.0f"),
                Column("expected", "expected", ",.1f"),
                Column("", "O:E", lambda site: _value(site.oe, ".2f")),
                Column("", interval_head(self.confidence), lambda site: _ends(site.oe, ".2f")),
                _measured("slope", "slope", ".2f", spare=2),
                _measured("auc", "AUC", ".3f", spare=1),
            ]
        columns.append(_measured("loss", self.rule, ".4f", spare=3))
        if self._tested:
            columns += [
                Column("p_value"),
                Column("p_adjusted", "p (Holm)", lambda site: shown_p(site.p_adjusted), spare=1),
                Column("stands_out", "", lambda site: "stands out" if site.stands_out else ""),
            ]
        return [Table(columns, self.table), self._together()]

    def _together(self) -> Table:
        """What the sites tell together."""

        def value(name: str) -> Any:
            return lambda across: _value(getattr(across, name), _FORMATS.get(across.measure, ".4f"))

        def ends(name: str) -> Any:
            return lambda across: _ends(getattr(across, name), _FORMATS.get(across.measure, ".4f"))

        level = interval_head(self.confidence)
        columns = [
            Column("", "measure", lambda across: self.title_of(across.measure), right=False),
            Column("", "sites", lambda across: str(across.n_sites), spare=1),
            Column("", "mean", value("mean")),
            Column("", level, ends("mean"), spare=2),
            Column("", "next site", value("next")),
            Column("", f"{100 * self.confidence:g}% prediction", ends("next")),
            Column("", "between sites", lambda across: _cell(across.tau, ".3g"), spare=4),
            Column("", "I²", lambda a: "" if math.isnan(a.i_squared) else percent(a.i_squared, 0), spare=3),
        ]
        return Table(columns, list(self.summary.values()), title="All sites, and the next one")

    def _heading(self) -> str:
        of = "" if self.event is None else f", event: {self.event}"
        return f"verax sites: {self.n_rows:,} rows, {len(self.table)} sites by {self.column}{of}"

    def _notes(self) -> list[str]:
        left = [site for site in self.table if site.observed is not None and math.isnan(site.p_value)]
        cautions = dict.fromkeys(across.next.interval.caution for across in self.summary.values())
        notes = [f"Caution: {text}." for text in cautions if text]
        if left and self._tested:
            notes.append(f"Fewer than 20 events are expected at {listed([str(s.label) for s in left])}.")
        return [*notes, *self.remarks]

    def plot(self) -> Any:
        """Draw each site, the mean of sites and the next one, for every measure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from verax.display.plots import draw

        return draw(self._sheet())

    def _sheet(self) -> Sheet:
        from verax.wings.sites.figures import sites_sheet

        return sites_sheet(self)


def _number(known: SiteValue) -> tuple[float, Interval]:
    return known.value, known.interval


def _article(title: str) -> str:
    return "an" if title[0] in "AEIOaeio" else "a"


def _value(known: SiteValue, spec: str) -> str:
    return "" if math.isnan(known.value) else in_format(known.value, spec)


def _ends(known: SiteValue, spec: str) -> str:
    return f"{known.interval:{spec}}" if known.interval.defined else ""


def _cell(known: SiteValue | None, spec: str) -> str:
    if known is None or math.isnan(known.value):
        return ""
    return value_with_interval(known.value, known.interval, spec)


def _measured(name: str, head: str, spec: str, spare: int = 0) -> Column:
    return Column("", head, lambda site: _cell(getattr(site, name), spec), spare=spare)
