"""The wing of frameworks, whose modules keep their public address `verax.adapters`."""

from verax.common.wings import Wing

WING = Wing(
    name="frameworks",
    says="Adapters to scikit-learn, PyTorch, Lightning, Keras, boosting libraries and MLflow.",
    answers={
        "scorer": "verax.adapters.sklearn:scorer",
    },
    uses=(
        "gpu",
        "recalibrate",
        "select",
    ),
    tutorial="docs/guide/training.md",
)
