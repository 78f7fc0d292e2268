"""Decisions by forecasts: thresholds, rates, decision curves, gains of deferring."""
