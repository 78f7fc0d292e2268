"""The lines of a card, and how they are shown."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from verax.analyses.measures import MEASURES
from verax.common.faces import Brief, Hidden, Key, Maybe, Record
from verax.common.packing import UnreadableError
from verax.common.stored import inside, mapping, text
from verax.common.strictjson import parse
from verax.errors import InputError
from verax.inference.findings import NOTHING, Verdict
from verax.inference.intervals import Interval, with_ends
from verax.scores.base import Rule

# The verdict among stored measures.
_VERDICT = "verdict"


@dataclass(frozen=True)
class CardLine(Record):
    """One line of a card.

    Attributes
    ----------
    name : str
        The name of the rule or metric.
    mean : float
        The weighted mean loss, infinite if that of any row is; or the value of a metric of decisions.
    interval : Interval
        The confidence interval of `mean`. Where there is none, its ends are NaN and its caution says why.
    bounds : tuple of two floats
        The smallest and the largest value that is possible.
    orientation : str
        Which way is better, in words.
    summary : str
        Its meaning, in a few words.
    proper : str
        Its propriety; empty for metrics of decisions.
    std : float
        The weighted standard deviation of the loss over the rows; NaN for metrics of decisions.
    finite_mean : float
        The mean over the rows whose loss is finite.
    infinite_weight : float
        The total weight of the rows whose loss is infinite.
    rule : Rule or None
        The rule; None for metrics of decisions.
    guaranteed : Interval or None
        Of a share, the interval that gates compare with a bound: neither end is beyond the share more often
        than it says. None for others.
    """

    name: Hidden[str]
    mean: float
    interval: Brief[Interval]
    bounds: Annotated[tuple[float, float], Key("range")]
    orientation: str
    summary: str
    proper: str = ""
    std: float = math.nan
    finite_mean: Hidden[float] = math.nan
    infinite_weight: Hidden[float] = 0.0
    rule: Hidden[Rule | None] = None
    guaranteed: Hidden[Interval | None] = None

    _facts = ("_caution", "_rule", "_finite_mean", "_infinite_weight", "_reference")

    @property
    def _caution(self) -> Maybe[str | None]:
        return self.interval.caution or None

    @property
    def _rule(self) -> Maybe[str | None]:
        return None if self.rule is None else repr(self.rule)

    @property
    def _finite_mean(self) -> Maybe[float | None]:
        return None if self.rule is None else self.finite_mean

    @property
    def _infinite_weight(self) -> Maybe[float | None]:
        return None if self.rule is None else self.infinite_weight

    @property
    def _reference(self) -> Maybe[str | None]:
        return None if self.rule is None else self.rule.reference


class CardMeasures(Protocol):
    """A source of the measures of a card that need all rows."""

    @property
    def lines(self) -> dict[str, CardLine]: ...
    @property
    def verdict(self) -> Verdict: ...
    def line(self, name: str) -> CardLine: ...


@dataclass(frozen=True)
class KnownMeasures:
    """Measures and the verdict, which were computed where the rows were."""

    lines: dict[str, CardLine]
    verdict: Verdict = NOTHING

    def line(self, name: str) -> CardLine:
        """One measure; only those that were kept are known."""
        if name not in self.lines:
            raise InputError(
                f"must be a card that knows its rows for {name}",
                argument="card",
                found=f"without rows it knows {', '.join(self.lines)}",
            )
        return self.lines[name]

    def to_values(self) -> dict[str, Any]:
        """The values and intervals; the rest follows from the names."""
        values: dict[str, Any] = {}
        for name, line in self.lines.items():
            interval = line.interval
            numbers = float(line.mean), *interval, interval.confidence
            values[name] = (*numbers, interval.method, interval.caution)
        if self.verdict.findings:
            values[_VERDICT] = json.dumps(self.verdict.to_dict())
        return values

    @classmethod
    def from_values(cls, values: Any) -> KnownMeasures:
        """The measures that `to_values` wrote and this version knows."""
        lines = {}
        stored = dict(mapping(values))
        judged = NOTHING
        if _VERDICT in stored:
            with inside(_VERDICT):
                judged = Verdict.from_dict(parse(text(stored.pop(_VERDICT))))
        for name, stored_line in stored.items():
            *numbers, method, caution = stored_line
            if len(numbers) != 4 or any(type(number) is not float for number in numbers):
                raise UnreadableError("should be four numbers and two texts", str(name))
            mean, low, high, confidence = numbers
            interval = Interval(low, high, method=text(method), confidence=confidence, caution=text(caution))
            if name in MEASURES:
                lines[name] = CardLine(name, mean, interval, (-math.inf, math.inf), *MEASURES[name])
        return cls(lines, judged)


def range_of(score: CardLine) -> str:
    """The smallest and the largest value of a line, in words."""
    return f"{score.bounds[0]:g} to {score.bounds[1]:.4g}"


def line_numbers(name: str, score: CardLine) -> dict[str, float]:
    """The numbers of a line under names of their own; where some losses are infinite, also those without."""
    numbers = with_ends(name, score.mean, score.interval)
    if score.infinite_weight > 0:
        numbers |= {
            f"{name}_finite_mean": score.finite_mean,
            f"{name}_infinite_weight": score.infinite_weight,
        }
    return numbers
