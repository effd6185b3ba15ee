"""Requests and answers as bytes: every offered API in every offered version."""

import io

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import MalformedRequestError
from tidelog.broker.wire.messages import decode, encode

ALL = [(key, version) for key, versions in OFFERED.items() for version in range(versions.first, versions.last + 1)]


@pytest.mark.parametrize(("key", "version"), ALL, ids=lambda one: getattr(one, "name", str(one)))
def test_every_offered_version_is_known_to_the_codec(key, version):
    assert load_request_schema(key, version).__api_key__ == key
    assert load_response_schema(key, version).__version__ == version


def test_a_request_is_read_whole():
    schema = load_request_schema(ApiKey.LIST_GROUPS, 4)
    buffer = io.BytesIO()
    entity_writer(schema)(buffer, schema(states_filter=("Stable",)))
    payload = buffer.getvalue()
    assert decode(ApiKey.LIST_GROUPS, 4, memoryview(payload)).states_filter == ("Stable",)
    for end in range(len(payload)):
        with pytest.raises(MalformedRequestError):
            decode(ApiKey.LIST_GROUPS, 4, memoryview(payload[:end]))


def test_bytes_after_a_request_are_passed_over():
    # What librdkafka 2.16 sends for all topics, in version 13: null, two flags, no tagged fields, and three bytes more.
    request = decode(ApiKey.METADATA, 13, memoryview(bytes.fromhex("00000000010000")))
    assert request.topics is None


@pytest.mark.parametrize("version", range(14))
def test_an_answer_in_the_newest_names_fits_every_version(version):
    answer = {
        "throttle_time": 5,
        "brokers": [{"node_id": 1, "host": "a", "port": 9092, "rack": None}],
        "cluster_id": "c",
        "controller_id": 1,
        "topics": [
            {
                "error_code": 0,
                "name": "t",
                "topic_id": None,
                "is_internal": False,
                "partitions": [
                    {"partition_index": 0, "leader_id": 1, "leader_epoch": 3, "replica_nodes": [1], "isr_nodes": [1]}
                ],
            }
        ],
    }
    schema = load_response_schema(ApiKey.METADATA, version)
    read, end = entity_reader(schema)(encoded := encode(ApiKey.METADATA, version, answer), 0)
    assert end == len(encoded)
    (topic,) = read.topics
    assert (topic.error_code, topic.name) == (ErrorCode.none, "t")
    assert topic.partitions[0].replica_nodes == (1,)
    assert getattr(topic.partitions[0], "leader_epoch", 3) == 3
    assert read.brokers[0].host == "a"


def test_a_field_that_no_version_has_is_refused():
    with pytest.raises(KeyError, match="no field"):
        encode(ApiKey.METADATA, 9, {"brokers": [], "topics": [], "controller": 1})
    with pytest.raises(KeyError, match="needs its field 'node_id'"):
        encode(ApiKey.METADATA, 9, {"brokers": [{"host": "a", "port": 1}], "topics": []})
