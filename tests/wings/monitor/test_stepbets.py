"""Bets on whole time steps: the recipe's evidence, fair whatever happens within a step, and never blind."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import verax as vx
from verax.wings.monitor.evidence import Ledger
from verax.wings.monitor.stepbets import (
    BOUNDED,
    STAKES,
    StepBets,
    log_reserve,
    log_starts,
    log_tanh,
)
from verax.wings.monitor.steps import Step


def step_of(excess, x, h):
    """The step of some rows: excess losses, and the probability and outcome of one event."""
    gap, none = h - x, np.zeros(len(x))
    columns = np.stack([none, excess, none, none, x, h, gap, (1 - 2 * x) * gap])
    bins, place = np.zeros((1, 16, 2)), np.minimum((x * 16).astype(int), 15)
    np.add.at(bins[0, :, 0], place, gap)
    np.add.at(bins[0, :, 1], place, gap * gap)
    first, n = columns.sum(axis=1), len(x)
    return Step(n, n, first / n, first, (columns * columns).sum(axis=1), math.nan, bins)


class Plain:
    """One claim, one direction, number by number: what the arrays must say."""

    def __init__(self, need):
        self.need, self.t, self.capital, self.reserve = need, 0, np.zeros(10), 1.0
        self.squares = self.freedom = self.excess = self.weight = self.total = self.rows = 0.0
        self.wait, self.small, self.z = np.zeros(4), True, []

    def update(self, x, information):
        self.wait += (len(x), x.sum(), (x * x).sum(), information)
        self.small = self.small and len(x) == 1
        n, total, squares, known = self.wait
        if known < self.need or (not self.need and self.small and n < 5):
            return
        mean, about = total / n, max(squares - total * total / n, 0.0)
        self.wait, self.small, self.t = np.zeros(4), True, self.t + 1
        start = 0.5 * (1 / math.log2(self.t + 1) - 1 / math.log2(self.t + 2)) + 0.5 * (self.t == 1)
        self.capital, self.reserve = self.capital + start, self.reserve - start
        if self.freedom:
            within = self.squares / self.freedom
            between = max(0.0, (4 * 0.01 * within + self.excess) / (4 + self.weight))
            self.z.append(mean / math.sqrt(between + within / n))
            self.capital *= 1 + np.tanh(STAKES * self.z[-1])
        if n < 2:
            return
        self.squares, self.freedom = self.squares + about, self.freedom + n - 1
        if self.rows:
            within = self.squares / self.freedom
            off = (mean - self.total / self.rows) ** 2 - within * (1 / n + 1 / self.rows)
            share = n / (n + 20)
            self.excess += share * min(off, 10 * within)
            self.weight += share
        self.total, self.rows = self.total + n * mean, self.rows + n

    @property
    def evidence(self):
        return self.capital.mean() + self.reserve


@pytest.mark.parametrize("seed", range(4))
def test_the_arrays_say_what_plain_numbers_say(seed):
    rng, bets = np.random.default_rng(seed), StepBets.fresh(1, 1.0, restarts=False)
    loss, low, high = Plain(0), Plain(3), Plain(3)
    for t in range(60):
        n = int(rng.integers(1, 4 if seed % 2 else 90))
        excess = np.clip(0.3 * rng.normal(size=n) + 0.1 * rng.normal() + 0.05 * (t > 30), -1, 5)
        x = rng.beta(1.5, 10, n)
        h = (rng.random(n) < x * (1.8 if t > 40 else 1)) * 1.0
        bets.bet(step_of(excess, x, h), opens=True)
        loss.update(excess, 0.0)
        for plain, sign in ((low, 1), (high, -1)):
            plain.update(sign * (h - x), (x * (1 - x)).sum())
    sure = np.exp(bets.capital).mean(axis=2) + np.exp(log_reserve(bets.steps[0]))[:, None]
    found = [sure[0, 0], sure[1, 0], sure[1, 1]]
    assert found == pytest.approx([plain.evidence for plain in (loss, low, high)], rel=1e-9)
    z = np.array(loss.z)
    off = z - z.mean()
    assert bets.n_bets(0) == len(z) >= 15
    assert bets.skewness[0, 0] == pytest.approx((off**3).mean() / (off**2).mean() ** 1.5)


@pytest.mark.parametrize("restarts", [False, True])
def test_evidence_is_fair_where_step_means_are_symmetric(restarts):
    rng, total, steps = np.random.default_rng(3), 0.0, 7
    sizes = rng.integers(2, 40, steps)
    effects = rng.normal(size=steps)
    within = [rng.normal(size=n) * 0.3 for n in sizes]
    within = [own - own.mean() for own in within]
    for signs in itertools.product([-1.0, 1.0], repeat=steps):
        bets = StepBets.fresh(1, 1.0, restarts=restarts)
        for sign, effect, own in zip(signs, effects, within, strict=True):
            half = np.full(len(own), 0.5)
            bets.bet(step_of(sign * effect + own, half, half), opens=True)
        sure = np.exp(bets.capital[0, 0]).mean() + (0 if restarts else np.exp(log_reserve(bets.steps[0]))[0])
        total += sure / 2**steps
    assert total == pytest.approx(steps if restarts else 1.0, rel=1e-9)


def test_factors_of_opposite_means_sum_to_two_and_the_capital_to_one():
    z = np.linspace(-50, 50, 31)
    assert np.allclose(np.exp(log_tanh(z)) + np.exp(log_tanh(-z)), 2)
    t = np.arange(1.0, 2000)
    assert np.exp(log_starts(t)).sum() + np.exp(log_reserve(t[-1:]))[0] == pytest.approx(1)
    assert len(STAKES) == len(BOUNDED) == 10


def test_left_skewed_losses_count_by_the_smaller_evidence():
    rng, bets = np.random.default_rng(4), StepBets.fresh(1, 1.0, restarts=False)
    smaller = []
    for t in range(60):
        day = 0.4 * (1 - rng.gamma(0.6) / 0.6) if t < 40 else 0.4 * rng.normal()
        half = np.full(50, 0.5)
        bets.bet(step_of(np.maximum(day + 0.1 * rng.normal(size=50), -1), half, half), opens=True)
        both = [
            np.logaddexp(np.logaddexp.reduce(each[0, 0]) - math.log(10), log_reserve(steps[:1])[0])
            for each, steps in zip((bets.capital, bets.bounded), bets.steps, strict=True)
        ]
        assert bets.logs[0, 0] == pytest.approx(min(both) if bets.left[0, 0] else both[0])
        smaller.append(bool(bets.left[0, 0]))
    assert all(smaller[:20])
    assert sum(smaller[20:40]) > 15


def joined(need, monkeypatch):
    monkeypatch.setattr("verax.wings.monitor.stepbets._INFORMATION", need)
    alarms = 0
    for seed in range(30):
        rng, monitor = np.random.default_rng([7, seed]), vx.Monitor(alpha=0.2)
        n = 1 + rng.poisson(5, 150)
        p = np.full(n.sum(), 0.02)
        monitor.update(rng.random(len(p)) < p, p, time=np.repeat(np.arange(150), n))
        alarms += monitor.alarm is not None
    return alarms


def test_steps_of_rare_events_are_joined_because_their_means_are_skewed(monkeypatch):
    assert joined(3.0, monkeypatch) <= 5 < joined(0.0, monkeypatch)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_what_cannot_happen_raises_an_alarm_though_it_never_tells_enough(chance):
    rng, monitor = np.random.default_rng(5), vx.Monitor()
    for day in range(3):
        monitor.update((rng.random(50) < 0.5).astype(int), np.full(50, chance), time=day)
    assert monitor.alarm is not None


def test_single_rows_are_joined_by_fives():
    rng, monitor = np.random.default_rng(8), vx.Monitor(0.3)
    for t in range(420):
        p = rng.uniform(0.1, 0.9)
        monitor.update([int(rng.random() < (p if t < 100 else 1 - p))], [p], time=t)
    assert monitor.alarm is not None
    assert monitor.alarm.time > 100
    assert monitor._state.ledger.capital["", None].steps[0, 0] < 420 / 5 + 1


def test_neighbouring_days_that_resemble_each_other_are_a_caution_of_the_alarm():
    rng, effect, monitor = np.random.default_rng(2), 0.0, vx.Monitor(0.36, rule="brier", alpha=0.3)
    for day in range(300):
        effect = 0.9 * effect + math.sqrt(1 - 0.81) * rng.normal()
        p = rng.uniform(0.1, 0.9, 200)
        chance = np.clip(p + 0.12 * effect, 0, 1)
        if monitor.update((rng.random(200) < chance).astype(int), p, time=day) is not None:
            break
    (caution,) = monitor.alarm.cautions
    assert ("Neighbouring time steps resemble each other" in caution) == (monitor.alarm.time > 20)
    assert caution in monitor.cautions
    assert vx.Monitor.from_bytes(monitor.to_bytes()).alarm == monitor.alarm
    assert monitor.alarm.to_dict()["cautions"] == [caution]


def test_an_early_alarm_says_that_neighbours_are_not_known():
    rng, monitor = np.random.default_rng(2), vx.Monitor(0.2, rule="brier")
    for day in range(40):
        p = rng.uniform(0.1, 0.9, 200)
        if monitor.update((rng.random(200) < 1 - p).astype(int), p, time=day) is not None:
            break
    assert monitor.alarm.time < 20
    assert f"after {monitor.alarm.time} time steps with bets, fewer than 20" in monitor.alarm.cautions[0]


def test_bets_of_another_shape_are_refused():
    bets = StepBets.fresh(2, 0.5, restarts=True)
    again = StepBets.from_values(bets.to_values(), 2, restarts=True)
    assert (again.share, again.restarts) == (0.5, True)
    with pytest.raises(ValueError, match="another shape"):
        StepBets.from_values(bets.to_values(), 3, restarts=True)


def test_a_subgroup_that_rests_loses_nothing():
    rng = np.random.default_rng(0)
    ledger = Ledger(("a",), with_loss=False, columns=("site",), restarts=False)
    for t in range(8):
        step = step_of(np.zeros(40), np.full(40, 0.5), (rng.random(40) < 0.5) * 1.0)
        scopes = {("", None): step} if 2 <= t < 6 else {("", None): step, ("site", "n"): step}
        before = ledger.capital["site", "n"].logs.copy() if t else None
        ledger.bet(scopes, opens=True)
        if 2 <= t < 6:
            assert (ledger.capital["site", "n"].logs == before).all()
