"""Compatibility, configurations and modes: /compatibility, /config, /mode; and what a server says of itself."""

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from tidelog.registry.api.calls import LATEST, ApiCall, Handler
from tidelog.registry.api.subjects import found_version
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.reading import prepare
from tidelog.registry.state.registering import why_incompatible
from tidelog.registry.state.settings import (
    config_of,
    decide_config,
    decide_mode,
    decide_no_config,
    decide_no_mode,
    mode_of,
)


def check_version(call: ApiCall) -> Any:
    """POST /compatibility/subjects/{subject}/versions/{version}: against one version.

    The latest one of a subject that has none takes every schema, as in Confluent's CompatibilityResource.
    """
    schema, subject, normalize = call.schema(), call.subject, call.flag("normalize")
    call.log.known(lambda state: prepare(state, subject, schema))()

    def at(state: RegistryState) -> list[str]:
        first = call.version() == LATEST and not state.versions(subject)
        versions = [] if first else [found_version(state, call)]
        return why_incompatible(state, subject, schema, versions, normalize=normalize)

    return _answer(call, call.log.look(at))


def check_subject(call: ApiCall) -> Any:
    """POST /compatibility/subjects/{subject}/versions: as a registration would be tested."""
    schema, subject, normalize = call.schema(), call.subject, call.flag("normalize")
    call.log.known(lambda state: prepare(state, subject, schema))()

    def at(state: RegistryState) -> list[str]:
        return why_incompatible(state, subject, schema, state.versions(subject), normalize=normalize)

    return _answer(call, call.log.look(at))


def _answer(call: ApiCall, messages: list[str]) -> dict[str, Any]:
    verbose = {"messages": messages} if call.flag("verbose") else {}
    return {"is_compatible": not messages, **verbose}


def config(call: ApiCall) -> Any:
    """GET /config, GET /config/{subject}."""
    subject = call.settings_subject
    found = call.log.look(lambda state: config_of(state, subject, in_scope=call.flag("defaultToGlobal")))
    return {key: value for key, value in found.items() if key != "subject"}


def change_config(call: ApiCall) -> Any:
    """PUT /config, PUT /config/{subject}: what was set."""
    subject, change = call.settings_subject, call.json()
    call.log.decide(lambda state: (None, decide_config(state, subject, change)))
    found = call.log.known(lambda state: state.configs.get(subject) or {})
    renamed = {"compatibility" if key == "compatibilityLevel" else key: value for key, value in found.items()}
    asked = {"compatibility" if key == "compatibilityLevel" else key for key in change}
    return {key: value for key, value in renamed.items() if key in asked}


def delete_config(call: ApiCall) -> Any:
    """DELETE /config, DELETE /config/{subject}: what counted before."""
    subject = call.settings_subject

    def rule(state: RegistryState) -> Any:
        old = config_of(state, subject) if subject in state.configs or subject is None else {}
        return old, decide_no_config(state, subject)

    return {key: value for key, value in call.log.decide(rule).items() if key != "subject"}


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

    def rule(state: RegistryState) -> Any:
        there = subject is None or subject in state.modes
        old = mode_of(state, subject) if there else None
        return old, decide_no_mode(state, subject, recursive=recursive)

    old = call.log.decide(rule)
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


ROUTES: Final[Mapping[tuple[str, str], Handler]] = {
    ("POST", "compatibility/subjects/{subject}/versions"): check_subject,
    ("POST", "compatibility/subjects/{subject}/versions/{version}"): check_version,
    ("GET", "config"): config,
    ("PUT", "config"): change_config,
    ("DELETE", "config"): delete_config,
    ("GET", "config/{subject}"): config,
    ("PUT", "config/{subject}"): change_config,
    ("DELETE", "config/{subject}"): delete_config,
    ("GET", "mode"): mode,
    ("PUT", "mode"): change_mode,
    ("DELETE", "mode"): delete_mode,
    ("GET", "mode/{subject}"): mode,
    ("PUT", "mode/{subject}"): change_mode,
    ("DELETE", "mode/{subject}"): delete_mode,
    ("GET", "v1/metadata/id"): server_id,
    ("GET", "v1/metadata/version"): server_version,
    ("GET", "v1/metadata/deployment"): deployment,
    ("GET", ""): nothing,
    ("POST", ""): nothing,
}
