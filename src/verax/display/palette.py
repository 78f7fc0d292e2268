"""What all figures share: matplotlib, where it is installed, colours and line styles."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from verax.common.packages import needed

P = ParamSpec("P")
# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# What is context: lines of reference, models that are worse.
GREY = "#777777"
STYLES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """`matplotlib.pyplot`, imported when the first figure is drawn."""
    return needed("matplotlib.pyplot", "Drawing", "plot")


def plain_texts(draw: Callable[P, Any]) -> Callable[P, Any]:
    """Let a function that returns a figure or axes draw texts as they are, and return the figure.

    $10k is no formula.
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Any:
        # One setting alone: a context of all would set the backend again, and notebooks lose their figures.
        settings = pyplot().rcParams
        before, settings["text.parse_math"] = settings["text.parse_math"], False
        try:
            found = draw(*args, **kwargs)
        finally:
            settings["text.parse_math"] = before
        roots = list(found) if isinstance(found, (list, tuple, np.ndarray)) else [found]
        for root in roots:
            _as_they_are(root)
        return roots[0].figure

    return drawn


def _as_they_are(root: Any) -> None:
    """No text of a figure or of axes is a formula, except powers of ten on logarithmic axes."""
    from matplotlib.text import Text

    for text in root.findobj(Text):
        text.set_parse_math(False)
    for ax in root.axes if isinstance(root.axes, list) else [root]:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() == "log":
                for tick in (*axis.majorTicks, *axis.minorTicks):
                    tick.label1.set_parse_math(True)
