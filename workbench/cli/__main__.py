"""Entry point: python -m workbench.cli COMMAND."""

from workbench.cli import main

main()
