"""Letters that tell which models differ: two models share one if and only if no difference is seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def letter_display(ranked: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """The compact letter display of names in the order of their ranks.

    Each letter marks a set of names that do not differ significantly. For every pair that differs, a set
    that holds both is split in two, and sets within others are dropped (insert and absorb).

    References
    ----------
    Piepho (2004), doi:10.1198/1061860043515

    >>> letter_display(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    >>> letter_display(["a", "b", "c"], [("a", "b")])
    {'a': 'a', 'b': 'b', 'c': 'ab'}
    """
    sets = [frozenset(ranked)]
    for pair in different:
        if not set(pair) <= set(ranked):
            continue
        split = [part for s in sets for part in ([s - {name} for name in pair] if s >= set(pair) else [s])]
        sets = [s for s in dict.fromkeys(split) if not any(s < other for other in split)]
    rank = {name: i for i, name in enumerate(ranked)}
    sets.sort(key=lambda s: sorted(rank[name] for name in s))
    return {name: "".join(_letter(i) for i, s in enumerate(sets) if name in s) for name in ranked}


def _letter(i: int) -> str:
    """One of a to z, then A to Z, then numbers in brackets: (53), (54)."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return alphabet[i] if i < len(alphabet) else f"({i + 1})"
