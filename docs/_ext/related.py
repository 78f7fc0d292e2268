"""Links from each page of the reference to its guide page and to the gallery examples that use the name.

`links()` gives the templates of autosummary one line of reStructuredText for every documented name. A name
without a guide page fails the build.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
# The most examples that a page links to.
MOST = 4
# The guide pages, with the names they explain. A result has the page of the function that returns it.
GUIDES = {
    "files": "Reading Tally load Forecasts",
    "scale": "scan",
    "report": "Report",
    "scores": """evaluate Scorecard brier log_score spherical zero_one pbs pll parse RULES penalized certify
        landscape Certificate Landscape Properties Holds Rule Penalized Brier Log Spherical ZeroOne convert
        VeraxError InputError RuleError ParseError MissingPackageError""",
    "verdict": "Verdict",
    "ordered": """from_cumulative rps ranked_log abs_rps sa_rps RPS RankedLog AbsRPS SaRPS worst Worst
        retention selective RetentionCurve RetentionCurves kappa""",
    "toplists": """TopLists ListCard ListDecomposition ListReliability padded Padded combine fit_combination
        Combination compare_lengths LengthComparison top_k_error instance_f1""",
    "decomposition": """decompose Decomposition Components reliability Reliability ReliabilityCurve ece
        smooth_ece score_map ScoreMap calibration_slope CalibrationLine CalibrationSlopes""",
    "recalibration": "recalibrate Recalibration ListRecalibration Recalibrated refinement Refinement",
    "raters": "raters RaterStudy",
    "horizon": "at_horizon OutcomesAtHorizon",
    "sites": "sites SiteStudy",
    "decisions": """decide expected_cost choose_thresholds Thresholds deferral Deferral net_benefit
        DecisionCurve DecisionCurves murphy Murphy risk_coverage RiskCoverage roc_auc average_precision
        c_index RankScore RankScores ThresholdBrier""",
    "twoclass": """operating_points OperatingPoint OperatingPoints roc_curve precision_recall_curve
        confidence_curve RateCurve RateCurves""",
    "comparison": """compare Comparison Difference Interval ConfidenceSequence subgroups Subgroups
        compare_folds FoldComparison compare_datasets DatasetComparison""",
    "samplesize": "plan SamplePlan plan_validation ValidationPlan",
    "judges": "JudgedGrades CheckPlan",
    "repeats": "pass_at_k RepeatScores plan_repeats RepeatPlan",
    "evals": "Grade evaluate_grades compare_grades GradeCard",
    "sets": "evaluate_sets Sets SetEvaluation LevelSet Winkler SetRule",
    "conformal": "conformal Conformal",
    "monitoring": "Monitor MonitorHistory Alarm Acknowledgement over_time OverTime",
    "boosting": "gradient expected_hessian",
}
# Whole modules.
MODULES = {
    "verax.files": "files",
    "verax.selection": "selection",
    "verax.adapters.sklearn": "selection",
    "verax.adapters.mlflow": "selection",
    "verax.adapters.torch": "training",
    "verax.adapters.jax": "training",
    "verax.adapters.transformers": "training",
    "verax.adapters.keras": "training",
    "verax.adapters.training": "training",
    "verax.adapters.boosting": "boosting",
}
SHOWN = ("verax", "verax.diagrams", "verax.results", "verax.rules", "verax.selection")
# The function that returns a result, where their names differ by more than case.
MAKERS = {
    "Scorecard": "evaluate",
    "ListCard": "evaluate",
    "Decomposition": "decompose",
    "Components": "decompose",
    "ScoreMap": "score_map",
    "Reliability": "reliability",
    "ReliabilityCurve": "reliability",
    "ListReliability": "reliability",
    "CalibrationSlopes": "calibration_slope",
    "Recalibration": "recalibrate",
    "ListRecalibration": "recalibrate",
    "Comparison": "compare",
    "Difference": "compare",
    "LengthComparison": "compare_lengths",
    "SamplePlan": "plan",
    "ValidationPlan": "plan_validation",
    "GradeCard": "evaluate_grades",
    "JudgedGrades": "evaluate_grades",
    "CheckPlan": "plan",
    "RepeatScores": "pass_at_k",
    "RepeatPlan": "plan_repeats",
    "FoldComparison": "compare_folds",
    "DatasetComparison": "compare_datasets",
    "SetEvaluation": "evaluate_sets",
    "Combination": "fit_combination",
    "RaterStudy": "raters",
    "Subgroups": "subgroups",
    "Thresholds": "choose_thresholds",
    "Deferral": "deferral",
    "OperatingPoint": "operating_points",
    "OperatingPoints": "operating_points",
    "RateCurve": "roc_curve",
    "RateCurves": "roc_curve",
    "DecisionCurve": "net_benefit",
    "DecisionCurves": "net_benefit",
    "Murphy": "murphy",
    "Worst": "worst",
    "OverTime": "over_time",
    "RiskCoverage": "risk_coverage",
    "Certificate": "certify",
    "Landscape": "landscape",
}


def guide_of(module: str, name: str) -> str:
    """The guide page that explains a name."""
    known = {each: page for page, names in GUIDES.items() for each in names.split()}
    found = known.get(name) or MODULES.get(module)
    if found is None:
        raise ValueError(f"docs/_ext/related.py names no guide page for {module}.{name}")
    return found


def title_of(page: str) -> str:
    """The heading of a guide page."""
    return (DOCS / "guide" / f"{page}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def examples_of(name: str) -> list[tuple[str, str]]:
    """The titles and places of the gallery examples that use a public name."""
    used = re.compile(rf"\b(?:vx|vx\.selection|verax)\.(?:diagrams\.|rules\.)?{MAKERS.get(name, name)}\b")
    found = []
    for path in sorted((DOCS / "gallery").glob("*/plot_*.py")):
        text = path.read_text(encoding="utf-8")
        if used.search(text.split('"""', 2)[2]):
            found.append((text.splitlines()[1].strip(), f"/examples/{path.parent.name}/{path.stem}"))
    return found[:MOST]


def documented() -> list[tuple[str, str]]:
    """The names of the reference, with their modules."""
    pages = "\n".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "api").glob("*.md")))
    blocks = re.findall(r"currentmodule:: (\S+)\n(.*?)```", pages, re.DOTALL)
    return [(module, name) for module, block in blocks for name in re.findall(r"^   (\w+)$", block, re.M)]


def links(*, gallery: bool) -> dict[str, str]:
    """For every documented name, where its guide page and its examples are."""
    texts = {}
    for module, name in documented():
        page = guide_of(module, name)
        text = f"**User guide:** :doc:`{title_of(page)} </guide/{page}>`."
        shown = examples_of(name) if gallery and module in SHOWN else []
        if shown:
            text += " **Examples:** " + ", ".join(f":doc:`{title} <{place}>`" for title, place in shown) + "."
        texts[f"{module}.{name}"] = text
    return texts
