"""Metrics of epochs from their validation forecasts."""

from __future__ import annotations

from verax.analyses.refinement.epochs import RefinementLoss as RefinementLoss
