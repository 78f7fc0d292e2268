"""Invalid rows left out on request: results are those of the other rows, and say what was left out."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import verax as vx
from cases import NAMESPACES
from verax.common.strictjson import plain
from verax.inputs.skipping import Skipped
from verax.report import Report

N, K = 120, 3
BAD = (5, 7, 11, 20)
GOOD = np.setdiff1d(np.arange(N), BAD)
REASONS = {
    "probabilities that are missing or not finite": 1,
    "probabilities below 0 or above 1": 1,
    "probabilities that do not sum to 1": 1,
    "outcomes not among the classes": 1,
}


def rows():
    """Rows of which four are invalid, each for a reason of its own; one rules out what happened."""
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, K, N), rng.dirichlet(np.ones(K), N)
    p[5, 1] = np.nan
    p[7, 0] += 0.3
    y[11] = 9
    p[20] = [1.2, -0.2, 0]
    y[30], p[30] = 0, [0, 0.5, 0.5]
    return y, p


# Every public function that reads outcomes and forecasts.
READERS = [getattr(vx, name) for name in vx.__all__]
READERS = [
    f for f in READERS if inspect.isfunction(f) and {"y", "invalid"} <= {*inspect.signature(f).parameters}
]
# Of two classes alone.
READERS.remove(vx.plan_validation)
READERS += [vx.rules.Rule.__call__, vx.rules.Rule.samples]

# What each function takes besides y and p; where p has another name.
EXTRA = {
    "compare": {"rule": "brier", "weights": np.arange(N) % 3 + 1.0},
    "compare_folds": {"rule": "brier", "folds": np.arange(N) % 5},
    "decompose": {"rule": "rps", "groups": np.arange(N) // 2},
    "deferral": {"defer": 0.3},
    "net_benefit": {"ordered": True},
    "over_time": {"time": np.arange(N) // 10},
    "retention": {"rule": "brier", "metric": "accuracy"},
    "raters": {"raters": "columns", "ids": np.arange(N) + 1000},
    "evaluate_sets": {"level": 0.8},
    "sites": {"sites": np.array(["a", "b", "c"])[np.arange(N) % 3]},
    "subgroups": {"by": np.array(["a", "b"])[np.arange(N) % 2]},
    "worst": {"rule": "brier", "ids": np.arange(N) + 1000},
}


@pytest.mark.parametrize("function", READERS, ids=lambda function: function.__qualname__)
def test_results_are_those_of_the_valid_rows(function):
    y, p = rows()
    y = np.column_stack([y, y]) if function is vx.raters else y
    extra = EXTRA.get(function.__name__, {})
    less = {name: v[GOOD] if isinstance(v, np.ndarray) else v for name, v in extra.items()}
    first = (vx.spherical,) if "." in function.__qualname__ else ()
    several = "forecasts" in inspect.signature(function).parameters
    given, valid = (
        {"a": p, "b": np.full((N, K), 1 / K)},
        {"a": p[GOOD], "b": np.full((len(GOOD), K), 1 / K)},
    )
    with pytest.raises(vx.InputError):
        function(*first, y, given if several else p, **extra)
    found = function(*first, y, given if several else p, invalid="skip", **extra)
    expected = function(*first, y[GOOD], valid if several else p[GOOD], **less)
    if isinstance(found, float):
        assert found == expected
        return
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found[GOOD], expected)
        assert np.isnan(found[list(BAD)]).all()
        return
    assert (found.n_skipped, found.skipped.rows, dict(found.skipped.reasons)) == (4, BAD, REASONS)
    if function is vx.recalibrate:
        q = found.apply(p, invalid="skip")
        np.testing.assert_allclose(q[GOOD], expected.apply(p[GOOD]))
        assert np.flatnonzero(np.isnan(q).any(axis=1)).tolist() == [5, 7, 20]
    assert expected.skipped is None
    assert f"4 of {N} rows were left out (rows 5, 7, 11 and 1 more)" in repr(found)
    assert "rows were left out (" not in repr(expected)
    there, wanted = found.to_dict(stored=False), expected.to_dict(stored=False)
    first = there if isinstance(there, dict) else there[0]
    entry = first.pop("skipped")
    # What the rows that were left out could change.
    first.pop("skipped_bounds", None)
    assert entry.pop("caution") == found.skipped.caution
    assert plain(entry) == {"n_given": N, "count": 4, "rows": list(BAD), "reasons": REASONS}
    if function in (vx.worst, vx.raters):
        assert [case["id"] - 1000 for case in there["cases"]] == [case["row"] for case in there["cases"]]
        for case in wanted["cases"]:
            case["row"] = int(GOOD[case["row"]])
    if function is vx.evaluate:
        assert there.pop("zero_probability") == {"count": 1, "rows": [30]}
        assert wanted.pop("zero_probability") == {"count": 1, "rows": [26]}
    assert repr(there) == repr(wanted)


def test_a_validation_is_planned_from_the_valid_rows():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 8, 400)
    y, given, good = rng.random(400) < p, p.copy(), np.arange(400) % 50 != 7
    given[~good] = np.nan
    found = vx.plan_validation(y, given, invalid="skip")
    assert found.n_skipped == 8
    exact = vx.plan_validation(y[good], p[good])
    assert found.rows == exact.rows


def as_list(x):
    return np.asarray(x).tolist()


def as_pandas(x):
    return (
        pd.DataFrame(x, index=np.arange(len(x)) + 7)
        if np.ndim(x) == 2
        else pd.Series(x, index=np.arange(len(x)) + 7)
    )


def as_polars(x):
    return pl.DataFrame(x, schema=["0", "1", "2"]) if np.ndim(x) == 2 else pl.Series(x)


def as_pyarrow(x):
    return (
        pa.table({str(j): x[:, j] for j in range(K)}) if np.ndim(x) == 2 else pa.chunked_array([pa.array(x)])
    )


@pytest.mark.parametrize("to", [*NAMESPACES, as_list, as_pandas, as_polars, as_pyarrow])
def test_rows_of_every_container_are_left_out(to):
    y, p = rows()
    card = vx.evaluate(to(y), to(p), weights=to(np.arange(N) + 1.0), invalid="skip")
    expected = vx.evaluate(y[GOOD], p[GOOD], weights=GOOD + 1.0)
    assert card["brier"] == pytest.approx(expected["brier"], rel=1e-6)
    assert (card.skipped.rows, card.zero_probability_rows) == (BAD, (30,))
    losses = vx.brier.samples(to(y), to(p), invalid="skip")
    assert np.flatnonzero(np.isnan(np.asarray(losses))).tolist() == list(BAD)


def test_missing_outcomes_groups_weights_and_subgroups():
    y, p = rows()
    p = np.nan_to_num(p, nan=0.0)
    p /= p.sum(axis=1, keepdims=True)
    p[20] = 1 / 3
    labels = np.array(["a", "b", "c"], dtype=object)[np.minimum(y, 2)]
    labels[3] = None
    groups = pd.Series(np.arange(N) // 4, dtype="Int64")
    groups[9] = pd.NA
    weights = np.ones(N)
    weights[13] = -1
    by = np.array(["u", "v"], dtype=object)[np.arange(N) % 2]
    by[15] = None
    found = vx.subgroups(
        labels, p, by=by, classes=["a", "b", "c"], groups=groups, weights=weights, invalid="skip"
    )
    assert found.skipped.rows == (3, 9, 13, 15)
    assert list(found.skipped.reasons) == [
        "missing outcomes",
        "missing groups",
        "missing subgroups",
        "weights that are missing, negative or not finite",
    ]
    two = vx.evaluate(labels, p, classes=["a", "b", "c"], groups=[groups, np.arange(N) % 5], invalid="skip")
    assert (two.skipped.rows, two.n_groups) == ((3, 9), (30, 5))
    masked = np.ma.masked_array(p, np.zeros_like(p, bool))
    masked[4, 1] = np.ma.masked
    assert vx.evaluate(np.minimum(y, 2), masked, invalid="skip").skipped.rows == (4,)


def test_rows_of_categoricals_are_left_out_and_sparse_weights_refused():
    y, p = rows()
    labels = pd.Categorical.from_codes(np.minimum(y, 2), ["a", "b", "c"])
    found = vx.evaluate(labels, p, classes=["a", "b", "c"], invalid="skip")
    assert found.skipped.rows == (5, 7, 20)
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(y, p, weights=csr_array(np.ones((1, N))), invalid="skip")
    assert (caught.value.argument, caught.value.kind) == ("weights", "type")


def test_a_row_is_left_out_for_all_models_and_counted_once():
    y, p = rows()
    other = p.copy()
    other[50] = 2
    found = vx.compare(y, {"a": p, "b": other}, rule="brier", invalid="skip")
    assert (found.n_rows, found.skipped.rows) == (N - 5, (*BAD, 50))
    assert found.skipped.reasons["outcomes not among the classes"] == 1


def test_nothing_to_leave_out_is_said_too():
    y, p = rows()
    card = vx.evaluate(y[GOOD], p[GOOD], invalid="skip")
    assert (card.n_skipped, card.skipped) == (0, Skipped(len(GOOD)))
    assert "None of 116 rows was left out: all are valid." in repr(card)


def test_cards_of_parts_merge_with_what_they_left_out():
    y, p = rows()
    parts = [vx.evaluate(y[part], p[part], invalid="skip") for part in (slice(0, 10), slice(10, N))]
    merged = parts[0].merge(parts[1])
    assert (merged.n_rows, merged.skipped.count, merged.skipped.n_given) == (N - 4, 4, N)
    assert merged.skipped.rows == ()  # both parts number their rows from 0
    assert "4 of" in str(merged.skipped)
    assert pickle.loads(pickle.dumps(merged)).skipped == merged.skipped


def test_what_cannot_be_left_out():
    y, p = rows()
    lists = vx.TopLists.from_probabilities(p[GOOD], 2)
    with pytest.raises(vx.InputError) as found:
        vx.evaluate(y[GOOD], lists, invalid="skip")
    assert found.value.argument == "invalid"
    with pytest.raises(vx.InputError) as found:
        vx.compare({"a": y, "b": y}, {"a": p, "b": p}, rule="brier", invalid="skip")
    assert found.value.argument == "invalid"
    with pytest.raises(vx.InputError) as found:
        vx.evaluate(y, p, invalid="drop")
    assert found.value.argument == "invalid"
    with pytest.raises(vx.InputError, match="at least one valid row; 2 of 2 rows were left out"):
        vx.evaluate([0, 1], [[2.0, 3.0], [0.5, 0.4]], invalid="skip")
    with pytest.raises(vx.InputError) as found:
        vx.evaluate(y, p[:50], invalid="skip")
    assert (found.value.argument, found.value.kind) == ("y", "length")


def test_few_invalid_rows_come_with_the_advice_to_leave_them_out():
    y, p = rows()
    with pytest.raises(vx.InputError) as found:
        vx.evaluate(y, p)
    assert {"invalid": "skip"} in [remedy.options for remedy in found.value.remedies]
    with pytest.raises(vx.InputError) as found:
        vx.evaluate(y[:10], p[:10])
    assert {"invalid": "skip"} not in [remedy.options for remedy in found.value.remedies]


@pytest.mark.long
def test_the_report_says_so_and_names_rows_by_their_numbers():
    y, p = rows()
    report = Report.of(y, {"a": p, "b": p[::-1][np.argsort(np.arange(N)[::-1])]}, invalid="skip")
    found = report.to_dict()
    assert found["skipped"]["rows"] == list(BAD)
    assert found["checks"][0]["question"] == "Invalid rows left out"
    assert "rows 5, 7, 11 and 1 more" in found["checks"][0]["answer"]
    assert found["models"]["a"]["card"]["zero_probability"]["rows"] == [30]
    zero = next(check for check in found["checks"] if "probability zero" in check["question"])
    assert "row 30" in zero["answer"]
    expected = vx.worst(y, p, rule="brier", n=3, invalid="skip")
    assert [case["row"] for case in found["models"]["a"]["worst"]["cases"][:3]] == [
        case.row for case in expected
    ]


def test_rows_without_a_subgroup_stay_in_the_report():
    y, p = rows()
    by = np.array(["u", "v"], dtype=object)[np.arange(N) % 2]
    by[40:80] = None
    found = Report.of(y, p, by=pd.Series(by, name="site"), invalid="skip").to_dict()
    assert found["skipped"]["rows"] == list(BAD)
    assert sorted(line["label"] for line in found["subgroups"]["site"]["subgroups"]) == [
        "(missing)",
        "u",
        "v",
    ]


def test_many_rows_left_out_carry_a_caution():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 100)
    y = rng.integers(0, 3, 100)
    few, many = p.copy(), p.copy()
    few[:2], many[:3] = np.nan, np.nan
    assert vx.evaluate(y, few, invalid="skip").skipped.caution == ""
    card = vx.evaluate(y, many, invalid="skip")
    assert "Caution: 3.0% of the rows were left out." in repr(card)
    assert card.to_dict(stored=False)["skipped"]["caution"] == card.skipped.caution
    compared = vx.compare(y, {"a": many, "b": p}, rule="brier", invalid="skip")
    assert "Caution: 3.0% of the rows were left out." in repr(compared)


def test_outcomes_that_count_from_one_are_refused_also_where_invalid_rows_are_left_out():
    # Left out are those of the last class; the others would each mean the class after their own.
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(4), 60)
    y = np.tile([1, 2, 3, 4], 15)
    p[5] = np.nan
    with pytest.raises(vx.InputError, match="The labels seem to count from 1"):
        vx.evaluate(y, p, invalid="skip")
    assert vx.evaluate([*y, 0], [*p, p[0]], invalid="skip").n_skipped == 16


PERCENT = np.array([[90.0, 10], [20, 80], [np.nan, 100], [40, 60], [0.5, 0.5], [1, 0]])


@pytest.mark.parametrize("p", [PERCENT, PERCENT[:, 1]], ids=["two columns", "one column"])
def test_percentages_are_not_left_out_as_if_the_rest_were_probabilities(p, write, change):
    y = [0, 1, 1, 1, 0, 0]
    with pytest.raises(vx.InputError, match=r"rows look like percentages\. If so, divide them by 100"):
        vx.evaluate(y, p, invalid="skip")
    columns = p.reshape(6, -1)
    names = ["p_0", "p_1"][: columns.shape[1]]
    rows = [
        f"{k}," + ",".join("" if x != x else repr(float(x)) for x in row)
        for k, row in zip(y, columns, strict=True)
    ]
    path = write("\n".join([",".join(["label", *names]), *rows]) + "\n")
    for held in (2**20, 2):
        change(held_up_to=held, held_bytes_up_to=held)
        rows = vx.scan(path, target="label", probs=names, invalid="skip")
        with pytest.raises(vx.InputError, match=r"look like percentages\. Pass percent=True if so"):
            vx.evaluate(rows)
    read = vx.scan(path, target="label", probs=names, invalid="skip", percent=True)
    # Of two columns those that sum to less than 100 are left out, and the one with a blank.
    assert vx.evaluate(read).n_skipped == (3 if p.ndim == 2 else 0)


def test_a_few_percentages_among_probabilities_are_left_out_by_that_name():
    p = np.r_[np.full(200, 0.3), 30.0]
    found = vx.evaluate(np.arange(201) % 2, p, invalid="skip")
    assert found.skipped.reasons == {"probabilities that look like percentages": 1}
