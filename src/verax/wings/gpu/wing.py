"""The wing of kernels for GPUs."""

from verax.common.wings import Wing

WING = Wing(
    name="gpu",
    says="Kernels for GPUs.",
    tutorial="docs/internals/kernels.md",
)
