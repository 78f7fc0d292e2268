"""Ranking of the rows by forecasts: ROC AUC, average precision, c-index."""
