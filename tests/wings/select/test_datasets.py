"""Models compared over data sets: tests against other packages, forms of tables, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import verax as vx
from verax.inference.signflips import friedman, midranks, shift, signed_rank

# Multiples of 1/64, with ties and zeros: their differences and sums are exact.
V = (
    np.array(
        [
            *([20, 24, 26], [20, 22, 24], [15, 16, 18], [13, 12, 14], [8, 9, 8], [13, 13, 17]),
            *([13, 15, 17], [7, 6, 10], [6, 6, 11], [24, 27, 29], [17, 20, 20], [11, 12, 12]),
        ]
    )
    / 64
)
NAMES = ["a", "b", "c"]
MAPPING = {f"data {i}": dict(zip(NAMES, row, strict=True)) for i, row in enumerate(V.tolist())}
LONG = pd.DataFrame(
    [(data, model, score) for data, own in MAPPING.items() for model, score in own.items()],
    columns=["dataset", "model", "brier"],
)


@pytest.fixture(scope="module")
def found():
    return vx.compare_datasets(MAPPING, rope=1 / 64, draws=100_000, better="lower")


def test_pairs_are_those_of_scikit_posthocs(found):
    # scikit-posthocs 0.17.1: posthoc_wilcoxon(long, "s", "m", zero_method="pratt", p_adjust="holm")
    expected = {("a", "b"): 0.03515625, ("a", "c"): 0.0029296875, ("b", "c"): 0.0078125}
    assert {(d.a, d.b): d.p_adjusted for d in found.differences} == pytest.approx(expected, rel=1e-12)
    gap = found.difference("b", "a")
    assert (gap.wins, gap.ties, gap.losses) == (2, 2, 8)
    assert gap.difference == -found.difference("a", "b").difference


def test_mean_ranks_are_those_of_autorank_and_friedman_that_of_scipy(found):
    # autorank 1.3.0: autorank(frame, order="ascending", force_mode="nonparametric").rankdf.meanrank
    ranks = [m.mean_rank for m in found.models]
    assert ranks == pytest.approx([1.2916666666666667, 1.9166666666666667, 2.7916666666666665])
    statistic, p = stats.friedmanchisquare(*V.T)
    assert found.friedman.statistic == pytest.approx(statistic)
    # autorank's p-value, which is that of chi-squared.
    assert p == pytest.approx(0.0004981291571838411)
    f = 11 * statistic / (12 * 2 - statistic)
    assert found.friedman.p_value == pytest.approx(stats.f.sf(f, 2, 22))
    assert found.leader() == found.best() == "a"
    assert [m.best_on for m in found.models] == [10, 4, 1]


def test_probabilities_of_practical_equivalence_are_those_of_baycomp(found):
    # baycomp 1.0.3: SignedRankTest(a, b, rope=1/64, nsamples=1000000, random_state=1).probs()
    gap = found.difference("a", "b")
    assert (gap.worse, gap.alike, gap.better) == pytest.approx((0, 0.328212, 0.671788), abs=0.006)
    # SignedRankTest(b, c, rope=2/64, ...) and SignedRankTest(a, b, rope=0, ...).
    wider = vx.compare_datasets(MAPPING, rope=2 / 64, better="lower").difference("b", "c")
    assert (wider.worse, wider.alike, wider.better) == pytest.approx((0, 0.573899, 0.426101), abs=0.012)
    none = vx.compare_datasets(MAPPING, better="higher").difference("a", "b")
    assert (none.better, none.alike) == pytest.approx((0.004212, 0), abs=0.002)


def test_the_signed_rank_test_counts_all_signs():
    d = np.array([0, 0, 0.1, 0.1, -0.1, 0.3, 0.3, -0.5, 0.7])
    ranks = stats.rankdata(np.abs(d))[d != 0]
    sums = np.array([sum(own) for own in itertools.product(*[(0, rank) for rank in ranks])])
    seen = ranks[d[d != 0] > 0].sum()
    extreme = np.abs(sums - ranks.sum() / 2) >= abs(seen - ranks.sum() / 2) - 1e-9
    assert signed_rank(d).p_value == pytest.approx(extreme.mean())
    assert signed_rank(np.zeros(6)).p_value == 1
    rng = np.random.default_rng(0)
    for n, method in ((6, "exact"), (40, "exact"), (150, "approx")):
        d = rng.normal(0.3, 1, n)
        expected = stats.wilcoxon(d, zero_method="pratt", method=method).pvalue
        assert signed_rank(d).p_value == pytest.approx(expected)


def test_ties_that_rounding_splits_are_ties():
    """Two decimals, as whole numbers of hundredths: SciPy's exact permutation of signs, with midranks."""
    a, b = [71, 82, 65, 90, 77, 58, 69, 83], [70, 84, 62, 88, 78, 55, 70, 81]
    gaps = np.subtract(a, b)
    ranks = stats.rankdata(np.abs(gaps))
    sums = np.array(list(itertools.product((-1, 1), repeat=8))) @ ranks
    expected = np.mean(np.abs(sums) >= abs((np.sign(gaps) * ranks).sum()))
    for scale in (100, 10, 1, 0.1):
        table = np.column_stack([a, b]) / scale
        (found,) = vx.compare_datasets(table, better="higher").differences
        assert found.p_value == pytest.approx(expected), scale
        assert (found.wins, found.ties, found.losses) == (5, 0, 3)


def test_typical_differences_are_those_that_the_test_does_not_reject():
    d = np.random.default_rng(1).normal(1, 2, 12)
    middle, low, high = shift(d, 0.95)
    assert low < middle < high
    for end, inward in ((low, 1e-9), (high, -1e-9)):
        assert signed_rank(d - end - inward).p_value > 0.05
        assert signed_rank(d - end + inward).p_value <= 0.05
    assert np.isnan(shift(d[:5], 0.95)[1])
    many = np.random.default_rng(2).normal(size=400)
    _, low, high = shift(many, 0.95)
    assert low < 0 < high
    assert high - low < 0.3


def test_ranks_and_extreme_tables():
    table = np.random.default_rng(3).integers(0, 4, (5, 6)).astype(float)
    assert np.array_equal(midranks(table), stats.rankdata(table, axis=1))
    assert friedman(np.full((6, 3), 2.0)).p_value == 1
    assert friedman(np.tile([1.0, 2.0, 3.0], (6, 1))).p_value == 0
    always = vx.compare_datasets(np.tile([0.1, 0.2, 0.3], (8, 1)), better="lower")
    low, high = always.models[0].interval
    assert (low, always.models[1].mean_rank) == (1, 2)
    assert high > 1.1
    rounded = vx.compare_datasets([[0.3, 0.1 + 0.2]] * 6, better="lower")
    assert rounded.differences[0].ties == 6


TABLES = {
    "long frame": lambda: vx.compare_datasets(LONG, better="lower"),
    "named columns": lambda: vx.compare_datasets(
        pl.DataFrame({"x": LONG.dataset, "y": LONG.model, "n": range(36), "z": LONG.brier}),
        better="lower",
        datasets="x",
        models="y",
        scores="z",
    ),
    "wide frame": lambda: vx.compare_datasets(
        pd.DataFrame(V, columns=NAMES).assign(dataset=list(MAPPING)), better="lower"
    ),
    "wide array": lambda: vx.compare_datasets(V, datasets=list(MAPPING), models=NAMES, better="lower"),
    "long arrays": lambda: vx.compare_datasets(
        better="lower", datasets=LONG.dataset, models=LONG.model.to_numpy(), scores=LONG.brier
    ),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_of_every_form_say_the_same(make):
    expected = vx.compare_datasets(MAPPING, better="lower")
    own = make()
    assert own.datasets == expected.datasets
    assert np.array_equal(own.values, expected.values)
    assert own.differences == expected.differences


def test_comparisons_cards_and_folds_of_each_data_set():
    rng = np.random.default_rng(0)
    sets = {f"d{i}": rng.integers(0, 2, 30) for i in range(6)}
    models = {name: {"a": 0.3 + 0.4 * y, "b": rng.random(30)} for name, y in sets.items()}
    rules = ["brier", "log_score"]
    compared = {name: vx.compare(y, models[name], rule=rules) for name, y in sets.items()}
    cards = {
        name: {m: vx.evaluate(y, p, rules=rules) for m, p in models[name].items()} for name, y in sets.items()
    }
    folded = {
        name: vx.compare_folds(y, models[name], folds=np.arange(30) % 3, rule=rules)
        for name, y in sets.items()
    }
    first = vx.compare_datasets(compared)
    assert (first.score, first.best()) == ("brier", "a")
    for table in (cards, folded):
        assert vx.compare_datasets(table).values == pytest.approx(first.values)
    logs = vx.compare_datasets(compared, rule="log_score")
    assert vx.compare_datasets(cards, rule="log_score").values == pytest.approx(logs.values)
    with pytest.raises(vx.InputError, match="'d0' has brier and log_score"):
        vx.compare_datasets(compared, rule="rps")


def test_fewer_than_six_data_sets_are_not_tested():
    few = vx.compare_datasets(V[:5], models=NAMES, better="lower")
    assert not few.tested
    assert np.isnan(few.differences[0].p_adjusted)
    assert not few.models[0].interval.defined
    assert few.leader() is None
    assert few.models[0].letters == ""
    assert "No test: with 5 data sets" in repr(few)
    assert "there is no test" in few.verdict
    assert vx.compare_datasets(V[:6], models=NAMES, better="lower").tested


def test_data_sets_that_lack_a_model_are_left_out_on_request():
    table = {**MAPPING, "other": {"a": 0.1, "b": 0.2}, "third": {"c": None, "a": 1, "b": 2}}
    with pytest.raises(vx.InputError, match=r"'other' lacks c; 'third' lacks c \(2 of 14.*missing='drop'"):
        vx.compare_datasets(table, better="lower")
    found = vx.compare_datasets(table, missing="drop", better="lower")
    assert found.left_out == ("other", "third")
    assert "2 data sets left out" in repr(found)
    assert found.differences == vx.compare_datasets(MAPPING, better="lower").differences


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": pd.concat([LONG, LONG[:2]])}, r"'data 0' and 'a' are in rows 0 and 36 \(2 such pairs\)"),
        ({"table": {"d": {"a": 1.0}}}, "must name at least two models"),
        ({"table": {"d": {"a": 1.0, "b": np.inf}}}, "b on 'd' is infinite"),
        ({"table": {"d": 3}}, "that of 'd' is a int"),
        ({"table": MAPPING, "models": NAMES}, "`models` cannot be used beside this table"),
        ({"table": LONG, "scores": "nothing"}, "`scores` must be one of the columns"),
        ({"table": V, "models": ["a", "a", "b"]}, "`models` must have different names; 'a' is there twice"),
        ({"table": V, "models": ["a", "b"]}, r"its shape is \(12, 3\)"),
        ({"table": "scores.csv"}, "not a str"),
        ({"datasets": [1, 2], "models": ["a", "b"]}, "`scores` must be an array"),
        ({"datasets": [1, 2], "models": ["a", "b"], "scores": ["x", "y"]}, "must be numbers"),
        ({"datasets": [1, 2], "models": ["a", "b"], "scores": [1.0]}, "2 models and 1 scores"),
        ({"table": LONG.assign(more=1.0), "models": "model"}, "must name one of the columns"),
        ({"table": V, "rope": -1}, "`rope` must be a number of at least 0"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(vx.InputError, match=message):
        vx.compare_datasets(**given)


def test_the_figure_shows_ranks_intervals_and_what_is_alike(found):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    values = np.c_[V, V[:, 2] + np.tile([0.01, -0.01], 6)]
    ax = vx.compare_datasets(values, models=[*NAMES, "d"], better="lower").plot().axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["a", "b"]
    assert any("joined at the right" in text.get_text() for text in ax.figure.legends[0].get_texts())
    few = vx.compare_datasets(V[:4], models=NAMES, better="lower").plot()
    assert few.get_supxlabel() == "Too few for intervals and tests."
    matplotlib.pyplot.close("all")


def test_frames(found):
    assert found.to_frame().shape == (3, 8)
    pairs = found.to_frame("polars", of="differences")
    assert pairs["a"].to_list() == ["a", "a", "b"]
    assert {"low", "high", "wins", "p_adjusted", "better", "alike", "worse"} <= set(pairs.columns)
