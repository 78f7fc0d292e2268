"""What several raters tell of forecasts: their disagreement, and what a forecast is worth in raters."""
