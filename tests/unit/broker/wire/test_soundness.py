"""Requests are walked before kio reads them: what kio writes passes as it is, and what passes can be read."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import InvalidUnicode
from support.examples import one_in
from support.strange_requests import ALL, Strange, arrays_of, encoded, large

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import LargeRequestError, MalformedRequestError
from tidelog.broker.wire.large_requests import large_reader
from tidelog.broker.wire.messages import FEW_ELEMENTS, decode
from tidelog.broker.wire.primitives import uvarint
from tidelog.broker.wire.soundness import MOST_ELEMENTS, TooManyElementsError, UnsoundError, Walk, sound, walk_of

CASES = pytest.mark.parametrize(("key", "version"), ALL, ids=lambda one: getattr(one, "name", str(one)))
SEEDS = st.integers(0, 2**32)
UNKNOWN = b"\xb8\x17\x03abc"  # the tagged field 3000, of three bytes


@CASES
@one_in(5)
@given(seed=SEEDS)
def test_what_kio_writes_is_read_as_kio_reads_it(key: ApiKey, version: int, seed: int) -> None:
    strange, schema = Strange(seed), load_request_schema(key, version)
    request = strange.entity(schema)
    data = memoryview(encoded(request))
    assert sound(schema, data) is data
    assert walk_of(schema)(data, 0, Walk()) == len(data)
    assert entity_reader(schema)(data, 0) == (request, len(data))
    assert large_reader(schema)(data, 0) == (request, len(data))
    assert decode(key, version, data) == decode(key, version, data, large=True) == request


@CASES
@one_in(4)
@given(seed=SEEDS)
def test_what_passes_can_be_read(key: ApiKey, version: int, seed: int) -> None:
    """To the same end; what kio refuses then is a value, such as a string that is not UTF-8."""
    strange, schema = Strange(seed), load_request_schema(key, version)
    data = memoryview(strange.mutated(strange.request(key, version)))
    try:
        passed = sound(schema, data)
    except (UnsoundError, TooManyElementsError):
        with pytest.raises(MalformedRequestError):
            decode(key, version, data)
        return
    try:
        request, end = entity_reader(schema)(passed, 0)
    except (InvalidUnicode, ValueError):
        with pytest.raises(MalformedRequestError, match=r"UTF-8|boolean|overflow"):
            decode(key, version, data)
        return
    assert walk_of(schema)(passed, 0, Walk()) == end
    assert large_reader(schema)(passed, 0) == (request, end)


@CASES
def test_every_claim_is_checked_against_the_bytes_that_are_there(key: ApiKey, version: int) -> None:
    schema = load_request_schema(key, version)
    for path in arrays_of(schema):
        data = encoded(large(schema, path, 3))
        for end in range(len(data)):
            with pytest.raises(UnsoundError):
                sound(schema, memoryview(data[:end]))


@CASES
def test_tagged_fields_that_are_not_known_are_skipped(key: ApiKey, version: int) -> None:
    schema = load_request_schema(key, version)
    if not schema.__flexible__:
        return
    request = Strange(7).entity(schema)
    data = encoded(request)
    *_, plain = (encoded(large(schema, path, 1)) for path in [(), *arrays_of(schema)])
    assert plain.endswith(b"\0")
    for body in (plain, data if data.endswith(b"\0") else plain):
        tagged = body[:-1] + b"\x01" + UNKNOWN
        assert bytes(sound(schema, memoryview(tagged))) == body
        assert decode(key, version, memoryview(tagged)) == decode(key, version, memoryview(body))


def test_known_tags_stay_when_others_are_cut_out_of_them() -> None:
    """A Fetch with its cluster's id, a field that is not known, and a replica's state with one within."""
    schema = load_request_schema(ApiKey.FETCH, 15)
    request = large(schema, (), 0)
    data = encoded(request)
    state = struct.pack(">iq", 7, 8)
    tags = (
        *(uvarint(0) + uvarint(3) + b"\x03ab", UNKNOWN),
        uvarint(1) + uvarint(len(state) + 1 + len(UNKNOWN)) + state + b"\x01" + UNKNOWN,
    )
    read = decode(ApiKey.FETCH, 15, memoryview(data[:-1] + b"\x03" + b"".join(tags)))
    assert (read.cluster_id, read.replica_state.replica_id, read.replica_state.replica_epoch) == ("ab", 7, 8)
    assert read.topics == request.topics
    wrong = uvarint(0) + uvarint(4) + b"\x03ab\0"
    with pytest.raises(UnsoundError, match="not of its 4 bytes"):
        sound(schema, memoryview(data[:-1] + b"\x01" + wrong))


def test_tags_within_elements_are_cut_out() -> None:
    schema = load_request_schema(ApiKey.METADATA, 12)
    topic = bytes(16) + b"\x02t"
    data = b"\x04" + topic + b"\0" + topic + b"\x01" + UNKNOWN + topic + b"\0" + b"\0\0" + b"\x01" + UNKNOWN
    assert bytes(sound(schema, memoryview(data))) == b"\x04" + (topic + b"\0") * 3 + b"\0\0\0"
    assert [one.name for one in decode(ApiKey.METADATA, 12, memoryview(data)).topics] == ["t"] * 3


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (ApiKey.CREATE_ACLS, 1, b"\xff\xff\xff\xff"),
        (ApiKey.CREATE_ACLS, 3, b"\0\0"),
        (ApiKey.METADATA, 0, b"\xff\xff\xff\xff"),
        (ApiKey.DESCRIBE_GROUPS, 0, b"\0\0\0\1\xff\xff"),
        (ApiKey.DESCRIBE_GROUPS, 5, b"\2\0\0\0"),
        (ApiKey.SASL_AUTHENTICATE, 1, b"\xff\xff\xff\xff"),
        (ApiKey.SASL_AUTHENTICATE, 2, b"\0\0"),
    ],
)
def test_null_stands_only_where_it_may(key: ApiKey, version: int, body: bytes) -> None:
    with pytest.raises(MalformedRequestError, match="null stands for"):
        decode(key, version, memoryview(body))


def test_null_is_taken_where_it_may_stand() -> None:
    assert decode(ApiKey.METADATA, 1, memoryview(b"\xff\xff\xff\xff")).topics is None
    assert decode(ApiKey.METADATA, 9, memoryview(b"\0\0\0\0\0")).topics is None


def test_strings_are_no_longer_than_kafkas() -> None:
    for length, fits in ((2**15 - 1, True), (2**15, False)):
        body = b"\2" + uvarint(length + 1) + b"x" * length + b"\0\0"
        if fits:
            assert len(decode(ApiKey.DESCRIBE_GROUPS, 5, memoryview(body)).groups[0]) == length
        else:
            with pytest.raises(MalformedRequestError, match="a string claims 32768 bytes"):
                decode(ApiKey.DESCRIBE_GROUPS, 5, memoryview(body))


def groups(count: int) -> memoryview:
    return memoryview(uvarint(count + 1) + b"\2g" * count + b"\0\0")


def test_requests_of_many_elements_are_large_and_those_of_too_many_refused() -> None:
    assert len(decode(ApiKey.DESCRIBE_GROUPS, 5, groups(FEW_ELEMENTS)).groups) == FEW_ELEMENTS
    with pytest.raises(LargeRequestError):
        decode(ApiKey.DESCRIBE_GROUPS, 5, groups(FEW_ELEMENTS + 1))
    assert len(decode(ApiKey.DESCRIBE_GROUPS, 5, groups(FEW_ELEMENTS + 1), large=True).groups) == FEW_ELEMENTS + 1
    with pytest.raises(MalformedRequestError, match=f"more than {MOST_ELEMENTS} elements"):
        decode(ApiKey.DESCRIBE_GROUPS, 5, groups(MOST_ELEMENTS + 1), large=True)
    tags = b"\1\0" + uvarint(MOST_ELEMENTS + 1) + b"\0\0" * (MOST_ELEMENTS + 1)
    with pytest.raises(MalformedRequestError, match="elements"):
        decode(ApiKey.DESCRIBE_GROUPS, 5, memoryview(tags), large=True)


def test_the_bytes_are_those_that_kio_writes() -> None:
    """The helper writes by kio, so that the properties above compare with it."""
    schema = load_request_schema(ApiKey.METADATA, 12)
    buffer = io.BytesIO()
    request = Strange(1).entity(schema)
    entity_writer(schema)(buffer, request)
    assert encoded(request) == buffer.getvalue()
