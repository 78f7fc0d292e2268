"""Claims about models: which is better, and whether its probabilities are calibrated."""
