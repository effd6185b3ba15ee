"""A topic's records as one table: Arrow's, pandas' or Polars'."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.delta.schema import RECORDS, RECORDS_WITH_HEADERS
from tidelog.log.records import frames
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import ReadByEngines, Storage


class TopicTables:
    """Reads a topic whole: all partitions one after another, or a part of one, into memory."""

    def state(self) -> TopicState:
        """The topic's state at the head of its log."""
        raise NotImplementedError

    @property
    def storage(self) -> Storage:
        """The store that the topic is in."""
        raise NotImplementedError

    @property
    def folder(self) -> str:
        """The topic's folder below the lake's root."""
        raise NotImplementedError

    def read(
        self, partition: int, start: int | None = None, end: int | None = None, *, include_headers: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The records of a partition."""
        raise NotImplementedError

    def to_arrow(
        self,
        partition: int | None = None,
        start: int | None = None,
        end: int | None = None,
        *,
        include_headers: bool = False,
        key_as: str = "bytes",
        value_as: str = "bytes",
    ) -> pa.Table:
        """The topic's records as an Arrow table, by partition and offset; columns as `read` gives them.

        `partition`: only that one, from `start` on and below `end` (None: all that there is). `key_as`, `value_as`:
        "bytes" as stored, "text" as UTF-8, "json" as the structs, lists and numbers that JSON says; null stays null.
        Raises as `read` does, `InvalidConfigError` for a range without a partition, and `InvalidRecordError` for a
        record that is no text or no JSON.
        """
        frames.check_forms(key_as=key_as, value_as=value_as)
        return frames.shown(self._whole(partition, start, end, include_headers), key_as, value_as)

    def to_pandas(
        self,
        partition: int | None = None,
        start: int | None = None,
        end: int | None = None,
        *,
        include_headers: bool = False,
        key_as: str = "bytes",
        value_as: str = "bytes",
    ) -> Any:
        """The same as a pandas DataFrame; JSON as Python's objects, of whatever kinds. Needs pandas.

        Raises as `to_arrow` does, and `MissingPackageError`.
        """
        frames.check_forms(key_as=key_as, value_as=value_as)
        return frames.as_pandas(self._whole(partition, start, end, include_headers), key_as, value_as)

    def to_polars(
        self,
        partition: int | None = None,
        start: int | None = None,
        end: int | None = None,
        *,
        include_headers: bool = False,
        key_as: str = "bytes",
        value_as: str = "bytes",
    ) -> Any:
        """The same as a Polars DataFrame. Needs Polars. Raises as `to_arrow` does, and `MissingPackageError`."""
        frames.check_forms(key_as=key_as, value_as=value_as)
        return frames.as_polars(frames.shown(self._whole(partition, start, end, include_headers), key_as, value_as))

    def _whole(self, partition: int | None, start: int | None, end: int | None, include_headers: bool) -> pa.Table:
        if partition is None and not start is end is None:
            raise InvalidConfigError("start and end are offsets of one partition: give its number as partition, too.")
        batches = [
            batch
            for number, first, last in self._ranges(partition, start, end)
            for batch in self.read(number, first, last, include_headers=include_headers)
        ]
        return pa.Table.from_batches(batches, RECORDS_WITH_HEADERS if include_headers else RECORDS)

    def _ranges(
        self, partition: int | None, start: int | None, end: int | None
    ) -> list[tuple[int, int | None, int | None]]:
        """(partition, first offset, end): all partitions as of one state, so that a table holds whole entries."""
        if partition is not None:
            return [(partition, start, end)]
        state = self.state()
        return [(number, None, state.end(number)) for number in range(state.partitions)]

    def to_duckdb(
        self,
        connection: Any = None,
        *,
        include_headers: bool = False,
        key_as: str = "bytes",
        value_as: str = "bytes",
    ) -> Any:
        """The topic's records as a DuckDB relation, of DuckDB's default connection unless one is given.

        The records are those of one moment, and are held in memory; name the relation in SQL by the variable that holds
        it. Needs DuckDB. Raises as `to_arrow` does, and `MissingPackageError`.
        """
        table = self.to_arrow(include_headers=include_headers, key_as=key_as, value_as=value_as)
        return frames.as_duckdb(table, connection)

    def delta_table(self) -> Any:
        """The topic's table as deltalake's `DeltaTable`, at the version that is the newest now.

        Also while others write: to name the version is what keeps deltalake from asking a local folder for a list of
        entries that grows meanwhile, which it may find to have a gap. Needs deltalake. Raises as `state` does, and
        `MissingPackageError`.
        """
        version = self.state().version
        options = self.storage.engine_options() if isinstance(self.storage, ReadByEngines) else None
        return frames.delta_table(f"{self.storage.uri}/{self.folder}", version, options)
