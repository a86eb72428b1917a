"""Entry point: python scripts/bootstrap COMMAND ARGUMENTS."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from scripts.bootstrap.commands import main  # noqa: E402 - only now can it be found

if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:]))
