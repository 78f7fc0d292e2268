"""Helpers that know nothing of forecasts: checks of options, lazy names, cached values, paths."""
