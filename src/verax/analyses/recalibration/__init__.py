"""Probabilities made better: methods of recalibration, their fits, and the choice among them."""
