"""Rules built from rules. Their properties follow from theorems about the inner rule, or are unknown."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from verax.common.checks import MOST_SETS, check_choice, check_n_classes, check_number
from verax.engines.lists import FINE, AnswerAlone
from verax.engines.stats import RowStats
from verax.errors import InputError, RuleError, show
from verax.inputs.arrays import Array
from verax.kernels.statistics import OF_SETS
from verax.scores.base import Rule
from verax.scores.properties import Holds, Properties
from verax.scores.rules import Brier, Log, Ties, ZeroOne

# What a wrong mode is, for each way to read ties.
_ZERO_ONE: dict[str, ZeroOne] = {ties: ZeroOne(ties) for ties in get_args(Ties)}


@dataclass(frozen=True, repr=False)
class Penalized(Rule):
    """A proper rule plus a constant times the zero-one loss, so that no wrong forecast beats a correct one.

    Created by `penalized`, which documents the parameters.

    Parameters
    ----------
    rule : Rule
        A proper rule.
    penalty : {"sup", "minimal"} or float, default "sup"
        Cost of a wrong mode.
    ties : {"fractional", "lowest", "lenient"}, default "fractional"
        Which class counts as the mode when several are most likely.

    Examples
    --------
    >>> import verax as vx
    >>> vx.pbs == vx.rules.Penalized(vx.brier)
    True
    """

    rule: Rule
    penalty: Literal["sup", "minimal"] | float = "sup"
    ties: Ties = "fractional"

    name = "penalized"

    def __post_init__(self) -> None:
        self._check_inner()
        if isinstance(self.penalty, str) and self.penalty in ("sup", "minimal"):
            self.constant(3)
        else:
            requirement = "must be 'sup', 'minimal' or a positive finite number"
            number = check_number("penalty", self.penalty, requirement, lambda penalty: penalty > 0)
            object.__setattr__(self, "penalty", number)
        check_choice("ties", self.ties, get_args(Ties))

    def _check_inner(self) -> None:
        inner = self.rule
        _check_rule(inner)
        if inner.properties.proper != Holds.ALWAYS:
            known = {Holds.NEVER: "not proper", Holds.UNKNOWN: "not known to be proper"}
            extent = known.get(inner.properties.proper, f"proper for {inner.properties.proper}")
            raise RuleError(
                f"penalized() needs a proper rule and {inner} is {extent}: "
                "with a penalty it would still reward dishonest forecasts."
            )
        if isinstance(inner, (Penalized, ZeroOne)):
            raise RuleError(f"penalized() of {inner} adds nothing: the zero-one loss is in it already.")

    @property
    def title(self) -> str:  # type: ignore[override]
        inner = self.rule.title or repr(self.rule)
        return f"Penalized {_within(self.rule, inner)}"

    @property
    def summary(self) -> str:  # type: ignore[override]
        return f"{self.rule} plus a constant for a wrong mode"

    @property
    def description(self) -> str:  # type: ignore[override]
        constant = {
            "sup": "the largest loss that a forecast with the right mode can have",
            "minimal": "the smallest that separates right modes from wrong ones",
        }.get(str(self.penalty), str(self.penalty))
        tied = {"fractional": "they share the penalty", "lowest": "the first of them is the mode"}.get(
            self.ties, "an outcome among them counts as correct, which is not proper"
        )
        return (
            f"The loss by {self.rule} plus a constant times the zero-one loss Z. The constant is {constant}. "
            f"Where classes tie for most likely, {tied}."
        )

    @property
    def latex(self) -> str:  # type: ignore[override]
        return rf"{self.rule.latex or 'S(p, y)'} + \lambda_K \, Z(p, y)"

    use = (
        "Selecting a checkpoint or a model where the decision by the most likely class counts first and the "
        "probabilities second. It stays proper, so honesty still pays."
    )
    avoid = (
        "Concluding that the model with the smaller mean decides better: superiority holds for single rows, "
        "not for means. Training: the penalty has no gradient. Measuring calibration: it jumps at ties."
    )

    @property
    def reference(self) -> str:  # type: ignore[override]
        return "doi:10.1016/j.ijar.2025.109421"

    @property
    def ordinal(self) -> bool:  # type: ignore[override]
        return self.rule.ordinal

    @property
    def _zero_one(self) -> ZeroOne:
        return _ZERO_ONE[self.ties]

    @property
    def needs(self) -> frozenset[str]:
        return self.rule.needs | self._zero_one.needs

    def constant(self, n_classes: int) -> float:
        """Return the cost of a wrong mode.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        float
            The constant.
        """
        n_classes = check_n_classes(n_classes, most=MOST_SETS)
        if not isinstance(self.penalty, str):
            return float(self.penalty)
        sup = self.rule.sup_correct(n_classes)
        return sup if self.penalty == "sup" else sup - self.rule.inf_wrong(n_classes)

    def formula(self, stats: RowStats) -> Array:
        return stats.loss(self.rule) + self.constant(stats.n_classes) * stats.loss(self._zero_one)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        low, high = self.rule.bounds(n_classes)
        return low, high + self.constant(n_classes)

    def sup_correct(self, n_classes: int) -> float:
        return self.rule.sup_correct(n_classes)

    def inf_wrong(self, n_classes: int) -> float:
        return self.rule.inf_wrong(n_classes) + self.constant(n_classes)

    @property
    def properties(self) -> Properties:
        inner = self.rule.properties
        symmetric = Holds.NEVER if self.ties == "lowest" else inner.symmetric
        lenient = self.ties == "lenient"
        return Properties(
            # Next to a tie a little dishonesty escapes the penalty.
            proper=Holds.NEVER if lenient else inner.proper,
            strictly_proper=Holds.NEVER if lenient else inner.strictly_proper,
            local=Holds.BINARY,
            symmetric=symmetric,
            # For three classes and more, moving mass away from a wrong mode can make the outcome the mode.
            distance_sensitive=inner.distance_sensitive & Holds.BINARY,
            superior=self._superior(),
            bounded=inner.bounded,
        )

    def _superior(self) -> Holds:
        if isinstance(self.penalty, str):
            return Holds.ALWAYS
        try:
            return Holds(_largest(self._separates))
        except RuleError:
            return Holds.UNKNOWN

    def _separates(self, n_classes: int) -> bool:
        # Neither limit is attained, so equality is enough; 1e-12 is for rounding alone.
        return self.rule.sup_correct(n_classes) <= self.inf_wrong(n_classes) + 1e-12


@dataclass(frozen=True, repr=False)
class Padded(Rule):
    """A symmetric proper rule for top lists, with a penalty for invalid ones.

    Created by `padded`. `properties` are those on full distributions: these are lists of all classes, never
    invalid, and there the rule is the inner rule. The zero-one loss has no penalty: whether the first class
    of a list is right does not depend on its confidence.

    Parameters
    ----------
    rule : Rule
        A symmetric proper rule.
    invalid_penalty : float, default 1.0
        Penalty for an invalid list, added to the loss of its largest valid sublist; inf rules invalid lists
        out. Ignored for the zero-one loss.

    Examples
    --------
    >>> import verax as vx
    >>> vx.rules.Padded(vx.brier) == vx.padded(vx.brier)
    True
    """

    rule: Rule
    invalid_penalty: float = FINE

    name = "padded"

    def __post_init__(self) -> None:
        self._check_inner()
        # An infinite penalty rules invalid lists out (Resin, section 3).
        if not (isinstance(self.invalid_penalty, float) and self.invalid_penalty == math.inf):
            requirement = "must be a number that is not negative, or inf"
            number = check_number(
                "invalid_penalty", self.invalid_penalty, requirement, lambda fine: fine >= 0
            )
            object.__setattr__(self, "invalid_penalty", number)

    def _check_inner(self) -> None:
        inner = self.rule
        _check_rule(inner)
        if isinstance(inner, Padded):
            raise RuleError(f"padded() of {inner} adds nothing: it reads top lists already.")
        # A floor, which replaces infinite losses, is the caller's choice for lists as for distributions.
        floored = isinstance(inner, Log) and inner.clip is not None
        if inner.properties.proper != Holds.ALWAYS and not floored:
            raise RuleError(
                f"padded() needs a proper rule and {inner} is not, or not for every number of classes: "
                "a list that is not true could have the smallest expected loss."
            )
        if inner.properties.symmetric != Holds.ALWAYS:
            raise RuleError(f"padded() needs a symmetric rule and {inner} is not: {_why_asymmetric(inner)}")

    @property
    def title(self) -> str:  # type: ignore[override]
        inner = self.rule.title or repr(self.rule)
        return f"Padded {_within(self.rule, inner)}"

    @property
    def summary(self) -> str:  # type: ignore[override]
        return self.rule.summary

    @property
    def description(self) -> str:  # type: ignore[override]
        return (
            f"The loss by {self.rule} of a top list, read as the distribution that divides the probability "
            "left over evenly among the classes that are not listed. A list that no distribution has costs "
            "a constant more. Hard predictions, lists of any length and full distributions can be compared."
        )

    @property
    def latex(self) -> str:  # type: ignore[override]
        return rf"{self.rule.latex or 'S(p, y)'} + c \, \mathbf{{1}}\{{\text{{list invalid}}\}}"

    use = (
        "Very many classes, of which a model names only the most likely ones: language models, species, "
        "diagnoses. A true list has the lowest expected loss of all lists of its length."
    )
    avoid = (
        "Ordered classes: a list does not say where its unlisted probability lies. Comparing lists with a "
        "count of hits: top-k accuracy ignores the confidences."
    )

    @property
    def reference(self) -> str:  # type: ignore[override]
        return "https://jmlr.org/papers/v24/23-0106.html"

    @property
    def fine(self) -> float:
        """The penalty for an invalid list: zero if only the answer counts."""
        return 0.0 if self.rule.answer_alone else self.invalid_penalty

    @property
    def needs(self) -> frozenset[str]:
        if self.rule.answer_alone:
            return AnswerAlone(self.rule).needs
        return self.rule.needs | {"invalid"}

    def formula(self, stats: RowStats) -> Array:
        if self.rule.answer_alone:
            return stats.loss(AnswerAlone(self.rule))
        if self.fine == math.inf:
            # The product of infinity and zero would be undefined: this is 0 / 1, or 1 / 0.
            return stats.loss(self.rule) + stats.invalid / (1 - stats.invalid)
        return stats.loss(self.rule) + self.fine * stats.invalid

    def bounds(self, n_classes: int) -> tuple[float, float]:
        low, high = self.rule.bounds(n_classes)
        return low, high + self.fine

    @property
    def properties(self) -> Properties:
        return self.rule.properties

    @property
    def consistent(self) -> Holds:
        """K for which no list of k classes has a smaller expected loss than a true one (Resin, Thm 10)."""
        return self.rule.properties.proper

    @property
    def strictly_consistent(self) -> Holds:
        """The K for which every other list of k classes has a larger one; none without a penalty."""
        return self.rule.properties.strictly_proper if self.fine > 0 else Holds.NEVER


def _within(rule: Rule, title: str) -> str:
    """The title of a rule inside another; the name of a person keeps its capital."""
    return title if isinstance(rule, Brier) else title[:1].lower() + title[1:]


def _check_rule(inner: object) -> None:
    if not isinstance(inner, Rule):
        raise InputError(
            f"must be a rule, such as brier or rps, not {show(inner)}",
            argument="rule",
            kind="type",
            values=[inner],
        )
    if inner.needs & OF_SETS:
        raise RuleError(f"{inner} scores sets, and cannot be part of a rule of probabilities.")


def _why_asymmetric(rule: Rule) -> str:
    if rule.ordinal:
        return (
            "a list does not say where among the ordered classes its unlisted probability lies. "
            "With m=3 and truth (0, 1/2, 1/2) the true top-1 list would expect an RPS of 5/32, and the "
            "overstated list ({3}, 2/3) only 11/72."
        )
    if "hit_lowest" in rule.needs:
        return (
            "ties that go to the lowest index judge a list by the numbering of its unlisted classes. "
            "Use ties='fractional'."
        )
    return "the loss of a list would depend on the numbering of its unlisted classes."


def padded(rule: Rule, invalid_penalty: float = FINE) -> Padded:
    """Adapt a symmetric proper rule to top lists: strictly consistent for the k most likely classes.

    A list is scored as the distribution that divides the remaining probability evenly among the unlisted
    classes. No list of k classes has a smaller expected loss than the true one, and a longer true list
    never has a larger one, so hard predictions, lists of any length and full distributions can be
    compared by the same number. Calling the rule itself on lists does this with the default penalty of 1.

    Parameters
    ----------
    rule : Rule
        A symmetric proper rule, such as brier, log_score, spherical or pbs. Ordinal rules and
        lowest-index tie-breaking are refused.
    invalid_penalty : float, default 1.0
        Penalty for an invalid list, added to the loss of its largest valid sublist. Any positive number
        keeps the rule strictly consistent; with 0, invalid lists can do as well as true ones, and with inf
        they have an infinite loss. The zero-one loss has no penalty: it judges the first class of a list,
        whatever its confidence.

    Returns
    -------
    Padded
        A rule for top lists.

    References
    ----------
    Resin (2023), https://jmlr.org/papers/v24/23-0106.html

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.2}, {0: 0.5, 3: 0.1}], n_classes=4)
    >>> vx.padded(vx.brier).samples([0, 0], lists).round(4).tolist()
    [0.335, 1.3333]
    """
    return Padded(rule, invalid_penalty)


def _largest(holds: Callable[[int], bool], limit: int = 2**24) -> float:
    """The largest K for which `holds` is true, given that it stays false once it is; inf past `limit`."""
    if holds(limit):
        return math.inf
    return bisect.bisect_left(range(2, limit), True, key=lambda k: not holds(k)) + 1


def penalized(
    rule: Rule,
    penalty: Literal["sup", "minimal"] | float = "sup",
    ties: Ties = "fractional",
) -> Penalized:
    """Add a constant times the zero-one loss to a proper rule: superior, and still proper.

    Every forecast whose unique mode is the outcome then scores below every forecast whose unique
    mode is not. This holds row by row, not for means: a model with fewer correct modes can still
    have the smaller mean.

    Parameters
    ----------
    rule : Rule
        A proper rule. Squared-absolute and absolute RPS are improper and refused.
    penalty : {"sup", "minimal"} or float, default "sup"
        Cost of a wrong mode: "sup" is the supremum of the loss over correct forecasts (Ahmadian et al.),
        "minimal" the smallest constant that makes the rule superior; or a number.
    ties : {"fractional", "lowest", "lenient"}, default "fractional"
        Which class counts as the mode when several are most likely: "fractional" gives each an equal
        share, "lowest" takes the lowest index. "lenient" counts every tie with the outcome as correct, as
        Algorithm 1 of Ahmadian et al. and their package do; the rule is then not proper.

    Returns
    -------
    Penalized
        The penalized rule.

    References
    ----------
    Ahmadian, Ghatee and Wahlström (2025), doi:10.1016/j.ijar.2025.109421

    Examples
    --------
    >>> import verax as vx
    >>> vx.penalized(vx.brier) == vx.pbs
    True
    >>> round(vx.pbs([1], [[0.33, 0.34, 0.33]]), 4), round(vx.pbs([1], [[0.51, 0.49, 0.0]]), 4)
    (0.6534, 1.1869)
    """
    return Penalized(rule, penalty, ties)
