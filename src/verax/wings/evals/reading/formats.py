"""All kinds of evaluation logs, in the order in which a file is held against them."""

from __future__ import annotations

from pathlib import Path

from verax.errors import InputError
from verax.wings.evals.reading.braintrust import BRAINTRUST
from verax.wings.evals.reading.deepeval import DEEPEVAL
from verax.wings.evals.reading.graded import LogFormat
from verax.wings.evals.reading.harness import HARNESS, OLMES
from verax.wings.evals.reading.helm import HELM, HELM_DISPLAY
from verax.wings.evals.reading.inspect_files import INSPECT
from verax.wings.evals.reading.langsmith import LANGSMITH
from verax.wings.evals.reading.look import Look
from verax.wings.evals.reading.means import MEANS
from verax.wings.evals.reading.mlflow import MLFLOW, MLFLOW_TABLE
from verax.wings.evals.reading.openai_evals import OPENAI_EVALS, OPENAI_ITEMS
from verax.wings.evals.reading.promptfoo import PROMPTFOO
from verax.wings.evals.reading.ragas import RAGAS

LOG_FORMATS: tuple[LogFormat, ...] = (
    INSPECT,
    OLMES,
    HARNESS,
    HELM,
    HELM_DISPLAY,
    OPENAI_EVALS,
    OPENAI_ITEMS,
    PROMPTFOO,
    DEEPEVAL,
    BRAINTRUST,
    LANGSMITH,
    MLFLOW,
    MLFLOW_TABLE,
    RAGAS,
    MEANS,
)
# What readers are called, in messages.
KNOWN = (
    "Inspect, lm-evaluation-harness, OLMES, HELM, OpenAI evals, promptfoo, DeepEval, Braintrust, LangSmith, "
    "MLflow and Ragas"
)


def format_of_log(path: Path) -> LogFormat | None:
    """The kind of log that a file is, by its name and a look at its beginning; None where it is none."""
    look = Look(path)
    try:
        return next((kind for kind in LOG_FORMATS if kind.found(look)), None)
    except (InputError, OSError):
        return None
