"""Compatibility, configurations and modes: /compatibility, /config, /mode; and what a server says of itself."""

import hashlib
from importlib.metadata import version
from typing import Any, Final

from tidelog.operations.rights import Right
from tidelog.operations.schemas.registering import check_compatibility
from tidelog.operations.schemas.settings import (
    config_of,
    decide_config,
    decide_mode,
    decide_no_config,
    decide_no_mode,
    mode_of,
)
from tidelog.registry.api.calls import ApiCall
from tidelog.registry.api.guard import for_all, of_settings, with_schema
from tidelog.server.routes import Route


def check_version(call: ApiCall) -> Any:
    """POST /compatibility/subjects/{subject}/versions/{version}: against one version."""
    return _checked(call, call.version())


def check_subject(call: ApiCall) -> Any:
    """POST /compatibility/subjects/{subject}/versions: as a registration would be tested."""
    return _checked(call, None)


def _checked(call: ApiCall, number: int | None) -> dict[str, Any]:
    schema, subject = call.schema(), call.subject
    normalize, deleted = call.flag("normalize"), call.flag("deleted")
    call.log.prepare(subject, schema)
    messages = call.log.look(
        lambda state: check_compatibility(state, subject, schema, number, normalize=normalize, deleted=deleted)
    )
    verbose = {"messages": messages} if call.flag("verbose") else {}
    return {"is_compatible": not messages, **verbose}


def config(call: ApiCall) -> Any:
    """GET /config, GET /config/{subject}."""
    subject = call.settings_subject
    return call.log.look(lambda state: config_of(state, subject, in_scope=call.flag("defaultToGlobal")))


def change_config(call: ApiCall) -> Any:
    """PUT /config, PUT /config/{subject}: what was set."""
    subject, change = call.settings_subject, call.json()
    return call.log.decide(lambda state: decide_config(state, subject, change))


def delete_config(call: ApiCall) -> Any:
    """DELETE /config, DELETE /config/{subject}: what counted before."""
    subject = call.settings_subject
    return call.log.decide(lambda state: decide_no_config(state, subject))


def mode(call: ApiCall) -> Any:
    """GET /mode, GET /mode/{subject}."""
    subject = call.settings_subject
    return {"mode": call.log.look(lambda state: mode_of(state, subject, in_scope=call.flag("defaultToGlobal"))).value}


def change_mode(call: ApiCall) -> Any:
    """PUT /mode, PUT /mode/{subject}: what was set."""
    subject, wanted, force = call.settings_subject, call.json().get("mode"), call.flag("force")
    call.log.decide(lambda state: (None, decide_mode(state, subject, wanted, force=force)))
    return {"mode": wanted.upper()} if isinstance(wanted, str) else {}


def delete_mode(call: ApiCall) -> Any:
    """DELETE /mode, DELETE /mode/{subject}: what counted before."""
    subject, recursive = call.settings_subject, call.flag("recursive")
    old = call.log.decide(lambda state: decide_no_mode(state, subject, recursive=recursive))
    return {"mode": None if old is None else old.value}


def nothing(call: ApiCall) -> Any:  # noqa: ARG001 - a handler
    """GET /, POST /: whether the server is there."""
    return {}


def server_id(call: ApiCall) -> Any:
    """GET /v1/metadata/id: a name for the lake, which does not say where it is."""
    lake = hashlib.blake2b(call.log.uri.encode(), digest_size=16).hexdigest()
    return {"scope": {"path": [], "clusters": {"kafka-cluster": lake, "schema-registry-cluster": "tidelog"}}}


def server_version(call: ApiCall) -> Any:  # noqa: ARG001 - a handler
    """GET /v1/metadata/version."""
    return {"version": version("tidelog"), "commitId": ""}


def deployment(call: ApiCall) -> Any:  # noqa: ARG001 - a handler
    """GET /v1/metadata/deployment: attributes, of which there are none."""
    return {"attributes": []}


_DESCRIBE: Final = with_schema(Right.READ_SCHEMA)
_SEE: Final = of_settings(Right.DESCRIBE_CONFIG)
_CHANGE: Final = of_settings(Right.ALTER_CONFIG)

ROUTES: Final[tuple[Route[ApiCall], ...]] = (
    Route("POST", "compatibility/subjects/{subject}/versions", check_subject, _DESCRIBE),
    Route("POST", "compatibility/subjects/{subject}/versions/{version}", check_version, _DESCRIBE),
    Route("GET", "config", config, _SEE),
    Route("PUT", "config", change_config, _CHANGE),
    Route("DELETE", "config", delete_config, _CHANGE, body=0),
    Route("GET", "config/{subject}", config, _SEE),
    Route("PUT", "config/{subject}", change_config, _CHANGE),
    Route("DELETE", "config/{subject}", delete_config, _CHANGE, body=0),
    Route("GET", "mode", mode, _SEE),
    Route("PUT", "mode", change_mode, _CHANGE),
    Route("DELETE", "mode", delete_mode, _CHANGE, body=0),
    Route("GET", "mode/{subject}", mode, _SEE),
    Route("PUT", "mode/{subject}", change_mode, _CHANGE),
    Route("DELETE", "mode/{subject}", delete_mode, _CHANGE, body=0),
    Route("GET", "v1/metadata/id", server_id, for_all),
    Route("GET", "v1/metadata/version", server_version, for_all),
    Route("GET", "v1/metadata/deployment", deployment, for_all),
    Route("GET", "", nothing, for_all),
    Route("POST", "", nothing, for_all),
)
