"""Rules and metrics: a formula each, what is known about it, and its name."""
