"""Several analyses of the same rows share a pass, and find what each finds alone."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scanned import alike
from scattered import Scattered, problem
from verax.errors import InputError
from verax.scans.scan import together

ANALYSES = [
    lambda rows: vx.evaluate(rows, ordered=True, rules=["brier", "rps"]),
    lambda rows: vx.decompose(rows, rule="rps", bootstrap=0),
    lambda rows: vx.evaluate(rows, ordered=True),
]


def test_one_pass_answers_all():
    _, y, p = problem(400, 4, 0)
    rows = Scattered(y, p)
    found = together(rows, ANALYSES)
    assert rows.passes == 1
    for ours, analysis in zip(found, ANALYSES, strict=True):
        alike(ours.to_dict(stored=False), analysis(Scattered(y, p)).to_dict(stored=False))


def test_further_questions_take_passes_of_their_own():
    _, y, p = problem(400, 4, 0)
    rows = Scattered(y, p)

    def twice(rows):
        return vx.evaluate(rows)["brier"], vx.evaluate(rows, rules=["log_score"])["log_score"]

    (brier, log_score), card = together(rows, [twice, vx.evaluate])
    assert rows.passes == 2
    assert (brier, log_score) == pytest.approx((card["brier"], card["log_score"]), rel=1e-12)


def test_an_analysis_that_asks_nothing_is_run_all_the_same():
    _, y, p = problem(50, 3, 0)
    card, name = together(Scattered(y, p), [vx.evaluate, lambda rows: rows.name])
    assert (card.n_rows, name) == (50, "scattered")


def test_invalid_rows_are_refused_as_by_the_first_analysis_alone():
    _, y, p = problem(50, 3, 0)
    p[7] = [0.5, 0.6, 0.7]
    refused = []
    for ask in (ANALYSES[0], lambda rows: together(rows, ANALYSES)):
        with pytest.raises(InputError) as caught:
            ask(Scattered(y, p, n_parts=2))
        refused.append(str(caught.value))
    assert refused[0] == refused[1]


def test_no_analysis_takes_the_question_for_an_error():
    _, y, p = problem(50, 3, 0)

    def careful(rows):
        try:
            return vx.evaluate(rows)
        except Exception:
            return None

    assert together(Scattered(y, p), [careful])[0]["brier"] == pytest.approx(vx.brier(y, p), rel=1e-12)


def test_weights_of_zero_are_refused():
    _, y, p = problem(50, 3, 0)
    with pytest.raises(InputError, match="must not all be zero"):
        together(Scattered(y, p, weights=np.zeros(50)), ANALYSES)
