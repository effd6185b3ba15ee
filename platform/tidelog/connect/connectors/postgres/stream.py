"""The stream of the log's changes, over psycopg2's replication connection."""

import select
from collections.abc import Iterator
from typing import Any, Final

from tidelog.connect.connectors.postgres.database import (
    Connection,
    Database,
    connect,
    is_lost,
    lost,
    psycopg2,
    stream_failure,
)
from tidelog.connect.connectors.postgres.positions import lsn_number
from tidelog.connect.connectors.postgres.settings import PostgresSettings
from tidelog.connect.data.errors import ConnectError, RetriableConnectError

# PostgreSQL 14 and newer send logical messages when they are asked for.
_MESSAGES_SINCE: Final = 140_000


class SlotBusyError(RetriableConnectError, retriable=True):
    """Another session reads from the slot."""


def create_slot(settings: PostgresSettings) -> tuple[Connection, int, str]:
    """Make the slot: (the connection, its first LSN, the name of the snapshot of all that was committed before it).

    The snapshot is there as long as the connection is open and does nothing else.
    """
    made = connect(settings, replication=True)
    try:
        with made.cursor() as cursor:
            cursor.execute(f'CREATE_REPLICATION_SLOT "{settings.slot}" LOGICAL pgoutput EXPORT_SNAPSHOT')
            row = cursor.fetchone()
            assert row is not None
            return made, lsn_number(row[1]), str(row[2])
    except psycopg2().Error as error:
        gone = is_lost(error, made)
        made.close()
        if gone:
            raise lost(error) from error
        raise ConnectError(
            f"PostgreSQL does not make replication slot {settings.slot}: {str(error).strip()}. The user needs the"
            " attribute REPLICATION, wal_level must be logical, and max_replication_slots must have room."
        ) from error
    except BaseException:
        made.close()
        raise


class ChangeStream:
    """Messages of the slot, from its confirmed position on."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._module = psycopg2()
        self._settings = settings
        self._connection = connect(settings, replication=True)
        self._cursor = self._connection.cursor()
        options = {"proto_version": "1", "publication_names": _name_list(settings.publication)}
        if self._connection.server_version >= _MESSAGES_SINCE:
            options["messages"] = "true"
        try:
            self._cursor.start_replication(
                slot_name=settings.slot,
                decode=False,
                status_interval=max(1, settings.status_interval_s),
                options={**options, **settings.plugin_options},
            )
        except self._module.Error as error:
            gone = is_lost(error, self._connection)
            self._connection.close()
            if error.pgcode == "55006":  # object_in_use
                raise SlotBusyError(
                    f"Another session reads from replication slot {settings.slot}. Stop the connector that has this"
                    " slot, or give this one another slot.name."
                ) from error
            if gone:
                raise RetriableConnectError(f"PostgreSQL's stream broke as it began: {str(error).strip()}.") from error
            raise stream_failure(error, self._connection, settings) from error

    def messages(self, most: int, wait_s: float) -> Iterator[tuple[int, bytes]]:
        """(LSN, message), `most` at most: those that are there, or the first that come within a time.

        Raises `RetriableConnectError` when the connection is lost, `ConnectError` for what the server refuses.
        """
        read = self._cursor.read_message
        try:
            message = read()
            if message is None and wait_s > 0:
                select.select([self._connection], [], [], wait_s)
                message = read()
            while message is not None:
                yield message.data_start, message.payload
                most -= 1
                if most <= 0:
                    return
                message = read()
        except self._module.Error as error:
            raise stream_failure(error, self._connection, self._settings) from error

    @property
    def sent_lsn(self) -> int:
        """How far the server has looked through its log for this slot."""
        return int(self._cursor.wal_end)

    def confirm(self, lsn: int, *, now: bool = False) -> None:
        """Let the slot forget what is before an LSN; the server hears it with the next status, or now."""
        try:
            self._cursor.send_feedback(flush_lsn=lsn, write_lsn=lsn, apply_lsn=lsn, force=now)
        except (self._module.OperationalError, self._module.DatabaseError, self._module.InterfaceError) as error:
            raise lost(error) from error

    def close(self) -> None:
        """End the connection, and with it the walsender's hold of the slot."""
        self._connection.close()


def take_slot(settings: PostgresSettings, database: Database, wait: Any) -> ChangeStream:
    """The stream, when the slot is free: of a worker that is gone, the session is ended at the second attempt.

    `wait`: pauses for seconds, True when the task is to stop.
    """
    for attempt in range(settings.slot_retries + 1):
        try:
            return ChangeStream(settings)
        except SlotBusyError:
            if attempt == settings.slot_retries:
                raise
            if not database.end_reader() and wait(settings.slot_retry_s):
                raise
            if wait(_AFTER_END_S):
                raise
    raise AssertionError("unreachable")


_AFTER_END_S: Final = 0.2


def _name_list(publication: str) -> str:
    return '"' + publication.replace('"', '""') + '"'
