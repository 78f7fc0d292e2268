"""Graded answers and evaluation logs of language models."""
