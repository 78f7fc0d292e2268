"""Rows for reports, and texts that must not get out of hand on a page."""

from __future__ import annotations

import numpy as np

GRADES = ["none", "mild", "moderate", "severe"]
EVIL = [
    "<script>alert(1)</script>",
    "\"quoted\" 'and'\nbroken & <b>",
    "</script><!--",
    "]]> \u2028 \ud800 \x00 {{ 7*7 }}",
]


def sample(n=600, k=4, *, sharpness=1.0, seed=0):
    """Outcomes drawn from probabilities, and these probabilities made `sharpness` times as sure."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 1.5
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = q**sharpness
    return y, p / p.sum(axis=1, keepdims=True)
