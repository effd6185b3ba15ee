"""The topic that has what clients push: a record for each point, with typed columns, made with the first of them."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from tidelog.broker.base.context import Context
from tidelog.broker.base.topic_lines import TopicLines
from tidelog.broker.telemetry.otlp import Point
from tidelog.log.appends.appender import Appender
from tidelog.log.base.errors import MissingPackageError, TopicExistsError
from tidelog.log.delta.layout import CLIENT_METRICS_TOPIC
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)

# How long points wait for others, so that an entry holds those of many clients; and how many of them do at most.
_GATHER_S: Final = 1.0
_MOST_WAITING: Final = 100_000

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": ["number", "null"]}
_WHOLE: Final = {"type": "integer"}
SCHEMA: Final[Mapping[str, Any]] = {
    "title": "ClientMetric",
    "type": "object",
    "properties": {
        "time_ms": _WHOLE,
        "start_ms": _WHOLE,
        "metric": _TEXT,
        "kind": _TEXT,
        "temporality": _TEXT,
        "unit": _TEXT,
        "value": _NUMBER,
        "count": {"type": ["integer", "null"]},
        "sum": _NUMBER,
        "min": _NUMBER,
        "max": _NUMBER,
        "attributes": {"type": "object", "additionalProperties": _TEXT},
        "client_instance_id": _TEXT,
        "client_id": _TEXT,
        "client_software_name": _TEXT,
        "client_software_version": _TEXT,
        "client_source_address": _TEXT,
        "client_source_port": _TEXT,
        "principal": _TEXT,
        "broker": _WHOLE,
    },
}
TYPED: Final = {"value.columns": "json", "value.schema": orjson.dumps(SCHEMA).decode()}


class MetricsTopic:
    """Appends points to the topic. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        lake = context.lake
        appender = Appender(CLIENT_METRICS_TOPIC, self._opened, lake.clock, lake.ids, retries=0)
        self._lines = TopicLines(
            appender,
            context.topics,
            context.blocking,
            what="clients' metrics",
            elsewhere="Clients' metrics wait",
            gather_s=_GATHER_S,
            most=_MOST_WAITING,
        )
        self.close = self._lines.close

    def add(self, lines: Sequence[bytes]) -> None:
        """Have points of a client appended, as `line_of` makes them."""
        if lines:
            self._lines.add(*lines)

    def _opened(self) -> Topic:
        """The topic, made typed where that can be; its values are the same JSON where a broker lacks the packages."""
        lake = self._context.lake
        if lake.log(CLIENT_METRICS_TOPIC).door.refresh().exists:
            return lake.topic(CLIENT_METRICS_TOPIC)
        try:
            lake.create_topic(CLIENT_METRICS_TOPIC, 1, TYPED)
        except MissingPackageError as e:
            logger.warning("Topic '%s' is made without columns for values. %s", CLIENT_METRICS_TOPIC, e)
            lake.create_topic(CLIENT_METRICS_TOPIC, 1)
        except TopicExistsError:
            pass  # another broker made it
        return lake.topic(CLIENT_METRICS_TOPIC)


def line_of(point: Point, client: Mapping[str, Any]) -> bytes:
    """The record's value of a point. `client`: what it says of the client, and of the broker."""
    fields = {
        "time_ms": point.time_ms,
        "start_ms": point.start_ms,
        "metric": point.metric,
        "kind": point.kind,
        "temporality": point.temporality,
        "unit": point.unit,
        "value": point.value,
        "count": point.count,
        "sum": point.sum,
        "min": point.least,
        "max": point.most,
        "attributes": point.attributes,
    }
    return orjson.dumps({**fields, **client})
