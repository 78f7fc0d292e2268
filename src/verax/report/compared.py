"""What a page about several models has, whatever their forecasts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from verax.analyses.comparison.result import Comparison


class Compared(Protocol):
    """The contents of a page, as far as the models are compared."""

    @property
    def problem(self) -> Any: ...
    @property
    def findings(self) -> Sequence[Any]: ...
    @property
    def comparison(self) -> Comparison: ...
    @property
    def best(self) -> Any: ...
    @property
    def primary(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def checks(self) -> Sequence[Any]: ...
    def interval(self, model: str, rule: str) -> Sequence[float]: ...
