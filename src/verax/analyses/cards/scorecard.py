"""All the scores that fit a problem, from one pass over the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypedDict

from verax.analyses.cards.container import CARD, write_summaries
from verax.analyses.cards.fingerprints import Fingerprint, fingerprint_of_card
from verax.analyses.cards.intervals import NO_ROWS
from verax.analyses.cards.lines import CardLine, KnownMeasures, line_numbers, range_of
from verax.analyses.cards.rates import SHOWN
from verax.analyses.cards.rows import KNOWN_UP_TO
from verax.analyses.cards.stored import card_fields, card_values, metrics_of
from verax.analyses.cards.values import CardValues
from verax.common.faces import Key, Mark, Maybe
from verax.common.idkeys import storing_ids
from verax.common.packing import dump, load, refusing
from verax.common.stored import inside
from verax.common.summaries import register
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.engines.counts import CONFUSION_UP_TO
from verax.errors import VeraxError, join
from verax.inference.findings import Finding
from verax.inference.intervals import Resampled, few_groups, with_ends
from verax.inputs.arrays import Ints
from verax.inputs.groups import in_words
from verax.inputs.handles import no_shards
from verax.inputs.skipping import MaySkip, Skipped
from verax.scores.metrics import HIGHER
from verax.scores.registry import headline_rule, name_of

# Lines of long cards that a terminal shows after the headline score.
_LEADING = ("brier", "log_score", "accuracy", "sensitivity", "specificity", "qwk", "coverage", "invalid")


class CardTable(Tabled, CardValues):
    """A card as a table of scores and metrics, and for two classes one of measures."""

    @property
    def _all(self) -> list[CardLine]:
        return [*self.scores.values(), *self.metrics.values()]

    @property
    def _shown_measures(self) -> dict[str, CardLine]:
        """The measures that are shown with the card: those of two classes."""
        return self.known_measures if self._rates else {}

    def _method(self) -> str:
        return self._intervals.method

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
            if self._of_rows is not None and self.n_rows * self.n_classes > KNOWN_UP_TO:
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
        return notes


class ZeroProbability(TypedDict):
    """Outcomes that had been given probability zero."""

    count: int
    rows: list[int]


@register("card")
@dataclass(frozen=True, repr=False, eq=False)
class Scorecard(CardTable, MaySkip):
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

    _facts = (
        *("_verax", "n_rows", "weight", "n_groups", "n_classes", "_plan", "scores", "metrics", "_known"),
        *("_claims", "_findings", "class_counts", "confusion", "_zero_probability"),
    )

    # ---- what JSON has beside the fields ---------------------------------------------------

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

    # ---- sums that merge and are stored ----------------------------------------------------

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
        _refuse_unlike(self, other)
        named = self if self.n_rows or not other.n_rows else other
        merged = replace(self, tally=self.tally.merge(other.tally), classes=named.classes)
        if self.skipped is None and other.skipped is None:
            return merged
        parts = [Skipped(card.n_rows) if card.skipped is None else card.skipped for card in (self, other)]
        skipped = reduce(add, parts)
        return merged.with_skipped(skipped if merged.tally.spans is not None else replace(skipped, rows=()))

    def __add__(self, other: Scorecard) -> Self:
        return self.merge(other) if isinstance(other, Scorecard) else NotImplemented

    def __radd__(self, other: object) -> Self:
        # `sum` begins with 0.
        return self if other == 0 else NotImplemented

    def to_bytes(self) -> bytes:
        """Bytes that `from_bytes` reads, without pickle: the sums, not what is computed from them."""
        return dump(self.kind, card_values(self, self.skipped))

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
            card = cls(**card_fields(cls, values))
            if "measures" in values:
                with inside("measures"):
                    known = KnownMeasures.from_values(values["measures"])
                # Not fields, so bypass the frozen check.
                object.__setattr__(card, "known", tuple(known.lines.values()))
                object.__setattr__(card, "judged", known.verdict)
            return card if skipped is None else card.with_skipped(Skipped.from_values(skipped))

    def save(self, path: str | Path, ids: Literal["keyed", "plain", "none"] | None = None) -> None:
        """Write the card to a file that `load` and `verax merge` read. The sums are kept, no rows.

        The measures in `to_dict` are kept as well. A merged card has none: they do not follow from the sums.

        Parameters
        ----------
        path : str or path
            The file; `.verax` is the usual ending.
        ids : {"keyed", "plain", "none"}, optional
            How groups are named: by digests with the key of this user (the default), which parts need to be
            merged by groups; by their names; or not at all, so that no other part can be merged by groups.
        """
        self._save(path, (), ids)

    def _save(
        self,
        path: str | Path,
        parts: Sequence[Fingerprint],
        ids: Literal["keyed", "plain", "none"] | None = None,
    ) -> None:
        """Save the card, with the parts that were merged into it."""
        if vars(self).get("_followed"):
            raise no_shards()
        known = self.known_measures
        measures = {"measures": KnownMeasures(known, self.verdict).to_values()} if known else {}
        with storing_ids(ids):
            values = card_values(self, self.skipped)
        write_summaries(path, {CARD: dump(self.kind, {**values, **measures})}, parts)

    @property
    def _fingerprint(self) -> Fingerprint:
        return fingerprint_of_card(self)

    @property
    def _group_labels(self) -> Any:
        """The names of the groups, if there are any."""
        clusters = self.tally.clusters
        return None if clusters is None else clusters.labels

    def _renumbered(self, rows: Ints, n_given: int) -> Self:
        return replace(self, tally=self.tally.renumbered(rows, n_given)).with_rows(
            self._of_rows, vars(self).get("_judge")
        )

    # ---- out -------------------------------------------------------------------------------

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
        {'val_brier': 0.327, 'val_brier_low': 0.001, 'val_brier_high': 2.0}
        """
        lines = [line_numbers(f"{prefix}{line.name}", line) for line in self._all]
        for line in self.known_measures.values():
            name, ends = f"{prefix}{line.name}", line.interval
            lines.append(with_ends(name, line.mean, ends) if ends.defined else {name: line.mean})
        return {name: float(value) for line in lines for name, value in line.items()}

    def _notes(self) -> list[str]:
        return [*super()._notes(), *self.remarks]

    def _ranges(self) -> dict[str, tuple[float, float, float]]:
        shares = {name: line for name, line in self.metrics.items() if name == "accuracy"}
        return {name: (line.mean, *line.bounds) for name, line in {**self.scores, **shares}.items()}

    def _kept_beside(self) -> dict[str, Any]:
        """Values that `to_dict` stores beside the fields: measures, which need the rows."""
        known = self.known_measures
        return {"known": tuple(known.values()), "judged": self.verdict} if known else {}


def _refuse_unlike(card: Scorecard, other: Scorecard) -> None:
    """Refuse a card that another does not merge with."""
    if type(other) is not type(card):
        raise VeraxError(f"A {card.kind} merges with another {card.kind}, not with a {_kind(other)}.")
    if card.ordered != other.ordered or (card.n_rows and other.n_rows and card.classes != other.classes):
        raise VeraxError("Cards of different classes, or with and without an order, cannot be merged.")
    if card.resampling != other.resampling:
        raise VeraxError(
            "Cards whose intervals are computed in different ways cannot be merged: "
            f"{card.resampling.difference(other.resampling)}."
        )
    if metrics_of(card) != metrics_of(other):
        raise VeraxError("Cards with different metrics of decisions or different costs cannot be merged.")


def _kind(other: object) -> str:
    """The name of something in an error about cards."""
    return other.kind if isinstance(other, Scorecard) else type(other).__name__
