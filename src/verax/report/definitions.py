"""What every score on the page is, what it promises, and where papers and packages print it differently."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.words import number, title_of, within
from verax.scores.base import Rule
from verax.scores.combinators import Penalized
from verax.scores.metrics import DecisionMetric
from verax.scores.registry import name_of

_GALDRAN = "Galdran (2023)"
_AHMADIAN = "Ahmadian, Ghatee and Wahlström (2025)"

# Where a published formula, number or claim is wrong, or scales differ. Equation numbers are the papers'.
ERRATA: dict[str, tuple[str, ...]] = {
    "rps": (
        f"{_GALDRAN}: the two RPS values printed after Eq. 3 should be 9/32 and 9/16; those printed belong "
        "to the forecasts (1/2, 1/2, 0) and (1/2, 0, 1/2).",
        f"{_GALDRAN}: for two classes the RPS is half the Brier score of Eq. 1, not equal to it.",
        f"{_GALDRAN}: being zero at the label and nowhere negative does not make a score proper; the RPS is "
        "proper for another reason, its divergence.",
    ),
    "sa_rps": (
        f"{_GALDRAN} calls it a proper scoring rule. For three classes and more it is not: under a uniform "
        "truth over three classes, all mass on the middle one has an expected loss "
        "of 1/6, the truth of 11/54.",
        f"{_GALDRAN}: Eq. 7 reaches K−1, not 1 as the text says. Here it is divided so that it does reach 1; "
        "the order of models is the same.",
        f"{_GALDRAN}: the asymmetric example must be (9/20, 1/2, 1/20); the one printed sums to 3/2.",
    ),
    "abs_rps": (
        f"The argument that {_GALDRAN} gives for propriety would make this score proper as well, and it is "
        "not, for two classes already: truth (3/5, 2/5) has an expected loss of 12/25, certainty of the "
        "first class of 2/5.",
    ),
    "brier": (
        "Three scales are in use: the sum over the classes (here, and Brier's own), half of it, and the "
        "mean. The score that scikit-learn gives for two classes is half of this one.",
    ),
    "log_score": (
        "Other packages clip probabilities unasked, Keras at 1e-7; a clipped log score is not proper near "
        "zero. Here nothing is clipped.",
    ),
    "pbs": (
        f"{_AHMADIAN}: Algorithm 2 is Eq. 4 divided by K, but the released code weighs the penalty K times "
        "more. Here it is Eq. 4.",
        f"{_AHMADIAN}: a tie with the true class counts as right, which makes the score improper: believing "
        "in (3/5, 2/5), the forecast (1/2, 1/2) scores better. Here ties share the penalty, and Theorem 5 "
        "holds.",
        "Superiority holds row by row: a model with fewer right decisions can still have the smaller mean.",
    ),
    "pll": (
        f"{_AHMADIAN}: Algorithm 3 lacks the minus sign of the logarithm, and the log losses in the README "
        "are in base 10.",
        f"{_AHMADIAN}: ties as for the penalized Brier score.",
    ),
    "zero_one": (
        "Counting mistakes is proper only if ties are broken properly: here tied classes share the hit, "
        "while accuracy takes the lowest index.",
    ),
    "qwk": (
        f"{_GALDRAN}: the claim that RPS and squared absolute RPS never overlap in kappa on Eyepacs is false "
        "in all seven tables, at mean plus or minus one standard deviation.",
    ),
    "ec": (
        f"{_GALDRAN} does not state the costs, steps and axis of the printed areas; they fit unnormalised "
        "quadratic costs.",
    ),
}


@dataclass(frozen=True)
class Definition:
    """One score: what it is, what it promises for this number of classes, and errata."""

    name: str
    title: str
    text: str
    range: str
    orientation: str
    promises: tuple[tuple[str, str], ...]
    reference: str
    errata: tuple[str, ...]

    @property
    def link(self) -> str | None:
        """Where the reference leads, if it is an address or a DOI."""
        if self.reference.startswith("https://"):
            return self.reference
        return "https://doi.org/" + self.reference[4:] if self.reference.startswith("doi:") else None


def definitions(card: Scorecard) -> list[Definition]:
    """The definitions of every score and metric of a card."""
    k = card.n_classes
    lines = [of_rule(score, score.rule, k) for score in card.scores.values() if score.rule is not None]
    metrics = [m for m in card.count_metrics if m.name in card.metrics]
    return [*lines, *(_of_metric(card.metrics[metric.name], metric) for metric in metrics)]


def of_rule(score: CardLine, rule: Rule, k: int) -> Definition:
    """The definition of a rule; that of a padded rule is of what is padded."""
    text = rule.description or rule.summary
    if isinstance(rule, Penalized):
        inner = title_of(name_of(rule.rule))
        text = (
            f"The {within(inner)} plus {number(rule.constant(k))} times the zero-one loss, for {k:,} "
            "classes, so that a forecast whose unique mode is the outcome beats one whose unique mode is not."
        )
    properties = rule.properties
    promises = tuple(
        (
            f.name.replace("_", " "),
            _promise(getattr(properties, f.name).at(k), str(getattr(properties, f.name))),
        )
        for f in fields(properties)
    )
    return Definition(
        score.name,
        title_of(score.name),
        text,
        _range(score),
        score.orientation,
        promises,
        rule.reference,
        ERRATA.get(score.name, ()),
    )


def _promise(holds: bool | None, extent: str) -> str:
    answer = {True: "yes", False: "no", None: "unknown"}[holds]
    return answer if extent in ("yes", "no", "unknown") else f"{answer} ({extent})"


def _of_metric(score: CardLine, metric: DecisionMetric) -> Definition:
    return Definition(
        score.name,
        metric.title,
        metric.description,
        _range(score),
        score.orientation,
        (),
        metric.reference,
        ERRATA.get(score.name, ()),
    )


def _range(score: CardLine) -> str:
    low, high = score.bounds
    return f"{low:g} to {'∞' if math.isinf(high) else f'{high:.4g}'}".replace("-", "−")
