"""Sample sizes: how many rows a difference or an interval width needs."""
