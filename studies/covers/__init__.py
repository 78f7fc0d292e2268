"""What intervals and tests promise, a module per subject."""
