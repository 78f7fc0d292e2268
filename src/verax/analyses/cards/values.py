"""What a card has under a name: mean losses by rules, metrics of decisions, and measures of all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from verax.analyses.cards.intervals import CardIntervals
from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.rates import SHOWN, rate_lines
from verax.analyses.cards.rows import CardSums, MeasuredCard
from verax.analyses.measures import MEASURES
from verax.common.caching import cached_property
from verax.common.checks import is_called
from verax.common.named import NamedValues
from verax.engines.counts import CONFUSION_UP_TO
from verax.errors import InputError, ParseError
from verax.inference.intervals import Interval, t_quantile
from verax.inputs.groups import counts_by_kind
from verax.scores.base import Rule
from verax.scores.metrics import HIGHER, LOWER, METRICS, DecisionMetric, find_metric
from verax.scores.naming import suggestions
from verax.scores.registry import name_of, parse


class CardValues(MeasuredCard, NamedValues):
    """The numbers of a card by their names, with their lines: intervals, ranges, and what they mean."""

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
        known = [*self.scores, *(other for other in METRICS if _is_known(self, METRICS[other])), *MEASURES]
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
                proper=_proper(rule, self.n_classes),
                std=std,
                finite_mean=finite,
                infinite_weight=infinite,
                rule=rule,
                guaranteed=self._intervals.guaranteed_mean(i),
            )
        return results

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
                guaranteed=self._guaranteed(metric),
            )
        return results | {name: line for name, line in self._rates.items() if name in SHOWN}

    def _guaranteed(self, metric: DecisionMetric) -> Interval | None:
        return self._intervals.guaranteed_accuracy(self.accuracy) if metric.name == "accuracy" else None

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
        if is_called(name, *MEASURES):
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
            if is_called(name, shown.name) and self._counts.confusion is not None:
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
        line = CardLine(metric.name, self.accuracy, interval, bounds, HIGHER, metric.summary)
        return replace(line, guaranteed=self._guaranteed(metric))


def _proper(rule: Rule, n_classes: int) -> str:
    """Whether a rule is proper, in a word."""
    claims = rule.properties.at(n_classes)
    if claims["strictly_proper"]:
        return "strictly"
    return {True: "yes", False: "no", None: "unknown"}[claims["proper"]]


def _is_known(card: CardSums, metric: DecisionMetric) -> bool:
    """Whether the card knows a metric of decisions, on it or not."""
    return (card.ordered or not metric.ordinal) and (card.n_classes == 2 or not metric.for_two)
