"""Recalibration of forecasts, and what it would gain."""
