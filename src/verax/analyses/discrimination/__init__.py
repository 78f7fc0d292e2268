"""How well forecasts rank the rows: ROC AUC, average precision, c-index."""
