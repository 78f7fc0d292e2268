"""Inverse probability of censoring weights against Kaplan-Meier, scikit-survival and exact cases."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from followed import HORIZON, kaplan_meier, rows
from verax.common.packing import UnreadableError
from verax.errors import InputError, VeraxError
from verax.wings.horizon.followup import Censoring
from verax.wings.horizon.times import TimeSums


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
class TestKaplanMeier:
    def given(self, ties, weighted):
        time, event, risk = rows(ties=ties)
        w = np.random.default_rng(1).integers(0, 4, len(time)).astype(float) if weighted else None
        return time, event, risk, w

    def test_the_share_of_events_is_one_minus_kaplan_meier(self, ties, weighted):
        time, event, _, w = self.given(ties, weighted)
        found = vx.at_horizon(time, event, horizon=HORIZON, weights=w)
        assert found.risk == pytest.approx(1 - kaplan_meier(time, event, HORIZON, w), rel=1e-12)

    def test_the_weights_sum_to_those_given(self, ties, weighted):
        time, event, _, w = self.given(ties, weighted)
        found = vx.at_horizon(time, event, horizon=HORIZON, weights=w)
        assert found.weights.sum() == pytest.approx(len(time) if w is None else w.sum(), rel=1e-12)

    def test_only_rows_censored_before_the_horizon_have_no_weight(self, ties, weighted):
        time, event, _, w = self.given(ties, weighted)
        found = vx.at_horizon(time, event, horizon=HORIZON, weights=w)
        gone = (time < HORIZON) & (event == 0)
        given = np.ones(len(time)) if w is None else w
        assert ((found.weights == 0) == (gone | (given == 0))).all()
        assert (found.n_censored, found.n_happened) == (gone.sum(), (event[time <= HORIZON] == 1).sum())
        assert found.outcomes.tolist() == ((time <= HORIZON) & (event == 1)).astype(int).tolist()

    def test_merged_sums_give_the_same_weights(self, ties, weighted):
        time, event, _, w = self.given(ties, weighted)
        parts = np.array_split(np.arange(len(time)), 7)
        sums = [
            TimeSums.of(time[i], event[i] == 1, None if w is None else w[i], HORIZON) for i in reversed(parts)
        ]
        merged = sums[0]
        for more in sums[1:]:
            merged = merged.merge(TimeSums.from_bytes(more.to_bytes()))
        y, weights = Censoring.of(merged, HORIZON).judged(time, event == 1, w)
        found = vx.at_horizon(time, event, horizon=HORIZON, weights=w)
        assert y.tolist() == found.outcomes.astype(bool).tolist()
        np.testing.assert_allclose(weights, found.weights, rtol=1e-12)


def test_weights_of_a_small_case_by_hand():
    """At 2 one of four rows without the event is censored, at 3 one of two; events come first."""
    found = vx.at_horizon([1, 2, 2, 3, 3, 5], [1, 1, 0, 1, 0, 0], horizon=4)
    assert found.weights.tolist() == pytest.approx([1, 1, 0, 4 / 3, 0, 8 / 3])
    assert found.risk == pytest.approx(1 - 5 / 6 * 4 / 5 * 2 / 3)


def test_rows_followed_to_the_horizon_exactly_were_followed():
    found = vx.at_horizon([5, 5, 2, 5], [0, 0, 1, 1], horizon=5)
    assert found.outcomes.tolist() == [0, 0, 1, 1]
    assert found.weights.tolist() == [1, 1, 1, 1]
    assert found.n_censored == 0


def test_without_censored_rows_weights_are_one():
    time = np.array([1.0, 4.0, 6.0, 9.0])
    found = vx.at_horizon(time, np.ones(4), horizon=5)
    assert found.outcomes.tolist() == [1, 1, 0, 0]
    assert found.weights.tolist() == [1, 1, 1, 1]


class TestScikitSurvival:
    """Times without ties between events and censorings, of which packages have conventions of their own."""

    @pytest.fixture(autouse=True)
    def _package(self):
        self.metrics = pytest.importorskip("sksurv.metrics")
        self.datasets = pytest.importorskip("sksurv.datasets")

    def given(self, seed):
        time, event, risk = rows(400, seed)
        followed = np.array(
            list(zip(event == 1, time, strict=True)), dtype=[("event", bool), ("time", float)]
        )
        return time, event, risk, followed

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("horizon", [2.0, 5.0, 8.0])
    def test_brier_score_is_that_of_graf(self, seed, horizon):
        time, event, risk, followed = self.given(seed)
        found = vx.at_horizon(time, event, horizon=horizon)
        mine = vx.rules.Brier(scale="half")(found.outcomes, risk, weights=found.weights)
        _, (theirs,) = self.metrics.brier_score(followed, followed, 1 - risk[:, None], [horizon])
        assert mine == pytest.approx(theirs, rel=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("horizon", [2.0, 5.0, 8.0])
    def test_auc_is_that_of_cumulative_cases_and_dynamic_controls(self, seed, horizon):
        time, event, risk, followed = self.given(seed)
        found = vx.at_horizon(time, event, horizon=horizon)
        mine = vx.evaluate(found.outcomes, risk, weights=found.weights)["auc"]
        (theirs,), _ = self.metrics.cumulative_dynamic_auc(followed, followed, risk, [horizon])
        assert mine == pytest.approx(theirs, rel=1e-12)

    def test_heart_attacks_of_worcester(self):
        """Real follow-up in days, with ties."""
        _, followed = self.datasets.load_whas500()
        time, event = followed["lenfol"], followed["fstat"]
        nonparametric = pytest.importorskip("sksurv.nonparametric")
        times, alive = nonparametric.kaplan_meier_estimator(event, time)
        for horizon in (30, 365, 1095):
            found = vx.at_horizon(time, event, horizon=horizon)
            assert found.risk == pytest.approx(1 - alive[times <= horizon][-1], rel=1e-12)


def test_net_benefit_is_that_of_weighted_rows():
    time, event, risk = rows()
    found = vx.at_horizon(time, event, horizon=HORIZON)
    curve = vx.net_benefit(found.outcomes, risk, weights=found.weights, thresholds=[0.3]).curves[0]
    w, acts = found.weights / len(time), risk >= 0.3
    want = w[acts & (found.outcomes == 1)].sum() - 3 / 7 * w[acts & (found.outcomes == 0)].sum()
    assert curve.values[0] == pytest.approx(want, rel=1e-12)


def test_true_risks_are_found_calibrated_and_outcomes_as_they_stand_are_not():
    time, event, risk = rows(4000, 3, last=6.0)
    found = vx.at_horizon(time, event, horizon=HORIZON)
    assert found.risk / risk.mean() == pytest.approx(1, abs=0.08)
    assert event.mean() / risk.mean() < 0.8
    assert "No significant miscalibration" in str(
        vx.evaluate(found.outcomes, risk, weights=found.weights).verdict
    )
    assert "too high" in str(vx.evaluate(event, risk).verdict)


class TestResult:
    def test_comes_back_equal(self):
        time, event, _ = rows(50)
        found = vx.at_horizon(time, event, horizon=HORIZON)
        again = vx.results.OutcomesAtHorizon.from_dict(found.to_dict())
        assert again == found
        assert found.to_dict()["risk"] == pytest.approx(found.risk)

    def test_tells_how_many_were_censored(self):
        text = str(vx.at_horizon([1, 2, 6], [1, 0, 0], horizon=5))
        assert "3 rows" in text
        assert "censored before" in text


@pytest.mark.parametrize(
    ("time", "event", "options", "words"),
    [
        ([1, 2], [0, 0], {"horizon": 1}, "at least one event; no event happened up to 1"),
        ([2, 3], [1, 0], {"horizon": 1}, "at least one event; no event happened up to 1"),
        (
            [1, 2],
            [0, 1],
            {"horizon": 3},
            "must not lie beyond the last time; it is 3, and the last time is 2",
        ),
        ([1, 2], [0, 0], {"horizon": 3}, "must not lie beyond the last time"),
        ([-1, 2], [0, 1], {"horizon": 1}, "finite and not negative; row 0 holds -1"),
        ([1, np.nan], [0, 1], {"horizon": 1}, "finite and not negative; row 1 holds nan"),
        ([1, np.inf], [0, 1], {"horizon": 1}, "finite and not negative; row 1 holds inf"),
        ([1, 2], [0, 2], {"horizon": 1}, "row 1 holds 2. Competing events are not supported"),
        ([1, 2], [0, 0.5], {"horizon": 1}, "1 where the event happened and 0"),
        ([1, 2], [0, np.nan], {"horizon": 1}, "1 where the event happened and 0"),
        ([1, 2], [0, 1], {"horizon": 0}, "must be a number above 0, not 0"),
        ([1, 2], [0, 1], {"horizon": "five"}, "must be a number above 0"),
        ([1, 2], [0, 1, 1], {"horizon": 1}, "must have 2 rows, like `time`; it has 3"),
        ([[1, 2]], [0, 1], {"horizon": 1}, "one number per row"),
        (["a", "b"], [0, 1], {"horizon": 1}, "one number per row"),
        ([], [], {"horizon": 1}, "one number per row"),
        ([1, 2], [1, 0], {"horizon": 1, "weights": [1]}, "must have 2 rows"),
        ([1, 2], [1, 0], {"horizon": 1, "weights": [1, -1]}, "not negative; row 1 holds -1"),
        ([1, 2], [1, 0], {"horizon": 2, "weights": [1, 0]}, "`weights` must not all be zero"),
    ],
)
def test_refused(time, event, options, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        vx.at_horizon(time, event, **options)


def test_sums_of_other_bytes_are_refused():
    sums = TimeSums.of(np.array([1.0, 3.0]), np.array([True, False]), None, 2.0)
    values = sums.to_values() | {
        "times": np.array([2.0, 1.0]),
        "happened": np.ones(2),
        "censored": np.ones(2),
    }
    with pytest.raises(UnreadableError):
        TimeSums.from_values(values)
    with pytest.raises(VeraxError):
        TimeSums.from_bytes(sums.to_bytes()[:-3])
