"""Whether predictions are still good: losses and calibration over time, with alarms."""
