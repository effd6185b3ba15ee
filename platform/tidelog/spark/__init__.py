"""tidelog.spark: a session that is set up for tidelog, and topics as native DataFrames."""

from tidelog.spark import installed as _installed  # first: says what is missing  # noqa: F401
from tidelog.spark.differences import diff
from tidelog.spark.native import create_view, decoded, read_topic, stream_topic
from tidelog.spark.registry_frames import from_registry, to_registry
from tidelog.spark.session import configure, session

__all__ = [
    "configure",
    "create_view",
    "decoded",
    "diff",
    "from_registry",
    "read_topic",
    "session",
    "stream_topic",
    "to_registry",
]
