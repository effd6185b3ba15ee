"""Requests of administration that no sane client sends: each is answered, and leaves the lake as it was."""

import typing
from dataclasses import fields
from datetime import timedelta
from types import NoneType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from support.broker_requests import Requests
from support.logs import memory_lake

from tidelog.broker.wire.apis import OFFERED, ApiKey

# All of this part, in each version.
KEYS = [
    ApiKey.METADATA,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ELECT_LEADERS,
]
ALL = [(key, version) for key in KEYS for version in range(OFFERED[key].first, OFFERED[key].last + 1)]

_NAMES = "t u t/u .. ü __consumer_offsets __lake.json _delta_log __cluster_metadata \0"
_OTHERS = "retention.ms num.partitions cleanup.policy compact soon 5 -5 1 ²"
_TEXTS = st.sampled_from(["", "a b", "x" * 300, *_NAMES.split(" "), *_OTHERS.split(" ")])


def _whole(bits):
    most = 2 ** (bits - 1) - 1
    return st.sampled_from([-most - 1, -2, -1, 0, 1, 2, 3, 4, 8, 32, most])


_KINDS = {
    "string": _TEXTS,
    "bool": st.booleans(),
    "int8": _whole(8),
    "int16": _whole(16),
    "int32": _whole(32),
    "int64": _whole(64),
    # longer ones only cost time
    "timedelta_i32": st.sampled_from([timedelta(0), timedelta(milliseconds=-1), timedelta(seconds=30)]),
    "uuid": st.sampled_from([None, UUID(int=1), UUID(int=2**128 - 1)]),
}


def bodies(schema):
    """Mappings for a request's entity, of strange values."""
    hints = typing.get_type_hints(schema)
    return st.fixed_dictionaries({f.name: _values(f, hints[f.name]) for f in fields(schema)})


def _values(field, hint):
    kinds = [kind for kind in typing.get_args(hint) if kind is not NoneType]
    optional = NoneType in typing.get_args(hint)
    bare = kinds[0] if optional else hint
    is_array = typing.get_origin(bare) is tuple
    kind = field.metadata.get("kafka_type")
    if kind == "timedelta_i32":
        return _KINDS[kind].map(lambda time: round(time.total_seconds() * 1000))
    one = _KINDS[kind] if kind else bodies(typing.get_args(bare)[0] if is_array else bare)
    values = st.lists(one, max_size=4) if is_array else one
    return st.one_of(st.none(), values) if optional else values


@pytest.mark.parametrize(("key", "version"), ALL, ids=lambda one: getattr(one, "name", str(one)))
def test_whatever_is_asked_gets_an_answer(key, version):
    lake = memory_lake()[0]
    lake.create_topic("t", 2)
    lake.create_topic("u", config={"cleanup.policy": "compact"})
    with Requests(lake) as requests:

        @given(body=bodies(load_request_schema(key, version)))
        def asked(body):
            requests.ask(key, version, body)

        asked()
        for name in lake.topics(internal=True):
            assert len(lake.describe_topic(name).partitions) > 0
