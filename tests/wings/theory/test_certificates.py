"""Certificates: what the search must find, must not find, and says about it."""

from __future__ import annotations

import json
import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import verax as vx
from cases import certified
from verax import certify
from verax.errors import InputError, ParseError, RuleError
from verax.wings.theory.certificates.sweeps import lattice, lattice_width

NAMES = ["proper", "strictly_proper", "local", "symmetric", "distance_sensitive", "superior", "bounded"]

VARIANTS = [
    *vx.rules.RULES.values(),
    vx.rules.Brier("half"),
    vx.rules.Brier("mean"),
    vx.rules.Log(base=2),
    vx.rules.Log(clip=1e-7),
    vx.rules.RPS(normalized=False),
    vx.rules.SaRPS("eq7"),
    vx.rules.ZeroOne("lowest"),
    vx.penalized(vx.rps),
    vx.penalized(vx.spherical, "minimal"),
    vx.penalized(vx.brier, "minimal"),
    vx.penalized(vx.log_score, "minimal"),
    vx.penalized(vx.rps, "minimal"),
    vx.penalized(vx.brier, 0.1),
    vx.penalized(vx.brier, ties="lowest"),
    vx.penalized(vx.ranked_log, 1.0),
]


# What differs from another of these by a factor alone.
FACTORS = [vx.rules.Brier("half"), vx.rules.Log(base=2)]


# ---- losses in exact arithmetic, and as functions a user may write ---------------------------------


def exact_brier(y, p):
    return 1 - 2 * p[y] + sum(x * x for x in p)


def exact_zero_one(y, p):
    tied = [j for j, x in enumerate(p) if x == max(p)]
    return 1 - Fraction(int(y in tied), len(tied))


def exact_rps(y, p):
    return sum((sum(p[: i + 1]) - (y <= i)) ** 2 for i in range(len(p) - 1)) / (len(p) - 1)


def exact_abs_rps(y, p):
    return sum(x * abs(j - y) for j, x in enumerate(p)) / (len(p) - 1)


def exact_sa_rps(y, p):
    return exact_abs_rps(y, p) ** 2


def exact_pbs(y, p):
    return exact_brier(y, p) + Fraction(len(p) - 1, len(p)) * exact_zero_one(y, p)


def lenient_pbs(y, p):
    """Every class that ties for most likely counts as right."""
    return exact_brier(y, p) + (len(p) - 1) * int(p[y] < max(p)) / len(p)


def strict_pbs(y, p):
    """A tie counts as wrong."""
    right = p[y] == max(p) and sum(x == max(p) for x in p) == 1
    return exact_brier(y, p) + (len(p) - 1) * int(not right) / len(p)


def uneven_penalty(y, p):
    """RPS with a penalty for a wrong mode that depends on the outcome."""
    return exact_rps(y, p) + (exact_zero_one(y, p) / 4 if y == 0 else exact_zero_one(y, p))


def clipped_log(y, p):
    return -math.log(max(p[y], 1e-3))


def log_likelihood(y, p):
    return math.log(p[y]) if p[y] > 0 else -math.inf


EXACT = {
    "brier": exact_brier,
    "zero_one": exact_zero_one,
    "rps": exact_rps,
    "abs_rps": exact_abs_rps,
    "sa_rps": exact_sa_rps,
    "pbs": exact_pbs,
    "lenient_pbs": lenient_pbs,
    "strict_pbs": strict_pbs,
    "uneven_penalty": uneven_penalty,
}


def expected(loss, p, q):
    return sum(weight * loss(y, p) for y, weight in enumerate(q) if weight)


def fractions(*texts):
    return tuple(Fraction(text) for text in texts)


# ---- what must be found unaided --------------------------------------------------------------------


def test_sa_rps_is_improper_with_the_minimal_counterexample():
    found = certified(vx.sa_rps, 3).findings["proper"].counterexample
    assert found.truth == fractions("1/3", "1/3", "1/3")
    assert found.forecasts == (fractions("0", "1", "0"), found.truth)
    assert found.losses == pytest.approx((1 / 6, 11 / 54), rel=1e-15)
    assert str(found) == "truth (1/3, 1/3, 1/3): (0, 1, 0) has an expected loss of 1/6, the truth of 11/54"


def test_abs_rps_is_improper_for_two_classes():
    found = certified(vx.abs_rps, 2).findings["proper"].counterexample
    assert found.truth == fractions("2/3", "1/3")
    assert found.forecasts[0] == fractions("1", "0")
    assert found.losses == pytest.approx((1 / 3, 4 / 9))


@pytest.mark.long
@pytest.mark.parametrize("rule", [vx.brier, vx.log_score], ids=repr)
def test_superior_for_two_classes_only(rule):
    assert certified(rule, 2).superior
    assert not certified(rule, 3).superior


def test_counting_ties_as_correct_is_improper():
    found = certified(lenient_pbs, 2).findings["proper"].counterexample
    assert found.truth == fractions("2/3", "1/3")
    assert found.forecasts[0] == fractions("1/2", "1/2")
    assert found.losses == pytest.approx((1 / 2, 11 / 18), rel=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_zero_one_is_proper_but_not_strictly(n_classes):
    certificate = certified(vx.zero_one, n_classes)
    assert certificate.proper
    assert not certificate.strictly_proper
    assert certificate.superior


@pytest.mark.parametrize("gain", [log_likelihood, lambda y, p: 1 - exact_brier(y, p)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gain_is_recognised(gain, n_classes):
    certificate = certify(gain, n_classes)
    assert not certificate.proper
    assert "-f looks proper" in certificate.notes[0]
    assert "note: -f looks proper" in str(certificate)


def test_an_improper_loss_is_no_gain():
    assert (
        certified(vx.sa_rps, 3).notes == certified(lenient_pbs, 3).notes == certified(vx.brier, 3).notes == ()
    )


# ---- declared and found ----------------------------------------------------------------------------


def declared():
    """Rules and numbers of classes: promises change between two classes and three, hardly ever later."""
    for rule in VARIANTS:
        registered = rule in vx.rules.RULES.values()
        for k in (2, 3, 5 if registered else 4):
            usual = (k == 3 and rule not in FACTORS) or (k == 2 and registered)
            yield pytest.param(rule, k, marks=() if usual else pytest.mark.long)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "n_classes"), list(declared()), ids=repr)
def test_declared_properties_are_found(rule, n_classes):
    certificate = certified(rule, n_classes)
    declared = {name: known for name, known in rule.properties.at(n_classes).items() if known is not None}
    assert declared == {name: getattr(certificate, name) for name in declared}


@pytest.mark.long
@pytest.mark.parametrize(
    ("inner", "seed"), [(vx.brier, 1), (vx.log_score, 2), (vx.spherical, 1), (vx.rps, 2)], ids=repr
)
def test_limits_of_equality_are_no_failures_whatever_the_seed(inner, seed):
    certificate = certify(vx.penalized(inner, "minimal"), 3, seed=seed)
    assert certificate.superior, certificate
    assert certificate.strictly_proper, certificate


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("inner", "n_classes"),
    [(vx.brier, 3), (vx.log_score, 4), (vx.spherical, 3), (vx.rps, 4)],
    ids=repr,
)
def test_a_penalty_just_below_the_minimal_is_not_superior(inner, n_classes):
    least = vx.penalized(inner, "minimal").constant(n_classes)
    assert not certify(vx.penalized(inner, least - 1e-3), n_classes).superior
    # Of three classes the minimal itself is found to be enough, by the test of what is declared.
    assert n_classes == 3 or certify(vx.penalized(inner, least + 1e-3), n_classes).superior


def test_the_declared_properties_are_not_read():
    class Secretive(vx.rules.Brier):
        @property
        def properties(self):
            raise AssertionError

    assert certify(Secretive(), 2).strictly_proper


# ---- functions of the user -------------------------------------------------------------------------


@pytest.mark.long
def test_a_function_gets_the_verdicts_of_the_rule_it_computes():
    def by_hand(y, p):
        assert isinstance(y, int)
        assert p.shape == (3,)
        p[y] -= 1  # its own copy, to do with as it likes
        return p @ p

    certificate, rule = certify(by_hand, 3), certified(vx.brier, 3)
    assert certificate.rule == "by_hand"
    assert {n: getattr(certificate, n) for n in NAMES} == {n: getattr(rule, n) for n in NAMES}


def test_ties_counted_as_wrong_are_improper():
    certificate = certified(strict_pbs, 2)
    assert certificate.findings["proper"].counterexample.truth == fractions("1/2", "1/2")
    assert certificate.findings["proper"].counterexample.losses[1] == 1
    assert certificate.superior


@pytest.mark.long
def test_a_penalty_that_depends_on_the_outcome_is_improper():
    assert not certified(uneven_penalty, 2).proper
    assert not certified(uneven_penalty, 2).symmetric
    # The example of the specification: truth (3/5, 2/5), report (2/5, 3/5).
    q, p = fractions("3/5", "2/5"), fractions("2/5", "3/5")
    assert expected(uneven_penalty, q, q) == Fraction(16, 25)
    assert expected(uneven_penalty, p, q) == Fraction(43, 100)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_clipped_log_score_is_improper_near_zero_and_bounded(n_classes):
    certificate = certify(clipped_log, n_classes)
    assert not certificate.proper
    assert certificate.local
    assert certificate.bounded
    assert not certificate.distance_sensitive
    assert 0 < min(x for x in certificate.findings["proper"].counterexample.truth if x) <= Fraction(1, 1000)


def test_a_small_bias_is_improper():
    # At the corner already: there the best forecast of class 0 is 1/4000 too small.
    certificate = certify(lambda y, p: exact_brier(y, p) + p[0] / 1000, 2)
    assert certificate.findings["proper"].counterexample.truth == fractions("1", "0")


@pytest.mark.long
@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 1)])
def test_the_optimiser_finds_what_lies_between_the_grid_points(n_classes, seed):
    # The best forecast is off by 1/10000 at most, and by nothing at the corners.
    def loss(y, p):
        return exact_brier(y, p) + (p[0] * (1 - p[0])) ** 2 / 500

    found = certify(loss, n_classes, seed=seed).findings["proper"].counterexample
    check_exactly("proper", found, loss)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "n_classes"),
    [(lambda _y, _p: 0, 2), (lambda _y, _p: np.float64(3.5), 3), (lambda _y, _p: True, 2)],
)
def test_a_constant_promises_next_to_nothing(rule, n_classes):
    certificate = certify(rule, n_classes)
    held = {name for name in NAMES if getattr(certificate, name)}
    assert held == {"proper", "local", "symmetric", "bounded"}


@pytest.mark.long
@pytest.mark.parametrize("power", [1.5, 3, 4])
def test_strictly_proper_losses_that_are_flat_somewhere(power):
    """The pseudospherical family: near a point mass the excess is of the order `power`."""

    def pseudospherical(y, p):
        p = p.tolist()
        return 1 - (p[y] / sum([x**power for x in p]) ** (1 / power)) ** (power - 1)

    for n_classes in (2, 3):
        assert certify(pseudospherical, n_classes).strictly_proper


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "offset", "n_classes"), [(1e-9, 0.0, 3), (1.0, -1.0, 2), (1e6, 1000.0, 2)]
)
def test_units_do_not_matter(factor, offset, n_classes):
    def loss(y, p):
        return factor * (exact_rps(y, p.tolist()) + offset)

    certificate, rule = certify(loss, n_classes), certified(vx.rps, n_classes)
    assert {n: getattr(certificate, n) for n in NAMES} == {n: getattr(rule, n) for n in NAMES}


@pytest.mark.parametrize(
    ("loss", "bounded"),
    [
        (lambda y, p: -math.log(p[y] + 1e-15), True),
        (lambda y, p: p[y] ** -0.01 if p[y] else 0.0, False),
        (lambda y, p: math.log1p(-math.log(p[y])) if p[y] else 0.0, False),
        (lambda y, p: 1 / math.log(p[y] / 9) if p[y] else 0.0, True),
        (lambda y, p: math.log(p[y]) if p[y] else 0.0, False),
    ],
)
def test_bounded_means_no_growth_towards_zero(loss, bounded):
    assert certify(loss, 2).bounded is bounded


# ---- narrow regions and small probabilities --------------------------------------------------------


def clipped_on_both_sides(c):
    return lambda y, p: -math.log(min(max(p[y], c), 1 - c))


def clipped_exactly(c):
    """The expected losses of the same rule to 60 digits, from exact probabilities."""

    def loss(y, p):
        with localcontext(prec=60):
            x = min(max(Decimal(p[y].numerator) / p[y].denominator, Decimal(c)), 1 - Decimal(c))
            return Fraction(-x.ln())

    return loss


@pytest.mark.parametrize(
    ("c", "n_classes"),
    [
        *((1e-3, 4), (3.3e-6, 4), (1e-12, 3)),
        *(pytest.param(*own, marks=pytest.mark.long) for own in ((1e-5, 3), (1e-7, 3), (1e-10, 4))),
    ],
)
def test_clipping_on_both_sides_is_improper(c, n_classes):
    certificate = certify(clipped_on_both_sides(c), n_classes)
    found = certificate.findings["proper"].counterexample
    assert not certificate.proper
    assert certificate.resolution is None
    other, honest = (expected(clipped_exactly(c), p, found.truth) for p in found.forecasts)
    assert other < honest


@pytest.mark.long
@pytest.mark.parametrize("c", [1e-3, 1e-12, 1e-14, 1e-200])
def test_clipping_on_both_sides_of_two_classes_is_proper_but_not_strictly(c):
    certificate = certify(clipped_on_both_sides(c), 2)
    assert certificate.proper
    assert not certificate.strictly_proper
    assert not certificate.distance_sensitive


@pytest.mark.parametrize(
    "c",
    [1e-3, 1e-15, 1e-250, *(pytest.param(c, marks=pytest.mark.long) for c in (1e-12, 1e-13, 1e-16, 1e-20))],
)
def test_a_clipped_log_score_is_found_out_at_every_scale(c):
    three, two = certify(vx.rules.Log(clip=c), 3), certified(vx.rules.Log(clip=c), 2)
    assert not three.proper
    found = three.findings["proper"].counterexample
    with localcontext(prec=400):
        exact = [
            sum(
                -q * max(p, Decimal(c)).ln()
                for q, p in zip(decimals(found.truth), decimals(row), strict=True)
                if q
            )
            for row in found.forecasts
        ]
    assert exact[0] < exact[1]
    # The gain of the counterexample for two classes is lost in rounding below 1e-12.
    assert two.proper == (c < 1e-12)
    assert not two.strictly_proper
    assert not two.distance_sensitive


def decimals(p):
    return [Decimal(x.numerator) / x.denominator for x in p]


def weighted_ranked_log(y, p):
    """Proper; next to a vertex its losses vanish in rounding, and only partly."""
    ends = ((1.0, p[0], 1 - p[0]), (0.1, 1 - p[2], p[2]))
    chosen = [(w, low if y <= i else high) for i, (w, low, high) in enumerate(ends)]
    return sum(-w * math.log(x) if x > 0 else math.inf for w, x in chosen)


def shifted_by_much(y, p):
    """Proper, but computed with a rounding error of 1e-10."""
    p[y] -= 1
    return (1e6 + float(p @ p)) - 1e6


@pytest.mark.long
@pytest.mark.parametrize("loss", [weighted_ranked_log, shifted_by_much])
def test_rounding_errors_are_no_counterexamples(loss):
    assert certify(loss, 3).proper


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=pytest.mark.long) for n in ("pbs", "ranked_log")), "sa_rps"]
)
def test_six_classes(name):
    certificate, declared = certify(name, 6), vx.rules.RULES[name].properties.at(6)
    assert {n: getattr(certificate, n) for n in NAMES} == declared


def with_a_bump(depth, width, centre):
    """Brier, lower by `depth` where the first probabilities are near the centre."""

    def loss(y, p):
        near = all(abs(a - b) < width / 2 for a, b in zip(p, centre, strict=False))
        return exact_brier(y, p) - depth * near

    return loss


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "width", "centre", "n_classes"),
    [
        (0.1, 0.005, (0.3712,), 2),
        (-1e-3, 0.005, (0.3712,), 2),
        (0.1, 0.0001, (0.3712,), 2),
        (-1e-3, 0.005, (0.3712,), 3),
        (0.1, 0.001, (0.0, 0.4567), 3),
        (-1e-3, 0.005, (0.3712, 0.4128, 0.216), 3),
        (0.1, 0.005, (0.7712, 0.0128, 0.216), 3),
        (-1e-3, 0.005, (0.3712,), 4),
        (0.1, 0.04, (0.3712, 0.25, 0.25, 0.1288), 4),
    ],
)
def test_a_narrow_bump_is_found(depth, width, centre, n_classes):
    loss = with_a_bump(depth, width, centre)
    certificate = certify(loss, n_classes)
    check_exactly("proper", certificate.findings["proper"].counterexample, loss)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_every_region_of_the_stated_width_contains_a_forecast(n_classes):
    p, half = lattice(n_classes).p, lattice_width(n_classes) / 2
    rng = np.random.default_rng(0)
    for q in rng.dirichlet(np.ones(n_classes), 60):
        assert np.abs(p - q).max(axis=1).min() <= half * (1 + 1e-9)


@pytest.mark.long
def test_the_resolution_is_stated():
    found = certified(vx.brier, 3)
    assert found.resolution.width < 0.005
    assert found.resolution.line_width <= 0.0005
    assert found.resolution.forecasts > 50_000
    assert 1e-16 < found.resolution.smallest < 1e-14
    assert certified(vx.log_score, 3).resolution.smallest == 1e-300
    assert f"narrower than {found.resolution.width:.2g}" in str(found)
    assert found.to_dict()["resolution"]["comparisons"] == found.resolution.comparisons
    assert 0 < found.resolution.change < 1e-3
    # A change of the loss that is twice as large is found.
    depth = 2 * found.resolution.change * 2 / 3
    assert not certify(with_a_bump(depth, 0.005, (0.3712, 0.4128, 0.216)), 3).proper


# ---- counterexamples hold in exact arithmetic ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [
        pytest.param(name, k, marks=() if k < 4 or name in ("pbs", "abs_rps") else pytest.mark.long)
        for name in EXACT
        for k in (2, 3, 4)
    ],
)
def test_counterexamples_hold_exactly(name, n_classes):
    loss = EXACT[name]
    certificate = certified(vx.rules.RULES.get(name, loss), n_classes)
    for prop, finding in certificate.findings.items():
        assert finding.holds == (finding.counterexample is None)
        assert finding.checked >= 0
        if not finding.holds:
            check_exactly(prop, finding.counterexample, loss)


def check_exactly(prop, found, loss):
    for p in found.forecasts:
        assert sum(p) == 1
        assert min(p) >= 0
    if found.truth is not None:
        exact = [expected(loss, p, found.truth) for p in found.forecasts]
    else:
        exact = [loss(y, p) for y, p in zip(found.outcomes, found.forecasts, strict=True)]
    assert found.losses == pytest.approx([float(x) for x in exact], rel=1e-12, abs=1e-15)
    (p, r), (a, b) = found.forecasts, exact
    if prop in ("proper", "strictly_proper"):
        assert r == found.truth != p
        assert a < b or (prop == "strictly_proper" and a == b)
        return
    y, z = found.outcomes
    if prop == "local":
        assert y == z
        assert p[y] == r[z]
        assert a != b
    elif prop == "symmetric":
        relabellings = permutations(range(len(p)))
        assert any(all(r[s[c]] == p[c] for c in range(len(p))) and s[y] == z for s in relabellings)
        assert a != b
    elif prop == "distance_sensitive":
        (i,) = [c for c in range(len(p)) if r[c] < p[c]]
        (j,) = [c for c in range(len(p)) if r[c] > p[c]]
        assert y == z
        assert y <= i < j or j < i <= y
        assert b <= a
    elif prop == "superior":
        assert [c for c, x in enumerate(p) if x == max(p)] == [y]
        assert [c for c, x in enumerate(r) if x == max(r)] != [z]
        assert sum(x == max(r) for x in r) == 1
        assert a >= b
    else:
        raise AssertionError(prop)


def test_an_unbounded_loss_shows_its_infinity():
    found = certified(vx.log_score, 2).findings["bounded"].counterexample
    assert found.losses == (math.inf,)
    assert found.forecasts[0][found.outcomes[0]] == 0


# ---- the certificate -------------------------------------------------------------------------------


def test_the_table_has_a_line_for_every_property():
    certificate = certified(vx.sa_rps, 3)
    lines = str(certificate).splitlines()
    assert lines[0] == "sa_rps, 3 classes"
    assert lines[1] == "property            holds  counterexample"
    assert [line[:20].strip() for line in lines[2:]] == [name.replace("_", " ") for name in NAMES]
    assert lines[2].endswith(
        "truth (1/3, 1/3, 1/3): (0, 1, 0) has an expected loss of 1/6, the truth of 11/54"
    )
    assert lines[8] == "bounded             yes"
    assert repr(certificate) == str(certificate)


def test_losses_that_differ_are_shown_to_differ():
    found = certify(lambda y, p: 1e6 + exact_sa_rps(y, p), 3).findings["local"].counterexample
    first, second = found.to_dict()["losses"]
    assert first != second


def test_the_dictionary_is_json_and_its_fractions_are_exact():
    for rule in (vx.sa_rps, vx.log_score, vx.rules.Log(clip=1e-7), log_likelihood):
        certificate = certified(rule, 3)
        data = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
        assert list(data["findings"]) == NAMES
        for name in NAMES:
            found = certificate.findings[name].counterexample
            assert data["findings"][name]["holds"] is getattr(certificate, name)
            if found is not None:
                shown = data["findings"][name]["counterexample"]["forecasts"]
                assert tuple(tuple(map(Fraction, p)) for p in shown) == found.forecasts


@pytest.mark.long
def test_the_same_seed_gives_the_same_certificate():
    for rule, n_classes in ((vx.pbs, 3), (lenient_pbs, 2)):
        first, second = certify(rule, n_classes, seed=7), certify(rule, n_classes, seed=7)
        assert first == second
        assert str(first) == str(second)
        assert hash(first) == hash(second)
        assert pickle.loads(pickle.dumps(first)) == first


def test_names_and_texts_are_parsed():
    assert certify("penalized(brier)", 2) == certified(vx.pbs, 2)
    assert certify("pbs", 2).rule == "pbs"
    assert vx.certify is certify


# ---- errors ----------------------------------------------------------------------------------------


def half_log(y, p):
    return -math.log(p[y])


@pytest.mark.parametrize(
    ("loss", "what"),
    [
        (half_log, r"half_log raised ValueError: .* at y=1, p=\(1, 0, 0\)"),
        (lambda _y, _p: float("nan"), r"returned nan at y=0, p=\(1, 0, 0\)"),
        (lambda y, p: -np.eye(3)[y] @ np.log(p), r"returned .*nan.* at y=0, p=\(1, 0, 0\)"),
        (lambda y, p: 1j * p[y], r"returned .*1j"),
        (lambda _y, _p: None, r"returned None at y=0"),
        (lambda _y, _p: "0.5", r"returned '0.5'"),
        (lambda _y, p: p, r"returned \[1, 0, 0\]"),
        (lambda y, p: p[[y]], r"returned \[1\]"),
        (lambda _y: 0.0, r"raised TypeError"),
        (lambda _y, p: p[3], r"raised IndexError"),
    ],
)
def test_a_function_that_gives_no_number(loss, what):
    with pytest.raises(RuleError, match=what) as caught:
        certify(loss, 3)
    assert "float('inf')" in str(caught.value)


def test_a_function_that_changes_its_mind():
    calls = iter(range(10**9))
    with pytest.raises(RuleError, match="must depend on y and p alone"):
        certify(lambda _y, _p: next(calls), 2)


@pytest.mark.parametrize("n_classes", [1, 0, -3, 9, 10**400, 2.5, True, "3", None])
def test_the_number_of_classes(n_classes):
    with pytest.raises(InputError) as caught:
        certify(vx.brier, n_classes)
    assert caught.value.argument == "n_classes"


def test_numpy_integers_count_as_whole_numbers():
    assert certify(vx.brier, np.int64(2)).n_classes == 2


@pytest.mark.parametrize("rule", [3, None, vx.rules.Brier, [vx.brier]])
def test_what_is_neither_a_rule_nor_a_function(rule):
    with pytest.raises(InputError) as caught:
        certify(rule, 3)
    assert (caught.value.argument, caught.value.kind) == ("rule", "type")


@pytest.mark.parametrize("seed", [-1, None, 0.5, "a"])
def test_what_is_no_seed(seed):
    with pytest.raises(InputError) as caught:
        certify("brier", 2, seed=seed)
    assert caught.value.argument == "seed"


def test_an_unknown_name():
    with pytest.raises(ParseError, match="Did you mean 'brier'"):
        certify("brierr", 3)


# ---- shares of raters ---------------------------------------------------------------------------


def manhattan(g, p):
    return float(abs(g - p).sum())


@pytest.mark.long
@pytest.mark.parametrize("raters", [1, 2, 4])
def test_the_mean_loss_over_raters_keeps_what_a_rule_has(raters):
    for rule in ("brier", "log_score", "zero_one", "sa_rps"):
        found, single = vx.certify(rule, 3, raters=raters), certified(rule, 3)
        assert (found.proper, found.strictly_proper) == (single.proper, single.strictly_proper)
        assert "It is linear in the shares" in found.notes[1]


def test_distances_to_shares_are_not_proper_and_squared_ones_are():
    """SPEC: each threshold elicits the median of Binomial(m, G) / m; of one rater that is 0 or 1."""
    found = vx.certify(manhattan, 2, raters=1)
    assert not found.proper
    example = found.findings["proper"].counterexample
    q, p = (np.array(list(map(float, own))) for own in (example.truth, example.forecasts[0]))
    # By hand: one rater says class k with probability q_k, and the distance to that is 2 (1 - p_k).
    assert example.losses == pytest.approx([2 * (q @ (1 - p)), 2 * (q @ (1 - q))])
    assert sorted(p.tolist()) == [0, 1]
    assert not vx.certify(lambda g, p: float(abs(np.cumsum(g - p)).sum()), 3, raters=3).proper
    squared = vx.certify(lambda g, p: float(((g - p) ** 2).sum()), 3, raters=2)
    assert squared.strictly_proper
    assert "not linear in the shares" in squared.notes[1]


def test_certificates_of_raters_say_what_they_lack():
    with pytest.raises(vx.errors.RuleError, match="has no property 'local'"):
        _ = vx.certify("brier", 3, raters=2).local
    for raters, words in ((0, "at least 1"), (1.5, "whole number"), (10**6, "few enough")):
        with pytest.raises(vx.errors.InputError, match=words):
            vx.certify("brier", 3, raters=raters)
