"""The same questions asked of every subgroup."""
