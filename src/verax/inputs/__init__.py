"""What callers pass, checked and brought to standard form: arrays, outcomes, forecasts, top lists."""
