"""`confluent_kafka.serialization` under tidelog's name."""

from tidelog.clients.values import serialization
from tidelog.clients.values.errors import KafkaException
from tidelog.clients.values.serialization import *  # noqa: F403 - its `__all__` is the list of names

__all__ = ["KafkaException"]
__all__ += serialization.__all__
