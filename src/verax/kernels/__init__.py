"""Compiled loops over rows, and what is needed to call them. No rule is known here."""
