"""Times and horizons in files, frames and clusters; times beside an event that nothing accounts for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import verax as vx
from followed import HORIZON, frame
from verax.errors import InputError

HOW = {"target": "event", "time": "time", "horizon": HORIZON}


@pytest.fixture(scope="module")
def table():
    return frame()


@pytest.fixture(scope="module")
def wanted(table):
    found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
    return vx.evaluate(found.outcomes, table.p, weights=found.weights)


def same(card, wanted):
    assert card.n_rows == wanted.n_rows
    for name in ("brier", "log_score", "accuracy"):
        assert card[name] == pytest.approx(wanted[name], rel=1e-12)
        assert (
            card.scores[name].interval == pytest.approx(wanted.scores[name].interval)
            if (name in card.scores)
            else True
        )
    assert card["auc"] == pytest.approx(wanted["auc"], rel=1e-12)


def csv(table, folder):
    table.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def several(table, folder):
    for i, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_csv(folder / f"part{i}.csv", index=False)
    return str(folder / "part*.csv")


def arrays(table, folder):
    np.savez(folder / "rows.npz", **{name: table[name] for name in ("time", "event", "p")})
    return folder / "rows.npz"


def parquet(table, folder):
    table.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def polars_query(table, folder):
    return pytest.importorskip("polars").from_pandas(table).lazy()


def dask_frame(table, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=3)


SOURCES = [csv, several, arrays, parquet, polars_query, dask_frame, lambda table, folder: table]


@pytest.mark.parametrize("source", SOURCES)
class TestSources:
    def test_every_source_has_the_numbers_of_arrays(self, source, table, wanted, tmp_path):
        same(vx.evaluate(vx.scan(source(table, tmp_path), **HOW)), wanted)

    def test_every_source_tells_how_many_were_censored(self, source, table, tmp_path):
        found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
        (line,) = [t for t in vx.scan(source(table, tmp_path), **HOW).taken if t.startswith("times: ")]
        assert line == f"times: time (horizon 5, {found.n_censored} of 600 rows censored before)"

    def test_every_source_refuses_the_time_beside_the_event(self, source, table, tmp_path):
        with pytest.raises(InputError, match="may be censored: 'time' holds times") as caught:
            vx.scan(source(table, tmp_path), target="event")
        weighted, complete = caught.value.remedies
        assert weighted.options == {"time": "time", "horizon": 2}
        assert complete.options == {"complete": True}

    def test_every_source_takes_outcomes_as_they_stand_where_all_were_followed(self, source, table, tmp_path):
        card = vx.evaluate(vx.scan(source(table, tmp_path), complete=True))
        assert card["brier"] == pytest.approx(vx.evaluate(table.event, table.p)["brier"], rel=1e-12)


def test_rows_in_many_parts_have_the_numbers_of_all(table, wanted, tmp_path, change):
    change(part_rows=64, held_up_to=1)
    same(vx.evaluate(vx.scan(csv(table, tmp_path), **HOW)), wanted)


@pytest.mark.parametrize("function", [vx.net_benefit, vx.decompose, vx.calibration_slope, vx.roc_curve])
def test_functions_take_rows_at_a_horizon(function, table):
    found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
    options = {"bootstrap": 5} if function is vx.decompose else {}
    mine = function(vx.scan(table, **HOW), **options).to_dict(stored=False)
    theirs = function(found.outcomes, table.p, weights=found.weights, **options).to_dict(stored=False)
    numbers = [key for key, value in theirs.items() if isinstance(value, float)]
    assert {key: mine[key] for key in numbers} == pytest.approx({key: theirs[key] for key in numbers})


def test_weights_groups_and_subgroups_are_taken_as_well(table):
    rng = np.random.default_rng(4)
    more = table.assign(w=rng.integers(1, 4, 600), site=rng.integers(0, 30, 600), sex=rng.integers(0, 2, 600))
    rows = vx.scan(more, **HOW, weights="w", groups="site", by="sex")
    found = vx.at_horizon(more.time, more.event, horizon=HORIZON, weights=more.w)
    wanted = vx.evaluate(found.outcomes, more.p, weights=found.weights, groups=more.site)
    card = vx.evaluate(rows.one_way())
    assert card["brier"] == pytest.approx(wanted["brier"])
    assert card.scores["brier"].interval == pytest.approx(wanted.scores["brier"].interval)


def test_several_models_in_one_table_are_judged_alike(table):
    both = table.rename(columns={"p": "p_new"}).assign(p_old=0.5 * table.p)
    rows = vx.scan(both, **HOW, probs={"new": ["p_new"], "old": ["p_old"]})
    found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
    mine = vx.compare(rows, rule="brier").difference("new", "old").difference
    theirs = vx.compare(
        found.outcomes, {"new": both.p_new, "old": both.p_old}, rule="brier", weights=found.weights
    )
    assert mine == pytest.approx(theirs.difference("new", "old").difference)


@pytest.mark.parametrize(
    "event", [lambda e: np.where(e == 1, "dead", "alive"), lambda e: e + 1, lambda e: e == 1]
)
def test_events_may_be_texts_codes_and_truth_values(event, table, wanted):
    coded = table.assign(event=event(table.event.to_numpy()))
    named = {"classes": ["alive", "dead"]} if coded.event.dtype.kind not in "ib" else {}
    named = {"classes": [1, 2]} if coded.event.max() == 2 else named
    if coded.event.dtype.kind == "b":
        named = {"classes": [False, True]}
    same(vx.evaluate(vx.scan(coded, **HOW, **named)), wanted)


def test_one_hot_outcomes_of_arrays(table, wanted, tmp_path):
    np.savez(
        tmp_path / "rows.npz",
        y=np.eye(2, dtype=int)[table.event],
        p=np.column_stack([1 - table.p, table.p]),
        time=table.time,
    )
    same(vx.evaluate(vx.scan(tmp_path / "rows.npz", time="time", horizon=HORIZON)), wanted)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("source", [csv, arrays, lambda table, folder: table])
class TestImpossibleTimes:
    def test_they_are_refused_with_their_row(self, source, value, table, tmp_path):
        bad = table.copy()
        bad.loc[7, "time"] = value
        with pytest.raises(InputError, match="row 7") as caught:
            vx.scan(source(bad, tmp_path), **HOW)
        assert caught.value.argument == "time"

    def test_they_are_left_out_on_request(self, source, value, table, tmp_path):
        bad = table.copy()
        bad.loc[7, "time"] = value
        card = vx.evaluate(vx.scan(source(bad, tmp_path), **HOW, invalid="skip"))
        rest = table.drop(7)
        found = vx.at_horizon(rest.time, rest.event, horizon=HORIZON)
        assert card.skipped.rows == (7,)
        assert card["brier"] == pytest.approx(
            vx.evaluate(found.outcomes, rest.p, weights=found.weights)["brier"], rel=1e-12
        )


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"horizon": 20}, "beyond the last time; it is 20, and the last time is 9.9"),
        ({}, {"horizon": 1e-6}, "no event happened up to 1e-06"),
        ({"event": 0}, {}, "no event happened up to 5"),
        ({"time": 4.0, "event": 0}, {}, "beyond the last time; it is 5, and the last time is 4"),
        ({"event": lambda t: t.index % 3}, {}, "Competing events are not supported"),
        ({}, {"time": None}, "`time` must be given with a horizon"),
        ({}, {"horizon": None}, "`horizon` must be given with the column of times"),
        ({}, {"time": "tim"}, "There is no column 'tim'"),
        ({}, {"horizon": 0}, "must be a number above 0"),
        ({}, {"horizon": "5"}, "must be a number above 0"),
        ({}, {"complete": True}, "`complete` cannot be given beside a horizon"),
        ({}, {"record": True}, "cannot be used where summaries are saved"),
        ({}, {"lists": True}, "does not apply to outcomes at a horizon"),
        ({}, {"weights_are": "counts"}, "cannot be counts with a horizon"),
        ({"event": "x"}, {"raters": "event", "target": None}, "`raters` does not apply"),
    ],
)
def test_refused(change, options, words, table):
    with pytest.raises(InputError, match=words):
        vx.scan(table.assign(**change), **{**HOW, **options})


def test_cards_of_shards_are_not_saved_to_be_merged(table, tmp_path):
    card = vx.evaluate(vx.scan(table.assign(bad=0.0), **HOW))
    for each in (card, pickle.loads(pickle.dumps(card)), copy.copy(card)):
        with pytest.raises(InputError, match="saved to be merged; the weights of rows need the times"):
            each.save(tmp_path / "card.verax")
    assert not list(tmp_path.iterdir())
    # What the card says can be kept.
    again = type(card).from_dict(card.to_dict())
    assert again["brier"] == card["brier"]
    vx.evaluate(table.event, table.p).save(tmp_path / "card.verax")


def test_three_classes_are_refused(table):
    three = table.drop(columns="p").assign(p_a=0.2, p_b=0.3, p_c=0.5)
    with pytest.raises(InputError, match="outcomes of two classes; there are 3"):
        vx.scan(three, **HOW)


def test_batches_that_are_read_once_are_refused(table):
    with pytest.raises(InputError, match="can be read twice"):
        vx.scan(iter([table]), **HOW)


def test_pairs_of_npy_files_have_no_times(table, tmp_path):
    np.save(tmp_path / "p.npy", table.p)
    np.save(tmp_path / "y.npy", table.event)
    with pytest.raises(InputError, match="ids or times"):
        vx.scan(tmp_path / "p.npy", target=str(tmp_path / "y.npy"), time="time", horizon=HORIZON)


class TestTimeBesideAnEvent:
    """Which columns are taken for follow-up, by their names and first values."""

    def refused(self, **columns):
        table = pd.DataFrame({"p": [0.2, 0.7, 0.4, 0.6], **columns})
        target = next(name for name in columns if name in ("event", "died", "os_status", "label", "arrest"))
        try:
            vx.scan(table, target=target)
        except InputError as error:
            return error.argument == "horizon"
        return False

    @pytest.mark.parametrize("event", ["event", "died", "os_status", "arrest"])
    @pytest.mark.parametrize("time", ["time", "Time", "days", "duration", "follow-up", "tte", "os_months"])
    def test_refused_beside_an_event(self, event, time):
        assert self.refused(**{event: [0, 1, 1, 0], time: [3.0, 1.5, 7.0, 2.5]})

    @pytest.mark.parametrize(
        "time", ["follow_up", "FollowUpDays", "time_to_event", "days_to_death", "futime"]
    )
    def test_names_that_can_be_nothing_else_are_refused_beside_any_outcome(self, time):
        assert self.refused(label=[0, 1, 1, 0], **{time: [3, 1, 7, 2]})

    @pytest.mark.parametrize("time", ["time", "days", "duration", "t"])
    def test_other_times_are_not_refused_beside_an_outcome_that_is_no_event(self, time):
        assert not self.refused(label=[0, 1, 1, 0], **{time: [3.0, 1.5, 7.0, 2.5]})

    @pytest.mark.parametrize(
        "values",
        [
            ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"],
            list(pd.date_range("2026-01-01", periods=4)),
            [1767225600, 1767229200, 1767232800, 1767236400],
            [20260101, 20260102, 20260104, 20260105],
            [2019, 2020, 2020, 2021],
            [0, 1, 2, 3],
            [10, 20, 30, 40],
            [-1.0, 0.0, 1.0, 0.5],
        ],
    )
    def test_dates_clocks_and_row_numbers_are_not_follow_up(self, values):
        assert not self.refused(event=[0, 1, 1, 0], time=values)

    def test_columns_in_another_role_are_not_follow_up(self):
        table = pd.DataFrame({"p": [0.2, 0.7, 0.4], "event": [0, 1, 1], "time": [3.0, 1.0, 2.0]})
        for role in ("by", "weights", "groups", "id"):
            assert vx.scan(table, target="event", **{role: "time"}).models

    def test_three_classes_have_no_horizon(self):
        table = pd.DataFrame({"event": [0, 1, 2], "time": [3.0, 1.0, 2.0]})
        table[["p_0", "p_1", "p_2"]] = [[0.2, 0.3, 0.5]] * 3
        assert vx.scan(table, target="event").n_classes == 3

    def test_an_event_needs_no_target_beside_its_time(self):
        table = frame(n=80)
        assert vx.scan(table, time="time", horizon=3).roles.target == "event"
        with pytest.raises(InputError) as caught:
            vx.scan(table)
        assert caught.value.remedies[0].options["target"] == "event"

    def test_an_event_alone_still_needs_its_target(self):
        with pytest.raises(InputError, match="No column has a usual name of outcomes"):
            vx.scan(frame(n=80).drop(columns="time"))
