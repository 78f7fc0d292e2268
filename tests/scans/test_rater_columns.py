"""Numbers and shares of raters, and long tables, as columns of files and frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.errors import InputError

CLASSES = ["cat", "dog", "eel"]
_draw = np.random.default_rng(3)
TRUTH = _draw.dirichlet(np.ones(3), 40)
COUNTS = np.array([_draw.multinomial(1 + i % 5, q) for i, q in enumerate(TRUTH)])
P = 0.4 * TRUTH + 0.2
SHARES = COUNTS / COUNTS.sum(axis=1, keepdims=True)


def frame(p=P):
    # The columns of raters are in another order than those of probabilities.
    numbers = {f"n_{CLASSES[k]}": COUNTS[:, k].astype(float) for k in (2, 0, 1)}
    shares = {f"share {c}": SHARES[:, k] for k, c in enumerate(CLASSES)}
    return pd.DataFrame({f"p_{c}": p[:, k] for k, c in enumerate(CLASSES)} | numbers | shares)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts")
    frame().to_csv(path / "counts.csv", index=False)
    frame().to_parquet(path / "counts.parquet")
    frame(0.5 * P + 1 / 6).to_csv(path / "flat.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


def scanned(source, columns="n_*", kind="counts", **options):
    return vx.scan(source, probs="p_*", raters=columns, raters_are=kind, **options)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "dask"])
def test_numbers_of_raters_are_columns_named_like_the_classes(kind, change):
    source = frame() if kind in ("frame", "dask") else f"counts.{kind}"
    if kind == "dask":
        # As few rows as these need no compiled loops.
        change(kernels=False)
        source = pytest.importorskip("dask.dataframe").from_pandas(source, npartitions=2)
    handle = scanned(source)
    assert handle.rated
    assert handle.taken[0] == "numbers of raters: n_cat, n_dog, n_eel"
    exact = vx.raters(COUNTS, P, raters="counts")
    found = vx.raters(handle)
    for name in ("loss", "disagreement", "worth"):
        assert getattr(found, name).value == pytest.approx(getattr(exact, name).value, rel=1e-12)
    assert found.n_rated == exact.n_rated
    shares = scanned(source, [f"share {c}" for c in CLASSES], "shares")
    assert vx.evaluate(shares, rules="brier")["brier"] == pytest.approx(exact.loss.value, rel=1e-12)


def test_classes_may_have_a_beginning_in_common():
    stages = [f"stage{k}" for k in (1, 2, 3)]
    numbers = {f"n_{stages[k]}": COUNTS[:, k] for k in (2, 0, 1)}
    table = pd.DataFrame({f"p_{c}": P[:, k] for k, c in enumerate(stages)} | numbers)
    exact = vx.evaluate(COUNTS, P, raters="counts", rules="brier")["brier"]
    for given in ({}, {"classes": stages}):
        found = vx.evaluate(scanned(table, **given), rules="brier")["brier"]
        assert found == pytest.approx(exact, rel=1e-12)


def test_classes_may_be_put_in_order_or_renamed():
    exact = vx.evaluate(COUNTS[:, ::-1], P[:, ::-1], raters="counts", rules="rps", ordered=True)
    found = vx.evaluate(scanned("counts.csv", classes=CLASSES[::-1]), rules="rps", ordered=True)
    assert found["rps"] == pytest.approx(exact["rps"], rel=1e-12)
    renamed = vx.evaluate(scanned("counts.csv", classes=["Katze", "Hund", "Aal"]), rules="brier")
    assert renamed["brier"] == pytest.approx(vx.evaluate(COUNTS, P, raters="counts")["brier"], rel=1e-12)
    table = frame().rename(columns={f"n_{c}": f"n{i}" for i, c in enumerate(CLASSES)})
    lists = table.assign(p=list(map(list, P)))
    assert vx.evaluate(
        vx.scan(lists, probs="p", raters=["n0", "n1", "n2"], raters_are="counts"), rules="brier"
    )["brier"] == pytest.approx(renamed["brier"], rel=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"raters_are": "count"}, "must be one of 'labels', 'counts', 'shares'"),
        ({"raters": ["n_cat", "n_dog"]}, "a column for each of the 3 classes; there are 2"),
        ({"raters": ["n_cat", "n_dog", "share eel"]}, "must be named like the classes"),
        ({"raters": "m_*"}, "There is no column 'm_*'"),
        ({"raters": ()}, "is about the columns of raters"),
        ({"raters": "n_*", "raters_are": "labels"}, "raters_are='counts' if these are numbers of raters"),
    ],
)
def test_columns_that_cannot_be_numbers_of_raters_are_refused(options, words):
    given = {"raters": "n_*", "raters_are": "counts"} | options
    with pytest.raises(InputError) as refused:
        vx.evaluate(vx.scan("counts.parquet", probs="p_*", **given))
    assert words in str(refused.value)


def test_invalid_numbers_are_named_or_left_out():
    table = frame()
    table.loc[3, "n_cat"], table.loc[7, "n_dog"], table.loc[9, "n_eel"] = -1, np.nan, 0.5
    table.loc[5, ["n_cat", "n_dog", "n_eel"]] = 0
    with pytest.raises(InputError, match="not negative; rows 3, 7 and 9 hold -1, nan and 0"):
        vx.evaluate(scanned(table))
    found = vx.evaluate(scanned(table, invalid="skip"), rules="brier")
    assert found.skipped.rows == (3, 5, 7, 9)
    kept = np.delete(np.arange(40), [3, 5, 7, 9])
    assert found["brier"] == pytest.approx(
        vx.evaluate(COUNTS[kept], P[kept], raters="counts")["brier"], rel=1e-12
    )


@pytest.mark.long
def test_the_command_line_reads_and_compares_them():
    options = ("--probs", "p_*", "--raters", "n_*", "--raters-are", "counts")
    done = verax("raters", "counts.csv", *options)
    assert vx.raters(COUNTS, P, raters="counts").verdict in done.stdout
    done = verax("compare", "counts.csv", "flat.csv", *options, "--rule", "brier", "--json")
    assert done.returncode == 0, done.stderr
    other = frame().assign(n_cat=COUNTS[:, 0] + (np.arange(40) == 4))
    other.to_csv("other.csv", index=False)
    done = verax("compare", "counts.csv", "other.csv", *options)
    assert "differ in 1 of 40 rows: row 4" in done.stderr


def test_long_tables_are_read_from_frames():
    labels = pd.DataFrame({who: [CLASSES[_draw.choice(3, p=q)] for q in TRUTH] for who in ("ann", "bob")})
    wide = frame()[["p_cat", "p_dog", "p_eel"]].assign(case=range(40), **labels)
    long = wide.melt(["case", "p_cat", "p_dog", "p_eel"], ["ann", "bob"], "who", "label")
    options = {"id": "case", "rater_column": "who", "label_column": "label"}
    exact = vx.raters(labels, P, raters="columns", classes=CLASSES)
    assert vx.raters(vx.scan(long, **options)).worth.value == pytest.approx(exact.worth.value, rel=1e-12)
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(InputError, match="may be in several partitions"):
        vx.scan(dask.from_pandas(long, npartitions=2), **options)
