"""Forecasts whose outcomes come later, and outcomes that are known already."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.common.hashing import label_hash
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Floats, Ints, to_array, to_host


class Pending:
    """What is known of rows by their names.

    Forecasts without an outcome are kept whole. For rows with an outcome, hashes of the name and the outcome
    are kept (16 bytes), so that no row is taken in twice.
    """

    def __init__(self) -> None:
        self._rows: dict[Any, tuple[Floats, float, int]] = {}
        self._known: dict[int, int] = {}
        # Of outcomes that came late: their number, the sums of lags, losses, products and squares.
        self._late = np.zeros(6)

    @property
    def n(self) -> int:
        """The number of forecasts without an outcome."""
        return len(self._rows)

    @property
    def claimed(self) -> float:
        """The mean loss that they expect."""
        return float(np.mean([claimed for _, claimed, _ in self._rows.values()]))

    @staticmethod
    def names(ids: object) -> list[Any]:
        """Names of rows, each once."""
        values = to_host(to_array(ids, "ids")[0])
        if values.ndim != 1:
            raise InputError(
                "must be one name per row",
                argument="ids",
                kind="length",
                found=f"its shape is {values.shape}",
            )
        names: list[Any] = values.tolist()
        seen: set[Any] = set()
        twice = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        if twice:
            raise InputError(
                "must name each row once", argument="ids", found=f"{show(twice[0])} repeats", values=twice
            )
        return names

    def predict(self, names: list[Any], p: Floats, claimed: Floats, step: int, time: Any) -> None:
        """Note forecasts; a name that is known already is refused."""
        if len(names) != len(p):
            raise InputError(
                f"must be {len(p):,} names, one per row",
                argument="ids",
                kind="length",
                found=f"there are {len(names):,}",
            )
        known = [name for name in names if name in self._rows or label_hash(name) in self._known]
        if known:
            raise InputError(
                "must be new rows",
                argument="ids",
                found=f"{show(known[0])} was forecast before ({len(known):,} in all)",
                values=known,
            )
        for name, row, loss in zip(names, p, claimed.tolist(), strict=True):
            self._rows[name] = row, loss, step

    def match(self, ids: object, y: object) -> tuple[list[Any], Any, Floats, Ints] | None:
        """The rows whose outcomes are new: their names, outcomes, forecasts and steps; None if none is."""
        names, outcomes = self.names(ids), to_host(to_array(y, "y")[0])
        if outcomes.shape != (len(names),):
            raise InputError(
                "must have one outcome per name",
                argument="y",
                kind="length",
                found=f"there are {len(names):,} names, and the shape is {outcomes.shape}",
            )
        new = self.new_rows(ids, y)
        unknown = [name for name, is_new in zip(names, new, strict=True) if is_new and name not in self._rows]
        if unknown:
            raise InputError(
                "must name rows that were forecast",
                argument="ids",
                kind="missing",
                found=f"{show(unknown[0])} is not known ({len(unknown):,} in all)",
                values=unknown,
                remedies=[Remedy("Call `predict` first, or `update` with forecasts and outcomes.")],
            )
        kept = [name for name, is_new in zip(names, new, strict=True) if is_new]
        if not kept:
            return None
        rows = [self._rows[name] for name in kept]
        return kept, outcomes[new], np.stack([row[0] for row in rows]), np.array([row[2] for row in rows])

    def new_rows(self, ids: object, y: object) -> Any:
        """Which rows were not taken in before; another outcome for one that was is an error."""
        names, outcomes = self.names(ids), to_host(to_array(y, "y")[0]).tolist()
        if len(outcomes) != len(names):
            raise InputError(
                "must have one outcome per name",
                argument="ids",
                kind="length",
                found=f"there are {len(names):,} names and {len(outcomes):,} outcomes",
            )
        new = np.ones(len(names), bool)
        for i, (name, outcome) in enumerate(zip(names, outcomes, strict=True)):
            before = self._known.get(label_hash(name))
            if before is not None:
                new[i] = False
                if before != _hash(outcome):
                    raise InputError(
                        "must not change the outcome of a row",
                        argument="y",
                        found=f"{show(name)} had another outcome before than {show(outcome)}",
                        values=[name],
                    )
        return new

    def note(self, ids: object, y: object) -> None:
        """Note rows that were taken in with their outcomes."""
        for name, outcome in zip(self.names(ids), to_host(to_array(y, "y")[0]).tolist(), strict=True):
            self._known[label_hash(name)] = _hash(outcome)

    def resolve(self, names: list[Any], y: Any, lags: Ints, losses: Floats) -> None:
        """Note that outcomes have come, how late, and with which losses."""
        for name in names:
            del self._rows[name]
        self.note(np.array(names), y)
        finite = np.isfinite(losses)
        a, b = lags[finite].astype(float), losses[finite]
        self._late += [len(a), a.sum(), b.sum(), (a * b).sum(), (a * a).sum(), (b * b).sum()]

    @property
    def lateness(self) -> float:
        """How loss and lag go together: the z value of their correlation; NaN where that is undefined."""
        n, a, b, ab, aa, bb = self._late.tolist()
        if n < 10:
            return math.nan
        spread = (aa - a * a / n) * (bb - b * b / n)
        return (ab - a * b / n) / math.sqrt(spread) * math.sqrt(n) if spread > 0 else math.nan

    def to_values(self) -> dict[str, Any]:
        """The state, to be stored."""
        rows = list(self._rows.values())
        return {
            "names": list(self._rows),
            "p": np.stack([row[0] for row in rows]) if rows else np.zeros((0, 0)),
            "claimed": np.array([row[1] for row in rows]),
            "steps": np.array([row[2] for row in rows], np.int64),
            "known": np.array(list(self._known), np.uint64),
            "outcomes": np.array(list(self._known.values()), np.uint64),
            "late": self._late,
        }

    @classmethod
    def from_values(cls, values: Any) -> Pending:
        """The state as it was stored."""
        made = cls()
        columns = (values["names"], values["p"], values["claimed"].tolist(), values["steps"].tolist())
        made._rows = {name: (p, loss, step) for name, p, loss, step in zip(*columns, strict=True)}
        made._known = dict(zip(values["known"].tolist(), values["outcomes"].tolist(), strict=True))
        made._late = np.asarray(values["late"], float).reshape(6)
        return made


def _hash(outcome: Any) -> int:
    """64 bits of an outcome, the same for 1, 1.0 and True."""
    if isinstance(outcome, float) and outcome.is_integer():
        outcome = int(outcome)
    return label_hash(int(outcome) if isinstance(outcome, bool) else outcome)
