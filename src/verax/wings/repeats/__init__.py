"""What repeats of questions tell beside their mean: pass@k and its kin."""
