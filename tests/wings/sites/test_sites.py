"""Sites: estimates against other packages, wherever rows are, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

import verax as vx


def patients(n=4000, k=6, tau=0.3, seed=0):
    rng = np.random.default_rng(seed)
    site = np.array(list("ABCDEFGHIJKL")[:k])[rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))]
    x = rng.normal(-1.8, 1, n)
    effect = dict(zip(np.unique(site), rng.normal(0, tau, k), strict=True))
    p = 1 / (1 + np.exp(-x))
    happened = rng.random(n) < 1 / (1 + np.exp(-1.1 * x - np.array([effect[s] for s in site])))
    return happened.astype(int), p, site


Y, P, SITE = patients()


def delong(y, p):
    """The standard error of the AUC, from the placements of DeLong."""
    a, b = p[y == 1], p[y == 0]
    wins = (a[:, None] > b).astype(float) + 0.5 * (a[:, None] == b)
    return math.sqrt(wins.mean(1).var(ddof=1) / len(a) + wins.mean(0).var(ddof=1) / len(b))


def logistic(x, y, offset=0.0, groups=None):
    """Coefficients of a logistic regression and their standard errors, over rows or groups."""

    def loss(b):
        z = x @ b + offset
        return np.logaddexp(0, z).sum() - y @ z, x.T @ (1 / (1 + np.exp(-z)) - y)

    b = minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    chance = 1 / (1 + np.exp(-(x @ b + offset)))
    inverse = np.linalg.inv((x * (chance * (1 - chance))[:, None]).T @ x)
    if groups is None:
        return b, np.sqrt(np.diag(inverse))
    scores = pd.DataFrame(x * (y - chance)[:, None]).groupby(groups).sum().to_numpy()
    return b, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))


@pytest.fixture(scope="module")
def study():
    return vx.sites(Y, P, sites=SITE)


@pytest.mark.parametrize("i", range(6))
def test_each_site_is_what_other_packages_say(study, i):
    site = study.table[i]
    own = site.label == SITE
    y, p = Y[own], P[own]
    x = np.log(p / (1 - p))
    (_, slope), (_, error) = logistic(np.stack([np.ones(len(x)), x], axis=1), y)
    assert site.n_rows == own.sum()
    assert (site.observed, site.expected) == pytest.approx((y.sum(), p.sum()))
    assert site.oe.value == pytest.approx(y.sum() / p.sum())
    assert site.slope.value == pytest.approx(slope, rel=1e-6)
    t = (site.slope.interval.high - site.slope.value) / error
    assert 1.95 < t < 2.3
    (level,), _ = logistic(np.ones((len(y), 1)), y, x)
    assert site.in_the_large.value == pytest.approx(level, abs=1e-6)
    assert site.auc.value == pytest.approx(roc_auc_score(y, p))
    reach = math.log(site.auc.interval.high / (1 - site.auc.interval.high)) - math.log(
        site.auc.value / (1 - site.auc.value)
    )
    assert reach * site.auc.value * (1 - site.auc.value) / delong(y, p) == pytest.approx(t, rel=1e-6)
    assert site.loss.value == pytest.approx(2 * np.mean((y - p) ** 2))


def test_sites_of_groups_have_sandwich_errors():
    group = np.arange(len(Y)) // 8
    order = np.argsort(SITE, kind="stable")
    y, p, site = Y[order], P[order], SITE[order]
    found = vx.sites(y, p, sites=site, groups=group).table[0]
    own = site == "A"
    x = np.stack([np.ones(own.sum()), np.log(p[own] / (1 - p[own]))], axis=1)
    _, (_, error) = logistic(x, y[own], groups=group[own])
    plain = vx.sites(y, p, sites=site).table[0]
    assert found.n_groups == len(np.unique(group[own]))
    assert found.slope.value == plain.slope.value
    t = 1.97
    assert (found.slope.interval.high - found.slope.value) / t == pytest.approx(error, rel=0.03)


def test_few_groups_make_wide_intervals():
    rng = np.random.default_rng(3)
    group = np.arange(len(Y)) % 40
    y = (rng.random(len(Y)) < 1 / (1 + np.exp(-np.log(P / (1 - P)) - rng.normal(0, 0.8, 40)[group]))).astype(
        int
    )
    alone, together = (vx.sites(y, P, sites=SITE, **g) for g in ({}, {"groups": group}))
    a, b = (f.summary["oe"].mean.interval for f in (alone, together))
    assert all(
        t.oe.interval.high - t.oe.interval.low > s.oe.interval.high - s.oe.interval.low
        for s, t in zip(alone.table, together.table, strict=True)
    )
    assert b.high - b.low > 0.9 * (a.high - a.low)


def test_weights_that_are_copies_are_rows():
    copies = np.random.default_rng(1).integers(1, 4, len(Y))
    rows = np.repeat(np.arange(len(Y)), copies)
    one = vx.sites(Y, P, sites=SITE, weights=copies, weights_are="counts")
    other = vx.sites(Y[rows], P[rows], sites=SITE[rows])
    assert one.next_site.value == pytest.approx(other.next_site.value, rel=1e-9)
    for s, t in zip(one.table, other.table, strict=True):
        assert s.auc.interval == pytest.approx(t.auc.interval, rel=1e-9)
        assert s.observed == pytest.approx(t.observed)


def test_the_size_of_weights_does_not_matter():
    weights = np.random.default_rng(2).uniform(0.5, 2, len(Y))
    one, other = (vx.sites(Y, P, sites=SITE, weights=c * weights) for c in (1, 1000))
    assert one.next_site.interval == pytest.approx(other.next_site.interval, rel=1e-9)
    assert one.next_site.interval != vx.sites(Y, P, sites=SITE).next_site.interval


@pytest.mark.parametrize("grouped", [False, True])
def test_files_give_the_same(tmp_path, grouped):
    given = {"groups": np.arange(len(Y)) % 500} if grouped else {}
    frame = pd.DataFrame({"y": Y, "p": P, "hospital": SITE, **given})
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=700)
    columns = {"groups": "groups"} if grouped else {}
    rows = vx.scan(tmp_path / "a.parquet", target="y", probs="p", by="hospital", **columns)
    one, other = vx.sites(rows, sites="hospital"), vx.sites(Y, P, sites=SITE, **given)
    assert one.column == "hospital"
    assert other.column == "site"
    assert one.next_site.interval == pytest.approx(other.next_site.interval, rel=1e-9)
    for s, t in zip(one.table, other.table, strict=True):
        assert s.slope.interval == pytest.approx(t.slope.interval, rel=1e-8)
        assert s.p_value == pytest.approx(t.p_value, rel=1e-8)


def test_a_site_stands_out():
    y, p, site = patients(8000, 10, 0.05, seed=1)
    y[(site == "C") & (np.random.default_rng(8).random(len(y)) < 0.3)] = 1
    found = vx.sites(y, p, sites=site)
    assert found.verdict.about("site_stands_out") == ("C",)
    assert "C (" in found.verdict
    assert [site.label for site in found.table if site.stands_out] == ["C"]
    assert math.isclose(found.verdict.findings[-1].level, 0.05)


def test_what_sites_tell_together(study):
    across = study.summary["oe"]
    assert list(study.summary) == ["oe", "slope", "auc", "loss"]
    assert across.near == pytest.approx(across.share_below(1.25) - across.share_below(0.8))
    assert across.share_below(across.next.value) == pytest.approx(0.5)
    low, high = across.next.interval
    assert across.share_below(high) - across.share_below(low) == pytest.approx(0.95)
    seen = across.observed(20)
    assert seen.interval.low < low < high < seen.interval.high
    assert across.mean.interval.high - across.mean.interval.low < high - low
    with pytest.raises(vx.InputError, match="must be above zero"):
        across.observed(0)
    with pytest.raises(vx.InputError, match="is known for O:E alone"):
        study.summary["auc"].observed(20)


def test_the_rarer_class_is_the_event():
    found = vx.sites(1 - Y, 1 - P, sites=SITE, classes=["died", "lived"])
    assert found.event == "died"
    assert found.next_site.interval == pytest.approx(vx.sites(Y, P, sites=SITE).next_site.interval, rel=1e-6)


def test_several_classes_have_losses_alone():
    rng = np.random.default_rng(0)
    y, p = rng.integers(3, size=900), rng.dirichlet(np.ones(3), 900)
    found = vx.sites(y, p, sites=np.arange(900) % 5, rule="log_score")
    assert list(found.summary) == ["loss"]
    assert found.event is None
    assert found.next_site is found.summary["loss"].next
    assert found.table[0].loss.value == pytest.approx(vx.log_score(y[::5], p[::5]))
    assert found.summary["loss"].next.interval.low >= 0


def test_few_sites():
    two = vx.sites(Y, P, sites=np.where(SITE == "A", "A", "B"))
    assert "Nothing is known about the next site: fewer than three sites" in two.verdict
    assert two.summary["oe"].mean.interval.defined
    assert math.isnan(two.next_site.value)
    assert math.isnan(two.summary["oe"].observed(20).value)
    three = vx.sites(Y, P, sites=np.where(np.isin(SITE, ["A", "B"]), SITE, "C"))
    assert three.next_site.interval.caution == "three sites are few to learn from"
    assert "Caution: three sites are few to learn from." in repr(three)
    assert not three._tested
    with pytest.raises(vx.InputError, match="must name two sites or more") as caught:
        vx.sites(Y, P, sites=np.full(len(Y), "A"))
    assert caught.value.argument == "sites"


def test_sites_with_few_events():
    small = np.where(np.arange(len(Y)) < 40, "new", SITE)
    found = vx.sites(Y, P, sites=small)
    new = next(site for site in found.table if site.label == "new")
    assert math.isnan(new.p_value)
    assert not new.stands_out
    assert found.summary["oe"].n_sites == 6
    assert "Fewer than 20 events are expected at new." in repr(found)


@pytest.mark.parametrize(
    ("y", "p"), [(np.zeros(300, int), np.full(300, 0.1)), (np.arange(300) % 2, np.full(300, 0.5))]
)
def test_sites_without_a_slope(y, p):
    found = vx.sites(y, p, sites=np.arange(300) // 100)
    assert all(math.isnan(site.slope.value) for site in found.table)
    assert all(site.slope.interval.caution for site in found.table)
    assert repr(found)


def test_certain_forecasts_do_not_count_for_the_slope():
    p = P.copy()
    p[Y == 1] = np.where(np.arange((Y == 1).sum()) % 9 == 0, 1.0, p[Y == 1])
    found = vx.sites(Y, p, sites=SITE)
    inner = p < 1
    expected = vx.sites(Y[inner], p[inner], sites=SITE[inner])
    assert found.table[0].slope.value == pytest.approx(expected.table[0].slope.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sites": SITE[:-1]}, "sites"),
        ({"sites": np.where(np.arange(len(Y)) == 7, None, SITE)}, "sites"),
        ({"sites": [SITE, SITE, SITE]}, "sites"),
        ({"sites": SITE, "confidence": 2}, "confidence"),
        ({"sites": SITE, "rule": "nothing"}, "rule"),
    ],
)
def test_what_is_refused(given, says):
    with pytest.raises(vx.VeraxError) as caught:
        vx.sites(Y, P, **given)
    assert says in (getattr(caught.value, "argument", None) or str(caught.value))


def test_lists_are_refused():
    with pytest.raises(vx.InputError, match="full"):
        vx.sites(Y, vx.TopLists.from_probabilities(np.stack([1 - P, P], 1), 1), sites=SITE)


def test_it_comes_back_from_json(study):
    again = type(study).from_dict(study.to_dict())
    assert again.verdict == study.verdict
    assert again.to_dict() == study.to_dict()


def test_figures(study):
    drawn = study.plot()
    assert [ax.get_title() for ax in drawn.axes] == [
        "O:E by site",
        "calibration slope by site",
        "AUC by site",
        "Brier score by site",
    ]
