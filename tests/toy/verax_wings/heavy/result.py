"""The result: its fields give JSON, schema and stored form, its columns the table."""

from __future__ import annotations

from dataclasses import dataclass

from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.inputs.skipping import MaySkip


@dataclass(frozen=True, repr=False, eq=False)
class HeavyLosses(Tabled, MaySkip, Result):
    """The rows that lose more than a limit.

    Attributes
    ----------
    rule : str
        The rule.
    limit : float
        The loss from which on a row is heavy.
    n_rows : int
        The number of rows.
    rows : float
        The share of the rows that are heavy.
    loss : float
        Their share of the loss.
    """

    rule: str
    limit: float
    n_rows: int
    rows: float
    loss: float

    def _tables(self) -> list[Table]:
        columns = [Column("rows", "share of rows", ".1%"), Column("loss", "share of the loss", ".1%")]
        return [Table(columns, [self])]

    def _heading(self) -> str:
        return f"heavy losses: {self.n_rows:,} rows, {self.rule} above {self.limit:g}"
