"""Rules and metrics: their formulas, properties and names."""
