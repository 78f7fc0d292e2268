"""From a text to a rule and back."""

from __future__ import annotations

import pytest

import verax as vx


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("brier", vx.brier),
        (" brier ", vx.brier),
        ("brier()", vx.brier),
        ("log", vx.log_score),
        ("log_score", vx.log_score),
        ("log(base=2)", vx.Log(base=2)),
        ("log(2)", vx.Log(base=2)),
        ("pbs", vx.pbs),
        ("penalized(brier)", vx.pbs),
        ("penalized(log)", vx.pll),
        ("penalized(brier(scale='mean'), penalty=0.8)", vx.penalized(vx.Brier("mean"), 0.8)),
        ('penalized(rps, "minimal", ties="lowest")', vx.penalized(vx.rps, "minimal", "lowest")),
        ("rps(normalized=False)", vx.RPS(normalized=False)),
    ],
)
def test_texts(text, rule):
    assert vx.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("breir", "There is no rule called 'breir'. Did you mean 'brier'?"),
        ("xyzzy", "Known are abs_rps, brier"),
        ("penalised(brier)", "Did you mean 'penalized'?"),
        ("brier(scale='double')", "`scale` must be one of"),
        ("brier(size=2)", "unexpected keyword argument"),
        ("pbs(penalty=2)", "pbs takes no parameters; it is penalized(brier), which does."),
        ("penalized()", "missing 1 required positional argument"),
        ("", "is not the name of a rule"),
        ("1 + 1", "is not the name of a rule"),
        ("brier; rps", "is not the name of a rule"),
        ("__import__('os')", "There is no rule called '__import__'"),
        ("log(base=__import__('os').system('true'))", "is not the name of a rule"),
        ("log(base=2 ** 99)", "parameters must be rules or literals"),
        ("log(**{'base': 2})", "** is not understood"),
        ("penalized(sa_rps)", "needs a proper rule"),
        ("(" * 500, "is not the name of a rule"),
        (None, "is not the name of a rule"),
    ],
)
def test_texts_that_name_no_rule(text, message):
    with pytest.raises(vx.VeraxError) as caught:
        vx.parse(text)
    assert message in str(caught.value)


def test_every_registered_rule_is_an_attribute():
    for name, rule in vx.RULES.items():
        assert getattr(vx, name) is rule


def test_a_rule_is_its_own_text():
    assert vx.parse(vx.rps) is vx.rps
