"""Summaries of parts that have sums for every group are merged with neighbours of about their size."""

from dataclasses import dataclass

import numpy as np
import pytest

from verax.engines.clusters import _by_label
from verax.inputs.handles import Merged, Recipe


@dataclass(frozen=True)
class Labels:
    """The groups of consecutive parts, and how many were read to merge them."""

    groups: tuple[int, ...]
    read: int = 0

    def merge(self, other):
        both = tuple(dict.fromkeys([*self.groups, *other.groups]))
        return Labels(both, self.read + other.read + len(self.groups) + len(other.groups))

    def to_bytes(self):
        raise NotImplementedError


class LabelRecipe(Recipe[Labels]):
    def take(self, part):
        return Labels(part.groups)

    def n_groups(self, found):
        return len(found.groups)


@dataclass(frozen=True)
class FewRows:
    groups: tuple[int, ...]

    @property
    def in_pairs(self):
        return self


def merged(parts):
    gathered = Merged(LabelRecipe())
    for part in parts:
        gathered.add(FewRows(part))
    assert gathered.summary() is gathered.summary()
    return gathered.summary()


@pytest.mark.parametrize("n", [1, 2, 3, 64, 100])
def test_parts_with_groups_of_their_own_are_read_a_few_times(n):
    found = merged([tuple(range(10 * i, 10 * i + 10)) for i in range(n)])
    assert found.groups == tuple(range(10 * n))
    assert found.read <= 10 * n * (1 + np.log2(n))


def test_parts_with_the_same_groups_are_merged_at_once():
    gathered = Merged(LabelRecipe())
    for _ in range(50):
        gathered.add(FewRows((1, 2, 3)))
        assert len(gathered._summaries) == 1


def test_sums_by_label_are_those_of_a_dictionary():
    rng = np.random.default_rng(0)
    sides = []
    for n in (0, 1, 7, 30):
        labels = np.sort(rng.choice(40, n, replace=False))
        sides.append((labels, rng.normal(size=(n, 2, 3))))
    for own in sides:
        for other in sides:
            expected = {}
            for labels, sums in (own, other):
                for label, each in zip(labels.tolist(), sums, strict=True):
                    expected[label] = expected.get(label, 0.0) + each
            labels, found = _by_label(*own, *other)
            assert labels.tolist() == sorted(expected)
            assert found.tolist() == [expected[label].tolist() for label in labels.tolist()]
