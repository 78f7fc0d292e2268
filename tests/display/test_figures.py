"""What figures show: ranks of models, epochs near their optimum, losses that would set the scale."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_ranking_shows_the_differences_from_the_best():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    good = 0.6 * np.eye(3)[y] + 0.4 / 3
    certain = np.eye(3)[(y + (rng.random(200) < 0.1)) % 3]
    flat, twin = np.full((200, 3), 1 / 3), 0.999 * good + 0.001 / 3
    models = {"flat": flat, "good": good, "twin": twin, "hard": certain}
    found = vx.compare(y, models, rule=["brier", "log_score"])
    brier, log = found.plot().axes
    assert [tick.get_text() for tick in brier.get_yticklabels()] == [m.name for m in found.models["brier"]]
    for ax, rule in ((brier, "brier"), (log, "log_score")):
        best, *others = [m for m in found.models[rule] if np.isfinite(m.mean)]
        dashed, *lines = ax.lines
        assert dashed.get_xdata() == [best.mean] * 2
        dots = {round(float(line.get_ydata()[0])): line for line in lines if len(line.get_xdata()) == 1}
        bars = {round(float(line.get_ydata()[0])): line for line in lines if len(line.get_xdata()) == 2}
        means = [dot.get_xdata()[0] for _, dot in sorted(dots.items())]
        assert means == [best.mean, *(m.mean for m in others)]
        for model in others:
            gap = found.difference(model.name, best.name, rule)
            bar = bars[model.rank - 1]
            assert np.allclose(bar.get_xdata(), best.mean + np.array(tuple(gap.interval)))
            assert (dots[model.rank - 1].get_marker() == "s") == (gap.p_adjusted <= 0.05)
    n_infinite = found.models["log_score"][-1].infinite_rows
    assert texts(log) == [f"infinite in {n_infinite} rows"]
    assert len(found.plot(["log_score"]).axes) == 1
    with pytest.raises(KeyError, match="rps"):
        found.plot(["rps"])
    alone = vx.compare(y, {"good": good}, rule="brier", reference="uniform")
    assert alone.plot().axes[0].get_title() == "brier"


def test_bad_epochs_do_not_set_the_scale():
    losses = [9.0, 3.0, *(1 + 0.01 * abs(i - 10) for i in range(28))]
    history = vx.selection.History.from_columns({"brier": losses, "rps": [1.0] * 30})
    brier, flat = history.select(["brier", "rps"]).plot().axes
    low, high = brier.get_ylim()
    assert low < 1.0 < 1.17 < high < 3
    assert flat.get_ylim()[0] < 1 < flat.get_ylim()[1]


def test_a_hard_prediction_far_above_all_lists_is_written():
    p = np.random.default_rng(0).dirichlet(np.full(50, 0.1), 300)
    y = np.array([np.random.default_rng(i).choice(50, p=row) for i, row in enumerate(p)])
    found = vx.compare_lengths(y, p, k=[3, 5, 10], rule=["brier", "log_score"])
    brier, log = found.plot().axes
    gap = found.difference("hard", "full", "brier").difference
    assert (texts(brier), texts(log)) == ([f"{gap:.2g} ↑"], ["∞"])
    assert brier.get_ylim()[1] < gap / 4


@pytest.mark.long
def test_legends_stay_within_the_figure():
    y, p = [0, 1, 1, 0], [0.2, 0.6, 0.9, 0.4]
    models = {f"a model with quite a long name, number {i}": p for i in range(4)}
    for function in (vx.net_benefit, vx.diagrams.murphy, vx.roc_curve):
        figure = function(y, models).plot()
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.canvas.get_width_height()[0]


def test_murphy_diagrams_show_all_of_every_curve():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 100, p=[0.9, 0.05, 0.05])
    models = {"timid": np.full((100, 3), 1 / 3), "right": np.tile([0.9, 0.05, 0.05], (100, 1))}
    found = vx.diagrams.murphy(y, models)
    scores = found.plot().axes[:3]
    for ax, event in zip(scores, ("0", "1", "2"), strict=True):
        top = max(found.curve(event, name).values.max() for name in models)
        assert 0 <= ax.get_ylim()[0] < top < ax.get_ylim()[1]


def test_subgroups_that_stand_out_are_flagged():
    rng = np.random.default_rng(0)
    site, p = np.repeat(["a", "b"], 300), rng.random(600)
    y = rng.random(600) < np.where(site == "a", p**3, p)
    found = vx.subgroups(y, p, by=site)
    (ax,) = found.plot().axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a (300 rows)", "b (300 rows)"]
    marks = [(line.get_marker(), line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    assert marks == [
        ("D", found["a"].decomposition.whole.miscalibration),
        ("o", found["b"].decomposition.whole.miscalibration),
    ]
    two = vx.subgroups(y, {"m": p, "n": p / 2}, by=site).plot().axes[0]
    assert two.get_yticklabels()[1].get_text() == "a, n (300 rows)"
    many = vx.subgroups(y, p, by=np.arange(600) // 12, least=1).plot().axes[0]
    assert len(many.get_yticklabels()) == 40


MONEY = ["none", "$10k-$20k", "$20_000_$"]


def _priced(n=240):
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), n)
    return np.array(MONEY)[(rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)], p


NAMED = {
    "sets": lambda y, p: vx.evaluate_sets(y, p, level=0.9, classes=MONEY, by={"$_$": y}).plot(),
    "spans": lambda y, p: vx.evaluate_sets(y, p, level=0.9, classes=MONEY, ordered=True).plot_spans(),
    "models": lambda y, p: vx.compare(y, {"$a_$": p, "b": p[::-1]}, classes=MONEY).plot(),
    "curves": lambda y, p: vx.roc_curve(y, p, classes=MONEY).plot(),
    "reliability": lambda y, p: vx.reliability(y, p, classes=MONEY, resamples=0).plot(),
    "subgroups": lambda y, p: vx.subgroups(y, p, by=y, classes=MONEY).plot(),
    "benefit": lambda y, p: vx.net_benefit(y, p, classes=MONEY).plot(),
    "retention": lambda y, p: vx.retention(y, p, classes=MONEY).plot(),
}


@pytest.mark.parametrize("what", NAMED)
def test_names_with_dollars_are_texts_not_formulas(what):
    figure = NAMED[what](*_priced())
    # Formulas that cannot be read would be an error here.
    figure.canvas.draw()
    dollars = [text for text in figure.findobj(plt.Text) if "$" in text.get_text()]
    assert all(not text.get_parse_math() for text in dollars)
    assert dollars or what == "retention"


def test_the_worst_rows_are_drawn_as_the_rule_sees_them():
    """Figures 1 and 2 of Galdran (2023): RPS is the mean squared distance between the two lines."""
    y, p = [0, 0], [[0.25, 0.75, 0], [0.25, 0, 0.75]]
    found = vx.worst(y, p, rule="rps", n=2, classes=["none", "mild", "severe"], ids=["near", "far"])
    axes = found.plot().axes
    assert [ax.get_title() for ax in axes] == ["far: rps 0.562", "near: rps 0.281"]
    for ax, case in zip(axes, found, strict=True):
        forecast, happened = (line.get_ydata()[:2] for line in ax.lines)
        assert np.mean((forecast - happened) ** 2) == pytest.approx(case.loss)
        assert [text.get_text() for text in ax.get_xticklabels()] == ["none", "mild", "severe"]
    (bars,) = vx.worst(y, p, rule="brier", n=1).plot().axes
    # What happened is one bar, in front of those of the forecast.
    assert [bar.get_height() for bar in bars.patches] == [0.25, 0.75, 0, 1]
    lists = vx.TopLists.from_dicts([{"b": 0.6, "c": 0.3}], n_classes=5)
    (listed,) = vx.worst(["a"], lists, n=1).plot().axes
    assert [bar.get_height() for bar in listed.patches] == pytest.approx([0.6, 0.3, 0.1 / 3, 1])


def test_every_plot_returns_its_figure():
    """The metric of torchmetrics alone returns what torchmetrics' plots do."""
    for name in vars(vx.results):
        if plot := getattr(getattr(vx.results, name), "plot", None):
            assert "matplotlib.figure.Figure\n" in plot.__doc__, name
    figure, ax = plt.subplots()
    y, p = _priced()
    kept = {"classes": MONEY, "bootstrap": 0}
    assert vx.retention(y, p, **kept).plot(ax) is figure
    assert vx.risk_coverage(y, p, **kept).plot(ax) is figure
    assert len(vx.retention(y, p, metric=["accuracy", "macro_f1"], **kept).plot().axes) == 2


def test_powers_of_ten_stay_formulas():
    ax = vx.plan(rule="brier", width=0.01, n_classes=3).plot().axes[0]
    ax.figure.canvas.draw()
    ticks = (*ax.yaxis.majorTicks, *ax.yaxis.minorTicks)
    powers = [tick.label1 for tick in ticks if "$" in tick.label1.get_text()]
    assert powers
    assert all(text.get_parse_math() for text in powers)
