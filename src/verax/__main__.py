"""`python -m verax` is the command line."""

from verax.cli import run

run()
