"""What is claimed of the probabilities of models: which is better, and whether they are calibrated."""
