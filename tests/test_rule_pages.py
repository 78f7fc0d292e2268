"""Pages of rules: every rule has one, with its facts, and other packages print what the pages say."""

from __future__ import annotations

import re
import sys

import pytest

import verax as vx
from cases import certified
from pages import DOCS

pytest.importorskip("numpydoc")
pytest.importorskip("matplotlib")
sys.path.insert(0, str(DOCS / "_ext"))
import peers
import rulepages

RULES = rulepages.all_rules()


def test_every_rule_has_a_page():
    assert {*vx.rules.RULES, "padded"} == set(RULES)
    table = rulepages.overview(RULES)
    assert all(f"\ngenerated/{name}\n" in table for name in RULES)
    assert set(peers.PEERS) < set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_facts_come_from_the_rule(name):
    rule = RULES[name]
    found = certified(rule, 2)
    text = rulepages.properties(rule, {2: found, 3: found})
    fails = {each for each, finding in found.findings.items() if not finding.holds}
    said = set(re.findall(r"\*\*Not ([a-z ]+)\*\*", text))
    same = set() if found.proper else {"strictly proper"}
    assert said == {each.replace("_", " ") for each in fails} - same
    assert all(str(found.findings[each].counterexample) in text for each in fails)
    assert rule.latex in rulepages.formula(rule)
    works = rulepages.references_of(rule)
    assert works
    assert all(re.search(r"\]\(https://doi\.org/10\.[\w/.()%;:-]+\)|<https://", work) for work in works)
    # The example is run; its code and its number stand on the page.
    assert re.search(r">>> round\(vx\..*\n[0-9.]+\n", rulepages.example(name, rule))


def test_a_rule_of_ones_own_is_that_of_the_page():
    assert repr(rulepages.own_rule(DOCS / "rules" / "own.md")) == "focal"


@pytest.mark.frameworks
@pytest.mark.parametrize("table", [pytest.param("PEERS", marks=pytest.mark.pages), "METRIC_PEERS"])
def test_other_packages_print_what_the_pages_say(table):
    for package in ("torch", "torchmetrics"):
        pytest.importorskip(package)
    for found in getattr(peers, table).values():
        for peer in found:
            theirs, ours = peer.numbers()
            assert (theirs == pytest.approx(ours, rel=1e-6)) == peer.same
    with pytest.raises(ValueError, match="scikit-learn"):
        peers._sklearn("metrics.log_loss(y, p)", "vx.brier(y, p)").numbers()
