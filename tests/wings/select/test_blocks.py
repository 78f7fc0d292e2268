"""Blocks and windows: disjoint, complete, apart, and never past the end or across a boundary."""

from __future__ import annotations

import pickle
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate

import verax as vx
from verax.selection import HBlockSplit, sliding_windows


def len_of(groups):
    return 0 if groups is None else len(np.unique(groups))


@st.composite
def designs(draw):
    """A splitter and as many rows a series as it needs, with the rows' series in a random order."""
    n_validation, n_test, gap_blocks = (
        draw(st.integers(0, 3)),
        draw(st.integers(1, 4)),
        draw(st.integers(0, 2)),
    )
    least = n_validation + n_test + gap_blocks * (3 if n_validation else 2) + 1
    n_blocks = draw(st.integers(max(2, least), least + 8))
    gap = draw(st.integers(0, 3))
    step = draw(st.integers(1, n_blocks))
    split = HBlockSplit(
        n_blocks, n_validation=n_validation, n_test=n_test, gap_blocks=gap_blocks, gap=gap, step=step
    )
    # Blocks longer than two gaps, so that every design leaves rows in every part.
    sizes = draw(st.lists(st.integers(n_blocks * (2 * gap + 1), n_blocks * 9), min_size=1, max_size=3))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return split, draw(st.sampled_from([groups, np.random.default_rng(0).permutation(groups)]))


@pytest.mark.long
@given(designs())
def test_parts_are_disjoint_apart_and_within_the_table(design):
    split, groups = design
    n = len(groups)
    folds = list(split.split_three(np.zeros((n, 2)), groups=groups))
    assert len(folds) == split.get_n_splits() == len(range(0, split.n_blocks, split.step))
    for fold in folds:
        together = np.concatenate(fold)
        assert len(set(together.tolist())) == len(together) <= n
        assert together.min() >= 0
        assert together.max() < n
        if not split.gap and not split.gap_blocks:
            assert len(together) == n
        if not split.n_validation:
            assert not len(fold.validation)
        assert all((np.diff(part) > 0).all() for part in fold)
        role = np.full(n, -1)
        for i, part in enumerate(fold):
            role[part] = i
        for series in np.unique(groups):
            own = role[groups == series]
            assert {0, 2} <= set(own.tolist())
            places = np.flatnonzero(own >= 0)
            # Between neighbours of different parts lie at least so many rows that are left out.
            smallest_block = len(own) // split.n_blocks
            left_out = max(split.gap, split.gap_blocks * smallest_block)
            for a, b in pairwise(places):
                if own[a] != own[b]:
                    assert b - a - 1 >= left_out


@given(designs())
def test_rows_left_out_are_named(design):
    split, groups = design
    for fold in split.split_three(groups, groups=groups):
        assert sorted(np.concatenate([*fold, fold.left_out]).tolist()) == list(range(len(groups)))
        again = pickle.loads(pickle.dumps(fold))
        np.testing.assert_array_equal(again.left_out, fold.left_out)


@st.composite
def tables(draw):
    """A splitter with any options, classes in any order, and groups of three kinds."""
    n_validation, gap_blocks = draw(st.integers(0, 2)), draw(st.integers(0, 1))
    n_blocks = n_validation + 1 + 3 * gap_blocks + draw(st.integers(1, 6))
    split = HBlockSplit(
        n_blocks,
        n_validation=n_validation,
        gap_blocks=gap_blocks,
        gap=draw(st.integers(0, 6)),
        per_class=draw(st.booleans()),
    )
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    sizes = draw(st.lists(st.integers(n_blocks, n_blocks * 6), min_size=1, max_size=3))
    y = np.repeat(np.arange(len(sizes)), sizes)
    y = draw(st.sampled_from([y, rng.permutation(y)]))
    halves = np.arange(len(y)) * 2 // len(y)
    return split, y, draw(st.sampled_from([None, halves, rng.permutation(halves)]))


@pytest.mark.long
@given(tables())
def test_no_row_is_within_the_gap_of_a_row_of_another_part_whatever_the_options(table):
    split, y, groups = table
    mixed = groups is not None and (np.diff(groups) != 0).sum() > 1
    recordings = groups if mixed else np.zeros(len(y), int)
    keys = np.stack([np.zeros_like(y) if groups is None else groups, y * split.per_class], axis=1)
    series = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    length = np.bincount(series)[series] // split.n_blocks
    folds = split.split_three(y, y, groups)
    while True:
        try:
            fold = next(folds)
        except StopIteration:
            break
        except vx.InputError:
            return  # too few rows, which is said
        for recording in np.unique(recordings):
            rows = np.flatnonzero(recordings == recording)
            place = {int(row): i for i, row in enumerate(rows)}
            inside = [[row for row in part.tolist() if row in place] for part in fold]
            for a, b in combinations(inside, 2):
                for i, j in product(a, b):
                    between = abs(place[i] - place[j]) - 1
                    assert between >= split.gap
                    assert between >= split.gap_blocks * min(length[i], length[j])
            if not split.gap_blocks:
                # Nothing is left out in vain.
                held_out = [place[row] for part in inside[1:] for row in part]
                for row in set(fold.left_out.tolist()) & set(place):
                    assert min(abs(i - place[row]) for i in held_out) <= split.gap


@pytest.mark.parametrize(
    "options", [{"gap": 10}, {"gap_blocks": 1}, {"gap": 10, "gap_blocks": 1, "n_validation": 1}], ids=str
)
@pytest.mark.parametrize("groups", [None, np.repeat([0, 1], 300), np.repeat([0, 1, 2], 200)], ids=len_of)
def test_gaps_hold_across_classes(options, groups):
    # Blocks of a class have 20 rows or, with two groups, 10 where a class is cut in two.
    y = np.repeat([0, 1, 2], 200)
    for fold in HBlockSplit(10, per_class=True, **options).split_three(y, y, groups):
        for a, b in combinations(fold, 2):
            if len(a) and len(b):
                assert np.abs(a[:, None] - b).min() > 10 - (len_of(groups) == 2)
        assert all(set(y[part].tolist()) == {0, 1, 2} for part in fold if len(part))
        assert len(np.concatenate([*fold, fold.left_out])) == 600


@pytest.mark.long
@given(designs())
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_every_row_is_tested_and_validates_equally_often(design):
    split, groups = design
    assume(split.step == 1 or (split.step == split.n_test and split.n_blocks % split.n_test == 0))
    folds = list(split.split_three(groups, groups=groups))
    tested = np.bincount(np.concatenate([fold.test for fold in folds]), minlength=len(groups))
    assert (tested == (split.n_test if split.step == 1 else 1)).all()
    if split.step == 1 and not split.gap:
        validates = np.concatenate([fold.validation for fold in folds])
        assert (np.bincount(validates, minlength=len(groups)) == split.n_validation).all()


@given(st.integers(2, 30), st.integers(0, 200))
def test_a_row_is_tested_exactly_once_in_the_plain_design(n_blocks, more):
    n = n_blocks + more
    tests = [test for _, test in HBlockSplit(n_blocks).split(range(n))]
    assert np.concatenate(tests).tolist() == list(range(n))
    sizes = [len(test) for test in tests]
    assert max(sizes) - min(sizes) <= 1


def test_the_designs_of_the_paper():
    # Algorithm 4 with h = 10: two blocks for validation and three for testing; its fold 8 would test
    # blocks 10, 11 and 12 of 10.
    split = HBlockSplit(10, n_validation=2, n_test=3)
    folds = list(split.split_three(range(100)))
    assert [len(part) for part in folds[0]] == [50, 20, 30]
    assert all([len(part) for part in fold] == [50, 20, 30] for fold in folds)
    assert sorted(set((folds[8].test // 10).tolist())) == [0, 1, 2]
    assert sorted(set((folds[8].validation // 10).tolist())) == [8, 9]
    # 6 blocks, 4/1/1, within each of two classes.
    y = np.repeat(["a", "b"], [60, 120])
    for fold in HBlockSplit(6, n_validation=1, per_class=True).split_three(y, y):
        for part, blocks in zip(fold, (4, 1, 1), strict=True):
            assert [(y[part] == label).sum() for label in "ab"] == [10 * blocks, 20 * blocks]


def test_gaps_by_hand():
    def show(split, n=12, **kwargs):
        pictures = []
        for fold in split.split_three(range(n), **kwargs):
            picture = np.full(n, ".")
            for part, letter in zip(fold, "tve", strict=True):
                picture[part] = letter
            pictures.append("".join(picture))
        return pictures

    assert show(HBlockSplit(4, gap=1)) == ["eee.tttttttt", "tt.eee.ttttt", "ttttt.eee.tt", "tttttttt.eee"]
    assert show(HBlockSplit(6, gap_blocks=1, step=3)) == ["ee..tttttttt", "tttt..ee..tt"]
    # Validation gives way to testing; the two ends of a series are no neighbours.
    assert show(HBlockSplit(4, n_validation=1, gap=1, step=2)) == ["vv.eee.ttttt", "ttttt.vv.eee"]
    # The block between validation and testing is a gap, too; the second fold goes round: validation in
    # block 4, a gap in 5, testing in 0.
    pictures = show(HBlockSplit(6, n_validation=1, gap_blocks=1, step=4))
    assert pictures == ["vv..ee..tttt", "ee..tt..vv.."]


def test_it_is_a_scikit_learn_splitter():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    x = rng.normal(size=(180, 3)) + y[:, None]
    split = HBlockSplit(6, per_class=True, gap=1)
    model = LogisticRegression()
    scores = cross_val_score(model, x, y, cv=split)
    assert scores.shape == (6,)
    by_hand = [model.fit(x[train], y[train]).score(x[test], y[test]) for train, test in split.split(x, y)]
    np.testing.assert_allclose(scores, by_hand)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=split).fit(x, y)
    assert search.n_splits_ == 6
    assert cross_val_predict(model, x, y, cv=split).shape == (180,)
    assert repr(HBlockSplit(6, gap=2)).startswith("HBlockSplit(gap=2, gap_blocks=0, n_blocks=6, n_test=1,")


def test_groups_reach_it_with_and_without_routing():
    import sklearn

    y = np.tile([0, 1], 60)
    x = np.random.default_rng(0).normal(size=(120, 2)) + y[:, None]
    groups = np.repeat([0, 1, 2], 40)
    split = HBlockSplit(5)
    plain = cross_validate(LogisticRegression(), x, y, cv=split, groups=groups)["test_score"]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(LogisticRegression(), x, y, cv=split, params={"groups": groups})
    np.testing.assert_array_equal(plain, routed["test_score"])
    ungrouped = cross_validate(LogisticRegression(), x, y, cv=split)["test_score"]
    assert not np.array_equal(plain, ungrouped)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HBlockSplit(1), "`n_blocks` must be a whole number of at least 2, not 1"),
        (lambda: HBlockSplit(5, n_test=0), "`n_test` must be a whole number of at least 1, not 0"),
        (lambda: HBlockSplit(5, gap=-1), "`gap` must be a whole number of at least 0, not -1"),
        (lambda: HBlockSplit(5, step=6), "`step` must be at most the 5 blocks, not 6"),
        (lambda: HBlockSplit(5, n_test=2, n_validation=3), "take 5 of 5"),
        (lambda: HBlockSplit(6, n_validation=1, gap_blocks=2), "take 8 of 6"),
        (lambda: list(HBlockSplit(5).split(range(4))), "the one has 4 rows for 5 blocks"),
        (
            lambda: list(HBlockSplit(3, per_class=True).split(range(5), list("aaabb"))),
            "the one of 'b' has 2 rows for 3 blocks",
        ),
        (
            lambda: list(HBlockSplit(3).split(range(5), groups=[1, 1, 1, 2, 2])),
            "the one of 2 has 2 rows for 3 blocks",
        ),
        (lambda: list(HBlockSplit(3, per_class=True).split(range(5))), "`y` must be given"),
        (lambda: list(HBlockSplit(3).split(range(5), groups=[1])), "one label for each of the 5 rows"),
        (lambda: list(HBlockSplit(3, gap=5).split(range(9))), "`gap` must leave rows for training; 5 rows"),
        (lambda: list(HBlockSplit(3).split(7)), "`X` must have rows"),
        (lambda: list(HBlockSplit(3).split([])), "`X` must have rows"),
    ],
)
def test_refusals_of_the_splitter(make, message):
    with pytest.raises(vx.InputError, match=message):
        make()


# ---- windows -----------------------------------------------------------------------------------


def by_loop(x, length, step, series, rows):
    """The windows one by one: every stretch of consecutive chosen rows of one series, cut from its start."""
    chosen, stretches = sorted(rows), []
    for row in chosen:
        if stretches and stretches[-1][-1] == row - 1 and series[row - 1] == series[row]:
            stretches[-1].append(row)
        else:
            stretches.append([row])
    starts = [s[i] for s in stretches for i in range(0, len(s) - length + 1, step)]
    used = {row + i for row in starts for i in range(length)}
    return starts, [x[s : s + length] for s in starts], len(set(chosen) - used)


@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 2), min_size=n, max_size=n), st.sets(st.integers(0, n - 1), min_size=1)
        )
    ),
    st.integers(1, 7),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_windows_are_those_of_a_loop(labels_and_rows, length, step, channels):
    labels, rows = labels_and_rows
    shape = (len(labels), channels) if channels else (len(labels),)
    x = np.random.default_rng(0).normal(size=shape)
    starts, expected, unused = by_loop(x, length, step, labels, rows)
    kwargs = {"step": step, "series": labels, "rows": sorted(rows)}
    if not starts:
        with pytest.raises(vx.InputError, match="no stretch of"):
            sliding_windows(x, length, **kwargs)
        return
    windows = sliding_windows(x, length, **kwargs)
    assert windows.starts.tolist() == starts
    assert windows.unused == unused
    assert windows.shape == windows.values.shape == np.asarray(windows).shape
    np.testing.assert_array_equal(windows.values, np.array(expected))
    np.testing.assert_array_equal(windows[:], windows.values)
    np.testing.assert_array_equal(x[windows.rows], windows.values)
    assert windows.series.tolist() == [labels[s] for s in starts]


@pytest.mark.parametrize(
    ("length", "overlap", "step"),
    [(10, 0.9, 1), (30, 0.75, 7), (8, 0.75, 2), (4, 0, 4), (3, 0.9, 1), (10, 0.5, 5)],
)
def test_overlap_as_a_step(length, overlap, step):
    windows = sliding_windows(np.arange(100.0), length, overlap=overlap)
    assert windows.step == step
    assert (np.diff(windows.starts) == step).all()


def test_even_windows_are_views():
    x = np.zeros((100, 3))
    assert np.shares_memory(sliding_windows(x, 8, overlap=0.75).values, x)
    halves = np.repeat([0, 1], 50)
    assert not np.shares_memory(sliding_windows(x, 8, overlap=0.75, series=halves).values, x)
    with pytest.raises(ValueError, match="read-only"):
        sliding_windows(x, 8).values[0] = 1


@pytest.mark.long
@given(designs(), st.integers(1, 4), st.integers(1, 4))
def test_windows_of_the_parts_of_a_fold_share_no_row(design, length, step):
    split, groups = design
    groups = np.sort(groups)
    x = np.arange(len(groups))
    for fold in split.split_three(x, groups=groups):
        seen = []
        for part in fold:
            try:
                windows = sliding_windows(x, length, step=step, series=groups, rows=part)
            except vx.InputError:
                continue  # no stretch is long enough
            assert set(windows.values.reshape(-1).tolist()) <= set(part.tolist())
            assert (groups[windows.rows] == windows.series[:, None]).all()
            seen.append(set(windows.values.reshape(-1).tolist()))
        assert len(set().union(*seen)) == sum(len(rows) for rows in seen)


@pytest.mark.parametrize(("length", "step"), [(5, 1), (6, 2), (7, 3), (4, 4)])
def test_windows_cut_before_the_split_stay_apart_with_a_gap(length, step):
    def shared(gap):
        folds = HBlockSplit(4, n_validation=1, gap=gap).split_three(windows)
        rows = [[set(windows.rows[part].reshape(-1).tolist()) for part in fold] for fold in folds]
        return any(a & b for fold in rows for a, b in combinations(fold, 2))

    windows = sliding_windows(np.arange(200), length, step=step)
    gap = -(-length // step) - 1
    assert not shared(gap)
    if gap:
        assert shared(gap - 1)


def test_windows_of_frames():
    import pandas as pd

    frame = pd.DataFrame({"a": range(6), "b": range(6, 12)})
    windows = sliding_windows(frame, 3, series=pd.Series(list("xxxyyy")))
    assert windows.values.tolist() == [[[0, 6], [1, 7], [2, 8]], [[3, 9], [4, 10], [5, 11]]]
    assert repr(windows) == "Windows: 2 of 3 rows, a step of 3, 2 series, 0 rows unused"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"length": 0}, "`length` must be a whole number of at least 1, not 0"),
        ({"length": 2.0}, "`length` must be a whole number"),
        ({"length": 2, "step": 0}, "`step` must be a whole number of at least 1, not 0"),
        ({"length": 2, "step": 1, "overlap": 0.5}, "together with an overlap"),
        ({"length": 2, "overlap": 1.0}, "`overlap` must be a share from 0 to below 1, not 1"),
        ({"length": 2, "overlap": 75}, "Pass step=... for a number of rows"),
        ({"length": 11}, "no stretch of 10 rows is 11 rows long"),
        ({"length": 2, "series": [1]}, "one label for each of the 10 rows"),
        ({"length": 2, "rows": [3, 2]}, "`rows` must ascend"),
        ({"length": 2, "rows": [9, 10]}, "between 0 and 9; it goes from 9 to 10"),
        ({"length": 2, "rows": np.ones(10, bool)}, "np.flatnonzero"),
    ],
)
def test_refusals_of_windows(kwargs, message):
    with pytest.raises(vx.InputError, match=message):
        sliding_windows(np.zeros(10), **kwargs)


def test_windows_of_a_cube_are_refused():
    with pytest.raises(vx.InputError, match=r"`x` must have shape"):
        sliding_windows(np.zeros((2, 2, 2)), 1)
