"""The quantity that is meant: grades of logs stand, questions are the units, and what is missing is said."""

from __future__ import annotations

import json
import operator
from functools import reduce

import numpy as np
import pytest
from scipy import stats

import verax as vx
from commandline import verax
from evallogs import inspect_sample, write_eval
from verax.wings.evals.result import card_from_bytes

REASONS = ("limit", "empty", "unparsable", "refused", "error", "unscored", None)


def padded_wilson(x, pad=0.25):
    """Padded Wilson of question means in 0 to 1, written from its formula."""
    n = len(x)
    return padded_ends(np.mean(x), np.var(x, ddof=1) / n, n - 1, n, pad)


def padded_ends(mean, variance, freedom, units, pad):
    t = stats.t.ppf(0.975, freedom)
    variance += pad * (mean**2 + (1 - mean) ** 2) / 2 / (units * (units - 1))
    rows = mean * (1 - mean) / variance
    pull = t * t / rows
    centre, half = mean + pull / 2, np.sqrt(mean * (1 - mean) * pull + pull * pull / 4)
    return (centre - half) / (1 + pull), (centre + half) / (1 + pull)


def hard_questions_fail(seed=0, questions=60, epochs=8):
    """Answers to the same number of epochs each, of which those to hard questions fail more often."""
    rng = np.random.default_rng(seed)
    ease = rng.random(questions)
    grades = (rng.random((questions, epochs)) < ease[:, None]).astype(float)
    failed = rng.random((questions, epochs)) < 0.85 * (1 - ease[:, None])
    failed[:, 0] = False
    grades[failed] = np.nan
    ids, epoch = np.repeat(np.arange(questions), epochs), np.tile(np.arange(epochs), questions)
    reasons = np.where(failed, "error", None).astype(object)
    return ease, grades, {"ids": ids, "epochs": epoch, "reasons": reasons.ravel()}


def test_questions_count_whatever_their_epochs_that_failed():
    """Epochs that fail in hard questions: answers would average .7, and questions average what was asked."""
    ease, grades, beside = hard_questions_fail()
    card = vx.evaluate_grades(grades.ravel(), **beside)
    means = np.nanmean(grades, axis=1)
    assert card.mean == pytest.approx(means.mean(), abs=1e-12)
    assert np.nanmean(grades) > card.mean + 0.08
    assert list(card.interval) == pytest.approx(padded_wilson(means), abs=1e-9)
    assert card.interval.low < ease.mean() < card.interval.high
    assert card.deviation == pytest.approx(means.std(), rel=1e-6)
    assert (card.n_questions, card.answers.questions, card.answers.asked) == (60, 60, 480)


def test_one_function_gives_the_value_of_a_question_to_everything(tmp_path):
    """Card, gate, plan, comparison, verdict and scores of confidences are of the same question means."""
    _, grades, beside = hard_questions_fail(1)
    means = np.nanmean(grades, axis=1)
    samples = [
        inspect_sample(
            q,
            None if np.isnan(grades[q, e]) else "CI"[int(grades[q, e] == 0)],
            epoch=e + 1,
            **({"error": {"message": "x"}} if np.isnan(grades[q, e]) else {}),
        )
        for q in range(60)
        for e in range(8)
    ]
    log = write_eval(tmp_path / "a.eval", samples)
    card = vx.evaluate_grades(grades.ravel(), **beside)
    found = json.loads(verax("evals", "evaluate", log, "--require", "grade.low>0.1", "--json").stdout)
    assert found["grades"]["mean"] == pytest.approx(means.mean(), abs=1e-12)
    plan = vx.plan(card, width=0.05)
    alone = vx.plan(vx.evaluate_grades(means), width=0.05)
    assert plan.rows == alone.rows
    assert "questions" in plan.verdict
    rng = np.random.default_rng(3)
    other = (rng.random((60, 8)) < 0.5).astype(float)
    compared = vx.compare_grades(
        {"a": grades.ravel(), "b": other.ravel()},
        ids=beside["ids"],
        epochs=beside["epochs"],
        reasons={"a": beside["reasons"], "b": np.full(480, None)},
    )
    gap = compared.difference("a", "b")
    assert gap.difference == pytest.approx((means - other.mean(axis=1)).mean(), abs=1e-12)
    assert gap.standard_error == pytest.approx((means - other.mean(axis=1)).std(ddof=1) / 60**0.5)
    by_model = {model.name: model for model in compared.models["grade"]}
    assert (by_model["a"].mean, list(by_model["a"].interval)) == (
        pytest.approx(card.mean),
        pytest.approx(list(card.interval)),
    )
    sure = np.clip(np.repeat(rng.random(60), 8) + 0.1 * rng.random(480), 0, 1)
    scored = vx.evaluate_grades(grades.ravel(), sure, **beside).card
    squares = 2 * (sure.reshape(60, 8) - grades) ** 2
    assert scored["brier"] == pytest.approx(np.nanmean(squares, axis=1).mean())
    by_rule = vx.compare_grades(
        {"a": grades.ravel(), "b": grades.ravel()},
        {"a": sure, "b": sure},
        rule="brier",
        ids=beside["ids"],
        epochs=beside["epochs"],
    )
    assert by_rule.models["brier"][0].mean == pytest.approx(scored["brier"])


def test_the_law_of_missing_answers():
    """By hand: what the model is answerable for is wrong, the rest left out, and a grade stands."""
    grades = [1, 1, 0, 1, 1, *[np.nan] * 7, 1, 0]
    reasons = [*[None] * 5, *REASONS, "limit", "error"]
    ways = {
        "by-reason": (4 / (7 + 4), 4),
        "wrong": (5 / 14, 7),
        "exclude": (5 / 7, 0),
        "bounds": (5 / 7, 0),
    }
    ways["by-reason"] = (5 / 11, 4)
    for how, (mean, counted) in ways.items():
        card = vx.evaluate_grades(grades, reasons=reasons, ungraded=how)
        assert (card.mean, card.answers.counted) == (pytest.approx(mean), counted), how
        assert (card.answers.ungraded, card.answers.graded) == (7, 7)
        assert card.bounds == pytest.approx((5 / 14, 12 / 14))
        assert (card.wrong.mean, card.left_out.mean) == (pytest.approx(5 / 14), pytest.approx(5 / 7))
    became = vx.evaluate_grades(grades, reasons=reasons).answers.reasons
    assert (became["limit"].answers, became["limit"].graded, became["limit"].worst) == (2, 1, 0)
    assert (became["error"].worst, became["no reason"].answers, became["no reason"].graded) == (1, 1, 0)
    # Without reasons nothing is counted as wrong.
    assert vx.evaluate_grades(grades).mean == pytest.approx(5 / 7)
    with pytest.raises(vx.InputError, match="ungraded"):
        vx.evaluate_grades(grades, ungraded="guess")
    with pytest.raises(vx.InputError, match="one per row") as caught:
        vx.evaluate_grades(grades, reasons=["limit"])
    assert caught.value.argument == "reasons"


def test_the_law_acts_on_answers_before_questions():
    grades = np.array([[1, np.nan], [np.nan, np.nan], [0, 1], [np.nan, np.nan]]).ravel()
    reasons = [None, "limit", "error", "error", None, None, "empty", "error"]
    card = vx.evaluate_grades(grades, ids=np.repeat(list("abcd"), 2), epochs=[1, 2] * 4, reasons=reasons)
    # The means of a, c and d are 1/2, 1/2 and 0; all of b is left out.
    assert (card.mean, card.n_questions, card.answers.questions) == (pytest.approx(1 / 3), 3, 4)
    assert (card.left_out.mean, card.left_out.interval.defined) == (pytest.approx((1 + 0.5) / 2), True)
    assert card.wrong.mean == pytest.approx((0.5 + 0 + 0.5 + 0) / 4)
    assert card.bounds == pytest.approx(((0.5 + 0.5) / 4, (1 + 1 + 0.5 + 1) / 4))


def test_the_interval_of_bounds_has_the_ends_of_both():
    rng = np.random.default_rng(2)
    x = rng.random((40, 3)).round()
    x[rng.random((40, 3)) < 0.1] = np.nan
    card = vx.evaluate_grades(x.ravel(), ids=np.repeat(np.arange(40), 3), epochs=np.tile([1, 2, 3], 40))
    ends = [padded_wilson(np.nan_to_num(x, nan=worst).mean(axis=1)) for worst in (0.0, 1.0)]
    assert list(card.bounds_interval) == pytest.approx([ends[0][0], ends[1][1]], abs=1e-9)


def test_grades_between_the_bounds_have_a_whole_unit_more():
    """A quarter of an unseen unit where answers are right or wrong, a whole one where they are graded."""
    rng = np.random.default_rng(4)
    fine = 1 - rng.gamma(0.4, 0.02, 60).clip(0, 1)
    assert list(vx.evaluate_grades(fine).interval) == pytest.approx(padded_wilson(fine, 1.0), abs=1e-9)
    twice = np.repeat(fine, 2)
    repeated = vx.evaluate_grades(twice, ids=np.repeat(np.arange(60), 2), epochs=np.tile([1, 2], 60))
    assert list(repeated.interval) == pytest.approx(padded_wilson(fine, 1.0), abs=1e-9)
    steps = rng.integers(0, 2, (60, 2)).astype(float)
    plain = vx.evaluate_grades(steps.ravel(), ids=np.repeat(np.arange(60), 2), epochs=np.tile([1, 2], 60))
    assert list(plain.interval) == pytest.approx(padded_wilson(steps.mean(axis=1)), abs=1e-9)


def test_groups_of_unequal_size_count_as_fewer():
    rng = np.random.default_rng(12)
    sizes = np.r_[80, 80, rng.integers(1, 6, 28)]
    groups = np.repeat(np.arange(30), sizes)
    x = (rng.random(len(groups)) < rng.beta(2.8, 1.2, 30)[groups]).astype(float)
    fine = np.clip(0.8 * x + 0.1, 0, 1)
    card = vx.evaluate_grades(fine, groups=groups)
    share = sizes / sizes.sum()
    alike = 1 / (share @ share)
    left = np.bincount(groups, fine - fine.mean()) / (1 - share)
    variance = 29 / 30 * (left @ left) / sizes.sum() ** 2
    assert alike < 6
    wanted = padded_ends(fine.mean(), variance, alike - 1, 30, 1.0)
    assert list(card.interval) == pytest.approx(wanted, abs=1e-9)
    assert "30 groups that count as 4.3" in card.interval.caution


def logs(tmp_path, cut=0.1, n=300):
    """Logs of two models: answers of one are cut at the token limit in hard questions, and graded wrong."""
    rng = np.random.default_rng(7)
    ease = rng.random(n)
    paths = []
    for name, share in (("a", cut), ("b", 0.0)):
        right = rng.random(n) < ease
        stopped = rng.random(n) < 2 * share * (1 - ease)
        grade = right & ~stopped
        limit = {"limit": {"type": "token", "limit": 100}}
        samples = [inspect_sample(i, "IC"[int(grade[i])], **(limit if stopped[i] else {})) for i in range(n)]
        paths.append(write_eval(tmp_path / f"{name}.eval", samples, model=f"org/{name}"))
    return paths, grade, int(stopped.sum())


def test_answers_cut_at_a_limit_keep_the_grade_of_the_log(tmp_path):
    """The mean is the one that Inspect prints: all samples with a score, whatever their limit."""
    (one, other), *_ = logs(tmp_path)
    found = json.loads(verax("evals", "evaluate", one, "--json").stdout)["grades"]
    from verax.files.logs import read_log

    table = read_log(one).table
    values = table["grade"].to_pylist()
    assert None not in values
    assert (found["mean"], found["ungraded"], found["n_rows"]) == (pytest.approx(np.mean(values)), 0, 300)
    cut = table["status"].to_pylist().count("limit")
    assert found["reasons"] == {"limit": {"answers": cut, "graded": cut, "worst": cut}}
    said = verax("evals", "evaluate", one).stdout
    assert f"{cut} of 300 answers were cut at a limit; {cut} of them are graded wrong" in said
    compared = verax("evals", "compare", one, other).stdout
    assert f"{cut} of 300 answers of org/a were cut at a limit" in compared
    assert "300 rows" in compared


def test_the_verdict_tells_both_numbers_where_it_depends_on_them():
    rng = np.random.default_rng(5)
    a, b = (rng.random((2, 200)) < 0.62).astype(float)
    lost = np.flatnonzero(a == 0)[:50]
    a[lost] = np.nan
    found = vx.compare_grades({"a": a, "b": b})
    (open_,) = found.unsettled
    gap = vx.compare_grades({"a": a, "b": b}, ungraded="wrong").difference("a", "b")
    assert (open_.wrong, list(open_.wrong_interval)) == (
        pytest.approx(gap.difference),
        pytest.approx(list(gap.interval)),
    )
    left = vx.compare_grades({"a": a, "b": b}, ungraded="exclude")
    assert open_.left_out == pytest.approx(left.difference("a", "b").difference)
    assert "best_model" in left.verdict.claims
    # Nobody says why these have no grade, so nothing is claimed.
    assert found.verdict.claims == ("lead_open",)
    assert "do not settle whether a or b is better" in found.verdict
    assert any("ungraded more often for one model: 50 of 200 of a, 0 of 200 of b" in n for n in found.notes)
    assert vx.compare_grades({"a": a, "b": b}, ungraded="wrong").unsettled == []
    for missing in ("pairwise", "joint"):
        ids = {"a": np.arange(200), "b": np.arange(200)}
        again = vx.compare_grades({"a": a, "b": b}, ids=ids, missing=missing)
        assert [one.left_out for one in again.unsettled] == [pytest.approx(open_.left_out)]
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_a_gate_that_depends_on_missing_answers_is_not_passed(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["1,"] * 60 + ["0,"] * 20 + [",error"] * 15 + [",limit"] * 5
    path.write_text("correct,status\n" + "\n".join(rows) + "\n")
    for bound, options, code in (
        ("grade>0.7", (), 1),
        ("grade>0.7", ("--ungraded", "exclude"), 0),
        ("grade>0.7", ("--ungraded", "bounds"), 1),
        ("grade>0.55", (), 0),
        ("grade>0.55", ("--ungraded", "wrong"), 0),
        ("grade.low>0.48", ("--ungraded", "bounds"), 0),
        ("grade.low>0.55", ("--ungraded", "bounds"), 1),
    ):
        ran = verax("evals", "evaluate", path, "--require", bound, *options)
        assert ran.returncode == code, (bound, options, ran.stdout)
    said = " ".join(verax("evals", "evaluate", path).stdout.split())
    assert "Mean grade 0.7059" in said
    assert "20 of 100 answers have no grade (15 error, 5 limit): counted as wrong, the mean is 0.6000" in said
    assert "left out 0.7500, and whatever they deserve between 0.6000 and 0.8000" in said
    refused = verax("evals", "evaluate", path, "--ungraded", "guess")
    assert (refused.returncode, "by-reason" in refused.stderr) == (2, True)


def test_parts_of_a_card_add_up_with_what_became_of_answers(tmp_path):
    rng = np.random.default_rng(8)
    grades = rng.random(90).round()
    reasons = rng.choice([None, "limit", "error"], 90, p=[0.8, 0.1, 0.1])
    grades[(reasons == "error") | ((reasons == "limit") & (rng.random(90) < 0.5))] = np.nan
    grades[:20], reasons[:20] = 1.0, None
    whole = vx.evaluate_grades(grades, reasons=reasons)
    parts = [vx.evaluate_grades(grades[i : i + 30], reasons=reasons[i : i + 30]) for i in (0, 30, 60)]
    merged = reduce(operator.add, parts)
    for name in ("mean", "bounds", "unsettled", "interval", "bounds_interval"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name)), name
    assert (merged.answers.reasons, merged.wrong.mean) == (whole.answers.reasons, whole.wrong.mean)
    merged.save(tmp_path / "a.verax")
    assert vx.load(tmp_path / "a.verax").to_dict() == merged.to_dict()
    assert card_from_bytes(merged._tally.to_bytes()).bounds == pytest.approx(whole.bounds)
    # A part without missing answers knows that it has none.
    assert parts[0].wrong is None or parts[0].answers.ungraded


# ---- repeats ------------------------------------------------------------------------------------------


def table(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_repeats_in_a_table_are_found(tmp_path):
    """164 tasks with 5 samples each are 164 questions, and the first line has it."""
    rng = np.random.default_rng(1)
    ease = rng.random(164)
    right = (rng.random((164, 5)) < ease[:, None]).astype(int)
    rows = [(f"HumanEval/{t}", s, right[t, s]) for s in range(5) for t in range(164)]
    path = table(tmp_path / "a.csv", "task,sample,correct", rows)
    found = json.loads(verax("evals", "evaluate", path, "--json").stdout)
    assert found["taken"][0] == "820 answers to 164 questions (task), each asked 5 times (sample)"
    grades = found["grades"]
    assert list(grades["interval"].values())[:2] == pytest.approx(padded_wilson(right.mean(axis=1)), abs=1e-9)
    alone = vx.evaluate_grades(right.ravel())
    assert grades["interval"]["high"] - grades["interval"]["low"] > 1.3 * np.ptp(alone.interval)
    stated = verax("evals", "evaluate", path, "--question", "task", "--repeat", "sample", "--json")
    assert json.loads(stated.stdout)["grades"] == grades
    other = table(tmp_path / "b.csv", "task,sample,correct", [(t, s, 1 - r) for t, s, r in rows])
    compared = json.loads(verax("evals", "compare", path, other, "--json").stdout)["comparison"]
    assert compared["n_rows"] == 164
    stacked = table(
        tmp_path / "c.csv",
        "model,task,sample,correct",
        [(m, t, s, r if m == "x" else 1 - r) for m in "xy" for t, s, r in rows],
    )
    both = verax("evals", "compare", stacked, "--model-column", "model", "--json")
    assert json.loads(both.stdout)["comparison"]["n_rows"] == 164


def test_columns_that_are_no_repeats_are_left_alone(tmp_path):
    items = [(subject, item, (subject + item) % 2) for subject in range(6) for item in range(10)]
    # Items of a subject are questions, however they are numbered.
    for header, rows in (
        ("subject,item,correct", items),
        ("task,sample,correct", items[:-1]),
        ("task,sample,correct", [(t, s if t else 0, g) for t, s, g in items]),
        ("task,sample,correct", [(t, 2 * s, g) for t, s, g in items]),
        ("id,correct", [(i, g) for i, (_, _, g) in enumerate(items)]),
        ("task,run,correct", [(t, 1, g) for t, _, g in items]),
    ):
        path = table(tmp_path / "a.csv", header, rows)
        found = json.loads(verax("evals", "evaluate", path, "--json").stdout)
        assert not any("each asked" in line for line in found["taken"]), header
        assert found["grades"]["n_questions"] == len(rows)
    # Whoever names the question says that it repeats.
    path = table(tmp_path / "b.csv", "subject,item,correct", items)
    found = json.loads(verax("evals", "evaluate", path, "--question", "subject", "--json").stdout)
    assert found["grades"]["n_questions"] == 6


def test_labels_that_differ_between_repeats():
    """Equal numbers of repeats that all count may have labels of their own; others may not."""
    rng = np.random.default_rng(9)
    grades = rng.random((20, 3)).round()
    beside = {"ids": np.repeat(np.arange(20), 3), "epochs": np.tile([1, 2, 3], 20)}
    card = vx.evaluate_grades(grades.ravel(), by={"epoch": beside["epochs"]}, **beside)
    assert card.mean == pytest.approx(grades.mean())
    assert card.subgroups["epoch"]["2"].mean == pytest.approx(grades[:, 1].mean())
    grades[0, 0] = np.nan
    with pytest.raises(vx.InputError, match="must be the same for all rows of a question"):
        vx.evaluate_grades(grades.ravel(), by={"epoch": beside["epochs"]}, **beside)
