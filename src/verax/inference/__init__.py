"""Uncertainty: bootstrap, intervals, tests, confidence sequences."""
