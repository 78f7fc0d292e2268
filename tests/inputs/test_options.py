"""The reading options of every function are shown one by one, described once, and checked."""

from __future__ import annotations

import inspect

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
