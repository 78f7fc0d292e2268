"""Models compared over several data sets."""
