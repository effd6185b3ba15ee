"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): clients learn which metrics to push, and push them.

What is pushed becomes records of the topic `__client_metrics`, and values of the broker's own metrics. Any client may
push, as in Kafka; it does so where a subscription asks it to.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.client_meter import ClientSeries
from tidelog.broker.base.context import Context
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import unpacked
from tidelog.broker.telemetry.errors import TelemetryTooLargeError
from tidelog.broker.telemetry.instances import RESERVED, Instances
from tidelog.broker.telemetry.otlp import points_of
from tidelog.broker.telemetry.subscriptions import MetricsSubscription, WantedMetrics
from tidelog.broker.telemetry.topic import MetricsTopic, line_of
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import error_name
from tidelog.log.base.errors import InvalidRecordError, TidelogError

# Kafka's numbers of codecs, those that cost clients least first.
_ACCEPTED: Final = (4, 3, 1, 2)
# A push unpacks to no more than this many times `telemetry.max.bytes`.
_GROWTH: Final = 8
# And its records have no more than this many times that.
_LINES_GROWTH: Final = 32


class TelemetryHandlers:
    """What clients ask about metrics of their own, and push."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._most_bytes = context.settings.telemetry.max_bytes
        self._instances = Instances(self._most_bytes)
        self._configured: object = None
        self._topic = MetricsTopic(context)
        context.at_end.append(self._topic.close)  # pushes are answered until then
        context.meter.clients.alive = self._instances.alive

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: self.subscriptions, ApiKey.PUSH_TELEMETRY: self.push}

    async def subscriptions(self, call: Call) -> Reply:
        """GetTelemetrySubscriptions: a client is given its id, which metrics to push, and how often."""
        asked = call.body.client_instance_id
        instance = asked if asked is not None and asked not in RESERVED else uuid.UUID(self._context.lake.ids.new())
        wants: WantedMetrics | None = None
        code = 0
        self._follow()
        try:
            wants = self._instances.asks(instance, self._client(call), self._context.clock.elapsed_s())
        except TidelogError as e:
            code = e.kafka_code
        return {
            "error_code": code,
            "client_instance_id": instance if wants else asked,
            "subscription_id": wants.subscription_id if wants else 0,
            "accepted_compression_types": _ACCEPTED if wants else (),
            "push_interval": wants.interval_ms if wants else 0,
            "telemetry_max_bytes": self._most_bytes if wants else 0,
            "delta_temporality": True,
            "requested_metrics": wants.metrics if wants else (),
        }

    async def push(self, call: Call) -> Reply:
        """PushTelemetry: a client's metrics of late."""
        code = 0
        try:
            await self._pushed(call)
        except TidelogError as e:
            code = e.kafka_code
        self._context.meter.clients.pushes[error_name(code)] += 1
        return {"error_code": code}

    async def _pushed(self, call: Call) -> None:
        context, body = self._context, call.body
        instance = body.client_instance_id or RESERVED[0]
        self._follow()
        client = self._client(call)
        wants = self._instances.pushes(
            instance,
            client,
            context.clock.elapsed_s(),
            subscription_id=body.subscription_id,
            compression=body.compression_type,
            size=len(body.metrics),
            terminating=body.terminating,
        )
        if not body.metrics or not wants.metrics:
            return
        of = {
            **client,
            "client_instance_id": str(instance),
            "principal": call.peer.principal,
            "broker": context.node_id,
        }
        pushed = await context.blocking(_pushed, body.compression_type, body.metrics, self._most_bytes, wants, of)
        self._topic.add(pushed.lines)
        meter, now_s = context.meter.clients, context.clock.elapsed_s()
        meter.points += len(pushed.lines)
        for series, value, adds in pushed.values:
            meter.saw(series, value, now_s, adds=adds)

    def _client(self, call: Call) -> Mapping[str, str]:
        """What a client is matched by, but for its id."""
        name, version = self._context.software.of(call.peer)
        return {
            "client_id": call.client_id or "",
            "client_software_name": name,
            "client_software_version": version,
            "client_source_address": call.peer.host,
            "client_source_port": str(call.peer.port),
        }

    def _follow(self) -> None:
        """Go by the subscriptions as they are now."""
        configured = self._context.access.state.client_metrics
        if configured is not self._configured:
            self._configured = configured
            self._instances.go_by({name: _read(keys) for name, keys in sorted(configured.items())})


def handlers(context: Context) -> Handlers:
    """The handlers of this part, over a broker's surroundings."""
    return TelemetryHandlers(context).handlers()


def _read(keys: Mapping[str, str]) -> MetricsSubscription:
    """A subscription as it is stored; one that can't be read asks no client."""
    try:
        return MetricsSubscription.parse(keys)
    except TidelogError:
        return MetricsSubscription()


class _Pushed(NamedTuple):
    """What a push holds: records' values, and (series, value, whether it adds to the last one)."""

    lines: list[bytes]
    values: list[tuple[ClientSeries, float, bool]]


def _pushed(codec: int, packed: Any, most_bytes: int, wants: WantedMetrics, of: Mapping[str, Any]) -> _Pushed:
    """Read a push: the points that are asked for. `of`: what each record says of the client. In a thread."""
    try:
        data = unpacked(codec, memoryview(packed), most_bytes * _GROWTH)
    except CorruptBatchError as e:
        raise InvalidRecordError(f"A push of metrics can't be unpacked. {e}") from e
    points = points_of(data)
    asked = {metric for metric in {point.metric for point in points} if wants.takes(metric)}
    pushed, left = _Pushed([], []), most_bytes * _LINES_GROWTH
    for point in points:
        if point.metric not in asked:
            continue
        line = line_of(point, of)
        left -= len(line)
        if left < 0:
            raise TelemetryTooLargeError(
                f"A push of metrics makes more than {most_bytes * _LINES_GROWTH} bytes of records. Ask for fewer."
            )
        pushed.lines.append(line)
        if point.value is not None:
            series = ClientSeries.of(point.metric, of["client_id"], of["client_software_name"], point.attributes)
            if series is not None:
                pushed.values.append((series, point.value, point.temporality == "delta"))
    return pushed
