"""The methods and what was tried: what each gains on rows that its fit has not seen.

`recalibrate`, its command, the report and the demo take the methods that are tried, the folds and the
number of rows from here, so that they choose the same method and measure the same gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from verax._settings import settings
from verax.common.faces import Record
from verax.common.texts import percent
from verax.errors import InputError, passing
from verax.inference.intervals import Interval
from verax.scores.naming import METHODS_ELSEWHERE

# The names of the methods in sentences, the simplest first.
TITLES = {
    "none": "doing nothing",
    "temperature": "temperature scaling",
    "prior": "a correction of class frequencies",
    "bcts": "temperature scaling with class offsets",
    "quadratic": "quadratic scaling",
    "beta": "beta calibration",
    "ordered": "temperature scaling for ordered classes",
    "svector": "regularised vector scaling",
    "vector": "vector scaling",
    "spline": "spline calibration",
    "smatrix": "regularised matrix scaling",
    "dirichlet": "Dirichlet calibration",
    "isotonic": "isotonic regression",
}
# Those of top lists, which have no offset for each class.
TITLES_OF_LISTS = {
    "none": TITLES["none"],
    "temperature": TITLES["temperature"],
    "rest": "a factor for unlisted classes",
    "temperature_rest": "temperature scaling with a factor for unlisted classes",
}
BEST, BLEND = "best", "blend"
# The level of the test of calibration, by which methods are chosen.
LEVEL = 0.05
# The effect of each, in plain words, after its name.
MEANINGS = {
    "temperature": "makes all probabilities more or less extreme by one factor",
    "prior": "multiplies the probabilities of each class by a factor",
    "bcts": "makes all probabilities more or less extreme and multiplies those of each class by a factor",
    "quadratic": "moves the probabilities along a smooth curve",
    "beta": "moves the probabilities along a smooth curve",
    "ordered": "moves the probabilities of all thresholds along a smooth curve",
    "svector": "gives each class a factor and an offset of its own",
    "vector": "gives each class a factor and an offset of its own",
    "spline": "moves the probabilities along a smooth curve",
    "smatrix": "corrects each class by the probabilities of all classes",
    "dirichlet": "corrects each class by the probabilities of all classes",
    "isotonic": "replaces the probabilities by the frequencies of neighbouring rows, in steps",
    "rest": "multiplies the probability of unlisted classes by a factor",
    "temperature_rest": "makes listed probabilities more or less extreme and multiplies those of others",
}
# All of them, for what is said of any method.
METHOD_TITLES = TITLES | TITLES_OF_LISTS | {BLEND: "the weighted average of all methods"}
_UNSEEN = "no recalibrated row is wrong"


def methods_in_words() -> tuple[str, list[tuple[str, str]]]:
    """The heading of a list of all methods of rows, and their names with what they are."""
    pairs = []
    for name, said in TITLES.items():
        others = [other for other, known in METHODS_ELSEWHERE.items() if known == name]
        pairs.append((name, f"{said}; elsewhere {', '.join(others)}" if others else said))
    return "Methods of recalibration, for --method of `verax recalibrate`", pairs


@dataclass(frozen=True)
class Gain(Record):
    """The part of the mean loss that a method takes off rows that its fit has not seen.

    Attributes
    ----------
    value : float
        Mean loss before minus mean loss after.
    interval : Interval
        Its interval, with at least 1.25 times the standard error of the rows: the fit to all rows differs
        from those of the folds.
    share : float
        The gain as a share of the mean loss before.
    share_interval : Interval
        Its interval, which holds zero exactly if the other does.
    """

    value: float
    interval: Interval
    share: float
    share_interval: Interval

    def __float__(self) -> float:
        return self.value

    @property
    def unseen_errors(self) -> bool:
        """Whether the interval holds zero because no row has shown what an error costs."""
        return not self.interval.low > 0 and _UNSEEN in self.interval.caution

    def without_errors(self, n_units: int, most: float, before: float, cost: float | None) -> Gain:
        """The same, where no held-out row has shown what a wrong most likely class costs.

        If n rows show no error, up to a share u of new rows may, with (1 - u)^n the level of the bound. The
        gain is then as low as that of the other rows minus u times the cost.

        Parameters
        ----------
        n_units : int
            The number of rows, or of groups.
        most : float
            The share u.
        before : float
            The mean loss before.
        cost : float or None
            The loss beyond the loss before where the most likely class is wrong; None if rows show it.

        Returns
        -------
        Gain
            The same gain, whose intervals allow for errors that were not seen.
        """
        if cost is None or not cost > 0 or not self.interval.defined:
            return self
        low = (1 - most) * self.value - most * cost
        if low >= self.interval.low:
            return self
        why = f"{_UNSEEN}, so that {n_units:,} rows or groups show no cost of an error"
        return replace(
            self,
            interval=self.interval.holding(low).doubted(why),
            share_interval=self.share_interval.holding(low / before).doubted(why),
        )

    def agreeing(self, before: float) -> Gain:
        """The same, where its intervals would disagree about zero: the one that holds zero decides.

        The interval of a share is that of a ratio of means, so one may hold zero where the other does not.

        Parameters
        ----------
        before : float
            The mean loss before.

        Returns
        -------
        Gain
            The same gain, with intervals that agree.
        """
        of_loss, of_share = self.interval, self.share_interval
        if not of_loss.defined or not of_share.defined:
            return self
        holds = of_loss.low <= 0 <= of_loss.high
        if holds == (of_share.low <= 0 <= of_share.high):
            return self
        if holds:
            return replace(self, share_interval=of_loss.scaled(1 / before))
        return replace(self, interval=of_share.scaled(before))

    def __str__(self) -> str:
        if math.isnan(self.share):
            return f"{self.value:z.6f}"
        ends = self.share_interval
        level = f"{100 * ends.confidence:g}% CI"
        spread = f" ({level} {percent(ends.low, 1)} to {percent(ends.high, 1)})" if ends.defined else ""
        return f"{percent(self.share, 1)}{spread}"


@dataclass(frozen=True)
class Trial(Record):
    """One method: its mean loss on rows that its fit has not seen.

    Attributes
    ----------
    method : str
        The name of the method.
    loss : float
        The mean loss.
    gain : Gain
        Its gain on doing nothing.
    detail : str
        The fit to all rows, in a few words.
    """

    method: str
    loss: float
    gain: Gain
    detail: str = ""


def no_gain(confidence: float) -> Gain:
    """The gain of doing nothing."""
    zero = Interval(0.0, 0.0, method="exact", confidence=confidence)
    return Gain(0.0, zero, 0.0, zero)


FOLDS = 5
# Methods are tried on this number of probabilities at most, unless that leaves fewer rows than the second.
_PROBABILITIES, _ENOUGH = 100_000, 2_000
# Top lists that methods are tried on.
LISTS = 10_000
# The choices of "best", by the kind of classes. Quadratic scaling does what beta calibration does, and
# structured scaling what vector scaling and Dirichlet calibration do, with less noise.
_MENUS = {
    "two": {"none", "temperature", "prior", "bcts", "quadratic", "spline", "isotonic"},
    "several": {"none", "temperature", "prior", "bcts", "svector", "smatrix", "isotonic"},
    "ordered": {"none", "temperature", "prior", "bcts", "ordered", "svector", "smatrix", "isotonic"},
    "many": {"none", "temperature", "prior", "bcts", "svector", "isotonic"},
}
# Beyond this number of classes, a matrix has more numbers than most data can fit.
_MANY_CLASSES = 20
# Methods that are for two classes only.
_TWO_CLASSES = {"quadratic", "beta", "spline"}


def rows_tried(n_classes: int) -> int:
    """The largest number of rows that the methods are tried on.

    >>> rows_tried(2), rows_tried(10), rows_tried(100)
    (20000, 10000, 2000)
    """
    return min(settings.recalibrated_rows, max(_PROBABILITIES // n_classes, _ENOUGH))


def methods_of(asked: list[str], n_classes: int, *, ordered: bool) -> list[str]:
    """The methods that are tried, doing nothing first; those asked for by name must fit the classes."""
    two = n_classes == 2
    if not two:
        for name in _TWO_CLASSES & set(asked):
            raise InputError(
                f"{name} is for two classes",
                argument="method",
                found=f"there are {n_classes}",
                values=[name],
                remedies=[passing("for more classes", method="smatrix")],
            )
    if "ordered" in asked and (two or not ordered):
        raise InputError(
            "ordered is for three or more classes that have an order",
            argument="method",
            found="there are 2" if two else "these classes have none",
            values=["ordered"],
            remedies=[
                passing("for two classes", method="spline") if two else passing("if they do", ordered=True)
            ],
        )
    if asked not in ([BEST], [BLEND]):
        return asked if len(asked) == 1 else [name for name in TITLES if name in ("none", *asked)]
    kind = "two" if two else "many" if n_classes > _MANY_CLASSES else "ordered" if ordered else "several"
    return [name for name in TITLES if name in _MENUS[kind]]


def methods_of_lists(asked: list[str], *, complete: bool) -> list[str]:
    """The methods that are tried on top lists; complete ones leave nothing to unlisted classes."""
    if asked != [BEST] and len(asked) == 1:
        return asked
    tried = [name for name in TITLES_OF_LISTS if not complete or name in ("none", "temperature")]
    return [name for name in tried if asked == [BEST] or name in ("none", *asked)]
