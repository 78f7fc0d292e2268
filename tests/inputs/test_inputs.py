"""Every container that people keep predictions in gives the same numbers, and stays where it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import log_softmax

import verax as vx
from cases import NAMESPACES, RULES, forecasts
from cases import torch as tensor

Y, P = forecasts(40, 3)
NAMES = ["low", "mid", "high"]
EXPECTED = vx.brier(Y, P)


@pytest.mark.parametrize(
    "p",
    [
        P.tolist(),
        np.asfortranarray(P),
        np.repeat(P, 2, axis=1)[:, ::2],
        P[::-1][::-1],
        P.astype(">f8"),
        pd.DataFrame(P),
        pd.DataFrame(P, columns=NAMES),
        pl.DataFrame(P, schema=NAMES),
        pa.table(dict(zip(NAMES, P.T, strict=True))),
        pa.record_batch(dict(zip(NAMES, P.T, strict=True))),
    ],
    ids=lambda p: type(p).__module__ + "." + type(p).__name__,
)
def test_forecasts_in_any_container(p):
    assert vx.brier(Y, p) == pytest.approx(EXPECTED, rel=1e-14)


@pytest.mark.parametrize(
    "y",
    [
        Y.tolist(),
        tuple(Y),
        Y.astype(np.uint8),
        Y.astype(np.int16),
        Y.astype(np.uint64),
        Y.astype(float),
        pd.Series(Y),
        pd.Series(Y, dtype="Int64"),
        pl.Series(Y),
        pa.array(Y),
        pa.chunked_array([Y[:7], Y[7:]]),
        np.eye(3, dtype=bool)[Y],
        pd.DataFrame(np.eye(3)[Y]),
    ],
    ids=lambda y: type(y).__module__ + "." + type(y).__name__ + str(getattr(y, "dtype", "")),
)
@pytest.mark.parametrize("to", [np.asarray, tensor])
def test_outcomes_in_any_container(y, to):
    assert vx.brier(y, to(P)) == pytest.approx(EXPECTED, rel=0 if to is np.asarray else 1e-14, abs=0)


def test_outcomes_in_tensors():
    assert vx.brier(tensor(Y), P) == EXPECTED
    assert vx.brier(tensor(Y), tensor(P)) == pytest.approx(EXPECTED, rel=1e-14)


LABELS = [NAMES[i] for i in Y]


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        np.array(LABELS),
        np.array(LABELS, dtype=object),
        np.array(LABELS, dtype=np.dtypes.StringDType()),
        pd.Series(LABELS),
        pd.Series(LABELS, dtype="category"),
        pd.Categorical(LABELS),
        pl.Series(LABELS),
        pl.Series(LABELS, dtype=pl.Categorical),
        pa.array(LABELS),
    ],
    ids=lambda y: type(y).__module__ + "." + type(y).__name__ + str(getattr(y, "dtype", "")),
)
@pytest.mark.parametrize("to", [np.asarray, tensor])
def test_labels_in_any_container(y, to):
    exact = 0 if to is np.asarray else 1e-14
    assert vx.brier(y, to(P), classes=NAMES) == pytest.approx(EXPECTED, rel=exact, abs=0)
    assert vx.rps(y, to(P), classes=NAMES) == pytest.approx(vx.rps(Y, P), rel=exact, abs=0)
    assert vx.brier(y, pd.DataFrame(P, columns=NAMES)) == EXPECTED


def test_columns_with_names_are_put_in_the_order_of_the_classes():
    shuffled = pd.DataFrame(P, columns=NAMES)[["mid", "high", "low"]]
    assert vx.rps(LABELS, shuffled, classes=NAMES) == vx.rps(Y, P)
    with pytest.raises(vx.InputError, match="there is none for high"):
        vx.rps(LABELS, pd.DataFrame(P, columns=["low", "mid", "hihg"]), classes=NAMES)


def test_integer_outcomes_are_positions_unless_the_classes_are_numbers():
    assert vx.brier(Y, P, classes=NAMES) == EXPECTED
    assert vx.brier(Y + 1, P, classes=[1, 2, 3]) == EXPECTED
    assert vx.brier(2 - Y, P[:, ::-1], classes=[0, 1, 2]) == pytest.approx(EXPECTED, rel=1e-14)
    assert vx.brier(Y, P[:, [2, 0, 1]], classes=[2, 0, 1]) == pytest.approx(EXPECTED, rel=1e-14)
    assert vx.brier(Y / 2, P, classes=[0.0, 0.5, 1.0]) == EXPECTED
    mixed = np.array(["low", 1, None], dtype=object)
    assert vx.brier(mixed[Y], P, classes=list(mixed)) == EXPECTED


def test_numbers_among_names_are_labels_or_refused():
    y, p = [1, 2, 1], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]
    assert vx.brier(y, p, classes=[1, "tie", 2]) == vx.brier([0, 2, 0], p)
    assert vx.brier([1, "tie", 2], p, classes=[1, "tie", 2]) == vx.brier([0, 1, 2], p)
    assert vx.brier(["1", "2", "1"], p, classes=["1", "X", "2"]) == vx.brier([0, 2, 0], p)
    for classes in (["1", "X", "2"], ["1", "2", "3"]):
        with pytest.raises(vx.InputError, match="labels or positions"):
            vx.brier(y, p, classes=classes)
        with pytest.raises(vx.InputError, match="labels or positions"):
            vx.brier(y, pd.DataFrame(p, columns=classes))
    assert vx.brier(y, pd.DataFrame(p, columns=["0", "1", "2"])) == vx.brier(y, p)


def test_a_single_column_is_the_probability_of_class_1():
    y, p = forecasts(30, 2)
    assert vx.brier(y, p[:, 1]) == pytest.approx(vx.brier(y, p), rel=1e-12)
    assert vx.brier(y == 1, pd.Series(p[:, 1])) == pytest.approx(vx.brier(y, p), rel=1e-12)
    text = np.array(["no", "yes"])[y]
    assert vx.brier(text, p[:, 1], classes=["no", "yes"]) == pytest.approx(vx.brier(y, p), rel=1e-12)


@pytest.mark.parametrize("rows", [40, 200_000], ids=["array calls", "compiled"])
def test_logits_far_apart_have_finite_logarithms(rows):
    y = np.resize([0, 1, 2, 0], rows)
    far = [[0.0, 5000.0, -9000.0], [-720.0, 0.0, 3.0], [10.0, -800.0, 0.0], [1.0, 2.0, 3.0]]
    z = np.resize(far, (rows, 3))
    log_p = log_softmax(z, axis=1)
    below = np.stack([log_p[:, 0], np.logaddexp(log_p[:, 0], log_p[:, 1])])
    above = np.stack([np.logaddexp(log_p[:, 1], log_p[:, 2]), log_p[:, 2]])
    ranked = -np.where(y <= np.array([[0], [1]]), below, above).mean(axis=0)
    card = vx.evaluate(y, z, logits=True, rules=["log_score", "ranked_log", "rps"])
    assert card["log_score"] == pytest.approx(-log_p[np.arange(rows), y].mean(), rel=1e-13)
    assert card["ranked_log"] == pytest.approx(ranked.mean(), rel=1e-13)
    assert card.n_zero_probability == 0
    assert vx.log_score.samples(y, z, logits=True)[0] == 5000.0
    z[-1, y[-1]] = -np.inf
    card = vx.evaluate(y, z, logits=True, rules=["log_score"])
    assert (card["log_score"], card.zero_probability_rows) == (np.inf, (rows - 1,))


@pytest.mark.parametrize("rule", [vx.log_score, vx.ranked_log, vx.pll])
def test_gradients_survive_logits_far_apart(rule, torch):
    z = torch.tensor([[0.0, 2000.0, -3000.0]], dtype=torch.float64, requires_grad=True)
    rule.samples([0], z, logits=True).sum().backward()
    scale = 2 if rule is vx.ranked_log else 1
    assert (scale * z.grad).tolist() == [[-1.0, 1.0, 0.0]]


def test_normalize_and_logits():
    scaled = P * np.arange(1, 41)[:, None]
    assert vx.brier(Y, scaled, normalize=True) == pytest.approx(EXPECTED, rel=1e-13)
    with np.errstate(divide="ignore"):
        logits = np.log(P) + np.arange(40)[:, None]
    assert vx.brier(Y, logits, logits=True) == pytest.approx(EXPECTED, rel=1e-12)
    assert vx.brier(Y, np.array([[1000.0, 0, -1000]] * 40), logits=True) == np.mean(2.0 * (Y != 0))
    y, p = forecasts(30, 2, ties=False)
    assert vx.log_score(y, np.log(p[:, 1] / p[:, 0]), logits=True) == pytest.approx(
        vx.log_score(y, p), rel=1e-12
    )


def test_half_precision_is_scored_in_double():
    half = P.astype(np.float16)
    double = half.astype(np.float64)
    by_hand = ((double - np.eye(3)[Y]) ** 2).sum(axis=1)
    assert vx.brier.samples(Y, half).dtype == np.float64
    assert vx.brier.samples(Y, half) == pytest.approx(by_hand, rel=1e-13)


def test_brain_floats_are_scored():
    assert vx.brier(Y, tensor(P).bfloat16()) == pytest.approx(EXPECTED, rel=2e-2)


@pytest.mark.long
@pytest.mark.parametrize("make", NAMESPACES, ids=lambda make: make.__name__)
def test_weights_of_any_kind(make):
    w = np.random.default_rng(0).exponential(size=40)
    tolerance = 1e-6 if make.__name__ == "jax" else 1e-13
    expected = vx.rps(Y, P, weights=w)
    assert vx.rps(make(Y), make(P), weights=make(w)) == pytest.approx(expected, rel=tolerance)
    assert vx.rps(make(Y), make(P), weights=pd.Series(w)) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("rule", [r for r in RULES if r.bounds(4)[1] < np.inf], ids=repr)
def test_torch_differentiates_what_stays_on_its_device(rule, torch):
    y, p = forecasts(12, 4, ties=False)
    z = torch.tensor(np.log(p), requires_grad=True)
    losses = rule.samples(torch.tensor(y), z, logits=True)
    assert losses.device == z.device
    if rule.needs <= {"hit", "hit_lowest"}:
        assert not losses.requires_grad
        return
    losses.sum().backward()
    step = 1e-6
    for i, j in ((0, 0), (3, 2), (7, 1)):
        up, down = np.log(p), np.log(p)
        up[i, j] += step
        down[i, j] -= step
        slope = (rule.samples(y, up, logits=True)[i] - rule.samples(y, down, logits=True)[i]) / (2 * step)
        assert float(z.grad[i, j]) == pytest.approx(slope, abs=1e-7)


@pytest.mark.long
def test_jax_differentiates(torch):
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    y, p = forecasts(6, 3, ties=False)
    gradient = jax.grad(lambda z: vx.rps.samples(y, z, logits=True).sum())(jnp.log(p))
    z = torch.tensor(np.log(p), requires_grad=True)
    vx.rps.samples(y, z, logits=True).sum().backward()
    assert np.asarray(gradient) == pytest.approx(z.grad.numpy(), abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "k"),
    [
        (vx.rps, 3),
        (vx.pbs, 2),
        pytest.param(vx.brier, 2, marks=pytest.mark.long),
        pytest.param(vx.log_score, 3, marks=pytest.mark.long),
    ],
    ids=repr,
)
def test_jax_traces_losses_inside_jit(rule, k):
    """Inside `jit` there are no values to check; the losses are those of outside."""
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    y, p = forecasts(6, k, ties=False)
    given = jnp.asarray(p[:, 1] if k == 2 else p)
    expected = rule.samples(y, p)
    traced = jax.jit(lambda y, p: rule.samples(y, p))
    assert np.asarray(traced(jnp.asarray(y), given)) == pytest.approx(expected, abs=1e-5)
    assert np.asarray(jax.jit(lambda p: rule.samples(y, p))(given)) == pytest.approx(expected, abs=1e-5)

    def mean(z):
        return rule.samples(y, z, logits=True).mean()

    slopes = np.empty_like(p)
    for j in range(k):
        step = 1e-6 * np.eye(k)[j]
        up, down = (rule.samples(y, np.log(p) + sign * step, logits=True) for sign in (1, -1))
        slopes[:, j] = (up - down) / (2e-6 * len(y))
    assert np.asarray(jax.jit(jax.grad(mean))(jnp.log(jnp.asarray(p)))) == pytest.approx(slopes, abs=1e-5)
    with pytest.raises(vx.InputError, match="sum to 1"):
        rule.samples(y, jnp.asarray(p) * 2)


# ---- columns and labelled arrays as people have them ---------------------------------------------

TEXTS = np.array(NAMES)[Y]


def test_relations_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    rows = pd.DataFrame(P, columns=NAMES).assign(y=Y, name=TEXTS, listed=P.tolist())
    with duckdb.connect() as base:
        base.register("cases", rows)

        def ask(what):
            return base.sql(f"select {what} from cases")

        for y, p in (("y", "low, mid, high"), ("name", "high, low, mid"), ("y", "listed")):
            assert vx.brier(ask(y), ask(p)) == pytest.approx(EXPECTED, rel=1e-14)
        expected = vx.evaluate(Y, P, weights=Y + 1, groups=TEXTS)
        card = vx.evaluate(ask("y"), ask("low, mid, high"), weights=ask("y + 1"), groups=ask("name"))
        assert card["brier"] == expected["brier"]
        assert card.n_groups == 3
        with pytest.raises(vx.InputError) as caught:
            vx.brier(ask("nullif(y, 1)"), ask("low, mid, high"))
        assert caught.value.rows[0] == int(np.flatnonzero(Y == 1)[0])


def test_an_enum_of_duckdb_is_an_order():
    duckdb = pytest.importorskip("duckdb")
    rows = pd.DataFrame(P, columns=NAMES).assign(name=TEXTS)
    with duckdb.connect() as base:
        base.register("rows", rows)
        base.sql(f"create type grade as enum {tuple(NAMES)}")
        cases = base.sql("select name::grade as name, high, low, mid from rows")
        y, p = cases.project("name"), cases.project("high, low, mid")
        assert vx.rps(y, p) == vx.rps(Y, P)
        handle = vx.scan(cases, target="name", probs=["high", "low", "mid"])
        assert vx.evaluate(handle, ordered=True)["rps"] == pytest.approx(vx.rps(Y, P), rel=1e-12)
        # Texts have no order, and columns without names may be in any.
        for wrong in ((base.sql("select name from rows"), p), (y, P)):
            with pytest.raises(vx.InputError, match="order"):
                vx.rps(*wrong)


def test_labelled_arrays_of_xarray():
    xarray = pytest.importorskip("xarray")
    p = xarray.DataArray(P, dims=("case", "grade"), coords={"grade": NAMES})
    assert vx.brier(xarray.DataArray(Y, dims="case"), p) == EXPECTED
    assert vx.brier(xarray.DataArray(TEXTS, dims="case"), p) == EXPECTED
    assert vx.rps(TEXTS, p[:, ::-1], classes=NAMES) == vx.rps(Y, P)


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]"])
def test_nullable_columns(kind):
    p = pd.DataFrame(P, columns=NAMES).astype(kind)
    assert vx.brier(Y, p) == EXPECTED
    p.iloc[7, 1] = pd.NA
    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, p)
    assert (caught.value.argument, caught.value.rows[0]) == ("p", 7)


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "boolean", "bool[pyarrow]", "string[pyarrow]"])
def test_nullable_outcomes(kind):
    values = TEXTS if kind.startswith("string") else Y == 1 if kind.startswith("bool") else Y
    p = (
        np.stack([1 - P[:, 1], P[:, 1]], axis=1)
        if kind.startswith("bool")
        else pd.DataFrame(P, columns=NAMES)
    )
    y = pd.Series(values).astype(kind)
    assert vx.brier(y, p) == vx.brier(values, p)
    y.iloc[5] = pd.NA
    with pytest.raises(vx.InputError) as caught:
        vx.brier(y, p)
    assert (caught.value.argument, caught.value.rows[0]) == ("y", 5)


@pytest.mark.parametrize(
    "p",
    [
        pl.Series(P.tolist()),
        pl.Series(P.tolist(), dtype=pl.Array(pl.Float64, 3)),
        pd.Series(P.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        pl.DataFrame(P, schema=NAMES).with_columns(pl.all().cast(pl.Decimal(30, 20))),
    ],
    ids=["list", "array", "arrow list", "decimal"],
)
def test_columns_of_lists_and_decimals(p):
    assert vx.brier(Y, p) == pytest.approx(EXPECTED, rel=1e-12)


@pytest.mark.parametrize(
    "y",
    [pl.Series(TEXTS, dtype=pl.Enum(NAMES)), pd.Series(pd.Categorical(TEXTS, NAMES, ordered=True))],
    ids=["enum", "ordered categories"],
)
def test_ordered_categories_are_an_order(y):
    assert vx.rps(y, pl.DataFrame(P, schema=NAMES).select("high", "low", "mid")) == vx.rps(Y, P)
    # Columns without names may be in any order, which is not guessed.
    with pytest.raises(vx.InputError, match="order"):
        vx.rps(y, P)


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "coo_array"])
def test_sparse_forecasts_are_refused_with_a_remedy(kind):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(vx.InputError, match=r"must not be sparse\. Pass its toarray"):
        vx.brier(Y, getattr(sparse, kind)(P))
