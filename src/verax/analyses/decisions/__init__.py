"""The worth of forecasts to those who decide by them."""
