"""The command line: one file per group of commands, each imported only when its command is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but a bug prints a trace."""
    import click

    from workbench.cli.exits import Exit, exit_for
    from workbench.cli.root import PROGRAM, root

    try:
        code = root.main(args=arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
        return int(code) if isinstance(code, int) else Exit.OK
    except click.UsageError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("", err=True)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`... | head`): nothing more can be said, and that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except SystemExit as ended:
        # Completion ends so; and a broken pipe, which click notices first and puts a wrapper around.
        gone = "PacifyFlushWrapper" in type(sys.stdout).__name__
        return Exit.OK if gone or ended.code is None else int(ended.code)
    except Exception as error:  # noqa: BLE001 - the one place that turns errors into words and codes
        code = exit_for(error)
        if code is Exit.BUG:
            import traceback

            traceback.print_exc()
            click.echo(
                "This is an error in rebench-workbench; please report it with the trace above.", err=True
            )
        else:
            from workbench.ink.text import literal

            click.echo(f"{click.style('Error:', fg='red', bold=True)} {literal(str(error))}", err=True)
        return code
