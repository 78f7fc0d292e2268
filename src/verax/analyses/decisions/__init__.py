"""What forecasts are worth to those who decide by them."""
