"""The worst rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

import verax as vx
from cases import forecasts
from scattered import Scattered

NAMES = ["none", "mild", "severe"]


def test_the_worst_rows_come_first_with_their_ranks():
    y, p = forecasts(200, 3, ties=False)
    found = vx.worst(y, p, rule=vx.rps, n=12)
    losses = vx.rps.samples(y, p)
    assert [case.row for case in found] == np.argsort(-losses, kind="stable")[:12].tolist()
    for place, case in enumerate(found):
        assert case.ranks["rps"] == place + 1
        assert case.ranks["brier"] == 1 + np.sum(vx.brier.samples(y, p) > vx.brier.samples(y, p)[case.row])
        assert case.loss == pytest.approx(losses[case.row])
        assert case.forecast == pytest.approx(p[case.row])
        assert case.outcome == y[case.row]


def test_brier_and_rps_disagree_about_the_worst_mistake():
    # An outcome in the lowest grade: all but sure of its neighbour, or undecided between the ends?
    p = [[0.2, 0.8, 0.0], [0.3, 0.0, 0.7]]
    by_brier = vx.worst(["none"] * 2, p, rule="brier", n=2, others=["rps"], classes=NAMES)
    by_rps = vx.worst(["none"] * 2, p, rule="rps", n=2, classes=NAMES)
    assert [case.row for case in by_brier] == [0, 1]
    assert [case.row for case in by_rps] == [1, 0]
    assert by_brier[0].source == "mild had 0.80, none 0.20"
    assert by_rps[0].source == "70% of the probability was above none"
    high = vx.worst(["severe"], [[0.6, 0.3, 0.1]], rule="rps", n=1, classes=NAMES)
    assert high[0].source == "90% of the probability was below severe"


def test_ids_and_labels():
    y, p = forecasts(30, 3, ties=False)
    ids = [f"scan-{i:03}" for i in range(30)]
    labels = np.array(NAMES)[y]
    found = vx.worst(labels, p, rule="sa_rps", n=3, ids=ids, classes=NAMES)
    for case in found:
        assert case.id == f"scan-{case.row:03}"
        assert case.outcome == NAMES[y[case.row]]
    text = repr(found)
    assert text.startswith("the worst 3 of 30 rows by sa_rps\nid")
    assert found[0].id in text
    assert json.loads(json.dumps(found.to_dict()))["cases"][0]["id"] == found[0].id


def test_untrusted_text_is_escaped():
    page = vx.worst(
        ["a"], [[0.1, 0.9]], rule="brier", n=1, ids=["<script>"], classes=["a", "<b>"]
    )._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


def test_infinite_losses_and_few_rows():
    found = vx.worst([0, 1], [[0.0, 1.0], [0.5, 0.5]], rule="log_score", n=10)
    assert len(found) == 2
    assert found[0].loss == np.inf
    assert [case.ranks["log_score"] for case in found] == [1, 2]


def test_ties_keep_the_order_of_the_rows():
    found = vx.worst([0] * 4, [[0.5, 0.5]] * 4, rule="brier", n=3)
    assert [case.row for case in found] == [0, 1, 2]
    assert [case.ranks["brier"] for case in found] == [1, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n": 0}, "`n` must be"), ({"ids": ["a"]}, "`ids` must be 2"), ({"rule": "rpz"}, "Did you mean 'rps'")],
)
def test_refusals(options, message):
    with pytest.raises(vx.VeraxError, match=message):
        vx.worst([0, 1], [[0.0, 1.0], [0.5, 0.5]], **{"rule": "log_score", **options})


def test_rows_in_parts_are_ranked_as_one():
    y, p = forecasts(300, 3)
    ids = np.array([f"row {i}" for i in range(300)])
    found = vx.worst(Scattered(y, p, ids=ids), rule="rps", n=20)
    assert found == vx.worst(y, p, rule="rps", n=20, ids=ids)


def test_rows_are_called_rows_unless_they_have_ids():
    y, p = [0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    assert repr(vx.worst(y, p, rule="brier", n=2)).splitlines()[1].startswith("row ")
    assert repr(vx.worst(y, p, rule="brier", n=2, ids=["a", "b", "c"])).splitlines()[1].startswith("id ")
