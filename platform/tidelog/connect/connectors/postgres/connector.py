"""The connector: what it is called, what it guarantees, its one task."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tidelog.connect.config.definition import ConfigDef, ConfigValue
from tidelog.connect.connectors.postgres import settings
from tidelog.connect.connectors.postgres.database import Database, psycopg2
from tidelog.connect.connectors.postgres.envelopes import ENVELOPE_VERSION
from tidelog.connect.connectors.postgres.positions import read_offset
from tidelog.connect.connectors.postgres.task import PostgresTask
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.spi.connectors import ConnectorContext, ExactlyOnceSupport, RawConfig, SourceConnector
from tidelog.connect.spi.sources import SourceTask


class PostgresConnector(SourceConnector):
    """Changes of a PostgreSQL database, by Debezium's configuration and in its envelope."""

    names: ClassVar[tuple[str, ...]] = ("io.debezium.connector.postgresql.PostgresConnector", "postgres")
    version: ClassVar[str] = ENVELOPE_VERSION
    guarantee: ClassVar[str] = (
        "Exactly once: each change is a record once, whatever dies. Of a first copy that is interrupted, the rows"
        " of the table that it was at come again."
    )
    task_class: ClassVar[type[SourceTask]] = PostgresTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The connector's keys."""
        return settings.config_def()

    @classmethod
    def validate(cls, config: RawConfig) -> list[ConfigValue]:
        """What is to say of each key, Debezium's that are not supported among them."""
        return settings.validate(config)

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Always: a position counts the messages of a transaction, and a slot keeps them until they are stored."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(
        cls, config: RawConfig, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        """Check offsets; to reset them removes the slot, so that the next copy and its stream are in one piece."""
        found = settings.read_settings(config)
        for partition, offset in offsets:
            if partition != found.records.partition:
                raise ConnectError(
                    f"The connector has one source partition, {found.records.partition}, and no {dict(partition)}."
                )
            read_offset(offset)
        if any(offset is None for _, offset in offsets):
            database = Database(found)
            try:
                database.drop_slot()
            finally:
                database.close()
        return True

    def start(self, config: RawConfig, context: ConnectorContext) -> None:
        """Check the configuration, and that psycopg2 is there."""
        super().start(config, context)
        psycopg2()
