"""Which right each request of the API needs: one row for each handler."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from tidelog.access.model import AclOperation
from tidelog.registry.api import schemas, settings, subjects
from tidelog.registry.api.calls import ApiCall, Handler
from tidelog.registry.base.errors import RegistryError
from tidelog.registry.state.subjects import SubjectName

Rule = Callable[[ApiCall], None]


def for_all(call: ApiCall) -> None:
    """Every client that is logged in may: nothing is said of schemas."""


def in_handler(call: ApiCall) -> None:
    """The handler gives only what the client sees."""


def _of_subject(operation: AclOperation) -> Rule:
    def rule(call: ApiCall) -> None:
        call.rights.require(operation, call.subject)

    return rule


def _of_settings(operation: AclOperation) -> Rule:
    """A subject's settings are its own; those of all, and of a context, are the cluster's."""

    def rule(call: ApiCall) -> None:
        named = call.settings_subject
        call.rights.require(operation, named if named is not None and SubjectName.of(named).name else None)

    return rule


def _of_cluster(operation: AclOperation) -> Rule:
    def rule(call: ApiCall) -> None:
        call.rights.require(operation, None)

    return rule


def _with_schema(operation: AclOperation) -> Rule:
    """A schema is sent, and what it references is read, too."""

    def rule(call: ApiCall) -> None:
        subject = call.subject
        call.rights.require(operation, subject)
        if call.rights.may is not None:
            for one in call.schema().references:
                call.rights.require(AclOperation.DESCRIBE, SubjectName.of(subject).inside(one.subject))

    return rule


def _registration(call: ApiCall) -> None:
    """WRITE; a client that has no test made (`force`) must have the right to switch the tests off, too."""
    _with_schema(AclOperation.WRITE)(call)
    if call.flag("force"):
        call.rights.require(AclOperation.ALTER_CONFIGS, call.subject)


RULES: Final[Mapping[Handler, Rule]] = {
    subjects.subjects: in_handler,
    subjects.look_up_schema: _with_schema(AclOperation.DESCRIBE),
    subjects.delete_subject: _of_subject(AclOperation.DELETE),
    subjects.newest_with_metadata: _of_subject(AclOperation.DESCRIBE),
    subjects.versions: _of_subject(AclOperation.DESCRIBE),
    subjects.register: _registration,
    subjects.version: _of_subject(AclOperation.DESCRIBE),
    subjects.delete_version: _of_subject(AclOperation.DELETE),
    subjects.version_text: _of_subject(AclOperation.DESCRIBE),
    subjects.referenced_by: _of_subject(AclOperation.DESCRIBE),
    schemas.schemas: in_handler,
    schemas.types: for_all,
    schemas.schema: in_handler,
    schemas.schema_text: in_handler,
    schemas.subjects_of_id: in_handler,
    schemas.versions_of_id: in_handler,
    schemas.schema_of_guid: in_handler,
    schemas.ids_of_guid: in_handler,
    schemas.contexts: _of_cluster(AclOperation.DESCRIBE),
    schemas.delete_context: _of_cluster(AclOperation.ALTER),
    settings.check_version: _with_schema(AclOperation.DESCRIBE),
    settings.check_subject: _with_schema(AclOperation.DESCRIBE),
    settings.config: _of_settings(AclOperation.DESCRIBE_CONFIGS),
    settings.change_config: _of_settings(AclOperation.ALTER_CONFIGS),
    settings.delete_config: _of_settings(AclOperation.ALTER_CONFIGS),
    settings.mode: _of_settings(AclOperation.DESCRIBE_CONFIGS),
    settings.change_mode: _of_settings(AclOperation.ALTER_CONFIGS),
    settings.delete_mode: _of_settings(AclOperation.ALTER_CONFIGS),
    settings.server_id: for_all,
    settings.server_version: for_all,
    settings.deployment: for_all,
    settings.nothing: for_all,
}


def answered(handler: Handler, call: ApiCall) -> Any:
    """The handler's answer, for a client that may have it. Raises `RegistryError` 40301, and what the handler does.

    The handler looks at the log. When it finds there that the subject is another's alias by now, which the client may
    have no right to, all is done again.
    """
    while True:
        try:
            RULES[handler](call)
            answer = handler(call)
        except RegistryError:
            if call.changes or call.stands():
                raise
        else:
            if call.changes or call.stands():
                return answer
        call = replace(call, _resolved={})
