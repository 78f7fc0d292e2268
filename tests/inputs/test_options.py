"""The reading options of every function are shown one by one, described once, and checked."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest

import verax as vx

READERS = [vx.evaluate, vx.compare, vx.decompose, vx.retention, vx.selective, vx.subgroups, vx.worst, vx.ece]
READERS += [vx.roc_auc, vx.average_precision, vx.c_index, vx.net_benefit, vx.diagrams.murphy]
READERS += [vx.operating_points, vx.roc_curve, vx.precision_recall_curve, vx.confidence_curve]
READERS += [vx.calibration_slope, vx.risk_coverage, vx.choose_thresholds, vx.deferral]
READERS += [vx.reliability, vx.compare_lengths, vx.rules.Rule.__call__, vx.rules.Rule.samples]


@pytest.mark.parametrize("function", READERS, ids=lambda function: function.__qualname__)
def test_signatures_and_documentation_name_the_options(function):
    parameters = inspect.signature(function).parameters
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    assert parameters["normalize"].default is False
    assert parameters["classes"].annotation == "Sequence[Hashable] | None"
    if "selective" not in function.__name__:
        assert "Names of the columns of `p`, in order" in function.__doc__
    assert "**read" not in function.__doc__


def test_other_keywords_are_refused_as_python_does():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'weight'. Did you mean 'weights'"):
        vx.evaluate([0], [[0.5, 0.5]], weight=[1])
    with pytest.raises(TypeError, match="groups"):
        vx.brier([0], [[0.5, 0.5]], groups=[1])


def test_defaults_that_are_typed_beside_a_handle_are_no_options():
    table = pa.table({"label": [0, 1, 1], "p_0": [0.8, 0.3, 0.4], "p_1": [0.2, 0.7, 0.6]})
    typed = {"normalize": False, "logits": False, "invalid": "raise", "weights": None, "classes": None}
    assert vx.evaluate(vx.scan(table), **typed).n_rows == 3
    for name, value in (("normalize", True), ("invalid", "skip"), ("classes", [0, 1])):
        with pytest.raises(vx.InputError, match=name):
            vx.evaluate(vx.scan(table), **{name: value})


def test_models_with_rows_of_their_own_cannot_leave_out_rows_without_ids():
    y, p = {"a": [0, 1, 1], "b": [1, 0, 1]}, {"a": [0.2, 0.7, 0.8], "b": [0.6, 0.3, 0.8]}
    with pytest.raises(vx.InputError, match="cannot be 'skip' for top lists, nor where every model"):
        vx.compare(y, p, rule="brier", invalid="skip")


@pytest.mark.parametrize("y", [[1, 0, 1, 1, 0], [True, False, True, True, False]])
def test_the_event_of_numbered_outcomes_is_a_number_whichever_comes_first(y):
    p = [0.9, 0.4, 0.3, 0.8, 0.1]
    assert vx.roc_auc(y, p, positive=1).value == vx.roc_auc(y, p).value == pytest.approx(5 / 6)
