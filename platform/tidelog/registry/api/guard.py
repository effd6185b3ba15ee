"""Rights that requests of the API need, as their rows name them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tidelog.operations.rights import Right
from tidelog.registry.api.calls import ApiCall
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.subject_names import SubjectName
from tidelog.server.routes import Route

Rule = Callable[[ApiCall], None]


def for_all(call: ApiCall) -> None:
    """Every client that is logged in may: nothing is said of schemas."""


def in_handler(call: ApiCall) -> None:
    """The handler gives only what the client sees."""


def of_subject(right: Right) -> Rule:
    """The right to the path's subject."""

    def rule(call: ApiCall) -> None:
        call.rights.require(right, call.subject)

    return rule


def of_settings(right: Right) -> Rule:
    """A subject's settings are its own; those of all, and of a context, are the cluster's."""

    def rule(call: ApiCall) -> None:
        named = call.settings_subject
        call.rights.require(right, named if named is not None and SubjectName.of(named).name else None)

    return rule


def of_cluster(right: Right) -> Rule:
    """The right to the cluster."""

    def rule(call: ApiCall) -> None:
        call.rights.require(right)

    return rule


def with_schema(right: Right) -> Rule:
    """A schema is sent, and what it references is read, too."""

    def rule(call: ApiCall) -> None:
        subject = call.subject
        call.rights.require(right, subject)
        if call.rights.bound:
            for one in call.schema().references:
                call.rights.require(Right.READ_SCHEMA, SubjectName.of(subject).inside(one.subject))

    return rule


def registration(call: ApiCall) -> None:
    """A client that has no test made (`force`) must have the right to switch the tests off, too."""
    with_schema(Right.REGISTER_SCHEMA)(call)
    if call.flag("force"):
        call.rights.require(Right.ALTER_CONFIG, call.subject)


def answered(route: Route[ApiCall], call: ApiCall) -> Any:
    """The handler's answer, for a client that may have it. Raises `RegistryError` 40301, and what the handler does.

    The handler looks at the log. When it finds there that the subject is another's alias by now, which the client may
    have no right to, all is done again.
    """
    while True:
        try:
            route.right(call)
            answer = route.handler(call)
        except RegistryError:
            if call.changes or call.stands():
                raise
        else:
            if call.changes or call.stands():
                return answer
        call = replace(call, _resolved={})
