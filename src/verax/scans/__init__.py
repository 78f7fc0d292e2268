"""Predictions that are not in memory, wherever they are: one module per engine."""
