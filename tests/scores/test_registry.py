"""From a text to a rule and back."""

from __future__ import annotations

import math

import numpy as np
import pytest

import verax as vx
from verax.scores import registry
from verax.scores.registry import as_rules, stored_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("brier", vx.brier),
        (" brier ", vx.brier),
        ("brier()", vx.brier),
        ("log_score", vx.log_score),
        ("log_score(base=2)", vx.rules.Log(base=2)),
        ("log_score(2)", vx.rules.Log(base=2)),
        ("pbs", vx.pbs),
        ("penalized(brier)", vx.pbs),
        ("penalized(log_score)", vx.pll),
        ("penalized(brier(scale='mean'), penalty=0.8)", vx.penalized(vx.rules.Brier("mean"), 0.8)),
        ('penalized(rps, "minimal", ties="lowest")', vx.penalized(vx.rps, "minimal", "lowest")),
        ("rps(normalized=False)", vx.rules.RPS(normalized=False)),
    ],
)
def test_texts(text, rule):
    assert vx.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("breir", "There is no rule called 'breir'. Did you mean 'brier'?"),
        ("accuracy", "Did you mean 'zero_one'? It is the share of wrong answers, one minus the accuracy"),
        ("xyzzy", "Valid names are abs_rps, brier"),
        ("penalised(brier)", "Did you mean 'penalized'?"),
        ("brier(scale='double')", "`scale` must be one of"),
        ("brier(size=2)", "unexpected keyword argument"),
        ("pbs(penalty=2)", "pbs takes no parameters; it is penalized(brier), which does."),
        ("penalized()", "missing a required argument"),
        ("", "is not the name of a rule"),
        ("1 + 1", "is not the name of a rule"),
        ("brier; rps", "is not the name of a rule"),
        ("__import__('os')", "There is no rule called '__import__'"),
        ("log_score(base=__import__('os').system('true'))", "is not the name of a rule"),
        ("log_score(base=2 ** 99)", "parameters must be rules or literals"),
        ("log_score(**{'base': 2})", "** is not allowed"),
        ("penalized(sa_rps)", "needs a proper rule"),
        ("(" * 500, "is not the name of a rule"),
        ("\0", "is not the name of a rule"),
        ("\ud800", "is not the name of a rule"),
        ("log_score(base=" + "9" * 5000 + ")", "is not the name of a rule"),
        ("log_score(base=" + "9" * 400 + ")", "`base` must be a finite number"),
        ("log_score(base=9e999)", "`base` must be a finite number"),
        (None, "given as a rule or as its name"),
        (3, "given as a rule or as its name"),
        (vx.rules.Brier, "is a class of rules"),
        (int, "given as a rule or as its name"),
    ],
)
def test_texts_that_name_no_rule(text, message):
    with pytest.raises(vx.VeraxError) as caught:
        vx.parse(text)
    assert message in str(caught.value)


def test_every_registered_rule_is_an_attribute():
    for name, rule in vx.rules.RULES.items():
        assert getattr(vx, name) is rule


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: vx.rules.Log(base=1), "base"),
        (lambda: vx.rules.Log(base=10**400), "base"),
        (lambda: vx.rules.Log(base="2"), "base"),
        (lambda: vx.rules.Log(clip=0.5), "clip"),
        (lambda: vx.rules.Brier("double"), "scale"),
        (lambda: vx.rules.Brier(np.array(["sum", "half"])), "scale"),
        (lambda: vx.rules.SaRPS(["unit"]), "scale"),
        (lambda: vx.rules.ZeroOne(None), "ties"),
        (lambda: vx.rules.RPS(normalized="no"), "normalized"),
        (lambda: vx.penalized("brier"), "rule"),
        (lambda: vx.penalized(vx.brier, "max"), "penalty"),
        (lambda: vx.penalized(vx.brier, math.inf), "penalty"),
        (lambda: vx.penalized(vx.brier, True), "penalty"),
        (lambda: vx.penalized(vx.brier, ties="strict"), "ties"),
        (lambda: vx.rps.bounds(1), "n_classes"),
        (lambda: vx.pbs.constant(2.5), "n_classes"),
        (lambda: vx.rps.sup_correct(2**901), "n_classes"),
        (lambda: as_rules([]), "rule"),
    ],
)
def test_wrong_parameters_are_input_errors(make, argument):
    with pytest.raises(vx.InputError) as caught:
        make()
    assert caught.value.argument == argument


def test_numbers_of_numpy_have_a_text_form_too():
    for rule in (
        vx.rules.Log(base=np.float64(2)),
        vx.penalized(vx.brier, np.float32(0.5)),
        vx.rules.RPS(np.False_),
    ):
        assert vx.parse(repr(rule)) == rule


def test_every_rule_of_the_registry_is_listed_by_name():
    made = {name for name, value in vars(registry).items() if isinstance(value, vx.rules.Rule)}
    assert made == set(vx.rules.RULES)


def test_a_rule_is_its_own_text():
    assert vx.parse(vx.rps) is vx.rps


@pytest.mark.parametrize(
    ("text", "rule"),
    [("log", vx.log_score), ("log(base=2)", vx.rules.Log(base=2)), ("penalized(log)", vx.pll)],
)
def test_the_former_name_of_the_log_score_is_read_and_answered_where_it_is_typed(text, rule):
    with pytest.warns(DeprecationWarning, match="'log' is now called 'log_score'") as found:
        assert vx.parse(text) == rule
    assert found[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="log_score") as deeper:
        vx.evaluate([0, 1], [[0.5, 0.5], [0.2, 0.8]], rules=[text])
    assert deeper[0].filename == __file__
    assert stored_rule(text) == rule
