"""The wing of kernels for GPUs."""

from verax.common.wings import Wing

WING = Wing(
    name="gpu",
    says="Kernels for GPUs.",
    answers={"device sums": "sums:sums_on_gpu"},
    tutorial="docs/internals/kernels.md",
)
