"""Worst rows, curves, subgroups and comparisons of top lists, against full distributions and brute force."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from verax.analyses.uncertainty_scores import doubt

RULES = {name: vx.rules.RULES[name] for name in ("brier", "log_score", "spherical", "pbs", "pll")}
REMOVED = [0, 0.1, 0.25, 0.5, 0.7]


@st.composite
def problems(draw):
    """Lists of eighths, so that ties, zeros, empty, full and invalid lists are common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n_rows = draw(st.integers(2, 5)), draw(st.integers(4, 12))
    rows = []
    for _ in range(n_rows):
        k = int(rng.integers(0, m + 1))
        t = rng.multinomial(8, np.ones(k + (k < m)) / (k + (k < m)))[:k] / 8 if k else []
        rows.append(dict(zip(rng.permutation(m)[:k].tolist(), t, strict=True)))
    return rng.integers(0, m, n_rows), vx.TopLists.from_dicts(rows, n_classes=m), rows


def dense_losses(rule, y, lists):
    """Losses of the full distributions that lists are scored as, and the fine for invalid ones."""
    return rule.samples(y, lists.largest_valid().padded()) + ~lists.valid


def kept_by_brute_force(key, removed):
    """How much of every row is kept when the worst are removed, rows that tie sharing the cut."""
    key, n = np.round(key, 12), len(key)
    gone, kept = int(removed * n + 1e-9), np.ones(n)
    for value in sorted(set(key), reverse=True):
        tied = key == value
        share = min(gone, tied.sum())
        kept[tied] -= share / tied.sum()
        gone -= share
    return kept


def top_k(rows, y, k):
    """How often the outcome is among the first k, over all orders of classes that tie."""
    found = []
    for row, outcome in zip(rows, y, strict=True):
        own = row.get(outcome)
        above = sum(t > own for t in row.values()) if own is not None else 0
        tied = sum(t == own for t in row.values()) if own is not None else 1
        found.append(0.0 if own is None else min(max(k - above, 0), tied) / tied)
    return np.array(found)


def right(rows, y):
    """Whether each list decides for the outcome: for the first of the classes it is most confident of."""
    decided = [min((c for c in row if row[c] == max(row.values())), default=None) for row in rows]
    return np.array([c == outcome for c, outcome in zip(decided, y, strict=True)], float)


@pytest.mark.long
@given(problems(), st.sampled_from(sorted(RULES)))
def test_curves_and_worst_rows_are_those_of_full_distributions(problem, name):
    y, lists, rows = problem
    rule = RULES[name]
    losses = dense_losses(rule, y, lists)
    values = {
        "accuracy": right(rows, y),
        "error": 1 - right(rows, y),
        "coverage": np.array([outcome in row for outcome, row in zip(y, rows, strict=True)], float),
        "top_1_accuracy": top_k(rows, y, 1),
        "top_2_error": 1 - top_k(rows, y, 2),
        "brier": dense_losses(vx.brier, y, lists),
    }
    metrics = [vx.brier if metric == "brier" else metric for metric in values]
    curves = vx.retention(y, lists, rule=rule, metric=metrics, removed=REMOVED)
    for metric, value in values.items():
        expected = [np.average(value, weights=kept_by_brute_force(losses, r)) for r in REMOVED]
        np.testing.assert_allclose(curves[name, metric].values, expected, rtol=1e-12, atol=1e-14)
    worst = vx.worst(y, lists, rule=rule, n=len(y))
    order = np.argsort(-np.round(losses, 12), kind="stable")
    assert [case.row for case in worst] == order.tolist()
    for case in worst:
        row = rows[case.row]
        ranked = sorted(row, key=lambda c, row=row: -row[c])
        assert case.forecast == row
        assert list(case.forecast.values()) == sorted(row.values(), reverse=True)
        assert (case.place is None) == (case.outcome not in row)
        assert case.place is None or row[ranked[case.place - 1]] == row[case.outcome]
        assert case.unaccounted == pytest.approx(1 - sum(row.values()), abs=1e-15)
        assert case.valid == lists.valid[case.row]
        assert case.loss == pytest.approx(losses[case.row], rel=1e-11)
    assert worst.faults[""].n_invalid == lists.n_invalid == curves.faults[""].n_invalid
    assert (
        ("invalid, scored as" in repr(worst))
        == ("invalid, scored as" in repr(curves))
        == (not lists.valid.all())
    )


@pytest.mark.long
@given(problems(), st.sampled_from(["max_probability", "entropy", *RULES]))
def test_doubt_is_that_of_full_distributions(problem, by):
    y, lists, rows = problem
    dense = lists.largest_valid().padded()
    found = doubt(by).of_lists(lists.with_outcomes(y))
    fine = 0.0 if by in ("max_probability", "entropy") else ~lists.valid
    expected = doubt(by).of(dense) + fine
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    kept = [kept_by_brute_force(expected, r) for r in REMOVED]
    hits = right(rows, y)
    curve = vx.selective(y, lists, by=by, removed=REMOVED)
    np.testing.assert_allclose(
        curve.values, [np.average(hits, weights=w) for w in kept], rtol=1e-12, atol=1e-14
    )
    risk = vx.risk_coverage(y, lists, by=by)
    assert risk.risk_at(1) == pytest.approx(1 - hits.mean(), abs=1e-14)
    scored = vx.risk_coverage(y, lists, by=by, rule="brier")
    assert scored.risk_at(1) == pytest.approx(dense_losses(vx.brier, y, lists).mean(), rel=1e-12)


def random_lists(n=300, m=12, seed=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(m, 0.4), n)
    y = np.array([rng.choice(m, p=row) for row in p])
    return y, p, rng


def test_curves_of_valid_lists_of_all_classes_are_those_of_the_rows():
    y, p, rng = random_lists()
    lists, weights, groups = vx.TopLists.from_probabilities(p, p.shape[1]), rng.integers(1, 4, 300), y % 7
    options = {"bootstrap": 50, "weights": weights, "groups": groups, "removed": REMOVED}
    for function, by in ((vx.retention, {"rule": "log_score"}), (vx.selective, {"by": "brier"})):
        of_lists = function(y, lists, metric="accuracy", **by, **options)
        of_rows = function(y, p, metric="accuracy", **by, **options)
        np.testing.assert_allclose(of_lists.values, of_rows.values, rtol=1e-12)
        np.testing.assert_allclose(of_lists.band, of_rows.band, rtol=1e-12)
        assert of_lists.to_dict()["lists"] == {
            "n_lists": 300,
            "n_invalid": 0,
            "n_by_mass": 0,
            "unmatched": "",
        }
    a, b = (vx.risk_coverage(y, x, bootstrap=20, groups=groups) for x in (lists, p))
    assert (a.aurc, a.augrc) == pytest.approx((b.aurc, b.augrc), rel=1e-12)
    assert tuple(a.aurc_interval) == pytest.approx(tuple(b.aurc_interval), rel=1e-12)


def test_what_has_no_meaning_for_a_list_says_why():
    y, p, _ = random_lists(20)
    lists = vx.TopLists.from_probabilities(p, 3)
    for call, reason in (
        (
            lambda: vx.retention(y, lists, rule="brier", metric="qwk"),
            "'qwk' needs a decision or the order of the classes",
        ),
        (lambda: vx.retention(y, lists, rule="brier", metric=lambda y, p: 0), "needs all probabilities"),
        (lambda: vx.retention(y, lists, rule="rps", metric="accuracy"), "no cumulative probabilities"),
        (lambda: vx.worst(y, lists, rule="rps"), "no cumulative probabilities"),
        (lambda: vx.selective(y, lists, by="rps"), "no cumulative probabilities"),
        (
            lambda: vx.selective(y, lists, decision_costs="zero_one"),
            "`decision_costs` cannot be used with top",
        ),
        (lambda: vx.risk_coverage(y, lists, costs="zero_one"), "`costs` cannot be used with top lists"),
        (lambda: vx.selective(y, lists, metric="top_0_error"), "it is 'top_0_error'"),
    ):
        with pytest.raises(vx.VeraxError, match=reason):
            call()


def test_outcomes_that_no_list_can_name_are_remarked_on():
    lists = vx.TopLists.from_dicts([{}, {"A": 0.5}, {"B": 0.25}], n_classes=30)
    said = "No outcome is in any list: in row 1 'a.' happened, and its list begins with 'A'."
    card = vx.evaluate(["b.", "a.", "b."], lists)
    assert said in str(card)
    assert card.to_dict()["unmatched"].startswith(said)
    assert said in repr(vx.worst(["b.", "a.", "b."], lists, rule="brier"))
    other = vx.evaluate(["B", "a.", "b."], lists)
    assert "No outcome" not in str(other)
    assert "No outcome" not in str(card.merge(other))
    assert said in str(card.merge(card))


def test_cases_have_names_and_tables():
    lists = vx.TopLists.from_dicts([{"cat": 0.75, "lynx": 0.125}, {}], n_classes=2**80)
    worst = vx.worst(["lynx", "emu"], lists, rule="brier", ids=["r1", "r2"])
    assert [(case.id, case.outcome, case.place) for case in worst] == [("r1", "lynx", 2), ("r2", "emu", None)]
    assert worst[0].source == "place 2 of 2 with 0.12; cat had 0.75"
    assert worst[1].source == "not listed: 1 was left for 1.21e+24 other classes"
    assert "cat 0.75, lynx 0.12" in repr(worst)
    assert "nothing listed" in repr(worst)
    json.dumps(worst.to_dict())
    numbered = vx.TopLists.from_arrays([[0, 1]], [[0.75, 0.125]], n_classes=3)
    (case,) = vx.worst(["emu"], numbered, rule="brier", classes=["cat", "lynx", "emu"])
    assert (case.outcome, list(case.forecast)) == ("emu", ["cat", "lynx"])
    frame = worst.to_frame()
    assert frame["listed_2"].tolist()[0] == "lynx"
    assert frame["place"].tolist()[0] == 2
    sets = vx.TopLists.from_label_probabilities([[0.9, 0.2, 0.6]], 2, labels=["a", "b", "c"])
    (case,) = vx.worst(np.array([[0, 1, 0]]), sets, rule="brier")
    assert case.outcome == ("b",)
    assert list(case.forecast) == [("a", "c"), ("a",)]
    assert "No outcome" not in repr(vx.worst([{"b"}], sets, rule="brier"))


def test_lists_of_any_length_are_compared_with_full_distributions():
    y, p, rng = random_lists()
    names, shuffled = [f"c{i}" for i in range(12)], rng.permutation(12)
    by_name = [{names[c]: row[c] for c in np.argsort(-row)[: 2 + i % 3]} for i, row in enumerate(p)]
    models = {
        "dense": 3 * p,
        "top 3": vx.TopLists.from_probabilities(p, 3, classes=names),
        "ragged": vx.TopLists.from_dicts(by_name, n_classes=12),
        "hard": vx.TopLists.from_decisions(p.argmax(axis=1), n_classes=12),
        "wrong": vx.TopLists.from_arrays(p.argmin(axis=1)[:, None], np.full((300, 1), 0.01), n_classes=12),
    }
    full = {name: each.largest_valid() for name, each in models.items() if name != "dense"}
    padded = {"dense": p}
    for name, lists in full.items():
        padded[name] = np.repeat(lists.proxy[:, None], 12, axis=1)
        for i, row in enumerate(lists.to_dicts()):
            for c, t in row.items():
                padded[name][i, names.index(c) if isinstance(c, str) else c] = t
    rules, options = ["brier", "pbs"], {"weights": rng.integers(1, 4, 300), "groups": np.arange(300) // 3}
    labels = np.array(names)[y]
    form = {"classes": names, "normalize": True}
    found = vx.compare(labels, models, rule=rules, reference="uniform", **form, **options)
    wanted = vx.compare(y, padded, rule=rules, reference="uniform", **options)
    for rule in rules:
        means = {m.name: m for m in found.models[rule]}
        for m in wanted.models[rule]:
            fine = m.name == "wrong"
            assert means[m.name].mean == pytest.approx(m.mean + fine, rel=1e-12)
            low, high = m.interval
            assert tuple(means[m.name].interval) == pytest.approx((low + fine, high + fine), rel=1e-9)
        a, b = (c.difference("top 3", "ragged", rule) for c in (found, wanted))
        assert (a.difference, a.p_value) == pytest.approx((b.difference, b.p_value), rel=1e-9)
    assert found.to_dict()["lists"]["wrong"]["n_invalid"] == 300
    assert "wrong: 300 lists are invalid" in repr(found)
    with pytest.raises(vx.InputError, match="must be uniform or one of the models where there are top lists"):
        vx.compare(labels, models, rule="brier", classes=names, normalize=True, reference="frequencies")
    with pytest.raises(vx.InputError, match="`normalize` does not apply to top lists"):
        vx.compare(y, {"a": models["hard"], "b": models["wrong"]}, rule="brier", normalize=True)
    with pytest.raises(vx.InputError, match="`classes` must be the classes of the lists"):
        vx.compare(labels, models, rule="brier", classes=[names[i] for i in shuffled], normalize=True)
    own = vx.compare({"a": y, "b": y[:50]}, {"a": models["hard"], "b": p[:50]}, rule="brier")
    assert own.faults["a"].n_lists == 300


def test_subgroups_of_lists_are_cards_of_their_rows():
    y, p, rng = random_lists()
    by, weights = np.arange(300) % 3, rng.random(300) + 0.5
    lists = vx.TopLists.from_dicts([{c: row[c] for c in (0, 1, 5)} for row in p], n_classes=12)
    assert lists.n_invalid
    found = vx.subgroups(y, {"lists": lists, "rows": p}, by=by, weights=weights)
    losses = dense_losses(vx.brier, y, lists)
    for label in range(3):
        part = by == label
        line = found[label, "lists"]
        assert line.card["brier"] == pytest.approx(np.average(losses[part], weights=weights[part]), rel=1e-12)
        card = vx.evaluate(y[part], lists[part], weights=weights[part])
        assert line.card.to_dict() == card.to_dict()
        assert found[label, "rows"].card["brier"] == pytest.approx(
            vx.brier(y[part], p[part], weights=weights[part]), rel=1e-12
        )
        better = found.comparisons[label].difference("rows", "lists").difference
        assert better == pytest.approx(found[label, "rows"].card["brier"] - line.card["brier"], rel=1e-9)
    assert found.faults["lists"].n_invalid == lists.n_invalid
    assert "lists are invalid" in repr(found)
    frame = found.to_frame()
    assert frame["mean"].tolist()[0] == found[0, "lists"].card["brier"]
    tested = vx.subgroups(y, lists, by=by).lines
    assert all(line.p_value is not None for line in tested)
