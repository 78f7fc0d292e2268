"""Curves of retained samples, and of risk and coverage."""
