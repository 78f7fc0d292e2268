"""`python -m verax` and `verax` are the command line."""

import sys


def main() -> None:
    """Run the command line; an interrupt exits with 130 and no traceback, also during imports."""
    try:
        from verax.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
