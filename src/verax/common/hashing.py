"""Hashes that are the same in every process."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np


def label_hash(label: object) -> int:
    """64 bits of a label.

    >>> label_hash("a") == label_hash("a"), label_hash(1) == label_hash("1")
    (True, False)
    """
    text = f"{type(label).__name__}:{label}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def mixed(x: Any) -> Any:
    """A good 64-bit mix of every element (splitmix64)."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def text_hashes(values: Any) -> Any:
    """A 64-bit hash of the text of each value, such as an id.

    >>> bool((text_hashes([1, 22]) == text_hashes(["1", "22"])).all())
    True
    """
    texts = np.asarray(values).astype(str)
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    state = np.zeros(len(texts), np.uint64)
    for column in points.T:
        # What is beyond the end of a text must not matter: parts have different longest texts.
        state = np.where(column > 0, mixed(state ^ column), state)
    return mixed(state)
