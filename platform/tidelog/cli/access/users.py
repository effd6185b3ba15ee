"""`tidelog user …`: add, list, remove the users that have a password."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidelog.cli.access.opening import access_log
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, print_json, say, table

if TYPE_CHECKING:
    from tidelog.access.credentials import ScramMechanism

users = family("Add, list and remove the users that brokers know by a password (SASL SCRAM and PLAIN).")

UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, without 'User:'.", show_default=False)]

_STDIN: Final = "-"


@command(users, "add", example="tidelog user add alice --password-file alice.txt", changes=True)
def add(
    call: Session,
    name: UserName,
    password_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file that holds the password, and nothing else; - reads it from standard input.",
            show_default=False,
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="SCRAM-SHA-512, unless given, or SCRAM-SHA-256. Clients may use PLAIN besides. Repeatable.",
        ),
    ] = None,
    iterations: Annotated[int | None, typer.Option(metavar="N", help="Hashes of a check: 4096 to 16384.")] = None,
    password: Annotated[str | None, typer.Option(hidden=True)] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Add a user with a password, or give a user another one. It is in force on all brokers within a second.

    No password is stored: what is kept of it lets a broker check it, and nothing else.
    """
    if password is not None or more:
        raise UsageProblemError(
            "A password is not given on the command line: other users of the machine see that, and shells keep it. Put"
            " it into a file for --password-file, or pass it on standard input with '--password-file -'. Take another"
            " one now."
        )
    if password_file is None:
        raise UsageProblemError("Without a password a user can't be added. Give --password-file FILE, or - for stdin.")
    secret = _read(password_file)
    from tidelog.operations.access import set_password

    mechanisms = list(dict.fromkeys(map(_mechanism, mechanism or ["SCRAM-SHA-512"])))
    with access_log(call) as log:
        set_password(log, name, secret, mechanisms, iterations)
    if call.as_json:
        print_json({"user": name, "mechanisms": [one.value for one in mechanisms]})
    else:
        say(f"User {name} authenticates by {' or '.join(mechanisms)}, or PLAIN.")


def _read(source: str) -> str:
    """The password that a file holds, without the line break at its end."""
    from tidelog.access.credentials import MOST_PASSWORD_CHARS

    most = MOST_PASSWORD_CHARS + 2  # a file that holds more is not read whole
    try:
        if source == _STDIN:
            text = sys.stdin.read(most + 1)
        else:
            with Path(source).open(encoding="utf-8") as file:
                text = file.read(most + 1)
    except UnicodeDecodeError:
        raise UsageProblemError("The password is no text in UTF-8. Write it as one line of text.") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if len(password) > MOST_PASSWORD_CHARS or "\n" in password:
        raise UsageProblemError(
            f"The password is one line of at most {MOST_PASSWORD_CHARS} characters, and nothing else is in its file."
        )
    return password


def _mechanism(name: str) -> "ScramMechanism":
    from tidelog.access.credentials import ScramMechanism

    if name.upper() not in list(ScramMechanism):
        raise UsageProblemError(f"{name!r} is no mechanism of passwords. There are {' and '.join(ScramMechanism)}.")
    return ScramMechanism(name.upper())


@command(users, "list", example="tidelog user list")
def list_users(
    call: Session,
) -> None:
    """List the users with a password. A pipe gets the names only, one a line."""
    from tidelog.operations.access import describe_users

    with access_log(call) as log:
        by_name = describe_users(log)
    out = console()
    if call.as_json:
        print_json(
            [
                {
                    "user": user.name,
                    "mechanisms": [{"mechanism": one.value, "iterations": n} for one, n in user.iterations.items()],
                    "tenant": user.tenant,
                }
                for user in by_name.values()
            ]
        )
    elif not out.is_terminal:
        for name in by_name:
            say(name)
    elif by_name:
        rows = [(user.name, ", ".join(user.iterations), user.tenant or "") for user in by_name.values()]
        out.print(table(["USER", "MECHANISMS", "TENANT"], rows))
    else:
        say("No users. 'tidelog user add' adds one.")


@command(users, "remove", example="tidelog user remove alice", changes=True)
def remove(
    call: Session,
    name: UserName,
    mechanism: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this mechanism.", show_default=False)
    ] = None,
) -> None:
    """Remove a user's password: the user authenticates no more. ACLs and quotas stay."""
    from tidelog.operations.access import remove_password

    only = None if mechanism is None else _mechanism(mechanism)
    with access_log(call) as log:
        removed = remove_password(log, name, only)
    if call.as_json:
        print_json({"user": name, "removed": [one.value for one in removed.mechanisms]})
        return
    say(f"Removed {' and '.join(removed.mechanisms)} of user {name}.")
    if removed.acls:
        note(
            f"{len(removed.acls)} ACLs of User:{name} stay: 'tidelog acl remove --principal User:{name}' removes them."
        )
