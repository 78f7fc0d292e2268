"""Every rule against exact reference values (tests/vectors.json), to twelve digits."""

from __future__ import annotations

from collections import defaultdict

import pytest

import references
import verax as vx
from cases import number

VECTORS = defaultdict(list)
for _entry in references.entries():
    VECTORS[_entry["rule"]].append(_entry)

# To count a tie as wrong is improper, and no paper's algorithm does it: not offered.
REFUSED_TIES = {"strict"}


def pbs(params, k):
    rule = {"eq4": vx.brier}.get(params.get("variant", "eq4"), vx.rules.Brier("mean"))
    penalty = (k - 1) / k if params.get("variant") == "code" else "sup"
    return vx.penalized(rule, penalty, ties=params["ties"])


def penalized(params, _):
    penalty = params["penalty"]
    penalty = penalty if penalty in ("sup", "minimal") else number(penalty)
    return vx.penalized(vx.parse(params["base"]), penalty, params["ties"])


MAKERS = {
    "brier": lambda params, _: vx.rules.Brier(params.get("scale", "sum")),
    "log_score": lambda params, _: (
        vx.rules.Log() if params.get("base", "e") == "e" else vx.rules.Log(float(params["base"]))
    ),
    "spherical": lambda *_: vx.rules.Spherical(),
    "rps": lambda params, _: vx.rules.RPS(params.get("normalized", True)),
    "sa_rps": lambda params, _: vx.rules.SaRPS(params.get("scale", "unit")),
    "abs_rps": lambda params, _: vx.rules.AbsRPS(params.get("normalized", True)),
    "zero_one": lambda params, _: vx.rules.ZeroOne(params["ties"]),
    "pbs": pbs,
    "pll": lambda params, _: vx.penalized(vx.log_score, ties=params["ties"]),
    "penalized": penalized,
}


def entries(*names):
    return [
        pytest.param(entry, id=entry["id"])
        for name in names
        for entry in VECTORS[name]
        if entry["params"].get("ties") not in REFUSED_TIES
    ]


def close(value, text):
    expected = number(text)
    return pytest.approx(expected, rel=1e-12, abs=1e-300, nan_ok=True) == value


@pytest.mark.parametrize("entry", entries(*MAKERS))
def test_losses(entry):
    rule = MAKERS[entry["rule"]](entry["params"], len(entry["p"]))
    p = [number(x) for x in entry["p"]]
    assert close(rule([entry["y"]], [p]), entry["expected"])
    assert close(rule.samples([entry["y"]], [p])[0], entry["expected"])


@pytest.mark.parametrize("entry", entries("mean_score"))
def test_means(entry):
    rule = MAKERS[entry["params"]["base"]](
        {"ties": "fractional", **entry["params"], "base": "e"}, len(entry["p"][0])
    )
    assert close(rule(entry["y"], [[number(x) for x in row] for row in entry["p"]]), entry["expected"])


@pytest.mark.parametrize("entry", VECTORS["penalty_constants"], ids=lambda e: e["id"])
def test_penalty_constants(entry):
    rule, k = vx.parse(entry["params"]["base"]), entry["params"]["K"]
    assert close(rule.sup_correct(k), entry["expected"]["sup_correct"])
    assert close(rule.inf_wrong(k), entry["expected"]["inf_wrong"])
    minimal = vx.penalized(rule, "minimal").constant(k)
    assert minimal == pytest.approx(number(entry["expected"]["minimal_penalty"]), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("entry", VECTORS["expected_score"], ids=lambda e: e["id"])
def test_expected_scores(entry):
    base, _, ties = entry["params"]["base"].partition(":")
    if ties in REFUSED_TIES:
        with pytest.raises(vx.InputError) as caught:
            vx.penalized(vx.brier, ties=ties)
        assert caught.value.argument == "ties"
        return
    p, q = ([number(x) for x in row] for row in (entry["p"], entry["params"]["truth"]))
    rule = MAKERS[base]({"ties": ties or "fractional"}, len(p))
    assert close(rule.expected(p, q), entry["expected"])


def test_all_entries_of_these_rules_are_used():
    names = (*MAKERS, "mean_score", "penalty_constants", "expected_score")
    refused = [e for name in names for e in VECTORS[name] if e["params"].get("ties") in REFUSED_TIES]
    assert sum(len(entries(name)) for name in names) + len(refused) == 750
    assert len(refused) == 27


def test_the_reference_values_are_those_that_were_given():
    given = references.PATH.parents[2] / "shared" / "vectors.json"
    if not given.exists():
        pytest.skip("shared/vectors.json is not here: it stands beside the repository")
    assert references.PATH.read_bytes() == given.read_bytes()
