"""Rows that lose much."""
