"""`python -m verax` and `verax` are the command line."""

import atexit
import gc
import sys


def main() -> None:
    """Run the command line; an interrupt exits with 130 and no traceback, also during imports."""
    # Looking through all modules for cycles before a process ends takes longer than many a command.
    atexit.register(gc.freeze)
    # Nor do imports leave cycles worth looking for; a command that runs enables the search again.
    gc.disable()
    try:
        from verax.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
