"""Outcomes at a horizon, where some rows were censored before it."""
