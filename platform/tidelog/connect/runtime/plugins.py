"""The connectors that a worker knows: those of tidelog, and those that installed packages offer."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.runtime.settings import check_topics, settings_of
from tidelog.connect.spi.connectors import Connector, ExactlyOnceSupport, RawConfig, SourceConnector
from tidelog.connect.transforms.chain import chain_keys
from tidelog.log.base.typed_values import nearest

_OWN: Final = "tidelog.connect.connectors."
# tidelog's own connectors, as `package.module:Class`: loaded when a worker first asks, for some need an extra.
CONNECTORS: Final[tuple[str, ...]] = (
    f"{_OWN}files.stream:FileStreamSource",
    f"{_OWN}files.stream:FileStreamSink",
    f"{_OWN}files.folder_source:FolderSource",
    f"{_OWN}files.folder_sink:FolderSink",
    f"{_OWN}jdbc.source:JdbcSource",
    f"{_OWN}jdbc.sink:JdbcSinkConnector",
    f"{_OWN}delta_sink:DeltaSink",
    f"{_OWN}http_sink:HttpSink",
    f"{_OWN}spark.application:SparkApplication",
    f"{_OWN}spark.delta_sink:SparkDeltaSink",
    f"{_OWN}postgres.connector:PostgresConnector",
)
# Packages offer connectors as entry points of this group: any name = "package.module:Class".
ENTRY_POINTS: Final = "tidelog.connectors"
_JDBC_SOURCE: Final = "JdbcSource"
_JDBC_SINK: Final = "JdbcSinkConnector"
_POLLS: Final = "it asks tables for new rows by a column (mode=timestamp+incrementing), and sees no deletes"
_NO_DIALECT: Final = "its databases are PostgreSQL, MySQL and SQLite"
# (the nearest connector, what is other there) by Debezium's classes, without `io.debezium.connector.`.
_DEBEZIUM: Final[Mapping[str, tuple[str, str]]] = {
    "mysql.MySqlConnector": (_JDBC_SOURCE, _POLLS),
    "mariadb.MariaDbConnector": (_JDBC_SOURCE, _POLLS),
    "oracle.OracleConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "sqlserver.SqlServerConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "db2.Db2Connector": (_JDBC_SOURCE, _NO_DIALECT),
    "db2as400.As400RpcConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "informix.InformixConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "vitess.VitessConnector": (_JDBC_SOURCE, _POLLS),
    "jdbc.JdbcSinkConnector": (_JDBC_SINK, "its keys are Confluent's: pk.mode, pk.fields, insert.mode, auto.create"),
}
_PACKAGE: Final = "io.debezium.connector."
_AS_BEFORE: Final = " A Debezium that runs elsewhere can go on: it writes through a broker of the lake, as into Kafka."


@dataclass(frozen=True, slots=True)
class MissingPlugin:
    """A connector whose modules are not installed, and why."""

    path: str
    why: str


class Plugins:
    """Connectors by their names. `paths`: where they are, as `package.module:Class`; modules are loaded when asked for.

    `classes`: further ones that are loaded already.
    """

    def __init__(self, paths: Iterable[str] | None = None, classes: Iterable[type[Connector]] = ()) -> None:
        self._paths = list(_installed() if paths is None else paths)
        self._classes = list(classes)
        self._found: list[type[Connector]] | None = None
        self.missing: list[MissingPlugin] = []

    def __iter__(self) -> Iterator[type[Connector]]:
        return iter(self._loaded())

    def connector(self, name: str) -> type[Connector]:
        """The connector of a name: a full one, or its last part, also without "Connector".

        Raises `ConnectConfigError`.
        """
        wanted = name.strip()
        for connector in self._loaded():
            if wanted in connector.names:
                return connector
        for connector in self._loaded():
            if wanted in {short for full in connector.names for short in _shorter(full)}:
                return connector
        available = ", ".join(sorted(one.names[0] for one in self._loaded()))
        lacking = "".join(f" {one.path} can't be loaded: {one.why}." for one in self.missing)
        raise ConnectConfigError(
            f"Failed to find any class that implements Connector and which name matches {wanted[:200]}, available"
            f" connectors are: {available}.{lacking}{nearest_to(wanted, self._loaded())}"
        )

    def kind_of(self, config: RawConfig) -> str:
        """ "source" or "sink", as a configuration's class is; "unknown" where no such connector is here."""
        try:
            return kind_of(self.connector(config.get("connector.class", "")))
        except ConnectConfigError:
            return "unknown"

    def _loaded(self) -> list[type[Connector]]:
        if self._found is None:
            classes: list[type[Connector]] = list(self._classes)
            for path in self._paths:
                try:
                    classes.append(_load(path))
                except ImportError as error:
                    self.missing.append(MissingPlugin(path, str(error)))
            self._found = classes
        return self._found


def _installed() -> list[str]:
    return [*CONNECTORS, *(one.value for one in entry_points(group=ENTRY_POINTS))]


def _load(path: str) -> type[Connector]:
    module, _, name = path.partition(":")
    connector: Any = getattr(importlib.import_module(module), name)
    if not (isinstance(connector, type) and issubclass(connector, Connector)):
        raise ImportError(f"{path} is no connector")
    return connector


def _shorter(full: str) -> set[str]:
    last = full.rpartition(".")[2]
    return {last, last.removesuffix("Connector")}


def kind_of(plugin: type[Connector]) -> str:
    """ "source" or "sink", as the REST API says it."""
    return "source" if issubclass(plugin, SourceConnector) else "sink"


def definition_of(plugin: type[Connector], config: RawConfig) -> ConfigDef:
    """All keys of a connector's configuration: the worker's, its transformations', and its own."""
    common = settings_of(config, source=issubclass(plugin, SourceConnector))
    return common.with_keys(chain_keys(config)).with_keys(plugin.config_def())


def validated(
    plugin: type[Connector], config: RawConfig, *, exactly_once: bool = True
) -> tuple[ConfigDef, list[ConfigValue]]:
    """All keys of a configuration, and what is to say of each. `exactly_once`: whether the worker is for it."""
    common = settings_of(config, source=issubclass(plugin, SourceConnector))
    problem = None
    try:
        common = common.with_keys(chain_keys(config))
    except ConnectConfigError as error:
        problem = ("transforms", str(error))
    own = plugin.validate(config)
    values = {value.name: value for value in common.validate(config)}
    for value in own:  # what the connector says of a key of the worker's counts, too
        known = values.setdefault(value.name, value)
        if known is not value:
            known.errors += [error for error in value.errors if error not in known.errors]
    if problem is not None:
        values.setdefault(problem[0], ConfigValue(problem[0])).errors.append(problem[1])
    if not issubclass(plugin, SourceConnector):
        if (wrong := check_topics(config)) is not None:
            values["topics"].errors.append(wrong)
    elif (config.get("exactly.once.support") or "").lower() == "required" and not (
        exactly_once and plugin.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
    ):
        values["exactly.once.support"].errors.append(
            "The connector, or this worker's exactly.once.source.support, has no exactly-once delivery with this"
            " configuration. Set exactly.once.support=requested to go without it."
        )
    return common.with_keys(plugin.config_def()), list(values.values())


def nearest_to(wanted: str, known: Iterable[type[Connector]]) -> str:
    """What to say of a name that no connector has: " …" or ""."""
    plugins = list(known)
    if wanted.startswith(_PACKAGE):
        found = _DEBEZIUM.get(wanted.removeprefix(_PACKAGE))
        if found is not None and any(found[0] in {_last(full) for full in one.names} for one in plugins):
            return f" The nearest is {found[0]}: {found[1]}.{_AS_BEFORE}"
    names = {_last(full): one for one in plugins for full in one.names}
    close = nearest(_last(wanted), names)
    said = f" The nearest is {names[close].names[0]}." if close else ""
    return said + (_AS_BEFORE if wanted.startswith(_PACKAGE) else "")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
