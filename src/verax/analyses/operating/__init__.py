"""What decisions at a threshold get right: sensitivity, specificity, predictive values, and their curves."""
