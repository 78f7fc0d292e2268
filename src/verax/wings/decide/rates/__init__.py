"""Decisions at a threshold: sensitivity, specificity, predictive values, and their curves."""
