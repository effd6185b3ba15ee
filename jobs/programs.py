"""What the jobs' programs have in common: one command each, and how it is carried out."""

from collections.abc import Callable, Sequence

import typer

from tidelog.commands.failures import LoneCommand, exit_code_of
from tidelog.commands.terminal import prose


def lone_app(name: str, summary: str, command: Callable[..., None], example: str, exit_codes: str) -> typer.Typer:
    """The program `name`, of one command."""
    app = typer.Typer(
        name=name,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(cls=LoneCommand, help=prose(summary), epilog=f"Example: {example}\n\n{exit_codes}")(command)
    return app


def run_job(app: typer.Typer, arguments: Sequence[str] | None) -> int:
    """Carry out the command line; its exit code."""
    return exit_code_of(app, app.info.name or "job", arguments)
