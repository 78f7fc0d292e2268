"""Every public function says the same of rows in memory, in one part, in many, and saved and merged.

`law.TABLE` says how each is asked. Exceptions stand below, with their reasons.
"""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np
import pytest

import law
import verax as vx
from law import TABLE, WAYS, equal, refusal
from scattered import Cut, Scattered, open_cuts
from verax.report import Report

# What saved summaries refuse: it needs another pass over the rows.
REFUSED_SAVED = {
    "average_precision",
    "c_index",
    "calibration_slope",
    "calibration_slope of thresholds",
    "precision_recall_curve",
    "roc_auc",
    "roc_curve",
    "roc_auc of thresholds",
    "compare with class frequencies",
    "conformal",
    "conformal of ordered classes",
}
# Parts of a result that may differ in one way of reading, and why.
EXCEPT = {
    ("evaluate", "saved and merged"): (
        {"measures", "verdict", "findings"},
        "they need another pass over the rows",
    ),
    ("worst", "many parts"): ({"row"}, "rows have no number among all; they are known by their ids"),
    ("worst", "saved and merged"): (
        {"row", "ranks"},
        "the same; ranks by other rules need another pass over the rows",
    ),
    ("raters", "many parts"): ({"row"}, "rows have no number among all; they are known by their ids"),
    ("raters", "saved and merged"): ({"row", "ranks"}, "the same; ranks need another pass"),
    **{
        (name, "saved and merged"): (
            {"interval", "band", "aurc_interval", "augrc_interval"},
            "draws follow the order of rows, and shards know only their own",
        )
        for name in ("retention", "selective", "risk_coverage")
    },
    **{
        (name, "saved and merged"): (
            {
                *("band", "caution", "corrected", "expected_miscalibration", "intervals", "p_adjusted"),
                *("p_is_bound", "p_value", "verdict", "findings", "next_step"),
            },
            "draws of groups and intervals take another pass over the rows",
        )
        for name in ("decompose with intervals", "reliability")
    },
}
# Of parts, the page ranks rows by one uncertainty score only.
EXCEPT["Report.of", "many parts"] = {"row", "selective"}, "rows are known by ids"
EXCEPT["subgroups", "saved and merged"] = {"model"}, "saved models have names"
PLACES = "folds follow the order of rows, and shards know only their own"
CROSS_VALIDATED = ("fit_combination", "recalibrate", "refinement")
# Results that differ, and why.
DIFFERS = {(name, "saved and merged"): PLACES for name in CROSS_VALIDATED}
# Reports take seconds. Saved, they have names of models and no new draws: `test_saved.py` holds merged ones
# to that of all rows saved at once. `tests/report/test_elsewhere.py` has reports without weights and groups.
ELSEWHERE = [("Report.of", "dense", "saved and merged"), ("Report.of", "plain", "many parts")]
# Refusals that differ, and why.
REFUSES_ALONE = {
    ("worst", "a negative weight"): "it has no weights in memory",
    ("worst", "no weight"): "it has no weights in memory",
}

CASES = [(name, kind, way) for name, asked in TABLE.items() for kind in asked.takes for way in WAYS]
CASES += [(name, "plain", "many parts") for name, asked in TABLE.items() if "dense" in asked.takes]
# Raters who disagree: one analysis of each kind, natively and by pairs of a case and a class.
RATED = ("evaluate", "compare with class frequencies", "worst", "decompose", "net_benefit", "retention")
CASES += [(name, "rated", "many parts") for name in RATED]
CASES = [case for case in CASES if case not in ELSEWHERE]
# Analyses whose parts read a case as a row for each class.
RATED_ALONE = (
    "calibration_slope",
    "choose_thresholds",
    "conformal",
    "murphy",
    "operating_points",
    "recalibrate",
)


@pytest.fixture(autouse=True)
def cuts(monkeypatch):
    open_cuts(monkeypatch)


@cache
def in_memory(name, kind):
    return TABLE[name].in_memory(law.ROWS[kind]())


@pytest.mark.parametrize(("name", "kind", "way"), CASES)
def test_numbers_do_not_depend_on_where_rows_are(name, kind, way, tmp_path, request):
    if (name, way) in DIFFERS:
        request.applymarker(pytest.mark.xfail(reason=DIFFERS[name, way]))
    asked, given = TABLE[name], law.ROWS[kind]()
    if way == "saved and merged" and name in REFUSED_SAVED:
        with pytest.raises(vx.InputError, match=r"lacks summaries that|need a second pass"):
            WAYS[way](asked, given, tmp_path)
        return
    ignored, _ = EXCEPT.get((name, way), (set(), ""))
    assert not equal(WAYS[way](asked, given, tmp_path), in_memory(name, kind), ignored=ignored)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", law.GRADED)
def test_grades_do_not_depend_on_where_they_are(name, way, tmp_path):
    asked, given = law.GRADED[name], law.graded()
    if (name, way) == ("compare jointly", "saved and merged"):
        with pytest.raises(vx.InputError, match="lacks summaries that"):
            WAYS[way](asked, given, tmp_path)
        return
    assert not equal(WAYS[way](asked, given, tmp_path), asked.in_memory(given))


def test_combinations_refuse_several_raters_wherever_rows_are():
    asked, given = TABLE["fit_combination"], law.rated(40)
    memory = refusal(lambda: asked.in_memory(given))
    assert memory[1] is not None
    assert refusal(lambda: asked.of_handle(asked.open(given.table, given))) == memory


def test_graded_answers_are_refused_where_forecasts_are_needed():
    handle = law.GRADED["evaluate_grades"].open(law.graded().table, law.graded())
    assert handle.graded == vx.rules.Grade()
    for name, asked in TABLE.items():
        if asked.models == 1 and name not in ("Report.of", "evaluate_sets of probabilities"):
            with pytest.raises(vx.InputError, match="has graded answers"):
                asked.of_handle(handle)
    for options, said in (
        ({"probs": "a"}, "beside grades"),
        ({"target": "truth"}, "beside grades"),
        ({"grade_range": (2, 3)}, "must lie between 2 and 3"),
    ):
        with pytest.raises(vx.InputError, match=said):
            vx.evaluate_grades(vx.scan(law.graded().table, grades="grade_a", **options))
    forecasts = TABLE["evaluate"].open(law.dense().table, law.dense())
    with pytest.raises(vx.InputError, match="must be graded answers"):
        vx.evaluate_grades(forecasts)
    with pytest.raises(vx.InputError, match="must be a column that `scan` was told of"):
        vx.evaluate_grades(handle, by="truth")


# ---- weights -------------------------------------------------------------------------------------

FACTORS = (0.5, 3.0, 1e-200, 1e200)
# Fits end where steps are small, and rounding moves where that is.
FITTED = {"fit_combination": 1e-7}
WEIGHED = [(name, kind) for name, asked in TABLE.items() for kind in asked.takes if name != "Report.of"]
WEIGHED += [(name, "graded") for name in law.GRADED]


def weighed(name, kind, weights):
    """What a function says of 60 rows with these weights."""
    asked, rows = (law.GRADED[name], law.graded) if kind == "graded" else (TABLE[name], law.ROWS[kind])
    return asked.in_memory(law.weighing(rows(60), weights))


@pytest.mark.parametrize(("name", "kind"), WEIGHED)
def test_only_ratios_of_weights_matter(name, kind):
    weights, within = np.arange(60) % 3 + 1.0, FITTED.get(name, 1e-11)
    exact = weighed(name, kind, weights)
    for factor in FACTORS:
        found = weighed(name, kind, factor * weights)
        assert not equal(found, exact, ignored=law.WEIGHTS, within=within), factor


@pytest.mark.parametrize(("name", "kind"), WEIGHED)
def test_weights_that_are_all_the_same_are_none(name, kind):
    within = FITTED.get(name, 1e-11)
    found, exact = weighed(name, kind, np.full(60, 0.3)), weighed(name, kind, None)
    assert not equal(found, exact, ignored=law.WEIGHTS, within=within)


# Results that tell of rows without weight, and why.
COUNTS_WEIGHTLESS = {
    "plan": "it says how many rows like these to collect",
    "plan_validation": "the same",
    "raters": "the worst cases have numbers among all rows",
    "worst": "in memory it has no weights",
}
# Numbers of rows, of which only conformal prediction leaves out those that calibrate nothing.
ROWS_GIVEN = ("n_rows", "n_lists")


@pytest.mark.parametrize(("name", "kind"), WEIGHED)
def test_rows_without_weight_are_counted_and_else_as_if_absent(name, kind):
    if name in COUNTS_WEIGHTLESS or kind == "graded":
        return
    asked, given = TABLE[name], law.ROWS[kind](40)
    rows = np.flatnonzero(given.per_row["weights"])
    found, exact = asked.in_memory(given), asked.in_memory(law.taken(given, rows))
    assert not equal(
        found, exact, ignored=(*ROWS_GIVEN, "n_invalid", "notes"), within=FITTED.get(name, 1e-10)
    )
    if isinstance(found, dict) and "n_rows" in found:
        assert found["n_rows"] == (len(rows) if name.startswith("conformal") else 40)
    if kind == "lists" and isinstance(found, dict) and "n_invalid" in found:
        assert found["n_invalid"] == vx.evaluate(given.y, given.models["a"]).n_invalid


@pytest.mark.parametrize("name", RATED_ALONE)
def test_a_case_of_several_raters_is_one_row(name):
    given = law.rated(40)
    said = TABLE[name].in_memory(given)
    assert said["n_rows"] == (np.count_nonzero(given.per_row["weights"]) if name == "conformal" else 40)


# Where repeated rows give other numbers than counts, and why.
COUNTS_DIFFER = {
    **dict.fromkeys(("retention", "selective"), "draws follow the number of rows"),
}
# Advice on how many rows to collect speaks of rows that count as often as these.
ADVICE = ("verdict", "findings", "next_step", "undecided")
COUNTED = [
    (name, kind)
    for name, asked in TABLE.items()
    for kind in asked.takes
    if "weights_are" in inspect.signature(asked.function).parameters
    and name not in (*COUNTS_DIFFER, "Report.of")
]


@pytest.mark.parametrize(("name", "kind"), COUNTED)
def test_counts_are_repeated_rows(name, kind):
    asked, given, counts = TABLE[name], law.ROWS[kind](40), np.arange(40) % 3 + 1
    own = {key: values for key, values in given.per_row.items() if key not in ("weights", "groups")}
    counted = given.changed(per_row={"weights": counts, **own})
    found = asked.in_memory(counted, weights_are="counts")
    repeated = law.taken(given.changed(per_row=own), np.repeat(np.arange(40), counts))
    ignored = {*ROWS_GIVEN, "n_invalid", "weights_are", *(ADVICE if "compare" in name else ())}
    assert not equal(found, asked.in_memory(repeated), ignored=ignored, within=1e-9)


def test_the_verdict_of_counts_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    p = rng.choice([0.05, 0.3, 0.7, 0.95], 400)
    y = (rng.random(400) < 0.25 + 0.5 * p).astype(int)
    cells, counts = np.unique(np.stack([y, p], axis=1), axis=0, return_counts=True)
    card = vx.evaluate(cells[:, 0].astype(int), cells[:, 1], weights=counts, weights_are="counts")
    repeated = vx.evaluate(y, p)
    assert "too_extreme" in card.verdict.claims
    assert str(card.verdict) == str(repeated.verdict)
    for name, measure in card.measures.items():
        assert list(measure.interval) == pytest.approx(list(repeated.measures[name].interval), nan_ok=True)


def test_extreme_weights_of_parts_are_refused_where_their_squares_vanish():
    asked, given = TABLE["decompose"], law.dense(60)
    tiny = law.weighing(given, np.full(60, 1e-200))
    with pytest.raises(vx.InputError, match="only ratios matter"):
        asked.of_handle(asked.open(Cut(tiny.table, 1, 3), tiny))


# ---- refusals ------------------------------------------------------------------------------------


def faulty(fault):
    """Rows with something wrong."""
    given = law.dense(40)
    p, own, y = given.models["a"].copy(), dict(given.per_row), list(given.y)
    if fault == "a row that does not sum to 1":
        p[7] *= 0.9
    elif fault == "a negative probability":
        p[7, 0], p[7, 1] = -0.1, p[7, 1] + p[7, 0] + 0.1
    elif fault == "not a number":
        p[7, 0] = np.nan
    elif fault == "an unknown label":
        y[7] = "none"
    elif fault == "a negative weight":
        own["weights"] = np.where(np.arange(40) == 7, -1.0, 1.0)
    elif fault == "no weight":
        own["weights"] = np.zeros(40)
    elif fault == "one group":
        own["groups"] = np.zeros(40, int)
    elif fault == "one class":
        y = ["low"] * 40
    return law.of_arrays(y, {"a": p, "b": given.models["b"]}, own)


FAULTS = [
    "a row that does not sum to 1",
    "a negative probability",
    "not a number",
    "an unknown label",
    "a negative weight",
    "no weight",
    "one group",
    "one class",
]


def faults():
    """Every function with every fault; those of probabilities are found by one check, so one of them each."""
    for i, (name, asked) in enumerate(TABLE.items()):
        if "dense" in asked.takes and name != "Report.of":
            for j, fault in enumerate(FAULTS):
                if (name, fault) not in REFUSES_ALONE:
                    usual = j > 2 or i % 3 == j
                    yield pytest.param(name, fault, marks=() if usual else pytest.mark.long)


@pytest.mark.parametrize(("name", "fault"), list(faults()))
def test_invalid_rows_are_refused_wherever_they_are(name, fault, tmp_path):
    asked, given = TABLE[name], faulty(fault)
    held(
        refusal(lambda: asked.in_memory(given)),
        refusal(lambda: WAYS["many parts"](asked, given, tmp_path)),
        EXCEPT.get((name, "many parts"), (set(), ""))[0],
        compared=(name, "many parts") not in DIFFERS,
    )


OPTIONS = {"confidence": 2, "bootstrap": -1, "seed": "x", "rule": "nothing", "weights_are": "x", "ordered": 2}


@pytest.mark.parametrize("option", OPTIONS)
def test_invalid_options_are_refused_wherever_rows_are(option):
    given = law.dense(40)
    for name, asked in TABLE.items():
        known = inspect.signature(asked.function).parameters
        if option in known and "dense" in asked.takes and name != "Report.of":
            own = {option: OPTIONS[option]}
            memory = refusal(lambda: asked.in_memory(given, **own))  # noqa: B023
            assert memory[1] is not None, name
            assert refusal(lambda: asked.of_handle(asked.open(given.table, given), **own)) == memory, name  # noqa: B023


def test_lists_are_refused_wherever_they_are():
    given = law.lists(40)
    for name, asked in TABLE.items():
        # Pools of lists are fitted in memory only.
        if "lists" not in asked.takes and name not in ("Report.of", "fit_combination"):
            memory = refusal(lambda: asked.in_memory(given))  # noqa: B023
            assert memory[1] is not None, name
            assert refusal(lambda: asked.of_handle(asked.open(given.table, given))) == memory, name  # noqa: B023


def held(memory, elsewhere, ignored, *, compared=True):
    """Both refuse alike, or say the same."""
    assert elsewhere[1] == memory[1]
    if memory[1] is None and compared:
        assert not equal(elsewhere[0], memory[0], ignored=ignored)


# ---- clusters ------------------------------------------------------------------------------------


@pytest.mark.frameworks
@pytest.mark.parametrize("name", ["evaluate", "compare", "worst", "roc_auc", "recalibrate"])
def test_dask_says_the_same(name):
    dd = pytest.importorskip("dask.dataframe")
    asked, given = TABLE[name], law.dense()
    frame = dd.from_pandas(given.table.to_pandas(), npartitions=3, sort=False)
    ignored = EXCEPT.get((name, "many parts"), (set(), ""))[0]
    assert not equal(asked.of_handle(asked.open(frame, given)), in_memory(name, "dense"), ignored=ignored)


# ---- every function ------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS = Scattered(RNG.integers(0, 3, 40), np.full((40, 3), 1 / 3))
# What gives a number for every row, takes decisions instead of forecasts, or depends on the order of rows.
REFUSES = {
    "ConfidenceSequence.update": lambda: vx.ConfidenceSequence("brier", n_classes=3).update(ROWS, ROWS, ROWS),
    "Forecasts": lambda: vx.Forecasts(ROWS, np.full((40, 3), 1 / 3)),
    "Sets.with_outcomes": lambda: vx.Sets.from_labels([[0]] * 40, n_classes=3).with_outcomes(ROWS),
    "Rule.samples": lambda: vx.brier.samples(ROWS),
    "TopLists.with_outcomes": lambda: law.lists().models["a"].with_outcomes(ROWS),
    "expected_cost": lambda: vx.expected_cost(ROWS, [0, 1], n_classes=3),
    "gradient": lambda: vx.gradient(vx.brier, ROWS, np.full((40, 3), 1 / 3)),
    "instance_f1": lambda: vx.instance_f1(ROWS, [[0]], labels=3),
    "kappa": lambda: vx.kappa(ROWS, [0, 1], n_classes=3),
    "compat.pbs": lambda: vx.compat.pbs(ROWS, np.full((40, 3), 1 / 3)),
    "compat.pll": lambda: vx.compat.pll(ROWS, np.full((40, 3), 1 / 3)),
}


# Rows enter a monitor in order of time, and change it: its own tests hold it to the law.
OVER_TIME = ("Monitor.observe", "Monitor.outcomes", "Monitor.update")


def public():
    """The names of all public functions and methods that take outcomes, `y`."""
    found = {name: getattr(vx, name) for name in vx.__all__}
    found |= {f"compat.{name}": getattr(vx.compat, name) for name in ("pbs", "pll")}
    found |= {name: getattr(vx.diagrams, name) for name in vx.diagrams.__all__}
    found |= {"Report": Report, "Rule": vx.rules.Rule}
    found |= {name: getattr(vx.results, name) for name in vx.results.__all__}
    for name, thing in list(found.items()):
        if inspect.isclass(thing) and (not issubclass(thing, vx.rules.Rule) or thing is vx.rules.Rule):
            methods = {each for each in dir(thing) if each == "__call__" or not each.startswith("_")}
            found |= {f"{name}.{each}": getattr(thing, each) for each in methods}
    for name, thing in found.items():
        if callable(thing) and not isinstance(thing, vx.rules.Rule) and name.split(".")[-1] != "from_dict":
            try:
                names = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                continue
            if "y" in names and not (inspect.isclass(thing) and issubclass(thing, vx.rules.Rule)):
                yield name


def test_every_public_function_has_a_row():
    assert sorted(public()) == sorted([*{name.split()[0] for name in TABLE}, *REFUSES, *OVER_TIME])


@pytest.mark.parametrize("name", REFUSES)
def test_what_cannot_be_done_part_by_part_says_what_to_do_instead(name):
    with pytest.raises(vx.InputError, match=r"in memory.* Read them with|in memory.*Pass it alone"):
        REFUSES[name]()
