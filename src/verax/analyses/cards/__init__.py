"""All scores that fit a problem, from one pass: cards of probabilities and of top lists."""
