"""Parquet files by hand, with what tidelog's own have: checksums of their pages, and the seal of their footer."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.log.base.parquet_checksums import finish_in_memory


def sealed_file(table: pa.Table, group: int | None = None, **options: Any) -> bytes:
    """A sealed file of the table, in row groups of `group` rows."""
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(sink, table.schema, write_page_checksum=True, **options)
    writer.write_table(table, group)
    return bytes(finish_in_memory(writer, sink))
