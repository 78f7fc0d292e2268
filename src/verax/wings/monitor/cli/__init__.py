"""The parts of `verax monitor`."""
