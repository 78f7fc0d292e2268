"""Weights of forecasters whose predictions are pooled, and what the pool gains."""
