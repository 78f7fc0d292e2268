"""Rows that belong together in two ways: leagues and dates."""

import inspect

import numpy as np
import pytest

import verax as vx
from cases import card_of_file
from verax import files
from verax.engines.differences import PairedTally
from verax.engines.tally import RuleSums
from verax.errors import InputError, VeraxError
from verax.inference.estimates import Estimate
from verax.inputs.groups import Groups

SHOWN = ["brier", "log_score", "zero_one", "accuracy", "qwk", "ec"]


def crossed_groups(rng, n, n_leagues, n_dates):
    """Leagues and dates of rows, each kind of unequal sizes."""
    kinds = []
    for n_groups in (n_leagues, n_dates):
        size = rng.exponential(size=n_groups) + 0.2
        kinds.append(rng.choice(n_groups, n, p=size / size.sum()))
    return kinds


def sample(rng, league, date, spread=0.8):
    """Forecasts of three classes, whose logits should be larger or smaller by league and by date."""
    n = len(league)
    factor = np.exp(sum(rng.normal(0, spread, int(kind.max()) + 1)[kind] for kind in (league, date)))
    z = rng.normal(0, 1, (n, 3))
    p, q = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (z, z * factor[:, None]))
    y = (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return np.minimum(y, 2), p


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    league, date = crossed_groups(rng, 400, 12, 25)
    return *sample(rng, league, date), np.array([f"league {i}" for i in range(12)])[league], date


def errors(card):
    """The standard errors of the means on a card."""
    return np.array([card.error_of(line)[0] for line in card.scores.values()])


def lines(card):
    return {**card.scores, **card.metrics}


def jackknife(value, groups):
    """The variance of `value(rows)` by leaving out each group, from its definition."""
    labels = sorted(set(groups))
    left_out = np.array([value(np.array([g != label for g in groups])) for label in labels])
    whole = value(np.ones(len(groups), bool))
    return ((left_out - whole) ** 2).sum() * (len(labels) - 1) / len(labels)


def unbiased(losses, groups):
    """The variance of the mean loss over groups, each square over one minus the share of its rows (CR2)."""
    n, whole, labels = len(losses), losses.mean(), np.array(groups)
    variance = 0.0
    for label in sorted(set(groups)):
        own = losses[(labels == label) if labels.ndim == 1 else (labels == label).all(axis=1)]
        variance += ((own - whole).sum() / n) ** 2 / (1 - len(own) / n)
    return variance


@pytest.mark.parametrize("name", ["brier", "qwk"])
def test_variances_are_those_of_the_definition(rows, name):
    y, p, league, date = rows
    kinds = (list(league), list(date), [(a, str(b)) for a, b in zip(league, date, strict=True)])
    card = vx.evaluate(y, p, groups=[league, date], ordered=True)
    if name == "qwk":

        def value(kept):
            return vx.kappa(y[kept], p[kept].argmax(axis=1), n_classes=3)

        first, second, pairs = (jackknife(value, groups) for groups in kinds)
        found = card._intervals.metric_errors[0][[m.name for m in card.count_metrics].index("qwk")]
    else:
        first, second, pairs = (unbiased(vx.brier.samples(y, p), groups) for groups in kinds)
        found = card.error_of(card.scores["brier"])[0] ** 2
    assert found == pytest.approx(max(first + second - pairs, first, second), rel=1e-9)


def test_against_statsmodels():
    # statsmodels 0.15.0: cov_cluster_2groups(sm.OLS(loss, np.ones(90)).fit(), first, second). Its correction
    # is the jackknife's where all groups of a kind, and all pairs, have the same size. It gives the sum of
    # the variances over both kinds less that over the pairs, and the variances over each kind.
    first, second = (kind.ravel() for kind in np.mgrid[0:5, 0:6, 0:3][:2])
    loss = np.sin(np.arange(90) ** 2) + first / 2 + (second - 2.5) ** 2 / 5
    expected = (0.19025874497663428, 0.17753811954226506, 0.049040497124484994)
    both = Groups.of([first, second], 90)
    for groups, variance in zip((both.labels[both.codes], first, second), expected, strict=True):
        tally = PairedTally(1).update(loss[:, None], None, groups)
        assert tally.standard_errors()[0][0] ** 2 == pytest.approx(variance, rel=1e-12)


def test_groups_within_groups_are_the_larger_ones(rows):
    y, p, league, date = rows
    pairs = np.char.add(league, date.astype(str))
    nested, *apart = (errors(vx.evaluate(y, p, groups=g)) for g in ([league, pairs], league, pairs))
    assert nested == pytest.approx(np.maximum(*apart), rel=1e-9)


def test_variances_are_no_less_than_those_of_either_kind(rows):
    y, p, league, date = rows
    card = vx.evaluate(y, p, groups=[league, date], ordered=True)
    for groups in (league, date):
        of_kind = vx.evaluate(y, p, groups=groups, ordered=True)
        assert (errors(card) >= errors(of_kind) * (1 - 1e-12)).all()
    alike = "(each of one kind; errors of a group alike up to "
    for line in lines(card).values():
        assert line.interval.method.partition(alike)[0] in (
            *(
                "mid-P over 12 and 25 groups ",
                "gamma over 12 and 25 groups",
                "jackknife over 12 and 25 groups",
            ),
        )
        assert line.interval.caution in ("", "heavy tails: a few of the 12 and 25 groups dominate the mean")


def test_few_groups_of_either_kind_are_a_caution(rows):
    y, p, league, date = rows
    card = vx.evaluate(y, p, groups=[league, date % 7])
    assert card.scores["brier"].interval.caution == "only 12 and 7 groups"
    assert "over 12 and 7 groups: means: gamma; shares: mid-P" in str(card)
    assert "(caution: only 12 and 7 groups)" in str(card)


def test_every_form_of_two_labels_per_row(rows):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    y, p, league, date = rows
    expected = vx.evaluate(y, p, groups=[league, date])
    forms = [
        (league, date),
        [league.tolist(), date.tolist()],
        np.column_stack([league, date.astype(str)]),
        pd.DataFrame({"league": league, "date": date}),
        pl.DataFrame({"league": league, "date": date}),
        [pd.Series(league), pd.Series(date)],
        list(zip(league.tolist(), date.astype(str).tolist(), strict=True)),
    ]
    for groups in forms:
        card = vx.evaluate(y, p, groups=groups)
        assert card.n_groups == (12, 25)
        for name, line in expected.scores.items():
            assert card.scores[name].interval == pytest.approx(line.interval, rel=1e-9)


def test_two_labels_for_two_rows_are_labels():
    assert Groups.of(["a", "b"], 2).count == 2
    assert Groups.of([["a", "b"], ["c", "c"]], 2).count == (2, 1)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda league, date: [league, date[:-1]], "shape is (399,)"),
        (lambda league, date: np.column_stack([date, date, date]), "shape is (400, 3)"),
        (lambda league, date: np.zeros(400, [("a", int), ("b", int), ("c", int)]), "with 3 fields"),
        (lambda league, date: [league, np.zeros(400)], "there is 1 of one kind"),
        (lambda league, date: [league, np.where(date == 3, np.nan, date)], "row"),
    ],
)
def test_bad_groups_are_refused(rows, change, found):
    y, p, league, date = rows
    with pytest.raises(InputError, match="groups") as error:
        vx.evaluate(y, p, groups=change(league, date))
    assert found in str(error.value)


def test_what_has_no_two_way_form_says_so(rows):
    y, p, league, date = rows
    groups, models = [league, date], {"a": p, "b": p[:, ::-1]}
    for refused in (
        lambda: vx.decompose(y, p, rule="brier", groups=groups),
        lambda: vx.retention(y, p, rule="brier", groups=groups),
        lambda: vx.subgroups(y, p, by=y, groups=groups),
        lambda: vx.compare(y, models, rule="brier", groups=groups, method="bootstrap"),
        lambda: vx.compare(y, models, rule="brier", groups=groups, method="permutation"),
    ):
        with pytest.raises(InputError, match="`groups` must be of one kind for"):
            refused()


def test_every_function_with_groups_allows_for_two_kinds_or_refuses_them(rows):
    y, p, league, date = rows
    required = {"rule": "brier", "by": "max_probability", "metric": "accuracy", "defer": 0.3}
    allowed, refused = set(), {}
    for name in vx.__all__:
        function = getattr(vx, name)
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        needed = [n for n, q in parameters.items() if q.default is q.empty and q.kind is q.KEYWORD_ONLY]
        if (
            not {"y", "groups"} <= set(parameters)
            or isinstance(function, type)
            or not set(needed) <= set(required)
        ):
            continue
        models = ("compare", "compare_folds", "fit_combination", "plan", "score_map")
        given = {"a": p, "b": p[:, ::-1]} if name in models else p
        given = p > 0.2 if name == "evaluate_sets" else given
        outcomes = p if name == "raters" else y
        options = {n: league if name == "subgroups" and n == "by" else required[n] for n in needed}
        if name == "compare_folds":
            options["folds"] = np.arange(len(y)) % 5
        try:
            function(outcomes, given, groups=[league, date], **options)
            allowed.add(name)
        except InputError as error:
            refused[name] = str(error)
    wrong = {name: text for name, text in refused.items() if "must be of one kind" not in text}
    assert not wrong
    assert (
        {"compare", "evaluate"}
        <= allowed
        <= {
            "compare",
            "compare_folds",
            "evaluate",
            "fit_combination",
            "plan",
            "raters",
            "recalibrate",
            "refinement",
        }
    )


def test_tallies_merge_in_any_order(rows):
    y, p, league, date = rows
    whole = vx.evaluate(y, p, groups=[league, date], ordered=True)
    order = np.argsort(league, kind="stable")
    parts = [
        vx.evaluate(y[part], p[part], groups=[league[part], date[part]], ordered=True)
        for part in np.array_split(order, 3)
    ]
    for cards in (parts, parts[::-1]):
        merged = cards[0]
        for card in cards[1:]:
            merged = merged.merge(card)
        assert merged.n_groups == (12, 25)
        for name, line in lines(whole).items():
            assert lines(merged)[name].interval == pytest.approx(line.interval, rel=1e-12)
    with pytest.raises(VeraxError, match="two kinds of groups"):
        parts[0].merge(vx.evaluate(y, p, groups=league, ordered=True))
    with pytest.raises(VeraxError, match="two kinds of groups"):
        RuleSums([vx.brier], 3).update(vx.Forecasts(y, p, groups=league)).update(
            vx.Forecasts(y, p, groups=[league, date])
        )


def test_comparison_and_card_have_the_same_interval(rows):
    y, p, league, date = rows
    card = vx.evaluate(y, p, groups=[league, date])
    found = vx.compare(y, {"a": p, "b": p[:, ::-1]}, rule="brier", groups=[league, date], reference="b")
    model = next(m for m in found.models["brier"] if m.name == "a")
    assert model.interval == pytest.approx(card.scores["brier"].interval, rel=1e-9)
    assert found.n_groups == (12, 25)
    assert "12 and 25 groups; paired t test (" in repr(found)
    assert "independent groups of two kinds" in repr(found)
    # Skill by the delta method: the mean of a - ratio * b, over the mean of b.
    a, b = vx.brier.samples(y, p), vx.brier.samples(y, p[:, ::-1])
    ratio = a.mean() / b.mean()
    labels = Groups.of([league, date], 400)
    tally = PairedTally(1).update((a - ratio * b)[:, None], None, labels.labels[labels.codes])
    (error, freedom), (skewed_freedom, skewness) = tally.standard_errors(), tally.shapes()
    found = Estimate(np.array([1 - ratio]), error / b.mean(), freedom, None, -skewness, skewed_freedom)
    low, high = found.intervals(0.95)[0]
    assert model.skill_interval == pytest.approx((low, high), rel=1e-9)


def test_files_in_batches_have_two_columns_of_groups(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    y, p, league, date = rows
    frame = pd.DataFrame(
        {"y": y, "p_0": p[:, 0], "p_1": p[:, 1], "p_2": p[:, 2], "league": league, "date": date}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    np.savez(tmp_path / "a.npz", labels=y, probs=p, league=league, date=date)
    expected = vx.evaluate(y, p, groups=[league, date])
    for name in ("a.parquet", "a.csv", "a.npz"):
        source = files.open(tmp_path / name, groups=["league", "date"])
        assert "groups: league and date" in source.taken
        for rows_at_a_time in (None, 70):
            card = card_of_file(source, rows=rows_at_a_time)
            assert card.n_groups == (12, 25)
            assert card.scores["brier"].interval == pytest.approx(expected.scores["brier"].interval, rel=1e-6)
        assert Groups.of(source.read().groups, 400).count == (12, 25)
    with pytest.raises(InputError, match="one column or two"):
        files.open(tmp_path / "a.csv", groups=["league", "date", "y"])
    with pytest.raises(InputError, match="no column 'dates'"):
        files.open(tmp_path / "a.csv", groups=["league", "dates"])


# `studies/coverage_two_way.py` has more designs and replications; above, variances are those of a definition.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_leagues", "n_dates", "n", "n_runs"),
    [
        (10, 30, 400, 60),
        *(pytest.param(*design, 400, marks=pytest.mark.long) for design in ((10, 30, 400), (20, 20, 600))),
    ],
)
def test_two_way_intervals_cover_where_one_way_intervals_do_not(n_leagues, n_dates, n, n_runs):
    rng = np.random.default_rng(3)
    many = rng.integers(0, 3000, 200_000), rng.integers(0, 3000, 200_000)
    y, p = sample(rng, *many)
    truth = {name: line.mean for name, line in lines(vx.evaluate(y, p, ordered=True, bootstrap=2)).items()}
    covered = {kind: dict.fromkeys(SHOWN, 0) for kind in ("date", "both")}
    for _ in range(n_runs):
        league, date = crossed_groups(rng, n, n_leagues, n_dates)
        y, p = sample(rng, league, date)
        for kind, groups in (("date", date), ("both", [league, date])):
            card = vx.evaluate(y, p, groups=groups, rules=["brier", "log_score", "zero_one"], ordered=True)
            for name in SHOWN:
                low, high = lines(card)[name].interval
                covered[kind][name] += low <= truth[name] <= high
    # Two standard errors of a share of 95 %.
    error = 2 * (0.95 * 0.05 / n_runs) ** 0.5
    for name in SHOWN:
        # With few groups those of shares are cautious.
        most = 1 if name in ("zero_one", "accuracy") else min(1, 0.97 + error)
        assert 0.93 - error <= covered["both"][name] / n_runs <= most, (name, covered)
    assert np.mean(list(covered["date"].values())) / n_runs < 0.95 - error, covered


@pytest.mark.long
@pytest.mark.slow
def test_comparisons_keep_their_level_with_two_kinds_of_groups():
    rng = np.random.default_rng(4)
    rejected, n_runs = {"first": 0, "second": 0, "both": 0}, 300
    for _ in range(n_runs):
        first, second = crossed_groups(rng, 500, 12, 25)
        effect = rng.normal(size=(12, 2))[first] + rng.normal(size=(25, 2))[second]
        losses = effect + rng.exponential(size=(500, 2))
        labels = Groups.of([first, second], 500)
        for kind, groups in (("first", first), ("second", second), ("both", labels.labels[labels.codes])):
            tally = PairedTally(2).update(losses, None, groups)
            rejected[kind] += Estimate(tally.means, *tally.standard_errors()).p_values()[2] < 0.05
    # Five percent of 300 runs has a standard error of 1.3 percent.
    assert 0.035 - 0.025 <= rejected["both"] / n_runs <= 0.065 + 0.025, rejected
    assert rejected["first"] / n_runs > 0.08, rejected
    assert rejected["second"] / n_runs > 0.15, rejected
