"""The report on top lists."""
