"""The questions that users ask of their forecasts."""
