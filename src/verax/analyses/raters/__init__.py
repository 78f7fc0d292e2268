"""Rater disagreement, and the number of raters that a forecast is worth."""
