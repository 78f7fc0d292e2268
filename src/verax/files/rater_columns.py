"""Columns with numbers or shares of raters: which of them is about which class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from verax.errors import InputError, Remedy, join, passing
from verax.files.naming import stripped
from verax.files.predictions import short


def by_class(
    columns: tuple[str, ...],
    classes: tuple[Hashable, ...] | None,
    names: Sequence[str] | None,
    width: int,
    where: str,
) -> tuple[str, ...]:
    """The columns in the order of the classes.

    They are named like the classes, with a prefix or without. Where the caller has renamed the classes,
    `names` are what the columns of probabilities call them. Without names the order is that of the columns.

    >>> by_class(("n_dog", "n_cat"), ("cat", "dog"), None, 2, "a.csv")
    ('n_cat', 'n_dog')
    >>> by_class(("n_stage2", "n_stage1"), ("stage1", "stage2"), None, 2, "a.csv")
    ('n_stage1', 'n_stage2')
    """
    if len(columns) != width:
        raise InputError(
            f"must name a column for each of the {width} classes",
            argument="raters",
            kind="length",
            source=where,
            found=f"there {'is' if len(columns) == 1 else 'are'} {len(columns)}: {short(columns)}",
            remedies=[passing("if each column has the labels of one rater", raters_are="labels")],
        )
    if classes is None:
        return columns
    for known in filter(None, (classes, names)):
        wanted = [str(name) for name in known]
        # Classes may have a beginning in common: what columns have in common is then more than their prefix.
        for prefix in [column.removesuffix(wanted[0]) for column in columns if column.endswith(wanted[0])]:
            own = tuple(prefix + name for name in wanted)
            if sorted(own) == sorted(columns):
                return own
        bare = stripped(columns)
        if sorted(bare) == sorted(wanted):
            return tuple(columns[bare.index(name)] for name in wanted)
    raise InputError(
        "must be named like the classes, with a common prefix or without",
        argument="raters",
        kind="label",
        source=where,
        found=f"the columns are {short(columns)}, and the classes {join(list(map(str, classes[:6])))}",
        remedies=[Remedy("Rename the columns, such as n_cat and n_dog for the classes cat and dog.")],
    )
