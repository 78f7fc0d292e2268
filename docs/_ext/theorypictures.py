"""Draw the figures of the theory pages and of the errata, light and dark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from darkfigures import save_both
from fast import FAST

import verax as vx
from verax.display.plots import COLOURS

BELIEF = np.array([0.6, 0.4])


def propriety(plt):
    """Expected losses of two classes by the probability that is reported."""
    figure, axes = plt.subplots(1, 3, figsize=(9.5, 2.9), layout="constrained")
    for ax, name in zip(axes, ("brier", "log_score", "abs_rps"), strict=True):
        vx.diagrams.landscape(name, truth=BELIEF, n_classes=2).plot(ax)
        proper = "strictly proper" if vx.parse(name).properties.strictly_proper.at(2) else "not proper"
        ax.set_title(f"{name}: {proper}", fontsize=10)
    return figure


def superiority(plt):
    """The triangle around one corner: right and wrong forecasts, and arcs of equal Brier score."""
    figure, ax = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    corners = np.array([[0.5, np.sqrt(3) / 2], [0, 0], [1, 0]])

    def place(*p):
        return np.array(p) @ corners

    right = np.array([place(1, 0, 0), place(0.5, 0.5, 0), place(1 / 3, 1 / 3, 1 / 3), place(0.5, 0, 0.5)])
    ax.fill(*corners.T, color="#f3e3d3")
    ax.fill(*right.T, color="#d5e5f2")
    angle = np.linspace(-2 * np.pi / 3, -np.pi / 3, 200)
    for loss, text in ((1 / 2, "1/2"), (2 / 3, "2/3")):
        # The squared distance between two corners is 2 in probabilities and 1 in the picture.
        x, y = corners[0][:, None] + np.sqrt(loss / 2) * np.array([np.cos(angle), np.sin(angle)])
        ax.plot(x, y, color="#555555", linewidth=1, linestyle="--")
        ax.annotate(f"Brier {text}", (x[-1], y[-1]), xytext=(6, -2), textcoords="offset points", fontsize=9)
    for p, text, shift in (
        ((0.34, 0.33, 0.33), "right, 0.653", (8, -13)),
        ((0.49, 0.51, 0), "wrong, 0.520", (-78, 0)),
    ):
        ax.plot(*place(*p), "o", color=COLOURS[0] if text.startswith("right") else COLOURS[1])
        ax.annotate(text, place(*p), xytext=shift, textcoords="offset points", fontsize=9)
    ax.plot(*np.vstack([corners, corners[:1]]).T, color="black", linewidth=1)
    for corner, text, shift in zip(
        corners, ("the outcome", "class 2", "class 3"), ((-28, 6), (-10, -14), (-10, -14)), strict=True
    ):
        ax.annotate(text, corner, xytext=shift, textcoords="offset points", fontsize=9)
    ax.set(aspect="equal", xlim=(-0.28, 1.25), ylim=(-0.1, 0.98))
    ax.axis("off")
    return figure


def ties(plt):
    """Expected PBS under the truth (3/5, 2/5): the value at the tie depends on the reading."""
    figure, ax = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
    for low, high in ((0.3, 0.4999), (0.5001, 0.9)):
        x = np.linspace(low, high, 200)
        ax.plot(x, vx.pbs.expected(np.column_stack([x, 1 - x]), np.tile(BELIEF, (200, 1))), color="black")
    brier = vx.brier.expected([0.5, 0.5], BELIEF)
    for (name, punished), colour in zip(
        {"lenient": 0.0, "shared": 0.5, "strict": 1.0}.items(), COLOURS, strict=False
    ):
        ax.plot(0.5, brier + 0.5 * punished, "o", color=colour)
        ax.annotate(
            name, (0.5, brier + 0.5 * punished), xytext=(8, -3), textcoords="offset points", fontsize=9
        )
    ax.plot(0.6, vx.pbs.entropy(BELIEF), "x", color="black")
    ax.annotate(
        "the truth", (0.6, vx.pbs.entropy(BELIEF)), xytext=(0, -14), textcoords="offset points", fontsize=9
    )
    ax.set(xlabel="probability of the first class that is reported", ylabel="expected PBS")
    return _plain(figure)


def penalties(plt):
    """Brier and PBS over the triangle: the same valley, with steps."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for ax, name in zip(axes, ("brier", "pbs"), strict=True):
        vx.diagrams.landscape(name, truth=[0.5, 0.3, 0.2]).plot(ax)
        ax.set_title(f"expected {name}, truth (0.5, 0.3, 0.2)", fontsize=10)
    return figure


def toplists(plt):
    """A padded list, and what true lists of each length are expected to lose."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    padded = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}], n_classes=10, names=range(10)).padded()[0]
    left.bar(range(10), padded, color=[COLOURS[0]] * 2 + ["#bbbbbb"] * 8)
    left.set(xlabel="class", ylabel="probability", title="a list of two classes and its padding")
    q = np.array([[0.5, 0.2, 0.15, 0.1, 0.05]])
    lists = [vx.TopLists.from_probabilities(q, k) for k in range(6)]
    for rule, colour in zip((vx.brier, vx.log_score), COLOURS, strict=False):
        expected = [vx.padded(rule).expected(each, q)[0] for each in lists]
        right.plot(range(6), np.array(expected) - expected[-1], "o-", color=colour, label=rule.name)
    right.set(xlabel="length of the true list", ylabel="excess over the full distribution")
    right.set_title("truth (.5, .2, .15, .1, .05)", fontsize=10)
    left.title.set_fontsize(10)
    right.legend(frameon=False)
    return _plain(figure)


def ordered(plt):
    """RPS and sa-RPS over the triangle, with the truth and the best forecast."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for ax, name in zip(axes, ("rps", "sa_rps"), strict=True):
        vx.diagrams.landscape(name, truth=[0.4, 0.2, 0.4]).plot(ax)
        ax.set_title(f"expected {name}, truth (0.4, 0.2, 0.4)", fontsize=10)
    return figure


def retention(plt):
    """Retention curves by rules, and by the decision alone."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1000, 5)) - 0.7 * np.abs(np.arange(5) - rng.integers(0, 5, 1000)[:, None])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    removed = np.arange(21) / 100
    figure, ax = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
    curves = {name: (p, name) for name in ("brier", "rps", "sa_rps")}
    curves["the decision alone"] = (np.eye(5)[vx.decide(p)], "sa_rps")
    for (name, (rows, rule)), colour in zip(curves.items(), COLOURS, strict=False):
        curve = vx.retention(y, rows, rule=rule, metric="ec", removed=removed)
        ax.plot(100 * curve.removed, curve.values, color=colour, label=f"{name}: mean {curve.area:.3f}")
    ax.set(xlabel="worst rows removed (%)", ylabel="expected cost of the rows kept")
    ax.legend(frameon=False, fontsize=9, title="ordered by", alignment="left")
    return _plain(figure)


def decomposition(plt):
    """The reliability curve of a forecast that is too sure."""
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    z = (rng.random(2000) < truth).astype(int)
    x = truth**2 / (truth**2 + (1 - truth) ** 2)
    return vx.reliability(z, np.column_stack([1 - x, x])).plot()


def inference(plt):
    """One run without a difference between two models: both kinds of interval after every batch."""
    # In 12 of the first 60 seeds the interval of each look excludes zero four times or more; this is one.
    rng = np.random.default_rng(28)
    batch, n = 20, 3000
    p = rng.dirichlet([1, 1, 1], n)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    a, b = (0.7 * p + 0.3 * rng.dirichlet([1, 1, 1], n) for _ in range(2))
    losses = vx.brier.samples(y, a) - vx.brier.samples(y, b)
    sequence = vx.ConfidenceSequence("brier", n_classes=3)
    rows = np.arange(batch, n + 1, batch)
    bands = {"confidence sequence": [], "95 % interval of each look": []}
    for end in rows:
        part = slice(end - batch, end)
        bands["confidence sequence"].append(sequence.update(y[part], a[part], b[part]))
        mean, half = losses[:end].mean(), 1.96 * losses[:end].std(ddof=1) / np.sqrt(end)
        bands["95 % interval of each look"].append((mean - half, mean + half))
    figure, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
    for (name, band), colour in zip(bands.items(), COLOURS, strict=False):
        low, high = np.array(band).T
        ax.plot(rows, low, color=colour, label=name)
        ax.plot(rows, high, color=colour)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xlabel="rows so far", ylabel="difference of Brier scores", xlim=(0, 1500), ylim=(-0.08, 0.08))
    ax.legend(frameon=False, fontsize=9)
    return _plain(figure)


def simulations(plt):
    """The two simulations of Ahmadian et al., as `verax reproduce ahmadian --plot` draws them."""
    from verax.display.plots import draw
    from verax.wings.theory.papers.figures import shares_sheet
    from verax.wings.theory.papers.simulation import PRINTED, TITLES, simulate

    return draw(shares_sheet(simulate(rounds=40), PRINTED, TITLES))


def _plain(figure):
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure


THEORY = (
    propriety,
    superiority,
    ties,
    penalties,
    ordered,
    toplists,
    retention,
    decomposition,
    inference,
)
PICTURES = {
    **{f"theory/generated/{draw.__name__}.png": draw for draw in THEORY},
    "generated/simulations.png": simulations,
}


def draw_pictures(app) -> None:
    """Draw what is missing or older than this file."""
    if FAST:
        return
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    changed = Path(__file__).stat().st_mtime
    for name, draw in PICTURES.items():
        path = Path(app.srcdir) / name
        dark = path.with_name(f"{path.stem}-dark.png")
        if not dark.exists() or dark.stat().st_mtime < changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure = draw(plt)
            save_both(figure, path, dpi=140)
            plt.close(figure)


def setup(app) -> dict[str, bool]:
    """Draw before pages are read."""
    app.connect("builder-inited", draw_pictures)
    return {"parallel_read_safe": True}
