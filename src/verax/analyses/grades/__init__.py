"""Graded answers of one model."""
