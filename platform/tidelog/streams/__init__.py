"""tidelog.streams: Kafka Streams' words over Structured Streaming, exactly once from topic to topic.

The code is in `spark/streams`.
"""

from tidelog.spark.streams.application import Streams, StreamsStateError, TopologyChangedError
from tidelog.spark.streams.builder import StreamsBuilder
from tidelog.spark.streams.dsl import KStream, KTable
from tidelog.spark.streams.functions import python
from tidelog.spark.streams.graph import Topology
from tidelog.spark.streams.testing import TopologyTestDriver
from tidelog.spark.streams.views import create_view
from tidelog.spark.streams.windows import JoinWindows, SessionWindows, TimeWindows
from tidelog.streams import serdes

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
