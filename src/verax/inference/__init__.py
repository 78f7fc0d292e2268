"""How sure one can be: bootstrap, intervals, tests, confidence sequences."""
