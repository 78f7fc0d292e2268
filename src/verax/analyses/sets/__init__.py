"""Prediction sets: how they are judged, and how they are made."""
