"""How much a report shows and computes: limits and replicate budgets, the same wherever the rows are."""

from __future__ import annotations

from verax._settings import settings
from verax.analyses.calibration.cells import default_draws
from verax.engines.counts import CONFUSION_UP_TO

# ---- what is shown; the page says what is left out -----------------------------------------------

# Worst rows (of lists, the number that version 0.2 saved), classes, subgroups drawn, reliability panels,
# places.
WORST, WORST_LISTS, CLASSES, SUBGROUPS, PANELS, PLACES = 9, 8, 20, 20, 12, 20
# Places of lists that have a reliability curve.
CURVES_OF_PLACES = 5
# Rows that a subgroup must have.
LEAST = 20
# The number of cells that the confusion matrices of all subgroups may have together.
_CELLS = 2**25

# ---- what is computed ----------------------------------------------------------------------------

# Calibration tests may cost this: classes times rows, plus a constant number of rows for every sort and fit.
# Where the fewest draws would cost more than the limit there are none, and nothing is tested.
_LIMIT, _OVERHEAD = 4.4e8, 25_000
FEWEST = 20
# Draws behind calibration tests of lists: all up to a number of entries, and a tenth up to another.
_ENTRIES, _MANY_ENTRIES = 2**15, 2**19
# Calibration slopes take several passes; beyond this number of rows times events they are not fitted.
SLOPES = 2_000_000


def replicates_for(n_rows: float, n_classes: int, n_models: int) -> int:
    """The number of draws behind calibration tests of all rows."""
    cost = n_classes * (n_rows + _OVERHEAD) * n_models
    if cost * FEWEST > _LIMIT:
        return 0
    return default_draws(n_classes)


def list_replicates(entries: float) -> int:
    """The number of draws behind calibration tests of lists."""
    most = settings.report_list_tests
    return most if entries <= _ENTRIES else most // 10 if entries <= _MANY_ENTRIES else 0


def most_subgroups(n_classes: int, n_models: int) -> int:
    """The number of subgroups tested: fewer where their confusion matrices would take much memory."""
    cells = n_classes**2 if n_classes <= CONFUSION_UP_TO else n_classes
    return min(settings.report_subgroups, max(1, _CELLS // (cells * n_models)))
