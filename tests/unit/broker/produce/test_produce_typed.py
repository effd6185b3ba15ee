"""Produce to a typed topic that validates: batches are refused each by itself, and the answer names the records."""

import orjson
from support.group_commits import lake_with
from support.produce_requests import batch, read_back, told, with_broker
from support.value_typings import FLIGHT, avro_payload, flight

TYPED = {"value_columns": "avro", "value_schema": orjson.dumps(FLIGHT).decode(), "topic_validate": "true"}


def good(number: int) -> bytes:
    return avro_payload(FLIGHT, flight(number))


def test_the_records_that_do_not_fit_are_named_by_their_place_in_their_batch():
    lake, _, _ = lake_with(3, **TYPED)

    async def act(asked):
        parts = {0: batch(good(1), good(2)), 1: batch(good(3), b"bad", good(4), b"worse"), 2: batch(b"bad")}
        answer = await asked.ask(9, {"t": parts})
        return answer.responses[0].partition_responses

    found = with_broker(lake, act)
    assert [told(one) for one in found] == [(0, 0), (87, -1), (87, -1)]
    assert [[one.batch_index for one in p.record_errors] for p in found] == [[], [1, 3], [0]]
    assert "does not fit schema -1" in found[1].record_errors[0].batch_index_error_message
    assert "topic.validate=true" in found[1].error_message
    assert read_back(lake) == {0: [good(1), good(2)], 1: [], 2: []}
