"""Prints completion scripts for bash, zsh and fish."""

from __future__ import annotations

import click

from workbench.cli.command import Command


@click.command(
    cls=Command,
    examples=(
        'eval "$(rebench-workbench completion bash)"       # in ~/.bashrc',
        'eval "$(rebench-workbench completion zsh)"        # in ~/.zshrc, after compinit',
        "rebench-workbench completion fish > ~/.config/fish/completions/rebench-workbench.fish",
    ),
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from workbench.cli.root import PROGRAM, root

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells of the choice"
    script = kind(root, {}, PROGRAM, f"_{PROGRAM.upper().replace('-', '_')}_COMPLETE")
    # `source()` would start bash to ask for its version; the template alone needs nothing.
    click.echo(script.source_template % script.source_vars())
