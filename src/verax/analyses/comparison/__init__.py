"""Models on the same rows: differences, ranks, and why rules disagree."""
