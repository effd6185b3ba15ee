"""What a client tells the store that it opens a lake on."""

from typing import Any

import pytest

from tidelog.clients.open_lake import store_options
from tidelog.clients.settings import ConsumerSettings, ProducerSettings

REQUEST, RETRY = "lake.store.request.timeout.ms", "lake.store.retry.timeout.ms"


def options(**conf: Any) -> dict[str, str]:
    told = ProducerSettings.parse({key.replace("_", "."): value for key, value in conf.items()})
    return dict(store_options(told) or {})


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, {}),
        ({"delivery_timeout_ms": 80_000}, {}),
        ({"delivery_timeout_ms": 10_000}, {REQUEST: "5000", RETRY: "5000"}),
        ({"delivery_timeout_ms": 70_000}, {REQUEST: "30000", RETRY: "35000"}),
        ({"delivery_timeout_ms": 1}, {REQUEST: "1", RETRY: "1"}),
        ({"delivery_timeout_ms": 0}, {}),
        ({"delivery_timeout_ms": 10_000, "storage_options": {RETRY: "7"}}, {REQUEST: "5000", RETRY: "7"}),
        ({"delivery_timeout_ms": 10_000, "storage_options": {"timeout": "7s"}}, {"timeout": "7s", RETRY: "5000"}),
        ({"delivery_timeout_ms": 10_000, "lake": "/folder"}, {}),
        ({"delivery_timeout_ms": 10_000, "lake": "memory://m"}, {}),
    ],
)
def test_a_producer_s_store_answers_before_its_records_are_given_up(conf: dict[str, Any], expected: dict[str, str]):
    assert options(**{"lake": "s3://bucket/lake", "linger_ms": 0, **conf}) == expected


def test_a_consumer_has_no_such_time():
    told = ConsumerSettings.parse({"lake": "s3://bucket/lake", "group.id": "g", "storage.options": {RETRY: "7"}})
    assert store_options(told) == {RETRY: "7"}
