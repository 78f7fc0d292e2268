"""How a card is shown: its lines as tables, with a heading and notes."""

from __future__ import annotations

from verax.analyses.cards.intervals import NO_ROWS
from verax.analyses.cards.lines import CardLine, range_of
from verax.analyses.cards.rates import SHOWN
from verax.analyses.cards.rows import KNOWN_UP_TO
from verax.analyses.cards.values import CardValues
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.engines.counts import CONFUSION_UP_TO
from verax.errors import join
from verax.inference.intervals import few_groups
from verax.inputs.groups import in_words
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
