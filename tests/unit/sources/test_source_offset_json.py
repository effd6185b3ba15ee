"""Kafka's JSON: what is read, what is refused, and one text for equal offsets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.base.errors import InvalidOptionError
from tidelog.sources.offset_json import (
    TopicPartition,
    dumps,
    from_json_offsets,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    partitions_json,
    to_json_offsets,
)

A0, A2, A10, B0 = (TopicPartition(*pair) for pair in (("a", 0), ("a", 2), ("a", 10), ("b", 0)))

offsets_of_partitions = st.dictionaries(
    st.builds(TopicPartition, st.from_regex(r"[a-z.]{1,3}", fullmatch=True), st.integers(0, 20)),
    st.integers(-2, 2**63 - 1),
)


def test_reads_what_kafka_documents() -> None:
    assert parse_partitions('{"a":[0,2],"b":[0]}') == {A0, A2, B0}
    assert parse_offsets('{"a":{"0":23,"2":-1},"b":{"0":-2}}') == {A0: 23, A2: -1, B0: -2}
    assert parse_timestamps('{"a": {"0": 1000}}') == {A0: 1000}
    assert str(A10) == "a-10"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "[]",
        "null",
        "{'a':{'0':1}}",
        '{"a":5}',
        '{"a":null}',
        '{"a":{"x":1}}',
        '{"a":{" 1":1}}',
        '{"a":{"0":"1"}}',
        '{"a":{"0":true}}',
        '{"a":{"0":null}}',
        '{"a":{"0":1.5}}',
        '{"a":{"0":9223372036854775808}}',
        '{"a":{"2147483648":0}}',
        '{"a":{"0":1}} and more',
    ],
)
def test_refuses_the_rest_in_kafkas_words(text: str) -> None:
    with pytest.raises(InvalidOptionError) as offsets:
        parse_offsets(text)
    assert str(offsets.value) == f'Expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text}'
    with pytest.raises(InvalidOptionError) as timestamps:
        parse_timestamps(text)
    assert str(timestamps.value) == (
        'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789},\n'
        f'"topicB": {{"0": 123456789, "1": 123456789}}}}, got {text}'
    )
    with pytest.raises(InvalidOptionError) as partitions:
        parse_partitions(text)
    assert str(partitions.value) == f'Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}'


@pytest.mark.parametrize("text", ['{"a":["0"]}', '{"a":[0.0]}', '{"a":[true]}', '{"a":{"0":1}}'])
def test_refuses_partitions_that_are_no_numbers(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="Expected"):
        parse_partitions(text)


def test_below_earliest_is_no_offset_but_a_timestamp() -> None:
    with pytest.raises(InvalidOptionError, match="Expected"):
        parse_offsets('{"a":{"0":-3}}')
    assert parse_timestamps('{"a":{"0":-3}}') == {A0: -3}


def test_equal_offsets_have_equal_texts_in_numeric_order() -> None:
    text = '{"a":{"0":1,"2":2,"10":3},"b":{"0":4}}'
    assert dumps({B0: 4, A10: 3, A2: 2, A0: 1}) == text
    assert json.dumps(to_json_offsets({A10: 3, B0: 4, A0: 1, A2: 2}), separators=(",", ":")) == text
    assert partitions_json([B0, A10, A2]) == '{"a":[2,10],"b":[0]}'


@given(offsets_of_partitions)
def test_offsets_survive_spark(offsets: dict[TopicPartition, int]) -> None:
    handed_back = json.loads(json.dumps(to_json_offsets(offsets)))
    assert from_json_offsets(handed_back) == offsets
    assert parse_offsets(dumps(offsets)) == offsets
