"""Rows by period: each period is the card of its rows, wherever they are and however times are written."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

import verax as vx

RNG = np.random.default_rng(5)
P = RNG.dirichlet(np.ones(3), 240)
Y = np.minimum((P.cumsum(axis=1) <= RNG.random((240, 1))).sum(axis=1), 2)
DAY = np.datetime64("2025-12-20") + np.arange(240) // 3
GROUPS, WEIGHTS = RNG.integers(0, 30, 240), RNG.random(240)


@pytest.mark.parametrize("more", [{}, {"groups": GROUPS}, {"weights": WEIGHTS}], ids=str)
def test_each_period_is_the_card_of_its_rows(more):
    found = vx.over_time(Y, P, time=DAY, every="month", rule="log_score", **more)
    assert [line.period for line in found.lines] == ["2025-12", "2026-01", "2026-02", "2026-03"]
    for line in found.lines:
        own = DAY.astype("datetime64[M]").astype(str) == line.period
        some = {name: values[own] for name, values in more.items()}
        card = vx.evaluate(Y[own], P[own], rules=["log_score"], **some)
        assert line.n_rows == own.sum() == card.n_rows
        assert line.loss == pytest.approx(card.scores["log_score"].mean, rel=1e-12)
        assert line.interval == card.scores["log_score"].interval
        w = some.get("weights", np.ones(own.sum()))
        right = P[own].argmax(axis=1) == Y[own]
        assert line.accuracy == pytest.approx(np.average(right, weights=w))
        assert line.gap == pytest.approx(np.average(P[own].max(axis=1) - right, weights=w))
        assert line.frequencies == pytest.approx([np.average(Y[own] == k, weights=w) for k in range(3)])
        assert line.probabilities == pytest.approx(np.average(P[own], axis=0, weights=w))
    assert len(found.to_frame(of="classes")) == 12


@pytest.mark.long
@pytest.mark.parametrize("every", ["day", "week", "month", "quarter", "year", None])
def test_times_may_be_dates_datetimes_or_texts_in_memory_and_in_files(every):
    texts = DAY.astype(str)
    stamps = [datetime.fromisoformat(text) for text in texts]
    exact = vx.over_time(Y, P, time=DAY, every=every)
    for times in (texts, stamps):
        found = vx.over_time(Y, P, time=times, every=every)
        assert [str(line.period) for line in found.lines] == [str(line.period) for line in exact.lines]
        assert [line.interval for line in found.lines] == [line.interval for line in exact.lines]
    table = pa.table({"label": Y, "day": DAY, **{f"p_{k}": P[:, k] for k in range(3)}})
    handle = vx.scan(table, target="label", by="day")
    assert vx.over_time(handle, time="day", every=every).lines[-1].loss == exact.lines[-1].loss


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"time": np.arange(240), "every": "month"}, "must be dates or datetimes"),
        ({"time": ["soon"] * 240, "every": "month"}, "the first is 'soon'"),
        ({"time": DAY, "every": "minute"}, "every"),
        ({"time": DAY[:5]}, "240"),
        ({"time": DAY, "weights": DAY[-1] - 20 < DAY}, "must not all be zero in a period"),
    ],
)
def test_bad_input_is_named(asked, message):
    with pytest.raises(vx.InputError, match=message):
        vx.over_time(Y, P, **asked)


def test_more_periods_than_a_table_can_show_are_refused():
    n = 5000
    with pytest.raises(vx.InputError, match="at most 4,096 periods"):
        vx.over_time(np.zeros(n, int), np.full(n, 0.5), time=np.arange(n))


def test_the_figure_shows_losses_and_accuracy():
    figure = vx.over_time(Y, P, time=DAY, every="month").plot()
    losses, _ = figure.axes
    assert losses.get_ylabel() == "mean brier"
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    assert key == ["mean with its 95% interval", "confidence", "accuracy"]
