"""Start the command: Ctrl-C while its modules are imported ends it like later on, in one word."""

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from local_rag.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
