"""Whether probabilities are calibrated, and in which way they are not.

Two classes: too high or too low on average, then too extreme or not enough so, then any other shape. Several
classes: confidence against accuracy, then each class on average, then any other shape. Ordered classes: the
thresholds in place of classes, on average and by their slopes. All tests of one model share the level by
Holm's method. Each of these kinds of test has the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from verax.analyses.calibration.claims import ClassBias, ListClaim, Overconfidence
from verax.analyses.calibration.components import Components
from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
from verax.analyses.words import number, probability, span
from verax.common.texts import percent
from verax.inference.estimates import weighted_holm
from verax.inference.findings import Claim, Finding, Level, NextStep
from verax.inputs.groups import GroupCount, counts_by_kind, in_words

# A gap that is significant and smaller than this is called slight if its O:E is in the first range and the
# interval of that in the second.
_SLIGHT_GAP = 0.01
_SLIGHT_RATIO, _SLIGHT_ENDS = (0.9, 1.1), (0.8, 1.25)
# The miscalibration that tests should be able to see: a gap of claims (of rare outcomes, this part of their
# share), a slope this far from 1, and this share of the score as miscalibration, each with a power of about
# 80 %.
_GAP, _PART, _SLOPE, _SHARE = 0.05, 0.5, 0.25, 0.05
_POWER = 2.8
# The least variance of claims near zero or one: it takes 60 rows without an error to show that at most 5 %
# are wrong.
_LEAST = 0.02
# The quantile of the interval of an O:E that is called slightly off.
_WIDTH = 1.96
# With fewer rows of another outcome than the most frequent one, tests of all events and of a loss that is too
# high reject calibrated forecasts of rare events in a tenth of the samples and more.
FEWEST_RARER = 5
# With fewer groups per class, the test of all events rejects calibrated forecasts in up to 43 % of samples
# (40 classes in 20 groups).
_GROUPS_PER_CLASS = 2
# How many thresholds or classes are named.
_NAMED = 2


@dataclass(frozen=True)
class CalibrationEvidence:
    """The evidence of rows on the calibration of one model.

    Attributes
    ----------
    names : sequence of str
        The names of the classes.
    ordered : bool
        Whether they have an order.
    n_rows : float
        The number of rows of equal weight that tell as much.
    n_groups : GroupCount or None
        The number of groups.
    overconfidence : Overconfidence
        The most likely class: what it claims and how often it is right.
    biases : sequence of ClassBias
        What every class or threshold claims and how often it happens; of two classes, the second.
    slopes : CalibrationSlopes or None
        Of two classes, or of thresholds; None where they were not fitted.
    whole : Components
        The miscalibration of all events together, with its test.
    confidence : float
        The confidence level of intervals.
    """

    names: Sequence[str]
    ordered: bool
    n_rows: float
    n_groups: GroupCount | None
    overconfidence: Overconfidence
    biases: Sequence[ClassBias]
    slopes: CalibrationSlopes | None
    whole: Components
    confidence: float

    @property
    def lines(self) -> list[CalibrationLine]:
        """The slopes that are tested: of two classes and of thresholds."""
        fitted = self.slopes is not None and (self.ordered or len(self.names) == 2)
        return list(self.slopes.lines) if fitted and self.slopes is not None else []

    def event(self, i: int) -> str:
        """The name of an event: a class, or of ordered classes one or a higher one."""
        called = self._called(i + 1 if self.ordered else i)
        return f"{called} or higher" if self.ordered and i + 2 < len(self.names) else called

    def _called(self, i: int) -> str:
        """The name of a class; a number alone does not say what it counts."""
        name = self.names[i]
        return f"class {name}" if name.lstrip("-").isdigit() else name

    @property
    def _shares(self) -> list[float]:
        """How often each class happened."""
        shares = [bias.happened for bias in self.biases]
        if self.ordered:
            return [float(share) for share in np.diff([0.0, *shares, 1.0])]
        return [1 - shares[0], shares[0]] if len(self.names) == 2 else shares

    @property
    def rarer(self) -> float:
        """How many rows have another outcome than the most frequent one."""
        return max(0.0, self.n_rows * (1 - max(self._shares)))

    @property
    def most_frequent(self) -> str:
        """The name of the most frequent class."""
        return self._called(int(np.argmax(self._shares)))

    @property
    def _shape_can_be_tested(self) -> bool:
        """Whether there are enough rows of rarer outcomes, and enough groups."""
        return self.rarer >= FEWEST_RARER and enough_groups(self.rarer, self.n_groups, len(self.names))

    def adjusted(self) -> dict[str, float]:
        """The p-value of every test, corrected for all of them; by the kind of test and its place.

        A kind that was not tested keeps its share of the level, so that no claim depends on what else could
        be tested: summaries of files may lack slopes.
        """
        kinds: dict[str, list[float]] = {}
        if len(self.names) > 2:
            kinds["top"] = _numbers([self.overconfidence.p_value])
        kinds["large"] = _numbers([bias.p_value for bias in self.biases])
        if self.ordered or len(self.names) == 2:
            kinds["slope"] = [line.slope_p for line in self.lines]
        kinds["shape"] = _numbers([self.whole.p_value if self._shape_can_be_tested else None])
        p: dict[str, float] = {}
        shares = []
        for kind, values in kinds.items():
            known = sum(not math.isnan(value) for value in values)
            tests = {f"{kind} {i}": value for i, value in enumerate(values)} if known else {f"no {kind}": 1.0}
            p |= tests
            shares += [1 / max(known, 1)] * len(tests)
        corrected = weighted_holm(np.array(list(p.values())), np.array(shares))
        return {test: q for test, q in zip(p, corrected.tolist(), strict=True) if not test.startswith("no ")}


def enough_groups(rarer: float, n_groups: GroupCount | None, n_classes: int) -> bool:
    """Whether a test of all events that draws groups holds its level; `rarer` rows have a rarer outcome."""
    if n_groups is None:
        return True
    return rarer >= FEWEST_RARER and min(counts_by_kind(n_groups)) >= _GROUPS_PER_CLASS * n_classes


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def calibration_findings(
    evidence: CalibrationEvidence, level: Level, whose: str, *, skilled: bool = False
) -> list[Finding]:
    """Findings on the calibration of a model.

    `whose` is "The model", or its name; `skilled` says whether it is known to beat the reference.
    """
    p = evidence.adjusted()
    if all(math.isnan(value) for value in p.values()):
        return [untested(whose, level)]
    judge = _Judge(evidence, level, p, whose)
    top = judge.top()
    large = judge.large(also=bool(top))
    findings = [*top, *large, *judge.slopes({name for finding in large for name in finding.about})]
    findings = findings or judge.shape()
    if findings:
        return findings
    if _could_see(evidence, p):
        use = ": nothing speaks against using its probabilities on rows like these" if skilled else ""
        text = not_seen(whose, use)
        return [
            Finding(Claim.NOT_SEEN, text, p_value=min(v for v in p.values() if v == v), level=level.level)
        ]
    groups = "" if evidence.n_groups is None else f" in {in_words(evidence.n_groups)}"
    text = f"Too few rows to tell whether {_mid(whose)} is calibrated ({evidence.n_rows:,.0f}{groups})."
    enough, rarer = _enough(evidence), round(evidence.rarer)
    if _few_are_rarer(evidence):
        has = f"only {rarer:,} of {evidence.n_rows:,.0f} rows" if rarer else "none of the rows"
        text = (
            f"Too few events to tell whether {_mid(whose)} is calibrated: {has} "
            f"{'has' if rarer == 1 else 'have'} another outcome than {evidence.most_frequent}{groups}."
        )
    unit = "rows" if evidence.n_groups is None else "groups"
    step = None if math.isinf(enough) else NextStep(f"collect about {enough:,.0f} {unit} in all")
    numbers = {"rows": evidence.n_rows, "rarer": evidence.rarer, "enough": enough}
    return [Finding(Claim.TOO_FEW, text, numbers=numbers, level=level.level, step=step)]


def not_seen(whose: str, over: str) -> str:
    """The sentence that no miscalibration was seen, and over what rows or what follows."""
    return f"No significant miscalibration of {_mid(whose)}{over}."


def untested(whose: str, level: Level) -> Finding:
    """The finding that nothing is known of the calibration of a model."""
    text = f"The calibration of {_mid(whose)} was not tested."
    return Finding(Claim.UNTESTED, text, level=level.level)


def _mid(whose: str) -> str:
    return "the model" if whose == "The model" else whose


@dataclass(frozen=True)
class _Judge:
    """The claims that tests license."""

    evidence: CalibrationEvidence
    level: Level
    p: dict[str, float]
    whose: str

    def _holds(self, test: str) -> bool:
        return self.level.holds(self.p.get(test))

    def _finding(
        self, claim: Claim, text: str, test: str, numbers: Mapping[str, Any], about: str = ""
    ) -> Finding:
        return Finding(
            claim,
            text,
            (about,) if about else (),
            numbers,
            p_value=self.p[test],
            level=self.level.level,
            step=_RECALIBRATE if self.evidence.rarer else _OTHER_ROWS,
        )

    def top(self) -> list[Finding]:
        """Confidence against accuracy."""
        sure = self.evidence.overconfidence
        if not self._holds("top 0"):
            return []
        slightly = "slightly " if slight(sure.claimed, sure.right, sure.p_value) else ""
        shares = two_shares(sure.claimed, "claimed", sure.right, "correct")
        claim = Claim.OVERCONFIDENT if sure.gap > 0 else Claim.UNDERCONFIDENT
        text = f"{self.whose} is {slightly}{side_of(sure.gap)} ({shares})."
        return [self._finding(claim, text, "top 0", {"claimed": sure.claimed, "correct": sure.right})]

    def large(self, *, also: bool) -> list[Finding]:
        """Findings on events forecast too high or too low on average; `also` if something else is wrong."""
        evidence = self.evidence
        off = [(i, bias) for i, bias in enumerate(evidence.biases) if self._holds(f"large {i}")]
        off.sort(key=lambda pair: -abs(pair[1].gap))
        # Where more is wrong, a slight bias of a class is not worth a sentence.
        off = [pair for pair in off if not also or not slight(*self._shares_of(pair[1]), pair[1].p_value)]
        findings: list[Finding] = []
        for i, bias in off[:_NAMED]:
            event, (claimed, happened) = evidence.event(bias.position), self._shares_of(bias)
            high = claimed > happened
            slightly = "slightly " if slight(claimed, happened, bias.p_value) else ""
            shares = two_shares(claimed, "forecast", happened, "observed")
            ratio = f", O:E {number(happened / claimed, 2)}" if claimed > 0 else ""
            side = f"{slightly}too {'high' if high else 'low'}"
            if len(evidence.names) == 2:
                text = f"{self._its} probabilities of {event} are {side} on average ({shares}{ratio})."
            else:
                often = f"{slightly}too {'often' if high else 'rarely'}"
                text = f"{'It' if findings else self.whose} forecasts {event} {often} ({shares})."
            numbers = {"forecast": claimed, "observed": happened}
            if claimed > 0:
                numbers["observed_to_expected"] = happened / claimed
            claim = Claim.TOO_HIGH if high else Claim.TOO_LOW
            findings.append(self._finding(claim, text, f"large {i}", numbers, event))
        return findings

    def _shares_of(self, bias: ClassBias) -> tuple[float, float]:
        """The claim of an event, and how often it happened; of ordered classes sums are of "at most"."""
        shares = bias.claimed, bias.happened
        return (1 - shares[0], 1 - shares[1]) if self.evidence.ordered else shares

    def slopes(self, told: Set[str]) -> list[Finding]:
        """The event whose probabilities are too extreme, or not extreme enough; `told` names events."""
        evidence = self.evidence
        off = [(i, line) for i, line in enumerate(evidence.lines) if self._holds(f"slope {i}")]
        off.sort(key=lambda pair: self.p[f"slope {pair[0]}"])
        findings = []
        for i, line in off[:1]:
            event = evidence.event(i if evidence.ordered else 1)
            # An interval that ends just below 1 must not be shown as one that ends at 1.
            digits = next((d for d in (2, 3, 4) if 1 not in {round(e, d) for e in line.slope_interval}), 2)
            ends = f"{100 * evidence.confidence:g}% CI {span(line.slope_interval, digits)}"
            size = f"calibration slope {number(line.slope, digits)}, {ends}"
            side = "too extreme" if line.slope < 1 else "not extreme enough"
            which = f"{self._its} probabilities of {event} are"
            which = "They are also" if told == {event} else which
            text = f"{which} {side} ({size})."
            claim = Claim.TOO_EXTREME if line.slope < 1 else Claim.TOO_TIMID
            numbers = {"slope": (line.slope, line.slope_interval)}
            findings.append(self._finding(claim, text, f"slope {i}", numbers, event))
        return findings

    def shape(self) -> list[Finding]:
        """Miscalibration of another kind."""
        if not self._holds("shape 0"):
            return []
        whole = self.evidence.whole
        expected = whole.expected_miscalibration
        sign = "≤" if whole.p_is_bound else "="
        p = f"overall test p {sign} {probability(whole.p_value)}"
        share = whole.miscalibration - (expected or 0.0)
        much = f", {percent(share / whole.score)} of the loss" if whole.score > 0 and share > 0 else ""
        text = f"{self._its} probabilities are miscalibrated ({p}{much}); the reliability curves show where."
        numbers = {"miscalibration": whole.miscalibration}
        return [self._finding(Claim.MISCALIBRATED, text, "shape 0", numbers)]

    @property
    def _its(self) -> str:
        return "Its" if self.whose == "The model" else f"{self.whose}'s"


_OTHER_ROWS = NextStep("collect rows with other outcomes before you recalibrate")
_RECALIBRATE = NextStep("try recalibration", "vx.recalibrate(y, p)", "verax recalibrate {source}")


def _few_are_rarer(evidence: CalibrationEvidence) -> bool:
    """Whether a gap of claims as large as is relevant is small because other outcomes are rare."""
    return _PART * evidence.rarer < _GAP * evidence.n_rows


def _enough(evidence: CalibrationEvidence) -> float:
    """How many rows could show a relevant gap of claims, with two digits; infinite where all are alike."""
    claimed, share = evidence.overconfidence.claimed, evidence.rarer / evidence.n_rows
    n = (_POWER / _GAP) ** 2 * max(claimed * (1 - claimed), _LEAST)
    if _few_are_rarer(evidence):
        n = max(n, _POWER**2 * (1 - share) / (_PART**2 * share)) if share > 0 else math.inf
    if math.isinf(n):
        return n
    step = max(10.0 if n < 100 else 50.0, 10.0 ** (math.floor(math.log10(n)) - 1))
    return math.ceil(n / step) * step


def _could_see(evidence: CalibrationEvidence, tested: dict[str, float]) -> bool:
    """Whether a test of calibration could have seen a relevant size."""
    claimed, count = evidence.overconfidence.claimed, evidence.n_groups
    n = evidence.n_rows if count is None else min(counts_by_kind(count))
    error = math.sqrt(max(claimed * (1 - claimed), _LEAST) / max(n, 1))
    able = [_POWER * error <= _GAP, "shape 0" in tested and _spread(evidence.whole) <= _SHARE]
    if _few_are_rarer(evidence):
        # Twice a small risk hardly adds to the score.
        share = evidence.rarer / evidence.n_rows
        able = [_POWER * math.sqrt(share * (1 - share) / max(n, 1)) <= _PART * share and share > 0]
    ends = [line.slope_interval for line in evidence.lines if line.slope_interval.defined]
    able += [_POWER / 1.96 * (end.high - end.low) / 2 <= _SLOPE for end in ends]
    return any(able)


def _spread(whole: Components) -> float:
    """How much more miscalibration than by chance a test would see, as a share of the score."""
    drawn = whole.calibrated
    if len(drawn) < 20 or not math.isfinite(whole.score) or whole.score <= 0:
        return math.inf
    return float(_POWER * np.std(drawn) / whole.score)


def slight(claimed: float, happened: float, p_value: float | None) -> bool:
    """Whether a gap between what was claimed and what happened is slight, and known to be.

    The p-value tells the standard error.

    >>> slight(0.42, 0.415, 1e-3), slight(0.02, 0.0114, 1e-3), slight(0.01, 0.0095, 0.6)
    (True, False, False)
    """
    if not claimed > 0 or p_value is None or math.isnan(p_value):
        return False
    gap = abs(claimed - happened)
    z = -NormalDist().inv_cdf(p_value / 2) if 0 < p_value < 1 else math.inf
    reach = _WIDTH * gap / z if z > 0 else math.inf
    ratio, ends = happened / claimed, ((happened - reach) / claimed, (happened + reach) / claimed)
    inside = _SLIGHT_ENDS[0] <= ends[0] and ends[1] <= _SLIGHT_ENDS[1]
    return gap < _SLIGHT_GAP and _SLIGHT_RATIO[0] <= ratio <= _SLIGHT_RATIO[1] and inside


def side_of(gap: float) -> str:
    """Overconfident, or underconfident."""
    return "overconfident" if gap > 0 else "underconfident"


def two_shares(a: float, first: str, b: float, second: str) -> str:
    """Two shares with enough digits to differ.

    >>> two_shares(0.1604, "claimed", 0.1623, "correct")
    '16.0% claimed, 16.2% correct'
    """
    digits = next((d for d in range(4) if percent(a, d) != percent(b, d)), 4)
    return f"{percent(a, digits)} {first}, {percent(b, digits)} {second}"


# ---- lists -------------------------------------------------------------------------------------


def list_findings(claims: Sequence[ListClaim], level: Level, whose: str) -> list[Finding]:
    """Findings on a model's lists: the whole list against coverage, and the class listed first."""
    whole = claims[-1]
    its = "Its" if whose == "The model" else f"{whose}'s"
    text = (
        f"{its} lists hold the outcome in {percent(whole.happened, 1)} of the rows and claim "
        f"{percent(whole.claimed, 1)}, {claim_words(whole, level)}."
    )
    findings = [_of_claim(whole, text, level)]
    if claims[0] is not whole:
        shares = two_shares(claims[0].claimed, "claimed", claims[0].happened, "correct")
        text = f"The class listed first: {shares}, {claim_words(claims[0], level)}."
        findings.append(_of_claim(claims[0], text, level))
    return findings


def _of_claim(claim: ListClaim, text: str, level: Level) -> Finding:
    kind = Claim.UNTESTED if claim.p_adjusted is None else Claim.NOT_SEEN
    if level.holds(claim.p_adjusted):
        kind = Claim.OVERCONFIDENT if claim.gap > 0 else Claim.UNDERCONFIDENT
    numbers = {"claimed": claim.claimed, "happened": claim.happened}
    step = _RECALIBRATE if kind.asserts else None
    return Finding(kind, text, (claim.name,), numbers, claim.p_adjusted, level.level, step=step)


def claim_words(claim: ListClaim, level: Level) -> str:
    """Whether a claim differs significantly from what happened, in words."""
    if claim.p_adjusted is None:
        return "which was not tested"
    if not level.holds(claim.p_adjusted):
        return "which may be chance"
    p = probability(claim.p_adjusted)
    shown = f"p {p}" if p.startswith("<") else f"p = {p}"
    much = "slightly " if slight(claim.claimed, claim.happened, claim.p_value) else ""
    return f"{much}{side_of(claim.gap)} ({shown})"
