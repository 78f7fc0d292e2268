"""Findings and verdicts: the claims of a result, the test behind each claim, and the next step.

An analysis makes the findings of its result once. The terminal, the page, JSON and notebooks show them and
write no sentence about a result of their own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from verax.common.checks import is_called
from verax.common.packing import refusing
from verax.common.stored import mapping, text
from verax.common.strictjson import number, plain
from verax.common.texts import percent as in_percent
from verax.errors import join
from verax.inference.intervals import Interval

# The level of claims after a question that stayed open, as a share of the level before.
_AFTER_OPEN = 0.2


class Claim(StrEnum):
    """Everything that a verdict can claim."""

    # Which model.
    BETTER = "better_than_reference"
    WORSE = "worse_than_reference"
    NOT_BETTER = "not_better_than_reference"
    BEST = "best_model"
    LEAD_OPEN = "lead_open"
    EQUIVALENT = "equivalent"
    NOT_INFERIOR = "not_inferior"
    TRADE = "trade"
    RULES_DISAGREE = "rules_disagree"
    INFINITE = "infinite_loss"
    SCORE = "score"
    # Calibration.
    TOO_HIGH = "risks_too_high"
    TOO_LOW = "risks_too_low"
    TOO_EXTREME = "too_extreme"
    TOO_TIMID = "too_timid"
    OVERCONFIDENT = "overconfident"
    UNDERCONFIDENT = "underconfident"
    MISCALIBRATED = "miscalibrated"
    NOT_SEEN = "no_miscalibration_seen"
    TOO_FEW = "too_few_rows"
    UNTESTED = "calibration_untested"
    SUBGROUP = "subgroup_miscalibrated"
    NO_SUBGROUP = "no_subgroup_miscalibrated"
    AS_A_WHOLE = "subgroups_off_as_a_whole"
    ALL_SUBGROUPS = "all_subgroups_off"
    # Sites.
    NEXT_SITE = "next_site"
    SITE = "site_stands_out"
    NO_SITE = "no_site_stands_out"
    # Recalibration.
    HELPS = "recalibration_helps"
    NO_GAIN = "no_recalibration_gain"
    HARMS = "recalibration_harms"
    # Prediction sets.
    COVERS = "coverage_reached"
    TOO_NARROW = "coverage_too_low"
    COVERAGE_OPEN = "coverage_open"
    # Raters.
    BETTER_THAN_RATER = "better_than_a_rater"
    WORSE_THAN_RATER = "worse_than_a_rater"
    RATER_OPEN = "rater_comparison_open"
    # Monitoring.
    ALARM = "alarm"
    NO_ALARM = "no_alarm"
    # Planning.
    ROWS_NEEDED = "rows_needed"

    @property
    def asserts(self) -> bool:
        """Whether the claim is an assertion, which can be false, and not an open question."""
        return self not in _OPEN


# Claims that assert nothing of the population: statements of what was computed, and of what stays open.
_OPEN = frozenset(
    {
        *(Claim.NOT_BETTER, Claim.LEAD_OPEN, Claim.INFINITE, Claim.SCORE, Claim.NOT_SEEN, Claim.TOO_FEW),
        *(Claim.UNTESTED, Claim.NO_SUBGROUP, Claim.NO_GAIN, Claim.COVERAGE_OPEN, Claim.RATER_OPEN),
        *(Claim.NO_ALARM, Claim.ROWS_NEEDED, Claim.NEXT_SITE, Claim.NO_SITE),
    }
)


# What each claim says, and what licenses it: a test, or "states" for what asserts nothing of the population.
LICENCES: dict[Claim, tuple[str, str]] = {
    Claim.BETTER: ("The loss is below that of class frequencies.", "interval of the skill above zero"),
    Claim.WORSE: ("The loss is above that of class frequencies.", "interval of the skill below zero"),
    Claim.NOT_BETTER: ("Neither is shown.", "states"),
    Claim.BEST: ("The first model is better than every other.", "paired differences, Holm over all pairs"),
    Claim.LEAD_OPEN: ("Its lead over some model is not significant.", "states"),
    Claim.EQUIVALENT: ("Two models differ by less than a margin.", "two one-sided tests"),
    Claim.NOT_INFERIOR: ("A model is worse by less than a margin.", "a one-sided test"),
    Claim.TRADE: (
        "The first model is ahead by one rate and behind by its partner.",
        "paired differences of both rates, Holm over all pairs",
    ),
    Claim.RULES_DISAGREE: (
        "Another proper rule prefers another model.",
        "paired differences, the level shared by the rules",
    ),
    Claim.INFINITE: ("An outcome had probability zero.", "states"),
    Claim.SCORE: ("The score, where there is no reference.", "states"),
    Claim.TOO_HIGH: ("An event is forecast too often on average.", "mean forecast against frequency"),
    Claim.TOO_LOW: ("An event is forecast too rarely on average.", "mean forecast against frequency"),
    Claim.TOO_EXTREME: ("The calibration slope is below 1.", "the slope alone, whatever the intercept"),
    Claim.TOO_TIMID: ("The calibration slope is above 1.", "the slope alone, whatever the intercept"),
    Claim.OVERCONFIDENT: (
        "The most likely class is right less often than claimed.",
        "confidence against accuracy",
    ),
    Claim.UNDERCONFIDENT: ("It is right more often than claimed.", "confidence and accuracy"),
    Claim.MISCALIBRATED: (
        "Miscalibrated in another way.",
        "miscalibration of all events, by draws",
    ),
    Claim.NOT_SEEN: ("No test of calibration is significant, and they could have seen 5 points.", "states"),
    Claim.TOO_FEW: ("They could not have seen as much.", "states"),
    Claim.UNTESTED: ("Calibration was not tested.", "states"),
    Claim.SUBGROUP: (
        "A subgroup is miscalibrated.",
        "shift, slope and shape of its calibration, Holm over subgroups",
    ),
    Claim.AS_A_WHOLE: (
        "Subgroups are off as a whole.",
        "their observed minus expected events, added up; else their slopes",
    ),
    Claim.ALL_SUBGROUPS: (
        "All subgroups are off.",
        "the same without any one of them, and equal shifts not rejected",
    ),
    Claim.NO_SUBGROUP: ("No subgroup is significantly miscalibrated.", "states"),
    Claim.HELPS: (
        "Recalibration lowers the loss on new rows.",
        "Rao's score test of calibration, and a held-out gain above one standard error",
    ),
    Claim.NO_GAIN: ("No gain is shown.", "states"),
    Claim.HARMS: ("A method that was asked for raises the loss.", "gain in cross-validation below zero"),
    Claim.COVERS: ("Prediction sets reach their level.", "interval of the coverage"),
    Claim.TOO_NARROW: ("They do not.", "interval of the coverage"),
    Claim.COVERAGE_OPEN: ("Neither is shown.", "states"),
    Claim.BETTER_THAN_RATER: ("The model is better than one rater.", "its loss against that of a rater"),
    Claim.WORSE_THAN_RATER: ("It is worse.", "its loss against that of a rater"),
    Claim.RATER_OPEN: ("Neither is shown.", "states"),
    Claim.NEXT_SITE: ("What the next site will have.", "states"),
    Claim.SITE: (
        "A site differs from what the others lead to expect.",
        "mid-P of its events over the next site of the others, Holm over sites",
    ),
    Claim.NO_SITE: ("No site stands out.", "states"),
    Claim.ALARM: ("The model has become worse.", "an e-process that may be looked at after every row"),
    Claim.NO_ALARM: ("No evidence of that.", "states"),
    Claim.ROWS_NEEDED: ("How many rows a plan needs.", "states"),
}


@dataclass(frozen=True)
class NextStep:
    """What to do next.

    Attributes
    ----------
    text : str
        What to do, as a sentence without a full stop.
    call : str
        The call in Python, with `y` and `p` for outcomes and forecasts.
    command : str
        The command; `{source}` in it stands for the files and the options that say how they are read.
    """

    text: str
    call: str = ""
    command: str = ""

    def with_source(self, source: str) -> NextStep:
        """The step with a command that runs as printed."""
        return replace(self, command=self.command.replace("{source}", source))

    def to_dict(self) -> dict[str, Any]:
        """The step as plain Python values."""
        return {"text": self.text, "call": self.call, "command": self.command}

    @classmethod
    def from_dict(cls, values: Any) -> NextStep:
        """The step that `to_dict` gave."""
        given = mapping(values)
        return cls(*(text(given[name]) for name in ("text", "call", "command")))


@dataclass(frozen=True)
class Finding:
    """One claim with its sentence, its numbers and the test that licenses it.

    Attributes
    ----------
    claim : Claim
        What is claimed.
    text : str
        The sentence.
    about : tuple of str
        The models, classes, thresholds or subgroups that it is about, by name.
    numbers : mapping of str to float or (float, Interval)
        The numbers of the sentence by name, with their intervals where they have one.
    p_value : float or None
        The p-value behind the claim, corrected for what was tested together; None where there is no test.
    level : float or None
        The level that it was held to.
    caution : str
        Why the claim may be unreliable; empty otherwise.
    step : NextStep or None
        What follows from it.
    """

    claim: Claim
    text: str
    about: tuple[str, ...] = ()
    numbers: Mapping[str, float | tuple[float, Interval]] = field(default_factory=dict)
    p_value: float | None = None
    level: float | None = None
    caution: str = ""
    step: NextStep | None = None

    def to_dict(self) -> dict[str, Any]:
        """The finding as strict JSON."""
        numbers = {}
        for name, known in self.numbers.items():
            value, interval = known if isinstance(known, tuple) else (known, None)
            numbers[name] = {"value": value, "interval": None if interval is None else list(interval)}
        fields = {
            "claim": str(self.claim),
            "text": self.text,
            "about": list(self.about),
            "numbers": numbers,
            "p_value": self.p_value,
            "level": self.level,
            "caution": self.caution,
            "next_step": None if self.step is None else self.step.to_dict(),
        }
        shown = plain(fields)
        assert isinstance(shown, dict)
        return shown

    @classmethod
    def from_dict(cls, values: Any) -> Finding:
        """The finding that `to_dict` gave."""
        given = mapping(values)
        numbers: dict[str, Any] = {}
        for name, known in mapping(given["numbers"]).items():
            stored = mapping(known)
            value, ends = number(stored["value"]), stored["interval"]
            numbers[text(name)] = value if ends is None else (value, Interval(*map(number, ends)))
        p, level, step = (given[name] for name in ("p_value", "level", "next_step"))
        return cls(
            Claim(given["claim"]),
            text(given["text"]),
            tuple(map(text, given["about"])),
            numbers,
            None if p is None else number(p),
            None if level is None else number(level),
            text(given["caution"]),
            None if step is None else NextStep.from_dict(step),
        )


class Verdict(str):
    """What a result claims: a text, with the findings that it is made of.

    Parameters
    ----------
    findings : iterable of Finding
        The findings, in the order in which they are told.
    tested : str, default ""
        How the claims were tested together, in a sentence.

    Attributes
    ----------
    findings : tuple of Finding
        Each claim with its sentence, numbers, test, caution and next step.
    tested : str
        How the claims were tested together.

    Examples
    --------
    >>> verdict = Verdict([Finding(Claim.NO_GAIN, "No recalibration method helps significantly.")])
    >>> verdict.claims, verdict.startswith("No recalibration")
    (('no_recalibration_gain',), True)
    """

    findings: tuple[Finding, ...]
    tested: str

    def __new__(cls, findings: Iterable[Finding], tested: str = "") -> Self:
        """A verdict whose text is made of the sentences of its findings."""
        known = tuple(findings)
        step = _most_urgent(known)
        texts = [finding.text for finding in known if finding.text]
        self = super().__new__(cls, " ".join(texts if step is None else [*texts, f"Next: {step.text}."]))
        self.findings, self.tested = known, tested
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.findings, self.tested

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims, in the order of the findings."""
        return tuple(str(finding.claim) for finding in self.findings)

    @property
    def next_step(self) -> NextStep | None:
        """The one step that helps most; None where no finding has one."""
        return _most_urgent(self.findings)

    def about(self, claim: str) -> tuple[str, ...]:
        """The names that a claim is made of, over all findings.

        Parameters
        ----------
        claim : str
            The claim.

        Returns
        -------
        tuple of str
            Models, classes, thresholds or subgroups; empty where the claim is not made.
        """
        return tuple(
            name for finding in self.findings if is_called(claim, finding.claim) for name in finding.about
        )

    def with_source(self, source: str) -> Self:
        """The verdict with commands that run as printed.

        Parameters
        ----------
        source : str
            The files and the options that say how they are read, as they were typed.

        Returns
        -------
        Verdict
            A new verdict.
        """
        findings = (
            replace(finding, step=None if finding.step is None else finding.step.with_source(source))
            for finding in self.findings
        )
        return type(self)(findings, self.tested)

    def with_remedy(self, findings: Iterable[Finding]) -> Self:
        """The verdict with findings about recalibration, which replace the advice on calibration.

        Parameters
        ----------
        findings : iterable of Finding
            The findings about recalibration; none where it was not tried.

        Returns
        -------
        Verdict
            A new verdict.
        """
        more = tuple(findings)
        if not more:
            return self
        kept = (
            replace(finding, step=None) if finding.claim in _CURABLE else finding for finding in self.findings
        )
        return type(self)((*kept, *more), self.tested)

    def to_dict(self) -> dict[str, Any]:
        """The text, the findings and the next step as strict JSON."""
        step = self.next_step
        return {
            "text": str(self),
            "findings": [finding.to_dict() for finding in self.findings],
            "tested": self.tested,
            "next_step": None if step is None else step.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """The verdict that `to_dict` gave.

        Parameters
        ----------
        values : mapping of str to value
            What `to_dict` gave.

        Returns
        -------
        Verdict
            An equal one.
        """
        with refusing("is missing or of another type"):
            given = mapping(values)
            return cls([*map(Finding.from_dict, given["findings"])], text(given["tested"]))


# What recalibration may cure.
_CURABLE = frozenset(
    {
        *(Claim.TOO_HIGH, Claim.TOO_LOW, Claim.TOO_EXTREME, Claim.TOO_TIMID),
        *(Claim.OVERCONFIDENT, Claim.UNDERCONFIDENT, Claim.MISCALIBRATED),
    }
)
# Which step comes first where several findings have one.
_URGENCY = {
    claim: i
    for i, claim in enumerate(
        (
            *(Claim.ALARM, Claim.WORSE, Claim.HELPS, Claim.TOO_NARROW, Claim.WORSE_THAN_RATER),
            *sorted(_CURABLE),
            *(Claim.SUBGROUP, Claim.ALL_SUBGROUPS, Claim.AS_A_WHOLE, Claim.NEXT_SITE),
            *(Claim.LEAD_OPEN, Claim.NOT_BETTER, Claim.TOO_FEW, Claim.ROWS_NEEDED),
        )
    )
}


def _most_urgent(findings: Iterable[Finding]) -> NextStep | None:
    """The step of the most urgent finding that has one."""
    steps = [finding for finding in findings if finding.step is not None]
    return min(steps, key=lambda finding: _URGENCY.get(finding.claim, len(_URGENCY))).step if steps else None


@dataclass(frozen=True)
class Level:
    """The level that the next question of a verdict is tested at.

    Questions are tested in a fixed order. Each is tested at the whole level until one stays open, and at a
    fifth of the level after each that does: calibration after an open lead. Subgroups have a fifth of the
    first level whatever else is tested, so that they are told alike by themselves and beside other questions.
    So all claims together are false with a probability of at most 1.4 levels.
    """

    level: float

    @classmethod
    def at(cls, confidence: float) -> Level:
        """The level of the first question."""
        return cls(round(1 - confidence, 12))

    def after(self, *, answered: bool, whole: float | None = None) -> Level:
        """The level of the next question; `whole` is that of the first, by default this one."""
        return self if answered else Level(_AFTER_OPEN * (self.level if whole is None else whole))

    def holds(self, p: float | None) -> bool:
        """Whether a p-value licenses a claim."""
        return p is not None and not math.isnan(p) and p <= self.level


# What is claimed where there is nothing to test.
NOTHING = Verdict(())

# ---- results with a verdict


class WithVerdict:
    """A result with a verdict; a base of results.

    Every text about a verdict is made here: `repr`, notebooks, JSON, the terminal and pages show it.
    """

    def _findings(self) -> Iterable[Finding]:
        """The claims of the result, in their order."""
        raise NotImplementedError

    def _tested_together(self) -> str:
        """How the claims were tested together, in a sentence."""
        return ""

    @property
    def verdict(self) -> Verdict:
        """The claims of the result as a text, with their findings and the next step."""
        return Verdict(self._findings(), self._tested_together())

    def _told(self) -> list[str]:
        return lines_of(self.verdict)

    def _concluded(self) -> dict[str, Any]:
        """The verdict in JSON."""
        return in_json(self.verdict)


class VerdictOnceCalled(Verdict):
    """A verdict that was a method in earlier versions, whose callers still get it."""

    def __call__(self, *_: object) -> Verdict:
        warnings.warn(
            "`verdict` is a property now: leave the brackets out.", DeprecationWarning, stacklevel=2
        )
        return self


def in_brackets(interval: Interval, digits: int = 3, *, percent: bool = False) -> str:
    """A confidence interval behind its number; empty without one, or if its ends are equal.

    It has more digits where its ends would look alike.

    >>> in_brackets(Interval(0.123, 0.25)), in_brackets(Interval(0.94961, 0.95042), percent=True)
    (' (95% CI 0.123 to 0.25)', ' (95% CI 94.96% to 95.04%)')
    >>> in_brackets(Interval(-0.1, 0.2)), in_brackets(Interval(1, 1))
    (' (95% CI −0.1 to 0.2)', '')
    """
    if not interval.defined or interval.low == interval.high:
        return ""
    for more in range(6):
        decimals, spec = digits - 2 + more, f"z.{digits + more}g"
        low, high = (
            in_percent(end, decimals) if percent else f"{end:{spec}}".replace("-", "−") for end in interval
        )
        if low != high:
            break
    return f" ({100 * interval.confidence:g}% CI {low} to {high})"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; if there are many, the first ones and the number of others.

    >>> listed(["a", "b"]), listed(list("abcdefgh"), most=3)
    ('a and b', 'a, b, c and 5 more')
    """
    rest = len(names) - most
    return join(names if rest <= 1 else [*names[:most], f"{rest:,} more"])


def in_json(verdict: Verdict) -> dict[str, Any]:
    """The text of a verdict, its findings and the next step, as JSON holds them."""
    stored = verdict.to_dict()
    return {"verdict": stored["text"], "findings": stored["findings"], "next_step": stored["next_step"]}


def lines_of(verdict: Verdict) -> list[str]:
    """The verdict as lines: its text, and the call that takes the next step."""
    step = verdict.next_step
    call = [] if step is None or not step.call else [f"  {step.call}"]
    return [str(verdict), *call] if verdict else []
