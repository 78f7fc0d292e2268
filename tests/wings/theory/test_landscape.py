"""Landscapes: losses over the simplex, and the forecast with the smallest expected loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import verax as vx

TRUTHS = ([0.5, 0.2, 0.3], [1 / 3, 1 / 3, 1 / 3], [0.7, 0.3, 0.0], [0.4, 0.4, 0.2])
PROPER = [name for name, rule in vx.rules.RULES.items() if rule.properties.proper.at(3)]


@dataclass(frozen=True, repr=False)
class Cubic(vx.rules.Rule):
    """A rule of a user: the loss is not convex, and improper."""

    name = "cubic"
    needs = frozenset({"p_true"})
    properties = vx.rules.Properties(*[vx.rules.Holds.UNKNOWN] * 7)

    def formula(self, stats):
        miss = 1 - stats.p_true
        return miss * miss * miss

    def bounds(self, n_classes):
        return 0.0, 1.0


def lenient(y, p):
    """The penalized Brier score with every tie counted as right: improper (SPEC.md, section 3)."""
    k = len(p)
    return float(1 - 2 * p[y] + p @ p + (max(p) > p[y]) * (k - 1) / k)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "rule", [*vx.rules.RULES, "padded(pbs)", "penalized(rps, 'minimal')", "log_score(clip=0.1)", Cubic()]
)
def test_losses_are_those_of_the_rule(rule, n_classes):
    found = vx.diagrams.landscape(rule, n_classes=n_classes)
    rule = vx.parse(rule)
    rows = np.random.default_rng(0).choice(len(found.points), 60, replace=False)
    for y in range(n_classes):
        np.testing.assert_array_equal(found.losses[rows, y], rule.samples(np.full(60, y), found.points[rows]))
    # Corners, edges and exact ties are among the points.
    points = {tuple(p) for p in found.points}
    assert {tuple(p) for p in np.eye(n_classes)} <= points
    assert tuple(np.full(n_classes, 1 / n_classes)) in points
    assert found.expected is found.minimiser is found.truth_is_best is None
    heading = f"Landscape of {found.rule} over {n_classes} classes."
    assert repr(found).startswith(f"{heading}\nThe loss lies between 0 and ")


@pytest.mark.parametrize(
    ("rule", "truth"),
    [(rule, truth) for i, rule in enumerate(PROPER) for j, truth in enumerate(TRUTHS) if (i + j) % 2],
)
def test_a_proper_rule_is_lowest_at_the_truth(rule, truth):
    found = vx.diagrams.landscape(rule, truth)
    assert found.truth_is_best
    assert found.minimiser.tolist() == truth
    assert found.lowest.loss == pytest.approx(vx.rules.RULES[rule].entropy(truth))
    assert found.lowest.alone == vx.rules.RULES[rule].properties.strictly_proper.at(3)
    assert found.expected.min() >= found.lowest.loss - 1e-12
    np.testing.assert_allclose(found.expected, vx.rules.RULES[rule].expected(found.points, truth), rtol=1e-12)


@pytest.mark.parametrize("truth", [(5, 2, 3), (1, 1, 1), (6, 1, 3), (1, 1, 8), (7, 3, 0)])
def test_squared_absolute_rps_is_lowest_next_to_the_mean_class(truth):
    q = [Fraction(n, sum(truth)) for n in truth]
    # The two-point law with the mean of the truth is best (SPEC.md, section 2), exactly.
    mean = q[1] + 2 * q[2]
    below = min(int(mean), 1)
    exact = [Fraction(0)] * 3
    exact[below], exact[below + 1] = below + 1 - mean, mean - below
    loss = sum(t * (sum(p * abs(j - y) for j, p in enumerate(exact)) / 2) ** 2 for y, t in enumerate(q))
    found = vx.diagrams.landscape("sa_rps", [float(x) for x in q])
    np.testing.assert_allclose(found.minimiser, [float(x) for x in exact], atol=1e-6)
    assert found.lowest.loss == pytest.approx(float(loss), abs=1e-13)
    assert found.truth_is_best == (exact == q)
    # No point of the grid is better.
    assert found.expected.min() >= found.lowest.loss - 1e-12


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "truth", "best", "loss"),
    [
        ("abs_rps", [0.6, 0.4], [1, 0], 0.4),
        ("abs_rps", [0.2, 0.45, 0.35], [0, 1, 0], 0.275),
        # Below the clip nothing is lost, so that the others share its mass: 0.625 = 0.5 / 0.8.
        ("log_score(clip=0.1)", [0.5, 0.2, 0.3], [0.625, 0, 0.375], None),
        (lenient, [0.6, 0.4], [0.5, 0.5], 0.5),
        (lenient, [0.5, 0.3, 0.2], [1 / 3] * 3, 2 / 3),
        # The derivative of sum q (1 - p)^3 is the same for all classes: p = 1 - c / sqrt(q).
        (Cubic(), [0.5, 0.3, 0.2], None, None),
    ],
)
def test_the_lowest_place_of_improper_rules(rule, truth, best, loss):
    if best is None:
        scaled = 1 / np.sqrt(truth)
        best = 1 - 2 * scaled / scaled.sum()
    found = vx.diagrams.landscape(rule, truth, len(truth))
    np.testing.assert_allclose(found.minimiser, best, atol=2e-6)
    assert found.truth_is_best is False
    if loss is not None:
        assert found.lowest.loss == pytest.approx(loss, abs=1e-12)
    assert found.lowest.loss < found.lowest.of_truth
    assert "The truth has an expected loss of" in repr(found)
    # Random forecasts, which the search has not seen, do no better.
    others = np.random.default_rng(1).dirichlet(np.ones(len(truth)), 2000)
    if isinstance(rule, (str, vx.rules.Rule)):
        assert vx.parse(rule).expected(others, truth).min() >= found.lowest.loss - 1e-12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("brier", None, 4), "`n_classes` must be 2 or 3, not 4"),
        (("brier", None, True), "`n_classes` must be a whole number"),
        (("brier", [0.5, 0.5]), "Pass n_classes=2 for a truth of this length"),
        (("brier", [[0.5, 0.3, 0.2]]), "`truth` must have shape (3,)"),
        (("brier", [0.5, 0.3, 0.3]), "`truth` rows must sum to 1 within 1e-06; row 0 sums to 1.1."),
        (("brier", [0.5, 0.7, -0.2]), "`truth`"),
        (("breir",), "Did you mean 'brier'?"),
        ((3,), "`rule` must be a rule, its name, or a function"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(vx.VeraxError) as caught:
        vx.diagrams.landscape(*arguments)
    assert said in str(caught.value)


# ---- figures -------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def texts(ax):
    legends = [ax.get_legend(), *ax.figure.legends]
    return [text.get_text() for legend in legends if legend is not None for text in legend.get_texts()]


def test_triangles_have_a_panel_for_each_outcome(plt):
    axes = vx.diagrams.landscape("log_score").plot().axes[:3]
    assert [ax.get_title() for ax in axes] == [f"class {y} happens" for y in range(3)]
    # The colours are the losses; the infinite ones at the edge have the last colour and a line of their own.
    mesh = axes[1].collections[0]
    found = vx.diagrams.landscape("log_score")
    colours = np.asarray(mesh.get_array())
    finite = found.losses[:, 1] < colours.max()
    np.testing.assert_array_equal(colours[finite], found.losses[finite, 1])
    assert colours[~finite].min() == colours.max() < np.inf
    (line,) = [c for c in axes[1].collections if c.get_linewidth()[0] == 2.5]
    ends = np.concatenate([path.vertices for path in line.get_paths()])
    assert np.allclose(ends[:, 1], 0)
    assert set(np.round(180 * ends[:, 0]).astype(int)) == set(range(181))
    axes[0].figure.canvas.draw()
    single = vx.diagrams.landscape("zero_one", [0.5, 0.2, 0.3]).plot().axes[0]
    assert texts(single) == ["the truth loses least, as others do"]


def test_the_truth_and_the_lowest_place_are_marked(plt):
    figure, ax = plt.subplots()
    assert vx.diagrams.landscape("sa_rps", [0.5, 0.2, 0.3]).plot(ax) is figure
    assert texts(ax) == ["truth", "(0.2, 0.8, 0) loses least"]
    truth, best = (np.ravel(line.get_xydata()) for line in ax.lines[-2:])
    root = np.sqrt(3) / 2
    np.testing.assert_allclose(truth, [0.3 + 0.1, 0.2 * root])
    np.testing.assert_allclose(best, [0.4, 0.8 * root])
    figure.canvas.draw()
    with pytest.raises(vx.InputError, match="`ax` must be left out, or be 3 axes"):
        vx.diagrams.landscape("brier").plot(ax)
    three, axes = plt.subplots(1, 3)
    assert vx.diagrams.landscape(lenient).plot(list(axes)) is three


def test_curves_show_what_a_tie_costs(plt):
    (ax,) = vx.diagrams.landscape("pbs", n_classes=2).plot().axes
    # Both curves end at the tie, and a dot has the loss of the tie itself: (1/2) ^ 2 * 2 + (1/2) * (1/2).
    dots = [line.get_xydata()[0].tolist() for line in ax.lines if line.get_marker() == "o"]
    assert dots == [[0.5, 0.75], [0.5, 0.75]]
    curve = ax.lines[0].get_xydata()
    assert np.isnan(curve).any()
    steps = np.abs(np.diff(curve[:, 1]))
    assert np.nanmax(steps) < 0.01
    (log,) = vx.diagrams.landscape("log_score", [0.6, 0.4], 2).plot().axes
    assert [text.get_text() for text in log.texts] == ["∞", "∞"]
    assert np.isfinite(log.get_ylim()).all()
    # A smooth curve has no break.
    (smooth,) = vx.diagrams.landscape("brier", n_classes=2).plot().axes
    assert not np.isnan(smooth.lines[0].get_xydata()).any()
    assert not [line for line in smooth.lines if line.get_marker() == "o"]
    for each in (ax, log, smooth):
        each.figure.canvas.draw()
