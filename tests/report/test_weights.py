"""Weights mean the same in the report, in subgroups and on the card."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from reports import light
from verax.report import Report


@pytest.mark.parametrize("weights_are", ["importance", "counts"])
def test_the_report_and_subgroups_have_the_intervals_of_the_card(weights_are):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 120)
    y = rng.integers(0, 3, 120)
    weights = rng.integers(1, 5, 120)
    card = vx.evaluate(y, p, weights=weights, weights_are=weights_are)
    found = light(y, p, weights=weights, weights_are=weights_are).contents.findings[0].card
    assert found.scores["brier"].interval == card.scores["brier"].interval
    assert found.metrics["accuracy"].interval == card.metrics["accuracy"].interval
    site = np.repeat(["a", "b"], 60)
    part = vx.subgroups(y, p, by=site, weights=weights, weights_are=weights_are)["a"].card
    first = vx.evaluate(y[:60], p[:60], weights=weights[:60], weights_are=weights_are)
    assert part.scores["brier"].interval == first.scores["brier"].interval


def test_the_two_meanings_differ():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 120), rng.integers(0, 3, 120)
    low = {
        kind: vx.evaluate(y, p, weights=np.full(120, 9), weights_are=kind).scores["brier"].interval.low
        for kind in ("importance", "counts")
    }
    assert low["counts"] > low["importance"]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_weights_and_groups_have_bands_and_subgroup_tests(scale):
    """Of whatever size the weights are: only their ratios matter."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 200)
    y = (rng.random((200, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 2)
    own = {"weights": scale * rng.exponential(size=200), "groups": np.arange(200) % 40}
    report = Report.of(y, p, by={"site": np.arange(200) % 2}, **own)
    (model,) = report.to_dict()["models"].values()
    assert all(low is not None for panel in model["reliability"] for _, _, low, *_ in panel["points"])
    lines = report.contents.parts.shown["site"].lines
    assert [line.p_value is not None for line in lines] == [True, True]
