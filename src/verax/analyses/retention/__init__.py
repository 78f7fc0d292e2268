"""Metrics of the rows that are left as the worst are removed."""
