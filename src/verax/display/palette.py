"""What all figures share: matplotlib, where it is installed, colours and line styles."""

from __future__ import annotations

from typing import Any

from verax.common.packages import needed

# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# What is context: lines of reference, models that are worse.
GREY = "#777777"
STYLES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """`matplotlib.pyplot`, imported when the first figure is drawn."""
    return needed("matplotlib.pyplot", "Drawing", "plot")
