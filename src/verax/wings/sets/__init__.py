"""Prediction sets: their coverage and size, and how to make them."""
