"""The loss that remains after recalibration, and the part that recalibration removes."""
