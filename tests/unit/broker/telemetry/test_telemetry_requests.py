"""GetTelemetrySubscriptions and PushTelemetry at a broker, and subscriptions as its configurations."""

import asyncio
import zlib
from uuid import UUID

import orjson
import pytest
from kio.schema.errors import ErrorCode
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from support.broker_requests import Requests
from support.logs import memory_lake
from support.produce_requests import read_back
from support.waiting import eventually_async

from tidelog.broker.base.client_meter import STALE_S, ClientMeter, ClientSeries
from tidelog.broker.telemetry import topic
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.delta.layout import CLIENT_METRICS_TOPIC

CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)
LATENCY = "org.apache.kafka.producer.request.latency.avg"


def alter(requests, name, *changes, validate_only=False):
    keys = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    resource = {"resource_type": CLIENT_METRICS, "resource_name": name, "configs": keys}
    asked = {"resources": [resource], "validate_only": validate_only}
    (told,) = requests.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked).responses
    return told


def described(requests, name):
    asked = {"resources": [{"resource_type": CLIENT_METRICS, "resource_name": name, "configuration_keys": None}]}
    (told,) = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {**asked, "include_synonyms": True}).results
    return told


def asked(requests, instance=None, **sender):
    return requests.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, {"client_instance_id": instance}, **sender)


def pushed(requests, told, data, *, compression=0, terminating=False, **sender):
    body = {
        "client_instance_id": told.client_instance_id,
        "subscription_id": told.subscription_id,
        "terminating": terminating,
        "compression_type": compression,
        "metrics": data,
    }
    return requests.ask(ApiKey.PUSH_TELEMETRY, 0, body, **sender).error_code


def metrics(**values):
    data = MetricsData()
    kinds = data.resource_metrics.add().scope_metrics.add().metrics
    kinds.add(name=LATENCY).gauge.data_points.add(as_double=2.5, time_unix_nano=5_000_000)
    for name, value in values.items():
        kind = kinds.add(name=name).sum
        kind.aggregation_temporality = 1
        kind.data_points.add(as_int=value).attributes.add(key="node").value.string_value = "1"
    return data.SerializeToString()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(topic, "_GATHER_S", 0.0)


# --- subscriptions -----------------------------------------------------------------------------------------


def test_a_subscription_is_set_described_and_taken_away(lake, requests):
    assert alter(requests, "s", ("metrics", SET, "a."), ("interval.ms", SET, "1000")).error_code is ErrorCode.none
    keys = {one.name: one for one in described(requests, "s").configs}
    assert {name: (key.value, key.config_source, key.config_type) for name, key in keys.items()} == {
        "interval.ms": ("1000", 7, 3),
        "match": ("", 5, 7),
        "metrics": ("a.", 7, 7),
    }
    alter(requests, "s", ("metrics", APPEND, "b.,a."))
    alter(requests, "s", ("metrics", SUBTRACT, "a."))
    assert requests.broker._context.access.state.client_metrics == {"s": {"interval.ms": "1000", "metrics": "b."}}
    with Requests(lake) as other:
        other.loop.run_until_complete(other.broker._context.access.look_now())
        assert other.broker._context.access.state.client_metrics["s"]["metrics"] == "b."
    alter(requests, "s", ("metrics", DELETE, None), ("interval.ms", DELETE, None))
    assert requests.broker._context.access.state.client_metrics == {}
    assert {one.config_source for one in described(requests, "s").configs} == {5}


def test_alter_configs_replaces_all_keys(requests):
    alter(requests, "s", ("interval.ms", SET, "1000"))
    resource = {"resource_type": CLIENT_METRICS, "resource_name": "s", "configs": [{"name": "metrics", "value": "*"}]}
    (told,) = requests.ask(ApiKey.ALTER_CONFIGS, 2, {"resources": [resource]}).responses
    assert told.error_code is ErrorCode.none
    assert requests.broker._context.access.state.client_metrics == {"s": {"metrics": "*"}}


def test_what_is_wrong_is_refused(requests):
    assert alter(requests, "", ("metrics", SET, "a.")).error_code is ErrorCode.invalid_request
    assert alter(requests, "s", ("interval.ms", SET, "1")).error_code is ErrorCode.invalid_request
    assert alter(requests, "s", ("match", SET, "x=y")).error_code is ErrorCode.invalid_config
    assert alter(requests, "s", ("interval.ms", APPEND, "1")).error_code is ErrorCode.invalid_request
    assert described(requests, "").error_code is ErrorCode.invalid_request
    assert alter(requests, "s", ("metrics", SET, "a."), validate_only=True).error_code is ErrorCode.none
    assert requests.broker._context.access.state.client_metrics == {}


# --- pushes ------------------------------------------------------------------------------------------------


def test_without_subscriptions_a_client_is_asked_for_nothing(requests):
    told = asked(requests)
    assert told.error_code is ErrorCode.none
    assert told.client_instance_id.int > 1
    assert told.requested_metrics == ()
    assert told.push_interval.total_seconds() == 300
    assert told.telemetry_max_bytes == 1024 * 1024
    assert told.accepted_compression_types == (4, 3, 1, 2)
    assert told.delta_temporality


def test_what_is_pushed_is_in_the_topic_and_in_the_metrics(lake, requests):
    alter(requests, "s", ("metrics", SET, "org.apache.kafka.,sent"), ("interval.ms", SET, "100"))
    told = asked(requests, client_id="shop")
    assert told.requested_metrics == ("org.apache.kafka.", "sent")
    packed = zlib.compressobj(wbits=31)
    data = packed.compress(metrics(sent=3, other=1)) + packed.flush()
    assert pushed(requests, told, data, compression=1, client_id="shop") is ErrorCode.none
    assert pushed(requests, told, metrics(sent=4), terminating=True, client_id="shop") is ErrorCode.none

    async def there():
        def count():
            return CLIENT_METRICS_TOPIC in lake.topics(internal=True) and len(read_back(lake, CLIENT_METRICS_TOPIC)[0])

        await eventually_async(lambda: count() == 4, "four points")

    requests.loop.run_until_complete(there())
    batches = lake.topic(CLIENT_METRICS_TOPIC).read(0, include_columns=True)
    columns = [one for batch in batches for one in batch.column("columns").to_pylist()]
    assert [(one["metric"], one["value"]) for one in columns] == [
        (LATENCY, 2.5),
        ("sent", 3.0),
        (LATENCY, 2.5),
        ("sent", 4.0),
    ]
    assert dict(columns[1]["attributes"]) == {"node": "1"}
    values = [orjson.loads(one) for one in read_back(lake, CLIENT_METRICS_TOPIC)[0]]
    assert (values[0]["time_ms"], values[0]["value"], values[1]["temporality"]) == (5, 2.5, "delta")
    assert values[0]["client_instance_id"] == str(told.client_instance_id)
    families = {family.name: family for family in requests.broker.own_metrics()}
    labels = {"client_id": "shop", "software": "unknown"}
    assert families["tidelog_client_metric"].samples == [
        ({"metric": LATENCY, "of": "", **labels}, 2.5),
        ({"metric": "sent", "of": "node=1", **labels}, 7.0),
    ]
    assert families["tidelog_broker_client_metrics_pushes"].samples == [({"error": "NONE"}, 2)]


def test_pushes_are_refused_by_kafkas_codes(requests):
    alter(requests, "s", ("metrics", SET, "*"), ("interval.ms", SET, "100"))

    def fresh():
        return asked(requests)

    assert pushed(requests, fresh(), b"\xff") is ErrorCode.invalid_record
    assert pushed(requests, fresh(), b"no gzip", compression=1) is ErrorCode.invalid_record
    assert pushed(requests, fresh(), b"", compression=9) is ErrorCode.unsupported_compression_type
    assert pushed(requests, fresh(), bytes(1024 * 1024 + 1)) is ErrorCode.telemetry_too_large
    told = fresh()
    assert pushed(requests, told, b"") is ErrorCode.none
    assert pushed(requests, told, b"") is ErrorCode.throttling_quota_exceeded
    assert asked(requests, told.client_instance_id).error_code is ErrorCode.throttling_quota_exceeded
    other = fresh()
    object.__setattr__(other, "subscription_id", other.subscription_id ^ 1)
    assert pushed(requests, other, b"") is ErrorCode.unknown_subscription_id
    object.__setattr__(other, "client_instance_id", UUID(int=0))
    assert pushed(requests, other, b"") is ErrorCode.invalid_request


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_push_that_unpacks_to_too_much_is_refused(requests, codec):
    import pyarrow as pa

    from tidelog.broker.records.batches import CODECS

    alter(requests, "s", ("metrics", SET, "*"))
    zeros = bytes(9 * 1024 * 1024)
    if codec == 2:
        import cramjam

        packed = bytes(cramjam.snappy.compress_raw(zeros))
    else:
        packed = pa.compress(zeros, CODECS[codec], asbytes=True)
    assert pushed(requests, asked(requests), packed, compression=codec) is ErrorCode.invalid_record


def test_the_topic_takes_json_alone_where_columns_need_a_package(monkeypatch):
    from tidelog.log.base.errors import MissingPackageError

    lake = memory_lake()[0]
    create = type(lake).create_topic

    def untyped(self, name, partitions=None, config=None, **other):
        if config:
            raise MissingPackageError("tidelog[typed] is not installed")
        return create(self, name, partitions, config, **other)

    monkeypatch.setattr(type(lake), "create_topic", untyped)
    with Requests(lake) as requests:
        alter(requests, "s", ("metrics", SET, "*"))
        assert pushed(requests, asked(requests), metrics()) is ErrorCode.none
        requests.loop.run_until_complete(asyncio.sleep(0))
    assert len(read_back(lake, CLIENT_METRICS_TOPIC)[0]) == 1


def test_a_push_that_makes_too_many_bytes_of_records_is_refused(requests):
    alter(requests, "s", ("metrics", SET, "*"))
    data = MetricsData()
    points = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points
    for _ in range(2_000):
        points.add(as_int=1)
    sender = {"client_id": "x" * 32_000}  # it is in each record
    assert pushed(requests, asked(requests, **sender), data.SerializeToString(), **sender) is (
        ErrorCode.telemetry_too_large
    )


def test_what_a_client_was_not_asked_for_is_not_read(requests):
    assert pushed(requests, asked(requests), b"\xff") is ErrorCode.none


def test_long_names_have_no_series(requests):
    alter(requests, "s", ("metrics", SET, "*"))
    sender = {"client_id": "x" * 1_001}
    assert pushed(requests, asked(requests, **sender), metrics(sent=1), **sender) is ErrorCode.none
    families = {family.name: family for family in requests.broker.own_metrics()}
    assert families["tidelog_client_metric"].samples == []
    assert families["tidelog_broker_client_metrics_points"].samples == [({}, 2)]
    assert families["tidelog_broker_client_metrics_instances"].samples == [({}, 1)]


def test_stale_series_are_let_go():
    meter = ClientMeter()
    for number in range(3):
        meter.saw(ClientSeries.of("m", str(number), "", {}), 1.0, 10.0, adds=False)
    meter.saw(ClientSeries.of("m", "0", "", {}), 2.0, 11.0 + STALE_S, adds=True)
    assert [(one.client_id, value) for one, value in meter.series(11.0 + STALE_S)] == [("0", 3.0)]
    assert len(meter._series) == 1
