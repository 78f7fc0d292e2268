"""Search by the words that readers type: phrases for each page, and the order of what is found.

Words of a phrase are indexed with its page, whether or not the page uses them. `scorer.js` puts the pages of
a phrase first if the query has all its words. `tests/test_site.py` runs queries.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from fast import FAST

# What readers call the subject of a page.
PHRASES = {
    "start": "quickstart, getting started, install, installation, tutorial",
    "choose": """which metric, which score, choose metric, imbalanced classes, class imbalance, rare
        events""",
    "coming": """sklearn, scikit-learn, torchmetrics, scoringrules, brier_score_loss, log_loss,
        calibration_curve, migrate""",
    "faq": "help, imbalanced, questions",
    "glossary": "definitions, terms",
    "playground": "interactive, simplex",
    "guide/files": """csv, parquet, load predictions, read predictions, column names, input format,
        json lines""",
    "guide/report": "html report, report page",
    "guide/verdict": "findings, conclusions, recommendation",
    "guide/scores": """scoring rule, proper scoring rule, strictly proper, brier score, custom metric,
        gpu""",
    "guide/ordered": """ordinal, ordinal classification, ordinal regression, ordered classes,
        quadratic weighted kappa, qwk, grades, stages, likert""",
    "guide/toplists": """top-k, top k accuracy, logprobs, next token, extreme classification, label
        ranking""",
    "guide/llm": "llm, language model, logprobs, llm calibration, llm confidence, judge",
    "guide/evals": """llm eval, error bars, eval confidence interval, eval standard error, inspect,
        inspect logs, lm-evaluation-harness, lm eval, helm, olmes, openai evals, benchmark, leaderboard,
        mmlu, pass rate""",
    "guide/raters": """inter-rater agreement, interrater, annotator disagreement, crowd labels, soft
        labels, label noise, multiple annotators, fleiss kappa, krippendorff""",
    "guide/decomposition": """calibration, calibration curve, calibration plot, reliability diagram,
        reliability curve, miscalibration, expected calibration error, ece, smooth ece, calibration slope,
        calibration intercept, calibration test, hosmer-lemeshow, corp, brier decomposition, murphy
        decomposition""",
    "guide/twoclass": """roc, roc auc, auc, roc curve, precision recall curve, sensitivity
        specificity, ppv npv, binary classification, f1, confusion matrix, delong""",
    "guide/recalibration": """temperature scaling, platt scaling, isotonic regression, vector scaling,
        matrix scaling, overconfident, overconfident model, underconfident, calibrate model, post-hoc
        calibration, calibratedclassifiercv, recalibrate, prior shift, label shift""",
    "guide/sets": "prediction sets, set-valued prediction, coverage of sets, winkler, interval score",
    "guide/conformal": """conformal, conformal prediction, conformal sets, conformal inference,
        coverage guarantee, mapie, aps, lac, raps, uncertainty quantification""",
    "guide/decisions": """net benefit, decision curve, decision curve analysis, dca, threshold,
        cost-sensitive, cost matrix, selective prediction, selective classification, abstain, reject
        option, deferral, risk coverage, murphy diagram, roc auc""",
    "guide/comparison": """compare two models, compare models, statistical significance, significance
        test, p-value, paired test, mcnemar, mcnemar test, diebold-mariano, bootstrap, cluster, clustered
        data, clustered standard errors, non-inferiority, equivalence, multiple comparisons, holm, ab
        test, subgroup, fairness, sequential testing, confidence sequence, peeking, delong""",
    "guide/samplesize": """sample size, power, power analysis, power calculation, how many samples,
        how many rows, how many questions, minimum detectable effect""",
    "guide/selection": """early stopping, model selection, checkpoint, best epoch, hyperparameter,
        grid search, time series split, h-block, cross-validation, mlflow, tensorboard, wandb""",
    "guide/training": """pytorch loss, loss function, training loss, torch, keras, lightning, focal
        loss, rps loss""",
    "guide/boosting": """xgboost objective, xgboost, lightgbm, catboost, custom objective, gradient
        boosting, boosted trees""",
    "guide/monitoring": """drift, drift detection, concept drift, data drift, model monitoring,
        production, alarm, alerting, degradation, delayed labels""",
    "guide/scale": """out of memory, larger than memory, big data, spark, pyspark, databricks, dask,
        polars, duckdb, streaming, lazyframe""",
    "guide/listfiles": "top_logprobs, chat completions, trec, batch api, retrieval, logprobs",
    "guide/automation": """github action, ci, continuous integration, pre-commit, docker, quality
        gate, json output""",
    "guide/conventions": "scikit-learn brier, brier half, brier scale, different numbers",
    "tutorials/risk": "clinical, clinical prediction model, risk model, tripod, medical",
    "tutorials/grades": "diabetic retinopathy, disease grades, two graders, medical grading",
    "tutorials/evals": "llm eval, error bars, mmlu, eval tutorial",
    "tutorials/tournament": """forecasting tournament, metaculus, prediction market, superforecasting,
        peer score""",
    "tutorials/production": "production monitoring, drift, monitoring tutorial",
    "tutorials/training": "early stopping, neural network training, overfitting",
    "rules/generated/brier": "brier, brier score, multiclass brier, quadratic score, mean squared error",
    "rules/generated/rps": "rps, ranked probability score, ordinal brier",
    "rules/generated/log_score": """log loss, cross entropy, negative log likelihood, nll, logarithmic
        score, perplexity""",
    "rules/generated/zero_one": "accuracy, error rate, zero-one loss",
    "theory/propriety": "proof, proper, characterisation",
    "theory/inference": "confidence intervals, standard error, coverage of intervals",
    "papers/galdran": "aursc, galdran",
    "papers/ahmadian": "superior, superior scoring, superior scoring rules, pbs, pll, h-block, ahmadian",
    "papers/resin": "comparability, top-beta, resin",
}
TABLE = {page: [" ".join(each.split()) for each in text.split(",")] for page, text in PHRASES.items()}


def index_phrases(app: Any, doctree: nodes.document) -> None:
    """Index the words of a page's phrases with it."""
    words = {word for phrase in TABLE.get(app.env.docname, ()) for word in phrase.replace("-", " ").split()}
    if words:
        doctree.insert(0, nodes.meta(name="keywords", content=",".join(sorted(words))))


def send_phrases(app: Any, pagename: str, _template: str, _context: dict[str, Any], _doctree: Any) -> None:
    """The page of the search gets the phrases."""
    if pagename == "search":
        app.add_js_file(None, body=f"window.PHRASES = {json.dumps(TABLE)};")


def check_pages(_app: Any, env: Any) -> None:
    """A phrase whose page is gone fails the build."""
    if not FAST and (gone := sorted(TABLE.keys() - env.found_docs)):
        raise ValueError(f"docs/_ext/searching.py has phrases for pages that do not exist: {gone}")


def setup(app: Any) -> dict[str, bool]:
    """Run on each page that is read or written, and once all are known."""
    app.connect("doctree-read", index_phrases)
    app.connect("html-page-context", send_phrases)
    app.connect("env-updated", check_pages)
    return {"parallel_read_safe": True}
