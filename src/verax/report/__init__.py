"""The report: one HTML file from predictions to a decision. `Report.of(y, p).save("report.html")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verax.common.packages import exports

if TYPE_CHECKING:
    from verax.report.document import Report

__all__ = ["Report"]

# The command line begins with the verdict's first sentence, and does not wait for the page.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = exports(__name__, {"Report": "document"})
