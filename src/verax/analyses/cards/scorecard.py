"""All the scores that fit a problem, from one pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypedDict

import numpy as np

from verax.analyses.cards.container import CARD, write_summaries
from verax.analyses.cards.intervals import NO_ROWS, CardIntervals
from verax.analyses.cards.lines import (
    CardLine,
    CardMeasures,
    KnownMeasures,
    line_numbers,
    range_of,
)
from verax.analyses.cards.rates import SHOWN, rate_lines
from verax.analyses.measures import MEASURES
from verax.common.caching import cached_property
from verax.common.faces import Hidden, Key, Mark, Maybe
from verax.common.packing import UnreadableError, dump, load, refusing
from verax.common.specs import Label, Several
from verax.common.stored import inside, truth
from verax.common.summaries import register
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.engines.counts import CONFUSION_UP_TO, Counts
from verax.engines.tally import RuleSums
from verax.errors import InputError, ParseError, Remedy, VeraxError, join
from verax.inference.findings import NOTHING, Finding, Verdict
from verax.inference.intervals import Resampled, Resampling, few_groups, t_quantile, with_ends
from verax.inputs.arrays import Ints
from verax.inputs.groups import GroupCount, check_several, counts_by_kind, in_words
from verax.inputs.skipping import MaySkip, Skipped
from verax.scores.base import Rule
from verax.scores.metrics import (
    HIGHER,
    LOWER,
    METRICS,
    DecisionMetric,
    find_metric,
)
from verax.scores.naming import suggestions
from verax.scores.registry import headline_rule, name_of, parse
from verax.scores.storing import metric_named, metric_values, tally_of, tally_values

# Of more probabilities, measures that need all rows are computed where they are asked for.
_KNOWN_UP_TO = 2**18
# Lines of long cards that a terminal shows after the headline score.
_LEADING = ("brier", "log_score", "accuracy", "sensitivity", "specificity", "qwk", "coverage", "invalid")


def check_whole(card: Scorecard, source: str = "") -> None:
    """Refuse what a part of all rows may be, but not all of them: no rows, no weight, a single group."""
    if not card.n_rows:
        raise InputError("must have at least one row", argument="p", kind="length", source=source)
    if card.weight == 0:
        raise InputError("must not all be zero", argument="weights", source=source)
    if card.n_groups is not None:
        check_several(card.n_groups, source)


class ZeroProbability(TypedDict):
    """Outcomes that had been given probability zero."""

    count: int
    rows: list[int]


@register("card")
@dataclass(frozen=True, repr=False, eq=False)
class Scorecard(Tabled, MaySkip):
    """The scores of one set of forecasts. It holds sums only, so cards of parts can be merged.

    `card["brier"]` is a mean; `scores` has the details of the rules, `metrics` those of the
    decisions, which take the most likely class, the lowest index where several are. The card of two classes
    has sensitivity, specificity, predictive values and F1 of the second class.

    `card["skill"]`, `card["ece"]`, `card["auc"]` and the other `measures` need all rows. A card that
    `evaluate` made refers to its rows and computes them when they are asked for. Saved cards keep them;
    merged ones, and those of more than two million probabilities in memory, do not have them.

    Attributes
    ----------
    tally : RuleSums
        The sums of the rows.
    classes : tuple or None
        Names of the classes, in order; None for positions.
    ordered : bool
        Whether the classes have an order.
    count_metrics : tuple of DecisionMetric
        The metrics of decisions on the card.
    resampling : Resampling
        How intervals are computed.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate([0, 1], [[0.75, 0.25], [0.5, 0.5]])
    >>> card["brier"], card.n_rows
    (0.3125, 2)
    >>> (card + card).n_rows
    4
    """

    kind: ClassVar[str]
    # Measures are kept beside the fields.
    _parts = (CardLine,)

    tally: Hidden[RuleSums]
    classes: tuple[Hashable, ...] | None = None
    ordered: bool = False
    count_metrics: Hidden[tuple[DecisionMetric, ...]] = ()
    resampling: Hidden[Resampling] = field(default_factory=Resampling)

    _facts = (
        *("_verax", "n_rows", "weight", "n_groups", "n_classes", "_plan", "scores", "metrics", "_known"),
        *("_claims", "_findings", "class_counts", "confusion", "_zero_probability"),
    )

    @property
    def _plan(self) -> Annotated[Resampled, Key("intervals")]:
        return self.resampling.by(self._method())

    @property
    def _known(self) -> Annotated[dict[str, CardLine] | None, Mark.MAYBE, Key("measures")]:
        return self.known_measures or None

    @property
    def _claims(self) -> Annotated[str | None, Mark.MAYBE, Key("verdict")]:
        return str(self.verdict) if self.known_measures else None

    @property
    def _findings(self) -> Maybe[list[Finding] | None]:
        return list(self.verdict.findings) if self.known_measures else None

    @property
    def _zero_probability(self) -> ZeroProbability:
        return {"count": self.n_zero_probability, "rows": list(self.zero_probability_rows)}

    def merge(self, other: Scorecard) -> Self:
        """The card of the rows of both, in whatever order cards are merged.

        Rows are numbered within each part, so the merged card counts the outcomes that were given
        probability zero but does not say in which rows; parts of a file know their place in it. A part
        without rows may lack the names of the classes.

        Parameters
        ----------
        other : Scorecard
            The card of other rows, with the same classes, rules and options.

        Returns
        -------
        Scorecard
            A new card.
        """
        self._check_alike(other)
        named = self if self.n_rows or not other.n_rows else other
        merged = replace(self, tally=self.tally.merge(other.tally), classes=named.classes)
        if self.skipped is None and other.skipped is None:
            return merged
        parts = [Skipped(card.n_rows) if card.skipped is None else card.skipped for card in (self, other)]
        skipped = reduce(add, parts)
        return merged.with_skipped(skipped if merged.tally.spans is not None else replace(skipped, rows=()))

    def _check_alike(self, other: Scorecard) -> None:
        """Refuse a card that this one does not merge with."""
        if type(other) is not type(self):
            raise VeraxError(f"A {self.kind} merges with another {self.kind}, not with a {_kind(other)}.")
        if self.ordered != other.ordered or (self.n_rows and other.n_rows and self.classes != other.classes):
            raise VeraxError("Cards of different classes, or with and without an order, cannot be merged.")
        if self.resampling != other.resampling:
            raise VeraxError(
                "Cards whose intervals are computed in different ways cannot be merged: "
                f"{self.resampling.difference(other.resampling)}."
            )
        if self._metric_values() != other._metric_values():
            raise VeraxError("Cards with different metrics of decisions or different costs cannot be merged.")

    def __add__(self, other: Scorecard) -> Self:
        return self.merge(other) if isinstance(other, Scorecard) else NotImplemented

    def __radd__(self, other: object) -> Self:
        # `sum` begins with 0.
        return self if other == 0 else NotImplemented

    def to_bytes(self) -> bytes:
        """Bytes that `from_bytes` reads, without pickle: the sums, not what is computed from them."""
        return dump(self.kind, self._values())

    @classmethod
    def from_bytes(cls, data: bytes, sizes: Mapping[str, int] | None = None) -> Self:
        """The card that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        sizes : mapping of str to int, optional
            Sizes that are known.

        Returns
        -------
        Scorecard
            The card.
        """
        del sizes  # a card knows its own
        values = load(data, cls.kind)
        with refusing("is missing or of another type"):
            skipped = values.pop("skipped")
            card = cls(**cls._fields(values))
            if "measures" in values:
                with inside("measures"):
                    known = KnownMeasures.from_values(values["measures"])
                # Not fields, so bypass the frozen check.
                object.__setattr__(card, "known", tuple(known.lines.values()))
                object.__setattr__(card, "judged", known.verdict)
            return card if skipped is None else card.with_skipped(Skipped.from_values(skipped))

    def save(self, path: str | Path) -> None:
        """Write the card to a file that `load` and `verax merge` read. The sums are kept, no rows.

        The measures in `to_dict` are kept as well. A merged card has none: they do not follow from the sums.

        Parameters
        ----------
        path : str or path
            The file; `.verax` is the usual ending.
        """
        known = self.known_measures
        measures = {"measures": KnownMeasures(known, self.verdict).to_values()} if known else {}
        write_summaries(path, {CARD: dump(self.kind, {**self._values(), **measures})})

    def _values(self) -> dict[str, Any]:
        """The values to store."""
        return {
            "tally": tally_values(self.tally),
            "classes": self.classes,
            "ordered": self.ordered,
            "metrics": self._metric_values(),
            "resampling": asdict(self.resampling),
            "skipped": None if self.skipped is None else self.skipped.to_values(),
        }

    @classmethod
    def _fields(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The fields of a card from what was stored."""
        with inside("tally"):
            tally = tally_of(values["tally"])
        classes = values["classes"]
        if classes is not None:
            with inside("classes"):
                classes = Several(Label()).read(classes, {})
        if tally.counts is None or (classes is not None and len(set(classes)) != tally.n_classes):
            raise UnreadableError("does not belong to the sums", "classes")
        with inside("ordered"):
            ordered = truth(values["ordered"])
        return {
            "tally": tally,
            "classes": classes,
            "ordered": ordered,
            "count_metrics": tuple(map(metric_named, values["metrics"])),
            "resampling": Resampling.checked(**values["resampling"]),
        }

    def _metric_values(self) -> list[dict[str, Any]]:
        return [metric_values(metric) for metric in self.count_metrics]

    def _renumbered(self, rows: Ints, n_given: int) -> Self:
        return replace(self, tally=self.tally.renumbered(rows, n_given)).with_rows(
            self._of_rows, vars(self).get("_judge")
        )

    # ---- what needs the rows ---------------------------------------------------------------

    @property
    def _of_rows(self) -> CardMeasures | None:
        """The source of measures that need the rows; None where these are not known."""
        kept = vars(self).get("known")
        if kept is None:
            return vars(self).get("_measures")
        return KnownMeasures({m.name: m for m in kept}, vars(self).get("judged", NOTHING))

    @property
    def verdict(self) -> Verdict:
        """The claims: whether the model beats class frequencies, whether it is calibrated, and
        what to do next.

        Each claim is licensed by a test (`verdict.findings`). The text is the same in the terminal, on the
        page and in JSON. It is computed when it is first asked for. Merged cards, and those of very many
        rows, hold sums only: they claim nothing.

        Examples
        --------
        >>> import verax as vx
        >>> verdict = vx.evaluate([0, 1, 1, 0] * 30, [0.2, 0.9, 0.6, 0.3] * 30).verdict
        >>> verdict.claims[0], verdict.partition(":")[0]
        ('better_than_reference', 'The model beats predicting class frequencies')
        """
        known = vars(self).get("_judge") or self._of_rows
        if known is None or not self.weight or isinstance(self.n_groups, tuple):
            return NOTHING
        verdict: Verdict = known.verdict
        return verdict

    def with_rows(self, measures: CardMeasures | None, judge: CardMeasures | None = None) -> Self:
        """The same card, which refers to its rows for measures that need them.

        Parameters
        ----------
        measures : CardMeasures or None
            The source of the measures.
        judge : CardMeasures, optional
            The source of the verdict; by default the same.

        Returns
        -------
        Scorecard
            The card itself.
        """
        # Not fields, so bypass the frozen check: they are no part of what the card says.
        object.__setattr__(self, "_measures", measures)
        object.__setattr__(self, "_judge", judge)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without the rows."""
        return {name: value for name, value in vars(self).items() if name not in ("_measures", "_judge")}

    def __copy__(self) -> Self:
        """A copy refers to the same rows."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    @property
    def measures(self) -> dict[str, CardLine]:
        """Skill, miscalibration, discrimination and ECE; of two classes also AUC and calibration slope.

        They are computed when they are first asked for, from the rows that the card refers to.
        """
        return dict(self._known_rows("measures").lines)

    @property
    def known_measures(self) -> dict[str, CardLine]:
        """The measures that go with the card into dicts, JSON and MLflow: of cards of not too many rows."""
        few = self._of_rows is not None and self.n_rows * self.n_classes <= _KNOWN_UP_TO
        if not few or not self.weight or isinstance(self.n_groups, tuple):
            return {}
        try:
            return self.measures
        except InputError:
            # Saved summaries may lack what measures need.
            return {}

    @property
    def _shown_measures(self) -> dict[str, CardLine]:
        """The measures that are shown with the card: those of two classes."""
        return self.known_measures if self._rates else {}

    def _known_rows(self, name: str) -> CardMeasures:
        if self._of_rows is None:
            how = "vx.roc_auc(y, p), vx.ece(y, p), vx.calibration_slope(y, p) or vx.decompose(y, p)"
            raise InputError(
                f"must be a card that knows its rows for {name}",
                argument="card",
                found="merged cards, and those of very many rows, hold sums only",
                remedies=[Remedy(f"Type {how}.", python_only=True)],
            )
        return self._of_rows

    def __getitem__(self, name: str | Rule) -> float:
        """The mean loss by a rule, or a metric of decisions; its interval is not computed."""
        metrics = [metric.name for metric in self.count_metrics]
        if isinstance(name, str) and name in self.scores:
            return self.scores[name].mean
        if isinstance(name, str) and name in MEASURES:
            return self._known_rows(name).line(name).mean
        if isinstance(name, str) and (name in metrics or name in METRICS):
            if self._counts.confusion is None or METRICS[name].for_two:
                return self.metric(name).mean
            return self._value(self._metric(name))
        known = [*self.scores, *(other for other in METRICS if self._is_known(other)), *MEASURES]
        try:
            rule = parse(name)
        except ParseError:
            if not isinstance(name, str) or "(" in name:
                raise
            raise KeyError(" ".join([f"{name!r} is not on this card.", *suggestions(name, known)])) from None
        for score in self.scores.values():
            if score.rule == rule:
                return score.mean
        raise KeyError(f"{name!r} is not on this card; it has {', '.join(known)}")

    def __iter__(self) -> Iterator[str]:
        """The names of the rules and metrics on the card."""
        return iter((*self.scores, *self.metrics))

    def __len__(self) -> int:
        return len(self.scores) + len(self.metrics)

    def __contains__(self, name: object) -> bool:
        """Whether `card[name]` has a value: a rule or metric on the card, or one that it can compute."""
        return self.get(name) is not None

    def keys(self) -> list[str]:
        """The names of the rules and metrics on the card."""
        return list(self)

    def values(self) -> list[float]:
        """Their values, without intervals."""
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, float]]:
        """Names with values, without intervals; `dict(card)` takes them."""
        return [(name, self[name]) for name in self]

    def get(self, name: Any, default: Any = None) -> Any:
        """`card[name]`, or a default where the card has no such value.

        Parameters
        ----------
        name : str or Rule
            A rule or a metric.
        default : object, default None
            What to return instead.

        Returns
        -------
        float or object
            The value.
        """
        try:
            return self[name]
        except (KeyError, VeraxError):
            return default

    def _is_known(self, name: str) -> bool:
        """Whether the card knows a metric of decisions, on it or not."""
        metric = METRICS[name]
        return (self.ordered or not metric.ordinal) and (self.n_classes == 2 or not metric.for_two)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.tally.n_rows

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.tally.n_classes

    @property
    def weight(self) -> float:
        """The sum of the weights; the number of rows if there were none."""
        return self.tally.weight

    @property
    def n_groups(self) -> GroupCount | None:
        """The number of clusters, of both kinds where there are two; None if rows stand for themselves."""
        return self.tally.n_groups

    @cached_property
    def scores(self) -> dict[str, CardLine]:
        """Every rule's result under its name."""
        moments = self.tally.moments
        infinite_weight = self.tally.unscaled(moments.infinite.high)
        columns = (moments.mean, moments.std, moments.finite_mean, infinite_weight)
        results = {}
        for i, rule in enumerate(self.tally.rules):
            if not isinstance(rule, Rule):
                continue
            mean, std, finite, infinite = (float(column[i]) for column in columns)
            results[name_of(rule)] = CardLine(
                name=name_of(rule),
                mean=mean,
                interval=self._intervals.of_mean(i, rule.bounds(self.n_classes)),
                bounds=rule.bounds(self.n_classes),
                orientation=LOWER,
                summary=rule.summary,
                proper=self._proper(rule),
                std=std,
                finite_mean=finite,
                infinite_weight=infinite,
                rule=rule,
            )
        return results

    def _proper(self, rule: Rule) -> str:
        claims = rule.properties.at(self.n_classes)
        if claims["strictly_proper"]:
            return "strictly"
        return {True: "yes", False: "no", None: "unknown"}[claims["proper"]]

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much (Kish); without weights, all rows."""
        return self._intervals.rows

    @cached_property
    def _intervals(self) -> CardIntervals:
        return CardIntervals(self.tally, self.count_metrics, self.resampling)

    @cached_property
    def metrics(self) -> dict[str, CardLine]:
        """Every metric of decisions under its name: accuracy, and for ordered classes qwk and ec."""
        if self._counts.confusion is None:
            return {"accuracy": self._accuracy_without_table()}
        results = {}
        for i, metric in enumerate(self.count_metrics):
            results[metric.name] = CardLine(
                name=metric.name,
                mean=self._value(metric),
                interval=self._intervals.of_metric(i, self._value(metric)),
                bounds=metric.bounds(self.n_classes),
                orientation=metric.orientation,
                summary=metric.summary,
            )
        return results | {name: line for name, line in self._rates.items() if name in SHOWN}

    @cached_property
    def _rates(self) -> dict[str, CardLine]:
        """Sensitivity and what follows from it, of two classes; none of others."""
        return rate_lines(self.tally, self.resampling) if self.n_classes == 2 else {}

    def metric(self, name: str) -> CardLine:
        """Any registered metric of decisions by its name, on the card or not, with its interval.

        All of them are functions of the confusion counts, so no row is read again. Those that are not on the
        card are "linear_kappa", "kappa", "balanced_accuracy", "macro_f1", "macro_ppv", "mae", "macro_mae",
        "off_by_one", and of two classes "youden", "lr_positive" and "lr_negative". The names of `measures`,
        such as "auc" and "skill", are also known here.

        Parameters
        ----------
        name : str
            The name of the metric.

        Returns
        -------
        CardLine
            The value and its interval.
        """
        if self._counts.confusion is None and name == "accuracy":
            return self.metrics[name]
        if name in MEASURES:
            return self._known_rows(name).line(name)
        metric = self._metric(name)
        if metric.for_two and name in self._rates:
            return self._rates[name]
        on_card = metric in self.count_metrics
        return self.metrics[name] if on_card else replace(self, count_metrics=(metric,)).metrics[name]

    def error_of(self, line: CardLine) -> tuple[float, float]:
        """The standard error of a line of the card, and its degrees of freedom.

        That of a metric of decisions is half of its interval over the quantile of the t distribution.

        Parameters
        ----------
        line : CardLine
            One of `scores`, `metrics` or `measures`.

        Returns
        -------
        tuple of two floats
            The standard error and the degrees of freedom.

        Examples
        --------
        >>> import verax as vx
        >>> card = vx.evaluate([0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]], rules=["brier"])
        >>> error, freedom = card.error_of(card.scores["brier"])
        >>> round(error, 4), freedom
        (0.1988, 2.0)
        """
        for i, rule in enumerate(self.tally.rules):
            if line.rule is not None and rule == line.rule:
                return self._intervals.error_of_mean(i)
        groups = self.n_groups
        freedom = self.effective_rows - 1 if groups is None else min(counts_by_kind(groups)) - 1
        half = (line.interval.high - line.interval.low) / 2
        return half / t_quantile(freedom, self.resampling.confidence) if freedom > 0 else math.nan, freedom

    def _metric(self, name: str) -> DecisionMetric:
        """A metric that is on the card, or any registered one that these counts have."""
        for shown in self.count_metrics:
            if shown.name == name and self._counts.confusion is not None:
                return shown
        metric = find_metric(name)
        if metric.ordinal and not self.ordered:
            raise InputError(
                "must be True for metrics of ordered classes",
                argument="ordered",
                kind="order",
                found=f"{name} depends on the order of the classes",
            )
        metric.bounds(self.n_classes)
        if self._counts.confusion is None:
            raise InputError(
                f"must be accuracy beyond {CONFUSION_UP_TO:,} classes",
                argument="metric",
                found=f"{name} needs a table of counts",
                values=[name],
            )
        return metric

    def _value(self, metric: DecisionMetric) -> float:
        assert self._counts.confusion is not None
        return float(metric.of(self._counts.confusion))

    def _accuracy_without_table(self) -> CardLine:
        metric = find_metric("accuracy")
        interval, bounds = self._intervals.of_accuracy(self.accuracy), metric.bounds(self.n_classes)
        return CardLine(metric.name, self.accuracy, interval, bounds, HIGHER, metric.summary)

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose most likely class was the outcome. Higher is better."""
        weight = float(self.tally.weights.high[0])
        return self._counts.n_correct / weight if weight else math.nan

    @property
    def confusion(self) -> np.ndarray[Any, Any] | None:
        """Weights by outcome (row) and decision (column); None beyond 1,024 classes."""
        table = self._counts.confusion
        return None if table is None else self.tally.unscaled(table)

    @property
    def class_counts(self) -> np.ndarray[Any, Any]:
        """The weight of each class among the outcomes."""
        return self.tally.unscaled(self._counts.per_class)

    @property
    def n_zero_probability(self) -> int:
        """How many outcomes had been given probability zero."""
        return self._counts.n_zero

    @property
    def zero_probability_rows(self) -> tuple[int, ...]:
        """The first 100 rows whose outcome had been given probability zero; none if numbers are unknown."""
        return tuple(self._counts.zero_rows)

    @property
    def _counts(self) -> Counts:
        assert self.tally.counts is not None
        return self.tally.counts

    # ---- out -------------------------------------------------------------------------------

    def _ranges(self) -> dict[str, tuple[float, float, float]]:
        shares = {name: line for name, line in self.metrics.items() if name == "accuracy"}
        return {name: (line.mean, *line.bounds) for name, line in {**self.scores, **shares}.items()}

    def _kept_beside(self) -> dict[str, Any]:
        """Values that `to_dict` stores beside the fields: measures, which need the rows."""
        known = self.known_measures
        return {"known": tuple(known.values()), "judged": self.verdict} if known else {}

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All numbers as one flat dict of floats, for loggers of metrics.

        Every score, metric and known measure has its name, with `_low` and `_high` for the ends of its
        interval. Where some losses are infinite, `_finite_mean` is the mean of the others and
        `_infinite_weight` the weight of these rows.

        Parameters
        ----------
        prefix : str, default ""
            A prefix of every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            The numbers; some may be infinite or NaN.

        Examples
        --------
        >>> import verax as vx
        >>> card = vx.evaluate([0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]], rules=["brier"])
        >>> {name: round(value, 3) for name, value in card.flat("val_").items() if "brier" in name}
        {'val_brier': 0.327, 'val_brier_low': 0.0, 'val_brier_high': 1.182}
        """
        lines = [line_numbers(f"{prefix}{line.name}", line) for line in self._all]
        for line in self.known_measures.values():
            name, ends = f"{prefix}{line.name}", line.interval
            lines.append(with_ends(name, line.mean, ends) if ends.defined else {name: line.mean})
        return {name: float(value) for line in lines for name, value in line.items()}

    def _method(self) -> str:
        if self.n_groups is not None:
            return self._intervals.jackknife
        return "means: Student's t; accuracy: Wilson; decisions: bootstrap of the confusion matrix"

    @property
    def _all(self) -> list[CardLine]:
        return [*self.scores.values(), *self.metrics.values()]

    def _heading(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        weighed = "" if self.weight == self.n_rows else f", total weight {self.weight:,.6g}"
        grouped = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        return f"verax scorecard: {self.n_rows:,} rows{grouped}, {self.n_classes:,} {kind}{weighed}"

    def _tables(self) -> list[Table]:
        columns = [
            Column("score", "score", value="name", right=False),
            Column("mean", "mean", ".4f"),
            Column("std"),
            Column("low high", interval_head(self.resampling.confidence), ".4f", "interval"),
            Column("smallest largest", "range", range_of, "bounds", right=False, spare=1),
            Column("orientation"),
            Column("proper", "proper", right=False, spare=2),
            Column("summary", "what it is", right=False),
        ]
        tables = [Table(columns, self._all, ruled=True, first=self._leading())]
        if self._shown_measures:
            shown = [
                Column("measure", "measure", value="name", right=False),
                Column("value", "value", "z.4f", "mean"),
                Column("low high", interval_head(self.resampling.confidence), "z.4f", "interval"),
                Column("summary", "what it is", right=False),
            ]
            tables.append(Table(shown, list(self._shown_measures.values()), ruled=True))
        return tables

    def _leading(self) -> list[CardLine]:
        """The lines that a terminal shows: the headline score first. None, for all, where there are few."""
        named = {line.name.removeprefix("padded(").rstrip(")"): line for line in self._all}
        names = (name_of(headline_rule(ordered=self.ordered)), *_LEADING)
        return [named[name] for name in dict.fromkeys(names) if name in named] if len(named) > 6 else []

    def _cautions(self) -> list[str]:
        """What speaks against the interval of the headline score, or of the first that has a caution."""
        told = "" if self.n_groups is None else few_groups(self.n_groups)
        lines = [line for line in (*(self._leading() or ()), *self._all) if line.interval.defined]
        cautioned = {
            line.name: line.interval.caution for line in lines if line.interval.caution not in ("", told)
        }
        if not cautioned:
            return []
        (name, caution), *others = cautioned.items()
        also = f" The intervals of {len(others)} other lines have cautions too." if others else ""
        return [f"Caution for the interval of {name}: {caution}.{also}"]

    def _notes(self) -> list[str]:
        better = join([s.name for s in self._all if s.orientation == HIGHER])
        notes = [f"Lower is better, except for {better}."]
        if self._rates:
            event = 1 if self.classes is None else self.classes[1]
            notes.append(f"{join(SHOWN)} are those of class {event}, decided for where it is more likely.")
            if self._of_rows is not None and self.n_rows * self.n_classes > _KNOWN_UP_TO:
                notes.append('card["auc"], card["skill"] and other measures are computed when asked for.')
            if "brier" in self.scores:
                half = self.scores["brier"].mean / 2
                notes.append(f"brier adds up both classes; scikit-learn's brier_score_loss is {half:.4f}.")
        if self.n_groups is None and self._intervals.too_few:
            notes.append(f"There are no intervals: {NO_ROWS}.")
        if self.n_groups is not None:
            caution = few_groups(self.n_groups)
            notes.append(f"Intervals: {self._method()}{f' (caution: {caution})' if caution else ''}.")
        notes += self._cautions()
        if self.ordered and self.n_classes > CONFUSION_UP_TO:
            notes.append(
                f"Beyond {CONFUSION_UP_TO:,} classes there is no confusion table: qwk and ec are left out."
            )
        if self.n_zero_probability:
            shown = ", ".join(str(row) for row in self.zero_probability_rows[:5])
            more = ", ..." if self.n_zero_probability > 5 else ""
            what, where = ("outcome", "row") if self.n_zero_probability == 1 else ("outcomes", "rows")
            # Merged parts and sums from a device do not know their rows.
            known = f" ({where} {shown}{more})" if shown else ""
            notes.append(f"Probability zero was given to {self.n_zero_probability:,} {what}{known}.")
        infinite = [s for s in self.scores.values() if s.infinite_weight > 0]
        if infinite:
            finite = ", ".join(f"{s.name} {s.finite_mean:.4f}" for s in infinite)
            notes.append(f"Without rows of infinite loss: {finite}.")
        return notes + self.remarks


def _kind(other: object) -> str:
    """The name of something in an error about cards."""
    return other.kind if isinstance(other, Scorecard) else type(other).__name__
