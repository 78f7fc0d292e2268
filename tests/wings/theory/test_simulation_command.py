"""The simulations of Ahmadian et al. against enumeration in exact rationals, quadrature and plain loops."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from commandline import verax
from pages import DOCS
from verax.wings.theory.papers.simulation import (
    SAMPLERS,
    Sampler,
    _count,
    dirichlet,
    in_words,
    independent,
    outcome_first,
    simulate,
)


def brier(p, y):
    return sum(x * x for x in p) - 2 * p[y] + 1


def cases(rows):
    """The probability of the outcome and the loss, of every right and of every wrong forecast."""
    right, wrong = [], []
    for p in rows:
        for y, hot in enumerate(p):
            (right if hot == max(p) else wrong).append((hot, brier(p, y)))
    return right, wrong


def test_a_finite_population_against_enumeration():
    rows = [[300, 290, 290, 120], [299, 311, 195, 195], [450, 200, 240, 110], [470, 490, 30, 10]]
    rows = [[Fraction(x, 1000) for x in row] for row in rows]
    right, wrong = cases(rows)
    pairs = list(itertools.product(right, wrong))
    exact = [
        Fraction(sum(q[1] > x[1] for x, q in chosen), len(chosen))
        for chosen in ([(x, q) for x, q in pairs if q[0] < x[0]], [(x, q) for x, q in pairs if q[0] > x[0]])
    ]
    assert 0 < exact[1] < exact[0] < 1
    table = np.array(rows, dtype=float)
    sampler = Sampler("table", 4, independent(lambda rng, n, _: table[rng.integers(len(table), size=n)], 4))
    covered = 0
    for seed in range(10):
        shares = simulate(rounds=20, seed=seed, samplers=[sampler])
        for share, value in zip(shares, exact, strict=True):
            assert share.value == pytest.approx(float(value), abs=0.02)
            covered += share.interval.low <= value <= share.interval.high
    assert covered >= 16


@pytest.mark.parametrize("sd", [math.inf, 0.2])
def test_counts_against_loops(sd):
    rng = np.random.default_rng(0)
    # Few of the pairs decide where the wrong forecasts have small probabilities; all of them elsewhere.
    for high in (0.4, 1.0):
        right, right_loss = rng.uniform(0.2, 1, (2, 23))
        wrong, wrong_loss = rng.uniform(0, high, 31), rng.uniform(0.5, 2, 31)
        expected = np.zeros((2, 4))
        for i, j in itertools.product(range(23), range(31)):
            weight = math.exp(-((wrong[j] - right[i]) ** 2) / (2 * sd**2))
            section = int(wrong[j] > right[i])
            expected[section] += [weight, weight * (wrong_loss[j] > right_loss[i]), 1, i == j]
        assert _count(right, right_loss, wrong, wrong_loss, sd) == pytest.approx(expected.ravel())


def test_three_classes_leave_nothing_to_simulate():
    # In units of 1/24: no right forecast is farther from the outcome than a wrong one that gives it less.
    n = 24
    rows = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    right, wrong = [], []
    for p in rows:
        loss = (n - p[0]) ** 2 + p[1] ** 2 + p[2] ** 2
        if p[0] != max(p[1:]):
            (right if p[0] > max(p[1:]) else wrong).append((p[0], loss))
    assert all(q[1] > x[1] for x, q in itertools.product(right, wrong) if q[0] < x[0])
    for sampler in SAMPLERS:
        assert ("8.2" in dict(sampler.exact)) == (sampler.n_classes == 3)


def test_closed_form_of_the_uniform_law():
    # The outcome gets h, the others differ by d, and the loss is 3 (1 - h)^2 / 2 + d^2 / 2.
    n = 80
    middle = (np.arange(n) + 0.5) / n
    x = (1 / 3 + middle / 6)[:, None, None]
    q = x + (1 / 2 - x) * middle[:, None]
    least, most = 3 * q - 1, 1 - q
    d = (3 * x - 1) * middle
    bound = np.sqrt(np.maximum(d**2 + 3 * (1 - x) ** 2 - 3 * (1 - q) ** 2, 0))
    measure = (3 * x - 1) * (1 / 2 - x)
    larger = (measure * (most - np.clip(bound, least, most))).sum()
    integral = larger / (measure * (most - least) * np.ones_like(d)).sum()
    (uniform,) = (s for s in SAMPLERS if s.n_classes == 3 and len(s.exact) == 2)
    exact = dict(uniform.exact)["8.3"]
    assert exact == 37 - 20 * math.pi / math.sqrt(3)
    assert integral == pytest.approx(exact, abs=2e-4)
    share = simulate(rounds=60, samplers=[uniform])[1]
    assert abs(share.value - exact) < share.interval.high - share.interval.low < 0.03


def test_outcome_first_against_drawing_pairs():
    k, n = 4, 1_500_000
    rng = np.random.default_rng(5)
    alpha, beta = np.abs(rng.normal(size=(2, n)))
    kept = (alpha < 0.5) & (alpha + beta < 0.5)

    def complete(hot):
        others = np.abs(rng.normal(size=(len(hot), k - 1)))
        return others * ((1 - hot) / others.sum(axis=1))[:, None]

    a, b = alpha[kept], (alpha + beta)[kept]
    x, q = complete(a), complete(b)
    chosen = (x.max(axis=1) < a) & (q.max(axis=1) > b)
    losses = [(1 - hot[chosen]) ** 2 + (rest[chosen] ** 2).sum(axis=1) for hot, rest in ((a, x), (b, q))]
    larger = losses[1] > losses[0]
    share = simulate(rounds=30, samplers=[Sampler("", k, outcome_first(k))])[1]
    assert len(larger) > 300
    assert abs(larger.mean() - share.value) < 4 * larger.std() / math.sqrt(len(larger))


@pytest.mark.parametrize(("x", "q", "share"), [(0.34, 0.49, 0.0), (0.34, 0.35, 1.0)])
def test_one_pair_gives_any_share(x, q, share):
    pair = [[x, (1 - x) / 2, (1 - x) / 2], [q, 1 - q, 0]]
    losses = [np.array([brier(p, 0)]) for p in pair]
    hot = np.array([x]), np.array([q])
    found = simulate(
        rounds=2, samplers=[Sampler("pair", 3, lambda _: (hot[0], losses[0], hot[1], losses[1], math.inf))]
    )
    assert math.isnan(found[0].value)
    assert found[1].value == share


def test_shares_without_failures_have_intervals():
    share = simulate(rounds=5, samplers=[Sampler("", 3, independent(dirichlet(1), 3))])[0]
    assert share.value == 1
    assert 0.99 < share.interval.low < 1
    assert share.interval.high == pytest.approx(1, abs=1e-15)


def test_the_table_of_the_errata():
    names = {
        "uniform on the simplex": "Dirichlet(1), uniform",
        "softmax of standard normal logits": "softmax of N(0, 1)",
        "absolute normal numbers over their sum": "|N(0, 1)| / sum",
        "probability of the outcome first": "outcome first, normal",
    }
    laws = {(sampler.name, in_words(sampler.n_classes)): sampler for sampler in SAMPLERS}
    rows = re.findall(
        r"^\| (.+) \| (\d+|drawn) \| (.+) % \| (.+) % \|$", (DOCS / "errata.md").read_text("utf-8"), re.M
    )
    assert len(rows) == 11
    for law, k, *printed in rows:
        shares = simulate(rounds=25, seed=7, samplers=[laws[names.get(law, law), k]])
        for share, text in zip(shares, printed, strict=True):
            if share.exact is not None:
                assert float(text.removeprefix("exactly ")) == round(100 * share.exact, 3)
                continue
            low, high = (float(end) / 100 for end in text.split(" to "))
            assert max(low, share.interval.low) <= min(high, share.interval.high), (law, k, share.section)


def test_the_command(tmp_path):
    figure = tmp_path / "shares.png"
    command = ["reproduce", "ahmadian", "--rounds", 2, "--seed", 3]
    first = json.loads(verax(*command, "--plot", figure, "--json").stdout)["simulations"]
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert first["plot"] == str(figure)
    again = json.loads(verax(*command, "--json").stdout)["simulations"]
    assert again["shares"] == first["shares"]
    assert len(first["shares"]) == 2 * len(SAMPLERS)
    by_law = {(s["section"], s["sampler"], s["n_classes"]): s for s in first["shares"]}
    assert by_law["8.2", "Dirichlet(1), uniform", 3]["exact"] == 1
    values = [s["share"] for s in first["shares"] if s["section"] == "8.3"]
    assert min(values) < 0.4 < 0.7 < max(values)
    table = verax(*command).stdout
    assert "Classes drawn: normal, mean 5" in " ".join(table.split())
    assert "so any number is possible" in table
    for arguments, said in (
        (["ahmadian", "--rounds", 1], "at least 2"),
        (["resin", "--plot", figure], "no sim"),
    ):
        refused = verax("reproduce", *arguments)
        assert refused.returncode == 2
        assert said in refused.stderr
