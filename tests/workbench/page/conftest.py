"""The same homes, records and commands as the command line's tests."""

from tests.workbench.cli.conftest import home, host_for, run, story

__all__ = ["home", "host_for", "run", "story"]
