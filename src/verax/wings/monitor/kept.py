"""How the files of a monitor are read: kept in its state, so that a later run needs only the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from verax.errors import InputError, show
from verax.inputs.reading import Reading, flag_of, named_columns

# How a file is written may change from one day to the next; what is watched may not.
MAY_CHANGE = (
    *("target", "probs", "classes", "delimiter", "decimal"),
    *("logits", "normalize", "percent", "outputs", "invalid"),
)
# These are settings of the monitor itself.
_SETTINGS = ("by", "ordered")


@dataclass(frozen=True)
class KeptReading:
    """How files are read.

    Attributes
    ----------
    reading : Reading
        The columns, and how their values are read.
    time : str
        The column of times.
    """

    reading: Reading
    time: str

    def continued(
        self, said: Mapping[str, Any], time: str | None, source: str
    ) -> tuple[KeptReading, list[str]]:
        """The same with what is said now, and a line for each change; some changes are refused."""
        _refuse_change("time", self.time, self.time if time is None else time, source)
        lines = []
        for name, now in said.items():
            before = getattr(self.reading, name)
            if name not in MAY_CHANGE and not (name == "id" and before is None):
                _refuse_change(name, before, now, source)
            elif now != before and name in self.reading.given():
                lines.append(f"--{flag_of(name)} is {_shown(now)} from now on; it was {_shown(before)}.")
        return replace(self, reading=replace(self.reading, **said)), lines

    def to_values(self) -> dict[str, Any]:
        """The fields, for storing."""
        return {"reading": self.reading.given(), "time": self.time}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> KeptReading:
        """The stored fields."""
        reading = Reading.of(None, dict(values["reading"]))
        if any("://" in text or text.endswith(".npy") for text in _texts(reading)) or reading.outcomes:
            # A state that somebody else wrote must not name what is read.
            raise ValueError("names a file")
        return cls(reading, str(values["time"]))


def _texts(reading: Reading) -> list[str]:
    """The columns that could be files of arrays."""
    return [text for text in (reading.target, reading.weights, *named_columns(reading.groups)) if text]


def kept_reading(
    before: KeptReading | None, said: Mapping[str, Any], time: str | None, source: str
) -> tuple[KeptReading, list[str]]:
    """How files are read from now on: as before, with what is said now; and what has changed, in words."""
    said = {name: value for name, value in said.items() if name not in _SETTINGS}
    if before is not None:
        return before.continued(said, time, source)
    if time is None:
        raise InputError(
            "must name the column of times: the state does not know it", argument="time", kind="missing"
        )
    return KeptReading(Reading.of(None, said), time), []


def _refuse_change(name: str, before: object, now: object, source: str) -> None:
    if now != before:
        raise InputError(
            f"must be what the state was made with, {_shown(before)}",
            argument=name,
            found=f"now it is {_shown(now)}",
            source=source,
        )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return show(", ".join(map(str, value))) if value else "none"
    return "none" if value is None else show(value)
