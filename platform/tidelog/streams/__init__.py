"""tidelog.streams: Kafka Streams' words over Structured Streaming, exactly once from topic to topic."""

from tidelog.streams import serdes
from tidelog.streams.application import Streams, StreamsStateError, TopologyChangedError
from tidelog.streams.builder import StreamsBuilder
from tidelog.streams.dsl import KStream, KTable
from tidelog.streams.functions import python
from tidelog.streams.graph import Topology
from tidelog.streams.testing import TopologyTestDriver
from tidelog.streams.views import create_view
from tidelog.streams.windows import JoinWindows, SessionWindows, TimeWindows

__all__ = [
    "JoinWindows",
    "KStream",
    "KTable",
    "SessionWindows",
    "Streams",
    "StreamsBuilder",
    "StreamsStateError",
    "TimeWindows",
    "Topology",
    "TopologyChangedError",
    "TopologyTestDriver",
    "create_view",
    "python",
    "serdes",
]
