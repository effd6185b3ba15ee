"""What a worker has to offer, and loggers: as the REST API shows them."""

import logging
from typing import Any, Final

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.config.definition import ConfigDef
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.converters.table import CONVERTERS, converter_plugin
from tidelog.connect.runtime.plugins import definition_of, kind_of
from tidelog.connect.transforms.plugins import PREDICATES, TRANSFORMATIONS
from tidelog.operations.connector_configs import decide_logger
from tidelog.server.errors import RequestRefusedError

# log4j's names of levels, by Python's.
_LEVELS: Final = {
    "TRACE": logging.DEBUG, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
    "WARNING": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "OFF": logging.CRITICAL + 10,
}  # fmt: skip
_NAMES: Final = {
    logging.DEBUG: "DEBUG", logging.INFO: "INFO", logging.WARNING: "WARN", logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL", logging.CRITICAL + 10: "OFF",
}  # fmt: skip
ROOT: Final = "root"


def plugins(operations: ConnectOperations, *, connectors_only: bool) -> list[dict[str, Any]]:
    """GET /connector-plugins: a connector under each of its classes' names; the first stands for it."""
    views: list[dict[str, Any]] = [
        {"class": one.names[0], "type": kind_of(one), "version": one.version} for one in operations.shared.plugins
    ]
    if not connectors_only:
        views += [{"class": name, "type": "transformation"} for name in _full(TRANSFORMATIONS)]
        views += [{"class": name, "type": "predicate"} for name in _full(PREDICATES)]
        views += [{"class": one.names[0], "type": one.kind} for one in CONVERTERS]
    return views


def plugin_config(operations: ConnectOperations, name: str) -> list[dict[str, Any]]:
    """GET /connector-plugins/{name}/config: the keys of a connector, converter, transformation or predicate."""
    return [key.as_json() for key in _definition(operations, name) if not key.internal]


def _definition(operations: ConnectOperations, name: str) -> ConfigDef:
    if name in TRANSFORMATIONS:
        return TRANSFORMATIONS[name][0].config_def
    if name in PREDICATES:
        return PREDICATES[name].config_def
    try:
        return converter_plugin(name).keys
    except ConnectConfigError:
        return definition_of(operations.plugin(name), {})


def _full(named: Any) -> list[str]:
    return sorted(name for name in named if "." in name)


# --- loggers (KIP-495, KIP-976) ---------------------------------------------------------------------------------


class LoggerViews:
    """Loggers of this worker, and of all where a request says so. Times are those of this worker's changes."""

    def __init__(self, operations: ConnectOperations) -> None:
        self._operations = operations
        self._changed: dict[str, int] = {}

    def all(self) -> dict[str, Any]:
        """GET /admin/loggers: the loggers that have a level of their own."""
        known = logging.Logger.manager.loggerDict
        named = [name for name, one in known.items() if isinstance(one, logging.Logger) and one.level]
        return {name: self._view(name) for name in sorted([ROOT, *named])}

    def one(self, name: str) -> dict[str, Any]:
        """GET /admin/loggers/{name}."""
        if name != ROOT and name not in logging.Logger.manager.loggerDict:
            raise RequestRefusedError(404, f"Logger {name[:200]} not found.")
        return self._view(name)

    def set(self, name: str, level: Any, scope: str) -> list[str] | None:
        """PUT /admin/loggers/{name}: the loggers whose level changed; None where all workers are to change it."""
        if not isinstance(level, str):
            raise RequestRefusedError(400, "Desired 'level' parameter was not specified in request.")
        if level.upper() not in _LEVELS:
            raise RequestRefusedError(404, f"invalid log level '{level[:100]}'.")
        if scope == "cluster":
            record = decide_logger("" if name == ROOT else name, logging.getLevelName(_LEVELS[level.upper()]))
            self._operations.shared.configs.decide(lambda _: (None, [one.bytes() for one in record]))
            self._operations.worker.wake()
            return None
        below = [
            one
            for one in logging.Logger.manager.loggerDict
            if one.startswith(f"{name}.") and isinstance(logging.Logger.manager.loggerDict[one], logging.Logger)
        ]
        changed = [name, *(sorted(below) if name != ROOT else ())]
        for one in changed:
            _logger(one).setLevel(_LEVELS[level.upper()])
            self._changed[one] = self._operations.shared.lake.clock.now_ms()
        return changed

    def _view(self, name: str) -> dict[str, Any]:
        level = _logger(name).getEffectiveLevel()
        return {"level": _NAMES.get(level, str(level)), "last_modified": self._changed.get(name)}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
