"""`--require`: bounds on scores, for pipelines that stop when one fails."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import typer

from verax.analyses.calibration.summary import CalibrationSummary, Measure
from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.measures import MEASURES, OF_LISTS, WITH_INTERVAL
from verax.errors import InputError, Remedy, VeraxError, passing
from verax.errors import show as quote
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded
from verax.scores.coverage import LIST_METRICS
from verax.scores.metrics import HIGHER, LOWER, METRICS
from verax.scores.naming import suggestions
from verax.scores.registry import RULES, name_of, parse

Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="BOUND",
        help="A bound such as 'rps<0.06', 'accuracy>=0.8', 'skill>0.1', 'auc>0.8' or 'ece<0.05'; "
        "'auc.low>0.8' is about the end of its interval. May be repeated. Exit code 1 if one fails.",
    ),
]
Strictly = Annotated[
    bool,
    typer.Option("--require-interval", help="Compare every bound with the worse end of the interval."),
]

_OF_LISTS = {measure.name: measure for measure in LIST_METRICS}
# Metrics and measures of full distributions; some metrics are rates of two classes.
_OF_ROWS = (*METRICS, *MEASURES)
_TESTS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_FORM = re.compile(r"\s*(?P<name>.+?)(?:\.(?P<end>low|high))?\s*(?P<sign><=|>=|<|>)\s*(?P<bound>[^<>=]+?)\s*")


@dataclass(frozen=True)
class Bound:
    """One requirement.

    Attributes
    ----------
    text : str
        The bound as it was typed.
    name : str
        The name of a decision metric or of a rule, as on the card, or of a measure of calibration.
    end : str
        The number compared with the bound: "mean", or the "low" or "high" end of the interval.
    sign : str
        "<", "<=", ">" or ">=".
    bound : float
    rule : Rule | None
        None for decision metrics and measures of calibration.
    """

    text: str
    name: str
    end: str
    sign: str
    bound: float
    rule: Rule | None = None

    @property
    def on_calibration(self) -> bool:
        """Whether it is about a measure that needs all rows."""
        return self.rule is None and self.name in MEASURES

    def hold(self, card: Scorecard, calibration: CalibrationSummary | None = None) -> BoundCheck:
        """Whether a card meets it. A bound on an undefined value fails."""
        score: CardLine | Measure
        if self.on_calibration:
            assert calibration is not None
            score = calibration.measures[self.name]
            interval = score.interval
        else:
            score = self._line(card)
            interval = score.interval if score.guaranteed is None else score.guaranteed
        value = {"mean": score.mean, "low": interval[0], "high": interval[1]}[self.end]
        guaranteed = self.end != "mean" and interval is not score.interval
        return BoundCheck(self, value, is_met(self, value), "Clopper-Pearson" if guaranteed else "")

    def _line(self, card: Scorecard) -> CardLine:
        """The line of the card that it is about."""
        if self.rule is not None:
            return card.scores[self.name]
        if isinstance(card, ListCard):
            if self.name not in card.metrics:
                raise refusal(self.text, f"no list has the number of classes that {self.name} needs")
            return card.metrics[self.name]
        if METRICS[self.name].for_two and card.n_classes != 2:
            raise refusal(self.text, f"{self.name} is for two classes, and there are {card.n_classes:,}")
        return card.metric(self.name)


class Compared(Protocol):
    """A comparison that has the difference of two models."""

    def difference(self, a: str, b: str, /) -> Any: ...


@dataclass(frozen=True)
class DifferenceBound(Bound):
    """A requirement of the difference of two models.

    Attributes
    ----------
    models : tuple of two str
        The models: the mean loss, or grade, of the first minus that of the second.
    """

    models: tuple[str, str] = ("", "")

    def hold(self, comparison: Compared) -> BoundCheck:  # type: ignore[override]
        """Whether a comparison meets it, by its first rule. A bound on an undefined value fails."""
        gap = comparison.difference(*self.models)
        value = {"mean": gap.difference, "low": gap.interval[0], "high": gap.interval[1]}[self.end]
        higher = "; higher is better" if getattr(gap, "higher_is_better", False) else ""
        return BoundCheck(self, value, is_met(self, value), f"{gap.a} - {gap.b}{higher}")


def bounds_on_difference(texts: Sequence[str] | None, models: Sequence[str]) -> list[DifferenceBound]:
    """The bounds that texts state on the difference of the first two models."""
    bounds = []
    for text in texts or ():
        parts, bound = parts_of(text)
        if parts["name"] != "difference":
            example = Remedy("Type a bound such as 'difference.high<0.01'; `verax evaluate` has the others.")
            raise refusal(text, f"a comparison has no {quote(parts['name'])}", example)
        pair = (models[0], models[1])
        bounds.append(
            DifferenceBound(text, "difference", parts["end"] or "mean", parts["sign"], bound, None, pair)
        )
    return bounds


def is_met(bound: Bound, value: float) -> bool:
    """Whether a value meets a bound; an undefined one does not."""
    return not math.isnan(value) and bool(_TESTS[bound.sign](value, bound.bound))


@dataclass(frozen=True)
class BoundCheck:
    """A requirement with the value that was found, and which of several it is, where there are several."""

    bound: Bound
    value: float
    met: bool
    which: str = ""

    def __str__(self) -> str:
        what = self.bound.name if self.bound.end == "mean" else f"{self.bound.end} end of {self.bound.name}"
        what += f" ({self.which})" if self.which else ""
        result = "has no interval" if math.isnan(self.value) else f"is {self.value:.6g}"
        return f"{'met   ' if self.met else 'FAILED'}  {self.bound.text}: {what} {result}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "require": self.bound.text,
            "score": self.bound.name,
            "of": self.bound.end,
            "value": self.value,
            "sign": self.bound.sign,
            "bound": self.bound.bound,
            "met": self.met,
        }


def read_bounds(
    texts: Sequence[str] | None, *, strictly: bool, ordered: bool, lists: bool = False
) -> list[Bound]:
    """The bounds that texts state; impossible ones are refused before any work is done."""
    return [
        _read_of_lists(text, strictly) if lists else _read(text, strictly, ordered) for text in texts or ()
    ]


def _read_of_lists(text: str, strictly: bool) -> Bound:
    parts, bound = parts_of(text)
    name, rule = parts["name"], None
    if name in _OF_ROWS and name not in (*_OF_LISTS, *OF_LISTS):
        raise refusal(text, f"{name} needs full distributions, and the file holds lists")
    if name in OF_LISTS:
        return _read(text, strictly, ordered=False)
    if name not in _OF_LISTS:
        name, rule = _named(name, text, list(_OF_LISTS))
        rule = rule if isinstance(rule, Padded) or rule is None else padded(rule)
        name = name if rule is None else name_of(rule)
    orientation = LOWER if rule is not None else _OF_LISTS[name].orientation
    if orientation in (LOWER, HIGHER):
        check_direction(text, name, orientation == LOWER, parts)
    elif parts["end"] or strictly:
        raise refusal(text, f"neither end of the interval of {name} is the better one")
    end = ("high" if orientation == LOWER else "low") if strictly or parts["end"] else "mean"
    return Bound(text, name, end, parts["sign"], bound, rule)


def parts_of(text: str) -> tuple[re.Match[str], float]:
    """The parts of a bound, and its number."""
    parts = _FORM.fullmatch(text)
    if parts is None:
        raise refusal(text, "it is not a bound, such as 'rps<0.06' or 'accuracy>=0.8'")
    try:
        bound = float(parts["bound"])
    except ValueError:
        bound = math.nan
    if math.isnan(bound):
        raise refusal(text, f"{quote(parts['bound'])} is not a number")
    return parts, bound


def check_direction(text: str, name: str, lower: bool, parts: re.Match[str]) -> None:
    """Refuse a bound from the wrong side, or on the better end of an interval."""
    if lower != parts["sign"].startswith("<"):
        better = "lower" if lower else "higher"
        right = f"{parts['name']}{'<' if lower else '>'}{parts['bound']}"
        raise refusal(text, f"{better} is better for {name}, so a bound reads {quote(right)}")
    worse = "high" if lower else "low"
    if parts["end"] not in (None, worse):
        raise refusal(text, f"the {worse} end of the interval is the one to bound, {name}.{worse}")


def _read(text: str, strictly: bool, ordered: bool) -> Bound:
    parts, bound = parts_of(text)
    name, rule = _named(parts["name"], text)
    measure = MEASURES.get(name) if rule is None else None
    known = METRICS.get(name) if rule is None else rule
    if not ordered and (name == "c_index" or (known is not None and known.ordinal)):
        raise refusal(text, f"{name} is for ordered classes", passing(ordered=True))
    if measure is not None and name not in WITH_INTERVAL and (strictly or parts["end"]):
        raise refusal(text, f"no interval is known for {name}")
    if measure is not None and measure[0] not in (LOWER, HIGHER):
        # The best value is in between: a bound from either side makes sense.
        lower = parts["sign"].startswith("<")
    else:
        lower = _lower_is_better(name, rule)
    check_direction(text, name, lower, parts)
    end = ("high" if lower else "low") if strictly or parts["end"] else "mean"
    return Bound(text, name, end, parts["sign"], bound, rule)


def _lower_is_better(name: str, rule: Rule | None) -> bool:
    if rule is not None:
        return True
    if name in MEASURES:
        return MEASURES[name][0] == LOWER
    return not METRICS[name].higher_is_better


def _named(text: str, whole: str, measures: Sequence[str] = _OF_ROWS) -> tuple[str, Rule | None]:
    if text in _OF_ROWS:
        return text, None
    try:
        rule = parse(text)
    except VeraxError as error:
        if "(" in text:
            raise refusal(whole, str(error)) from None
        *near, known = suggestions(text, [*RULES, *measures])
        known = f"{known.removesuffix('.')}, and combinations such as 'penalized(brier)'."
        reason = f"there is no score called {quote(text)}"
        raise refusal(whole, reason, *map(Remedy, [*near, known])) from None
    return name_of(rule), rule


def refusal(text: str, reason: str, *remedies: Remedy) -> InputError:
    """The error about a bound that cannot be held."""
    return InputError(
        f"--require {quote(text)}: {reason}", argument="require", values=[text], remedies=remedies
    )


def check_on_sums(bound: Bound, card: Scorecard) -> None:
    """Refuse a bound on what saved sums do not tell."""
    if not bound.on_calibration and (bound.rule is None or bound.name in card.scores):
        return
    raise InputError(
        f"--require {bound.text!r}: the saved results do not include {bound.name}",
        argument="require",
        values=[bound.text],
        found=f"they have {', '.join([*card.scores, *card.metrics])}",
        remedies=[Remedy("Pass --rule to `verax evaluate` when saving.")] if bound.rule is not None else [],
    )
