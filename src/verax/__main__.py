"""`python -m verax` is the command line."""

from verax.cli import run

if __name__ == "__main__":
    run()
