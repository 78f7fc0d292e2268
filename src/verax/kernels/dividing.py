"""Compiled division of rows into subgroups: each row is moved once, to where its subgroup lies."""

from __future__ import annotations

from typing import Any

from verax.kernels.functions import compiled

# How many rows are moved at a time: fewer would go to each place by ones and twos.
_ROWS = 4096


@compiled
def find_places(codes: Any, begins: Any, places: Any, order: Any) -> None:
    """Where each row goes if rows are put in the order of their codes, and which rows come in that order.

    `begins` are the places of the first row of each code; they are moved to the places after the last.
    """
    for i in range(codes.size):
        code = codes[i]
        place = begins[code]
        begins[code] = place + 1
        places[i] = place
        order[place] = i


@compiled
def move_columns(columns: Any, places: Any, out: Any) -> None:
    """Move the rows of (C, N) columns, given as their bits, to their places.

    Blocks of rows that fit a cache, column by column: the loop then writes to one place per subgroup, and not
    to one per subgroup and column.
    """
    for begin in range(0, places.size, _ROWS):
        end = min(begin + _ROWS, places.size)
        for c in range(columns.shape[0]):
            for i in range(begin, end):
                out[c, places[i]] = columns[c, i]
