"""What every recalibration does unless told otherwise: the methods tried, the folds, and on how many rows.

`recalibrate`, its command, the report and the demo take these from here, so that they choose the same method
and measure the same gain.
"""

from __future__ import annotations

from verax._settings import settings
from verax.analyses.recalibration.records import BEST, BLEND, TITLES, TITLES_OF_LISTS
from verax.errors import InputError, passing

FOLDS = 5
# Methods are tried on this number of probabilities at most, unless that leaves fewer rows than the second.
_PROBABILITIES, _ENOUGH = 100_000, 2_000
# Top lists that methods are tried on.
LISTS = 10_000
# What "best" chooses among, by the kind of classes. Quadratic scaling does what beta calibration does, and
# structured scaling what vector scaling and Dirichlet calibration do, with less noise.
_MENUS = {
    "two": {"none", "temperature", "prior", "bcts", "quadratic", "spline", "isotonic"},
    "several": {"none", "temperature", "prior", "bcts", "svector", "smatrix", "isotonic"},
    "ordered": {"none", "temperature", "prior", "bcts", "ordered", "svector", "smatrix", "isotonic"},
    "many": {"none", "temperature", "prior", "bcts", "svector", "isotonic"},
}
# Beyond this number of classes, a matrix has more numbers than most data can fit.
_MANY_CLASSES = 20
# Methods that are for two classes only.
_TWO_CLASSES = {"quadratic", "beta", "spline"}


def rows_tried(n_classes: int) -> int:
    """The largest number of rows that the methods are tried on.

    >>> rows_tried(2), rows_tried(10), rows_tried(100)
    (20000, 10000, 2000)
    """
    return min(settings.recalibrated_rows, max(_PROBABILITIES // n_classes, _ENOUGH))


def methods_of(asked: list[str], n_classes: int, *, ordered: bool) -> list[str]:
    """The methods that are tried, doing nothing first; those asked for by name must fit the classes."""
    two = n_classes == 2
    if not two:
        for name in _TWO_CLASSES & set(asked):
            raise InputError(
                f"{name} is for two classes",
                argument="method",
                found=f"there are {n_classes}",
                values=[name],
                remedies=[passing("for more classes", method="smatrix")],
            )
    if "ordered" in asked and (two or not ordered):
        raise InputError(
            "ordered is for three or more classes that have an order",
            argument="method",
            found="there are 2" if two else "these classes have none",
            values=["ordered"],
            remedies=[
                passing("for two classes", method="spline") if two else passing("if they do", ordered=True)
            ],
        )
    if asked not in ([BEST], [BLEND]):
        return asked if len(asked) == 1 else [name for name in TITLES if name in ("none", *asked)]
    kind = "two" if two else "many" if n_classes > _MANY_CLASSES else "ordered" if ordered else "several"
    return [name for name in TITLES if name in _MENUS[kind]]


def methods_of_lists(asked: list[str], *, complete: bool) -> list[str]:
    """The methods that are tried on top lists; complete ones leave nothing to unlisted classes."""
    if asked != [BEST] and len(asked) == 1:
        return asked
    tried = [name for name in TITLES_OF_LISTS if not complete or name in ("none", "temperature")]
    return [name for name in tried if asked == [BEST] or name in ("none", *asked)]
