"""All the scores that fit a problem, from one pass over the rows."""

from __future__ import annotations

import html
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.errors import MissingPackageError, VeraxError
from verax.forecasts import Forecasts
from verax.registry import RULES, name_of, parse
from verax.rowstats import pair
from verax.rule import Rule
from verax.tally import Counts, Tally

LOWER, HIGHER = "lower is better", "higher is better"


def evaluate(
    y: object,
    p: object,
    *,
    classes: Sequence[Hashable] | None = None,
    ordered: bool = False,
    weights: object | None = None,
    rules: Sequence[Rule | str] | None = None,
    normalize: bool = False,
    logits: bool = False,
) -> Scorecard:
    """Score forecasts `p` of outcomes `y` by every rule that fits, in one pass.

    Parameters
    ----------
    y : (N,) class positions 0..K-1 or labels found in `classes`, or (N, K) one-hot rows.
    p : (N, K) probabilities, or (N,) probabilities of class 1 in a binary problem; or `TopLists`,
        for which the card also says how much the lists cover (`ListCard`).
    classes : names of the columns of `p`, in order; for ordered classes lowest first.
    ordered : the classes have an order, so the ordinal rules fit too.
    weights : (N,) non-negative weights.
    rules : the rules to use instead of all that fit, as rules or as texts for `parse`.
    normalize : divide every row of `p` by its sum first.
    logits : `p` holds logits.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], ordered=True)
    >>> round(card["rps"], 4), card.accuracy
    (0.105, 1.0)
    """
    if hasattr(p, "with_outcomes"):
        return _evaluate_lists(y, p, classes, ordered, weights, rules, normalize, logits)
    chosen = _choose(rules, ordered)
    ordinal = ordered or any(rule.ordinal for rule in chosen)
    forecasts = Forecasts(
        y, p, classes=classes, weights=weights, normalize=normalize, logits=logits, ordered=ordinal
    )
    tally = Tally(chosen, forecasts.n_classes).update(forecasts)
    return Scorecard(tally, forecasts.classes, ordered)


def _evaluate_lists(
    y: object,
    lists: Any,
    classes: Sequence[Hashable] | None,
    ordered: bool,
    weights: object | None,
    rules: Sequence[Rule | str] | None,
    normalize: bool,
    logits: bool,
) -> Scorecard:
    from verax.listcard import score_lists

    chosen = None if rules is None else _choose(rules, ordered)
    rows = pair(
        y, lists, classes=classes, weights=weights, normalize=normalize, logits=logits, ordered=ordered
    )
    return score_lists(rows, lists, chosen)


def _choose(rules: Sequence[Rule | str] | None, ordered: bool) -> list[Rule]:
    if rules is None:
        return [rule for rule in RULES.values() if ordered or not rule.ordinal]
    if isinstance(rules, (str, Rule)):
        rules = [rules]
    chosen = [parse(rule) if isinstance(rule, str) else rule for rule in rules]
    if not chosen:
        raise VeraxError("`rules` must name at least one rule.")
    return list(dict.fromkeys(chosen))


@dataclass(frozen=True)
class Score:
    """One rule's result.

    Attributes
    ----------
    mean : the weighted mean loss; infinite if any row's is.
    std : the weighted standard deviation of the loss over the rows.
    finite_mean : the mean over the rows whose loss is finite.
    infinite_weight : the total weight of the rows whose loss is infinite.
    """

    name: str
    rule: Rule
    mean: float
    std: float
    finite_mean: float
    infinite_weight: float
    bounds: tuple[float, float]
    proper: Literal["strictly", "yes", "no", "unknown"]


@dataclass(frozen=True)
class Scorecard:
    """The scores of one set of forecasts. It holds sums only, so cards of parts can be merged.

    `card["brier"]` is a mean; `scores` has the details; `accuracy`, `confusion` and `class_counts`
    use the most likely class, the lowest index where several are.
    """

    tally: Tally
    classes: tuple[Hashable, ...] | None = None
    ordered: bool = False

    def merge(self, other: Scorecard) -> Scorecard:
        """The card of these rows followed by the other card's."""
        if self.classes != other.classes or self.ordered != other.ordered:
            raise VeraxError("Cards over different classes cannot be merged.")
        return Scorecard(self.tally.merge(other.tally), self.classes, self.ordered)

    def __getitem__(self, name: str) -> float:
        scores = {score.rule: score for score in self.scores.values()}
        rule = parse(name)
        if rule not in scores:
            raise KeyError(f"{name!r} is not on this card; it has {', '.join(self.scores)}")
        return scores[rule].mean

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
        return float(self.tally.weight.high[0])

    @property
    def scores(self) -> dict[str, Score]:
        """Every rule's result under its name."""
        moments = self.tally.moments
        columns = (moments.mean, moments.std, moments.finite_mean, moments.infinite.high)
        results = {}
        for i, rule in enumerate(self.tally.rules):
            if not isinstance(rule, Rule):
                continue
            name = name_of(rule)
            mean, std, finite, infinite = (float(column[i]) for column in columns)
            bounds = rule.bounds(self.n_classes)
            results[name] = Score(name, rule, mean, std, finite, infinite, bounds, self._proper(rule))
        return results

    def _proper(self, rule: Rule) -> Literal["strictly", "yes", "no", "unknown"]:
        claims = rule.properties.at(self.n_classes)
        if claims["strictly_proper"]:
            return "strictly"
        return {True: "yes", False: "no", None: "unknown"}[claims["proper"]]  # type: ignore[return-value]

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose most likely class was the outcome. Higher is better."""
        return self._counts.n_correct / self.weight

    @property
    def confusion(self) -> np.ndarray[Any, Any] | None:
        """Weights by outcome (row) and decision (column); None beyond 1,024 classes."""
        return self._counts.confusion

    @property
    def class_counts(self) -> np.ndarray[Any, Any]:
        """The weight of each class among the outcomes."""
        return self._counts.per_class

    @property
    def n_zero_probability(self) -> int:
        """How many outcomes had been given probability zero."""
        return self._counts.n_zero

    @property
    def zero_probability_rows(self) -> tuple[int, ...]:
        """The first 100 rows whose outcome had been given probability zero."""
        return tuple(self._counts.zero_rows)

    @property
    def _counts(self) -> Counts:
        assert self.tally.counts is not None
        return self.tally.counts

    # ---- out -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything on the card as plain Python values."""
        from verax import __version__

        return {
            "verax": __version__,
            "n_rows": self.n_rows,
            "weight": self.weight,
            "n_classes": self.n_classes,
            "classes": None if self.classes is None else list(self.classes),
            "ordered": self.ordered,
            "scores": {
                score.name: {
                    "mean": score.mean,
                    "std": score.std,
                    "finite_mean": score.finite_mean,
                    "infinite_weight": score.infinite_weight,
                    "rule": repr(score.rule),
                    "summary": score.rule.summary,
                    "range": list(score.bounds),
                    "orientation": LOWER,
                    "proper": score.proper,
                    "reference": score.rule.reference,
                }
                for score in self.scores.values()
            },
            "accuracy": {"mean": self.accuracy, "orientation": HIGHER, "ties": "lowest index"},
            "class_counts": self.class_counts.tolist(),
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "zero_probability": {"count": self.n_zero_probability, "rows": list(self.zero_probability_rows)},
        }

    def to_frame(self, kind: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """One row a score, as a data frame of the kind named."""
        import narwhals as nw

        rows = self._table()
        data = {name: [row[i] for row in rows] for i, name in enumerate(_COLUMNS)}
        try:
            return nw.from_dict(data, backend=kind).to_native()
        except (ImportError, ModuleNotFoundError):
            raise MissingPackageError(
                f"to_frame needs {kind}: install it, or ask for another kind of frame."
            ) from None

    def _table(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = [
            (s.name, s.mean, s.std, *s.bounds, LOWER, s.proper, s.rule.summary) for s in self.scores.values()
        ]
        spread = float(np.sqrt(self.accuracy * (1 - self.accuracy)))
        rows.append(("accuracy", self.accuracy, spread, 0.0, 1.0, HIGHER, "", "share of right decisions"))
        return rows

    def _heading(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        weighed = "" if self.weight == self.n_rows else f", total weight {self.weight:,.6g}"
        return f"verax scorecard: {self.n_rows:,} rows, {self.n_classes:,} {kind}{weighed}"

    def _cells(self) -> list[list[str]]:
        header = ["score", "mean", "sd", "range", "proper", "what it is"]
        body = [
            [name, f"{mean:.5f}", "" if np.isnan(std) else f"{std:.5f}", _range(low, high), proper, summary]
            for name, mean, std, low, high, _, proper, summary in self._table()
        ]
        return [header, *body]

    def _notes(self) -> list[str]:
        notes = ["Lower is better, except for accuracy."]
        if self.n_zero_probability:
            shown = ", ".join(str(row) for row in self.zero_probability_rows[:5])
            more = ", ..." if self.n_zero_probability > 5 else ""
            what, where = ("outcome", "row") if self.n_zero_probability == 1 else ("outcomes", "rows")
            count = f"{self.n_zero_probability:,} {what}"
            notes.append(f"Probability zero had been given to {count} ({where} {shown}{more}).")
        infinite = [s for s in self.scores.values() if s.infinite_weight > 0]
        if infinite:
            finite = ", ".join(f"{s.name} {s.finite_mean:.5f}" for s in infinite)
            notes.append(f"Without the rows of infinite loss: {finite}.")
        return notes

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        align = (str.ljust, str.rjust, str.rjust, str.ljust, str.ljust, str.ljust)
        lines = [
            "  ".join(put(text, width) for put, text, width in zip(align, row, widths, strict=True))
            for row in cells
        ]
        rule = "-" * max(len(line.rstrip()) for line in lines)
        table = [lines[0], rule, *lines[1:], rule]
        return "\n".join(line.rstrip() for line in [self._heading(), *table, *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *body = self._cells()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in body)
        notes = "<br>".join(html.escape(note) for note in self._notes())
        return (
            f"<table><caption>{html.escape(self._heading())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{notes}</p>"
        )


_COLUMNS = ("score", "mean", "std", "lowest", "highest", "orientation", "proper", "summary")


def _range(low: float, high: float) -> str:
    return f"{low:g} to {'inf' if np.isinf(high) else f'{high:.4g}'}"
