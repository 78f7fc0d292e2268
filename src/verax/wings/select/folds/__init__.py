"""Models compared over folds of cross-validation, repeats and seeds."""
