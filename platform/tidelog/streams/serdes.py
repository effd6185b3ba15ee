"""Keys and values of topics, read and written: `spark/streams/serdes.py`."""

from tidelog.spark.streams.serdes import (
    BYTES,
    INTEGER,
    LONG,
    STRING,
    TYPED,
    Serde,
    avro,
    json,
    serde_of,
    session_windowed,
    time_windowed,
)

__all__ = [
    "BYTES",
    "INTEGER",
    "LONG",
    "STRING",
    "TYPED",
    "Serde",
    "avro",
    "json",
    "serde_of",
    "session_windowed",
    "time_windowed",
]
