"""The audit of changes by commands: a line for each, as brokers write theirs, to the log and to the lake's topic."""

import getpass
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import typer

from tidelog.commands.failures import STILL_WAITING
from tidelog.commands.options import Session

logger = logging.getLogger(__name__)

# The user of a command, in place of the operating system's user: a service's own name, say.
PRINCIPAL_VARIABLE: Final = "TIDELOG_PRINCIPAL"
# Of these options no line says more than that they were given: they are secret, or what is to be erased.
_HIDDEN: Final = frozenset({"password", "password_file", "keys", "key_file", "from_option", "registry_user_file"})
# Options of which "no" is said, too.
_NEGATED: Final = frozenset({"normalize"})
# Options that are about the call, and not about what it changes.
_ABOUT_THE_CALL: Final = frozenset({"yes", "quiet", "metrics", "wait", "schemas_topic"})


def audited(call: Session, command: str, given: Mapping[str, Any], run: Callable[[], None]) -> None:
    """Run a command that changes a lake, and write into its audit what it was asked for.

    A command that was refused or only planned has changed nothing, and is not written. One whose outcome is unknown is.
    """
    from tidelog.log.base.errors import OutcomeUnknownError

    try:
        run()
    except OutcomeUnknownError:
        note_change(call, command, given, "unknown")
        raise
    except typer.Exit as e:
        if e.exit_code in (0, STILL_WAITING):
            note_change(call, command, given, "done")
        raise
    note_change(call, command, given, "done")


def note_change(call: Session, command: str, given: Mapping[str, Any], outcome: str) -> None:
    """Write a change. One that the topic does not take is an error of the log's: the change itself is done."""
    from tidelog.access.audit import Audit, Requester
    from tidelog.log.base.errors import TidelogError

    asked = dict(_flat(given))
    if is_planned(asked) or asked.get("registry") is not None:  # a registry elsewhere is none of the lake's
        return
    lines: list[bytes] = []
    try:
        with call.open_lake() as lake:
            who = Requester(principal(), socket.gethostname(), client_id="tidelog")
            change = {"arguments": dict(_arguments(asked)), "outcome": outcome}
            Audit(lake.clock, lines.append).changed(who, command, change)
            topic = lake.config().audit_topic
            if topic:
                lake.appender(topic).append([{"value": line} for line in lines])
    except TidelogError as e:
        logger.warning("The change is done, and the audit's topic does not have it: %s", e)


def principal() -> str:
    """The user of the command: what the environment says, else the operating system's user."""
    named = os.environ.get(PRINCIPAL_VARIABLE)
    if named:
        return named if ":" in named else f"User:{named}"
    try:
        return f"User:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user without a name
        return f"User:{os.getuid()}" if hasattr(os, "getuid") else "User:ANONYMOUS"


def is_planned(asked: Mapping[str, Any]) -> bool:
    """Whether options ask for a plan only: --dry-run, or no --execute where there is one."""
    return asked.get("dry_run") is True or asked.get("execute") is False


def _arguments(asked: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in asked.items():
        unset = value in (None, (), []) or (value is False and name not in _NEGATED)
        if unset or name in _ABOUT_THE_CALL:
            continue
        yield name, "(hidden)" if name in _HIDDEN else _plain(value)


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each option, those of groups too."""
    for name, value in given.items():
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((field.name, getattr(value, field.name)) for field in fields(value))
        else:
            yield name, value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, int | float | str | bool) else str(value)
