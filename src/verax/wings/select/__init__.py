"""What to keep: epochs, models over folds and data sets."""
