"""The codec that consumers of a topic get its batches in, where the topic names one (`compression.type`).

It wins over what producers packed their batches by, as in Kafka. Batches that are kept in memory and those that are
made of segments go by it alike.
"""

from typing import Final

from tidelog.broker.records.batches import CODECS, NONE
from tidelog.log.state.topic_state import TopicState

_KEY: Final = "compression.type"
_PRODUCERS: Final = "producer"
_UNCOMPRESSED: Final = "uncompressed"


def codec_of_topic(state: TopicState) -> int | None:
    """The codec that the topic's own configuration names; None where it is left to the producers."""
    named = state.overrides.get(_KEY, _PRODUCERS)
    if named == _PRODUCERS:
        return None
    return NONE if named == _UNCOMPRESSED else CODECS.index(named)
