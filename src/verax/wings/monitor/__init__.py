"""Losses and calibration over time, with valid alarms."""
