"""Every public name is documented as numpydoc asks: what it is, its parameters, what comes back."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
from contextlib import suppress
from functools import cached_property
from typing import Any

import pytest

validation = pytest.importorskip("numpydoc.validate")
docscrape = pytest.importorskip("numpydoc.docscrape")

# Where the public names are, and what has to be installed for them.
PLACES = {
    "verax": [],
    "verax.adapters.boosting": ["lightgbm"],
    "verax.adapters.keras": ["keras"],
    "verax.adapters.mlflow": ["mlflow"],
    "verax.adapters.sklearn": ["sklearn"],
    "verax.adapters.torch": ["torch", "torchmetrics"],
    "verax.adapters.training": [],
    "verax.compat": [],
    "verax.diagrams": [],
    "verax.files": [],
    "verax.errors": [],
    "verax.report": [],
    "verax.results": [],
    "verax.rules": [],
    "verax.selection": ["sklearn"],
}
# What users are handed and do not make themselves.
RESULTS = {
    "verax.adapters.boosting.catboost": ["CatBoostMetric", "CatBoostObjective"],
    "verax.adapters.boosting.trees": ["Metric", "Objective"],
    "verax.analyses.calibration.claims": ["ListClaim"],
    "verax.analyses.calibration.score_map": ["MappedModel"],
    "verax.analyses.cards.lines": ["CardLine"],
    "verax.analyses.cases": ["Case", "ListCase", "ShareCase"],
    "verax.analyses.comparison.records": ["MarginTest", "Model"],
    "verax.analyses.comparison.reasons": ["Traits"],
    "verax.wings.select.datasets.result": ["DatasetDifference", "DatasetModel"],
    "verax.wings.decide.curves": ["CurveDifference", "EventCurve", "EventCurves"],
    "verax.wings.decide.deferral": ["DeferralLine"],
    "verax.wings.decide.murphy": ["MurphyDifference"],
    "verax.analyses.discrimination.result": ["RankPart"],
    "verax.wings.decide.rates.result": ["Rate", "RateDifference"],
    "verax.wings.monitor.over_time": ["PeriodLine"],
    "verax.wings.monitor.result": ["MonitoredEvent", "MonitoredStep", "MonitorHistory"],
    "verax.wings.plan.result": ["SizeLine"],
    "verax.wings.plan.validation": ["CriterionSize"],
    "verax.wings.raters.result": ["RatedMean", "Rater"],
    "verax.wings.recalibrate.records": ["Gain", "Trial"],
    "verax.wings.select.refinement.result": ["LossPart"],
    "verax.analyses.subgroups.line": ["Subgroup"],
    "verax.inference.intervals": ["Resampling"],
    "verax.inference.estimates": ["Practical"],
    "verax.inference.signflips": ["Friedman"],
    "verax.inputs.handles": ["Handle"],
    "verax.inputs.skipping": ["Skipped"],
    "verax.wings.theory.certificates.certify": ["Counterexample", "PropertyCheck", "Resolution"],
    "verax.wings.theory.landscape": ["Lowest"],
}
# Left out: ES01 and SA01 ask for text and links where there may be nothing to say; SS05 takes every word that
# ends in "s" for a verb; EX01 and RT01 are asked for below, where they make sense; the others are about
# deprecation, directives and generators, of which there are none.
CHECKS = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08"),
    *("SS01", "SS02", "SS03", "SS04", "SS06"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),
    *("RT02", "RT03", "RT04", "RT05", "SA02", "SA03", "SA04"),
}
# How descriptions begin of parameters that mean the same in all functions, with what they may mean else.
WORDS = {
    "y": "Outcomes: ",
    "p": "Forecasts: ",
    "bootstrap": ("Number of bootstrap replicates", "Number of random draws", "Minimum number of draws"),
    "classes": ("Names of the c", "The names of the classes"),
    "confidence": "Confidence level of ",
    "groups": ("Labels of clusters", "The column of clusters"),
    "n_classes": "The number of classes",
    "ordered": "Whether ",
    "seed": "Random seed",
    "weights_are": "What weights are.",
}
# What a docstring says itself, without the properties that numpydoc lists for it.
ALONE = {"show_class_members": False}
OF_PARAMETERS = {"PR01", "PR02", "PR03"}


def names_in(place: str) -> list[str]:
    """The public names of a module; those that it has imported are not its own unless it promises them."""
    module = importlib.import_module(place)
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == place and n[0] != "_"]
    values = {name: getattr(module, name) for name in getattr(module, "__all__", own)}
    return [name for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)]


def members_of(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class that verax itself defines, unbound.

    One that overrides another and says nothing is described there.
    """
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("verax."):
            for name, value in vars(base).items():
                value = getattr(value, "__func__", value)
                known = inspect.isfunction(value) or isinstance(value, (property, cached_property))
                if known and (name[0] != "_" or name == "__call__"):
                    found[name] = value if name not in found or not found[name].__doc__ else found[name]
    return found


def faults_of(value: Any, *, example: bool = False) -> list[str]:
    """What is missing from the documentation of a function, a class or a property."""
    if isinstance(value, (property, cached_property)):
        return [] if inspect.getdoc(value) else ["no docstring"]
    read = docscrape.get_doc_object(value, config=ALONE)
    doc, found = validation.Validator(read), validation.validate(read)["errors"]
    fields = dataclasses.is_dataclass(value) and not doc.doc_parameters
    checks = CHECKS - OF_PARAMETERS if fields or is_made_elsewhere(value) else CHECKS
    faults = [f"{code}: {text}" for code, text in found if code in checks]
    told = doc.returns or doc.yields or not doc.signature_parameters
    if inspect.isfunction(value) and not told and doc.method_returns_something:
        faults.append("it has parameters and returns something, but there is no section Returns")
    faults += faults_of_defaults(doc)
    if inspect.isclass(value):
        attributes = doc._doc_parameters(["Attributes"]).items()
        faults += [f"{name!r} has no type or no description" for name, told in attributes if not all(told)]
    if fields:
        faults += faults_of_fields(value)
    if example and ">>>" not in "".join(doc.examples):
        faults.append("there is no example")
    return faults


def faults_of_defaults(doc: Any) -> list[str]:
    """Defaults that the type of a parameter does not state, or states wrongly."""
    faults = []
    for name, parameter in parameters_of(doc.obj).items():
        kind = doc.doc_all_parameters.get(name, ("optional",))[0]
        stated = kind.rpartition("default ")[2] if "default " in kind else ""
        if parameter.default is None and "optional" not in kind and stated != "None":
            faults.append(f"{name!r} may be left out, which its type does not say")
        if isinstance(parameter.default, (bool, int, float, str, tuple)) and "optional" not in kind:
            with suppress(ValueError, SyntaxError):
                if not stated or ast.literal_eval(stated) != parameter.default:
                    faults.append(f"the default of {name!r} is {parameter.default!r}, not {stated!r}")
    return faults


def parameters_of(value: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(value).parameters)
    except ValueError:
        return {}


def is_made_elsewhere(value: Any) -> bool:
    """Whether it is a class with the parameters of a base class from another package."""
    bases = value.__mro__ if inspect.isclass(value) else ()
    makers = [b.__module__ for b in bases if {"__init__", "__new__"} & set(vars(b))]
    return bool(makers) and not makers[0].startswith("verax.")


def faults_of_fields(cls: type) -> list[str]:
    """The fields of a dataclass are parameters if users pass them, attributes if they read them.

    Those that it inherits are described where they come from.
    """
    told = {}
    for base in cls.__mro__:
        if dataclasses.is_dataclass(base):
            read = validation.Validator(docscrape.get_doc_object(base, config=ALONE))
            told |= read._doc_parameters(["Parameters", "Attributes"])
    names = [f.name for f in dataclasses.fields(cls) if f.name[0] != "_"]
    faults = [f"the field {name!r} is not described" for name in names if name not in told]
    faults += [f"{name!r} is no attribute" for name in told if name not in names and not hasattr(cls, name)]
    return faults


def faults_in(place: str, names: list[str], *, example: bool) -> dict[str, list[str]]:
    """What is missing, by name of a class or function, or of a member."""
    module = importlib.import_module(place)
    faults = {}
    for name in names:
        value = getattr(module, name)
        faults[name] = faults_of(value, example=example)
        for member, inner in members_of(value).items() if inspect.isclass(value) else ():
            faults[f"{name}.{member}"] = faults_of(inner)
    return {name: found for name, found in faults.items() if found}


def marks(packages: list[str]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.frameworks] if set(packages) - {"sklearn"} else []


@pytest.mark.parametrize("place", [pytest.param(p, marks=marks(n)) for p, n in PLACES.items()])
def test_public_names_are_documented(place):
    for package in PLACES[place]:
        pytest.importorskip(package)
    assert not faults_in(place, names_in(place), example=True)


@pytest.mark.parametrize("place", RESULTS)
def test_parts_of_results_are_documented(place):
    assert not faults_in(place, RESULTS[place], example=False)


def test_what_means_the_same_is_described_in_the_same_words():
    import verax as vx

    odd = []
    for name in names_in("verax"):
        if inspect.isfunction(function := getattr(vx, name)):
            doc = validation.Validator(docscrape.get_doc_object(function))
            for parameter, (_, text) in doc.doc_parameters.items():
                # What `scan` reads from columns is described by the fields of `Reading`.
                if name == "scan" and parameter in vx.Reading.__dataclass_fields__:
                    continue
                if not " ".join(text).startswith(WORDS.get(parameter, "")):
                    odd.append(f"{name}: {parameter}")
    assert not odd


def documented(text: str) -> Any:
    def function(a, b=1):
        return a + b

    function.__doc__ = text
    return function


GOOD = """Add numbers.

    Parameters
    ----------
    a : int
        The first.
    b : int, default 1
        The second.

    Returns
    -------
    int
        The sum.

    Examples
    --------
    >>> 1 + 1
    2
    """


def test_a_good_docstring_has_no_faults():
    assert not faults_of(documented(GOOD), example=True)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Add numbers.\n", "", "SS01"),
        ("    a : int\n        The first.\n", "", "PR01"),
        ("    b : int", "    c : int", "PR02"),
        ("    a : int\n        The first.\n    b : int, default 1\n        The second.",
         "    b : int, default 1\n        The second.\n    a : int\n        The first.", "PR03"),
        ("    a : int\n", "    a\n", "PR04"),
        ("    a : int\n        The first.\n", "    a : int\n", "PR07"),
        ("    a : int\n        The first.\n", "    a : the first.\n", "PR05"),
        ("int, default 1", "int", "default"),
        ("int, default 1", "int, default 2", "default"),
        ("    Returns\n    -------\n    int\n        The sum.\n", "", "Returns"),
        (">>> 1 + 1", "1 + 1", "example"),
    ],
)  # fmt: skip
def test_faults_are_found(old, new, fault):
    assert old in GOOD
    assert any(fault in found for found in faults_of(documented(GOOD.replace(old, new)), example=True))
