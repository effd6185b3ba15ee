"""How a command is declared: its name, an example, and its options.

A command is a function. A parameter of type `Session` stands for the options of every command. A parameter whose type
is a dataclass stands for a group of options, one for each field; its `panel`, a class variable, is their heading in the
help. Any other parameter is an option or an argument of its own, as typer declares it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

import typer

from tidelog.commands.failures import EXIT_CODES, LoneCommand, exit_code_of
from tidelog.commands.options import CommonOptions, Session, session
from tidelog.commands.terminal import prose

# Whether a command changes something, or what says so of its arguments.
Changes = bool | Callable[[Mapping[str, Any]], bool]
Function = TypeVar("Function", bound=Callable[..., None])


def command(app: typer.Typer, name: str, *, example: str, changes: Changes = False) -> Callable[[Function], Function]:
    """Decorate a function that is the command `name` of `app`. Its docstring is the command's help.

    `changes`: it changes the lake or what may be done with it, which the lake's audit gets to know; a function says so
    of the arguments.
    """

    def add(function: Function) -> Function:
        flattened = flat(function, changes=changes)
        app.command(name, help=prose(function.__doc__ or ""), epilog=f"Example: {example}")(flattened)
        return function

    return add


def family(summary: str) -> typer.Typer:
    """A command that has commands, such as `tidelog topic`. It takes every command's options before their names."""
    return typer.Typer(callback=flat(_only_common), no_args_is_help=True, help=summary)


def program(
    name: str, function: Callable[..., None], *, summary: str, example: str, codes: str = EXIT_CODES
) -> "partial[int]":
    """The `main` of a program with one command, as a job is: it runs a command line and returns its exit code.

    `main()` takes the process's own arguments. `codes`: what the help says of exit codes.
    """
    app = typer.Typer(
        name=name,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(cls=LoneCommand, help=prose(summary), epilog=f"Example: {example}\n\n{codes}")(flat(function))
    return partial(exit_code_of, app, name)


def flat(function: Callable[..., None], *, changes: Changes = False) -> Callable[..., None]:
    """The function as typer takes it: a parameter for each option, the options of every command last.

    `changes`: as `command` has it.
    """
    hints = get_type_hints(function, include_extras=True)
    own = signature(function).parameters

    def run(context: typer.Context, **given: Any) -> None:
        call = session(context, _collected(CommonOptions, given))
        values = {name: call if hints[name] is Session else _value(name, hints[name], given) for name in own}
        asked = {name: value for name, value in values.items() if value is not call}
        if not (changes(asked) if callable(changes) else changes):
            function(**values)
            return
        from tidelog.commands.change_audit import audited  # which commands that only look need not load

        audited(call, context.command_path, asked, lambda: function(**values))

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, parameter in own.items():
        if is_dataclass(hints[name]):
            parameters += [] if hints[name] is Session else _options(hints[name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
    parameters += _options(CommonOptions)
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.changes = bool(changes)  # type: ignore[attr-defined]  # for those that list commands
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what `inspect.signature` reads first
    return run


def _only_common(call: Session) -> None:
    """Keep the options that are given between a family's name and its command's."""


def _options(group: type) -> Iterator[Parameter]:
    """A parameter for each field of a group of options."""
    hints = get_type_hints(group, include_extras=True)
    panel = getattr(group, "panel", None)
    for field in fields(group):
        if panel is not None:
            hints[field.name].__metadata__[0].rich_help_panel = panel
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def _value(name: str, hint: Any, given: dict[str, Any]) -> Any:
    return _collected(hint, given) if is_dataclass(hint) else given[name]


def _collected(group: Any, given: dict[str, Any]) -> Any:
    """The group of options with the values that were given."""
    return group(**{field.name: given[field.name] for field in fields(group)})
