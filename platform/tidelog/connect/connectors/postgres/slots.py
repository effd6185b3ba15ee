"""What the replication slots of the databases that a lake's connectors read keep of the log."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.connect.config.providers import ConfigProviders
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.postgres.connector import PostgresConnector
from tidelog.connect.connectors.postgres.database import Database
from tidelog.connect.connectors.postgres.settings import PostgresSettings, read_settings
from tidelog.connect.data.errors import ConnectError
from tidelog.log.lake import Lake
from tidelog.operations.connector_health import SlotHealth
from tidelog.operations.connectors import own_connectors

_SLOTS: Final = (
    "SELECT slot_name, active, COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint"
    " FROM pg_replication_slots WHERE database = current_database() AND plugin = 'pgoutput' ORDER BY 1"
)
_NAMES: Final = frozenset({*PostgresConnector.names, "PostgresConnector"})
Opened = Callable[[PostgresSettings], Any]


def slot_health(lake: Lake, opened: Opened = Database) -> list[SlotHealth]:
    """The slots of each database that a connector of the lake reads. Raises tidelog's errors, none of a database's.

    `opened`: connects to a database.
    """
    connectors = own_connectors(lake)
    databases: dict[str, tuple[PostgresSettings, dict[str, str]]] = {}
    health = []
    for name, config in ({} if connectors is None else connectors.configured()).items():
        if config.get("connector.class") not in _NAMES:
            continue
        try:
            settings = _settings(config)
        except ConnectError as error:
            health.append(SlotHealth(config.get("slot.name", "debezium"), "", name, problem=str(error)))
            continue
        databases.setdefault(settings.shown, (settings, {}))[1][settings.slot] = name
    for shown, (settings, slots) in databases.items():
        health += _of_database(shown, settings, slots, opened)
    return health


def _settings(config: Mapping[str, str]) -> PostgresSettings:
    """Raises `ConnectError` for values that only a worker can look up."""
    resolved = ConfigProviders({}).resolved(config).config
    password = resolved.get("database.password", "")
    if password.startswith("${"):
        raise ConnectError(f"database.password is {password}, which only its worker can look up")
    try:
        return read_settings(resolved)
    except ConnectConfigError as error:
        raise ConnectError(str(error)) from error


def _of_database(shown: str, settings: PostgresSettings, slots: Mapping[str, str], opened: Opened) -> list[SlotHealth]:
    try:
        database = opened(settings)
        try:
            rows = database.ask(_SLOTS)
        finally:
            database.close()
    except ConnectError as error:
        return [SlotHealth(slot, shown, name, problem=str(error)) for slot, name in slots.items()]
    return [SlotHealth(slot, shown, slots.get(slot, ""), active, int(held)) for slot, active, held in rows]
