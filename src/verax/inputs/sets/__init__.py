"""Prediction sets: for each row some of the classes."""
