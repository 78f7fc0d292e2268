"""Labels to class positions: every label is looked up once per row, by the quickest way its type allows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Ints

# What stands for an outcome that is none of the classes. The pass over the rows counts these.
UNKNOWN = -1
# Up to _MOST_HASHED classes, texts are looked up in a table by _DIGITS binary digits of a hash.
_MOST_HASHED, _DIGITS = 64, 12
# How many rows are looked up at a time: what a cache holds.
_PIECE = 2**14
# Texts longer than this many words are compared as texts.
_MOST_WORDS = 32


class LookUp:
    """Labels to positions: texts of fixed width by their bytes, numbers by binary search, others by hashing.

    >>> LookUp(("low", "high"))(np.array(["high", "low", "none"])).tolist()
    [1, 0, -1]
    """

    def __init__(self, classes: tuple[Hashable, ...]) -> None:
        self.classes = classes
        self._positions = {label: i for i, label in enumerate(classes)}
        # Tuples are names, not rows, so they stay objects and are looked up by hashing.
        plain = not any(isinstance(c, tuple) for c in classes)
        names = np.asarray(classes) if plain else np.empty(len(classes), np.object_)
        self._order = np.argsort(names) if names.dtype.kind in "iufUS" else None
        self._sorted = names if self._order is None else names[self._order]
        self._first: Any = classes[0] if names.dtype.kind in "iu" and _counts_up(names) else None
        self._by_width: dict[Any, _Words | None] = {}

    def __call__(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self._first == 0 and y.dtype.kind == "i":
            return y
        if self._first is not None and y.dtype.kind == "i":
            known = (y >= self._first) & (y < self._first + len(self.classes))
            return np.where(known, y - self._first, UNKNOWN)
        comparable = {"U": "U", "S": "S"}.get(self._sorted.dtype.kind, "iufb")
        if self._order is None or y.dtype.kind not in comparable:
            return self._by_hash(y)
        words = self._words(y.dtype) if y.dtype.kind in "US" else None
        if words is not None:
            return words(y)
        nearest = np.minimum(np.searchsorted(self._sorted, y), len(self.classes) - 1)
        return np.where(self._sorted[nearest] == y, self._order[nearest], UNKNOWN)

    def _words(self, dtype: np.dtype[Any]) -> _Words | None:
        if dtype not in self._by_width:
            self._by_width[dtype] = _Words.of(self.classes, dtype)
        return self._by_width[dtype]

    def _by_hash(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        values = y.tolist()
        try:
            try:
                return np.fromiter(map(self._positions.__getitem__, values), np.int64, y.size)
            except KeyError:
                return np.fromiter((self._positions.get(v, UNKNOWN) for v in values), np.int64, y.size)
        except TypeError:
            raise InputError(
                "must hold labels", argument="y", kind="type", found="some values are lists or the like"
            ) from None


class _Words:
    """Texts of one width, read as whole numbers: a hash finds the only class that a text can be."""

    def __init__(self, names: np.ndarray[Any, Any], positions: Ints, factors: np.ndarray[Any, Any]) -> None:
        # Words that all classes share tell nothing about which class it is: they are compared once each.
        varies = (names != names[0]).any(axis=0)
        varies[0] |= not varies.any()
        self._shared = [(j, names[0, j]) for j in np.flatnonzero(~varies).tolist()]
        self._own = [(j, factors[j], names[:, j].copy()) for j in np.flatnonzero(varies).tolist()]
        self._word, self._n_words, self._positions = names.dtype, names.shape[1], positions
        self._table = np.zeros(2**_DIGITS, np.int64)
        self._table[self._hash(names)] = np.arange(len(names))

    @classmethod
    def of(cls, classes: tuple[Hashable, ...], dtype: np.dtype[Any]) -> _Words | None:
        """For texts of this type; None where there are many classes, wide texts, or no hash is found."""
        size = next(n for n in (8, 4, 2, 1) if dtype.itemsize % n == 0)
        n_words = dtype.itemsize // size
        if len(classes) > _MOST_HASHED or not 0 < n_words <= _MOST_WORDS or not dtype.isnative:
            return None
        texts = np.array(classes)
        # A class that is longer than any text of this width cannot occur.
        positions = np.flatnonzero(texts.astype(dtype) == texts)
        names = texts[positions].astype(dtype).view(f"u{size}").reshape(len(positions), n_words)
        rng = np.random.default_rng(0)
        for _ in range(50 if len(positions) else 0):
            found = cls(names, positions, rng.integers(0, 2**63, n_words, np.uint64) * 2 + 1)
            if len(set(found._hash(names).tolist())) == len(names):
                return found
        return None

    def _hash(self, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        (first, factor, _), *others = self._own
        total = words[:, first] * factor
        for j, factor, _ in others:
            total += words[:, j] * factor
        return np.asarray(total >> np.uint64(64 - _DIGITS))

    def __call__(self, y: np.ndarray[Any, Any]) -> Ints:
        words = np.ascontiguousarray(y).view(self._word).reshape(len(y), self._n_words)
        positions = np.empty(len(y), np.int64)
        for start in range(0, len(y), _PIECE):
            piece = words[start : start + _PIECE]
            found = self._table[self._hash(piece)]
            (first, _, names), *others = self._own
            known = piece[:, first] == names[found]
            for j, _, names in others:
                known &= piece[:, j] == names[found]
            for j, word in self._shared:
                known &= piece[:, j] == word
            positions[start : start + _PIECE] = np.where(known, self._positions[found], UNKNOWN)
        return positions


def _counts_up(numbers: np.ndarray[Any, Any]) -> bool:
    return bool((np.diff(numbers) == 1).all())
